//! What layers that do not learn make of training instances, computed once.

use super::ragged::Ragged;
use super::{Transformer, TransformerScratch};
use crate::activations::Activations;
use crate::state::State;
use crate::{Batch, Mode, StepError};
use std::sync::OnceLock;
use xc_hash::stream::mix;
use xc_sparse::rows::{Rows, TokenView};

/// Instances that are computed together.
const INSTANCES: usize = 32;

/// States of the tokens of instances below the lowest layer that learns.
#[derive(Debug, Default)]
pub(super) struct Cached {
    /// Where the states of an instance begin, and what its tokens are known by; nothing of others.
    places: Vec<Option<(usize, u64)>>,
    values: Vec<f32>,
    /// What the weights that made them are known by.
    weights: u64,
    /// Whether the weights are those still; nothing where they may have changed since that was looked at.
    holds: OnceLock<bool>,
}

/// A copy has none: it may be of other instances.
impl Clone for Cached {
    fn clone(&self) -> Self {
        Self::default()
    }
}

fn of_tokens(ids: &[u32]) -> u64 {
    ids.iter().fold(ids.len() as u64, |hash, &id| mix(hash, u64::from(id)))
}

impl Cached {
    /// Weights may change from now on.
    pub(super) fn changes(&mut self) {
        self.holds.take();
    }

    /// Copies the states of a batch, if all of its instances are there.
    fn copy(&self, instances: &[u32], batch: Ragged<'_>, width: usize, out: &mut Activations) -> bool {
        let place = |(at, &instance): (usize, &u32)| {
            let (place, hash) = (*self.places.get(instance as usize)?)?;
            (hash == of_tokens(&batch.ids[batch.range(at)])).then_some(place)
        };
        let places: Option<Vec<usize>> = instances.iter().enumerate().map(place).collect();
        let Some(places) = places else { return false };
        out.reshape(batch.ids.len(), width);
        for (at, place) in places.into_iter().enumerate() {
            let rows = batch.range(at);
            let to = &mut out.values_mut()[rows.start * width..rows.end * width];
            to.copy_from_slice(&self.values[place..place + to.len()]);
        }
        true
    }
}

impl Transformer {
    /// Computes once what the layers that do not learn make of training instances, so that steps over these begin above
    /// them: the same bits in less time. Instances are known by their numbers among `rows` and by their tokens; steps over
    /// others, and over weights that were changed, compute as before.
    ///
    /// *Memory*: four bytes for each token and value of a state.
    ///
    /// # Errors
    /// An instance has more tokens than there are positions.
    pub fn cache_states(
        &mut self,
        rows: TokenView<'_>,
        instances: &[u32],
        mut goes_on: impl FnMut(usize) -> bool,
    ) -> Result<(), StepError> {
        self.forget_states();
        if self.n_frozen() == 0 {
            return Ok(());
        }
        let width = self.params.width;
        let n_tokens: usize = instances.iter().map(|&i| rows.row(i as usize).len()).sum();
        let mut cached = Cached { weights: self.frozen_weights(), ..Cached::default() };
        cached.places.resize(rows.len(), None);
        cached.values.reserve_exact(n_tokens * width);
        let (mut batch, mut scratch) = (Batch::default(), TransformerScratch::default());
        for some in instances.chunks(INSTANCES) {
            if !goes_on(some.len()) {
                return Ok(());
            }
            batch.fill_features(Rows::Tokens(rows), some.iter().map(|&i| i as usize));
            self.check(&batch)?;
            let pass = self.pass(&batch, Mode::Predict, &[]);
            self.run(&pass, 0..self.n_frozen(), &mut scratch);
            for (at, &i) in some.iter().enumerate() {
                let range = pass.batch.range(at);
                cached.places[i as usize] = Some((cached.values.len(), of_tokens(&pass.batch.ids[range.clone()])));
                cached.values.extend_from_slice(&scratch.x.values()[range.start * width..range.end * width]);
            }
        }
        self.cached = cached;
        Ok(())
    }

    /// Lets the memory of [`Transformer::cache_states`] go.
    pub fn forget_states(&mut self) {
        self.cached = Cached::default();
    }

    /// The states below the lowest layer that learns, of a step's batch, if they are known.
    pub(super) fn copy_states(&self, instances: &[u32], batch: Ragged<'_>, out: &mut Activations) -> bool {
        let cached = &self.cached;
        !cached.places.is_empty()
            && *cached.holds.get_or_init(|| cached.weights == self.frozen_weights())
            && cached.copy(instances, batch, self.params.width, out)
    }

    /// What the weights below the lowest layer that learns are known by.
    fn frozen_weights(&self) -> u64 {
        let frozen = self.parameters().into_iter().filter(|named| self.learning.learns(&named.name) == Some(false));
        let of_products = self.products as u64;
        let mut hash = mix(self.n_frozen() as u64, of_products);
        for named in frozen {
            hash = named.parameter.values().iter().fold(hash, |hash, value| mix(hash, u64::from(value.to_bits())));
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::transformer::{Architecture, TransformerLearning, TransformerParams};
    use xc_sparse::rows::TokenRows;

    #[test]
    fn states_are_known_of_the_same_tokens_under_the_same_weights_alone() {
        let params = TransformerParams {
            family: Architecture::Bert,
            vocabulary: 50,
            positions: 16,
            first_position: 0,
            types: 2,
            width: 24,
            heads: 2,
            units: 40,
            layers: 3,
            epsilon: 1e-12,
            distances: None,
            dense: Vec::new(),
            pooling: Default::default(),
        };
        let mut rows = TokenRows::new(50);
        (0..6u32).for_each(|i| rows.push(&(0..=i * 3 % 7).map(|p| (i * 11 + p * 5) % 50).collect::<Vec<_>>()).unwrap());
        for frozen_layers in 1..=3 {
            let learning = TransformerLearning { frozen_layers, ..Default::default() };
            let mut of = Transformer::new(params.clone(), learning, 5).unwrap();
            let known = |of: &Transformer, numbers: &[u32], rows: &TokenRows| {
                let mut batch = Batch::default();
                batch.fill_features(Rows::Tokens(rows.view()), numbers.iter().map(|&i| i as usize));
                let (pass, mut scratch) = (of.pass(&batch, Mode::Predict, &[]), TransformerScratch::default());
                let mut states = Activations::default();
                let is_known = of.copy_states(batch.instances(), pass.batch, &mut states);
                of.run(&pass, 0..frozen_layers, &mut scratch);
                assert!(!is_known || states.values() == scratch.x.values());
                is_known
            };
            assert!(!known(&of, &[0, 1], &rows));
            of.cache_states(rows.view(), &[0, 1, 2, 4, 5], |_| true).unwrap();
            assert!(known(&of, &[5, 0, 2], &rows) && known(&of, &[], &rows));
            assert!(!known(&of, &[5, 3], &rows), "an instance that was left out");
            let mut others = TokenRows::new(50);
            (0..7).for_each(|i| others.push(&[i, 49]).unwrap());
            assert!(!known(&of, &[5], &others) && !known(&of, &[6], &others), "other tokens");
            assert!(!known(&of.clone(), &[0], &rows), "a copy");
            // Weights that learn do not matter, those below them do.
            let value = |of: &mut Transformer, name: &str, by: f32| {
                let mut all = of.parameters_mut();
                let named = all.iter_mut().find(|named| named.name == name).unwrap();
                named.parameter.values_mut()[1] += by;
            };
            value(&mut of, "transformer.layer3.up.weights", 1.0);
            assert_eq!(known(&of, &[5, 0], &rows), frozen_layers < 3);
            value(&mut of, "transformer.positions", 1.0);
            assert!(!known(&of, &[5, 0], &rows));
            of.cache_states(rows.view(), &[0, 5], |_| false).unwrap();
            assert!(!known(&of, &[5, 0], &rows), "stopped");
            of.cache_states(rows.view(), &[0, 5], |_| true).unwrap();
            assert!(known(&of, &[5, 0], &rows));
            of.forget_states();
            assert!(!known(&of, &[5, 0], &rows));
        }
    }
}
