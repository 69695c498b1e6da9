//! What several processes have trained of trees, each some of their chunks ([`train_part`](super::train_part)), read
//! together.
//!
//! A part is a container of kind [`PART_KIND`]:
//!
//! ```text
//!   parameters    part: version, key, index, of, trees; those of a model but for depths and heads; precision
//!   treeT.shape   levelL: boundaries of each level (U32); labels (U32)
//!   treeT.levelL  the part's own chunks: parents, rows, entries; features, row_ptr, columns, values, bias
//! ```
//!
//! The shape is that of every part which shares the tree: each clusters it, with the same result.

use super::checkpoint::VERSION;
use super::kept::{KeptLevel, damaged};
use crate::model::{ModelInfo, OpenTreeError, Topology};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use xc_buffer::dtype::DType;
use xc_store::{CheckpointError, Container, OpenError};

/// The kind that the `config.json` of a part names.
pub const PART_KIND: &str = "part";
/// The parameter that says which part it is.
pub(super) const PART: &str = "part";
pub(super) const PRECISION: &str = "precision";

/// Which part a container is, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Which {
    /// Of the rankers: see [`checkpoint_key`].
    pub(super) version: u64,
    /// Of settings and data.
    pub(super) key: String,
    pub(super) index: u32,
    pub(super) of: u32,
    pub(super) trees: usize,
}

/// Why parts do not become a model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PartsError {
    /// A container that is not what it should be.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// The properties of the model.
    #[error(transparent)]
    Info(#[from] OpenTreeError),
    /// Arrays that do not fit together.
    #[error(transparent)]
    Content(#[from] CheckpointError),
    /// Made by a program that trains otherwise.
    #[error("{}: was trained by version {got} of the training of trees, expected {expected}: all parts by one program", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// Its version.
        got: u64,
        /// That of this program.
        expected: u64,
    },
    /// Settings or data differ.
    #[error("{}: was trained on other data or with other settings than {}", path.display(), first.display())]
    Key {
        /// The folder.
        path: PathBuf,
        /// The first folder.
        first: PathBuf,
    },
    /// The work was divided otherwise.
    #[error("{}: is part {got}, expected a part of {of} as {}", path.display(), first.display())]
    Division {
        /// The folder.
        path: PathBuf,
        /// Which part it is.
        got: String,
        /// Number of parts of the first.
        of: u32,
        /// The first folder.
        first: PathBuf,
    },
    /// A part is there twice.
    #[error("{}: is part {part}, as is {}; each part once is expected", path.display(), other.display())]
    Twice {
        /// The folder.
        path: PathBuf,
        /// Which part it is.
        part: String,
        /// The other folder.
        other: PathBuf,
    },
    /// Parts are missing.
    #[error("part {missing} is missing: {got} of {of} parts are given")]
    Missing {
        /// The first of them.
        missing: String,
        /// Parts that are there.
        got: usize,
        /// Parts that there are.
        of: u32,
    },
    /// Two parts clustered a tree in different ways.
    #[error("{}: tree {tree} has another shape than in {}", path.display(), other.display())]
    Shape {
        /// The folder.
        path: PathBuf,
        /// The tree.
        tree: usize,
        /// The other folder.
        other: PathBuf,
    },
    /// A chunk is in no part, or in two.
    #[error("tree {tree}, level {level}: the chunk of parent {parent} is in {found} parts, expected 1")]
    Chunk {
        /// The tree.
        tree: usize,
        /// The level.
        level: usize,
        /// The parent.
        parent: usize,
        /// Parts that have it.
        found: usize,
    },
}

/// Parts of an ensemble that belong together.
#[derive(Debug)]
pub(super) struct AllParts {
    /// By their numbers.
    containers: Vec<Arc<Container>>,
}

/// Checks that each part is there once; gives them by their numbers, and the number of trees.
fn in_order(parts: Vec<Container>) -> Result<(Vec<Container>, usize), PartsError> {
    let mut found: Vec<(Which, Container)> = Vec::new();
    for container in parts {
        container.expect_kind(PART_KIND)?;
        let which: Which = container.parameter(PART)?;
        let path = || container.folder().to_owned();
        if which.version != VERSION {
            return Err(PartsError::Version { path: path(), got: which.version, expected: VERSION });
        }
        let name = format!("{}/{}", which.index, which.of);
        if let Some((first, other)) = found.first() {
            let first_path = other.folder().to_owned();
            if which.of != first.of {
                return Err(PartsError::Division { path: path(), got: name, of: first.of, first: first_path });
            }
            if (&which.key, which.trees) != (&first.key, first.trees) {
                return Err(PartsError::Key { path: path(), first: first_path });
            }
        }
        if let Some((_, other)) = found.iter().find(|(other, _)| other.index == which.index) {
            return Err(PartsError::Twice { path: path(), part: name, other: other.folder().to_owned() });
        }
        found.push((which, container));
    }
    found.sort_by_key(|(which, _)| which.index);
    let (of, trees) = found.first().map_or((1, 0), |(which, _)| (which.of, which.trees));
    if let Some(missing) = (0..of).find(|&index| found.get(index as usize).is_none_or(|(w, _)| w.index != index)) {
        return Err(PartsError::Missing { missing: format!("{missing}/{of}"), got: found.len(), of });
    }
    Ok((found.into_iter().map(|(_, container)| container).collect(), trees))
}

impl AllParts {
    /// All parts of a training, in any order, with what they say of the model: its properties, its number of trees, and
    /// the type of its weights.
    pub(super) fn of(parts: Vec<Container>) -> Result<(Self, ModelInfo, usize, DType), PartsError> {
        let (containers, trees) = in_order(parts)?;
        let first = &containers[0];
        let (info, precision) = (ModelInfo::read(first)?, first.parameter(PRECISION)?);
        let all = Self { containers: containers.into_iter().map(Arc::new).collect() };
        (0..trees).try_for_each(|tree| all.check(tree))?;
        Ok((all, info, trees, precision))
    }

    /// The parts that share a tree.
    fn of_tree(&self, tree: usize) -> impl Iterator<Item = &Arc<Container>> {
        let name = format!("tree{tree}.shape.labels");
        self.containers.iter().filter(move |container| container.entry(&name).is_some())
    }

    /// The shape of a tree.
    pub(super) fn topology(&self, tree: usize) -> Result<Topology, CheckpointError> {
        let missing = || damaged(self.containers[0].folder(), &format!("tree {tree} is in no part"));
        let container = self.of_tree(tree).next().ok_or_else(missing)?;
        let prefix = format!("tree{tree}.shape.");
        let n_levels = container.arrays().filter(|(name, _)| name.starts_with(&format!("{prefix}level"))).count();
        let array = |name: &str| Ok::<_, OpenError>(container.array::<u32>(&format!("{prefix}{name}"))?.to_vec());
        let levels = (0..n_levels).map(|level| array(&format!("level{level}"))).collect::<Result<_, _>>()?;
        let n_labels = container.parameter("n_labels")?;
        let topology = Topology::try_new(levels, array("labels")?, n_labels);
        topology.map_err(|error| damaged(container.folder(), &format!("tree {tree}: not a tree: {error}")))
    }

    /// What each part has of a level.
    pub(super) fn level(
        &self,
        topology: &Topology,
        tree: usize,
        level: usize,
    ) -> Result<Vec<KeptLevel>, CheckpointError> {
        let (prefix, boundaries) = (format!("tree{tree}.level{level}."), topology.boundaries(level));
        self.of_tree(tree).map(|container| KeptLevel::new(Arc::clone(container), &prefix, boundaries)).collect()
    }

    /// All parts agree on the shape of a tree, and each chunk is in one of them.
    fn check(&self, tree: usize) -> Result<(), PartsError> {
        let prefix = format!("tree{tree}.shape.");
        let hashes = |container: &Container| -> Vec<(String, String)> {
            let arrays = container.arrays().filter(|(name, _)| name.starts_with(&prefix));
            arrays.map(|(name, entry)| (name.to_owned(), entry.xxh3.clone())).collect()
        };
        let mut shared = self.of_tree(tree);
        if let Some(first) = shared.next()
            && let Some(other) = shared.find(|container| hashes(container) != hashes(first))
        {
            let (path, other) = (other.folder().to_owned(), first.folder().to_owned());
            return Err(PartsError::Shape { path, tree, other });
        }
        let topology = self.topology(tree)?;
        for level in 0..topology.depth() {
            let mut found = vec![0; topology.boundaries(level).len() - 1];
            for part in self.level(&topology, tree, level)? {
                part.parents().for_each(|parent| found[parent] += 1);
            }
            if let Some(parent) = found.iter().position(|&found| found != 1) {
                return Err(PartsError::Chunk { tree, level, parent, found: found[parent] });
            }
        }
        Ok(())
    }
}
