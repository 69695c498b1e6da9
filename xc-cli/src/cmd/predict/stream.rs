//! Queries of stdin, a line each: as many lines as are there are answered together, on all threads,
//! and their answers sent in order before more is read.

use super::{OnError, Run};
use crate::answer::{LabelLists, query_error};
use crate::answer_file::{Form, Style, Writer};
use crate::context::Context;
use crate::data::report_unseen;
use crate::error::CliError;
use crate::stdin::{MAX_LINE_BYTES, NAME, StdinLines};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::{Duration, Instant};
use xc_data::{AnswerNotes, Line, ReadOptions, RowId};
use xc_model::BatchError;
use xc_model::requests::{RequestCode, RequestError, RequestOptions, Responder, Response};

/// How long the lines that are answered together may take: so long the first of them waits for the
/// last, and Ctrl-C for both.
const TOGETHER: Duration = Duration::from_millis(30);
/// Lines whose answers one task writes.
const WRITTEN: usize = 64;

/// Answers the lines of stdin.
pub(super) fn answer(run: &mut Run<'_>, mut writer: Writer<'_>, context: &Context) -> Result<(), CliError> {
    let about = run.model.describe();
    let mut read = ReadOptions::from(run.args.format.or(run.model.input()));
    read.expect(about.n_features);
    let unseen = read.unseen.clone();
    let (name, label_names) = (NAME.to_owned(), run.names.map(Arc::clone));
    let mut responder = Responder::new(run.model, RequestOptions { name, strict: false, label_names, read })?;
    let mut lines = StdinLines::open()?;
    let (mut before, mut most, mut failed) = (0, context.threads.max(1), 0u64);
    let mut is_first = true;
    while lines.wait(most)? {
        let start = Instant::now();
        let batch = lines.lines(most);
        let n = batch.len();
        let mut rest = &batch[..];
        if std::mem::take(&mut is_first)
            && let Some(text) = batch.first().and_then(Line::text)
            && responder.header(text).map_err(|error| usage(1, &error))?
        {
            rest = &rest[1..];
        }
        let end = before + rest.len();
        if run.lists().any(LabelLists::has_ids) {
            let ids: Vec<Option<RowId>> = rest.iter().map(|line| id_of(line.text()?)).collect();
            run.lists_mut().try_for_each(|lists| lists.turn(ids.len(), |at| ids[at].as_ref()))?;
        }
        // Lines beyond the last row of a file of labels have no answer; those before have.
        let rows = run.lists().map(LabelLists::n_answered).min().unwrap_or(usize::MAX);
        let rest = &rest[..rest.len().min(rows.saturating_sub(before))];
        let texts: Vec<&[u8]> = rest.iter().map(|line| line.text().unwrap_or_default()).collect();
        let responses = context.on_threads(|| responder.answer(&texts, &run.options(before)));
        let responses = responses.map_err(|source| query_error(&BatchError { query: 0, source }, before, NAME))?;
        let items = (before..).zip(rest).zip(responses).map(|((row, line), response)| Item::of(row, line, response));
        let items: Vec<Item> = items.collect();
        failed += items.iter().filter(|item| item.response.outcome.is_err()).count() as u64;
        write(run, &items, &mut writer, context)?;
        run.lists().try_for_each(|lists| lists.check(end, false))?;
        before = end;
        lines.forget(n);
        most = next_size(most, n, start.elapsed()).clamp(context.threads.max(1), about.batch_size);
    }
    if !crate::interrupt::stopped() {
        run.lists_mut().try_for_each(|lists| lists.finish(before, None, context))?;
    }
    report_unseen(NAME, unseen.as_deref(), &context.fit());
    if failed > 0 {
        context.warn(format_args!("{NAME}: {failed} of {before} lines have no answer"));
    }
    writer.finish()
}

/// The id of a request.
fn id_of(line: &[u8]) -> Option<RowId> {
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let request: Request<'_> = serde_json::from_slice(line).ok()?;
    RowId::of_json(request.id?.get())
}

/// How many lines to answer together, when `n` of at most `most` took so long.
fn next_size(most: usize, n: usize, took: Duration) -> usize {
    if took > TOGETHER {
        return (most.min(n) / 2).max(1);
    }
    if n == most && took < TOGETHER / 2 { most.saturating_mul(2) } else { most }
}

/// Writes the answers to lines, and says what is wrong with lines that have none.
fn write(run: &mut Run<'_>, items: &[Item], writer: &mut Writer<'_>, context: &Context) -> Result<(), CliError> {
    let on_error = run.args.on_error;
    let stop = items.iter().position(|item| item.response.outcome.is_err()).filter(|_| on_error == OnError::Stop);
    let items = &items[..stop.map_or(items.len(), |at| at + 1)];
    for item in items {
        match &item.response.outcome {
            Ok(answer) => {
                let warnings = &item.response.warnings;
                warnings
                    .iter()
                    .for_each(|warning| context.warn(format_args!("{NAME}: line {}: {warning}", item.number)));
                run.count(answer.known_terms, answer.certificate.map(|c| c.exact), &answer.labels);
                if writer.style.form == Form::Npz {
                    writer.keep(&answer.labels);
                }
            }
            Err(error) if on_error == OnError::Stop => {
                // What was answered before is on its way.
                let end = items.len() - 1;
                write_lines(&items[..end], on_error, writer)?;
                return Err(usage(item.number, error));
            }
            Err(error) => {
                context.warn(said(item.number, error));
                if writer.style.form == Form::Npz && on_error == OnError::Answer {
                    writer.keep(&[]);
                }
            }
        }
    }
    write_lines(items, on_error, writer)
}

fn write_lines(items: &[Item], on_error: OnError, writer: &mut Writer<'_>) -> Result<(), CliError> {
    let style = writer.style;
    let text = |items: &[Item]| {
        let mut out = Vec::new();
        items.iter().for_each(|item| item.push(style, on_error, &mut out));
        out
    };
    if items.len() <= WRITTEN {
        writer.out.put(&text(items))?;
    } else {
        let parts: Vec<Vec<u8>> = items.par_chunks(WRITTEN).map(text).collect();
        parts.iter().try_for_each(|part| writer.out.put(part))?;
    }
    writer.out.send()
}

/// What is wrong with a line.
fn said(number: u64, error: &RequestError) -> String {
    let column = error.column.map(|column| format!(", column {column}")).unwrap_or_default();
    format!("{NAME}: line {number}{column}: {}", error.message)
}

fn usage(number: u64, error: &RequestError) -> CliError {
    CliError::usage(said(number, error))
}

/// A line and its answer.
struct Item {
    number: u64,
    /// Which query it is, from 0.
    row: usize,
    response: Response,
}

impl Item {
    fn of(row: usize, line: &Line<'_>, response: Response) -> Self {
        let too_long = || {
            let message = format!("the line is longer than {} MiB", MAX_LINE_BYTES >> 20);
            let error = RequestError { code: RequestCode::TooLong, field: None, column: None, message };
            Response { id: None, warnings: Vec::new(), outcome: Err(error) }
        };
        Self { number: line.number(), row, response: if line.text().is_some() { response } else { too_long() } }
    }

    fn push(&self, style: Style<'_>, on_error: OnError, out: &mut Vec<u8>) {
        let Response { id, warnings, outcome } = &self.response;
        let id = id.as_deref();
        match outcome {
            Ok(answer) => {
                let notes = AnswerNotes { id, known_terms: answer.known_terms, warnings };
                style.push(out, &answer.labels, &notes, self.row);
            }
            Err(_) if on_error == OnError::Skip => {}
            Err(error) => style.push_error(out, id, &error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_answered_together_for_as_long_as_the_first_may_wait() {
        let ms = Duration::from_millis;
        assert_eq!(next_size(64, 64, ms(1)), 128);
        assert_eq!(next_size(64, 10, ms(1)), 64);
        assert_eq!(next_size(64, 64, ms(20)), 64);
        assert_eq!(next_size(64, 64, ms(100)), 32);
        assert_eq!(next_size(1, 1, ms(100)), 1);
    }
}
