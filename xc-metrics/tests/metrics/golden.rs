//! Values worked out by `bench/check_metrics.py`, which shares no code with the crate.

use serde_json::Value;
use xc_metrics::{EvaluatorParams, PairFilter, Propensity, evaluate};
use xc_sparse::{
    LabelRows,
    rank::{RankedBatch, Scored},
};

fn lists(value: &Value) -> Vec<Vec<u32>> {
    let row = |v: &Value| v.as_array().unwrap().iter().map(|l| l.as_u64().unwrap() as u32).collect();
    value.as_array().unwrap().iter().map(row).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn every_metric_equals_the_frozen_value() {
    let case: Value = serde_json::from_str(include_str!("../golden/metrics.json")).unwrap();
    let n_labels = case["n_labels"].as_u64().unwrap() as usize;
    let training = LabelRows::from_lists(lists(&case["train"]), n_labels).unwrap();
    let propensity =
        Propensity::from_training(&training, case["a"].as_f64().unwrap(), case["b"].as_f64().unwrap()).unwrap();
    for (label, want) in numbers(&case["inverse_propensity"]).into_iter().enumerate() {
        assert!((propensity.inverse(label as u32) - want).abs() < 1e-9, "label {label}");
    }
    let truth = LabelRows::from_lists(lists(&case["truth"]), n_labels + 3).unwrap();
    let mut predicted = RankedBatch::new();
    for row in case["predicted"].as_array().unwrap() {
        let item = |v: &Value| Scored { label: v[0].as_u64().unwrap() as u32, score: v[1].as_f64().unwrap() as f32 };
        predicted.push_row(&row.as_array().unwrap().iter().map(item).collect::<Vec<_>>());
    }
    let pairs: Vec<(usize, u32)> = lists(&case["pairs"]).iter().map(|p| (p[0] as usize, p[1])).collect();
    let exclude: Vec<usize> = numbers(&case["exclude"]).iter().map(|&i| i as usize).collect();

    let plain = EvaluatorParams {
        ks: numbers(&case["ks"]).iter().map(|&k| k as usize).collect(),
        propensity: Some(propensity),
        threshold: Some(case["threshold"].as_f64().unwrap() as f32),
        ..EvaluatorParams::new(n_labels)
    };
    let weights = Some(numbers(&case["weights"]));
    let filter = PairFilter::try_new(pairs, truth.len()).unwrap();
    let cases = [
        ("plain", plain.clone()),
        ("weighted", EvaluatorParams { weights: weights.clone(), ..plain.clone() }),
        ("filtered", EvaluatorParams { filter: filter.clone(), ..plain.clone() }),
        ("all", EvaluatorParams { weights, filter, exclude, ..plain }),
    ];
    for (name, params) in cases {
        let json = serde_json::to_value(evaluate(&truth, &predicted, params).unwrap()).unwrap();
        let want = case["expected"][name].as_object().unwrap();
        let got = json.as_object().unwrap();
        for (metric, want) in want {
            let (want, got) = (want.as_f64().unwrap(), got[metric].as_f64().unwrap());
            assert!((want - got).abs() < 1e-9, "{name} {metric}: {got}, frozen {want}");
        }
        let extra: Vec<_> = got.keys().filter(|k| !want.contains_key(*k)).collect();
        assert_eq!(extra, ["counts"], "every metric has a frozen value");
    }
}
