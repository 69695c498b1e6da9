//! What becomes of an answer once its labels are found.

use super::query::{BatchError, QueryError, QueryOptions};
use crate::calibrate::Calibration;
use xc_sparse::rank::{LabelId, RankedBatch, Scored};

/// What is left out of an answer, and what becomes of its scores.
pub(crate) struct Rest<'a> {
    pub(crate) options: &'a QueryOptions<'a>,
    pub(crate) excluded: &'a [LabelId],
    /// `None` leaves scores as they are.
    pub(crate) calibration: Option<&'a Calibration>,
}

impl Rest<'_> {
    /// Leaves out what is excluded or scores too little. Labels stand best first, so what is too
    /// small stands at the end.
    pub(crate) fn finish(&self, labels: &mut Vec<Scored>) -> Result<(), QueryError> {
        let Self { options, excluded, calibration } = self;
        if !excluded.is_empty() {
            labels.retain(|s| excluded.binary_search(&s.label).is_err());
            labels.truncate(options.top_k);
        }
        if labels.iter().any(|s| s.score.is_nan()) {
            return Err(QueryError::Scores);
        }
        if let Some(calibration) = calibration {
            calibration.apply(labels);
            if let Some(kind) = options.scores.threshold {
                labels.retain(|s| s.score >= calibration.thresholds.of(kind, s.label));
            }
        }
        if let Some(min) = options.min_score {
            labels.truncate(labels.partition_point(|s| s.score >= min));
        }
        Ok(())
    }

    pub(crate) fn finish_batch(&self, ranked: RankedBatch, known_terms: &[usize]) -> Result<RankedBatch, BatchError> {
        let unknown = |query: usize| known_terms.get(query) == Some(&0);
        let plain = self.excluded.is_empty() && self.options.min_score.is_none() && self.calibration.is_none();
        let plain = plain && !known_terms.contains(&0);
        if plain && ranked.iter().flatten().all(|s| !s.score.is_nan()) {
            return Ok(ranked);
        }
        let (mut kept, mut row) = (RankedBatch::new(), Vec::new());
        for (query, labels) in ranked.iter().enumerate() {
            row.clear();
            row.extend_from_slice(if unknown(query) { &[] } else { labels });
            self.finish(&mut row).map_err(|source| BatchError { query, source })?;
            kept.push_row(&row);
        }
        Ok(kept)
    }
}
