//! JSONL with text or with features.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|bytes: &[u8]| {
    let fields = Fields { text: vec!["title".into(), "text".into()], ..Fields::default() };
    let options = ReadOptions { format: Some(Format::Jsonl), fields, ..options() };
    let path = file("a.jsonl", bytes);
    let mut out = Vec::new();
    match read_instances(&path, &options) {
        Err(error) => check_message(&path, &error.to_string()),
        Ok(Instances::Text(data)) => {
            write_jsonl_text(&mut out, &data.texts, &data.labels, data.label_names.as_deref()).unwrap();
            let again = read_text(&file("again.jsonl", &out), &options).unwrap();
            assert_eq!((&again.texts, &again.labels), (&data.texts, &data.labels));
            assert_eq!(again.label_names, data.label_names);
        }
        Ok(Instances::Features(data)) => {
            write_jsonl_features(&mut out, data.features.view(), &data.labels, data.label_names.as_deref()).unwrap();
            let stated = ReadOptions { n_features: Some(data.features.cols()), ..options };
            let again = read_dataset(&file("again.jsonl", &out), &stated).unwrap();
            assert_eq!((&again.features, &again.labels), (&data.features, &data.labels));
        }
    }
});
