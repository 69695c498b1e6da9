//! The labels with the largest logits, found by scoring all labels.

use super::error::{SampleError, rows};
use super::lists::exact_lists;
use super::subset::within;
use super::{Candidates, LabelWeights, Lists, Queries, Sampler};
use crate::state::State;
use crate::{Step, StepError};
use rayon::prelude::*;
use serde_json::json;
use std::ops::Range;
use std::time::Instant;
use xc_buffer::FloatSlice;
use xc_dense::{MatMut, MatRef, MatmulPrecision, Start, product};
use xc_sparse::rank::{Scored, TopK};

/// Labels that are scored at a time.
const BLOCK: usize = 2048;
/// Scores that one comparison rules out.
const GROUP: usize = 16;

/// The false labels with the largest logits, exactly. It costs as much as all logits, so it serves
/// as a reference and saves no time.
///
/// The labels are selected, not drawn: weight 1 and log q 0 for any weighting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopLogits {
    per_instance: usize,
    lists: Lists,
}

impl TopLogits {
    /// `per_instance` labels per instance; one list per batch with those of all instances.
    pub fn new(per_instance: usize) -> Self {
        Self { per_instance, lists: Lists::Shared }
    }

    /// One list per batch, or one per instance.
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }
}

impl Sampler for TopLogits {
    fn sample(
        &self,
        _: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let begin = Instant::now();
        let mut best = top(queries, rows(weights, &labels)?, &labels, self.per_instance)?;
        let best: Vec<&[Scored]> = best.iter_mut().map(TopK::best).collect();
        exact_lists(self.lists, best.len(), out, |place, to| to.extend(best[place].iter().map(|s| s.label)))?;
        out.cost_mut().search += begin.elapsed();
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}

/// The `k` best false labels of each instance.
pub(super) fn top(
    queries: Queries<'_>,
    weights: LabelWeights<'_>,
    labels: &Range<u32>,
    k: usize,
) -> Result<Vec<TopK>, SampleError> {
    let (vectors, width) = (queries.vectors, queries.vectors.width());
    assert!(width == weights.width(), "vectors of {width}, rows of {}", weights.width());
    let inputs = MatRef::new(vectors.values(), vectors.len(), width);
    let mut best = vec![TopK::new(k); vectors.len()];
    let (mut scores, mut widened, mut scratch) = (Vec::new(), Vec::new(), xc_dense::MatmulScratch::default());
    for first in labels.clone().step_by(BLOCK) {
        let block = first..labels.end.min(first + BLOCK as u32);
        let n = block.len();
        let range = block.start as usize * width..block.end as usize * width;
        let values = match weights.rows() {
            FloatSlice::F32(values) => &values[range],
            other => {
                widened.resize(n * width, 0.0);
                other.widen(range, &mut widened);
                &widened
            }
        };
        scores.resize(vectors.len() * n, 0.0);
        let bias = Start::Bias(&weights.biases()[block.start as usize..block.end as usize]);
        let rows = MatRef::new(values, n, width).t();
        product(MatMut::new(&mut scores, vectors.len(), n), inputs, rows, bias, MatmulPrecision::F32, &mut scratch);
        let wild = scores.par_chunks_mut(n).zip(&mut best).enumerate().find_map_first(|(place, (scores, top))| {
            let wild = scores.iter().position(|score| !score.is_finite());
            for &label in within(queries.targets.row(place), &block) {
                // NaN is never kept.
                scores[(label - block.start) as usize] = f32::NAN;
            }
            offer(scores, block.start, top);
            wild.map(|at| (place, block.start + at as u32))
        });
        if let Some((place, label)) = wild {
            let instance = queries.instances[place];
            return Err(match vectors.row(place).iter().all(|v| v.is_finite()) {
                true => SampleError::Weights { label },
                false => SampleError::Vector { instance },
            });
        }
    }
    Ok(best)
}

fn offer(scores: &[f32], first: u32, top: &mut TopK) {
    for (scores, first) in scores.chunks(GROUP).zip((first..).step_by(GROUP)) {
        if top.may_keep(scores) {
            scores.iter().zip(first..).for_each(|(&score, label)| top.push(Scored { label, score }));
        }
    }
}

impl State for TopLogits {
    fn settings(&self) -> serde_json::Value {
        json!({ "top-k": self.per_instance, "lists": self.lists })
    }
}
