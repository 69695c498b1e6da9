//! Which answers are proven by the lengths of rows: no inner product is above the product of two lengths.

use crate::metric::Metric;
use xc_sparse::DenseRows;
use xc_sparse::rank::{Scored, TopK};

/// Rows by falling length, to prove answers of largest inner products.
///
/// With s the score of the k-th answer and q the query, a row shorter than s / |q| is no better answer. So
/// answers are exact once all longer rows have been compared. Where lengths are alike, as those of a classifier's
/// labels often are, these are nearly all rows, and nothing is proven.
///
/// *Memory*: 12 bytes a row.
///
/// ```
/// use xc_ann::{BuildParams, Index, Metric, NoObserver};
///
/// let rows = vec![9.0, 0.0, 0.1, 0.2, 0.3, 0.1, 0.0, 8.0];
/// let index = Index::build(rows, 2, &BuildParams::new(Metric::InnerProduct), &NoObserver)?;
/// let lengths = index.lengths().expect("inner products");
/// let mut answers = index.nearest(&[1.0, 0.1], 1, &mut Default::default())?;
/// let open = lengths.complete(index.rows(), &[1.0, 0.1], 1, 2, &mut answers);
/// assert_eq!((answers[0].label, open), (0, 0));
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

fn length(row: &[f32]) -> f64 {
    row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt()
}

impl Lengths {
    /// Of the rows that are `listed`.
    ///
    /// # Panics
    /// If one is not there.
    pub fn new(rows: DenseRows<'_>, listed: Vec<u32>) -> Self {
        let mut all: Vec<(f64, u32)> = listed.into_iter().map(|row| (length(rows.row(row as usize)), row)).collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let (lengths, rows_of): (Vec<f64>, Vec<u32>) = all.into_iter().unzip();
        // A sum of n products in any order is off by at most n rounding errors of the product of lengths.
        let slack = (rows.width() + 2) as f64 * f64::from(f32::EPSILON);
        Self { rows: rows_of, lengths, slack }
    }

    /// The rows that are long enough to be among the `k` best where these are `answers`, best first: all, where
    /// there are fewer answers.
    pub fn open(&self, query: &[f32], k: usize, answers: &[Scored]) -> &[u32] {
        let last = match k.checked_sub(1).map(|last| answers.get(last)) {
            None => return &[],
            Some(None) => return &self.rows,
            Some(Some(last)) => f64::from(last.score),
        };
        let query = length(query);
        let may_enter = |&length: &f64| length * query * (1.0 + self.slack) + f64::from(f32::MIN_POSITIVE) >= last;
        &self.rows[..self.lengths.partition_point(may_enter)]
    }

    /// Makes `answers`, best first, exact where at most `most` rows are long enough: all of these are compared.
    /// Returns how many rows could still be among the answers. 0: the answers are proven to be the `k` best of
    /// the rows that were listed.
    ///
    /// # Panics
    /// If widths differ or rows are not there.
    pub fn complete(
        &self,
        rows: DenseRows<'_>,
        query: &[f32],
        k: usize,
        most: usize,
        answers: &mut Vec<Scored>,
    ) -> usize {
        let open = self.open(query, k, answers);
        if open.len() > most {
            return open.len();
        }
        let (mut best, mut scores) = (TopK::new(k), Vec::new());
        Metric::InnerProduct.scores(query, rows, open, &mut scores);
        open.iter().zip(scores).for_each(|(&label, score)| best.push(Scored { label, score }));
        *answers = best.sorted().to_vec();
        0
    }
}
