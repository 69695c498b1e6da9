//! Indexes of sparse rows. The first byte says how: a folder whose configuration and arrays are written anew from the
//! input (so that hashes and offsets hold), or its files as they stand in the input. What opens answers, and is stored and
//! opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_ann::{INVERTED_KIND, InvertedIndex, InvertedScratch};
use xc_fuzz::{check_message, folder, model_folder};
use xc_sparse::SparseRow;
use xc_store::OpenMode;

fuzz_target!(|input: (u8, &[u8])| {
    let Some(path) = model_folder(INVERTED_KIND, input.0, input.1) else { return };
    let index = match InvertedIndex::open(&path, OpenMode::Map) {
        Ok(opened) => opened,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let indices: Vec<u32> = (0..index.n_columns().min(9) as u32).collect();
    let values: Vec<f32> = indices.iter().map(|&column| column as f32 - 1.5).collect();
    let answers = |index: &InvertedIndex| {
        let query = SparseRow::from_checked(&indices, &values);
        let found = index.nearest(query, 5, &mut InvertedScratch::default());
        found.map(|found| found.iter().map(|s| (s.label, s.score.to_bits())).collect::<Vec<_>>())
    };
    let before = answers(&index);
    assert!(before.is_ok() || indices.is_empty(), "a query of finite values: {before:?}");
    let again = folder("again", &[]);
    index.save(&again).expect("what was opened is written");
    assert!(answers(&InvertedIndex::open(&again, OpenMode::Read).expect("it opens")) == before);
});
