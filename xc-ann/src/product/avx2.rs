//! The kernels in AVX2. Bytes above 128 are numbers below 128 with a sign: the absolute value of a row's byte times
//! the query's with that sign is a product of an unsigned and a signed byte, two of which fit 16 bits.

use super::scalar::key;
use super::{Asked, BLOCK, BLOCK_SIDES, Blocked, Coded, TOGETHER};
use std::arch::x86_64::*;

/// Eight sums of four products: of (byte - 128) of the rows and the query's bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn fours(rows: __m256i, query: __m256i) -> __m256i {
    let rows = _mm256_xor_si256(rows, _mm256_set1_epi8(i8::MIN));
    let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(rows), _mm256_sign_epi8(query, rows));
    _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
}

/// See [`super::scalar::keys`].
///
/// # Safety
/// The machine has AVX2; the query is a whole number of 32 bytes, none of them -128.
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
        let mut of = _mm256_setzero_si256();
        for (codes, query) in codes.chunks_exact(32).zip(query.chunks_exact(32)) {
            // SAFETY: 32 bytes each.
            let (codes, query) =
                unsafe { (_mm256_loadu_si256(codes.as_ptr().cast()), _mm256_loadu_si256(query.as_ptr().cast())) };
            of = _mm256_add_epi32(of, fours(codes, query));
        }
        let four = _mm_add_epi32(_mm256_castsi256_si128(of), _mm256_extracti128_si256::<1>(of));
        let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
        let sum = _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)));
        keys[at] = key(asked, coded.sides[row as usize], sum.wrapping_add(asked.shift));
        near |= u64::from(keys[at] <= limit) << at;
    }
    near
}

/// See [`super::scalar::block_keys`].
///
/// # Safety
/// The machine has AVX2; the query is a whole number of 4 bytes, none of them -128, and there are at most
/// four blocks, which are whole.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn block_keys(asked: Asked<'_>, blocks: Blocked<'_>, limit: f32, keys: &mut [f32; TOGETHER]) -> u64 {
    let (width, n) = (asked.bytes.len(), blocks.sides.len() / BLOCK_SIDES);
    let (factor, norm) = (_mm256_set1_ps(asked.factor), _mm256_set1_ps(asked.norm));
    let (limit, mut near) = (_mm256_set1_ps(limit), 0u64);
    for block in 0..n {
        let mut of = [_mm256_setzero_si256(); 2];
        // SAFETY: four bytes of the query and of each row of a block, its norms and scales, and sixteen of 64 keys.
        unsafe {
            let rows = blocks.bytes.as_ptr().add(BLOCK * block * width);
            for at in (0..width).step_by(4) {
                let query = _mm256_set1_epi32(asked.bytes.as_ptr().add(at).cast::<i32>().read_unaligned());
                for (half, of) in of.iter_mut().enumerate() {
                    let rows = _mm256_loadu_si256(rows.add(BLOCK * at + 32 * half).cast());
                    *of = _mm256_add_epi32(*of, fours(rows, query));
                }
            }
            for (half, of) in of.into_iter().enumerate() {
                let (first, at) = (8 * half, BLOCK * block + 8 * half);
                let sides = blocks.sides.as_ptr().add(BLOCK_SIDES * block + first);
                let (norms, scales) = (_mm256_loadu_ps(sides), _mm256_loadu_ps(sides.add(BLOCK)));
                let products = _mm256_mul_ps(_mm256_mul_ps(factor, scales), _mm256_cvtepi32_ps(of));
                let of = _mm256_sub_ps(_mm256_add_ps(norm, norms), products);
                _mm256_storeu_ps(keys.as_mut_ptr().add(at), of);
                let is_near = _mm256_cmp_ps::<_CMP_LE_OQ>(of, limit);
                near |= u64::from(_mm256_movemask_ps(is_near) as u32) << at;
            }
        }
    }
    near
}
