//! A transformer from its folder: below a network, before it, or alone.

#[cfg(feature = "transformer")]
mod built;
#[cfg(not(feature = "transformer"))]
#[path = "absent.rs"]
mod built;
mod embed;

pub(super) use built::begin;
pub use embed::{Embed, Embedded};

use super::FitError;
use crate::network::TextEncoder;
use xc_dense::MatmulPrecision;
use xc_hash::text::Featurizer;
use xc_model::classifier::ClassifierParams;

impl TextEncoder {
    /// What makes of texts what a network reads: tokens, or vectors by the transformer as it comes; and what is to be said of
    /// it. `of` stands before the names of options in messages.
    ///
    /// # Errors
    /// What is wrong with the folder, or does not belong together; a build without feature `transformer`.
    pub fn featurizer(&self, of: &str, precision: MatmulPrecision) -> Result<(Featurizer, Vec<String>), FitError> {
        built::featurizer(self, of, precision)
    }

    /// Puts the transformer of the folder below the layers of a network.
    ///
    /// # Errors
    /// What is wrong with the folder; a build without feature `transformer`.
    pub fn put_below(&self, params: &mut ClassifierParams) -> Result<(), FitError> {
        built::put(self, params)
    }

    /// Hash of the weights in the folder and its modules, and of what says how they are used: what is learned follows from
    /// them.
    ///
    /// *Cost*: reads them.
    ///
    /// # Errors
    /// The folder cannot be read; a build without feature `transformer`.
    pub fn hash(&self) -> Result<String, FitError> {
        built::hash(&self.pretrained)
    }
}
