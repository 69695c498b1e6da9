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

/// [`super::sum`] of a vector and each of four rows, and of each row with itself where `SQUARES` says so (0 else).
///
/// Chains are halved for the four rows together: the same sums, in other lanes.
///
/// # Safety
/// The machine has AVX-512 F; the rows are as long as the vector.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn sums_of_four<const DISTANCE: bool, const SQUARES: bool>(
    vector: &[f32],
    rows: [&[f32]; 4],
) -> [[f32; 2]; 4] {
    let zero = _mm512_setzero_ps();
    // Low and high chains of each row.
    let (mut sums, mut squares) = ([[zero; 2]; 4], [[zero; 2]; 4]);
    let mut begin = 0;
    while begin < vector.len() {
        let left = vector.len() - begin;
        for half in 0..2 {
            let n = left.saturating_sub(16 * half).min(16);
            let lanes = ((1u32 << n) - 1) as u16;
            let from = |values: &[f32]| values.as_ptr().wrapping_add(begin + 16 * half);
            // SAFETY: as many values are read as there are; the rest is 0.
            let a = unsafe { _mm512_maskz_loadu_ps(lanes, from(vector)) };
            for ((row, sum), square) in rows.iter().zip(&mut sums).zip(&mut squares) {
                // SAFETY: as above.
                let b = unsafe { _mm512_maskz_loadu_ps(lanes, from(row)) };
                let (first, second) = if DISTANCE { (_mm512_sub_ps(a, b), _mm512_sub_ps(a, b)) } else { (a, b) };
                sum[half] = _mm512_add_ps(sum[half], _mm512_mul_ps(first, second));
                if SQUARES {
                    square[half] = _mm512_add_ps(square[half], _mm512_mul_ps(b, b));
                }
            }
        }
        begin += CHAINS;
    }
    let sums = halved(sums);
    let squares = if SQUARES { halved(squares) } else { [0.0; 4] };
    [0, 1, 2, 3].map(|row| [sums[row], squares[row]])
}

/// The sum of the chains of each of four rows.
#[target_feature(enable = "avx512f")]
#[inline]
fn halved(chains: [[__m512; 2]; 4]) -> [f32; 4] {
    let [a, b, c, d] = chains.map(|[low, high]| _mm512_add_ps(low, high));
    // Eight of a and of b, eight of c and of d; then four of each, a quarter of a register.
    let ab = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
    let cd = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(c, d), _mm512_shuffle_f32x4::<0xee>(c, d));
    let four = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xdd>(ab, cd));
    let two = _mm512_add_ps(four, _mm512_permute_ps::<0b11_10>(four));
    let one = _mm512_add_ps(two, _mm512_permute_ps::<0b01>(two));
    let mut sums = [0.0; 4];
    let first = _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, one));
    // SAFETY: four values.
    unsafe { _mm_storeu_ps(sums.as_mut_ptr(), first) };
    sums
}
