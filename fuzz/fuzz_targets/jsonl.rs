//! JSONL with text or with features.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_data::*;
use xc_fuzz::{check_message, file, options};
use xc_sparse::rows::OwnedRows;

fuzz_target!(|bytes: &[u8]| {
    let form = FileForm { text_fields: Some(vec!["title".into(), "text".into()]), ..Format::Jsonl.into() };
    let options = ReadOptions { form, ..options() };
    let path = file("a.jsonl", bytes);
    let mut out = Vec::new();
    match read_data(&path, &options).map(|data| (data.rows, data.labels.into_owned(), data.names)) {
        Err(error) => check_message(&path, &error.to_string()),
        Ok((DataRows::Owned(OwnedRows::Texts(texts)), labels, names)) => {
            write_jsonl_text(&mut out, &texts, &labels, names.as_deref()).unwrap();
            let again = read_text(&file("again.jsonl", &out), &options).unwrap();
            assert_eq!(
                (&again.texts, &again.labels, again.label_names.as_deref()),
                (&texts, &labels, names.as_deref())
            );
        }
        Ok((DataRows::Owned(OwnedRows::Sparse(features)), labels, names)) => {
            write_jsonl_features(&mut out, features.view(), &labels, names.as_deref()).unwrap();
            let stated = ReadOptions { n_features: Some(features.cols()), ..options };
            let again = read_dataset(&file("again.jsonl", &out), &stated).unwrap();
            assert_eq!((&again.features, &again.labels), (&features, &labels));
        }
        Ok((other, ..)) => panic!("neither texts nor features: {other:?}"),
    }
});
