//! Trees are those of the definition: every split is a best one, every leaf a Newton step.

#[path = "../examples/from_files.rs"]
mod from_files;

use proptest::prelude::*;
use xc_boost::{BoostParams, BoostedTree, BoostedTrees, LEAVES, SPLITS, TreesError, fit};
use xc_buffer::{Cancel, Silent};
use xc_dense::DenseRows;

/// Derivatives of the log loss at a logit.
fn derivatives(logit: f32, is_yes: bool) -> (f64, f64) {
    let p = 1.0 / (1.0 + (-f64::from(logit)).exp());
    (p - f64::from(u8::from(is_yes)), p * (1.0 - p))
}

fn sums(rows: &[usize], of: &[(f64, f64)]) -> (f64, f64) {
    rows.iter().fold((0.0, 0.0), |(g, h), &row| (g + of[row].0, h + of[row].1))
}

/// Checks a tree from a node down over the rows that reach it.
fn check(
    tree: &BoostedTree,
    node: usize,
    reached: &[usize],
    rows: &[Vec<f32>],
    of: &[(f64, f64)],
    params: &BoostParams,
) -> Result<(), TestCaseError> {
    let total = sums(reached, of);
    if node >= SPLITS {
        let expected = -params.rate * total.0 / (total.1 + params.ridge);
        prop_assert!((f64::from(tree.leaves[node - SPLITS]) - expected).abs() < 1e-5, "leaf {node}: {expected}");
        return Ok(());
    }
    let gain = |(g, h): (f64, f64)| g * g / (h + params.ridge);
    let gain_of = |feature: usize, threshold: f32| {
        let (right, left): (Vec<_>, Vec<_>) = reached.iter().partition(|&&row| rows[row][feature] > threshold);
        let (left, right) = (sums(&left, of), sums(&right, of));
        // A child just above or below the least weight may be taken or not.
        let sure = left.1.min(right.1) >= params.least + 1e-6;
        (gain(left) + gain(right) - gain(total), sure)
    };
    let (feature, threshold) = (usize::from(tree.features[node]), tree.thresholds[node]);
    let got = if threshold == f32::INFINITY { 0.0 } else { gain_of(feature, threshold).0 };
    for feature in 0..rows[0].len() {
        for &row in reached {
            let (best, sure) = gain_of(feature, rows[row][feature]);
            prop_assert!(!sure || got >= best - 1e-4, "node {node}: gains {got}, feature {feature} would {best}");
        }
    }
    let (right, left): (Vec<usize>, Vec<usize>) = reached.iter().partition(|&&row| rows[row][feature] > threshold);
    check(tree, 2 * node + 1, &left, rows, of, params)?;
    if threshold == f32::INFINITY {
        prop_assert!(right.is_empty());
        return Ok(());
    }
    check(tree, 2 * node + 2, &right, rows, of, params)
}

fn logits_of(trees: &BoostedTrees, values: &[f32], width: usize) -> Vec<f32> {
    let mut out = Vec::new();
    trees.logits(DenseRows::new(values, width), &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_split_is_a_best_one_and_every_leaf_a_newton_step(
        rows in prop::collection::vec((prop::collection::vec(-6i8..6, 3), any::<bool>(), any::<bool>()), 1..90),
        least in prop::sample::select(vec![0.0, 0.3, 2.0]),
        ridge in prop::sample::select(vec![0.1, 1.0]),
    ) {
        let truth: Vec<bool> = rows.iter().map(|(_, is_yes, _)| *is_yes).collect();
        let of: Vec<usize> = rows.iter().enumerate().filter(|(_, (.., is_taken))| *is_taken).map(|(at, _)| at).collect();
        let rows: Vec<Vec<f32>> = rows.into_iter().map(|(row, ..)| row.into_iter().map(f32::from).collect()).collect();
        let values: Vec<f32> = rows.concat();
        let numbers: Vec<u32> = of.iter().map(|&at| at as u32).collect();
        let params = BoostParams { trees: 3, rate: 0.3, ridge, least };
        let trees = fit(DenseRows::new(&values, 3), &truth, &numbers, &params, &Silent).unwrap();
        let mut logits = vec![trees.bias(); rows.len()];
        prop_assert_eq!(trees.trees().len(), 3);
        for tree in trees.trees() {
            let derived: Vec<_> = logits.iter().zip(&truth).map(|(&logit, &is_yes)| derivatives(logit, is_yes)).collect();
            check(tree, 0, &of, &rows, &derived, &params)?;
            logits.iter_mut().zip(&rows).for_each(|(logit, row)| *logit += tree.leaf(row));
        }
        prop_assert_eq!(&logits_of(&trees, &values, 3), &logits);
        // A row alone has the bits that it has among others.
        for (row, logit) in rows.iter().zip(&logits) {
            prop_assert_eq!(&logits_of(&trees, row, 3), &[*logit]);
        }
    }
}

#[test]
fn many_values_are_cut_into_bins_and_learned() {
    let (n, width) = (5000, 4);
    let values: Vec<f32> = (0..n * width).map(|i| ((i * i % 10_007) as f32).sin()).collect();
    let truth: Vec<bool> = (0..n).map(|row| values[row * width] + values[row * width + 2] > 0.4).collect();
    let all: Vec<u32> = (0..n as u32).collect();
    let rows = DenseRows::new(&values, width);
    let right = |trees: usize| {
        let made = fit(rows, &truth, &all, &BoostParams { trees, ..BoostParams::default() }, &Silent).unwrap();
        let logits = logits_of(&made, &values, width);
        logits.iter().zip(&truth).filter(|(logit, is_yes)| (**logit > 0.0) == **is_yes).count() as f64 / n as f64
    };
    assert!(right(1) < right(30) && right(200) > 0.98, "{} {} {}", right(1), right(30), right(200));
}

#[test]
fn nothing_one_row_constants_and_what_is_no_number() {
    let none = fit(DenseRows::new(&[], 2), &[], &[], &BoostParams::default(), &Silent).unwrap();
    assert_eq!((none.bias(), logits_of(&none, &[1.0, 2.0], 2)), (0.0, vec![0.0]));
    let one = fit(DenseRows::new(&[1.0], 1), &[true], &[0], &BoostParams::default(), &Silent).unwrap();
    assert!(logits_of(&one, &[1.0], 1)[0] > 2f32.ln());
    // A constant, infinities, and NaN, which goes left.
    let values = [7.0, f32::NAN, 7.0, f32::INFINITY, 7.0, f32::NEG_INFINITY, 7.0, -0.0].repeat(40);
    let truth = [false, true, false, true].repeat(40);
    let all: Vec<u32> = (0..160).collect();
    let made = fit(DenseRows::new(&values, 2), &truth, &all, &BoostParams::default(), &Silent).unwrap();
    let logits = logits_of(&made, &values[..8], 2);
    assert!(logits.iter().all(|logit| logit.is_finite()), "{logits:?}");
    assert_eq!(logits[0], logits[2], "NaN is below all numbers");
    assert!(logits[1] > 0.0 && logits[3] > 0.0 && logits[0] < 0.0, "{logits:?}");
    assert_eq!(logits_of(&made, &[], 2), Vec::<f32>::new());
}

struct Stopped;

impl Cancel for Stopped {
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn a_fit_is_stopped_and_trees_that_give_no_logit_are_refused() {
    let rows = DenseRows::new(&[1.0, 2.0], 1);
    assert!(fit(rows, &[true, false], &[0, 1], &BoostParams::default(), &Stopped).is_none());
    let tree = BoostedTree { features: [0; SPLITS], thresholds: [0.5; SPLITS], leaves: [0.0; LEAVES] };
    let made = |change: &dyn Fn(&mut BoostedTree), bias| {
        let mut tree = tree.clone();
        change(&mut tree);
        BoostedTrees::try_new(bias, vec![tree], 3).map(|_| ())
    };
    assert_eq!(made(&|_| (), 0.0), Ok(()));
    assert_eq!(made(&|tree| tree.features[14] = 3, 0.0), Err(TreesError::Feature));
    assert_eq!(made(&|tree| tree.thresholds[3] = f32::NAN, 0.0), Err(TreesError::Threshold));
    assert_eq!(made(&|tree| tree.leaves[15] = f32::INFINITY, 0.0), Err(TreesError::Leaf));
    assert_eq!(made(&|_| (), f32::NAN), Err(TreesError::Leaf));
}

#[test]
fn files_of_numbers_are_learned_from_and_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let values: Vec<f32> = (0..400).map(|i| (i * 37 % 101) as f32).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let truth: Vec<u8> = values.chunks_exact(2).map(|row| u8::from(row[0] > row[1])).collect();
    std::fs::write(path("x"), &bytes).unwrap();
    std::fs::write(path("y"), &truth).unwrap();
    let args = ["2".to_owned(), path("x"), path("y"), path("x"), path("o")];
    let mut said = Vec::new();
    from_files::run(&args, &mut said).unwrap();
    assert!(String::from_utf8(said).unwrap().starts_with("200 rows of 2, fitted in "));
    let logits = std::fs::read(path("o")).unwrap();
    let logits = logits.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let right = logits.zip(&truth).filter(|(logit, truth)| (*logit > 0.0) == (**truth == 1)).count();
    assert!(right > 180, "{right} of 200");
    assert!(from_files::run(&[], &mut Vec::new()).is_err());
}
