//! Scores in f64, and the order that they give: what exact means.
//!
//! A sum of f32 loses what rows differ by where they lie far from the origin, are nearly parallel or have next to no
//! length. The products of f32 values are exact in f64, and so are their differences but for a last bit. Answers are
//! ranked by these scores, of equal ones the lower row first, and handed out as the nearest f32.

use crate::metric::Metric;
use xc_buffer::simd::prefetch_all;
use xc_dense::DenseRows;
use xc_sparse::rank::Scored;

/// Rows that are asked of memory before they are needed.
const AHEAD: usize = 8;
/// Rows that are kept beyond twice as many as are wanted, before all but the best go.
const SPARE: usize = 64;

/// The score as it is handed out: the nearest f32, without a sign where it is 0.
pub(crate) fn rounded(score: f64) -> f32 {
    score.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32 + 0.0
}

/// The cosine of two vectors, by their product and the squares of their lengths; 0 for one of zeros.
#[inline(always)]
pub(crate) fn cosine(product: f64, squares: f64, of_other: f64) -> f64 {
    let squares = squares * of_other;
    if squares > 0.0 { product / squares.sqrt() } else { 0.0 }
}

impl Metric {
    /// The score of two vectors, computed in f64; that of a vector of zeros under [`Metric::Cosine`] is 0.
    ///
    /// # Panics
    /// If they differ in length.
    pub fn score(self, a: &[f32], b: &[f32]) -> f32 {
        rounded(Scorer::new(self, a).score(b))
    }
}

/// A vector that rows are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scorer<'a> {
    metric: Metric,
    query: &'a [f32],
    squares: f64,
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(metric: Metric, query: &'a [f32]) -> Self {
        // In the order of the other sums: a row in the same direction has a cosine of 1.
        let squares = if metric.is_angular() { xc_dense::wide_dot(query, query) } else { 0.0 };
        Self { metric, query, squares }
    }

    /// The score of a row.
    ///
    /// # Panics
    /// If it has another length.
    pub(crate) fn score(&self, row: &[f32]) -> f64 {
        match self.metric {
            Metric::L2 => -xc_dense::wide_squared_distance(self.query, row),
            Metric::InnerProduct => xc_dense::wide_dot(self.query, row),
            Metric::Cosine => {
                let [product, squares] = xc_dense::wide_dot_and_square(self.query, row);
                cosine(product, self.squares, squares)
            }
        }
    }

    /// The score of a row whose sums were computed elsewhere: as [`xc_dense::wide_squared_distance`] does it, or as
    /// [`xc_dense::wide_dot_and_square`].
    #[cfg(feature = "cuda")]
    pub(crate) fn of_sums(&self, [sum, square]: [f64; 2]) -> f64 {
        match self.metric {
            Metric::L2 => -sum,
            Metric::InnerProduct => sum,
            Metric::Cosine => cosine(sum, self.squares, square),
        }
    }

    /// The scores of listed rows, in their order. Rows come from memory while those before them are scored, unless
    /// they were `asked` for already.
    ///
    /// # Panics
    /// If widths differ, or a row is not there.
    pub(crate) fn scores(&self, rows: DenseRows<'_>, listed: &[u32], asked: bool, to: &mut Vec<f64>) {
        to.clear();
        if asked {
            return self.add_scores(rows, listed, to);
        }
        let ask = |some: &[u32]| some.iter().for_each(|&number| prefetch_all(rows.row(number as usize)));
        let mut next = listed.chunks(AHEAD);
        next.next().into_iter().for_each(ask);
        for some in listed.chunks(AHEAD) {
            next.next().into_iter().for_each(ask);
            self.add_scores(rows, some, to);
        }
    }

    fn add_scores(&self, rows: DenseRows<'_>, listed: &[u32], to: &mut Vec<f64>) {
        let query = self.query;
        match self.metric {
            Metric::L2 => xc_dense::wide_squared_distances(query, rows, listed, |distance| to.push(-distance)),
            Metric::InnerProduct => xc_dense::wide_dots(query, rows, listed, |product| to.push(product)),
            Metric::Cosine => xc_dense::wide_dots_and_squares(query, rows, listed, |product, squares| {
                to.push(cosine(product, self.squares, squares));
            }),
        }
    }
}

/// A row and its score as one number: better rows have lower ones, of equal scores the lower rows.
#[inline(always)]
fn place(label: u32, score: f64) -> u128 {
    // -0.0 becomes 0.0. Bits of negative numbers descend as they grow smaller, those of others ascend.
    let bits = (score + 0.0).to_bits();
    let ascending = bits ^ ((bits as i64 >> 63) as u64 | 1 << 63);
    u128::from(!ascending) << 32 | u128::from(label)
}

/// The row of a [`place`], its score rounded.
#[inline(always)]
fn at_place(place: u128) -> Scored {
    let ascending = !(place >> 32) as u64;
    let bits = ascending ^ (!(ascending as i64 >> 63) as u64 | 1 << 63);
    Scored { label: place as u32, score: rounded(f64::from_bits(bits)) }
}

/// The `k` best rows, of equal scores the lower ones.
///
/// *Cost*: O(1) a row on average.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nearest {
    k: usize,
    kept: Vec<u128>,
    /// What is not before this cannot be among the best.
    last: u128,
    out: Vec<Scored>,
}

impl Nearest {
    /// Empties it.
    pub(crate) fn reset(&mut self, k: usize) {
        (self.k, self.last) = (k, u128::MAX);
        self.kept.clear();
    }

    /// Offers a row; one whose score is no number is not kept.
    #[inline]
    pub(crate) fn push(&mut self, label: u32, score: f64) {
        let place = place(label, score);
        if score.is_nan() || place >= self.last {
            return;
        }
        self.kept.push(place);
        if self.kept.len() >= self.k.saturating_mul(2).saturating_add(SPARE) {
            self.cut();
        }
    }

    #[cold]
    fn cut(&mut self) {
        if self.k == 0 {
            self.kept.clear();
        } else if self.kept.len() > self.k {
            let (_, &mut last, _) = self.kept.select_nth_unstable(self.k - 1);
            self.last = last;
            self.kept.truncate(self.k);
        }
    }

    /// The best, best first.
    pub(crate) fn sorted(&mut self) -> &[Scored] {
        // Few too many are sorted with the others sooner than they are cut off.
        if self.kept.len() > self.k.saturating_add(self.k / 4) {
            self.cut();
        }
        self.kept.sort_unstable();
        self.kept.truncate(self.k);
        self.out.clear();
        self.out.extend(self.kept.iter().map(|&place| at_place(place)));
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::vertex_rows::square;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_kept_in_order(
            scores in prop::collection::vec(prop_oneof![-2f64..2.0, Just(0.5), Just(0.0), Just(-0.0)], 0..400), k in 0usize..70
        ) {
            let mut nearest = Nearest::default();
            nearest.reset(k);
            let label = |at: usize| (at * 37 % 401) as u32;
            scores.iter().enumerate().for_each(|(at, &score)| nearest.push(label(at), score));
            let mut all: Vec<(f64, u32)> = scores.iter().enumerate().map(|(at, &score)| (-score, label(at))).collect();
            all.sort_by(|a, b| a.partial_cmp(b).unwrap());
            all.truncate(k);
            let found: Vec<(f64, u32)> = nearest.sorted().iter().map(|s| (-f64::from(s.score), s.label)).collect();
            prop_assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), all.iter().map(|a| a.1).collect::<Vec<_>>());
            prop_assert!(nearest.sorted().iter().all(|s| s.score.to_bits() != (-0.0f32).to_bits()));
        }

        #[test]
        fn scores_are_those_of_doubles(
            values in prop::collection::vec((-1e3f32..1e3, -1e-3f32..1e3), 1..90), metric in 0usize..3
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = values.into_iter().unzip();
            let scorer = Scorer::new(Metric::ALL[metric], &a);
            let expected = scorer.score(&b);
            let plain: f64 = a.iter().zip(&b).map(|(&a, &b)| match Metric::ALL[metric] {
                Metric::L2 => -(f64::from(a) - f64::from(b)).powi(2),
                _ => f64::from(a) * f64::from(b),
            }).sum();
            let plain = match Metric::ALL[metric] { Metric::Cosine => cosine(plain, square(&a), square(&b)), _ => plain };
            prop_assert!((plain - expected).abs() <= 1e-12 * a.iter().zip(&b).map(|(a, b)| f64::from(a.abs() + b.abs()).powi(2)).sum::<f64>().max(1.0));
        }
    }

    #[test]
    fn a_row_of_the_same_direction_has_a_cosine_of_one_however_short() {
        for factor in [1.0f32, 1e-20, 1e-38, 1e-43] {
            let row: Vec<f32> = (1..40).map(|v| v as f32 * 0.3 * factor).collect();
            let scorer = Scorer::new(Metric::Cosine, &row);
            assert_eq!(scorer.score(&row), 1.0, "{factor}");
        }
    }
}
