//! Memory of one thread's queries.

use super::Model;
use std::any::Any;
use std::fmt;
use xc_hash::text::PipelineScratch;
use xc_sparse::rank::LabelId;

/// Memory of one thread's queries; the caller's. It grows to what is needed and stays, so that a query of a size seen before
/// allocates nothing.
///
/// A scratch knows the model that it served: another model's, or one that a panic went through, is made anew.
#[derive(Default)]
pub struct Scratch(Option<Box<Room>>);

/// What a [`Scratch`] holds between queries.
pub(super) struct Room {
    /// [`Model::generation`].
    model: u64,
    pub(super) making: Making,
    pub(super) system: Box<dyn Any + Send>,
    pub(super) lists: Lists,
}

/// Labels that a query names, ascending and unique.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) excluded: Vec<LabelId>,
    pub(super) candidates: Vec<LabelId>,
}

/// Memory of making features.
#[derive(Default)]
pub(super) struct Making {
    pub(super) text: PipelineScratch,
    /// Fields of a text, joined.
    pub(super) joined: String,
    /// Weighted values of a row.
    pub(super) values: Vec<f32>,
}

impl Scratch {
    /// Takes the memory out; a query that panics leaves nothing behind.
    pub(super) fn take(&mut self, model: &Model) -> Box<Room> {
        self.0.take().filter(|room| room.model == model.generation).unwrap_or_else(|| {
            let (making, lists) = Default::default();
            Box::new(Room { model: model.generation, making, system: model.system.scratch(), lists })
        })
    }

    /// Keeps the memory for the next query.
    pub(super) fn put(&mut self, room: Box<Room>) {
        self.0 = Some(room);
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("model", &self.0.as_ref().map(|room| room.model)).finish()
    }
}
