//! The one way from instances and parameters to a trained network: announce, train, save, judge.

mod announce;
mod corpus;
mod cost;
mod instances;
mod learned_from;
mod mach;
mod memory;
mod outputs;
mod session;
mod shape;
mod skipgram;
mod wide;

pub use corpus::WordText;
pub use cost::Costs;
pub use instances::Instances;
pub(super) use memory::sparse_ids;
pub use session::{NetworkSession, Outputs};
pub use shape::TrainingShape;

use super::FitError;
use xc_model::classifier::ClassifierParamsError;
use xc_model::message::chain;

/// What is impossible about a classifier.
pub(super) fn params_error(error: &ClassifierParamsError) -> FitError {
    FitError::usage(format_args!("classifier: {}", chain(error)))
}
