//! Trees that several processes train, each some of their chunks, and the model of all.
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

use super::checkpoint::{CHECKPOINT, TreeCheckpoint, VERSION, checkpoint_key};
use super::deal::{deal, shares, trees_of};
use super::kept::{KeptLevel, damaged};
use super::level::Trainer;
use super::memory::TreeMemory;
use super::observe::{Event, Observer};
use super::params::{Negatives, TreeParams};
use super::stored_trees::StoredTrees;
use super::{TrainError, TrainInput, checked, shape_of};
use crate::model::{ModelInfo, OpenTreeError, Topology};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use xc_hash::stream::mix;
use xc_sparse::Part;
use xc_sparse::dtype::DType;
use xc_sparse::store::{
    Checkpoint, CheckpointError, CheckpointKey, Container, ContainerWriter, OpenError, to_parameter,
};

/// The kind that the `config.json` of a part names.
pub const PART_KIND: &str = "part";
/// The parameter that says which part it is.
const PART: &str = "part";
const PRECISION: &str = "precision";

/// Which part a container is, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Which {
    /// Of the rankers: see [`checkpoint_key`].
    version: u64,
    /// Of settings and data.
    key: String,
    index: u32,
    of: u32,
    trees: usize,
}

/// The key of the checkpoint of a part: [`checkpoint_key`], the part, and the number of trees, on which depends what a
/// part has to do.
pub fn part_key(input: &TrainInput<'_>, params: &TreeParams, part: Part) -> String {
    let mut key = CheckpointKey::new(CHECKPOINT.system, VERSION);
    key.text(&checkpoint_key(input, params));
    key.numbers(&[u64::from(part.index()), u64::from(part.of()), params.n_trees as u64]);
    key.finish()
}

/// A part whose chunks lie in the checkpoint of its training.
#[derive(Debug)]
pub struct TrainedPart<'c> {
    checkpoint: &'c Checkpoint,
    info: ModelInfo,
    precision: DType,
    which: Which,
    /// Chunks of all trees, and those of this part.
    n_chunks: usize,
    n_own: usize,
}

/// Trains the chunks that a part has of an ensemble, and leaves them in the checkpoint, whose key is [`part_key`].
///
/// # Errors
/// See [`TrainError`]; matcher-aware negatives, which follow from chunks that other parts have.
///
/// *Determinism*: [`StoredTrees::of_parts`] of all parts writes the bytes of [`train_out_of_core`](super::train_out_of_core).
pub fn train_part<'c>(
    input: &TrainInput<'_>,
    params: &TreeParams,
    part: Part,
    observer: &dyn Observer,
    checkpoint: &'c Checkpoint,
) -> Result<TrainedPart<'c>, TrainError> {
    if params.negatives != Negatives::TeacherForced {
        return Err(TrainError::NegativesInParts);
    }
    let key = checkpoint_key(input, params);
    let (mut n_chunks, mut n_own) = (0, 0);
    checked(input, params, TreeMemory::kept, |input| {
        trees_of(part, params.n_trees).try_for_each(|tree| {
            let (all, own) = grow_part(input, params, (tree, part), observer, checkpoint)?;
            (n_chunks, n_own) = (n_chunks + all, n_own + own);
            Ok::<(), TrainError>(())
        })
    })?;
    let (index, of, trees) = (part.index(), part.of(), params.n_trees);
    let which = Which { version: VERSION, key, index, of, trees };
    let info = params.model_info(input);
    Ok(TrainedPart { checkpoint, info, precision: params.precision, which, n_chunks, n_own })
}

/// The part's chunks of one tree; gives how many the tree has, and how many of them are the part's.
fn grow_part(
    input: &TrainInput<'_>,
    params: &TreeParams,
    (tree, part): (usize, Part),
    observer: &dyn Observer,
    checkpoint: &Checkpoint,
) -> Result<(usize, usize), TrainError> {
    observer.event(Event::Tree { tree, n_trees: params.n_trees });
    let seed = mix(params.seed, tree as u64);
    let kept = TreeCheckpoint { checkpoint, tree };
    let topology = shape_of(input, params, seed, observer, Some(&kept))?;
    let n_levels = topology.depth();
    observer.event(Event::Clustered { n_levels });
    let trainer = Trainer::new(input, params, &topology, mix(seed, u64::MAX), observer);
    let work: Vec<Vec<u64>> = (0..n_levels).map(|level| trainer.cost(level)).collect();
    let owners = deal(&work, &shares(part.of(), params.n_trees, tree));
    let (mut all, mut own) = (0, 0);
    for (level, owners) in owners.iter().enumerate() {
        let boundaries = topology.boundaries(level);
        let is_own = |parent: usize| owners[parent] == part.index();
        let parents: Vec<usize> = (0..owners.len()).filter(|&parent| is_own(parent)).collect();
        (all, own) = (all + owners.len(), own + parents.len());
        let is_there =
            kept.some_level(&topology, level)?.is_some_and(|level| level.parents().eq(parents.iter().copied()));
        let n_rankers = parents.iter().map(|&parent| (boundaries[parent + 1] - boundaries[parent]) as usize).sum();
        observer.event(Event::Level { level, n_levels, n_rankers, resumed: is_there });
        if !is_there {
            kept.save_level(level, |chunks| {
                trainer.some(level, &parents, &|parent, chunk| Ok(chunks.put(parent, &chunk)?))
            })?;
        }
    }
    Ok((all, own))
}

impl TrainedPart<'_> {
    /// Chunks of the trees that the part shares, and those that it has.
    pub fn n_chunks(&self) -> (usize, usize) {
        (self.n_chunks, self.n_own)
    }

    /// Adds the part's parameters and arrays to a container of kind [`PART_KIND`].
    ///
    /// *Cost*: copies the checkpoint.
    ///
    /// # Errors
    /// The checkpoint is damaged, or the container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), super::KeptError> {
        writer.set_parameter(PART, to_parameter(&self.which));
        writer.set_parameter(PRECISION, to_parameter(&self.precision));
        self.info.write_own(writer);
        let part = Part::new(self.which.index, self.which.of).unwrap_or(Part::WHOLE);
        for tree in trees_of(part, self.which.trees) {
            let kept = TreeCheckpoint { checkpoint: self.checkpoint, tree };
            let topology = kept.saved_topology()?;
            for level in 0..topology.depth() {
                writer.add_slice(&format!("tree{tree}.shape.level{level}"), topology.boundaries(level))?;
            }
            writer.add_slice(&format!("tree{tree}.shape.labels"), topology.labels())?;
            for level in 0..topology.depth() {
                let missing = || damaged(self.checkpoint.path(), &format!("tree {tree}: level {level} is not there"));
                let chunks = kept.some_level(&topology, level)?.ok_or_else(missing)?;
                chunks.write(&format!("tree{tree}.level{level}."), writer)?;
            }
        }
        Ok(())
    }
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

impl StoredTrees<'static> {
    /// The trees of all parts of a training, in any order.
    ///
    /// *Cost*: reads the shapes, not the weights. Whether files changed since they were saved is for
    /// [`Container::verify`].
    ///
    /// # Errors
    /// See [`PartsError`].
    pub fn of_parts(parts: Vec<Container>) -> Result<Self, PartsError> {
        let (containers, trees) = in_order(parts)?;
        let first = &containers[0];
        let info = ModelInfo::read(first)?;
        let precision = first.parameter(PRECISION)?;
        let all = AllParts { containers: containers.into_iter().map(Arc::new).collect() };
        (0..trees).try_for_each(|tree| all.check(tree))?;
        Ok(Self::over_parts(all, info, trees, precision))
    }
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
