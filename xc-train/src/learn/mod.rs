//! What training adds to a classifier: initial values that follow from the instances, the weight of a wide term, and what
//! memory all of it takes.

mod initialise;
mod memory;
mod wide_fit;
mod workload;

pub use initialise::{end_training, initialise};
pub use memory::{HARD_IN_MEMORY, Memory, memory, n_values};
pub use wide_fit::{Precisions, WideFit, fit_wide};
pub use workload::{TokenLengths, Workload};
