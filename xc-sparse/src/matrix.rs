//! Sparse rows of features and lists of labels.
//!
//! ```text
//!   instance 0   feature 2: 0.5   feature 7: 1.0        labels 4, 9
//!   instance 1   (none)                                 label  3
//!
//!   indptr  0 2 2      indices 2 7    values 0.5 1.0     indptr 0 2 3   labels 4 9 3
//! ```

use thiserror::Error;

/// Features of many instances: one compressed row an instance, `u32` feature ids ascending and unique.
///
/// *Shapes*: `rows()` = instances, `cols()` = features.
pub type CsrMatrix = sprs::CsMatI<f32, u32, usize>;
/// A borrowed [`CsrMatrix`], over memory or over a mapped file.
pub type CsrView<'a> = sprs::CsMatViewI<'a, f32, u32, usize>;
/// Weights by columns: one compressed column a label. The same type as [`CsrMatrix`] with CSC storage.
pub type CscMatrix = sprs::CsMatI<f32, u32, usize>;
/// A borrowed [`CscMatrix`].
pub type CscView<'a> = sprs::CsMatViewI<'a, f32, u32, usize>;

/// One instance: feature ids (ascending, unique) and their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseRow<'a> {
    /// Feature ids, ascending and unique.
    pub indices: &'a [u32],
    /// As many values as `indices`.
    pub values: &'a [f32],
}

/// Why two lists are no sparse row.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SparseRowError {
    /// Not as many values as features.
    #[error("{values} values for {features} features, expected as many")]
    Lengths {
        /// Number of features.
        features: usize,
        /// Number of values.
        values: usize,
    },
    /// A feature stands twice, or after a larger one.
    #[error("feature {next} stands after feature {previous}, expected ascending features without repetition")]
    Order {
        /// The feature before.
        previous: u32,
        /// The feature got.
        next: u32,
    },
}

impl<'a> SparseRow<'a> {
    /// Checks that the features ascend and are as many as the values. *Cost*: O(features).
    ///
    /// # Errors
    /// See [`SparseRowError`].
    pub fn try_new(indices: &'a [u32], values: &'a [f32]) -> Result<Self, SparseRowError> {
        let row = Self { indices, values };
        row.check()?;
        Ok(row)
    }

    /// Says what is wrong with a row that was put together by its fields.
    ///
    /// # Errors
    /// See [`SparseRowError`].
    pub fn check(&self) -> Result<(), SparseRowError> {
        if self.indices.len() != self.values.len() {
            return Err(SparseRowError::Lengths { features: self.indices.len(), values: self.values.len() });
        }
        // Without a branch for each, so that the compiler makes vectors of it.
        let ascends = self.indices.windows(2).fold(true, |all, w| all & (w[0] < w[1]));
        match self.indices.windows(2).find(|w| !ascends && w[0] >= w[1]) {
            Some(w) => Err(SparseRowError::Order { previous: w[0], next: w[1] }),
            None => Ok(()),
        }
    }

    /// Number of stored features.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Pairs (feature, value) in ascending order of the feature.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> + 'a {
        self.indices.iter().copied().zip(self.values.iter().copied())
    }
}

/// Plain slices behind a [`CsrView`]: what inner loops read.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    indptr: &'a [usize],
    indices: &'a [u32],
    values: &'a [f32],
    n_features: usize,
}

impl<'a> Rows<'a> {
    /// Opens a CSR view.
    ///
    /// # Panics
    /// If the matrix is stored by columns.
    pub fn new(matrix: CsrView<'a>) -> Self {
        assert!(matrix.is_csr(), "rows need a CSR matrix, met a CSC one");
        let n_features = matrix.cols();
        let (indptr, indices, values) = matrix.into_raw_storage();
        Self { indptr, indices, values, n_features }
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of features (the width of every row).
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Row pointers; the first is not 0 when the view is a slice of a larger matrix.
    pub fn indptr(&self) -> &'a [usize] {
        self.indptr
    }

    /// Number of stored values.
    pub fn nnz(&self) -> usize {
        self.indptr[self.len()] - self.indptr[0]
    }

    /// Instance `i`.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> SparseRow<'a> {
        // A slice of a matrix keeps the indptr of the whole: offsets count from its first entry.
        let base = self.indptr[0];
        let range = self.indptr[i] - base..self.indptr[i + 1] - base;
        SparseRow { indices: &self.indices[range.clone()], values: &self.values[range] }
    }
}

/// The labels of many instances: a list of label ids a row, ascending and unique.
///
/// # Invariants
/// `indptr` starts with 0, never falls and ends with `labels.len()`; every label is below `n_labels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRows {
    indptr: Vec<usize>,
    labels: Vec<u32>,
    n_labels: usize,
}

/// Why arrays are not label lists.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelRowsError {
    /// The row pointers do not describe the labels.
    #[error("row pointers must rise from 0 to {n_entries}; entry {at} breaks this")]
    Indptr {
        /// Position in the row pointers.
        at: usize,
        /// Number of label entries.
        n_entries: usize,
    },
    /// A label id is too large.
    #[error("row {row} has label {label}; there are only {n_labels} labels")]
    LabelOutOfRange {
        /// The row.
        row: usize,
        /// The label met.
        label: u32,
        /// The number of labels.
        n_labels: usize,
    },
    /// A row is not ascending and unique.
    #[error("row {row} is not ascending and unique at label {label}")]
    Order {
        /// The row.
        row: usize,
        /// The label met.
        label: u32,
    },
}

impl LabelRows {
    /// Checks the arrays and wraps them. *Cost*: O(rows + labels).
    pub fn try_new(indptr: Vec<usize>, labels: Vec<u32>, n_labels: usize) -> Result<Self, LabelRowsError> {
        let n_entries = labels.len();
        if indptr.first() != Some(&0) {
            return Err(LabelRowsError::Indptr { at: 0, n_entries });
        }
        if let Some(at) = indptr.windows(2).position(|w| w[0] > w[1]) {
            return Err(LabelRowsError::Indptr { at: at + 1, n_entries });
        }
        if indptr[indptr.len() - 1] != n_entries {
            return Err(LabelRowsError::Indptr { at: indptr.len() - 1, n_entries });
        }
        for row in 0..indptr.len() - 1 {
            let list = &labels[indptr[row]..indptr[row + 1]];
            if let Some(&label) = list.iter().find(|&&l| l as usize >= n_labels) {
                return Err(LabelRowsError::LabelOutOfRange { row, label, n_labels });
            }
            if let Some(w) = list.windows(2).find(|w| w[0] >= w[1]) {
                return Err(LabelRowsError::Order { row, label: w[1] });
            }
        }
        Ok(Self { indptr, labels, n_labels })
    }

    /// Sorts each list and drops repeated labels, then wraps.
    ///
    /// # Errors
    /// A label at or above `n_labels`.
    pub fn from_lists<I>(lists: I, n_labels: usize) -> Result<Self, LabelRowsError>
    where
        I: IntoIterator,
        I::Item: AsRef<[u32]>,
    {
        let (mut indptr, mut labels) = (vec![0], Vec::new());
        for list in lists {
            let start = labels.len();
            labels.extend_from_slice(list.as_ref());
            labels[start..].sort_unstable();
            let mut kept = start;
            for i in start..labels.len() {
                if i == start || labels[i] != labels[kept - 1] {
                    labels[kept] = labels[i];
                    kept += 1;
                }
            }
            labels.truncate(kept);
            indptr.push(labels.len());
        }
        Self::try_new(indptr, labels, n_labels)
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of labels that may occur.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Number of (instance, label) pairs.
    pub fn nnz(&self) -> usize {
        self.labels.len()
    }

    /// Row pointers, from 0.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// All label ids, row after row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Labels of instance `i`, ascending.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.labels[self.indptr[i]..self.indptr[i + 1]]
    }

    /// Every row in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.indptr.windows(2).map(|w| &self.labels[w[0]..w[1]])
    }

    /// The instances of each label: labels become rows and instances become entries.
    pub fn transpose(&self) -> LabelRows {
        let mut indptr = vec![0usize; self.n_labels + 1];
        for &label in &self.labels {
            indptr[label as usize + 1] += 1;
        }
        for i in 0..self.n_labels {
            indptr[i + 1] += indptr[i];
        }
        let mut next = indptr.clone();
        let mut instances = vec![0u32; self.labels.len()];
        for (i, list) in self.iter().enumerate() {
            for &label in list {
                instances[next[label as usize]] = i as u32;
                next[label as usize] += 1;
            }
        }
        LabelRows { indptr, labels: instances, n_labels: self.len() }
    }

    /// The same lists where `n_labels` is at least as large as before.
    ///
    /// # Panics
    /// If `n_labels` would cut labels off.
    pub fn with_n_labels(mut self, n_labels: usize) -> Self {
        assert!(n_labels >= self.n_labels, "{n_labels} labels asked, {} present", self.n_labels);
        self.n_labels = n_labels;
        self
    }
}

/// Instances with features and labels, and the labels' names where the source gave some.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Features, one row an instance.
    pub features: CsrMatrix,
    /// Labels, one list an instance; as many rows as `features`.
    pub labels: LabelRows,
    /// Name of each label, when the source named them.
    pub label_names: Option<Vec<String>>,
}
