//! Metrics and training loops that every xc system shares, and one front door to trained models.
//!
//! [`Model::open`] opens a model of any kind and answers queries: texts, sparse rows or vectors; see [`model`].
//!
//! [`metrics`] judges ranked labels: P@k, nDCG@k, their propensity-scored forms, recall, MAP, MRR, coverage, F1,
//! with bootstrap intervals and paired comparisons.
//!
//! The rest is the neural core: an [`Encoder`] makes a vector of each instance, a [`Head`] makes logits of the vector, a
//! [`Loss`] judges them, an [`Optimizer`] changes the parameters at a rate that a [`Schedule`] sets.
//!
//! ```text
//!   Batch ──▶ Encoder ──▶ Activations ──▶ Head ──▶ logits ──▶ Loss
//!               bag          n x width     dense    n x outputs  │
//!               stack   ◀── gradient ◀──────────── gradient ◀────┘
//! ```

#![deny(unsafe_code)]

mod activations;
mod batch;
pub mod classifier;
pub mod encoder;
pub mod head;
mod layer;
pub mod loss;
pub mod mach;
pub mod metrics;
pub mod model;
mod network;
pub mod optim;
mod parameter;
pub mod schedule;
pub mod state;
mod step;
pub mod table;
pub mod trainer;

pub use activations::{Activation, Activations, Mode};
pub use batch::{Batch, Examples, ExamplesError, Features, Targets};
pub use encoder::Encoder;
pub use head::Head;
pub use layer::Named;
pub use loss::Loss;
pub use model::Model;
pub use network::{Network, Scratch};
pub use optim::Optimizer;
pub use parameter::{Decay, Init, Parameter, RowsMut};
pub use schedule::Schedule;
pub use step::{Rule, Step, StepError, StepParams, Update};
pub use trainer::{TrainParams, Trainer};
pub use xc_sparse::DenseRows;
