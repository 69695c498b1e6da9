//! An encoder of your own: each value of a vector gets a learned weight.

use xc_dense::DenseRows;
use xc_nn::*;
use xc_sparse::LabelRows;

/// `y = weights * x`, value by value. The parameter is all that a checkpoint needs of it.
struct Scale(Parameter);

impl Encoder for Scale {
    type Output = Activations;
    type Scratch = ();
    fn width(&self) -> usize {
        self.0.width()
    }
    fn forward(&self, batch: &Batch, _: Mode, y: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        let x = batch.dense().ok_or_else(|| StepError::new("scale", "sparse rows, expected vectors"))?;
        y.reshape(batch.len(), self.width());
        let products = x.values().iter().zip(self.0.values().iter().cycle()).map(|(x, w)| x * w);
        y.values_mut().iter_mut().zip(products).for_each(|(y, product)| *y = product);
        Ok(())
    }
    fn update(&mut self, batch: &Batch, g: &Activations, (): &mut (), update: &Update) -> Result<(), StepError> {
        let x = batch.dense().ok_or_else(|| StepError::new("scale", "sparse rows, expected vectors"))?;
        let column = |j| (0..batch.len()).map(|i| g.row(i)[j] * x.row(i)[j]).sum();
        let gradient: Vec<f32> = (0..self.width()).map(column).collect();
        self.0.rows_mut().update(&gradient, &update.change);
        Ok(())
    }
}

impl state::State for Scale {
    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "scale": self.0.width() })
    }
    fn parameters(&self) -> Vec<Named<&Parameter>> {
        vec![Named { name: "scale.weights".into(), parameter: &self.0 }]
    }
    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        vec![Named { name: "scale.weights".into(), parameter: &mut self.0 }]
    }
}

/// Trains, and says whether it learned.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The label is the sign of the first value, which the second drowns until a weight finds it.
    let x: Vec<f32> = (0..400).map(|i| if i % 2 == 0 { (i as f32).sin() } else { 9.0 * (i as f32).cos() }).collect();
    let y = LabelRows::from_lists(x.chunks(2).map(|x| [u32::from(x[0] > 0.0)]), 2)?;
    let mut batch = Batch::default();
    batch.fill(&Examples::try_new(Rows::Dense(DenseRows::new(&x, 2)), &y)?, &(0..200).collect::<Vec<_>>());
    let mut network = Network::new(Scale(Parameter::new(vec![1.0; 2], 2, Decay::No)), head::Dense::new(2, 2, 1));
    let rule = UpdateRule { optimizer: Optimizer::adam(), rate: 0.05 };
    network.prepare(rule.optimizer, rule.optimizer);
    let (mut scratch, mut losses) = (Scratch::default(), Vec::new());
    for number in 0..200 {
        let params = StepParams::new(Step { number, ..Step::default() }, rule);
        losses.push(network.step(&batch, Loss::Softmax, &params, &mut scratch)?);
    }
    if losses[199] < 0.3 * losses[0] { Ok(()) } else { Err("it did not learn".into()) }
}
