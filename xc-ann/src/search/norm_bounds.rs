//! Proving answers by the lengths of rows: no inner product exceeds the product of two lengths.

use crate::code::vertex_rows::square;
use crate::metric::Metric;
use crate::search::parts::in_parts;
use crate::search::rerank::{Nearest, Scorer};
use xc_dense::DenseRows;
use xc_sparse::rank::{RankedBatch, Scored};

/// Queries of a task.
const QUERIES_PER_TASK: usize = 16;

/// Rows by descending length, to prove answers of largest inner products.
///
/// With s the score of the k-th answer and q the query, a row shorter than s / |q| cannot be a better answer.
/// Answers are therefore exact once all longer rows have been compared. If lengths are similar, as those of a
/// classifier's labels often are, these are nearly all rows, and nothing is proven.
///
/// *Memory*: 12 bytes per row.
///
/// ```
/// use xc_ann::{BuildParams, Index, Metric, Silent, SearchParams};
/// use xc_dense::DenseRows;
///
/// let rows = vec![9.0, 0.0, 0.1, 0.2, 0.3, 0.1, 0.0, 8.0];
/// let index = Index::build(rows, 2, &BuildParams::new(Metric::InnerProduct), &Silent)?;
/// let lengths = index.lengths().expect("inner products");
/// let queries = DenseRows::new(&[1.0, 0.1], 2);
/// let (found, _) = index.search_batch(queries, SearchParams::top(1), None)?;
/// let (found, n_proven) = lengths.complete(index.rows(), queries, (1, 2), &found);
/// assert_eq!((found.row(0)[0].label, n_proven), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lengths {
    rows: Vec<u32>,
    /// Falling.
    lengths: Vec<f64>,
    /// By how much, as a share, a score of single precision may be off.
    slack: f64,
}

impl Lengths {
    /// The lengths of the rows that are `listed`.
    ///
    /// # Panics
    /// If a listed row does not exist.
    pub fn new(rows: DenseRows<'_>, listed: Vec<u32>) -> Self {
        let mut all: Vec<(f64, u32)> =
            listed.into_iter().map(|row| (square(rows.row(row as usize)).sqrt(), row)).collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let (lengths, rows_of): (Vec<f64>, Vec<u32>) = all.into_iter().unzip();
        // A sum of n products in any order is off by at most n rounding errors of the product of lengths.
        let slack = (rows.width() + 2) as f64 * f64::from(f32::EPSILON);
        Self { rows: rows_of, lengths, slack }
    }

    /// The rows that are long enough to be among the `k` best, given `answers`, best first: all rows if there are
    /// fewer than `k` answers.
    pub fn open(&self, query: &[f32], k: usize, answers: &[Scored]) -> &[u32] {
        let last = match k.checked_sub(1).map(|last| answers.get(last)) {
            None => return &[],
            Some(None) => return &self.rows,
            Some(Some(last)) => f64::from(last.score),
        };
        let query = square(query).sqrt();
        let may_enter = |&length: &f64| length * query * (1.0 + self.slack) + f64::from(f32::MIN_POSITIVE) >= last;
        &self.rows[..self.lengths.partition_point(may_enter)]
    }

    /// Makes the answers of a query exact if at most `most` rows are long enough to be among its `k` best, by
    /// comparing all of these. The answers of other queries do not change. Returns the number of queries made exact:
    /// their answers are proven to be the `k` best of the listed rows. Queries are divided among the ambient threads.
    ///
    /// # Panics
    /// If widths or numbers of queries differ, or rows are missing.
    pub fn complete(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        (k, most): (usize, usize),
        found: &RankedBatch,
    ) -> (RankedBatch, usize) {
        assert_eq!(queries.len(), found.len(), "queries and their answers");
        let done = in_parts(queries.len(), QUERIES_PER_TASK, |(best, scores): &mut (Nearest, Vec<f64>), range| {
            let (mut all, mut n_proven) = (RankedBatch::new(), 0);
            for at in range {
                let (query, answers) = (queries.row(at), found.row(at));
                let open = self.open(query, k, answers);
                if open.len() > most {
                    all.push_row(answers);
                    continue;
                }
                Scorer::new(Metric::InnerProduct, query).scores(rows, open, false, scores);
                best.reset(k);
                open.iter().zip(&*scores).for_each(|(&label, &score)| best.push(label, score));
                all.push_row(best.sorted());
                n_proven += 1;
            }
            Ok((all, n_proven))
        });
        done.expect("nothing is refused")
    }
}
