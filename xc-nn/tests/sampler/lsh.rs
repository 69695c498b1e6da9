//! Tables of labels: what they find, and with which chance.

use crate::given::{Given, step};
use crate::lists::LSH;
use crate::mixture::gradient;
use xc_lsh::upkeep::RebuildSchedule;
use xc_lsh::{FamilyKind, Projection};
use xc_nn::sampler::{
    Candidates, Lists, Lsh, LshBy, LshParams, NegativeParams, Sampler, SamplerData, SamplerParams, Weighting,
};

const SIMHASH: FamilyKind = FamilyKind::SimHash { projection: Projection::Gaussian };

fn tables(by: LshBy, params: LshParams, given: &Given, seed: u64) -> Lsh {
    let counts = vec![1; given.biases.len()];
    Lsh::new(by, params, &SamplerData::new(&counts, 10, given.width, seed)).unwrap()
}

/// Four instances, three labels true of one of them.
fn given() -> Given {
    let mut given = Given::new(4, 25, 5, 12);
    (given.ptr, given.labels) = (vec![0, 1, 1, 4, 6], vec![3, 7, 11, 20, 0, 24]);
    given
}

#[test]
fn labels_are_found_as_often_as_the_closed_form_says() {
    const SEEDS: u64 = 1500;
    let given = given();
    let targets = given.queries().targets;
    let free = LshParams { kind: SIMHASH, n_codes: Some(3), n_tables: 4, candidates: 1000, per_bucket: 1000, ..LSH };
    for (by, places) in [(LshBy::Embedding, 0..4), (LshBy::Label, 0..1)] {
        let (mut hits, mut stated) = (vec![[0u32; 25]; 4], vec![Vec::new(); 4]);
        let mut sums = [[0.0f64; 2]; 4];
        for seed in 0..SEEDS {
            let weighting = if seed == 0 { Weighting::LogQ } else { Weighting::Inverse { cap: None } };
            // A different function for each seed; the closed form needs only one of them.
            let sampler = tables(by, free, &given, seed).with_lists(Lists::Own).with_weighting(weighting).unwrap();
            if seed == 0 {
                for place in places.clone() {
                    let (all, weights) = ((0..25).collect::<Vec<_>>(), Some(given.weights()));
                    sampler.log_q(step(0), given.queries(), weights, 0..25, place, &all, &mut stated[place]).unwrap();
                }
                continue;
            }
            let out = given.sample(&sampler, step(seed));
            for place in places.clone() {
                let list = out.list(place);
                // With an empty union uniform labels come in its place: all, here.
                let is_union = list.labels.len() < 25 - targets.row(place).len() || out.cost().n_empty == 0;
                let mut sum = 0.0;
                for (&label, &weight) in list.labels.iter().zip(list.weight).filter(|_| is_union) {
                    hits[place][label as usize] += 1;
                    sum += f64::from(weight) * gradient(&given, place, label);
                }
                sums[place] = [sums[place][0] + sum, sums[place][1] + sum * sum];
            }
        }
        let n = (SEEDS - 1) as f64;
        for place in places {
            let own = targets.row(place);
            for label in (0..25u32).filter(|label| !own.contains(label)) {
                let (got, chance) =
                    (f64::from(hits[place][label as usize]) / n, f64::from(stated[place][label as usize].exp()));
                let deviation = (chance * (1.0 - chance) / n).sqrt();
                let what = format!("{by:?}, instance {place}, label {label}");
                assert!((got - chance).abs() < 5.0 * deviation + 2e-3, "{what}: {got}, expected {chance}");
            }
            // Weights by 1 / pi: unbiased over the draw of the functions.
            let expected: f64 = (0..25).filter(|l| !own.contains(l)).map(|l| gradient(&given, place, l)).sum();
            let mean = sums[place][0] / n;
            let error = ((sums[place][1] / n - mean * mean) / n).sqrt();
            assert!((mean - expected).abs() < 5.0 * error + 0.01 * expected, "{by:?}: {mean}, expected {expected}");
        }
    }
}

#[test]
fn labels_of_a_step_are_within_their_limits_and_never_their_own() {
    let given = Given::new(30, 400, 8, 2);
    let params = LshParams { n_codes: Some(1), ..LSH };
    for by in [LshBy::Embedding, LshBy::Label] {
        let out = given.sample(&tables(by, params, &given, 1).with_lists(Lists::Own), step(0));
        for place in 0..30 {
            let labels = out.list(place).labels;
            assert!(labels.len() <= params.candidates && !labels.is_empty());
            assert!(given.queries().targets.row(place).iter().all(|label| !labels.contains(label)));
        }
        assert!(out.cost().n_buckets > 0 && out.cost().n_found > 0);
        assert_eq!(out.cost().n_hashes, if by == LshBy::Embedding { 30 * 8 } else { 0 });
    }
}

#[test]
fn a_limit_takes_every_label_about_as_often_over_epochs() {
    let mut given = Given::new(1, 60, 4, 2);
    // All labels are the same: all are in the bucket of the first.
    given.rows = given.rows[..4].repeat(60);
    given.biases.fill(0.5);
    (given.ptr, given.labels) = (vec![0, 1], vec![9]);
    let params = LshParams { candidates: 5, per_bucket: 4, ..LSH };
    let sampler = tables(LshBy::Label, params, &given, 1).with_lists(Lists::Own);
    let mut counts = [0u64; 60];
    for number in 0..20_000 {
        given.sample(&sampler, step(number)).list(0).labels.iter().for_each(|&label| counts[label as usize] += 1);
    }
    let mut chances = [1.0 / 59.0; 60];
    chances[9] = 0.0;
    // Labels of a list are neighbours, so that the draws are not independent: no chi-square here.
    // The first ones behind the excluded label come a little more often, in its place.
    let mean = counts.iter().sum::<u64>() as f64 / 59.0;
    for (label, (&count, chance)) in counts.iter().zip(chances).enumerate() {
        assert!((chance == 0.0) == (count == 0), "label {label} came {count} times");
        assert!(chance == 0.0 || (count as f64 / mean - 1.0).abs() < 0.3, "label {label}: {count} of {mean}");
    }
}

#[test]
fn an_empty_union_is_uniform_and_counted() {
    let mut given = Given::new(6, 50, 5, 2);
    // Nothing is true of the first and the second.
    (given.ptr, given.labels) = (vec![0, 0, 0, 1, 2, 3, 4], vec![1, 2, 3, 4]);
    let params = LshParams { kind: SIMHASH, ..LSH };
    let sampler =
        tables(LshBy::Label, params, &given, 1).with_lists(Lists::Own).with_weighting(Weighting::CAPPED).unwrap();
    let out = given.sample(&sampler, step(3));
    assert!(out.cost().n_empty >= 2);
    for place in 0..2 {
        assert_eq!(out.list(place).labels.len(), LSH.candidates);
        assert!(out.list(place).weight.iter().all(|&w| w == 4.0));
    }
    assert_ne!(out.list(0).labels, out.list(1).labels);
    // A zero vector has a key like any other.
    given.vectors[..5].fill(0.0);
    let out = given.sample(&tables(LshBy::Embedding, LSH, &given, 1), step(3));
    assert_eq!(out.cost().n_zero, 1);
}

#[test]
fn tables_follow_labels_that_move() {
    let mut given = Given::new(1, 500, 8, 4);
    given.ptr = vec![0, 0];
    given.labels.clear();
    let schedules = [
        RebuildSchedule::Immediate { sort_every: 0 },
        RebuildSchedule::Drift { share: 0.1, per_step: 3, sort_every: 1 },
        RebuildSchedule::Rebuild { every: 1, growth: 1.0 },
    ];
    for schedule in schedules {
        let mut given = given.clone();
        let params = LshParams { kind: SIMHASH, n_codes: Some(8), schedule, ..LSH };
        let mut sampler = tables(LshBy::Embedding, params, &given, 1).with_lists(Lists::Own);
        let finds = |given: &Given, sampler: &Lsh| given.sample(sampler, step(0)).list(0).labels.contains(&77);
        assert!(!finds(&given, &sampler), "label 77 is like the vector by chance");
        // Label 77 becomes the instance's vector.
        let vector = given.vectors.clone();
        given.rows[77 * 8..78 * 8].copy_from_slice(&vector);
        given.biases[77] = 1.0;
        assert!(!finds(&given, &sampler), "{schedule:?}: tables know before they are told");
        sampler.changed(step(0), given.queries(), &[77], &[3.0], Some(given.weights())).unwrap();
        assert!(finds(&given, &sampler), "{schedule:?}");
        assert!(given.sample(&sampler, step(1)).cost().n_rehashed >= 1);
    }
}

#[test]
fn work_of_a_step_is_bounded_and_what_waits_is_told() {
    let given = Given::new(3, 200, 6, 4);
    let schedule = RebuildSchedule::Drift { share: 0.1, per_step: 5, sort_every: 0 };
    let mut sampler = tables(LshBy::Embedding, LshParams { schedule, ..LSH }, &given, 1);
    let none = given.sample(&sampler, step(0));
    assert_eq!((none.cost().n_stale, none.cost().n_rehashed), (0, 0));
    // Where nobody says how far labels moved, all of them are due.
    let labels: Vec<u32> = (0..12).collect();
    sampler.changed(step(0), given.queries(), &labels, &[], Some(given.weights())).unwrap();
    let waits: Vec<(u64, u64)> = (1..4)
        .map(|number| {
            let out = given.sample(&sampler, step(number));
            sampler.changed(step(number), given.queries(), &[], &[], Some(given.weights())).unwrap();
            (out.cost().n_rehashed, out.cost().n_stale)
        })
        .collect();
    assert_eq!(waits, [(5, 7), (5, 2), (2, 0)]);
}

#[test]
fn tables_that_cannot_be_are_named() {
    let given = Given::new(3, 200, 6, 4);
    let said = |params: LshParams| {
        let data = SamplerData::new(&[1; 200], 3, given.width, 1);
        let error = NegativeParams::from(SamplerParams::LshLabel(params)).build(&data).map(|_| ()).unwrap_err();
        let cause = std::error::Error::source(&error).map_or(String::new(), |e| format!(": {e}"));
        format!("{error}{cause}")
    };
    let sets = FamilyKind::Dwta { bin: 4, permutations: 1 };
    assert!(said(LshParams { kind: sets, ..LSH }).contains("family dwta, expected sim-hash or wta"));
    assert!(said(LshParams { kind: FamilyKind::Wta { bin: 9 }, ..LSH }).contains("bins of 9 coordinates"));
    assert!(said(LshParams { probes: 0, ..LSH }).contains("probes is 0"));
    assert!(said(LshParams { probes: 9, ..LSH }).contains("probes is 9"));
    assert!(said(LshParams { candidates: 0, ..LSH }).contains("candidates is 0"));
    assert!(said(LshParams { n_tables: 0, ..LSH }).contains("tables of labels: 0 tables"));
    let schedule = RebuildSchedule::Rebuild { every: 50, growth: 0.5 };
    assert!(said(LshParams { schedule, ..LSH }).contains("growth is 0.5"));
    let mut out = Candidates::default();
    let bytes = LshParams::default().bytes(670_000, 128).unwrap();
    assert!((40 << 20..2 << 30).contains(&bytes), "{bytes}");
    let sampler = tables(LshBy::Label, LSH, &given, 1);
    assert!(sampler.sample(step(0), given.queries(), None, 0..200, &mut out).is_err());
}
