//! A network with a sparse output layer: each label is connected with a few units of a wide layer (schultheis2023uniform).
//!
//! ```text
//!   sparse features ──▶ Bag ──▶ (dense layers) ─┐
//!                                               ├──▶ intermediate layer, H units ──▶ head::Sparse, s connections a label ──▶ best k
//!   vectors ──▶ Precomputed ──▶ (dense layers) ─┘
//! ```
//!
//! Weights grow with labels * s in place of labels * width. Training with the squared hinge leaves out what is right by a margin, which nearly
//! all labels are.
//!
//! # When not to use it
//! Where one output layer over the labels fits ([`crate::dense`]): it fits the data better at the same width. Without the intermediate layer,
//! except to compare: a label that sees 32 of 512 values knows too little (section 3.4 of the paper).
//!
//! # References
//! `[schultheis2023uniform]`. *Differs in*: inputs of the output layer are rounded to bf16; weights may be, down to eight bits; a step may
//! score drawn labels; the encoder may learn.

mod file;
mod input;
mod memory;
mod output;
mod params;
mod predict;

pub use file::{KIND, OpenUniformError};
pub use input::Input;
pub use memory::UniformMemory;
pub use output::{Output, OutputScratch};
pub use params::{FirstVectors, InputKind, UniformNetwork, UniformParams, UniformParamsError, Wiring};
pub use predict::UniformScratch;

use crate::encoder::directions::leading;
use crate::head::Grouped;
use crate::shape::begin_at_prior;
use crate::trainer::{Observer, Sample, Summary, TrainError};
use crate::{Features, Head, Init, Loss, Network, Trainer};
use std::sync::Arc;

/// How far below the margin the biases begin with the squared hinge. A label that is rare begins at the margin itself otherwise, where the noise of
/// the first weights gives half of all (instance, label) pairs a gradient: the first steps at 670,091 labels took 25 ms an instance, with this about 5.
const BELOW: f32 = 0.1;

/// Times that leading directions are multiplied by the rows and their transpose: the paper of the method has one to three; spectra of texts fall slowly.
pub const PASSES: usize = 3;

/// Mean square of the values of a vector at first: what random vectors have for rows of length 1 (see [`crate::encoder::Bag::new`]).
const MEAN_SQUARE: f64 = 1.0 / 60.0;

/// A network with a sparse output layer over labels.
#[derive(Clone, Debug)]
pub struct UniformModel {
    params: UniformParams,
    n_features: usize,
    network: UniformNetwork,
}

impl UniformModel {
    /// A network that has learned nothing, over queries of `n_features` features or values.
    ///
    /// *Cost*: see [`UniformParams::memory`].
    ///
    /// # Errors
    /// As [`UniformParams::check`].
    pub fn new(n_features: usize, n_labels: usize, params: UniformParams) -> Result<Self, UniformParamsError> {
        params.check(n_features, n_labels)?;
        let first = Init::Random { seed: params.seed };
        let output = params.output(n_features, n_labels, first)?;
        let network = Network::new(params.encoder(n_features, first), output);
        Ok(Self { params, n_features, network })
    }

    /// First values that follow from what is learned from, so this comes before the training: the vectors of features at the leading directions of
    /// the rows, where the parameters say so, and the biases of the labels at how often each is true.
    ///
    /// Where the parameters say so and this is left out, all vectors of features are 0.
    ///
    /// *Cost*: of the directions, each of the [`PASSES`] 2 multiplications for each entry of the rows and value of a vector, and width^2 for each feature.
    ///
    /// # Errors
    /// The observer asked to stop (it is asked by several threads); nothing is on disk then.
    ///
    /// # Panics
    /// If the rows have another number of features than the model.
    pub fn begin(&mut self, train: &Sample<'_>, observer: &dyn Observer) -> Result<(), TrainError> {
        if let (true, Features::Sparse(rows)) = (self.params.seeks_directions(), train.examples().features()) {
            let width = self.params.widths[0];
            let cancelled = || observer.cancelled();
            let table = leading(rows, train.rows(), width, PASSES, MEAN_SQUARE, self.params.seed, &cancelled)
                .ok_or(TrainError::Cancelled { step: 0 })?;
            for named in self.network.parameters_mut().into_iter().filter(|named| named.name == "bag.table") {
                named.parameter.values_mut().copy_from_slice(&table);
            }
        }
        begin_at_prior(&mut self.network, train, self.params.loss);
        if self.params.loss == Loss::SquaredHinge {
            for named in self.network.parameters_mut().into_iter().filter(|named| named.name == "head.bias") {
                named.parameter.values_mut().iter_mut().for_each(|bias| *bias -= BELOW);
            }
        }
        Ok(())
    }

    /// Trains; the trainer's loss should be that of the parameters. Groups that the parameters name are learned by
    /// [`UniformModel::train_in_groups`] alone, which knows which label is in which.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn train(
        &mut self,
        trainer: &mut Trainer<'_>,
        train: &Sample<'_>,
        validation: Option<&Sample<'_>>,
    ) -> Result<Summary, TrainError> {
        trainer.train(&mut self.network, train, validation)
    }

    /// Trains, with groups of labels beside the labels in the first epochs: `of` has each label's group. What is answered does not depend on
    /// them, and they are gone afterwards. Gradients that are clipped, and so computed by parts, leave the groups out.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    ///
    /// # Panics
    /// If there is not one group for each label.
    pub fn train_in_groups(
        self,
        of: Arc<[u32]>,
        trainer: &mut Trainer<'_>,
        train: &Sample<'_>,
        validation: Option<&Sample<'_>>,
    ) -> Result<(Self, Summary), TrainError> {
        let Self { params, n_features, network } = self;
        let groups = params.grouping(of, train.len(), trainer.params.batch_size);
        let (encoder, head) = network.into_parts();
        let first = Init::Random { seed: params.seed };
        let head = Grouped::new(head, groups, first).unwrap_or_else(|e| panic!("a checked model has units: {e}"));
        let mut network = Network::new(encoder, head);
        let summary = trainer.train(&mut network, train, validation)?;
        let (encoder, head) = network.into_parts();
        Ok((Self { params, n_features, network: Network::new(encoder, head.into_main()) }, summary))
    }

    /// The shape.
    pub fn params(&self) -> &UniformParams {
        &self.params
    }

    /// Number of features of a query, or values of a vector.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.network.head().labels().len()
    }

    /// The network.
    pub fn network(&self) -> &UniformNetwork {
        &self.network
    }
}
