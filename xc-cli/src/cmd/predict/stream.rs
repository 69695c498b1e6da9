//! Queries of stdin, a line each: as many lines as are there are answered together, on all threads,
//! and their answers sent in order before more is read.

use super::{OnError, Run};
use crate::answer::{Only, query_error};
use crate::answer_file::{Form, Style, Writer};
use crate::context::Context;
use crate::data::{QueryRows, report_unseen};
use crate::error::{CliError, chain};
use crate::model::{dictionary, open_error};
use crate::stdin::{NAME, StdinLines};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use xc_sparse::io::{AnswerNotes, Asked, LabelNames, LabelRef, Line, LineError, PlainLines, Request, RequestParser};
use xc_sparse::rank::LabelId;
use xc_sparse::{CsrMatrix, DenseMatrix, SparseRow};
use xc_train::model::{
    Answer, BatchError, Candidates, Excluded, InputKind, Model, Query, QueryError, QueryOptions, Scratch,
};

/// How long the lines that are answered together may take: so long the first of them waits for the
/// last, and Ctrl-C for both.
const TOGETHER: Duration = Duration::from_millis(30);
/// Lines whose answers one task writes.
const WRITTEN: usize = 64;

/// Answers the lines of stdin.
pub(super) fn answer(run: &mut Run<'_>, mut writer: Writer<'_>, context: &Context) -> Result<(), CliError> {
    let about = run.model.describe();
    let plain = if about.takes == InputKind::Text { PlainLines::Text } else { PlainLines::Features };
    let mut options = run.args.format.or(run.model.input()).options();
    run.args.format.expect(&mut options, about.n_features);
    let unseen = options.unseen.clone();
    let mut stream = Stream {
        model: run.model,
        parser: RequestParser::new(NAME, plain, &options)?,
        takes: about.takes,
        n_features: about.n_features,
        given: run.names,
        names: OnceLock::new(),
        scratches: Mutex::default(),
    };
    let mut lines = StdinLines::open()?;
    let (mut before, mut most, mut failed) = (0, context.threads.max(1), 0u64);
    let mut is_first = true;
    while lines.wait(most)? {
        let start = Instant::now();
        let batch = lines.lines(most);
        let n = batch.len();
        let mut rest = &batch[..];
        if std::mem::take(&mut is_first) && stream.is_header(rest)? {
            rest = &rest[1..];
        }
        let end = before + rest.len();
        // Lines beyond the last row of a file of labels have no answer; those before have.
        let rows = run.lists().map(|lists| lists.rows.len()).min().unwrap_or(usize::MAX);
        let rest = &rest[..rest.len().min(rows.saturating_sub(before))];
        let items = context.on_threads(|| stream.answer(run, rest, before..before + rest.len()))?;
        failed += items.iter().filter(|item| item.outcome.is_err()).count() as u64;
        write(run, &items, &mut writer, context)?;
        run.lists().try_for_each(|lists| lists.check(end, false))?;
        before = end;
        lines.forget(n);
        most = next_size(most, n, start.elapsed()).clamp(context.threads.max(1), about.batch_size);
    }
    if !crate::interrupt::stopped() {
        run.lists().try_for_each(|lists| lists.check(before, true))?;
    }
    report_unseen(NAME, unseen.as_deref(), context);
    if failed > 0 {
        context.warn(format_args!("{NAME}: {failed} of {before} lines have no answer"));
    }
    writer.finish()
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
    let stop = items.iter().position(|item| item.outcome.is_err()).filter(|_| on_error == OnError::Stop);
    let items = &items[..stop.map_or(items.len(), |at| at + 1)];
    for item in items {
        match &item.outcome {
            Ok(answer) => {
                run.count(answer.known_terms, answer.certificate.map(|c| c.exact), &answer.labels);
                if writer.style.form == Form::Npz {
                    writer.keep(&answer.labels);
                }
            }
            Err(error) if on_error == OnError::Stop => {
                let number = item.number;
                // What was answered before is on its way.
                let end = items.len() - 1;
                write_lines(&items[..end], on_error, writer)?;
                return Err(CliError::usage(format_args!("{NAME}: line {number}{error}")));
            }
            Err(error) => {
                context.warn(format_args!("{NAME}: line {}{error}", item.number));
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

/// What is wrong with a line, as it stands behind `line 7`.
struct Problem {
    column: Option<u64>,
    what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl From<LineError> for Problem {
    fn from(error: LineError) -> Self {
        Self { column: (error.column > 0).then_some(error.column), what: chain(&error.kind) }
    }
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        Self { column: None, what: chain(&error) }
    }
}

/// A line and its answer.
struct Item {
    number: u64,
    /// Which query it is, from 0.
    row: usize,
    id: Option<String>,
    outcome: Result<Answer, Problem>,
}

impl Item {
    fn push(&self, style: Style<'_>, on_error: OnError, out: &mut Vec<u8>) {
        let id = self.id.as_deref();
        match &self.outcome {
            Ok(answer) => {
                let notes = AnswerNotes { id, known_terms: answer.known_terms };
                style.push(out, &answer.labels, &notes, self.row);
            }
            Err(_) if on_error == OnError::Skip => {}
            Err(problem) => {
                let column = problem.column.map(|column| format!("column {column}: ")).unwrap_or_default();
                style.push_error(out, id, &format!("{column}{}", problem.what));
            }
        }
    }
}

/// A request whose labels are numbers and whose features are as the model takes them.
struct Wanted {
    request: Request,
    candidates: Option<Vec<LabelId>>,
    exclude: Vec<LabelId>,
}

/// What all lines share.
struct Stream<'a> {
    model: &'a Model,
    parser: RequestParser,
    takes: InputKind,
    n_features: usize,
    /// Names of the labels, where they are known.
    given: Option<&'a LabelNames>,
    /// Those of the model, read when a request names one.
    names: OnceLock<Result<Option<LabelNames>, String>>,
    /// One for each thread.
    scratches: Mutex<Vec<Scratch>>,
}

impl Stream<'_> {
    fn is_header(&mut self, lines: &[Line<'_>]) -> Result<bool, CliError> {
        let Some(text) = lines.first().and_then(Line::text) else { return Ok(false) };
        self.parser.header(text).map_err(|e| e.locate(NAME, 1).into())
    }

    /// Answers lines, whose rows in files of labels are `rows`.
    fn answer(&self, run: &Run<'_>, lines: &[Line<'_>], rows: Range<usize>) -> Result<Vec<Item>, CliError> {
        let read: Vec<(Option<String>, Result<Wanted, Problem>)> = if lines.len() == 1 {
            vec![self.read(&lines[0])]
        } else {
            lines.par_iter().with_min_len(8).map(|line| self.read(line)).collect()
        };
        let (ids, wanted): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        let plain = |wanted: &Result<Wanted, Problem>| wanted.as_ref().is_ok_and(|wanted| wanted.request.is_plain());
        let alike: Vec<usize> = (0..lines.len()).filter(|&at| plain(&wanted[at])).collect();
        let mut answers: Vec<Option<Answer>> = Vec::new();
        answers.resize_with(lines.len(), || None);
        if alike.len() > 1 {
            self.together(run, &wanted, &alike, rows.start, &mut answers)?;
        }
        let rest =
            wanted.into_par_iter().zip(answers).enumerate().map(|(at, (wanted, answer))| match (wanted, answer) {
                (Err(problem), _) => Ok(Err(problem)),
                (Ok(_), Some(answer)) => Ok(Ok(answer)),
                (Ok(wanted), None) => self.alone(run, &wanted, rows.start + at),
            });
        let outcomes: Vec<Result<Answer, Problem>> = rest.collect::<Result<_, CliError>>()?;
        let items = lines.iter().zip(ids).zip(outcomes).zip(rows);
        Ok(items.map(|(((line, id), outcome), row)| Item { number: line.number(), row, id, outcome }).collect())
    }

    fn read(&self, line: &Line<'_>) -> (Option<String>, Result<Wanted, Problem>) {
        let Some(text) = line.text() else {
            let what = "the line is longer than 64 MiB".to_owned();
            return (None, Err(Problem { column: None, what }));
        };
        let mut request = Request::default();
        let outcome = self.parser.parse(text, &mut request).map_err(Problem::from);
        let id = request.id.take();
        (id, outcome.and_then(|()| self.wanted(request)))
    }

    fn wanted(&self, mut request: Request) -> Result<Wanted, Problem> {
        let candidates = request.candidates.as_deref().map(|labels| self.labels(labels)).transpose()?;
        let exclude = self.labels(&request.exclude)?;
        let (takes, n_features) = (self.takes, self.n_features);
        request.asked = match (request.asked, takes) {
            (Asked::Vector(values), InputKind::Sparse) => {
                let (got, expected) = (values.len(), n_features);
                if got != expected {
                    return Err(QueryError::Width { got, expected, dense: true }.into());
                }
                let (indices, values) = (0..).zip(values).filter(|(_, value)| *value != 0.0).unzip();
                Asked::Features { indices, values }
            }
            (Asked::Features { indices, values }, InputKind::Dense) => {
                let mut vector = vec![0.0; n_features];
                indices.iter().zip(values).for_each(|(&at, value)| vector[at as usize] = value);
                Asked::Vector(vector)
            }
            (asked, _) => asked,
        };
        if let (Asked::Vector(values), InputKind::Dense) = (&request.asked, takes)
            && values.len() != n_features
        {
            return Err(QueryError::Width { got: values.len(), expected: n_features, dense: true }.into());
        }
        Ok(Wanted { request, candidates, exclude })
    }

    /// Numbers of labels.
    fn labels(&self, labels: &[LabelRef]) -> Result<Vec<LabelId>, Problem> {
        let n_labels = self.model.describe().n_labels;
        let unknown = |what: String| Problem { column: None, what };
        let number = |label: &LabelRef| match label {
            LabelRef::Id(label) if (*label as usize) < n_labels => Ok(*label),
            LabelRef::Id(label) => Err(QueryError::Label { label: *label, n_labels }.into()),
            LabelRef::Name(name) => {
                let names = match self.given {
                    Some(names) => names,
                    None => match self.names.get_or_init(|| read_names(self.model)) {
                        Ok(Some(names)) => names,
                        Ok(None) => return Err(unknown("the model has no label names".to_owned())),
                        Err(error) => return Err(unknown(error.clone())),
                    },
                };
                names.id(name).ok_or_else(|| unknown(chain(&names.has_no_label(name))))
            }
        };
        labels.iter().map(number).collect()
    }

    /// Answers lines that say nothing but their query, as a batch. Where one of them has no answer,
    /// none is given.
    fn together(
        &self,
        run: &Run<'_>,
        wanted: &[Result<Wanted, Problem>],
        alike: &[usize],
        first: usize,
        answers: &mut [Option<Answer>],
    ) -> Result<(), CliError> {
        let asked = alike.iter().filter_map(|&at| wanted[at].as_ref().ok()).map(|wanted| &wanted.request.asked);
        let queries = self.queries(asked);
        let numbers: Vec<u32> = alike.iter().map(|&at| (first + at) as u32).collect();
        let own = match &run.only {
            Only::Candidates(lists) => Some(lists.rows.select(&numbers)),
            _ => None,
        };
        let excluded = run.exclude.as_ref().map(|lists| lists.rows.select(&numbers));
        let by_query = |rows| Candidates::ByQuery { rows, first: 0 };
        let options = QueryOptions {
            candidates: own.as_ref().map_or_else(|| run.only.from(0), by_query),
            exclude: excluded.as_ref().map_or(Excluded::None, |rows| Excluded::ByQuery { rows, first: 0 }),
            ..run.options(0)
        };
        match queries.ask(|queries| self.model.predict_batch(queries, &options)) {
            Ok(all) => {
                for (at, &place) in alike.iter().enumerate() {
                    answers[place] = Some(Answer {
                        labels: all.ranked.row(at).to_vec(),
                        certificate: all.certificates.get(at).copied(),
                        known_terms: all.known_terms.get(at).copied(),
                    });
                }
                Ok(())
            }
            Err(error) if error.source.is_of_query() => Ok(()),
            Err(error) => Err(query_error(&error, 0, NAME)),
        }
    }

    fn queries<'q>(&self, asked: impl Iterator<Item = &'q Asked>) -> QueryRows {
        let (mut texts, mut indptr, mut indices, mut values) = (Vec::new(), vec![0], Vec::new(), Vec::new());
        let mut n = 0;
        for asked in asked {
            match asked {
                Asked::Text(text) => texts.push(text.clone()),
                Asked::Features { indices: ids, values: of } => {
                    indices.extend_from_slice(ids);
                    values.extend_from_slice(of);
                    indptr.push(indices.len());
                }
                Asked::Vector(of) => values.extend_from_slice(of),
            }
            n += 1;
        }
        match self.takes {
            InputKind::Text => QueryRows::Texts(texts),
            InputKind::Sparse => {
                QueryRows::Sparse(CsrMatrix::from_checked((n, self.n_features), indptr, indices, values))
            }
            InputKind::Dense => QueryRows::Dense(DenseMatrix { rows: n, columns: self.n_features, values }),
        }
    }

    /// Answers one line, whose row in files of labels is `row`.
    fn alone(&self, run: &Run<'_>, wanted: &Wanted, row: usize) -> Result<Result<Answer, Problem>, CliError> {
        let Wanted { request, candidates, exclude } = wanted;
        let candidates = match (candidates, &run.only) {
            (Some(labels), _) => Candidates::Labels(labels),
            (None, Only::Candidates(lists)) => Candidates::Labels(lists.rows.row(row)),
            (None, only) => only.from(0),
        };
        let seen = run.exclude.as_ref().map_or(&[][..], |lists| lists.rows.row(row));
        let both;
        let exclude = match (seen, &exclude[..]) {
            ([], own) => own,
            (seen, []) => seen,
            (seen, own) => {
                both = [seen, own].concat();
                &both
            }
        };
        let usual = run.options(0);
        let options = QueryOptions {
            top_k: request.top_k.unwrap_or(usual.top_k),
            min_score: request.min_score.or(usual.min_score),
            candidates,
            exclude: Excluded::Labels(exclude),
            ..usual
        };
        let query = match &request.asked {
            Asked::Text(text) => Query::Text(text),
            Asked::Features { indices, values } => Query::Sparse(SparseRow::from_checked(indices, values)),
            Asked::Vector(values) => Query::Dense(values),
        };
        let mut scratch = self.scratches().pop().unwrap_or_default();
        let mut answer = Answer::default();
        let outcome = self.model.predict(&query, &options, &mut scratch, &mut answer);
        self.scratches().push(scratch);
        match outcome {
            Ok(()) => Ok(Ok(answer)),
            Err(source) if source.is_of_query() => Ok(Err(source.into())),
            Err(source) => Err(query_error(&BatchError { query: 0, source }, row, NAME)),
        }
    }

    fn scratches(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        self.scratches.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn read_names(model: &Model) -> Result<Option<LabelNames>, String> {
    let names = model.label_names().map_err(|e| open_error(&e));
    let names = names.and_then(|names| dictionary(names, model.folder()));
    names.map_err(|e| e.line().unwrap_or_default().to_owned())
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
