//! The answers that are evaluated: of a file, of stdin, or of the model.

use super::truth::{Setting, Truth};
use crate::answer::query_error;
use crate::context::Context;
use crate::data::Queries;
use crate::error::CliError;
use crate::stdin;
use crate::written::is_same;
use std::io;
use std::path::{Path, PathBuf};
use xc_data::{
    Predictions, ReadError, ReadErrorKind, ReadOptions, Snippet, read_prediction_stream, read_predictions_of,
};
use xc_model::Model;
use xc_model::QueryOptions;
use xc_sparse::rank::RankedBatch;

/// Answers to the instances of the truth.
pub(super) struct Found {
    /// Where they come from, for messages.
    pub(super) path: PathBuf,
    pub(super) ranked: RankedBatch,
    /// Whether ids of instances were compared with those of the truth.
    pub(super) has_ids: bool,
}

/// Reads predictions, of several files one after the other, and checks that they belong to the truth.
pub(super) fn read(
    paths: &[PathBuf],
    setting: &Setting<'_>,
    truth: &Truth,
    n_labels: Option<usize>,
    context: &Context,
) -> Result<Found, CliError> {
    let mut all = Predictions::default();
    for path in paths {
        // A part may have no instance.
        if paths.len() > 1 && std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
            continue;
        }
        let part = read_one(path, setting, truth, n_labels)?;
        // Ids are those of all instances, or there is none.
        all.ids.resize(if part.ids.is_empty() { 0 } else { all.ranked.len() }.max(all.ids.len()), None);
        all.ids.extend(part.ids);
        all.ranked.append(&part.ranked);
    }
    if !all.ids.is_empty() {
        all.ids.resize(all.ranked.len(), None);
    }
    let name = |path: &Path| if path == Path::new("-") { PathBuf::from(stdin::NAME) } else { path.to_owned() };
    let path = match paths {
        [] => PathBuf::new(),
        [one] => name(one),
        [first, .., last] => PathBuf::from(format!("{} to {}", first.display(), last.display())),
    };
    let (ranked, has_ids) = setting.join(&path, all.ranked, all.ids, truth, context)?;
    Ok(Found { path, ranked, has_ids })
}

fn read_one(
    path: &Path,
    setting: &Setting<'_>,
    truth: &Truth,
    n_labels: Option<usize>,
) -> Result<Predictions, CliError> {
    let options = ReadOptions { n_labels, label_names: setting.names.clone(), ..ReadOptions::default() };
    let is_stdin = path == Path::new("-");
    let path = if is_stdin { Path::new(stdin::NAME) } else { path };
    let read = if is_stdin {
        read_prediction_stream(stdin::NAME, io::stdin(), &options)
    } else {
        read_predictions_of(path, &options)
    };
    let read = read.or_else(|e| match e.kind() {
        // Of a matrix that belongs to other labels its width tells more than a label.
        ReadErrorKind::OutOfRange { .. } | ReadErrorKind::NoName { .. } if e.line_number().is_none() => {
            let free = ReadOptions { n_labels: None, label_names: None, ..options };
            let n_columns = read_predictions_of(path, &free).ok().and_then(|all| all.n_columns);
            setting.check_columns(path, n_columns, truth).and(Err(e.into()))
        }
        _ => Err(unreadable(e, setting.names.is_some())),
    })?;
    setting.check_columns(path, read.n_columns, truth)?;
    Ok(read)
}

/// The model's answers, as `xc predict` gives them.
pub(super) fn predict(
    model: &Model,
    setting: &Setting<'_>,
    truth: &Truth,
    context: &Context,
) -> Result<Found, CliError> {
    let input = setting.input();
    let options = QueryOptions::top(setting.top_k(model));
    let mut queries = Queries::open(input, &setting.args.format.settings(), model)?;
    let task = context.progress.count("instances answered");
    let (mut ranked, mut ids, mut unknown) = (RankedBatch::new(), Vec::new(), 0usize);
    while let Some(batch) = queries.next_batch(model.describe().batch_size)? {
        context.check_interrupt()?;
        let answers = context.on_threads(|| model.predict_batch(batch.view(), &options));
        let answers = answers.map_err(|e| query_error(&e, ranked.len(), &input.display().to_string()))?;
        let empty = answers.known_terms.iter().zip(answers.ranked.iter());
        unknown += empty.filter(|(known, row)| **known == 0 && row.is_empty()).count();
        ids.extend_from_slice(queries.ids());
        ranked.append(&answers.ranked);
        task.advance(batch.len() as u64);
    }
    drop(task);
    queries.report_unseen(&context.fit());
    if let Some(line) = model.texts_cut() {
        context.note(format_args!("{}: {line}", input.display()));
    }
    if unknown > 0 {
        let input = input.display();
        context.warn(format_args!(
            "{input}: texts without a word that the model knows: {unknown}; their answers are empty"
        ));
    }
    let (ranked, has_ids) = setting.join(input, ranked, ids, truth, context)?;
    // Ids of one file are the same as themselves.
    let has_ids = has_ids && !is_same(input, setting.truth);
    Ok(Found { path: model.folder().to_owned(), ranked, has_ids })
}

/// Predictions with names in place of ids do not read as ids.
fn unreadable(error: ReadError, has_names: bool) -> CliError {
    // Behind the quote of the message: a letter, or the quote of a name that is a number.
    let is_name = |got: &Snippet| {
        got.to_string().get(1..).is_some_and(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '\\'))
    };
    match error.kind() {
        ReadErrorKind::Malformed { got, .. } if !has_names && error.column() == Some(1) && is_name(got) => {
            CliError::usage(format_args!(
                "{error}; predictions that hold names are read with --model DIR, or with --label-names FILE, such as \
                 labels.txt of the model"
            ))
        }
        _ => error.into(),
    }
}
