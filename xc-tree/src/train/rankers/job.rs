//! The rankers of some successive labels.

use super::RankerRows;
use crate::train::linear::LinearParams;
use crate::train::linear::block::{Block, Numbering};
use crate::train::linear::group::{Buffers, Group};
use crate::train::observe::TreeEvent;
use std::ops::Range;
use xc_buffer::Observer;
use xc_hash::stream::mix;
use xc_sparse::CsrView;

/// What all labels share.
pub(super) struct Job<'a> {
    pub(super) features: CsrView<'a>,
    pub(super) rows: &'a RankerRows<'a>,
    pub(super) params: &'a LinearParams,
    pub(super) seed: u64,
    /// Squared length of each row, the bias input included.
    pub(super) squares: Vec<f32>,
    /// `1 / weight` of each row.
    pub(super) inverse_weights: Option<Vec<f32>>,
}

/// What a thread reuses.
#[derive(Default)]
pub(super) struct Scratch {
    numbering: Numbering,
    buffers: Buffers,
    rows: Vec<u32>,
    positive: Vec<u16>,
    inverse_weights: Vec<f32>,
    entries: Vec<(u32, f32)>,
    all: Vec<(u32, f32)>,
}

/// The rankers of some successive labels.
#[derive(Default)]
pub(super) struct Part {
    /// Where the weights of each label end.
    pub(super) ends: Vec<usize>,
    pub(super) features: Vec<u32>,
    pub(super) weights: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl Job<'_> {
    /// The rankers of some labels; `None` where the observer asked to stop.
    pub(super) fn part(
        &self,
        labels: Range<usize>,
        scratch: &mut Scratch,
        observer: &dyn Observer<TreeEvent>,
    ) -> Option<Part> {
        let mut part = Part { ends: Vec::with_capacity(labels.len()), ..Part::default() };
        scratch.all.clear();
        for label in labels {
            if observer.cancelled() {
                return None;
            }
            let bias = self.ranker(label, scratch, observer)?;
            scratch.all.extend_from_slice(&scratch.entries);
            part.ends.push(scratch.all.len());
            part.bias.push(bias);
        }
        (part.features, part.weights) = scratch.all.iter().copied().unzip();
        Some(part)
    }

    /// Leaves the weights of a label in `scratch.entries`, and returns its bias; nothing where the observer asked to stop.
    fn ranker(&self, label: usize, scratch: &mut Scratch, observer: &dyn Observer<TreeEvent>) -> Option<f32> {
        let Scratch { numbering, buffers, rows, positive, inverse_weights, entries, .. } = scratch;
        entries.clear();
        let n_positives = self.merge(label, rows, positive);
        if n_positives == 0 || n_positives == rows.len() {
            return Some(if n_positives == 0 && self.params.bias != 0.0 { -1.0 } else { 0.0 });
        }
        if let Some(all) = &self.inverse_weights {
            inverse_weights.clear();
            inverse_weights.extend(rows.iter().map(|&row| all[row as usize]));
        }
        let block = Block::gather_as_met(self.features, rows, &self.squares, numbering);
        let group = Group {
            block: &block,
            positive,
            costs: &[1.0],
            inverse_weights: self.inverse_weights.as_ref().map(|_| &inverse_weights[..]),
            name: mix(self.seed, label as u64),
        };
        let solved = group.solve(self.params, buffers, observer)?;
        entries.extend(solved.features.iter().map(|&local| block.feature(local)).zip(solved.values));
        entries.sort_unstable_by_key(|&(feature, _)| feature);
        numbering.reuse(block);
        Some(solved.bias[0])
    }

    /// The rows of a label, ascending, and whether each is a positive (1 or 0); returns how many are.
    fn merge(&self, label: usize, rows: &mut Vec<u32>, positive: &mut Vec<u16>) -> usize {
        rows.clear();
        positive.clear();
        let counts = |row: &&u32| self.inverse_weights.as_ref().is_none_or(|w| w[**row as usize].is_finite());
        let mut push = |row: u32, is_positive: bool| {
            rows.push(row);
            positive.push(u16::from(is_positive));
        };
        let mut positives = self.rows.positives.row(label).iter().filter(counts).peekable();
        let mut n_positives = 0;
        for &row in self.rows.negatives.row(label).iter().filter(counts) {
            while let Some(&own) = positives.next_if(|&&own| own < row) {
                push(own, true);
                n_positives += 1;
            }
            if positives.peek() != Some(&&row) {
                push(row, false);
            }
        }
        for &own in positives {
            push(own, true);
            n_positives += 1;
        }
        n_positives
    }
}
