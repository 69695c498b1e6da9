//! What the outputs of a network stand for: labels, buckets of labels, words.

use super::mach::Buckets;
use super::session::{Learner, Outputs};
use super::skipgram::Words;
use crate::skipgram::WordsParams;
use std::path::PathBuf;
use xc_model::mach::MachLayout;

impl Outputs {
    /// The labels, of a classifier of a kind.
    pub fn labels(kind: &'static str) -> Self {
        Self::of(OverLabels(kind))
    }

    /// Buckets of the labels, in the repetitions of a MACH model.
    pub fn buckets(layout: MachLayout) -> Self {
        Self::of(Buckets(layout))
    }

    /// Words beside a word. `vectors` is the file for the vectors of words as text, of a model in a folder.
    pub fn words(params: WordsParams, vectors: PathBuf) -> Self {
        Self::of(Words { params, vectors })
    }
}

/// A classifier of a kind over the labels.
struct OverLabels(&'static str);

impl Learner for OverLabels {
    fn kind(&self) -> &'static str {
        self.0
    }
}
