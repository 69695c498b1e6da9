//! Files of dense vectors. The first byte names the format.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_data::{ReadOptions, Vectors, write_fbin, write_fvecs};
use xc_dense::DenseRows;
use xc_fuzz::check_message;

fuzz_target!(|input: (u8, &[u8])| {
    let kind = ["fvecs", "bvecs", "ivecs", "fbin", "u8bin", "npy"][usize::from(input.0 % 6)];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("a.{kind}"));
    std::fs::write(&path, input.1).expect("a file");
    let read = |path: &std::path::Path| Vectors::open(path, &ReadOptions::default());
    let vectors = match read(&path) {
        Ok(vectors) => vectors,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    assert_eq!(vectors.values().len(), vectors.rows() * vectors.columns());
    let rows = DenseRows::new(vectors.values(), vectors.columns());
    let bits = |of: &Vectors| of.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let (mut fbin, mut fvecs) = (Vec::new(), Vec::new());
    write_fbin(&mut fbin, rows).expect("memory");
    if vectors.rows() > 0 {
        write_fvecs(&mut fvecs, rows).expect("memory");
    }
    for (name, bytes) in [("b.fbin", fbin), ("b.fvecs", fvecs)] {
        if vectors.rows() > 0 || name == "b.fbin" {
            let again = folder.path().join(name);
            std::fs::write(&again, bytes).expect("a file");
            let again = read(&again).expect("what was written is read");
            assert!(bits(&again) == bits(&vectors) && again.columns() == vectors.columns());
        }
    }
});
