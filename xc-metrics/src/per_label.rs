//! What predictions say about each label.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use xxhash_rust::xxh3::Xxh3Default;

/// How the predictions of one label fare where each list is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LabelCut {
    /// Instances whose cut list has the label.
    pub predicted: f64,
    /// Those of them of which it is true.
    pub correct: f64,
    /// `correct / predicted`; 0 if it is never predicted.
    pub precision: f64,
    /// `correct / support`; 0 if it is never true.
    pub recall: f64,
    /// `2 correct / (support + predicted)`.
    pub f1: f64,
}

impl LabelCut {
    pub(super) fn new(support: f64, predicted: f64, correct: f64) -> Self {
        let share = |of: f64| if of > 0.0 { correct / of } else { 0.0 };
        Self {
            predicted,
            correct,
            precision: share(predicted),
            recall: share(support),
            f1: 2.0 * share(support + predicted),
        }
    }
}

/// One label; numbers of instances are weighted.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelFigures {
    /// The label.
    pub label: u32,
    /// Instances of which it is true.
    pub support: f64,
    /// With the lists cut at each k, ascending.
    pub at_k: Vec<LabelCut>,
    /// With the lists cut at the threshold, where there is one.
    pub at_threshold: Option<LabelCut>,
    /// The label that is predicted in its place most often, and in how many instances: this label is true and not
    /// predicted, the other one is predicted and not true. Equal numbers: the smaller label. Lists are cut at the
    /// threshold, or else at the smallest k.
    pub confused: Option<(u32, f64)>,
}

/// How often one label is predicted in place of another.
#[derive(Clone, Debug, Default)]
pub(super) struct Confusions {
    counts: HashMap<(u32, u32), f64, BuildHasherDefault<Xxh3Default>>,
}

impl Confusions {
    /// Adds one instance; `ranked` is its list where it is cut.
    pub(super) fn add(&mut self, truth: &[u32], ranked: &[u32], hits: &[bool], weight: f64) {
        if weight == 0.0 || hits.iter().all(|&hit| hit) {
            return;
        }
        for &missed in truth.iter().filter(|label| !ranked.contains(label)) {
            for (&wrong, _) in ranked.iter().zip(hits).filter(|(_, hit)| !**hit) {
                *self.counts.entry((missed, wrong)).or_default() += weight;
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (&pair, &count) in &other.counts {
            *self.counts.entry(pair).or_default() += count;
        }
    }

    /// For each label with confusions the most frequent one.
    pub(super) fn most(&self) -> HashMap<u32, (u32, f64)> {
        let mut most: HashMap<u32, (u32, f64)> = HashMap::new();
        for (&(missed, wrong), &count) in &self.counts {
            let best = most.entry(missed).or_insert((wrong, count));
            if count > best.1 || (count == best.1 && wrong < best.0) {
                *best = (wrong, count);
            }
        }
        most
    }
}
