//! What the training of trees has finished so far: parts of an [`xc_sparse::store::Checkpoint`].
//!
//! ```text
//!   tree-T-topology    level0 ... levelN: boundaries of each level (U32); labels (U32); n_labels in config.json
//!   tree-T-level-L     rows: features of each chunk (U64); features, row_ptr, columns (U32), values, bias (F32) of all
//!                      chunks one after the other
//! ```

use super::input::TrainInput;
use super::params::TreeParams;
use crate::model::Topology;
use std::path::Path;
use xc_sparse::Rows;
use xc_sparse::chunked::ChunkRows;
use xc_sparse::dtype::Element;
use xc_sparse::store::{
    CHECKPOINT_KIND, Checkpoint, CheckpointError, CheckpointKey, Container, ContainerWriter, Layout, OpenError,
    WriteError,
};

/// Counts as part of every key: raise it when training changes its results.
const VERSION: u64 = 1;

/// The checkpoints of [`train_trees`](super::train_trees).
pub const CHECKPOINT: Layout = Layout { system: crate::KIND, parts: &["tree-#-topology", "tree-#-level-#"] };

/// The key of a training's checkpoint: everything that the rankers depend on. The number of trees
/// does not count (finished trees serve a training of more), nor do the memory limit and what only
/// predictions are told.
///
/// *Cost*: one pass over the input.
pub fn checkpoint_key(input: &TrainInput<'_>, params: &TreeParams) -> String {
    let mut key = CheckpointKey::new(CHECKPOINT.system, VERSION);
    let TreeParams { post, beam, precision, .. } = TreeParams::default();
    key.settings(&TreeParams { n_trees: 1, post, beam, precision, max_memory_bytes: None, ..params.clone() });
    key.rows(Rows::new(input.features));
    key.labels(input.labels);
    for given in [input.label_features.is_some(), input.instance_weights.is_some(), input.label_costs.is_some()] {
        key.numbers(&[u64::from(given)]);
    }
    if let Some(rows) = input.label_features {
        key.rows(Rows::new(rows));
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

fn damaged(path: &Path, what: &str) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), what: what.to_owned() }
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
    pub(super) fn level(&self, topology: &Topology, level: usize) -> Result<Option<Vec<ChunkRows>>, CheckpointError> {
        let Some(part) = self.checkpoint.part(&self.level_name(level))? else { return Ok(None) };
        read_level(&part, topology.boundaries(level)).map(Some)
    }

    pub(super) fn save_level(&self, level: usize, chunks: &[ChunkRows]) -> Result<(), CheckpointError> {
        self.checkpoint.save::<WriteError>(&self.level_name(level), CHECKPOINT_KIND, |writer| {
            let rows: Vec<u64> = chunks.iter().map(|chunk| chunk.features.len() as u64).collect();
            writer.add_slice("rows", &rows)?;
            stream(writer, "features", chunks, |chunk| &chunk.features)?;
            stream(writer, "row_ptr", chunks, |chunk| &chunk.row_ptr)?;
            stream(writer, "columns", chunks, |chunk| &chunk.columns)?;
            stream(writer, "values", chunks, |chunk| &chunk.values)?;
            stream(writer, "bias", chunks, |chunk| &chunk.bias)
        })?;
        Ok(())
    }
}

/// Writes one array of all chunks, one after the other.
fn stream<T: Element>(
    writer: &mut ContainerWriter,
    name: &str,
    chunks: &[ChunkRows],
    of: fn(&ChunkRows) -> &[T],
) -> Result<(), WriteError> {
    let mut stream = writer.stream(name, T::DTYPE)?;
    chunks.iter().try_for_each(|chunk| stream.extend(of(chunk)))?;
    stream.finish()
}

/// The first `n` elements, which are taken off.
fn take<T: Copy>(from: &mut &[T], n: usize) -> Option<Vec<T>> {
    let (head, rest) = from.split_at_checked(n)?;
    *from = rest;
    Some(head.to_vec())
}

/// The chunks of a level whose children are divided by `boundaries`.
fn read_level(part: &Container, boundaries: &[u32]) -> Result<Vec<ChunkRows>, CheckpointError> {
    let numbers = |name| part.array::<u32>(name);
    let (features, row_ptr, columns) = (numbers("features")?, numbers("row_ptr")?, numbers("columns")?);
    let (values, bias, rows) = (part.array::<f32>("values")?, part.array::<f32>("bias")?, part.array::<u64>("rows")?);
    let (mut features, mut row_ptr, mut columns) = (&features[..], &row_ptr[..], &columns[..]);
    let (mut values, mut bias) = (&values[..], &bias[..]);
    let mut chunk = |children: &[u32], n_rows: u64| {
        let n_columns = (children[1] - children[0]) as usize;
        let n_rows = usize::try_from(n_rows).ok()?;
        let features = take(&mut features, n_rows)?;
        let row_ptr = take(&mut row_ptr, n_rows.checked_add(1)?)?;
        let nnz = *row_ptr.last()? as usize;
        let (columns, values) = (take(&mut columns, nnz)?, take(&mut values, nnz)?);
        let chunk = ChunkRows { n_columns, features, row_ptr, columns, values, bias: take(&mut bias, n_columns)? };
        chunk.check().is_ok().then_some(chunk)
    };
    let chunks = (rows.len() + 1 == boundaries.len())
        .then(|| {
            boundaries.windows(2).zip(&rows[..]).map(|(children, &n)| chunk(children, n)).collect::<Option<Vec<_>>>()
        })
        .flatten();
    chunks.ok_or_else(|| damaged(part.folder(), "weights that fit no chunks"))
}
