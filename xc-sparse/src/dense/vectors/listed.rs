//! Sums over a vector and each of some rows: the bits of one sum after the other, in less time.

use super::sum_on;
use crate::DenseRows;
use crate::simd::{Isa, prefetch_all};

/// Rows that a kernel sums together: their chains wait for one another's sums, not for their own.
const TOGETHER: usize = 4;
/// Rows that are asked of memory before they are needed.
const AHEAD: usize = 2 * TOGETHER;

/// [`dot`](super::dot) of a vector and each listed row, handed to `each` in the order of the list.
///
/// # Panics
/// If widths differ, or a row is not there.
pub fn dots(vector: &[f32], rows: DenseRows<'_>, listed: &[u32], mut each: impl FnMut(f32)) {
    sums::<false, false>(Isa::current(), vector, rows, listed, |[dot, _]| each(dot));
}

/// [`squared_distance`](super::squared_distance) of a vector and each listed row, handed to `each` in the order of the list.
///
/// # Panics
/// If widths differ, or a row is not there.
pub fn squared_distances(vector: &[f32], rows: DenseRows<'_>, listed: &[u32], mut each: impl FnMut(f32)) {
    sums::<true, false>(Isa::current(), vector, rows, listed, |[distance, _]| each(distance));
}

/// [`dots`], and the product of each row with itself.
///
/// # Panics
/// If widths differ, or a row is not there.
pub fn dots_and_squares(vector: &[f32], rows: DenseRows<'_>, listed: &[u32], mut each: impl FnMut(f32, f32)) {
    sums::<false, true>(Isa::current(), vector, rows, listed, |[dot, square]| each(dot, square));
}

fn sums<const DISTANCE: bool, const SQUARES: bool>(
    isa: Isa,
    vector: &[f32],
    rows: DenseRows<'_>,
    listed: &[u32],
    mut each: impl FnMut([f32; 2]),
) {
    assert_eq!(vector.len(), rows.width(), "lengths of a vector and of rows");
    let row = |&number: &u32| rows.row(number as usize);
    listed.iter().take(AHEAD).for_each(|number| prefetch_all(row(number)));
    let (together, rest) = listed.as_chunks::<TOGETHER>();
    let mut ahead = listed.iter().skip(AHEAD);
    for numbers in together {
        ahead.by_ref().take(TOGETHER).for_each(|number| prefetch_all(row(number)));
        let four = numbers.each_ref().map(row);
        match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an instruction set is only named here where it is available; rows are as long as the vector.
            Isa::Avx512 => unsafe { super::avx512::sums_of_four::<DISTANCE, SQUARES>(vector, four) }.map(&mut each),
            _ => four.map(|row| each(one::<DISTANCE, SQUARES>(isa, vector, row))),
        };
    }
    rest.iter().for_each(|number| each(one::<DISTANCE, SQUARES>(isa, vector, row(number))));
}

#[inline]
fn one<const DISTANCE: bool, const SQUARES: bool>(isa: Isa, vector: &[f32], row: &[f32]) -> [f32; 2] {
    [sum_on::<DISTANCE>(isa, vector, row), if SQUARES { sum_on::<false>(isa, row, row) } else { 0.0 }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn listed_rows_have_the_bits_of_one_after_the_other(
            width in 1usize..70, n in 1usize..12, draws in prop::collection::vec(any::<u32>(), 0..40),
            values in prop::collection::vec(prop_oneof![-2f32..2.0, Just(f32::NAN), Just(-0.0), Just(f32::INFINITY)], 12 * 70)
        ) {
            let (vector, rows) = (&values[..width], &values[..n * width]);
            let listed: Vec<u32> = draws.iter().map(|d| d % n as u32).collect();
            let rows = DenseRows::new(rows, width);
            let bits = |sums: &[f32; 2]| sums.map(|v| if v.is_nan() { None } else { Some(v.to_bits()) });
            for isa in Isa::available() {
                let (mut products, mut distances) = (vec![], vec![]);
                sums::<false, true>(isa, vector, rows, &listed, |sums| products.push(bits(&sums)));
                sums::<true, false>(isa, vector, rows, &listed, |sums| distances.push(bits(&sums)));
                let row = |&number: &u32| rows.row(number as usize);
                let expected = |row: &[f32]| bits(&[super::super::sum::<false>(vector, row), super::super::sum::<false>(row, row)]);
                prop_assert_eq!(products, listed.iter().map(|n| expected(row(n))).collect::<Vec<_>>(), "{}", isa);
                let expected = |row: &[f32]| bits(&[super::super::sum::<true>(vector, row), 0.0]);
                prop_assert_eq!(distances, listed.iter().map(|n| expected(row(n))).collect::<Vec<_>>(), "{}", isa);
            }
        }
    }
}
