//! What every sampler's lists have in common.

use crate::given::{Given, step};
use xc_lsh::upkeep::RebuildSchedule;
use xc_lsh::{FamilyKind, Projection};
use xc_nn::Loss;
use xc_nn::Step;
use xc_nn::sampler::{
    AnnParams, Candidates, Lists, LshParams, MidxParams, NegativeParams, SampleError, Sampler, SamplerData,
    SamplerParams, SamplerParamsError, Weighting,
};

pub(crate) const LSH: LshParams = LshParams {
    kind: FamilyKind::Wta { bin: 4 },
    n_tables: 8,
    n_codes: Some(3),
    probes: 1,
    candidates: 12,
    per_bucket: 9,
    schedule: RebuildSchedule::Immediate { sort_every: 2 },
};

pub(crate) const ALL: [SamplerParams; 11] = [
    SamplerParams::All,
    SamplerParams::Uniform { per_list: 20 },
    SamplerParams::LogUniform { per_list: 20 },
    SamplerParams::Frequency { per_list: 20, power: 0.75 },
    SamplerParams::InBatch,
    SamplerParams::TopK { per_instance: 5 },
    SamplerParams::LshEmbedding(LSH),
    SamplerParams::LshEmbedding(LshParams {
        kind: FamilyKind::SimHash { projection: Projection::Gaussian },
        probes: 3,
        ..LSH
    }),
    SamplerParams::LshLabel(LSH),
    SamplerParams::Midx(MidxParams { codewords: 4, per_instance: 6, every: 2, iterations: 2 }),
    SamplerParams::Ann(ANN),
];

/// All labels are compared.
pub(crate) const ANN: AnnParams = AnnParams { per_instance: 5, exact_below: 5000, first: 2, every: 0, recall: 0.9 };

pub(crate) fn build(params: NegativeParams, given: &Given) -> Box<dyn Sampler> {
    let counts: Vec<u32> = given.counts().iter().map(|count| count + 1).collect();
    let data = SamplerData {
        counts: &counts,
        n_instances: 100,
        n_numbers: 200,
        width: given.width,
        seed: 7,
        label_texts: None,
        folder: None,
    };
    params.build(&data).unwrap_or_else(|e| panic!("{params:?}: {e}"))
}

/// Every sampler, alone and in a mixture, for both kinds of lists.
fn each(given: &Given, f: impl Fn(&str, Lists, Box<dyn Sampler>)) {
    for sampler in ALL {
        for lists in [Lists::Shared, Lists::Own] {
            for uniform in [0, 30] {
                let params = NegativeParams { lists, uniform, ..sampler.into() };
                f(&format!("{params:?}"), lists, build(params, given));
            }
        }
    }
}

pub(crate) fn lists(out: &Candidates) -> Vec<(Vec<u32>, Vec<f32>, Vec<f32>)> {
    let list = |i| (out.list(i).labels.to_vec(), out.list(i).weight.to_vec(), out.list(i).log_q.to_vec());
    (0..out.len()).map(list).collect()
}

#[test]
fn lists_are_those_of_their_step_at_any_number_of_threads() {
    let given = Given::new(40, 300, 6, 2);
    each(&given, |what, kind, sampler| {
        let at = |threads: usize, at: Step| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            lists(&pool.install(|| given.sample(&*sampler, at)))
        };
        let first = at(1, step(4));
        assert!((2..4).all(|threads| at(threads, step(4)) == first), "{what}");
        assert!(kind == Lists::Own || first.len() == 1, "{what}: {} lists", first.len());
        // Other steps and other seeds draw other labels, where anything is drawn.
        if what.contains("per_list") || what.contains("uniform: 30") && !what.contains("All") {
            assert_ne!(at(2, step(5)), first, "{what}");
            assert_ne!(at(2, Step { seed: 4, ..step(4) }), first, "{what}");
        }
    });
}

#[test]
fn own_lists_do_not_depend_on_the_order_of_the_batch() {
    let given = Given::new(9, 200, 6, 2);
    let order = [4, 8, 0, 2, 7, 1, 3, 6, 5];
    let other = given.reordered(&order);
    each(&given, |what, kind, sampler| {
        let (first, second) =
            (given.sample(&*sampler, step(4)), other.sample(&*sampler, Step { number: 9, ..step(4) }));
        if kind == Lists::Own && first.len() > 1 {
            for (place, &i) in order.iter().enumerate() {
                assert_eq!(second.list(place), first.list(i), "{what}");
            }
        } else {
            let second = other.sample(&*sampler, step(4));
            assert_eq!(first.list(0), second.list(0), "{what}");
        }
    });
}

#[test]
fn lists_are_ascending_and_hold_labels_of_the_range() {
    let given = Given::new(20, 60, 4, 3);
    each(&given, |what, kind, sampler| {
        let out = given.sample(&*sampler, step(2));
        for i in 0..out.len() {
            let list = out.list(i);
            assert!(list.labels.is_sorted_by(|a, b| a < b) && list.labels.iter().all(|&label| label < 60), "{what}");
            assert!(list.weight.iter().all(|&w| w > 0.0) && list.log_q.iter().all(|q| q.is_finite()), "{what}");
            let own = given.queries().targets.row(i);
            if kind == Lists::Own
                && ["TopK", "Ann", "InBatch", "uniform: 30"].iter().any(|w| what.contains(w))
                && out.len() > 1
            {
                assert!(own.iter().all(|label| !list.labels.contains(label)), "{what}: its own label");
            }
        }
    });
}

#[test]
fn no_labels_and_few_labels_are_all_of_them() {
    for n_labels in [1, 3] {
        let given = Given::new(6, n_labels, 4, 3);
        each(&given, |what, _, sampler| {
            let out = given.sample(&*sampler, step(2));
            // What comes from the batch is what the batch has.
            if !what.contains("InBatch") || what.contains("uniform: 30") {
                let own = given.queries().targets;
                for i in 0..out.len() {
                    let rest = if out.len() > 1 { own.row(i) } else { &[] };
                    let missing: Vec<u32> = (0..n_labels as u32).filter(|l| !out.list(i).labels.contains(l)).collect();
                    assert!(
                        missing.iter().all(|label| rest.contains(label))
                            || ["TopK", "Ann"].iter().any(|name| what.contains(name)),
                        "{what}: {missing:?}"
                    );
                }
            }
        });
    }
    let given = Given::new(6, 3, 4, 3);
    for sampler in [SamplerParams::All, SamplerParams::Uniform { per_list: 5 }, SamplerParams::TopK { per_instance: 2 }]
    {
        let (sampler, mut out) = (build(sampler.into(), &given), Candidates::default());
        sampler.sample(step(0), given.queries(), Some(given.weights()), 2..2, &mut out).unwrap();
        assert!(out.len() == 1 && out.list(0).labels.is_empty(), "{sampler:?}");
    }
}

#[test]
fn top_logits_are_those_of_a_full_sort() {
    // More labels than are scored at a time.
    let given = Given::new(7, 5000, 9, 4);
    for k in [1, 10, 40] {
        let own = NegativeParams { lists: Lists::Own, ..SamplerParams::TopK { per_instance: k }.into() };
        let out = given.sample(&*build(own, &given), step(0));
        let mut union = Vec::new();
        for place in 0..7 {
            let targets = given.queries().targets.row(place);
            let mut all: Vec<u32> = (0..5000).filter(|label| !targets.contains(label)).collect();
            all.sort_by(|&a, &b| given.logit(place, b).total_cmp(&given.logit(place, a)));
            let mut best = all[..k].to_vec();
            best.sort_unstable();
            assert_eq!(out.list(place).labels, best, "instance {place}, k {k}");
            union.extend(best);
        }
        union.sort_unstable();
        union.dedup();
        let shared = given.sample(&*build(SamplerParams::TopK { per_instance: k }.into(), &given), step(0));
        assert_eq!(shared.list(0).labels, union);
        assert!(shared.list(0).weight.iter().all(|&w| w == 1.0));
    }
}

#[test]
fn weights_that_are_no_numbers_are_named() {
    let mut given = Given::new(3, 3000, 4, 4);
    given.rows[2500 * 4 + 1] = f32::NAN;
    let say = |given: &Given, params: SamplerParams, with_rows: bool| {
        let weights = with_rows.then(|| given.weights());
        let sampler = build(params.into(), given);
        let error = sampler.sample(step(0), given.queries(), weights, 0..3000, &mut Candidates::default()).unwrap_err();
        *error.source.downcast::<SampleError>().unwrap()
    };
    for params in ALL.into_iter().filter(|params| params.needs_rows()) {
        assert_eq!(say(&given, params, true), SampleError::Weights { label: 2500 }, "{params:?}");
        assert_eq!(say(&given, params, false), SampleError::NoRows, "{params:?}");
    }
    given.rows[2500 * 4 + 1] = 0.0;
    given.vectors[2 * 4] = f32::INFINITY;
    let by_vector = |params: &SamplerParams| params.needs_rows() && !matches!(params, SamplerParams::LshLabel(_));
    for params in ALL.into_iter().filter(by_vector) {
        assert_eq!(say(&given, params, true), SampleError::Vector { instance: given.instances[2] }, "{params:?}");
    }
}

#[test]
fn impossible_settings_are_named() {
    let said = |params: NegativeParams| {
        let data = SamplerData::new(&[0, 0], 3, 2, 1);
        params.build(&data).unwrap_err().to_string()
    };
    assert_eq!(said(SamplerParams::Uniform { per_list: 0 }.into()), "per_list is 0, expected at least 1");
    assert_eq!(said(SamplerParams::TopK { per_instance: 0 }.into()), "per_instance is 0, expected at least 1");
    let frequency = |power| SamplerParams::Frequency { per_list: 3, power };
    assert!(said(frequency(f64::NAN).into()).contains("power is NaN"));
    assert!(said(frequency(-1.0).into()).contains("power is -1"));
    assert_eq!(said(frequency(1.0).into()), "2 labels, none of them ever true; expected one that is");
    let weighting = Weighting::Inverse { cap: Some(0.0) };
    let zero = NegativeParams { weighting, ..SamplerParams::InBatch.into() };
    assert!(matches!(zero.check(), Err(SamplerParamsError::Number { name: "cap", .. })));
}

#[test]
fn parameters_are_read_as_they_are_written() {
    for sampler in ALL {
        for weighting in [Weighting::None, Weighting::LogQ, Weighting::CAPPED, Weighting::Inverse { cap: None }] {
            let params = NegativeParams { sampler, lists: Lists::Own, uniform: 3, weighting, from_epoch: 2 };
            let json = serde_json::to_string(&params).unwrap();
            assert_eq!(serde_json::from_str::<NegativeParams>(&json).unwrap(), params, "{json}");
        }
    }
    let read = |name: &str| {
        let json = format!(r#"{{"sampler": {{"name": "{name}", "per_list": 9}}, "weighting": {{"name": "log-q"}}}}"#);
        serde_json::from_str::<NegativeParams>(&json)
    };
    assert_eq!(
        read("log-uniform").unwrap(),
        NegativeParams::new(SamplerParams::LogUniform { per_list: 9 }, 0, Loss::Softmax)
    );
    assert!(read("log_uniform").is_err());
    let lsh: SamplerParams = serde_json::from_str(r#"{"name": "lsh-label", "candidates": 30}"#).unwrap();
    assert_eq!(lsh, SamplerParams::LshLabel(LshParams { candidates: 30, ..LshParams::default() }));
}
