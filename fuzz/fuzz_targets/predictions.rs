//! Predictions as lines, JSONL or npz, and files of label names. What is read is in ranking order, has labels below the
//! bound, and is the same when it is written in each form and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use xc_data::*;
use xc_fuzz::{check_message, file, options};
use xc_sparse::rank::RankedBatch;

/// A bound on labels: some of the seeds' labels are below it, some are not.
const BOUND: u32 = 4;

fuzz_target!(|bytes: &[u8]| {
    let path = file("p.txt", bytes);
    if let Err(error) = read_label_names(&path, NameColumn::FIRST) {
        check_message(&path, &error.to_string());
    }
    // Names that may be among the bytes: digits, blanks, a colon.
    let names = ["a", "1", "b c", "d:e", "\u{e9}"].map(str::to_owned).to_vec();
    let names = Arc::new(LabelNames::try_new(names).expect("they are different"));
    let named = ReadOptions { label_names: Some(names.clone()), ..options() };
    if let Some(batch) = read(&path, &named)
        && batch.iter().flatten().all(|s| (s.label as usize) < names.len())
    {
        write_and_read(&batch, Some(&names));
    }
    if let Some(batch) = read(&path, &options()) {
        write_and_read(&batch, None);
    }
});

/// Reads without and with a bound on labels. Both give the same unless a label is beyond the bound.
fn read(path: &Path, free: &ReadOptions) -> Option<RankedBatch> {
    let bounded = ReadOptions { n_labels: Some(BOUND as usize), ..free.clone() };
    let batch = match (read_predictions(path, free), read_predictions(path, &bounded)) {
        (Ok(batch), Ok(same)) => {
            assert!(same.iter().flatten().all(|s| s.label < BOUND));
            assert_eq!(bits(&same), bits(&batch));
            batch
        }
        (Ok(batch), Err(error)) => {
            check_message(path, &error.to_string());
            assert!(batch.iter().flatten().any(|s| s.label >= BOUND), "refused below the bound: {error}");
            batch
        }
        (Err(free), Err(bounded)) => {
            check_message(path, &free.to_string());
            check_message(path, &bounded.to_string());
            return None;
        }
        (Err(error), Ok(_)) => panic!("refused only without a bound: {error}"),
    };
    for row in batch.iter() {
        assert!(row.iter().all(|s| !s.score.is_nan() && s.label < u32::MAX));
        // Scores that are one f32 may differ as f64, which decides.
        assert!(row.is_sorted_by(|a, b| a.score >= b.score));
        let mut labels: Vec<u32> = row.iter().map(|s| s.label).collect();
        labels.sort_unstable();
        assert!(labels.is_sorted_by(|a, b| a < b), "a label twice in a row");
    }
    Some(batch)
}

/// Writes predictions in each form. Every form gives them back, except for infinities in JSONL and npz.
fn write_and_read(batch: &RankedBatch, names: Option<&Arc<LabelNames>>) {
    // Written scores are f32, and equal ones are ranked by label.
    let batch = &mut batch.clone();
    batch.sort();
    // Without the small limits of the input: what is written may be longer.
    let again = ReadOptions { block_bytes: 64, label_names: names.cloned(), ..ReadOptions::default() };
    let list = names.map(|names| names.names());
    let n_labels = batch.iter().flatten().map(|s| s.label as usize + 1).max().unwrap_or(0);
    let finite = batch.iter().flatten().all(|s| s.score.is_finite());
    let (mut lines, mut jsonl, mut npz) = (Vec::new(), Vec::new(), Cursor::new(Vec::new()));
    write_prediction_lines(&mut lines, batch, list).expect("memory takes it");
    write_prediction_jsonl(&mut jsonl, batch, list).expect("memory takes it");
    write_prediction_npz(&mut npz, batch, n_labels).expect("memory takes it");

    // A file without a line is an error, an npz matrix without a row is not.
    if !batch.is_empty() {
        let found = read_predictions(&file("again.txt", &lines), &again).expect("lines that were written are read");
        assert_eq!(bits(&found), bits(batch));
    }
    let forms = [("again.jsonl", jsonl, finite && !batch.is_empty()), ("again.npz", npz.into_inner(), finite)];
    for (name, bytes, is_readable) in forms {
        let path = file(name, &bytes);
        match read_predictions(&path, &again) {
            Ok(found) => assert!(is_readable && bits(&found) == bits(batch), "{name} reads as something else"),
            Err(error) => {
                check_message(&path, &error.to_string());
                assert!(!is_readable, "what was written is refused: {error}");
            }
        }
    }
}

/// Labels and the bits of their scores: -0 is not 0.
fn bits(batch: &RankedBatch) -> Vec<Vec<(u32, u32)>> {
    batch.iter().map(|row| row.iter().map(|s| (s.label, s.score.to_bits())).collect()).collect()
}
