//! Training of a label tree: vectors of the labels, their clustering, and one linear ranker per node,
//! level by level.
//!
//! ```text
//!   features, labels ──▶ label vectors ──▶ clustering ──▶ level 0 rankers ──▶ level 1 ──▶ ... ──▶ TreeParts
//!                         (label_vectors)   (cluster/)       (linear/)
//! ```
//!
//! # Awkward input
//! * A label without positives has no leaf and is never predicted, unless [`Unseen::Keep`] is
//!   chosen: then it is clustered like the others (its vector is empty unless label features are
//!   given) and its ranker sees negatives only.
//! * An instance without labels is a negative of the root's children only.
//! * An instance without features takes part through the bias input.
//! * No label with a positive at all, and features that are not finite, are errors.

mod check;
mod checkpoint;
mod cluster;
mod deal;
mod input;
mod kept;
mod label_vectors;
mod level;
mod linear;
mod matched;
mod memory;
mod negatives;
mod observe;
mod params;
mod part;
mod parts;
pub mod rankers;
mod stored_trees;
mod weights;
mod workers;

pub use check::TrainError;
pub use checkpoint::{CHECKPOINT, checkpoint_key};
pub use cluster::{ClusterMethod, ClusterParams};
pub use input::TrainInput;
pub use kept::KeptError;
pub use label_vectors::{LabelRepresentation, LabelVectors};
pub use linear::{LinearParams, Loss};
pub use memory::TreeMemory;
pub use observe::TreeEvent;
pub use params::{CheckTreeParamsError, Negatives, Preset, TreeParams, UnknownPreset, Unseen};
pub use part::{TrainedPart, part_key, train_part};
pub use parts::{PART_KIND, PartsError};
pub use stored_trees::StoredTrees;

use crate::model::{Topology, TreeModel, TreeParts};
use check::{Foresee, check};
use checkpoint::TreeCheckpoint;
use cluster::{Clustering, cluster};
use input::ScaledRows;
use kept::KeptChunks;
use level::Trainer;
use weights::LevelWeights;
use xc_buffer::{Observer, Silent};
use xc_hash::stream::mix;
use xc_sparse::chunked::ChunkRows;
use xc_store::Checkpoint;

impl TreeModel {
    /// Trains a model.
    ///
    /// # Errors
    /// Input or parameters from which no model can be trained, see [`TrainError`].
    ///
    /// *Cost*: see [`TreeMemory::in_memory`] for memory.
    /// *Determinism*: equal input and parameters give equal models, at any number of threads.
    pub fn train(input: &TrainInput<'_>, params: &TreeParams) -> Result<Self, TrainError> {
        Self::train_with(input, params, &Silent, None)
    }

    /// [`TreeModel::train`] with an observer, and a checkpoint where finished work is kept (see
    /// [`train_trees`]).
    ///
    /// # Errors
    /// See [`TrainError`].
    pub fn train_with(
        input: &TrainInput<'_>,
        params: &TreeParams,
        observer: &dyn Observer<TreeEvent>,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<Self, TrainError> {
        let trees = train_trees(input, params, observer, checkpoint)?;
        let info = params.model_info(input);
        Ok(Self::from_parts(info, trees, params.precision)?)
    }
}

/// Trains all trees of an ensemble, one after the other, each with its own seed.
///
/// `checkpoint` has the key of [`checkpoint_key`]: the shape and each finished level are kept there, and
/// a later call with the same input and parameters continues from them. [`Checkpoint::finish`] removes
/// it once the model is saved. At the end all weights are in memory; [`train_out_of_core`] leaves them in the
/// checkpoint.
///
/// # Errors
/// See [`TrainError`].
///
/// *Determinism*: equal input and parameters give equal parts, at any number of threads, on any
/// machine with IEEE arithmetic, resumed or not.
pub fn train_trees(
    input: &TrainInput<'_>,
    params: &TreeParams,
    observer: &dyn Observer<TreeEvent>,
    checkpoint: Option<&Checkpoint>,
) -> Result<Vec<TreeParts>, TrainError> {
    checked(input, params, TreeMemory::in_memory, |input| {
        (0..params.n_trees).map(|tree| one_tree(input, params, tree, observer, checkpoint)).collect()
    })
}

/// [`train_trees`] that leaves all weights in the checkpoint, from which the model is packed: only the
/// level being trained is in memory.
///
/// # Errors
/// See [`TrainError`].
pub fn train_out_of_core<'c>(
    input: &TrainInput<'_>,
    params: &TreeParams,
    observer: &dyn Observer<TreeEvent>,
    checkpoint: &'c Checkpoint,
) -> Result<StoredTrees<'c>, TrainError> {
    checked(input, params, TreeMemory::kept, |input| {
        (0..params.n_trees).try_for_each(|tree| {
            let kept = TreeCheckpoint { checkpoint, tree };
            grow(input, params, tree, observer, Some(&kept)).map(|_| ())
        })
    })?;
    let info = params.model_info(input);
    Ok(StoredTrees::new(checkpoint, info, params.n_trees, params.precision))
}

/// Trains only tree number `tree` of an ensemble: it equals tree `tree` of [`train_trees`].
///
/// # Errors
/// See [`TrainError`].
pub fn train_tree(
    input: &TrainInput<'_>,
    params: &TreeParams,
    tree: usize,
    observer: &dyn Observer<TreeEvent>,
    checkpoint: Option<&Checkpoint>,
) -> Result<TreeParts, TrainError> {
    let one = |input: &TrainInput<'_>, params: &TreeParams, n_threads| {
        TreeMemory::in_memory(input, &TreeParams { n_trees: 1, ..params.clone() }, n_threads)
    };
    checked(input, params, one, |input| one_tree(input, params, tree, observer, checkpoint))
}

/// Validates and normalises the input.
fn checked<T>(
    input: &TrainInput<'_>,
    params: &TreeParams,
    foresee: Foresee,
    train: impl FnOnce(&TrainInput<'_>) -> Result<T, TrainError>,
) -> Result<T, TrainError> {
    check(input, params, foresee)?;
    let scaled = ScaledRows::new(input, params);
    let features = scaled.as_ref().map_or(input.features, |scaled| scaled.view(input.features));
    train(&TrainInput { features, ..*input })
}

fn one_tree(
    input: &TrainInput<'_>,
    params: &TreeParams,
    tree: usize,
    observer: &dyn Observer<TreeEvent>,
    checkpoint: Option<&Checkpoint>,
) -> Result<TreeParts, TrainError> {
    let checkpoint = checkpoint.map(|checkpoint| TreeCheckpoint { checkpoint, tree });
    let parts = grow(input, params, tree, observer, checkpoint.as_ref())?;
    let Some(checkpoint) = checkpoint else { return Ok(parts) };
    let levels = (0..parts.topology.depth()).map(|level| checkpoint.saved(&parts.topology, level)?.chunks());
    Ok(TreeParts { levels: levels.collect::<Result<_, _>>()?, ..parts })
}

/// Trains the levels missing from the checkpoint. A tree's weights are in the checkpoint then, and the parts have none; where
/// there is no checkpoint they are in the parts.
fn grow(
    input: &TrainInput<'_>,
    params: &TreeParams,
    tree: usize,
    observer: &dyn Observer<TreeEvent>,
    checkpoint: Option<&TreeCheckpoint<'_>>,
) -> Result<TreeParts, TrainError> {
    observer.event(TreeEvent::Tree { tree, n_trees: params.n_trees });
    let seed = mix(params.seed, tree as u64);
    let topology = shape_of(input, params, seed, observer, checkpoint)?;
    let n_levels = topology.depth();
    observer.event(TreeEvent::Clustered { n_levels });
    let trainer = Trainer::new(input, params, &topology, mix(seed, u64::MAX), observer);
    let mut levels: Vec<Vec<ChunkRows>> = Vec::new();
    let mut matched = None;
    for level in 0..n_levels {
        let matches = match params.negatives {
            Negatives::MatcherAware { beam, .. } => (level + 1 < n_levels).then_some(beam),
            Negatives::TeacherForced => None,
        };
        let kept = checkpoint.map(|c| c.level(&topology, level)).transpose()?.flatten();
        let (n_rankers, resumed) = (topology.n_nodes(level), kept.is_some());
        observer.event(TreeEvent::Level { level, n_levels, n_rankers, resumed });
        let weights = match (kept, checkpoint) {
            (Some(kept), _) => Some(LevelWeights::Kept(Box::new(kept))),
            (None, Some(checkpoint)) => {
                let put = |kept: &KeptChunks| {
                    trainer.level(level, matched.as_ref(), &|parent, chunk| Ok(kept.put(parent, &chunk)?))
                };
                checkpoint.save_level(level, put)?;
                matches
                    .map(|_| checkpoint.saved(&topology, level))
                    .transpose()?
                    .map(|kept| LevelWeights::Kept(Box::new(kept)))
            }
            (None, None) => {
                let n_parents = topology.boundaries(level).len() - 1;
                Some(LevelWeights::in_memory(n_parents, |put| trainer.level(level, matched.as_ref(), put))?)
            }
        };
        if let (Some(beam), Some(weights)) = (matches, &weights) {
            matched = Some(trainer.match_level(level, weights, matched, beam)?);
        }
        if let Some(LevelWeights::Memory(chunks)) = weights {
            levels.push(chunks);
        }
    }
    drop(trainer);
    Ok(TreeParts { topology, levels })
}

/// The shape of a tree, out of the checkpoint where that has it.
fn shape_of(
    input: &TrainInput<'_>,
    params: &TreeParams,
    seed: u64,
    observer: &dyn Observer<TreeEvent>,
    checkpoint: Option<&TreeCheckpoint<'_>>,
) -> Result<Topology, TrainError> {
    if let Some(topology) = checkpoint.map(TreeCheckpoint::topology).transpose()?.flatten() {
        return Ok(topology);
    }
    let topology = shape(input, params, seed, observer)?;
    if let Some(checkpoint) = checkpoint {
        checkpoint.save_topology(&topology)?;
    }
    Ok(topology)
}

/// Clusters the labels.
fn shape(
    input: &TrainInput<'_>,
    params: &TreeParams,
    seed: u64,
    observer: &dyn Observer<TreeEvent>,
) -> Result<Topology, TrainError> {
    let instances_of = input.labels.transpose();
    let labels: Vec<u32> = (0..input.labels.n_labels() as u32)
        .filter(|&l| params.unseen == Unseen::Keep || !instances_of.row(l as usize).is_empty())
        .collect();
    // An instance of many labels says little about each of them.
    let weights: Option<Vec<f32>> = params
        .normalise_labels
        .then(|| input.labels.iter().map(|row| 1.0 / (row.len().max(1) as f32).sqrt()).collect());
    observer.event(TreeEvent::Representing { n_labels: labels.len() });
    let vectors = LabelVectors::build(
        params.representation,
        input.features,
        &instances_of,
        input.label_features,
        &labels,
        params.max_label_nnz,
        weights.as_deref(),
        observer,
    )
    .ok_or(TrainError::Cancelled)?;
    observer.event(TreeEvent::Clustering { n_labels: labels.len() });
    let Clustering { levels, order } =
        cluster(&vectors, &params.cluster, mix(seed, 0), observer).ok_or(TrainError::Cancelled)?;
    let leaves = order.iter().map(|&row| labels[row as usize]).collect();
    match Topology::try_new(levels, leaves, input.labels.n_labels()) {
        Ok(topology) => Ok(topology),
        // Both clusterings cut non-empty ranges of a permutation; tests cover their shapes.
        Err(broken) => panic!("clustering made no tree: {broken}"),
    }
}
