//! What a kind of encoder says of itself.

use super::error::ClassifierParamsError;
use super::file::NamedShape;
use super::learning::LearningParams;
use super::{Input, InputKind};
use xc_dense::MatmulPrecision;
use xc_nn::{Activation, Init};

/// What a kind of encoder says of itself. All else about it follows.
pub(super) trait Encoding {
    /// What an instance is.
    fn input(&self) -> InputKind;

    /// Units of each layer, input first.
    fn widths(&self) -> &[usize];

    /// The same, to be changed.
    fn widths_mut(&mut self) -> &mut Vec<usize>;

    /// What becomes of what comes in, where that can be chosen.
    fn activation(&self) -> Option<Activation> {
        None
    }

    /// The same, to be changed.
    fn activation_mut(&mut self) -> Option<&mut Activation> {
        None
    }

    /// Width of the vectors below all layers, for instances of `n_features`.
    fn lowest_width(&self, n_features: usize) -> usize;

    /// Names and shapes of the arrays below all layers, in the order of their parameters.
    fn shapes(&self, n_features: usize) -> Vec<NamedShape>;

    /// Says whether it is possible over instances of `n_features`; widths were looked at.
    fn check(&self, _n_features: usize) -> Result<(), ClassifierParamsError> {
        Ok(())
    }

    /// Says whether it can learn so.
    fn check_learning(&self, _learning: &LearningParams) -> Result<(), ClassifierParamsError> {
        Ok(())
    }

    /// The encoder itself, which was checked; `precision` is what its products multiply.
    fn build(&self, n_features: usize, learning: &LearningParams, precision: MatmulPrecision, init: Init) -> Input;
}
