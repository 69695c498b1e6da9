//! From the bucket scores of R classifiers to the best labels.
//!
//! A label's R numbers are what each classifier gives to the label's bucket; a [`Decoder`] makes
//! one statistic of them. Two ways lead to the k best labels, and to the same bits:
//!
//! - [`Assignment::scan`] scores all L labels: L R look-ups a query.
//! - [`Assignment::decode`] walks the buckets with the largest scores, and proves when no other
//!   label can be among the k best: a few thousand labels where the classifiers are sure of
//!   themselves.
//!
//! Labels of equal statistic rank by id, as everywhere.

mod block;
mod heads;
mod labels;
mod scan;
mod scores;
mod statistic;
mod threshold;

pub use scores::{BucketScores, BucketScoresError};

use crate::assign::{Assignment, NoListsError};
use block::BlockRoom;
use heads::Heads;
use scan::ScanRoom;
use serde::{Deserialize, Serialize};
use threshold::WalkRoom;
use xc_sparse::rank::{Scored, TopK};

/// What is made of a label's R numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoder {
    /// The unbiased estimate B / (B - 1) (mean - 1 / B) of the label's probability, for exact
    /// bucket probabilities (`[medini2019mach, Theorem 1]`). With one bucket it is the mean.
    Mean,
    /// The least number: count-min's estimate, never too low for exact bucket probabilities.
    Min,
    /// The median; with an even R the mean of the two middle numbers. It ranked labels best on every
    /// set measured (`docs/decisions/mach-decoder.md`).
    #[default]
    Median,
}

impl Decoder {
    /// Every decoder.
    pub const ALL: [Decoder; 3] = [Self::Mean, Self::Min, Self::Median];
}

impl std::fmt::Display for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Median => "median",
        })
    }
}

/// How far a walk goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Until the answer is certain. Where a walk would cost more than scoring everything,
    /// everything is scored.
    #[default]
    Exact,
    /// At most until this many labels were found (and the rest of the bucket at hand).
    Labels(u64),
}

/// What is known of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Certificate {
    /// True if the answer is the full scan's.
    pub exact: bool,
    /// No label outside the answer scores above the larger of this and the answer's last score.
    /// Minus infinity when every label was looked at.
    pub bound: f32,
    /// Labels found in walked buckets, or all labels after a scan. A label in two of them counts
    /// twice.
    pub labels_touched: u64,
    /// Buckets walked.
    pub buckets_walked: u64,
    /// True if every label was scored.
    pub scanned: bool,
}

/// Memory of one thread's decodes, reused from query to query.
///
/// About 8 bytes a bucket and repetition at most, 64 KiB of block (the median 4 KiB a repetition
/// more), and the k best; a scan adds as much a part (64 of them).
#[derive(Clone, Debug, Default)]
pub struct DecodeScratch {
    block: BlockRoom,
    heads: Heads,
    walk: WalkRoom,
    scan: ScanRoom,
    top: TopK,
}

impl Assignment {
    /// The k best labels by scoring all of them, best first, into `out`. Fewer where there are
    /// fewer labels.
    ///
    /// *Cost*: L R look-ups, on the ambient thread pool. Allocates nothing once `scratch` and `out`
    /// have grown.
    ///
    /// *Determinism*: the same labels and score bits for any number of threads and any instruction
    /// set.
    ///
    /// # Panics
    /// If `scores` has not the repetitions and buckets of the assignment.
    pub fn scan(
        &self,
        scores: &BucketScores<'_>,
        decoder: Decoder,
        k: usize,
        scratch: &mut DecodeScratch,
        out: &mut Vec<Scored>,
    ) {
        self.assert_shape(scores);
        scan::scan(self, scores, decoder, k.min(self.n_labels()), &mut scratch.scan, &mut scratch.top);
        self.finish(decoder, &mut scratch.top, out);
    }

    /// The k best labels by walking the best buckets, best first, into `out`; and what is known of
    /// them.
    ///
    /// *Cost*: 8 bytes read a bucket and repetition, and the labels of the buckets walked.
    /// Allocates nothing once `scratch` and `out` have grown. One thread, but for the scan that an
    /// exact decode may end in.
    ///
    /// *Determinism*: with [`Effort::Exact`], the labels and score bits of [`Assignment::scan`].
    ///
    /// # Errors
    /// When the family needs lists and there are none.
    ///
    /// # Panics
    /// If `scores` has not the repetitions and buckets of the assignment.
    pub fn decode(
        &self,
        scores: &BucketScores<'_>,
        decoder: Decoder,
        k: usize,
        effort: Effort,
        scratch: &mut DecodeScratch,
        out: &mut Vec<Scored>,
    ) -> Result<Certificate, NoListsError> {
        self.assert_shape(scores);
        let certificate = threshold::decode(self, scores, decoder, k, effort, scratch)?;
        self.finish(decoder, &mut scratch.top, out);
        Ok(certificate)
    }

    fn assert_shape(&self, scores: &BucketScores<'_>) {
        let (got, expected) = ((scores.n_repetitions(), scores.n_buckets()), (self.n_repetitions(), self.n_buckets()));
        assert_eq!(got, expected, "repetitions and buckets of the scores, and of the assignment");
    }

    /// Turns the selected statistics into scores.
    fn finish(&self, decoder: Decoder, top: &mut TopK, out: &mut Vec<Scored>) {
        out.clear();
        let (n_repetitions, n_buckets) = (self.n_repetitions(), self.n_buckets());
        let score = |item: &Scored| Scored { score: decoder.score(item.score, n_repetitions, n_buckets), ..*item };
        out.extend(top.sorted().iter().map(score));
    }
}
