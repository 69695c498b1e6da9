//! Sums over two vectors in AVX-512: the chains are two registers.

use super::{CHAINS, WIDE_CHAINS};
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

/// [`super::wide`]'s sums of a vector and each of some rows, and of each row with itself if `SQUARES`, otherwise 0.
///
/// # Safety
/// The machine has AVX-512 F; the rows are as long as the vector.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn wide_sums<const DISTANCE: bool, const SQUARES: bool, const N: usize>(
    vector: &[f32],
    rows: [&[f32]; N],
) -> [[f64; 2]; N] {
    const { assert!(N <= 4) };
    let zero = _mm512_setzero_pd();
    // Low and high chains of each row.
    let (mut sums, mut squares) = ([[zero; 2]; N], [[zero; 2]; N]);
    // The halves of 16 values.
    let whole = |values: &[f32], begin: usize| {
        let from = values.as_ptr().wrapping_add(begin);
        // SAFETY: called where 16 values follow.
        unsafe { [_mm512_cvtps_pd(_mm256_loadu_ps(from)), _mm512_cvtps_pd(_mm256_loadu_ps(from.add(8)))] }
    };
    let mut add = |a: [__m512d; 2], rows: [[__m512d; 2]; N]| {
        for ((row, sum), square) in rows.iter().zip(&mut sums).zip(&mut squares) {
            for half in 0..2 {
                let b = row[half];
                if DISTANCE {
                    let apart = _mm512_sub_pd(a[half], b);
                    sum[half] = _mm512_add_pd(sum[half], _mm512_mul_pd(apart, apart));
                } else {
                    // The product of two f32 is exact: the bits of a product and a sum.
                    sum[half] = _mm512_fmadd_pd(a[half], b, sum[half]);
                }
                if SQUARES {
                    square[half] = _mm512_fmadd_pd(b, b, square[half]);
                }
            }
        }
    };
    let last = vector.len() / WIDE_CHAINS * WIDE_CHAINS;
    for begin in (0..last).step_by(WIDE_CHAINS) {
        add(whole(vector, begin), rows.map(|row| whole(row, begin)));
    }
    if last < vector.len() {
        let lanes = (1u16 << (vector.len() - last)) - 1;
        let part = |values: &[f32]| {
            // SAFETY: as many values are read as there are; the rest is 0.
            let values = unsafe { _mm512_maskz_loadu_ps(lanes, values.as_ptr().wrapping_add(last)) };
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(values)));
            [_mm512_cvtps_pd(_mm512_castps512_ps256(values)), _mm512_cvtps_pd(upper)]
        };
        add(part(vector), rows.map(part));
    }
    let sums = wide_halved(sums);
    let squares = if SQUARES { wide_halved(squares) } else { [0.0; 4] };
    std::array::from_fn(|row| [sums[row], squares[row]])
}

/// The sum of the chains of each of up to four rows.
#[target_feature(enable = "avx512f")]
#[inline]
fn wide_halved<const N: usize>(chains: [[__m512d; 2]; N]) -> [f64; 4] {
    let [a, b, c, d] = [0, 1, 2, 3].map(|row| {
        let [low, high] = chains[row.min(N - 1)];
        _mm512_add_pd(low, high)
    });
    // Four of a and of b, four of c and of d; then two of each, a quarter of a register.
    let ab = _mm512_add_pd(_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0xee>(a, b));
    let cd = _mm512_add_pd(_mm512_shuffle_f64x2::<0x44>(c, d), _mm512_shuffle_f64x2::<0xee>(c, d));
    let two = _mm512_add_pd(_mm512_shuffle_f64x2::<0x88>(ab, cd), _mm512_shuffle_f64x2::<0xdd>(ab, cd));
    let one = _mm512_add_pd(two, _mm512_permute_pd::<0x55>(two));
    let mut sums = [0.0; 4];
    let first = _mm512_castpd512_pd256(_mm512_maskz_compress_pd(0x55, one));
    // SAFETY: four values.
    unsafe { _mm256_storeu_pd(sums.as_mut_ptr(), first) };
    sums
}
