//! The calibration of a model: a small network whose configuration says how scores become probabilities, with the arrays
//! of the input. What opens answers probabilities between 0 and 1 in the order of the scores, cuts answers at its
//! thresholds, and is the same when it is saved again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use xc_fuzz::{blocks, check_message, folder, sections};
use xc_model::Model;
use xc_model::calibrate::{Calibration, Curve, ThresholdKind};
use xc_model::classifier::Classifier;
use xc_model::{QueryOptions, Rows, ScoreOptions};
use xc_sparse::CsrMatrix;
use xc_sparse::rank::Scored;
use xc_store::{ArrayRef, Container, ContainerWriter, OpenMode};
use xc_train::preset;

/// A network of 4 features and 6 labels that has learned nothing.
static NETWORK: LazyLock<Container> = LazyLock::new(|| {
    let mut params = preset::dense().params;
    *params.encoder.widths_mut() = vec![3];
    let path = folder("network", &[]);
    Classifier::new(preset::DENSE, 4, 6, params).expect("a small network").save(&path).expect("memory takes it");
    Container::open(&path, OpenMode::Read).expect("it opens")
});

/// The curve gives probabilities that rise with the score.
fn check_curve(calibration: &Calibration) {
    let curve = &calibration.curve;
    let mut scores = vec![f32::NEG_INFINITY, f32::MIN, -1.0, -0.0, 0.0, f32::MIN_POSITIVE, 1e-6, 0.5, 1.0, 1e30];
    scores.extend([f32::MAX, f32::INFINITY]);
    // At the points, between them, and one step beside each of these scores.
    if let Curve::Isotonic(points) = curve {
        scores.extend(points.scores());
        scores.extend(points.scores().windows(2).map(|w| w[0] / 2.0 + w[1] / 2.0));
        let near: Vec<f32> = scores.iter().flat_map(|score| [score.next_down(), score.next_up()]).collect();
        scores.extend(near);
    }
    scores.sort_unstable_by(f32::total_cmp);
    let probabilities: Vec<f32> = scores.iter().map(|&score| curve.probability(score)).collect();
    assert!(probabilities.iter().all(|p| (0.0..=1.0).contains(p)));
    for (score, p) in scores.windows(2).zip(probabilities.windows(2)) {
        let rises = match curve {
            Curve::Isotonic(_) => p[0] <= p[1],
            // The exponential function is not exact: it may be lower by one step.
            Curve::Platt { .. } => p[0].next_down() <= p[1],
        };
        assert!(rises, "scores {score:?} have probabilities {p:?}");
    }
    assert!(curve.probability(f32::NAN).is_nan());
    let raw: Vec<Scored> = (0..).zip(scores.iter().rev()).map(|(label, &score)| Scored { label, score }).collect();
    let mut list = raw.clone();
    calibration.apply(&mut list);
    check_list(&raw, &list);
}

/// A list of probabilities has the labels of the list of scores. Lower scores have lower
/// probabilities, and equal scores have equal ones.
fn check_list(raw: &[Scored], list: &[Scored]) {
    assert!(raw.iter().map(|s| s.label).eq(list.iter().map(|s| s.label)));
    assert!(list.iter().all(|s| s.score > 0.0 && s.score <= 1.0));
    assert!(list.is_sorted_by(|a, b| a.score >= b.score));
    for (raw, list) in raw.windows(2).zip(list.windows(2)) {
        assert_eq!(raw[0].score > raw[1].score, list[0].score > list[1].score, "{raw:?} became {list:?}");
    }
}

fuzz_target!(|input: &[u8]| {
    let parts: [&[u8]; 6] = sections(input);
    let path = folder("calibrated", &[]);
    let mut writer = ContainerWriter::copy_of(&NETWORK, &path).expect("an empty folder takes a model");
    let Ok(entry) = serde_json::from_slice::<serde_json::Value>(parts[0]) else { return };
    writer.set_parameter("calibration", entry);
    writer.begin_file("calibration").expect("a name");
    for block in blocks(&parts[1..]) {
        let array = ArrayRef { dtype: block.dtype, shape: &block.shape, bytes: block.bytes };
        if writer.add(block.name, array).is_err() {
            return;
        }
    }
    writer.finish().expect("memory takes a small model");
    let model = match Model::open(&path) {
        Ok(model) => model,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let rows = CsrMatrix::from_checked((2, 4), vec![0, 4, 4], vec![0, 1, 2, 3], vec![0.5; 4]);
    let ask = |scores| {
        let options = QueryOptions { scores, ..QueryOptions::top(9) };
        model.predict_batch(Rows::Sparse(rows.view()), &options).expect("sound scores").ranked
    };
    let raw = ask(ScoreOptions { raw: true, threshold: None });
    let Some(calibration) = model.calibration() else { return };
    check_curve(calibration);
    let answers = ask(ScoreOptions::default());
    assert_eq!(raw.len(), answers.len());
    raw.iter().zip(answers.iter()).for_each(|(raw, list)| check_list(raw, list));
    for kind in ThresholdKind::ALL {
        let cut = ask(ScoreOptions { raw: false, threshold: Some(kind) });
        assert_eq!(cut.len(), answers.len());
        for (list, cut) in answers.iter().zip(cut.iter()) {
            let kept = list.iter().filter(|s| s.score >= calibration.thresholds.of(kind, s.label));
            assert!(kept.eq(cut));
        }
    }
    let again = folder("again", &[]);
    model.save_calibrated(calibration, &again).expect("memory takes it");
    assert_eq!(Model::open(&again).expect("it was open before").calibration(), Some(calibration));
});
