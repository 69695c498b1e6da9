//! From the bucket scores of R classifiers to the best labels.
//!
//! A label has R numbers, the score that each classifier gives its bucket; a [`Decoder`] combines them
//! into one statistic. Two methods find the k best labels, with identical bits:
//!
//! - [`Assignment::scan`] looks at all L labels: at most L R look-ups per query.
//! - [`Assignment::decode`] walks the buckets with the largest scores, and proves when no other label
//!   can be among the k best: a few thousand labels if the classifiers are confident.
//!
//! Labels of equal statistic are ranked by id, as everywhere.

mod block;
mod heads;
mod labels;
mod scan;
mod scores;
mod screen;
mod statistic;
mod threshold;

pub use scores::{BucketScores, BucketScoresError};
#[cfg(feature = "cuda")]
pub(crate) use statistic::median_network;

use crate::assign::{Assignment, NoListsError};
use block::BlockScratch;
use heads::Heads;
use scan::ScanScratch;
use serde::{Deserialize, Serialize};
use threshold::WalkScratch;
use xc_sparse::rank::{Scored, TopK};

/// The statistic of a label's R numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoder {
    /// The unbiased estimate B / (B - 1) (mean - 1 / B) of the label's probability, for exact
    /// bucket probabilities (`[medini2019mach, Theorem 1]`). With one bucket it is the mean.
    Mean,
    /// The least number: count-min's estimate, never too low for exact bucket probabilities.
    Min,
    /// The median; with an even R the mean of the two middle numbers. It ranked labels best on every
    /// data set measured (`bench/decisions/mach-decoder.md`).
    #[default]
    Median,
}

impl Decoder {
    /// The one that tells labels apart best over repetitions of so many buckets: the median, but below 12 buckets the
    /// minimum (`bench/decisions/mach-decoder.md`). There a label shares half of its buckets with a true one too often, and a
    /// median of probabilities is then that of the other; a minimum is high only where all buckets are shared.
    pub fn usual(n_buckets: u32) -> Self {
        const LEAST_BUCKETS: u32 = 12;
        if n_buckets < LEAST_BUCKETS { Self::Min } else { Self::Median }
    }

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Until the answer is certain. If a walk would cost more than scoring all labels, all labels are
    /// scored.
    #[default]
    Exact,
    /// Until at most this many labels were found (and the rest of the current bucket).
    Labels(u64),
}

/// What is proven about an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// True if the answer is the full scan's.
    pub exact: bool,
    /// No label outside the answer scores above the larger of this and the answer's last score.
    /// Minus infinity when every label was visited.
    #[serde(deserialize_with = "null_is_minus_infinity")]
    pub bound: f32,
    /// Labels found in walked buckets, or all labels after a scan. A label in two of them counts
    /// twice.
    pub labels_touched: u64,
    /// Buckets walked.
    pub buckets_walked: u64,
    /// True if every label was looked at.
    pub scanned: bool,
}

/// JSON has no infinite numbers, and `null` for them.
fn null_is_minus_infinity<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
    Ok(Option::<f32>::deserialize(from)?.unwrap_or(f32::NEG_INFINITY))
}

/// Memory of one thread's decodes, reused from query to query.
///
/// At most about 8 bytes per bucket and repetition, 64 KiB for a block (for the median 4 KiB more per
/// repetition), and the k best; a scan adds the same for each of its 64 parts.
#[derive(Clone, Debug, Default)]
pub struct DecodeScratch {
    block: BlockScratch,
    heads: Heads,
    walk: WalkScratch,
    scan: ScanScratch,
    top: TopK,
}

impl Assignment {
    /// The k best labels by scoring all of them, best first, into `out`. Fewer if there are fewer
    /// labels.
    ///
    /// *Cost*: at most L R look-ups, on the ambient thread pool. Allocates nothing once `scratch` and `out`
    /// have grown.
    ///
    /// *Determinism*: the same labels and score bits for any number of threads and any instruction
    /// set.
    ///
    /// # Panics
    /// If `scores` does not have the repetitions and buckets of the assignment.
    pub fn scan(
        &self,
        scores: &BucketScores<'_>,
        decoder: Decoder,
        k: usize,
        scratch: &mut DecodeScratch,
        out: &mut Vec<Scored>,
    ) {
        self.assert_shape(scores);
        scan::scan(self, scores, decoder, k.min(self.n_labels()), None, &mut scratch.scan, &mut scratch.top);
        self.finish(decoder, &mut scratch.top, out);
    }

    /// The k best labels by walking the best buckets, best first, into `out`; returns what is proven
    /// about them.
    ///
    /// *Cost*: 8 bytes read per bucket and repetition, and the labels of the buckets walked. Allocates
    /// nothing once `scratch` and `out` have grown. Runs on one thread, except for the scan that an exact
    /// decode may end in.
    ///
    /// *Determinism*: with [`Effort::Exact`], the labels and score bits of [`Assignment::scan`].
    ///
    /// # Errors
    /// If the family needs lists and they were not built.
    ///
    /// # Panics
    /// If `scores` does not have the repetitions and buckets of the assignment.
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
