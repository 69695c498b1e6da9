//! Classifiers, and MACH models of them.

mod classifier;
mod mach;
#[expect(unreachable_pub, dead_code, reason = "an example has its main at the root")]
#[path = "../../../examples/your_method.rs"]
mod your_method;

use xc_sparse::{CsrMatrix, LabelRows};

/// Sparse rows; row 1 is empty, row 3 has one feature that the others share.
fn features(n: usize, n_features: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let count = if i == 1 { 0 } else { 1 + (i * 5) % 7 };
        let mut row: Vec<u32> = (0..count).map(|j| ((i * 13 + j * j * 7 + j) % n_features) as u32).collect();
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|&f| ((f as usize * 31 + i * 17) % 19) as f32 / 9.0 - 1.0));
        indices.extend(row);
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((n, n_features), indptr, indices, values)
}

/// Targets; every fifth row has none, others up to three.
fn targets(n: usize, n_outputs: usize) -> LabelRows {
    let rows = (0..n).map(|i| (0..i % 5).take(3).map(|j| ((i * 3 + j * 5) % n_outputs) as u32).collect::<Vec<_>>());
    LabelRows::from_lists(rows, n_outputs).unwrap()
}

#[test]
fn a_method_of_ones_own_is_trained_saved_evaluated_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (own, dense) = your_method::run(folder.path()).unwrap();
    assert!(own > 0.8 && dense > 0.8, "P@1 {own} and {dense}");
    for file in ["mine.txt", "dense.txt", "model/config.json"] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
}
