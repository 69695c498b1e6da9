//! The false labels of the largest logits of each instance of a training step.

use crate::Mode;
use crate::loss::Stretch;
use rayon::prelude::*;
use xc_buffer::{Loop, vectorised_loop};
use xc_sparse::rank::{Scored, TopK};

/// Logits that are compared with the threshold at once.
const GROUP: usize = 16;
/// Parts of a stretch whose largest logits are looked at first. By chance alone, some `1.5 * n` of 4,000 logits
/// reach the 20th of them.
const PARTS: usize = 32;
/// Labels for which that pays, at most: for more there would have to be more parts.
const MOST: usize = 24;
/// Instances whose labels are written by one task: sorting those of one takes less than a microsecond.
const TASK: usize = 16;

/// Collects the labels, where that is asked for: a step begins, offers logits, and finishes. Buffers only
/// grow.
#[derive(Default)]
pub(super) struct Hardest {
    /// Labels of each instance; 0 if none are collected.
    n: usize,
    selections: Vec<Selection>,
    labels: Vec<u32>,
}

/// The best labels of an instance so far.
#[derive(Default)]
pub(super) struct Selection {
    n: usize,
    top: TopK,
}

impl Hardest {
    /// Collects `n` labels of each instance from now on.
    pub(super) fn collect(&mut self, n: usize) {
        self.n = n;
        self.labels.clear();
    }

    /// For a pass over so many instances. Only training steps collect: others leave what the last one
    /// did.
    pub(super) fn begin(&mut self, mode: Mode, n_instances: usize) {
        let n = if mode == Mode::Predict { 0 } else { self.n };
        self.selections.resize_with(n_instances, Selection::default);
        for selection in &mut self.selections {
            selection.n = n;
            selection.top.reset(n);
        }
    }

    /// One an instance.
    pub(super) fn selections(&mut self) -> &mut [Selection] {
        &mut self.selections
    }

    /// Whether this pass collects.
    pub(super) fn collects(&self) -> bool {
        self.selections.first().is_some_and(Selection::collects)
    }

    /// Writes down the labels of the pass.
    pub(super) fn finish(&mut self) {
        if !self.collects() {
            return;
        }
        self.labels.resize(self.selections.len() * self.n, u32::MAX);
        let rows = self.labels.par_chunks_exact_mut(self.n).zip(&mut self.selections);
        rows.with_min_len(TASK).for_each(|(row, selection)| {
            let best = selection.top.sorted();
            row.iter_mut().zip(best).for_each(|(to, best)| *to = best.label);
            row[best.len()..].fill(u32::MAX);
        });
    }

    /// The labels of the last training step: as many of each instance as are collected, best first, then
    /// `u32::MAX`.
    pub(super) fn labels(&self) -> &[u32] {
        &self.labels
    }
}

impl Selection {
    /// Whether anything is collected.
    #[inline(always)]
    pub(super) fn collects(&self) -> bool {
        self.n > 0
    }

    /// Offers a stretch of logits. `label`: that at a place of the stretch, which may be another than the
    /// places of the true ones say; it ascends.
    #[inline]
    pub(super) fn offer(&mut self, logits: &[f32], of: Stretch<'_>, label: impl Fn(usize) -> u32) {
        if self.collects() {
            vectorised_loop(Offer { n: self.n, top: &mut self.top, logits, of, label });
        }
    }

    /// Offers a false label.
    #[inline(always)]
    pub(super) fn push(&mut self, label: u32, score: f32) {
        self.top.push(Scored { label, score });
    }

    /// A logit below this is of no interest, nor is any logit where nothing is collected.
    #[inline(always)]
    pub(super) fn threshold(&self) -> f32 {
        self.top.threshold()
    }
}

/// The false labels of a stretch.
struct Offer<'a, L> {
    n: usize,
    top: &'a mut TopK,
    logits: &'a [f32],
    of: Stretch<'a>,
    label: L,
}

impl<L: Fn(usize) -> u32> Loop for Offer<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { n, top, logits, of, label } = self;
        let is_first = top.kth().is_none();
        let floor = if is_first && n <= MOST { floor(logits, of, n) } else { f32::NEG_INFINITY };
        let mut offer = |at: usize, logits: &[f32]| {
            for (i, &score) in logits.iter().enumerate() {
                if score >= floor {
                    top.push(Scored { label: label(at + i), score });
                }
            }
            top.threshold().max(floor)
        };
        let mut bar = offer(0, &[]);
        for range in of.falses(logits.len()) {
            let (mut at, logits) = (range.start, &logits[range]);
            let (groups, rest) = logits.as_chunks::<GROUP>();
            for group in groups {
                // Without an early end, so that they are compared in one vector.
                if group.iter().fold(false, |any, &score| any | (score >= bar)) {
                    bar = offer(at, group);
                }
                at += GROUP;
            }
            bar = offer(at, rest);
        }
    }
}

/// A number that at least `n` logits of false labels reach, and few others: of the largest logits of some parts
/// of the stretch, the n-th. Minus infinity where not so many parts have any.
#[inline(always)]
fn floor(logits: &[f32], of: Stretch<'_>, n: usize) -> f32 {
    let mut largest = [f32::NEG_INFINITY; PARTS];
    for range in of.falses(logits.len()) {
        for chunk in logits[range].as_chunks::<PARTS>().0 {
            largest.iter_mut().zip(chunk).for_each(|(largest, &z)| *largest = if z > *largest { z } else { *largest });
        }
    }
    // How many reach each, all of them side by side.
    let mut reach = [0u32; PARTS];
    for other in &largest {
        reach.iter_mut().zip(&largest).for_each(|(reach, z)| *reach += u32::from(other >= z));
    }
    let of_enough = largest.iter().zip(reach).filter(|&(_, reach)| reach as usize >= n);
    of_enough.fold(f32::NEG_INFINITY, |floor, (&z, _)| floor.max(z))
}
