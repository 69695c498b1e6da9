//! One sparse vector per label: the input of clustering.
//!
//! ```text
//!   pifa            z = normalise(sum of the positives' features, weighted)   as wide as the features
//!   pii             z = normalise(row of the transposed labels)          as wide as the instances
//!   label features  z = normalise(features given for the label)          as wide as those
//!   pifa + label features   both, one behind the other, each of length 1/sqrt(2)
//! ```
//!
//! Vectors are stored in shards of [`SHARD`] labels, so that building them in parallel needs no
//! second copy. Entries of a vector are in the order in which the positives first contain them, not
//! ascending: clustering only takes products with dense vectors.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xc_buffer::Cancel;
use xc_sparse::rows::unit_scale;
use xc_sparse::{CsrView, LabelRows};

/// Labels stored together.
const SHARD: usize = 512;

/// Instances of a label that are added between two questions whether to stop.
const ASK: usize = 4096;

/// How a label becomes a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelRepresentation {
    /// Normalised sum of the label's positive instances.
    Pifa,
    /// The instances themselves as coordinates: labels that occur together are near each other.
    Pii,
    /// Features given for each label.
    LabelFeatures,
    /// [`Self::Pifa`] and [`Self::LabelFeatures`] concatenated, with equal weight.
    PifaAndLabelFeatures,
}

impl LabelRepresentation {
    /// True when features of the labels must be given.
    pub fn needs_label_features(self) -> bool {
        matches!(self, Self::LabelFeatures | Self::PifaAndLabelFeatures)
    }
}

/// Vectors of some labels, each of length 1 (or 0, if nothing is known of the label).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelVectors {
    shards: Vec<Shard>,
    len: usize,
    n_features: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Shard {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl LabelVectors {
    /// Number of labels.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no label.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Width of the vectors.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of stored values.
    pub fn nnz(&self) -> usize {
        self.shards.iter().map(|s| s.values.len()).sum()
    }

    /// Coordinates and values of vector `i`, coordinates unique but in no particular order.
    ///
    /// # Panics
    /// If `i >= len()`.
    #[inline]
    pub fn vector(&self, i: usize) -> (&[u32], &[f32]) {
        let shard = &self.shards[i / SHARD];
        let range = shard.indptr[i % SHARD]..shard.indptr[i % SHARD + 1];
        (&shard.indices[range.clone()], &shard.values[range])
    }

    /// Builds the vectors of `labels`, in that order.
    ///
    /// *Shapes*: `features` and `instances_of.n_labels()` agree in the number of instances;
    /// `instances_of` is the transposed label matrix; `label_features` has one row per label (of all
    /// labels). `max_nnz` keeps only the largest entries of each vector, by magnitude (ties: the
    /// smaller coordinate), before normalising. `weights`, one number per instance, scale the instances
    /// in the sums (`None`: all equal). Nothing comes back where `cancel` asked to stop.
    ///
    /// *Cost*: O(entries summed); memory for the result and one dense row per thread.
    ///
    /// # Panics
    /// If the representation needs label features and none are given.
    pub fn build(
        representation: LabelRepresentation,
        features: CsrView<'_>,
        instances_of: &LabelRows,
        label_features: Option<CsrView<'_>>,
        labels: &[u32],
        max_nnz: Option<usize>,
        weights: Option<&[f32]>,
        cancel: &dyn Cancel,
    ) -> Option<Self> {
        let wide = match representation {
            LabelRepresentation::Pifa => features.cols(),
            LabelRepresentation::Pii => instances_of.n_labels(),
            LabelRepresentation::LabelFeatures => given(label_features).cols(),
            LabelRepresentation::PifaAndLabelFeatures => features.cols() + given(label_features).cols(),
        };
        let sum_width = match representation {
            LabelRepresentation::Pifa | LabelRepresentation::PifaAndLabelFeatures => features.cols(),
            LabelRepresentation::Pii | LabelRepresentation::LabelFeatures => 0,
        };
        let shards: Option<Vec<Shard>> = labels
            .par_chunks(SHARD)
            .map_init(
                || Sum::new(sum_width),
                |sum, chunk| {
                    let mut indptr = vec![0];
                    sum.indices.clear();
                    sum.values.clear();
                    for &label in chunk {
                        if cancel.cancelled() {
                            return None;
                        }
                        let instances = instances_of.row(label as usize);
                        let entries = &mut sum.entries;
                        entries.clear();
                        match representation {
                            LabelRepresentation::Pifa => sum.rows(features, instances, weights, cancel)?,
                            LabelRepresentation::Pii => entries.extend(instances.iter().map(|&i| (i, 1.0))),
                            LabelRepresentation::LabelFeatures => {
                                entries.extend(given(label_features).row(label as usize).iter());
                            }
                            LabelRepresentation::PifaAndLabelFeatures => {
                                sum.rows(features, instances, weights, cancel)?;
                                normalise(&mut sum.entries);
                                let middle = sum.entries.len();
                                let offset = features.cols() as u32;
                                let own = given(label_features).row(label as usize);
                                sum.entries.extend(own.iter().map(|(f, v)| (f + offset, v)));
                                normalise(&mut sum.entries[middle..]);
                            }
                        }
                        if let Some(max_nnz) = max_nnz {
                            keep_largest(&mut sum.entries, max_nnz);
                        }
                        normalise(&mut sum.entries);
                        sum.indices.extend(sum.entries.iter().map(|&(f, _)| f));
                        sum.values.extend(sum.entries.iter().map(|&(_, v)| v));
                        indptr.push(sum.values.len());
                    }
                    // Made at their final size: arrays that grow leave gaps behind.
                    Some(Shard { indptr, indices: sum.indices.to_vec(), values: sum.values.to_vec() })
                },
            )
            .collect();
        Some(Self { shards: shards?, len: labels.len(), n_features: wide })
    }
}

/// The label features that the representation asked for.
fn given(label_features: Option<CsrView<'_>>) -> CsrView<'_> {
    match label_features {
        Some(rows) => rows,
        None => panic!("this label representation needs label features, got none"),
    }
}

/// A dense accumulator that remembers which coordinates it holds.
struct Sum {
    place: Vec<u32>,
    entries: Vec<(u32, f32)>,
    /// Those of the shard in work.
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Sum {
    fn new(width: usize) -> Self {
        Self { place: vec![u32::MAX; width], entries: Vec::new(), indices: Vec::new(), values: Vec::new() }
    }

    /// Adds the rows of `instances`; `entries` must be empty. Nothing is of use where `cancel` asked to stop.
    fn rows(
        &mut self,
        features: CsrView<'_>,
        instances: &[u32],
        weights: Option<&[f32]>,
        cancel: &dyn Cancel,
    ) -> Option<()> {
        // The weight of a single instance would be lost in normalising.
        if let [one] = instances {
            self.entries.extend(features.row(*one as usize).iter());
            return Some(());
        }
        for (added, &instance) in instances.iter().enumerate() {
            // Labels of many instances take long.
            if added % ASK == ASK - 1 && cancel.cancelled() {
                return None;
            }
            let weight = weights.map_or(1.0, |w| w[instance as usize]);
            for (feature, value) in features.row(instance as usize).iter() {
                let value = weight * value;
                let place = &mut self.place[feature as usize];
                if *place == u32::MAX {
                    *place = self.entries.len() as u32;
                    self.entries.push((feature, value));
                } else {
                    self.entries[*place as usize].1 += value;
                }
            }
        }
        for &(feature, _) in &self.entries {
            self.place[feature as usize] = u32::MAX;
        }
        Some(())
    }
}

/// Scales to length 1; a vector of length 0 stays.
fn normalise(entries: &mut [(u32, f32)]) {
    let scale = unit_scale(entries.iter().map(|&(_, v)| v));
    entries.iter_mut().for_each(|(_, v)| *v = (f64::from(*v) * scale) as f32);
}

/// Drops all but the `keep` largest entries by magnitude.
fn keep_largest(entries: &mut Vec<(u32, f32)>, keep: usize) {
    if entries.len() > keep {
        if keep > 0 {
            entries.select_nth_unstable_by(keep - 1, |a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
        }
        entries.truncate(keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_buffer::Silent;
    use xc_sparse::CsrMatrix;

    fn dense(vectors: &LabelVectors, i: usize) -> Vec<f32> {
        let mut out = vec![0.0; vectors.n_features()];
        let (indices, values) = vectors.vector(i);
        for (&f, &v) in indices.iter().zip(values) {
            out[f as usize] += v;
        }
        out
    }

    fn near(a: &[f32], b: &[f32]) {
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-6), "{a:?} {b:?}");
    }

    fn three_instances() -> (CsrMatrix, LabelRows) {
        let x = CsrMatrix::from_checked((3, 4), vec![0, 2, 2, 4], vec![0, 2, 2, 3], vec![3.0, 4.0, -4.0, 5.0]);
        let y = LabelRows::from_lists([vec![0u32, 2], vec![1], vec![2]], 4).unwrap();
        (x, y.transpose())
    }

    #[test]
    fn pifa_is_the_normalised_sum_of_the_positives() {
        let (x, t) = three_instances();
        let z = LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &[2, 0, 1, 3], None, None, &Silent)
            .unwrap();
        assert_eq!((z.len(), z.n_features()), (4, 4));
        let s = 34f32.sqrt();
        near(&dense(&z, 0), &[3.0 / s, 0.0, 0.0, 5.0 / s]);
        near(&dense(&z, 1), &[0.6, 0.0, 0.8, 0.0]);
        near(&dense(&z, 2), &[0.0; 4]);
        near(&dense(&z, 3), &[0.0; 4]);
    }

    #[test]
    fn weights_scale_the_summed_instances() {
        let (x, t) = three_instances();
        let weights = Some(&[0.5f32, 9.0, 2.0][..]);
        let z = LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &[2, 0], None, weights, &Silent)
            .unwrap();
        // Label 2: 0.5 * (3, 0, 4, 0) + 2 * (0, 0, -4, 5). Label 0 has one instance.
        let sum = [1.5f32, 0.0, -6.0, 10.0];
        let length = sum.iter().map(|v| v * v).sum::<f32>().sqrt();
        near(&dense(&z, 0), &sum.map(|v| v / length));
        near(&dense(&z, 1), &[0.6, 0.0, 0.8, 0.0]);
    }

    #[test]
    fn other_representations_equal_their_definitions() {
        let (x, t) = three_instances();
        let given = CsrMatrix::from_checked((4, 2), vec![0, 1, 2, 4, 4], vec![1, 0, 0, 1], vec![2.0, 5.0, 3.0, 4.0]);
        let rows = x.view();
        let own = Some(given.view());
        let z = LabelVectors::build(LabelRepresentation::Pii, rows, &t, None, &[2], None, None, &Silent).unwrap();
        near(&dense(&z, 0), &[0.5f32.sqrt(), 0.0, 0.5f32.sqrt()]);
        let z = LabelVectors::build(LabelRepresentation::LabelFeatures, rows, &t, own, &[2, 3], None, None, &Silent)
            .unwrap();
        near(&dense(&z, 0), &[0.6, 0.8]);
        near(&dense(&z, 1), &[0.0, 0.0]);
        let z =
            LabelVectors::build(LabelRepresentation::PifaAndLabelFeatures, rows, &t, own, &[0], None, None, &Silent)
                .unwrap();
        let h = 0.5f32.sqrt();
        near(&dense(&z, 0), &[0.6 * h, 0.0, 0.8 * h, 0.0, 0.0, h]);
    }

    #[test]
    fn only_the_largest_entries_stay() {
        let (x, t) = three_instances();
        let z =
            LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &[2], Some(1), None, &Silent).unwrap();
        near(&dense(&z, 0), &[0.0, 0.0, 0.0, 1.0]);
        let z =
            LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &[2], Some(0), None, &Silent).unwrap();
        assert_eq!(z.nnz(), 0);
    }

    #[test]
    fn shards_do_not_show() {
        let n = SHARD * 2 + 3;
        let x = CsrMatrix::from_checked((n, n), (0..=n).collect(), (0..n as u32).collect(), vec![2.0; n]);
        let t = LabelRows::from_lists((0..n as u32).map(|i| [i]), n).unwrap();
        let labels: Vec<u32> = (0..n as u32).rev().collect();
        let z =
            LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &labels, None, None, &Silent).unwrap();
        for (i, &label) in labels.iter().enumerate() {
            assert_eq!(z.vector(i), (&[label][..], &[1.0f32][..]));
        }
    }
}
