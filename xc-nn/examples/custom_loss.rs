//! A loss of your own: the focal loss (Lin et al. 2017), which gives labels that are right already less weight.

use xc_dense::DenseRows;
use xc_nn::loss::LossFunction;
use xc_nn::*;
use xc_sparse::LabelRows;

/// `-(1 - p)^2 ln p`, p being the probability of what is true. As the name says, its power is 2.
#[derive(Debug)]
struct Focal;

impl LossFunction for Focal {
    fn name(&self) -> &'static str {
        "focal-2"
    }
    fn loss_and_gradient(&self, z: f32, is_true: bool) -> (f32, f32) {
        let z = if is_true { z } else { -z };
        let (p, ln_p) = (1.0 / (1.0 + (-z).exp()), -(-z).max(0.0) - (-z.abs()).exp().ln_1p());
        let slope = (1.0 - p).powi(2) * (2.0 * p * ln_p - (1.0 - p));
        (-(1.0 - p).powi(2) * ln_p, if is_true { slope } else { -slope })
    }
    fn score(&self, z: f32) -> f32 {
        1.0 / (1.0 + (-z).exp())
    }
}

/// Trains, and says whether it learned.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let x: Vec<f32> = (0..100 * 16).map(|at| f32::from(u8::from(at / 16 % 16 == at % 16))).collect();
    let (mut batch, y) = (Batch::default(), LabelRows::from_lists((0..100).map(|i| [i % 16]), 1000)?);
    batch.fill(&Examples::try_new(Rows::Dense(DenseRows::new(&x, 16)), &y)?, &Vec::from_iter(0..100));
    let (mut network, mut scratch) =
        (Network::new(encoder::Precomputed::new(16), head::Dense::new(1000, 16, 1)), Scratch::default());
    let rule = UpdateRule { optimizer: Optimizer::adam(), rate: 0.05 };
    network.prepare(rule.optimizer, rule.optimizer);
    let step = |number| StepParams::new(Step { number, ..Step::default() }, rule);
    let losses = (0..100).map(|number| network.step(&batch, Loss::Own(&Focal), &step(number), &mut scratch));
    let losses = losses.collect::<Result<Vec<f64>, _>>()?;
    if losses[99] < 0.1 * losses[0] { Ok(()) } else { Err("it did not learn".into()) }
}
