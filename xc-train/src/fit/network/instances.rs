//! What networks learn from, wherever it comes from, and others to watch.

use super::corpus::WordText;
use crate::fit::data::{Dataset, Datasets};
use xc_nn::{Rows, TargetRows};
use xc_sparse::LabelRows;

/// Instances in memory.
#[expect(clippy::large_enum_variant, reason = "a command has one of them")]
pub enum Instances {
    /// With labels, out of files.
    Files(Datasets),
    /// Words of a text.
    Words(WordText),
}

impl Instances {
    /// Features of the instances to learn from.
    pub fn features(&self) -> Rows<'_> {
        match self {
            Self::Files(sets) => sets.train.features(),
            Self::Words(text) => text.corpus.features(),
        }
    }

    /// Their labels, where they are those of a file.
    pub fn labels(&self) -> Option<&LabelRows> {
        match self {
            Self::Files(sets) => Some(&sets.train.labels),
            Self::Words(_) => None,
        }
    }

    /// Their labels.
    pub fn targets(&self) -> TargetRows<'_> {
        match self {
            Self::Files(sets) => (&sets.train.labels).into(),
            Self::Words(text) => text.corpus.targets(),
        }
    }

    /// The instances of the validation file, where there is one.
    pub fn validation(&self) -> Option<&Dataset> {
        self.files().and_then(|sets| sets.validation.as_ref())
    }

    /// Instances out of files.
    pub fn files(&self) -> Option<&Datasets> {
        match self {
            Self::Files(sets) => Some(sets),
            Self::Words(_) => None,
        }
    }

    /// Bytes in memory.
    pub fn n_bytes(&self) -> u64 {
        match self {
            Self::Files(sets) => sets.n_bytes(),
            Self::Words(text) => text.corpus.n_bytes(),
        }
    }

    /// Bytes that stay in files until they are looked at.
    pub fn mapped_bytes(&self) -> u64 {
        let sets = self.files().into_iter().flat_map(|sets| std::iter::once(&sets.train).chain(&sets.validation));
        sets.map(Dataset::mapped_bytes).sum()
    }
}
