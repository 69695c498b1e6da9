//! Matrices of sprs: the same arrays, and the same products.

use proptest::prelude::*;
use sprs::{CsMatI, CsMatViewI};
use std::collections::BTreeMap;
use xc_buffer::{DType, Isa};
use xc_sparse::chunked::{
    ChunkQuery, ChunkRows, ChunkedLevel, IteratorChoice, ProductScratch, SlotMap, count_features, margins_with,
};
use xc_sparse::rows::FromSprsError;
use xc_sparse::{CscMatrix, CscView, CsrMatrix, CsrView};

/// A matrix of these entries, and its arrays.
fn matrix(shape: (usize, usize), entries: &BTreeMap<(usize, u32), f32>) -> CsrMatrix {
    let mut indptr = vec![0; shape.0 + 1];
    entries.keys().for_each(|&(row, _)| indptr[row + 1] += 1);
    (0..shape.0).for_each(|row| indptr[row + 1] += indptr[row]);
    let (indices, data) = entries.iter().map(|(&(_, column), &value)| (column, value)).unzip();
    CsrMatrix::try_new(shape, indptr, indices, data).unwrap()
}

fn entries(values: impl Strategy<Value = f32>) -> impl Strategy<Value = BTreeMap<(usize, u32), f32>> {
    prop::collection::btree_map((0usize..7, 0u32..5), values, 0..20)
}

/// Rows times columns by the chunked product, on an instruction set; the columns are one chunk.
fn chunked(isa: Isa, rows: CsrView<'_>, columns: CscView<'_>) -> Vec<Vec<f32>> {
    let column = |j: u32| columns.column(j as usize).iter().map(move |(feature, value)| (feature, j, value));
    let mut entries: Vec<_> = (0..columns.cols() as u32).flat_map(column).collect();
    entries.sort_by_key(|&(feature, column, _)| (feature, column));
    let chunk = [ChunkRows::from_entries(columns.cols(), entries, vec![0.0; columns.cols()]).unwrap()];
    let slots = SlotMap::new(&count_features(&chunk, columns.rows()));
    let level = ChunkedLevel::pack(&chunk, &slots, DType::F32).unwrap();
    let (mut scratch, mut query) = (ProductScratch::default(), ChunkQuery::default());
    let product = |row| {
        let mut out = Vec::new();
        let prepared = query.prepare(row, level.slot_map());
        margins_with(isa, &level.view(), &prepared, &[0], IteratorChoice::Auto, &mut scratch, &mut out);
        out
    };
    rows.iter().map(product).collect()
}

/// The same by sprs.
fn by_sprs(rows: CsrView<'_>, columns: CscView<'_>) -> Vec<Vec<f32>> {
    let rows: CsMatViewI<'_, f32, u32, usize> = rows.into();
    let columns: CsMatViewI<'_, f32, u32, usize> = columns.into();
    let product = &rows * &columns.to_other_storage();
    product.to_dense().outer_iter().map(|row| row.to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_matrix_goes_to_sprs_and_back_in_the_same_arrays(entries in entries(-4.0f32..4.0), first in 0usize..7, n in 0usize..7) {
        let ours = matrix((7, 5), &entries);
        let (at, ids, expected) = (ours.data().as_ptr(), ours.indices().as_ptr(), ours.clone());
        let theirs: CsMatI<f32, u32, usize> = ours.into();
        prop_assert_eq!((theirs.data().as_ptr(), theirs.indices().as_ptr(), theirs.is_csr()), (at, ids, true));
        let ours = CsrMatrix::try_from(theirs).unwrap();
        prop_assert_eq!((ours.data().as_ptr(), &ours), (at, &expected));

        let view: CsMatViewI<'_, f32, u32, usize> = ours.view().into();
        prop_assert_eq!(view.data().as_ptr(), at);
        let back = CsrView::try_from(view).unwrap();
        prop_assert_eq!((back.data().as_ptr(), back.to_owned()), (at, expected.clone()));
        // Slices keep the pointers of the whole.
        let rows = first..(first + n).min(7);
        let slice: CsMatViewI<'_, f32, u32, usize> = ours.slice(rows.clone()).into();
        let again = CsrView::try_from(slice).unwrap();
        prop_assert_eq!(again.to_owned(), expected.slice(rows).to_owned());

        let columns = expected.clone().transpose();
        let theirs: CsMatI<f32, u32, usize> = columns.clone().into();
        prop_assert!(theirs.is_csc() && theirs.shape() == (5, 7));
        prop_assert_eq!(CscView::try_from(theirs.view()).unwrap().transpose().to_owned(), expected.clone());
        let wrong = CsrMatrix::try_from(theirs.clone()).unwrap_err();
        prop_assert!(matches!(wrong, FromSprsError::Storage { .. }), "{wrong}");
        prop_assert_eq!(CscMatrix::try_from(theirs).unwrap(), columns);
    }

    #[test]
    fn products_are_those_of_sprs(a in entries(-4.0f32..4.0), b in entries(-4.0f32..4.0)) {
        let (a, b) = (matrix((7, 5), &a), matrix((7, 5), &b));
        let expected = by_sprs(a.view(), b.view().transpose());
        for isa in Isa::available() {
            for (i, row) in chunked(isa, a.view(), b.view().transpose()).iter().enumerate() {
                for (j, (&got, &expected)) in row.iter().zip(&expected[i]).enumerate() {
                    let terms = || a.row(i).iter().filter_map(|(id, x)| {
                        let (_, y) = b.row(j).iter().find(|&(other, _)| other == id)?;
                        Some((f64::from(x) * f64::from(y)).abs())
                    });
                    let most = 4.0 * 2f64.powi(-24) * (terms().count() as f64).sqrt() * terms().sum::<f64>();
                    prop_assert!((f64::from(got) - f64::from(expected)).abs() <= most, "{isa}: {got} {expected}");
                }
            }
        }
    }

    #[test]
    fn products_of_small_whole_numbers_are_equal(a in entries((-8i8..8).prop_map(f32::from)), b in entries((-8i8..8).prop_map(f32::from))) {
        let (a, b) = (matrix((7, 5), &a), matrix((7, 5), &b));
        let expected = by_sprs(a.view(), b.view().transpose());
        for isa in Isa::available() {
            prop_assert_eq!(&chunked(isa, a.view(), b.view().transpose()), &expected);
        }
    }
}
