//! Instances with labels, for training, validation and conversion.

use super::{Dataset, FeatureRows, InputArgs, NamesArgs, report_unseen, require_labels, strings_for, text_advice};
use crate::context::Context;
use crate::error::{CliError, chain};
use crate::interrupt;
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;
use xc_hash::text::{
    Featurizer, FitPipelineError, FitStreamError, Idf, Pipeline, PipelineParams, RowWeights, Weighting,
};
use xc_sparse::io::{
    FieldOf, Format, LabelCollector, LabelNames, Parts, ReadError, ReadErrorKind, ReadOptions, UnknownLabels,
    holds_text, open_text, read_dataset, read_labels,
};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_train::model::HoldOut;
use xc_train::model::training_rows::{hash_sparse, hash_text};

/// How features are to be made.
pub(crate) enum Making<'a> {
    /// Learn it from this file: a text pipeline for text; for features the weighting that is given.
    /// Instances that are held out are made into features, and nothing is learned of them.
    Fit { text: &'a PipelineParams, weighting: Option<Weighting>, hold_out: Option<HoldOut> },
    /// As it was learned before; `None` means features are used as they are.
    Apply { maker: Option<&'a Featurizer>, n_features: usize },
}

/// Where the labels of a file's instances are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LabelsFrom<'a> {
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
pub(crate) fn read_training(
    path: &Path,
    labels: Option<&Path>,
    names: &NamesArgs,
    input: &InputArgs,
    text: &PipelineParams,
    weighting: Option<Weighting>,
    hold_out: Option<HoldOut>,
    context: &Context,
) -> Result<Dataset, CliError> {
    let names = names.read()?;
    let making = Making::Fit { text, weighting, hold_out };
    let data = read_labelled(path, labels.into(), names.as_ref(), UnknownLabels::Refuse, input, making, context)?;
    let name = path.display();
    if data.len() == 0 {
        return Err(CliError::usage(format_args!("{name}: no instance; at least one is expected")));
    }
    let format = data.form.format.as_deref().and_then(|name| name.parse().ok());
    match labels {
        Some(labels) => require_labels(labels, &data.labels, None, &input.options(), None)?,
        None => require_labels(path, &data.labels, format, &input.options(), Some("train-labels"))?,
    }
    Ok(data)
}

/// Reads a file with features or text, and its labels. Where unknown names are appended, the labels are those of a model
/// or of a training file, and `names` are all that these have: without names, labels are ids.
pub(crate) fn read_labelled(
    path: &Path,
    labels: LabelsFrom<'_>,
    names: Option<&LabelNames>,
    unknown: UnknownLabels,
    input: &InputArgs,
    making: Making<'_>,
    context: &Context,
) -> Result<Dataset, CliError> {
    let mut options = input.options();
    options.label_names = names.cloned().map(Arc::new);
    options.unknown_labels = unknown;
    if unknown == UnknownLabels::Append {
        options.label_strings = strings_for(names);
    }
    options.fields.needs_id = false;
    let format = Format::detect(path, &options)?;
    options.format = Some(format);
    let with_labels = matches!(labels, LabelsFrom::Itself);
    let is_text = holds_text(path, format, &options)?;
    context.check_interrupt()?;
    let mut data = if is_text {
        read_text_rows(path, with_labels, &options, making, context)?
    } else {
        if let Making::Apply { n_features, .. } = making {
            input.expect(&mut options, n_features);
        }
        read_feature_rows(path, with_labels, options.clone(), making, context)?
    };
    if let LabelsFrom::File(labels_path) = labels {
        let lists = read_labels(labels_path, &ReadOptions { format: None, usual_format: None, ..options.clone() })?;
        let (got, expected) = (lists.labels.len(), data.features().len());
        if got != expected {
            let (labels, name) = (labels_path.display(), path.display());
            return Err(CliError::usage(format_args!(
                "{labels}: {got} rows of labels; {name} has {expected} instances, and as many rows are expected"
            )));
        }
        data.labels = lists.labels;
        data.names = lists.label_names;
    }
    let Dataset { features, labels, names: found, maker, of_texts, hashes, .. } = data;
    let (labels, names) = with_names(path, labels, found, names, unknown)?;
    Ok(Dataset { features, labels, names, maker, of_texts, hashes, form: input.form(format) })
}

/// Labels of a file, and a name for each where names were given or found.
pub(crate) fn with_names(
    path: &Path,
    mut labels: LabelRows,
    found: Option<Vec<String>>,
    names: Option<&LabelNames>,
    unknown: UnknownLabels,
) -> Result<(LabelRows, Option<Vec<String>>), CliError> {
    let Some(names) = names else { return Ok((labels, found)) };
    if labels.n_labels() < names.len() {
        labels = labels.with_n_labels(names.len());
    }
    if unknown == UnknownLabels::Refuse && labels.n_labels() > names.len() {
        return Err(CliError::usage(format_args!(
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
) -> Result<Dataset, CliError> {
    options.parts = if with_labels { Parts::Instances } else { Parts::Queries };
    let data = read_dataset(path, &options)?;
    report_unseen(path.display(), options.unseen.as_deref(), context);
    let mut features = data.features;
    let wrong = |e: xc_hash::text::WeightRowsError| CliError::input(path, &e);
    let rows = features.view();
    let hashes: Vec<u64> = (0..rows.rows()).into_par_iter().map(|row| hash_sparse(rows.row(row))).collect();
    if let Making::Fit { weighting, .. } = &making
        && weighting.is_none_or(|weighting| weighting.idf == Idf::None)
        && options.format != Some(Format::Npy)
        && are_whole_numbers(features.data())
    {
        let more = if weighting.is_none() { ", and rows learn best at length 1 (--normalise true)" } else { "" };
        let name = path.display();
        context.note(format_args!("{name}: features are whole numbers; word counts do better with --tfidf{more}"));
    }
    let maker = match making {
        Making::Fit { weighting: Some(weighting), hold_out, .. } => {
            let kept = hold_out.map(|hold_out| rows.select(&hold_out.split(&hashes).0));
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
        Making::Apply { maker: Some(_), .. } => {
            let name = path.display();
            return Err(CliError::usage(format_args!(
                "{name}: holds features; text is expected, since the model was trained on text"
            )));
        }
    };
    let empty = count_empty(features.indptr());
    if matches!(making, Making::Fit { .. }) && empty * 10 > features.rows() {
        let (name, n) = (path.display(), features.rows());
        context.warn(format_args!("{name}: {empty} of {n} instances are without a feature: they teach the bias only"));
    }
    let labels = if with_labels { data.labels } else { no_labels(features.rows()) };
    Ok(Dataset {
        features: FeatureRows::Sparse(features),
        labels,
        names: data.label_names,
        maker,
        of_texts: false,
        hashes,
        form: Default::default(),
    })
}

/// Rows without an entry.
fn count_empty(indptr: &[usize]) -> usize {
    indptr.windows(2).filter(|row| row[0] == row[1]).count()
}

/// Whether values are what somebody counted.
fn are_whole_numbers(values: &[f32]) -> bool {
    !values.is_empty() && values.iter().all(|v| v.fract() == 0.0)
}

fn no_labels(n_instances: usize) -> LabelRows {
    let indptr = vec![0; n_instances + 1];
    // Empty lists satisfy every rule of label rows.
    LabelRows::try_new(indptr, Vec::new(), 0).unwrap_or_else(|e| panic!("empty label lists are no label lists: {e}"))
}

/// Text is read once to learn the pipeline and once to apply it, rather than kept.
fn read_text_rows(
    path: &Path,
    with_labels: bool,
    options: &ReadOptions,
    making: Making<'_>,
    context: &Context,
) -> Result<Dataset, CliError> {
    let parts = if with_labels { Parts::Instances } else { Parts::Queries };
    let options = &ReadOptions { parts, ..options.clone() };
    let fitted;
    let pipeline = match making {
        Making::Fit { text, hold_out, .. } => {
            // What is set aside may be twice what the terms fill, and twice that while threads'
            // counts are added up.
            let term_bytes = context.max_memory.map_or(usize::MAX, |limit| (limit / 4) as usize);
            let mut n_texts = 0;
            let fit = Pipeline::fit_stream_within(text.clone(), term_bytes, |sink| -> Result<(), ReadError> {
                for block in open_text(path, options)? {
                    let block = block?;
                    n_texts += block.instances.len();
                    let texts = block.instances.into_iter().map(|i| i.text);
                    let learned = |text: &String| hold_out.is_none_or(|hold_out| !hold_out.takes(hash_text(text)));
                    let texts: Vec<String> = texts.filter(learned).collect();
                    sink.add(&texts);
                }
                Ok(())
            });
            fitted = fit.map_err(|e| match e {
                FitStreamError::Source(e) => CliError::from(e),
                FitStreamError::Fit(_) if n_texts == 0 => {
                    CliError::usage(format_args!("{}: no instance; at least one is expected", path.display()))
                }
                FitStreamError::Fit(e @ FitPipelineError::TermBytes { .. }) => {
                    CliError::missing(format_args!("{}: {e}; --max-memory is too small", path.display()))
                }
                FitStreamError::Fit(e @ FitPipelineError::NoFeatures { .. }) => {
                    let more = text_advice::remedy(path, options, text, hold_out);
                    CliError::usage(format_args!("{}: {e}{more}", path.display()))
                }
                FitStreamError::Fit(e) => CliError::input(path, &e),
            })?;
            &fitted
        }
        Making::Apply { maker: Some(Featurizer::Text(pipeline)), .. } => pipeline,
        Making::Apply { .. } => {
            let name = path.display();
            return Err(CliError::usage(format_args!(
                "{name}: holds text; features are expected, since the model was trained on features"
            )));
        }
    };
    let mut labels = LabelCollector::of(options);
    let (mut indptr, mut indices, mut values) = (vec![0usize], Vec::new(), Vec::new());
    let mut hashes = Vec::new();
    for block in open_text(path, options)? {
        context.check_interrupt()?;
        let block = block?;
        let texts: Vec<&str> = block.instances.iter().map(|i| &*i.text).collect();
        let rows = pipeline.transform_batch(&texts);
        hashes.extend(texts.iter().map(|text| hash_text(text)));
        let base = indices.len();
        indptr.extend(rows.indptr[1..].iter().map(|end| base + end));
        indices.extend_from_slice(&rows.indices);
        values.extend_from_slice(&rows.values);
        for (instance, &line) in block.instances.iter().zip(&block.lines) {
            let list = if with_labels { &*instance.labels } else { &[] };
            labels.push(list).map_err(|kind| ReadError::line(&path.display().to_string(), line, kind))?;
        }
    }
    let n_instances = indptr.len() - 1;
    if let Making::Fit { text, hold_out, .. } = making {
        let kept = (pipeline.n_features(), n_instances, count_empty(&indptr));
        if let Some(line) = text_advice::warning(path, options, text, hold_out, kept) {
            context.warn(line);
        }
    }
    let features = CsrMatrix::from_checked((n_instances, pipeline.n_features()), indptr, indices, values);
    let found = labels.finish();
    let maker = match making {
        Making::Fit { .. } => Some(Featurizer::Text(pipeline.clone())),
        Making::Apply { .. } => None,
    };
    Ok(Dataset {
        features: FeatureRows::Sparse(features),
        labels: found.labels,
        names: found.names,
        maker,
        of_texts: true,
        hashes,
        form: Default::default(),
    })
}

/// The option that says more about a field.
fn field_option(kind: &ReadErrorKind) -> String {
    let option = match kind {
        ReadErrorKind::MissingColumn { delimiter: Some(delimiter), .. } => {
            let delimiter = if *delimiter == '\t' { "tab".to_owned() } else { format!("'{delimiter}'") };
            return format!(" (--delimiter {delimiter}, if the header has several columns)");
        }
        ReadErrorKind::MissingColumn { what: FieldOf::Labels, expected, .. } if expected.contains(',') => {
            " (--label-fields NAMES for columns of 0 and 1)"
        }
        ReadErrorKind::MissingColumn { what: FieldOf::Text, .. } => {
            " (--text-fields NAMES; --no-header, if the file has no header)"
        }
        ReadErrorKind::MissingField { what, .. } | ReadErrorKind::MissingColumn { what, .. } => match what {
            FieldOf::Text => " (--text-fields NAMES)",
            FieldOf::Labels => " (--label-field NAME)",
            FieldOf::Id => " (--id-field NAME)",
            FieldOf::Features => "",
        },
        ReadErrorKind::BehindQuote { .. } | ReadErrorKind::OpenQuote | ReadErrorKind::MixedQuotes => {
            " (--no-quotes, if quotes are text in this file)"
        }
        ReadErrorKind::Undivided { .. } => " (--label-separator S; '' takes each string as one label)",
        ReadErrorKind::LabelList { .. } => {
            " (pandas: df[\"labels\"].str.join(\";\") before to_csv, and --label-separator ';')"
        }
        ReadErrorKind::InColumn { problem, .. } => return field_option(problem),
        _ => "",
    };
    option.to_owned()
}

impl From<ReadError> for CliError {
    fn from(error: ReadError) -> Self {
        // A wait for input ends with an error when Ctrl-C is pressed.
        if interrupt::interrupted() {
            return CliError::interrupted();
        }
        // The error names its file itself; the reader cannot know what the option is called.
        let option = match error.kind() {
            ReadErrorKind::BaseNotStated => " (--svmlight-base 0 or 1)".to_owned(),
            ReadErrorKind::UnknownFormat => " (--format)".to_owned(),
            ReadErrorKind::NameField { .. } => " (--label-names-field NAME)".to_owned(),
            kind => field_option(kind),
        };
        CliError::usage(format_args!("{}{option}", chain(&error)))
    }
}
