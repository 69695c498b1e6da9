//! Labels grouped by their two codewords, and draws from the softmax of the codewords' logits.

use crate::sampler::error::SampleError;
use crate::sampler::subset::subset;
use crate::sampler::{LabelWeights, Queries};
use rayon::prelude::*;
use xc_ann::kmeans::{Codebook, CodebookScratch};
use xc_dense::Start;
use xc_hash::stream::Stream;

/// Labels that one task assigns.
const BLOCK: usize = 4096;
/// Number of rows that codewords are learned from, per codeword.
const ROWS_PER_WORD: usize = 256;

/// Cells of labels: cell `a m + b` has the labels whose first half is nearest to word a, and whose
/// second half, with the bias, is nearest to word b.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Index {
    pub(super) books: [Codebook; 2],
    /// Cell of each label.
    pub(super) cells: Vec<u16>,
    starts: Vec<u32>,
    labels: Vec<u32>,
    /// Labels of cell (a, b) at `b m + a`.
    counts: Vec<f64>,
}

impl Index {
    /// An index without labels in cells yet; `width` is that of the vectors.
    pub(super) fn empty(m: usize, width: usize, n_labels: usize) -> Self {
        let first = (width + 1).div_ceil(2);
        let books = [Codebook::zeros(m, first), Codebook::zeros(m, width + 1 - first)];
        Self {
            books,
            cells: vec![0; n_labels],
            starts: vec![0; m * m + 1],
            labels: vec![0; n_labels],
            counts: vec![0.0; m * m],
        }
    }

    /// Number of codewords of each half.
    pub(super) fn m(&self) -> usize {
        self.books[0].len()
    }

    /// Learns codewords, from new initial values if `begins` and from the current ones otherwise,
    /// and assigns all labels.
    pub(super) fn learn(
        &mut self,
        weights: LabelWeights<'_>,
        begins: bool,
        iterations: u32,
        stream: u64,
    ) -> Result<(), SampleError> {
        let (mut random, mut sample) = (Stream::new(stream), Vec::new());
        subset(self.cells.len() as u32, ROWS_PER_WORD * self.m(), &mut random, &mut sample);
        let mut halves = <[Vec<f32>; 2]>::default();
        self.halves(weights, sample.into_iter(), &mut halves)?;
        for (book, rows) in self.books.iter_mut().zip(&halves) {
            if begins {
                book.begin(rows, &mut random);
            }
            book.learn(rows, iterations, &mut random);
        }
        let mut cells = std::mem::take(&mut self.cells);
        let buffers = <([Vec<f32>; 2], CodebookScratch)>::default;
        let assigned =
            cells.par_chunks_mut(BLOCK).enumerate().try_for_each_init(buffers, |(halves, scratch), (at, cells)| {
                let first = (at * BLOCK) as u32;
                self.halves(weights, first..first + cells.len() as u32, halves)?;
                let m = self.m();
                self.books[0].nearest(&halves[0], scratch, |at, word| cells[at] = (word * m) as u16);
                self.books[1].nearest(&halves[1], scratch, |at, word| cells[at] += word as u16);
                Ok(())
            });
        self.cells = cells;
        assigned?;
        self.sort();
        Ok(())
    }

    /// Both halves of some labels' rows.
    fn halves(
        &self,
        weights: LabelWeights<'_>,
        labels: impl Iterator<Item = u32>,
        to: &mut [Vec<f32>; 2],
    ) -> Result<(), SampleError> {
        let (first, mut buffer) = (self.books[0].width(), Vec::new());
        to.iter_mut().for_each(Vec::clear);
        for label in labels {
            let (row, bias) = (weights.row(label, &mut buffer), weights.bias(label));
            if !(bias.is_finite() && row.iter().all(|v| v.is_finite())) {
                return Err(SampleError::Weights { label });
            }
            to[0].extend_from_slice(&row[..first]);
            to[1].extend_from_slice(&row[first..]);
            to[1].push(bias);
        }
        Ok(())
    }

    /// Sorts labels into their cells, ascending in each.
    pub(super) fn sort(&mut self) {
        let m = self.m();
        self.starts.fill(0);
        self.cells.iter().for_each(|&cell| self.starts[cell as usize + 1] += 1);
        for cell in 0..m * m {
            self.counts[cell % m * m + cell / m] = f64::from(self.starts[cell + 1]);
            self.starts[cell + 1] += self.starts[cell];
        }
        let mut next = self.starts.clone();
        for (label, &cell) in self.cells.iter().enumerate() {
            let at = &mut next[cell as usize];
            self.labels[*at as usize] = label as u32;
            *at += 1;
        }
    }

    /// Exponentials of the codewords' logits for each instance, relative to its largest logit of
    /// the same half.
    pub(super) fn score(&self, queries: Queries<'_>) -> Result<Scores, SampleError> {
        let (m, first, n) = (self.m(), self.books[0].width(), queries.vectors.len());
        let mut halves = <[Vec<f32>; 2]>::default();
        for row in queries.vectors.iter() {
            halves[0].extend_from_slice(&row[..first]);
            halves[1].extend_from_slice(&row[first..]);
            halves[1].push(1.0);
        }
        let (mut scores, mut scratch) =
            (Scores { m, e: Default::default(), totals: vec![0.0; n] }, xc_dense::MatmulScratch::default());
        let mut products = Vec::new();
        for (side, half) in halves.iter().enumerate() {
            self.books[side].products(half, Start::Zero, &mut products, &mut scratch);
            if let Some(at) = products.iter().position(|v| !v.is_finite()) {
                return Err(SampleError::Vector { instance: queries.instances[at / m] });
            }
            scores.e[side].reserve(n * m);
            for products in products.chunks_exact(m) {
                let largest = products.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
                scores.e[side].extend(products.iter().map(|v| f64::from(v - largest).exp()));
            }
        }
        let Scores { e: [first, second], totals, .. } = &mut scores;
        let rows = first.par_chunks_exact_mut(m).zip(second.par_chunks_exact_mut(m)).zip(totals);
        rows.for_each(|((a, b), total)| {
            *total = self.total(a, b);
            if *total <= 0.0 {
                // The logits of every cell with a label are too far below the largest ones: draw
                // uniformly.
                a.fill(1.0);
                b.fill(1.0);
                *total = -(self.cells.len() as f64);
            }
        });
        Ok(scores)
    }

    fn total(&self, a: &[f64], b: &[f64]) -> f64 {
        let mut sums = vec![0.0; a.len()];
        for (counts, b) in self.counts.chunks_exact(a.len()).zip(b) {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count * b);
        }
        sums.iter().zip(a).map(|(sum, a)| sum * a).sum()
    }
}

/// The distributions that the labels of a batch are drawn from.
#[derive(Debug)]
pub(super) struct Scores {
    m: usize,
    e: [Vec<f64>; 2],
    /// Sum over all labels for each instance; negative if its draws are uniform.
    totals: Vec<f64>,
}

impl Scores {
    pub(super) fn len(&self) -> usize {
        self.totals.len()
    }

    /// Number of instances whose draws are uniform.
    pub(super) fn n_uniform(&self) -> u64 {
        self.totals.iter().filter(|&&total| total < 0.0).count() as u64
    }

    /// Probability that a draw of the instance at `place` is a given label of `cell`.
    pub(super) fn chance(&self, place: usize, cell: u16) -> f64 {
        let (a, b) = (cell as usize / self.m, cell as usize % self.m);
        self.e[0][place * self.m + a] * self.e[1][place * self.m + b] / self.totals[place].abs()
    }
}

/// Prefix sums of one instance.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// At `b m + a`: the sum over the labels of cells (a, 0) to (a, b) of the exponentials of their
    /// second words.
    within: Vec<f64>,
    /// By first word: the sum over all cells up to it.
    across: Vec<f64>,
}

impl Sums {
    pub(super) fn fill(&mut self, index: &Index, scores: &Scores, place: usize) {
        let m = scores.m;
        let [a, b] = [&scores.e[0][place * m..][..m], &scores.e[1][place * m..][..m]];
        self.within.resize(m * m, 0.0);
        for at in 0..m {
            let (before, row) = self.within.split_at_mut(at * m);
            let (row, counts) = (&mut row[..m], &index.counts[at * m..][..m]);
            match before.len().checked_sub(m) {
                None => row.iter_mut().zip(counts).for_each(|(sum, count)| *sum = count * b[at]),
                Some(from) => {
                    let sums = row.iter_mut().zip(counts).zip(&before[from..]);
                    sums.for_each(|((sum, count), before)| *sum = before + count * b[at]);
                }
            }
        }
        let mut sum = 0.0;
        self.across.clear();
        self.across.extend(self.within[(m - 1) * m..].iter().zip(a).map(|(within, a)| {
            sum += within * a;
            sum
        }));
    }

    /// Draws a label: two binary searches find the cell, then a label of it is drawn uniformly.
    pub(super) fn draw(&self, index: &Index, random: &mut Stream) -> u32 {
        let m = self.across.len();
        let a = choose(random.unit() * self.across[m - 1], m, |at| self.across[at]);
        let b = choose(random.unit() * self.within[(m - 1) * m + a], m, |at| self.within[at * m + a]);
        let cell = a * m + b;
        let (start, end) = (index.starts[cell], index.starts[cell + 1]);
        index.labels[(start + random.below(end - start)) as usize]
    }
}

/// The first of `n` ascending sums that is above a number. If rounding made the number as large as
/// the last sum: the first sum that is as large.
fn choose(number: f64, n: usize, sum: impl Fn(usize) -> f64) -> usize {
    let first = |is_before: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = (low + high) / 2;
            if is_before(sum(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    };
    match first(&|sum| sum <= number) {
        at if at < n => at,
        _ => first(&|before| before < sum(n - 1)),
    }
}
