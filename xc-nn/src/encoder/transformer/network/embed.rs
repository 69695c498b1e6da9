//! Embeddings of tokens: word, position and type, added and normalised.

use super::super::params::{TransformerLearning, TransformerParams};
use super::layer::{VARIANCE, drop_states, stream};
use super::norm::{Norm, NormGradient, Normalised};
use super::ragged::{Pass, by_instance};
use crate::activations::Activations;
use crate::layer::{Leaves, Named, column_sums, squares};
use crate::parameter::{Decay, Init, Parameter};
use crate::table::{self, Entries};
use crate::{Batch, Update};
use xc_buffer::{Loop, vectorised_loop};

#[derive(Clone, Debug)]
pub(super) struct Embeddings {
    words: Parameter,
    positions: Parameter,
    /// No row where there are no types.
    types: Parameter,
    norm: Norm,
    first_position: usize,
    dropout: f32,
}

/// What is kept of a forward pass, and buffers.
#[derive(Default)]
pub(super) struct EmbeddingsScratch {
    kept: Normalised,
    gradient: NormGradient,
    by_position: Entries,
    positions: Vec<u32>,
}

impl Embeddings {
    pub(super) fn new(of: &TransformerParams, learning: &TransformerLearning, init: Init) -> Self {
        let table = |rows: usize, part: u64| {
            let mut table = Parameter::zeros(rows, of.width, Decay::Yes);
            init.fill(stream(0, part), (3.0 * VARIANCE).sqrt(), &mut table);
            table
        };
        Self {
            words: table(of.vocabulary, 0),
            positions: table(of.first_position + of.positions, 1),
            types: table(of.types, 2),
            norm: Norm::new(of.width, of.epsilon),
            first_position: of.first_position,
            dropout: learning.dropout,
        }
    }

    /// States of all tokens into `out`; `sums` is a buffer.
    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        sums: &mut Activations,
        out: &mut Activations,
        scratch: &mut EmbeddingsScratch,
    ) {
        let (n, width) = (pass.batch.ids.len(), self.words.width());
        sums.reshape(n, width);
        let parts = [(sums.values_mut(), width)];
        by_instance(pass.is_alone, pass.batch, 0..pass.batch.len(), parts, [false], &|i, [out]| {
            vectorised_loop(Add {
                ids: &pass.batch.ids[pass.batch.range(i)],
                words: self.words.values(),
                positions: &self.positions.values()[self.first_position * width..],
                of_type: self.types.values().get(..width),
                out,
                width,
            });
        });
        self.norm.forward(pass.is_alone, sums, None, &mut scratch.kept, out);
        self.drop(pass, out);
    }

    /// The output again, of what was kept.
    pub(super) fn again(&self, pass: &Pass<'_>, out: &mut Activations, scratch: &EmbeddingsScratch) {
        self.norm.again(&scratch.kept, out);
        self.drop(pass, out);
    }

    fn drop(&self, pass: &Pass<'_>, states: &mut Activations) {
        drop_states(pass, self.dropout, stream(0, 0), states);
    }

    /// Turns the gradient of the output into that of each token's sum.
    pub(super) fn backward(&self, pass: &Pass<'_>, gradient: &mut Activations, scratch: &mut EmbeddingsScratch) {
        self.drop(pass, gradient);
        self.norm.backward(&scratch.kept, gradient, &mut scratch.gradient);
        scratch.positions.clear();
        let of_one = |i: usize| 0..pass.batch.range(i).len() as u32;
        let first = self.first_position as u32;
        scratch.positions.extend((0..pass.batch.len()).flat_map(of_one).map(|position| first + position));
        scratch.by_position.fill_places(&scratch.positions);
    }

    pub(super) fn squared_norm(&self, batch: &Batch, gradient: &Activations, scratch: &EmbeddingsScratch) -> f64 {
        let of_type = if self.types.rows() > 0 { squares(&type_gradient(gradient)) } else { 0.0 };
        table::squared_norm(batch.by_feature(), gradient)
            + table::squared_norm(&scratch.by_position, gradient)
            + of_type
            + Norm::squared_norm(&scratch.gradient)
    }

    /// Changes the rows of the batch's words and positions, and no other.
    pub(super) fn update(
        &mut self,
        batch: &Batch,
        gradient: &Activations,
        scratch: &EmbeddingsScratch,
        update: &Update,
    ) {
        table::update(&mut self.words, batch.by_feature(), gradient, &update.change);
        table::update(&mut self.positions, &scratch.by_position, gradient, &update.change);
        if self.types.rows() > 0 {
            self.types.rows_mut().rows(0..1).update(&type_gradient(gradient), &update.change);
        }
        self.norm.update(&scratch.gradient, update);
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = Named<&Parameter>> {
        let Self { words, positions, types, norm, .. } = self;
        let tables = [("words", words), ("positions", positions), ("types", types)];
        let tables = tables.into_iter().filter(|(_, table)| table.rows() > 0);
        let named = tables.map(|(of, parameter)| Named { name: format!("transformer.{of}"), parameter });
        named.chain(norm.parameters("transformer.norm"))
    }

    pub(super) fn parameters_mut(&mut self) -> impl Iterator<Item = Named<&mut Parameter>> {
        let Self { words, positions, types, norm, .. } = self;
        let tables = [("words", words), ("positions", positions), ("types", types)];
        let tables = tables.into_iter().filter(|(_, table)| table.rows() > 0);
        let named = tables.map(|(of, parameter)| Named { name: format!("transformer.{of}"), parameter });
        named.chain(norm.parameters_mut("transformer.norm"))
    }
}

/// Every token is of the first type.
fn type_gradient(gradient: &Activations) -> Vec<f32> {
    column_sums(gradient, &Leaves::TOKENS.rows(gradient.len()))
}

/// Sums of an instance's embeddings.
struct Add<'a> {
    ids: &'a [u32],
    words: &'a [f32],
    positions: &'a [f32],
    of_type: Option<&'a [f32]>,
    out: &'a mut [f32],
    width: usize,
}

impl Loop for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { ids, words, positions, of_type, out, width } = self;
        let rows = ids.iter().zip(positions.chunks_exact(width)).zip(out.chunks_exact_mut(width));
        for ((&id, position), out) in rows {
            let word = &words[id as usize * width..][..width];
            match of_type {
                Some(of_type) => {
                    let added = word.iter().zip(position).zip(of_type);
                    out.iter_mut().zip(added).for_each(|(out, ((word, position), of_type))| {
                        *out = word + position + of_type;
                    });
                }
                None => out.iter_mut().zip(word.iter().zip(position)).for_each(|(out, (word, position))| {
                    *out = word + position;
                }),
            }
        }
    }
}
