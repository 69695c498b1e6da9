//! Queries of a prediction: streamed, as the model takes them.

use super::report_unseen;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use xc_buffer::Part;
use xc_data::{
    Content, FileForm, ForeignFile, Format, InstanceBuffer, InstanceReader, PartRows, Parts, ReadError, ReadErrorKind,
    ReadOptions, RowId, Source, UnseenCount, Vectors, read_dataset,
};
use xc_dense::DenseMatrix;
use xc_model::Model;
use xc_model::{InputKind, OwnedRows};
use xc_sparse::{CsrMatrix, SparseRow};
use xc_train::fit::{Context, FitError};

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
    /// Where a part of a file of lines lies in it.
    lies: Option<PartRows>,
}

enum Reader {
    Lines { reader: Box<InstanceReader>, buffer: Box<InstanceBuffer> },
    Whole { features: CsrMatrix, rows: Range<usize> },
    Vectors { vectors: Vectors, rows: Range<usize> },
    Given { texts: std::vec::IntoIter<String> },
}

impl Queries {
    /// Opens a file; its labels, if it has some, are not looked at.
    ///
    /// # Errors
    /// A file that is absent, empty, of another format, or holds features where the model wants
    /// text or the other way round.
    pub fn open(path: &Path, input: &FileForm, model: &Model) -> Result<Self, FitError> {
        Self::open_part(path, input, model, Part::WHOLE, false)
    }

    /// Opens a part of a file: what all parts give is, in order, what the file gives. Of arrays a part has the rows
    /// I n / N to (I + 1) n / N; of a file of lines see [`InstanceReader::part`]. A part may have no query.
    ///
    /// `counts`: whether [`Self::before`] is asked for, which costs a pass over what precedes the part in a file of
    /// lines.
    ///
    /// # Errors
    /// As [`Self::open`]; a file of lines that can be read from its beginning only.
    pub fn open_part(path: &Path, input: &FileForm, model: &Model, part: Part, counts: bool) -> Result<Self, FitError> {
        let about = model.describe();
        let input = input.or(model.input());
        Self::of(path, &input, (about.takes, about.n_features, TRAINED), part, counts)
    }

    /// Opens a file of texts, for whom no model was trained.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn texts(path: &Path, input: &FileForm) -> Result<Self, FitError> {
        Self::of(path, input, (InputKind::Text, 0, ""), Part::WHOLE, false)
    }

    /// Texts that are there already; `name` is what messages call them.
    ///
    /// # Errors
    /// The model was not trained on text.
    pub fn given(texts: Vec<String>, name: &str, model: &Model) -> Result<Self, FitError> {
        let about = model.describe();
        if about.takes != InputKind::Text {
            let takes = about.takes;
            return Err(FitError::usage(format_args!("{name}: the model was trained on {takes}, not on text")));
        }
        let reader = Reader::Given { texts: texts.into_iter() };
        let (takes, n_features) = (about.takes, about.n_features);
        Ok(Self { reader, takes, n_features, name: name.to_owned(), ids: Vec::new(), unseen: None, lies: None })
    }

    /// What is wanted: a kind of rows, of how many features, and why.
    fn of(
        path: &Path,
        input: &FileForm,
        (takes, n_features, why): (InputKind, usize, &'static str),
        part: Part,
        counts: bool,
    ) -> Result<Self, FitError> {
        let mut options = ReadOptions::from(input.clone());
        options.parts = Parts::Queries;
        options.expect(n_features);
        let format = match Format::detect(path, &options) {
            // Plain lines are fastText without labels.
            Err(e) if takes == InputKind::Text && is_plain(e.kind()) => Format::FastText,
            format => format?,
        };
        options.form.format = Some(format);
        let mut name = path.display().to_string();
        let rows_of = |n: usize| {
            let rows = part.range(n as u64);
            rows.start as usize..rows.end as usize
        };
        let mut lies = None;
        let reader = if takes == InputKind::Dense {
            let width = n_features;
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
            let rows = rows_of(vectors.rows());
            Reader::Vectors { vectors, rows }
        } else if matches!(format, Format::Npz | Format::Npy) {
            let features = read_dataset(path, &options)?.features;
            let rows = rows_of(features.rows());
            Reader::Whole { features, rows }
        } else {
            if takes == InputKind::Text && !format.may_hold_text() {
                return Err(wrong_content(&name, takes, why));
            }
            let reader = if part == Part::WHOLE {
                InstanceReader::over(Source::open(path, options.max_expanded_bytes)?, &options)?
            } else {
                let (reader, found) = InstanceReader::part(path, part, counts, &options)?;
                (name, lies) = (reader.name().to_owned(), Some(found));
                reader
            };
            Reader::Lines { reader: Box::new(reader), buffer: Box::default() }
        };
        let unseen = options.unseen;
        let mut queries = Self { reader, takes, n_features, name, ids: Vec::new(), unseen, lies };
        if queries.check_content(why)? {
            let kind = ReadErrorKind::Empty { expected: "one instance a line" };
            return Err(ReadError::path(path, kind).into());
        }
        Ok(queries)
    }

    /// True for an empty stream.
    fn check_content(&mut self, why: &str) -> Result<bool, FitError> {
        let content = match &mut self.reader {
            Reader::Lines { reader, .. } => reader.content()?,
            Reader::Whole { features, .. } => (features.rows() > 0).then_some(Content::Features),
            Reader::Vectors { vectors, .. } => return Ok(vectors.rows() == 0),
            Reader::Given { texts } => return Ok(texts.len() == 0),
        };
        match content {
            Some(content) if (content == Content::Text) != (self.takes == InputKind::Text) => {
                Err(wrong_content(&self.name, self.takes, why))
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

    /// What messages call the file or its part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of queries of the file before its part; 0 where they were not counted.
    pub fn before(&self) -> usize {
        match (&self.reader, self.lies) {
            (Reader::Whole { rows, .. } | Reader::Vectors { rows, .. }, _) => rows.start,
            (Reader::Given { .. }, _) => 0,
            (Reader::Lines { .. }, lies) => lies.and_then(|lies| lies.before).map_or(0, |n| n as usize),
        }
    }

    /// Number of queries of the whole file, where it is known before they are read.
    pub fn known_len(&self) -> Option<usize> {
        match &self.reader {
            Reader::Lines { reader, .. } => {
                let promised = self.lies.map_or_else(|| reader.promised_rows(), |lies| lies.promised);
                promised.and_then(|n| usize::try_from(n).ok())
            }
            Reader::Whole { features, .. } => Some(features.rows()),
            Reader::Vectors { vectors, .. } => Some(vectors.rows()),
            Reader::Given { texts } => Some(texts.len()),
        }
    }

    /// The next row of features, or `None` at the end; its id is added to those that are kept.
    fn features(&mut self) -> Result<Option<SparseRow<'_>>, FitError> {
        match &mut self.reader {
            Reader::Lines { reader, buffer } => {
                if reader.next_into(buffer)?.is_none() {
                    return Ok(None);
                }
                self.ids.push(buffer.text.id.take());
                Ok(Some(buffer.row.features()))
            }
            Reader::Whole { features, rows } => Ok(rows.next().map(|at| features.view().row(at))),
            // Of another kind.
            Reader::Vectors { .. } | Reader::Given { .. } => Ok(None),
        }
    }

    /// Up to `max_rows` queries; `None` at the end.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn next_batch(&mut self, max_rows: usize) -> Result<Option<OwnedRows>, FitError> {
        self.ids.clear();
        if let Reader::Vectors { vectors, rows: left } = &mut self.reader {
            let rows = left.start..left.end.min(left.start.saturating_add(max_rows));
            if rows.is_empty() {
                return Ok(None);
            }
            vectors.check(rows.clone())?;
            left.start = rows.end;
            let (n, columns, values) = (rows.len(), vectors.columns(), vectors.some(rows).to_vec());
            return Ok(Some(OwnedRows::Dense(DenseMatrix::new(n, columns, values))));
        }
        if let Reader::Given { texts } = &mut self.reader {
            let texts: Vec<String> = texts.take(max_rows).collect();
            return Ok((!texts.is_empty()).then_some(OwnedRows::Texts(texts)));
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
            let Some(row) = self.features()? else { break };
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

/// Why a kind of rows is expected.
pub(super) const TRAINED: &str = ", since the model was trained on";

/// A file of features where text is expected, or the other way round; `why`: [`TRAINED`] or nothing.
pub(super) fn wrong_content(name: &str, takes: InputKind, why: &str) -> FitError {
    let (holds, form, expected) = match takes {
        InputKind::Text => ("features", "text (jsonl, csv, tsv or fasttext) is", "text"),
        _ => ("text", "features are", "features"),
    };
    let because = if why.is_empty() { String::new() } else { format!("{why} {expected}") };
    FitError::usage(format_args!("{name}: holds {holds}; {form} expected{because}"))
}
