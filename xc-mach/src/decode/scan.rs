//! The full scan: every label is scored.

use super::block::{BLOCK, BlockScratch, statistics};
use super::{BucketScores, Decoder};
use crate::assign::Assignment;
use crate::product::dense;
use xc_buffer::parallel::for_each_part_in_pool;
use xc_sparse::rank::{Scored, TopK};

/// Most parts that labels are cut into; each has its own selection.
const MAX_PARTS: usize = 64;

/// Scratch of the scan.
#[derive(Clone, Debug, Default)]
pub(super) struct ScanScratch {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    block: BlockScratch,
    statistics: Vec<f32>,
    largest: Vec<f32>,
    top: TopK,
}

/// Offers every label's statistic to `top`.
///
/// *Determinism*: parts depend on the number of labels alone, and a selection does not depend on
/// the order of what it is offered.
pub(super) fn scan(
    assignment: &Assignment,
    scores: &BucketScores<'_>,
    decoder: Decoder,
    k: usize,
    scratch: &mut ScanScratch,
    top: &mut TopK,
) {
    let n_labels = assignment.n_labels();
    let part_len = n_labels.div_ceil(MAX_PARTS).next_multiple_of(BLOCK);
    let n_parts = n_labels.div_ceil(part_len.max(1));
    if scratch.parts.len() < n_parts {
        scratch.parts.resize_with(n_parts, Part::default);
    }
    let parts = &mut scratch.parts[..n_parts];
    for_each_part_in_pool(parts, 1, |number, part| {
        let part = &mut part[0];
        part.top.reset(k.min(part_len));
        let end = ((number + 1) * part_len).min(n_labels);
        for start in (number * part_len..end).step_by(BLOCK) {
            let len = BLOCK.min(end - start);
            part.statistics.resize(len, 0.0);
            let source = assignment.range(start as u32..(start + len) as u32);
            statistics(assignment, scores, decoder, &source, &mut part.block, &mut part.statistics);
            offer(&mut part.top, start as u32, &part.statistics, &mut part.largest);
        }
    });
    top.reset(k);
    parts.iter_mut().for_each(|part| part.top.sorted().iter().for_each(|&item| top.push(item)));
}

/// Offers consecutive labels.
fn offer(top: &mut TopK, start: u32, statistics: &[f32], largest: &mut Vec<f32>) {
    // Most blocks of a few labels hold nothing that could enter: their largest is compared once.
    const FEW: usize = 64;
    largest.clear();
    dense::largest_of_groups(statistics, FEW, largest);
    for (number, (few, &largest)) in statistics.chunks(FEW).zip(largest.iter()).enumerate() {
        if largest < top.threshold() {
            continue;
        }
        for (t, &score) in few.iter().enumerate() {
            top.push(Scored { label: start + (number * FEW + t) as u32, score });
        }
    }
}
