//! Instances side by side: a batch, and the data it is cut from.

use thiserror::Error;
use xc_sparse::{DenseRows, LabelRows, Rows, SparseRow};

/// Features of all instances.
#[derive(Clone, Copy, Debug)]
pub enum Features<'a> {
    /// Weighted features; see [`crate::encoder::Bag`].
    Sparse(Rows<'a>),
    /// Vectors computed elsewhere; see [`crate::encoder::Precomputed`].
    Dense(DenseRows<'a>),
}

impl Features<'_> {
    /// Number of instances.
    pub fn len(&self) -> usize {
        match self {
            Self::Sparse(rows) => rows.len(),
            Self::Dense(rows) => rows.len(),
        }
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of features, or of values of a vector.
    pub fn width(&self) -> usize {
        match self {
            Self::Sparse(rows) => rows.n_features(),
            Self::Dense(rows) => rows.width(),
        }
    }

    /// The first row with a value that is infinite or not a number.
    fn not_finite(&self) -> Option<usize> {
        (0..self.len()).find(|&i| {
            let row = match self {
                Self::Sparse(rows) => rows.row(i).values,
                Self::Dense(rows) => rows.row(i),
            };
            row.iter().any(|v| !v.is_finite())
        })
    }
}

/// Instances to learn from or to judge by: features, and for each instance the outputs that are true.
#[derive(Clone, Copy, Debug)]
pub struct Examples<'a> {
    features: Features<'a>,
    targets: &'a LabelRows,
}

/// Why features and targets are no examples.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExamplesError {
    /// Not as many features as targets.
    #[error("{n_features} rows of features, {n_targets} rows of targets")]
    Length {
        /// Rows of features.
        n_features: usize,
        /// Rows of targets.
        n_targets: usize,
    },
    /// A feature is infinite or not a number.
    #[error("row {row} has a feature that is not finite")]
    NotFinite {
        /// The row.
        row: usize,
    },
}

impl<'a> Examples<'a> {
    /// Checks lengths and values. *Cost*: one pass over the features.
    ///
    /// # Errors
    /// Lengths differ; a feature is not finite.
    pub fn try_new(features: Features<'a>, targets: &'a LabelRows) -> Result<Self, ExamplesError> {
        if features.len() != targets.len() {
            return Err(ExamplesError::Length { n_features: features.len(), n_targets: targets.len() });
        }
        if let Some(row) = features.not_finite() {
            return Err(ExamplesError::NotFinite { row });
        }
        Ok(Self { features, targets })
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The features.
    pub fn features(&self) -> Features<'a> {
        self.features
    }

    /// The targets.
    pub fn targets(&self) -> &'a LabelRows {
        self.targets
    }
}

/// A few instances, copied together. Buffers only grow.
///
/// ```text
///   by instance    indptr 0 2 3     features 2 7 2     values 0.5 1.0 2.0
///   by feature     feature 2: instance 0 0.5, instance 1 2.0      feature 7: instance 0 1.0
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    len: usize,
    width: usize,
    pub(crate) indptr: Vec<u32>,
    pub(crate) features: Vec<u32>,
    pub(crate) values: Vec<f32>,
    pub(crate) dense: Vec<f32>,
    pub(crate) groups: Groups,
    target_ptr: Vec<u32>,
    targets: Vec<u32>,
}

/// The entries of a batch by feature, for gradients: each feature's entries in instance order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// Features that occur, ascending.
    pub(crate) features: Vec<u32>,
    /// Where each one's entries begin; one more than `features`.
    pub(crate) ptr: Vec<u32>,
    /// Instances.
    pub(crate) rows: Vec<u32>,
    /// Values.
    pub(crate) values: Vec<f32>,
    keys: Vec<u64>,
    row_of: Vec<u32>,
}

impl Batch {
    /// Empties the batch for so many rows.
    fn begin(&mut self, len: usize, width: usize) {
        (self.len, self.width) = (len, width);
        self.target_ptr.clear();
        self.target_ptr.resize(self.len + 1, 0);
        self.targets.clear();
        self.indptr.clear();
        self.indptr.push(0);
        self.features.clear();
        self.values.clear();
        self.dense.clear();
    }

    /// Copies one query, to answer it.
    ///
    /// # Panics
    /// If a feature is not below `n_features`.
    pub fn fill_one(&mut self, query: SparseRow<'_>, n_features: usize) {
        assert!(query.indices.iter().all(|&f| (f as usize) < n_features), "a feature is not below {n_features}");
        self.begin(1, n_features);
        self.features.extend_from_slice(query.indices);
        self.values.extend_from_slice(query.values);
        self.indptr.push(self.features.len() as u32);
    }

    /// Copies the features of the instances `rows`, to answer them.
    ///
    /// # Panics
    /// If a row is not there.
    pub fn fill_features(&mut self, features: Features<'_>, rows: impl ExactSizeIterator<Item = usize>) {
        self.begin(rows.len(), features.width());
        for i in rows {
            match features {
                Features::Sparse(rows) => {
                    let row = rows.row(i);
                    self.features.extend_from_slice(row.indices);
                    self.values.extend_from_slice(row.values);
                }
                Features::Dense(rows) => self.dense.extend_from_slice(rows.row(i)),
            }
            self.indptr.push(self.features.len() as u32);
        }
    }

    /// Copies the instances `rows` with their targets and groups their entries by feature, to train on them.
    ///
    /// *Cost*: O(nnz log nnz) of the rows.
    ///
    /// # Panics
    /// If a row is not there.
    pub fn fill(&mut self, examples: &Examples<'_>, rows: &[u32]) {
        self.fill_features(examples.features, rows.iter().map(|&i| i as usize));
        for (at, &i) in rows.iter().enumerate() {
            self.targets.extend_from_slice(examples.targets.row(i as usize));
            self.target_ptr[at + 1] = self.targets.len() as u32;
        }
        self.groups.build(&self.indptr, &self.features, &self.values);
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of features, or of values of a vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The targets of all instances.
    pub fn targets(&self) -> Targets<'_> {
        Targets { ptr: &self.target_ptr, outputs: &self.targets }
    }

    /// Features of instance `i` and their values.
    pub(crate) fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.indptr[i] as usize..self.indptr[i + 1] as usize;
        (&self.features[range.clone()], &self.values[range])
    }
}

impl Groups {
    fn build(&mut self, indptr: &[u32], features: &[u32], values: &[f32]) {
        self.keys.clear();
        self.keys.extend(features.iter().zip(0u64..).map(|(&f, at)| u64::from(f) << 32 | at));
        self.keys.sort_unstable();
        self.features.clear();
        self.ptr.clear();
        self.rows.clear();
        self.values.clear();
        self.row_of.clear();
        for (i, range) in indptr.windows(2).enumerate() {
            self.row_of.resize(range[1] as usize, i as u32);
        }
        for (position, &key) in self.keys.iter().enumerate() {
            let (feature, at) = ((key >> 32) as u32, key as u32 as usize);
            if self.features.last() != Some(&feature) {
                self.features.push(feature);
                self.ptr.push(position as u32);
            }
            self.rows.push(self.row_of[at]);
            self.values.push(values[at]);
        }
        self.ptr.push(self.keys.len() as u32);
    }

    /// Instances and values of the feature at `position`.
    pub(crate) fn entries(&self, position: usize) -> (&[u32], &[f32]) {
        let range = self.ptr[position] as usize..self.ptr[position + 1] as usize;
        (&self.rows[range.clone()], &self.values[range])
    }
}

/// The outputs that are true of each instance of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a> {
    ptr: &'a [u32],
    outputs: &'a [u32],
}

impl<'a> Targets<'a> {
    /// Rows that someone else made: ascending and unique, `ptr` one longer than there are rows.
    #[cfg(test)]
    pub(crate) fn new(ptr: &'a [u32], outputs: &'a [u32]) -> Self {
        Self { ptr, outputs }
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.ptr.len() - 1
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True outputs of instance `i`, ascending and unique.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> &'a [u32] {
        &self.outputs[self.ptr[i] as usize..self.ptr[i + 1] as usize]
    }
}
