//! Matrices by their definition, and slices of them.

use super::*;
use proptest::prelude::*;
use xc_dense::DenseMatrix;

proptest! {
    #[test]
    fn vectors_that_are_given_up_are_the_same_rows(
        rows in 0usize..6, columns in 1usize..5, values in prop::collection::vec(prop_oneof![Just(0.0f32), Just(-0.0), -2.0f32..2.0], 30),
    ) {
        let vectors = DenseMatrix::new(rows, columns, values[..rows * columns].to_vec());
        let expected = CsrMatrix::from_vectors(vectors.view());
        let shared = vectors.clone();
        prop_assert_eq!(CsrMatrix::from_matrix(vectors), expected.clone());
        prop_assert_eq!(CsrMatrix::from_matrix(shared), expected);
    }

    #[test]
    fn rows_that_are_kept_are_those_that_are_selected(
        lists in prop::collection::vec(prop::collection::btree_set(0u32..9, 0..5), 0..12), kept in prop::collection::vec(any::<bool>(), 12),
    ) {
        let (mut indptr, indices) = (vec![0], lists.iter().flatten().copied().collect::<Vec<_>>());
        lists.iter().for_each(|list| indptr.push(indptr[indptr.len() - 1] + list.len()));
        let data = (0..indices.len()).map(|i| i as f32).collect();
        let all = CsrMatrix::try_new((lists.len(), 9), indptr, indices, data).unwrap();
        let rows: Vec<u32> = (0..lists.len() as u32).filter(|&row| kept[row as usize]).collect();
        prop_assert_eq!(all.clone().keep(&rows), all.view().select(&rows));
    }
}

/// Whether arrays are a matrix, by the definition.
fn is_matrix((rows, cols): (usize, usize), indptr: &[usize], indices: &[u32], data: &[f32]) -> bool {
    let mut found = vec![vec![None; cols]; rows];
    let mut at = 0;
    let rises = indptr.len() == rows + 1 && indptr[0] == 0 && (0..rows).all(|i| indptr[i] <= indptr[i + 1]);
    if !rises || indptr[rows] != indices.len() || data.len() != indices.len() {
        return false;
    }
    for (row, list) in found.iter_mut().enumerate() {
        while at < indptr[row + 1] {
            let id = indices[at] as usize;
            if id >= cols || list[id..].iter().any(Option::is_some) || data[at].is_nan() || data[at].is_infinite() {
                return false;
            }
            list[id] = Some(data[at]);
            at += 1;
        }
    }
    true
}

fn value() -> impl Strategy<Value = f32> {
    prop_oneof![40 => -9f32..9.0, 1 => Just(f32::NAN), 1 => Just(f32::INFINITY), 1 => Just(0.0)]
}

proptest! {
    #[test]
    fn arrays_become_a_matrix_exactly_if_the_definition_says_so(
        lists in prop::collection::vec(prop::collection::btree_map(0u32..9, value(), 0..5), 0..5), cols in 7usize..10,
        spoil in prop::option::weighted(0.7, (0usize..6, 0usize..30, 0u32..10))
    ) {
        let mut indptr = vec![0];
        lists.iter().for_each(|row| indptr.push(indptr[indptr.len() - 1] + row.len()));
        let (mut indices, mut data): (Vec<u32>, Vec<f32>) = lists.iter().flatten().unzip();
        let mut rows = lists.len();
        let pick = |at: usize, n: usize| if n == 0 { 0 } else { at % n };
        match spoil {
            Some((0, at, id)) if !indices.is_empty() => { let at = pick(at, indices.len()); indices[at] = id },
            Some((1, at, to)) => { let at = pick(at, indptr.len()); indptr[at] = to as usize },
            Some((2, ..)) => { indptr.pop(); },
            Some((3, ..)) => { data.pop(); },
            Some((4, at, _)) if !indices.is_empty() => { let (a, b) = (pick(at, indices.len()), indices.len() - 1); indices.swap(a, b) },
            Some((5, at, _)) => rows = at % 6,
            _ => {}
        }
        let shape = (rows, cols);
        let expected = is_matrix(shape, &indptr, &indices, &data);
        let view = CsrView::try_new(shape, &indptr, &indices, &data);
        prop_assert_eq!(view.is_ok(), expected, "{:?}", view);
        if let Ok(view) = view {
            prop_assert_eq!((view.rows(), view.cols(), view.nnz()), (rows, cols, indices.len()));
            let columns = CscView::try_new((cols, rows), &indptr, &indices, &data).unwrap();
            prop_assert_eq!((columns.rows(), columns.cols()), (cols, rows));
            // No copy in, none out, none between a matrix and its transpose.
            let arrays = (indptr.as_ptr(), indices.as_ptr(), data.as_ptr());
            let by_rows = columns.transpose();
            prop_assert_eq!(arrays, (by_rows.indptr().as_ptr(), by_rows.indices().as_ptr(), by_rows.data().as_ptr()));
            let matrix = CsrMatrix::try_new(shape, indptr, indices, data).unwrap();
            let dense: Vec<_> = matrix.view().iter().map(|row| row.iter().collect::<Vec<_>>()).collect();
            let by_columns = matrix.clone().transpose().to_csr();
            for (i, row) in dense.iter().enumerate() {
                let column: Vec<_> = by_columns.view().iter().enumerate()
                    .filter_map(|(j, row)| row.iter().find(|x| x.0 as usize == i).map(|x| (j as u32, x.1))).collect();
                prop_assert_eq!(row, &column);
            }
            let (indptr, indices, data) = matrix.transpose().transpose().into_parts();
            prop_assert_eq!(arrays, (indptr.as_ptr(), indices.as_ptr(), data.as_ptr()));
        } else {
            let error = CsrMatrix::try_new(shape, indptr, indices, data).unwrap_err();
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_slice_has_the_rows_of_the_whole_and_its_copy_begins_at_0(
        lens in prop::collection::vec(0usize..4, 0..7), cut in (0usize..8, 0usize..8)
    ) {
        let n = lens.len();
        let mut indptr = vec![0];
        lens.iter().for_each(|len| indptr.push(indptr[indptr.len() - 1] + len));
        let indices: Vec<u32> = lens.iter().flat_map(|&len| 0..len as u32).collect();
        let data = (0..indices.len()).map(|i| i as f32).collect();
        let whole = CsrMatrix::try_new((n, 4), indptr, indices, data).unwrap();
        let (from, to) = (cut.0.min(cut.1).min(n), cut.0.max(cut.1).min(n));
        let slice = whole.slice(from..to);
        prop_assert_eq!(slice.rows(), to - from);
        let again = slice.slice(0..slice.rows());
        let copy = slice.to_owned();
        prop_assert_eq!(copy.indptr()[0], 0);
        for i in 0..to - from {
            prop_assert_eq!(slice.row(i), whole.row(from + i));
            prop_assert_eq!(again.row(i), whole.row(from + i));
            prop_assert_eq!(copy.row(i), whole.row(from + i));
        }
        prop_assert_eq!(&copy, &whole.view().select(&(from as u32..to as u32).collect::<Vec<_>>()));
        // Rows that are added are those of both.
        let mut both = whole.slice(0..from).to_owned();
        both.append(slice);
        both.append(whole.slice(to..n));
        prop_assert_eq!(both, whole);
    }
}
