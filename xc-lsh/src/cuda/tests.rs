use super::*;
use crate::{FamilyKind, FamilyParams, KeyScratch, Projection};
use proptest::prelude::*;
use xc_kernels::Emulated;
use xc_kernels::layout::{Argument, check};

fn family(width: usize, n_codes: u32, n_tables: u32, key_bits: u32, projection: Projection) -> SimHash {
    let kind = FamilyKind::SimHash { projection };
    SimHash::new(FamilyParams { kind, width, n_codes, n_tables, key_bits, seed: 5 }).unwrap()
}

/// Keys on the device, and those of the CPU.
fn both(device: &Device, family: &SimHash, rows: DenseRows<'_>) -> [Result<Keys, DeviceKeysError>; 2] {
    let n_tables = family.params().n_tables as usize;
    let (mut got, mut expected) = (Keys::from_rows(n_tables, vec![9; n_tables]), Keys::new(n_tables));
    let on = SimHashOn::new(device, family).unwrap().keys_dense(rows, &mut got);
    assert!(on.is_ok() || got.is_empty());
    let of_cpu = family.keys_dense(rows, &mut expected, &mut KeyScratch::default());
    [on.map(|()| got), of_cpu.map(|()| expected).map_err(Into::into)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn keys_are_those_of_the_cpu(
        n in prop_oneof![Just(0usize), Just(1), Just(33), 2..12usize, Just(100)],
        width in prop_oneof![Just(1usize), Just(16), 2..40usize],
        n_codes in prop_oneof![Just(1u32), 2..12u32, Just(33), Just(64)], n_tables in prop_oneof![Just(1u32), 2..9u32],
        key_bits in prop_oneof![Just(32u32), 3..31u32], is_sparse in any::<bool>(), seed in 1u64..4,
        values in prop::collection::vec(prop_oneof![8 => -2f32..2.0, 1 => Just(0.0f32), 1 => Just(-0.0), 1 => Just(3e38)], 97),
        odd in prop_oneof![4 => Just(None), 1 => (0usize..4000, prop_oneof![Just(f32::NAN), Just(f32::INFINITY)]).prop_map(Some)],
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        let projection = if is_sparse { Projection::Sparse } else { Projection::Gaussian };
        let family = family(width, n_codes, n_tables, key_bits, projection);
        let mut rows: Vec<f32> = (0..n * width).map(|i| values[i * 7 % 97] * values[i / 97 % 97].min(2.0)).collect();
        rows.iter_mut().take(width).for_each(|v| *v = -0.0);
        if let Some((at, odd)) = odd && at < rows.len() {
            rows[at] = odd;
        }
        let [got, expected] = both(&device, &family, DenseRows::new(&rows, width));
        match (got, expected) {
            (Ok(got), Ok(expected)) => prop_assert_eq!(got, expected),
            // NaN differs from itself.
            (got, expected) => prop_assert_eq!(format!("{got:?}"), format!("{expected:?}")),
        }
    }
}

#[test]
fn threads_may_take_turns_after_every_instruction() {
    let emulated = Emulated::hold();
    emulated.set_turn(1);
    let device = Device::open(0).unwrap();
    let family = family(10, 9, 8, 32, Projection::Gaussian);
    let values: Vec<f32> = (0..98 * 10).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    for n in [2, 98] {
        let [got, expected] = both(&device, &family, DenseRows::new(&values[..n * 10], 10));
        assert_eq!(got, expected);
    }
}

#[test]
fn what_a_device_does_not_compute_is_refused() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let family = family(10, 9, 8, 32, Projection::Hadamard);
    assert_eq!(SimHashOn::new(&device, &family).map(|_| ()).unwrap_err(), DeviceKeysError::Hadamard);
}

#[test]
fn structs_are_laid_out_as_on_the_host() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    assert_eq!(check(&device, "xc_layout_lsh", &[Signs::LAYOUT]), Ok(()));
}

#[test]
fn codes_above_2_to_the_32_are_joined() {
    // Keys of the last block, and those behind it that block 0 has in its second turn.
    const LAST: usize = 256 + 24;
    const FAR: usize = 1 << 32;
    const TABLES: usize = 8;
    const CODES: usize = 5;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let kernel = device.kernel("xc_lsh_join").unwrap();
    let bits: Vec<u64> = (1..=LAST as u64 / 8).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let n = FAR + LAST;
    let words = emulated.scattered(&device, n / TABLES, &[(FAR / TABLES, &bits)]);
    let (mut narrow, wide) = (emulated.scattered::<u32>(&device, n, &[]), emulated.scattered::<u64>(&device, n, &[]));
    let (stride, n_rows, n_tables, n_codes) = (1u64, (n / TABLES) as u64, TABLES as u32, CODES as u32);
    emulated.set_blocks(FAR as u64 / 256..u64::MAX);
    let code = |at: usize| {
        let bit = |k: usize| bits[at / TABLES] >> (k * TABLES + at % TABLES) & 1;
        if at < 256 { (0..CODES).fold(0, |codes, k| codes << 1 | bit(k)) } else { 0 }
    };
    let expected: Vec<u64> = (0..LAST).map(code).collect();
    for to_wide in [0, address(&wide)] {
        let call = kernel.call(device.stream()).arg(&words).arg(&stride).arg(&n_rows).arg(&n_tables).arg(&n_codes);
        let shape = Shape { grid: [FAR / 256 + 1, 1, 1], threads: 256, shared: 0 };
        // SAFETY: the rows of the block are there, and there is room for all keys.
        unsafe { call.arg(&mut narrow).arg(&to_wide).launch(shape) }.unwrap();
    }
    let got: Vec<u64> = device.download(&narrow.slice(FAR..)).unwrap().into_iter().map(u64::from).collect();
    assert_eq!(got, expected);
    assert_eq!(device.download(&wide.slice(FAR..)).unwrap(), expected);
}

#[test]
fn sums_that_are_above_0_by_their_last_bit_have_a_sign() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let tiles = Tiles::without_streams(&device, "xc_lsh_signs").unwrap();
    // The square of a number less what it is once rounded: above 0 where the product is not rounded before the sum.
    let (factor, rounded) = (1.0 + 2f32.powi(-12), 1.0 + 2f32.powi(-11));
    assert_eq!(factor * factor, rounded);
    for width in [16, 21] {
        // Row i multiplies at place i; the sum begins at the place before, that of row 0 at none.
        let mut rows = vec![0.0f32; width * width];
        for i in 0..width {
            rows[i * width + i] = factor;
            if i > 0 {
                rows[i * width + i - 1] = -rounded;
            }
        }
        // Of plane j the places from j on are 1 in front of place j + 1 and the factor there.
        let mut planes = vec![0.0f32; width * width];
        for j in 0..width {
            planes[j * width + j] = factor;
            if j > 0 {
                planes[j * width + j - 1] = 1.0;
            }
        }
        for n in [width, 7 * width] {
            // More rows are tiles of another size.
            let many: Vec<f32> = rows.iter().copied().cycle().take(n * width).collect();
            let (on_rows, on_planes) = (device.upload(&many).unwrap(), device.upload(&planes).unwrap());
            let words = device.zeros::<u64>(n).unwrap();
            let operands =
                Operands::new(Rows::new(&on_rows, n, width, width), Rows::new(&on_planes, width, width, width), None);
            // SAFETY: rows and planes are there, and a word for each row.
            unsafe { tiles.launch(device.stream(), &operands, &Signs { words: address(&words), stride: 1 }) }.unwrap();
            let sum = |row: &[f32], plane: &[f32]| row.iter().zip(plane).fold(0.0f32, |sum, (a, b)| a.mul_add(*b, sum));
            let word = |row: &[f32]| {
                let signs = planes.chunks(width).map(|plane| u64::from(sum(row, plane) > 0.0));
                signs.enumerate().fold(0, |word, (j, sign)| word | sign << j)
            };
            let expected: Vec<u64> = many.chunks(width).map(word).collect();
            // Each row has its own plane's.
            assert!(expected.iter().enumerate().all(|(i, word)| word >> (i % width) & 1 == 1));
            assert_eq!(device.download(&words).unwrap(), expected, "{n} rows of {width}");
        }
    }
}
