//! Products on the card against their definition: one chain of fused multiply-adds an entry.

use proptest::prelude::*;
use xc_kernels::layout::{Argument, check};
use xc_kernels::product::{Operands, Product, Rows, Store};
use xc_kernels::{Device, Emulated, address};

/// Values of many sizes, zeros of both signs among them.
pub(crate) fn values(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    (0..n)
        .map(|_| match next() % 16 {
            0 => -0.0,
            1 => 0.0,
            2 => 1e-30 * (next() % 5) as f32 - 2e-30,
            _ => next() as f32 / (1 << 23) as f32 - 1.0,
        })
        .collect()
}

/// Rows of a matrix, `stride` values from one to the next.
fn row(matrix: &[f32], stride: usize, width: usize, i: usize) -> &[f32] {
    &matrix[i * stride..][..width]
}

pub(crate) fn chain(a: &[f32], b: &[f32], start: f32) -> f32 {
    a.iter().zip(b).fold(start, |sum, (&a, &b)| a.mul_add(b, sum))
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// The bits of the product of a shape on the card, and those expected.
fn both(device: &Device, (m, n, k): (usize, usize, usize), spare: usize, with_start: bool) -> [Vec<u32>; 2] {
    let stride = k + spare;
    let (a, b, start) = (values(m * stride, 1), values(n * stride, 2), values(n, 3));
    let (on_a, on_b, on_start) =
        (device.upload(&a).unwrap(), device.upload(&b).unwrap(), device.upload(&start).unwrap());
    let mut c = device.zeros::<f32>(m * n + 1).unwrap();
    let product = Product::load(device).unwrap();
    let (rows_a, rows_b) = (Rows::new(&on_a, m, k, stride), Rows::new(&on_b, n, k, stride));
    product.run(device.stream(), rows_a, rows_b, with_start.then_some(&on_start), &mut c).unwrap();
    let mut expected = Vec::new();
    for i in 0..m {
        for j in 0..n {
            let start = if with_start { start[j] } else { 0.0 };
            expected.push(chain(row(&a, stride, k, i), row(&b, stride, k, j), start));
        }
    }
    // What lies behind the product stays.
    expected.push(0.0);
    [bits(&device.download(&c).unwrap()), bits(&expected)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn entries_are_one_chain_each(
        m in prop_oneof![Just(0usize), Just(1), Just(8), 2..12usize, Just(33), Just(97), Just(130)],
        n in prop_oneof![Just(0usize), Just(1), 1..70usize, Just(129), Just(257)],
        k in prop_oneof![Just(0usize), Just(1), Just(32), 1..9usize, 10..70usize],
        spare in 0usize..5, with_start in any::<bool>(), seed in 1u64..4,
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        let [got, expected] = both(&device, (m, n, k), spare, with_start);
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn leaves_are_chains_of_their_own(
        m in 1usize..40, n in 1usize..70, k in prop_oneof![0..300usize, Just(64), Just(256)],
        power in 0u32..4, seed in 1u64..4,
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        let blocks = xc_buffer::sums::Blocks::new(k, 1 << power, 32);
        let leaves = blocks.n_leaves();
        let (a, b) = (values(m * k, 1), values(n * k, 2));
        let (on_a, on_b) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let mut c = device.zeros::<f32>(m * n * leaves).unwrap();
        let (rows_a, rows_b) = (Rows::new(&on_a, m, k, k), Rows::new(&on_b, n, k, k));
        Product::load(&device).unwrap().run_in_leaves(device.stream(), rows_a, rows_b, leaves as u32, &mut c).unwrap();
        let got = device.download(&c).unwrap();
        let mut expected = vec![0.0; m * n];
        let of_a = xc_dense::MatRef::new(&a, m, k);
        let of_b = xc_dense::MatRef::new(&b, n, k);
        let to = xc_dense::MatMut::new(&mut expected, m, n);
        let precision = xc_dense::MatmulPrecision::F32;
        xc_dense::product_in_leaves(to, of_a, of_b.t(), &blocks, precision, &mut Default::default());
        prop_assert_eq!(bits(&got[..m * n]), bits(&expected));
    }
}

#[test]
fn threads_may_take_turns_after_every_instruction() {
    let emulated = Emulated::hold();
    emulated.set_turn(1);
    let device = Device::open(0).unwrap();
    for (m, k, spare) in [(1, 70, 2), (3, 35, 0), (20, 36, 0), (100, 19, 1)] {
        let [got, expected] = both(&device, (m, 40, k), spare, true);
        assert_eq!(got, expected, "{m} rows");
    }
}

#[test]
fn rows_may_lie_beyond_the_reach_of_32_bits() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    // Rows 2^28 and on of 20 values: the number of the first value is above 2^32, that of its byte above 2^34.
    let (first, n, k) = (1u64 << 28, 70, 20);
    let b = values(n * k, 2);
    let on_b = device.upload(&b).unwrap();
    let base = address(&on_b).wrapping_sub(4 * first * k as u64);
    let product = Product::load(&device).unwrap();
    for m in [1, 5, 20, 100] {
        let a = values(m * k, 1);
        let on_a = device.upload(&a).unwrap();
        let mut c = device.zeros::<f32>(m * n).unwrap();
        // SAFETY: rows `first` and on are those of `on_b`, and no others are read.
        let rows_b = unsafe { Rows::at(base, first, n, k, k) };
        product.run(device.stream(), Rows::new(&on_a, m, k, k), rows_b, None, &mut c).unwrap();
        let entry = |at: usize| chain(row(&a, k, k, at / n), row(&b, k, k, at % n), 0.0);
        let expected: Vec<f32> = (0..m * n).map(entry).collect();
        assert_eq!(bits(&device.download(&c).unwrap()), bits(&expected), "{m} rows");
    }
}

#[test]
fn structs_are_laid_out_as_on_the_host() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    assert_eq!(check(&device, "xc_layout_product", &[Operands::LAYOUT, Store::LAYOUT]), Ok(()));
}

#[test]
#[should_panic(expected = "rows of 3 and of 4 values")]
fn widths_that_differ_are_refused() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let values = device.zeros::<f32>(12).unwrap();
    let _ = Operands::new(Rows::new(&values, 4, 3, 3), Rows::new(&values, 3, 4, 4), None);
}

#[test]
#[should_panic(expected = "12 values, expected 4 rows of 3, 4 apart")]
fn rows_that_are_not_there_are_refused() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let values = device.zeros::<f32>(12).unwrap();
    let _ = Rows::new(&values, 4, 3, 4);
}

/// Warp instructions of all launches that were counted.
fn counted(emulated: &Emulated) -> u64 {
    let counts = emulated.counts();
    let of =
        |line: &str| line.split("\"warp_instructions\": ").nth(1)?.split([',', '}']).next()?.trim().parse::<u64>().ok();
    counts.lines().filter_map(of).sum()
}

#[test]
fn a_product_is_mostly_its_multiply_adds() {
    let emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    // Warp instructions for each multiply-add of a warp, and of a streamed row of 128 bytes for 32 lanes.
    for ((m, n, k), most) in [((128, 128, 512), 1.28), ((32, 256, 512), 1.32), ((1, 64, 512), 9.0)] {
        emulated.clear_counts();
        both(&device, (m, n, k), 0, true);
        let each = counted(&emulated) as f64 / (m * n * k / 32) as f64;
        assert!(!emulated.is_emulated() || (1.0..most).contains(&each), "{m} x {n} x {k}: {each:.3} instructions");
    }
}
