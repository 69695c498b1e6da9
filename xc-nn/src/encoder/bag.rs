//! Embedding bag: the weighted sum of the vectors of an instance's features.
//!
//! ```text
//!   y = finish( bias + sum_f x_f E[f] )              E: one row a feature
//! ```
//!
//! Forward, each instance gathers its rows. Backward, each *feature* of the batch gathers the
//! gradients of its instances, in instance order, and its row is changed at once: see
//! [`crate::table`].

use super::Encoder;
use crate::activations::{ActivationDropout, BLOCK};
use crate::layer::{Leaves, Named, column_sums, squares};
use crate::parameter::{Decay, Init, Parameter};
use crate::state::State;
use crate::table;
use crate::{Activation, Activations, Batch, Mode, StepError, Update};
use serde_json::json;
use xc_buffer::parallel::for_each_part;
use xc_sparse::rows::InputKind;

/// A table with a vector for each feature, and a bias.
#[derive(Clone, Debug)]
pub struct Bag {
    table: Parameter,
    bias: Parameter,
    finish: ActivationDropout,
    init: Init,
}

impl Bag {
    /// A table of `n_features` vectors of `width` values.
    ///
    /// First values are even in +-1/sqrt(20): for rows of length 1, as tf-idf gives, sums then have
    /// a variance of 1/60 (a guess; smaller is slower at first, larger remembers its noise).
    ///
    /// # Panics
    /// If the rate of dropout is not in [0, 1).
    pub fn new(n_features: usize, width: usize, activation: Activation, dropout: f32, first: impl Into<Init>) -> Self {
        assert!((0.0..1.0).contains(&dropout), "dropout {dropout}, expected 0 <= rate < 1");
        let mut table = Parameter::zeros(n_features, width, Decay::Yes);
        let init = first.into();
        init.fill(0, 20f32.sqrt().recip(), &mut table);
        let bias = Parameter::zeros(width, 1, Decay::No);
        Self { table, bias, finish: ActivationDropout { activation, dropout, layer: 0 }, init }
    }

    /// The embeddings, one row per feature, to be changed.
    pub fn table_mut(&mut self) -> &mut [f32] {
        self.table.values_mut()
    }

    /// What answers depend on: embeddings, biases, and whether sums below 0 become 0.
    #[cfg(feature = "cuda")]
    pub(crate) fn answering(&self) -> (&[f32], &[f32], bool) {
        (self.table.values(), self.bias.values(), self.finish.activation == Activation::Relu)
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.table.rows()
    }
}

impl Encoder for Bag {
    type Output = Activations;
    type Scratch = ();

    fn width(&self) -> usize {
        self.table.width()
    }

    /// # Errors
    /// The batch's rows are not sparse or have another number of features.
    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        batch.check(InputKind::Sparse, self.n_features())?;
        let (width, instances) = (self.width(), batch.instances());
        output.reshape(batch.len(), width);
        for_each_part(output.values_mut(), (BLOCK * width).max(1), |block, rows| {
            for (at, row) in rows.chunks_exact_mut(width).enumerate() {
                let of_one = batch.row(block * BLOCK + at);
                row.copy_from_slice(self.bias.values());
                table::add_rows(row, self.table.values(), of_one.indices(), of_one.values());
            }
            self.finish.forward(mode, &instances[block * BLOCK..], width, rows);
        });
        Ok(())
    }

    fn backward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &Activations,
        gradient: &mut Activations,
        (): &mut (),
    ) -> Result<(), StepError> {
        self.finish.backward(mode, batch.instances(), output, gradient);
        Ok(())
    }

    fn squared_norm(&self, batch: &Batch, gradient: &Activations, (): &mut ()) -> Result<f64, StepError> {
        Ok(table::squared_norm(batch.by_feature(), gradient)
            + squares(&column_sums(gradient, &Leaves::HIDDEN.rows(gradient.len()))))
    }

    fn update(&mut self, batch: &Batch, gradient: &Activations, (): &mut (), update: &Update) -> Result<(), StepError> {
        self.bias.rows_mut().update(&column_sums(gradient, &Leaves::HIDDEN.rows(gradient.len())), &update.change);
        table::update(&mut self.table, batch.by_feature(), gradient, &update.change);
        Ok(())
    }
}

impl State for Bag {
    fn settings(&self) -> serde_json::Value {
        json!({ "bag": [self.n_features(), self.width()], "finish": self.finish, "init": self.init })
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        vec![
            Named { name: "bag.table".into(), parameter: &self.table },
            Named { name: "bag.bias".into(), parameter: &self.bias },
        ]
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        vec![
            Named { name: "bag.table".into(), parameter: &mut self.table },
            Named { name: "bag.bias".into(), parameter: &mut self.bias },
        ]
    }
}
