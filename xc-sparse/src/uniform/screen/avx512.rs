//! Screening in AVX-512: see the parent module.

use crate::uniform::{ByteBlock, ByteLine, IndexWidth, LaneBounds, RowBound, ScreenRow};
use std::arch::x86_64::*;

/// Sums of sixteen lanes, four times: see `uniform::screen::lane_of`.
type Sums = [__m512i; 4];

/// Adds four connections: their lines are interleaved, so that the four bytes of a lane lie side by
/// side.
///
/// # Safety
/// The machine has the instructions; the inputs are below the number of lines.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn add<I: IndexWidth>(sums: &mut Sums, lines: *const ByteLine, inputs: [I; 4], weights: u32) {
    // SAFETY: in range, by the contract.
    let [a, b, c, d] = inputs.map(|input| unsafe { _mm512_load_si512(lines.add(input.at()).cast()) });
    let (ab_low, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
    let (cd_low, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
    let weights = _mm512_set1_epi32(weights as i32);
    sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_unpacklo_epi16(ab_low, cd_low), weights);
    sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_unpackhi_epi16(ab_low, cd_low), weights);
    sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_unpacklo_epi16(ab_high, cd_high), weights);
    sums[3] = _mm512_dpbusd_epi32(sums[3], _mm512_unpackhi_epi16(ab_high, cd_high), weights);
}

/// The halves where some lane is not at or below its bound.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn above(sums: &Sums, bounds: &LaneBounds, row: RowBound) -> u32 {
    let RowBound { bar, root, norm, total } = row;
    let [bar, root, norm, total] = [bar, root, norm, total].map(|value| _mm512_set1_ps(value));
    let mut lanes = 0u32;
    for k in 0..4 {
        // SAFETY: 64 numbers, of which these are sixteen.
        let [inverse, of_weights, of_inputs, shift] =
            [&bounds.inverse, &bounds.of_weights, &bounds.of_inputs, &bounds.shift]
                .map(|of| unsafe { _mm512_loadu_ps(of.as_ptr().add(16 * k)) });
        let bound = _mm512_fnmadd_ps(root, of_weights, _mm512_mul_ps(bar, inverse));
        let bound = _mm512_fmadd_ps(total, shift, _mm512_fnmadd_ps(norm, of_inputs, bound));
        lanes |= u32::from(_mm512_cmp_ps_mask::<_CMP_NLE_UQ>(_mm512_cvtepi32_ps(sums[k]), bound));
    }
    u32::from(lanes & 0xff != 0) | u32::from(lanes >> 8 != 0) << 1
}

/// # Safety
/// The machine has the instructions; every input is below the number of lines of each block; there
/// are as many groups of weights as of four inputs.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(crate) unsafe fn screen<const N: usize, I: IndexWidth>(
    blocks: [ByteBlock<'_>; N],
    inputs: &[I],
    row: ScreenRow<'_>,
    ahead: &[I],
) -> u32 {
    for input in &ahead[..ahead.len().min(inputs.len())] {
        for block in &blocks {
            _mm_prefetch::<_MM_HINT_T1>(block.lines.as_ptr().wrapping_add(input.at()).cast());
        }
    }
    let mut sums = [[_mm512_setzero_si512(); 4]; N];
    let (groups, rest) = inputs.as_chunks::<4>();
    for (&inputs, &weights) in groups.iter().zip(row.weights) {
        for (sums, block) in sums.iter_mut().zip(&blocks) {
            // SAFETY: by the contract.
            unsafe { add(sums, block.lines.as_ptr(), inputs, weights) };
        }
    }
    if let (&[first, ..], Some(&weights)) = (rest, row.weights.last()) {
        // Inputs that are not there have a weight of 0.
        let inputs = std::array::from_fn(|k| rest.get(k).copied().unwrap_or(first));
        for (sums, block) in sums.iter_mut().zip(&blocks) {
            // SAFETY: by the contract.
            unsafe { add(sums, block.lines.as_ptr(), inputs, weights) };
        }
    }
    let mut out = 0;
    for (b, (sums, block)) in sums.iter().zip(&blocks).enumerate() {
        out |= above(sums, block.bounds, row.bound) << (2 * b);
    }
    out
}
