//! Vectors that were computed elsewhere, with labels of another file.

use super::{Dataset, FeatureRows, InputArgs, label_format, strings_for, with_names};
use crate::context::Context;
use crate::error::CliError;
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;
use xc_sparse::DenseRows;
use xc_sparse::io::{Format, LabelNames, ReadOptions, UnknownLabels, Vectors, read_labels};
use xc_train::model::training_rows::hash_dense;

/// Where vectors are, and the labels that belong to them.
pub(crate) struct VectorSource<'a> {
    pub(crate) vectors: &'a Path,
    pub(crate) labels: &'a Path,
}

/// The file of vectors that options name: `features` beside a file that only gives labels, or an
/// npy file with labels of its own.
pub(crate) fn vector_source<'a>(
    main: &'a Path,
    labels: Option<&'a Path>,
    features: Option<&'a Path>,
    format: Option<Format>,
    option: &str,
) -> Result<Option<VectorSource<'a>>, CliError> {
    if let Some(vectors) = features {
        return Ok(Some(VectorSource { vectors, labels: main }));
    }
    match (is_vectors(main, format), labels) {
        (false, _) => Ok(None),
        (true, Some(labels)) => Ok(Some(VectorSource { vectors: main, labels })),
        (true, None) => Err(CliError::usage(format_args!(
            "{}: vectors without labels; --{option}-labels FILE is expected, or the labels as --{option} and these as --{}",
            main.display(),
            if option == "train" { "features" } else { "validation-features" }
        ))),
    }
}

/// Whether a file holds vectors, whose labels stand elsewhere.
pub(crate) fn is_vectors(path: &Path, format: Option<Format>) -> bool {
    match format {
        Some(format) => format == Format::Npy,
        None => {
            path.is_file() && Format::detect(path, &ReadOptions::default()).is_ok_and(|format| format == Format::Npy)
        }
    }
}

/// Labels that are known before a file is read.
pub(crate) struct KnownLabels<'a> {
    pub(crate) names: Option<&'a LabelNames>,
    pub(crate) unknown: UnknownLabels,
}

/// Reads vectors and their labels.
///
/// # Errors
/// Whatever is wrong with the files.
pub(crate) fn read_vectors(
    source: &VectorSource<'_>,
    known: &KnownLabels<'_>,
    input: &InputArgs,
    context: &Context,
) -> Result<Dataset, CliError> {
    let mut options = input.options();
    // A stated format is that of the file with the labels, unless it says that the other one is
    // npy.
    match options.format.filter(|&format| format != Format::Npy) {
        Some(_) => {}
        None => {
            let (format, header) = label_format(source.labels, &options)?;
            (options.format, options.header) = (Some(format), header);
        }
    }
    options.label_names = known.names.cloned().map(Arc::new);
    options.unknown_labels = known.unknown;
    if known.unknown == UnknownLabels::Append {
        options.label_strings = strings_for(known.names);
    }
    let vectors = Vectors::open(source.vectors, &options)?;
    if vectors.rows() == 0 {
        return Err(CliError::usage(format_args!(
            "{}: no instance; at least one is expected",
            source.vectors.display()
        )));
    }
    let lists = read_labels(source.labels, &options)?;
    let (got, expected) = (lists.labels.len(), vectors.rows());
    if got != expected {
        return Err(CliError::usage(format_args!(
            "{}: {got} rows of labels; {} has {expected} vectors, and as many rows are expected",
            source.labels.display(),
            source.vectors.display()
        )));
    }
    context.check_interrupt()?;
    vectors.check(0..vectors.rows())?;
    let rows = DenseRows::new(vectors.values(), vectors.columns());
    let hashes = (0..vectors.rows()).into_par_iter().map(|row| hash_dense(rows.row(row))).collect();
    let (labels, names) = with_names(source.labels, lists.labels, lists.label_names, known.names, known.unknown)?;
    Ok(Dataset {
        features: FeatureRows::Vectors(vectors),
        labels,
        names,
        maker: None,
        of_texts: false,
        hashes,
        form: input.form(Format::Npy),
    })
}
