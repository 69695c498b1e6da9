//! From weight columns to chunks of feature rows.

use super::error::PecosError;
use super::matrix::Columns;
use rayon::prelude::*;
use std::path::Path;
use xc_sparse::chunked::ChunkRows;

/// Builds one chunk a parent out of the columns of `weights`.
///
/// *Shapes*: the children of parent `p` are the columns `order[boundaries[p]..boundaries[p + 1]]`.
/// With `bias`, the last row of `weights` holds bias weights; they are multiplied by it.
///
/// # Errors
/// More than 2^32 weights below one parent.
///
/// # Cost
/// O(nnz log branching), parents in parallel; 12 bytes a weight of the largest chunk per thread
/// beside the result.
pub(super) fn chunks(
    path: &Path,
    weights: &Columns,
    boundaries: &[u32],
    order: &[u32],
    bias: Option<f32>,
) -> Result<Vec<ChunkRows>, PecosError> {
    let one = |window: &[u32]| chunk(path, weights, &order[window[0] as usize..window[1] as usize], bias);
    boundaries.par_windows(2).with_max_len(64).map(one).collect()
}

fn chunk(path: &Path, weights: &Columns, children: &[u32], bias: Option<f32>) -> Result<ChunkRows, PecosError> {
    let mut out = ChunkRows::empty(children.len());
    let mut columns: Vec<(&[u32], &[f32])> = children.iter().map(|&c| weights.column(c as usize)).collect();
    if let Some(input) = bias {
        let bias_row = weights.n_rows as u32 - 1;
        for ((rows, values), bias) in columns.iter_mut().zip(&mut out.bias) {
            if let Some((&row, rest)) = rows.split_last()
                && row == bias_row
            {
                *bias = values[rest.len()] * input;
                (*rows, *values) = (rest, &values[..rest.len()]);
            }
        }
    }
    let n_entries: usize = columns.iter().map(|(rows, _)| rows.len()).sum();
    if n_entries > u32::MAX as usize {
        let what = "number of weights below one parent";
        return Err(PecosError::Size { path: path.to_owned(), what, got: n_entries, expected: u32::MAX as usize });
    }
    // Feature above, child below: one sort orders by both. Each column is ascending already, and
    // the stable sort merges such runs instead of sorting from nothing.
    let mut keys: Vec<u64> = Vec::with_capacity(n_entries);
    for (child, (rows, _)) in columns.iter().enumerate() {
        keys.extend(rows.iter().map(|&row| u64::from(row) << 32 | child as u64));
    }
    keys.sort();
    out.columns.reserve_exact(n_entries);
    out.values.reserve_exact(n_entries);
    // A column's entries come out in the column's own order: a counter each finds the values again.
    let mut next: Vec<usize> = vec![0; children.len()];
    for (i, &key) in keys.iter().enumerate() {
        let (feature, child) = ((key >> 32) as u32, key as u32);
        if out.features.last() != Some(&feature) {
            if i > 0 {
                out.row_ptr.push(i as u32);
            }
            out.features.push(feature);
        }
        out.columns.push(child);
        out.values.push(columns[child as usize].1[next[child as usize]]);
        next[child as usize] += 1;
    }
    if n_entries > 0 {
        out.row_ptr.push(n_entries as u32);
    }
    out.features.shrink_to_fit();
    out.row_ptr.shrink_to_fit();
    Ok(out)
}
