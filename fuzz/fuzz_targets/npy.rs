//! Dense numpy arrays, as features and as labels.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|bytes: &[u8]| {
    let path = file("a.npy", bytes);
    let options = options().with_format(Format::Npy);
    if let Ok(lists) = read_labels(&path, &options) {
        assert!(lists.labels.iter().all(|row| row.windows(2).all(|pair| pair[0] < pair[1])));
    }
    let sparse = read_dataset(&path, &options);
    match read_npy(&path, &options) {
        Err(error) => {
            check_message(&path, &error.to_string());
            assert!(sparse.is_err());
        }
        Ok(dense) => {
            assert_eq!(dense.values.len(), dense.rows * dense.columns);
            let nonzero = dense.values.iter().filter(|v| **v != 0.0).count();
            assert_eq!(sparse.unwrap().features.nnz(), nonzero);
            let mut out = Vec::new();
            write_npy(&mut out, dense.rows, dense.columns, &dense.values).unwrap();
            assert_eq!(read_npy(&file("again.npy", &out), &options).unwrap(), dense);
        }
    }
});
