//! Queries of a prediction: streamed, as the model takes them.

use super::report_unseen;
use crate::Model;
use crate::fit::Context;
use crate::fit::FitError;
use crate::model::{InputKind, OwnedRows, Row};
use crate::settings::input::InputSettings;
use std::path::Path;
use std::sync::Arc;
use xc_sparse::io::{
    Content, ForeignFile, Format, InstanceBuffer, InstanceReader, Parts, ReadError, ReadErrorKind, RowId, Source,
    UnseenCount, Vectors, read_dataset,
};
use xc_sparse::{CsrMatrix, DenseMatrix};

/// A stream of queries for one model.
pub struct Queries {
    reader: Reader,
    takes: InputKind,
    n_features: usize,
    name: String,
    /// Ids of the queries that were given last, where queries have some.
    ids: Vec<Option<RowId>>,
    /// Entries of features that the model does not know.
    unseen: Option<Arc<UnseenCount>>,
}

enum Reader {
    Lines { reader: Box<InstanceReader>, buffer: Box<InstanceBuffer> },
    Whole { features: CsrMatrix, next: usize },
    Vectors { vectors: Vectors, next: usize },
}

impl Queries {
    /// Opens a file; its labels, if it has some, are not looked at.
    ///
    /// # Errors
    /// A file that is absent, empty, of another format, or holds features where the model wants
    /// text or the other way round.
    pub fn open(path: &Path, input: &InputSettings, model: &Model) -> Result<Self, FitError> {
        let mut options = input.or(model.input()).options();
        options.parts = Parts::Queries;
        let about = model.describe();
        input.expect(&mut options, about.n_features);
        let format = match Format::detect(path, &options) {
            // Plain lines are fastText without labels.
            Err(e) if about.takes == InputKind::Text && is_plain(e.kind()) => Format::FastText,
            format => format?,
        };
        options.format = Some(format);
        let name = path.display().to_string();
        let reader = if about.takes == InputKind::Dense {
            let width = about.n_features;
            if format != Format::Npy {
                return Err(wants_vectors(&name, width));
            }
            let vectors = Vectors::open(path, &options)?;
            if vectors.columns() != width {
                return Err(FitError::usage(format_args!(
                    "{name}: vectors of {} values; the model wants {width}",
                    vectors.columns()
                )));
            }
            Reader::Vectors { vectors, next: 0 }
        } else if matches!(format, Format::Npz | Format::Npy) {
            Reader::Whole { features: read_dataset(path, &options)?.features, next: 0 }
        } else {
            if about.takes == InputKind::Text && !format.may_hold_text() {
                return Err(wrong_content(&name, about.takes));
            }
            let reader = InstanceReader::over(Source::open(path, options.max_expanded_bytes)?, &options)?;
            Reader::Lines { reader: Box::new(reader), buffer: Box::default() }
        };
        let (takes, n_features, unseen) = (about.takes, about.n_features, options.unseen);
        let mut queries = Self { reader, takes, n_features, name, ids: Vec::new(), unseen };
        if queries.check_content()? {
            let kind = ReadErrorKind::Empty { expected: "one instance a line" };
            return Err(ReadError::path(path, kind).into());
        }
        Ok(queries)
    }

    /// True for an empty stream.
    fn check_content(&mut self) -> Result<bool, FitError> {
        let content = match &mut self.reader {
            Reader::Lines { reader, .. } => reader.content()?,
            Reader::Whole { features, .. } => (features.rows() > 0).then_some(Content::Features),
            Reader::Vectors { vectors, .. } => return Ok(vectors.rows() == 0),
        };
        match content {
            Some(content) if (content == Content::Text) != (self.takes == InputKind::Text) => {
                Err(wrong_content(&self.name, self.takes))
            }
            content => Ok(content.is_none()),
        }
    }

    /// Id, in JSON, of a query of those that [`Self::next_batch`] gave last.
    pub fn id(&self, at: usize) -> Option<&str> {
        self.ids.get(at)?.as_ref().map(RowId::as_json)
    }

    /// Ids of the queries that [`Self::next_batch`] gave last; none where the file has none.
    pub fn ids(&self) -> &[Option<RowId>] {
        &self.ids
    }

    /// Says what was left out of the queries that were read.
    pub fn report_unseen(&self, context: &Context<'_>) {
        report_unseen(&self.name, self.unseen.as_deref(), context);
    }

    /// Number of queries, where it is known before they are read.
    pub fn known_len(&self) -> Option<usize> {
        match &self.reader {
            Reader::Lines { reader, .. } => reader.promised_rows().and_then(|n| usize::try_from(n).ok()),
            Reader::Whole { features, .. } => Some(features.rows()),
            Reader::Vectors { vectors, .. } => Some(vectors.rows()),
        }
    }

    /// The next query, or `None` at the end; its id is added to those that are kept.
    fn one(&mut self) -> Result<Option<Row<'_>>, FitError> {
        match &mut self.reader {
            Reader::Lines { reader, buffer } => {
                if reader.next_into(buffer)?.is_none() {
                    return Ok(None);
                }
                self.ids.push(buffer.text.id.take());
                Ok(Some(match self.takes {
                    InputKind::Text => Row::Text(&buffer.text.text),
                    _ => Row::Sparse(buffer.row.features()),
                }))
            }
            Reader::Whole { features, next } => {
                let at = *next;
                *next += 1;
                Ok((at < features.rows()).then(|| Row::Sparse(features.view().row(at))))
            }
            Reader::Vectors { vectors, next } => {
                let at = *next;
                if at == vectors.rows() {
                    return Ok(None);
                }
                vectors.check(at..at + 1)?;
                *next += 1;
                Ok(Some(Row::Dense(vectors.some(at..at + 1))))
            }
        }
    }

    /// Up to `max_rows` queries; `None` at the end.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn next_batch(&mut self, max_rows: usize) -> Result<Option<OwnedRows>, FitError> {
        self.ids.clear();
        if let Reader::Vectors { vectors, next } = &mut self.reader {
            let rows = *next..vectors.rows().min(next.saturating_add(max_rows));
            if rows.is_empty() {
                return Ok(None);
            }
            vectors.check(rows.clone())?;
            *next = rows.end;
            let (n, columns, values) = (rows.len(), vectors.columns(), vectors.some(rows).to_vec());
            return Ok(Some(OwnedRows::Dense(DenseMatrix::new(n, columns, values))));
        }
        if let (Reader::Lines { reader, buffer }, InputKind::Text) = (&mut self.reader, self.takes) {
            let mut texts = Vec::new();
            while texts.len() < max_rows && reader.next_into(buffer)?.is_some() {
                texts.push(std::mem::take(&mut buffer.text.text));
                self.ids.push(buffer.text.id.take());
            }
            return Ok((!texts.is_empty()).then_some(OwnedRows::Texts(texts)));
        }
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        while indptr.len() <= max_rows {
            let Some(Row::Sparse(row)) = self.one()? else { break };
            indices.extend_from_slice(row.indices());
            values.extend_from_slice(row.values());
            indptr.push(indices.len());
        }
        let n_rows = indptr.len() - 1;
        let matrix = || CsrMatrix::from_checked((n_rows, self.n_features), indptr, indices, values);
        Ok((n_rows > 0).then(|| OwnedRows::Sparse(matrix())))
    }
}

/// Whether lines of a file are nothing but text, whatever they look like.
fn is_plain(kind: &ReadErrorKind) -> bool {
    matches!(kind, ReadErrorKind::UnknownFormat | ReadErrorKind::Foreign(ForeignFile::VowpalWabbit))
}

fn wants_vectors(name: &str, width: usize) -> FitError {
    FitError::usage(format_args!(
        "{name}: an npy file of vectors of {width} values is expected, since the model was trained on vectors"
    ))
}

fn wrong_content(name: &str, takes: InputKind) -> FitError {
    FitError::usage(if takes == InputKind::Text {
        format!(
            "{name}: holds features; text (jsonl, csv, tsv or fasttext) is expected, since the model was trained on text"
        )
    } else {
        format!("{name}: holds text; features are expected, since the model was trained on features")
    })
}
