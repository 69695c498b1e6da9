//! Instances to train on, sparse or as vectors, and others to watch.

use super::inputs::DataArgs;
use crate::context::Context;
use crate::data::{Datasets, KnownLabels, read_vectors, vector_source};
use crate::error::{CliError, chain};
use std::path::PathBuf;
use xc_hash::text::PipelineParams;
use xc_sparse::io::{LabelNames, NameColumn, UnknownLabels, read_label_names};

/// Reads everything that the options name. Vectors and sparse features do not go together.
pub(super) fn read(
    data: &DataArgs,
    features: Option<&PathBuf>,
    validation_features: Option<&PathBuf>,
    text: &PipelineParams,
    context: &Context,
) -> Result<Datasets, CliError> {
    let format = data.input.format;
    let train = vector_source(&data.train, data.train_labels.as_deref(), features.map(|f| &**f), format, "train")?;
    let validation = match &data.validation {
        Some(main) => {
            let features = validation_features.map(|f| &**f);
            vector_source(main, data.validation_labels.as_deref(), features, format, "validation")?
        }
        None => None,
    };
    let Some(train) = train else {
        if let Some(source) = validation {
            return Err(CliError::usage(format_args!(
                "{}: vectors, but the training instances of {} are sparse features; both are expected in one form",
                source.vectors.display(),
                data.train.display()
            )));
        }
        return data.read(&[], text, context);
    };
    if data.tfidf {
        return Err(CliError::usage("--tfidf: vectors are used as they are"));
    }
    for path in [Some(train.vectors), Some(train.labels), data.label_names.as_deref(), data.validation.as_deref()]
        .into_iter()
        .chain([validation.as_ref().map(|s| s.vectors), validation.as_ref().map(|s| s.labels)])
        .flatten()
    {
        std::fs::File::open(path).map_err(|e| CliError::usage(format_args!("{}: {}", path.display(), chain(&e))))?;
    }
    let names = data.label_names.as_deref().map(|path| read_label_names(path, NameColumn::First)).transpose()?;
    let known = KnownLabels { names: names.as_ref(), unknown: UnknownLabels::Refuse };
    let learned = read_vectors(&train, &known, &data.input, context)?;
    if learned.labels.nnz() == 0 {
        return Err(CliError::usage(format_args!(
            "{}: no instance has a label; at least one label is expected",
            train.labels.display()
        )));
    }
    let validation = match (validation, &data.validation) {
        (Some(source), _) => {
            // The names came out of a dictionary, which has each once.
            let names = learned.names.clone().and_then(|names| LabelNames::try_new(names).ok());
            let known = KnownLabels { names: names.as_ref(), unknown: UnknownLabels::Append };
            let held_out = read_vectors(&source, &known, &data.input, context)?;
            let (got, expected) = (held_out.width(), learned.width());
            if got != expected {
                return Err(CliError::usage(format_args!(
                    "{}: vectors of {got} values; those of {} have {expected}",
                    source.vectors.display(),
                    train.vectors.display()
                )));
            }
            Some(held_out)
        }
        (None, Some(main)) => {
            return Err(CliError::usage(format_args!(
                "{}: no vectors; --validation-features FILE.npy is expected, since the training instances are vectors",
                main.display()
            )));
        }
        (None, None) => None,
    };
    Ok(Datasets { train: learned, validation })
}
