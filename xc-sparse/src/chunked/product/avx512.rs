//! AVX-512 kernels: sixteen children, or eight directory probes, at a time.

use super::probe::{Found, Probes};
use crate::dtype::{DType, Float};
use std::arch::x86_64::*;

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
/// The packed values are expanded in the register after a plain load: an expanding load is microcode on some
/// processors. The first value of a row is at most 16 entries from the end of the padded array.
///
/// # Safety
/// The instruction set is present. Each row's header lies inside `headers`; sixteen entries from each row's first
/// value, and from the end of each of its groups, lie inside `values`; `sums` has `GROUPS * 16` entries and the header has a mask word for
/// each two groups begun.
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

/// See [`super::scalar::probe`].
///
/// # Safety
/// The instruction set is present. Each slot (after scaling by `n_slots` unless `direct`) is below `32 * words.len()`.
/// `features` and `values` are as long as `slots`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
pub(crate) unsafe fn probe(words: &[u64], n_slots: u32, probes: Probes<'_>, found: &mut Found) {
    let Probes { slots, direct, features, values } = probes;
    let start = found.rows.len();
    let first_feature = found.features.len();
    // Whole vectors are stored at the end of what was found: room for one more of them.
    found.rows.reserve(slots.len() + 8);
    found.values.reserve(slots.len() + 8);
    if !direct {
        found.features.reserve(slots.len() + 8);
    }
    let one = _mm512_set1_epi64(1);
    let scale = _mm512_set1_epi64(i64::from(n_slots));
    let mut n = 0;
    let mut i = 0;
    while i < slots.len() {
        let present: u8 = if slots.len() - i >= 8 { 0xff } else { (1u8 << (slots.len() - i)) - 1 };
        // SAFETY: the masked loads read entries of the three slices only; gathered words exist by the caller's promise;
        // every vector has room for eight entries at `n`, which never exceeds the slots seen.
        unsafe {
            let fraction = _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(present, slots.as_ptr().add(i).cast()));
            let slot = if direct { fraction } else { _mm512_srli_epi64::<32>(_mm512_mul_epu32(fraction, scale)) };
            let word_at = _mm512_srli_epi64::<5>(slot);
            let word =
                _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), present, word_at, words.as_ptr().cast());
            let bit = _mm512_sllv_epi64(one, _mm512_and_si512(slot, _mm512_set1_epi64(31)));
            let taken = _mm512_mask_test_epi64_mask(present, word, bit);
            let below = _mm512_and_si512(word, _mm512_sub_epi64(bit, one));
            let rank = _mm512_add_epi64(_mm512_srli_epi64::<32>(word), _mm512_popcnt_epi64(below));
            let rank = _mm256_maskz_compress_epi32(taken, _mm512_cvtepi64_epi32(rank));
            _mm256_storeu_si256(found.rows.as_mut_ptr().add(start + n).cast(), rank);
            let x = _mm256_maskz_loadu_ps(present, values.as_ptr().add(i));
            _mm256_storeu_ps(found.values.as_mut_ptr().add(start + n), _mm256_maskz_compress_ps(taken, x));
            if !direct {
                let wanted = _mm256_maskz_loadu_epi32(present, features.as_ptr().add(i).cast());
                let wanted = _mm256_maskz_compress_epi32(taken, wanted);
                _mm256_storeu_si256(found.features.as_mut_ptr().add(first_feature + n).cast(), wanted);
            }
            n += taken.count_ones() as usize;
        }
        i += 8;
    }
    // SAFETY: `n` entries have been written behind what was there, within the reserved capacity.
    unsafe {
        found.rows.set_len(start + n);
        found.values.set_len(start + n);
        if !direct {
            found.features.set_len(first_feature + n);
        }
    }
}
