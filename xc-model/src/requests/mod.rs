//! Requests and their answers: JSON objects, or plain lines of text or features.
//!
//! ```text
//!   line ──▶ RequestParser ──▶ Request ──▶ Responder ──▶ Response ──▶ a line of JSON, or whatever the caller writes
//! ```
//!
//! A [`Responder`] belongs to one model, of which it keeps the dictionary of labels and the memory of queries. It can be
//! shared by any number of threads. The specification is `docs/formats/requests.md`.

mod error;
mod parser;

pub use error::{RequestCode, RequestError};
pub use parser::{Asked, Request, RequestParser};

use crate::message::chain;
use crate::query::check_lists;
use crate::{
    Answer, BatchError, Candidates, Excluded, InputKind, Model, OwnedRows, QueryError, QueryOptions, Row, Scratch,
};
use rayon::prelude::*;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use xc_buffer::parallel::in_pool;
use xc_data::{
    AnswerNotes, FileForm, LabelNames, LabelRef, ReadError, ReadOptions, UnseenCount, push_prediction_error,
    push_prediction_json,
};
use xc_dense::DenseMatrix;
use xc_sparse::rank::LabelId;
use xc_sparse::{CsrMatrix, SparseRow};

/// Plain requests that are answered in memory that is kept, by trees one by one, where a batch of so few gains nothing.
const FEW: usize = 8;

/// How requests are read.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// What they come from, in messages: `standard input`.
    pub name: String,
    /// Refuse fields that nothing reads, and lines that are not JSON objects.
    pub strict: bool,
    /// Names of the labels, in place of the model's.
    pub label_names: Option<Arc<LabelNames>>,
    /// Fields, and the form of plain lines.
    pub read: ReadOptions,
}

impl RequestOptions {
    /// Requests to a model in the form of the files that it was trained on. Features that it was not trained on are
    /// left out.
    pub fn of(model: &Model) -> Self {
        let read = ReadOptions {
            n_features: Some(model.describe().n_features),
            unseen: Some(Arc::new(UnseenCount::default())),
            ..read_options(model.input())
        };
        Self { name: "request".to_owned(), strict: false, label_names: None, read }
    }
}

/// How queries in the form that a model remembers are read.
fn read_options(kept: &FileForm) -> ReadOptions {
    let kept = kept.clone();
    ReadOptions::from(FileForm {
        usual_format: kept.format,
        svmlight_base: kept.svmlight_base,
        text_fields: kept.text_fields,
        id_field: kept.id_field,
        ..FileForm::default()
    })
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The id of the request, as JSON, if it has one that could be read.
    pub id: Option<String>,
    /// What was left out of the request: labels that the model does not have.
    pub warnings: Vec<String>,
    /// The labels, or why there are none.
    pub outcome: Result<Answer, RequestError>,
}

impl Response {
    /// Appends the answer as a line of JSON: `{"id":7,"labels":[4],"names":["dog"],"scores":[0.5]}` or
    /// `{"id":7,"error":"..."}`. Names are written if there are some.
    ///
    /// # Panics
    /// If there are names, and not of every label.
    pub fn push_json(&self, names: Option<&[String]>, out: &mut Vec<u8>) {
        let id = self.id.as_deref();
        match &self.outcome {
            Ok(answer) => {
                let notes = AnswerNotes { id, known_terms: answer.known_terms, warnings: &self.warnings };
                push_prediction_json(out, &answer.labels, names, &notes);
            }
            Err(error) => push_prediction_error(out, id, &error.to_string()),
        }
    }
}

/// A request whose labels are numbers and whose features are as the model takes them.
struct Wanted {
    request: Request,
    /// The field of the query, if it is one alone.
    field: Option<String>,
    candidates: Option<Vec<LabelId>>,
    exclude: Vec<LabelId>,
    warnings: Vec<String>,
}

/// Answers requests to one model, which it borrows or shares (`&Model`, `Arc<Model>`).
///
/// ```no_run
/// use std::sync::Arc;
/// use xc_model::requests::{RequestOptions, Responder};
/// use xc_model::{Model, QueryOptions};
///
/// let model = Arc::new(Model::open("my.model")?);
/// let options = RequestOptions { strict: true, ..RequestOptions::of(&model) };
/// let responder = Responder::new(model, options)?;
/// let responses = responder.answer(&[br#"{"text": "a dog", "top_k": 3}"#], &QueryOptions::default())?;
/// let names = responder.names()?.map(|names| names.names());
/// let mut json = Vec::new();
/// responses[0].push_json(names, &mut json);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Responder<M> {
    model: M,
    parser: RequestParser,
    takes: InputKind,
    n_features: usize,
    /// Of the labels: given, or read when they are first needed.
    names: OnceLock<Result<Option<Arc<LabelNames>>, String>>,
    /// Memory of queries, as much as there have been threads at once.
    scratches: Mutex<Vec<Scratch>>,
}

impl<M: Deref<Target = Model> + Sync> Responder<M> {
    /// A responder of a model.
    ///
    /// # Errors
    /// A form of plain lines that the model does not take, or that has several lines a query; svmlight without a base.
    pub fn new(model: M, options: RequestOptions) -> Result<Self, ReadError> {
        let about = model.describe();
        let parser = RequestParser::new(&options.name, about.takes, &options.read, options.strict)?;
        let names = options.label_names.map(|names| OnceLock::from(Ok(Some(names)))).unwrap_or_default();
        Ok(Self { model, parser, takes: about.takes, n_features: about.n_features, names, scratches: Mutex::default() })
    }

    /// Its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Names of the labels, if there are any. *Cost*: the first call reads them, unless they were given.
    ///
    /// # Errors
    /// The model's names are damaged.
    pub fn names(&self) -> Result<Option<&LabelNames>, RequestError> {
        match self.names.get_or_init(|| self.read_names()) {
            Ok(names) => Ok(names.as_deref()),
            Err(problem) => Err(RequestError::new(RequestCode::LabelNames, problem.clone())),
        }
    }

    fn read_names(&self) -> Result<Option<Arc<LabelNames>>, String> {
        let names = self.model.dictionary().map_err(|e| chain(&e))?;
        Ok(names.map(Arc::new))
    }

    /// As [`RequestParser::header`].
    ///
    /// # Errors
    /// A header with a different number of features.
    pub fn header(&mut self, line: &[u8]) -> Result<bool, RequestError> {
        self.parser.header(line)
    }

    /// Answers requests, in order. What a request does not say is as `options` say, whose lists of candidates and
    /// excluded labels may be one for each request. Its own `exclude` is in addition to theirs.
    ///
    /// *Cost*: requests that say nothing but their query are answered as a batch if they are more than a few; all are
    /// divided among the threads of the caller's pool. Outside of a pool the calling thread answers them one by one.
    ///
    /// *Determinism*: the bits of [`Model::predict`], whatever comes together.
    ///
    /// # Errors
    /// Options that the model does not take. What is wrong with a request is in its response.
    pub fn answer(&self, requests: &[&[u8]], options: &QueryOptions<'_>) -> Result<Vec<Response>, QueryError> {
        let n_labels = self.model.describe().n_labels;
        if let Candidates::ByQuery { rows, first } = options.candidates {
            check_lists("candidates", rows, first, requests.len(), n_labels)?;
        }
        if let Excluded::ByQuery { rows, first } = options.exclude {
            check_lists("excluded labels", rows, first, requests.len(), n_labels)?;
        }
        let read = each(requests, |_, line| self.read(line));
        let mut answers: Vec<Option<Answer>> = vec![None; requests.len()];
        let plain = |at: &usize| read[*at].1.as_ref().is_ok_and(|wanted| wanted.request.is_plain());
        let alike: Vec<usize> = (0..requests.len()).filter(plain).collect();
        let alone = if self.model.describe().shares_queries { 1 } else { FEW };
        if alike.len() > alone && in_pool() {
            self.together(&read, &alike, options, &mut answers)?;
        }
        let outcomes = each(&read, |at, (_, wanted)| match (wanted, &answers[at]) {
            (Err(error), _) => Ok(Err(error.clone())),
            (Ok(_), Some(_)) => Ok(Ok(Answer::default())),
            (Ok(wanted), None) => self.alone(wanted, at, options),
        });
        let all = read.into_iter().zip(answers).zip(outcomes);
        all.map(|(((id, wanted), answer), outcome)| {
            let outcome = outcome?;
            let warnings = wanted.map(|wanted| wanted.warnings).unwrap_or_default();
            Ok(Response { id, warnings, outcome: answer.map_or(outcome, Ok) })
        })
        .collect()
    }

    fn read(&self, line: &[u8]) -> (Option<String>, Result<Wanted, RequestError>) {
        let mut request = Request::default();
        let outcome = self.parser.parse(line, &mut request);
        let id = request.id.take();
        let field = if line.first() == Some(&b'{') { self.parser.field_of(&request.asked) } else { None };
        (id, outcome.and_then(|()| self.wanted(request, field.map(str::to_owned))))
    }

    fn wanted(&self, mut request: Request, field: Option<String>) -> Result<Wanted, RequestError> {
        let mut warnings = Vec::new();
        let mut labels = |field, labels: &[LabelRef]| self.labels(field, labels, &mut warnings);
        let candidates = request.candidates.as_deref().map(|of| labels("candidates", of)).transpose()?;
        let exclude = labels("exclude", &request.exclude)?;
        if let (Asked::Vector(values), true) = (&request.asked, self.takes != InputKind::Text)
            && values.len() != self.n_features
        {
            let error = QueryError::Width { got: values.len(), expected: self.n_features, dense: true };
            return Err(RequestError { field, ..error.into() });
        }
        request.asked = match (request.asked, self.takes) {
            (Asked::Vector(values), InputKind::Sparse) => {
                let (indices, values) = (0..).zip(values).filter(|(_, value)| *value != 0.0).unzip();
                Asked::Features { indices, values }
            }
            (Asked::Features { indices, values }, InputKind::Dense) => {
                let mut vector = vec![0.0; self.n_features];
                indices.iter().zip(values).for_each(|(&at, value)| vector[at as usize] = value);
                Asked::Vector(vector)
            }
            (asked, _) => asked,
        };
        Ok(Wanted { request, field, candidates, exclude, warnings })
    }

    /// Numbers of labels. Those that the model does not have are left out, with a warning.
    fn labels(
        &self,
        field: &str,
        labels: &[LabelRef],
        warnings: &mut Vec<String>,
    ) -> Result<Vec<LabelId>, RequestError> {
        let n_labels = self.model.describe().n_labels;
        let mut known = Vec::with_capacity(labels.len());
        for label in labels {
            let unknown = match label {
                LabelRef::Id(label) if (*label as usize) < n_labels => {
                    known.push(*label);
                    continue;
                }
                LabelRef::Id(label) => chain(&QueryError::Label { label: *label, n_labels }),
                LabelRef::Name(name) => match self.names()? {
                    Some(names) => match names.id(name) {
                        Some(label) => {
                            known.push(label);
                            continue;
                        }
                        None => chain(&names.has_no_label(name)),
                    },
                    None => {
                        let what = "the model has no label names".to_owned();
                        return Err(RequestError::new(RequestCode::UnknownLabel, what).of_field(field));
                    }
                },
            };
            warnings.push(format!("{field}: {unknown}; it is left out"));
        }
        Ok(known)
    }

    /// Answers requests that say nothing but their query, as a batch. Where one of them has no answer,
    /// none is given.
    fn together(
        &self,
        read: &[(Option<String>, Result<Wanted, RequestError>)],
        alike: &[usize],
        options: &QueryOptions<'_>,
        answers: &mut [Option<Answer>],
    ) -> Result<(), QueryError> {
        let asked = alike.iter().filter_map(|&at| read[at].1.as_ref().ok()).map(|wanted| &wanted.request.asked);
        let queries = self.queries(asked);
        let numbers: Vec<u32> = alike.iter().map(|&at| at as u32).collect();
        let (candidates, excluded) = (options.candidates.select(&numbers), options.exclude.select(&numbers));
        let options = QueryOptions {
            candidates: candidates.as_ref().map_or(options.candidates, |rows| Candidates::ByQuery { rows, first: 0 }),
            exclude: excluded.as_ref().map_or(options.exclude, |rows| Excluded::ByQuery { rows, first: 0 }),
            ..*options
        };
        let is_few = alike.len() <= FEW;
        let mut scratch = if is_few { self.take_scratch() } else { Scratch::default() };
        let answered = self.model.predict_batch_in(queries.view(), &options, &mut scratch);
        if is_few {
            self.keep(scratch);
        }
        match answered {
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
            Err(BatchError { source, .. }) if source.is_of_query() => Ok(()),
            Err(BatchError { source, .. }) => Err(source),
        }
    }

    fn queries<'q>(&self, asked: impl Iterator<Item = &'q Asked>) -> OwnedRows {
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
            InputKind::Text => OwnedRows::Texts(texts),
            InputKind::Sparse => {
                OwnedRows::Sparse(CsrMatrix::from_checked((n, self.n_features), indptr, indices, values))
            }
            InputKind::Dense => OwnedRows::Dense(DenseMatrix::new(n, self.n_features, values)),
            InputKind::Tokens => panic!("a model of tokens without texts, which no request has"),
        }
    }

    /// Answers request `at` by itself.
    fn alone(
        &self,
        wanted: &Wanted,
        at: usize,
        options: &QueryOptions<'_>,
    ) -> Result<Result<Answer, RequestError>, QueryError> {
        let Wanted { request, field, candidates, exclude, .. } = wanted;
        let candidates = match candidates {
            Some(labels) => Candidates::Labels(labels),
            None => options.candidates.at(at),
        };
        let both;
        let exclude = match (options.exclude.of(at), &exclude[..]) {
            ([], own) => own,
            (theirs, []) => theirs,
            (theirs, own) => {
                both = [theirs, own].concat();
                &both
            }
        };
        let options = QueryOptions {
            top_k: request.top_k.unwrap_or(options.top_k),
            min_score: request.min_score.or(options.min_score),
            candidates,
            exclude: Excluded::Labels(exclude),
            ..*options
        };
        let query = match &request.asked {
            Asked::Text(text) => Row::Text(text),
            Asked::Features { indices, values } => Row::Sparse(SparseRow::from_checked(indices, values)),
            Asked::Vector(values) => Row::Dense(values),
        };
        let mut scratch = self.take_scratch();
        let mut answer = Answer::default();
        let outcome = self.model.predict(&query, &options, &mut scratch, &mut answer);
        self.keep(scratch);
        match outcome {
            Ok(()) => Ok(Ok(answer)),
            Err(source) if source.is_of_query() => Ok(Err(RequestError { field: field.clone(), ..source.into() })),
            Err(source) => Err(source),
        }
    }

    fn take_scratch(&self) -> Scratch {
        self.scratches.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn keep(&self, scratch: Scratch) {
        self.scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

/// Works on each of some things, on the threads of the caller's pool if there is one.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(usize, &T) -> R + Sync + Send) -> Vec<R> {
    if items.len() > 1 && in_pool() {
        items.par_iter().enumerate().map(|(at, item)| work(at, item)).collect()
    } else {
        items.iter().enumerate().map(|(at, item)| work(at, item)).collect()
    }
}
