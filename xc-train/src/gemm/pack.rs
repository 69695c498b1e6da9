//! Copies of operands in the order in which the tiles read them.

use super::MatRef;
use crate::arch::vectorised;
use rayon::prelude::*;
use std::ops::Range;

/// Columns of B in panels of `width`: panel after panel, in each the rows one after another. Columns past the end are
/// zeros.
pub(super) fn pack_columns(width: usize, b: MatRef<'_>, inner: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
    if inner.is_empty() {
        return;
    }
    out.par_chunks_exact_mut(width * inner.len()).enumerate().for_each(|(panel, out)| {
        let first = columns.start + panel * width;
        let present = width.min(columns.end - first);
        interleave(out, width, b.t(), first..first + present, inner.clone());
    });
}

/// Rows of A in panels of `height`: panel after panel, in each the columns one after another. Rows past the end are
/// zeros.
pub(super) fn pack_rows(height: usize, a: MatRef<'_>, rows: Range<usize>, inner: Range<usize>, out: &mut Vec<f32>) {
    out.resize(rows.len().div_ceil(height) * height * inner.len(), 0.0);
    for (panel, out) in out.chunks_exact_mut((height * inner.len()).max(1)).enumerate() {
        let first = rows.start + panel * height;
        let present = height.min(rows.end - first);
        interleave(out, height, a, first..first + present, inner.clone());
    }
}

/// `out[p * group + i] = m[lines.start + i, inner.start + p]`, zeros where `i` is past the lines.
pub(super) fn interleave(out: &mut [f32], group: usize, m: MatRef<'_>, lines: Range<usize>, inner: Range<usize>) {
    if lines.len() < group {
        out.fill(0.0);
    }
    if m.row_stride == 1 {
        // Lines lie side by side: each step of `inner` is one contiguous piece.
        let n = lines.len();
        for (p, out) in inner.zip(out.chunks_exact_mut(group)) {
            let from = p * m.column_stride + lines.start;
            out[..n].copy_from_slice(&m.values[from..from + n]);
        }
        return;
    }
    debug_assert!(m.column_stride == 1, "one stride is 1 in every matrix made here");
    // Sixteen steps of every line at a time: the written lines stay in the nearest cache.
    vectorised(|| {
        for p in (0..inner.len()).step_by(16) {
            let n = 16.min(inner.len() - p);
            let out = &mut out[p * group..(p + n) * group];
            for (i, line) in lines.clone().enumerate() {
                let from = &m.values[line * m.row_stride + inner.start + p..][..n];
                for (out, &value) in out.chunks_exact_mut(group).zip(from) {
                    out[i] = value;
                }
            }
        }
    });
}
