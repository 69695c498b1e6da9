//! The neural core: an [`Encoder`] computes a vector of each instance, a [`Head`] computes logits from the vector, a
//! [`Loss`] evaluates them, and an [`Optimizer`] updates the parameters at a rate set by a schedule.
//!
//! ```text
//!   Batch ──▶ Encoder ──▶ Activations ──▶ Head ──▶ logits ──▶ Loss
//!               bag          n x width     dense    n x outputs  │
//!               stack   ◀── gradient ◀──────────── gradient ◀────┘
//! ```
//!
//! A custom training loop; `Trainer` (feature `train`) is the one with validation, early stopping and
//! checkpoints:
//!
//! ```
//! use xc_sparse::{CsrMatrix, LabelRows};
//! use xc_nn::{Activation, Batch, Examples, Rows, Loss, Network, Optimizer, Rule, Scratch, Step, StepParams};
//! use xc_nn::{encoder::Bag, head::Dense};
//!
//! // Four instances: instance i has the feature i and the label i / 2.
//! let x = CsrMatrix::try_new((4, 4), vec![0, 1, 2, 3, 4], vec![0, 1, 2, 3], vec![1.0f32; 4])?;
//! let y = LabelRows::from_lists([[0u32], [0], [1], [1]], 2)?;
//! let examples = Examples::try_new(Rows::Sparse(x.view()), &y)?;
//!
//! let mut network = Network::new(Bag::new(4, 8, Activation::Relu, 0.0, 1), Dense::new(2, 8, 1));
//! let rule = Rule { optimizer: Optimizer::adam(), rate: 0.05 };
//! network.prepare(rule.optimizer, rule.optimizer);
//! let (mut batch, mut scratch) = (Batch::default(), Scratch::default());
//! batch.fill(&examples, &[0, 1, 2, 3]);
//! for number in 0..100 {
//!     let at = Step { number, epoch: number as u32, seed: 0 };
//!     network.step(&batch, Loss::Softmax, &StepParams::new(at, rule), &mut scratch)?;
//! }
//! assert!(network.loss(&batch, Loss::Softmax, &mut scratch)? < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use step::{Rule, Step, StepCost, StepError, StepParams, Update, in_memory};
pub use targets::{TargetRows, Windows};
#[cfg(feature = "train")]
pub use trainer::{TrainParams, Trainer};
pub use xc_dense::DenseRows;
pub use xc_sparse::rows::{OneHot, Row, Rows};
/// The crates of the rows, indexes and tables in signatures here.
pub use {xc_ann, xc_lsh, xc_sparse};
