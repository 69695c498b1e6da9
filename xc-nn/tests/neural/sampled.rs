//! A head whose steps score what a sampler chooses: its corrections against plain sums, what the
//! sampler hears, its state.

use crate::sparse::{Data, head, params, update};
use std::error::Error;
use std::ops::Range;
use xc_nn::sampler::{Candidates, LabelWeights, Queries, Sampler};
use xc_nn::state::{self, Array, Arrays, Role, Snapshot, State, StateError, Visitor};
use xc_nn::{Head, Loss, Mode, Optimizer, Step, StepError};

const N_LABELS: usize = 12;

/// The same labels in every step, each with a weight and a log q; remembers how often it heard of a
/// step.
#[derive(Clone, Debug)]
struct Fixed {
    list: Vec<(u32, f32, f32)>,
    n_lists: usize,
    heard: [u32; 2],
}

impl Fixed {
    fn new() -> Self {
        let list = vec![(1, 2.5, -0.7), (4, 0.5, -0.1), (5, 1.0, -2.0), (11, 3.0, -1.0)];
        Self { list, n_lists: 1, heard: [0; 2] }
    }
}

impl Sampler for Fixed {
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        assert_eq!((at.seed, queries.vectors.len(), queries.targets.len()), (5, 40, 40));
        assert_eq!((queries.instances, labels), (&(0..40).collect::<Vec<u32>>()[..], 0..N_LABELS as u32));
        assert!(weights.is_none(), "a sparse layer has no dense rows");
        for _ in 0..self.n_lists {
            self.list.iter().for_each(|&(label, weight, log_q)| out.push(label, weight, log_q));
            out.end_list();
        }
        Ok(())
    }

    fn changed(
        &mut self,
        at: Step,
        queries: Queries<'_>,
        labels: &[u32],
        _: &[f32],
        _: Option<LabelWeights<'_>>,
    ) -> Result<(), StepError> {
        assert!(self.list.iter().all(|(label, ..)| labels.contains(label)) && labels.is_sorted());
        assert!((0..queries.targets.len()).flat_map(|i| queries.targets.row(i)).all(|label| labels.contains(label)));
        self.heard = [self.heard[0] + 1, at.number as u32];
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl State for Fixed {
    fn settings(&self) -> serde_json::Value {
        "fixed".into()
    }

    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        f(Array::new("sampler.heard", Role::Training, [2, 1], &self.heard))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        state::read(from, "sampler.heard", Role::Training, [2, 1], &mut self.heard)
    }
}

/// Of some instances nothing is true, of others what is not drawn.
fn data() -> Data {
    Data::new(40, 8, N_LABELS, 3)
}

#[test]
fn a_step_over_candidates_is_what_their_weights_and_log_q_say() {
    let data = data();
    let plain = head(N_LABELS, 8, params(3, true), 3);
    let c = plain.connections();
    for loss in [Loss::Softmax, Loss::Bce, Loss::SquaredHinge] {
        // Mean loss and gradient of the biases by the definition, in f64.
        let (mut expected, mut biases) = (0.0, [0.0f64; N_LABELS]);
        for i in 0..40 {
            let positives = data.targets.row(i);
            let x = |at: usize| f64::from(data.values[i * 8 + c.indices().get(at)]);
            let logit = |label: usize| {
                let sum: f64 = c.range(label).map(|at| x(at) * f64::from(c.weights().get(at))).sum();
                sum + f64::from(plain.bias().values()[label])
            };
            // The true labels of any instance are scored for all; a softmax counts them only where
            // they are true or drawn.
            let drawn = |label: u32| Fixed::new().list.into_iter().find(|item| item.0 == label);
            let scored = (0..N_LABELS as u32)
                .filter(|&label| drawn(label).is_some() || (0..40).any(|i| data.targets.row(i).contains(&label)));
            let exponential = |label: u32| match drawn(label) {
                _ if positives.contains(&label) => logit(label as usize).exp(),
                Some((.., log_q)) => (logit(label as usize) - f64::from(log_q)).exp(),
                None => 0.0,
            };
            let total: f64 = scored.clone().map(exponential).sum();
            if loss == Loss::Softmax && !positives.is_empty() {
                expected += total.ln() / 40.0;
            }
            for label in scored {
                let (z, is_true) = (logit(label as usize), positives.contains(&label));
                let weight = drawn(label).map_or(1.0, |(_, weight, _)| if is_true { 1.0 } else { f64::from(weight) });
                let share = if is_true { 1.0 / positives.len() as f64 } else { 0.0 };
                let y = if is_true { 1.0 } else { -1.0 };
                let (cost, slope) = match loss {
                    Loss::Bce | Loss::Nce => (weight * (-y * z).exp().ln_1p(), -weight * y / ((y * z).exp() + 1.0)),
                    Loss::SquaredHinge | Loss::Own(_) => {
                        let slack = (1.0 - y * z).max(0.0);
                        (weight * slack * slack, -2.0 * weight * y * slack)
                    }
                    Loss::Softmax if positives.is_empty() => (0.0, 0.0),
                    Loss::Softmax => (-z * share, exponential(label) / total - share),
                };
                expected += cost / 40.0;
                biases[label as usize] += slope / 40.0;
            }
        }
        let mut changed = plain.clone().with_sampler(Some(Box::new(Fixed::new())));
        let (input, batch, update) = (data.input(), data.batch(), update(Optimizer::sgd(), 1.0, 0));
        let value = changed.step(&input, batch.targets(), loss, &update, None, &mut Default::default()).unwrap();
        assert!((value - expected).abs() < 1e-5 * expected, "{loss}: {value}, expected {expected}");
        for (label, expected) in biases.iter().enumerate() {
            let got = f64::from(plain.bias().values()[label] - changed.bias().values()[label]);
            assert!((got - expected).abs() < 1e-5, "{loss} bias {label}: {got}, expected {expected}");
        }
    }
}

#[test]
fn a_sampler_hears_of_each_step_and_is_part_of_the_state() {
    let data = data();
    let plain = head(N_LABELS, 8, params(3, true), 3);
    let mut head = plain.clone().with_sampler(Some(Box::new(Fixed::new())));
    assert_ne!(head.settings(), plain.settings());
    let (input, batch, mut scratch) = (data.input(), data.batch(), Default::default());
    let heard = |head: &dyn State| {
        let state = Snapshot::of(&[head]).unwrap();
        let bytes = state.arrays().find(|(name, ..)| *name == "sampler.heard").unwrap().2.bytes;
        bytes.as_chunks::<4>().0.iter().map(|&number| u32::from_le_bytes(number)).collect::<Vec<_>>()
    };
    for number in 7..9 {
        let update = update(Optimizer::sgd(), 0.1, number);
        head.step(&input, batch.targets(), Loss::Bce, &update, None, &mut scratch).unwrap();
    }
    assert_eq!(heard(&head), [2, 8]);
    // By parts, as where gradients are clipped.
    let (at, update) = (Step { number: 9, epoch: 0, seed: 5 }, update(Optimizer::sgd(), 0.1, 9));
    head.loss(&input, batch.targets(), Loss::Bce, Mode::Train(at), &mut scratch).unwrap();
    head.update(&input, &mut scratch, &update).unwrap();
    assert_eq!(heard(&head), [3, 9]);
    let mut other = plain.with_sampler(Some(Box::new(Fixed::new())));
    other.load(&Snapshot::of(&[&head]).unwrap()).unwrap();
    assert_eq!(heard(&other), [3, 9]);
    // Answers are judged by all labels: the sampler is not asked.
    let all = head.loss(&input, batch.targets(), Loss::Bce, Mode::Predict, &mut scratch).unwrap();
    let some = head.loss(&input, batch.targets(), Loss::Bce, Mode::Train(at), &mut scratch).unwrap();
    assert_ne!(all, some);
}

#[test]
fn lists_for_single_instances_are_refused_by_a_head_that_scores_one_for_all() {
    let data = data();
    let sampler = Fixed { n_lists: 2, list: vec![(3, 1.0, 0.0)], ..Fixed::new() };
    let mut head = head(N_LABELS, 8, params(3, true), 3).with_sampler(Some(Box::new(sampler)));
    let (input, batch, update) = (data.input(), data.batch(), update(Optimizer::sgd(), 0.1, 0));
    let error = head.step(&input, batch.targets(), Loss::Bce, &update, None, &mut Default::default()).unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert_eq!(cause, "2 lists of candidates, expected one for the whole batch");
}
