//! Draws against the chances that samplers state.

use crate::given::{Given, assert_distributed, step};
use xc_nn::sampler::{Candidates, Drawn, InBatch, Lists, Midx, MidxParams, Sampler, SamplerData, Weighting};

const DRAWS: u64 = 1_000_000;

/// The labels of lists of one draw.
pub(crate) fn counted(sampler: &dyn Sampler, given: &Given, draws: u64) -> Vec<u64> {
    let (mut counts, mut out) = (vec![0u64; given.biases.len()], Candidates::default());
    let per_step = given.sample(sampler, step(0)).len() as u64;
    for number in 0..draws / per_step {
        out.clear();
        let labels = 0..given.n_labels();
        sampler.sample(step(number), given.queries(), Some(given.weights()), labels, &mut out).unwrap();
        for i in 0..out.len() {
            let [label] = out.list(i).labels else { panic!("{:?}, expected one label", out.list(i)) };
            counts[*label as usize] += 1;
        }
    }
    counts
}

fn uneven() -> Vec<u32> {
    (0..100u32).map(|label| if label % 7 == 3 { 0 } else { 1 + label * label }).collect()
}

#[test]
fn labels_come_as_often_as_their_chances_say() {
    let (given, counts) = (Given::new(500, 100, 2, 1), uneven());
    let mut cases = vec![(Drawn::uniform(1), vec![0.01; 100])];
    // Ranks by falling count, of equal ones the lower label first.
    let mut by_rank: Vec<usize> = (0..100).collect();
    by_rank.sort_by_key(|&label| (std::cmp::Reverse(counts[label]), label));
    let mut chances = vec![0.0; 100];
    for (k, &label) in by_rank.iter().enumerate() {
        let k = k as f64;
        chances[label] = ((k + 2.0) / (k + 1.0)).ln() / 101f64.ln();
    }
    cases.push((Drawn::log_uniform(&counts, 1), chances));
    for power in [0.0, 0.5, 1.0] {
        let weight = |&count: &u32| if count == 0 { 0.0 } else { f64::from(count).powf(power) };
        let total: f64 = counts.iter().map(weight).sum();
        let chances = counts.iter().map(|count| weight(count) / total).collect();
        cases.push((Drawn::frequency(&counts, power, 1).unwrap(), chances));
    }
    for (sampler, chances) in cases {
        assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_distributed(&counted(&sampler, &given, DRAWS / 10), &chances, &format!("{:?}", sampler.per_list()));
        let own = sampler.with_lists(Lists::Own);
        assert_distributed(&counted(&own, &given, DRAWS), &chances, "lists of their own");
    }
}

/// How often each label is in a list of a step, beside what its log q says.
fn hits(sampler: &dyn Sampler, given: &Given, steps: u64) {
    let n = given.biases.len();
    let (mut hits, all) = (vec![0u32; n], (0..n as u32).collect::<Vec<_>>());
    let mut stated = vec![0.0; n];
    sampler.log_q(step(0), given.queries(), Some(given.weights()), 0..n as u32, 0, &all, &mut stated).unwrap();
    for number in 0..steps {
        let out = given.sample(sampler, step(number));
        let list = out.list(0);
        for (at, &label) in list.labels.iter().enumerate() {
            hits[label as usize] += 1;
            assert_eq!((list.log_q[at], list.weight[at]), (stated[label as usize], 1.0));
        }
    }
    for (label, (&hits, log)) in hits.iter().zip(stated).enumerate() {
        let (got, chance) = (f64::from(hits) / steps as f64, f64::from(log.exp()));
        let deviation = (chance * (1.0 - chance) / steps as f64).sqrt();
        assert!((got - chance).abs() <= 5.0 * deviation + 1e-6, "{sampler:?}, label {label}: {got}, expected {chance}");
    }
}

#[test]
fn log_q_is_the_chance_of_being_in_the_list() {
    let given = Given::new(3, 8, 2, 1);
    let counts = [50u32, 20, 10, 5, 5, 5, 3, 0];
    for lists in [Lists::Shared, Lists::Own] {
        for per_list in [1, 4, 7, 8, 20] {
            hits(&Drawn::uniform(per_list).with_lists(lists), &given, 5000);
            hits(&Drawn::log_uniform(&counts, per_list).with_lists(lists), &given, 5000);
            hits(&Drawn::frequency(&counts, 1.0, per_list).unwrap().with_lists(lists), &given, 5000);
        }
    }
}

#[test]
fn uniform_lists_have_as_many_labels_as_were_wanted() {
    let given = Given::new(5, 50, 2, 1);
    for (wanted, expected) in [(1, 1), (30, 30), (49, 49), (50, 50), (51, 50), (1000, 50)] {
        let out = given.sample(&Drawn::uniform(wanted).with_lists(Lists::Own), step(1));
        assert_eq!(out.len(), 5);
        assert!((0..5).all(|i| out.list(i).labels.len() == expected), "{wanted} wanted");
    }
    // With all labels in the list nothing is left to chance.
    let all = given.sample(&Drawn::log_uniform(&[1; 50], 50).with_weighting(Weighting::CAPPED), step(1));
    assert!(all.list(0).labels.iter().copied().eq(0..50));
    assert!(all.list(0).weight.iter().all(|&weight| weight == 1.0) && all.list(0).log_q.iter().all(|&q| q == 0.0));
}

#[test]
fn in_batch_chances_are_those_of_batches_drawn_from_the_data() {
    // 60 instances; batches of 6 of them, drawn with replacement.
    let all = Given::new(60, 12, 2, 9);
    let (counts, n) = (all.counts(), all.instances.len());
    let sampler = InBatch::new(&counts, n);
    let mut random = xc_hash::stream::Stream::new(5);
    let (steps, mut hits, mut stated) = (40_000, [0u32; 12], Vec::new());
    for number in 0..steps {
        // The first one has no labels: what is in the list comes from the other five.
        let order: Vec<usize> = (0..6).map(|i| if i == 0 { 0 } else { random.below(n as u32) as usize }).collect();
        let batch = all.reordered(&order);
        let out = batch.sample(&sampler, step(number));
        out.list(0).labels.iter().for_each(|&label| hits[label as usize] += 1);
        if number == 0 {
            let labels: Vec<u32> = (0..12).collect();
            sampler.log_q(step(0), batch.queries(), None, 0..12, 0, &labels, &mut stated).unwrap();
        }
    }
    for (label, (&hits, log)) in hits.iter().zip(stated).enumerate() {
        let (got, chance) = (f64::from(hits) / f64::from(steps as u32), f64::from(log.exp()));
        assert!((got - chance).abs() < 5.0 * (chance / steps as f64).sqrt(), "label {label}: {got}, expected {chance}");
    }
}

#[test]
fn draws_of_a_multi_index_are_those_of_its_exact_chances() {
    // The same vector for all instances; logits far enough apart to tell.
    let mut given = Given::new(500, 100, 6, 3);
    given.vectors = given.vectors[..6].repeat(500);
    given.rows.iter_mut().for_each(|v| *v *= 2.0);
    for codewords in [1, 5, 32] {
        let params = MidxParams { codewords, per_instance: 1, ..MidxParams::default() };
        let data = SamplerData::new(&[1; 100], 500, 6, 1);
        let sampler = Midx::new(params, &data).with_lists(Lists::Own);
        let (all, mut log_q) = ((0..100).collect::<Vec<_>>(), Vec::new());
        let weights = Some(given.weights());
        sampler.log_q(step(0), given.queries(), weights, 0..100, 7, &all, &mut log_q).unwrap();
        let chances: Vec<f64> = log_q.iter().map(|&log| f64::from(log).exp()).collect();
        assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-5, "chances of {}", chances.iter().sum::<f64>());
        if codewords == 1 {
            assert!(chances.iter().all(|q| (q - 0.01).abs() < 1e-6), "one cell: all labels alike");
        }
        // As near to the softmax as codewords are to the rows.
        let logits: Vec<f64> = (0..100).map(|label| given.logit(0, label)).collect();
        let total: f64 = logits.iter().map(|z| z.exp()).sum();
        let distance = |of: &dyn Fn(usize) -> f64| {
            logits.iter().enumerate().map(|(at, z)| (z.exp() / total - of(at)).abs()).sum::<f64>() / 2.0
        };
        if codewords == 32 {
            let (ours, uniform) = (distance(&|at| chances[at]), distance(&|_| 0.01));
            assert!(ours < 0.5 * uniform, "total variation {ours}, of uniform draws {uniform}");
        }
        assert_distributed(&counted(&sampler, &given, DRAWS), &chances, &format!("{codewords} codewords"));
    }
}

#[test]
fn a_list_shared_by_draws_of_many_instances_has_the_chances_that_it_states() {
    let given = Given::new(3, 8, 2, 1);
    for per_instance in [1, 3] {
        let params = MidxParams { codewords: 3, per_instance, ..MidxParams::default() };
        let data = SamplerData::new(&[1; 8], 3, 2, 1);
        hits(&Midx::new(params, &data), &given, 5000);
        hits(&Midx::new(params, &data).with_lists(Lists::Own), &given, 5000);
    }
}
