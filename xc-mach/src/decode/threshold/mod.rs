//! The exact decode: buckets are walked from the best down until no label that was not met can be
//! among the k best.
//!
//! Let t_j be the score of the next bucket of repetition j that was not walked. A label in none of
//! the walked buckets has at most t_j in every repetition, so its statistic is at most that of
//! (t_1, ..., t_R): the *bound*. Once the k-th best statistic exceeds it, the answer is certain
//! (`[fagin2003optimal]`; while they are equal a label with a smaller id may still come).
//!
//! *Differs in* three ways. The repetitions are not walked in lock step: each step takes the bucket
//! that lowers the bound most (mean), the one repetition that has the fewest buckets in the way
//! (min), or the half of them that does (median, see `middles`). A label that is met is given up as soon as what
//! it has so far, and t_j for the rest, fall short of the k-th best: being met for the first time,
//! it is in no walked bucket of the others. And a label met again is recognised by that same rule,
//! so no table of labels is kept.
//!
//! Designs tried, mean decoder, L = 50M, B = 20K, R = 32, one thread, synthetic scores
//! (`benches/decode_bench.rs`: 20 true labels of middling mass; the full scan takes 0.85 to 1 s):
//! ms a query / thousands of labels met.
//!
//! | design | k = 1 | k = 10 | k = 100 |
//! |---|---|---|---|
//! | the bucket that lowers the bound most, labels given up early | 1.0 / 55 | 6.6 / 575 | 13.5 / 1005 |
//! | the largest bucket, labels given up early | 1.3 / 60 | 8.3 / 608 | 17.7 / 1065 |
//! | lock step, labels given up early | 1.3 / 78 | 10.0 / 630 | 23.9 / 1110 |
//! | the bucket that lowers the bound most, labels scored in full | 2.5 / 55 | 17.4 / 575 | 34.1 / 1005 |
//!
//! # Invariants
//! Every label of a walked bucket was offered, or proven to rank below the k-th best of that
//! moment.

mod chance;
mod middles;

use super::block::{BLOCK, BlockScratch, fold, statistics};
use super::heads::Heads;
use super::scan::{ScanScratch, scan};
use super::screen::{ALONE, MANY, STRIDE};
use super::{BucketScores, Certificate, DecodeScratch, Decoder, Effort};
use crate::assign::{Assignment, NoListsError, Source};
use crate::product::{Fold, dense};
use middles::{MiddleScratch, Way};
use xc_hash::universal::BucketHash;
use xc_sparse::rank::{Scored, TopK};

/// Scratch of a walk.
#[derive(Clone, Debug, Default)]
pub(super) struct WalkScratch {
    /// Numbers of one label.
    pub(super) values: Vec<f32>,
    next: Vec<Next>,
    order: Vec<usize>,
    bars: Vec<f32>,
    sums: Vec<f32>,
    middles: MiddleScratch,
}

/// The first bucket of a repetition that was not walked.
#[derive(Clone, Copy, Debug)]
struct Next {
    rank: usize,
    score: f32,
    bucket: u32,
    /// How much walking a bucket lowers `score`, on average over the next few.
    fall: f32,
}

/// Buckets that are looked ahead over to judge a repetition: a level stretch may hide a fall behind
/// it.
const AHEAD: usize = 8;

/// See [`Assignment::decode`]. Leaves statistics in `scratch.top`.
pub(super) fn decode(
    assignment: &Assignment,
    scores: &BucketScores<'_>,
    decoder: Decoder,
    k: usize,
    effort: Effort,
    scratch: &mut DecodeScratch,
) -> Result<Certificate, NoListsError> {
    let n_labels = assignment.n_labels();
    let k = k.min(n_labels);
    let nothing_missed = Certificate { exact: true, bound: f32::NEG_INFINITY, ..Certificate::default() };
    scratch.top.reset(k);
    if k == 0 {
        return Ok(Certificate { bound: f32::INFINITY, ..nothing_missed });
    }
    let DecodeScratch { block, heads, walk, scan, top } = scratch;
    let mut run = Run {
        assignment,
        scores,
        decoder,
        k,
        is_exact: effort == Effort::Exact,
        block,
        heads,
        scratch: walk,
        top,
        met: 0,
        spent: 0,
        way: Way::default(),
    };
    run.start();
    let mut walked = 0;
    loop {
        let Some(bound) = run.bound() else {
            let (labels_touched, buckets_walked) = (run.met, walked);
            return Ok(Certificate { labels_touched, buckets_walked, ..nothing_missed });
        };
        let certain = run.top.kth().is_some_and(|kth| bound < kth.score);
        let enough = matches!(effort, Effort::Labels(most) if run.met >= most);
        if certain || enough {
            let bound = decoder.score(bound, assignment.n_repetitions(), assignment.n_buckets());
            let (exact, labels_touched, buckets_walked) = (certain, run.met, walked);
            return Ok(Certificate { exact, bound, labels_touched, buckets_walked, scanned: false });
        }
        if effort == Effort::Exact && run.is_hopeless() {
            run.scan(scan);
            let labels_touched = n_labels as u64;
            return Ok(Certificate { labels_touched, buckets_walked: walked, scanned: true, ..nothing_missed });
        }
        let position = run.choose();
        run.walk(position)?;
        walked += 1;
    }
}

struct Run<'a> {
    assignment: &'a Assignment,
    scores: &'a BucketScores<'a>,
    decoder: Decoder,
    k: usize,
    /// Whether the end is to be certain.
    is_exact: bool,
    block: &'a mut BlockScratch,
    heads: &'a mut Heads,
    scratch: &'a mut WalkScratch,
    top: &'a mut TopK,
    /// Labels met.
    met: u64,
    /// Cost so far, in look-ups of a scan.
    spent: u64,
    way: Way,
}

impl Run<'_> {
    fn start(&mut self) {
        self.heads.reset(self.scores);
        self.scratch.next.clear();
        for position in 0..self.assignment.n_repetitions() {
            let next = self.next(position, 0);
            self.scratch.next.push(next);
        }
        if self.decoder == Decoder::Median {
            self.order_next();
        }
    }

    /// The bucket at `rank` of a repetition, or one with a score of minus infinity past the last.
    fn next(&mut self, position: usize, rank: usize) -> Next {
        let Some((score, bucket)) = self.heads.at(self.scores, position, rank) else {
            return Next { rank, score: f32::NEG_INFINITY, bucket: u32::MAX, fall: 0.0 };
        };
        let mut fall = 0f32;
        if self.decoder == Decoder::Mean {
            for ahead in 1..=AHEAD {
                let Some((later, _)) = self.heads.at(self.scores, position, rank + ahead) else { break };
                fall = fall.max((score - later) / ahead as f32);
            }
        }
        Next { rank, score, bucket, fall }
    }

    /// The largest statistic of a label that was not met; none if all were met.
    fn bound(&mut self) -> Option<f32> {
        let n_buckets = self.assignment.n_buckets();
        // All buckets of one repetition hold all labels.
        if self.scratch.next.iter().any(|next| next.rank == n_buckets) {
            return None;
        }
        if self.decoder == Decoder::Median {
            return Some(self.middle_of_next());
        }
        self.scratch.values.clear();
        self.scratch.values.extend(self.scratch.next.iter().map(|next| next.score));
        Some(self.decoder.statistic(&mut self.scratch.values, &[]))
    }

    /// Whether a scan is the shorter way from here.
    fn is_hopeless(&mut self) -> bool {
        let scan = self.scan_cost();
        // What was spent so far is lost with a scan: the whole costs half a scan more than the scan
        // at worst, and for the median what a guess that fails costs.
        self.spent > scan / 2 || self.decoder == Decoder::Median && self.is_long(scan)
    }

    /// Looks at all labels.
    fn scan(&mut self, scratch: &mut ScanScratch) {
        match self.decoder {
            Decoder::Median => self.scan_middles(scratch),
            Decoder::Mean | Decoder::Min => self.scan_from(None, scratch),
        }
    }

    /// The same, of medians those that reach a floor.
    fn scan_from(&mut self, floor: Option<f32>, scratch: &mut ScanScratch) {
        scan(self.assignment, self.scores, self.decoder, self.k, floor, scratch, self.top);
    }

    /// Look-ups of a scan.
    fn scan_cost(&mut self) -> u64 {
        let each = match self.decoder {
            Decoder::Median => self.look_ups_a_label(),
            Decoder::Mean | Decoder::Min => self.assignment.n_repetitions(),
        };
        self.assignment.n_labels() as u64 * each as u64
    }

    /// The repetition whose next bucket is walked.
    fn choose(&mut self) -> usize {
        let next = &self.scratch.next;
        let best = |key: &dyn Fn(&Next) -> f32| {
            let first = (0, key(&next[0]));
            let better = |a: (usize, f32), b: (usize, f32)| if b.1 > a.1 { b } else { a };
            next.iter().map(key).enumerate().fold(first, better).0
        };
        match self.decoder {
            Decoder::Mean => best(&|next| next.fall),
            Decoder::Min => best(&|next| -next.score),
            Decoder::Median => self.choose_middle(),
        }
    }

    /// Meets the labels of the next bucket of a repetition.
    fn walk(&mut self, position: usize) -> Result<(), NoListsError> {
        let Next { rank, bucket, .. } = self.scratch.next[position];
        let source = self.assignment.source(position, bucket)?;
        for from in (0..source.len()).step_by(BLOCK) {
            let part = source.slice(from, BLOCK.min(source.len() - from));
            self.met += part.len() as u64;
            self.meet(position, &part);
        }
        self.scratch.next[position] = self.next(position, rank + 1);
        if self.decoder == Decoder::Median {
            self.reorder_next(position);
        }
        Ok(())
    }

    /// Meets some labels of the next bucket of a repetition.
    fn meet(&mut self, position: usize, part: &Source<'_>) {
        let n_repetitions = self.assignment.n_repetitions();
        if let (Decoder::Median, Some(kth)) = (self.decoder, self.top.kth())
            && self.meet_middles(position, part, kth.score)
        {
            return;
        }
        let mut sums = std::mem::take(&mut self.scratch.sums);
        sums.clear();
        sums.resize(part.len(), self.scratch.next[position].score);
        let done = match (self.decoder, self.top.kth()) {
            (Decoder::Mean, Some(kth)) => self.meet_sums(position, part, kth.score, &mut sums),
            (Decoder::Min, Some(kth)) if n_repetitions > 1 => {
                self.meet_least(position, part, kth.score, &mut sums);
                true
            }
            _ => false,
        };
        if !done {
            self.spent += (part.len() * n_repetitions) as u64;
            statistics(self.assignment, self.scores, self.decoder, part, self.block, &mut sums);
            for (t, &score) in sums.iter().enumerate() {
                // Where many are equal, most fail by their number.
                let enters =
                    |kth: Scored| score > kth.score || score == kth.score && part.label(t) < u64::from(kth.label);
                if self.top.kth().is_none_or(enters) {
                    self.examine(position, part.label(t));
                }
            }
        }
        self.scratch.sums = sums;
    }

    /// Adds one repetition after another until few labels are left, and follows those; false if
    /// many are left to the end.
    fn meet_sums(&mut self, position: usize, part: &Source<'_>, kth: f32, sums: &mut [f32]) -> bool {
        let n_repetitions = self.assignment.n_repetitions();
        let mut wanted = self.order_by_bars(position, kth);
        let mut n_folds = 0;
        loop {
            if 4 * wanted >= 3 * n_repetitions {
                return false;
            }
            for &other in &self.scratch.order[n_folds..wanted] {
                fold(self.assignment, other, part, self.scores.row(other), Fold::Add, sums);
            }
            self.spent += (part.len() * (wanted - n_folds)) as u64;
            n_folds = wanted;
            let bar = self.scratch.bars[n_folds];
            if dense::count_from(sums, bar) * MANY <= sums.len() {
                break;
            }
            wanted += STRIDE;
        }
        let bar = self.scratch.bars[n_folds];
        for (t, &sum) in sums.iter().enumerate() {
            if sum >= bar {
                self.follow(position, part.label(t), sum, n_folds);
            }
        }
        true
    }

    /// Asks one repetition after another until few labels are left, and examines those.
    fn meet_least(&mut self, position: usize, part: &Source<'_>, kth: f32, sums: &mut [f32]) {
        let n_repetitions = self.assignment.n_repetitions();
        for n_folds in 1..n_repetitions {
            let other = (position + n_folds) % n_repetitions;
            fold(self.assignment, other, part, self.scores.row(other), Fold::Min, sums);
            self.spent += part.len() as u64;
            if dense::count_from(sums, kth) * MANY <= sums.len() {
                break;
            }
        }
        for (t, &least) in sums.iter().enumerate() {
            if least >= kth {
                self.examine(position, part.label(t));
            }
        }
    }

    /// Orders the other repetitions, the largest bounds first, and sets the bars that sums have to
    /// reach: `bars[n]` after the first n of them. Returns after how many a label falls short that
    /// has nothing else; R if none does.
    fn order_by_bars(&mut self, position: usize, kth: f32) -> usize {
        let WalkScratch { next, order, bars, .. } = &mut *self.scratch;
        let n_repetitions = next.len();
        order.clear();
        order.extend((0..n_repetitions).filter(|&other| other != position));
        order.sort_by(|&a, &b| next[b].score.total_cmp(&next[a].score).then(a.cmp(&b)));
        // A sum of R numbers in any order is within R u of the exact sum of magnitudes, u = 2^-24;
        // twice that lies between the sum taken here and the one that ranks. The sums here are of
        // f64 and add nothing that counts.
        let magnitudes = match self.scores.magnitude_if_signed() {
            Some(largest) => f64::from(largest) * n_repetitions as f64,
            None => next.iter().map(|next| f64::from(next.score)).sum(),
        };
        let slack = (n_repetitions + 2) as f64 * f64::from(f32::EPSILON) * magnitudes;
        bars.clear();
        bars.resize(n_repetitions, 0.0);
        let mut rest = 0f64;
        for n in (0..n_repetitions).rev() {
            bars[n] = ((f64::from(kth) - rest - slack) as f32).next_down();
            if n > 0 {
                rest += f64::from(next[order[n - 1]].score);
            }
        }
        let own = next[position].score;
        bars.iter().position(|&bar| own < bar).unwrap_or(n_repetitions)
    }

    /// Asks one repetition after another for a label until it falls short.
    fn follow(&mut self, position: usize, label: u64, mut sum: f32, n_folds: usize) {
        if label >= self.assignment.n_labels() as u64 {
            return;
        }
        for n in n_folds..self.scratch.order.len() {
            let other = self.scratch.order[n];
            self.spent += ALONE;
            sum += self.scores.row(other)[self.assignment.hash(other).bucket(label as u32) as usize];
            if sum < self.scratch.bars[n + 1] {
                return;
            }
        }
        self.examine(position, label);
    }

    /// Scores a label in the order that ranks, and offers it unless it was met before.
    fn examine(&mut self, position: usize, label: u64) {
        if label >= self.assignment.n_labels() as u64 {
            return;
        }
        let label = label as u32;
        self.scratch.values.clear();
        let network = self.block.network(self.decoder, self.scratch.next.len());
        for (other, next) in self.scratch.next.iter().enumerate() {
            self.spent += ALONE;
            let bucket = self.assignment.hash(other).bucket(label);
            let score = self.scores.row(other)[bucket as usize];
            // A bucket ranked before the next one was walked, and this label was met there.
            if other != position && (score > next.score || score == next.score && bucket < next.bucket) {
                return;
            }
            // The least number is below the k-th best: the rest cannot mend it.
            if self.decoder == Decoder::Min && score < self.top.threshold() {
                return;
            }
            self.scratch.values.push(score);
        }
        let score = self.decoder.statistic(&mut self.scratch.values, network);
        self.top.push(Scored { label, score });
    }
}
