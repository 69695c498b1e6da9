//! When a step screens outputs before it scores them.

use super::Sparse;
use crate::Loss;
use serde::Serialize;
use xc_sparse::uniform::BYTE_LANES;

/// Which steps screen outputs in 8 bits (see [`xc_sparse::uniform::ByteLines`]) and score in full
/// only blocks of 32 instances where an output may have a loss or is true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Screening {
    /// None: every output is scored.
    #[default]
    Never,
    /// Those where it takes less time by their shape: more than 64 instances, many outputs.
    WherePays,
    /// All with a loss that has a margin.
    Always,
}

/// Tiles of a step that screens, at least, if their size is left to the batch: so that it can do
/// without.
pub(super) const TILES: usize = 8;
/// Tiles that do without once screening spared little. A guess.
const WITHOUT: usize = 3;
/// Connections for each input from which on screening pays: inputs become bytes at 1.5 ns each, a
/// connection is 0.03 ns faster for each instance.
const CONNECTIONS_PER_INPUT: u64 = 64;
/// Products of as many connections fit an integer sum.
const MOST_CONNECTIONS: usize = 1 << 17;

/// Tiles that do without, after one where so many of the blocks were worth a full score. A screened
/// tile costs half of one that is not, and each of those blocks about two of its own, since nothing
/// of it was asked for ahead: it is even at a quarter.
pub(super) fn tiles_without(n_seen: usize, n_screened: usize) -> usize {
    if 4 * n_seen > n_screened { WITHOUT } else { 0 }
}

impl Sparse {
    /// Whether screening so many outputs pays, see [`Screening::WherePays`].
    pub fn screening_pays(n_outputs: u64, width: usize, per_output: usize, batch: usize) -> bool {
        batch > BYTE_LANES && n_outputs * per_output as u64 >= CONNECTIONS_PER_INPUT * width as u64
    }

    /// Whether a step over so many outputs and instances screens them.
    pub(super) fn screens(&self, loss: Loss, n_outputs: usize, batch: usize) -> bool {
        let width = self.connections.n_inputs();
        let is_possible = loss.margin().is_finite() && width <= MOST_CONNECTIONS;
        match self.screening {
            Screening::Never => false,
            Screening::WherePays => {
                is_possible && Self::screening_pays(n_outputs as u64, width, self.params.per_output, batch)
            }
            Screening::Always => is_possible,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Head;
    use crate::head::sparse::{SparseParams, SparseScratch};
    use crate::state::State;
    use crate::{Activations, Init, Optimizer, Step, Targets, Update, UpdateRule};
    use xc_buffer::dtype::DType;

    const PARAMS: SparseParams =
        SparseParams { per_output: 3, uniform: true, weights: DType::F32, moments: DType::F32, rewire: None };

    #[test]
    fn nothing_is_scored_in_full_where_all_is_far_below_the_margin() {
        let mut input = Activations::default();
        input.reshape(70, 9);
        input.values_mut().iter_mut().enumerate().for_each(|(i, value)| *value = (i % 7) as f32 / 7.0);
        let targets = Targets::new(&[0; 70], &[0; 71], &[]);
        for (bias, expected) in [(-9.0, 0), (9.0, 3 * 2)] {
            let head = Sparse::new(16, 9, PARAMS, Init::Random { seed: 1 }).unwrap();
            let mut head = head.with_screening(Screening::Always);
            head.parameters_mut().into_iter().for_each(|named| named.parameter.values_mut().fill(bias));
            let rule = UpdateRule { optimizer: Optimizer::sgd(), rate: 0.0 };
            let (mut scratch, update) = (SparseScratch::default(), Update::new(Step::default(), rule, 1.0));
            head.step(&input, targets, Loss::SquaredHinge, &update, None, &mut scratch).unwrap();
            // Eight tiles of two outputs, three blocks; of the last tile that was screened.
            assert_eq!(scratch.n_seen, expected);
        }
    }

    #[test]
    fn tiles_do_without_where_screening_spares_little() {
        assert_eq!([tiles_without(0, 100), tiles_without(25, 100), tiles_without(26, 100)], [0, 0, WITHOUT]);
        assert_eq!(tiles_without(0, 0), 0);
    }

    #[test]
    fn screening_pays_for_many_outputs_and_instances() {
        assert!(Sparse::screening_pays(670_091, 32_768, 32, 512));
        assert!(!Sparse::screening_pays(670_091, 32_768, 32, 64));
        assert!(!Sparse::screening_pays(4_271, 16_384, 32, 512));
        let screens = |screening, loss, width| {
            let head = Sparse::new(10, width, PARAMS, Init::Zeros).unwrap().with_screening(screening);
            [head.screens(loss, 10, 100), head.screens(loss, 10_000_000, 100)]
        };
        assert_eq!(screens(Screening::Never, Loss::SquaredHinge, 9), [false; 2]);
        assert_eq!(screens(Screening::WherePays, Loss::SquaredHinge, 9), [false, true]);
        assert_eq!(screens(Screening::Always, Loss::SquaredHinge, 9), [true; 2]);
        assert_eq!(screens(Screening::Always, Loss::Bce, 9), [false; 2]);
        assert_eq!(screens(Screening::Always, Loss::SquaredHinge, MOST_CONNECTIONS + 1), [false; 2]);
    }
}
