//! Instances as sparse features or as vectors, with their labels.

use super::inputs::{DataArgs, Instances};
use crate::context::Context;
use crate::data::{Labelled, label_format, with_names};
use crate::error::{CliError, io_text};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xc_hash::text::{Featurizer, PipelineParams};
use xc_sparse::io::{Format, LabelNames, NameColumn, UnknownLabels, Vectors, read_label_names, read_labels};
use xc_sparse::{CsrMatrix, LabelRows, Rows};
use xc_train::{DenseRows, Features};

/// Features of all instances of a file.
pub(super) enum Rowset {
    Sparse(CsrMatrix),
    Vectors(Vectors),
}

/// Instances of a file, and what is known of their features and labels.
pub(super) struct GivenSet {
    pub(super) rows: Rowset,
    pub(super) labels: LabelRows,
    pub(super) names: Option<Vec<String>>,
    pub(super) maker: Option<Featurizer>,
}

/// What is learned from, and what else judges.
pub(super) struct GivenSets {
    pub(super) train: GivenSet,
    pub(super) validation: Option<GivenSet>,
}

impl From<Labelled> for GivenSet {
    fn from(data: Labelled) -> Self {
        let Labelled { features, labels, names, maker } = data;
        Self { rows: Rowset::Sparse(features), labels, names, maker }
    }
}

impl GivenSet {
    /// As a network takes them.
    pub(super) fn features(&self) -> Features<'_> {
        match &self.rows {
            Rowset::Sparse(matrix) => Features::Sparse(Rows::new(matrix.view())),
            Rowset::Vectors(vectors) => Features::Dense(DenseRows::new(vectors.values(), vectors.columns())),
        }
    }

    /// Bytes of features and labels in memory.
    pub(super) fn n_bytes(&self) -> u64 {
        let features = match &self.rows {
            Rowset::Sparse(matrix) => 8 * matrix.nnz() + 8 * matrix.rows(),
            Rowset::Vectors(vectors) if vectors.is_mapped() => 0,
            Rowset::Vectors(vectors) => 4 * vectors.values().len(),
        };
        (features + 4 * self.labels.nnz() + 8 * self.labels.len()) as u64
    }

    /// Bytes that stay in a file until they are looked at.
    pub(super) fn mapped_bytes(&self) -> u64 {
        match &self.rows {
            Rowset::Vectors(vectors) if vectors.is_mapped() => 4 * vectors.values().len() as u64,
            _ => 0,
        }
    }
}

/// Where vectors are, and the labels that belong to them.
struct Place<'a> {
    vectors: &'a Path,
    labels: &'a Path,
}

/// The file of vectors that options name: `features` beside a file that only gives labels, or an npy file with labels of its own.
fn place<'a>(
    main: &'a Path,
    labels: Option<&'a Path>,
    features: Option<&'a Path>,
    format: Option<Format>,
    option: &str,
) -> Result<Option<Place<'a>>, CliError> {
    if let Some(vectors) = features {
        return Ok(Some(Place { vectors, labels: main }));
    }
    let is_npy = match format {
        Some(format) => format == Format::Npy,
        None => main.is_file() && Format::detect(main).is_ok_and(|format| format == Format::Npy),
    };
    match (is_npy, labels) {
        (false, _) => Ok(None),
        (true, Some(labels)) => Ok(Some(Place { vectors: main, labels })),
        (true, None) => Err(CliError::usage(format_args!(
            "{}: vectors without labels; --{option}-labels FILE is wanted, or the labels as --{option} and these as --{}",
            main.display(),
            if option == "train" { "features" } else { "validation-features" }
        ))),
    }
}

/// Reads everything that the options name. Vectors and sparse features do not go together.
pub(super) fn read(
    data: &DataArgs,
    features: Option<&PathBuf>,
    validation_features: Option<&PathBuf>,
    text: &PipelineParams,
    context: &Context,
) -> Result<GivenSets, CliError> {
    let format = data.input.format;
    let train = place(&data.train, data.train_labels.as_deref(), features.map(|f| &**f), format, "train")?;
    let validation = match &data.validation {
        Some(main) => {
            let features = validation_features.map(|f| &**f);
            place(main, data.validation_labels.as_deref(), features, format, "validation")?
        }
        None => None,
    };
    let Some(train) = train else {
        if let Some(place) = validation {
            return Err(CliError::usage(format_args!(
                "{}: vectors, but the training instances of {} are sparse features; both are wanted in one form",
                place.vectors.display(),
                data.train.display()
            )));
        }
        let Instances { train, validation } = data.read(&[], text, context)?;
        return Ok(GivenSets { train: train.into(), validation: validation.map(Into::into) });
    };
    if data.tfidf {
        return Err(CliError::usage("--tfidf: vectors are used as they are"));
    }
    for path in [Some(train.vectors), Some(train.labels), data.label_names.as_deref(), data.validation.as_deref()]
        .into_iter()
        .chain([validation.as_ref().map(|p| p.vectors), validation.as_ref().map(|p| p.labels)])
        .flatten()
    {
        std::fs::File::open(path).map_err(|e| CliError::usage(format_args!("{}: {}", path.display(), io_text(&e))))?;
    }
    let names = data.label_names.as_deref().map(|path| read_label_names(path, NameColumn::First)).transpose()?;
    let known = Known { names: names.as_ref(), unknown: UnknownLabels::Refuse };
    let learned = read_vectors(&train, &known, data, context)?;
    if learned.labels.nnz() == 0 {
        return Err(CliError::usage(format_args!(
            "{}: no instance has a label; at least one label is wanted",
            train.labels.display()
        )));
    }
    let validation = match (validation, &data.validation) {
        (Some(place), _) => {
            // The names came out of a dictionary, which has each once.
            let names = learned.names.clone().and_then(|names| LabelNames::try_new(names).ok());
            let known = Known { names: names.as_ref(), unknown: UnknownLabels::Append };
            let held_out = read_vectors(&place, &known, data, context)?;
            let (met, wanted) = (held_out.features().width(), learned.features().width());
            if met != wanted {
                return Err(CliError::usage(format_args!(
                    "{}: vectors of {met} values; those of {} have {wanted}",
                    place.vectors.display(),
                    train.vectors.display()
                )));
            }
            Some(held_out)
        }
        (None, Some(main)) => {
            return Err(CliError::usage(format_args!(
                "{}: no vectors; --validation-features FILE.npy is wanted, since the training instances are vectors",
                main.display()
            )));
        }
        (None, None) => None,
    };
    Ok(GivenSets { train: learned, validation })
}

/// Labels that are known before a file is read.
struct Known<'a> {
    names: Option<&'a LabelNames>,
    unknown: UnknownLabels,
}

fn read_vectors(
    place: &Place<'_>,
    known: &Known<'_>,
    data: &DataArgs,
    context: &Context,
) -> Result<GivenSet, CliError> {
    let mut options = data.input.options();
    // A stated format is that of the file with the labels, unless it says that the other one is npy.
    match options.format.filter(|&format| format != Format::Npy) {
        Some(_) => {}
        None => {
            let (format, header) = label_format(place.labels)?;
            (options.format, options.header) = (Some(format), header);
        }
    }
    options.label_names = known.names.cloned().map(Arc::new);
    options.unknown_labels = known.unknown;
    let vectors = Vectors::open(place.vectors, &options)?;
    if vectors.rows() == 0 {
        return Err(CliError::usage(format_args!("{}: no instance; at least one is wanted", place.vectors.display())));
    }
    let lists = read_labels(place.labels, &options)?;
    let (met, wanted) = (lists.labels.len(), vectors.rows());
    if met != wanted {
        return Err(CliError::usage(format_args!(
            "{}: {met} rows of labels; {} has {wanted} vectors, and as many rows are wanted",
            place.labels.display(),
            place.vectors.display()
        )));
    }
    context.check_interrupt()?;
    vectors.check(0..vectors.rows())?;
    let (labels, names) = with_names(place.labels, lists.labels, lists.label_names, known.names, known.unknown)?;
    Ok(GivenSet { rows: Rowset::Vectors(vectors), labels, names, maker: None })
}
