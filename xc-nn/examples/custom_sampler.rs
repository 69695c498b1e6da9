//! A sampler of your own: a step scores the true labels, those that come right after them, and 50
//! of all others.

use xc_buffer::DType;
use xc_dense::DenseRows;
use xc_nn::head::sparse::{Sparse, SparseParams};
use xc_nn::sampler::{Candidates, LabelWeights, Mixture, Queries, Sampler};
use xc_nn::*;
use xc_sparse::LabelRows;

/// The label after each true one; it remembers nothing.
#[derive(Clone, Debug)]
struct Neighbours;

impl Sampler for Neighbours {
    fn sample(
        &self,
        _: Step,
        queries: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: std::ops::Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let after = (0..queries.targets.len()).flat_map(|i| queries.targets.row(i)).map(|label| label + 1);
        let list = std::collections::BTreeSet::from_iter(after.filter(|label| labels.contains(label)));
        list.iter().for_each(|&label| out.push(label, 1.0, 0.0));
        out.end_list();
        Ok(())
    }
    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl state::State for Neighbours {
    fn settings(&self) -> serde_json::Value {
        "neighbours".into()
    }
}

/// Trains, and says whether it learned.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let x: Vec<f32> = (0..100 * 16).map(|at| f32::from(u8::from(at / 16 % 16 == at % 16))).collect();
    let y = LabelRows::from_lists((0..100).map(|i| [i % 16]), 1000)?;
    let mut batch = Batch::default();
    batch.fill(&Examples::try_new(Rows::Dense(DenseRows::new(&x, 16)), &y)?, &(0..100).collect::<Vec<_>>());
    let params = SparseParams { per_output: 16, uniform: true, weights: DType::F32, moments: DType::F32, rewire: None };
    let head = Sparse::new(1000, 16, params, Init::from(1))?;
    let head = head.with_sampler(Some(Box::new(Mixture::new(Box::new(Neighbours), 50))));
    let mut network = Network::new(encoder::Precomputed::new(16), head);
    let rule = UpdateRule { optimizer: Optimizer::adam(), rate: 0.05 };
    network.prepare(rule.optimizer, rule.optimizer);
    let (mut scratch, mut losses) = (Scratch::default(), Vec::new());
    for number in 0..200 {
        let step = StepParams::new(Step { number, epoch: 0, seed: 1 }, rule);
        losses.push(network.step(&batch, Loss::SquaredHinge, &step, &mut scratch)?);
    }
    if losses[199] < 0.3 * losses[0] { Ok(()) } else { Err("it did not learn".into()) }
}
