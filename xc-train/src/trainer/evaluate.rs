//! What the network knows about instances that it has not learned from.

use super::data::Sample;
use super::exact;
use crate::{Batch, Encoder, Head, Loss, Network, Scratch, StepError};
use serde::{Deserialize, Serialize};
use xc_sparse::rank::Scored;

/// How well validation instances are answered. An instance without a true output counts as 0 in P@k.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Mean loss.
    #[serde(with = "exact")]
    pub loss: f64,
    /// Share of the best output, the best three and the best five that are true: P@1, P@3, P@5.
    pub precision: [f64; 3],
}

const AT: [usize; 3] = [1, 3, 5];

/// Judges a network. *Cost*: a forward pass over all rows of the sample.
///
/// # Errors
/// A part of the network fails.
pub fn evaluate<E: Encoder, H: Head<Input = E::Output>>(
    network: &Network<E, H>,
    sample: &Sample<'_>,
    loss: Loss,
    batch_size: usize,
    scratch: &mut Scratch<E, H>,
) -> Result<Validation, StepError> {
    let mut batch = Batch::default();
    let mut sums = [0.0f64; 4];
    for rows in sample.rows().chunks(batch_size.max(1)) {
        batch.fill(sample.examples(), rows);
        let targets = batch.targets();
        for (i, ranked) in network.rank(&batch, Some(loss), AT[2], scratch)?.iter().enumerate() {
            let positives = targets.row(i);
            let is_true = |s: &Scored| positives.binary_search(&s.label).is_ok();
            sums[0] += ranked.loss;
            for (sum, k) in sums[1..].iter_mut().zip(AT) {
                *sum += ranked.best.iter().take(k).filter(|s| is_true(s)).count() as f64 / k as f64;
            }
        }
    }
    let n = sample.rows().len().max(1) as f64;
    Ok(Validation { loss: sums[0] / n, precision: [sums[1] / n, sums[2] / n, sums[3] / n] })
}
