mod kernels;

use super::cells::{CellsOnDevice, Code};
use super::exact::{BoundOnDevice, Open};
use super::*;
use crate::index::Index;
use crate::metric::Metric;
use crate::params::{BuildParams, Scope, SearchParams};
use crate::search::exact::exact_among;
use crate::search::filter::Filter;
use proptest::prelude::*;
use xc_buffer::Silent;
use xc_kernels::Emulated;
use xc_kernels::layout::{Argument, check};
use xc_sparse::rank::RankedBatch;

fn scored(batch: &RankedBatch) -> Vec<Vec<(u32, u32)>> {
    batch.iter().map(|row| row.iter().map(|s| (s.label, s.score.to_bits())).collect()).collect()
}

/// Rows of a few shapes: as they come, far from the origin, of very different lengths, few different ones, very small
/// ones, rows that differ in their last bits, equal ones.
fn shaped(values: Vec<f32>, width: usize, shape: usize) -> Vec<f32> {
    let row = |at: usize| (at / width) as i32;
    let of = |(at, v): (usize, f32)| match shape {
        0 => v,
        1 => 100.0 + v,
        2 => v * 10f32.powi(row(at) % 23 - 11),
        3 => v.round() + f32::from(row(at) % 2 == 0),
        4 => v * 1e-25,
        5 => f32::from_bits((0.5 + (at % (7 * width)) as f32 / 64.0).to_bits() + row(at * 37) as u32 % 5),
        _ => 1.0,
    };
    values.into_iter().enumerate().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn answers_are_those_of_the_cpu(
        width in prop_oneof![Just(1usize), Just(4), Just(33), 2..20usize],
        n in prop_oneof![Just(0usize), Just(1), 2..60usize, 200..300usize],
        n_queries in prop_oneof![Just(0usize), Just(1), Just(3), Just(33), Just(100)],
        k in prop_oneof![Just(0usize), Just(1), 2..12usize, Just(500)],
        room in 1usize..80, metric in 0usize..3, shape in 0usize..7, filter in 0usize..4,
        odd in prop_oneof![4 => Just(0.0f32), 1 => Just(f32::NAN), 1 => Just(f32::INFINITY), 1 => Just(3e38)],
        seed in 1u64..4, values in prop::collection::vec(-2f32..2.0, 97),
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        let draw = |n: usize, by: usize| (0..n).map(|i| values[(i * by) % 97] + values[(i / 97 * 31) % 97]).collect();
        let mut rows = shaped(draw(n * width, 13), width, shape);
        let mut queries = shaped(draw(n_queries * width, 29), width, shape);
        // A row of zeros, a query of zeros, and numbers that are none or too large.
        rows.iter_mut().take(width).for_each(|v| *v = 0.0);
        queries.iter_mut().rev().take(width).for_each(|v| *v = 0.0);
        if odd != 0.0 {
            rows.iter_mut().skip(5 * width).step_by(40 * width + 1).for_each(|v| *v = odd);
            queries.iter_mut().step_by(7 * width + 1).for_each(|v| *v = odd);
        }
        let (rows, queries) = (DenseRows::new(&rows, width), DenseRows::new(&queries, width));
        let metric = Metric::ALL[metric];
        let test = |row: u32| row % 3 != 1;
        let bits = [0x5555_5555_0f0f_0f0fu64, u64::MAX, 1 << 63];
        let filters = [None, Some(Filter::Test(&test)), Some(Filter::Bits(&bits)), Some(Filter::Bits(&[]))];
        let filter = filters[filter].as_ref();
        let scan = ExactScan::on(&device, rows, metric).unwrap();
        let got = scan.with_room(queries, k, filter, room).unwrap();
        let expected = exact_among(rows, queries, metric, k, &|row| filter.is_none_or(|f| f.passes(row)));
        prop_assert_eq!(scored(&got), scored(&expected));
    }
}

#[test]
fn more_equal_rows_than_there_is_room_for_are_answered_too() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let mut rows = vec![1.0; 5 * 400];
    rows[5 * 300..5 * 310].fill(2.0);
    let rows = DenseRows::new(&rows, 5);
    let queries = [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 0.0, -1.0, 0.0];
    let queries = DenseRows::new(&queries, 5);
    for metric in Metric::ALL {
        let scan = ExactScan::on(&device, rows, metric).unwrap();
        let got = scan.with_room(queries, 7, None, 20).unwrap();
        assert_eq!(scored(&got), scored(&crate::exact(rows, queries, metric, 7)), "{metric}");
    }
}

#[test]
fn threads_may_take_turns_after_every_instruction() {
    let emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let values: Vec<f32> = (0..70 * 6).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    let rows = DenseRows::new(&values, 6);
    for (metric, n_queries) in [(Metric::L2, 1), (Metric::Cosine, 4), (Metric::InnerProduct, 34)] {
        emulated.set_turn(0);
        let queries = DenseRows::new(&values[6..6 + 6 * n_queries], 6);
        emulated.set_turn(1);
        let scan = ExactScan::on(&device, rows, metric).unwrap();
        let got = scan.with_room(queries, 3, None, 20).unwrap();
        assert_eq!(scored(&got), scored(&crate::exact(rows, queries, metric, 3)), "{metric}");
    }
}

#[test]
fn an_index_is_scanned_without_its_deleted_rows() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let values: Vec<f32> = (0..300 * 8).map(|i| ((i * 7919) % 1013) as f32 / 500.0 - 1.0).collect();
    let mut index = Index::build(values.clone(), 8, &BuildParams::new(Metric::Cosine), &Silent).unwrap();
    assert_eq!(index.delete(&[3, 64, 299]), 3);
    let queries = DenseRows::new(&values, 8);
    let test = |row: u32| row % 2 == 1;
    let got = index.exact_scan_on(&device).unwrap().exact(queries, 5, Some(&Filter::Test(&test))).unwrap();
    assert_eq!(scored(&got), scored(&index.exact(queries, 5, Some(&Filter::Test(&test)))));
    assert!(got.iter().flatten().all(|s| s.label % 2 == 1 && s.label != 3 && s.label != 299));
}

#[test]
fn a_card_that_is_too_small_is_an_error() {
    let emulated = Emulated::hold();
    if !emulated.is_emulated() {
        return;
    }
    emulated.set_device((8, 0), 1 << 12, 1, 13000);
    let device = Device::open(0).unwrap();
    let values = vec![1.0; 4 * 1000];
    let error = ExactScan::on(&device, DenseRows::new(&values, 4), Metric::L2).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Memory { needed: 40128, part: "rows", .. }), "{error}");
}

#[test]
fn structs_are_laid_out_as_on_the_host() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    assert_eq!(check(&device, "xc_layout_ann", &[Open::LAYOUT, BoundOnDevice::LAYOUT]), Ok(()));
    assert_eq!(check(&device, "xc_layout_ann_cells", &[CellsOnDevice::LAYOUT, Code::LAYOUT]), Ok(()));
}

/// An index with so many cells over rows of one of the shapes.
fn with_cells(values: Vec<f32>, width: usize, metric: Metric, cells: usize) -> Index {
    let params = BuildParams { cells: Some(cells), passes: 1, ..BuildParams::new(metric) };
    Index::build(values, width, &params, &Silent).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn searches_of_cells_are_those_of_the_cpu(
        width in prop_oneof![Just(1usize), Just(16), Just(33), 2..20usize],
        n in prop_oneof![Just(1usize), 2..60usize, 200..500usize], n_queries in prop_oneof![Just(0usize), Just(1), Just(33)],
        k in prop_oneof![Just(0usize), Just(1), 2..12usize, Just(600)], n_cells in 1usize..30, asked in 1usize..40,
        room in 1usize..80, metric in 0usize..3, shape in prop_oneof![Just(0usize), Just(1), Just(3), Just(6)],
        deleted in any::<bool>(), seed in 1u64..4, values in prop::collection::vec(-2f32..2.0, 97),
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        let draw = |n: usize, by: usize| (0..n).map(|i| values[(i * by) % 97] + values[(i / 97 * 31) % 97]).collect();
        let mut index = with_cells(shaped(draw(n * width, 13), width, shape), width, Metric::ALL[metric], n_cells);
        if deleted {
            let some: Vec<u32> = (0..n as u32).step_by(3).collect();
            index.delete(&some);
        }
        let mut queries = shaped(draw(n_queries * width, 29), width, shape);
        queries.iter_mut().rev().take(width).for_each(|v| *v = 0.0);
        let queries = DenseRows::new(&queries, width);
        let params = SearchParams { top_k: k, scope: Some(Scope::cells(asked)) };
        let Some(search) = index.cells_on(&device).unwrap() else {
            prop_assert!(index.search_batch(queries, params, None).is_err() || n_queries == 0 || k == 0 || n < 3);
            return Ok(());
        };
        let expected = index.search_batch(queries, params, None).unwrap();
        let got = match index.graph().kept_of_cells(index.rows(), params) {
            Some((k, cells, keep)) => search.with_room(queries, k, cells, keep, room).unwrap(),
            None => search.search_batch(queries, params).unwrap(),
        };
        prop_assert_eq!(scored(&got.0), scored(&expected.0));
        prop_assert_eq!(got.1, expected.1);
    }
}

#[test]
fn threads_of_cells_may_take_turns_after_every_instruction() {
    let emulated = Emulated::hold();
    emulated.set_turn(1);
    let device = Device::open(0).unwrap();
    let values: Vec<f32> = (0..150 * 6).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    let index = with_cells(values.clone(), 6, Metric::L2, 5);
    let queries = DenseRows::new(&values[..6 * 3], 6);
    let params = SearchParams { top_k: 4, scope: Some(Scope::cells(3)) };
    let got = index.cells_on(&device).unwrap().unwrap().search_batch(queries, params).unwrap();
    assert_eq!(scored(&got.0), scored(&index.search_batch(queries, params, None).unwrap().0));
}

#[test]
fn queries_that_have_no_answer_on_a_cpu_have_none_on_a_device() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let values: Vec<f32> = (0..40 * 3).map(|i| i as f32).collect();
    let index = with_cells(values, 3, Metric::L2, 2);
    let search = index.cells_on(&device).unwrap().unwrap();
    let of = |values: &[f32], width, scope| {
        let params = SearchParams { top_k: 4, scope: Some(scope) };
        let queries = DenseRows::new(values, width);
        let expected = index.search_batch(queries, params, None).map_err(CellsError::from);
        assert_eq!(search.search_batch(queries, params), expected);
        expected.map(|_| ())
    };
    assert!(of(&[1.0, 2.0, 3.0, 1.0, f32::NAN, 3.0], 3, Scope::cells(1)).is_err());
    assert!(of(&[1.0, 2.0], 2, Scope::cells(1)).is_err());
    // The CPU's own searches.
    assert!(of(&[1.0, 2.0, 3.0], 3, Scope::width(0.5)).is_ok());
}
