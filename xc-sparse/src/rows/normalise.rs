//! Rows of length 1: training and serving scale them by the same code, to the bit.

use super::{CsrMatrix, Rows, SparseRow};

/// What multiplies values, in f64, to make their Euclidean length 1; 1 where the length is 0.
///
/// The squares are summed in f64, in the order of the values: finite for every row of finite
/// values.
pub fn unit_scale(values: impl Iterator<Item = f32>) -> f64 {
    let square: f64 = values.map(|v| f64::from(v) * f64::from(v)).sum();
    if square > 0.0 { 1.0 / square.sqrt() } else { 1.0 }
}

/// Scales values to length 1; a row of length 0 stays.
pub fn normalise(values: &mut [f32]) {
    let scale = unit_scale(values.iter().copied());
    values.iter_mut().for_each(|v| *v = (f64::from(*v) * scale) as f32);
}

/// [`normalise`] of a row that belongs to somebody else; `scratch` takes the values.
pub fn normalised<'a>(row: SparseRow<'a>, scratch: &'a mut Vec<f32>) -> SparseRow<'a> {
    scratch.clear();
    scratch.extend_from_slice(row.values());
    normalise(scratch);
    SparseRow::from_checked(row.indices(), scratch)
}

/// [`normalise`] of each row.
///
/// # Panics
/// If the matrix is stored by columns.
pub fn normalise_rows(rows: &mut CsrMatrix) {
    let plain = Rows::new(rows.view());
    let ranges: Vec<_> = (0..plain.len()).map(|row| plain.range(row)).collect();
    let values = rows.data_mut();
    ranges.into_iter().for_each(|row| normalise(&mut values[row]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_finite_row_becomes_one_of_length_1(values in prop::collection::vec(prop_oneof![
            prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
            Just(f32::MAX), Just(f32::MIN), Just(f32::from_bits(1)), -1f32..1.0
        ], 0..30)) {
            let mut scaled = values.clone();
            normalise(&mut scaled);
            let length = scaled.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            let zero = values.iter().all(|&v| v == 0.0);
            prop_assert!((length - f64::from(!zero)).abs() < 1e-5, "length {}", length);
            // One row or many: the same bits.
            let indices: Vec<u32> = (0..values.len() as u32).collect();
            let mut scratch = Vec::new();
            let one = normalised(SparseRow::from_checked(&indices, &values), &mut scratch);
            prop_assert_eq!(one.values(), &scaled[..]);
            let mut rows = CsrMatrix::new((1, values.len()), vec![0, values.len()], indices.clone(), values.clone());
            normalise_rows(&mut rows);
            prop_assert_eq!(rows.data(), &scaled[..]);
        }

        #[test]
        fn a_slice_of_a_matrix_becomes_what_a_copy_of_its_rows_becomes(
            lists in prop::collection::vec(prop::collection::vec(-9f32..9.0, 0..6), 0..8), cut in (0usize..9, 0usize..9)
        ) {
            let mut indptr = vec![0];
            lists.iter().for_each(|row| indptr.push(indptr[indptr.len() - 1] + row.len()));
            let indices = lists.iter().flat_map(|row| 0..row.len() as u32).collect();
            let whole = CsrMatrix::new((lists.len(), 6), indptr, indices, lists.concat());
            let (from, to) = (cut.0.min(cut.1).min(lists.len()), cut.0.max(cut.1).min(lists.len()));
            let mut slice = whole.slice_outer(from..to).to_owned();
            normalise_rows(&mut slice);
            let mut expected = lists[from..to].to_vec();
            expected.iter_mut().for_each(|row| normalise(row));
            prop_assert_eq!(slice.data(), &expected.concat()[..]);
        }
    }
}
