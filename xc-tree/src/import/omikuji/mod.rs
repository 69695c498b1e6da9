//! omikuji models (Parabel, Bonsai): read from the folder that its `save` writes (version 0.5).
//!
//! ```text
//!   FOLDER/settings.json      {"n_features": 5000, "classifier_loss_type": "Hinge"}     or "Log"
//!   FOLDER/tree0.cbor ...     one tree each: nested nodes, CBOR
//! ```
//!
//! That system predicts with rows of unit length, adds up `-max(0, 1 - z)^2` (hinge) or `-ln(1 +
//! exp(-z))` (log) down a path, takes the exponential at the label and averages the trees: here the
//! post-processors `l2-hinge` and `sigmoid`.
//!
//! # Leaves at different depths
//! There a node that holds labels may stand at any depth, and the beam carries it along, its score
//! unchanged, until the deepest ones are reached. In [`Topology`] all labels stand at the last
//! level, so such a node gets a chain of single children that add nothing:
//!
//! ```text
//!   root ── a ── labels 0 1              root ── a ── a' ── labels 0 1
//!        └─ b ── c ── labels 2 3   =>         └─ b ── c ─── labels 2 3
//!             └─ d ── label 4                      └─ d ─── label 4
//! ```
//!
//! A chain node has a bias and no weights. For hinge the bias is 1: `max(0, 1 - 1)` is 0. For log
//! it is 200: `exp(-200)` is 0 in `f32`, so `-ln(1 + 0)` is 0 exactly. Both numbers are exact in
//! half precision too.

mod cbor;

use crate::model::{PostProcessor, Topology, TopologyError, TreeParts};
use cbor::{Below, Node};
use rayon::prelude::*;
use serde::Deserialize;
use std::{
    fs,
    path::{Path, PathBuf},
};
use thiserror::Error;
use xc_sparse::chunked::ChunkRows;

/// What an omikuji folder holds.
#[derive(Clone, Debug)]
pub struct OmikujiModel {
    /// The trees; the score of a label is the mean over them, 0 where a tree did not return it.
    /// omikuji itself returns, of each node with labels that its beam ends in, the best `beam`
    /// labels.
    pub trees: Vec<TreeParts>,
    /// `l2-hinge` or `sigmoid`.
    pub post: PostProcessor,
    /// True: rows must be scaled to unit length (2-norm) before they are scored. A row without
    /// features stays as it is.
    pub normalise_rows: bool,
    /// Number of features.
    pub n_features: usize,
    /// One more than the largest label of any tree; the folder does not say how many labels there
    /// are.
    pub n_labels: usize,
}

/// Why an omikuji folder could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OmikujiError {
    /// The system refused.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// `settings.json` is malformed or names an unknown loss.
    #[error("{}: malformed", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// No `tree0.cbor`.
    #[error("{}: no trees; expected tree0.cbor and so on", path.display())]
    NoTrees {
        /// The folder.
        path: PathBuf,
    },
    /// No CBOR, or another layout.
    #[error("{}: byte {offset}: {what}", path.display())]
    Cbor {
        /// The file.
        path: PathBuf,
        /// Position in it.
        offset: usize,
        /// What was found.
        what: String,
    },
    /// The nodes are no tree of labels.
    #[error("{}: no tree", path.display())]
    Tree {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: TopologyError,
    },
}

/// `settings.json`.
#[derive(Deserialize)]
struct Settings {
    n_features: usize,
    classifier_loss_type: Loss,
}

#[derive(Clone, Copy, Deserialize)]
enum Loss {
    Hinge,
    Log,
}

impl Loss {
    fn post(self) -> PostProcessor {
        match self {
            Self::Hinge => PostProcessor::Hinge { p: 2 },
            Self::Log => PostProcessor::Sigmoid,
        }
    }

    /// The bias with which a chain node adds nothing; see the head of the module.
    fn chain_bias(self) -> f32 {
        match self {
            Self::Hinge => 1.0,
            Self::Log => 200.0,
        }
    }
}

/// Reads the folder that omikuji saved.
///
/// # Errors
/// Files that are absent or malformed; weights that are not finite or do not fit; a label below two
/// nodes.
///
/// # Cost
/// O(size of the files), trees in parallel; memory for the files being read and the result.
pub fn import(folder: impl AsRef<Path>) -> Result<OmikujiModel, OmikujiError> {
    let folder = folder.as_ref();
    let path = folder.join("settings.json");
    let bytes = fs::read(&path).map_err(|source| OmikujiError::Io { path: path.clone(), source })?;
    let settings: Settings =
        serde_json::from_slice(&bytes).map_err(|source| OmikujiError::Settings { path, source })?;
    let paths = tree_files(folder)?;
    let loss = settings.classifier_loss_type;
    let flat: Vec<Flat> = paths
        .par_iter()
        .map(|path| Ok(flatten(cbor::read_tree(path, settings.n_features)?, loss.chain_bias())))
        .collect::<Result<_, OmikujiError>>()?;
    let largest = flat.iter().flat_map(|tree| &tree.labels).max();
    let n_labels = largest.map_or(0, |&label| label as usize + 1);
    let trees = flat
        .into_iter()
        .zip(paths)
        .map(|(tree, path)| {
            let topology = Topology::try_new(tree.boundaries, tree.labels, n_labels)
                .map_err(|source| OmikujiError::Tree { path, source })?;
            Ok(TreeParts { topology, levels: tree.levels })
        })
        .collect::<Result<_, _>>()?;
    Ok(OmikujiModel { trees, post: loss.post(), normalise_rows: true, n_features: settings.n_features, n_labels })
}

/// `tree0.cbor`, `tree1.cbor`, ... in the order of their numbers.
fn tree_files(folder: &Path) -> Result<Vec<PathBuf>, OmikujiError> {
    let io = |source| OmikujiError::Io { path: folder.to_owned(), source };
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("tree")?.strip_suffix(".cbor")?.parse().ok());
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    if found.is_empty() {
        return Err(OmikujiError::NoTrees { path: folder.to_owned() });
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// A tree level by level.
struct Flat {
    boundaries: Vec<Vec<u32>>,
    levels: Vec<Vec<ChunkRows>>,
    labels: Vec<u32>,
}

fn flatten(root: Node, chain_bias: f32) -> Flat {
    let depth = root.depth();
    let mut flat = Flat { boundaries: Vec::new(), levels: Vec::new(), labels: Vec::new() };
    let mut nodes = vec![root];
    for level in 0..=depth {
        let (mut boundaries, mut chunks, mut below) = (vec![0u32], Vec::with_capacity(nodes.len()), Vec::new());
        let mut n_children = 0;
        for node in nodes {
            let chunk = match node.below {
                Below::Children(children) => {
                    below.extend(children);
                    node.weights
                }
                Below::Labels(labels) if level == depth => {
                    flat.labels.extend(labels);
                    node.weights
                }
                Below::Labels(_) => {
                    below.push(node);
                    let mut chain = ChunkRows::empty(1);
                    chain.bias[0] = chain_bias;
                    chain
                }
            };
            // Labels are u32 and the file's nodes fewer than its bytes: beyond u32 only in a file
            // of many gigabytes, where the length check of the topology fails.
            n_children += chunk.n_columns;
            boundaries.push(u32::try_from(n_children).unwrap_or(u32::MAX));
            chunks.push(chunk);
        }
        flat.boundaries.push(boundaries);
        flat.levels.push(chunks);
        nodes = below;
    }
    flat
}

#[cfg(test)]
mod tests;
