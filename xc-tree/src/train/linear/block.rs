//! The instances of one parent, gathered once for all its children.
//!
//! ```text
//!   all features   0 1 2 3 4 5 6 7 ...          features  [2, 5, 6]      (ascending: local 0 1 2)
//!   instance 4         .     . x               row 0     0:x 2:x
//!   instance 9         .   x                   row 1     1:x
//! ```
//!
//! A parent with most of the instances (the root) reads the features where they are and renumbers
//! nothing.

use xc_buffer::simd::prefetch_start;
use xc_sparse::{CsrView, SparseRow};

/// Some instances, their features numbered `0..n_features`.
pub(crate) struct Block<'a> {
    source: Source<'a>,
    features: Option<Vec<u32>>,
    n_features: usize,
    /// Squared length of each instance, the bias input included.
    pub(crate) squares: Vec<f32>,
}

enum Source<'a> {
    Shared(Vec<SparseRow<'a>>),
    Own { indptr: Vec<usize>, indices: Vec<u32>, values: Vec<f32> },
}

/// Where features are numbered: one entry a feature, all free between uses. And the memory of blocks that are done with.
#[derive(Default)]
pub(crate) struct Numbering {
    number: Vec<u32>,
    spare: Spare,
}

#[derive(Default)]
struct Spare {
    features: Vec<u32>,
    squares: Vec<f32>,
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Numbering {
    /// Takes the memory of a block, for the next one.
    pub(crate) fn reuse(&mut self, block: Block<'_>) {
        if let (Source::Own { indptr, indices, values }, Some(features)) = (block.source, block.features) {
            self.spare = Spare { features, squares: block.squares, indptr, indices, values };
        }
    }

    /// Entries for `n` features, all free.
    fn of(&mut self, n: usize) -> &mut [u32] {
        if self.number.len() < n {
            self.number.resize(n, FREE);
        }
        &mut self.number
    }
}

/// No number yet.
const FREE: u32 = u32::MAX;

impl<'a> Block<'a> {
    /// Gathers `instances` of `all`.
    ///
    /// *Cost*: O(nnz of the instances + distinct features * log), memory the same; for half of all
    /// instances or more, O(instances).
    pub(crate) fn gather(all: CsrView<'a>, instances: &[u32], bias: f32, numbering: &mut Numbering) -> Self {
        let squares = instances
            .iter()
            .map(|&i| all.row(i as usize).values().iter().fold(bias * bias, |sum, v| sum + v * v))
            .collect();
        if instances.len() * 2 >= all.rows() {
            let source = Source::Shared(instances.iter().map(|&i| all.row(i as usize)).collect());
            return Self { source, features: None, n_features: all.cols(), squares };
        }
        let number = numbering.of(all.cols());
        let nnz = instances.iter().map(|&i| all.row(i as usize).nnz()).sum();
        let mut features = Vec::new();
        for &i in instances {
            for &f in all.row(i as usize).indices() {
                if number[f as usize] == FREE {
                    number[f as usize] = 0;
                    features.push(f);
                }
            }
        }
        features.sort_unstable();
        for (local, &f) in features.iter().enumerate() {
            number[f as usize] = local as u32;
        }
        let mut indptr = Vec::with_capacity(instances.len() + 1);
        indptr.push(0);
        let (mut indices, mut values) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
        for &i in instances {
            let row = all.row(i as usize);
            indices.extend(row.indices().iter().map(|&f| number[f as usize]));
            values.extend_from_slice(row.values());
            indptr.push(indices.len());
        }
        features.iter().for_each(|&f| number[f as usize] = FREE);
        let n_features = features.len();
        let source = Source::Own { indptr, indices, values };
        Self { source, features: Some(features), n_features, squares }
    }

    /// Gathers `instances` of `all` for a ranker that shares them with no other: features are numbered in the order in
    /// which they are met. `squares` has the squared length of every row of `all`, the bias input included.
    ///
    /// *Cost*: O(nnz of the instances), no allocation where memory is reused.
    pub(crate) fn gather_as_met(
        all: CsrView<'a>,
        instances: &[u32],
        squares: &[f32],
        numbering: &mut Numbering,
    ) -> Self {
        /// Rows that are asked for before they are read.
        const AHEAD: usize = 4;
        let mut spare = std::mem::take(&mut numbering.spare);
        let number = numbering.of(all.cols());
        let nnz: usize = instances.iter().map(|&i| all.range(i as usize).len()).sum();
        spare.squares.clear();
        spare.squares.extend(instances.iter().map(|&i| squares[i as usize]));
        let Spare { features, indptr, indices, values, .. } = &mut spare;
        // One place more: a feature is written there before it is known to be a new one.
        features.resize(nnz.min(all.cols()) + 1, 0);
        indptr.clear();
        indptr.push(0);
        indices.clear();
        indices.reserve(nnz);
        values.clear();
        values.reserve(nnz);
        let mut n_features = 0;
        for (at, &i) in instances.iter().enumerate() {
            if let Some(&ahead) = instances.get(at + AHEAD) {
                let range = all.range(ahead as usize);
                prefetch_start(&all.indices()[range.clone()]);
                prefetch_start(&all.data()[range]);
            }
            let row = all.row(i as usize);
            indices.extend(row.indices().iter().map(|&f| {
                let entry = &mut number[f as usize];
                let is_new = *entry == FREE;
                features[n_features] = f;
                let local = if is_new { n_features as u32 } else { *entry };
                *entry = local;
                n_features += usize::from(is_new);
                local
            }));
            values.extend_from_slice(row.values());
            indptr.push(indices.len());
        }
        features.truncate(n_features);
        features.iter().for_each(|&f| number[f as usize] = FREE);
        let Spare { features, squares, indptr, indices, values } = spare;
        Self { source: Source::Own { indptr, indices, values }, features: Some(features), n_features, squares }
    }

    /// Number of instances.
    pub(crate) fn len(&self) -> usize {
        self.squares.len()
    }

    /// Number of local features.
    pub(crate) fn n_features(&self) -> usize {
        self.n_features
    }

    /// Local features and values of instance `i`.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> (&[u32], &[f32]) {
        match &self.source {
            Source::Shared(rows) => (rows[i].indices(), rows[i].values()),
            Source::Own { indptr, indices, values } => {
                let range = indptr[i]..indptr[i + 1];
                (&indices[range.clone()], &values[range])
            }
        }
    }

    /// The feature behind a local number; ascending where [`Block::gather`] numbered them.
    pub(crate) fn feature(&self, local: u32) -> u32 {
        match &self.features {
            Some(features) => features[local as usize],
            None => local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_sparse::CsrMatrix;

    #[test]
    fn gathered_and_borrowed_rows_are_the_same_instances() {
        let x = CsrMatrix::from_checked(
            (5, 9),
            vec![0, 2, 2, 4, 6, 7],
            vec![1, 8, 3, 8, 0, 3, 7],
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        );
        let rows = x.view();
        let mut numbering = Numbering::default();
        let squares: Vec<f32> = rows.iter().map(|r| 4.0 + r.values().iter().map(|v| v * v).sum::<f32>()).collect();
        for instances in [vec![2u32, 0], vec![0, 1, 2, 3, 4], vec![4, 1], vec![], vec![1], vec![3, 4, 2, 0]] {
            let by_feature = Block::gather(rows, &instances, 2.0, &mut numbering);
            let as_met = Block::gather_as_met(rows, &instances, &squares, &mut numbering);
            for block in [&by_feature, &as_met] {
                assert_eq!(block.len(), instances.len());
                for (r, &i) in instances.iter().enumerate() {
                    let (local, values) = block.row(r);
                    let global: Vec<u32> = local.iter().map(|&l| block.feature(l)).collect();
                    assert_eq!((&global[..], values), (rows.row(i as usize).indices(), rows.row(i as usize).values()));
                    assert_eq!(block.squares[r], squares[i as usize]);
                    assert!(local.iter().all(|&l| (l as usize) < block.n_features()));
                }
            }
            assert!(as_met.n_features() <= by_feature.n_features());
            numbering.reuse(as_met);
        }
    }
}
