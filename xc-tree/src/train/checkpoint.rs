//! What the training of trees has finished so far: parts of an [`xc_store::Checkpoint`].
//!
//! ```text
//!   tree-T-topology    level0 ... levelN: boundaries of each level (U32); labels (U32); n_labels in config.json
//!   tree-T-level-L     the chunks in the order in which they were solved: parents (U32), rows and entries of each (U64);
//!                      features, row_ptr, columns (U32), values, bias (F32) of all of them one after the other
//! ```

use super::check::TrainError;
use super::input::TrainInput;
use super::kept::{KeptChunks, KeptLevel, damaged};
use super::params::TreeParams;
use crate::model::Topology;
use std::sync::Arc;
use xc_store::{CHECKPOINT_KIND, Checkpoint, CheckpointError, CheckpointKey, CheckpointLayout, OpenError};

/// Counts as part of every key: raise it when training changes its results.
pub(super) const VERSION: u64 = 2;

/// The checkpoints of [`train_trees`](super::train_trees).
pub const CHECKPOINT: CheckpointLayout =
    CheckpointLayout { system: crate::KIND, parts: &["tree-#-topology", "tree-#-level-#"] };

/// The key of a training run's checkpoint: everything that the rankers depend on. It excludes the number of
/// trees (finished trees can be reused in a training of more), the memory limit, and parameters that
/// affect only prediction.
///
/// *Cost*: one pass over the input.
pub fn checkpoint_key(input: &TrainInput<'_>, params: &TreeParams) -> String {
    let mut key = CheckpointKey::new(CHECKPOINT.system, VERSION);
    let TreeParams { post, beam, precision, .. } = TreeParams::default();
    key.settings(&TreeParams { n_trees: 1, post, beam, precision, max_memory_bytes: None, ..params.clone() });
    input.features.add_to(&mut key);
    input.labels.add_to(&mut key);
    for given in [input.label_features.is_some(), input.instance_weights.is_some(), input.label_costs.is_some()] {
        key.numbers(&[u64::from(given)]);
    }
    if let Some(rows) = input.label_features {
        rows.add_to(&mut key);
    }
    for list in [input.instance_weights, input.label_costs].into_iter().flatten() {
        key.bytes(bytemuck::cast_slice(list));
    }
    key.finish()
}

/// The parts of one tree.
pub(super) struct TreeCheckpoint<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) tree: usize,
}

impl TreeCheckpoint<'_> {
    fn topology_name(&self) -> String {
        format!("tree-{}-topology", self.tree)
    }

    fn level_name(&self, level: usize) -> String {
        format!("tree-{}-level-{level}", self.tree)
    }

    /// The shape, if it was finished.
    pub(super) fn topology(&self) -> Result<Option<Topology>, CheckpointError> {
        let Some(part) = self.checkpoint.part(&self.topology_name())? else { return Ok(None) };
        let n_labels: usize = part.parameter("n_labels")?;
        let n_levels = part.arrays().len().saturating_sub(1);
        let level = |level| Ok(part.array::<u32>(&format!("level{level}"))?.to_vec());
        let levels = (0..n_levels).map(level).collect::<Result<_, OpenError>>()?;
        let labels = part.array::<u32>("labels")?.to_vec();
        let topology = Topology::try_new(levels, labels, n_labels);
        topology.map(Some).map_err(|error| damaged(part.folder(), &format!("not a tree: {error}")))
    }

    /// The shape, which was finished.
    pub(super) fn saved_topology(&self) -> Result<Topology, CheckpointError> {
        let name = self.topology_name();
        self.topology()?.ok_or_else(|| damaged(&self.checkpoint.path().join(&name), "it is not there"))
    }

    pub(super) fn save_topology(&self, topology: &Topology) -> Result<(), CheckpointError> {
        let n_labels = topology.labels().iter().max().map_or(0, |&label| u64::from(label) + 1);
        self.checkpoint.save(&self.topology_name(), CHECKPOINT_KIND, |writer| {
            writer.set_parameter("n_labels", n_labels);
            for level in 0..topology.depth() {
                writer.add_slice(&format!("level{level}"), topology.boundaries(level))?;
            }
            writer.add_slice("labels", topology.labels())
        })?;
        Ok(())
    }

    /// The weights of `level`, if it was finished.
    pub(super) fn level(&self, topology: &Topology, level: usize) -> Result<Option<KeptLevel>, CheckpointError> {
        self.some_level(topology, level)?.map(KeptLevel::whole).transpose()
    }

    /// The chunks of `level` that were to be trained, if they were finished.
    pub(super) fn some_level(&self, topology: &Topology, level: usize) -> Result<Option<KeptLevel>, CheckpointError> {
        let Some(part) = self.checkpoint.part(&self.level_name(level))? else { return Ok(None) };
        KeptLevel::new(Arc::new(part), "", topology.boundaries(level)).map(Some)
    }

    /// The weights of `level`, which was finished.
    pub(super) fn saved(&self, topology: &Topology, level: usize) -> Result<KeptLevel, CheckpointError> {
        let name = self.level_name(level);
        let missing = || damaged(&self.checkpoint.path().join(&name), "it is not there");
        self.level(topology, level)?.ok_or_else(missing)
    }

    /// Saves the weights of `level`, which `train` puts into what it is given, chunk by chunk.
    pub(super) fn save_level(
        &self,
        level: usize,
        train: impl FnOnce(&KeptChunks) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        self.checkpoint.save(&self.level_name(level), CHECKPOINT_KIND, |writer| {
            let chunks = KeptChunks::begin("", writer)?;
            train(&chunks)?;
            chunks.finish(writer).map_err(TrainError::from)
        })
    }
}
