//! Indexes of vectors. The first byte says how: a folder whose configuration and arrays are written anew from the input
//! (so that hashes and offsets hold), or its files as they stand in the input. What opens answers, changes, and is stored
//! and opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_ann::{Index, KIND, Scope, SearchParams, Silent};
use xc_dense::DenseRows;
use xc_fuzz::{check_message, folder, model_folder};
use xc_store::OpenMode;

fuzz_target!(|input: (u8, &[u8])| {
    let Some(path) = model_folder(KIND, input.0, input.1) else { return };
    let mut index = match Index::open(&path, OpenMode::Map) {
        Ok(opened) => opened,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let width = index.graph().dim();
    let query: Vec<f32> = (0..width).map(|at| at as f32 - 1.5).collect();
    let answers = |index: &Index| {
        let queries = DenseRows::new(&query, width);
        let cells = index.graph().n_cells().min(3);
        [(0.0, 0), (0.3, 0), (f32::INFINITY, 0), (16.0, cells)].map(|(width, cells)| {
            let params = SearchParams::top(5).with_scope(match cells {
                0 => Scope::width(width),
                cells => Scope::Cells { cells, slack: width, for_k: 0 },
            });
            let found = index.search_batch(queries, params, None).expect("a query of finite values");
            found.0.row(0).iter().map(|s| (s.label, s.score.to_bits())).collect::<Vec<_>>()
        })
    };
    let before = answers(&index);
    let again = folder("again", &[]);
    index.save(&again).expect("what was opened is written");
    let second = Index::open(&again, OpenMode::Read).expect("it opens");
    assert!(answers(&second) == before && second.graph().stats() == index.graph().stats());
    let _ = index.insert(DenseRows::new(&query, width), &Silent);
    let rows = index.graph().live_rows();
    assert_eq!(index.delete(&rows), rows.len());
    assert!(index.graph().is_empty() && answers(&index).iter().all(Vec::is_empty));
});
