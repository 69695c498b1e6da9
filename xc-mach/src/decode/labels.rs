//! Scores of given labels.

use super::block::statistic_of;
use super::{BucketScores, DecodeScratch, Decoder};
use crate::assign::Assignment;
use xc_sparse::rank::LabelId;

impl Assignment {
    /// Scores of some labels, in their order, into `out`: the bits that [`Assignment::scan`] gives
    /// them.
    ///
    /// *Cost*: R hashes and look-ups a label.
    ///
    /// # Panics
    /// If `scores` has not the repetitions and buckets of the assignment, or a label is not below
    /// `n_labels()`.
    pub fn score_labels(
        &self,
        scores: &BucketScores<'_>,
        decoder: Decoder,
        labels: &[LabelId],
        scratch: &mut DecodeScratch,
        out: &mut Vec<f32>,
    ) {
        self.assert_shape(scores);
        out.clear();
        let n_repetitions = self.n_repetitions();
        let values = &mut scratch.walk.values;
        let network = scratch.block.network(decoder, n_repetitions);
        for &label in labels {
            assert!((label as usize) < self.n_labels(), "label {label} of {}", self.n_labels());
            let statistic = statistic_of(self, scores, decoder, label, network, values);
            out.push(decoder.score(statistic, n_repetitions, self.n_buckets()));
        }
    }
}
