//! What stands for transformers in builds without them: an error that says so.

use super::{Embed, Embedded};
use crate::fit::{Context, FitError};
use crate::network::{Pretrained, TextEncoder};
use std::path::Path;
use xc_dense::MatmulPrecision;
use xc_hash::text::Featurizer;
use xc_model::classifier::{Classifier, ClassifierParams};

fn absent<T>() -> Result<T, FitError> {
    Err(FitError::without_transformers("--encoder"))
}

pub(super) fn featurizer(_: &TextEncoder, _: &str, _: MatmulPrecision) -> Result<(Featurizer, Vec<String>), FitError> {
    absent()
}

pub(super) fn put(_: &TextEncoder, _: &mut ClassifierParams) -> Result<(), FitError> {
    absent()
}

pub(in crate::fit) fn begin(_: &Pretrained, _: &mut Classifier) -> Result<(), FitError> {
    absent()
}

pub(super) fn hash(_: &Pretrained) -> Result<String, FitError> {
    absent()
}

impl Embed {
    /// Fails: this build has no transformers.
    ///
    /// # Errors
    /// Always.
    pub fn write(
        &self,
        _: &str,
        _: &mut (dyn FnMut() -> Result<Option<Vec<String>>, FitError> + Send),
        _: &Path,
        _: &Context<'_>,
    ) -> Result<Embedded, FitError> {
        Err(FitError::without_transformers("xc embed"))
    }
}
