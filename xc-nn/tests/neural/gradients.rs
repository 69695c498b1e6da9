//! Every gradient against differences of an f64 network, and of the network itself where dropout is
//! on.

use crate::reference::{Values, features, loss, targets};
use xc_nn::encoder::{Bag, Precomputed, Stack};
use xc_nn::head::Dense;
use xc_nn::state::State;
use xc_nn::{
    Activation, Activations, Batch, DenseRows, Encoder, Examples, Head, Loss, Mode, Network, Optimizer, Rows, Scratch,
    Step, StepParams, UpdateRule,
};
use xc_sparse::{CsrMatrix, LabelRows};

const LOSSES: [Loss; 3] = [Loss::Softmax, Loss::Bce, Loss::SquaredHinge];

fn batch(examples: &Examples<'_>) -> Batch {
    let mut batch = Batch::default();
    batch.fill(examples, &(0..examples.len() as u32).collect::<Vec<_>>());
    batch
}

fn at(number: u64, rate: f64) -> StepParams {
    StepParams::new(Step { number, epoch: 0, seed: 7 }, UpdateRule { optimizer: Optimizer::sgd(), rate })
}

/// With plain descent at rate 1, what a step takes away is the gradient.
fn gradient<E: Encoder + Clone, H: Head<Input = E::Output> + Clone>(
    network: &Network<E, H>,
    batch: &Batch,
    by: Loss,
    params: &StepParams,
) -> Vec<Vec<f64>> {
    let mut changed = network.clone();
    changed.step(batch, by, params, &mut Scratch::default()).unwrap();
    let (before, after) = (Values::of(network), Values::of(&changed));
    before.0.iter().zip(&after.0).map(|((.., a), (.., b))| a.iter().zip(b).map(|(a, b)| a - b).collect()).collect()
}

/// Biases begin at 0, where the sums of an empty row stand on the kink of ReLU: moves them off it.
fn off_the_kink<E: Encoder, H: Head<Input = E::Output>>(mut network: Network<E, H>) -> Network<E, H> {
    for named in network.parameters_mut().into_iter().filter(|named| named.name.ends_with("bias")) {
        let values = named.parameter.values_mut();
        values.iter_mut().enumerate().for_each(|(i, v)| *v = 0.05 + 0.1 * ((i * 5) % 7) as f32 - 0.3);
    }
    network
}

fn check<E: Encoder + Clone, H: Head<Input = E::Output> + Clone>(
    network: Network<E, H>,
    batch: &Batch,
    x: &CsrMatrix,
    y: &LabelRows,
    relu: bool,
) {
    let network = off_the_kink(network);
    for by in LOSSES {
        let got = gradient(&network, batch, by, &at(0, 1.0));
        let values = Values::of(&network);
        let wanted_loss = loss(&values, x, y, by.name(), relu);
        let met_loss = network.loss(batch, by, &mut Scratch::default()).unwrap();
        assert!((met_loss - wanted_loss).abs() < 1e-5 * wanted_loss, "{}: {met_loss} {wanted_loss}", by.name());
        let (mut moved, mut all) = (0, 0);
        for (p, (name, _, list)) in values.0.iter().enumerate() {
            for i in 0..list.len() {
                let shifted = |by_how_much: f64| {
                    let mut values = values.clone();
                    values.0[p].2[i] += by_how_much;
                    loss(&values, x, y, by.name(), relu)
                };
                let expected = (shifted(1e-6) - shifted(-1e-6)) / 2e-6;
                let got = got[p][i];
                assert!(
                    (got - expected).abs() < 1e-6 * expected.abs().max(1.0),
                    "{} {name} {i}: {got} {expected}",
                    by.name()
                );
                all += 1;
                moved += usize::from(expected.abs() > 1e-4);
            }
        }
        assert!(2 * moved > all, "{}: only {moved} of {all} gradients differ from 0", by.name());
    }
}

/// Every value of a matrix, zeros included, row after row.
fn dense(x: &CsrMatrix) -> Vec<f32> {
    let row = |i| {
        let mut values = vec![0.0; x.cols()];
        x.row(i).iter().for_each(|(feature, value)| values[feature as usize] = value);
        values
    };
    (0..x.rows()).flat_map(row).collect()
}

#[test]
fn bag_and_head() {
    let (x, y) = (features(23, 30), targets(23, 9));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    for activation in [Activation::Identity, Activation::Relu] {
        let network = Network::new(Bag::new(30, 6, activation, 0.0, 1), Dense::new(9, 6, 1));
        check(network, &batch(&examples), &x, &y, activation == Activation::Relu);
    }
}

#[test]
fn bag_and_two_layers() {
    let (x, y) = (features(14, 12), targets(14, 7));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let encoder = Stack::new(Bag::new(12, 5, Activation::Relu, 0.0, 5));
    let encoder = encoder.push(8, Activation::Relu, 0.0, 5).push(4, Activation::Relu, 0.0, 5);
    check(Network::new(encoder, Dense::new(7, 4, 5)), &batch(&examples), &x, &y, true);
}

#[test]
fn precomputed_vectors_and_a_layer() {
    let (x, y) = (features(11, 6), targets(11, 5));
    let dense = dense(&x);
    let examples = Examples::try_new(Rows::Dense(DenseRows::new(&dense, 6)), &y).unwrap();
    let encoder = Stack::new(Precomputed::new(6)).push(7, Activation::Relu, 0.0, 3);
    check(Network::new(encoder, Dense::new(5, 7, 3)), &batch(&examples), &x, &y, true);
    check(Network::new(Precomputed::new(6), Dense::new(5, 6, 3)), &batch(&examples), &x, &y, false);
}

#[test]
fn dropout_goes_through_the_gradient() {
    let (x, y) = (features(40, 20), targets(40, 6));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let batch = batch(&examples);
    for activation in [Activation::Identity, Activation::Relu] {
        let encoder = Stack::new(Bag::new(20, 8, activation, 0.4, 5)).push(8, activation, 0.3, 5);
        check_masked(Network::new(encoder, Dense::new(6, 8, 5)), &batch, activation);
    }
}

#[test]
fn dropout_of_precomputed_vectors_goes_through_the_gradient() {
    let (x, y) = (features(40, 20), targets(40, 6));
    let dense = dense(&x);
    let examples = Examples::try_new(Rows::Dense(DenseRows::new(&dense, 20)), &y).unwrap();
    let batch = batch(&examples);
    let vectors = || Precomputed::new(20).with_dropout(0.4);
    check_masked(Network::new(vectors(), Dense::new(6, 20, 5)), &batch, Activation::Identity);
    let encoder = Stack::new(vectors()).push(8, Activation::Relu, 0.3, 5);
    check_masked(Network::new(encoder, Dense::new(6, 8, 5)), &batch, Activation::Relu);
    // Off when answering; in training what is kept is scaled.
    let mut output = Activations::default();
    vectors().forward(&batch, Mode::Predict, &mut output, &mut ()).unwrap();
    assert_eq!(output.values(), dense);
    vectors().forward(&batch, Mode::Train(Step { number: 2, epoch: 0, seed: 1 }), &mut output, &mut ()).unwrap();
    let (mut kept, mut dropped) = (0, 0);
    for (&got, &value) in output.values().iter().zip(&dense).filter(|(_, value)| **value != 0.0) {
        assert!(got == 0.0 || got == value * (1.0 / (1.0 - 0.4)), "{got} of {value}");
        if got == 0.0 { dropped += 1 } else { kept += 1 }
    }
    // About 120 values other than 0: six standard deviations of 5.4 on either side of 0.6.
    let expected = 0.6 * f64::from(kept + dropped);
    assert!((f64::from(kept) - expected).abs() < 33.0 && dropped > 10, "{kept} kept, {dropped} dropped");
    assert_ne!(Precomputed::new(20).settings(), vectors().settings());
}

/// Gradients against differences of the loss under the masks of the same step.
fn check_masked<E: Encoder<Output = Activations> + Clone>(
    network: Network<E, Dense>,
    batch: &Batch,
    activation: Activation,
) {
    let network = off_the_kink(network);
    // A step of rate 0 changes nothing and gives the loss under the masks of its number.
    let loss_of = |network: &Network<E, Dense>, number| {
        let mut copy = network.clone();
        copy.step(batch, Loss::Bce, &at(number, 0.0), &mut Scratch::default()).unwrap()
    };
    assert_ne!(loss_of(&network, 3), loss_of(&network, 4));
    assert_eq!(loss_of(&network, 3), loss_of(&network, 3));
    let got = gradient(&network, batch, Loss::Bce, &at(3, 1.0));
    let mut close = 0;
    let mut all = 0;
    for p in 0..got.len() {
        for i in 0..got[p].len() {
            let shifted = |step: f32| {
                let mut copy = network.clone();
                copy.parameters_mut()[p].parameter.values_mut()[i] += step;
                loss_of(&copy, 3)
            };
            let expected = (shifted(2e-3) - shifted(-2e-3)) / 4e-3;
            all += 1;
            close += usize::from((got[p][i] - expected).abs() < 1e-3 * expected.abs().max(1.0));
        }
    }
    // A few values stand so near to a kink of ReLU that a difference crosses it.
    assert!(close * 100 >= all * if activation == Activation::Relu { 97 } else { 100 }, "{close} of {all}");
}

#[test]
fn clipping_shortens_the_whole_gradient() {
    let (x, y) = (features(23, 30), targets(23, 9));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let encoder = Stack::new(Bag::new(30, 6, Activation::Relu, 0.2, 1)).push(5, Activation::Relu, 0.1, 1);
    let network = Network::new(encoder, Dense::new(9, 5, 1));
    let batch = batch(&examples);
    let whole = gradient(&network, &batch, Loss::Bce, &at(0, 1.0));
    let norm = whole.iter().flatten().map(|g| g * g).sum::<f64>().sqrt();
    for limit in [norm * 0.25, norm * 4.0] {
        let got = gradient(&network, &batch, Loss::Bce, &StepParams { clip_norm: Some(limit), ..at(0, 1.0) });
        let scale = (limit / norm).min(1.0);
        for (got, whole) in got.iter().flatten().zip(whole.iter().flatten()) {
            assert!((got - scale * whole).abs() < 1e-6, "{got} {whole} at {scale}");
        }
    }
}

#[test]
fn a_loss_that_is_not_finite_changes_nothing() {
    let (x, y) = (features(23, 30), targets(23, 9));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let mut network = Network::new(Bag::new(30, 6, Activation::Relu, 0.0, 1), Dense::new(9, 6, 1));
    for named in network.parameters_mut() {
        if named.name == "head.bias" {
            named.parameter.values_mut()[2] = f32::NAN;
        }
    }
    let before: Vec<f32> = network.parameters()[0].parameter.values().to_vec();
    for by in LOSSES {
        let got = network.step(&batch(&examples), by, &at(0, 1.0), &mut Scratch::default()).unwrap();
        assert!(!got.is_finite(), "{}: {got}", by.name());
        assert_eq!(before, network.parameters()[0].parameter.values());
    }
}
