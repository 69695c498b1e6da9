//! One repetition: a classifier of instances into buckets.

use super::{MachParams, MachParamsError};
use crate::classifier::{Classifier, DENSE};
use xc_hash::stream::{Purpose, name};
use xc_mach::Assignment;
use xc_sparse::LabelRows;

/// A classifier over the buckets of one repetition.
#[derive(Clone, Debug)]
pub struct Repetition {
    number: u32,
    classifier: Classifier,
}

/// Seed of everything that is drawn for a repetition: first values, order of the instances,
/// dropout.
pub fn repetition_seed(seed: u64, number: u32) -> u64 {
    name(seed, Purpose::Repetition, &[u64::from(number)])
}

/// The buckets of every instance's labels in the repetition at `position`, ascending, each once:
/// what its network learns.
///
/// # Panics
/// If a label is not below the assignment's number of labels, or there is no such position.
pub fn bucket_rows(assignment: &Assignment, position: usize, labels: &LabelRows) -> LabelRows {
    let (mut indptr, mut buckets) = (Vec::with_capacity(labels.len() + 1), Vec::with_capacity(labels.nnz()));
    indptr.push(0);
    let mut row = Vec::new();
    for labels in labels.iter() {
        assignment.buckets_of(position, labels, &mut row);
        buckets.extend_from_slice(&row);
        indptr.push(buckets.len());
    }
    LabelRows::try_new(indptr, buckets, assignment.n_buckets())
        .unwrap_or_else(|e| panic!("buckets that are no label rows: {e}"))
}

impl Repetition {
    /// A repetition that has learned nothing.
    ///
    /// # Errors
    /// An impossible classifier.
    pub fn new(params: &MachParams, n_features: usize, number: u32) -> Result<Self, MachParamsError> {
        let mut own = params.classifier.clone();
        own.learning.seed = repetition_seed(params.seed, number);
        let classifier = Classifier::new(DENSE, n_features, params.n_buckets as usize, own)?;
        Ok(Self { number, classifier })
    }

    pub(super) fn from_classifier(number: u32, classifier: Classifier) -> Self {
        Self { number, classifier }
    }

    /// Its number, which with the parameters names its hash function.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its classifier, to be trained.
    pub fn classifier_mut(&mut self) -> &mut Classifier {
        &mut self.classifier
    }

    /// Its classifier.
    pub fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    pub(super) fn into_classifier(self) -> Classifier {
        self.classifier
    }
}
