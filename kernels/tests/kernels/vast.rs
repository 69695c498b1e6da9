//! Kernels called one by one: places above 2^32, more of them than threads, filters, and bars that are met.

use crate::product::{chain, values};
use xc_kernels::best::Keeping;
use xc_kernels::product::{Operands, Rows, Store, Tiles};
use xc_kernels::{Device, Emulated, Shape, address};
use xc_sparse::rank::{Scored, rank_key};

/// The first place that 32 bits do not name.
const FAR: usize = 1 << 32;
/// Threads of a block.
const THREADS: usize = 256;

fn blocks(n: usize) -> Shape {
    Shape { grid: [n, 1, 1], threads: THREADS as u32, shared: 0 }
}

/// Sums of leaves, two and two.
fn added(leaves: &[Vec<f32>]) -> Vec<f32> {
    match leaves {
        [one] => one.clone(),
        _ => {
            let (low, high) = leaves.split_at(leaves.len() / 2);
            added(low).iter().zip(added(high)).map(|(a, b)| a + b).collect()
        }
    }
}

#[test]
fn leaves_are_added_by_any_number_of_blocks() {
    const N: usize = 1000;
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let kernel = device.kernel("xc_sparse_add_leaves").unwrap();
    let leaves: Vec<Vec<f32>> = (0..4).map(|leaf| values(N, leaf)).collect();
    let (n, stride, n_leaves) = (N as u64, N as u64 + 3, 4u32);
    let padded: Vec<f32> = leaves.iter().flat_map(|leaf| [&leaf[..], &[0.0; 3]].concat()).collect();
    for n_blocks in [1, 2, 3, 9] {
        let mut sums = device.upload(&padded).unwrap();
        let call = kernel.call(device.stream()).arg(&mut sums).arg(&stride).arg(&n).arg(&n_leaves);
        // SAFETY: there are four times n values, so far apart.
        unsafe { call.launch(blocks(n_blocks)) }.unwrap();
        assert_eq!(device.download(&sums).unwrap()[..N], added(&leaves), "{n_blocks} blocks");
    }
}

#[test]
fn leaves_above_2_to_the_32_are_added() {
    // Sums of the last block, and those behind it that block 0 has in its second turn.
    const LAST: usize = THREADS + 44;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let kernel = device.kernel("xc_sparse_add_leaves").unwrap();
    let leaves = [values(LAST, 1), values(LAST, 2)];
    let n = (FAR + LAST) as u64;
    let parts: [(usize, &[f32]); 2] = [(FAR, &leaves[0]), (n as usize + FAR, &leaves[1])];
    let mut sums = emulated.scattered(&device, 2 * n as usize, &parts);
    emulated.set_blocks((FAR / THREADS) as u64..u64::MAX);
    let n_leaves = 2u32;
    let call = kernel.call(device.stream()).arg(&mut sums).arg(&n).arg(&n).arg(&n_leaves);
    // SAFETY: there are twice n values.
    unsafe { call.launch(blocks(FAR / THREADS + 1)) }.unwrap();
    let expected = [&added(&leaves)[..THREADS], &leaves[0][THREADS..]].concat();
    assert_eq!(device.download(&sums.slice(FAR..FAR + LAST)).unwrap(), expected);
}

#[test]
fn keys_are_gathered_above_2_to_the_32() {
    const N: usize = 300;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let keys: Vec<u64> = (0..N as u64).map(|i| (i * i) << 20).collect();
    // The keys of row 1 stand above 2^32, and so do they in the end.
    let room = FAR as u64 + 10;
    let kept = emulated.scattered(&device, 2 * room as usize, &[(room as usize, &keys)]);
    let begin = device.upload(&[0, FAR as u64, (FAR + N) as u64]).unwrap();
    let mut out = emulated.scattered::<u64>(&device, FAR + N, &[]);
    let kernel = device.kernel("xc_sparse_gather").unwrap();
    emulated.set_blocks(1..2);
    let call = kernel.call(device.stream()).arg(&kept).arg(&room).arg(&begin).arg(&mut out);
    // SAFETY: the row has as many keys as it begins before the next one.
    unsafe { call.launch(blocks(2)) }.unwrap();
    assert_eq!(device.download(&out.slice(FAR..)).unwrap(), keys);
}

#[test]
fn a_product_is_streamed_over_nearly_2_to_the_32_rows() {
    // A block's two warps have 64 rows, which half of all rows lie before; then as many at their end.
    const BLOCKS: usize = 1 << 25;
    const FIRST: [usize; 2] = [FAR / 2 - 64, FAR - 64];
    const N: usize = FAR - 1;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let b = [values(64 * 4, 1), values(63 * 4, 2)];
    let parts: [(usize, &[f32]); 2] = [(4 * FIRST[0], &b[0]), (4 * FIRST[1], &b[1])];
    let on_b = emulated.scattered(&device, 4 * N, &parts);
    emulated.set_blocks(BLOCKS as u64 - 1..u64::MAX);
    for (name, m) in [("xc_sparse_product_1", 1), ("xc_sparse_product_8", 3)] {
        let a = values(m * 4, 3);
        let on_a = device.upload(&a).unwrap();
        let c = emulated.scattered::<f32>(&device, m * N, &[]);
        // SAFETY: rows that are not written are not read.
        let rows_b = unsafe { Rows::at(address(&on_b), 0, N, 4, 4) };
        let operands = Operands::new(Rows::new(&on_a, m, 4, 4), rows_b, None);
        let store = Store { c: address(&c), stride: N as u64, leaf_stride: 0 };
        let kernel = device.kernel(name).unwrap();
        let call = kernel.call(device.stream()).arg(&operands).arg(&store);
        // SAFETY: the block has the rows that it reads, and there is room for the product.
        unsafe { call.launch(Shape { grid: [BLOCKS, 1, 1], threads: 64, shared: 0 }) }.unwrap();
        for (i, a) in a.chunks(4).enumerate() {
            for (first, b) in FIRST.into_iter().zip(&b) {
                let place = i * N + first;
                let got = device.download(&c.slice(place..place + b.len() / 4)).unwrap();
                let expected: Vec<f32> = b.chunks(4).map(|b| chain(a, b, 0.0)).collect();
                assert_eq!(got, expected, "row {i} of {m}, columns from {first} on");
            }
        }
    }
}

#[test]
fn keys_below_their_bar_that_pass_a_filter_are_kept_above_2_to_the_32() {
    // Keys that a row has room for: those of rows from 16 on stand above 2^32.
    const ROOM: usize = 1 << 28;
    const LABEL0: usize = 60;
    const N: usize = 200;
    const WIDTH: usize = 3;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let tiles = Tiles::load(&device, "xc_sparse_best").unwrap();
    let b = values(N * WIDTH, 1);
    let on_b = device.upload(&b).unwrap();
    let filter: Vec<u64> = (1..6).map(|i| 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i)).collect();
    let on_filter = device.upload(&filter).unwrap();
    for m in [1, 5, 20, 100] {
        let a = values(m * WIDTH, 2);
        let key = |i: usize, j: usize| {
            let score = chain(&a[i * WIDTH..][..WIDTH], &b[j * WIDTH..][..WIDTH], 0.0);
            rank_key(Scored { label: (LABEL0 + j) as u32, score })
        };
        // Each bar is the key of an entry, which does not beat it.
        let bars: Vec<u64> = (0..m).map(|i| key(i, (i * 7 + 5) % N)).collect();
        let (on_a, on_bars) = (device.upload(&a).unwrap(), device.upload(&bars).unwrap());
        for filtered in [false, true] {
            let kept = emulated.scattered::<u64>(&device, m * ROOM, &[]);
            let n_kept = device.zeros::<u32>(m).unwrap();
            let keeping = Keeping {
                bars: address(&on_bars),
                kept: address(&kept),
                n_kept: address(&n_kept),
                filter: if filtered { address(&on_filter) } else { 0 },
                room: ROOM as u32,
                label0: LABEL0 as u32,
            };
            let operands = Operands::new(Rows::new(&on_a, m, WIDTH, WIDTH), Rows::new(&on_b, N, WIDTH, WIDTH), None);
            // SAFETY: the operands were made of rows that are there, and there is room for all keys.
            unsafe { tiles.launch(device.stream(), &operands, &keeping) }.unwrap();
            let n_kept = device.download(&n_kept).unwrap();
            for i in 0..m {
                let passes = |label: usize| !filtered || filter[label / 64] >> (label % 64) & 1 == 1;
                let kept_of = |j: usize| Some(key(i, j)).filter(|&key| key < bars[i] && passes(LABEL0 + j));
                let mut expected: Vec<u64> = (0..N).filter_map(kept_of).collect();
                expected.sort_unstable();
                let n = (n_kept[i] as usize).min(N);
                let mut got = device.download(&kept.slice(i * ROOM..i * ROOM + n)).unwrap();
                got.sort_unstable();
                assert_eq!(got, expected, "row {i} of {m}");
            }
        }
    }
}
