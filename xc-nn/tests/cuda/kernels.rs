//! Kernels called one by one: places and numbers above 2^32, any number of blocks, zeros of either sign.

use crate::{bits_of, numbers, rounded};
use half::bf16;
use xc_kernels::best::Keeping;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::layout::{self, Argument};
use xc_kernels::{Device, Emulated, Shape, address, arguments};
use xc_sparse::rank::{Scored, rank_key};

arguments! {
    struct XcBag {
        begin: u64,
        features: u64,
        values: u64,
        table: u64,
        bias: u64,
        out: u64,
        width: u32,
        relu: u32,
    }
    struct XcConnections {
        starts: u64,
        inputs: u64,
        weights: u64,
        table: u64,
        bias: u64,
        fan_in: u32,
        n_inputs: u32,
        is_wide: u32,
        r#type: u32,
    }
    struct XcUniform {
        lines: u64,
        first: u64,
        n: u32,
        n_rows: u32,
    }
    struct XcPairs {
        rows: u64,
        row: u64,
        label: u64,
        logits: u64,
        n: u64,
    }
    struct XcScores {
        logits: u64,
        scores: u64,
        stride: u64,
        width: u32,
        loss: u32,
    }
}

/// The first place that 32 bits do not name.
const FAR: usize = 1 << 32;
/// Threads of a block.
const THREADS: usize = 256;
/// Places that a last block has, and those behind it that block 0 comes to in its second turn.
const LAST: usize = THREADS + 44;
/// Where grids of a thread a place have place 2^32.
const FAR_BLOCK: u64 = (FAR / THREADS) as u64;

fn shape(x: usize, y: usize) -> Shape {
    Shape { grid: [x, y, 1], threads: THREADS as u32, shared: 0 }
}

/// Some numbers, the same for the same seed.
fn some(n: usize, seed: u64) -> Vec<f32> {
    std::iter::repeat_with(numbers(seed)).take(n).collect()
}

#[test]
fn structs_are_those_of_the_kernels() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let layouts = [XcBag::LAYOUT, XcConnections::LAYOUT, XcUniform::LAYOUT, XcPairs::LAYOUT, XcScores::LAYOUT];
    assert_eq!(layout::check(&device, "xc_layout_nn", &layouts), Ok(()));
}

/// Runs a kernel, which changes values one by one, by the block of value 2^32 alone, then by block 0, which has the
/// values behind that block, too.
fn assert_changed_above_2_to_the_32(
    change: impl Fn(f32) -> f32,
    run: impl Fn(&Device, &Emulated, &mut CudaSlice<f32>),
) {
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let [first, last] = far_values();
    let mut values = emulated.scattered(&device, FAR + LAST, &[(0, &first), (FAR, &last)]);
    let changed = |of: &[f32]| of.iter().copied().map(&change).collect::<Vec<f32>>();
    emulated.set_blocks(FAR_BLOCK..u64::MAX);
    run(&device, &emulated, &mut values);
    let got = device.download(&values.slice(FAR..)).unwrap();
    assert_eq!(bits_of(&got[..THREADS]), bits_of(&changed(&last[..THREADS])));
    assert_eq!(bits_of(&got[THREADS..]), bits_of(&last[THREADS..]), "behind the block");
    assert_eq!(bits_of(&device.download(&values.slice(..THREADS)).unwrap()), bits_of(&first));
    emulated.set_blocks(0..1);
    run(&device, &emulated, &mut values);
    assert_eq!(bits_of(&device.download(&values.slice(..THREADS)).unwrap()), bits_of(&changed(&first)));
    assert_eq!(bits_of(&device.download(&values.slice(FAR..)).unwrap()), bits_of(&changed(&last)));
}

/// Values of block 0, and from 2^32 on.
fn far_values() -> [Vec<f32>; 2] {
    [some(THREADS, 1), some(LAST, 2)]
}

#[test]
fn values_above_2_to_the_32_are_cut() {
    assert_changed_above_2_to_the_32(
        |v| if v > 0.0 { v } else { 0.0 },
        |device, _, values| {
            let (kernel, n) = (device.kernel("xc_nn_relu").unwrap(), values.len() as u64);
            let call = kernel.call(device.stream()).arg(values).arg(&n);
            // SAFETY: there are n values.
            unsafe { call.launch(shape(FAR / THREADS + 1, 1)) }.unwrap();
        },
    );
}

#[test]
fn values_above_2_to_the_32_are_rounded() {
    assert_changed_above_2_to_the_32(rounded, |device, emulated, out| {
        let (kernel, [first, last]) = (device.kernel("xc_nn_round").unwrap(), far_values());
        let values = emulated.scattered(device, FAR + LAST, &[(0, &first), (FAR, &last)]);
        let n = values.len() as u64;
        let call = kernel.call(device.stream()).arg(&values).arg(&n).arg(out);
        // SAFETY: there are n values, and room for as many.
        unsafe { call.launch(shape(FAR / THREADS + 1, 1)) }.unwrap();
    });
}

#[test]
fn a_bag_has_embeddings_and_instances_above_2_to_the_32() {
    const ROW: usize = FAR / THREADS;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let (near, far, bias) = (some(THREADS, 1), some(THREADS, 2), some(THREADS, 3));
    let table = emulated.scattered(&device, FAR + THREADS, &[(3 * THREADS, &near), (FAR, &far)]);
    let begin = emulated.scattered(&device, ROW + 2, &[(ROW, &[0u32, 2])]);
    let (features, values) = (device.upload(&[ROW as u32, 3]).unwrap(), device.upload(&[0.75f32, -1.5]).unwrap());
    let (on_bias, out) = (device.upload(&bias).unwrap(), emulated.scattered::<f32>(&device, FAR + THREADS, &[]));
    let bag = XcBag {
        begin: address(&begin),
        features: address(&features),
        values: address(&values),
        table: address(&table),
        bias: address(&on_bias),
        out: address(&out),
        width: THREADS as u32,
        relu: 0,
    };
    emulated.set_blocks(FAR_BLOCK..u64::MAX);
    let kernel = device.kernel("xc_nn_bag").unwrap();
    // SAFETY: there are the embeddings of both features, and room for the sums of the instance.
    unsafe { kernel.call(device.stream()).arg(&bag).launch(shape(ROW + 1, 1)) }.unwrap();
    let expected: Vec<f32> = (0..THREADS).map(|i| bias[i] + 0.75 * far[i] + -1.5 * near[i]).collect();
    assert_eq!(bits_of(&device.download(&out.slice(FAR..)).unwrap()), bits_of(&expected));
}

#[test]
fn sums_of_nothing_are_biases_and_zero_where_they_are_cut() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let (begin, bias) = (device.upload(&[0u32, 0]).unwrap(), device.upload(&[-0.0f32, -1.0, 2.0]).unwrap());
    let (none, out) = (device.zeros::<f32>(1).unwrap(), device.zeros::<f32>(3).unwrap());
    for (relu, expected) in [(0, [-0.0f32, -1.0, 2.0]), (1, [0.0, 0.0, 2.0])] {
        let [begin, features, values, table, bias, out_at] =
            [address(&begin), address(&none), address(&none), address(&none), address(&bias), address(&out)];
        let bag = XcBag { begin, features, values, table, bias, out: out_at, width: 3, relu };
        let kernel = device.kernel("xc_nn_bag").unwrap();
        // SAFETY: one instance without features, and room for its sums.
        unsafe { kernel.call(device.stream()).arg(&bag).launch(shape(1, 1)) }.unwrap();
        assert_eq!(bits_of(&device.download(&out).unwrap()), bits_of(&expected));
    }
}

#[test]
fn lines_of_inputs_stand_above_2_to_the_32() {
    // Blocks of 32 rows, of which the last has 27; the last block of inputs has 4.
    const BLOCKS: usize = 65_535;
    const INPUTS: usize = 4100;
    const ROWS: usize = (BLOCKS - 1) * 32 + 27;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let values = some(27 * 4, 1);
    let place = |i: usize| ((BLOCKS - 1) * 32 + i) * INPUTS + 4096;
    let parts: Vec<(usize, &[f32])> = values.chunks(4).enumerate().map(|(i, of_row)| (place(i), of_row)).collect();
    let rows = emulated.scattered(&device, ROWS * INPUTS, &parts);
    let mut lines = emulated.scattered::<u32>(&device, BLOCKS * INPUTS * 16, &[]);
    let (n_rows, n_inputs, x) = (ROWS as u32, INPUTS as u32, INPUTS.div_ceil(32));
    emulated.set_blocks((BLOCKS * x) as u64 - 1..u64::MAX);
    let kernel = device.kernel("xc_nn_lines").unwrap();
    let call = kernel.call(device.stream()).arg(&rows).arg(&n_rows).arg(&n_inputs).arg(&mut lines);
    // SAFETY: rows and room for whole blocks of them.
    unsafe { call.launch(shape(x, BLOCKS)) }.unwrap();
    let got = device.download(&lines.slice(lines.len() - 4 * 16..)).unwrap();
    let half = |row: usize, input: usize| values.get(row * 4 + input).map_or(0, |&v| bf16::from_f32(v).to_bits());
    let expected = |at: usize| u32::from(half(at % 16, at / 16)) | u32::from(half(at % 16 + 16, at / 16)) << 16;
    assert_eq!(got, (0..64).map(expected).collect::<Vec<u32>>());
}

/// Eight labels of 33 connections each, of which the first begins above 2^32; their inputs have numbers from 2^28 on.
struct Far {
    /// Which of the 40 inputs, weights, and biases.
    inputs: Vec<u32>,
    weights: Vec<f32>,
    bias: Vec<f32>,
    argument: XcConnections,
    _on: (CudaSlice<u32>, CudaSlice<f32>, CudaSlice<f32>),
}

const FAN_IN: usize = 33;
/// The first of the labels, and the first of the inputs.
const LABEL: usize = 1 << 28;
const INPUT: usize = 1 << 28;
const INPUTS: usize = INPUT + 40;

impl Far {
    fn new(emulated: &Emulated, device: &Device) -> Self {
        let inputs: Vec<u32> = (0..8 * FAN_IN as u32).map(|i| i * 7 % 40).collect();
        let numbers: Vec<u32> = inputs.iter().map(|input| INPUT as u32 + input).collect();
        let (weights, bias, begin) = (some(8 * FAN_IN, 5), some(8, 6), LABEL * FAN_IN);
        let on = (
            emulated.scattered(device, begin + inputs.len(), &[(begin, &numbers)]),
            emulated.scattered(device, begin + inputs.len(), &[(begin, &weights)]),
            emulated.scattered(device, LABEL + 8, &[(LABEL, &bias)]),
        );
        let argument = XcConnections {
            starts: 0,
            inputs: address(&on.0),
            weights: address(&on.1),
            table: 0,
            bias: address(&on.2),
            fan_in: FAN_IN as u32,
            n_inputs: INPUTS as u32,
            is_wide: 1,
            r#type: 0,
        };
        Self { inputs, weights, bias, argument, _on: on }
    }

    /// The logit of one of the labels for a row of the 40 inputs.
    fn logit(&self, label: usize, row: &[f32]) -> f32 {
        let mut sums = [0.0f32; 2];
        for j in 0..FAN_IN {
            let at = label * FAN_IN + j;
            let x = bf16::from_f32(row[self.inputs[at] as usize]).to_f32();
            sums[j % 2] = x.mul_add(self.weights[at], sums[j % 2]);
        }
        sums[0] + sums[1] + self.bias[label]
    }
}

/// Lines of 32 rows of 40 inputs.
fn lines_of(rows: &[f32]) -> Vec<u32> {
    let half = |row: usize, input: usize| u32::from(bf16::from_f32(rows[row * 40 + input]).to_bits());
    (0..40 * 16).map(|at| half(at % 16, at / 16) | half(at % 16 + 16, at / 16) << 16).collect()
}

#[test]
fn labels_have_connections_inputs_and_logits_above_2_to_the_32() {
    // Logits of a row, of which those of the labels are the first.
    const WIDTH: usize = 1 << 28;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let of = Far::new(&emulated, &device);
    let rows = some(32 * 40, 7);
    // The second block of 32 rows.
    let lines = emulated.scattered(&device, 2 * INPUTS * 16, &[((INPUTS + INPUT) * 16, &lines_of(&rows))]);
    let some = XcUniform { lines: address(&lines), first: LABEL as u64, n: WIDTH as u32, n_rows: 64 };
    emulated.set_blocks(WIDTH as u64 / 8..WIDTH as u64 / 8 + 1);
    let mut logits = emulated.scattered::<f32>(&device, 64 * WIDTH, &[]);
    let kernel = device.kernel("xc_nn_uniform").unwrap();
    let call = kernel.call(device.stream()).arg(&of.argument).arg(&some).arg(&mut logits);
    // SAFETY: the structs are the kernel's; the block has what it reads, and room for what it writes.
    unsafe { call.launch(shape(WIDTH / 8, 2)) }.unwrap();
    let expected = |row: usize| (0..8).map(|label| of.logit(label, &rows[row * 40..][..40])).collect::<Vec<f32>>();
    for row in 0..32 {
        let place = (32 + row) * WIDTH;
        let got = device.download(&logits.slice(place..place + 8)).unwrap();
        assert_eq!(bits_of(&got), bits_of(&expected(row)), "row {row}");
    }

    // As many keys a row as logits before.
    let (bars, n_kept) = (device.upload(&[u64::MAX; 64]).unwrap(), device.zeros::<u32>(64).unwrap());
    let kept = emulated.scattered::<u64>(&device, 64 * WIDTH, &[]);
    let best = Keeping {
        bars: address(&bars),
        kept: address(&kept),
        n_kept: address(&n_kept),
        filter: 0,
        room: WIDTH as u32,
        label0: 100,
    };
    let kernel = device.kernel("xc_nn_uniform_best").unwrap();
    let call = kernel.call(device.stream()).arg(&of.argument).arg(&some).arg(&best);
    // SAFETY: as above.
    unsafe { call.launch(shape(WIDTH / 8, 2)) }.unwrap();
    assert_eq!(device.download(&n_kept).unwrap(), [[0; 32], [8; 32]].concat());
    for row in 0..32 {
        let place = (32 + row) * WIDTH;
        let mut got = device.download(&kept.slice(place..place + 8)).unwrap();
        got.sort_unstable();
        let scored = expected(row).into_iter().zip(100..).map(|(score, label)| Scored { label, score });
        let mut expected: Vec<u64> = scored.map(rank_key).collect();
        expected.sort_unstable();
        assert_eq!(got, expected, "row {row}");
    }
}

#[test]
fn pairs_stand_above_2_to_the_32_and_so_do_their_rows() {
    // The first of two rows of inputs.
    const ROW: usize = 16;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let of = Far::new(&emulated, &device);
    let (values, place) = (some(2 * 40, 8), |row: usize| (ROW + row) * INPUTS + INPUT);
    let parts = [(place(0), &values[..40]), (place(1), &values[40..])];
    let rows = emulated.scattered(&device, (ROW + 2) * INPUTS, &parts);
    let (row, label) = (|i: usize| i / 3 % 2, |i: usize| i * 5 % 8);
    let numbers = |of: &dyn Fn(usize) -> usize, first: usize, n: usize| {
        (0..n).map(|i| (first + of(i)) as u32).collect::<Vec<u32>>()
    };
    let both = |of: &dyn Fn(usize) -> usize, first: usize| {
        let (near, far) = (numbers(of, first, THREADS), numbers(of, first, LAST));
        emulated.scattered(&device, FAR + LAST, &[(0, &near), (FAR, &far)])
    };
    let (on_row, on_label) = (both(&row, ROW), both(&label, LABEL));
    let logits = emulated.scattered(&device, FAR + LAST, &[(FAR + THREADS, &[0.0f32; LAST - THREADS])]);
    let [rows, row_at, label_at, logits_at] = [address(&rows), address(&on_row), address(&on_label), address(&logits)];
    let pairs = XcPairs { rows, row: row_at, label: label_at, logits: logits_at, n: (FAR + LAST) as u64 };
    let expected: Vec<f32> = (0..LAST).map(|i| of.logit(label(i), &values[row(i) * 40..][..40])).collect();
    let kernel = device.kernel("xc_nn_uniform_pairs").unwrap();
    for (blocks, done) in [(FAR_BLOCK..u64::MAX, THREADS), (0..1, LAST)] {
        emulated.set_blocks(blocks);
        let call = kernel.call(device.stream()).arg(&of.argument).arg(&pairs);
        // SAFETY: the structs are the kernel's; the blocks have what they read, and room for what they write.
        unsafe { call.launch(shape(FAR / THREADS + 1, 1)) }.unwrap();
        let got = device.download(&logits.slice(FAR..)).unwrap();
        assert_eq!(bits_of(&got[..done]), bits_of(&expected[..done]));
        assert_eq!(bits_of(&got[done..]), vec![0; LAST - done]);
    }
    assert_eq!(bits_of(&device.download(&logits.slice(..THREADS)).unwrap()), bits_of(&expected[..THREADS]));
}
