//! The walk of the median: in turns until the k-th best stands still, then one repetition after the other.
//!
//! A label whose median reaches the k-th best has at least ceil(R / 2) numbers that reach it, and of repetitions whose next
//! bucket is below it a label that was not met has none. So labels are given up by counting ([`screen`]), the first ones that
//! are met after R - ceil(R / 2) + 1 look-ups, and fewer the fewer repetitions are left.
//!
//! The bound falls below the k-th best once the next buckets of all but ceil(R / 2) - 1 repetitions do. *In turns* the
//! repetition is walked that stands in the middle: good labels come first, and all repetitions stay open. *To the end* those
//! with the fewest buckets in the way are walked, one after the other: half of the look-ups for the same buckets, but buckets
//! that a higher k-th best would have spared. The change comes once the turns have cost an eighth of what is left, by count,
//! and the k-th best has not risen: then at most an eighth was lost.
//!
//! Where the k best are labels that share good buckets by chance, what is left is known before: [`chance`] tells how many
//! buckets reach a bar that k labels are expected to reach. If a scan is shorter there is one soon. Its bar is a guess, which
//! several times k labels are expected to reach; where k labels did not, it is made again with the k-th best that was found.
//!
//! Designs tried, the bench of `threshold` (20 true labels), ms of processor time a query with AVX-512:
//!
//! | design | k = 1 | k = 10 | k = 100 |
//! |---|---|---|---|
//! | every label that is met is scored in full | 9.9 | 44 | 5,750 |
//! | labels are given up by counting; the order changes; where half of a scan's look-ups are spent, a scan that counts | 2.1 | 10.9 | 2,190 |
//! | the same with a bit a bucket once a bar stands | 2.0 | 8.8 | 1,620 |
//! | a scan as soon as chance says so, with a guessed bar | 2.0 | 8.5 | 980 |

use super::chance::{Chance, ChanceScratch};
use super::{Next, Run, WalkScratch};
use crate::assign::Source;
use crate::decode::scan::ScanScratch;
use crate::decode::screen::{Bar, Hits, MANY, START, STRIDE, ScreenScratch, needed, screen};
use crate::decode::statistic::{least_middle, middle};
use std::cmp::Ordering;

/// Turns cost one in so many look-ups of what is left before the order changes.
const PATIENCE: u64 = 8;

/// A walk that has cost one in so many look-ups of a scan asks what chance gives.
const SOON: u64 = 32;

/// Repetitions that most labels are asked of until they are given up, which need `needed` hits of `n`.
fn asked(n: usize, needed: usize) -> usize {
    (n + 1).saturating_sub(needed).saturating_add(STRIDE).min(n)
}

/// Scratch of a walk by the median.
#[derive(Clone, Debug, Default)]
pub(super) struct MiddleScratch {
    /// Repetitions by the score of their next bucket, up.
    by_score: Vec<usize>,
    /// How many buckets of each repetition reached the bar when they were counted, and repetitions, those with the fewest
    /// first.
    heavy: Vec<usize>,
    by_heavy: Vec<usize>,
    hits: Hits,
    screen: ScreenScratch,
    chance: ChanceScratch,
}

/// What is left to walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// The k-th best score; none before the first.
    kth: Option<f32>,
    /// What half of a label's numbers must reach to be as good.
    bar: f32,
    /// The cost when it last rose.
    risen_at: u64,
    /// The bar that buckets were counted for, and the cost at which they may be counted again.
    counted: Option<f32>,
    count_again_at: u64,
    /// Look-ups in turns before what is left is measured again.
    patience: u64,
    /// Whether one repetition after the other is walked to the bar.
    is_last: bool,
    /// Whether that is longer than a scan.
    is_long: bool,
    /// The bar for which it is known which buckets reach it.
    hits_of: Option<f32>,
    ahead: Option<Ahead>,
}

/// What chance gives.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// The bar that a quarter of k labels are expected to reach.
    bar: f32,
    /// The bar that four times k labels and some are expected to reach.
    guess: f32,
    /// Whether a scan is shorter than a walk.
    is_scan: bool,
}

/// Repetitions by the score of their next bucket, up.
fn by_next(next: &[Next], a: usize, b: usize) -> Ordering {
    next[a].score.total_cmp(&next[b].score).then(a.cmp(&b))
}

impl Run<'_> {
    /// Orders the repetitions by their next buckets.
    pub(super) fn order_next(&mut self) {
        let WalkScratch { next, middles, .. } = &mut *self.scratch;
        middles.by_score.clear();
        middles.by_score.extend(0..next.len());
        middles.by_score.sort_unstable_by(|&a, &b| by_next(next, a, b));
    }

    /// The same after the next bucket of one repetition has become a worse one.
    pub(super) fn reorder_next(&mut self, position: usize) {
        let WalkScratch { next, middles: MiddleScratch { by_score, .. }, .. } = &mut *self.scratch;
        let mut at = by_score.iter().position(|&other| other == position).unwrap_or(0);
        while at > 0 && by_next(next, by_score[at - 1], position).is_gt() {
            by_score.swap(at - 1, at);
            at -= 1;
        }
    }

    /// The median of the next buckets' scores.
    pub(super) fn middle_of_next(&self) -> f32 {
        let WalkScratch { next, middles: MiddleScratch { by_score, .. }, .. } = &*self.scratch;
        let score = |rank: usize| next[by_score[rank]].score;
        middle(score((next.len() - 1) / 2), score(next.len() / 2))
    }

    /// Look-ups of a label in a scan, which gives labels up as a walk does if a k-th best is known.
    pub(super) fn look_ups_a_label(&mut self) -> usize {
        let n_repetitions = self.assignment.n_repetitions();
        match self.top.kth() {
            Some(_) => asked(n_repetitions, needed(n_repetitions)),
            None => n_repetitions,
        }
    }

    /// Looks at all labels: with a guess of the k-th best, and where fewer than k labels reach that with the k-th best that was
    /// found.
    pub(super) fn scan_middles(&mut self, scratch: &mut ScanScratch) {
        let found = self.top.kth().map(|kth| kth.score);
        let guess = self.by_chance().guess;
        if found.is_some_and(|found| found >= guess) {
            return self.scan_from(found, scratch);
        }
        self.scan_from(Some(guess), scratch);
        let best = self.top.kth().map(|kth| kth.score);
        if best.is_none_or(|best| best < guess) {
            self.scan_from([found, best].into_iter().flatten().reduce(f32::max), scratch);
        }
    }

    /// Whether what is left to walk is longer than a scan of so many look-ups.
    pub(super) fn is_long(&mut self, scan: u64) -> bool {
        if self.way.is_long || self.way.is_last || self.spent <= scan / SOON {
            return self.way.is_long;
        }
        // A walk that has found nothing better than chance gives goes as far as chance lets it.
        let ahead = self.by_chance();
        ahead.is_scan && self.top.kth().is_none_or(|kth| kth.score <= ahead.bar)
    }

    /// What is ahead if some of the k best are those of chance.
    fn by_chance(&mut self) -> Ahead {
        if let Some(known) = self.way.ahead {
            return known;
        }
        let (n_labels, n_repetitions) = (self.assignment.n_labels(), self.assignment.n_repetitions());
        let needed = needed(n_repetitions);
        let mut chance = Chance::new(self.scores, &mut self.scratch.middles.chance);
        // Up to three quarters of the k best may be better.
        let bar = chance.level(n_labels, self.k.div_ceil(4), needed);
        // More than are wanted: the sample may err, and few may be none.
        let guess = chance.checked_level(self.scores, n_labels, 4 * self.k + 12, needed);
        let (share, of_scan) = (chance.share(bar), chance.share(guess));
        // Half of all buckets of half of the repetitions hold more labels than there are.
        let is_scan = share >= 0.5 || {
            let scan = chance.look_ups(of_scan, n_repetitions, needed, MANY) as f64;
            let mut walk = 0.0;
            (0..=n_repetitions - needed).any(|walked| {
                walk += share * chance.look_ups(share, n_repetitions - walked - 1, needed - 1, MANY) as f64;
                walk > scan
            })
        };
        let ahead = Ahead { bar, guess, is_scan };
        self.way.ahead = Some(ahead);
        ahead
    }

    /// Look-ups of a walk to the end, repetition after repetition.
    fn rest(&mut self) -> u64 {
        let WalkScratch { next, order, middles, .. } = &mut *self.scratch;
        order.clear();
        let open = next.iter().zip(&middles.heavy).filter(|(next, _)| next.score >= self.way.bar);
        order.extend(open.map(|(next, heavy)| heavy.saturating_sub(next.rank).max(1)));
        order.sort_unstable();
        let (n_open, needed) = (order.len(), needed(next.len()));
        let n_walked = (n_open + 1).saturating_sub(needed);
        let bucket = self.assignment.n_labels().div_ceil(self.assignment.n_buckets()) as u64;
        // A label of the first of them is asked of all others, one of the last of `needed - 1`.
        let each = |at: usize| asked(n_open - at - 1, needed - 1) as u64 * (bucket + START);
        order[..n_walked].iter().enumerate().map(|(at, &n_buckets)| n_buckets as u64 * each(at)).sum()
    }

    /// Takes notice of the k-th best, and counts the buckets that reach it unless that was done a short while ago.
    fn look_at(&mut self, kth: f32) {
        let way = &mut self.way;
        if way.kth.is_none_or(|before| kth > before) {
            (way.kth, way.bar, way.risen_at, way.is_last) = (Some(kth), least_middle(kth), self.spent, false);
        }
        if way.counted.is_some_and(|counted| counted >= way.bar || self.spent < way.count_again_at) {
            return;
        }
        let MiddleScratch { heavy, by_heavy, .. } = &mut self.scratch.middles;
        let n_repetitions = self.assignment.n_repetitions();
        heavy.clear();
        heavy.extend((0..n_repetitions).map(|position| self.heads.count_from(self.scores, position, way.bar)));
        by_heavy.clear();
        by_heavy.extend(0..n_repetitions);
        by_heavy.sort_unstable_by_key(|&position| (heavy[position], position));
        way.counted = Some(way.bar);
        // The more there is to count, the more is walked between.
        way.count_again_at = self.spent + self.heads.n_groups() as u64 + heavy.iter().sum::<usize>() as u64;
        way.patience = 0;
    }

    /// Whether the repetitions are walked one after the other.
    fn finishes(&mut self) -> bool {
        let Some(kth) = self.top.kth().filter(|_| self.is_exact) else { return false };
        self.look_at(kth.score);
        let waited = self.spent - self.way.risen_at;
        if self.way.is_last || waited < self.way.patience.max(1) {
            return self.way.is_last;
        }
        let (rest, scan) = (self.rest(), self.scan_cost());
        self.way.patience = rest.min(scan) / PATIENCE;
        if waited < self.way.patience {
            return false;
        }
        self.way.is_long = rest > scan;
        self.way.is_last = !self.way.is_long;
        let n_scores = self.scores.n_repetitions() * self.scores.n_buckets();
        if self.way.is_last && self.way.hits_of != Some(self.way.bar) && rest > n_scores as u64 {
            self.scratch.middles.hits.fill(self.scores, self.way.bar);
            self.way.hits_of = Some(self.way.bar);
        }
        self.way.is_last
    }

    /// The repetition whose next bucket is walked.
    pub(super) fn choose_middle(&mut self) -> usize {
        let finishes = self.finishes();
        let WalkScratch { next, middles: MiddleScratch { by_score, heavy, .. }, .. } = &*self.scratch;
        let n = next.len();
        if !finishes {
            return by_score[n / 2];
        }
        let left = |&at: &usize| heavy[at].saturating_sub(next[at].rank);
        let open = (0..n).filter(|&at| next[at].score >= self.way.bar);
        // One is open: else the bound were below the k-th best.
        open.min_by_key(left).unwrap_or(by_score[n / 2])
    }

    /// Examines the labels that enough repetitions give the k-th best; false if these are so many that they are better scored
    /// together.
    pub(super) fn meet_middles(&mut self, position: usize, part: &Source<'_>, kth: f32) -> bool {
        self.look_at(kth);
        let WalkScratch { next, order, middles, .. } = &mut *self.scratch;
        let MiddleScratch { by_heavy, hits, screen: counts, .. } = middles;
        let bar = self.way.bar;
        let reaches = |next: &Next| next.score >= bar;
        let needed = needed(next.len()) - usize::from(reaches(&next[position]));
        if needed == 0 {
            return false;
        }
        // A label that is met for the first time is in no walked bucket of the others; one that was met before was offered or
        // ruled out then.
        let (mut order, mut counts, hits) = (std::mem::take(order), std::mem::take(counts), std::mem::take(hits));
        order.clear();
        order.extend(by_heavy.iter().copied().filter(|&other| other != position && reaches(&next[other])));
        let bar = Bar { bar, needed, order: &order, hits: self.way.hits_of.filter(|&of| of == bar).map(|_| &hits) };
        let (assignment, scores) = (self.assignment, self.scores);
        let examine = |label| self.examine(position, u64::from(label));
        let (spent, is_done) = screen(assignment, scores, bar, part, &mut counts, examine);
        self.spent += spent;
        self.scratch.order = order;
        (self.scratch.middles.screen, self.scratch.middles.hits) = (counts, hits);
        is_done
    }
}
