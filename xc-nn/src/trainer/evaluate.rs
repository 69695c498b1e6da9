//! What the network knows about instances that it has not learned from.

use super::{Monitor, Subset};
use crate::head::Ranked;
use crate::{Batch, Encoder, Head, Loss, Network, Scratch, StepError};
use xc_buffer::Cancel;
use xc_metrics::{EvaluateError, Evaluator, EvaluatorParams, Metric, MetricReport, Propensity, PropensityError};

/// Ranks that are always looked at; P@k and the like of each are in every log.
const KS: [usize; 3] = [1, 3, 5];
/// Ranks that metrics without a cut look at.
const WHOLE: usize = 100;

/// How well validation instances are answered.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Mean loss.
    pub loss: f64,
    /// The metrics at 1, 3, 5 and the monitor's k.
    pub metrics: MetricReport,
}

/// What is looked at for a monitor.
#[derive(Clone, Debug)]
pub struct ValidationParams {
    metrics: EvaluatorParams,
    /// Best labels of each instance.
    depth: usize,
}

impl ValidationParams {
    /// The metrics at 1, 3, 5 and what the monitor names. Propensities come from the instances of
    /// `train`, with the constants of the literature.
    ///
    /// # Errors
    /// The monitor needs propensities, and there are too few instances for them.
    pub fn new(monitor: Monitor, train: &Subset<'_>) -> Result<Self, PropensityError> {
        let targets = train.examples().targets();
        let mut metrics = EvaluatorParams { ks: KS.to_vec(), ..EvaluatorParams::new(targets.n_labels()) };
        let mut depth = KS[2];
        if let Monitor::Metric(metric) = monitor {
            metrics.ks.extend(metric.k().filter(|k| !KS.contains(k)));
            depth = depth.max(metric.k().unwrap_or(WHOLE));
            if let Metric::Psp(_) | Metric::Psndcg(_) = metric {
                let counts = targets.counts(train.rows());
                metrics.propensity = Some(Propensity::from_counts(train.len(), &counts, 0.55, 1.5)?);
            }
        }
        Ok(Self { metrics, depth })
    }
}

/// Evaluates a network on a subset: the mean loss, and metrics. Answers are counted as a model gives them: texts
/// without a known word ([`Subset::with_texts`]) have none. Nothing comes back where `cancel` asked to stop, which it is
/// asked before each batch.
///
/// *Cost*: a forward pass over all rows of the subset.
///
/// # Errors
/// A part of the network fails; its answers are no numbers; the subset is empty.
pub fn evaluate<E: Encoder, H: Head<Input = E::Output>>(
    network: &Network<E, H>,
    subset: &Subset<'_>,
    loss: Loss,
    batch_size: usize,
    params: &ValidationParams,
    scratch: &mut Scratch<E, H>,
    cancel: &dyn Cancel,
) -> Result<Option<Validation>, ValidateError> {
    let mut evaluator = Evaluator::new(params.metrics.clone()).map_err(EvaluateError::from)?;
    let (mut batch, mut ranked, mut sum) = (Batch::default(), Ranked::default(), 0.0);
    for rows in subset.rows().chunks(batch_size.max(1)) {
        if cancel.cancelled() {
            return Ok(None);
        }
        batch.fill(subset.examples(), rows);
        let targets = batch.targets();
        network.rank(&batch, Some(loss), params.depth, scratch, &mut ranked)?;
        for (i, best) in ranked.best.iter().enumerate() {
            sum += ranked.losses[i];
            let best = if subset.is_unanswered(rows[i]) { &[] } else { best };
            evaluator.add(targets.row(i), best)?;
        }
    }
    Ok(Some(Validation { loss: sum / subset.len().max(1) as f64, metrics: evaluator.finish()? }))
}

/// Why a network cannot be evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// A part of the network failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Its answers cannot be evaluated.
    #[error("validation")]
    Evaluate(#[from] EvaluateError),
}
