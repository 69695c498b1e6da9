//! The best entries of products against a sort of all of them.

use crate::product::{chain, values};
use proptest::prelude::*;
use xc_kernels::best::{Best, Keeping};
use xc_kernels::layout::{Argument, check};
use xc_kernels::product::Rows;
use xc_kernels::{Device, Emulated, address};
use xc_sparse::rank::{Scored, TopK, rank_key};

/// What the CPU keeps of each row.
fn expected(a: &[f32], b: &[f32], start: &[f32], width: usize, k: usize) -> Vec<Vec<u64>> {
    let of_row = |a: &[f32]| {
        let mut top = TopK::new(k);
        for (label, (b, &start)) in b.chunks_exact(width).zip(start).enumerate() {
            top.push(Scored { label: label as u32, score: chain(a, b, start) });
        }
        top.sorted().iter().map(|&s| rank_key(s)).collect()
    };
    a.chunks_exact(width).map(of_row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_best_are_those_of_a_sort(
        m in prop_oneof![Just(0usize), Just(1), 2..9usize, Just(33), Just(97)],
        n in prop_oneof![Just(0usize), Just(1), 2..130usize, 300..500usize],
        width in prop_oneof![Just(1usize), 2..7usize, Just(32)],
        k in prop_oneof![Just(0usize), Just(1), 2..20usize, Just(600)],
        room in 1usize..60, coarse in any::<bool>(), ordered in 0usize..3, seed in 1u64..4,
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        // Few different values make many equal scores.
        let draw = |n, seed| if coarse { values(n, seed).iter().map(|v| v.round()).collect() } else { values(n, seed) };
        let (a, b) = (draw(m * width, 1), draw(n * width, 2));
        let mut start: Vec<f32> = draw(n, 3);
        match ordered {
            // The worst come first, the worst order there is.
            0 => start.iter_mut().zip(0..).for_each(|(s, i)| *s += i as f32),
            1 => start.iter_mut().step_by(7).for_each(|s| *s = f32::NAN),
            _ => {}
        }
        let (on_a, on_b, on_start) = (device.upload(&a).unwrap(), device.upload(&b).unwrap(), device.upload(&start).unwrap());
        let (rows_a, rows_b) = (Rows::new(&on_a, m, width, width), Rows::new(&on_b, n, width, width));
        let got = Best::load(&device).unwrap().with_room(&device, rows_a, rows_b, Some(&on_start), k, room).unwrap();
        prop_assert_eq!(got.len(), m);
        for (i, expected) in expected(&a, &b, &start, width, k).iter().enumerate() {
            prop_assert_eq!(got.row(i), &expected[..], "row {} of {}", i, m);
        }
    }
}

#[test]
fn shapes_at_the_edges_of_tiles_and_stages_are_ranked() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let best = Best::load(&device).unwrap();
    let (b, start) = (values(257 * 65, 2), values(257, 3));
    let (on_b, on_start) = (device.upload(&b).unwrap(), device.upload(&start).unwrap());
    for m in [1, 2, 8, 9, 97] {
        for (n, width) in [(1, 1), (1, 33), (2, 32), (31, 4), (33, 65), (64, 3), (65, 16), (70, 64), (257, 17)] {
            let a = values(m * width, 1);
            let on_a = device.upload(&a).unwrap();
            let (rows_a, rows_b) = (Rows::new(&on_a, m, width, width), Rows::new(&on_b, n, width, width));
            let got = best.with_room(&device, rows_a, rows_b, Some(&on_start), 2, 5).unwrap();
            for (i, expected) in expected(&a, &b[..n * width], &start[..n], width, 2).iter().enumerate() {
                assert_eq!(got.row(i), expected, "row {i} of {m}, {n} x {width}");
            }
        }
    }
}

#[test]
fn threads_may_take_turns_after_every_instruction() {
    let emulated = Emulated::hold();
    emulated.set_turn(1);
    let device = Device::open(0).unwrap();
    let (a, b, start) = (values(34 * 5, 1), values(90 * 5, 2), values(90, 3));
    let (on_a, on_b, on_start) =
        (device.upload(&a).unwrap(), device.upload(&b).unwrap(), device.upload(&start).unwrap());
    let best = Best::load(&device).unwrap();
    for m in [1, 4, 34] {
        let (rows_a, rows_b) = (Rows::new(&on_a, m, 5, 5), Rows::new(&on_b, 90, 5, 5));
        let got = best.with_room(&device, rows_a, rows_b, Some(&on_start), 3, 30).unwrap();
        for (i, expected) in expected(&a[..m * 5], &b, &start, 5, 3).iter().enumerate() {
            assert_eq!(got.row(i), expected, "row {i} of {m}");
        }
    }
}

#[test]
fn rows_of_b_may_be_a_part_of_a_matrix_beyond_the_reach_of_32_bits() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let (first, n, width) = (1u64 << 28, 70, 20);
    let b = values(n * width, 2);
    let on_b = device.upload(&b).unwrap();
    let base = address(&on_b).wrapping_sub(4 * first * width as u64);
    for m in [1, 5, 20, 100] {
        let a = values(m * width, 1);
        let on_a = device.upload(&a).unwrap();
        // SAFETY: rows `first` and on are those of `on_b`, and no others are read.
        let rows_b = unsafe { Rows::at(base, first, n, width, width) };
        let rows_a = Rows::new(&on_a, m, width, width);
        let got = Best::load(&device).unwrap().with_room(&device, rows_a, rows_b, None, 4, 10).unwrap();
        for (i, expected) in expected(&a, &b, &vec![0.0; n], width, 4).iter().enumerate() {
            assert_eq!(got.row(i), expected, "row {i} of {m}");
        }
    }
}

#[test]
fn structs_are_laid_out_as_on_the_host() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    assert_eq!(check(&device, "xc_layout_best", &[Keeping::LAYOUT]), Ok(()));
}
