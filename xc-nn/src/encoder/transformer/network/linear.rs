//! What a transformer's layers ask of a dense layer beside what every network does.

use super::ragged::Pass;
use crate::Mode;
use crate::activations::Activations;
use crate::layer::{Leaves, Linear};
use xc_dense::{MatmulPrecision, MatmulScratch, Packed, Start, product, product_packed};

impl Leaves {
    /// Of a layer over tokens, which one process learns from: each sum is one chain.
    pub(super) const TOKENS: Self = Self::new(1, 1);
}

impl Linear {
    /// Sums of a pass: answers, where nothing learns, are asked again with the same weights.
    pub(super) fn sums(
        &self,
        pass: &Pass<'_>,
        input: &Activations,
        sums: &mut Activations,
        scratch: &mut MatmulScratch,
    ) {
        match pass.mode {
            Mode::Predict if !self.is_learning() => self.answer(pass.is_alone, input, sums),
            _ => self.forward_by(pass.is_alone, input, sums, scratch),
        }
    }

    /// [`Linear::forward_by`] for answers: the weights are packed once, for all of them until they change.
    fn answer(&self, is_alone: bool, input: &Activations, sums: &mut Activations) {
        assert!(input.width() == self.weights.width(), "width {}, expected {}", input.width(), self.weights.width());
        sums.reshape(input.len(), self.weights.rows());
        let packed = match self.packed.0.get() {
            Some(packed) => packed,
            None => {
                // Nobody waits for somebody who packs: in a process that was forked meanwhile it would be for ever.
                let mine = Packed::new(self.matrix().t(), self.products);
                let _ = self.packed.0.set(mine);
                self.packed.0.get().unwrap_or_else(|| panic!("weights that were just packed"))
            }
        };
        product_packed(sums.matrix_mut(), input.matrix(), packed, Start::Bias(self.bias.values()), is_alone);
    }

    /// Whether an optimiser changes the weights: what is packed of them would not be asked for again.
    fn is_learning(&self) -> bool {
        self.weights.moments.iter().any(|moment| !moment.is_empty())
    }

    /// What products multiply from now on.
    pub(super) fn set_products(&mut self, products: MatmulPrecision) {
        self.changes();
        self.products = products;
    }

    /// Adds the gradient with respect to the input to what `input_gradient` holds.
    pub(super) fn backward_onto(
        &self,
        sums_gradient: &Activations,
        input_gradient: &mut Activations,
        scratch: &mut MatmulScratch,
    ) {
        let (to, gradient) = (input_gradient.matrix_mut(), sums_gradient.matrix());
        product(to, gradient, self.matrix(), Start::Kept, self.products, scratch);
    }
}
