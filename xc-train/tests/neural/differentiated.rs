//! Differentiated softmax against a dense layer whose weights are 0 outside of the blocks.

use proptest::prelude::*;
use xc_train::head::{BlockShare, Dense, DenseScratch, Differentiated, DifferentiatedScratch};
use xc_train::state::State;
use xc_train::{Activations, Head, Init, Loss, Mode, Optimizer, Rule, Step, Targets, Update};

/// Labels and units of each block.
fn shares(labels: &[usize], units: &[usize]) -> Vec<BlockShare> {
    let share = |n: usize, of: &[usize]| n as f64 / of.iter().sum::<usize>() as f64;
    let blocks = labels.iter().zip(units);
    blocks.map(|(&n, &m)| BlockShare { labels: share(n, labels), units: share(m, units) }).collect()
}

/// Numbers in [-1, 1) that differ.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut out = vec![0.0; n];
    xc_hash::stream::Stream::new(seed).fill_uniform(1.0, &mut out);
    out
}

fn activations(values: &[f32], width: usize) -> Activations {
    let mut out = Activations::default();
    out.reshape(values.len() / width, width);
    out.values_mut().copy_from_slice(values);
    out
}

/// Puts the blocks' weights into a dense layer, and zeros everywhere else.
fn copy(from: &Differentiated, to: &mut Dense) {
    let width = from.width();
    let mut weights = vec![0.0; from.bias().len() * width];
    for (labels, (units, block)) in from.blocks().zip(from.weights()) {
        for (at, &label) in labels.iter().enumerate() {
            weights[label as usize * width..][units.clone()].copy_from_slice(block.row(at));
        }
    }
    let mut parameters = to.parameters_mut();
    parameters[0].parameter.values_mut().copy_from_slice(&weights);
    parameters[1].parameter.values_mut().copy_from_slice(from.bias());
}

fn close(got: &[f32], expected: &[f32], what: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(got.len(), expected.len());
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        prop_assert!(
            (got - expected).abs() <= 1e-5 * (1.0 + expected.abs()),
            "{what} {at}: {got}, expected {expected}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn blocks_are_a_dense_layer_with_zeros_outside_of_them(
        blocks in prop::collection::vec((prop_oneof![Just(0usize), Just(1), 2usize..40], 1usize..6), 1..5),
        n in 1usize..9,
        seed in any::<u64>(),
        loss in prop_oneof![Just(Loss::Softmax), Just(Loss::Bce), Just(Loss::SquaredHinge)],
    ) {
        let (labels, units): (Vec<usize>, Vec<usize>) = blocks.into_iter().unzip();
        let (n_labels, width) = (labels.iter().sum::<usize>(), units.iter().sum::<usize>());
        prop_assume!(n_labels > 0);
        let mut head = Differentiated::new(n_labels, width, &shares(&labels, &units), seed).unwrap();
        // Few different counts, so that some are equal.
        let counts: Vec<u32> = numbers(n_labels, seed ^ 1).iter().map(|v| (v * 5.0 + 5.0) as u32).collect();
        head.assign(&counts);
        head.bias_mut().copy_from_slice(&numbers(n_labels, seed ^ 2));
        let got: Vec<usize> = head.blocks().map(<[u32]>::len).collect();
        prop_assert_eq!(&got, &labels);
        prop_assert_eq!(head.weights().map(|(range, _)| range.len()).collect::<Vec<_>>(), units);
        let sorted: Vec<u32> = head.blocks().flat_map(|block| {
            let mut counts: Vec<u32> = block.iter().map(|&label| counts[label as usize]).collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts
        }).collect();
        prop_assert!(sorted.is_sorted_by(|a, b| a >= b), "{sorted:?}");

        let mut dense = Dense::new(n_labels, width, Init::Zeros);
        let optimizer = Optimizer::momentum();
        head.prepare(optimizer.moments());
        dense.prepare(optimizer.moments());
        let (mut ours, mut theirs) = (DifferentiatedScratch::default(), DenseScratch::default());
        let (mut a, mut b) = (Activations::default(), Activations::default());
        for number in 0..3u64 {
            copy(&head, &mut dense);
            let input = activations(&numbers(n * width, seed ^ (7 + number)), width);
            let instances: Vec<u32> = (0..n as u32).collect();
            let one = |i: u32| (seed as u32).wrapping_add(i * 7 + number as u32) % n_labels as u32;
            let true_labels: Vec<u32> = instances.iter().map(|&i| one(i)).collect();
            let ptr: Vec<u32> = (0..=n as u32).collect();
            let targets = Targets::new(&instances, &ptr, &true_labels);

            head.logits(&input, &mut a, &mut ours).unwrap();
            dense.logits(&input, &mut b, &mut theirs).unwrap();
            close(a.values(), b.values(), "logit")?;
            let at = Step { number, epoch: 0, seed: 0 };
            let mine = head.loss(&input, targets, loss, Mode::Train(at), &mut ours).unwrap();
            let expected = dense.loss(&input, targets, loss, Mode::Train(at), &mut theirs).unwrap();
            prop_assert!((mine - expected).abs() < 1e-6 * (1.0 + expected.abs()), "loss {mine}, expected {expected}");
            head.backward(&mut a, &mut ours).unwrap();
            dense.backward(&mut b, &mut theirs).unwrap();
            close(a.values(), b.values(), "gradient")?;
            let norm = head.squared_norm(&input, &mut ours).unwrap();
            let rule = Rule { optimizer, rate: 0.5 };
            let update = Update::new(at, rule, 1.0);
            let before = head.clone();
            head.update(&input, &mut ours, &update).unwrap();
            dense.update(&input, &mut theirs, &update).unwrap();
            // The first step of momentum is the gradient itself.
            if number == 0 {
                let values = |head: &Differentiated| -> Vec<f32> {
                    head.parameters().iter().flat_map(|p| p.parameter.values().to_vec()).collect()
                };
                let moved = values(&head).into_iter().zip(values(&before));
                let expected: f64 = moved.map(|(a, b)| (f64::from(a - b) / 0.5).powi(2)).sum();
                prop_assert!((norm - expected).abs() < 1e-4 * (1.0 + expected), "norm {norm}, expected {expected}");
            }
            let mut after = Dense::new(n_labels, width, Init::Zeros);
            copy(&head, &mut after);
            let within: Vec<f32> = after.weights().values().iter().zip(dense.weights().values())
                .map(|(&mine, &theirs)| if mine == 0.0 { 0.0 } else { theirs }).collect();
            close(after.weights().values(), &within, "weight")?;
            close(after.bias(), dense.bias(), "bias")?;
        }
    }
}

#[test]
fn shares_that_make_no_blocks_are_refused() {
    let head = |shares: &[(f64, f64)], n_labels, width| {
        let shares: Vec<BlockShare> = shares.iter().map(|&(labels, units)| BlockShare { labels, units }).collect();
        Differentiated::new(n_labels, width, &shares, 1).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(head(&[(0.25, 0.5), (0.75, 0.5)], 3, 4), Ok(()));
    let sum = "add up to 0.75, expected shares of 0 or more that add up to 1";
    assert_eq!(head(&[(0.25, 0.5), (0.5, 0.5)], 3, 4), Err(format!("shares of the labels {sum}")));
    assert_eq!(head(&[(0.5, 0.25), (0.5, 0.5)], 3, 4), Err(format!("shares of the units {sum}")));
    assert!(head(&[(-0.5, 0.5), (1.5, 0.5)], 3, 4).unwrap_err().contains("shares of 0 or more"));
    assert!(head(&[(f64::NAN, 1.0)], 3, 4).unwrap_err().contains("add up to NaN"));
    assert!(head(&[], 3, 4).unwrap_err().contains("add up to 0"));
    assert_eq!(
        head(&[(0.5, 0.9), (0.5, 0.1)], 3, 4),
        Err("block 1 reads none of 4 units, expected one at least".into())
    );
}
