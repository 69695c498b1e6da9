//! Instances with labels, for training, validation and conversion.

use super::making::count_empty;
use super::queries::{TRAINED, wrong_content};
use super::{
    Dataset, Making, NamesFile, TextSource, read_texts, report_graded, report_joined, report_separator, report_unseen,
    require_labels, strings_for,
};
use crate::fit::Context;
use crate::fit::FitError;
use std::path::Path;
use std::sync::Arc;
use xc_data::{
    FileForm, Format, LabelNames, Parts, ReadOptions, UnknownLabels, hash_rows, holds_text, read_dataset,
    read_labels_of,
};
use xc_hash::text::{Featurizer, Idf, RowWeights};
use xc_model::{InputKind, OwnedRows};
use xc_sparse::rows::Rows;
use xc_sparse::{CsrMatrix, LabelRows};

/// Where the labels of a file's instances are.
#[derive(Clone, Copy, Debug)]
pub enum LabelsFrom<'a> {
    /// In the file itself.
    Itself,
    /// In another file.
    File(&'a Path),
    /// They are not read.
    Nowhere,
}

impl<'a> From<Option<&'a Path>> for LabelsFrom<'a> {
    fn from(path: Option<&'a Path>) -> Self {
        path.map_or(Self::Itself, Self::File)
    }
}

/// Reads a training file and fits what makes its features.
///
/// # Errors
/// Whatever is wrong with the files, and data that nothing can be learned from.
pub fn read_training(
    path: &Path,
    labels: Option<&Path>,
    names: &NamesFile,
    input: &FileForm,
    making: Making<'_>,
    context: &Context,
) -> Result<Dataset, FitError> {
    let names = names.read()?;
    let data = read_labelled(path, labels.into(), names.as_ref(), UnknownLabels::Refuse, input, making, context)?;
    let name = path.display();
    if data.len() == 0 {
        return Err(FitError::usage(format_args!("{name}: no instance; at least one is expected")));
    }
    let (options, format) = (ReadOptions::from(input.clone()), data.form.format);
    report_separator(labels.unwrap_or(path), &options, &data, context);
    match labels {
        Some(labels) => require_labels(labels, &data.labels, None, &options, None)?,
        None => require_labels(path, &data.labels, format, &options, Some("train-labels"))?,
    }
    Ok(data)
}

/// Reads a file with features or text, and its labels. Where unknown names are appended, the labels are those of a model
/// or of a training file, and `names` are all that these have: without names, labels are ids.
pub fn read_labelled(
    path: &Path,
    labels: LabelsFrom<'_>,
    names: Option<&LabelNames>,
    unknown: UnknownLabels,
    input: &FileForm,
    making: Making<'_>,
    context: &Context,
) -> Result<Dataset, FitError> {
    let mut options = ReadOptions::from(input.clone());
    options.label_names = names.cloned().map(Arc::new);
    options.unknown_labels = unknown;
    if unknown == UnknownLabels::Append {
        options.label_strings = strings_for(names);
    }
    options.form.needs_id = false;
    let format = Format::detect(path, &options)?;
    options.form.format = Some(format);
    let with_labels = matches!(labels, LabelsFrom::Itself);
    let is_text = holds_text(path, format, &options)?;
    context.check_interrupt()?;
    let mut data = if is_text {
        let parts = if with_labels { Parts::Instances } else { Parts::Queries };
        let options = ReadOptions { parts, ..options.clone() };
        read_texts(&TextSource::File { path, options: &options }, with_labels, making, context)?
    } else {
        if making.is_of_texts() {
            return Err(wrong_content(&path.display().to_string(), InputKind::Text, TRAINED));
        }
        if let Making::Apply { n_features, .. } = making {
            options.expect(n_features);
        }
        read_feature_rows(path, with_labels, options.clone(), making, context)?
    };
    if let LabelsFrom::File(labels_path) = labels {
        let of_labels = options.clone().of_any_format();
        let (lists, joined) = read_labels_of(labels_path, &of_labels, path, &options, data.features().len())?;
        report_joined(labels_path, path, joined, context);
        report_graded(labels_path, lists.n_graded, context);
        data.labels = lists.labels;
        data.names = lists.label_names;
    }
    let Dataset { features, labels, names: found, maker, of_texts, hashes, .. } = data;
    let (labels, names) = with_names(path, labels, found, names, unknown)?;
    Ok(Dataset { features, labels, names, maker, of_texts, hashes, form: input.kept(format) })
}

/// Labels of a file, and a name for each where names were given or found.
pub fn with_names(
    path: &Path,
    mut labels: LabelRows,
    found: Option<Vec<String>>,
    names: Option<&LabelNames>,
    unknown: UnknownLabels,
) -> Result<(LabelRows, Option<Vec<String>>), FitError> {
    let Some(names) = names else { return Ok((labels, found)) };
    if labels.n_labels() < names.len() {
        labels = labels.with_n_labels(names.len());
    }
    if unknown == UnknownLabels::Refuse && labels.n_labels() > names.len() {
        return Err(FitError::usage(format_args!(
            "{}: {} labels; {} gives {} names, and one for each label is expected",
            path.display(),
            labels.n_labels(),
            names.file().unwrap_or("--label-names"),
            names.len()
        )));
    }
    Ok((labels, Some(names.names().to_vec())))
}

/// Weights each row in place.
fn weigh(weights: &RowWeights, rows: &mut CsrMatrix) -> Result<(), xc_hash::text::WeightRowsError> {
    let n_features = rows.cols();
    let (indptr, indices, values) = rows.parts_mut();
    weights.apply(n_features, indptr, indices, values)
}

fn read_feature_rows(
    path: &Path,
    with_labels: bool,
    mut options: ReadOptions,
    making: Making<'_>,
    context: &Context,
) -> Result<Dataset, FitError> {
    options.parts = if with_labels { Parts::Instances } else { Parts::Queries };
    let data = read_dataset(path, &options)?;
    report_unseen(path.display(), options.unseen.as_deref(), context);
    let labels = if with_labels { data.labels } else { no_labels(data.features.rows()) };
    let may_count = options.form.format != Some(Format::Npy);
    Ok(Dataset { names: data.label_names, ..of_features(path, data.features, labels, making, may_count, context)? })
}

/// Instances of features that are in memory, weighted and scaled as it was said. `name` is what messages call them;
/// `may_count`: whether whole numbers may be counts of words.
///
/// # Errors
/// Text where a model of text is to be applied, or values that cannot be weighted.
pub fn of_features(
    name: &Path,
    mut features: CsrMatrix,
    labels: LabelRows,
    making: Making<'_>,
    may_count: bool,
    context: &Context,
) -> Result<Dataset, FitError> {
    let wrong = |e: xc_hash::text::WeightRowsError| FitError::input(name, &e);
    let rows = features.view();
    let hashes = hash_rows(Rows::Sparse(rows));
    let shown = name.display();
    if let Making::Fit { weighting, .. } = &making
        && weighting.is_none_or(|weighting| weighting.idf == Idf::None)
        && may_count
        && are_whole_numbers(features.data())
    {
        let more = if weighting.is_none() { ", and rows learn best at length 1 (--normalise true)" } else { "" };
        context.note(format_args!("{shown}: features are whole numbers; word counts do better with --tfidf{more}"));
    }
    let maker = match making {
        Making::Fit { weighting: Some(weighting), hold_out, .. } => {
            let kept = hold_out.map(|hold_out| rows.select(&hold_out.split(&hashes).kept));
            let learned = kept.as_ref().map_or(features.view(), |kept| kept.view());
            let (indptr, indices, counts) = (learned.indptr(), learned.indices(), learned.data());
            let weights = RowWeights::fit(weighting, learned.cols(), indptr, indices, counts).map_err(wrong)?;
            weigh(&weights, &mut features).map_err(wrong)?;
            Some(Featurizer::Rows(weights))
        }
        Making::Fit { weighting: None, .. } | Making::Apply { maker: None, .. } => None,
        Making::Apply { maker: Some(Featurizer::Rows(weights)), .. } => {
            weigh(weights, &mut features).map_err(wrong)?;
            None
        }
        Making::Apply { maker: Some(_), .. } | Making::Unmade => {
            return Err(FitError::usage(format_args!(
                "{shown}: holds features; text is expected, since the model was trained on text"
            )));
        }
    };
    let empty = count_empty(features.indptr());
    if matches!(making, Making::Fit { .. }) && empty * 10 > features.rows() {
        let n = features.rows();
        context.warn(format_args!("{shown}: {empty} of {n} instances are without a feature: they teach the bias only"));
    }
    Ok(Dataset {
        features: OwnedRows::Sparse(features),
        labels,
        names: None,
        maker,
        of_texts: false,
        hashes,
        form: Default::default(),
    })
}

/// Whether values are what somebody counted.
fn are_whole_numbers(values: &[f32]) -> bool {
    !values.is_empty() && values.iter().all(|v| v.fract() == 0.0)
}

pub(crate) fn no_labels(n_instances: usize) -> LabelRows {
    let indptr = vec![0; n_instances + 1];
    // Empty lists satisfy every rule of label rows.
    LabelRows::try_new(indptr, Vec::new(), 0).unwrap_or_else(|e| panic!("empty label lists are no label lists: {e}"))
}
