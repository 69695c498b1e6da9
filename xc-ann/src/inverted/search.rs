//! Queries of an inverted index.

use super::add::{add_list, count_at_least, each_at_least};
use super::{InvertedIndex, square};
use crate::code::vertex_rows::is_beyond;
use crate::error::QueryError;
use crate::metric::Metric;
use crate::search::filter::Filter;
use crate::search::parts::in_parts;
use crate::search::rerank::{Nearest, cosine};
use xc_sparse::rank::{RankedBatch, Scored, TopK};
use xc_sparse::rows::SparseRowError;
use xc_sparse::{CsrView, SparseRow};

/// Queries of a task of a batch.
const QUERIES_PER_TASK: usize = 16;
/// Reading a sum in order is cheaper than adding to one out of order, by this.
const IN_ORDER: u64 = 8;
/// A sum of no products: no sum with a product but that of nothing is.
const UNTOUCHED: f32 = -0.0;
/// Where scores may be as large as this, products that a float rounds to nothing change none.
const LEAST_TRACE: f64 = 1e-30;

/// What a thread searches with.
#[derive(Clone, Debug, Default)]
pub struct InvertedScratch {
    sums: Vec<f32>,
    /// The query by column; 0 between searches.
    query: Vec<f32>,
    terms: Vec<Term>,
    best: TopK,
    nearest: Nearest,
}

/// What a search read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SparseEffort {
    /// Weights of lists that were added.
    pub added: u64,
    /// Weights of the query's lists that were left.
    pub left: u64,
    /// Rows scored from their own values.
    pub exact: u64,
}

impl std::ops::AddAssign for SparseEffort {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.left += other.left;
        self.exact += other.exact;
    }
}

/// A column of the query.
#[derive(Clone, Copy, Debug)]
struct Term {
    column: u32,
    factor: f32,
    /// The least and the most that it adds to a sum.
    least: f64,
    most: f64,
    len: u64,
}

impl InvertedIndex {
    /// The `k` best rows of a query, best first, of equal scores the lower row: those of a comparison with all
    /// rows. A row that shares no column with the query has an inner product of 0 and may be an answer; under
    /// the cosine a row of zeros is none, and a query of zeros has none.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn nearest(
        &self,
        query: SparseRow<'_>,
        k: usize,
        scratch: &mut InvertedScratch,
    ) -> Result<Vec<Scored>, QueryError> {
        let mut out = Vec::new();
        self.search(query, k, None, scratch, &mut out)?;
        Ok(out)
    }

    /// [`InvertedIndex::nearest`] among the rows that pass a filter.
    ///
    /// *Cost*: a pass over all sums, and the weights of the query's columns but for those of long lists that
    /// change nothing.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn search(
        &self,
        query: SparseRow<'_>,
        k: usize,
        filter: Option<&Filter<'_>>,
        scratch: &mut InvertedScratch,
        out: &mut Vec<Scored>,
    ) -> Result<SparseEffort, QueryError> {
        let effort = self.answer(0, query, k, filter, scratch)?;
        out.clear();
        out.extend_from_slice(scratch.nearest.sorted());
        Ok(effort)
    }

    /// [`InvertedIndex::search`] for many queries, which the ambient threads share.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn search_batch(
        &self,
        queries: CsrView<'_>,
        k: usize,
        filter: Option<&Filter<'_>>,
    ) -> Result<(RankedBatch, SparseEffort), QueryError> {
        if queries.cols() != self.n_columns {
            return Err(QueryError::Width { found: queries.cols(), expected: self.n_columns });
        }
        in_parts(queries.rows(), QUERIES_PER_TASK, |scratch: &mut InvertedScratch, range| {
            let (mut found, mut effort) = (RankedBatch::new(), SparseEffort::default());
            for query in range {
                effort += self.answer(query, queries.row(query), k, filter, scratch)?;
                found.push_row(scratch.nearest.sorted());
            }
            Ok((found, effort))
        })
    }

    fn check(&self, number: usize, query: SparseRow<'_>) -> Result<f64, QueryError> {
        query.check().map_err(|source| match source {
            SparseRowError::NotFinite { .. } => QueryError::NotFinite { query: number },
            source => QueryError::Sparse { query: number, source },
        })?;
        if let Some(&last) = query.indices().last().filter(|&&last| last as usize >= self.n_columns) {
            return Err(QueryError::Width { found: last as usize + 1, expected: self.n_columns });
        }
        let squares = square(query.values());
        if is_beyond(squares) {
            return Err(QueryError::NotFinite { query: number });
        }
        Ok(squares)
    }

    /// Leaves the answers in `scratch.nearest`.
    fn answer(
        &self,
        number: usize,
        query: SparseRow<'_>,
        k: usize,
        filter: Option<&Filter<'_>>,
        scratch: &mut InvertedScratch,
    ) -> Result<SparseEffort, QueryError> {
        let of_query = self.check(number, query)?;
        let mut effort = SparseEffort::default();
        let has_direction = !self.metric.is_angular() || of_query > 0.0;
        let k = if has_direction { k.min(self.len()) } else { 0 };
        scratch.nearest.reset(k);
        if k == 0 {
            return Ok(effort);
        }
        self.begin(query, scratch);
        let passes = |row: u32| filter.is_none_or(|filter| filter.passes(row));
        let InvertedScratch { sums, query: dense, terms, best, nearest } = scratch;
        // What is to come lies in a span as wide as this, and all that rounding may have changed is below `error`.
        let mut open: f64 = terms.iter().map(|t| t.most - t.least).sum();
        let largest = f64::from(self.longest) + terms.iter().map(|t| t.most.max(-t.least)).sum::<f64>();
        let factor = terms.iter().fold(1.0f64, |most, t| most.max(f64::from(t.factor.abs())));
        let of_sum = largest * f64::from(f32::EPSILON) + factor * f64::from(f32::from_bits(1));
        let error = (terms.len() + 4) as f64 * of_sum;
        // Sums beyond what a float holds say nothing: all rows are scored.
        let is_small = largest < f64::from(f32::MAX) / 4.0;
        let mut unread: u64 = terms.iter().map(|t| t.len).sum();
        let mut looked_at = open;
        let mut limit = f32::NEG_INFINITY;
        for term in terms.iter().take_while(|_| is_small) {
            if open <= 0.5 * looked_at && unread > sums.len() as u64 / IN_ORDER * 2 {
                looked_at = open;
                let reached = below(reached(sums, k, &passes, best), open + 2.0 * error);
                // A row's own values are read out of order too, and their columns.
                if 2 * self.mean_len() * count_at_least(sums, reached) as u64 <= unread {
                    limit = reached;
                    break;
                }
            }
            let (rows, weights) = self.list(term.column);
            add_list(sums, term.factor, rows, weights);
            (effort.added, unread) = (effort.added + term.len, unread - term.len);
            open = (open - (term.most - term.least)).max(0.0);
        }
        if is_small && unread == 0 {
            limit = below(reached(sums, k, &passes, best), 2.0 * error);
        }
        effort.left = unread;
        // Of many rows without a column of the query each is an answer where there are too few others. Products that are
        // too small for a float leave no trace in a sum.
        let tells_untouched = unread == 0 && self.metric != Metric::L2 && largest >= LEAST_TRACE;
        each_at_least(sums, limit, |row, sum| {
            if passes(row) {
                if tells_untouched && sum.to_bits() == UNTOUCHED.to_bits() {
                    nearest.push(row, 0.0);
                } else if let Some(score) = self.score(row as usize, query, dense, of_query) {
                    nearest.push(row, score);
                    effort.exact += 1;
                }
            }
            limit
        });
        query.indices().iter().for_each(|&column| dense[column as usize] = 0.0);
        Ok(effort)
    }

    /// Sums before anything is added, the query by column, and its terms: those that add most for their
    /// length first.
    fn begin(&self, query: SparseRow<'_>, scratch: &mut InvertedScratch) {
        let InvertedScratch { sums, query: dense, terms, .. } = scratch;
        sums.clear();
        match self.metric {
            Metric::InnerProduct => sums.resize(self.len(), UNTOUCHED),
            Metric::L2 => sums.extend(self.squares.iter().map(|square| -square)),
            Metric::Cosine => {
                sums.extend(self.squares.iter().map(|&s| if s > 0.0 { UNTOUCHED } else { f32::NEG_INFINITY }));
            }
        }
        dense.resize(self.n_columns, 0.0);
        terms.clear();
        let scale = if self.metric == Metric::L2 { 2.0 } else { 1.0 };
        for (column, value) in query.iter() {
            dense[column as usize] = value;
            let factor = scale * value;
            let ends = [0, 1].map(|end| f64::from(factor) * f64::from(self.spans[2 * column as usize + end]));
            let len = self.lists[column as usize + 1] - self.lists[column as usize];
            let (least, most) = (ends[0].min(ends[1]).min(0.0), ends[0].max(ends[1]).max(0.0));
            if len > 0 && most > least {
                terms.push(Term { column, factor, least, most, len });
            }
        }
        let worth = |term: &Term| (term.most - term.least) / term.len as f64;
        terms.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then(a.column.cmp(&b.column)));
    }

    /// Values of a row, on average.
    fn mean_len(&self) -> u64 {
        (self.nnz() / self.len().max(1)) as u64 + 1
    }

    /// The score of a row, from its own values; none of a row without a direction.
    fn score(&self, row: usize, query: SparseRow<'_>, dense: &[f32], of_query: f64) -> Option<f64> {
        let row = self.row(row);
        let product = || row.iter().map(|(c, v)| f64::from(dense[c as usize]) * f64::from(v)).sum::<f64>();
        match self.metric {
            Metric::InnerProduct => Some(product()),
            Metric::L2 => Some(-squared_distance(row, query)),
            Metric::Cosine => {
                let squares = square(row.values());
                (squares > 0.0).then(|| cosine(product(), of_query, squares))
            }
        }
    }
}

/// The squared distance of two rows: of differences, which are exact where squares of lengths are rounded.
fn squared_distance(a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
    let (mut at_a, mut at_b, mut sum) = (0, 0, 0.0);
    let value = |row: SparseRow<'_>, at: usize| row.values().get(at).map_or(0.0, |&v| f64::from(v));
    let column = |row: SparseRow<'_>, at: usize| row.indices().get(at).map_or(u64::MAX, |&c| u64::from(c));
    while at_a < a.indices().len() || at_b < b.indices().len() {
        let (of_a, of_b) = (column(a, at_a), column(b, at_b));
        let left = if of_a <= of_b { value(a, at_a) } else { 0.0 };
        let right = if of_b <= of_a { value(b, at_b) } else { 0.0 };
        sum += (left - right) * (left - right);
        (at_a, at_b) = (at_a + usize::from(of_a <= of_b), at_b + usize::from(of_b <= of_a));
    }
    sum
}

/// The k-th largest sum of the rows that pass; minus infinity where there are fewer.
fn reached(sums: &[f32], k: usize, passes: &dyn Fn(u32) -> bool, best: &mut TopK) -> f32 {
    best.reset(k);
    each_at_least(sums, best.threshold(), |row, sum| {
        if passes(row) {
            best.push(Scored { label: row, score: sum });
        }
        best.threshold()
    });
    best.kth().map_or(f32::NEG_INFINITY, |kth| kth.score)
}

/// A number that is less by at least `by`.
fn below(from: f32, by: f64) -> f32 {
    let exact = f64::from(from) - by;
    let nearest = exact as f32;
    if f64::from(nearest) > exact { nearest.next_down() } else { nearest }
}
