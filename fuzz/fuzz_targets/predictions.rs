//! Predictions as lines, JSONL or npz, and files of label names.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_fuzz::{check_message, file, options};
use xc_sparse::io::*;

fuzz_target!(|bytes: &[u8]| {
    let path = file("p.txt", bytes);
    if let Err(error) = read_label_names(&path, NameColumn::FIRST) {
        check_message(&path, &error.to_string());
    }
    // Names that may be among the bytes: digits, blanks, a colon.
    let names = ["a", "1", "b c", "d:e", "\u{e9}"].map(str::to_owned).to_vec();
    let names = std::sync::Arc::new(LabelNames::try_new(names).unwrap());
    let named = ReadOptions { label_names: Some(names.clone()), ..options() };
    match read_predictions(&path, &named) {
        Err(error) => check_message(&path, &error.to_string()),
        Ok(batch) if batch.iter().flatten().all(|s| (s.label as usize) < names.len()) => {
            let mut out = Vec::new();
            write_prediction_lines(&mut out, &batch, Some(names.names())).unwrap();
            // A single name that is a number reads as an id where it comes first.
            let first = batch.iter().find(|row| !row.is_empty());
            if first.is_some_and(|row| row.len() > 1 || row[0].label != 1) {
                let stated = ReadOptions { format: Some(Format::Xc), ..named };
                assert_eq!(read_predictions(&file("named.txt", &out), &stated).unwrap(), batch);
            }
        }
        Ok(batch) => batch.check().unwrap(),
    }
    match read_predictions(&path, &options()) {
        Err(error) => check_message(&path, &error.to_string()),
        Ok(batch) => {
            batch.check().unwrap();
            let mut out = Vec::new();
            write_prediction_lines(&mut out, &batch, None).unwrap();
            if !batch.is_empty() {
                let stated = ReadOptions { format: Some(Format::Xc), ..options() };
                assert_eq!(read_predictions(&file("again.txt", &out), &stated).unwrap(), batch);
            }
        }
    }
});
