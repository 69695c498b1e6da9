//! Weighted sums over lists estimate the sum over all labels.

use crate::given::{Given, step};
use std::ops::Range;
use xc_nn::sampler::{
    Candidates, Drawn, InBatch, LabelWeights, Lists, Midx, MidxParams, Mixture, Queries, Sampler, SamplerData,
    TopLogits, Weighting,
};
use xc_nn::state::State;
use xc_nn::{Step, StepError};

/// Some labels, the same for the whole batch: a hard set that was found in whatever way.
#[derive(Clone, Debug)]
struct Fixed(Vec<u32>);

impl Sampler for Fixed {
    fn sample(
        &self,
        _: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        _: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        self.0.iter().for_each(|&label| out.push(label, 7.0, 2.0));
        out.end_list();
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
}

/// Gradient of the cross-entropy of a false label with respect to its logit.
pub(crate) fn gradient(given: &Given, place: usize, label: u32) -> f64 {
    1.0 / (1.0 + (-given.logit(place, label)).exp())
}

/// Mean over steps of each instance's weighted sum over the false labels of its list, against the
/// sum over all false labels: within five standard errors.
pub(crate) fn assert_unbiased(sampler: &dyn Sampler, given: &Given, steps: u64) {
    let (n, all) = (given.instances.len(), given.n_labels());
    let targets = given.queries().targets;
    let mut sums = vec![[0.0f64; 2]; n];
    for number in 0..steps {
        let out = given.sample(sampler, step(number));
        for (place, sums) in sums.iter_mut().enumerate() {
            let list = out.list(if out.len() == 1 { 0 } else { place });
            let false_ones =
                list.labels.iter().zip(list.weight).filter(|(label, _)| !targets.row(place).contains(label));
            let sum: f64 = false_ones.map(|(&label, &weight)| f64::from(weight) * gradient(given, place, label)).sum();
            *sums = [sums[0] + sum, sums[1] + sum * sum];
        }
    }
    let steps = steps as f64;
    for (place, [sum, squares]) in sums.into_iter().enumerate() {
        let false_ones = (0..all).filter(|label| !targets.row(place).contains(label));
        let expected: f64 = false_ones.map(|label| gradient(given, place, label)).sum();
        let mean = sum / steps;
        let error = ((squares / steps - mean * mean).max(0.0) / steps).sqrt();
        assert!((mean - expected).abs() < 5.0 * error + 1e-3, "{sampler:?}: {mean} +- {error}, expected {expected}");
    }
}

#[test]
fn a_mixture_is_unbiased_however_its_hard_labels_were_found() {
    let given = Given::new(6, 60, 4, 8);
    let unbiased = Weighting::Inverse { cap: None };
    let hard: [Box<dyn Sampler>; 5] = [
        Box::new(Fixed(vec![])),
        Box::new(Fixed(vec![0, 7, 8, 33, 59])),
        Box::new(Fixed((0..60).collect())),
        Box::new(TopLogits::new(3)),
        Box::new(Drawn::log_uniform(&given.counts(), 5)),
    ];
    for hard in hard {
        for lists in [Lists::Shared, Lists::Own] {
            for uniform in [1, 10] {
                let mixture = Mixture::new(hard.clone(), uniform).with_lists(lists).with_weighting(unbiased);
                assert_unbiased(&mixture, &given, 2000);
            }
        }
    }
}

#[test]
fn inverse_chances_are_unbiased() {
    let given = Given::new(6, 60, 4, 8);
    let counts: Vec<u32> = (1..=60).collect();
    for lists in [Lists::Shared, Lists::Own] {
        let samplers = [Drawn::uniform(8), Drawn::log_uniform(&counts, 8), Drawn::frequency(&counts, 0.75, 8).unwrap()];
        for sampler in samplers {
            let sampler = sampler.with_lists(lists).with_weighting(Weighting::Inverse { cap: None });
            assert_unbiased(&sampler, &given, 5000);
        }
        let params = MidxParams { codewords: 5, per_instance: 4, ..MidxParams::default() };
        let data = SamplerData::new(&counts, 6, 4, 1);
        let sampler = Midx::new(params, &data).with_lists(lists).with_weighting(Weighting::Inverse { cap: None });
        assert_unbiased(&sampler, &given, 5000);
    }
}

#[test]
fn a_mixture_has_positives_and_hard_labels_at_weight_1_and_uniform_ones_at_theirs() {
    let given = Given::new(6, 100, 4, 8);
    let targets = given.queries().targets;
    let exact: std::collections::BTreeSet<u32> =
        (0..6).flat_map(|i| targets.row(i)).copied().chain([3, 50, 99]).collect();
    let hard = || Box::new(Fixed(vec![3, 50, 99]));
    for (weighting, cap) in
        [(Weighting::Inverse { cap: None }, f64::INFINITY), (Weighting::CAPPED, 4.0), (Weighting::None, 1.0)]
    {
        let out = given.sample(&Mixture::new(hard(), 10).with_weighting(weighting), step(1));
        let (list, left) = (out.list(0), 100 - exact.len());
        assert_eq!((out.len(), list.labels.len()), (1, exact.len() + 10));
        let uniform = (left as f64 / 10.0).min(cap) as f32;
        for (at, label) in list.labels.iter().enumerate() {
            let expected = if exact.contains(label) { 1.0 } else { uniform };
            assert!((list.weight[at] - expected).abs() < 1e-5, "{}, expected {expected}", list.weight[at]);
            assert!((list.log_q[at] + expected.ln()).abs() < 1e-5);
        }
    }
    // Lists of their own: every instance has the hard labels but those that are true of it.
    let out = given.sample(&Mixture::new(hard(), 10).with_lists(Lists::Own), step(1));
    for place in 0..6 {
        let own = targets.row(place);
        let n_hard = [3, 50, 99].iter().filter(|label| !own.contains(label)).count();
        assert_eq!(out.list(place).labels.len(), n_hard + 10);
    }
    // The positives alone as hard labels: no label comes twice.
    let in_batch = InBatch::new(&given.counts(), 6);
    let out = given.sample(&Mixture::new(Box::new(in_batch), 10), step(1));
    let n_true = (0..6).flat_map(|i| targets.row(i)).collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(out.list(0).labels.len(), n_true + 10);
}
