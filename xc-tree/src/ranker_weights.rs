//! A sparse row of weights for each label, and the logits of listed labels.
//!
//! ```text
//!   label 0   feature 3: 0.5   feature 7: -1.0     bias 0.1        query   feature 3: 2.0   feature 4: 1.0
//!   label 1   (none)                               bias -1.0       label 0    0.5 * 2.0 + 0.1
//! ```
//!
//! Of a label with many more weights than the query has features, each feature of the query is looked for: its *skips*
//! say where in the row the features of equal stretches of all ids begin. The row of another label is read whole.
//!
//! For weights where each label has features of its own, and queries that score a few labels of very many. Siblings
//! that are scored together belong in [`xc_sparse::chunked`], labels with equally many inputs each in
//! [`xc_sparse::uniform`].
//!
//! ```
//! use xc_tree::{LogitScratch, RankerWeights};
//! use xc_buffer::DType;
//! use xc_sparse::{CsrMatrix, SparseRow};
//!
//! let rows = CsrMatrix::try_new((2, 8), vec![0, 2, 2], vec![3, 7], vec![0.5, -1.0])?;
//! let weights = RankerWeights::nearest(rows, vec![0.125, -1.0], DType::F32);
//! let (mut scratch, mut logits) = (LogitScratch::default(), Vec::new());
//! weights.logits(SparseRow::try_new(&[3, 4], &[2.0, 1.0])?, &[1, 0], &mut scratch, &mut logits);
//! assert_eq!(logits, [-1.0, 1.125]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;
use thiserror::Error;
use xc_buffer::dtype::{DType, Float};
use xc_buffer::simd::{prefetch, prefetch_all};
use xc_buffer::{Buffer, FloatBuffer};
use xc_sparse::rows::{CsrMatrix, MatrixError, SparseRow, SparseRowError};

/// A label with more weights than so many times the features of a query is not read whole.
const SEARCHED: usize = 8;
/// Features of a stretch that are compared one after the other.
const COMPARED: usize = 32;

/// Rows that are asked for before they are read; their places, twice as many.
const AHEAD: usize = 4;

/// A sparse row of weights and a bias for each label, in memory or in a mapped file.
///
/// # Invariants
/// `starts` rises from 0 to the number of weights, with one entry more than there are labels; the features of a label
/// ascend and are below `n_features`; weights and biases are finite. Label `l` has the skips from `starts[l] / 8` to
/// `starts[l + 1] / 8`, and with n of them skip j is the number of its features `f` with `f * m * n >> 32 < j`,
/// m = `2^32 / n_features`, rounded down.
#[derive(Clone, Debug, PartialEq)]
pub struct RankerWeights {
    n_features: usize,
    starts: Buffer<u64>,
    features: Buffer<u32>,
    skips: Buffer<u32>,
    weights: FloatBuffer,
    bias: Buffer<f32>,
}

/// Why arrays are no weights of labels. Lists are labels.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum RankerWeightsError {
    /// They are no matrix of labels and features.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// A bias is infinite or not a number.
    #[error("label {label} has the bias {bias}, expected a finite number")]
    Bias {
        /// The label.
        label: usize,
        /// Its bias.
        bias: f32,
    },
    /// Skips are not those of the features.
    #[error("label {label}: skips are not those of its features")]
    Skips {
        /// The first such label.
        label: usize,
    },
    /// There are not as many skips as weights imply.
    #[error("{got} skips, {expected} are expected with so many weights")]
    NumberOfSkips {
        /// Of the array.
        got: usize,
        /// An eighth of the weights.
        expected: usize,
    },
}

/// What [`RankerWeights::logits`] reuses: a value for each feature (4 bytes), all 0 between calls, a row of weights, and
/// the features of the query.
#[derive(Clone, Debug, Default)]
pub struct LogitScratch {
    query: Vec<f32>,
    row: Vec<f32>,
    known: Vec<Known>,
    found: Vec<(u32, f32)>,
}

/// A feature of a query that may have weights.
#[derive(Clone, Copy, Debug)]
struct Known {
    feature: u32,
    value: f32,
    /// Its place among all, as a share of 2^32.
    share: u64,
}

impl Known {
    /// The stretch of it, of so many.
    #[inline(always)]
    fn stretch(&self, n: usize) -> usize {
        ((self.share * n as u64) >> 32) as usize
    }
}

impl RankerWeights {
    /// Weights for which a label has a skip.
    pub const WEIGHTS_PER_SKIP: usize = 8;

    /// Weights rounded to the nearest number of a type. *Shapes*: `rows` is labels x features; one bias a label.
    ///
    /// # Panics
    /// If there is not one bias a label, a number is not finite, or the type is not one of those of [`FloatBuffer`].
    pub fn nearest(rows: CsrMatrix, bias: Vec<f32>, of: DType) -> Self {
        let n_features = rows.cols();
        let (starts, features, values) = rows.into_parts();
        let starts: Vec<u64> = starts.into_iter().map(|at| at as u64).collect();
        let weights = if of == DType::F32 {
            FloatBuffer::F32(values.into())
        } else {
            FloatBuffer::nearest(of, values.into_iter())
        };
        let skips = skips(&starts, &features, n_features);
        match Self::try_new(n_features, starts.into(), features.into(), skips.into(), weights, bias.into()) {
            Ok(weights) => weights,
            Err(error) => panic!("{error}"),
        }
    }

    /// Checks the arrays of some labels and takes them, without a copy; the weights of label `l` are at
    /// `starts[l]..starts[l + 1]`. *Cost*: O(labels + weights).
    ///
    /// # Errors
    /// See [`RankerWeightsError`].
    pub fn try_new(
        n_features: usize,
        starts: Buffer<u64>,
        features: Buffer<u32>,
        skips: Buffer<u32>,
        weights: FloatBuffer,
        bias: Buffer<f32>,
    ) -> Result<Self, RankerWeightsError> {
        let (lists, n_entries) = (bias.len(), features.len());
        if weights.len() != n_entries {
            return Err(MatrixError::Lengths { ids: n_entries, values: weights.len() }.into());
        }
        let at = match starts.len() == lists + 1 {
            false => Some(starts.len()),
            true if starts[0] != 0 => Some(0),
            true => {
                let falls = starts.windows(2).position(|w| w[0] > w[1]).map(|at| at + 1);
                falls.or((starts[lists] != n_entries as u64).then_some(lists))
            }
        };
        if let Some(at) = at {
            return Err(MatrixError::Indptr { at, lists, n_entries }.into());
        }
        if skips.len() != n_entries / Self::WEIGHTS_PER_SKIP {
            return Err(RankerWeightsError::NumberOfSkips {
                got: skips.len(),
                expected: n_entries / Self::WEIGHTS_PER_SKIP,
            });
        }
        let all = Self { n_features, starts, features, skips, weights, bias };
        for list in 0..lists {
            let features = &all.features[all.range(list as u32)];
            if let Some(w) = features.windows(2).find(|w| w[0] >= w[1]) {
                let source = SparseRowError::Order { previous: w[0], next: w[1] };
                return Err(MatrixError::List { list, source }.into());
            }
            // Ascending: the last is the largest.
            if let Some(&id) = features.last().filter(|&&id| id as usize >= n_features) {
                return Err(MatrixError::OutOfRange { list, id, bound: n_features }.into());
            }
        }
        if let Some(at) = all.weights.not_finite() {
            let list = all.starts.partition_point(|&start| start <= at as u64) - 1;
            let source = SparseRowError::NotFinite { feature: all.features[at], value: all.weights.get(at) };
            return Err(MatrixError::List { list, source }.into());
        }
        if let Some(label) = all.bias.iter().position(|bias| !bias.is_finite()) {
            return Err(RankerWeightsError::Bias { label, bias: all.bias[label] });
        }
        let mut expected = Vec::new();
        for label in 0..lists {
            let (range, skips) = (all.range(label as u32), &all.skips[all.skip_range(label as u32)]);
            expected.clear();
            push_skips(&all.features[range], skips.len(), n_features, &mut expected);
            if expected != skips {
                return Err(RankerWeightsError::Skips { label });
            }
        }
        Ok(all)
    }

    /// Takes arrays that were checked before ([`RankerWeights::try_new`]), without a pass over them: those of a file that
    /// the caller vouches for. Wrong ones end a query with a panic, or give a wrong logit.
    ///
    /// # Panics
    /// If there is not a weight for each feature, or not a start more than biases.
    pub fn from_checked(
        n_features: usize,
        starts: Buffer<u64>,
        features: Buffer<u32>,
        skips: Buffer<u32>,
        weights: FloatBuffer,
        bias: Buffer<f32>,
    ) -> Self {
        assert!(weights.len() == features.len(), "{} weights of {} features", weights.len(), features.len());
        assert!(starts.len() == bias.len() + 1, "{} starts of {} labels", starts.len(), bias.len());
        Self { n_features, starts, features, skips, weights, bias }
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.bias.len()
    }

    /// Number of features; those of a query from here on have no weights.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Where the weights of each label begin, and at last where all end.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The features of all weights, label after label.
    pub fn features(&self) -> &[u32] {
        &self.features
    }

    /// The skips of all labels, label after label: one for eight weights ([`RankerWeights`], invariants).
    pub fn skips(&self) -> &[u32] {
        &self.skips
    }

    /// All weights, label after label.
    pub fn weights(&self) -> &FloatBuffer {
        &self.weights
    }

    /// The bias of each label.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Pairs (feature, weight) of a label, in ascending order of the feature.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn row(&self, label: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.range(label).map(|at| (self.features[at], self.weights.get(at)))
    }

    /// The logit of each listed label, in their order: the sum of weight times value over the features that label and
    /// query both have, one after the other as features ascend, and the bias at last. Each product and sum is rounded
    /// once, to f32, so that a label's logit has the same bits in any list.
    ///
    /// *Cost*: O(features of the query + weights) a label, or of a label with many weights O(features of the query); the
    /// first call for so many features O(features) more.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn logits(&self, query: SparseRow<'_>, labels: &[u32], scratch: &mut LogitScratch, logits: &mut Vec<f32>) {
        // First of all, so that no panic leaves a query behind.
        if let Some(label) = labels.iter().find(|&&label| label as usize >= self.n_labels()) {
            panic!("label {label} of {}", self.n_labels());
        }
        let LogitScratch { query: values, row, known, found } = scratch;
        if values.len() < self.n_features {
            values.resize(self.n_features, 0.0);
        }
        let scale = scale(self.n_features);
        let of_query = query.iter().filter(|&(feature, _)| (feature as usize) < self.n_features);
        known.clear();
        known.extend(of_query.map(|(feature, value)| Known { feature, value, share: share(feature, scale) }));
        known.iter().for_each(|of| values[of.feature as usize] = of.value);
        logits.clear();
        match &self.weights {
            FloatBuffer::F32(weights) => {
                self.each(labels, weights, known, found, logits, |features, range| {
                    sum(features, &weights[range], values)
                });
            }
            FloatBuffer::Bf16(weights) => self.each_widened(labels, weights, known, (values, row, found), logits),
            FloatBuffer::F16(weights) => self.each_widened(labels, weights, known, (values, row, found), logits),
            FloatBuffer::E4m3(weights) => self.each_widened(labels, weights, known, (values, row, found), logits),
            FloatBuffer::E5m2(weights) => self.each_widened(labels, weights, known, (values, row, found), logits),
        }
        known.iter().for_each(|of| values[of.feature as usize] = 0.0);
    }

    fn each_widened<T: Float>(
        &self,
        labels: &[u32],
        weights: &[T],
        known: &[Known],
        (values, row, found): (&[f32], &mut Vec<f32>, &mut Vec<(u32, f32)>),
        logits: &mut Vec<f32>,
    ) {
        self.each(labels, weights, known, found, logits, |features, range| {
            sum(features, widened(&weights[range], row), values)
        });
    }

    /// Appends bias and sum of each label; `sum`: of a row that is read whole. Labels lie anywhere: those to come are
    /// fetched meanwhile.
    #[inline(always)]
    fn each<T: Float>(
        &self,
        labels: &[u32],
        weights: &[T],
        known: &[Known],
        found: &mut Vec<(u32, f32)>,
        logits: &mut Vec<f32>,
        mut sum: impl FnMut(&[u32], Range<usize>) -> f32,
    ) {
        logits.extend(labels.iter().enumerate().map(|(at, &label)| {
            if let Some(&place) = labels.get(at + 2 * AHEAD) {
                prefetch(&self.starts, place as usize);
                prefetch(&self.bias, place as usize);
            }
            if let Some(&ahead) = labels.get(at + AHEAD) {
                let range = self.range(ahead);
                if Self::is_searched(range.len(), known) {
                    let skips = &self.skips[self.skip_range(ahead)];
                    known.iter().for_each(|of| prefetch(skips, of.stretch(skips.len())));
                } else {
                    prefetch_all(&self.features[range.clone()]);
                    prefetch_all(&weights[range]);
                }
            }
            if let Some(&next) = labels.get(at + 1) {
                let range = self.range(next);
                if Self::is_searched(range.len(), known) {
                    let (skips, features) = (&self.skips[self.skip_range(next)], &self.features[range]);
                    known.iter().for_each(|of| prefetch(features, skips[of.stretch(skips.len())] as usize));
                }
            }
            let range = self.range(label);
            let sum = if Self::is_searched(range.len(), known) {
                let skips = &self.skips[self.skip_range(label)];
                sum_searched(&self.features[range.clone()], skips, &weights[range], known, found)
            } else {
                sum(&self.features[range.clone()], range)
            };
            sum + self.bias[label as usize]
        }));
    }

    /// Whether the features of the query are looked for in a row of so many weights.
    #[inline(always)]
    fn is_searched(n_weights: usize, known: &[Known]) -> bool {
        n_weights > COMPARED.max(SEARCHED * known.len())
    }

    /// The skips of a label.
    #[inline(always)]
    fn skip_range(&self, label: u32) -> Range<usize> {
        skip_range(self.range(label))
    }

    #[inline(always)]
    fn range(&self, label: u32) -> Range<usize> {
        self.starts[label as usize] as usize..self.starts[label as usize + 1] as usize
    }
}

/// Features that the query lacks add 0, which changes no sum that began with 0.
#[inline(always)]
fn sum(features: &[u32], weights: &[f32], values: &[f32]) -> f32 {
    features.iter().zip(weights).fold(0.0, |sum, (&feature, &weight)| sum + weight * values[feature as usize])
}

/// [`sum`] by looking for each feature of the query. Where they are is found first: a weight that must come from memory
/// is then not waited for before the next is asked for.
fn sum_searched<T: Float>(
    features: &[u32],
    skips: &[u32],
    weights: &[T],
    known: &[Known],
    found: &mut Vec<(u32, f32)>,
) -> f32 {
    found.clear();
    found.resize(known.len(), (0, 0.0));
    let mut n = 0;
    for of in known {
        let stretch = of.stretch(skips.len());
        let start = skips[stretch] as usize;
        let end = skips.get(stretch + 1).map_or(features.len(), |&end| end as usize);
        let some = &features[start..end];
        let before = match some.len() {
            ..=COMPARED => some.iter().map(|&f| u32::from(f < of.feature)).sum(),
            _ => some.partition_point(|&f| f < of.feature) as u32,
        };
        let at = start + before as usize;
        prefetch(weights, at);
        found[n] = (at as u32, of.value);
        n += usize::from(features.get(at) == Some(&of.feature));
    }
    found[..n].iter().fold(0.0, |sum, &(at, value)| sum + weights[at as usize].widen() * value)
}

/// Where the skips of a label are whose weights are in `range`.
#[inline(always)]
fn skip_range(range: Range<usize>) -> Range<usize> {
    range.start / RankerWeights::WEIGHTS_PER_SKIP..range.end / RankerWeights::WEIGHTS_PER_SKIP
}

/// A feature as a share of all, see [`share`].
fn scale(n_features: usize) -> u64 {
    (1 << 32) / (n_features as u64).max(1)
}

/// Below 2^32 for features that there are.
#[inline(always)]
fn share(feature: u32, scale: u64) -> u64 {
    u64::from(feature) * scale
}

/// The skips of labels whose features begin at `starts`.
fn skips(starts: &[u64], features: &[u32], n_features: usize) -> Vec<u32> {
    let mut skips = Vec::with_capacity(features.len() / RankerWeights::WEIGHTS_PER_SKIP);
    for of in starts.windows(2) {
        let range = of[0] as usize..of[1] as usize;
        push_skips(&features[range.clone()], skip_range(range).len(), n_features, &mut skips);
    }
    skips
}

/// Appends the `n` skips of a label.
fn push_skips(features: &[u32], n: usize, n_features: usize, skips: &mut Vec<u32>) {
    let (scale, mut next) = (scale(n_features), 0);
    for j in 0..n as u64 {
        while features.get(next).is_some_and(|&f| (share(f, scale) * n as u64) >> 32 < j) {
            next += 1;
        }
        skips.push(next as u32);
    }
}

#[inline(always)]
fn widened<'r, T: Float>(weights: &[T], row: &'r mut Vec<f32>) -> &'r [f32] {
    if row.len() < weights.len() {
        row.resize(weights.len(), 0.0);
    }
    T::widen_all(weights, &mut row[..weights.len()]);
    &row[..weights.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const N_FEATURES: usize = 300;

    /// Rows that are read whole and, beside short queries, rows that are searched; with features that lie together.
    fn row(n: usize) -> impl Strategy<Value = BTreeMap<u32, f32>> {
        // Features from 300 on are those of queries that no label knows.
        let features = prop_oneof![0u32..310, 0u32..310, 100u32..180];
        prop::collection::btree_map(features, prop_oneof![Just(0.0f32), Just(-0.0), -4f32..4.0], 0..n)
    }

    /// By the definition: features that both have, ascending.
    fn logit(label: &[(u32, f32)], bias: f32, query: &BTreeMap<u32, f32>) -> f32 {
        let mut sum = 0.0f32;
        for &(feature, weight) in label {
            if let Some(value) = query.get(&feature) {
                sum += weight * value;
            }
        }
        sum + bias
    }

    fn matrix(rows: &[BTreeMap<u32, f32>]) -> CsrMatrix {
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows {
            for (&f, &v) in row.range(..N_FEATURES as u32) {
                indices.push(f);
                values.push(v);
            }
            indptr.push(indices.len());
        }
        CsrMatrix::try_new((rows.len(), N_FEATURES), indptr, indices, values).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn logits_are_those_of_the_definition_in_every_type(
            rows in prop::collection::vec(prop_oneof![row(12), row(250)], 1..20),
            queries in prop::collection::vec((row(40), prop::collection::vec(any::<u16>(), 0..40)), 1..4),
        ) {
            let bias: Vec<f32> = (0..rows.len()).map(|l| l as f32 * 0.3 - 2.0).collect();
            let mut scratch = LogitScratch::default();
            for of in [DType::F32, DType::Bf16, DType::F16, DType::E4m3, DType::E5m2] {
                let weights = RankerWeights::nearest(matrix(&rows), bias.clone(), of);
                // One scratch for all queries: each must leave it clean.
                for (query, labels) in &queries {
                    let labels: Vec<u32> = labels.iter().map(|&l| u32::from(l) % rows.len() as u32).collect();
                    let (features, values): (Vec<u32>, Vec<f32>) = query.iter().map(|(&f, &v)| (f, v)).unzip();
                    let mut logits = vec![7.0; 3];
                    let row = SparseRow::try_new(&features, &values).unwrap();
                    weights.logits(row, &labels, &mut scratch, &mut logits);
                    let expected: Vec<u32> = labels.iter().map(|&label| {
                        let row: Vec<(u32, f32)> = weights.row(label).collect();
                        logit(&row, bias[label as usize], query).to_bits()
                    }).collect();
                    prop_assert_eq!(logits.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), expected);
                }
            }
        }
    }

    #[test]
    fn arrays_that_are_no_weights_are_refused() {
        let of = |starts: &[u64], features: &[u32], weights: &[f32], bias: &[f32]| {
            RankerWeights::try_new(
                5,
                starts.to_vec().into(),
                features.to_vec().into(),
                Buffer::from(Vec::new()),
                FloatBuffer::F32(weights.to_vec().into()),
                bias.to_vec().into(),
            )
        };
        let weights = of(&[0, 2, 2], &[1, 4], &[0.5, 2.0], &[0.0, 1.0]).unwrap();
        assert_eq!((weights.n_labels(), weights.n_features(), weights.row(0).last()), (2, 5, Some((4, 2.0))));
        assert_eq!(of(&[0], &[], &[], &[]).unwrap().n_labels(), 0);
        let matrix = |error| Err(RankerWeightsError::Matrix(error));
        for (starts, at) in [(&[0u64, 2][..], 2), (&[1, 2, 2], 0), (&[0, 3, 2], 2), (&[0, 2, 3], 2), (&[], 0)] {
            let expected = matrix(MatrixError::Indptr { at, lists: 2, n_entries: 2 });
            assert_eq!(of(starts, &[1, 4], &[0.5, 2.0], &[0.0, 1.0]), expected, "{starts:?}");
        }
        let lengths = matrix(MatrixError::Lengths { ids: 2, values: 1 });
        assert_eq!(of(&[0, 2], &[1, 4], &[0.5], &[0.0]), lengths);
        let order = SparseRowError::Order { previous: 4, next: 4 };
        assert_eq!(of(&[0, 2], &[4, 4], &[0.5, 1.0], &[0.0]), matrix(MatrixError::List { list: 0, source: order }));
        let beyond = matrix(MatrixError::OutOfRange { list: 1, id: 5, bound: 5 });
        assert_eq!(of(&[0, 1, 2], &[4, 5], &[0.5, 1.0], &[0.0, 0.0]), beyond);
        let infinite = SparseRowError::NotFinite { feature: 3, value: f32::INFINITY };
        let infinite = matrix(MatrixError::List { list: 2, source: infinite });
        assert_eq!(of(&[0, 1, 1, 2, 2], &[4, 3], &[0.5, f32::INFINITY], &[0.0; 4]), infinite);
        let of_skips = |skips: &[u32]| {
            let features: Buffer<u32> = (0..10).collect();
            let weights = FloatBuffer::F32(vec![1.0; 10].into());
            RankerWeights::try_new(20, vec![0, 10].into(), features, skips.to_vec().into(), weights, vec![0.0].into())
        };
        assert!(of_skips(&[0]).is_ok());
        assert_eq!(of_skips(&[1]), Err(RankerWeightsError::Skips { label: 0 }));
        assert_eq!(of_skips(&[]), Err(RankerWeightsError::NumberOfSkips { got: 0, expected: 1 }));
        let bias = Err(RankerWeightsError::Bias { label: 1, bias: f32::NEG_INFINITY });
        assert_eq!(of(&[0, 0, 0], &[], &[], &[0.0, f32::NEG_INFINITY]), bias);
    }

    #[test]
    fn a_list_with_an_unknown_label_panics_and_leaves_the_scratch_clean() {
        let weights = RankerWeights::nearest(matrix(&[BTreeMap::from([(1, 1.0)])]), vec![0.0], DType::F32);
        let (mut scratch, mut logits) = (LogitScratch::default(), Vec::new());
        let query = SparseRow::try_new(&[1], &[1.0]).unwrap();
        let unknown = std::panic::AssertUnwindSafe(|| weights.logits(query, &[0, 1], &mut scratch, &mut logits));
        let message = std::panic::catch_unwind(unknown).unwrap_err();
        assert_eq!(message.downcast_ref::<String>().unwrap(), "label 1 of 1");
        weights.logits(SparseRow::try_new(&[2], &[1.0]).unwrap(), &[0], &mut scratch, &mut logits);
        assert_eq!(logits, [0.0]);
    }
}
