//! From the weights in a checkpoint to the arrays of a model, a few chunks at a time.

use super::checkpoint::TreeCheckpoint;
use super::kept::{KeptError, KeptLevel};
use super::memory::AT_ONCE;
use super::parts::{AllParts, PartsError};
use crate::model::{BuildError, ModelInfo, Topology, WeightCounts, top};
use std::ops::Range;
use xc_buffer::Cancel;
use xc_buffer::dtype::DType;
use xc_sparse::chunked::{ChunkRows, ChunkedLevel, LevelStreams, PackError, PackedSizes, Packer, SlotMap};
use xc_store::{Checkpoint, CheckpointError, Container, ContainerWriter};

/// Trees of an ensemble whose weights are in the checkpoint of their training, or in the folders of parts.
#[derive(Debug)]
pub struct StoredTrees<'c> {
    weights: Weights<'c>,
    info: ModelInfo,
    n_trees: usize,
    precision: DType,
}

/// Where the chunks are.
#[derive(Debug)]
enum Weights<'c> {
    Checkpoint(&'c Checkpoint),
    Parts(AllParts),
}

/// The chunks of a level, wherever they are.
struct StoredLevel {
    pieces: Vec<KeptLevel>,
    /// The piece that has the chunk of a parent.
    places: Vec<u32>,
}

impl StoredLevel {
    fn new(pieces: Vec<KeptLevel>) -> Self {
        let mut places = vec![0; pieces.first().map_or(0, KeptLevel::n_parents)];
        for (at, piece) in (0..).zip(&pieces) {
            piece.parents().for_each(|parent| places[parent] = at);
        }
        Self { pieces, places }
    }

    fn n_parents(&self) -> usize {
        self.places.len()
    }

    fn piece(&self, parent: usize) -> &KeptLevel {
        &self.pieces[self.places[parent] as usize]
    }

    fn nnz(&self, parent: usize) -> usize {
        self.piece(parent).nnz(parent)
    }

    fn chunk(&self, parent: usize) -> Result<ChunkRows, CheckpointError> {
        self.piece(parent).chunk(parent)
    }
}

/// Asks for the memory of a count and a place in the slot map of each feature: of parts their number is only a claim.
fn expect_memory(n_features: usize) -> Result<(), KeptError> {
    let bytes = n_features.saturating_mul(size_of::<u64>() + size_of::<u32>());
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| KeptError::Memory { n_features, bytes })
}

fn go_on(cancel: &dyn Cancel) -> Result<(), KeptError> {
    if cancel.cancelled() { Err(KeptError::Cancelled) } else { Ok(()) }
}

/// One tree, and what its arrays follow from.
struct Plan {
    topology: Topology,
    sizes: Vec<PackedSizes>,
    slot_map: SlotMap,
    top: Option<ChunkRows>,
    counts: WeightCounts,
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
        let (parts, info, n_trees, precision) = AllParts::of(parts)?;
        Ok(Self { weights: Weights::Parts(parts), info, n_trees, precision })
    }
}

impl<'c> StoredTrees<'c> {
    pub(super) fn new(checkpoint: &'c Checkpoint, info: ModelInfo, n_trees: usize, precision: DType) -> Self {
        Self { weights: Weights::Checkpoint(checkpoint), info, n_trees, precision }
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        self.n_trees
    }

    /// Adds the model's parameters and arrays to a container of kind [`KIND`](crate::KIND), byte for
    /// byte as [`TreeModel::write`](crate::TreeModel::write) does for the model in memory. Returns
    /// what [`TreeModel::weight_counts`](crate::TreeModel::weight_counts) would.
    ///
    /// *Cost*: the weights are read twice, with a few megabytes of it in memory at a time.
    ///
    /// # Errors
    /// See [`KeptError`]; `cancel` is asked before each chunk.
    pub fn write(&self, writer: &mut ContainerWriter, cancel: &dyn Cancel) -> Result<WeightCounts, KeptError> {
        let mut depths = Vec::with_capacity(self.n_trees);
        let mut counts = WeightCounts::default();
        for tree in 0..self.n_trees {
            let plan = self.plan(tree, cancel)?;
            depths.push((plan.topology.depth(), plan.top.as_ref().map_or(0, |_| top::depth(&plan.topology))));
            let WeightCounts { weights, nodes, bare } = plan.counts;
            counts.weights += weights;
            counts.nodes += nodes;
            counts.bare += bare;
            self.write_tree(tree, &plan, writer, cancel)?;
        }
        self.info.write(&depths, writer);
        Ok(counts)
    }

    fn topology(&self, tree: usize) -> Result<Topology, CheckpointError> {
        match &self.weights {
            Weights::Checkpoint(checkpoint) => TreeCheckpoint { checkpoint, tree }.saved_topology(),
            Weights::Parts(parts) => parts.topology(tree),
        }
    }

    fn level(&self, topology: &Topology, tree: usize, level: usize) -> Result<StoredLevel, CheckpointError> {
        let pieces = match &self.weights {
            Weights::Checkpoint(checkpoint) => vec![TreeCheckpoint { checkpoint, tree }.saved(topology, level)?],
            Weights::Parts(parts) => parts.level(topology, tree, level)?,
        };
        Ok(StoredLevel::new(pieces))
    }

    /// The first pass over a tree's weights.
    fn plan(&self, tree: usize, cancel: &dyn Cancel) -> Result<Plan, KeptError> {
        let topology = self.topology(tree)?;
        let n_features = self.info.n_features;
        expect_memory(n_features)?;
        let top_depth = top::depth(&topology);
        let (mut counts, mut sizes, mut first) = (vec![0u64; n_features], Vec::new(), Vec::new());
        let mut weight_counts = WeightCounts::default();
        for level in 0..topology.depth() {
            let weights = self.level(&topology, tree, level)?;
            let mut size = PackedSizes::default();
            for parent in 0..weights.n_parents() {
                go_on(cancel)?;
                let chunk = weights.chunk(parent)?;
                for &feature in &chunk.features {
                    // One beyond the input's is reported where its chunk is packed.
                    if let Some(count) = counts.get_mut(feature as usize) {
                        *count += 1;
                    }
                }
                weight_counts.add(&chunk);
                size.add(&chunk, n_features);
                if level < top_depth {
                    first.push(chunk);
                }
            }
            sizes.push(size);
        }
        let top = (top_depth > 0).then(|| top::rows(&first)).flatten();
        Ok(Plan { topology, sizes, slot_map: SlotMap::new(&counts), top, counts: weight_counts })
    }

    /// The second pass.
    fn write_tree(
        &self,
        tree: usize,
        plan: &Plan,
        writer: &mut ContainerWriter,
        cancel: &dyn Cancel,
    ) -> Result<(), KeptError> {
        plan.slot_map.write(&format!("tree{tree}.slot_map"), writer)?;
        writer.add_slice(&format!("tree{tree}.labels"), plan.topology.labels())?;
        for (level, sizes) in plan.sizes.iter().enumerate() {
            let weights = self.level(&plan.topology, tree, level)?;
            let pack = |source: PackError| BuildError::Pack { tree, level, source };
            let prefix = format!("tree{tree}.level{level}");
            let mut streams = LevelStreams::begin_sized(&prefix, self.precision, sizes, writer)?;
            let mut packer = Packer::new(&plan.slot_map, self.precision).map_err(pack)?;
            for parents in groups(&weights) {
                go_on(cancel)?;
                let chunks = parents.map(|parent| weights.chunk(parent)).collect::<Result<Vec<_>, _>>()?;
                packer.extend(&chunks).map_err(pack)?;
                streams.extend(&packer.take())?;
            }
            packer.close();
            streams.extend(&packer.take())?;
            streams.finish()?;
        }
        if let Some(rows) = &plan.top {
            let pack = |source: PackError| BuildError::Pack { tree, level: 0, source };
            let level = ChunkedLevel::pack(std::slice::from_ref(rows), &plan.slot_map, self.precision);
            level.map_err(pack)?.write(&format!("tree{tree}.head"), writer)?;
        }
        Ok(())
    }
}

/// Stretches of parents with at most [`AT_ONCE`] weights each, or one parent.
fn groups(weights: &StoredLevel) -> impl Iterator<Item = Range<usize>> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let (start, mut nnz) = (first, 0);
        while first < weights.n_parents() && (first == start || nnz + weights.nnz(first) <= AT_ONCE) {
            nnz += weights.nnz(first);
            first += 1;
        }
        (start < first).then_some(start..first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_larger_than_any_machine_are_refused_in_a_line() {
        assert!(expect_memory(1 << 20).is_ok());
        for n_features in [1 << 56, usize::MAX] {
            let refused = expect_memory(n_features).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("tables of {n_features} features need ")), "{refused}");
        }
    }
}
