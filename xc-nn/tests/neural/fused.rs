//! A head that does its whole step at once, and encoders whose gradient nobody wants.

use crate::reference::{features, targets};
use std::ops::Range;
use xc_nn::encoder::transformer::{Architecture, IS_BUILT, Transformer, TransformerParams};
use xc_nn::encoder::{Bag, Precomputed, Stack};
use xc_nn::head::{Dense, DenseScratch};
use xc_nn::state::State;
use xc_nn::{
    Activation, Activations, Batch, DenseRows, Encoder, Examples, Head, Loss, Mode, Named, Network, Optimizer,
    Parameter, Rows, Scratch, Step, StepError, StepParams, Targets, Update, UpdateRule, WrongBatch,
};
use xc_sparse::LabelRows;
use xc_sparse::rows::TokenRows;

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
    type Input = Activations;
    type Scratch = DenseScratch;

    fn width(&self) -> usize {
        self.dense.width()
    }

    fn labels(&self) -> Range<u32> {
        self.dense.labels()
    }

    fn loss(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut DenseScratch,
    ) -> Result<f64, StepError> {
        self.dense.loss(input, targets, loss, mode, scratch)
    }

    fn backward(&self, gradient: &mut Activations, scratch: &mut DenseScratch) -> Result<(), StepError> {
        self.dense.backward(gradient, scratch)
    }

    fn squared_norm(&self, input: &Activations, scratch: &mut DenseScratch) -> Result<f64, StepError> {
        self.dense.squared_norm(input, scratch)
    }

    fn update(&mut self, input: &Activations, scratch: &mut DenseScratch, update: &Update) -> Result<(), StepError> {
        self.updates += 1;
        self.dense.update(input, scratch, update)
    }

    fn step(
        &mut self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        update: &Update,
        gradient: Option<&mut Activations>,
        scratch: &mut DenseScratch,
    ) -> Result<f64, StepError> {
        self.steps.push((update.at.number, update.at.seed, gradient.is_some()));
        self.dense.step(input, targets, loss, update, gradient, scratch)
    }

    fn logits(
        &self,
        input: &Activations,
        logits: &mut Activations,
        scratch: &mut DenseScratch,
    ) -> Result<(), StepError> {
        self.dense.logits(input, logits, scratch)
    }
}

impl State for Fused {
    fn settings(&self) -> serde_json::Value {
        "fused".into()
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        self.dense.parameters()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        self.dense.parameters_mut()
    }
}

fn params(number: u64, clip_norm: Option<f64>) -> StepParams {
    let rule = UpdateRule { optimizer: Optimizer::sgd(), rate: 0.5 };
    StepParams { clip_norm, ..StepParams::new(Step { number, epoch: 0, seed: 11 }, rule) }
}

fn batch(examples: &Examples<'_>) -> Batch {
    let mut batch = Batch::default();
    batch.fill(examples, &(0..examples.len() as u32).collect::<Vec<_>>());
    batch
}

fn values<E: Encoder, H: Head<Input = E::Output>>(network: &Network<E, H>) -> Vec<u32> {
    network.parameters().iter().flat_map(|p| p.parameter.values().iter().map(|v| v.to_bits())).collect()
}

#[test]
fn a_fused_step_is_called_unless_gradients_are_clipped() {
    let (x, y) = (features(23, 30), targets(23, 9));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let bag = || Bag::new(30, 6, Activation::Relu, 0.2, 1);
    let mut network = Network::new(bag(), Fused::new(9, 6));
    let mut plain = Network::new(bag(), Dense::new(9, 6, 1));
    // A limit that no gradient reaches: the parts, and the same bits.
    let mut parts = Network::new(bag(), Fused::new(9, 6));
    let batch = batch(&examples);
    for number in 5..8 {
        let one = network.step(&batch, Loss::Bce, &params(number, None), &mut Scratch::default()).unwrap();
        let other = plain.step(&batch, Loss::Bce, &params(number, None), &mut Scratch::default()).unwrap();
        let far = params(number, Some(1e9));
        let third = parts.step(&batch, Loss::Bce, &far, &mut Scratch::default()).unwrap();
        assert_eq!([one, one], [other, third]);
    }
    assert_eq!(values(&network), values(&plain));
    assert_eq!(values(&network), values(&parts));
    assert_eq!(network.head().steps, [(5, 11, true), (6, 11, true), (7, 11, true)]);
    assert_eq!((network.head().updates, parts.head().updates, parts.head().steps.len()), (0, 3, 0));
}

/// Every kind of encoder of rows, and every kind of rows: those of its own kind and width alone make a step, and what is
/// refused changes nothing.
#[test]
fn rows_that_an_encoder_does_not_take_are_refused_and_change_nothing() {
    let y = targets(4, 9);
    let sparse = [features(4, 30), features(4, 31)];
    let dense = [vec![0.5; 4 * 30], vec![0.5; 4 * 31]];
    let tokens = |vocabulary| TokenRows::try_new(vec![1, 2, 0, 3], vec![1, 2, 3, 4], vocabulary).unwrap();
    let tokens = [tokens(30), tokens(31)];
    let rows = [
        Rows::Sparse(sparse[0].view()),
        Rows::Sparse(sparse[1].view()),
        Rows::Dense(DenseRows::new(&dense[0], 30)),
        Rows::Dense(DenseRows::new(&dense[1], 31)),
        Rows::Tokens(tokens[0].view()),
        Rows::Tokens(tokens[1].view()),
    ];
    assert_eq!(taken_by(&|| Bag::new(30, 6, Activation::Relu, 0.0, 1), &rows, &y), [0]);
    assert_eq!(taken_by(&|| Precomputed::new(30), &rows, &y), [2]);
    if IS_BUILT {
        assert_eq!(taken_by(&transformer, &rows, &y), [4]);
    }
}

fn transformer() -> Transformer {
    let params = TransformerParams {
        family: Architecture::Bert,
        vocabulary: 30,
        positions: 8,
        first_position: 0,
        types: 1,
        width: 4,
        heads: 2,
        units: 8,
        layers: 1,
        epsilon: 1e-12,
        distances: None,
        dense: Vec::new(),
        pooling: Default::default(),
    };
    Transformer::new(params, Default::default(), 1).unwrap()
}

/// The numbers of the rows with which a step is made.
fn taken_by<E: Encoder<Output = Activations>>(new: &dyn Fn() -> E, rows: &[Rows<'_>], y: &LabelRows) -> Vec<usize> {
    let made = rows.iter().map(|&rows| {
        let encoder = new();
        let width = encoder.width();
        let mut network = Network::new(encoder, Fused::new(9, width));
        let before = values(&network);
        let batch = batch(&Examples::try_new(rows, y).unwrap());
        let done = network.step(&batch, Loss::Bce, &params(0, None), &mut Scratch::default());
        if let Err(error) = &done {
            let source = error.source.downcast_ref::<WrongBatch>().expect("the reason");
            assert_eq!((source.got, source.got_width), (rows.kind(), rows.width()));
            assert_eq!(values(&network), before);
        }
        done.is_ok()
    });
    made.enumerate().filter(|(_, is_made)| *is_made).map(|(at, _)| at).collect()
}

#[test]
fn after_a_loss_that_is_not_finite_the_encoder_is_as_it_was() {
    let (x, y) = (features(23, 30), targets(23, 9));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let mut network = Network::new(Bag::new(30, 6, Activation::Relu, 0.0, 1), Fused::new(9, 6));
    network.parameters_mut()[2].parameter.values_mut()[0] = f32::NAN;
    let before = values(&network);
    let met = network.step(&batch(&examples), Loss::Bce, &params(0, None), &mut Scratch::default()).unwrap();
    assert!(!met.is_finite());
    assert_eq!(values(&network), before);
}

/// Vectors handed on; whoever asks for more than `forward` does work that nobody needs.
#[derive(Clone, Debug)]
struct Deaf(Precomputed);

impl Encoder for Deaf {
    type Output = Activations;
    type Scratch = ();

    fn width(&self) -> usize {
        self.0.width()
    }

    fn learns(&self) -> bool {
        false
    }

    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        self.0.forward(batch, mode, output, &mut ())
    }

    fn backward(&self, _: &Batch, _: Mode, _: &Activations, _: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        panic!("backward");
    }

    fn squared_norm(&self, _: &Batch, _: &Activations, (): &mut ()) -> Result<f64, StepError> {
        panic!("squared_norm");
    }

    fn update(&mut self, _: &Batch, _: &Activations, (): &mut (), _: &Update) -> Result<(), StepError> {
        panic!("update");
    }
}

impl State for Deaf {
    fn settings(&self) -> serde_json::Value {
        "deaf".into()
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
    let examples = Examples::try_new(Rows::Dense(DenseRows::new(&dense, 6)), &y).unwrap();
    let batch = batch(&examples);
    let deaf = || Deaf(Precomputed::new(6));
    for (clip, n_steps) in [(None, 1), (Some(0.01), 0)] {
        let mut alone = Network::new(deaf(), Fused::new(5, 6));
        let before = values(&alone);
        alone.step(&batch, Loss::Bce, &params(0, clip), &mut Scratch::default()).unwrap();
        assert_eq!(alone.head().steps, [(0, 11, false)][..n_steps]);
        assert_ne!(values(&alone), before);
        let stack = Stack::new(deaf());
        assert!(!stack.learns());
        let mut empty = Network::new(stack, Fused::new(5, 6));
        empty.step(&batch, Loss::Bce, &params(0, clip), &mut Scratch::default()).unwrap();
        assert_eq!(values(&empty), values(&alone));
        let stack = Stack::new(deaf()).push(4, Activation::Relu, 0.1, 2).push(3, Activation::Relu, 0.0, 2);
        assert!(stack.learns());
        let mut network = Network::new(stack, Fused::new(5, 3));
        let before = values(&network);
        network.step(&batch, Loss::Bce, &params(0, clip), &mut Scratch::default()).unwrap();
        assert_eq!(network.head().steps, [(0, 11, true)][..n_steps]);
        // Every layer learns, the lowest too.
        let moved = values(&network).iter().zip(&before).take(4 * 6).filter(|(a, b)| a != b).count();
        assert!(moved > 0, "the lowest layer stands still");
    }
}

#[test]
fn encoder_and_head_learn_by_rules_of_their_own() {
    let (x, y) = (features(23, 30), targets(23, 9));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let batch = batch(&examples);
    let start = Network::new(Bag::new(30, 6, Activation::Relu, 0.0, 1), Dense::new(9, 6, 1));
    // What two steps make of each part. The loss of the first one has the same gradients whatever
    // the rules are.
    let after = |encoder: UpdateRule, head: UpdateRule, clip_norm: Option<f64>, n_steps: u64| {
        let mut network = start.clone();
        network.prepare(encoder.optimizer, head.optimizer);
        for number in 0..n_steps {
            let params = StepParams { at: Step { number, epoch: 0, seed: 11 }, encoder, head, clip_norm };
            network.step(&batch, Loss::Bce, &params, &mut Scratch::default()).unwrap();
        }
        let all = values(&network);
        let (table, rest) = all.split_at(30 * 6 + 6);
        (table.to_vec(), rest.to_vec())
    };
    let (sgd, adam) = (Optimizer::sgd(), Optimizer::adam());
    for clip in [None, Some(0.01)] {
        let slow =
            after(UpdateRule { optimizer: adam, rate: 0.01 }, UpdateRule { optimizer: adam, rate: 0.01 }, clip, 1);
        let fast = after(UpdateRule { optimizer: sgd, rate: 0.5 }, UpdateRule { optimizer: sgd, rate: 0.5 }, clip, 1);
        let mixed =
            after(UpdateRule { optimizer: adam, rate: 0.01 }, UpdateRule { optimizer: sgd, rate: 0.5 }, clip, 1);
        assert_eq!(mixed, (slow.0, fast.1));
        // At rate 0 the encoder stands still, and the head learns from its vectors as they are.
        let still = after(UpdateRule { optimizer: adam, rate: 0.0 }, UpdateRule { optimizer: sgd, rate: 0.5 }, clip, 2);
        assert_eq!(
            still.0,
            after(UpdateRule { optimizer: sgd, rate: 0.5 }, UpdateRule { optimizer: sgd, rate: 0.5 }, clip, 0).0
        );
        assert_ne!(still.1, mixed.1);
    }
}

/// An encoder whose library fails in one phase.
#[derive(Clone, Debug)]
struct Failing(Precomputed, &'static str);

impl Failing {
    fn phase(&self, name: &'static str) -> Result<(), StepError> {
        if self.1 == name { Err(StepError::new("failing", format!("no {name}"))) } else { Ok(()) }
    }
}

impl Encoder for Failing {
    type Output = Activations;
    type Scratch = ();

    fn width(&self) -> usize {
        self.0.width()
    }

    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        self.phase("forward")?;
        self.0.forward(batch, mode, output, &mut ())
    }

    fn backward(&self, _: &Batch, _: Mode, _: &Activations, _: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        self.phase("backward")
    }

    fn squared_norm(&self, _: &Batch, _: &Activations, (): &mut ()) -> Result<f64, StepError> {
        self.phase("squared_norm").map(|()| 0.0)
    }

    fn update(&mut self, _: &Batch, _: &Activations, (): &mut (), _: &Update) -> Result<(), StepError> {
        self.phase("update")
    }
}

impl State for Failing {
    fn settings(&self) -> serde_json::Value {
        "failing".into()
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        Vec::new()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        Vec::new()
    }
}

#[test]
fn a_phase_that_fails_is_named_with_its_cause() {
    let dense = [0.5f32; 17 * 6];
    let y: LabelRows = targets(17, 5);
    let examples = Examples::try_new(Rows::Dense(DenseRows::new(&dense, 6)), &y).unwrap();
    let batch = batch(&examples);
    for phase in ["forward", "backward", "squared_norm", "update"] {
        for clip in [None, Some(1.0)] {
            let mut network = Network::new(Failing(Precomputed::new(6), phase), Dense::new(5, 6, 1));
            let got = network.step(&batch, Loss::Bce, &params(0, clip), &mut Scratch::default());
            // Without clipping nobody asks for a norm.
            if phase == "squared_norm" && clip.is_none() {
                assert!(got.is_ok());
                continue;
            }
            let error = got.unwrap_err();
            assert_eq!((error.part, error.source.to_string()), ("failing", format!("no {phase}")));
        }
    }
}
