//! What stands for tokenizers and transformers in builds without them.

#[cfg(feature = "convert")]
use crate::{ConvertError, Model};
use std::path::PathBuf;
use thiserror::Error;
use xc_hash::text::Featurizer;
use xc_store::Container;
use xc_tree::text::StoredPipelineError;

/// A model that this build cannot ask.
#[derive(Debug, Error)]
#[error("{}: its texts are read by a transformer, which this build lacks (feature transformer)", path.display())]
struct Lacking {
    path: PathBuf,
}

/// The file whose tokenizer this thread is at work with: none in this build.
pub fn tokenizer_at_work() -> Option<PathBuf> {
    None
}

/// Refuses a model whose texts become tokens or vectors.
pub(super) fn read(container: &Container) -> Result<Option<Featurizer>, StoredPipelineError> {
    let kind = container.pipeline().and_then(|config| config.get("kind")?.as_str());
    if kind.is_some_and(|kind| ["tokens", super::words::KIND, "vectors"].contains(&kind)) {
        let lacking = Lacking { path: container.folder().to_owned() };
        return Err(StoredPipelineError::Tokens(Box::new(lacking)));
    }
    Ok(None)
}

/// No model that opens in this build has a transformer.
#[cfg(feature = "convert")]
pub(crate) fn write_transformer(model: &Model, _: &std::path::Path) -> Result<(), ConvertError> {
    Err(ConvertError::NoTransformer { path: model.folder().to_owned(), what: "it has no transformer" })
}
