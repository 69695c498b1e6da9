//! Files of instances with labels, for training, validation and conversion.

use super::queries::{TRAINED, wrong_content};
use super::{NamesFile, report_graded, report_joined, report_separator, report_unseen, require_labels, strings_for};
use std::path::Path;
use std::sync::Arc;
use xc_data::{
    FileForm, Format, LabelNames, Parts, ReadOptions, UnknownLabels, holds_text, read_dataset_until, read_labels_of,
};
use xc_model::InputKind;
use xc_train::fit::data::{Dataset, Making, TextSource, no_labels, of_features, read_texts, with_names};
use xc_train::fit::{Context, FitError};

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

fn read_feature_rows(
    path: &Path,
    with_labels: bool,
    mut options: ReadOptions,
    making: Making<'_>,
    context: &Context,
) -> Result<Dataset, FitError> {
    options.parts = if with_labels { Parts::Instances } else { Parts::Queries };
    let data = read_dataset_until(path, &options, context.observer)?;
    report_unseen(path.display(), options.unseen.as_deref(), context);
    let labels = if with_labels { data.labels } else { no_labels(data.features.rows()) };
    let may_count = options.form.format != Some(Format::Npy);
    Ok(Dataset { names: data.label_names, ..of_features(path, data.features, labels, making, may_count, context)? })
}
