//! A training loop of your own: the learning rate is halved when the loss stands still.
//!
//! ```text
//! cargo run --release -p xc-nn --example custom_loop
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use xc_nn::encoder::Bag;
use xc_nn::head::{Dense, Ranked};
use xc_nn::{Activation, Batch, Examples, Loss, Network, Optimizer, Rows, Scratch, Step, StepParams, UpdateRule};
use xc_sparse::{CsrMatrix, LabelRows};

const N: usize = 400;
const N_FEATURES: usize = 60;
const N_LABELS: usize = 20;

/// Trains, and says whether it learned.
pub fn main() -> Result<(), Box<dyn Error>> {
    // Instance i has the features i and 3 i, and the label that both point at.
    let indices = (0..N).flat_map(|i| {
        let mut pair = [(i % 30) as u32, (30 + 3 * i % 30) as u32];
        pair.sort_unstable();
        pair
    });
    let indptr = (0..=N).map(|i| 2 * i).collect();
    let x = CsrMatrix::try_new((N, N_FEATURES), indptr, indices.collect(), vec![0.7f32; 2 * N])?;
    let y = LabelRows::from_lists((0..N).map(|i| [(i % 30 % N_LABELS) as u32]), N_LABELS)?;
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y)?;

    let mut network = Network::new(Bag::new(N_FEATURES, 32, Activation::Relu, 0.0, 1), Dense::new(N_LABELS, 32, 1));
    let optimizer = Optimizer::adam();
    network.prepare(optimizer, optimizer);
    let (mut batch, mut scratch) = (Batch::default(), Scratch::default());
    let (mut rate, mut last, mut number) = (0.02, f64::INFINITY, 0);
    for epoch in 0..20 {
        let mut sum = 0.0;
        for first in (0..N as u32).step_by(50) {
            batch.fill(&examples, &(first..first + 50).collect::<Vec<_>>());
            let at = Step { number, epoch, seed: 1 };
            let params = StepParams::new(at, UpdateRule { optimizer, rate });
            sum += network.step(&batch, Loss::Softmax, &params, &mut scratch)?;
            number += 1;
        }
        println!("epoch {epoch}: loss {:.4} at rate {rate}", sum / 8.0);
        if sum > 0.99 * last {
            rate /= 2.0;
        }
        last = sum;
    }

    batch.fill(&examples, &(0..N as u32).collect::<Vec<_>>());
    let mut ranked = Ranked::default();
    network.rank(&batch, None, 1, &mut scratch, &mut ranked)?;
    let hits = ranked.best.iter().enumerate().filter(|(i, best)| y.row(*i).contains(&best[0].label)).count();
    println!("P@1 {:.3}", hits as f64 / N as f64);
    assert!(hits * 10 > N * 9, "it learned {hits} of {N}");
    Ok(())
}
