//! The same bytes at any number of threads.

use crate::reference::{features, targets};
use crate::sparse::{self, Data};
use xc_nn::encoder::{Bag, Stack};
use xc_nn::head::Dense;
use xc_nn::{
    Activation, Activations, Batch, Examples, Head, Loss, Mode, Network, Optimizer, Rows, Scratch, Step, StepParams,
    UpdateRule,
};

fn bytes_after_training(threads: usize, loss: Loss, optimizer: Optimizer, clip_norm: Option<f64>) -> Vec<u32> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let (n, n_features, n_outputs) = (150, 400, 130);
        let (x, y) = (features(n, n_features), targets(n, n_outputs));
        let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
        let encoder = Stack::new(Bag::new(n_features, 33, Activation::Relu, 0.1, 1));
        let mut network = Network::new(encoder.push(65, Activation::Relu, 0.2, 1), Dense::new(n_outputs, 65, 1));
        network.prepare(optimizer, optimizer);
        let (mut batch, mut workspace) = (Batch::default(), Scratch::default());
        for number in 0..6u64 {
            let rows: Vec<u32> = (0..n as u32).filter(|i| i % 6 != number as u32 % 6).collect();
            batch.fill(&examples, &rows);
            let params = StepParams {
                clip_norm,
                ..StepParams::new(Step { number, epoch: 0, seed: 3 }, UpdateRule { optimizer, rate: 0.01 })
            };
            assert!(network.step(&batch, loss, &params, &mut workspace).unwrap().is_finite());
        }
        network.parameters().iter().flat_map(|p| p.parameter.values().iter().map(|v| v.to_bits())).collect()
    })
}

#[test]
fn threads_do_not_change_a_bit() {
    let cases: [(Loss, Optimizer, Option<f64>); 3] = [
        (Loss::Softmax, Optimizer::adam().with_weight_decay(0.01), Some(0.5)),
        (Loss::Bce, Optimizer::momentum(), None),
        (Loss::Softmax, Optimizer::sgd(), None),
    ];
    for (loss, optimizer, clip) in cases {
        let one = bytes_after_training(1, loss, optimizer, clip);
        assert_eq!(one, bytes_after_training(2, loss, optimizer, clip));
        assert_eq!(one, bytes_after_training(3, loss, optimizer, clip));
    }
}

/// The squared norms of the gradients of a batch at several numbers of threads, as bits.
fn squared_norms<H: Head<Input = Activations>>(head: &H, data: &Data) -> Vec<u64> {
    let of = |threads| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let (mut scratch, batch) = (H::Scratch::default(), data.batch());
            let mode = Mode::Train(Step { number: 0, epoch: 0, seed: 3 });
            head.loss(&data.input(), batch.targets(), Loss::SquaredHinge, mode, &mut scratch).unwrap();
            head.squared_norm(&data.input(), &mut scratch).unwrap()
        })
    };
    let found: Vec<f64> = [1, 2, 3, 7].map(of).to_vec();
    assert!(found[0].is_finite() && found[0] > 0.0, "{found:?}");
    found.into_iter().map(f64::to_bits).collect()
}

/// A norm scales all gradients of a step, and a change of its last bit seldom shows in them: it is compared itself. There are
/// many more outputs than an item of work has, so that sums by thread would differ.
#[test]
fn threads_do_not_change_a_bit_of_the_norm_of_a_gradient() {
    let data = Data::new(24, 20, 15_000, 6);
    let sparse = |uniform| squared_norms(&sparse::head(15_000, 20, sparse::params(6, uniform), 2), &data);
    for norms in [sparse(false), sparse(true), squared_norms(&Dense::new(15_000, 20, 1), &data)] {
        assert!(norms.iter().all(|norm| *norm == norms[0]), "{norms:x?}");
    }
}
