//! The full scan: every label is scored.

use super::block::{BLOCK, BlockScratch, statistic_of, statistics};
use super::screen::{Bar, Hits, ScreenScratch, needed, screen};
use super::statistic::least_middle;
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
    order: Vec<usize>,
    /// Buckets of each repetition that reach the floor.
    heavy: Vec<usize>,
    hits: Hits,
}

#[derive(Clone, Debug, Default)]
struct Part {
    block: BlockScratch,
    statistics: Vec<f32>,
    largest: Vec<f32>,
    values: Vec<f32>,
    screen: ScreenScratch,
    top: TopK,
}

/// Offers every label's statistic to `top`, but medians that the k best of its part are above, or `floor`, which the others
/// have none of. Where fewer than k labels reach the floor the k-th best that is left is below it, and the answer is not that
/// of all labels.
///
/// *Determinism*: parts depend on the number of labels alone, and a selection does not depend on
/// the order of what it is offered.
pub(super) fn scan(
    assignment: &Assignment,
    scores: &BucketScores<'_>,
    decoder: Decoder,
    k: usize,
    floor: Option<f32>,
    scratch: &mut ScanScratch,
    top: &mut TopK,
) {
    let n_labels = assignment.n_labels();
    let part_len = n_labels.div_ceil(MAX_PARTS).next_multiple_of(BLOCK);
    let n_parts = n_labels.div_ceil(part_len.max(1));
    if scratch.parts.len() < n_parts {
        scratch.parts.resize_with(n_parts, Part::default);
    }
    let ScanScratch { parts, order, heavy, hits } = scratch;
    let parts = &mut parts[..n_parts];
    let n_repetitions = assignment.n_repetitions();
    order.clear();
    order.extend(0..n_repetitions);
    if let Some(floor) = floor {
        hits.fill(scores, least_middle(floor));
        // A label falls short soonest where the fewest reach the bar.
        heavy.clear();
        heavy.extend((0..n_repetitions).map(|position| dense::count_from(scores.row(position), floor)));
        order.sort_unstable_by_key(|&position| (heavy[position], position));
    }
    let (order, hits) = (&**order, floor.map(|_| &*hits));
    for_each_part_in_pool(parts, 1, |number, part| {
        let part = &mut part[0];
        part.top.reset(k.min(part_len));
        let end = ((number + 1) * part_len).min(n_labels);
        for start in (number * part_len..end).step_by(BLOCK) {
            let len = BLOCK.min(end - start);
            part.statistics.resize(len, 0.0);
            let source = assignment.range(start as u32..(start + len) as u32);
            let kth = part.top.kth().map(|kth| kth.score);
            if decoder == Decoder::Median
                && let Some(kth) = [kth, floor].into_iter().flatten().reduce(f32::max)
            {
                let bar = Bar { bar: least_middle(kth), needed: needed(n_repetitions), order, hits };
                let Part { block, values, screen: scratch, top, .. } = part;
                let (_, is_done) = screen(assignment, scores, bar, &source, scratch, |label| {
                    let network = block.network(decoder, n_repetitions);
                    let score = statistic_of(assignment, scores, decoder, label, network, values);
                    top.push(Scored { label, score });
                });
                if is_done {
                    continue;
                }
            }
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
