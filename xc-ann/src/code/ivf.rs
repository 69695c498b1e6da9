//! Cells: vertices that are near to each other, whose codes lie side by side.
//!
//! ```text
//!   query ─▶ means of all cells ─▶ the nearest cells ─▶ all codes of these, block by block ─▶ best
//! ```
//!
//! An inverted file (`[jegou2011product]`): k-means makes the cells, of the rows under L2, of rows
//! scaled to length 1 under the cosine, and of (row - mean) scaled to length 1 under inner products. A
//! code that lies next to the last one is compared several times as fast as one that an edge leads to
//! (bench/decisions/graph-search.md has the figures). So cells are faster than the graph if a query has
//! many answers, or answers that are near to it but not to each other.

use crate::code::codes::{Blocks, Codes, QueryCode, block_stride};
use crate::code::kmeans::Codebook;
use crate::code::product::{BLOCK, BLOCKS};
use crate::code::vertex_rows::{Items, LAST};
use crate::error::BuildError;
use crate::metric::Metric;
use crate::params::SCANNED;
use crate::search::best::{Best, nearer};
use rayon::prelude::*;
use std::collections::HashSet;
use xc_buffer::Buffer;
use xc_buffer::Cancel;
use xc_buffer::simd::Isa;
use xc_dense::DenseRows;
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::rows::normalise;

/// Rows of the sample that k-means learns from, for each cell.
const ROWS_PER_CELL: usize = 64;
/// Iterations of k-means when cells are made, and when they follow rows that moved.
const ITERATIONS: u32 = 8;
const AGAIN: u32 = 2;
/// Rows that are copied at a time for k-means.
const ROWS_AT_A_TIME: usize = 8192;

/// The vertices of a graph by cell.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// What vertices are assigned by.
    pub(crate) words: Buffer<f32>,
    /// Means of the rows of each cell, by which a search ranks cells.
    pub(crate) means: Blocks,
    /// Where the blocks of each cell begin, and where the last ones end.
    pub(crate) begins: Buffer<u32>,
    /// The vertex of each place of a block; [`LAST`] where there is none.
    pub(crate) vertices: Buffer<u32>,
    /// Their codes.
    pub(crate) blocks: Blocks,
}

/// What a search of cells works with.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellScratch {
    nearest: Best,
    order: Vec<(f32, u32)>,
}

/// The rows of a graph.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) rows: DenseRows<'a>,
    pub(crate) items: &'a Items,
    pub(crate) codes: &'a Codes,
}

impl Placed<'_> {
    /// Rows of vertices as k-means takes them, one after the other.
    fn copy(&self, vertices: &[u32]) -> Vec<f32> {
        let width = self.rows.width();
        let mut values = vec![0.0; vertices.len() * width];
        let mean = if self.codes.metric == Metric::InnerProduct { &self.codes.mean[..] } else { &[] };
        values.par_chunks_mut(width).zip(vertices).for_each(|(to, &vertex)| {
            to.copy_from_slice(self.rows.row(self.items.first()[vertex as usize] as usize));
            to.iter_mut().zip(mean).for_each(|(value, mean)| *value -= mean);
            if self.codes.metric != Metric::L2 {
                normalise(to);
            }
        });
        values
    }

    fn live(&self) -> Vec<u32> {
        (0..self.codes.len() as u32).filter(|&vertex| self.items.is_live(vertex)).collect()
    }
}

impl Cells {
    /// So many cells for `n` vertices, where nothing else is asked for; 0 where a scan of all is as fast.
    pub(crate) fn usual(n: usize) -> usize {
        if n <= SCANNED { 0 } else { 2 * n.isqrt() }
    }

    /// Cells of all vertices that have rows; nothing where there are none.
    ///
    /// # Errors
    /// It was cancelled.
    pub(crate) fn new(
        placed: Placed<'_>,
        n_cells: usize,
        seed: u64,
        cancel: &dyn Cancel,
    ) -> Result<Option<Self>, BuildError> {
        let live = placed.live();
        let n_cells = n_cells.min(live.len());
        if n_cells == 0 {
            return Ok(None);
        }
        let mut random = Stream::new(name(seed, Purpose::Init, &[2]));
        let sample = placed.copy(&sample(&live, n_cells, &mut random));
        let mut book = Codebook::zeros(n_cells, placed.rows.width());
        book.begin(&sample, &mut random);
        book.learn_unless(&sample, ITERATIONS, &mut random, cancel).ok_or(BuildError::Cancelled)?;
        Self::of(placed, &live, &book, cancel).map(Some)
    }

    /// The same cells after rows moved: their words follow.
    ///
    /// # Errors
    /// It was cancelled.
    pub(crate) fn follow(
        &self,
        placed: Placed<'_>,
        seed: u64,
        cancel: &dyn Cancel,
    ) -> Result<Option<Self>, BuildError> {
        let live = placed.live();
        if live.is_empty() {
            return Ok(None);
        }
        let mut random = Stream::new(name(seed, Purpose::Init, &[3]));
        let mut book = self.book(placed.rows.width());
        let sample = placed.copy(&sample(&live, book.len(), &mut random));
        book.learn_unless(&sample, AGAIN, &mut random, cancel).ok_or(BuildError::Cancelled)?;
        Self::of(placed, &live, &book, cancel).map(Some)
    }

    /// The same words, after vertices came or their rows changed: `new` ones, and those in cells.
    pub(crate) fn add(&self, placed: Placed<'_>, new: &[u32]) -> Self {
        let book = self.book(placed.rows.width());
        let mut cell_of = vec![LAST; placed.codes.len()];
        for cell in 0..self.len() {
            let vertices = self.places(cell).filter(|&&vertex| vertex != LAST);
            vertices.for_each(|&vertex| cell_of[vertex as usize] = cell as u32);
        }
        for (&vertex, cell) in new.iter().zip(book.assign(&placed.copy(new))) {
            cell_of[vertex as usize] = cell;
        }
        Self::laid_out(placed, &book, &cell_of)
    }

    /// Takes vertices out.
    pub(crate) fn remove(&mut self, is_gone: impl Fn(u32) -> bool) {
        let is_gone = |vertex: u32| vertex != LAST && is_gone(vertex);
        if self.vertices.iter().any(|&vertex| is_gone(vertex)) {
            let vertices = self.vertices.to_mut().iter_mut();
            vertices.filter(|vertex| is_gone(**vertex)).for_each(|vertex| *vertex = LAST);
        }
    }

    /// Copies the codes of some vertices, which stay in their cells.
    pub(crate) fn recode(&mut self, codes: &Codes, some: &HashSet<u32>) {
        let places = self.vertices.iter().enumerate().filter(|(_, vertex)| some.contains(vertex));
        self.blocks.set(codes, places.map(|(place, &vertex)| (place, vertex)));
    }

    fn of(placed: Placed<'_>, live: &[u32], book: &Codebook, cancel: &dyn Cancel) -> Result<Self, BuildError> {
        let mut cell_of = vec![LAST; placed.codes.len()];
        for some in live.chunks(ROWS_AT_A_TIME) {
            let cells = book.assign_unless(&placed.copy(some), cancel).ok_or(BuildError::Cancelled)?;
            some.iter().zip(cells).for_each(|(&vertex, cell)| cell_of[vertex as usize] = cell);
        }
        Ok(Self::laid_out(placed, book, &cell_of))
    }

    fn laid_out(placed: Placed<'_>, book: &Codebook, cell_of: &[u32]) -> Self {
        let (n_cells, width) = (book.len(), book.width());
        let mut members = vec![Vec::new(); n_cells];
        let vertices = (0..cell_of.len() as u32).filter(|&vertex| cell_of[vertex as usize] != LAST);
        vertices.for_each(|vertex| members[cell_of[vertex as usize] as usize].push(vertex));
        let (mut begins, mut places) = (vec![0], Vec::new());
        for members in &members {
            places.extend_from_slice(members);
            places.resize(places.len().next_multiple_of(BLOCK), LAST);
            begins.push((places.len() / BLOCK) as u32);
        }
        // Under inner products long rows count for more: the mean of rows, not of directions.
        let mean = |members: &Vec<u32>| {
            let mut sums = vec![0.0f64; width];
            for &vertex in members {
                let row = placed.rows.row(placed.items.first()[vertex as usize] as usize);
                sums.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
            }
            sums.iter().map(|sum| (sum / members.len().max(1) as f64) as f32).collect::<Vec<f32>>()
        };
        let means: Vec<f32> = match placed.codes.metric {
            Metric::Cosine => book.words().to_vec(),
            _ => members.par_iter().map(mean).collect::<Vec<_>>().concat(),
        };
        let mut mean_codes = Codes::new(placed.codes.metric, width, placed.codes.mean.to_vec());
        let numbers: Vec<u32> = (0..n_cells as u32).collect();
        mean_codes.encode(DenseRows::new(&means, width), &numbers);
        let mut numbers = numbers;
        numbers.resize(n_cells.next_multiple_of(BLOCK), LAST);
        Self {
            words: book.words().to_vec().into(),
            means: mean_codes.blocks(&numbers),
            begins: begins.into(),
            blocks: placed.codes.blocks(&places),
            vertices: places.into(),
        }
    }

    fn book(&self, width: usize) -> Codebook {
        Codebook::of(self.words.to_vec(), width)
    }

    /// Number of cells.
    pub(crate) fn len(&self) -> usize {
        self.begins.len() - 1
    }

    fn places(&self, cell: usize) -> impl Iterator<Item = &u32> {
        self.vertices[BLOCK * self.begins[cell] as usize..BLOCK * self.begins[cell + 1] as usize].iter()
    }

    /// The `n` nearest cells of a query, nearest first.
    pub(crate) fn nearest<'a>(
        &self,
        isa: Isa,
        query: &QueryCode,
        n: usize,
        CellScratch { nearest, order }: &'a mut CellScratch,
    ) -> &'a [(f32, u32)] {
        nearest.reset(n.clamp(1, self.len()));
        let last = self.len() as u32;
        self.means.compare(isa, query, 0..self.len().div_ceil(BLOCK), nearest, |place| {
            Some(place as u32).filter(|&cell| cell < last)
        });
        order.clear();
        order.extend(nearest.kept());
        order.sort_unstable_by(nearer);
        order
    }

    /// Asks memory for the beginning of a cell.
    pub(crate) fn prefetch(&self, cell: u32) {
        self.blocks.prefetch(self.begins[cell as usize] as usize);
    }

    /// Compares all vertices of a cell; says how many places that were.
    pub(crate) fn look(&self, isa: Isa, query: &QueryCode, cell: u32, best: &mut Best) -> u64 {
        let blocks = self.begins[cell as usize] as usize..self.begins[cell as usize + 1] as usize;
        let n = BLOCK * blocks.len();
        self.blocks
            .compare(isa, query, blocks, best, |place| Some(self.vertices[place]).filter(|&vertex| vertex != LAST));
        n as u64
    }

    /// Bytes of cells, about: half a block of each is empty.
    pub(crate) fn bytes(n: usize, n_cells: usize, width: usize) -> usize {
        let places = n + n_cells.min(n) * BLOCK / 2;
        places * (block_stride(width) + 12) + n_cells.min(n) * (block_stride(width) + 12 + 4 * width)
    }

    pub(crate) fn n_bytes(&self) -> usize {
        4 * (self.words.len() + self.begins.len() + self.vertices.len()) + self.means.n_bytes() + self.blocks.n_bytes()
    }
}

/// Vertices that k-means learns from, ascending.
fn sample(live: &[u32], n_cells: usize, random: &mut Stream) -> Vec<u32> {
    let mut some = live.to_vec();
    random.shuffle(&mut some);
    some.truncate(n_cells * ROWS_PER_CELL);
    some.sort_unstable();
    some
}

impl Blocks {
    /// Keeps the best of some blocks; `vertex` says whose code is at a place, if anybody's.
    #[inline(always)]
    fn compare(
        &self,
        isa: Isa,
        query: &QueryCode,
        blocks: std::ops::Range<usize>,
        best: &mut Best,
        vertex: impl Fn(usize) -> Option<u32>,
    ) {
        let (mut keys, mut first) = ([0.0; BLOCK * BLOCKS], blocks.start);
        while first < blocks.end {
            let some = first..blocks.end.min(first + BLOCKS);
            let mut near = self.keys(isa, query, some.clone(), best.worst(), &mut keys);
            while near != 0 {
                let at = near.trailing_zeros() as usize;
                near &= near - 1;
                if keys[at] <= best.worst()
                    && let Some(vertex) = vertex(BLOCK * first + at)
                {
                    best.push(isa, keys[at], vertex);
                }
            }
            first = some.end;
        }
    }
}

#[cfg(feature = "store")]
mod file {
    use super::Cells;
    use crate::code::codes::{Blocks, Codes, block_stride};
    use crate::code::product::{BLOCK, BLOCK_SIDES};
    use crate::code::vertex_rows::{Items, LAST};
    use crate::error::OpenGraphError;
    use xc_buffer::Buffer;
    use xc_store::{ArrayRef, Container, ContainerWriter, OpenError, WriteError};

    impl Cells {
        /// Adds the arrays of cells to a container.
        pub(crate) fn write(&self, width: usize, writer: &mut ContainerWriter) -> Result<(), WriteError> {
            writer.add("cell_words", ArrayRef::new(&self.words[..], &[self.len(), width]))?;
            writer.add("cell_begins", ArrayRef::new(&self.begins[..], &[self.begins.len()]))?;
            writer.add("cell_vertices", ArrayRef::new(&self.vertices[..], &[self.vertices.len()]))?;
            self.means.write(["cell_means", "cell_mean_sides"], writer)?;
            self.blocks.write(["cell_codes", "cell_sides"], writer)
        }

        /// What [`Cells::write`] added; searches do not panic, whatever the arrays hold.
        pub(crate) fn read(
            container: &Container,
            n_cells: usize,
            codes: &Codes,
            items: &Items,
        ) -> Result<Self, OpenGraphError> {
            let bad = |what| OpenGraphError::Graph { path: container.folder().to_owned(), what };
            if n_cells > codes.len() {
                return Err(bad("more cells than vertices"));
            }
            let words: Buffer<f32> = container.array_shaped("cell_words", &[n_cells, codes.width])?;
            let begins: Buffer<u32> = container.array_shaped("cell_begins", &[n_cells + 1])?;
            let n_blocks = begins[n_cells] as usize;
            if begins[0] != 0 || !begins.is_sorted() || n_blocks > codes.len() {
                return Err(bad("cells whose blocks do not ascend"));
            }
            let vertices: Buffer<u32> = container.array_shaped("cell_vertices", &[BLOCK * n_blocks])?;
            let mut seen = vec![false; codes.len()];
            for &vertex in vertices.iter().filter(|vertex| **vertex != LAST) {
                let at = vertex as usize;
                if at >= seen.len() || !items.is_live(vertex) || std::mem::replace(&mut seen[at], true) {
                    return Err(bad("a vertex of a cell that is not there, deleted or in two"));
                }
            }
            let means = Blocks::read(["cell_means", "cell_mean_sides"], container, n_cells.div_ceil(BLOCK), codes)?;
            let blocks = Blocks::read(["cell_codes", "cell_sides"], container, n_blocks, codes)?;
            if words.iter().any(|v| !v.is_finite()) || means.sides.iter().chain(&blocks.sides[..]).any(|v| v.is_nan()) {
                return Err(bad("a word, norm or scale of a cell that is no number"));
            }
            Ok(Self { words, means, begins, vertices, blocks })
        }
    }

    impl Blocks {
        fn write(&self, [bytes, sides]: [&str; 2], writer: &mut ContainerWriter) -> Result<(), WriteError> {
            let n = self.sides.len() / BLOCK_SIDES;
            writer.add(bytes, ArrayRef::new(&self.bytes[..], &[n, self.bytes.len() / n.max(1)]))?;
            writer.add(sides, ArrayRef::new(&self.sides[..], &[n, BLOCK_SIDES]))
        }

        fn read([bytes, sides]: [&str; 2], container: &Container, n: usize, codes: &Codes) -> Result<Self, OpenError> {
            let stride = block_stride(codes.width);
            Ok(Self {
                stride,
                bytes: container.array_shaped(bytes, &[n, BLOCK * stride])?,
                sides: container.array_shaped(sides, &[n, BLOCK_SIDES])?,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::best::rerank_candidates;
    use crate::search::rerank::{Nearest, Scorer};
    use crate::{BuildParams, Graph, SearchParams, SearchScratch, Silent};
    use proptest::prelude::*;
    use xc_sparse::rank::Scored;

    /// Of all vertices those whose codes are nearest to that of the query, ranked by their rows.
    fn of_all(graph: &Graph, rows: DenseRows<'_>, query: &[f32], k: usize) -> Vec<Scored> {
        let (mut code, mut keys) = (QueryCode::default(), Vec::new());
        graph.codes.query_of_blocks(query, &mut Vec::new(), &mut code);
        let live: Vec<u32> = (0..graph.codes.len() as u32).filter(|&vertex| graph.items.is_live(vertex)).collect();
        graph.codes.keys(Isa::current(), &code, &live, &mut keys);
        let mut near: Vec<(f32, u32)> = keys.into_iter().zip(live).collect();
        near.sort_by(nearer);
        let (scorer, mut best) = (Scorer::new(graph.codes.metric, query), Nearest::default());
        best.reset(k);
        for (_, vertex) in near.into_iter().take(rerank_candidates(k)) {
            graph.items.rows(vertex).for_each(|row| best.push(row, scorer.score(rows.row(row as usize))));
        }
        best.sorted().to_vec()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn all_cells_find_the_nearest_codes_of_all(
            metric in 0usize..3, n in prop_oneof![1usize..40, 100usize..300], columns in 1usize..70, cells in 1usize..50,
            copies in 0usize..3, seed: u64,
        ) {
            let (mut stream, mut values) = (Stream::new(seed), vec![0.0; n * columns]);
            stream.fill_uniform(1.0, &mut values);
            // Rows that equal the first one.
            (0..n / 3 * copies.min(1)).for_each(|row| values.copy_within(..columns, row * columns));
            let (rows, cells) = (DenseRows::new(&values, columns), Some(cells));
            let params = BuildParams { cells, passes: 1, build_width: 20, max_degree: 8, ..BuildParams::new(Metric::ALL[metric]) };
            let mut graph = Graph::build(rows, &params, &Silent).unwrap();
            graph.delete(&(0..n as u32).filter(|row| copies == 2 && row % 5 == 2).collect::<Vec<_>>());
            let (mut scratch, mut found, mut query) = (SearchScratch::default(), Vec::new(), vec![0.0; columns]);
            for k in [1, 10, 40, 600] {
                stream.fill_uniform(1.0, &mut query);
                let all = SearchParams::top(k).with_cells(graph.n_cells());
                graph.search(rows, &query, all, None, &mut scratch, &mut found).unwrap();
                prop_assert_eq!(&found, &of_all(&graph, rows, &query, k), "{}", k);
            }
        }
    }
}
