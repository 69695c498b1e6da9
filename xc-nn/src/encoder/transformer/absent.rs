//! The transformer of builds that have none: a type of which there is no value, so that whoever holds one compiles.

use super::params::{TransformerLearning, TransformerParams, TransformerParamsError};
use crate::layer::Named;
use crate::parameter::Parameter;
use crate::state::State;
use crate::{Activations, Batch, Encoder, Init, Mode, StepError, Update};
use std::convert::Infallible;
use xc_dense::MatmulPrecision;
use xc_sparse::rows::TokenView;

/// A transformer; there is none in a build without feature `transformer`.
#[derive(Clone, Debug)]
pub struct Transformer(Infallible);

/// Buffers of a [`Transformer`].
#[derive(Debug, Default)]
pub struct TransformerScratch;

impl Transformer {
    /// Fails: this build has none.
    ///
    /// # Errors
    /// Always.
    pub fn new(
        _: TransformerParams,
        _: TransformerLearning,
        _: impl Into<Init>,
    ) -> Result<Self, TransformerParamsError> {
        let expected = "a build with feature transformer".to_owned();
        Err(TransformerParamsError { name: "the number of transformers", got: 1.0, expected })
    }

    /// What products multiply.
    #[must_use]
    pub fn with_products(self, _: MatmulPrecision) -> Self {
        match self.0 {}
    }

    /// What it is.
    pub fn params(&self) -> &TransformerParams {
        match self.0 {}
    }

    /// Computes once what the layers that do not learn make of training instances.
    ///
    /// # Errors
    /// Never.
    pub fn cache_states(&mut self, _: TokenView<'_>, _: &[u32], _: impl FnMut(usize) -> bool) -> Result<(), StepError> {
        match self.0 {}
    }

    /// Lets the memory of [`Transformer::cache_states`] go.
    pub fn forget_states(&mut self) {
        match self.0 {}
    }
}

impl Encoder for Transformer {
    type Output = Activations;
    type Scratch = TransformerScratch;

    fn width(&self) -> usize {
        match self.0 {}
    }

    fn forward(&self, _: &Batch, _: Mode, _: &mut Activations, _: &mut TransformerScratch) -> Result<(), StepError> {
        match self.0 {}
    }

    fn update(&mut self, _: &Batch, _: &Activations, _: &mut TransformerScratch, _: &Update) -> Result<(), StepError> {
        match self.0 {}
    }
}

impl State for Transformer {
    fn settings(&self) -> serde_json::Value {
        match self.0 {}
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        match self.0 {}
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        match self.0 {}
    }
}
