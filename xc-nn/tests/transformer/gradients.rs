//! Every value of every parameter against differences of the vectors.

use crate::made::{batch, small, tokens};
use xc_dense::MatmulPrecision;
use xc_nn::encoder::transformer::{
    DenseActivation, DenseParams, Distances, Pooling, Transformer, TransformerLearning, TransformerParams,
};
use xc_nn::head::Dense;
use xc_nn::state::State;
use xc_nn::{
    Activations, Batch, Encoder, Loss, Mode, Network, Optimizer, Scratch, Step, StepParams, Update, UpdateRule,
};

const AT: Step = Step { number: 3, epoch: 0, seed: 5 };

/// A fixed linear form of the vectors under the masks of the step.
fn form(of: &Transformer, batch: &Batch) -> f64 {
    let (mut vectors, mut scratch) = (Activations::default(), Default::default());
    of.forward(batch, Mode::Train(AT), &mut vectors, &mut scratch).unwrap();
    vectors.values().iter().zip(coefficients()).map(|(value, c)| f64::from(*value) * f64::from(c)).sum()
}

fn coefficients() -> impl Iterator<Item = f32> {
    (0..).map(|i: usize| ((i * 31 % 17) as f32 - 8.0) / 8.0)
}

/// With plain descent at rate 1, what a step takes away is the gradient.
fn gradient(of: &Transformer, batch: &Batch) -> (Vec<Vec<f64>>, f64) {
    let mut changed = of.clone();
    let (mut vectors, mut scratch, mut gradient) = (Activations::default(), Default::default(), Activations::default());
    changed.forward(batch, Mode::Train(AT), &mut vectors, &mut scratch).unwrap();
    gradient.reshape(vectors.len(), vectors.width());
    gradient.values_mut().iter_mut().zip(coefficients()).for_each(|(g, c)| *g = c);
    let squares = changed.squared_norm(batch, &gradient, &mut scratch).unwrap();
    let update = Update::new(AT, UpdateRule { optimizer: Optimizer::sgd(), rate: 1.0 }, 1.0);
    changed.update(batch, &gradient, &mut scratch, &update).unwrap();
    let pairs = of.parameters().into_iter().zip(changed.parameters());
    let of_one = pairs.map(|(before, after)| {
        let values = before.parameter.values().iter().zip(after.parameter.values());
        values.map(|(before, after)| f64::from(*before) - f64::from(*after)).collect()
    });
    (of_one.collect(), squares)
}

/// A transformer whose gains, biases and tables lie apart from what they begin with.
fn moved(params: TransformerParams, learning: TransformerLearning) -> Transformer {
    let mut out = Transformer::new(params, learning, 7).unwrap();
    for named in out.parameters_mut() {
        let (name, values) = (named.name, named.parameter.values_mut());
        let scale = if name.ends_with("bias") || name.ends_with("gain") { 0.3 } else { 0.6 };
        let begin = name.len() * 13;
        for (i, value) in values.iter_mut().enumerate() {
            *value += scale * ((((i + begin) * 7919) % 211) as f32 / 105.0 - 1.0);
        }
    }
    out
}

/// On one thread: there is nothing to share.
fn check(params: TransformerParams, learning: TransformerLearning) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| check_here(TransformerParams { layers: 2, ..params }, learning));
}

fn check_here(params: TransformerParams, learning: TransformerLearning) {
    let transformer = moved(params, learning);
    let rows = tokens(5, 11, 9);
    let batch = batch(&rows, &[3, 0, 2, 1, 4]);
    let (got, squares) = gradient(&transformer, &batch);
    let (mut all, mut not_0) = (0, 0);
    for (p, named) in transformer.parameters().iter().enumerate() {
        for i in 0..named.parameter.values().len() {
            let shifted = |by: f32| {
                let mut copy = transformer.clone();
                copy.parameters_mut()[p].parameter.values_mut()[i] += by;
                form(&copy, &batch)
            };
            // The second difference takes the error of the first one's curvature away.
            let (h, near, far) = (0.01f32, shifted(0.01) - shifted(-0.01), shifted(0.02) - shifted(-0.02));
            let expected = (8.0 * near - far) / (12.0 * f64::from(h));
            let got = got[p][i];
            assert!((got - expected).abs() < 2e-3 * expected.abs().max(1.0), "{} {i}: {got} {expected}", named.name);
            all += 1;
            not_0 += usize::from(expected.abs() > 1e-3);
        }
    }
    // Words and positions that no instance has, and biases of keys, have a gradient of 0.
    assert!(not_0 * 10 > all * 7, "only {not_0} of {all} gradients differ from 0");
    let expected: f64 = got.iter().flatten().map(|g| g * g).sum();
    assert!((squares / expected - 1.0).abs() < 1e-4, "{squares} {expected}");
}

#[test]
fn of_the_mean_of_tokens_with_types() {
    check(small(None, Pooling::Mean, 2), TransformerLearning::default());
}

#[test]
fn of_the_first_token_with_a_bias_by_distance() {
    let distances = Some(Distances { buckets: 8, most: 6 });
    check(small(distances, Pooling::First, 0), TransformerLearning::default());
}

#[test]
fn under_the_masks_of_dropout() {
    let learning =
        TransformerLearning { dropout: 0.2, attention_dropout: 0.3, pooled_dropout: 0.1, ..Default::default() };
    check(small(Some(Distances { buckets: 8, most: 6 }), Pooling::Mean, 1), learning);
}

/// Layers of 8, 5 and 6 values behind the pooling of [`small`].
fn with_dense(params: TransformerParams, activations: [DenseActivation; 2]) -> TransformerParams {
    let layer = |(inputs, outputs), activation| DenseParams { inputs, outputs, activation };
    let dense = [(8, 5), (5, 6)].into_iter().zip(activations).map(|(sizes, activation)| layer(sizes, activation));
    TransformerParams { dense: dense.collect(), ..params }
}

#[test]
fn through_linear_layers_behind_the_pooling() {
    use DenseActivation::{Identity, Relu, Sigmoid, Tanh};
    for activations in [[Tanh, Identity], [Sigmoid, Tanh], [Identity, Sigmoid]] {
        let learning = TransformerLearning { pooled_dropout: 0.2, ..Default::default() };
        check(with_dense(small(None, Pooling::Mean, 2), activations), learning);
    }
    // Where a ReLU is 0 nothing is handed down.
    let params = with_dense(small(None, Pooling::Mean, 2), [Identity, Relu]);
    let (rows, transformer) = (tokens(5, 11, 9), moved(params.clone(), TransformerLearning::default()));
    let some = batch(&rows, &[3, 0, 2, 1, 4]);
    let (mut vectors, mut scratch) = (Activations::default(), Default::default());
    transformer.forward(&some, Mode::Train(AT), &mut vectors, &mut scratch).unwrap();
    let is_positive = |at: usize| vectors.values().iter().skip(at).step_by(6).any(|&value| value > 0.0);
    let (got, _) = gradient(&transformer, &some);
    let bias = got.last().unwrap();
    assert!((0..6).all(|at| (bias[at] != 0.0) <= is_positive(at)) && bias.iter().any(|&g| g != 0.0), "{bias:?}");
}

#[test]
fn linear_layers_learn_above_layers_that_are_all_frozen() {
    let params = with_dense(small(None, Pooling::Mean, 2), [DenseActivation::Tanh, DenseActivation::Identity]);
    let learning = TransformerLearning { frozen_layers: 3, ..Default::default() };
    let transformer = moved(params, learning);
    assert!(transformer.learns());
    let rows = tokens(5, 11, 9);
    let (got, squares) = gradient(&transformer, &batch(&rows, &[3, 0, 2, 1, 4]));
    for (named, got) in transformer.parameters().iter().zip(&got) {
        let is_dense = named.name.starts_with("transformer.dense");
        assert_eq!(learning.learns(&named.name), Some(is_dense), "{}", named.name);
        assert_eq!(got.iter().any(|&g| g != 0.0), is_dense, "{}", named.name);
    }
    let expected: f64 = got.iter().flatten().map(|g| g * g).sum();
    assert!((squares / expected - 1.0).abs() < 1e-4, "{squares} {expected}");
}

#[test]
fn layers_that_do_not_follow_each_other_are_refused() {
    let params = with_dense(small(None, Pooling::Mean, 2), [DenseActivation::Tanh; 2]);
    assert_eq!(params.vector_width(), 6);
    for (at, inputs, outputs, expected) in [
        (0, 7, 5, "inputs of a linear layer is 7, expected the 8 that come to it"),
        (1, 8, 6, "inputs of a linear layer is 8, expected the 5 that come to it"),
        (1, 5, 0, "outputs of a linear layer is 0, expected 1 to 1048576"),
    ] {
        let mut wrong = params.clone();
        (wrong.dense[at].inputs, wrong.dense[at].outputs) = (inputs, outputs);
        let refused = Transformer::new(wrong, Default::default(), 1).unwrap_err();
        assert_eq!(refused.to_string(), expected);
    }
}

/// What a layer keeps is rounded then, too.
#[test]
fn with_products_of_bf16_they_are_near_those_of_f32() {
    let rows = tokens(5, 11, 9);
    let batch = batch(&rows, &[3, 0, 2, 1, 4]);
    let learning = TransformerLearning { dropout: 0.2, attention_dropout: 0.3, ..Default::default() };
    let of_f32 = Transformer::new(small(None, Pooling::Mean, 2), learning, 7).unwrap();
    let of_bf16 = of_f32.clone().with_products(MatmulPrecision::Bf16);
    let ((exact, squares), (rounded, rounded_squares)) = (gradient(&of_f32, &batch), gradient(&of_bf16, &batch));
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|g| g * g).sum::<f64>().sqrt();
    let (mut n_different, whole) = (0, squares.sqrt());
    for ((named, exact), rounded) in of_f32.parameters().iter().zip(&exact).zip(&rounded) {
        let error = norm(&mut exact.iter().zip(rounded).map(|(a, b)| a - b));
        let length = norm(&mut exact.iter().copied());
        // A gradient that is nearly 0 is a difference of larger numbers.
        assert!(error < 0.02 * length + 1e-3 * whole, "{}: {error} of {length}, {whole} in all", named.name);
        n_different += usize::from(error > 0.0);
    }
    assert!(n_different > 10, "{n_different} parameters");
    let expected = norm(&mut rounded.iter().flatten().copied()).powi(2);
    assert!((rounded_squares / expected - 1.0).abs() < 1e-4, "{rounded_squares} {expected}");
}

#[test]
fn frozen_layers_stay_and_layers_above_learn_at_shares_of_the_rate() {
    let rows = tokens(5, 11, 9);
    let batch = batch(&rows, &[0, 1, 2, 3, 4]);
    let of = |learning| moved(small(Some(Distances { buckets: 8, most: 6 }), Pooling::Mean, 2), learning);
    let (whole, _) = gradient(&of(TransformerLearning::default()), &batch);
    for frozen_layers in 0..=3 {
        let learning = TransformerLearning { layer_decay: 0.5, frozen_layers, ..Default::default() };
        let transformer = of(learning);
        assert_eq!(transformer.learns(), frozen_layers < 3);
        let (got, _) = gradient(&transformer, &batch);
        for ((named, got), whole) in transformer.parameters().iter().zip(&got).zip(&whole) {
            let layer = named.name.strip_prefix("transformer.layer").map_or(0, |rest| rest[..1].parse().unwrap());
            let is_frozen = if layer == 0 { frozen_layers > 0 } else { layer <= frozen_layers };
            assert_eq!(learning.learns(&named.name), Some(!is_frozen), "{}", named.name);
            let share = if is_frozen { 0.0 } else { 0.5f64.powi(3 - layer as i32) };
            for (got, whole) in got.iter().zip(whole) {
                assert!(
                    (got - share * whole).abs() < 1e-6 + 1e-6 * whole.abs(),
                    "{}: {got} {share} {whole}",
                    named.name
                );
            }
        }
        // Moments are of what learns alone.
        let mut prepared = of(learning);
        prepared.prepare(Optimizer::adam().moments());
        let mut n = 0;
        prepared
            .visit(&mut |array| {
                n += usize::from(array.of.name.ends_with(".m1"));
                Ok(())
            })
            .unwrap();
        let n_learning = got.iter().filter(|of_one| of_one.iter().any(|&g| g != 0.0)).count();
        assert!(n >= n_learning && (frozen_layers == 0 || n == (3 - frozen_layers) * 12), "{n} with moments");
    }
}

#[test]
fn a_network_learns_with_and_without_clipping() {
    let rows = tokens(12, 11, 9);
    let numbers: Vec<u32> = (0..12).filter(|&i| i != 2).collect();
    let batch = batch(&rows, &numbers);
    let optimizer = Optimizer::adam().with_weight_decay(0.01);
    for clip_norm in [None, Some(1.0)] {
        let encoder = Transformer::new(small(None, Pooling::Mean, 2), Default::default(), 3).unwrap();
        let mut network = Network::new(encoder, Dense::new(3, 8, 3));
        network.prepare(optimizer, optimizer);
        let mut scratch = Scratch::default();
        let first = network.loss(&batch, Loss::Softmax, &mut scratch).unwrap();
        for number in 0..150 {
            let at = Step { number, epoch: 0, seed: 1 };
            let params = StepParams { clip_norm, ..StepParams::new(at, UpdateRule { optimizer, rate: 0.01 }) };
            assert!(network.step(&batch, Loss::Softmax, &params, &mut scratch).unwrap().is_finite());
        }
        let last = network.loss(&batch, Loss::Softmax, &mut scratch).unwrap();
        assert!(last < 0.1 * first, "{clip_norm:?}: {first} to {last}");
    }
}
