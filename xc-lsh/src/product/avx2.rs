//! The kernels in AVX2: a byte is looked up in eight blocks of 16 ranks, and its three upper bits
//! choose among them.

use super::{Bins, Combination, LANES, RANKED};
use std::arch::x86_64::*;

/// Lanes of a register.
const HALF: usize = 32;

/// See [`super::scalar::rank`].
///
/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn rank(values: &[f32; RANKED], n: usize, ranks: &mut [u8; RANKED]) {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (at, (block, ranks)) in values.as_chunks::<8>().0.iter().zip(ranks.as_chunks_mut::<8>().0).enumerate() {
        let first = 8 * at;
        // SAFETY: a block of eight values.
        let of = unsafe { _mm256_loadu_ps(block.as_ptr()) };
        // A comparison that holds is -1.
        let mut beaten = _mm256_setzero_si256();
        for &other in &values[..first.min(n)] {
            let less = _mm256_cmp_ps::<_CMP_LT_OQ>(_mm256_set1_ps(other), of);
            beaten = _mm256_sub_epi32(beaten, _mm256_castps_si256(less));
        }
        for (j, &other) in block.iter().enumerate().take(n.saturating_sub(first)) {
            let other = _mm256_set1_ps(other);
            let equal = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_EQ_OQ>(other, of));
            let equal = _mm256_and_si256(equal, _mm256_cmpgt_epi32(_mm256_set1_epi32(j as i32), lanes));
            let less = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_LT_OQ>(other, of));
            beaten = _mm256_sub_epi32(beaten, _mm256_or_si256(less, equal));
        }
        for &other in &values[(first + 8).min(n)..n] {
            let at_most = _mm256_cmp_ps::<_CMP_LE_OQ>(_mm256_set1_ps(other), of);
            beaten = _mm256_sub_epi32(beaten, _mm256_castps_si256(at_most));
        }
        let mut counts = [0u32; 8];
        // SAFETY: eight numbers of 32 bits.
        unsafe { _mm256_storeu_si256(counts.as_mut_ptr().cast(), beaten) };
        *ranks = counts.map(|count| count as u8);
    }
}

/// See [`super::scalar::winners`].
///
/// # Safety
/// The machine has AVX2; `codes` has [`LANES`] places for each unit of `bins`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn winners(ranks: &[[u8; RANKED]], bins: &Bins, codes: &mut [u8]) {
    let mut subset = 0;
    let units = bins.places.chunks_exact(LANES * bins.size).zip(codes.chunks_exact_mut(LANES));
    for (places, codes) in units {
        let of = &ranks[subset];
        subset = if subset + 1 == ranks.len() { 0 } else { subset + 1 };
        // SAFETY: each of the eight blocks of 16 ranks is read whole.
        let blocks: [__m256i; 8] = std::array::from_fn(|b| unsafe {
            _mm256_broadcastsi128_si256(_mm_loadu_si128(of.as_ptr().add(16 * b).cast()))
        });
        for half in [0, HALF] {
            // SAFETY: a list of places has 64 entries, of which this half is there.
            let load = |list: &[u8]| unsafe { _mm256_loadu_si256(list.as_ptr().add(half).cast()) };
            let mut lists = places.chunks_exact(LANES).map(load);
            let mut code = _mm256_setzero_si256();
            if let Some(first) = lists.next() {
                let mut best = look_up(&blocks, first);
                for (at, list) in lists.enumerate() {
                    let rank = look_up(&blocks, list);
                    // Ranks are below 128: signed and unsigned orders are the same.
                    let wins = _mm256_cmpgt_epi8(rank, best);
                    best = _mm256_max_epu8(best, rank);
                    code = _mm256_blendv_epi8(code, _mm256_set1_epi8(at as i8 + 1), wins);
                }
            }
            // SAFETY: the codes of a unit have 64 entries, of which this half is there.
            unsafe { _mm256_storeu_si256(codes.as_mut_ptr().add(half).cast(), code) };
        }
    }
}

/// The ranks at 32 places below 128.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up(blocks: &[__m256i; 8], places: __m256i) -> __m256i {
    let of = |block: usize| _mm256_shuffle_epi8(blocks[block], places);
    // A blend looks at the highest bit of each byte: bits 4, 5 and 6 are moved there.
    let choose = |bit: __m256i, a, b| _mm256_blendv_epi8(a, b, bit);
    let (fourth, fifth) = (_mm256_slli_epi16::<3>(places), _mm256_slli_epi16::<2>(places));
    let sixth = _mm256_slli_epi16::<1>(places);
    let low = choose(fifth, choose(fourth, of(0), of(1)), choose(fourth, of(2), of(3)));
    let high = choose(fifth, choose(fourth, of(4), of(5)), choose(fourth, of(6), of(7)));
    choose(sixth, low, high)
}

/// See [`super::scalar::combine`].
///
/// # Safety
/// The machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn combine(of: Combination<'_>, out: &mut [f32]) {
    super::scalar::combine::<64>(of, out);
}
