//! Sums in f64 over a vector and rows of f32: value j goes to chain j % 16, each square is rounded once (products are
//! exact), each sum once, and the chains are halved until one is left. The same bits on every instruction set.

use super::WIDE_CHAINS;
use crate::DenseRows;
use xc_buffer::simd::Isa;

/// Rows that a kernel sums together: they share the vector, and their chains wait for one another's sums.
#[cfg(target_arch = "x86_64")]
const TOGETHER: usize = 4;

/// Inner product of two vectors, in f64.
///
/// # Panics
/// If they differ in length.
#[inline]
pub fn wide_dot(a: &[f32], b: &[f32]) -> f64 {
    one::<false, false>(Isa::current(), a, b)[0]
}

/// [`wide_dot`], and the product of `b` with itself.
///
/// # Panics
/// If they differ in length.
#[inline]
pub fn wide_dot_and_square(a: &[f32], b: &[f32]) -> [f64; 2] {
    one::<false, true>(Isa::current(), a, b)
}

/// Squared distance of two vectors, in f64.
///
/// # Panics
/// If they differ in length.
#[inline]
pub fn wide_squared_distance(a: &[f32], b: &[f32]) -> f64 {
    one::<true, false>(Isa::current(), a, b)[0]
}

/// [`wide_dot`] of a vector and each listed row, handed to `each` in the order of the list. Rows that are not in a cache
/// are best asked for before ([`prefetch_all`](xc_buffer::simd::prefetch_all)).
///
/// # Panics
/// If widths differ, or a row is not there.
pub fn wide_dots(vector: &[f32], rows: DenseRows<'_>, listed: &[u32], mut each: impl FnMut(f64)) {
    listed_sums::<false, false>(Isa::current(), vector, rows, listed, |[dot, _]| each(dot));
}

/// [`wide_squared_distance`] of a vector and each listed row, handed to `each` in the order of the list.
///
/// # Panics
/// If widths differ, or a row is not there.
pub fn wide_squared_distances(vector: &[f32], rows: DenseRows<'_>, listed: &[u32], mut each: impl FnMut(f64)) {
    listed_sums::<true, false>(Isa::current(), vector, rows, listed, |[distance, _]| each(distance));
}

/// [`wide_dots`], and the product of each row with itself.
///
/// # Panics
/// If widths differ, or a row is not there.
pub fn wide_dots_and_squares(vector: &[f32], rows: DenseRows<'_>, listed: &[u32], mut each: impl FnMut(f64, f64)) {
    listed_sums::<false, true>(Isa::current(), vector, rows, listed, |[dot, square]| each(dot, square));
}

fn listed_sums<const DISTANCE: bool, const SQUARES: bool>(
    isa: Isa,
    vector: &[f32],
    rows: DenseRows<'_>,
    listed: &[u32],
    mut each: impl FnMut([f64; 2]),
) {
    assert_eq!(vector.len(), rows.width(), "lengths of a vector and of rows");
    let row = |&number: &u32| rows.row(number as usize);
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 {
        for numbers in listed.chunks(TOGETHER) {
            // Fewer than four are summed as four, of which the last ones are not looked at.
            let four = std::array::from_fn(|at| row(&numbers[at.min(numbers.len() - 1)]));
            // SAFETY: an instruction set is only named here where it is available; rows are as long as the vector.
            let sums = unsafe { super::avx512::wide_sums::<DISTANCE, SQUARES, TOGETHER>(vector, four) };
            sums[..numbers.len()].iter().for_each(|&sums| each(sums));
        }
        return;
    }
    listed.iter().for_each(|number| each(one::<DISTANCE, SQUARES>(isa, vector, row(number))));
}

/// Products of `a` and `b`, or squares of their differences; and products of `b` with itself, or 0.
#[inline]
fn one<const DISTANCE: bool, const SQUARES: bool>(isa: Isa, a: &[f32], b: &[f32]) -> [f64; 2] {
    assert_eq!(a.len(), b.len(), "lengths of two vectors");
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available; lengths are equal.
        Isa::Avx512 => unsafe { super::avx512::wide_sums::<DISTANCE, SQUARES, 1>(a, [b])[0] },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { super::avx2::wide_sums::<DISTANCE, SQUARES>(a, b) },
        _ => [sum::<DISTANCE>(a, b), if SQUARES { sum::<false>(b, b) } else { 0.0 }],
    }
}

/// What every kernel has to give.
fn sum<const DISTANCE: bool>(a: &[f32], b: &[f32]) -> f64 {
    super::sum::<DISTANCE, f64, WIDE_CHAINS>(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn listed_rows_have_the_bits_of_one_after_the_other_on_every_instruction_set(
            width in 1usize..70, n in 1usize..12, draws in prop::collection::vec(any::<u32>(), 0..40),
            values in prop::collection::vec(
                prop_oneof![9 => -2f32..2.0, 1 => any::<f32>(), 1 => Just(f32::NAN), 1 => Just(-0.0), 1 => Just(f32::INFINITY)],
                12 * 70
            )
        ) {
            let (vector, rows) = (&values[..width], &values[..n * width]);
            let listed: Vec<u32> = draws.iter().map(|d| d % n as u32).collect();
            let rows = DenseRows::new(rows, width);
            let bits = |sums: [f64; 2]| sums.map(|v| if v.is_nan() { None } else { Some(v.to_bits()) });
            for isa in Isa::available() {
                let (mut products, mut alone, mut distances) = (vec![], vec![], vec![]);
                listed_sums::<false, true>(isa, vector, rows, &listed, |sums| products.push(bits(sums)));
                listed_sums::<false, false>(isa, vector, rows, &listed, |sums| alone.push(bits(sums)));
                listed_sums::<true, false>(isa, vector, rows, &listed, |sums| distances.push(bits(sums)));
                for (at, &number) in listed.iter().enumerate() {
                    let row = rows.row(number as usize);
                    let product = sum::<false>(vector, row);
                    prop_assert_eq!(products[at], bits([product, sum::<false>(row, row)]), "{}", isa);
                    prop_assert_eq!(alone[at], bits([product, 0.0]), "{}", isa);
                    prop_assert_eq!(distances[at], bits([sum::<true>(vector, row), 0.0]), "{}", isa);
                    prop_assert_eq!(bits(one::<false, true>(isa, vector, row)), products[at], "{}", isa);
                    prop_assert_eq!(bits(one::<true, false>(isa, vector, row)), distances[at], "{}", isa);
                }
            }
        }

        #[test]
        fn sums_are_those_of_doubles(pairs in prop::collection::vec((-2f32..2.0, -2f32..2.0), 0..200)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let wide = || pairs.iter().map(|&(a, b)| (f64::from(a), f64::from(b)));
            prop_assert!((wide_dot(&a, &b) - wide().map(|(a, b)| a * b).sum::<f64>()).abs() < 1e-12);
            prop_assert!((wide_squared_distance(&a, &b) - wide().map(|(a, b)| (a - b).powi(2)).sum::<f64>()).abs() < 1e-12);
            prop_assert_eq!(wide_dot_and_square(&a, &b), [wide_dot(&a, &b), wide_dot(&b, &b)]);
        }
    }
}
