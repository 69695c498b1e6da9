//! Answers as arrays.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use xc_sparse::rank::RankedBatch;

/// `indptr`, `ids`, `scores` of ragged lists.
pub(crate) type Arrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

/// Lists as they are found.
pub(crate) struct Found {
    indptr: Vec<i64>,
    ids: Vec<u32>,
    scores: Vec<f32>,
}

/// Answers that room is made for at once: memory that nobody touches is nobody's.
const MOST_FORESEEN: usize = 1 << 27;

impl Found {
    /// Room for `n` lists of up to `k` answers.
    pub(crate) fn new(n: usize, k: usize) -> Self {
        let room = n.saturating_mul(k).min(MOST_FORESEEN);
        let (ids, scores) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let mut indptr = Vec::with_capacity(n + 1);
        indptr.push(0);
        Self { indptr, ids, scores }
    }

    /// Adds the lists of a batch.
    pub(crate) fn add(&mut self, batch: &RankedBatch) {
        for row in batch.iter() {
            self.ids.extend(row.iter().map(|s| s.label));
            self.scores.extend(row.iter().map(|s| s.score));
            self.indptr.push(self.ids.len() as i64);
        }
    }

    /// All of them as arrays.
    pub(crate) fn into_arrays(self, py: Python<'_>) -> Arrays<'_> {
        (self.indptr.into_pyarray(py), self.ids.into_pyarray(py), self.scores.into_pyarray(py))
    }
}

/// The lists of a batch as arrays.
pub(crate) fn arrays<'py>(py: Python<'py>, batch: &RankedBatch) -> Arrays<'py> {
    let mut found = Found::new(batch.len(), batch.iter().map(<[_]>::len).max().unwrap_or(0));
    found.add(batch);
    found.into_arrays(py)
}
