//! Statistics of many labels at once, all repetitions in order.

use super::statistic::{Comparator, median_network, medians};
use super::{BucketScores, Decoder};
use crate::assign::{Assignment, Source, prime};
use crate::product::{self, Fold};
use xc_hash::universal::BucketHash;
use xc_sparse::rank::LabelId;

/// Labels that are scored together. Large enough that each repetition's row of scores is used often
/// while it is in the cache.
pub(super) const BLOCK: usize = 1 << 13;

/// The median keeps every number of a label: fewer labels at once.
const MEDIAN_BLOCK: usize = 1 << 10;

/// Scratch of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockScratch {
    rows: Vec<f32>,
    network: Vec<Comparator>,
    network_for: usize,
}

impl BlockScratch {
    /// The comparators for medians of `n` numbers.
    pub(super) fn network(&mut self, decoder: Decoder, n: usize) -> &[Comparator] {
        if decoder == Decoder::Median && self.network_for != n {
            self.network = median_network(n);
            self.network_for = n;
        }
        &self.network
    }
}

/// The statistic of one label. `values` is scratch.
pub(super) fn statistic_of(
    assignment: &Assignment,
    scores: &BucketScores<'_>,
    decoder: Decoder,
    label: LabelId,
    network: &[Comparator],
    values: &mut Vec<f32>,
) -> f32 {
    let value = |position| scores.row(position)[assignment.hash(position).bucket(label) as usize];
    values.clear();
    values.extend((0..assignment.n_repetitions()).map(value));
    decoder.statistic(values, network)
}

/// Folds what the repetition at `position` says of each label of `source` into `out`.
pub(super) fn fold(
    assignment: &Assignment,
    position: usize,
    source: &Source<'_>,
    row: &[f32],
    fold: Fold,
    out: &mut [f32],
) {
    debug_assert_eq!(source.len(), out.len(), "labels and scratch for their numbers");
    let hash = assignment.hash(position);
    if let (Some(hash), Source::Progression(steps)) = (prime(hash), source) {
        return product::fold(&steps.hashed(hash), row, fold, out);
    }
    let value = |t: usize| row[hash.bucket(source.label(t) as u32) as usize];
    match fold {
        Fold::Set => (0..out.len()).for_each(|t| out[t] = value(t)),
        Fold::Add => (0..out.len()).for_each(|t| out[t] += value(t)),
        Fold::Min => (0..out.len()).for_each(|t| {
            let v = value(t);
            out[t] = if v < out[t] { v } else { out[t] };
        }),
        Fold::CountFrom(bar) => (0..out.len()).for_each(|t| out[t] += f32::from(u8::from(value(t) >= bar))),
    }
}

/// Statistics of the labels of `source`, one an entry of `out`.
///
/// Sums are taken in the order of the repetitions, the label's own lane throughout: the bits do not
/// depend on how labels are cut into blocks.
pub(super) fn statistics(
    assignment: &Assignment,
    scores: &BucketScores<'_>,
    decoder: Decoder,
    source: &Source<'_>,
    scratch: &mut BlockScratch,
    out: &mut [f32],
) {
    let n_repetitions = assignment.n_repetitions();
    let every = |how: Fold, out: &mut [f32]| {
        for position in 0..n_repetitions {
            fold(assignment, position, source, scores.row(position), how, out);
        }
    };
    match decoder {
        Decoder::Mean => {
            out.fill(0.0);
            every(Fold::Add, out);
        }
        Decoder::Min => {
            out.fill(f32::INFINITY);
            every(Fold::Min, out);
        }
        Decoder::Median => {
            scratch.network(decoder, n_repetitions);
            let mut at = 0;
            for out in out.chunks_mut(MEDIAN_BLOCK) {
                let part = source.slice(at, out.len());
                at += out.len();
                scratch.rows.resize(n_repetitions * out.len(), 0.0);
                for (position, values) in scratch.rows.chunks_exact_mut(out.len()).enumerate() {
                    fold(assignment, position, &part, scores.row(position), Fold::Set, values);
                }
                medians(&mut scratch.rows, &scratch.network, out);
            }
        }
    }
}
