//! The training of a part: some chunks of trees, which other processes train the rest of.

use super::checkpoint::{CHECKPOINT, TreeCheckpoint, VERSION, checkpoint_key};
use super::deal::{deal, shares, trees_of};
use super::kept::{KeptError, damaged};
use super::level::Trainer;
use super::memory::TreeMemory;
use super::observe::TreeEvent;
use super::params::{Negatives, TreeParams};
use super::parts::{PART, PRECISION, Which};
use super::{TrainError, TrainInput, checked, shape_of};
use crate::model::ModelInfo;
use xc_buffer::Observer;
use xc_buffer::Part;
use xc_buffer::dtype::DType;
use xc_hash::stream::mix;
use xc_store::{Checkpoint, CheckpointKey, ContainerWriter, to_parameter};

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
/// *Determinism*: [`StoredTrees::of_parts`](super::StoredTrees::of_parts) of all parts writes the bytes of [`train_out_of_core`](super::train_out_of_core).
pub fn train_part<'c>(
    input: &TrainInput<'_>,
    params: &TreeParams,
    part: Part,
    observer: &dyn Observer<TreeEvent>,
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
    observer: &dyn Observer<TreeEvent>,
    checkpoint: &Checkpoint,
) -> Result<(usize, usize), TrainError> {
    observer.event(TreeEvent::Tree { tree, n_trees: params.n_trees });
    let seed = mix(params.seed, tree as u64);
    let kept = TreeCheckpoint { checkpoint, tree };
    let topology = shape_of(input, params, seed, observer, Some(&kept))?;
    let n_levels = topology.depth();
    observer.event(TreeEvent::Clustered { n_levels });
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
        observer.event(TreeEvent::Level { level, n_levels, n_rankers, resumed: is_there });
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

    /// Adds the part's parameters and arrays to a container of kind [`PART_KIND`](super::PART_KIND).
    ///
    /// *Cost*: copies the checkpoint.
    ///
    /// # Errors
    /// The checkpoint is damaged, or the container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), KeptError> {
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
