//! Sums over two vectors in AVX2.

use super::{CHAINS, WIDE_CHAINS};
use std::arch::x86_64::*;

/// See [`super::sum`].
///
/// # Safety
/// The machine has AVX2; the vectors are equally long.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sum<const DISTANCE: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut chains = [_mm256_setzero_ps(); CHAINS / 8];
    let (a, a_rest) = a.as_chunks::<CHAINS>();
    let (b, b_rest) = b.as_chunks::<CHAINS>();
    for (a, b) in a.iter().zip(b) {
        add::<DISTANCE>(&mut chains, a, b);
    }
    if !a_rest.is_empty() {
        // What is added to a chain whose vectors have ended is 0, and no chain is -0.
        let (mut a, mut b) = ([0.0; CHAINS], [0.0; CHAINS]);
        a[..a_rest.len()].copy_from_slice(a_rest);
        b[..b_rest.len()].copy_from_slice(b_rest);
        add::<DISTANCE>(&mut chains, &a, &b);
    }
    let [first, second, third, fourth] = chains;
    let eight = _mm256_add_ps(_mm256_add_ps(first, third), _mm256_add_ps(second, fourth));
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn add<const DISTANCE: bool>(chains: &mut [__m256; CHAINS / 8], a: &[f32; CHAINS], b: &[f32; CHAINS]) {
    for (at, chain) in chains.iter_mut().enumerate() {
        // SAFETY: eight of 32 values each.
        let (a, b) = unsafe { (_mm256_loadu_ps(a.as_ptr().add(8 * at)), _mm256_loadu_ps(b.as_ptr().add(8 * at))) };
        let of = if DISTANCE {
            let difference = _mm256_sub_ps(a, b);
            _mm256_mul_ps(difference, difference)
        } else {
            _mm256_mul_ps(a, b)
        };
        *chain = _mm256_add_ps(*chain, of);
    }
}

/// [`super::wide`]'s sum of two vectors, and of the second with itself if `SQUARES`, otherwise 0.
///
/// # Safety
/// The machine has AVX2; the vectors are equally long.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn wide_sums<const DISTANCE: bool, const SQUARES: bool>(a: &[f32], b: &[f32]) -> [f64; 2] {
    const FOURS: usize = WIDE_CHAINS / 4;
    let (mut sums, mut squares) = ([_mm256_setzero_pd(); FOURS], [_mm256_setzero_pd(); FOURS]);
    let mut add = |a: &[f32; WIDE_CHAINS], b: &[f32; WIDE_CHAINS]| {
        for (at, (sum, square)) in sums.iter_mut().zip(&mut squares).enumerate() {
            // SAFETY: four of 16 values.
            let four =
                |values: &[f32; WIDE_CHAINS]| unsafe { _mm256_cvtps_pd(_mm_loadu_ps(values.as_ptr().add(4 * at))) };
            let (a, b) = (four(a), four(b));
            let of = if DISTANCE { _mm256_sub_pd(a, b) } else { a };
            *sum = _mm256_add_pd(*sum, _mm256_mul_pd(of, if DISTANCE { of } else { b }));
            if SQUARES {
                *square = _mm256_add_pd(*square, _mm256_mul_pd(b, b));
            }
        }
    };
    let (a, a_rest) = a.as_chunks::<WIDE_CHAINS>();
    let (b, b_rest) = b.as_chunks::<WIDE_CHAINS>();
    for (a, b) in a.iter().zip(b) {
        add(a, b);
    }
    if !a_rest.is_empty() {
        // What is added to a chain whose vectors have ended is 0, and no chain is -0.
        let (mut a, mut b) = ([0.0; WIDE_CHAINS], [0.0; WIDE_CHAINS]);
        a[..a_rest.len()].copy_from_slice(a_rest);
        b[..b_rest.len()].copy_from_slice(b_rest);
        add(&a, &b);
    }
    let total = |[first, second, third, fourth]: [__m256d; FOURS]| {
        let four = _mm256_add_pd(_mm256_add_pd(first, third), _mm256_add_pd(second, fourth));
        let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
        _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
    };
    [total(sums), if SQUARES { total(squares) } else { 0.0 }]
}
