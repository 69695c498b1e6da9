//! scipy's sparse archives: the members are put together from the input, or the whole archive is the input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|bytes: &[u8]| {
    let path = file("a.npz", bytes);
    let options = options();
    if let Err(error) = read_labels(&path, &options) {
        check_message(&path, &error.to_string());
    }
    match read_npz_matrix(&path, &options) {
        Err(error) => check_message(&path, &error.to_string()),
        Ok(matrix) => {
            let mut out = Cursor::new(Vec::new());
            write_npz(&mut out, matrix.view()).unwrap();
            let generous = ReadOptions { max_expanded_bytes: None, ..options };
            assert_eq!(read_npz_matrix(&file("again.npz", out.get_ref()), &generous).unwrap(), matrix);
        }
    }
});
