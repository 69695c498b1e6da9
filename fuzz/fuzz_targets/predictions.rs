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
