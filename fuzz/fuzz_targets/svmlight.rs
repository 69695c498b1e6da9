//! Multilabel svmlight in either base.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|input: (u8, &[u8])| {
    let base = |bit: u8| if input.0 >> bit & 1 == 1 { IndexBase::One } else { IndexBase::Zero };
    let bases = SvmlightBases { features: base(0), labels: base(1) };
    let options = ReadOptions {
        form: FileForm {
            format: Some(Format::Svmlight),
            svmlight_base: Some(bases.features),
            svmlight_label_base: Some(bases.labels),
            ..FileForm::default()
        },
        ..options()
    };
    let path = file("a.svm", input.1);
    let data = match read_dataset(&path, &options) {
        Ok(data) => data,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    if data.features.rows() == 0 {
        return;
    }
    let mut text = Vec::new();
    write_svmlight(&mut text, data.features.view(), &data.labels, bases).unwrap();
    let again = read_dataset(&file("again.svm", &text), &options).unwrap();
    assert_eq!((&again.features, &again.labels), (&data.features, &data.labels));
});
