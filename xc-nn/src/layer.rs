//! A dense layer: what hidden layers and dense heads have in common.

use crate::Update;
use crate::activations::Activations;
use crate::parameter::{Decay, Init, Parameter, RowsMut};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;
use std::sync::OnceLock;
use xc_buffer::sums::{Blocks, TreeSum, add};
use xc_dense::{
    MatRef, MatmulPrecision, MatmulScratch, Packed, SplitRows, Start, product, product_alone, product_by_rows,
    product_in_leaves,
};

/// A parameter and its name.
#[derive(Clone, Debug)]
pub struct Named<P> {
    /// The name, unique in its network: `head.weights`.
    pub name: String,
    /// The parameter.
    pub parameter: P,
}

/// Most leaves of the sums that a layer takes over its outputs and over the rows of a batch (see
/// [`xc_buffer::sums`]): labels may lie in several processes, and so may the rows that hidden
/// layers learn from. The other sums are one chain.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Leaves {
    outputs: usize,
    rows: usize,
}

impl Leaves {
    /// Of a head.
    pub(crate) const HEAD: Self = Self::new(64, 1);
    /// Of a layer of an encoder.
    pub(crate) const HIDDEN: Self = Self::new(1, 8);

    /// So many leaves at most, over outputs and over rows.
    pub(crate) const fn new(outputs: usize, rows: usize) -> Self {
        Self { outputs, rows }
    }

    /// Leaves of 512 outputs or more: below that their additions show beside the products.
    pub(crate) fn outputs(self, n: usize) -> Blocks {
        Blocks::new(n, self.outputs, 512)
    }

    /// Leaves of 32 rows or more.
    pub(crate) fn rows(self, n: usize) -> Blocks {
        Blocks::new(n, self.rows, 32)
    }
}

/// Weights (one row an output) and biases: `sums = input * weights^T + bias`.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub(crate) weights: Parameter,
    pub(crate) bias: Parameter,
    pub(crate) products: MatmulPrecision,
    leaves: Leaves,
    init: Init,
    /// The weights as products read them, where answers were asked for since they last changed.
    pub(crate) packed: PackedWeights,
}

/// Packed weights; a copy packs its own when it is asked.
#[derive(Debug, Default)]
pub(crate) struct PackedWeights(pub(crate) OnceLock<Packed>);

impl Clone for PackedWeights {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Linear {
    /// Weights even in +-sqrt(gain / width): gain 6 keeps the variance through ReLU (He), 3 does
    /// without; biases 0.
    pub(crate) fn new(outputs: usize, width: usize, gain: f32, first: Init, layer: u64, leaves: Leaves) -> Self {
        let mut weights = Parameter::zeros(outputs, width, Decay::Yes);
        let bound = (gain / width.max(1) as f32).sqrt();
        first.fill(layer, bound, &mut weights);
        let bias = Parameter::zeros(outputs, 1, Decay::No);
        Self { weights, bias, products: MatmulPrecision::F32, leaves, init: first, packed: PackedWeights::default() }
    }

    pub(crate) fn settings(&self) -> serde_json::Value {
        let (outputs, width) = (self.weights.rows(), self.weights.width());
        let Self { products, leaves, init, .. } = self;
        json!({ "outputs": outputs, "width": width, "precision": products, "leaves": leaves, "init": init })
    }

    /// The order of sums over the rows of a batch.
    pub(crate) fn row_blocks(&self, n: usize) -> Blocks {
        self.leaves.rows(n)
    }

    /// The order of sums over outputs.
    pub(crate) fn output_blocks(&self) -> Blocks {
        self.leaves.outputs(self.weights.rows())
    }

    pub(crate) fn matrix(&self) -> MatRef<'_> {
        MatRef::new(self.weights.values(), self.weights.rows(), self.weights.width())
    }

    /// Sums of every row of `input`.
    pub(crate) fn forward(&self, input: &Activations, sums: &mut Activations, scratch: &mut MatmulScratch) {
        self.forward_by(false, input, sums, scratch);
    }

    /// The same, on the calling thread alone if `is_alone`.
    pub(crate) fn forward_by(
        &self,
        is_alone: bool,
        input: &Activations,
        sums: &mut Activations,
        scratch: &mut MatmulScratch,
    ) {
        assert!(input.width() == self.weights.width(), "width {}, expected {}", input.width(), self.weights.width());
        sums.reshape(input.len(), self.weights.rows());
        let start = Start::Bias(self.bias.values());
        let product = if is_alone { product_alone } else { product };
        product(sums.matrix_mut(), input.matrix(), self.matrix().t(), start, self.products, scratch);
    }

    /// Weights that change are packed anew.
    pub(crate) fn changes(&mut self) {
        self.packed.0.take();
    }

    /// Gradient with respect to the input.
    pub(crate) fn backward(
        &self,
        sums_gradient: &Activations,
        input_gradient: &mut Activations,
        scratch: &mut MatmulScratch,
    ) {
        input_gradient.reshape(sums_gradient.len(), self.weights.width());
        let (gradient, blocks) = (sums_gradient.matrix(), self.output_blocks());
        product_in_leaves(input_gradient.matrix_mut(), gradient, self.matrix(), &blocks, self.products, scratch);
    }

    /// Sum of squares of the gradient of weights and biases.
    ///
    /// *Cost*: computes the gradient of the weights, which `update` then computes again: a training run
    /// that clips does four products for three, and never holds a gradient as large as the weights.
    pub(crate) fn squared_norm(
        &self,
        input: &Activations,
        sums_gradient: &Activations,
        scratch: &mut MatmulScratch,
    ) -> f64 {
        let (outputs, rows) = (self.output_blocks(), self.leaves.rows(input.len()));
        squared_norm(input, sums_gradient, &outputs, &rows, self.products, scratch)
    }

    /// Changes weights and biases; the gradient of the weights exists a few rows at a time.
    pub(crate) fn update(
        &mut self,
        input: &Activations,
        sums_gradient: &Activations,
        scratch: &mut MatmulScratch,
        update: &Update,
    ) {
        self.changes();
        let rows = self.leaves.rows(input.len());
        self.bias.rows_mut().update(&column_sums(sums_gradient, &rows), &update.change);
        let visit = |_: usize, block: &[f32], of: RowsMut<'_>| of.update(block, &update.change);
        let target = self.weights.rows_mut();
        product_by_rows(sums_gradient.matrix().t(), input.matrix(), &rows, target, self.products, scratch, &visit);
    }

    pub(crate) fn parameters(&self, name: &str) -> Vec<Named<&Parameter>> {
        vec![
            Named { name: format!("{name}.weights"), parameter: &self.weights },
            Named { name: format!("{name}.bias"), parameter: &self.bias },
        ]
    }

    pub(crate) fn parameters_mut(&mut self, name: &str) -> Vec<Named<&mut Parameter>> {
        self.changes();
        vec![
            Named { name: format!("{name}.weights"), parameter: &mut self.weights },
            Named { name: format!("{name}.bias"), parameter: &mut self.bias },
        ]
    }
}

/// Sum of squares of the gradient of rows of weights and their biases.
pub(crate) fn squared_norm(
    input: &Activations,
    sums_gradient: &Activations,
    outputs: &Blocks,
    rows: &Blocks,
    products: MatmulPrecision,
    scratch: &mut MatmulScratch,
) -> f64 {
    // One sum an output, added up afterwards: the split among threads must not show.
    let mut sums = vec![0.0f64; outputs.n_items()];
    let target = Sums { values: &mut sums };
    let visit = |_: usize, block: &[f32], target: Sums<'_>| {
        for (sum, row) in target.values.iter_mut().zip(block.chunks_exact(input.width().max(1))) {
            *sum = squares(row);
        }
    };
    product_by_rows(sums_gradient.matrix().t(), input.matrix(), rows, target, products, scratch, &visit);
    let bias = column_sums(sums_gradient, rows);
    outputs.sum(|leaf| sums[leaf.clone()].iter().sum::<f64>() + squares(&bias[leaf]))
}

struct Sums<'a> {
    values: &'a mut [f64],
}

impl SplitRows for Sums<'_> {
    fn split_at_row(self, row: usize) -> (Self, Self) {
        let (a, b) = self.values.split_at_mut(row);
        (Self { values: a }, Self { values: b })
    }
}

/// Sum of squares, in one order.
pub(crate) fn squares(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
}

/// Sum of each column, rows in the order of `blocks`.
pub(crate) fn column_sums(rows: &Activations, blocks: &Blocks) -> Vec<f32> {
    const COLUMNS: usize = 512;
    let width = rows.width();
    let mut sums = vec![0.0f32; width];
    sums.par_chunks_mut(COLUMNS).enumerate().for_each_init(TreeSum::default, |tree, (part, sums)| {
        tree.begin(sums.len());
        for leaf in 0..blocks.n_leaves() {
            let leaf = blocks.leaf(leaf);
            tree.add(|sums| {
                sums.fill(0.0);
                for row in rows.values()[leaf.start * width..leaf.end * width].chunks_exact(width) {
                    add(sums, &row[part * COLUMNS..][..sums.len()]);
                }
            });
        }
        sums.copy_from_slice(tree.total());
    });
    sums
}
