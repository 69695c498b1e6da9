//! What the network knows about instances that it has not learned from.

use super::data::Sample;
use crate::{Activations, Batch, Encoder, Head, Loss, Network, Workspace};
use rayon::prelude::*;
use serde::Serialize;
use xc_sparse::rank::{Scored, TopK};

/// How well validation instances are answered. An instance without a true output counts as 0 in P@k.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// Mean loss.
    pub loss: f64,
    /// Share of the best output, the best three and the best five that are true: P@1, P@3, P@5.
    pub precision: [f64; 3],
}

const AT: [usize; 3] = [1, 3, 5];

/// Judges a network. *Cost*: a forward pass over all rows of the sample.
pub fn evaluate<E: Encoder, H: Head>(
    network: &Network<E, H>,
    sample: &Sample<'_>,
    loss: &dyn Loss,
    batch_size: usize,
    workspace: &mut Workspace<E, H>,
) -> Validation {
    let (mut batch, mut logits) = (Batch::default(), Activations::default());
    let mut sums = [0.0f64; 4];
    for rows in sample.rows().chunks(batch_size.max(1)) {
        batch.fill(sample.examples(), rows);
        network.logits(&batch, &mut logits, workspace);
        let (targets, width) = (batch.targets(), logits.width().max(1));
        let mut judged = vec![[0.0f64; 4]; rows.len()];
        let pairs = judged.par_iter_mut().zip(logits.values_mut().par_chunks_exact_mut(width));
        pairs.enumerate().for_each(|(i, (out, row))| {
            let positives = targets.row(i);
            let mut top = TopK::new(AT[2]);
            row.iter().zip(0..).for_each(|(&score, label)| top.push(Scored { label, score }));
            let is_true = |s: &Scored| positives.binary_search(&s.label).is_ok();
            let hits: Vec<bool> = top.sorted().iter().map(is_true).collect();
            out[0] = loss.gradient(row, positives, 1.0);
            for (out, k) in out[1..].iter_mut().zip(AT) {
                *out = hits.iter().take(k).filter(|&&hit| hit).count() as f64 / k as f64;
            }
        });
        for one in &judged {
            sums.iter_mut().zip(one).for_each(|(sum, v)| *sum += v);
        }
    }
    let n = sample.rows().len().max(1) as f64;
    Validation { loss: sums[0] / n, precision: [sums[1] / n, sums[2] / n, sums[3] / n] }
}
