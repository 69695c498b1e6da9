//! Changes to trained trees: fewer trees, labels or weights, another number type, another
//! post-processor.

use super::{BuildError, ModelInfo, PostProcessor, Tree, TreeModel, TreeParts};
use crate::Topology;
use thiserror::Error;
use xc_buffer::dtype::DType;
use xc_sparse::chunked::ChunkRows;
use xc_sparse::rank::LabelId;

/// Changes to a model; `Default` changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeChanges<'a> {
    /// How weights are stored: f32, f16 or bf16.
    pub precision: Option<DType>,
    /// Weights below this magnitude are dropped, as in training; biases stay.
    pub prune_below: Option<f32>,
    /// Keep the first so many trees.
    pub n_trees: Option<usize>,
    /// Answer only these labels, given in any order. They keep their ids, and their scores if the beam
    /// reaches them.
    pub keep_labels: Option<&'a [LabelId]>,
    /// Maps margins to scores, and with them the order of a beam's clusters.
    pub post: Option<PostProcessor>,
}

impl TreeChanges<'_> {
    /// Whether weights or clusters change, so that trees are packed anew.
    fn repacks(&self) -> bool {
        self.precision.is_some() || self.prune_below.is_some() || self.keep_labels.is_some()
    }
}

/// Why a model cannot be changed in this way.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TreeChangeError {
    /// More trees than the model has, or none.
    #[error("{got} trees; the model has {expected}, and 1 to {expected} can be kept")]
    Trees {
        /// Trees asked for.
        got: usize,
        /// Trees of the model.
        expected: usize,
    },
    /// An invalid threshold.
    #[error("prune below {got}; expected a finite number of 0 or more")]
    Prune {
        /// The number.
        got: f32,
    },
    /// A label that the model does not have.
    #[error("label {label} is out of range; the model has {n_labels} labels")]
    Label {
        /// The label.
        label: LabelId,
        /// Labels of the model.
        n_labels: usize,
    },
    /// Labels that the model never answers.
    #[error("none of the {n_kept} labels to keep has a leaf in tree {tree}")]
    NoLeaf {
        /// Number of labels to keep.
        n_kept: usize,
        /// The tree.
        tree: usize,
    },
    /// Scores of several trees that cannot be averaged: a tree that does not offer a label counts 0.
    #[error(
        "post-processor {post} gives negative scores, of which {n_trees} trees have no mean; expected sigmoid or lP-hinge"
    )]
    Mean {
        /// The post-processor.
        post: PostProcessor,
        /// Trees of the changed model.
        n_trees: usize,
    },
    /// Weights that cannot be stored in this type.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl TreeModel {
    /// The model with some changes. Trees that do not change share their memory with this model.
    ///
    /// *Cost*: O(nnz) where weights or labels change; one tree exists in plain form at a time.
    ///
    /// # Errors
    /// See [`TreeChangeError`].
    pub fn changed(&self, changes: &TreeChanges<'_>) -> Result<Self, TreeChangeError> {
        let expected = self.trees.len();
        let n_trees = changes.n_trees.unwrap_or(expected);
        if n_trees == 0 || n_trees > expected {
            return Err(TreeChangeError::Trees { got: n_trees, expected });
        }
        let has_mean = |post: &PostProcessor| matches!(post, PostProcessor::Sigmoid | PostProcessor::Hinge { .. });
        if let Some(post) = changes.post.filter(|post| n_trees > 1 && !has_mean(post)) {
            return Err(TreeChangeError::Mean { post, n_trees });
        }
        if let Some(got) = changes.prune_below.filter(|x| !(x.is_finite() && *x >= 0.0)) {
            return Err(TreeChangeError::Prune { got });
        }
        let info = ModelInfo { post: changes.post.unwrap_or(self.info.post), ..self.info.clone() };
        if !changes.repacks() {
            return Ok(Self { info, trees: self.trees[..n_trees].to_vec() });
        }
        let kept = changes.keep_labels.map(|labels| self.flags(labels)).transpose()?;
        let mut trees = Vec::with_capacity(n_trees);
        for tree in 0..n_trees {
            let parts = self.to_parts(tree);
            let rule = Kept { leaves: kept.as_deref(), above: changes.prune_below };
            let parts = rule
                .of(parts, self.info.n_labels)
                .ok_or_else(|| TreeChangeError::NoLeaf { n_kept: changes.keep_labels.map_or(0, <[_]>::len), tree })?;
            let precision = changes.precision.unwrap_or_else(|| self.trees[tree].level(0).values().dtype());
            trees.push(Tree::pack(tree, parts, &info, precision)?);
        }
        Ok(Self { info, trees })
    }

    /// For each label, whether it is among these.
    fn flags(&self, labels: &[LabelId]) -> Result<Vec<bool>, TreeChangeError> {
        let n_labels = self.info.n_labels;
        let mut flags = vec![false; n_labels];
        for &label in labels {
            *flags.get_mut(label as usize).ok_or(TreeChangeError::Label { label, n_labels })? = true;
        }
        Ok(flags)
    }
}

/// What remains of a tree.
struct Kept<'a> {
    /// For each label; `None` keeps all.
    leaves: Option<&'a [bool]>,
    /// Weights of at least this magnitude.
    above: Option<f32>,
}

impl Kept<'_> {
    /// The rest of a tree: leaves that are kept, and clusters above some of them; `None` when there
    /// is no such leaf.
    fn of(&self, parts: TreeParts, n_labels: usize) -> Option<TreeParts> {
        let TreeParts { topology, mut levels } = parts;
        let is_kept = |&label: &LabelId| self.leaves.is_none_or(|flags| flags[label as usize]);
        let mut children: Vec<bool> = topology.labels().iter().map(is_kept).collect();
        let labels = topology.labels().iter().copied().filter(is_kept).collect::<Vec<_>>();
        let mut boundaries = Vec::with_capacity(levels.len());
        // From the leaves up: a cluster stays when one of its children does.
        for (level, chunks) in levels.iter_mut().enumerate().rev() {
            let (mut ptr, mut parents, mut rest) = (vec![0], Vec::new(), Vec::new());
            for (bounds, chunk) in topology.boundaries(level).windows(2).zip(std::mem::take(chunks)) {
                let flags = &children[bounds[0] as usize..bounds[1] as usize];
                let n = flags.iter().filter(|&&flag| flag).count() as u32;
                parents.push(n > 0);
                if n > 0 {
                    ptr.push(ptr[ptr.len() - 1] + n);
                    rest.push(self.chunk(chunk, flags));
                }
            }
            boundaries.push(ptr);
            (*chunks, children) = (rest, parents);
        }
        boundaries.reverse();
        if labels.is_empty() {
            return None;
        }
        // Boundaries count what is kept, level by level, and leaves stay distinct.
        let topology =
            Topology::try_new(boundaries, labels, n_labels).unwrap_or_else(|e| panic!("a part of a tree: {e}"));
        Some(TreeParts { topology, levels })
    }

    /// The columns and weights of one parent that are kept.
    fn chunk(&self, chunk: ChunkRows, flags: &[bool]) -> ChunkRows {
        let mut column = 0;
        let place = flags.iter().map(|&flag| {
            column += u32::from(flag);
            flag.then(|| column - 1)
        });
        let place: Vec<Option<u32>> = place.collect();
        let mut out = ChunkRows { n_columns: column as usize, row_ptr: vec![0], ..ChunkRows::default() };
        for (row, &feature) in chunk.features.iter().enumerate() {
            let before = out.values.len();
            for at in chunk.row_ptr[row] as usize..chunk.row_ptr[row + 1] as usize {
                let value = chunk.values[at];
                if let Some(column) = place[chunk.columns[at] as usize]
                    && self.above.is_none_or(|least| value.abs() >= least && value != 0.0)
                {
                    out.columns.push(column);
                    out.values.push(value);
                }
            }
            if out.values.len() > before {
                out.features.push(feature);
                out.row_ptr.push(out.values.len() as u32);
            }
        }
        out.bias = chunk.bias.iter().zip(flags).filter(|(_, flag)| **flag).map(|(&bias, _)| bias).collect();
        out
    }
}
