//! Answers as arrays.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use xc_sparse::rank::RankedBatch;

/// `indptr`, `ids`, `scores` of ragged lists.
pub(crate) type Arrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

/// The lists of several batches as one.
pub(crate) fn arrays<'py>(py: Python<'py>, parts: &[RankedBatch]) -> Arrays<'py> {
    let n = parts.iter().flat_map(RankedBatch::iter).map(<[_]>::len).sum();
    let (mut indptr, mut ids, mut scores) = (vec![0i64], Vec::with_capacity(n), Vec::with_capacity(n));
    for row in parts.iter().flat_map(RankedBatch::iter) {
        ids.extend(row.iter().map(|s| s.label));
        scores.extend(row.iter().map(|s| s.score));
        indptr.push(ids.len() as i64);
    }
    (indptr.into_pyarray(py), ids.into_pyarray(py), scores.into_pyarray(py))
}
