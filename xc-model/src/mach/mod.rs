//! MACH: R networks over B buckets of labels, trained separately, queried together.
//!
//! ```text
//!   labels ──▶ Assignment ──▶ buckets of repetition j ──▶ Repetition j: bag ──▶ (layers) ──▶ B outputs, trained on its own
//!
//!   query ──▶ every repetition ──▶ R x B bucket scores ──▶ xc_mach decode ──▶ best labels and a certificate
//! ```
//!
//! A [`Repetition`] depends on the parameters, its number and the data, on no other repetition:
//! they can be trained on different machines, added and dropped, and any selection of them is a
//! [`MachModel`].
//!
//! # When not to use it
//! Where one output layer over the labels fits ([`crate::classifier`]): it distinguishes labels that
//! share buckets here. For few labels, or labels that are linear in the features, use a tree
//! (`xc-tree`), which trains in seconds.
//!
//! # References
//! `[medini2019mach]`. *Differs in*: labels are found by an exact decode that looks at few of them.

#[cfg(feature = "cuda")]
mod cuda;
mod file;
mod layout;
mod predict;
mod repetition;

#[cfg(feature = "cuda")]
pub use cuda::{DeviceAnswerError, DeviceMachModel};
pub use file::{CHECKPOINT, KIND, LostRepetition, MachContainer, OpenMachError, array_prefix};
pub use layout::MachLayout;
pub use predict::{AnswerError, Asking, MachAnswers, MachScratch};
pub use repetition::{Repetition, bucket_rows, repetition_seed};

use crate::classifier::{Classifier, ClassifierParams, ClassifierParamsError};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use xc_hash::universal::{UniversalFamily, UniversalParams};
use xc_mach::{AssignError, Assignment, Decoder, Sizing, SizingError};

/// What all repetitions of a model share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachParams {
    /// Buckets of a repetition, B.
    pub n_buckets: u32,
    /// Family of the hash functions. Prime needs no memory a label.
    pub family: UniversalFamily,
    /// What ranks labels unless a query asks for something else.
    pub decoder: Decoder,
    /// Names the hash functions, and the initial values of each repetition.
    pub seed: u64,
    /// The classifier of every repetition, which has a seed of its own made of this one.
    pub classifier: ClassifierParams,
}

/// Parameters that make no model.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum MachParamsError {
    /// Buckets and labels do not go together.
    #[error(transparent)]
    Sizing(#[from] SizingError),
    /// There are no such repetitions.
    #[error(transparent)]
    Assign(#[from] AssignError),
    /// There is no such classifier.
    #[error(transparent)]
    Classifier(#[from] ClassifierParamsError),
}

impl MachParams {
    /// The usual model over so many labels: [`MachLayout::usual`].
    pub fn usual(n_labels: usize, classifier: ClassifierParams) -> Self {
        MachLayout::usual(n_labels).params(classifier)
    }

    /// Says whether there is such a model over `n_labels` labels, and how large it is.
    ///
    /// # Errors
    /// B >= L, B < 2, no repetition, or an impossible network.
    pub fn sizing(&self, n_labels: usize, n_repetitions: usize) -> Result<Sizing, MachParamsError> {
        // Whatever the instances are: their width is checked when a repetition is made.
        self.classifier.check(usize::MAX, self.n_buckets as usize)?;
        let width = self.classifier.encoder.widths().last().copied().unwrap_or(0);
        Ok(Sizing::try_new(n_labels, n_repetitions, self.n_buckets as usize, width)?)
    }

    /// The buckets of all labels in the repetitions with these numbers.
    ///
    /// # Errors
    /// As [`MachParams::sizing`]; a repetition named twice; more labels than the family takes.
    pub fn assignment(&self, n_labels: usize, numbers: &[u32]) -> Result<Assignment, MachParamsError> {
        self.sizing(n_labels, numbers.len())?;
        let (n_keys, seed) = (n_labels as u64, self.seed);
        let params = UniversalParams { family: self.family, n_keys, n_buckets: self.n_buckets, seed };
        Ok(Assignment::try_new(params, numbers)?)
    }
}

/// Some repetitions that answer together.
#[derive(Clone, Debug)]
pub struct MachModel {
    params: MachParams,
    n_features: usize,
    assignment: Assignment,
    /// In the order of the assignment's positions.
    classifiers: Vec<Classifier>,
}

impl MachModel {
    /// The model of some repetitions, which are put into the order of their numbers.
    ///
    /// *Cost*: with another family than prime, lists of the labels of every bucket: 4 bytes a label
    /// and repetition.
    ///
    /// # Errors
    /// No repetition, one that is there twice, or parameters that make no model.
    ///
    /// # Panics
    /// If a repetition's network has not `n_features` inputs and a bucket an output.
    pub fn new(
        params: MachParams,
        n_features: usize,
        n_labels: usize,
        mut repetitions: Vec<Repetition>,
    ) -> Result<Self, MachParamsError> {
        repetitions.sort_by_key(Repetition::number);
        let numbers: Vec<u32> = repetitions.iter().map(Repetition::number).collect();
        let mut assignment = params.assignment(n_labels, &numbers)?;
        assignment.build_lists();
        let classifiers: Vec<_> = repetitions.into_iter().map(Repetition::into_classifier).collect();
        for classifier in &classifiers {
            let got = (classifier.n_features(), classifier.n_labels());
            assert_eq!(got, (n_features, params.n_buckets as usize), "inputs and outputs of a repetition");
        }
        Ok(Self { params, n_features, assignment, classifiers })
    }

    /// The model of some of the repetitions, by number.
    ///
    /// # Errors
    /// A repetition that is not there or named twice, or none at all.
    pub fn select(&self, numbers: &[u32]) -> Result<Self, AssignError> {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        let assignment = self.assignment.select(&sorted)?;
        let position = |number: &u32| self.assignment.numbers().iter().position(|n| n == number);
        let classifiers = sorted.iter().filter_map(position).map(|at| self.classifiers[at].clone()).collect();
        Ok(Self { assignment, classifiers, ..self.clone_shape() })
    }

    /// The same model for more labels. They are scored by the buckets they fall into, without any
    /// training.
    ///
    /// # Errors
    /// Fewer labels than before; the prime family grows only up to its prime.
    pub fn grown_to(&self, n_labels: usize) -> Result<Self, AssignError> {
        let mut assignment = self.assignment.grown_to(n_labels)?;
        assignment.build_lists();
        Ok(Self { assignment, classifiers: self.classifiers.clone(), ..self.clone_shape() })
    }

    fn clone_shape(&self) -> Self {
        let (params, assignment) = (self.params.clone(), self.assignment.clone());
        Self { params, n_features: self.n_features, assignment, classifiers: Vec::new() }
    }

    /// What the repetitions share.
    pub fn params(&self) -> &MachParams {
        &self.params
    }

    /// Number of features of a query.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.assignment.n_labels()
    }

    /// Buckets of the labels; the numbers of the repetitions.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// Classifier of the repetition at `position`.
    ///
    /// # Panics
    /// If there is no such position.
    pub fn classifier(&self, position: usize) -> &Classifier {
        &self.classifiers[position]
    }

    /// Sizes of the model.
    pub fn sizing(&self) -> Sizing {
        // Checked when the model was made; more labels only make room.
        self.params
            .sizing(self.n_labels(), self.classifiers.len())
            .unwrap_or_else(|e| panic!("a model of impossible size: {e}"))
    }
}
