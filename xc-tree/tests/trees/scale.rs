//! The scale of the features: trees learn the same from rows of any length.

use proptest::prelude::*;
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::rank::{RankedBatch, Scored};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_tree::import::pecos::{self, PecosModel};
use xc_tree::{
    ClusterMethod, ClusterParams, LinearParams, Loss, Negatives, PredictParams, PredictScratch, TrainInput, TreeModel,
    TreeParams,
};

/// `n` noisy vectors around the centres of `classes`, each times a length of its own within `spread`.
fn vectors(n: usize, classes: usize, width: usize, noise: f32, spread: f32, seed: u64) -> (CsrMatrix, LabelRows) {
    let mut random = Stream::new(name(seed, Purpose::Custom(0), &[]));
    let mut numbers = |len: usize, bound: f32| {
        let mut values = vec![0.0f32; len];
        random.fill_uniform(bound, &mut values);
        values
    };
    let centres: Vec<Vec<f32>> = (0..classes).map(|_| numbers(width, 1.0)).collect();
    let mut values = Vec::with_capacity(n * width);
    for i in 0..n {
        let length = spread.powf(numbers(1, 1.0)[0]);
        let noise = numbers(width, noise);
        values.extend(centres[i % classes].iter().zip(noise).map(|(c, e)| length * (c + e)));
    }
    let indptr = (0..=n).map(|i| i * width).collect();
    let indices = (0..n).flat_map(|_| 0..width as u32).collect();
    let labels = LabelRows::from_lists((0..n).map(|i| [(i % classes) as u32]), classes).unwrap();
    (CsrMatrix::from_checked((n, width), indptr, indices, values), labels)
}

fn times(rows: &CsrMatrix, factor: f32) -> CsrMatrix {
    let mut rows = rows.clone();
    rows.data_mut().iter_mut().for_each(|v| *v *= factor);
    rows
}

/// The first rows and labels, and the others.
fn halves(x: &CsrMatrix, y: &LabelRows) -> [(CsrMatrix, LabelRows); 2] {
    let (n, half) = (x.rows(), x.rows() / 2);
    [0..half, half..n].map(|range| {
        let lists: Vec<Vec<u32>> = range.clone().map(|i| y.row(i).to_vec()).collect();
        (x.slice(range).to_owned(), LabelRows::from_lists(lists, y.n_labels()).unwrap())
    })
}

fn answers(model: &TreeModel, rows: &CsrMatrix) -> RankedBatch {
    model.predict_batch(rows.view(), &PredictParams::top(5)).unwrap()
}

/// Share of the rows whose best label is right.
fn precision(model: &TreeModel, rows: &CsrMatrix, labels: &LabelRows) -> f64 {
    let answers = answers(model, rows);
    let right =
        answers.iter().zip(labels.iter()).filter(|(list, truth)| list.first().map(|s| s.label) == Some(truth[0]));
    right.count() as f64 / labels.len() as f64
}

/// Parameters of every kind that the scale could matter to.
fn kinds() -> Vec<TreeParams> {
    let small = ClusterParams { branching: 3, max_leaf: 4, ..ClusterParams::default() };
    let raw = TreeParams { n_trees: 2, normalise_rows: false, cluster: small.clone(), ..TreeParams::default() };
    let mut logistic = raw.clone();
    logistic.set_loss(Loss::Logistic);
    vec![
        TreeParams { normalise_rows: true, ..raw.clone() },
        logistic,
        TreeParams { n_trees: 1, cluster: ClusterParams::default(), ..raw.clone() },
        TreeParams {
            cluster: ClusterParams { method: ClusterMethod::Unbalanced, ..small },
            negatives: Negatives::MatcherAware { beam: 2 },
            linear: LinearParams { max_weights: Some(6), bias: 0.5, ..LinearParams::default() },
            normalise_labels: true,
            ..raw.clone()
        },
        raw,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn rows_times_a_power_of_two_have_the_same_answers_to_the_bit(power in -10i32..=10, seed in 0u64..1000, spread in prop_oneof![Just(1.0f32), 1f32..9.0]) {
        let (x, y) = vectors(90, 12, 10, 0.6, spread, seed);
        let scaled = times(&x, 2f32.powi(power));
        for params in kinds() {
            let model = TreeModel::train(&TrainInput::new(x.view(), &y), &params).unwrap();
            let other = TreeModel::train(&TrainInput::new(scaled.view(), &y), &params).unwrap();
            let folder = tempfile::tempdir().unwrap();
            other.save(folder.path().join("m")).unwrap();
            let other = TreeModel::open(folder.path().join("m")).unwrap();
            prop_assert_eq!(other.info().row_length, if params.normalise_rows { 1.0 } else { model.info().row_length * 2f32.powi(power) });
            prop_assert_eq!(other.weight_counts(), model.weight_counts());
            let expected = answers(&model, &x);
            prop_assert_eq!(&answers(&other, &scaled), &expected);
            // One at a time, and of labels that are given.
            let (mut scratch, mut out) = (PredictScratch::default(), Vec::new());
            let some = [1u32, 5, 7];
            let of = |model: &TreeModel, row, scratch: &mut PredictScratch, out: &mut Vec<Scored>| {
                model.predict_restricted(row, &model.restrict(&some).unwrap(), 3, scratch, out).unwrap();
                out.clone()
            };
            for i in (0..x.rows()).step_by(17) {
                let (row, other_row) = (x.view().row(i), scaled.view().row(i));
                other.predict_one(other_row, &PredictParams::top(5), &mut scratch, &mut out).unwrap();
                prop_assert_eq!(&out[..], expected.row(i));
                let restricted = of(&model, row, &mut scratch, &mut out);
                prop_assert_eq!(of(&other, other_row, &mut scratch, &mut out), restricted);
            }
        }
    }
}

#[test]
fn rows_of_any_length_are_learned_as_well_as_those_of_length_1() {
    let (x, y) = vectors(4000, 20, 24, 1.6, 1.5, 1);
    for params in kinds() {
        let of = |factor: f32| {
            let [(train, learned), (test, truth)] = halves(&times(&x, factor), &y);
            let model = TreeModel::train(&TrainInput::new(train.view(), &learned), &params).unwrap();
            assert!(!model.weight_counts().is_pruned_away());
            precision(&model, &test, &truth)
        };
        let expected = of(1.0);
        assert!((0.6..0.97).contains(&expected), "{expected}: neither too easy nor too hard");
        for factor in [1e-3, 0.05, 0.7, 1.4, 30.0, 1e3, 1e-9, 1e12] {
            let got = of(factor);
            // Chance alone moves some of 2,000 rows where quotients are rounded differently.
            let most = if (1e-3..=1e3).contains(&factor) { 0.003 } else { 0.005 } + 1e-9;
            assert!((got - expected).abs() <= most, "times {factor}: {got}, at 1 {expected}; {params:?}");
        }
    }
}

#[test]
fn lengths_that_tell_labels_apart_still_do_unless_rows_are_normalised() {
    // Labels 0 and 1 share a direction and differ in length, as 2 and 3 do.
    let rows: Vec<(f32, u32)> = (0..400).map(|i| (if i % 2 == 0 { 1.0 } else { 6.0 }, i % 4)).collect();
    let mut random = Stream::new(7);
    let mut values = Vec::new();
    for &(length, label) in &rows {
        let mut noise = [0.0f32; 4];
        random.fill_uniform(0.1, &mut noise);
        let direction = if label < 2 { [1.0, 0.5, 0.0, 0.1] } else { [0.0, 0.1, 1.0, 0.5] };
        values.extend((0..4).map(|f| 40.0 * length * (direction[f] + noise[f])));
    }
    let x = CsrMatrix::from_checked(
        (400, 4),
        (0..=400).map(|i| 4 * i).collect(),
        (0..400).flat_map(|_| 0..4).collect(),
        values,
    );
    let y = LabelRows::from_lists(rows.iter().map(|row| [row.1]), 4).unwrap();
    let of = |normalise_rows| {
        let params = TreeParams { normalise_rows, ..TreeParams::default() };
        precision(&TreeModel::train(&TrainInput::new(x.view(), &y), &params).unwrap(), &x, &y)
    };
    assert!(of(false) > 0.9 && of(true) < 0.6, "{} {}", of(false), of(true));
}

#[test]
fn rows_of_length_1_are_divided_by_nothing() {
    let (mut x, y) = vectors(60, 6, 8, 0.3, 4.0, 3);
    xc_sparse::rows::normalise_rows(&mut x);
    let params = TreeParams { normalise_rows: false, ..TreeParams::default() };
    let model = TreeModel::train(&TrainInput::new(x.view(), &y), &params).unwrap();
    assert_eq!(model.info().row_length, 1.0);
    // Empty rows and rows far longer than the others do not move it.
    let mut rest = x.clone();
    rest.data_mut()[..16].fill(0.0);
    rest.data_mut()[16..24].fill(1e20);
    let input = TrainInput::new(rest.view(), &y);
    assert_eq!(params.model_info(&input).row_length, 1.0);
}

#[test]
fn a_model_in_the_form_of_pecos_takes_rows_as_they_are() {
    let (x, y) = vectors(200, 10, 12, 0.5, 2.0, 5);
    let x = times(&x, 300.0);
    let params = TreeParams { n_trees: 1, normalise_rows: false, ..TreeParams::default() };
    let model = TreeModel::train(&TrainInput::new(x.view(), &y), &params).unwrap();
    let info = model.info().clone();
    let mut parts = model.to_parts(0);
    parts.levels.iter_mut().flatten().flat_map(|chunk| &mut chunk.values).for_each(|w| *w /= info.row_length);
    let folder = tempfile::tempdir().unwrap();
    let (post, beam, n_features, n_labels) = (info.post, info.beam, info.n_features, info.n_labels);
    let level_top_k = vec![beam; parts.levels.len()];
    pecos::export(
        &PecosModel { parts, post, beam, level_top_k, n_features, n_labels, bias: 1.0 },
        &folder.path().join("p"),
    )
    .unwrap();
    let parts = pecos::import(&folder.path().join("p")).unwrap().parts;
    let info = xc_tree::ModelInfo { row_length: 1.0, ..info };
    let back = TreeModel::from_parts(info, vec![parts], params.precision).unwrap();
    for (got, expected) in answers(&back, &x).iter().zip(answers(&model, &x).iter()) {
        assert_eq!(got[0].label, expected[0].label);
        assert!((got[0].score - expected[0].score).abs() < 1e-4);
    }
}

#[test]
fn a_model_whose_weights_were_pruned_away_is_told_from_a_sound_one() {
    let (x, y) = vectors(600, 30, 16, 1.0, 1.0, 9);
    for (length, prune_below, gone) in [(1.0, 0.1, false), (20.0, 0.1, false), (1.0, 100.0, true), (20.0, 100.0, true)]
    {
        let x = times(&x, length);
        let linear = LinearParams { prune_below, ..LinearParams::default() };
        let params = TreeParams { normalise_rows: false, linear, ..TreeParams::default() };
        let model = TreeModel::train(&TrainInput::new(x.view(), &y), &params).unwrap();
        let counts = model.weight_counts();
        assert_eq!((counts.weights, counts.nodes), (model.nnz(), 3 * 30));
        assert_eq!(counts.is_pruned_away(), gone, "{counts:?}");
        assert_eq!(counts.bare, if gone { counts.nodes } else { 0 });
    }
}
