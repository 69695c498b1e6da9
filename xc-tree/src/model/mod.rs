//! A label-tree model in memory or mapped from its folder.

mod change;
mod file;
mod parts;
mod post;
pub(crate) mod top;
mod topology;
pub mod trusted;

pub use change::{TreeChangeError, TreeChanges};
pub use file::{KIND, OpenTreeError};
pub use parts::{TreeParts, WeightCounts};
pub use post::{PostProcessor, UnknownPostProcessor};
pub(crate) use top::Top;
pub use topology::{Topology, TopologyError};

use thiserror::Error;
use xc_buffer::Buffer;
use xc_buffer::dtype::DType;
use xc_sparse::chunked::{ChunkRows, ChunkedLevel, ChunkedView, PackError, SlotMap, count_features};

/// Properties of a model other than its trees.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// Number of features of a query.
    pub n_features: usize,
    /// Number of labels; label ids are below it.
    pub n_labels: usize,
    /// Maps margins to scores.
    pub post: PostProcessor,
    /// Whether a query's row is scaled to length 1 before anything else.
    pub normalise_rows: bool,
    /// What the values of a query's row are divided by, unless it is scaled to length 1: the typical
    /// length of the rows that the weights were learned from, or 1; above 0.
    pub row_length: f32,
    /// Clusters kept per level if the caller gives no beam.
    pub beam: usize,
}

/// Trees over the same features and labels. Their scores are averaged.
///
/// Opening maps the arrays; a query touches only the chunks that it reaches.
pub struct TreeModel {
    pub(crate) info: ModelInfo,
    pub(crate) trees: Vec<Tree>,
}

/// One packed tree.
#[derive(Clone)]
pub struct Tree {
    pub(crate) levels: Vec<ChunkedLevel>,
    pub(crate) labels: Buffer<u32>,
    pub(crate) top: Option<Top>,
}

/// Why parts do not form a model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No tree at all.
    #[error("a model needs at least one tree")]
    NoTree,
    /// Levels and topology differ.
    #[error("tree {tree}: {got} levels of weights, the tree has {expected}")]
    Depth {
        /// The tree.
        tree: usize,
        /// Levels of weights found.
        got: usize,
        /// Levels of the topology.
        expected: usize,
    },
    /// A level's chunks do not fit the topology.
    #[error("tree {tree}, level {level}: chunk {parent} has {got} children, the tree has {expected}")]
    Children {
        /// The tree.
        tree: usize,
        /// The level.
        level: usize,
        /// The parent.
        parent: usize,
        /// Children found.
        got: usize,
        /// Children expected.
        expected: usize,
    },
    /// A leaf's label is too large.
    #[error("tree {tree}: label {label}, there are only {n_labels}")]
    Label {
        /// The tree.
        tree: usize,
        /// The label.
        label: u32,
        /// Number of labels.
        n_labels: usize,
    },
    /// A level cannot be packed.
    #[error("tree {tree}, level {level}")]
    Pack {
        /// The tree.
        tree: usize,
        /// The level.
        level: usize,
        /// What is wrong.
        source: PackError,
    },
}

impl Tree {
    /// Packs a tree's parts, which are used up level by level so that both forms never exist whole.
    fn pack(tree: usize, parts: TreeParts, info: &ModelInfo, precision: DType) -> Result<Self, BuildError> {
        if parts.levels.len() != parts.topology.depth() {
            return Err(BuildError::Depth { tree, got: parts.levels.len(), expected: parts.topology.depth() });
        }
        let TreeParts { topology, levels } = parts;
        let top_depth = top::depth(&topology);
        let top = (top_depth > 0).then(|| top::rows(levels[..top_depth].iter().flatten())).flatten();
        if let Some(&label) = topology.labels().iter().find(|&&l| l as usize >= info.n_labels) {
            return Err(BuildError::Label { tree, label, n_labels: info.n_labels });
        }
        for (level, chunks) in levels.iter().enumerate() {
            let boundaries = topology.boundaries(level);
            for parent in 0..chunks.len().max(boundaries.len() - 1) {
                let got = chunks.get(parent).map_or(0, |c| c.n_columns);
                let expected = match (boundaries.get(parent), boundaries.get(parent + 1)) {
                    (Some(a), Some(b)) => (b - a) as usize,
                    _ => 0,
                };
                if got != expected || parent >= chunks.len() {
                    return Err(BuildError::Children { tree, level, parent, got, expected });
                }
            }
        }
        let counts = count_features(levels.iter().flatten(), info.n_features);
        let slot_map = SlotMap::new(&counts);
        let pack = |chunks: &[ChunkRows], level: usize| {
            ChunkedLevel::pack(chunks, &slot_map, precision).map_err(|source| BuildError::Pack { tree, level, source })
        };
        let mut packed = Vec::with_capacity(levels.len());
        for (level, chunks) in levels.into_iter().enumerate() {
            packed.push(pack(&chunks, level)?);
        }
        let top = match top {
            Some(rows) => Some(Top { level: pack(&[rows], 0)?, depth: top_depth }),
            None => None,
        };
        Ok(Self { levels: packed, labels: topology.labels().to_vec().into(), top })
    }

    /// Number of levels, the root not counted.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Weights of level `level`.
    ///
    /// # Panics
    /// If `level >= depth()`.
    pub fn level(&self, level: usize) -> ChunkedView<'_> {
        self.levels[level].view()
    }

    /// The slot map of all levels: queries are prepared with it.
    pub fn slot_map(&self) -> &SlotMap {
        self.levels[0].slot_map()
    }

    /// Label of each leaf.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
}

impl TreeModel {
    /// Packs trees for prediction.
    ///
    /// *Cost*: O(nnz); one level of one tree exists in both forms at a time.
    pub fn from_parts(info: ModelInfo, trees: Vec<TreeParts>, precision: DType) -> Result<Self, BuildError> {
        if trees.is_empty() {
            return Err(BuildError::NoTree);
        }
        let trees: Result<Vec<Tree>, BuildError> =
            trees.into_iter().enumerate().map(|(i, parts)| Tree::pack(i, parts, &info, precision)).collect();
        Ok(Self { info, trees: trees? })
    }

    /// Properties of the model other than its trees.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The model of its first `n` trees, or of all if there are fewer.
    ///
    /// *Cost*: copies what is not mapped from files.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn first(&self, n: usize) -> Self {
        assert!(n > 0, "a model of no trees");
        Self { info: self.info.clone(), trees: self.trees[..n.min(self.trees.len())].to_vec() }
    }

    /// The trees.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// Number of stored weights in all trees, without biases.
    pub fn nnz(&self) -> usize {
        self.trees.iter().flat_map(|t| &t.levels).map(|l| l.view().nnz()).sum()
    }

    /// How many weights the trees store, and how many nodes have none.
    ///
    /// *Cost*: one pass over all weights.
    pub fn weight_counts(&self) -> WeightCounts {
        let mut counts = WeightCounts::default();
        for level in self.trees.iter().flat_map(|tree| &tree.levels) {
            let view = level.view();
            (0..view.n_parents()).for_each(|parent| counts.add(&view.to_rows(parent)));
        }
        counts
    }

    /// The weights of tree `tree` as plain, unpacked parts.
    ///
    /// # Panics
    /// If there is no such tree.
    pub fn to_parts(&self, tree: usize) -> TreeParts {
        let tree = &self.trees[tree];
        let (mut boundaries, mut levels) = (Vec::new(), Vec::new());
        for level in &tree.levels {
            let view = level.view();
            let mut ptr = vec![0u32];
            ptr.extend((0..view.n_parents()).map(|p| view.children(p).end));
            boundaries.push(ptr);
            levels.push((0..view.n_parents()).map(|p| view.to_rows(p)).collect());
        }
        let topology = Topology::try_new(boundaries, tree.labels().to_vec(), self.info.n_labels);
        // The tree was checked when it was packed or opened.
        let topology = topology.unwrap_or_else(|e| panic!("a packed tree is no tree: {e}"));
        TreeParts { topology, levels }
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (depth, n_labels) = (self.depth(), self.labels.len());
        f.debug_struct("Tree").field("depth", &depth).field("n_labels", &n_labels).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TreeModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeModel").field("info", &self.info).field("trees", &self.trees).finish()
    }
}
