//! A training run that is interrupted goes on with the samplers that it had.

use crate::given::{Given, step};
use crate::lists::{ALL, ANN, LSH, build, lists};
use xc_hash::stream::Stream;
use xc_lsh::upkeep::RebuildSchedule;
use xc_nn::sampler::{AnnParams, Candidates, Lists, LshParams, NegativeParams, Sampler, SamplerParams, ScheduleParams};
use xc_nn::state::{Snapshot, State};

/// Draws the lists of a step, moves some labels, and tells the sampler.
fn one_step(given: &mut Given, sampler: &mut dyn Sampler, number: u64) -> Candidates {
    let out = given.sample(sampler, step(number));
    let (mut random, width) = (Stream::new(number), given.width);
    let mut labels: Vec<u32> = (0..40).map(|_| random.below(given.n_labels())).collect();
    labels.sort_unstable();
    labels.dedup();
    let mut moved = Vec::new();
    for &label in &labels {
        let mut change = vec![0.0; width];
        random.fill_uniform(0.2, &mut change);
        let row = &mut given.rows[label as usize * width..][..width];
        row.iter_mut().zip(&change).for_each(|(v, change)| *v += change);
        moved.push(change.iter().map(|v| v * v).sum::<f32>().sqrt());
    }
    let moved = if sampler.wants_moved() { &moved[..] } else { &[] };
    sampler.changed(step(number), given.queries(), &labels, moved, Some(given.weights())).unwrap();
    out
}

fn stateful() -> Vec<SamplerParams> {
    let with = |schedule| SamplerParams::LshEmbedding(LshParams { schedule, ..LSH });
    let mut all = ALL.to_vec();
    all.push(with(RebuildSchedule::Rebuild { every: 2, growth: 1.5 }));
    all.push(SamplerParams::Ann(AnnParams { exact_below: 0, ..ANN }));
    all.push(SamplerParams::Ann(AnnParams { exact_below: 0, every: 3, ..ANN }));
    all.push(SamplerParams::Schedule(ScheduleParams { per_instance: 4, every_epochs: 1, first_epoch: 2, recall: 0.9 }));
    all.push(SamplerParams::Schedule(ScheduleParams { per_instance: 4, every_epochs: 4, first_epoch: 3, recall: 0.9 }));
    all.push(with(RebuildSchedule::Drift { share: 0.1, per_step: 7, sort_every: 3 }));
    all
}

#[test]
fn a_sampler_that_is_put_back_goes_on_as_it_would_have() {
    for sampler in stateful() {
        for uniform in [0, 20] {
            let params = NegativeParams { lists: Lists::Own, uniform, ..sampler.into() };
            let run = |threads: usize, stop: Option<u64>| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let mut given = Given::new(20, 300, 7, 5);
                    let (mut sampler, mut all) = (build(params, &given), Vec::new());
                    for number in 0..9 {
                        if stop == Some(number) {
                            let saved = Snapshot::of(&[&*sampler as &dyn State]).unwrap();
                            sampler = build(params, &given);
                            sampler.load(&saved).unwrap();
                            assert_eq!(Snapshot::of(&[&*sampler as &dyn State]).unwrap(), saved);
                        }
                        all.push(lists(&one_step(&mut given, &mut *sampler, number)));
                    }
                    (all, Snapshot::of(&[&*sampler as &dyn State]).unwrap())
                })
            };
            let first = run(1, None);
            for (threads, stop) in [(2, None), (3, None), (1, Some(0)), (2, Some(1)), (3, Some(5))] {
                assert_eq!(run(threads, stop), first, "{params:?}, {threads} threads, put back at {stop:?}");
            }
        }
    }
}

#[test]
fn a_state_of_answers_alone_leaves_a_sampler_as_it_is() {
    for sampler in stateful() {
        let mut given = Given::new(20, 300, 7, 5);
        let mut sampler = build(sampler.into(), &given);
        (0..3).for_each(|number| _ = one_step(&mut given, &mut *sampler, number));
        let before = Snapshot::of(&[&*sampler as &dyn State]).unwrap();
        sampler.load(&Snapshot::default()).unwrap();
        assert_eq!(Snapshot::of(&[&*sampler as &dyn State]).unwrap(), before, "{sampler:?}");
    }
}

#[test]
fn states_that_cannot_be_are_refused() {
    for (params, name, at) in [(SamplerParams::LshLabel(LSH), "sampler.lsh.keys", 3), (ALL[9], "sampler.midx.cells", 1)]
    {
        let given = Given::new(20, 300, 7, 5);
        let mut sampler = build(params.into(), &given);
        given.sample(&*sampler, step(0));
        let mut saved = Snapshot::of(&[&*sampler as &dyn State]).unwrap();
        saved.bytes_mut(name).unwrap()[at] = 0xff;
        let error = sampler.load(&saved).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}
