//! One tree of an omikuji model.
//!
//! ```text
//!   node = {"Branch": {"weights": mat, "children": [node, ...]}}  |  {"Leaf": {"weights": mat, "labels": [u32, ...]}}
//!   mat  = {"Dense":  {"v": 1, "dim": [rows, columns], "data": [f32, ...]}}
//!        | {"Sparse": {"outer_dim": rows, "inner_dim": columns, "indptr", "outer_inds", "inner_inds", "data"}}
//! ```
//!
//! Rows are features, the last one the bias; columns are children. A sparse matrix keeps the rows `outer_inds` only.

use super::OmikujiError;
use minicbor::{Decode, Decoder, data::Type};
use std::{fs, path::Path};
use xc_sparse::chunked::{ChunkRows, ChunkRowsError};

/// A node as it stands in the file.
#[derive(Debug)]
pub(super) enum Node {
    /// Weights of the children, and they.
    Branch { weights: ChunkRows, children: Vec<Node> },
    /// Weights of the labels, and they.
    Leaf { weights: ChunkRows, labels: Vec<u32> },
}

impl Node {
    /// Steps down to the deepest node that holds labels.
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Branch { children, .. } => 1 + children.iter().map(Self::depth).max().unwrap_or(0),
            Self::Leaf { .. } => 0,
        }
    }
}

/// Deeper nesting than any trained tree has: omikuji stops at depth 20 unless told otherwise.
const MAX_DEPTH: usize = 200;

/// Reads a file.
pub(super) fn read_tree(path: &Path, n_features: usize) -> Result<Node> {
    let bytes = fs::read(path).map_err(|source| OmikujiError::Io { path: path.to_owned(), source })?;
    let mut reader = Reader { path, n_bytes: bytes.len(), decoder: Decoder::new(&bytes), n_features };
    let node = reader.node(0)?;
    if reader.decoder.position() != bytes.len() {
        return Err(reader.fail("more bytes after the tree"));
    }
    Ok(node)
}

struct Reader<'a> {
    path: &'a Path,
    n_bytes: usize,
    decoder: Decoder<'a>,
    n_features: usize,
}

type Result<T> = std::result::Result<T, OmikujiError>;

/// The arrays of a sparse matrix.
#[derive(Default)]
struct Sparse {
    outer_dim: usize,
    inner_dim: usize,
    indptr: Vec<u64>,
    outer_inds: Vec<u64>,
    inner_inds: Vec<u64>,
    data: Vec<f32>,
}

impl<'a> Reader<'a> {
    fn fail(&self, what: impl Into<String>) -> OmikujiError {
        OmikujiError::Cbor { path: self.path.to_owned(), offset: self.decoder.position(), what: what.into() }
    }

    fn check<T>(&self, result: std::result::Result<T, minicbor::decode::Error>) -> Result<T> {
        result.map_err(|error| {
            if error.is_end_of_input() { self.fail("the file ends here") } else { self.fail(error.to_string()) }
        })
    }

    /// The one key of `{"Key": ...}`.
    fn variant(&mut self) -> Result<&'a str> {
        let n = self.decoder.map();
        match self.check(n)? {
            Some(1) => {
                let key = self.decoder.str();
                self.check(key)
            }
            n => Err(self.fail(format!("a map of {n:?} entries, wanted one"))),
        }
    }

    /// Calls `each` with every key of a map; it must read the value.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, &str) -> Result<()>) -> Result<()> {
        let n = self.decoder.map();
        let mut left = self.check(n)?;
        loop {
            match &mut left {
                Some(0) => return Ok(()),
                Some(n) => *n -= 1,
                None => {
                    let next = self.decoder.datatype();
                    if self.check(next)? == Type::Break {
                        let skipped = self.decoder.skip();
                        return self.check(skipped);
                    }
                }
            }
            let key = self.decoder.str();
            let key = self.check(key)?;
            each(self, key)?;
        }
    }

    fn unknown(&mut self, key: &str) -> Result<()> {
        Err(self.fail(format!("unknown field {key:?}")))
    }

    fn list<T: Decode<'a, ()>>(&mut self) -> Result<Vec<T>> {
        let room = match self.decoder.probe().array() {
            // Each element takes at least a byte: what a hostile length asks for is not reserved.
            Ok(Some(n)) => (n as usize).min(self.n_bytes - self.decoder.position()),
            _ => 0,
        };
        let mut out = Vec::with_capacity(room);
        let iter = self.decoder.array_iter::<T>();
        let mut result = Ok(());
        match iter {
            Ok(iter) => {
                for element in iter {
                    match element {
                        Ok(element) => out.push(element),
                        Err(error) => result = Err(error),
                    }
                    if result.is_err() {
                        break;
                    }
                }
            }
            Err(error) => result = Err(error),
        }
        self.check(result)?;
        Ok(out)
    }

    fn number(&mut self) -> Result<usize> {
        let number = self.decoder.u64();
        let number = self.check(number)?;
        usize::try_from(number).map_err(|_| self.fail(format!("{number} is too large")))
    }

    fn node(&mut self, depth: usize) -> Result<Node> {
        if depth > MAX_DEPTH {
            return Err(self.fail(format!("nodes nested deeper than {MAX_DEPTH}")));
        }
        let is_branch = match self.variant()? {
            "Branch" => true,
            "Leaf" => false,
            key => return Err(self.fail(format!("node {key:?}, wanted \"Branch\" or \"Leaf\""))),
        };
        let (mut weights, mut children, mut labels) = (None, None, None);
        self.fields(|reader, key| {
            match key {
                "weights" => weights = Some(reader.matrix()?),
                "children" if is_branch => children = Some(reader.children(depth)?),
                "labels" if !is_branch => labels = Some(reader.list::<u32>()?),
                key => return reader.unknown(key),
            }
            Ok(())
        })?;
        let Some(weights) = weights else { return Err(self.fail("a node without weights")) };
        let n = children.as_ref().map(Vec::len).or(labels.as_ref().map(Vec::len));
        if n != Some(weights.n_columns) {
            let what = format!("a node with weights for {} children, but {n:?} children", weights.n_columns);
            return Err(self.fail(what));
        }
        match (children, labels) {
            (Some(children), _) if children.is_empty() => Err(self.fail("a branch without children")),
            (Some(children), _) => Ok(Node::Branch { weights, children }),
            (None, labels) => Ok(Node::Leaf { weights, labels: labels.unwrap_or_default() }),
        }
    }

    fn children(&mut self, depth: usize) -> Result<Vec<Node>> {
        let n = self.decoder.array();
        let Some(n) = self.check(n)? else { return Err(self.fail("a list of nodes without a length")) };
        (0..n).map(|_| self.node(depth + 1)).collect()
    }

    fn matrix(&mut self) -> Result<ChunkRows> {
        match self.variant()? {
            "Dense" => self.dense(),
            "Sparse" => self.sparse(),
            key => Err(self.fail(format!("weights {key:?}, wanted \"Dense\" or \"Sparse\""))),
        }
    }

    fn dense(&mut self) -> Result<ChunkRows> {
        let (mut dim, mut data) = (Vec::new(), Vec::new());
        self.fields(|reader, key| {
            match key {
                "v" => drop(reader.number()?),
                "dim" => dim = reader.list::<u64>()?,
                "data" => data = reader.list::<f32>()?,
                key => return reader.unknown(key),
            }
            Ok(())
        })?;
        let fits = matches!(dim[..], [rows, columns] if rows.checked_mul(columns) == Some(data.len() as u64));
        if !fits {
            return Err(self.fail(format!("dense weights of shape {dim:?} with {} numbers", data.len())));
        }
        let n_columns = dim[1] as usize;
        self.check_rows(dim[0] as usize)?;
        let mut chunk = Rows::new(n_columns, self.n_features);
        for (feature, row) in data.chunks_exact(n_columns.max(1)).enumerate() {
            let entries = row.iter().enumerate().filter(|(_, value)| **value != 0.0);
            chunk.push(feature, entries.map(|(column, &value)| (column as u32, value)));
        }
        self.finish(chunk)
    }

    fn sparse(&mut self) -> Result<ChunkRows> {
        let mut m = Sparse::default();
        self.fields(|reader, key| {
            match key {
                "outer_dim" => m.outer_dim = reader.number()?,
                "inner_dim" => m.inner_dim = reader.number()?,
                "indptr" => m.indptr = reader.list()?,
                "outer_inds" => m.outer_inds = reader.list()?,
                "inner_inds" => m.inner_inds = reader.list()?,
                "data" => m.data = reader.list()?,
                key => return reader.unknown(key),
            }
            Ok(())
        })?;
        self.check_rows(m.outer_dim)?;
        let nnz = m.data.len();
        let rises = m.indptr.windows(2).all(|w| w[0] <= w[1]);
        if m.indptr.len() != m.outer_inds.len() + 1
            || m.inner_inds.len() != nnz
            || m.indptr[0] != 0
            || m.indptr[m.indptr.len() - 1] != nnz as u64
            || !rises
        {
            return Err(self.fail("sparse weights whose pointers do not fit their indices"));
        }
        if m.inner_dim > u32::MAX as usize || m.inner_inds.iter().any(|&column| column >= m.inner_dim as u64) {
            return Err(self.fail(format!("sparse weights with a column beyond {}", m.inner_dim)));
        }
        // Bounded by what the labels or children take in the file; a larger one is a mismatch.
        if m.inner_dim > self.n_bytes {
            return Err(self.fail(format!("weights for {} children in a file of {} bytes", m.inner_dim, self.n_bytes)));
        }
        if m.outer_inds.last().is_some_and(|&row| row >= m.outer_dim as u64)
            || m.outer_inds.windows(2).any(|w| w[0] >= w[1])
        {
            return Err(self.fail("sparse weights whose rows do not ascend or lie outside"));
        }
        let mut chunk = Rows::new(m.inner_dim, self.n_features);
        for (row, w) in m.indptr.windows(2).enumerate() {
            let range = w[0] as usize..w[1] as usize;
            let columns = m.inner_inds[range.clone()].iter().map(|&column| column as u32);
            chunk.push(m.outer_inds[row] as usize, columns.zip(m.data[range].iter().copied()));
        }
        self.finish(chunk)
    }

    fn check_rows(&self, n_rows: usize) -> Result<()> {
        if n_rows != self.n_features + 1 {
            let what = format!("weights of {n_rows} rows, wanted {} features and the bias", self.n_features);
            return Err(self.fail(what));
        }
        Ok(())
    }

    fn finish(&self, rows: Rows) -> Result<ChunkRows> {
        let fail = |source: ChunkRowsError| OmikujiError::Weights {
            path: self.path.to_owned(),
            offset: self.decoder.position(),
            source,
        };
        rows.chunk.check().map_err(fail)?;
        Ok(rows.chunk)
    }
}

/// Collects rows; the one after the last feature is the bias.
struct Rows {
    chunk: ChunkRows,
    n_features: usize,
}

impl Rows {
    fn new(n_columns: usize, n_features: usize) -> Self {
        Self { chunk: ChunkRows::empty(n_columns), n_features }
    }

    /// Appends a row, sorted by column. Rows must come in ascending order; empty ones leave no trace.
    fn push(&mut self, feature: usize, entries: impl Iterator<Item = (u32, f32)>) {
        let chunk = &mut self.chunk;
        if feature == self.n_features {
            for (column, value) in entries {
                chunk.bias[column as usize] = value;
            }
            return;
        }
        let start = chunk.columns.len();
        for (column, value) in entries {
            chunk.columns.push(column);
            chunk.values.push(value);
        }
        if chunk.columns.len() == start {
            return;
        }
        if chunk.columns[start..].windows(2).any(|w| w[0] > w[1]) {
            let mut pairs: Vec<(u32, f32)> =
                chunk.columns[start..].iter().copied().zip(chunk.values[start..].iter().copied()).collect();
            pairs.sort_by_key(|&(column, _)| column);
            chunk.columns.truncate(start);
            chunk.values.truncate(start);
            chunk.columns.extend(pairs.iter().map(|pair| pair.0));
            chunk.values.extend(pairs.iter().map(|pair| pair.1));
        }
        chunk.features.push(feature as u32);
        chunk.row_ptr.push(chunk.columns.len() as u32);
    }
}
