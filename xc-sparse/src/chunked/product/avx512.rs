//! AVX-512 kernels: sixteen children at a time.

use std::arch::x86_64::*;
use xc_buffer::dtype::{DType, Float};

/// Sixteen packed weights in single precision.
///
/// # Safety
/// AVX-512 F is present; sixteen weights can be read at `at`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn load16<W: Float>(at: *const W) -> __m512 {
    match W::DTYPE {
        // SAFETY: `W` is f32; sixteen of them can be read.
        DType::F32 => unsafe { _mm512_loadu_ps(at.cast()) },
        // SAFETY: `W` is two bytes wide; sixteen of them can be read.
        DType::F16 => unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(at.cast())) },
        // SAFETY: `W` is two bytes wide; sixteen of them can be read.
        DType::Bf16 => unsafe {
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast()))))
        },
        // The product is compiled for the three types above alone.
        _ => unreachable!(),
    }
}

/// See [`super::scalar::accumulate`]. `GROUPS` is the number of sixteens of lanes.
///
/// The packed values are expanded in the register after a plain load: an expanding load is
/// microcode on some processors. The first value of a row is at most 16 entries from the end of the
/// padded array.
///
/// # Safety
/// The instruction set is present. Each row's header lies inside `headers`; sixteen entries from
/// each row's first value, and from the end of each of its groups, lie inside `values`; `sums` has
/// `GROUPS * 16` entries and the header has a mask word for each two groups begun.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(crate) unsafe fn accumulate<W: Float, const GROUPS: usize>(
    headers: *const u32,
    stride: usize,
    values: *const W,
    rows: &[u32],
    xs: &[f32],
    sums: &mut [f32],
) {
    debug_assert!(sums.len() >= GROUPS * 16);
    let mut acc = [_mm512_setzero_ps(); GROUPS];
    for (group, lanes) in acc.iter_mut().enumerate() {
        // SAFETY: `sums` has sixteen entries a group.
        *lanes = unsafe { _mm512_loadu_ps(sums.as_ptr().add(group * 16)) };
    }
    for (&row, &x) in rows.iter().zip(xs) {
        // SAFETY: the caller vouches for the header and the values of each row.
        unsafe {
            let header = headers.add(row as usize * stride);
            let mut at = values.add(*header.add(1) as usize);
            let x = _mm512_set1_ps(x);
            for group in 0..GROUPS {
                let mask = (*header.add(2 + group / 2) >> (group % 2 * 16)) as u16;
                let spread = _mm512_maskz_expand_ps(mask, load16(at));
                acc[group] = _mm512_mask_add_ps(acc[group], mask, acc[group], _mm512_mul_ps(x, spread));
                at = at.add(mask.count_ones() as usize);
            }
        }
    }
    for (group, lanes) in acc.iter().enumerate() {
        // SAFETY: `sums` has sixteen entries a group.
        unsafe { _mm512_storeu_ps(sums.as_mut_ptr().add(group * 16), *lanes) };
    }
}
