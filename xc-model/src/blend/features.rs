//! The features of a candidate, computed from the answers of members.

use super::DEPTH;
use serde::{Deserialize, Serialize};
use xc_sparse::rank::{LabelId, Scored};

/// The scale of a member's scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureScale {
    /// Between 0 and 1: their log-odds are used.
    Probability,
    /// Anything else: used as they are.
    Raw,
}

/// Probabilities are kept this far from 0 and 1, so that log-odds stay finite.
const LEAST: f32 = 1e-6;

impl FeatureScale {
    /// The scale of the scores that a member returned.
    pub fn of(mut scores: impl Iterator<Item = f32>) -> Self {
        if scores.all(|score| (0.0..=1.0).contains(&score)) { Self::Probability } else { Self::Raw }
    }

    pub(crate) fn apply(self, score: f32) -> f32 {
        match self {
            Self::Probability => {
                let p = score.clamp(LEAST, 1.0 - LEAST);
                p.ln() - (-p).ln_1p()
            }
            Self::Raw => score,
        }
    }
}

/// Number of training rows below which a label is rare.
const RARE: u32 = 10;

/// Number of features of each member, and of the label itself.
const OF_MEMBER: usize = 4;
const OF_LABEL: usize = 2;

/// A label in one member's answer, with its rank and score.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    label: LabelId,
    member: u32,
    rank: u32,
    score: f32,
}

/// Buffers of [`Features::fill`].
#[derive(Clone, Debug, Default)]
pub struct FeatureScratch {
    places: Vec<Place>,
}

/// The features of a candidate, the input of a rule.
///
/// For each member: its score of the label (log-odds if scores are probabilities), the values `1 /
/// rank` and `ln rank`, and 1 if the label is among its best. If the label is not: the score of the
/// member's last label, 0, `ln (DEPTH + 1)` and 0. For the label: `ln (1 + n)` for the `n` rows
/// that have it, and 1 if there are fewer than ten. All features are then standardised to mean 0
/// and variance 1 over the rows of the fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    scales: Vec<FeatureScale>,
    label_counts: Vec<u32>,
    mean: Vec<f32>,
    /// What a feature is multiplied by after its mean is subtracted.
    factor: Vec<f32>,
}

impl Features {
    /// For members with scores of these scales, and labels with these numbers of rows; not
    /// standardised yet.
    pub fn new(scales: Vec<FeatureScale>, label_counts: Vec<u32>) -> Self {
        let n = scales.len() * OF_MEMBER + OF_LABEL;
        Self { scales, label_counts, mean: vec![0.0; n], factor: vec![1.0; n] }
    }

    /// With the means and factors that [`Features::standardise`] computed before.
    ///
    /// # Panics
    /// If there is not one of each per feature.
    pub fn with_standard(mut self, mean: Vec<f32>, factor: Vec<f32>) -> Self {
        assert!(mean.len() == self.n() && factor.len() == self.n(), "{} numbers a candidate", self.n());
        (self.mean, self.factor) = (mean, factor);
        self
    }

    /// Number of features of a candidate.
    pub fn n(&self) -> usize {
        self.mean.len()
    }

    /// Scales of the members' scores.
    pub fn scales(&self) -> &[FeatureScale] {
        &self.scales
    }

    /// Number of rows that have each label.
    pub fn label_counts(&self) -> &[u32] {
        &self.label_counts
    }

    /// The mean that is subtracted from each feature, and the factor that it is then multiplied by.
    pub fn standard(&self) -> (&[f32], &[f32]) {
        (&self.mean, &self.factor)
    }

    /// Standardises features that [`Features::fill`] computed, in rows of [`Features::n`] values,
    /// to mean 0 and variance 1, and stores the means and factors. A constant feature becomes 0.
    pub fn standardise(&mut self, values: &mut [f32]) {
        let (n, rows) = (self.n(), values.len() / self.n().max(1));
        for at in 0..n {
            let of = || values.iter().skip(at).step_by(n).map(|&value| f64::from(value));
            let mean = of().sum::<f64>() / rows.max(1) as f64;
            let variance = of().map(|value| (value - mean).powi(2)).sum::<f64>() / rows.max(1) as f64;
            self.mean[at] = mean as f32;
            self.factor[at] = if variance > 1e-12 { (1.0 / variance.sqrt()) as f32 } else { 0.0 };
        }
        values.chunks_exact_mut(n).for_each(|row| self.scale(row));
    }

    fn scale(&self, row: &mut [f32]) {
        let standard = self.mean.iter().zip(&self.factor);
        row.iter_mut().zip(standard).for_each(|(value, (mean, factor))| *value = (*value - mean) * factor);
    }

    /// Appends the candidates of one query, ascending, to `labels`, and the features of each to
    /// `values`. `lists` has each member's answer, best first; labels after the first [`DEPTH`] are
    /// ignored.
    ///
    /// # Panics
    /// If there is not one list per member, or a label is out of range.
    pub fn fill(
        &self,
        lists: &[&[Scored]],
        scratch: &mut FeatureScratch,
        labels: &mut Vec<LabelId>,
        values: &mut Vec<f32>,
    ) {
        assert!(lists.len() == self.scales.len(), "{} lists of {} members", lists.len(), self.scales.len());
        let FeatureScratch { places } = scratch;
        gather(lists, places);
        for of_label in places.chunk_by(|a, b| a.label == b.label) {
            let (label, start) = (of_label[0].label, values.len());
            labels.push(label);
            let mut found = of_label.iter().peekable();
            for (member, (list, scale)) in lists.iter().zip(&self.scales).enumerate() {
                let place = found.next_if(|place| place.member as usize == member);
                let last = || list.get(..DEPTH).unwrap_or(list).last().map_or(0.0, |s| scale.apply(s.score));
                values.extend(match place {
                    Some(place) => {
                        let rank = place.rank as f32;
                        [scale.apply(place.score), 1.0 / rank, rank.ln(), 1.0]
                    }
                    None => [last(), 0.0, (DEPTH as f32 + 1.0).ln(), 0.0],
                });
            }
            let count = self.label_counts[label as usize];
            values.extend([(count as f32).ln_1p(), if count < RARE { 1.0 } else { 0.0 }]);
            self.scale(&mut values[start..]);
        }
    }
}

/// The best labels of all members, by label and then by member.
fn gather(lists: &[&[Scored]], places: &mut Vec<Place>) {
    places.clear();
    for (member, list) in (0u32..).zip(lists) {
        let ranked = (1u32..).zip(list.iter().take(DEPTH));
        places.extend(ranked.map(|(rank, s)| Place { label: s.label, member, rank, score: s.score }));
    }
    places.sort_unstable_by_key(|place| (place.label, place.member));
}

/// The sum of the reciprocal ranks of every label of the lists, divided by the number of lists;
/// labels ascending. Only the `depth` best labels of each list count.
pub fn candidates(lists: &[&[Scored]], depth: usize, out: &mut Vec<Scored>) {
    out.clear();
    for list in lists {
        let ranked = (1u32..).zip(list.iter().take(depth));
        out.extend(ranked.map(|(rank, s)| Scored { label: s.label, score: 1.0 / rank as f32 }));
    }
    // Larger terms first, so that a sum does not depend on the order of the members.
    out.sort_unstable_by(|a, b| a.label.cmp(&b.label).then(b.score.total_cmp(&a.score)));
    out.dedup_by(|next, kept| {
        let same = next.label == kept.label;
        kept.score += if same { next.score } else { 0.0 };
        same
    });
    let n = lists.len().max(1) as f32;
    out.iter_mut().for_each(|s| s.score /= n);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(labels: &[u32]) -> Vec<Scored> {
        (0..).zip(labels).map(|(i, &label)| Scored { label, score: 0.9 - 0.1 * i as f32 }).collect()
    }

    #[test]
    fn a_candidate_has_the_score_and_rank_of_each_member_and_how_often_it_is_true() {
        let (a, b) = (list(&[7, 2]), list(&[2]));
        let features = Features::new(vec![FeatureScale::Probability, FeatureScale::Raw], vec![0, 0, 20, 0, 0, 0, 0, 3]);
        let (mut labels, mut values) = (Vec::new(), Vec::new());
        features.fill(&[&a, &b], &mut Default::default(), &mut labels, &mut values);
        assert_eq!((&labels[..], values.len()), (&[2, 7][..], 2 * features.n()));
        let logit = |p: f32| (p / (1.0 - p)).ln();
        let expected = [
            [logit(0.8), 0.5, 2f32.ln(), 1.0, 0.9, 1.0, 0.0, 1.0, 21f32.ln(), 0.0],
            [logit(0.9), 1.0, 0.0, 1.0, 0.9, 0.0, 31f32.ln(), 0.0, 4f32.ln(), 1.0],
        ];
        for (value, expected) in values.iter().zip(expected.as_flattened()) {
            assert!((value - expected).abs() < 1e-5, "{values:?}");
        }
    }

    #[test]
    fn nothing_is_made_of_nothing_and_scores_of_0_and_1_stay_finite() {
        let features = Features::new(vec![FeatureScale::Probability], vec![1; 3]);
        let (mut labels, mut values) = (Vec::new(), Vec::new());
        features.fill(&[&[]], &mut Default::default(), &mut labels, &mut values);
        assert!(labels.is_empty() && values.is_empty());
        let sure = [Scored { label: 0, score: 1.0 }, Scored { label: 1, score: 0.0 }];
        features.fill(&[&sure], &mut Default::default(), &mut labels, &mut values);
        assert!(values.iter().all(|v| v.is_finite()) && values[0] > 13.0 && values[6] < -13.0, "{values:?}");
        assert_eq!(FeatureScale::of([0.0, 1.0].into_iter()), FeatureScale::Probability);
        assert_eq!(FeatureScale::of([0.5, -0.1].into_iter()), FeatureScale::Raw);
    }

    proptest! {
        #[test]
        fn reciprocal_ranks_are_those_of_the_definition(
            lists in prop::collection::vec(prop::collection::vec(0u32..50, 0..45), 0..4), depth in 0usize..40
        ) {
            let lists: Vec<Vec<Scored>> = lists.into_iter().map(|mut labels| {
                let mut seen = std::collections::BTreeSet::new();
                labels.retain(|&label| seen.insert(label));
                list(&labels)
            }).collect();
            let views: Vec<&[Scored]> = lists.iter().map(|list| &list[..]).collect();
            let mut got = Vec::new();
            candidates(&views, depth, &mut got);
            let mut expected = std::collections::BTreeMap::new();
            for list in &lists {
                for (rank, s) in (1..).zip(list.iter().take(depth)) {
                    *expected.entry(s.label).or_insert(0.0) += 1.0 / f64::from(rank) / lists.len() as f64;
                }
            }
            prop_assert_eq!(got.len(), expected.len());
            for (got, (label, score)) in got.iter().zip(expected) {
                prop_assert_eq!(got.label, label);
                prop_assert!((f64::from(got.score) - score).abs() < 1e-6);
            }
            // The order of the members does not matter.
            let mut turned = Vec::new();
            candidates(&views.iter().rev().copied().collect::<Vec<_>>(), depth, &mut turned);
            prop_assert_eq!(got, turned);
        }

        #[test]
        fn standardised_numbers_have_mean_0_and_variance_1(values in prop::collection::vec(-50.0f32..50.0, 12..240)) {
            let mut features = Features::new(vec![FeatureScale::Raw], vec![]);
            let n = features.n();
            let mut values = values[..values.len() / n * n].to_vec();
            let before = values.clone();
            features.standardise(&mut values);
            let rows = values.len() / n;
            for at in 0..n {
                let column: Vec<f64> = values.iter().skip(at).step_by(n).map(|&v| f64::from(v)).collect();
                let mean = column.iter().sum::<f64>() / rows as f64;
                let square = column.iter().map(|v| v * v).sum::<f64>() / rows as f64;
                prop_assert!(mean.abs() < 1e-4 && (square - 1.0).abs() < 1e-3, "{} {}", mean, square);
            }
            // A single row is scaled in the same way later.
            let mut row = before[..n].to_vec();
            features.scale(&mut row);
            prop_assert_eq!(&row[..], &values[..n]);
        }
    }
}
