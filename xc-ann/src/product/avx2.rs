//! The kernels in AVX2: bytes are widened to 16 bits, whose products are added in pairs.

use super::scalar::key;
use super::{Asked, Coded, TOGETHER};
use std::arch::x86_64::*;

/// See [`super::scalar::keys`].
///
/// # Safety
/// The machine has AVX2; the query is a whole number of 16 bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn keys(
    asked: Asked<'_>,
    coded: Coded<'_>,
    rows: &[u32],
    limit: f32,
    keys: &mut [f32; TOGETHER],
) -> u64 {
    let (mut near, query) = (0, asked.bytes);
    for (at, &row) in rows.iter().enumerate() {
        let codes = &coded.bytes[row as usize * query.len()..][..query.len()];
        let mut of = [_mm256_setzero_si256(); 2];
        for (turn, (codes, query)) in codes.chunks_exact(16).zip(query.chunks_exact(16)).enumerate() {
            // SAFETY: sixteen bytes each.
            let (codes, query) =
                unsafe { (_mm_loadu_si128(codes.as_ptr().cast()), _mm_loadu_si128(query.as_ptr().cast())) };
            let products = _mm256_madd_epi16(_mm256_cvtepu8_epi16(codes), _mm256_cvtepi8_epi16(query));
            of[turn % 2] = _mm256_add_epi32(of[turn % 2], products);
        }
        let both = _mm256_add_epi32(of[0], of[1]);
        let four = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256::<1>(both));
        let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
        let sum = _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)));
        keys[at] = key(asked, coded.sides[row as usize], sum);
        near |= u64::from(keys[at] <= limit) << at;
    }
    near
}
