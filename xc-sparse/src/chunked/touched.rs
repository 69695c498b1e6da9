//! The memory that products read: the floor of their time.

use super::iterate::{IteratorChoice, IteratorKind, choose};
use super::level::{ChunkView, ChunkedView};
use super::query::QueryView;
use std::collections::HashSet;
use xc_buffer::FloatSlice;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Counts of steps, and the distinct cache lines of the level's arrays that the steps read.
///
/// The time that the machine needs for this many lines, divided by the time of a product, tells how much
/// can be gained. The query, the results and the positions of the dense look-up are not counted.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    lines: HashSet<usize>,
    /// Query features looked up, summed over the chunks visited.
    pub probes: u64,
    /// Rows found.
    pub rows: u64,
    /// Weights multiplied.
    pub weights: u64,
}

impl Touched {
    /// Distinct cache lines so far.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Adds the products of one query with the children of one parent. *Cost*: a hash insertion per
    /// line.
    ///
    /// # Panics
    /// If the parent is out of range.
    pub fn add(&mut self, level: &ChunkedView<'_>, query: &QueryView<'_>, parent: u32, choice: IteratorChoice) {
        self.array(level.part_ptr, parent as usize, 2);
        for number in level.parts(parent as usize) {
            self.array(level.records, number, 2);
            let chunk = level.chunk(number);
            self.array(level.bias, chunk.first_child as usize, chunk.width());
            self.probes += query.nnz() as u64;
            match choose(choice, query.nnz(), chunk.n_rows(), 1) {
                IteratorKind::Hashed => self.directory(level, &chunk, query),
                IteratorKind::Galloping => self.bisections(&chunk, query),
                // Both read every key.
                IteratorKind::Marching | IteratorKind::Lookup => self.array(chunk.headers, 0, chunk.headers.len()),
            }
            self.matches(level, &chunk, query);
        }
    }

    fn array<T>(&mut self, array: &[T], at: usize, n: usize) {
        let size = size_of::<T>();
        let start = array.as_ptr() as usize + at * size;
        self.lines.extend((start / LINE..(start + n * size).div_ceil(LINE)).filter(|_| n > 0));
    }

    fn directory(&mut self, level: &ChunkedView<'_>, chunk: &ChunkView<'_>, query: &QueryView<'_>) {
        if chunk.n_rows() == 0 {
            return;
        }
        for &feature in query.indices {
            let slot = super::directory::slot(feature, level.slot_map, chunk.n_slots, level.n_features());
            self.array(chunk.words, (slot / super::directory::WORD) as usize, 1);
        }
    }

    /// The keys that a binary search for each feature, from the place of the last one on, compares.
    fn bisections(&mut self, chunk: &ChunkView<'_>, query: &QueryView<'_>) {
        if chunk.n_rows() < query.nnz() {
            return self.array(chunk.headers, 0, chunk.headers.len());
        }
        let mut low = 0;
        for &feature in query.indices {
            let mut high = chunk.n_rows();
            while low < high {
                let middle = low + (high - low) / 2;
                self.array(chunk.headers, middle * chunk.stride as usize, 1);
                if chunk.feature(middle) < feature {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
        }
    }

    fn matches(&mut self, level: &ChunkedView<'_>, chunk: &ChunkView<'_>, query: &QueryView<'_>) {
        let mut row = 0;
        for &feature in query.indices {
            while row < chunk.n_rows() && chunk.feature(row) < feature {
                row += 1;
            }
            if row == chunk.n_rows() || chunk.feature(row) != feature {
                continue;
            }
            let n = chunk.mask(row).iter().map(|m| m.count_ones() as usize).sum::<usize>();
            self.rows += 1;
            self.weights += n as u64;
            self.array(chunk.headers, row * chunk.stride as usize, chunk.stride as usize);
            let at = chunk.value_start + chunk.offset(row);
            match level.values {
                FloatSlice::F32(values) => self.array(values, at, n),
                FloatSlice::F16(values) => self.array(values, at, n),
                FloatSlice::Bf16(values) => self.array(values, at, n),
                _ => unreachable!("levels hold f32, f16 or bf16"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SparseRow;
    use crate::chunked::{ChunkQuery, ChunkRows, ChunkedLevel, SlotMap, count_features};
    use xc_buffer::dtype::DType;

    #[test]
    fn counts_are_those_of_a_chunk_made_by_hand() {
        // Feature f has f % 3 + 1 children, for even features below 2,000.
        let entries = (0..2000u32).step_by(2).flat_map(|f| (0..=f % 3).map(move |c| (f, c, 1.0))).collect();
        let rows = [ChunkRows::from_entries(3, entries, vec![0.0; 3]).unwrap()];
        let map = SlotMap::new(&count_features(&rows, 100_000));
        let level = ChunkedLevel::pack(&rows, &map, DType::F32).unwrap();
        let view = level.view();
        let mut slots = ChunkQuery::default();
        let row = SparseRow::from_checked(&[0, 1, 2, 1001, 1998], &[1.0; 5]);
        let query = slots.prepare(row, level.slot_map());
        let mut hashed = Touched::default();
        hashed.add(&view, &query, 0, IteratorChoice::Fixed(IteratorKind::Hashed));
        assert_eq!((hashed.probes, hashed.rows, hashed.weights), (5, 3, 1 + 3 + 1));
        // Pointers, record, bias; a word or two a probe, a header and values a row: each on one
        // line or two.
        assert!((6..=22).contains(&hashed.lines()), "{}", hashed.lines());
        let mut marching = Touched::default();
        marching.add(&view, &query, 0, IteratorChoice::Fixed(IteratorKind::Marching));
        let all = level.arrays().headers.len() * 4 / LINE;
        assert!(marching.lines() >= all && marching.lines() <= all + 20, "{}", marching.lines());
        let before = marching.lines();
        marching.add(&view, &query, 0, IteratorChoice::Fixed(IteratorKind::Marching));
        assert_eq!(marching.lines(), before, "lines are counted once");
    }
}
