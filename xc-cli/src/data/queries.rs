//! Queries of a prediction: streamed, made into features as the model's training instances were.

use super::InputArgs;
use crate::error::CliError;
use crate::interrupt::Stdin;
use crate::model::Model;
use std::io::{BufRead, BufReader};
use std::path::Path;
use xc_hash::text::{Featurizer, PipelineScratch};
use xc_sparse::io::{
    Content, Format, InstanceBuffer, InstanceReader, ReadError, ReadErrorKind, Source, Vectors, read_dataset,
};
use xc_sparse::{CsrMatrix, DenseMatrix, Rows, SparseRow};
use xc_train::Features;

/// A stream of queries for one model.
pub(crate) struct Queries<'m> {
    inner: Inner,
    maker: Option<&'m Featurizer>,
    n_features: usize,
    name: String,
    scratch: PipelineScratch,
    values: Vec<f32>,
}

enum Inner {
    Lines { reader: Box<InstanceReader>, buffer: Box<InstanceBuffer> },
    Whole { features: CsrMatrix, next: usize },
    Vectors { vectors: Vectors, next: usize },
}

/// One query.
#[derive(Clone, Copy)]
pub(crate) enum Query<'a> {
    /// Weighted features.
    Sparse(SparseRow<'a>),
    /// A vector.
    Dense(&'a [f32]),
}

impl<'a> Query<'a> {
    /// The features; what a model wants, [`Queries`] has seen to.
    pub(crate) fn sparse(self) -> SparseRow<'a> {
        match self {
            Self::Sparse(row) => row,
            Self::Dense(_) => panic!("a vector for a model of sparse features"),
        }
    }
}

/// Several queries of one kind.
pub(crate) enum QueryRows {
    /// Weighted features.
    Sparse(CsrMatrix),
    /// Vectors.
    Dense(DenseMatrix),
}

impl QueryRows {
    /// Number of queries.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Sparse(matrix) => matrix.rows(),
            Self::Dense(rows) => rows.rows,
        }
    }

    /// Query `i`.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn get(&self, i: usize) -> Query<'_> {
        match self {
            Self::Sparse(matrix) => Query::Sparse(Rows::new(matrix.view()).row(i)),
            Self::Dense(rows) => Query::Dense(&rows.values[i * rows.columns..][..rows.columns]),
        }
    }

    /// The features; what a model wants, [`Queries`] has seen to.
    pub(crate) fn sparse(&self) -> &CsrMatrix {
        match self {
            Self::Sparse(matrix) => matrix,
            Self::Dense(_) => panic!("vectors for a model of sparse features"),
        }
    }

    /// As a network takes them.
    pub(crate) fn features(&self) -> Features<'_> {
        match self {
            Self::Sparse(matrix) => Features::Sparse(Rows::new(matrix.view())),
            Self::Dense(rows) => Features::Dense(rows.view()),
        }
    }
}

impl<'m> Queries<'m> {
    /// Opens a file; its labels, if it has some, are not looked at.
    ///
    /// # Errors
    /// A file that is absent, empty, of another format, or holds features where the model wants text or the other
    /// way round.
    pub(crate) fn open(path: &Path, input: &InputArgs, model: &'m Model) -> Result<Self, CliError> {
        let mut options = input.options();
        options.n_features = Some(model.n_features());
        let format = match options.format {
            Some(format) => format,
            None => Format::detect(path)?,
        };
        options.format = Some(format);
        let name = path.display().to_string();
        let inner = if let Some(width) = model.vector_width() {
            if format != Format::Npy {
                return Err(wants_vectors(&name, width));
            }
            let vectors = Vectors::open(path, &options)?;
            if vectors.columns() != width {
                return Err(CliError::usage(format_args!(
                    "{name}: vectors of {} values; the model wants {width}",
                    vectors.columns()
                )));
            }
            Inner::Vectors { vectors, next: 0 }
        } else if matches!(format, Format::Npz | Format::Npy) {
            Inner::Whole { features: read_dataset(path, &options)?.features, next: 0 }
        } else {
            if takes_text(model) && !matches!(format, Format::Jsonl | Format::FastText) {
                return Err(wrong_content(&name, model));
            }
            let reader = InstanceReader::over(Source::open(path, options.max_expanded_bytes)?, &options)?;
            Inner::Lines { reader: Box::new(reader), buffer: Box::default() }
        };
        let mut queries = Self::new(inner, name, model);
        if queries.check_content(model)? {
            let kind = ReadErrorKind::Empty { wanted: "one instance a line" };
            return Err(ReadError::path(path, kind).into());
        }
        Ok(queries)
    }

    /// Reads stdin. Without --format a model of text takes JSON objects or plain lines of text, told by the first
    /// character; any other model tells the format by the first line.
    pub(crate) fn stdin(input: &InputArgs, model: &'m Model) -> Result<Self, CliError> {
        let mut options = input.options();
        options.n_features = Some(model.n_features());
        let name = "standard input";
        if let Some(width) = model.vector_width() {
            return Err(wants_vectors(name, width));
        }
        let failed = |e| CliError::from(ReadError::file(name, ReadErrorKind::Io(e)));
        let mut stdin = BufReader::new(Stdin::open().map_err(failed)?);
        if options.format.is_none() && takes_text(model) {
            let head = stdin.fill_buf().map_err(failed)?;
            options.format = Some(if head.first() == Some(&b'{') { Format::Jsonl } else { Format::FastText });
        }
        let reader = InstanceReader::new(name, stdin, &options)?;
        let inner = Inner::Lines { reader: Box::new(reader), buffer: Box::default() };
        let mut queries = Self::new(inner, name.to_owned(), model);
        queries.check_content(model)?;
        Ok(queries)
    }

    fn new(inner: Inner, name: String, model: &'m Model) -> Self {
        let n_features = model.n_features();
        let maker = model.maker.as_ref();
        Self { inner, maker, n_features, name, scratch: PipelineScratch::default(), values: Vec::new() }
    }

    /// True for an empty stream.
    fn check_content(&mut self, model: &Model) -> Result<bool, CliError> {
        let content = match &mut self.inner {
            Inner::Lines { reader, .. } => reader.content()?,
            Inner::Whole { .. } => Some(Content::Features),
            Inner::Vectors { .. } => return Ok(false),
        };
        match content {
            Some(content) if (content == Content::Text) != takes_text(model) => Err(wrong_content(&self.name, model)),
            content => Ok(content.is_none()),
        }
    }

    /// The next query, or `None` at the end.
    pub(crate) fn next_one(&mut self) -> Result<Option<Query<'_>>, CliError> {
        let row = match &mut self.inner {
            Inner::Lines { reader, buffer } => {
                if reader.next_into(buffer)?.is_none() {
                    return Ok(None);
                }
                if let Some(Featurizer::Text(pipeline)) = self.maker {
                    let (indices, values) = pipeline.transform_one(&buffer.text.text, &mut self.scratch);
                    return Ok(Some(Query::Sparse(SparseRow { indices, values })));
                }
                buffer.row.features()
            }
            Inner::Whole { features, next } => {
                if *next == features.rows() {
                    return Ok(None);
                }
                *next += 1;
                Rows::new(features.view()).row(*next - 1)
            }
            Inner::Vectors { vectors, next } => {
                if *next == vectors.rows() {
                    return Ok(None);
                }
                let rows = *next..*next + 1;
                vectors.check(rows.clone())?;
                *next += 1;
                return Ok(Some(Query::Dense(vectors.some(rows))));
            }
        };
        let Some(Featurizer::Rows(weights)) = self.maker else { return Ok(Some(Query::Sparse(row))) };
        self.values.clear();
        self.values.extend_from_slice(row.values);
        weights.weigh(row.indices, &mut self.values);
        Ok(Some(Query::Sparse(SparseRow { indices: row.indices, values: &self.values })))
    }

    /// Up to `max_rows` queries; `None` at the end.
    pub(crate) fn next_batch(&mut self, max_rows: usize) -> Result<Option<QueryRows>, CliError> {
        if let Inner::Vectors { vectors, next } = &mut self.inner {
            let rows = *next..vectors.rows().min(next.saturating_add(max_rows));
            if rows.is_empty() {
                return Ok(None);
            }
            vectors.check(rows.clone())?;
            *next = rows.end;
            let values = vectors.some(rows.clone()).to_vec();
            return Ok(Some(QueryRows::Dense(DenseMatrix { rows: rows.len(), columns: vectors.columns(), values })));
        }
        if let (Inner::Lines { reader, buffer }, Some(Featurizer::Text(pipeline))) = (&mut self.inner, self.maker) {
            // Text is made into features on all threads.
            let mut texts = Vec::new();
            while texts.len() < max_rows && reader.next_into(buffer)?.is_some() {
                texts.push(std::mem::take(&mut buffer.text.text));
            }
            return Ok((!texts.is_empty()).then(|| QueryRows::Sparse(pipeline.transform_batch(&texts))));
        }
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        while indptr.len() <= max_rows {
            let Some(query) = self.next_one()? else { break };
            let row = query.sparse();
            indices.extend_from_slice(row.indices);
            values.extend_from_slice(row.values);
            indptr.push(indices.len());
        }
        let n_rows = indptr.len() - 1;
        let matrix = || CsrMatrix::new((n_rows, self.n_features), indptr, indices, values);
        Ok((n_rows > 0).then(|| QueryRows::Sparse(matrix())))
    }
}

fn takes_text(model: &Model) -> bool {
    matches!(model.maker, Some(Featurizer::Text(_)))
}

fn wants_vectors(name: &str, width: usize) -> CliError {
    CliError::usage(format_args!(
        "{name}: an npy file of vectors of {width} values is wanted, since the model was trained on vectors"
    ))
}

fn wrong_content(name: &str, model: &Model) -> CliError {
    CliError::usage(if takes_text(model) {
        format!("{name}: holds features; text (jsonl or fasttext) is wanted, since the model was trained on text")
    } else {
        format!("{name}: holds text; features are wanted, since the model was trained on features")
    })
}
