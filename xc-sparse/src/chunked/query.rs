//! Queries in the form that products read.

use super::SlotMap;
use super::level::{ChunkView, ChunkedView};
use crate::rows::SparseRow;

/// A query with the image of each of its features under a tree's slot map.
#[derive(Clone, Copy, Debug)]
pub struct QueryView<'a> {
    /// Features, ascending and unique, below the number of features of the level.
    pub(crate) indices: &'a [u32],
    /// Their values.
    pub(crate) values: &'a [f32],
    /// Their images under the slot map.
    pub(crate) slots: &'a [u32],
    /// The slot map itself: the query fits levels that share it, and no others.
    map: &'a [u32],
}

impl QueryView<'_> {
    /// Number of features of the query.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// # Panics
    /// If the query was prepared for another slot map than the level's.
    #[inline(always)]
    pub(crate) fn expect_fits(&self, level: &ChunkedView<'_>) {
        let (map, expected) = (self.map, level.slot_map);
        assert!(
            std::ptr::eq(map, expected),
            "the query was prepared for another slot map, of {} features, than the level's, of {}",
            map.len(),
            expected.len()
        );
    }
}

/// Buffer for the part of a query that is computed once per tree.
#[derive(Clone, Debug, Default)]
pub struct ChunkQuery {
    slots: Vec<u32>,
}

impl ChunkQuery {
    /// Prepares a query for the levels that share `slot_map`. Features at or above the map's length
    /// cannot match anything and are left out (they can only be at the end of the row).
    ///
    /// # Panics
    /// If the row's features are not ascending, or a value is not finite: see
    /// [`SparseRow::from_checked`].
    pub fn prepare<'a>(&'a mut self, row: SparseRow<'a>, slot_map: &'a SlotMap) -> QueryView<'a> {
        if let Err(error) = row.check() {
            panic!("{error}");
        }
        let slot_map = slot_map.as_slice();
        let n = row.indices().partition_point(|&f| (f as usize) < slot_map.len());
        self.slots.clear();
        self.slots.extend(row.indices()[..n].iter().map(|&f| slot_map[f as usize]));
        QueryView { indices: &row.indices()[..n], values: &row.values()[..n], slots: &self.slots, map: slot_map }
    }
}

/// Row of each feature of one chunk, for the dense lookup iterator.
///
/// # Invariants
/// Between [`DensePositions::load`] and [`DensePositions::clear`] an entry is a row number plus 1, or 0
/// for "no row"; otherwise every entry is 0.
#[derive(Clone, Debug, Default)]
pub struct DensePositions {
    row_plus_one: Vec<u32>,
    // True between the two, and after a panic there.
    is_loaded: bool,
}

impl DensePositions {
    /// Allocates space for `n_features` features. *Cost*: O(`n_features`) the first time.
    pub fn reserve(&mut self, n_features: usize) {
        if self.row_plus_one.len() < n_features {
            self.row_plus_one.resize(n_features, 0);
        }
    }

    /// Takes back what a panic between [`DensePositions::load`] and [`DensePositions::clear`] left.
    pub(crate) fn reset(&mut self) {
        if self.is_loaded {
            self.row_plus_one.fill(0);
            self.is_loaded = false;
        }
    }

    /// Scatters the rows of a chunk. *Cost*: O(rows).
    ///
    /// # Panics
    /// If there is no space for a feature of the chunk.
    pub fn load(&mut self, chunk: &ChunkView<'_>) {
        self.is_loaded = true;
        for row in 0..chunk.n_rows() {
            self.row_plus_one[chunk.feature(row) as usize] = row as u32 + 1;
        }
    }

    /// Removes what [`DensePositions::load`] wrote.
    pub fn clear(&mut self, chunk: &ChunkView<'_>) {
        for row in 0..chunk.n_rows() {
            self.row_plus_one[chunk.feature(row) as usize] = 0;
        }
        self.is_loaded = false;
    }

    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.row_plus_one
    }
}
