//! Where the weights of a finished level are: in memory, or in a checkpoint.

use super::check::TrainError;
use super::kept::{KeptLevel, lock};
use std::borrow::Cow;
use std::sync::Mutex;
use xc_sparse::chunked::ChunkRows;
use xc_store::CheckpointError;

/// The weights of one level.
pub(super) enum LevelWeights {
    Memory(Vec<ChunkRows>),
    Kept(Box<KeptLevel>),
}

/// Takes the chunk of a parent.
pub(super) type Put<'a> = &'a (dyn Fn(usize, ChunkRows) -> Result<(), TrainError> + Sync);

impl LevelWeights {
    /// The chunks of a level of `n_parents` parents that `train` hands over, in memory.
    pub(super) fn in_memory(
        n_parents: usize,
        train: impl FnOnce(Put<'_>) -> Result<(), TrainError>,
    ) -> Result<Self, TrainError> {
        let slots: Vec<Mutex<Option<ChunkRows>>> = (0..n_parents).map(|_| Mutex::new(None)).collect();
        train(&|parent, chunk| {
            *lock(&slots[parent]) = Some(chunk);
            Ok(())
        })?;
        let chunks = slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(|e| e.into_inner()));
        chunks.collect::<Option<_>>().map(Self::Memory).ok_or(TrainError::Cancelled)
    }

    /// The chunk of a parent.
    pub(super) fn chunk(&self, parent: usize) -> Result<Cow<'_, ChunkRows>, CheckpointError> {
        match self {
            Self::Memory(chunks) => Ok(Cow::Borrowed(&chunks[parent])),
            Self::Kept(level) => level.chunk(parent).map(Cow::Owned),
        }
    }
}
