//! Shared parts of the writers of text formats.
//!
//! Each appends one instance to a byte buffer, or streams a whole data set to a [`Write`]. The output
//! reads back as the same rows, values bit for bit.

use super::digits::{push_f32, push_u64};
use std::io::{self, Write};
use xc_sparse::rows::SparseRow;

const FLUSH_BYTES: usize = 1 << 16;

/// Appends `features` as `id:value` entries.
pub(crate) fn push_features(out: &mut Vec<u8>, features: SparseRow<'_>, base: u64) {
    for (i, (id, value)) in features.iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        push_u64(out, u64::from(id) + base);
        out.push(b':');
        push_f32(out, value);
    }
}

/// Appends labels, a comma between two.
pub(crate) fn push_labels(out: &mut Vec<u8>, labels: &[u32], base: u64) {
    for (i, &label) in labels.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_u64(out, u64::from(label) + base);
    }
}

/// Calls `push` for each row and writes the buffer out now and then.
pub(crate) fn stream(
    into: &mut impl Write,
    n_rows: usize,
    mut out: Vec<u8>,
    mut push: impl FnMut(&mut Vec<u8>, usize) -> io::Result<()>,
) -> io::Result<()> {
    for i in 0..n_rows {
        push(&mut out, i)?;
        if out.len() >= FLUSH_BYTES {
            into.write_all(&out)?;
            out.clear();
        }
    }
    into.write_all(&out)
}

/// Refuses features and labels of different numbers of rows.
pub(crate) fn same_rows(features: usize, labels: usize) {
    assert_eq!(features, labels, "{features} rows of features, {labels} rows of labels");
}
