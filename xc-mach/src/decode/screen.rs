//! Labels that may reach a median, found by counting.
//!
//! A median of R numbers is at least m only if ceil(R / 2) of them are, rounding apart
//! ([`least_middle`](super::statistic::least_middle)). So a label is given up as soon as it has missed too often: of E
//! repetitions that can give it a hit and `needed` hits, after f look-ups with h hits where h + E - f < needed. The first label
//! can be given up after E - needed + 1 look-ups, and no number is sorted.

use super::BucketScores;
use super::block::fold;
use crate::assign::{Assignment, Source, prime};
use crate::product::{self, Fold, Residues, dense};
use std::ops::Range;
use xc_hash::universal::BucketHash;

/// Cost of a random look-up, in sequential ones.
pub(super) const ALONE: u64 = 8;

/// While more than one in this many labels is left, the next repetitions are asked for all of them.
pub(super) const MANY: usize = 16;

/// Repetitions that are asked for all labels before what is left is counted again.
pub(super) const STRIDE: usize = 2;

/// What starting on a repetition for some labels costs, in look-ups.
pub(super) const START: u64 = 32;

/// Numbers of a label that reach its median, at least.
pub(super) fn needed(n_repetitions: usize) -> usize {
    n_repetitions.div_ceil(2)
}

/// Repetitions that are asked in one pass.
const TOGETHER: usize = 8;

/// For each bucket of each repetition whether its score is at least a bar: 1 / 32 of the scores. The first-level cache holds the
/// rows of one pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    words: Vec<u32>,
    n_words: usize,
}

impl Hits {
    pub(super) fn fill(&mut self, scores: &BucketScores<'_>, bar: f32) {
        self.n_words = scores.n_buckets().div_ceil(32);
        self.words.clear();
        (0..scores.n_repetitions()).for_each(|position| dense::bits_from(scores.row(position), bar, &mut self.words));
    }

    fn row(&self, position: usize) -> &[u32] {
        &self.words[position * self.n_words..][..self.n_words]
    }
}

/// What a label must have: `needed` numbers of at least `bar` among those of some repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar<'a> {
    pub(super) bar: f32,
    /// At least 1.
    pub(super) needed: usize,
    /// Positions of the repetitions, those first that are asked first.
    pub(super) order: &'a [usize],
    /// The buckets that reach `bar` or a lower bar, where they are known.
    pub(super) hits: Option<&'a Hits>,
}

/// Scratch of [`screen`].
#[derive(Clone, Debug, Default)]
pub(super) struct ScreenScratch {
    counts: Vec<f32>,
    places: Vec<u32>,
}

/// Calls `survivor` with each label of `part` that has enough hits, unless these are so many that they are better scored
/// together. Gives the cost in sequential look-ups, and whether the labels are dealt with.
pub(super) fn screen(
    assignment: &Assignment,
    scores: &BucketScores<'_>,
    bar: Bar<'_>,
    part: &Source<'_>,
    ScreenScratch { counts, places }: &mut ScreenScratch,
    mut survivor: impl FnMut(u32),
) -> (u64, bool) {
    let Bar { needed, order, .. } = bar;
    let Some(mut wanted) = (order.len() + 1).checked_sub(needed).filter(|&first| first > 0) else { return (0, true) };
    counts.clear();
    counts.resize(part.len(), 0.0);
    let (mut done, mut spent) = (0, 0);
    // Hits after `done` look-ups below which a label is given up.
    let least_at = |done: usize| (needed + done).saturating_sub(order.len()) as f32;
    let is_few = loop {
        bar.count(assignment, scores, done..wanted, part, counts);
        spent += (part.len() as u64 + START) * (wanted - done) as u64;
        done = wanted;
        let is_few = dense::count_from(counts, least_at(done)) * MANY <= counts.len();
        if is_few || done == order.len() {
            break is_few || counts.len() < MANY;
        }
        wanted = (wanted + STRIDE).min(order.len());
    };
    if !is_few {
        return (spent, false);
    }
    let least = least_at(done);
    places.clear();
    dense::places_from(counts, least, places);
    for &place in &*places {
        let label = part.label(place as usize);
        if label >= assignment.n_labels() as u64 {
            continue;
        }
        let mut misses_left = (counts[place as usize] - least) as usize;
        let reaches = order[done..].iter().all(|&position| {
            spent += ALONE;
            let bucket = assignment.hash(position).bucket(label as u32);
            let is_hit = scores.row(position)[bucket as usize] >= bar.bar;
            let may_go_on = is_hit || misses_left > 0;
            misses_left = misses_left.saturating_sub(usize::from(!is_hit));
            may_go_on
        });
        if reaches {
            survivor(label as u32);
        }
    }
    (spent, true)
}

impl Bar<'_> {
    /// Counts the hits that some of the repetitions give.
    fn count(
        &self,
        assignment: &Assignment,
        scores: &BucketScores<'_>,
        asked: Range<usize>,
        part: &Source<'_>,
        counts: &mut [f32],
    ) {
        for some in self.order[asked].chunks(TOGETHER) {
            match self.walks(assignment, some, part) {
                Some(walks) => product::count(&walks[..some.len()], counts),
                None => some.iter().for_each(|&position| {
                    fold(assignment, position, part, scores.row(position), Fold::CountFrom(self.bar), counts);
                }),
            }
        }
    }

    /// What some repetitions make of a part whose hits are known and whose labels can be walked; first of the array.
    fn walks(
        &self,
        assignment: &Assignment,
        some: &[usize],
        part: &Source<'_>,
    ) -> Option<[(Residues, &[u32]); TOGETHER]> {
        let (Some(hits), Source::Progression(steps)) = (self.hits, part) else { return None };
        let mut walks = [(Residues::default(), &[][..]); TOGETHER];
        for (walk, &position) in walks.iter_mut().zip(some) {
            *walk = (steps.hashed(prime(assignment.hash(position))?), hits.row(position));
        }
        Some(walks)
    }
}
