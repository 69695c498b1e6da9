//! Training of every kind of model, from rows in memory to a model folder or a model in memory.
//!
//! [`kinds`] trains what is in memory, with parameters that are known. What is here are its parts, for whoever
//! decides parameters by what was read: an [`ArrayReader`] makes instances of rows in memory, a [`NetworkSession`] or
//! [`TreeSession`] is one run over them, and a [`Place`] says where the model goes. Work that does not fit into
//! memory is refused before it begins, and a run that was interrupted goes on from its checkpoint. A [`Watch`] is told what
//! happens, and cancels.
//!
//! Work is done in the rayon pool that the caller is in, else in one that the call makes. Nothing is printed.

mod context;
pub mod data;
mod error;
pub mod kinds;
pub mod memory;
mod network;
mod place;
mod reading;
mod report;
mod save;
mod source;
mod transformer;
mod tree;

pub use context::{Context, NetworkRun, Watch};
pub use error::{FitError, FitErrorKind};
pub use memory::Budget;
pub use network::{Costs, Instances, NetworkSession, Outputs, TrainingShape, WordText};
pub use place::{Place, check_file, check_in_folder, make_folder};
pub use reading::{ArrayReader, FeatureParams};
pub use report::{Judging, Report};
pub use save::{Target, beside, open_container, save_created, save_with};
pub use source::{Arrays, Given, MEMORY, SharedTexts};
pub use transformer::{Embed, Embedded};
pub use tree::{TreeInputs, TreeSession, check_part, save_trees};
/// Watches nothing.
pub use xc_buffer::Silent;
pub use xc_sparse::rows::OwnedRows;

use xc_model::Model;
use xc_model::message::chain;
use xc_store::Container;

/// A model that stays in memory, and what its training came to.
#[derive(Debug)]
pub struct Fitted {
    /// It answers as the opened folder of the same training would, bit for bit; [`Model::save`] writes that folder.
    pub model: Model,
    /// Figures of the training, without a folder.
    pub report: Report,
}

impl Fitted {
    /// The model of what a training run in memory gave.
    ///
    /// # Errors
    /// It is no model.
    pub fn new(report: Report, container: Container) -> Result<Self, FitError> {
        let model = Model::of_memory(container).map_err(|e| FitError::failed(chain(&e)))?;
        Ok(Self { model, report })
    }
}
