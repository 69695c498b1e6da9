//! LSH tables. The first byte says how: a folder whose configuration and arrays are written anew from the input (so that
//! hashes and offsets hold), or its files as they stand in the input. What opens answers, changes, and is stored and opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_fuzz::{check_message, folder, model_folder};
use xc_lsh::Keys;
use xc_lsh::tables::{By, KIND, Query, QueryLimits, QueryScratch, Tables};
use xc_store::OpenMode;

fuzz_target!(|input: (u8, &[u8])| {
    let Some(path) = model_folder(KIND, input.0, input.1) else { return };
    let (mut tables, params) = match Tables::open(&path, OpenMode::Map) {
        Ok(opened) => opened,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let items: Vec<u32> = (0..tables.n_items().min(50) as u32).collect();
    let answers = |tables: &Tables| -> Vec<Vec<u32>> {
        let (limits, mut scratch) = (QueryLimits { candidates: 9, per_bucket: 4 }, QueryScratch::default());
        let answer = |&item: &u32| {
            let mut found = Vec::new();
            let query = Query { by: By::Items(&[item]), turn: u64::from(item), excluded: &[] };
            let counts = tables.query(query, limits, &mut scratch, &mut found);
            assert!(counts.candidates == found.len() && found.len() <= 9);
            found
        };
        items.iter().map(answer).collect()
    };
    let before = answers(&tables);
    let again = folder("again", &[]);
    tables.save(&again, &params).expect("what was opened is written");
    let (second, functions) = Tables::open(&again, OpenMode::Read).expect("it opens");
    assert!(functions == params && second.state() == tables.state() && answers(&second) == before);
    // Every item under its own key, whatever the changes were.
    tables.sort(0..tables.n_tables());
    let keys: Vec<u32> = items.iter().flat_map(|&item| tables.keys_of(item).to_vec()).collect();
    assert_eq!(tables.update(&items, &Keys::from_rows(tables.n_tables(), keys)), 0);
    assert_eq!(tables.stats().n_overflow, 0);
});
