//! How instances become features.

use std::sync::Arc;
use xc_data::HoldOut;
use xc_hash::text::{Featurizer, PipelineParams, TermWeighting, Tokenise};

/// How features are to be made.
pub enum Making<'a> {
    /// Learn it from this file: a text pipeline for text; for features the weighting that is given.
    /// Instances that are held out are made into features, and nothing is learned of them.
    Fit {
        /// How text becomes features.
        text: &'a PipelineParams,
        /// How features are weighted.
        weighting: Option<TermWeighting>,
        /// Which instances are held out.
        hold_out: Option<HoldOut>,
        /// What makes tokens of the same texts, where the features stand beside them.
        tokens: Option<&'a Arc<dyn Tokenise>>,
    },
    /// As it was learned before; `None` means features are used as they are.
    Apply {
        /// What made the features of the training instances.
        maker: Option<&'a Featurizer>,
        /// Features that there are.
        n_features: usize,
    },
    /// Nothing is made of texts: they have labels, and are told apart.
    Unmade,
}

impl Making<'_> {
    /// Whether instances are to be texts.
    pub fn is_of_texts(&self) -> bool {
        match self {
            Self::Fit { tokens, .. } => tokens.is_some(),
            Self::Apply { maker: None | Some(Featurizer::Rows(_)), .. } => false,
            Self::Apply { maker: Some(_), .. } | Self::Unmade => true,
        }
    }
}

/// Rows without an entry.
pub(in crate::fit) fn count_empty(indptr: &[usize]) -> usize {
    indptr.windows(2).filter(|row| row[0] == row[1]).count()
}
