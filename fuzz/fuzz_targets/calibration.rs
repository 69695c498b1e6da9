//! The calibration of a model: a small network whose configuration says how scores become probabilities, with the arrays
//! of the input. What opens answers probabilities in the order of the scores, and is the same when it is saved again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use xc_fuzz::{blocks, check_message, folder, sections};
use xc_sparse::CsrMatrix;
use xc_sparse::store::{ArrayRef, Container, ContainerWriter, OpenMode};
use xc_train::Model;
use xc_train::calibrate::ThresholdKind;
use xc_train::classifier::{Classifier, preset};
use xc_train::model::{Queries, QueryOptions, ScoreOptions};

/// A network of 4 features and 6 labels that has learned nothing.
static NETWORK: LazyLock<Container> = LazyLock::new(|| {
    let mut params = preset::dense().params;
    params.encoder.widths = vec![3];
    let path = folder("network", &[]);
    Classifier::new(preset::DENSE, 4, 6, params).expect("a small network").save(&path).expect("memory takes it");
    Container::open(&path, OpenMode::Read).expect("it opens")
});

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
    let rows = CsrMatrix::new((2, 4), vec![0, 4, 4], vec![0, 1, 2, 3], vec![0.5; 4]);
    let ask = |scores| {
        let options = QueryOptions { scores, ..QueryOptions::top(9) };
        model.predict_batch(Queries::Sparse(rows.view()), &options).expect("sound scores").ranked
    };
    let raw = ask(ScoreOptions { raw: true, threshold: None });
    let Some(calibration) = model.calibration() else { return };
    let answers = ask(ScoreOptions::default());
    for (raw, list) in raw.iter().zip(answers.iter()) {
        assert!(raw.iter().map(|s| s.label).eq(list.iter().map(|s| s.label)));
        assert!(list.is_sorted_by(|a, b| a.score >= b.score));
    }
    ask(ScoreOptions { raw: false, threshold: Some(ThresholdKind::Label) });
    let again = folder("again", &[]);
    model.save_calibrated(calibration, &again).expect("memory takes it");
    assert_eq!(Model::open(&again).expect("it was open before").calibration(), Some(calibration));
});
