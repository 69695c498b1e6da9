use super::*;

fn reference(name: &str, z: &[f64], positives: &[u32]) -> f64 {
    let is_true = |j: usize| positives.contains(&(j as u32));
    match name {
        "softmax" if positives.is_empty() => 0.0,
        "softmax" => {
            let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log_sum = max + z.iter().map(|z| (z - max).exp()).sum::<f64>().ln();
            log_sum - positives.iter().map(|&j| z[j as usize]).sum::<f64>() / positives.len() as f64
        }
        "bce" | "nce" => z
            .iter()
            .enumerate()
            .map(|(j, &z)| z.max(0.0) + (-z.abs()).exp().ln_1p() - if is_true(j) { z } else { 0.0 })
            .sum(),
        "squared-hinge" => {
            z.iter().enumerate().map(|(j, &z)| (1.0 - if is_true(j) { z } else { -z }).max(0.0).powi(2)).sum()
        }
        _ => unreachable!(),
    }
}

#[test]
fn losses_and_gradients_agree_with_f64_differences() {
    let z: Vec<f32> = (0..1100).map(|i| ((i * 7919) % 601) as f32 / 60.0 - 5.0).collect();
    for (n, positives) in
        [(0, &[][..]), (1, &[0]), (5, &[1, 4]), (16, &[]), (17, &[16]), (1100, &[0, 1, 511, 1024, 1099])]
    {
        for loss in Loss::ALL {
            let mut gradient = z[..n].to_vec();
            let got = loss.of_row(&mut gradient, positives, 0.5);
            let exact: Vec<f64> = z[..n].iter().map(|&z| f64::from(z)).collect();
            let expected = reference(loss.name(), &exact, positives);
            assert!(
                (got - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                "{} of {n}: {got} {expected}",
                loss.name()
            );
            for j in 0..n {
                let at = |step: f64| {
                    let mut z = exact.clone();
                    z[j] += step;
                    reference(loss.name(), &z, positives)
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!(
                    (f64::from(gradient[j]) - 0.5 * slope).abs() < 5e-6 * slope.abs().max(1.0),
                    "{} {n} {j}",
                    loss.name()
                );
            }
        }
    }
}

#[test]
fn large_logits_neither_overflow_nor_vanish() {
    for loss in Loss::ALL {
        let mut z = [1e4, -1e4, 0.0];
        let got = loss.of_row(&mut z, &[1], 1.0);
        let expected = reference(loss.name(), &[1e4, -1e4, 0.0], &[1]);
        assert!((got / expected - 1.0).abs() < 1e-6, "{}: {got} {expected}", loss.name());
        assert!(z.iter().all(|g| g.is_finite()));
    }
    let mut z = vec![-1e30f32, 88.0, f32::NEG_INFINITY];
    Loss::Softmax.scores(&mut z);
    assert_eq!(z, [0.0, 1.0, 0.0]);
}

#[test]
fn what_is_not_finite_is_seen_in_the_loss() {
    for loss in Loss::ALL {
        for bad in [f32::NAN, f32::INFINITY] {
            for positives in [&[0u32][..], &[1]] {
                let mut z = vec![0.5f32; 40];
                z[20] = bad;
                let got = loss.of_row(&mut z, positives, 1.0);
                assert!(!got.is_finite(), "{} with {bad}: {got}", loss.name());
            }
        }
    }
}

#[test]
fn logarithms_are_close() {
    for i in -9000..8800 {
        let x = i as f32 / 100.0 + 0.003;
        let got = f64::from(log1p_exp_neg_abs(x));
        assert!((got - (-f64::from(x).abs()).exp().ln_1p()).abs() < 1e-6, "at {x}: {got}");
    }
}

#[test]
fn scores_lie_between_0_and_1() {
    for loss in Loss::ALL {
        let mut z: Vec<f32> = (-40..41).map(|i| i as f32).collect();
        loss.scores(&mut z);
        assert!(z.iter().all(|p| (0.0..=1.0).contains(p)) && z.is_sorted(), "{}", loss.name());
    }
    let mut z = vec![0.3f32, -1.0, 2.0];
    Loss::Softmax.scores(&mut z);
    assert!((z.iter().sum::<f32>() - 1.0).abs() < 1e-6);
}

#[test]
fn stretches_of_a_row_have_its_loss_and_gradient() {
    let z: Vec<f32> = (0..3000).map(|i| ((i * 7919) % 601) as f32 / 60.0 - 5.0).collect();
    for positives in [&[][..], &[0], &[999, 1000, 2999], &[5, 700, 701]] {
        for loss in Loss::ALL {
            let mut whole = z.clone();
            let expected = loss.of_row(&mut whole, positives, 0.25);
            for size in [1, 37, 1000, 3000] {
                let max = z.chunks(size).map(|part| loss.max(part)).fold(f32::NEG_INFINITY, f32::max);
                let sum = z.chunks(size).map(|part| loss.sum(part, max)).sum();
                let total = Total { max, sum };
                let mut got = loss.of_total(total, positives.len());
                let (mut parts, mut singles) = (z.clone(), loss.of_total(total, positives.len()));
                let shares = Shares::new(total, positives.len());
                for (part, first) in parts.chunks_mut(size).zip((0..).step_by(size)) {
                    let end = first + part.len() as u32;
                    let here: Vec<u32> = positives.iter().copied().filter(|j| (first..end).contains(j)).collect();
                    let one = |(&z, j): (&f32, u32)| loss.loss_and_gradient(z, positives.contains(&j), shares);
                    let alone: Vec<(f32, f32)> = part.iter().zip(first..).map(one).collect();
                    let of = Stretch { first, positives: &here, n_positives: positives.len() };
                    got += loss.gradient(part, of, total, 0.25);
                    for (&(value, slope), &gradient) in alone.iter().zip(part.iter()) {
                        singles += f64::from(value);
                        assert!((0.25 * slope - gradient).abs() < 1e-6 * gradient.abs().max(1.0), "{loss} {size}");
                    }
                }
                for sum in [got, singles] {
                    assert!((sum - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{loss} {size}: {sum}");
                }
                let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6 * b.abs().max(1.0);
                assert!(parts.iter().zip(&whole).all(close), "{loss} by {size}");
            }
        }
    }
}

#[test]
fn leaves_of_a_row_give_its_gradient_and_add_their_losses_in_the_order_of_the_tree() {
    let z: Vec<f32> = (0..3000).map(|i| ((i * 7919) % 601) as f32 / 60.0 - 5.0).collect();
    let blocks = Blocks::new(z.len(), 8, 256);
    assert_eq!(blocks.n_leaves(), 8);
    for positives in [&[][..], &[0], &[999, 1000, 2999], &[5, 700, 701]] {
        for loss in Loss::ALL {
            let (mut whole, mut cut) = (z.clone(), z.clone());
            let (expected, got) =
                (loss.of_row(&mut whole, positives, 0.25), loss.of_blocks(&mut cut, &blocks, positives, 0.25));
            assert!((got - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{loss}: {got} {expected}");
            assert!(cut.iter().zip(&whole).all(|(a, b)| (a - b).abs() <= 1e-6), "{loss}");
            if loss.is_separable() {
                assert_eq!(cut, whole, "{loss}");
                let sums: Vec<f64> = (0..8)
                    .map(|leaf| {
                        let leaf = blocks.leaf(leaf);
                        let here = positives.iter().filter(|&&j| leaf.contains(&(j as usize)));
                        let here: Vec<u32> = here.map(|&j| j - leaf.start as u32).collect();
                        loss.of_row(&mut z[leaf].to_vec(), &here, 0.25)
                    })
                    .collect();
                let quarter = |i: usize| (sums[i] + sums[i + 1]) + (sums[i + 2] + sums[i + 3]);
                assert_eq!(got, quarter(0) + quarter(4), "{loss}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "true label 40 of 40 labels")]
fn a_label_that_does_not_exist_is_refused() {
    Loss::Bce.of_row(&mut [0.0; 40], &[3, 40], 1.0);
}

#[test]
fn a_loss_is_read_by_the_name_that_it_is_written_with() {
    for loss in Loss::ALL {
        assert_eq!(loss.to_string().parse(), Ok(loss));
        assert_eq!(serde_json::to_value(loss).unwrap(), loss.name());
    }
    let message = "hinge".parse::<Loss>().unwrap_err().to_string();
    assert_eq!(message, "loss \"hinge\", expected softmax, bce, nce or squared-hinge");
}

/// Loss of chosen labels by the definition.
fn reference_of_chosen(loss: Loss, z: &[f64], positives: &[u32], by: Corrections<'_>) -> f64 {
    let is_true = |j: usize| positives.contains(&(j as u32));
    let softplus = |z: f64| z.max(0.0) + (-z.abs()).exp().ln_1p();
    let q = |j: usize| match (is_true(j), loss) {
        (false, Loss::Softmax | Loss::Nce) => f64::from(by.log_q[j]),
        (true, Loss::Nce) => by.true_log_q.map_or(0.0, |log_q| f64::from(log_q[j])),
        _ => 0.0,
    };
    let z: Vec<f64> = z.iter().enumerate().map(|(j, z)| z - q(j)).collect();
    let weight = |j: usize| if is_true(j) { 1.0 } else { f64::from(by.weight[j]) };
    let terms = z.iter().enumerate();
    match loss {
        Loss::Softmax if positives.is_empty() => 0.0,
        Loss::Softmax => {
            let of_true = positives.iter().map(|&j| z[j as usize]).sum::<f64>() / positives.len() as f64;
            z.iter().map(|z| z.exp()).sum::<f64>().ln() - of_true
        }
        Loss::Bce => terms.map(|(j, &z)| weight(j) * softplus(if is_true(j) { -z } else { z })).sum(),
        Loss::Nce => terms.map(|(j, &z)| softplus(if is_true(j) { -z } else { z })).sum(),
        Loss::SquaredHinge | Loss::Own(_) => {
            terms.map(|(j, &z)| weight(j) * (1.0 + if is_true(j) { -z } else { z }).max(0.0).powi(2)).sum()
        }
    }
}

#[test]
fn losses_over_chosen_labels_and_their_gradients_agree_with_f64_differences() {
    let value = |i: usize, salt: usize| ((i * 7919 + salt * 104_729) % 601) as f32 / 600.0;
    for (n, positives) in [(0, &[][..]), (1, &[0]), (1, &[]), (7, &[2, 3, 6]), (33, &[]), (67, &[0, 15, 16, 66])] {
        // None at the bend of a hinge.
        let z: Vec<f32> = (0..n).map(|i| 8.0 * value(i, 1) - 4.003).collect();
        let weight: Vec<f32> = (0..n).map(|i| 0.1 + 50.0 * value(i, 2)).collect();
        // The label that was not drawn has no part in softmax and nce.
        let log_q: Vec<f32> = (0..n).map(|i| if i % 9 == 5 { f32::INFINITY } else { -6.0 * value(i, 3) }).collect();
        let true_log_q: Vec<f32> = (0..n).map(|i| -5.0 * value(i, 4)).collect();
        for (loss, true_log_q) in Loss::ALL.into_iter().flat_map(|loss| [(loss, None), (loss, Some(&true_log_q[..]))]) {
            let by = Corrections { weight: &weight, log_q: &log_q, true_log_q };
            let of = Stretch { first: 0, positives, n_positives: positives.len() };
            let (mut gradient, mut total) = (z.clone(), Total::EMPTY);
            loss.correct(&mut gradient, of, by);
            total.add(loss, &gradient);
            let got =
                loss.gradient_of_chosen(&mut gradient, of, by, total, 0.5) + loss.of_total(total, positives.len());
            let exact: Vec<f64> = z.iter().map(|&z| f64::from(z)).collect();
            let expected = reference_of_chosen(loss, &exact, positives, by);
            assert!(
                (got - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                "{loss} of {n}: {got}, expected {expected}"
            );
            for j in 0..n {
                let at = |step: f64| {
                    let mut z = exact.clone();
                    z[j] += step;
                    reference_of_chosen(loss, &z, positives, by)
                };
                let slope = 0.5 * (at(1e-5) - at(-1e-5)) / 2e-5;
                let got = f64::from(gradient[j]);
                assert!(
                    (got - slope).abs() < 1e-5 * slope.abs().max(1.0),
                    "{loss} of {n}, {j}: {got}, expected {slope}"
                );
            }
        }
    }
}

#[test]
fn logarithms_of_scores_are_those_and_stay_apart_where_scores_are_0() {
    let z: Vec<f32> = (0..200).map(|i| i as f32 * 0.37 - 40.0).collect();
    for loss in Loss::ALL.into_iter().chain([Loss::Own(&Slow)]) {
        let (mut scores, mut logs, mut total) = (z.clone(), z.clone(), Total::EMPTY);
        total.add(loss, &z);
        loss.scores(&mut scores);
        loss.log_scores(&mut logs, total);
        for (at, (score, log)) in scores.iter().zip(&logs).enumerate().filter(|(_, (score, _))| **score > 1e-30) {
            let expected = f64::from(*score).ln();
            let error = (f64::from(*log) - expected).abs();
            assert!(error < 2e-6 * expected.abs().max(1.0), "{loss} of {}: {log}, expected {expected}", z[at]);
        }
    }
    let mut far = [-200.0, -300.0];
    Loss::Bce.log_scores(&mut far, Total::EMPTY);
    assert_eq!(far, [-200.0, -300.0]);
}

/// The squared hinge, without its name.
#[derive(Debug)]
struct Slow;

impl LossFunction for Slow {
    fn name(&self) -> &'static str {
        "slow-hinge"
    }

    fn loss_and_gradient(&self, z: f32, is_true: bool) -> (f32, f32) {
        Loss::SquaredHinge.loss_and_gradient(z, is_true, Shares::NONE)
    }

    fn score(&self, z: f32) -> f32 {
        let mut score = [z];
        Loss::SquaredHinge.scores(&mut score);
        score[0]
    }

    fn margin(&self) -> f32 {
        -1.0
    }
}

#[test]
fn a_loss_of_ones_own_is_as_the_named_one_that_it_computes() {
    let z: Vec<f32> = (0..1100).map(|i| ((i * 7919) % 601) as f32 / 60.0 - 5.0).collect();
    let (weight, log_q) = (vec![0.5; 1100], vec![-1.0; 1100]);
    let positives = [0, 1, 511, 1024, 1099];
    let (named, own) = (Loss::SquaredHinge, Loss::Own(&Slow));
    let of = Stretch { first: 0, positives: &positives, n_positives: 5 };
    let by = Corrections { weight: &weight, log_q: &log_q, true_log_q: None };
    let all = |loss: Loss, logits: &mut [f32]| loss.of_row(logits, &positives, 0.5);
    let chosen = |loss: Loss, logits: &mut [f32]| loss.gradient_of_chosen(logits, of, by, Total::EMPTY, 0.5);
    for work in [&all as &dyn Fn(Loss, &mut [f32]) -> f64, &chosen] {
        let (mut a, mut b) = (z.clone(), z.clone());
        let (expected, got) = (work(named, &mut a), work(own, &mut b));
        assert!((got - expected).abs() < 1e-5 * expected, "{got}, expected {expected}");
        assert_eq!(a, b);
    }
    let (mut a, mut b) = (z.clone(), z);
    named.scores(&mut a);
    own.scores(&mut b);
    assert_eq!((a, named.margin(), "slow-hinge"), (b, own.margin(), own.name()));
    assert!(serde_json::to_string(&own).is_err() && "slow-hinge".parse::<Loss>().is_err());
}
