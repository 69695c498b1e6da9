//! The k smallest keys of rows, against sorting.

use proptest::prelude::*;
use xc_kernels::{Device, Emulated, Shape};

/// The k smallest keys of each row, by the kernel.
fn selected(device: &Device, rows: &[Vec<u64>], k: usize) -> Vec<Vec<u64>> {
    let stride = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut keys = vec![0; stride * rows.len()];
    rows.iter().enumerate().for_each(|(i, row)| keys[i * stride..][..row.len()].copy_from_slice(row));
    let lengths: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
    let (keys, lengths) = (device.upload(&keys).unwrap(), device.upload(&lengths).unwrap());
    let (mut out, mut n_out) = (device.zeros::<u64>(k * rows.len()).unwrap(), device.zeros::<u32>(rows.len()).unwrap());
    let room = k.next_power_of_two() as u32;
    let (stride, of) = (stride as u64, k as u32);
    let kernel = device.kernel("xc_select_k").unwrap();
    let call = kernel.call(device.stream()).arg(&keys).arg(&lengths).arg(&stride).arg(&of).arg(&room);
    let shape = Shape { grid: [rows.len(), 1, 1], threads: 256, shared: room as usize * 8 };
    // SAFETY: types, order and lengths are those of the kernel's text.
    unsafe { call.arg(&mut out).arg(&mut n_out).launch(shape) }.unwrap();
    let (out, n_out) = (device.download(&out).unwrap(), device.download(&n_out).unwrap());
    (0..rows.len()).map(|i| out[i * k..][..n_out[i] as usize].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_smallest_keys_are_those_of_a_sort(
        // Few distinct high bits, so that several digits decide.
        rows in prop::collection::vec(prop::collection::btree_set((0u64..3, 0u64..600).prop_map(|(a, b)| a << 40 | b), 0..300), 0..4),
        k in prop_oneof![Just(0usize), Just(1), Just(31), 2..90usize, Just(400)],
        seed in 1u64..4,
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        let rows: Vec<Vec<u64>> = rows.into_iter().map(|row| {
            let mut row: Vec<u64> = row.into_iter().collect();
            row.reverse();
            row
        }).collect();
        let got = selected(&device, &rows, k);
        for (mut row, got) in rows.into_iter().zip(got) {
            row.sort_unstable();
            row.truncate(k);
            prop_assert_eq!(got, row);
        }
    }
}

#[test]
fn more_keys_than_a_block_has_threads_are_sorted() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let row: Vec<u64> = (0..2000u64).map(|i| i * 7919 % 2003).collect();
    let mut sorted = row.clone();
    sorted.sort_unstable();
    for k in [512, 513, 1500] {
        assert_eq!(selected(&device, std::slice::from_ref(&row), k), [&sorted[..k]], "{k} keys");
    }
}

#[test]
fn threads_may_take_turns_after_every_instruction() {
    let emulated = Emulated::hold();
    emulated.set_turn(1);
    let device = Device::open(0).unwrap();
    let row: Vec<u64> = (0..90u64).map(|i| i * 37 % 101).collect();
    assert_eq!(selected(&device, &[row], 5), [[0, 1, 2, 3, 4]]);
}
