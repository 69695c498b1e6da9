//! Sums over two vectors in AVX2.

use super::CHAINS;
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
