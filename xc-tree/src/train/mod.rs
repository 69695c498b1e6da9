//! Training of a label tree: vectors of the labels, their clustering, and one linear ranker a node, level by level.
//!
//! ```text
//!   features, labels ──▶ label vectors ──▶ clustering ──▶ level 0 rankers ──▶ level 1 ──▶ ... ──▶ TreeParts
//!                         (label_vectors)   (cluster/)       (linear/)
//! ```
//!
//! # Awkward input
//! * A label without positives has no leaf and is never predicted, unless [`Unseen::Keep`] is chosen: then it is
//!   clustered like the others (its vector is empty unless label features are given) and its ranker sees negatives only.
//! * An instance without labels is a negative of the root's children only.
//! * An instance without features takes part through the bias input.
//! * No label with a positive at all, and features that are not finite, are errors.

mod checkpoint;
mod cluster;
mod groups;
mod label_vectors;
mod level;
mod linear;
mod negatives;
mod observe;
mod params;

pub use checkpoint::CheckpointError;
pub use cluster::{ClusterMethod, ClusterParams};
pub use groups::group_labels;
pub use label_vectors::{LabelRepresentation, LabelVectors};
pub use linear::{LinearParams, Loss};
pub use observe::{Event, Observer, Silent};
pub use params::{CheckTreeParamsError, Negatives, Preset, TreeParams, UnknownPreset, Unseen};

use crate::model::{Topology, TreeParts};
use checkpoint::Checkpoint;
use cluster::{Clustering, cluster};
use level::Trainer;
use std::path::Path;
use thiserror::Error;
use xc_hash::stream::mix;
use xc_sparse::{CsrView, LabelRows, Rows};

/// What a tree is trained on.
#[derive(Clone, Copy, Debug)]
pub struct TrainInput<'a> {
    /// Features, one row an instance.
    pub features: CsrView<'a>,
    /// Labels, one list an instance.
    pub labels: &'a LabelRows,
    /// Features of the labels, one row a label, where the representation needs them.
    pub label_features: Option<CsrView<'a>>,
    /// Weight of each instance in the loss, 0 or more; `None` counts all alike.
    pub instance_weights: Option<&'a [f32]>,
    /// Cost factor of each label's own ranker, above 0; `None` counts all alike.
    pub label_costs: Option<&'a [f32]>,
}

impl<'a> TrainInput<'a> {
    /// Features and labels alone.
    pub fn new(features: CsrView<'a>, labels: &'a LabelRows) -> Self {
        Self { features, labels, label_features: None, instance_weights: None, label_costs: None }
    }
}

/// Why no tree was trained.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The parameters do not make sense.
    #[error(transparent)]
    Params(#[from] CheckTreeParamsError),
    /// Two inputs differ in length.
    #[error("{what}: {met} rows, wanted {wanted}")]
    Length {
        /// Which input.
        what: &'static str,
        /// Rows met.
        met: usize,
        /// Rows wanted.
        wanted: usize,
    },
    /// The representation needs features of the labels and none were given.
    #[error("this label representation needs label features; none were given")]
    LabelFeatures,
    /// No label has a positive instance.
    #[error("nothing to learn: none of {n_labels} labels has a positive among {n_instances} instances")]
    NoPositives {
        /// Instances given.
        n_instances: usize,
        /// Labels declared.
        n_labels: usize,
    },
    /// More instances, features or labels than 32-bit numbers count.
    #[error("{what}: {met}, at most {limit} can be numbered")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        met: usize,
        /// The limit.
        limit: usize,
    },
    /// A feature value is NaN or infinite.
    #[error("{what} row {row}, feature {feature}: value {value} is not finite")]
    NotFinite {
        /// Features of instances or of labels.
        what: &'static str,
        /// The row.
        row: usize,
        /// The feature.
        feature: u32,
        /// The value met.
        value: f32,
    },
    /// A weight or a cost is out of range.
    #[error("{what} {at} is {value}, wanted a finite number {wanted}")]
    Weight {
        /// Which list.
        what: &'static str,
        /// Position in it.
        at: usize,
        /// The value met.
        value: f32,
        /// The range wanted.
        wanted: &'static str,
    },
    /// Training would need more memory than allowed.
    #[error("training needs about {needed_bytes} bytes, allowed are {max_bytes}")]
    Memory {
        /// Estimated peak.
        needed_bytes: u64,
        /// The limit that was set.
        max_bytes: u64,
    },
    /// The observer asked to stop.
    #[error("training was cancelled")]
    Cancelled,
    /// The checkpoint could not be read or written, or belongs to other data or parameters.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// Trains tree number `tree` of an ensemble (0 when there is one).
///
/// `checkpoint` is a folder, made when missing: the shape and each finished level are kept there, and a later call with
/// the same input and parameters goes on from them. It may be removed once the tree is saved.
///
/// # Errors
/// See [`TrainError`].
///
/// *Cost*: see [`estimate_peak_bytes`] for memory.
/// *Determinism*: equal input, parameters and `tree` give equal parts, at any number of threads, on any machine
/// with IEEE arithmetic, resumed or not.
pub fn train_tree(
    input: &TrainInput<'_>,
    params: &TreeParams,
    tree: usize,
    observer: &dyn Observer,
    checkpoint: Option<&Path>,
) -> Result<TreeParts, TrainError> {
    check(input, params)?;
    observer.event(Event::Tree { tree, n_trees: params.n_trees });
    let checkpoint = checkpoint.map(|folder| Checkpoint::open(folder, input, params, tree)).transpose()?;
    let seed = mix(params.seed, tree as u64);
    let topology = match checkpoint.as_ref().map(Checkpoint::topology).transpose()?.flatten() {
        Some(topology) => topology,
        None => {
            let topology = shape(input, params, seed, observer)?;
            if let Some(checkpoint) = &checkpoint {
                checkpoint.save_topology(&topology)?;
            }
            topology
        }
    };
    let n_levels = topology.depth();
    observer.event(Event::Clustered { n_levels });
    let trainer = Trainer::new(input, params, &topology, mix(seed, u64::MAX), observer);
    let mut levels: Vec<Vec<xc_sparse::chunked::ChunkRows>> = Vec::with_capacity(n_levels);
    let mut matched = None;
    for level in 0..n_levels {
        let kept = checkpoint.as_ref().map(|c| c.level(&topology, level)).transpose()?.flatten();
        let (n_rankers, resumed) = (topology.n_nodes(level), kept.is_some());
        observer.event(Event::Level { level, n_levels, n_rankers, resumed });
        let chunks = match kept {
            Some(chunks) => chunks,
            None => {
                let chunks = trainer.level(level, matched.as_ref()).ok_or(TrainError::Cancelled)?;
                if let Some(checkpoint) = &checkpoint {
                    checkpoint.save_level(level, &chunks)?;
                }
                chunks
            }
        };
        if let (Negatives::MatcherAware { beam, .. }, true) = (&params.negatives, level + 1 < n_levels) {
            matched = Some(trainer.match_level(level, &chunks, matched, *beam).ok_or(TrainError::Cancelled)?);
        }
        levels.push(chunks);
    }
    Ok(TreeParts { topology, levels })
}

/// Trains all trees of an ensemble, one after the other, each with a seed of its own.
///
/// # Errors
/// See [`TrainError`].
pub fn train_trees(
    input: &TrainInput<'_>,
    params: &TreeParams,
    observer: &dyn Observer,
    checkpoint: Option<&Path>,
) -> Result<Vec<TreeParts>, TrainError> {
    (0..params.n_trees)
        .map(|tree| {
            let folder = checkpoint.map(|folder| folder.join(format!("tree-{tree}")));
            train_tree(input, params, tree, observer, folder.as_deref())
        })
        .collect()
}

/// Clusters the labels.
fn shape(
    input: &TrainInput<'_>,
    params: &TreeParams,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Topology, TrainError> {
    let instances_of = input.labels.transpose();
    let labels: Vec<u32> = (0..input.labels.n_labels() as u32)
        .filter(|&l| params.unseen == Unseen::Keep || !instances_of.row(l as usize).is_empty())
        .collect();
    // An instance of many labels says little about each of them.
    let weights: Option<Vec<f32>> = params
        .normalise_labels
        .then(|| input.labels.iter().map(|row| 1.0 / (row.len().max(1) as f32).sqrt()).collect());
    observer.event(Event::Representing { n_labels: labels.len() });
    let vectors = LabelVectors::build(
        params.representation,
        Rows::new(input.features),
        &instances_of,
        input.label_features.map(Rows::new),
        &labels,
        params.max_label_nnz,
        weights.as_deref(),
    );
    if observer.cancelled() {
        return Err(TrainError::Cancelled);
    }
    observer.event(Event::Clustering { n_labels: labels.len() });
    let Clustering { levels, order } =
        cluster(&vectors, &params.cluster, mix(seed, 0), observer).ok_or(TrainError::Cancelled)?;
    let leaves = order.iter().map(|&row| labels[row as usize]).collect();
    match Topology::try_new(levels, leaves, input.labels.n_labels()) {
        Ok(topology) => Ok(topology),
        // Both clusterings cut non-empty ranges of a permutation; tests cover their shapes.
        Err(broken) => panic!("clustering made no tree: {broken}"),
    }
}

/// Refuses what cannot be trained on.
fn check(input: &TrainInput<'_>, params: &TreeParams) -> Result<(), TrainError> {
    params.check()?;
    let features = Rows::new(input.features);
    let length = |what, met, wanted| if met == wanted { Ok(()) } else { Err(TrainError::Length { what, met, wanted }) };
    length("labels", input.labels.len(), features.len())?;
    let limit = u32::MAX as usize - 1;
    for (what, met) in
        [("instances", features.len()), ("features", features.n_features()), ("labels", input.labels.n_labels())]
    {
        if met > limit {
            return Err(TrainError::TooMany { what, met, limit });
        }
    }
    finite("features", features)?;
    match input.label_features.map(Rows::new) {
        Some(rows) => {
            length("label features", rows.len(), input.labels.n_labels())?;
            finite("label features", rows)?;
        }
        None if params.representation.needs_label_features() => return Err(TrainError::LabelFeatures),
        None => {}
    }
    if let Some(weights) = input.instance_weights {
        length("instance weights", weights.len(), features.len())?;
        if let Some(at) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            return Err(TrainError::Weight { what: "instance weight", at, value: weights[at], wanted: "of 0 or more" });
        }
    }
    if let Some(costs) = input.label_costs {
        length("label costs", costs.len(), input.labels.n_labels())?;
        if let Some(at) = costs.iter().position(|c| !(c.is_finite() && *c > 0.0)) {
            return Err(TrainError::Weight { what: "label cost", at, value: costs[at], wanted: "above 0" });
        }
    }
    if input.labels.nnz() == 0 {
        let (n_instances, n_labels) = (features.len(), input.labels.n_labels());
        return Err(TrainError::NoPositives { n_instances, n_labels });
    }
    if let Some(max_bytes) = params.max_memory_bytes {
        let needed_bytes = estimate_peak_bytes(input, params, rayon::current_num_threads());
        if needed_bytes > max_bytes {
            return Err(TrainError::Memory { needed_bytes, max_bytes });
        }
    }
    Ok(())
}

fn finite(what: &'static str, rows: Rows<'_>) -> Result<(), TrainError> {
    for row in 0..rows.len() {
        if let Some((feature, value)) = rows.row(row).iter().find(|(_, v)| !v.is_finite()) {
            return Err(TrainError::NotFinite { what, row, feature, value });
        }
    }
    Ok(())
}

/// An estimate, on the high side, of the most bytes one tree's training holds beside its input.
///
/// The larger of two moments: the label vectors while they are clustered (every label copies its positives' features
/// at most), and the rankers (dense weights and dual variables of 16 siblings a thread, the features of the parents in
/// work, and the finished weights, assumed as many as the features of all label paths divided by four).
pub fn estimate_peak_bytes(input: &TrainInput<'_>, params: &TreeParams, n_threads: usize) -> u64 {
    let features = Rows::new(input.features);
    let (n, d) = (features.len() as u64, features.n_features() as u64);
    let threads = n_threads.max(1) as u64;
    let summed: u64 = (0..features.len()).map(|i| (features.row(i).nnz() * input.labels.row(i).len()) as u64).sum();
    let longest = params.max_label_nnz.map_or(u64::MAX, |m| m as u64 * input.labels.n_labels() as u64);
    let given = input.label_features.map_or(0, |f| f.nnz() as u64);
    let vectors = summed.min(longest).saturating_add(given) * 8;
    let clustering = vectors + threads * d * 16 + (input.labels.n_labels() as u64) * 40;
    let dense = threads * (d + n) * 64;
    let pairs = input.labels.nnz() as u64 * 24;
    let weights = summed * 2;
    let blocks = features.nnz() as u64 * 8;
    clustering.max(dense + pairs + weights + blocks)
}
