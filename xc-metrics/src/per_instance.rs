//! Instances by how badly their lists rank the true labels.

use super::{EvaluateError, EvaluatorParams, instance::Layout};
use rayon::prelude::*;
use xc_sparse::{
    LabelRows,
    rank::{RankedBatch, Scored},
};

/// Metrics of one instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceFigures {
    /// Its number, from 0.
    pub instance: usize,
    /// `P@k`.
    pub precision: f64,
    /// `nDCG@k`.
    pub ndcg: f64,
    /// `recall@k`.
    pub recall: f64,
}

/// The `n` instances with the smallest `nDCG@k`; of equal ones those whose best wrong label scores most, then in order.
/// Instances without true labels, or excluded, are left out; pairs to ignore are. Weights have no effect.
///
/// # Errors
/// Numbers of instances that differ.
pub fn worst_instances(
    truth: &LabelRows,
    predictions: &RankedBatch,
    params: &EvaluatorParams,
    k: usize,
    n: usize,
) -> Result<Vec<InstanceFigures>, EvaluateError> {
    if truth.len() != predictions.len() {
        return Err(EvaluateError::Instances { truth: truth.len(), predictions: predictions.len() });
    }
    let layout = Layout::new(vec![k], false, false);
    let judge = |instance: usize| {
        if params.exclude.contains(&instance) {
            return None;
        }
        let ignored = params.filter.row(instance);
        let kept = |label: &u32| ignored.binary_search(label).is_err();
        let labels: Vec<u32> = truth.row(instance).iter().copied().filter(kept).collect();
        let list: Vec<Scored> = predictions.row(instance).iter().copied().filter(|s| kept(&s.label)).collect();
        let ranked: Vec<u32> = list.iter().map(|s| s.label).collect();
        let hits: Vec<bool> = ranked.iter().map(|label| labels.binary_search(label).is_ok()).collect();
        let mut columns = vec![0.0; layout.width()];
        layout.fill(&labels, &ranked, 0, &hits, 1.0, None, &mut Vec::new(), &mut columns);
        let wrong = list.iter().zip(&hits).find(|(_, hit)| !**hit).map_or(f32::NEG_INFINITY, |(item, _)| item.score);
        let figures = InstanceFigures { instance, precision: columns[1], ndcg: columns[2], recall: columns[3] };
        (!labels.is_empty()).then_some((figures, wrong))
    };
    let mut all: Vec<(InstanceFigures, f32)> = (0..truth.len()).into_par_iter().filter_map(judge).collect();
    all.sort_by(|(a, wrong_a), (b, wrong_b)| {
        a.ndcg.total_cmp(&b.ndcg).then(wrong_b.total_cmp(wrong_a)).then(a.instance.cmp(&b.instance))
    });
    all.truncate(n);
    Ok(all.into_iter().map(|(figures, _)| figures).collect())
}
