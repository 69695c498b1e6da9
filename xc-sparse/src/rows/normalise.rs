//! Rows of length 1: training and serving scale them by the same code, to the bit.

use super::{CsrMatrix, SparseRow};

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

/// The typical length of rows: the lower quartile of their lengths, rows of length 0 left out, rounded to
/// 11 binary digits; 1 where no row has a length.
///
/// Rows that were scaled to length 1 have exactly 1. Rows times a power of two have the length times
/// that power, bit for bit, as long as no value leaves the range of normal numbers.
///
/// *Cost*: O(values); 8 bytes a row.
pub fn typical_length<'a>(rows: impl Iterator<Item = &'a [f32]>) -> f32 {
    // Binary digits of an f32 that are rounded away.
    const DROPPED: u32 = 13;
    let square = |row: &[f32]| row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>();
    let mut squares: Vec<f64> = rows.map(square).filter(|&square| square > 0.0).collect();
    if squares.is_empty() {
        return 1.0;
    }
    let quarter = squares.len() / 4;
    let length = squares.select_nth_unstable_by(quarter, f64::total_cmp).1.sqrt();
    // Neither 0 nor infinite, rounded or not.
    let length = length.clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX / 2.0)) as f32;
    f32::from_bits((length.to_bits() + (1 << (DROPPED - 1))) >> DROPPED << DROPPED)
}

/// [`normalise`] of each row.
pub fn normalise_rows(rows: &mut CsrMatrix) {
    let (indptr, _, values) = rows.parts_mut();
    indptr.windows(2).for_each(|w| normalise(&mut values[w[0]..w[1]]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_typical_length_is_the_lower_quartile_and_outliers_do_not_matter() {
        let of = |rows: &[&[f32]]| typical_length(rows.iter().copied());
        assert_eq!(of(&[]), 1.0);
        assert_eq!(of(&[&[], &[0.0, 0.0]]), 1.0);
        assert_eq!(of(&[&[3.0, 4.0], &[], &[1e30], &[1e-30], &[5.0]]), 5.0);
        assert_eq!(of(&[&[2.0], &[8.0]]), 2.0);
        assert_eq!(of(&[&[8.0], &[2.0], &[6.0], &[4.0]]), 4.0);
        assert_eq!(of(&[&[1.0003]]), 1.0);
        assert_eq!(of(&[&[1.0006]]), 1.0 + 1.0 / 1024.0);
        for extreme in [f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)] {
            let length = of(&[&[extreme, extreme], &[-extreme, extreme]]);
            assert!(length.is_finite() && length > 0.0 && (extreme / length).is_finite(), "{extreme:e}: {length:e}");
        }
    }

    proptest! {
        #[test]
        fn the_typical_length_follows_a_power_of_two_to_the_bit(rows in prop::collection::vec(
            prop::collection::vec(-3f32..3.0, 0..9), 0..20), power in -40i32..40, unit in any::<bool>()) {
            let mut rows = rows;
            if unit {
                rows.iter_mut().for_each(|row| normalise(row));
            }
            let factor = 2f32.powi(power);
            let scaled: Vec<Vec<f32>> = rows.iter().map(|row| row.iter().map(|v| v * factor).collect()).collect();
            let of = |rows: &[Vec<f32>]| typical_length(rows.iter().map(Vec::as_slice));
            let any = rows.iter().flatten().any(|&v| v != 0.0);
            prop_assert_eq!(of(&scaled), if any { of(&rows) * factor } else { 1.0 });
            if unit {
                prop_assert_eq!(of(&rows), 1.0);
            }
        }

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
            let mut rows = CsrMatrix::from_checked((1, values.len()), vec![0, values.len()], indices.clone(), values.clone());
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
            let whole = CsrMatrix::from_checked((lists.len(), 6), indptr, indices, lists.concat());
            let (from, to) = (cut.0.min(cut.1).min(lists.len()), cut.0.max(cut.1).min(lists.len()));
            let mut slice = whole.slice(from..to).to_owned();
            normalise_rows(&mut slice);
            let mut expected = lists[from..to].to_vec();
            expected.iter_mut().for_each(|row| normalise(row));
            prop_assert_eq!(slice.data(), &expected.concat()[..]);
        }
    }
}
