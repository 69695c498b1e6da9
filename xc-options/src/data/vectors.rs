//! Vectors that were computed elsewhere, with labels of another file.

use super::{label_format, report_graded, strings_for};
use std::path::Path;
use std::sync::Arc;
use xc_data::{FileForm, Format, LabelNames, ReadOptions, UnknownLabels, Vectors, read_labels};
use xc_train::fit::data::{Dataset, of_vectors, with_names};
use xc_train::fit::{Context, FitError};

/// Where vectors are, and the labels that belong to them.
pub struct VectorSource<'a> {
    /// The vectors, npy.
    pub vectors: &'a Path,
    /// Their labels.
    pub labels: &'a Path,
}

/// The file of vectors that options name: `features` beside a file that only gives labels, or an
/// npy file with labels of its own.
pub fn vector_source<'a>(
    main: &'a Path,
    labels: Option<&'a Path>,
    features: Option<&'a Path>,
    format: Option<Format>,
    option: &str,
) -> Result<Option<VectorSource<'a>>, FitError> {
    if let Some(vectors) = features {
        return Ok(Some(VectorSource { vectors, labels: main }));
    }
    match (is_vectors(main, format), labels) {
        (false, _) => Ok(None),
        (true, Some(labels)) => Ok(Some(VectorSource { vectors: main, labels })),
        (true, None) => Err(FitError::usage(format_args!(
            "{}: vectors without labels; --{option}-labels FILE is expected, or the labels as --{option} and these as --{}",
            main.display(),
            if option == "train" { "features" } else { "validation-features" }
        ))),
    }
}

/// Whether a file holds vectors, whose labels stand elsewhere.
pub fn is_vectors(path: &Path, format: Option<Format>) -> bool {
    match format {
        Some(format) => format == Format::Npy,
        None => {
            path.is_file() && Format::detect(path, &ReadOptions::default()).is_ok_and(|format| format == Format::Npy)
        }
    }
}

/// Labels that are known before a file is read.
pub struct KnownLabels<'a> {
    /// Their names.
    pub names: Option<&'a LabelNames>,
    /// What becomes of others.
    pub unknown: UnknownLabels,
}

/// Reads vectors and their labels.
///
/// # Errors
/// Whatever is wrong with the files.
pub fn read_vectors(
    source: &VectorSource<'_>,
    known: &KnownLabels<'_>,
    input: &FileForm,
    context: &Context,
) -> Result<Dataset, FitError> {
    let mut options = ReadOptions::from(input.clone());
    // A stated format is that of the file with the labels, unless it says that the other one is
    // npy.
    match options.form.format.filter(|&format| format != Format::Npy) {
        Some(_) => {}
        None => {
            let (format, header) = label_format(source.labels, &options)?;
            (options.form.format, options.header) = (Some(format), header);
        }
    }
    options.label_names = known.names.cloned().map(Arc::new);
    options.unknown_labels = known.unknown;
    if known.unknown == UnknownLabels::Append {
        options.label_strings = strings_for(known.names);
    }
    let vectors = Vectors::open(source.vectors, &options)?;
    if vectors.rows() == 0 {
        return Err(FitError::usage(format_args!(
            "{}: no instance; at least one is expected",
            source.vectors.display()
        )));
    }
    let lists = read_labels(source.labels, &options)?;
    report_graded(source.labels, lists.n_graded, context);
    let (got, expected) = (lists.labels.len(), vectors.rows());
    if got != expected {
        return Err(FitError::usage(format_args!(
            "{}: {got} rows of labels; {} has {expected} vectors, and as many rows are expected",
            source.labels.display(),
            source.vectors.display()
        )));
    }
    context.check_interrupt()?;
    let (labels, names) = with_names(source.labels, lists.labels, lists.label_names, known.names, known.unknown)?;
    Ok(Dataset { labels, names, form: input.kept(Format::Npy), ..of_vectors(vectors)? })
}
