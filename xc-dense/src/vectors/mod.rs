//! Sums over two vectors in one order: value j goes to chain j % 32, each product and sum is rounded once,
//! and the chains are halved until one is left. The same bits on every instruction set.

#![allow(unsafe_code, reason = "a kernel written by hand: what is compiled from the loop takes the registers apart")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod wide;

pub use wide::{
    wide_dot, wide_dot_and_square, wide_dots, wide_dots_and_squares, wide_squared_distance, wide_squared_distances,
};

use std::ops::{AddAssign, Mul, Sub};
use xc_buffer::simd::Isa;

/// Chains of a sum: two of the widest registers.
const CHAINS: usize = 32;
/// The same of sums in f64.
const WIDE_CHAINS: usize = 16;

/// Inner product of two vectors.
///
/// # Panics
/// If they differ in length.
#[inline]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum_on::<false>(Isa::current(), a, b)
}

/// Squared distance of two vectors.
///
/// # Panics
/// If they differ in length.
#[inline]
pub fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    sum_on::<true>(Isa::current(), a, b)
}

/// Products of `a` and `b`, or squares of their differences.
#[inline]
fn sum_on<const DISTANCE: bool>(isa: Isa, a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "lengths of two vectors");
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available; lengths are equal.
        Isa::Avx512 => unsafe { avx512::sum::<DISTANCE>(a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { avx2::sum::<DISTANCE>(a, b) },
        _ => sum::<DISTANCE, f32, CHAINS>(a, b),
    }
}

/// What every kernel has to give, in f32 or f64: `N` chains of sums.
fn sum<const DISTANCE: bool, T, const N: usize>(a: &[f32], b: &[f32]) -> T
where
    T: Copy + Default + From<f32> + Sub<Output = T> + Mul<Output = T> + AddAssign,
{
    let mut chains = [T::default(); N];
    for (a, b) in a.chunks(N).zip(b.chunks(N)) {
        for ((chain, &a), &b) in chains.iter_mut().zip(a).zip(b) {
            let (a, b) = (T::from(a), T::from(b));
            *chain += if DISTANCE { (a - b) * (a - b) } else { a * b };
        }
    }
    let mut half = N / 2;
    while half > 0 {
        for at in 0..half {
            let other = chains[at + half];
            chains[at] += other;
        }
        half /= 2;
    }
    chains[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_are_near_those_in_double_and_equal_everywhere(pairs in prop::collection::vec((-2f32..2.0, -2f32..2.0), 0..200)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let wide = || pairs.iter().map(|&(a, b)| (f64::from(a), f64::from(b)));
            let (product, distance) = (wide().map(|(a, b)| a * b).sum::<f64>(), wide().map(|(a, b)| (a - b).powi(2)).sum::<f64>());
            prop_assert!((f64::from(dot(&a, &b)) - product).abs() < 1e-3);
            prop_assert!((f64::from(squared_distance(&a, &b)) - distance).abs() < 1e-3);
            for isa in Isa::available() {
                prop_assert_eq!(sum_on::<false>(isa, &a, &b).to_bits(), sum::<false, f32, CHAINS>(&a, &b).to_bits(), "{}", isa);
                prop_assert_eq!(sum_on::<true>(isa, &a, &b).to_bits(), sum::<true, f32, CHAINS>(&a, &b).to_bits(), "{}", isa);
            }
        }
    }
}
