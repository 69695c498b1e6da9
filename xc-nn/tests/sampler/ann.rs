//! Hard labels out of an index: those of a full sort, or nearly so, and never true ones.

use crate::given::{Given, step};
use crate::lists::{build, lists};
use crate::mixture::assert_unbiased;
use proptest::prelude::*;
use xc_nn::sampler::{
    Ann, AnnParams, Lists, Mixture, NegativeParams, SampleError, Sampler, SamplerData, SamplerParams,
    SamplerParamsError, ScheduleParams, Scheduled, Weighting,
};
use xc_nn::{Loss, Step, sampler::Candidates};

/// An index from the first step on, whatever the number of labels.
const INDEX: AnnParams = AnnParams { per_instance: 5, exact_below: 0, first: 1, every: 0, recall: 0.9 };

fn data<'a>(given: &Given, counts: &'a [u32]) -> SamplerData<'a> {
    let n = 1 + *given.instances.iter().max().unwrap() as usize;
    SamplerData::new(counts, n, given.width, 7)
}

fn own(sampler: impl Into<SamplerParams>) -> NegativeParams {
    NegativeParams { lists: Lists::Own, ..NegativeParams::from(sampler.into()) }
}

fn tell(given: &Given, sampler: &mut dyn Sampler, at: Step, labels: &[u32]) {
    sampler.changed(at, given.queries(), labels, &[], Some(given.weights())).unwrap();
}

/// The `k` false labels of the largest logits, ascending.
fn hardest(given: &Given, place: usize, k: usize) -> Vec<u32> {
    let targets = given.queries().targets;
    let mut all: Vec<u32> = (0..given.n_labels()).filter(|l| !targets.row(place).contains(l)).collect();
    all.sort_by(|&a, &b| given.logit(place, b).total_cmp(&given.logit(place, a)));
    all.truncate(k);
    all.sort_unstable();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn few_labels_are_all_compared(n in 1usize..12, n_labels in 1usize..90, k in 1usize..12, seed in 0u64..1000) {
        let given = Given::new(n, n_labels, 5, seed);
        let params = SamplerParams::Ann(AnnParams { per_instance: k, ..AnnParams::default() });
        let out = given.sample(&*build(own(params), &given), step(0));
        let exact = given.sample(&*build(own(SamplerParams::TopK { per_instance: k }), &given), step(0));
        prop_assert_eq!(lists(&out), lists(&exact));
        for place in 0..n {
            prop_assert_eq!(out.list(place).labels, hardest(&given, place, k));
        }
    }

    #[test]
    fn an_index_gives_no_true_labels_and_its_lists_depend_on_no_threads(
        n in 1usize..20, n_labels in 1usize..400, k in 1usize..12, seed in 0u64..1000
    ) {
        let given = Given::new(n, n_labels, 6, seed);
        let counts = vec![1; n_labels];
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let params = AnnParams { per_instance: k, ..INDEX };
                let mut sampler = Ann::new(params, &data(&given, &counts)).with_lists(Lists::Own);
                tell(&given, &mut sampler, step(0), &[]);
                given.sample(&sampler, step(1))
            })
        };
        let out = run(1);
        prop_assert!((2..4).all(|threads| run(threads) == out));
        for place in 0..n {
            let (labels, own) = (out.list(place).labels, given.queries().targets.row(place));
            prop_assert!(labels.is_sorted_by(|a, b| a < b) && labels.iter().all(|label| !own.contains(label)));
            prop_assert!(labels.len() <= k && labels.iter().all(|&label| (label as usize) < n_labels));
        }
    }
}

#[test]
fn an_index_finds_nearly_all_and_follows_rows_that_change() {
    let mut given = Given::new(40, 6000, 12, 2);
    let counts = vec![1; 6000];
    let mut sampler = Ann::new(INDEX, &data(&given, &counts)).with_lists(Lists::Own);
    assert!(given.sample(&sampler, step(0)).list(3).labels.is_empty(), "there is no index before the first step");
    let at = |number| Step { number, epoch: 0, seed: 3 };
    tell(&given, &mut sampler, at(0), &[]);
    let found = |given: &Given, sampler: &Ann| {
        let out = given.sample(sampler, at(1));
        let hits = |place| out.list(place).labels.iter().filter(|l| hardest(given, place, 5).contains(l)).count();
        (0..40).map(hits).sum::<usize>() as f64 / 200.0
    };
    let before = found(&given, &sampler);
    assert!(before > 0.8, "{before} of the hardest labels");
    // A label that is near becomes the hardest of all: it is found before any refresh.
    for place in [3, 7] {
        let (near, best) = (hardest(&given, place, 25), hardest(&given, place, 5));
        let label = *near.iter().find(|label| !best.contains(label)).unwrap();
        let vector: Vec<f32> = given.queries().vectors.row(place).iter().map(|v| 9.0 * v).collect();
        given.rows[label as usize * 12..][..12].copy_from_slice(&vector);
        tell(&given, &mut sampler, at(2), &[label]);
        assert!(given.sample(&sampler, at(3)).list(place).labels.contains(&label), "label {label}");
    }
    let all: Vec<u32> = (0..6000).collect();
    (1000..1004).for_each(|number| tell(&given, &mut sampler, at(number), &all));
    let after = found(&given, &sampler);
    assert!(after > 0.8, "{after} of the hardest labels after a refresh");
}

#[test]
fn edges_wait_until_steps_have_changed_four_times_as_many_labels_as_there_are() {
    let given = Given::new(6, 500, 4, 8);
    let counts = vec![1; 500];
    let all: Vec<u32> = (0..500).collect();
    for (every, waits) in [(0, true), (10, false)] {
        let mut sampler = Ann::new(AnnParams { every, ..INDEX }, &data(&given, &counts));
        let at = |number, epoch| Step { number, epoch, seed: 3 };
        tell(&given, &mut sampler, at(0, 0), &[]);
        // The first number of the counters is the step of the next refresh, which each refresh moves.
        let next = |sampler: &Ann| arrays(sampler)[0].1[..8].to_vec();
        let built = next(&sampler);
        for number in 50..53 {
            tell(&given, &mut sampler, at(number, number as u32), &all);
        }
        assert_eq!(next(&sampler) == built, waits, "every {every}: three changes of each label");
        tell(&given, &mut sampler, at(53, 53), &all);
        assert_ne!(next(&sampler), built, "every {every}: four changes of each label");
    }
}

/// Lemma 4.1 of the paper.
#[test]
fn hard_and_uniform_labels_estimate_the_sum_over_all_without_bias() {
    let given = Given::new(6, 60, 4, 8);
    let counts = vec![1; 60];
    let mut index = Ann::new(INDEX, &data(&given, &counts));
    tell(&given, &mut index, step(0), &[]);
    for lists in [Lists::Shared, Lists::Own] {
        let hard = Box::new(index.clone().with_lists(lists));
        let mixture = Mixture::new(hard, 10).with_lists(lists).with_weighting(Weighting::Inverse { cap: None });
        // The index is as stale as it may be: it was made at the first step.
        assert_unbiased(&mixture, &given, 2000);
    }
}

#[test]
fn before_the_first_epoch_of_hard_labels_there_are_uniform_ones_in_their_place() {
    let given = Given::new(6, 500, 4, 8);
    let params =
        NegativeParams { from_epoch: 3, ..NegativeParams::new(SamplerParams::TopK { per_instance: 5 }, 20, Loss::Bce) };
    let sampler = build(params, &given);
    let mut positives: Vec<u32> = (0..6).flat_map(|i| given.queries().targets.row(i)).copied().collect();
    positives.sort_unstable();
    positives.dedup();
    let exact = |out: &Candidates| out.list(0).weight.iter().filter(|&&weight| weight == 1.0).count();
    let early = given.sample(&*sampler, Step { epoch: 2, ..step(40) });
    assert_eq!((exact(&early), early.list(0).labels.len()), (positives.len(), positives.len() + 20 + 5 * 6));
    let later = given.sample(&*sampler, Step { epoch: 3, ..step(40) });
    assert!(exact(&later) > positives.len());
    assert_eq!(later.list(0).labels.len(), exact(&later) + 20);
}

#[test]
fn an_index_that_nobody_asks_yet_is_not_built() {
    let given = Given::new(6, 500, 4, 8);
    let counts = vec![1; 500];
    let params = NegativeParams { from_epoch: 2, ..NegativeParams::new(SamplerParams::Ann(INDEX), 20, Loss::Bce) };
    let mut sampler = params.build(&data(&given, &counts)).unwrap();
    let at = |number, epoch| Step { number, epoch, seed: 3 };
    let n_arrays = |sampler: &dyn Sampler| {
        let mut n = 0;
        let visited = sampler.visit(&mut |_| {
            n += 1;
            Ok(())
        });
        visited.unwrap();
        n
    };
    for (number, epoch) in [(0, 0), (1, 1), (64, 1)] {
        tell(&given, &mut *sampler, at(number, epoch), &[]);
        assert_eq!(n_arrays(&*sampler), 1, "epoch {epoch}: the counters alone");
    }
    tell(&given, &mut *sampler, at(65, 2), &[]);
    assert!(n_arrays(&*sampler) > 1);
    let (hard, n) = (given.sample(&*sampler, at(66, 2)), given.sample(&*sampler, at(66, 1)));
    let exact = |out: &Candidates| out.list(0).weight.iter().filter(|&&weight| weight == 1.0).count();
    assert!(exact(&hard) > exact(&n));
}

#[test]
fn a_schedule_finds_in_one_epoch_what_is_used_in_the_next() {
    let mut given = Given::new(30, 300, 6, 5);
    let counts = vec![1; 300];
    let params = ScheduleParams { per_instance: 4, every_epochs: 3, first_epoch: 2, recall: 0.95 };
    let files = tempfile::tempdir().unwrap();
    let in_files = SamplerData { folder: Some(files.path()), ..data(&given, &counts) };
    let mut sampler = Scheduled::new(params, &in_files).with_lists(Lists::Own);
    let mut in_memory = Scheduled::new(params, &data(&given, &counts)).with_lists(Lists::Own);
    let mut number = 0;
    let mut epoch = |given: &Given, sampler: &mut Scheduled, epoch: u32| {
        let mut out = None;
        for _ in 0..2 {
            let at = Step { number, epoch, seed: 3 };
            out = Some(given.sample(sampler, at));
            assert_eq!(out, Some(given.sample(&in_memory, at)));
            tell(given, sampler, at, &[]);
            tell(given, &mut in_memory, at, &[]);
            assert_eq!(arrays(sampler), arrays(&in_memory));
            number += 1;
        }
        out.unwrap()
    };
    let is_empty = |out: &Candidates| (0..30).all(|i| out.list(i).labels.is_empty());
    assert!(is_empty(&epoch(&given, &mut sampler, 0)) && is_empty(&epoch(&given, &mut sampler, 1)));
    let first = epoch(&given, &mut sampler, 2);
    let hits = |place: &usize| first.list(*place).labels == hardest(&given, *place, 4);
    let n_right = (0..30).filter(hits).count();
    assert!(n_right > 20, "{n_right} of 30 instances have their hardest labels");
    // Other weights: they are asked at the end of epoch 3, for epoch 5.
    given.rows.iter_mut().for_each(|v| *v = -*v);
    assert_eq!(lists(&epoch(&given, &mut sampler, 3)), lists(&first));
    assert_eq!(lists(&epoch(&given, &mut sampler, 4)), lists(&first));
    assert_ne!(lists(&epoch(&given, &mut sampler, 5)), lists(&first));
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 0);
}

/// What a checkpoint would hold.
fn arrays(sampler: &dyn Sampler) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let visited = sampler.visit(&mut |array| {
        all.push((array.of.name.to_owned(), array.bytes.to_vec()));
        Ok(())
    });
    visited.unwrap();
    all
}

#[test]
fn a_folder_that_takes_no_file_is_named() {
    let given = Given::new(30, 300, 6, 5);
    let counts = vec![1; 300];
    let nowhere = std::env::temp_dir().join("there-is-no-such-folder");
    let params = ScheduleParams { per_instance: 4, every_epochs: 3, first_epoch: 2, recall: 0.95 };
    let of = SamplerData { folder: Some(&nowhere), ..data(&given, &counts) };
    let told = Scheduled::new(params, &of).changed(step(0), given.queries(), &[], &[], Some(given.weights()));
    let error = *told.unwrap_err().source.downcast::<SampleError>().unwrap();
    assert!(matches!(&error, SampleError::File { folder, .. } if *folder == nowhere), "{error}");
}

#[test]
fn labels_are_compared_by_their_texts_once_these_were_seen() {
    let mut given = Given::new(12, 8, 3, 5);
    // Instances 100 to 107 are the texts of labels.
    given.instances = [0, 1, 2, 3].into_iter().chain(100..108).collect();
    let counts = [1; 8];
    let with = SamplerData { label_texts: Some(100), n_numbers: 108, ..data(&given, &counts) };
    let mut sampler = Ann::by_texts(AnnParams::default(), &with).unwrap().with_lists(Lists::Own);
    tell(&given, &mut sampler, step(0), &[]);
    let out = given.sample(&sampler, step(1));
    let queries = given.queries();
    for place in 0..4 {
        let product = |label: usize| -> f32 {
            queries.vectors.row(place).iter().zip(queries.vectors.row(4 + label)).map(|(a, b)| a * b).sum()
        };
        let best = (0..8)
            .filter(|&l| !queries.targets.row(place).contains(&(l as u32)))
            .max_by(|&a, &b| product(a).total_cmp(&product(b)));
        let one = AnnParams { per_instance: 1, ..AnnParams::default() };
        let mut of_one = Ann::by_texts(one, &with).unwrap().with_lists(Lists::Own);
        tell(&given, &mut of_one, step(0), &[]);
        assert_eq!(given.sample(&of_one, step(1)).list(place).labels, [best.unwrap() as u32]);
        assert!(out.list(place).labels.contains(&(best.unwrap() as u32)));
    }
    assert_eq!(Ann::by_texts(INDEX, &data(&given, &counts)).unwrap_err(), SamplerParamsError::LabelTexts);
}

#[test]
fn what_is_no_number_is_named_by_an_index_too() {
    let mut given = Given::new(3, 300, 4, 4);
    let counts = vec![1; 300];
    let error = |given: &Given, sampler: &mut Ann, labels: &[u32]| {
        let changed = sampler.changed(step(9), given.queries(), labels, &[], Some(given.weights()));
        *changed.unwrap_err().source.downcast::<SampleError>().unwrap()
    };
    let mut sampler = Ann::new(INDEX, &data(&given, &counts));
    given.rows[250 * 4] = f32::NAN;
    assert_eq!(error(&given, &mut sampler, &[]), SampleError::Weights { label: 250 });
    given.rows[250 * 4] = 0.0;
    tell(&given, &mut sampler, step(9), &[]);
    given.biases[17] = f32::INFINITY;
    assert_eq!(error(&given, &mut sampler, &[3, 17]), SampleError::Weights { label: 17 });
    given.biases[17] = 0.0;
    given.vectors[4] = f32::NAN;
    let failed = sampler.sample(step(10), given.queries(), Some(given.weights()), 0..300, &mut Candidates::default());
    let failed = *failed.unwrap_err().source.downcast::<SampleError>().unwrap();
    assert_eq!(failed, SampleError::Vector { instance: given.instances[1] });
}

#[test]
fn impossible_numbers_are_refused() {
    let said = |params: SamplerParams| params.check().unwrap_err().to_string();
    assert_eq!(
        said(SamplerParams::Ann(AnnParams { per_instance: 0, ..INDEX })),
        "per_instance is 0, expected at least 1"
    );
    assert_eq!(
        said(SamplerParams::Ann(AnnParams { recall: 1.5, ..INDEX })),
        "recall is 1.5, expected a share above 0, at most 1"
    );
    let schedule = |params| said(SamplerParams::Schedule(params));
    let usual = ScheduleParams::default();
    assert_eq!(schedule(ScheduleParams { first_epoch: 1, ..usual }), "first_epoch is 1, expected at least 2, from 0");
    assert_eq!(schedule(ScheduleParams { every_epochs: 0, ..usual }), "every_epochs is 0, expected at least 1");
}
