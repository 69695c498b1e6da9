//! Counts to weights: tf-idf and norms, on rows from text and on rows that somebody else counted.
//!
//! With n the number of fitted rows, df the number of them that have a feature, tf a row's count of
//! it:
//!
//! ```text
//!   weight = tf part * idf part, then each row divided by its norm
//!   tf     Sublinear 1 + ln tf      Raw tf                  Binary 1
//!   idf    Smooth ln((1 + n)/(1 + df)) + 1      Plain ln(n / df) + 1      None 1
//! ```
//!
//! The default is Sublinear, Smooth, L2: (1 + ln tf) * (ln((1 + n)/(1 + df)) + 1), rows of length
//! 1.
//!
//! *Awkward cases*: a tf between 0 and 1 (not a count) is taken as it is by Sublinear, which joins
//! 1 + ln tf at 1 and stays positive; a negative value keeps its sign and is weighted by its size;
//! a stored 0 stays 0 and does not count in df; Plain takes a df of 0 as 1 and, with no fitted row,
//! gives 1; a row of zeros keeps its zeros.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How a count enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tf {
    /// 1 + ln tf.
    #[default]
    Sublinear,
    /// tf.
    Raw,
    /// 1.
    Binary,
}

/// How the rarity of a feature enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idf {
    /// ln((1 + n)/(1 + df)) + 1.
    #[default]
    Smooth,
    /// ln(n / df) + 1.
    Plain,
    /// 1.
    None,
}

/// What a row is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Square root of the sum of squares.
    #[default]
    L2,
    /// Sum of sizes.
    L1,
    /// Nothing.
    None,
}

/// A choice of the three parts; the default is the usual tf-idf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TermWeighting {
    /// How a count enters.
    pub tf: Tf,
    /// How rarity enters.
    pub idf: Idf,
    /// What a row is divided by.
    pub norm: Norm,
}

/// Why rows cannot be weighted.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum WeightRowsError {
    /// A value is NaN or infinite.
    #[error("row {row}, feature {feature}: value {value} is not finite")]
    NotFinite {
        /// The row, from 0.
        row: usize,
        /// The feature.
        feature: u32,
        /// The value found.
        value: f32,
    },
    /// The rows are wider than the fitted ones.
    #[error("rows of {got} features; the weights were fitted on {expected} and know no more")]
    Width {
        /// Features of these rows.
        got: usize,
        /// Features of the fitted rows.
        expected: usize,
    },
}

/// Weighting with what it learned from training rows; applied to any further row.
///
/// ```
/// use xc_hash::text::{RowWeights, TermWeighting};
/// // Feature 0 is in both rows, feature 1 in one.
/// let (indptr, features, mut values) = ([0, 2, 3], [0, 1, 0], [1.0, 3.0, 2.0]);
/// let weights = RowWeights::fit(TermWeighting::default(), 2, &indptr, &features, &values)?;
/// assert_eq!(weights.idf()[0], 1.0);
/// weights.apply(2, &indptr, &features, &mut values)?;
/// assert!((values[2] - 1.0).abs() < 1e-6); // a single feature: length 1
/// # Ok::<(), xc_hash::text::WeightRowsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RowWeights {
    weighting: TermWeighting,
    n_instances: u64,
    n_features: usize,
    /// One number a feature; empty when `weighting.idf` is `None`.
    idf: Vec<f32>,
}

impl RowWeights {
    /// Learns from rows of counts. *Shapes*: the rows are `n_features` wide; row `i` has the entries
    /// `indptr[i] - indptr[0]..indptr[i + 1] - indptr[0]`. *Cost*: O(entries), one `u32` and one `f32` a
    /// feature.
    ///
    /// # Errors
    /// A value that is not finite.
    ///
    /// # Panics
    /// If a feature is not below `n_features` (with an idf).
    pub fn fit(
        weighting: TermWeighting,
        n_features: usize,
        indptr: &[usize],
        features: &[u32],
        counts: &[f32],
    ) -> Result<Self, WeightRowsError> {
        check(indptr, features, counts)?;
        let mut df = vec![0u32; if weighting.idf == Idf::None { 0 } else { n_features }];
        if weighting.idf != Idf::None {
            for (&feature, &value) in features.iter().zip(counts) {
                df[feature as usize] += (value != 0.0) as u32;
            }
        }
        let n_instances = if weighting.idf == Idf::None { 0 } else { indptr.len() as u64 - 1 };
        Ok(Self::from_df(weighting, n_instances, n_features, &df))
    }

    /// From frequencies that were counted elsewhere.
    ///
    /// # Panics
    /// If `df` has not one number a feature (none at all with [`Idf::None`]).
    pub(super) fn from_df(weighting: TermWeighting, n_instances: u64, n_features: usize, df: &[u32]) -> Self {
        let expected = if weighting.idf == Idf::None { 0 } else { n_features };
        assert_eq!(df.len(), expected, "frequencies for {} features, expected {expected}", df.len());
        let n = n_instances as f64;
        let idf = df
            .iter()
            .map(|&df| match weighting.idf {
                Idf::Smooth => ((1.0 + n) / (1.0 + df as f64)).ln() + 1.0,
                Idf::Plain if n_instances > 0 => (n / df.max(1) as f64).ln() + 1.0,
                Idf::Plain | Idf::None => 1.0,
            })
            .map(|idf| idf as f32)
            .collect();
        Self { weighting, n_instances, n_features, idf }
    }

    pub(super) fn from_raw(weighting: TermWeighting, n_instances: u64, n_features: usize, idf: Vec<f32>) -> Self {
        Self { weighting, n_instances, n_features, idf }
    }

    pub(super) fn into_idf(self) -> Vec<f32> {
        self.idf
    }

    /// The choice of parts.
    pub fn weighting(&self) -> TermWeighting {
        self.weighting
    }

    /// Number of rows fitted on; 0 with [`Idf::None`], which learns nothing from them.
    pub fn n_instances(&self) -> u64 {
        self.n_instances
    }

    /// Width of rows.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The idf of each feature; empty with [`Idf::None`].
    pub fn idf(&self) -> &[f32] {
        &self.idf
    }

    /// Weights every row in place; see [`Self::fit`] for the shapes. *Determinism*: each row alone, at any
    /// number of threads.
    ///
    /// # Errors
    /// More features than the fitted rows had (fewer are fine); a value that is not finite. Nothing is
    /// changed then.
    ///
    /// # Panics
    /// If the pointers do not fit the entries, or a feature is not below `n_features` (with an idf).
    pub fn apply(
        &self,
        n_features: usize,
        indptr: &[usize],
        features: &[u32],
        values: &mut [f32],
    ) -> Result<(), WeightRowsError> {
        if n_features > self.n_features {
            return Err(WeightRowsError::Width { got: n_features, expected: self.n_features });
        }
        check(indptr, features, values)?;
        let (n_rows, base) = (indptr.len() - 1, indptr[0]);
        // Pieces of about equal nnz, cut at row borders.
        const PIECE: usize = 1 << 15;
        let mut pieces = Vec::new();
        let (mut rest, mut first) = (values, 0);
        while first < n_rows {
            let mut end = first + 1;
            while end < n_rows && indptr[end] - indptr[first] < PIECE {
                end += 1;
            }
            let (piece, after) = rest.split_at_mut(indptr[end] - indptr[first]);
            pieces.push((first..end, piece));
            (rest, first) = (after, end);
        }
        pieces.into_par_iter().for_each(|(rows, mut piece)| {
            for row in rows {
                let (values, after) = piece.split_at_mut(indptr[row + 1] - indptr[row]);
                self.weigh(&features[indptr[row] - base..indptr[row + 1] - base], values);
                piece = after;
            }
        });
        Ok(())
    }

    /// Weights one row in place, without allocating.
    ///
    /// # Panics
    /// If the slices differ in length, or a feature is not below `n_features()` (with an idf).
    pub fn weigh(&self, features: &[u32], values: &mut [f32]) {
        self.weigh_terms(features, values);
        self.norm(values);
    }

    /// The tf and idf parts of [`Self::weigh`].
    #[inline]
    pub(super) fn weigh_terms(&self, features: &[u32], values: &mut [f32]) {
        assert_eq!(features.len(), values.len(), "{} features, {} values", features.len(), values.len());
        let tf = self.weighting.tf;
        if self.weighting.idf == Idf::None {
            values.iter_mut().for_each(|v| *v = narrow(tf_part(tf, *v)));
        } else {
            for (&feature, v) in features.iter().zip(values.iter_mut()) {
                *v = narrow(tf_part(tf, *v) * self.idf[feature as usize] as f64);
            }
        }
    }

    /// The norm of [`Self::weigh`]. Sums run in ascending order of the feature: one row, one
    /// result.
    #[inline]
    pub(super) fn norm(&self, values: &mut [f32]) {
        let norm = match self.weighting.norm {
            Norm::L2 => values.iter().map(|&v| v as f64 * v as f64).sum::<f64>().sqrt(),
            Norm::L1 => values.iter().map(|&v| (v as f64).abs()).sum(),
            Norm::None => return,
        };
        if norm > 0.0 {
            values.iter_mut().for_each(|v| *v = (*v as f64 / norm) as f32);
        }
    }
}

/// To f32; a given value near its largest number stays finite.
#[inline]
pub(super) fn narrow(weight: f64) -> f32 {
    weight.clamp(f32::MIN as f64, f32::MAX as f64) as f32
}

#[inline]
fn tf_part(tf: Tf, value: f32) -> f64 {
    let size = value.abs() as f64;
    match tf {
        Tf::Raw => value as f64,
        Tf::Binary if value == 0.0 => 0.0,
        Tf::Binary => 1f64.copysign(value as f64),
        Tf::Sublinear if size <= 1.0 => value as f64,
        Tf::Sublinear => (1.0 + size.ln()).copysign(value as f64),
    }
}

fn check(indptr: &[usize], features: &[u32], values: &[f32]) -> Result<(), WeightRowsError> {
    if let Some(at) = values.iter().position(|v| !v.is_finite()) {
        let row = indptr.partition_point(|&p| p - indptr[0] <= at) - 1;
        return Err(WeightRowsError::NotFinite { row, feature: features[at], value: values[at] });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone)]
    struct Rows(usize, Vec<usize>, Vec<u32>, Vec<f32>);

    impl Rows {
        fn fit(&self, weighting: TermWeighting) -> Result<RowWeights, WeightRowsError> {
            RowWeights::fit(weighting, self.0, &self.1, &self.2, &self.3)
        }

        fn weigh(&mut self, weights: &RowWeights) -> Result<(), WeightRowsError> {
            weights.apply(self.0, &self.1, &self.2, &mut self.3)
        }
    }

    fn rows(n_features: usize, rows: &[Vec<(u32, f32)>]) -> Rows {
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows {
            indices.extend(row.iter().map(|x| x.0));
            values.extend(row.iter().map(|x| x.1));
            indptr.push(indices.len());
        }
        Rows(n_features, indptr, indices, values)
    }

    fn weighting(tf: Tf, idf: Idf, norm: Norm) -> TermWeighting {
        TermWeighting { tf, idf, norm }
    }

    #[test]
    fn the_formula_by_hand() {
        let counts = rows(3, &[vec![(0, 1.0), (1, 4.0)], vec![(0, 2.0)], vec![]]);
        let weights = counts.fit(weighting(Tf::Sublinear, Idf::Smooth, Norm::None)).unwrap();
        let idf = [(4f64 / 3.0).ln() + 1.0, 2f64.ln() + 1.0, 4f64.ln() + 1.0];
        assert_eq!(weights.idf(), idf.map(|v| v as f32));
        let mut out = counts.clone();
        out.weigh(&weights).unwrap();
        let want = [idf[0], (1.0 + 4f64.ln()) * idf[1], (1.0 + 2f64.ln()) * idf[0]];
        for (got, want) in out.3.iter().zip(want) {
            assert!((*got as f64 - want).abs() < 1e-6, "{got} {want}");
        }
        let plain = counts.fit(weighting(Tf::Raw, Idf::Plain, Norm::None)).unwrap();
        assert_eq!(plain.idf(), [1.5f64.ln() + 1.0, 3f64.ln() + 1.0, 3f64.ln() + 1.0].map(|v| v as f32));
    }

    #[test]
    fn values_that_are_no_counts() {
        let values = vec![(0, 0.5), (1, -2.0), (2, 0.0), (3, f32::MAX)];
        let counts = rows(4, &[values]);
        let run = |tf, norm| {
            let mut out = counts.clone();
            out.weigh(&counts.fit(weighting(tf, Idf::Smooth, norm)).unwrap()).unwrap();
            out.3
        };
        let log = run(Tf::Sublinear, Norm::None);
        assert_eq!((log[0], log[2]), (0.5, 0.0));
        assert!((log[1] + 1.0 + 2f32.ln()).abs() < 1e-6 && log[3].is_finite());
        assert_eq!(run(Tf::Binary, Norm::None)[..3], [1.0, -1.0, 0.0]);
        assert!(run(Tf::Raw, Norm::L2).iter().all(|v| v.is_finite()));
        let zero = rows(1, &[vec![(0, 0.0)]]);
        let mut out = zero.clone();
        out.weigh(&zero.fit(TermWeighting::default()).unwrap()).unwrap();
        assert_eq!(out.3, [0.0]);
    }

    #[test]
    fn bad_rows_are_refused_and_left_alone() {
        let good = rows(2, &[vec![], vec![(0, 1.0)]]);
        let weights = good.fit(TermWeighting::default()).unwrap();
        let mut bad = rows(2, &[vec![], vec![], vec![(0, 1.0), (1, f32::NAN)], vec![(0, 1.0)]]);
        let error = bad.weigh(&weights).unwrap_err();
        assert_eq!(error.to_string(), "row 2, feature 1: value NaN is not finite");
        assert_eq!(bad.3[0], 1.0);
        assert!(bad.fit(TermWeighting::default()).is_err());
        assert!(matches!(
            RowWeights::fit(TermWeighting::default(), 2, &bad.1[1..4], &bad.2[..2], &bad.3[..2]),
            Err(WeightRowsError::NotFinite { row: 1, feature: 1, .. })
        ));
        let mut wide = rows(3, &[]);
        assert_eq!(wide.weigh(&weights), Err(WeightRowsError::Width { got: 3, expected: 2 }));
        let mut narrow = rows(1, &[vec![(0, 2.0)]]);
        narrow.weigh(&weights).unwrap();
        assert_eq!((narrow.0, narrow.3), (1, vec![1.0]));
        let mut none = rows(0, &[]);
        none.weigh(&none.fit(TermWeighting::default()).unwrap()).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_slice_of_a_matrix_gets_the_bits_of_a_copy_of_its_rows(
            lists in prop::collection::vec(prop::collection::btree_map(0u32..50, 0u8..9, 0..20), 1..9),
            cut in (0usize..9, 0usize..9),
        ) {
            let lists: Vec<Vec<(u32, f32)>> =
                lists.iter().map(|row| row.iter().map(|(&f, &v)| (f, v as f32)).collect()).collect();
            let (from, to) = (cut.0.min(cut.1).min(lists.len()), cut.0.max(cut.1).min(lists.len()));
            let (whole, mut copy) = (rows(50, &lists), rows(50, &lists[from..to]));
            let (Rows(width, indptr, features, mut values), entries) = (whole.clone(), whole.1[from]..whole.1[to]);
            let (indptr, features) = (&indptr[from..=to], &features[entries.clone()]);
            let values = &mut values[entries];
            let weights = RowWeights::fit(TermWeighting::default(), width, indptr, features, values).unwrap();
            prop_assert_eq!(&weights, &copy.fit(TermWeighting::default()).unwrap());
            weights.apply(width, indptr, features, values).unwrap();
            copy.weigh(&weights).unwrap();
            prop_assert_eq!(values, &copy.3[..]);
        }

        #[test]
        fn matrices_and_single_rows_get_the_same_bits(
            lists in prop::collection::vec(prop::collection::btree_map(0u32..50, 0u8..9, 0..20), 0..40),
            pieces in 1usize..4,
        ) {
            let one: Vec<Vec<(u32, f32)>> =
                lists.iter().map(|row| row.iter().map(|(&f, &v)| (f, v as f32)).collect()).collect();
            // Long enough for several pieces of work.
            let many: Vec<_> = std::iter::repeat_n(one.clone(), pieces * 40).flatten().collect();
            let counts = rows(50, &many);
            let weights = counts.fit(TermWeighting::default()).unwrap();
            let mut out = counts.clone();
            out.weigh(&weights).unwrap();
            for (row, counts) in out.1.windows(2).map(|w| &out.3[w[0]..w[1]]).zip(&many) {
                let features: Vec<u32> = counts.iter().map(|x| x.0).collect();
                let mut values: Vec<f32> = counts.iter().map(|x| x.1).collect();
                weights.weigh(&features, &mut values);
                prop_assert_eq!(row, &values[..]);
            }
        }
    }
}
