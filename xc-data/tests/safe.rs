//! What safe code may be given: sizes whose products wrap around, rows that are none, slices of matrices, inputs that
//! do not exist. Nothing reads beyond an array or answers for another row.

use proptest::prelude::*;
use std::panic::catch_unwind;
use std::process::Command;
use xc_buffer::Isa;
use xc_buffer::dtype::DType;
use xc_data::{IndexBase, SvmlightBases, write_npz, write_svmlight, write_xc, write_xc_features};
use xc_dense::{MatMut, MatRef, MatmulPrecision, MatmulScratch, Start, product};
use xc_sparse::uniform::{
    ByteLines, Connections, ConnectionsError, FanIn, InputIds, Lines, UniformConvertError, UniformKernels,
};
use xc_sparse::{CscMatrix, CsrMatrix, LabelRows, SparseRow, SparseRowError};

/// The least `n` for which `n * each`, cut to the bits of a size, is at most `most`, though it is more.
fn wraps(each: usize, most: usize) -> Option<usize> {
    let n = usize::MAX / each + 1;
    (0..=most / each).map(|more| n + more).find(|&n| n.wrapping_mul(each) <= most)
}

proptest! {
    #[test]
    fn sizes_whose_product_wraps_around_are_no_sizes(each in 2usize..5000, more in 0usize..3) {
        let Some(n) = wraps(each, 1 << 13) else { return Ok(()) };
        let n = n + more;
        let values = vec![0f32; n.wrapping_mul(each).min(1 << 14)];
        prop_assume!(values.len() == n.wrapping_mul(each));
        for (a, b) in [(n, each), (each, n)] {
            prop_assert!(catch_unwind(|| MatRef::new(&values, a, b)).is_err(), "{a} x {b}");
            prop_assert!(catch_unwind(|| Lines::default().fill(&values, a, b)).is_err(), "{a} x {b}");
            prop_assert!(catch_unwind(|| ByteLines::default().fill(&values, a, b)).is_err(), "{a} x {b}");
        }
        // A product of no inner length has any number of rows and columns.
        let wide = |rows, columns| MatRef::new(&[], rows, columns);
        let mut c = values.clone();
        let multiply = std::panic::AssertUnwindSafe(|| {
            product(MatMut::new(&mut c, n, each), wide(n, 0), wide(0, each), Start::Zero, MatmulPrecision::F32, &mut MatmulScratch::default());
        });
        prop_assert!(catch_unwind(multiply).is_err(), "{n} x 0 x {each}");
    }

    #[test]
    fn a_row_is_what_ascends_and_is_finite(
        pairs in prop::collection::vec((0u32..30, prop_oneof![6 => -9f32..9.0, 1 => Just(f32::NAN), 1 => Just(f32::INFINITY)]), 0..8),
        fewer in 0usize..3,
        is_sorted: bool,
    ) {
        let mut pairs = pairs;
        if is_sorted {
            pairs.sort_by_key(|pair| pair.0);
            pairs.dedup_by_key(|pair| pair.0);
        }
        let (indices, mut values): (Vec<u32>, Vec<f32>) = pairs.iter().copied().unzip();
        values.truncate(values.len() - fewer.min(values.len()));
        let descends = indices.windows(2).find(|w| w[0] >= w[1]);
        match SparseRow::try_new(&indices, &values) {
            Ok(row) => {
                prop_assert!(indices.len() == values.len() && descends.is_none() && values.iter().all(|v| v.is_finite()));
                prop_assert_eq!((row.indices(), row.values(), row.nnz()), (&indices[..], &values[..], indices.len()));
                prop_assert_eq!(SparseRow::from_checked(&indices, &values).check(), Ok(()));
            }
            Err(SparseRowError::Lengths { features, values: n }) => {
                prop_assert_eq!((features, n), (indices.len(), values.len()));
                prop_assert_ne!(features, n);
                prop_assert!(catch_unwind(|| SparseRow::from_checked(&indices, &values).nnz()).is_err());
            }
            Err(SparseRowError::Order { previous, next }) => prop_assert_eq!(descends, Some(&[previous, next][..])),
            Err(SparseRowError::NotFinite { feature, value }) => {
                prop_assert!(descends.is_none() && !value.is_finite());
                let at = indices.iter().position(|&f| f == feature).unwrap();
                prop_assert!(values[..at].iter().all(|v| v.is_finite()) && !values[at].is_finite());
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn a_slice_of_a_matrix_is_written_as_a_copy_of_its_rows(
        lists in prop::collection::vec(prop::collection::vec(-9f32..9.0, 0..5), 1..8), cut in (0usize..9, 0usize..9)
    ) {
        let whole = matrix(&lists);
        let (from, to) = (cut.0.min(cut.1).min(lists.len()), cut.0.max(cut.1).min(lists.len()));
        let copy = matrix(&lists[from..to]);
        let view = whole.slice(from..to);
        let owned = view.to_owned();
        let labels = LabelRows::from_lists(vec![[1u32]; to - from], 2).unwrap();
        for slice in [view, owned.view()] {
            let written = |matrix: xc_sparse::CsrView<'_>| {
                let (mut a, mut b, mut c, mut d) = (Vec::new(), Vec::new(), Vec::new(), std::io::Cursor::new(Vec::new()));
                write_xc(&mut a, matrix, &labels).unwrap();
                write_xc_features(&mut b, matrix).unwrap();
                let bases = SvmlightBases { features: IndexBase::One, labels: IndexBase::Zero };
                write_svmlight(&mut c, matrix, &labels, bases).unwrap();
                write_npz(&mut d, matrix).unwrap();
                (a, b, c, d.into_inner())
            };
            prop_assert!(written(slice) == written(copy.view()));
            let (rows, plain) = (slice, copy.view());
            prop_assert_eq!((rows.rows(), rows.nnz()), (plain.rows(), plain.nnz()));
            prop_assert!((0..rows.rows()).all(|i| rows.row(i) == plain.row(i)));
            let all: Vec<u32> = (0..rows.rows() as u32).collect();
            prop_assert!(rows.select(&all) == copy);
        }
    }

    #[test]
    fn a_slice_of_columns_becomes_the_connections_of_its_labels(
        starts in prop::collection::vec(0usize..3, 1..8), cut in (0usize..9, 0usize..9), fan_in in 1usize..3
    ) {
        let n = starts.len();
        let indices: Vec<u32> = starts.iter().flat_map(|&start| start as u32..(start + fan_in) as u32).collect();
        let weights: Vec<f32> = (0..indices.len()).map(|at| at as f32 - 3.5).collect();
        let whole = CscMatrix::try_new((5, n), (0..=n).map(|label| label * fan_in).collect(), indices, weights).unwrap();
        let (from, to) = (cut.0.min(cut.1).min(n), cut.0.max(cut.1).min(n));
        let slice = whole.view().slice(from..to);
        for uniform in [true, false] {
            let all = Connections::from_csc(whole.view(), DType::F32, uniform).unwrap();
            let some = Connections::from_csc(slice, DType::F32, uniform).unwrap();
            prop_assert_eq!(some.n_labels(), to - from);
            for label in 0..to - from {
                let of = |connections: &Connections, label| -> Vec<(usize, f32)> {
                    let range = connections.range(label);
                    range.map(|at| (connections.indices().get(at), connections.weights().get(at))).collect()
                };
                prop_assert_eq!(of(&some, label), of(&all, from + label));
            }
        }
    }

    #[test]
    fn an_input_that_does_not_exist_is_refused_whatever_it_is_when_it_is_stored(
        n_inputs in prop_oneof![1usize..200, Just(1 << 16), Just((1 << 16) + 1)],
        beyond in prop_oneof![
            0usize..70_000, Just((1 << 16) - 93), Just((1 << 32) - 1), Just(1 << 32), Just(usize::MAX >> 1)
        ],
        wrong in 0usize..6,
    ) {
        let bad = n_inputs.saturating_add(beyond);
        let got = Connections::uniform(6, n_inputs, 1, DType::F32, |label, row| row.push(if label == wrong { bad } else { 0 }));
        prop_assert_eq!(got.unwrap_err(), ConnectionsError::OutOfRange { label: wrong, input: bad, n_inputs });
        prop_assert!(catch_unwind(|| InputIds::new(n_inputs, [0, bad].into_iter()).len()).is_err());
        let last = Connections::uniform(6, n_inputs, 1, DType::F32, |_, row| row.push(n_inputs - 1)).unwrap();
        prop_assert!((0..6).all(|at| last.indices().get(at) == n_inputs - 1));
    }
}

fn matrix(lists: &[Vec<f32>]) -> CsrMatrix {
    let mut indptr = vec![0];
    lists.iter().for_each(|row| indptr.push(indptr[indptr.len() - 1] + row.len()));
    let indices = lists.iter().flat_map(|row| 0..row.len() as u32).collect();
    CsrMatrix::from_checked((lists.len(), 5), indptr, indices, lists.concat())
}

#[test]
fn the_input_of_an_index_that_the_narrow_type_would_hold_is_refused() {
    let got = Connections::uniform(1, 100, 2, DType::F32, |_, row| row.extend([5, 65_543]));
    assert_eq!(got.unwrap_err(), ConnectionsError::OutOfRange { label: 0, input: 65_543, n_inputs: 100 });
}

#[test]
fn columns_of_different_lengths_are_blamed_by_their_label() {
    let matrix = CscMatrix::try_new((3, 4), vec![0, 1, 2, 4, 5], vec![0, 1, 0, 2, 1], vec![1.0; 5]).unwrap();
    let refused = |from: usize| Connections::from_csc(matrix.view().slice(from..4), DType::F32, true).unwrap_err();
    assert_eq!(refused(0), UniformConvertError::NotUniform { label: 2, got: 2, expected: 1 });
    assert_eq!(refused(1), UniformConvertError::NotUniform { label: 1, got: 2, expected: 1 });
    let varying = Connections::from_csc(matrix.view().slice(1..4), DType::F32, false).unwrap();
    assert!(matches!(varying.fan_in(), FanIn::Varying(starts) if starts[..] == [0, 1, 3, 4]));
}

#[test]
fn one_row_of_many_connections_needs_as_many_inputs() {
    let n = usize::MAX / 8 + 1;
    let forward = || {
        let mut out = [0f32; 8];
        UniformKernels::current().forward_one::<u16>(&[1.0], &[], &[], n, &mut out);
    };
    assert!(catch_unwind(forward).is_err());
}

/// Run by the test below in a process of its own, where `XC_SIMD` is wrong.
#[test]
#[ignore = "needs XC_SIMD"]
fn products_of_a_process_with_a_wrong_name() {
    let best = Isa::available().last().unwrap();
    assert!(Isa::from_env().is_err_and(|error| error.to_string().starts_with("XC_SIMD=")));
    assert_eq!(Isa::current(), best);
    let mut c = [0.0; 1];
    let (a, b) = (MatRef::new(&[1.0, 2.0], 1, 2), MatRef::new(&[3.0, 4.0], 2, 1));
    product(MatMut::new(&mut c, 1, 1), a, b, Start::Zero, MatmulPrecision::F32, &mut MatmulScratch::default());
    assert_eq!(c, [11.0]);
}

#[test]
fn a_wrong_instruction_set_is_told_and_the_best_one_runs() {
    for name in ["sse", "", "AVX2", "avx-512", "\u{1b}[31m"] {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "products_of_a_process_with_a_wrong_name", "--ignored"]).env("XC_SIMD", name);
        let done = test.output().unwrap();
        assert!(done.status.success(), "{name:?}: {}", String::from_utf8_lossy(&done.stdout));
        assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"));
    }
}
