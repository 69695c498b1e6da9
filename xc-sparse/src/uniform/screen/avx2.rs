//! Screening in AVX2: see the parent module.

use crate::uniform::{ByteBlock, ByteLine, IndexWidth, LaneBounds, RowBound, ScreenRow};
use std::arch::x86_64::*;

/// Sums of eight lanes, four times, of one half of a line.
type Sums = [__m256i; 4];

/// Adds four connections: their lines are interleaved, so that the four bytes of a lane lie side by
/// side.
///
/// # Safety
/// The machine has the instructions; the inputs are below the number of lines.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn add<I: IndexWidth>(sums: &mut [Sums; 2], lines: *const ByteLine, inputs: [I; 4], weights: u32) {
    let (weights, ones) = (_mm256_set1_epi32(weights as i32), _mm256_set1_epi16(1));
    for (half, sums) in sums.iter_mut().enumerate() {
        let [a, b, c, d] = inputs.map(|input| {
            // SAFETY: in range, by the contract; half a line is 32 bytes.
            unsafe { _mm256_load_si256(lines.add(input.at()).cast::<__m256i>().add(half)) }
        });
        let (ab_low, ab_high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
        let (cd_low, cd_high) = (_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
        let quads = [
            _mm256_unpacklo_epi16(ab_low, cd_low),
            _mm256_unpackhi_epi16(ab_low, cd_low),
            _mm256_unpacklo_epi16(ab_high, cd_high),
            _mm256_unpackhi_epi16(ab_high, cd_high),
        ];
        for (sum, quad) in sums.iter_mut().zip(quads) {
            // Two products of at most 127 * 127 fit 16 bits.
            let pairs = _mm256_maddubs_epi16(quad, weights);
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
        }
    }
}

/// Whether some lane of a half is not at or below its bound.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn above(sums: &Sums, half: usize, bounds: &LaneBounds, row: RowBound) -> bool {
    let RowBound { bar, root, norm, total } = row;
    let [bar, root, norm, total] = [bar, root, norm, total].map(|value| _mm256_set1_ps(value));
    let mut lanes = 0;
    for k in 0..4 {
        // SAFETY: 64 numbers, of which these are eight.
        let [inverse, of_weights, of_inputs, shift] =
            [&bounds.inverse, &bounds.of_weights, &bounds.of_inputs, &bounds.shift]
                .map(|of| unsafe { _mm256_loadu_ps(of.as_ptr().add(16 * k + 8 * half)) });
        let bound = _mm256_fnmadd_ps(root, of_weights, _mm256_mul_ps(bar, inverse));
        let bound = _mm256_fmadd_ps(total, shift, _mm256_fnmadd_ps(norm, of_inputs, bound));
        lanes |= _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLE_UQ>(_mm256_cvtepi32_ps(sums[k]), bound));
    }
    lanes != 0
}

/// # Safety
/// The machine has the instructions; every input is below the number of lines; there are as many
/// groups of weights as of four inputs.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn screen<I: IndexWidth>(block: ByteBlock<'_>, inputs: &[I], row: ScreenRow<'_>, ahead: &[I]) -> u32 {
    for input in &ahead[..ahead.len().min(inputs.len())] {
        _mm_prefetch::<_MM_HINT_T1>(block.lines.as_ptr().wrapping_add(input.at()).cast());
    }
    let mut sums = [[_mm256_setzero_si256(); 4]; 2];
    let (groups, rest) = inputs.as_chunks::<4>();
    for (&inputs, &weights) in groups.iter().zip(row.weights) {
        // SAFETY: by the contract.
        unsafe { add(&mut sums, block.lines.as_ptr(), inputs, weights) };
    }
    if let (&[first, ..], Some(&weights)) = (rest, row.weights.last()) {
        // Inputs that are not there have a weight of 0.
        let inputs = std::array::from_fn(|k| rest.get(k).copied().unwrap_or(first));
        // SAFETY: by the contract.
        unsafe { add(&mut sums, block.lines.as_ptr(), inputs, weights) };
    }
    let [low, high] = [0, 1].map(|half| above(&sums[half], half, block.bounds, row.bound));
    u32::from(low) | u32::from(high) << 1
}
