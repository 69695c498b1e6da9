//! AVX2 kernels: eight children at a time.

use std::arch::x86_64::*;
use xc_buffer::dtype::{DType, Float};

/// For each mask of eight children: which packed value each lane takes.
static EXPAND: [[u32; 8]; 256] = expand_table();

const fn expand_table() -> [[u32; 8]; 256] {
    let mut table = [[0u32; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut next) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][lane] = next;
                next += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// Eight packed weights in single precision.
///
/// # Safety
/// AVX2 and F16C are present; eight weights can be read at `at`.
#[target_feature(enable = "avx2,f16c")]
unsafe fn load8<W: Float>(at: *const W) -> __m256 {
    match W::DTYPE {
        // SAFETY: `W` is f32; eight of them can be read.
        DType::F32 => unsafe { _mm256_loadu_ps(at.cast()) },
        // SAFETY: `W` is two bytes wide; eight of them can be read.
        DType::F16 => unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) },
        // SAFETY: `W` is two bytes wide; eight of them can be read.
        DType::Bf16 => unsafe {
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()))))
        },
        // The product is compiled for the three types above alone.
        _ => unreachable!(),
    }
}

/// See [`super::scalar::accumulate`]. `GROUPS` is the number of eights of lanes.
///
/// # Safety
/// AVX2, F16C, BMI and POPCNT are present. Each row's header lies inside `headers`; each row's
/// values, and eight entries after their first, lie inside `values`; `sums` has `GROUPS * 8`
/// entries and the header has a mask word for each four groups begun.
#[target_feature(enable = "avx2,f16c,bmi1,bmi2,popcnt")]
pub(crate) unsafe fn accumulate<W: Float, const GROUPS: usize>(
    headers: *const u32,
    stride: usize,
    values: *const W,
    rows: &[u32],
    xs: &[f32],
    sums: &mut [f32],
) {
    debug_assert!(sums.len() >= GROUPS * 8);
    let lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let mut acc = [_mm256_setzero_ps(); GROUPS];
    for (group, lanes) in acc.iter_mut().enumerate() {
        // SAFETY: `sums` has eight entries a group.
        *lanes = unsafe { _mm256_loadu_ps(sums.as_ptr().add(group * 8)) };
    }
    for (&row, &x) in rows.iter().zip(xs) {
        // SAFETY: the caller vouches for the header and the values of each row.
        unsafe {
            let header = headers.add(row as usize * stride);
            let mut at = values.add(*header.add(1) as usize);
            let x = _mm256_set1_ps(x);
            for group in 0..GROUPS {
                let mask = *header.add(2 + group / 4) >> (group % 4 * 8) & 0xff;
                let packed = load8(at);
                let order = _mm256_loadu_si256(EXPAND[mask as usize].as_ptr().cast());
                let spread = _mm256_permutevar8x32_ps(packed, order);
                let bits = _mm256_and_si256(_mm256_set1_epi32(mask as i32), lane_bits);
                let taken = _mm256_castsi256_ps(_mm256_cmpeq_epi32(bits, lane_bits));
                let sum = _mm256_add_ps(acc[group], _mm256_mul_ps(x, spread));
                acc[group] = _mm256_blendv_ps(acc[group], sum, taken);
                at = at.add(mask.count_ones() as usize);
            }
        }
    }
    for (group, lanes) in acc.iter().enumerate() {
        // SAFETY: `sums` has eight entries a group.
        unsafe { _mm256_storeu_ps(sums.as_mut_ptr().add(group * 8), *lanes) };
    }
}
