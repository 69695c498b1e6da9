//! Eight directory probes at a time.

use super::{Found, Probes};
use std::arch::x86_64::*;

/// See [`super::scalar::probe`].
///
/// # Safety
/// The instruction set is present. Each slot (after scaling by `n_slots` unless `direct`) is below
/// `32 * words.len()`. `features` and `values` are as long as `slots`.
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
        // SAFETY: the masked loads read entries of the three slices only; gathered words exist by
        // the caller's promise; every vector has room for eight entries at `n`, which never exceeds
        // the slots seen.
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
