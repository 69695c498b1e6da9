//! A head that does its whole step at once, and encoders whose gradient nobody wants.

use crate::reference::{features, targets};
use xc_sparse::{LabelRows, Rows};
use xc_train::encoder::{Bag, Precomputed, Stack};
use xc_train::head::{Dense, DenseScratch};
use xc_train::loss::Bce;
use xc_train::optim::Sgd;
use xc_train::state::State;
use xc_train::{
    Activation, Activations, Batch, DenseRows, Encoder, Examples, Features, Head, Loss, Mode, Named, Network,
    Parameter, Scratch, StepParams, Targets, Update,
};

/// A dense head that notes what its steps were told.
#[derive(Clone, Debug)]
struct Fused {
    dense: Dense,
    /// Number, seed, and whether the gradient was wanted.
    steps: Vec<(u64, u64, bool)>,
    updates: u32,
}

impl Fused {
    fn new(n_outputs: usize, width: usize) -> Self {
        Self { dense: Dense::new(n_outputs, width, 1), steps: Vec::new(), updates: 0 }
    }
}

impl Head for Fused {
    type Scratch = DenseScratch;

    fn width(&self) -> usize {
        self.dense.width()
    }

    fn n_outputs(&self) -> usize {
        self.dense.n_outputs()
    }

    fn loss(&self, input: &Activations, targets: Targets<'_>, loss: &dyn Loss, workspace: &mut DenseScratch) -> f64 {
        self.dense.loss(input, targets, loss, workspace)
    }

    fn backward(&self, gradient: &mut Activations, workspace: &mut DenseScratch) {
        self.dense.backward(gradient, workspace);
    }

    fn squared_norm(&self, input: &Activations, workspace: &mut DenseScratch) -> f64 {
        self.dense.squared_norm(input, workspace)
    }

    fn update(&mut self, input: &Activations, workspace: &mut DenseScratch, update: &Update<'_>) {
        self.updates += 1;
        self.dense.update(input, workspace, update);
    }

    fn step(
        &mut self,
        input: &Activations,
        targets: Targets<'_>,
        loss: &dyn Loss,
        update: &Update<'_>,
        gradient: Option<&mut Activations>,
        workspace: &mut DenseScratch,
    ) -> f64 {
        self.steps.push((update.number, update.seed, gradient.is_some()));
        self.dense.step(input, targets, loss, update, gradient, workspace)
    }

    fn logits(&self, input: &Activations, logits: &mut Activations, workspace: &mut DenseScratch) {
        self.dense.logits(input, logits, workspace);
    }
}

impl State for Fused {
    fn settings(&self) -> String {
        "fused".to_owned()
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        self.dense.parameters()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        self.dense.parameters_mut()
    }
}

fn params(number: u64, clip_norm: Option<f64>) -> StepParams {
    StepParams { number, rate: 0.5, clip_norm, seed: 11 }
}

fn batch(examples: &Examples<'_>) -> Batch {
    let mut batch = Batch::default();
    batch.fill(examples, &(0..examples.len() as u32).collect::<Vec<_>>());
    batch
}

fn values<E: Encoder, H: Head>(network: &Network<E, H>) -> Vec<u32> {
    network.parameters().iter().flat_map(|p| p.parameter.values().iter().map(|v| v.to_bits())).collect()
}

#[test]
fn a_fused_step_is_called_unless_gradients_are_clipped() {
    let (x, y) = (features(23, 30), targets(23, 9));
    let examples = Examples::try_new(Features::Sparse(Rows::new(x.view())), &y).unwrap();
    let bag = || Bag::new(30, 6, Activation::Relu, 0.2, 1);
    let mut network = Network::new(bag(), Fused::new(9, 6));
    let mut plain = Network::new(bag(), Dense::new(9, 6, 1));
    // A limit that no gradient reaches: the parts, and the same bits.
    let mut parts = Network::new(bag(), Fused::new(9, 6));
    let batch = batch(&examples);
    for number in 5..8 {
        let one = network.step(&batch, &Bce, &Sgd::default(), &params(number, None), &mut Scratch::default());
        let other = plain.step(&batch, &Bce, &Sgd::default(), &params(number, None), &mut Scratch::default());
        let far = params(number, Some(1e9));
        let third = parts.step(&batch, &Bce, &Sgd::default(), &far, &mut Scratch::default());
        assert_eq!([one, one], [other, third]);
    }
    assert_eq!(values(&network), values(&plain));
    assert_eq!(values(&network), values(&parts));
    assert_eq!(network.head().steps, [(5, 11, true), (6, 11, true), (7, 11, true)]);
    assert_eq!((network.head().updates, parts.head().updates, parts.head().steps.len()), (0, 3, 0));
}

#[test]
fn after_a_loss_that_is_not_finite_the_encoder_is_as_it_was() {
    let (x, y) = (features(23, 30), targets(23, 9));
    let examples = Examples::try_new(Features::Sparse(Rows::new(x.view())), &y).unwrap();
    let mut network = Network::new(Bag::new(30, 6, Activation::Relu, 0.0, 1), Fused::new(9, 6));
    network.parameters_mut()[2].parameter.values_mut()[0] = f32::NAN;
    let before = values(&network);
    let met = network.step(&batch(&examples), &Bce, &Sgd::default(), &params(0, None), &mut Scratch::default());
    assert!(!met.is_finite());
    assert_eq!(values(&network), before);
}

/// Vectors handed on; whoever asks for more than `forward` does work that nobody needs.
#[derive(Clone, Debug)]
struct Deaf(Precomputed);

impl Encoder for Deaf {
    type Scratch = ();

    fn width(&self) -> usize {
        self.0.width()
    }

    fn wants_gradient(&self) -> bool {
        false
    }

    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, (): &mut ()) {
        self.0.forward(batch, mode, output, &mut ());
    }

    fn backward(&self, _: &Batch, _: Mode, _: &Activations, _: &mut Activations, (): &mut ()) {
        panic!("backward");
    }

    fn squared_norm(&self, _: &Batch, _: &Activations, (): &mut ()) -> f64 {
        panic!("squared_norm");
    }

    fn update(&mut self, _: &Batch, _: &Activations, (): &mut (), _: &Update<'_>) {
        panic!("update");
    }
}

impl State for Deaf {
    fn settings(&self) -> String {
        "deaf".to_owned()
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        Vec::new()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        Vec::new()
    }
}

#[test]
fn where_nothing_learns_no_gradient_is_asked_for() {
    let dense: Vec<f32> = (0..17 * 6).map(|i| ((i * 7) % 11) as f32 / 5.0 - 1.0).collect();
    let y: LabelRows = targets(17, 5);
    let examples = Examples::try_new(Features::Dense(DenseRows::new(&dense, 6)), &y).unwrap();
    let batch = batch(&examples);
    let deaf = || Deaf(Precomputed::new(6));
    for (clip, n_steps) in [(None, 1), (Some(0.01), 0)] {
        let mut alone = Network::new(deaf(), Fused::new(5, 6));
        let before = values(&alone);
        alone.step(&batch, &Bce, &Sgd::default(), &params(0, clip), &mut Scratch::default());
        assert_eq!(alone.head().steps, [(0, 11, false)][..n_steps]);
        assert_ne!(values(&alone), before);
        let stack = Stack::new(deaf());
        assert!(!stack.wants_gradient());
        let mut empty = Network::new(stack, Fused::new(5, 6));
        empty.step(&batch, &Bce, &Sgd::default(), &params(0, clip), &mut Scratch::default());
        assert_eq!(values(&empty), values(&alone));
        let stack = Stack::new(deaf()).push(4, Activation::Relu, 0.1, 2).push(3, Activation::Relu, 0.0, 2);
        assert!(stack.wants_gradient());
        let mut network = Network::new(stack, Fused::new(5, 3));
        let before = values(&network);
        network.step(&batch, &Bce, &Sgd::default(), &params(0, clip), &mut Scratch::default());
        assert_eq!(network.head().steps, [(0, 11, true)][..n_steps]);
        // Every layer learns, the lowest too.
        let moved = values(&network).iter().zip(&before).take(4 * 6).filter(|(a, b)| a != b).count();
        assert!(moved > 0, "the lowest layer stands still");
    }
}
