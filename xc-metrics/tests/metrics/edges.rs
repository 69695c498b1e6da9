//! Hand-made cases: empty things, wrong things, and the exact text of reports.

use crate::{ranked, truth};
use xc_metrics::{
    EvaluateError, Evaluator, EvaluatorParams, EvaluatorParamsError, Metric, PairFilter, Propensity, evaluate,
};
use xc_sparse::rank::{RankedBatch, Scored};

const NONE: [u32; 0] = [];

fn params(n_labels: usize, ks: &[usize]) -> EvaluatorParams {
    EvaluatorParams { ks: ks.to_vec(), ..EvaluatorParams::new(n_labels) }
}

fn close(a: Option<f64>, b: f64) -> bool {
    a.is_some_and(|a| (a - b).abs() < 1e-12)
}

#[test]
fn a_small_case_by_hand() {
    let truth = truth(&[&[4u32, 9][..], &[3], &[]], 10);
    let predicted = ranked(&[&[9u32, 3, 4][..], &[3], &[7, 1]]);
    let report = evaluate(&truth, &predicted, params(10, &[1, 3])).unwrap();
    assert!(close(report.value(Metric::Precision(1)), 2.0 / 3.0));
    assert!(close(report.value(Metric::Precision(3)), (2.0 / 3.0 + 1.0 / 3.0) / 3.0));
    assert!(close(report.value(Metric::Recall(1)), (0.5 + 1.0) / 3.0));
    assert!(close(report.value(Metric::Recall(3)), 2.0 / 3.0));
    let ideal = 1.0 + 1.0 / 3f64.log2();
    assert!(close(report.value(Metric::Ndcg(3)), (1.5 / ideal + 1.0) / 3.0));
    assert!(close(report.value(Metric::MeanAveragePrecision), ((1.0 + 2.0 / 3.0) / 2.0 + 1.0) / 3.0));
    assert!(close(report.value(Metric::MeanReciprocalRank), 2.0 / 3.0));
    assert!(close(report.value(Metric::Coverage(1)), 2.0 / 3.0)); // 9 and 3 of {3, 4, 9}
    assert!(close(report.value(Metric::Coverage(3)), 1.0));
    // k = 3: 3 is predicted for instances 0 and 1, true for 1: F1 = 2/3; 4 and 9 are right.
    assert!(close(report.value(Metric::MacroF1(3)), (2.0 / 3.0 + 1.0 + 1.0) / 3.0));
    assert!(close(report.value(Metric::MicroF1(3)), 2.0 * 3.0 / (3.0 + 6.0)));
    assert_eq!(report.value(Metric::Psp(1)), None, "no propensities, no PSP");
    assert_eq!(report.counts().without_labels, 1);
}

#[test]
fn nothing_to_evaluate_is_an_error() {
    let none: [[u32; 0]; 0] = [];
    let got = evaluate(&truth(&none, 5), &RankedBatch::new(), params(5, &[1]));
    assert_eq!(got.unwrap_err(), EvaluateError::NoInstances);
    let one = EvaluatorParams { exclude: vec![0], ..params(5, &[1]) };
    assert_eq!(evaluate(&truth(&[[1]], 5), &ranked(&[[1]]), one).unwrap_err(), EvaluateError::NoInstances);
    let zero = EvaluatorParams { weights: Some(vec![0.0]), ..params(5, &[1]) };
    assert_eq!(
        evaluate(&truth(&[[1]], 5), &ranked(&[[1]]), zero).unwrap_err(),
        EvaluateError::NoWeight { instances: 1 }
    );
}

#[test]
fn no_true_label_anywhere_gives_zeros() {
    let propensity = Propensity::from_counts(10, &[1, 2], 0.55, 1.5).unwrap();
    let params = EvaluatorParams { propensity: Some(propensity), ..params(2, &[1, 2]) };
    let report = evaluate(&truth(&[NONE, NONE], 2), &ranked(&[&[1u32][..], &[]]), params).unwrap();
    assert!(report.values().iter().all(|v| v.value == 0.0), "{report:?}");
    assert_eq!((report.counts().without_labels, report.counts().without_predictions), (2, 1));
    assert_eq!(report.counts().labels_in_truth, 0);
}

#[test]
fn ranks_past_the_end_of_a_list_are_misses() {
    let report = evaluate(&truth(&[[0]], 1), &ranked(&[[0]]), params(1, &[1, 5, 100])).unwrap();
    assert!(close(report.value(Metric::Precision(5)), 0.2));
    assert!(close(report.value(Metric::Precision(100)), 0.01));
    assert!(close(report.value(Metric::Ndcg(5)), 1.0), "one true label: the best list has one hit");
    assert!(close(report.value(Metric::Recall(100)), 1.0));
    assert!(close(report.value(Metric::MicroF1(100)), 1.0), "one label predicted, not 100");
}

#[test]
fn a_perfect_ranking_has_psp_one_only_when_rare_labels_come_first() {
    let propensity = Propensity::from_counts(1000, &[900, 1], 0.55, 1.5).unwrap();
    let params = EvaluatorParams { propensity: Some(propensity.clone()), ..params(2, &[1, 2]) };
    let rare_first = evaluate(&truth(&[[0, 1]], 2), &ranked(&[[1, 0]]), params.clone()).unwrap();
    let rare_last = evaluate(&truth(&[[0, 1]], 2), &ranked(&[[0, 1]]), params).unwrap();
    for k in [1, 2] {
        assert!(close(rare_first.value(Metric::Psp(k)), 1.0));
        assert!(close(rare_first.value(Metric::Psndcg(k)), 1.0));
    }
    let share = propensity.inverse(0) / propensity.inverse(1);
    assert!(close(rare_last.value(Metric::Psp(1)), share));
    assert!(close(rare_last.value(Metric::Psp(2)), 1.0));
    let discount = 1.0 / 3f64.log2();
    assert!(close(rare_last.value(Metric::Psndcg(2)), (share + discount) / (1.0 + share * discount)));
}

#[test]
fn equal_propensities_leave_hits_over_possible_hits() {
    let propensity = Propensity::from_counts(50, &[1, 9, 3, 30], 0.0, 1.5).unwrap();
    let params = EvaluatorParams { propensity: Some(propensity), ..params(4, &[2]) };
    let truth = truth(&[&[0u32, 1, 2][..], &[3], &[]], 4);
    let report = evaluate(&truth, &ranked(&[[2, 3], [3, 0], [1, 2]]), params).unwrap();
    assert!(close(report.value(Metric::Psp(2)), 2.0 / 3.0));
}

#[test]
fn unknown_labels_are_counted_and_missed() {
    // Label 1 was never trained on; 7 is out of range for the predictions.
    let propensity = Propensity::from_counts(10, &[5, 0, 2], 0.55, 1.5).unwrap();
    let params = EvaluatorParams { propensity: Some(propensity), ..params(3, &[1]) };
    let report = evaluate(&truth(&[&[0u32, 1, 7][..], &[7], &[2]], 8), &ranked(&[[0], [1], [2]]), params).unwrap();
    assert_eq!((report.counts().unknown_labels, report.counts().unknown_pairs), (2, 3));
    assert_eq!(report.counts().labels_in_truth, 4);
    assert!(close(report.value(Metric::Recall(1)), (1.0 / 3.0 + 1.0) / 3.0));
    assert!(close(report.value(Metric::Coverage(1)), 0.5));
}

#[test]
fn ignored_pairs_leave_both_sides_and_excluded_rows_leave_altogether() {
    let truth = truth(&[&[0u32, 1][..], &[2], &[3]], 4);
    let predicted = ranked(&[&[0u32, 1][..], &[3, 2], &[0]]);
    let filter = PairFilter::try_new(vec![(0, 0), (1, 3), (1, 3)], 3).unwrap();
    let params = EvaluatorParams { filter, exclude: vec![2, 2], ..params(4, &[1]) };
    let report = evaluate(&truth, &predicted, params).unwrap();
    assert!(close(report.value(Metric::Precision(1)), 1.0), "the next labels move up");
    assert!(close(report.value(Metric::Recall(1)), 1.0), "the pair is no longer true");
    let counts = report.counts();
    assert_eq!((counts.instances, counts.excluded), (2, 1));
    assert_eq!((counts.filtered_truth, counts.filtered_predictions), (1, 2));
}

#[test]
fn an_instance_of_weight_zero_changes_no_value() {
    let rows = (truth(&[&[0u32, 1][..], &[2], &[3]], 4), ranked(&[[1, 2], [0, 2], [1, 0]]));
    let weighted = EvaluatorParams { weights: Some(vec![2.0, 0.0, 3.0]), ..params(4, &[1, 2]) };
    let excluded = EvaluatorParams { weights: Some(vec![2.0, 9.0, 3.0]), exclude: vec![1], ..params(4, &[1, 2]) };
    let a = evaluate(&rows.0, &rows.1, weighted).unwrap();
    let b = evaluate(&rows.0, &rows.1, excluded).unwrap();
    assert_eq!(a.values(), b.values());
    assert_eq!((a.counts().instances, b.counts().instances), (3, 2));
}

#[test]
fn wrong_lists_are_named() {
    let scored = |row: &[(u32, f32)]| row.iter().map(|&(label, score)| Scored { label, score }).collect::<Vec<_>>();
    let fail = |truth: &[u32], row: &[(u32, f32)]| {
        let mut evaluator = Evaluator::new(params(5, &[1])).unwrap();
        evaluator.add(&[], &[]).unwrap();
        evaluator.add(truth, &scored(row)).unwrap_err()
    };
    let instance = 1;
    assert_eq!(fail(&[], &[(3, 2.0), (1, 1.0), (3, 0.5)]), EvaluateError::RepeatedLabel { instance, label: 3 });
    assert_eq!(fail(&[], &[(5, 1.0)]), EvaluateError::LabelOutOfRange { instance, label: 5, n_labels: 5 });
    assert_eq!(fail(&[], &[(0, 1.0), (1, f32::NAN)]), EvaluateError::NotANumber { instance, position: 1 });
    assert_eq!(fail(&[], &[(0, 1.0), (1, 2.0)]), EvaluateError::NotRanked { instance, position: 1 });
    assert_eq!(fail(&[2, 2], &[]), EvaluateError::TruthOrder { instance, label: 2 });
    assert_eq!(fail(&[2, 1], &[]), EvaluateError::TruthOrder { instance, label: 1 });
    let mut evaluator = Evaluator::new(params(5, &[1])).unwrap();
    evaluator.add(&[3], &scored(&[(4, 1.0), (2, 1.0), (3, f32::NEG_INFINITY)])).unwrap();
}

#[test]
fn parts_that_do_not_fit_are_errors() {
    let rows = (truth(&[[0], [1]], 2), ranked(&[[0]]));
    assert_eq!(
        evaluate(&rows.0, &rows.1, params(2, &[1])).unwrap_err(),
        EvaluateError::Instances { truth: 2, predictions: 1 }
    );
    let rows = (truth(&[[0], [1]], 2), ranked(&[[0], [1]]));
    let with = |change: &dyn Fn(&mut EvaluatorParams)| {
        let mut params = params(2, &[1]);
        change(&mut params);
        evaluate(&rows.0, &rows.1, params).unwrap_err()
    };
    assert_eq!(with(&|p| p.weights = Some(vec![1.0])), EvaluateError::Weights { weights: 1, instances: 2 });
    assert_eq!(with(&|p| p.weights = Some(vec![1.0; 3])), EvaluateError::Weights { weights: 3, instances: 2 });
    assert_eq!(with(&|p| p.exclude = vec![2]), EvaluateError::ExcludedOutOfRange { instance: 2, instances: 2 });
    assert_eq!(with(&|p| p.ks = vec![]), EvaluatorParamsError::NoK.into());
    assert_eq!(with(&|p| p.ks = vec![3, 0]), EvaluatorParamsError::ZeroK.into());
    assert_eq!(with(&|p| p.ks = vec![3, 1, 3]), EvaluatorParamsError::RepeatedK { k: 3 }.into());
    for weight in [-1.0, f64::INFINITY] {
        let want = EvaluatorParamsError::Weight { instance: 1, weight };
        assert_eq!(with(&|p| p.weights = Some(vec![1.0, weight])), want.into());
    }
}

#[test]
fn json_and_table_read_as_documented() {
    let truth = truth(&[&[1u32, 2][..], &[3], &[]], 4);
    let report = evaluate(&truth, &ranked(&[&[1u32, 0][..], &[2], &[]]), params(4, &[2, 1])).unwrap();
    let json = serde_json::to_string(&report).unwrap();
    let third = 1.0 / 3.0;
    let start = format!(r#"{{"instances":3,"P@1":{third},"P@2":{},"nDCG@1":{third},"#, 0.5 / 3.0);
    assert!(json.starts_with(&start), "{json}");
    assert!(json.ends_with(
        r#""counts":{"without_labels":1,"without_predictions":1,"excluded":0,"labels":4,"labels_in_truth":3,"unknown_labels":0,"unknown_pairs":0,"filtered_truth":0,"filtered_predictions":0}}"#
    ), "{json}");
    assert_eq!(
        report.table().to_string(),
        "instances 3 (1 without labels, 1 without predictions); labels 4 (3 in the truth)\n\
         %            @1     @2\n\
         P         33.33  16.67\n\
         nDCG      33.33  20.44\n\
         recall    16.67  16.67\n\
         MAP       33.33  16.67\n\
         micro-F1  40.00  33.33\n\
         macro-F1  33.33  33.33\n\
         coverage  33.33  33.33\n\
         whole lists: MAP 16.67, MRR 33.33\n"
    );
}
