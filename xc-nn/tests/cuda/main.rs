//! Networks on a device answer with the bits that they answer with on the CPU.

mod kernels;

use proptest::prelude::*;
use std::sync::Arc;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;
use xc_dense::MatmulPrecision;
use xc_kernels::{Device, Emulated, Shape};
use xc_nn::cuda::{EncoderOnDevice, HeadOnDevice};
use xc_nn::encoder::{Bag, Precomputed, Stack};
use xc_nn::head::sparse::SparseParams;
use xc_nn::head::{Dense, Ranked, Sampled, SampledParams, Sparse};
use xc_nn::sampler::Lists;
use xc_nn::{
    Activation, Activations, Batch, DenseRows, Encoder, Head, Init, Loss, Mode, Network, Row, Rows, Scratch, in_memory,
};
use xc_sparse::CsrMatrix;
use xc_sparse::rank::RankedBatch;

/// Numbers that look random, with some zeros of either sign; of an even seed three of four are zeros.
fn numbers(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    let n_zeros = if seed.is_multiple_of(2) { 12 } else { 2 };
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match state >> 60 {
            kind if kind < n_zeros => 0f32.copysign(if kind % 2 == 0 { 1.0 } else { -1.0 }),
            _ => (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0,
        }
    }
}

fn bits(ranked: &RankedBatch) -> Vec<Vec<(u32, u32)>> {
    ranked.iter().map(|row| row.iter().map(|s| (s.label, s.score.to_bits())).collect()).collect()
}

fn bits_of(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// The nearest bf16; numbers below those of full precision become 0 of their sign.
fn rounded(value: f32) -> f32 {
    if value.is_normal() { half::bf16::from_f32(value).to_f32() } else { 0f32.copysign(value) }
}

/// A network whose parameters are all other than what they begin with.
fn network<E, H>(encoder: E, mut head: H, seed: u64) -> Network<Stack<E>, H>
where
    E: Encoder<Output = Activations>,
    H: Head<Input = Activations>,
{
    let mut next = numbers(seed);
    head.parameters_mut().into_iter().for_each(|of| of.parameter.values_mut().fill_with(&mut next));
    Network::new(Stack::new(encoder), head)
}

/// Compares vectors, logits and rankings.
fn assert_same_answers<E, H>(device: &Arc<Device>, network: &Network<E, H>, batch: &Batch, ks: &[usize])
where
    E: Encoder<Output = Activations> + EncoderOnDevice,
    H: Head<Input = Activations> + HeadOnDevice,
{
    let on_device = network.on(device).unwrap();
    let (mut expected, mut got) = (Activations::default(), Activations::default());
    in_memory(network.encoder().forward(batch, Mode::Predict, &mut expected, &mut Default::default()));
    on_device.vectors(batch, &mut got).unwrap();
    assert_eq!((got.len(), got.width()), (expected.len(), expected.width()));
    assert_eq!(bits_of(got.values()), bits_of(expected.values()), "vectors");
    let mut scratch = Scratch::default();
    in_memory(network.logits(batch, &mut expected, &mut scratch));
    on_device.logits(batch, &mut got).unwrap();
    assert_eq!((got.len(), got.width()), (expected.len(), expected.width()));
    assert_eq!(bits_of(got.values()), bits_of(expected.values()), "logits");
    let (mut ranked, mut on) = (Ranked::default(), Ranked::default());
    for &k in ks {
        in_memory(network.rank(batch, None, k, &mut scratch, &mut ranked));
        on_device.rank(batch, k, &mut on).unwrap();
        assert_eq!(bits(&on.best), bits(&ranked.best), "the {k} best");
    }
}

/// Rows of sparse features, every third one empty.
fn sparse_batch(n: usize, n_features: usize, seed: u64) -> Batch {
    let mut next = numbers(seed);
    let (mut indptr, mut features, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..n {
        let taken = (0..n_features as u32).filter(|f| row % 3 != 2 && (f * 7 + row as u32 * 5) % 11 < 4);
        features.extend(taken);
        indptr.push(features.len());
    }
    values.resize_with(features.len(), &mut next);
    let x = CsrMatrix::from_checked((n, n_features), indptr, features, values);
    let mut batch = Batch::default();
    batch.fill_features(Rows::Sparse(x.view()), 0..n);
    batch
}

fn dense_batch(n: usize, width: usize, seed: u64) -> Batch {
    let mut next = numbers(seed);
    let values: Vec<f32> = (0..n * width).map(|_| next()).collect();
    let mut batch = Batch::default();
    batch.fill_features(Rows::Dense(DenseRows::new(&values, width)), 0..n);
    batch
}

fn activations() -> impl Strategy<Value = Activation> {
    prop::sample::select(vec![Activation::Relu, Activation::Identity])
}

fn precisions() -> impl Strategy<Value = MatmulPrecision> {
    prop::sample::select(vec![MatmulPrecision::F32, MatmulPrecision::Bf16])
}

fn batches() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(0usize), 2 => Just(1), 2 => 2usize..8, 1 => Just(33)]
}

/// A sparse layer of this type of weights.
fn sparse(n: usize, width: usize, per_output: usize, uniform: bool, weights: DType, seed: u64) -> Sparse {
    let params = SparseParams { per_output, uniform, weights: DType::F32, moments: DType::F32, rewire: None };
    let head = Sparse::new(n, width, params, Init::Random { seed }).unwrap();
    let (mut connections, bias) = (head.connections().clone(), head.bias().clone());
    let mut next = numbers(seed + 1);
    let values = FloatBuffer::nearest(weights, std::iter::repeat_with(&mut next).take(connections.len()));
    *connections.weights_mut() = values;
    Sparse::from_parts(SparseParams { weights, ..params }, connections, bias)
}

const WEIGHTS: [DType; 5] = [DType::F32, DType::Bf16, DType::F16, DType::E4m3, DType::E5m2];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn dense_layers_on_embeddings(
        (n_features, width, hidden) in (1usize..40, 1usize..40, prop_oneof![Just(0usize), 1usize..40, Just(70)]),
        n_labels in prop_oneof![Just(1usize), 2usize..90], n in batches(), seed in 1u64..4,
        (below, above) in (activations(), activations()), products in precisions(),
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Arc::new(Device::open(0).unwrap());
        let mut encoder = Stack::new(Bag::new(n_features, width, below, 0.2, seed));
        if hidden > 0 {
            encoder = encoder.push(hidden, above, 0.5, seed).push(width, below, 0.0, seed).with_products(products);
        }
        let top = encoder.width();
        let head = Dense::new(n_labels, top, seed).with_products(products);
        let mut network = Network::new(encoder, head);
        let mut next = numbers(seed);
        network.parameters_mut().into_iter().for_each(|of| of.parameter.values_mut().fill_with(&mut next));
        let batch = sparse_batch(n, n_features, seed);
        assert_same_answers(&device, &network, &batch, &[0, 1, 3, n_labels, n_labels + 2]);
    }

    #[test]
    fn rows_of_labels_on_vectors(
        width in prop_oneof![1usize..4, 1usize..70], n_labels in prop_oneof![Just(1usize), 2usize..300], n in batches(),
        seed in 1u64..4, rows in prop::sample::select(vec![DType::F32, DType::Bf16]), precision in precisions(),
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Arc::new(Device::open(0).unwrap());
        let params = SampledParams { rows, precision, lists: Lists::Shared };
        let network = network(Precomputed::new(width), Sampled::new(n_labels, width, params, seed), seed);
        assert_same_answers(&device, &network, &dense_batch(n, width, seed), &[0, 2, 40, n_labels + 1]);
    }

    #[test]
    fn sparse_layers(
        per_output in prop::sample::select(vec![1usize, 2, 31, 33, 67]), uniform: bool,
        weights in prop::sample::select(WEIGHTS.to_vec()), n_labels in prop_oneof![Just(1usize), 2usize..400],
        n in batches(), seed in 1u64..4,
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Arc::new(Device::open(0).unwrap());
        let width = per_output + seed as usize * 5;
        let head = sparse(n_labels, width, per_output, uniform, weights, seed);
        let network = network(Precomputed::new(width), head, seed);
        let batch = dense_batch(n, width, seed);
        assert_same_answers(&device, &network, &batch, &[0, 1, 5, n_labels + 1]);

        let lists: Vec<Vec<u32>> = (0..n as u32).map(|i| (0..n_labels as u32).filter(|l| (l + i) % (i + 1) == 0).collect()).collect();
        let (mut got, mut scratch, mut expected) = (RankedBatch::new(), Default::default(), Vec::new());
        network.on(&device).unwrap().rank_some(&batch, |at| &lists[at], 4, &mut got).unwrap();
        for (i, list) in lists.iter().enumerate() {
            let Some(rows) = batch.dense() else { panic!("sparse rows") };
            network.head().rank_some(rows.row(i), list, 4, &mut scratch, &mut expected);
            let bits = |row: &[xc_sparse::rank::Scored]| row.iter().map(|s| (s.label, s.score.to_bits())).collect::<Vec<_>>();
            prop_assert_eq!(bits(got.row(i)), bits(&expected));
        }
    }
}

#[test]
fn turns_of_one_instruction() {
    let emulated = Emulated::hold();
    emulated.set_turn(1);
    let device = Arc::new(Device::open(0).unwrap());
    let of_bag = network(Bag::new(9, 5, Activation::Relu, 0.0, 1), Dense::new(11, 5, 2), 3);
    assert_same_answers(&device, &of_bag, &sparse_batch(3, 9, 4), &[2]);
    let of_sparse = network(Precomputed::new(9), sparse(20, 9, 3, true, DType::Bf16, 1), 2);
    assert_same_answers(&device, &of_sparse, &dense_batch(2, 9, 4), &[2]);
}

#[test]
fn inputs_may_have_numbers_of_more_than_16_bits() {
    let _emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    let width = (1 << 16) + 5;
    let network = network(Precomputed::new(width), sparse(300, width, 5, true, DType::F32, 1), 2);
    assert_same_answers(&device, &network, &dense_batch(1, width, 4), &[3]);
}

#[test]
fn embeddings_may_be_wider_than_a_block_of_threads() {
    let _emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    for width in [256, 257, 700] {
        let network = network(Bag::new(9, width, Activation::Relu, 0.0, 1), Dense::new(11, width, 2), 3);
        assert_same_answers(&device, &network, &sparse_batch(4, 9, 4), &[2]);
    }
}

#[test]
fn values_are_cut_and_rounded_by_any_number_of_blocks() {
    const N: usize = 1000;
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let mut next = numbers(5);
    let mut values: Vec<f32> = (0..N).map(|_| next()).collect();
    values[3] = 1e-39;
    let cut: Vec<f32> = values.iter().map(|&v| if v > 0.0 { v } else { 0.0 }).collect();
    let nearest: Vec<f32> = values.iter().copied().map(rounded).collect();
    let (n, from) = (N as u64, device.upload(&values).unwrap());
    for blocks in [1, 2, 3, 9] {
        let shape = Shape { grid: [blocks, 1, 1], threads: 256, shared: 0 };
        let mut got = device.upload(&values).unwrap();
        let kernel = device.kernel("xc_nn_relu").unwrap();
        // SAFETY: there are n values.
        unsafe { kernel.call(device.stream()).arg(&mut got).arg(&n).launch(shape) }.unwrap();
        assert_eq!(bits_of(&device.download(&got).unwrap()), bits_of(&cut), "{blocks} blocks");
        let mut got = device.zeros::<f32>(N).unwrap();
        let kernel = device.kernel("xc_nn_round").unwrap();
        // SAFETY: there are n values, and room for as many.
        unsafe { kernel.call(device.stream()).arg(&from).arg(&n).arg(&mut got).launch(shape) }.unwrap();
        assert_eq!(bits_of(&device.download(&got).unwrap()), bits_of(&nearest), "{blocks} blocks");
    }
}

#[test]
fn a_row_that_keeps_more_than_there_is_room_for_is_ranked_all_the_same() {
    let _emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    // Logits ascend with the label: each part of the labels beats the bar of the one before.
    let mut head = sparse(9000, 4, 1, true, DType::F32, 1);
    head.bias_mut().iter_mut().zip(0..).for_each(|(bias, label)| *bias = label as f32);
    let network = Network::new(Stack::new(Precomputed::new(4)), head);
    assert_same_answers(&device, &network, &dense_batch(2, 4, 4), &[3]);
}

#[test]
fn scores_are_those_of_the_loss() {
    let emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    for (width, n) in [(1, 3), (15, 2), (257, 2), (1024, 1), (2065, 2), (17_409, 1)] {
        emulated.set_seed(width as u64);
        let mut head = Dense::new(width, 3, Init::Random { seed: 3 });
        head.bias_mut().iter_mut().zip(0..).for_each(|(bias, label)| *bias = (label * 37 % 211) as f32 - 150.0);
        let network = Network::new(Stack::new(Precomputed::new(3)), head);
        let (batch, on_device) = (dense_batch(n, 3, 5), network.on(&device).unwrap());
        let mut logits = Activations::default();
        in_memory(network.logits(&batch, &mut logits, &mut Scratch::default()));
        for loss in Loss::ALL {
            let (first, stride) = (7, width + 2);
            let mut scores = device.zeros::<f32>(first + n * stride).unwrap();
            on_device.scores(&batch, loss, &mut scores, first, stride).unwrap();
            let mut expected = vec![0.0; first + n * stride];
            for i in 0..n {
                let row = &mut expected[first + i * stride..][..width];
                row.copy_from_slice(logits.row(i));
                loss.scores(row);
            }
            assert_eq!(bits_of(&device.download(&scores).unwrap()), bits_of(&expected), "{loss} {width}");
        }
    }
}

#[test]
fn rows_of_another_kind_break_the_contract() {
    let _emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    let network = network(Bag::new(9, 5, Activation::Relu, 0.0, 1), Dense::new(11, 5, 2), 3).on(&device).unwrap();
    for batch in [dense_batch(2, 9, 1), sparse_batch(2, 8, 1)] {
        let refused = std::panic::AssertUnwindSafe(|| network.logits(&batch, &mut Activations::default()));
        assert!(std::panic::catch_unwind(refused).is_err());
    }
    let mut one = Batch::default();
    one.fill_one(Row::Dense(&[0.5; 9]), 9);
    assert_eq!(one.len(), 1);
}
