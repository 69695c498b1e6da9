//! Sums over two vectors in AVX-512: the chains are two registers.

use super::CHAINS;
use std::arch::x86_64::*;

/// See [`super::sum`].
///
/// # Safety
/// The machine has AVX-512 F; both vectors are equally long.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn sum<const DISTANCE: bool>(a: &[f32], b: &[f32]) -> f32 {
    let add = |sum: __m512, a: __m512, b: __m512| {
        if DISTANCE {
            let apart = _mm512_sub_ps(a, b);
            _mm512_add_ps(sum, _mm512_mul_ps(apart, apart))
        } else {
            _mm512_add_ps(sum, _mm512_mul_ps(a, b))
        }
    };
    let (mut low, mut high) = (_mm512_setzero_ps(), _mm512_setzero_ps());
    for (a, b) in a.chunks(CHAINS).zip(b.chunks(CHAINS)) {
        let bits = (1u64 << a.len()) - 1;
        let (of_low, of_high) = (bits as u16, (bits >> 16) as u16);
        // SAFETY: as many values are read as there are; the rest is 0.
        unsafe {
            low = add(low, _mm512_maskz_loadu_ps(of_low, a.as_ptr()), _mm512_maskz_loadu_ps(of_low, b.as_ptr()));
            let (a, b) = (a.as_ptr().wrapping_add(16), b.as_ptr().wrapping_add(16));
            high = add(high, _mm512_maskz_loadu_ps(of_high, a), _mm512_maskz_loadu_ps(of_high, b));
        }
    }
    let sixteen = _mm512_add_ps(low, high);
    let upper = _mm512_castpd_ps(_mm512_castpd256_pd512(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(sixteen))));
    let eight = _mm512_castps512_ps256(_mm512_add_ps(sixteen, upper));
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}
