#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod activations;
mod batch;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod encoder;
#[cfg(feature = "train")]
mod hard_labels;
pub mod head;
pub mod label_rows;
mod layer;
pub mod loss;
mod network;
pub mod optim;
mod parameter;
pub mod sampler;
#[cfg(feature = "train")]
pub mod schedule;
pub mod state;
mod step;
mod stored;
pub mod table;
mod targets;
#[cfg(feature = "train")]
pub mod trainer;

pub use activations::{Activation, Activations, Mode};
pub use batch::{Batch, Examples, ExamplesError, Targets, WrongBatch};
pub use encoder::Encoder;
#[cfg(feature = "train")]
pub use hard_labels::HardLabels;
pub use head::Head;
pub use layer::Named;
pub use loss::Loss;
pub use network::{Network, Scratch};
pub use optim::Optimizer;
pub use parameter::{Decay, Init, Parameter, RowsMut};
#[cfg(feature = "train")]
pub use schedule::Schedule;
pub use step::{Step, StepCost, StepError, StepParams, Update, UpdateRule, in_memory};
pub use targets::{TargetRows, Windows};
#[cfg(feature = "train")]
pub use trainer::{TrainParams, Trainer};
pub use xc_dense::DenseRows;
pub use xc_sparse::rows::{OneHot, Row, Rows};
/// The crates of the rows, indexes and tables in signatures here.
pub use {xc_ann, xc_lsh, xc_sparse};
