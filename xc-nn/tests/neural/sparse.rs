//! The sparse head against plain sums and finite differences, its fused step against its parts,
//! threads, tiles, negatives, resuming.

use half::bf16;
use proptest::prelude::*;
use std::error::Error;
use std::time::Duration;
use xc_buffer::Cancel;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;
use xc_nn::encoder::{Precomputed, Stack};
use xc_nn::head::sparse::{Rewire, Screening, SparseParams};
use xc_nn::head::{Ranked, Sparse};
use xc_nn::sampler::{Candidates, Drawn, Queries, Sampler};
use xc_nn::schedule::Constant;
use xc_nn::state::{Role, Snapshot, State};
use xc_nn::trainer::{
    CHECKPOINT, CheckpointAt, Keep, Observer, STATE, Silent, Subset, TrainError, TrainEvent, TrainObserver,
};
use xc_nn::{
    Activation, Activations, Batch, DenseRows, Examples, Head, Init, Loss, Mode, Network, Optimizer, Rows, Scratch,
    Step, StepParams, TrainParams, Trainer, Update, UpdateRule,
};
use xc_sparse::LabelRows;
use xc_sparse::uniform::{FanIn, InputIds, LANES};
use xc_store::CheckpointFolder;

const LOSSES: [Loss; 3] = [Loss::Softmax, Loss::Bce, Loss::SquaredHinge];

fn train(number: u64) -> Mode {
    Mode::Train(Step { number, epoch: 0, seed: 5 })
}

pub(crate) fn params(per_output: usize, uniform: bool) -> SparseParams {
    SparseParams { per_output, uniform, weights: DType::F32, moments: DType::F32, rewire: None }
}

/// Numbers in [-1, 1) that look random.
fn number(i: usize, seed: u64) -> f32 {
    let mut z = (i as u64).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((z ^ (z >> 27)) >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

pub(crate) struct Data {
    pub(crate) values: Vec<f32>,
    pub(crate) width: usize,
    pub(crate) targets: LabelRows,
}

impl Data {
    pub(crate) fn new(n: usize, width: usize, n_outputs: usize, seed: u64) -> Self {
        // Already bf16, so that the layer's rounding of its inputs changes nothing.
        let values = (0..n * width).map(|i| bf16::from_f32(number(i, seed)).to_f32()).collect();
        let positives = |i: usize| -> Vec<u32> {
            (0..n_outputs as u32).filter(|&j| number(i * 7919 + j as usize, seed + 1) > 0.8).collect()
        };
        let targets = LabelRows::from_lists((0..n).map(positives), n_outputs).unwrap();
        Self { values, width, targets }
    }

    pub(crate) fn batch(&self) -> Batch {
        let mut batch = Batch::default();
        batch.fill(&self.examples(), &(0..self.targets.len() as u32).collect::<Vec<_>>());
        batch
    }

    pub(crate) fn examples(&self) -> Examples<'_> {
        Examples::try_new(Rows::Dense(DenseRows::new(&self.values, self.width)), &self.targets).unwrap()
    }

    pub(crate) fn input(&self) -> Activations {
        let mut input = Activations::default();
        input.reshape(self.targets.len(), self.width);
        input.values_mut().copy_from_slice(&self.values);
        input
    }
}

/// A head with biases that put some outputs on each side of the margin.
pub(crate) fn head(n_outputs: usize, width: usize, params: SparseParams, seed: u64) -> Sparse {
    let mut head = Sparse::new(n_outputs, width, params, Init::Random { seed }).unwrap();
    for named in head.parameters_mut() {
        named.parameter.values_mut().iter_mut().enumerate().for_each(|(i, v)| *v = 1.5 * number(i, seed + 9) - 0.7);
    }
    head
}

/// Loss and every gradient in f64 by the definition: (mean loss, weights, biases, inputs).
fn plain(head: &Sparse, data: &Data, loss: &str) -> (f64, Vec<f64>, Vec<f64>, Vec<f64>) {
    let (n, c) = (data.targets.len(), head.connections());
    let (mut total, mut weights) = (0.0, vec![0.0; c.len()]);
    let (mut biases, mut inputs) = (vec![0.0; c.n_labels()], vec![0.0; data.values.len()]);
    for i in 0..n {
        let x = |at: usize| f64::from(data.values[i * data.width + c.indices().get(at)]);
        let logit = |label: usize| {
            let sum: f64 = c.range(label).map(|at| x(at) * f64::from(c.weights().get(at))).sum();
            sum + f64::from(head.bias().values()[label])
        };
        let z: Vec<f64> = (0..c.n_labels()).map(logit).collect();
        let positives = data.targets.row(i);
        let exponentials: f64 = z.iter().map(|z| z.exp()).sum();
        if loss == "softmax" && !positives.is_empty() {
            total += exponentials.ln() / n as f64;
        }
        for (label, &z) in z.iter().enumerate() {
            let is_true = positives.contains(&(label as u32));
            let y = if is_true { 1.0 } else { -1.0 };
            let (cost, slope) = match loss {
                "bce" => ((-y * z).exp().ln_1p(), -y / ((y * z).exp() + 1.0)),
                "squared-hinge" => ((1.0 - y * z).max(0.0).powi(2), -2.0 * y * (1.0 - y * z).max(0.0)),
                _ if positives.is_empty() => (0.0, 0.0),
                _ => {
                    let share = if is_true { 1.0 / positives.len() as f64 } else { 0.0 };
                    (-z * share, z.exp() / exponentials - share)
                }
            };
            total += cost / n as f64;
            let slope = slope / n as f64;
            biases[label] += slope;
            for at in c.range(label) {
                weights[at] += slope * x(at);
                inputs[i * data.width + c.indices().get(at)] += slope * f64::from(c.weights().get(at));
            }
        }
    }
    (total, weights, biases, inputs)
}

pub(crate) fn update(optimizer: Optimizer, rate: f64, number: u64) -> Update {
    Update::new(Step { number, epoch: 0, seed: 5 }, UpdateRule { optimizer, rate }, 1.0)
}

fn state(head: &Sparse) -> Vec<Vec<u8>> {
    Snapshot::of(&[head]).unwrap().arrays().map(|(.., array)| array.bytes.to_vec()).collect()
}

fn weights(head: &Sparse) -> Vec<f64> {
    let c = head.connections();
    (0..c.len()).map(|at| f64::from(c.weights().get(at))).collect()
}

fn close(met: &[f64], wanted: &[f64]) -> bool {
    met.len() == wanted.len() && met.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 2e-4 * (1.0 + b.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_step_is_what_the_definition_says(
        n in 1usize..70, width in 1usize..40, n_outputs in 0usize..30, share in 0.0f64..=1.0, uniform: bool, seed in 0u64..1000,
    ) {
        let per_output = ((width as f64 * share) as usize).clamp(1, width);
        let data = Data::new(n, width, n_outputs, seed);
        let first = head(n_outputs, width, params(per_output, uniform), seed);
        for by in LOSSES {
            let (loss, gw, gb, gx) = plain(&first, &data, by.name());
            let (batch, input, sgd) = (data.batch(), data.input(), Optimizer::sgd());
            // A step of plain descent at rate 1 takes the gradient away.
            let update = update(sgd, 1.0, 0);
            let (mut fused, mut scratch, mut gradient) = (first.clone(), Default::default(), Activations::default());
            let met = fused.step(&input, batch.targets(), by, &update, Some(&mut gradient), &mut scratch).unwrap();
            prop_assert!((met - loss).abs() <= 1e-4 * (1.0 + loss), "{} loss {met}, wanted {loss}", by.name());
            let away: Vec<f64> = weights(&first).iter().zip(weights(&fused)).map(|(a, b)| a - b).collect();
            prop_assert!(close(&away, &gw), "{}: gradient of the weights", by.name());
            let biases = first.bias().values().iter().zip(fused.bias().values());
            let away: Vec<f64> = biases.map(|(a, b)| f64::from(a - b)).collect();
            prop_assert!(close(&away, &gb), "{}: gradient of the biases", by.name());
            let met_gx: Vec<f64> = gradient.values().iter().map(|&v| f64::from(v)).collect();
            prop_assert!(close(&met_gx, &gx), "{}: gradient of the inputs", by.name());
            // The parts do the same, to the bit, and so do small tiles.
            let (mut parts, mut scratch, mut other) = (first.clone(), Default::default(), Activations::default());
            prop_assert_eq!(parts.loss(&input, batch.targets(), by, train(0), &mut scratch).unwrap(), met);
            parts.backward(&mut other, &mut scratch).unwrap();
            let norm = parts.squared_norm(&input, &mut scratch).unwrap();
            let wanted: f64 = gw.iter().chain(&gb).map(|g| g * g).sum();
            prop_assert!((norm - wanted).abs() <= 1e-3 * (1.0 + wanted), "norm {norm}, wanted {wanted}");
            parts.update(&input, &mut scratch, &update).unwrap();
            prop_assert_eq!(state(&parts), state(&fused));
            prop_assert_eq!(other.values(), gradient.values());
            let mut tiled = first.clone().with_tile(3);
            let mut other = Activations::default();
            let loss = tiled.step(&input, batch.targets(), by, &update, Some(&mut other), &mut Default::default()).unwrap();
            prop_assert!((loss - met).abs() <= 1e-6 * (1.0 + met), "only the order of sums differs");
            prop_assert_eq!(state(&tiled), state(&fused));
            prop_assert_eq!(other.values(), gradient.values());
        }
    }

    #[test]
    fn the_best_are_those_of_the_logits(
        n in 1usize..70, width in 1usize..20, n_outputs in 0usize..60, k in 0usize..70, seed in 0u64..1000,
    ) {
        let data = Data::new(n, width, n_outputs, seed);
        let head = head(n_outputs, width, params(1 + width / 3, seed % 3 > 0), seed);
        let (batch, input, mut scratch) = (data.batch(), data.input(), Default::default());
        let mut logits = Activations::default();
        head.logits(&input, &mut logits, &mut scratch).unwrap();
        for by in LOSSES {
            let mut got = Ranked::default();
            head.rank(&input, Some((batch.targets(), by)), k, &mut scratch, &mut got).unwrap();
            prop_assert_eq!((got.best.len(), got.losses.len()), (n, n));
            // Without a loss, and so for a few instances one by one, the same are best.
            for some in [n, n.min(2)] {
                let mut first = Activations::default();
                first.reshape(some, width);
                first.values_mut().copy_from_slice(&input.values()[..some * width]);
                let mut alone = Ranked::default();
                head.rank(&first, None, k, &mut scratch, &mut alone).unwrap();
                prop_assert_eq!(alone.best.len(), some);
                prop_assert!(alone.best.iter().zip(got.best.iter()).all(|(alone, together)| alone == together));
            }
            for (i, best) in got.best.iter().enumerate() {
                let mut wanted: Vec<(f32, u32)> = logits.row(i).iter().copied().zip(0..).collect();
                wanted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                let best: Vec<(f32, u32)> = best.iter().map(|s| (s.score, s.label)).collect();
                prop_assert_eq!(&best[..], &wanted[..k.min(n_outputs)]);
                let loss = by.of_row(&mut logits.row(i).to_vec(), data.targets.row(i), 1.0);
                prop_assert!((got.losses[i] - loss).abs() <= 1e-4 * (1.0 + loss));
            }
        }
    }
}

#[test]
fn the_gradient_is_what_finite_differences_say() {
    let (n, width, n_outputs) = (40, 12, 9);
    let data = Data::new(n, width, n_outputs, 3);
    let head = head(n_outputs, width, params(4, true), 3);
    for by in LOSSES {
        let loss = |head: &Sparse| {
            let (input, batch) = (data.input(), data.batch());
            head.loss(&input, batch.targets(), by, Mode::Predict, &mut Default::default()).unwrap()
        };
        let mut changed = head.clone();
        let sgd = Optimizer::sgd();
        let (input, batch, update) = (data.input(), data.batch(), update(sgd, 1.0, 0));
        changed.step(&input, batch.targets(), by, &update, None, &mut Default::default()).unwrap();
        for output in 0..n_outputs {
            let wanted = f64::from(head.bias().values()[output] - changed.bias().values()[output]);
            let at = |by: f32| {
                let mut moved = head.clone();
                moved.parameters_mut()[0].parameter.values_mut()[output] += by;
                loss(&moved)
            };
            let met = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((met - wanted).abs() < 2e-3, "{} bias {output}: {met}, wanted {wanted}", by.name());
        }
    }
}

/// A network over the head, and its training.
fn network(data: &Data, params: SparseParams) -> Network<Stack<Precomputed>, Sparse> {
    let encoder = Stack::new(Precomputed::new(data.width).with_dropout(0.1)).push(48, Activation::Relu, 0.0, 4);
    let n_outputs = data.targets.n_labels();
    let head = Sparse::new(n_outputs, 48, params, Init::Random { seed: 4 }).unwrap();
    Network::new(encoder, head)
}

fn kinds() -> Vec<SparseParams> {
    let rewire = Some(Rewire { every: 5, fraction: 0.1 });
    let base = SparseParams { rewire, ..params(6, true) };
    let low = |weights, moments| SparseParams { weights, moments, ..base };
    vec![
        base,
        SparseParams { uniform: false, ..base },
        low(DType::Bf16, DType::Bf16),
        low(DType::F16, DType::F32),
        low(DType::E4m3, DType::Bf16),
        low(DType::E5m2, DType::Bf16),
    ]
}

fn train_params(batch_size: usize) -> TrainParams {
    TrainParams { batch_size, epochs: 3, rate: 0.01, seed: 4, keep: Keep::Last, ..Default::default() }
}

fn all(network: &Network<Stack<Precomputed>, Sparse>) -> Vec<(String, Vec<u8>)> {
    let all = Snapshot::of(&network.parts()).unwrap();
    all.arrays().map(|(name, _, array)| (name.to_owned(), array.bytes.to_vec())).collect()
}

/// Ends a training run after so many steps, if not 0.
struct Until(u64, std::sync::atomic::AtomicU64);

impl Cancel for Until {
    fn cancelled(&self) -> bool {
        self.1.load(std::sync::atomic::Ordering::Relaxed) == self.0
    }
}

impl Observer<TrainEvent<'_>> for Until {
    fn event(&self, event: TrainEvent<'_>) {
        if let TrainEvent::Step { step, .. } = event {
            self.1.store(step, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

fn run(
    data: &Data,
    network: &Network<Stack<Precomputed>, Sparse>,
    batch_size: usize,
    checkpoint: Option<CheckpointAt<'_>>,
    observer: &TrainObserver<'_>,
) -> Option<Vec<(String, Vec<u8>)>> {
    let (train, validation) = Subset::split(data.examples(), 0.2, 1);
    let mut trainer = Trainer {
        loss: Loss::SquaredHinge,
        optimizer: Optimizer::adam(),
        schedule: &mut Constant,
        params: train_params(batch_size),
        checkpoint,
        hard: None,
        observer,
    };
    let mut network = network.clone();
    match trainer.train(&mut network, &train, Some(&validation)) {
        Ok(_) => Some(all(&network)),
        Err(TrainError::Cancelled { .. }) => None,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn any_number_of_threads_and_any_interruption_give_the_same_bytes() {
    let (some, many) = (Data::new(200, 20, 500, 6), Data::new(430, 20, 500, 6));
    let mut cases: Vec<_> = kinds().into_iter().map(|params| (&some, 40, params, Screening::Always)).collect();
    cases.push((&some, 40, kinds()[0], Screening::Never));
    // Eleven blocks of instances, and in the second step of an epoch one.
    cases.push((&many, 330, kinds()[0], Screening::Always));
    for (data, batch, params, screening) in cases {
        let (encoder, head) = network(data, params).into_parts();
        let network = Network::new(encoder, head.with_screening(screening));
        let run = |at: Option<CheckpointAt<'_>>, observer: &TrainObserver<'_>| run(data, &network, batch, at, observer);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(None, &Silent))
        };
        let wanted = on(1).unwrap();
        assert!(wanted.iter().any(|(name, _)| name == "head.indices"), "connections are part of the state");
        assert_eq!(on(2).unwrap(), wanted, "{params:?}");
        assert_eq!(on(3).unwrap(), wanted, "{params:?}");
        for stop in [1, 4, 5] {
            let folder = tempfile::tempdir().unwrap();
            let place = CheckpointFolder::claim(folder.path(), CHECKPOINT).unwrap();
            let checkpoint = place.begin("key".to_owned()).unwrap();
            let part = STATE.to_owned();
            let at = CheckpointAt { checkpoint: &checkpoint, part, every: Some(1), after: Duration::ZERO };
            assert_eq!(run(Some(at.clone()), &Until(stop, 0.into())), None);
            assert_eq!(run(Some(at), &Silent).unwrap(), wanted, "{params:?} after {stop} steps");
        }
    }
}

#[test]
fn connections_change_while_training_and_stay_sound() {
    let data = Data::new(200, 20, 100, 6);
    for params in kinds() {
        let before = network(&data, params);
        let mut after = before.clone();
        let (mut scratch, batch) = (Scratch::default(), data.batch());
        after.prepare(Optimizer::adam(), Optimizer::adam());
        for number in 0..5 {
            let step = StepParams::new(
                Step { number, epoch: 0, seed: 4 },
                UpdateRule { optimizer: Optimizer::adam(), rate: 0.01 },
            );
            let loss = after.step(&batch, Loss::SquaredHinge, &step, &mut scratch).unwrap();
            assert!(loss.is_finite());
            let same = after.head().connections().indices() == before.head().connections().indices();
            assert_eq!(same, number < 4, "{params:?}: rewired after the fifth step, not before");
        }
        let c = after.head().connections();
        assert_eq!(c.check(), Ok(()));
        assert_eq!(c.len(), before.head().connections().len());
        assert_eq!(matches!(c.fan_in(), FanIn::Uniform(6)), params.uniform);
        // What is new has weight 0 and no moments.
        let zeros: Vec<usize> = (0..c.len()).filter(|&at| c.weights().get(at) == 0.0).collect();
        assert!(zeros.len() >= c.len() / 10);
        if params == kinds()[0] {
            let state = Snapshot::of(&after.parts()).unwrap();
            let moments: Vec<_> = state.arrays().filter(|(name, ..)| name.starts_with("head.weights.m")).collect();
            assert_eq!(moments.len(), 2);
            for (_, role, moment) in moments {
                assert_eq!(role, Role::Training);
                let values: &[f32] = bytemuck::cast_slice(moment.bytes);
                assert!(zeros.iter().all(|&at| values[at] == 0.0));
            }
        }
    }
}

#[test]
fn every_precision_learns() {
    // Each output is true where one input is large: a layer with all connections finds it.
    let (n, width) = (256, 8);
    let values: Vec<f32> = (0..n * width).map(|i| number(i, 2)).collect();
    let positives =
        |i: usize| (0..width as u32).filter(move |&j| number(i * width + j as usize, 2) > 0.5).collect::<Vec<_>>();
    let data = Data { width, targets: LabelRows::from_lists((0..n).map(positives), width).unwrap(), values };
    for weights in [DType::F32, DType::Bf16, DType::F16, DType::E4m3, DType::E5m2] {
        for optimizer in [Optimizer::adam(), Optimizer::momentum(), Optimizer::sgd()] {
            let params = SparseParams { weights, moments: DType::Bf16, ..params(width, true) };
            let mut head = Sparse::new(width, width, params, Init::Random { seed: 1 }).unwrap();
            head.prepare(optimizer.moments());
            let (mut scratch, batch, input) = (Default::default(), data.batch(), data.input());
            let rate = if optimizer.name() == "adam" { 0.03 } else { 0.1 };
            let mut losses = Vec::new();
            for number in 0..150 {
                let update = update(optimizer, rate, number);
                let loss = head.step(&input, batch.targets(), Loss::SquaredHinge, &update, None, &mut scratch);
                losses.push(loss.unwrap());
            }
            let last = losses[140..].iter().sum::<f64>() / 10.0;
            assert!(last < 0.35 * losses[0], "{weights:?} {}: {} to {last}", optimizer.name(), losses[0]);
        }
    }
}

#[test]
fn negatives_bound_what_a_step_touches() {
    let data = Data::new(50, 20, 3000, 6);
    let drawn = Drawn::uniform(100);
    let first = head(3000, 20, params(6, true), 2).with_sampler(Some(Box::new(drawn.clone())));
    let (mut changed, mut scratch, batch) = (first.clone(), Default::default(), data.batch());
    let sgd = Optimizer::sgd();
    let mut gradient = Activations::default();
    let met = changed
        .step(&data.input(), batch.targets(), Loss::Bce, &update(sgd, 1.0, 3), Some(&mut gradient), &mut scratch)
        .unwrap();
    let (at, input) = (Step { number: 3, epoch: 0, seed: 5 }, data.input());
    let vectors = xc_nn::DenseRows::new(input.values(), 20);
    let queries = Queries { instances: batch.instances(), vectors, targets: batch.targets() };
    let mut candidates = Candidates::default();
    drawn.sample(at, queries, None, 0..3000, &mut candidates).unwrap();
    let mut wanted = candidates.list(0).labels.to_vec();
    wanted.extend((0..50).flat_map(|i| data.targets.row(i).to_vec()));
    wanted.sort_unstable();
    wanted.dedup();
    assert!(wanted.len() < 3000);
    let moved = |output: &u32| {
        let at = *output as usize;
        first.bias().values()[at] != changed.bias().values()[at]
    };
    let met_outputs: Vec<u32> = (0..3000).filter(moved).collect();
    assert_eq!(met_outputs, wanted, "with BCE every output that is scored has a gradient");
    // The loss and the gradients are those of a head of these outputs alone.
    let c = first.connections().select(&wanted);
    let mut bias = xc_nn::Parameter::zeros(wanted.len(), 1, xc_nn::Decay::No);
    let values: Vec<f32> = wanted.iter().map(|&o| first.bias().values()[o as usize]).collect();
    bias.values_mut().copy_from_slice(&values);
    let small = Sparse::from_parts(params(6, true), c, bias);
    let place = |o: &u32| wanted.binary_search(o).unwrap() as u32;
    let rows = (0..50).map(|i| data.targets.row(i).iter().map(place).collect::<Vec<_>>());
    let targets = LabelRows::from_lists(rows, wanted.len()).unwrap();
    let small_data = Data { values: data.values.clone(), width: 20, targets };
    let (small_batch, mut other) = (small_data.batch(), Activations::default());
    let loss = small.loss(&data.input(), small_batch.targets(), Loss::Bce, Mode::Predict, &mut scratch).unwrap();
    assert!((loss - met).abs() < 1e-9 * met);
    small.backward(&mut other, &mut scratch).unwrap();
    assert_eq!(other.values(), gradient.values());
}

#[test]
fn bad_shapes_and_states_are_said() {
    let message =
        |per_output, width| Sparse::new(3, width, params(per_output, true), Init::Zeros).unwrap_err().to_string();
    assert_eq!(message(5, 4), "5 connections a label, expected at most the number of inputs, 4");
    assert_eq!(message(1, 0), "the number of inputs is 0, expected at least 1");
    assert_eq!(message(0, 4), "the number of connections a label is 0, expected at least 1");
    // A damaged checkpoint: an input that is not there, and one twice.
    for (value, wanted) in [(99u16, "is connected with input 99 of 40"), (0, "twice")] {
        let mut head = head(4, 40, params(40, true), 1);
        let mut state = Snapshot::of(&[&head]).unwrap();
        let values: &mut [u16] = bytemuck::cast_slice_mut(state.bytes_mut("head.indices").unwrap());
        values[..2].fill(value);
        let error = head.load(&state).unwrap_err();
        assert_eq!(error.to_string(), "array head.indices");
        assert!(error.source().unwrap().to_string().contains(wanted));
    }
    // A NaN in a batch changes nothing.
    let data = Data::new(LANES + 3, 5, 4, 1);
    let first = head(4, 5, params(2, true), 1);
    let mut input = data.input();
    input.values_mut()[LANES * 5..].fill(f32::NAN);
    let (mut changed, sgd) = (first.clone(), Optimizer::sgd());
    let met = changed.step(
        &input,
        data.batch().targets(),
        Loss::SquaredHinge,
        &update(sgd, 1.0, 0),
        None,
        &mut Default::default(),
    );
    let met = met.unwrap();
    assert!(!met.is_finite());
    assert_eq!(state(&changed), state(&first));
    assert!(matches!(first.connections().indices(), InputIds::U16(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn screening_changes_nothing_where_no_score_is_near_the_margin(
        n in 1usize..400,
        n_outputs in 1usize..40,
        per_output in 1usize..9,
        is_signed: bool,
        often in 0.0f32..=1.0,
        tile in prop_oneof![Just(None), (1usize..30).prop_map(Some)],
        seed in 0u64..1 << 20,
    ) {
        let mut data = Data::new(n, 9, n_outputs, seed);
        if !is_signed {
            data.values.iter_mut().for_each(|v| *v = v.max(0.0));
        }
        let input = data.input();
        // Scores stay within 0.5 of the biases, which are far on one side of the margin or the
        // other.
        let mut exact = head(n_outputs, 9, params(per_output, seed % 3 > 0), seed);
        let values: Vec<f32> = (0..exact.connections().len()).map(|i| 0.05 * number(i, seed + 2)).collect();
        exact = with_weights(&exact, &values, |output| if number(output, seed + 3) < often { 1.0 } else { -2.0 });
        if let Some(tile) = tile {
            exact = exact.with_tile(tile);
        }
        if seed % 2 == 0 {
            exact = exact.with_sampler(Some(Box::new(Drawn::uniform(n_outputs / 2))));
        }
        let mut screened = exact.clone().with_screening(Screening::Always);
        prop_assert_ne!(screened.settings(), exact.settings());
        let optimizer = Optimizer::adam();
        let (mut rooms, mut gradients) = <([_; 2], [Activations; 2])>::default();
        for head in [&mut exact, &mut screened] {
            head.prepare(optimizer.moments());
        }
        for number in 0..2 {
            let update = update(optimizer, 1e-3, number);
            let mut step = |head: &mut Sparse, which: usize| {
                let wanted = Some(&mut gradients[which]);
                head.step(&input, data.batch().targets(), Loss::SquaredHinge, &update, wanted, &mut rooms[which]).unwrap()
            };
            let losses = [step(&mut exact, 0), step(&mut screened, 1)];
            prop_assert!((losses[0] - losses[1]).abs() <= 1e-12 * losses[0].abs(), "{losses:?}");
            prop_assert_eq!(state(&exact), state(&screened));
            let [a, b] = &gradients;
            prop_assert!(a.values() == b.values(), "gradients of the input");
        }
        // Without a margin there is nothing to screen.
        let update = update(optimizer, 1e-3, 2);
        let mut of = |head: &mut Sparse, which: usize| {
            head.step(&input, data.batch().targets(), Loss::Bce, &update, None, &mut rooms[which]).unwrap()
        };
        prop_assert_eq!(of(&mut exact, 0).to_bits(), of(&mut screened, 1).to_bits());
        prop_assert_eq!(state(&exact), state(&screened));
    }

    #[test]
    fn screening_overlooks_no_more_than_rounding_hides(n in 1usize..200, n_outputs in 1usize..60, seed in 0u64..1 << 20) {
        let mut data = Data::new(n, 60, n_outputs, seed);
        data.values.iter_mut().for_each(|v| *v = v.max(0.0));
        let (input, optimizer) = (data.input(), Optimizer::sgd());
        // Scores lie around the margin of most outputs.
        let base = head(n_outputs, 60, params(12, true), seed);
        let weights: Vec<f32> = (0..base.connections().len()).map(|i| number(i, seed + 2)).collect();
        let exact = with_weights(&base, &weights, |_| -1.5);
        let step = |mut head: Sparse| {
            let mut gradient = Activations::default();
            let update = update(optimizer, 1.0, 0);
            let mut scratch = Default::default();
            let loss = head.step(&input, data.batch().targets(), Loss::SquaredHinge, &update, Some(&mut gradient), &mut scratch).unwrap();
            (loss, gradient.values().to_vec(), head.bias().values().to_vec())
        };
        let (wanted, met) = (step(exact.clone()), step(exact.with_screening(Screening::Always)));
        // Rounding hides at most 12 * (1 / 254 + 1 / 254) of a score.
        let hidden = 12.0 / 127.0;
        let pairs = n_outputs as f64;
        prop_assert!(met.0 <= wanted.0 * (1.0 + 1e-12) && wanted.0 - met.0 <= pairs * hidden * hidden, "{} {}", met.0, wanted.0);
        for (met, wanted) in met.2.iter().zip(&wanted.2) {
            prop_assert!(f64::from(wanted - met).abs() <= 2.0 * hidden + 1e-6, "bias {met}, wanted {wanted}");
        }
        prop_assert!(met.1.iter().zip(&wanted.1).all(|(a, b)| (a - b).abs() <= 2.0 * hidden as f32 * pairs as f32 / n as f32));
    }
}

/// The same layer with other weights and biases.
fn with_weights(head: &Sparse, weights: &[f32], bias: impl Fn(usize) -> f32) -> Sparse {
    let mut connections = head.connections().clone();
    *connections.weights_mut() = FloatBuffer::nearest(DType::F32, weights.iter().copied());
    let mut biases = head.bias().clone();
    biases.values_mut().iter_mut().enumerate().for_each(|(output, value)| *value = bias(output));
    Sparse::from_parts(*head.params(), connections, biases)
}
