//! A head of your own: labels have vectors that are given, as of their texts, and the encoder below learns to meet them.

use xc_dense::DenseRows;
use xc_nn::*;
use xc_sparse::LabelRows;

/// `logit[l] = labels[l] . x`; 16 values a label.
struct Given(Vec<f32>);
const WIDTH: usize = 16;
impl Head for Given {
    type Input = Activations;
    type Scratch = Activations; // the logits of a step, then their gradient
    fn width(&self) -> usize {
        WIDTH
    }
    fn labels(&self) -> std::ops::Range<u32> {
        0..(self.0.len() / WIDTH) as u32
    }
    fn logits(&self, x: &Activations, z: &mut Activations, _: &mut Activations) -> Result<(), StepError> {
        z.reshape(x.len(), self.0.len() / WIDTH);
        let dot = |i, label: &[f32]| label.iter().zip(x.row(i)).map(|(f, x)| f * x).sum::<f32>();
        let dots = (0..x.len()).flat_map(|i| self.0.chunks(WIDTH).map(move |label| dot(i, label)));
        z.values_mut().iter_mut().zip(dots).for_each(|(z, dot)| *z = dot);
        Ok(())
    }
    fn loss(&self, x: &Activations, y: Targets<'_>, by: Loss, _: Mode, g: &mut Activations) -> Result<f64, StepError> {
        self.logits(x, g, &mut Activations::default())?;
        let (n, rows) = (x.len(), g.values_mut().chunks_mut(self.0.len() / WIDTH));
        Ok(rows.enumerate().map(|(i, row)| by.of_row(row, y.row(i), 1.0 / n as f32)).sum::<f64>() / n as f64)
    }
    fn backward(&self, dx: &mut Activations, g: &mut Activations) -> Result<(), StepError> {
        dx.reshape(g.len(), WIDTH);
        let sum = |i, u| self.0.chunks(WIDTH).zip(g.row(i)).map(|(label, g): (&[f32], &f32)| g * label[u]).sum();
        dx.values_mut().iter_mut().enumerate().for_each(|(at, dx)| *dx = sum(at / WIDTH, at % WIDTH));
        Ok(())
    }
    fn update(&mut self, _: &Activations, _: &mut Activations, _: &Update) -> Result<(), StepError> {
        Ok(())
    }
}

impl state::State for Given {
    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "given": self.0 })
    }
}

/// Trains, and says whether it learned.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let labels: Vec<f32> = (0..40 * WIDTH).map(|i| ((i * i * 7 + i) as f32).sin()).collect();
    let turned: Vec<f32> = labels.chunks(WIDTH).flat_map(|label| label.iter().rev().copied()).collect();
    let (mut batch, y) = (Batch::default(), LabelRows::from_lists((0..40).map(|label| [label]), 40)?);
    batch.fill(&Examples::try_new(Rows::Dense(DenseRows::new(&turned, WIDTH)), &y)?, &Vec::from_iter(0..40));
    let encoder = encoder::Stack::new(encoder::Precomputed::new(WIDTH)).push(WIDTH, Activation::Identity, 0.0, 1);
    let (mut network, mut scratch) = (Network::new(encoder, Given(labels)), Scratch::default());
    let at = |number| Step { number, ..Step::default() };
    let step = |number| StepParams::new(at(number), UpdateRule { optimizer: Optimizer::sgd(), rate: 0.1 });
    let mut losses = (0..100).map(|number| network.step(&batch, Loss::Softmax, &step(number), &mut scratch));
    let (first, last) = (losses.next().ok_or("no step")??, losses.last().ok_or("one step")??);
    if last < 0.3 * first { Ok(()) } else { Err("it did not learn".into()) }
}
