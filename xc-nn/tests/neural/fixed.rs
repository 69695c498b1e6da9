//! A sampler for tests.

use std::ops::Range;
use xc_nn::sampler::{Candidates, LabelWeights, Queries, Sampler};
use xc_nn::state::State;
use xc_nn::{Step, StepError};

/// Lists of (label, weight, log q), the same in every step; hears what moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fixed {
    pub(crate) lists: Vec<Vec<(u32, f32, f32)>>,
    /// Whether the head has a row of weights a label.
    pub(crate) has_rows: bool,
    pub(crate) heard: Vec<(u32, f32)>,
}

/// Logarithm of the chance of a label in any of the lists.
pub(crate) fn log_q(label: u32) -> f32 {
    -0.2 - 0.3 * (label % 7) as f32
}

impl Sampler for Fixed {
    fn sample(
        &self,
        _: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let shape = weights.map(|weights| (weights.n(), weights.width()));
        assert_eq!(shape, self.has_rows.then_some((labels.len(), queries.vectors.width())));
        for list in &self.lists {
            list.iter().for_each(|&(label, weight, log_q)| out.push(label, weight, log_q));
            out.end_list();
        }
        Ok(())
    }

    fn log_q(
        &self,
        _: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        _: Range<u32>,
        _: usize,
        wanted: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        out.clear();
        out.extend(wanted.iter().map(|&label| log_q(label)));
        Ok(())
    }

    fn wants_moved(&self) -> bool {
        self.has_rows
    }

    fn changed(
        &mut self,
        _: Step,
        _: Queries<'_>,
        labels: &[u32],
        moved: &[f32],
        _: Option<LabelWeights<'_>>,
    ) -> Result<(), StepError> {
        assert_eq!(moved.len(), if self.has_rows { labels.len() } else { 0 });
        self.heard = labels.iter().copied().zip(moved.iter().copied()).collect();
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl State for Fixed {
    fn settings(&self) -> serde_json::Value {
        "fixed".into()
    }
}
