//! One tree of an omikuji model.
//!
//! ```text
//!   node = {"Branch": {"weights": mat, "children": [node, ...]}}
//!        | {"Leaf":   {"weights": mat, "labels": [u32, ...]}}
//!   mat  = {"Dense":  {"v": 1, "dim": [rows, columns], "data": [f32, ...]}}
//!        | {"Sparse": {"outer_dim": rows, "inner_dim": columns,
//!                      "indptr", "outer_inds", "inner_inds", "data"}}
//! ```
//!
//! Rows are features, the last one the bias; columns are children. A sparse matrix keeps the rows
//! `outer_inds` only. Nothing that the file claims is reserved before it is there: lists grow as
//! they are read, and a matrix becomes a chunk once its node's children have been counted.

use super::OmikujiError;
use ciborium::de::Error as CborError;
use serde::Deserialize;
use std::{fs, path::Path};
use thiserror::Error;
use xc_sparse::chunked::{ChunkRows, ChunkRowsError};

/// A node whose weights fit its children.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RawNode")]
pub(super) struct Node {
    /// Weights of the children or labels.
    pub(super) weights: ChunkRows,
    /// What stands below.
    pub(super) below: Below,
    /// Rows of the weights in the file.
    n_rows: usize,
}

/// What stands below a node.
#[derive(Debug)]
pub(super) enum Below {
    /// Further nodes.
    Children(Vec<Node>),
    /// Labels.
    Labels(Vec<u32>),
}

impl Node {
    /// Steps down to the deepest node that holds labels.
    pub(super) fn depth(&self) -> usize {
        match &self.below {
            Below::Children(children) => 1 + children.iter().map(Self::depth).max().unwrap_or(0),
            Below::Labels(_) => 0,
        }
    }

    /// The number of rows of the first weights that have another one than `expected`.
    fn other_rows(&self, expected: usize) -> Option<usize> {
        let own = Some(self.n_rows).filter(|&rows| rows != expected);
        own.or_else(|| match &self.below {
            Below::Children(children) => children.iter().find_map(|child| child.other_rows(expected)),
            Below::Labels(_) => None,
        })
    }
}

/// A node as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum RawNode {
    Branch { weights: Matrix, children: Vec<Node> },
    Leaf { weights: Matrix, labels: Vec<u32> },
}

/// Weights as they stand in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Matrix {
    Dense {
        #[serde(rename = "v")]
        _version: u8,
        dim: (usize, usize),
        data: Vec<f32>,
    },
    Sparse {
        outer_dim: usize,
        inner_dim: usize,
        indptr: Vec<usize>,
        outer_inds: Vec<usize>,
        inner_inds: Vec<u32>,
        data: Vec<f32>,
    },
}

/// Why a node is none.
#[derive(Debug, Error)]
enum NodeError {
    #[error("a branch without children")]
    NoChildren,
    #[error("weights for {got} children, the node has {expected}")]
    Columns { got: usize, expected: usize },
    #[error("dense weights of shape {dim:?} with {n} numbers")]
    Shape { dim: (usize, usize), n: usize },
    #[error("sparse weights whose pointers do not fit their indices")]
    Pointers,
    #[error("sparse weights with a column beyond {0}")]
    Column(usize),
    #[error("sparse weights whose rows do not ascend or lie outside")]
    Rows,
    #[error("weights: {0}")]
    Weights(#[from] ChunkRowsError),
}

impl TryFrom<RawNode> for Node {
    type Error = NodeError;

    fn try_from(node: RawNode) -> Result<Self, NodeError> {
        let (weights, below, n_below) = match node {
            RawNode::Branch { children, .. } if children.is_empty() => return Err(NodeError::NoChildren),
            RawNode::Branch { weights, children } => {
                let n = children.len();
                (weights, Below::Children(children), n)
            }
            RawNode::Leaf { weights, labels } => {
                let n = labels.len();
                (weights, Below::Labels(labels), n)
            }
        };
        let (n_rows, got) = weights.shape();
        if got != n_below {
            return Err(NodeError::Columns { got, expected: n_below });
        }
        Ok(Self { weights: weights.chunk()?, below, n_rows })
    }
}

impl Matrix {
    /// Rows and columns, as the file claims them.
    fn shape(&self) -> (usize, usize) {
        match *self {
            Self::Dense { dim, .. } => dim,
            Self::Sparse { outer_dim, inner_dim, .. } => (outer_dim, inner_dim),
        }
    }

    /// The weights of a chunk; the last row is the bias.
    fn chunk(self) -> Result<ChunkRows, NodeError> {
        let (n_rows, n_columns) = self.shape();
        let mut bias = vec![0.0; n_columns];
        let mut entries = Vec::new();
        let mut add = |row: usize, column: u32, value: f32| match row + 1 == n_rows {
            true => bias[column as usize] = value,
            false => entries.push((row as u32, column, value)),
        };
        match self {
            Self::Dense { dim, data, .. } => {
                if n_rows.checked_mul(n_columns) != Some(data.len()) || n_rows > u32::MAX as usize {
                    return Err(NodeError::Shape { dim, n: data.len() });
                }
                for (row, values) in data.chunks_exact(n_columns.max(1)).enumerate() {
                    let stored = (0..).zip(values).filter(|(_, value)| **value != 0.0);
                    stored.for_each(|(column, &value)| add(row, column, value));
                }
            }
            Self::Sparse { indptr, outer_inds, inner_inds, data, .. } => {
                let rises = indptr.windows(2).all(|w| w[0] <= w[1]);
                let ends = (indptr.first(), indptr.last()) == (Some(&0), Some(&data.len()));
                if indptr.len() != outer_inds.len() + 1 || inner_inds.len() != data.len() || !ends || !rises {
                    return Err(NodeError::Pointers);
                }
                if inner_inds.iter().any(|&column| column as usize >= n_columns) {
                    return Err(NodeError::Column(n_columns));
                }
                let inside = outer_inds.last().is_none_or(|&row| row < n_rows && row < u32::MAX as usize);
                if !inside || outer_inds.windows(2).any(|w| w[0] >= w[1]) {
                    return Err(NodeError::Rows);
                }
                for (&row, ends) in outer_inds.iter().zip(indptr.windows(2)) {
                    (ends[0]..ends[1]).for_each(|at| add(row, inner_inds[at], data[at]));
                }
            }
        }
        let chunk = ChunkRows::from_entries(n_columns, entries, bias)?;
        chunk.check()?;
        Ok(chunk)
    }
}

/// Deeper nesting than any trained tree has (omikuji stops at depth 20 unless told otherwise): 100
/// nodes, each of which nests a choice, a map and a list.
const MAX_NESTING: usize = 300;

/// Reads a file.
pub(super) fn read_tree(path: &Path, n_features: usize) -> Result<Node, OmikujiError> {
    let bytes = fs::read(path).map_err(|source| OmikujiError::Io { path: path.to_owned(), source })?;
    let mut rest = &bytes[..];
    let node: Result<Node, _> = ciborium::de::from_reader_with_recursion_limit(&mut rest, MAX_NESTING);
    let fail = |what| OmikujiError::Cbor { path: path.to_owned(), offset: bytes.len() - rest.len(), what };
    let node = node.map_err(|error| match error {
        CborError::Io(_) => fail("the file ends here".into()),
        CborError::Syntax(_) => fail("no CBOR".into()),
        CborError::Semantic(_, what) => fail(what),
        CborError::RecursionLimitExceeded => fail("nodes nested deeper than 100".into()),
    })?;
    if !rest.is_empty() {
        return Err(fail("more bytes after the tree".into()));
    }
    match node.other_rows(n_features + 1) {
        None => Ok(node),
        Some(n) => Err(fail(format!("weights of {n} rows, expected {n_features} features and the bias"))),
    }
}
