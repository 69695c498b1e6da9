//! The kernels in AVX2, which multiplies unsigned bytes by signed ones and adds up two products in 16 bits. Of single
//! rows the absolute value of (byte - 128) meets the query's byte with the sign of the former; in blocks bytes are
//! multiplied as they are, since a query of blocks is so small that two products fit.

use super::scalar::key;
use super::{Asked, BLOCK, BLOCK_SIDES, Blocked, Coded, FEW, TOGETHER};
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
/// The machine has AVX2; the query is a whole number of 4 bytes, and there are at most four blocks, which are
/// whole.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn block_keys(asked: Asked<'_>, blocks: Blocked<'_>, limit: f32, keys: &mut [f32; TOGETHER]) -> u64 {
    let (width, n) = (asked.bytes.len(), blocks.sides.len() / BLOCK_SIDES);
    let (factor, norm) = (_mm256_set1_ps(asked.factor), _mm256_set1_ps(asked.norm));
    let (limit, mut near) = (_mm256_set1_ps(limit), 0u64);
    let (shift, ones) = (_mm256_set1_epi32(asked.shift), _mm256_set1_epi16(1));
    for block in 0..n {
        let mut of = [_mm256_setzero_si256(); 2];
        // SAFETY: four bytes of the query and of each row of a block, its norms and scales, and sixteen of 64 keys.
        unsafe {
            let rows = blocks.bytes.as_ptr().add(BLOCK * block * width);
            for at in (0..width).step_by(4) {
                let query = _mm256_set1_epi32(asked.bytes.as_ptr().add(at).cast::<i32>().read_unaligned());
                for (half, of) in of.iter_mut().enumerate() {
                    let rows = _mm256_loadu_si256(rows.add(BLOCK * at + 32 * half).cast());
                    let pairs = _mm256_maddubs_epi16(rows, query);
                    *of = _mm256_add_epi32(*of, _mm256_madd_epi16(pairs, ones));
                }
            }
            for (half, of) in of.into_iter().enumerate() {
                let (first, at) = (8 * half, BLOCK * block + 8 * half);
                let sides = blocks.sides.as_ptr().add(BLOCK_SIDES * block + first);
                let (norms, scales) = (_mm256_loadu_ps(sides), _mm256_loadu_ps(sides.add(BLOCK)));
                let sums = _mm256_cvtepi32_ps(_mm256_sub_epi32(of, shift));
                let products = _mm256_mul_ps(_mm256_mul_ps(factor, scales), sums);
                let of = _mm256_sub_ps(_mm256_add_ps(norm, norms), products);
                _mm256_storeu_ps(keys.as_mut_ptr().add(at), of);
                let is_near = _mm256_cmp_ps::<_CMP_LE_OQ>(of, limit);
                near |= u64::from(_mm256_movemask_ps(is_near) as u32) << at;
            }
        }
    }
    near
}

/// The least or the largest key, infinite where there is none.
#[target_feature(enable = "avx2")]
#[inline]
fn extreme<const LARGEST: bool>(keys: &[f32]) -> f32 {
    let of = |a, b| if LARGEST { _mm256_max_ps(a, b) } else { _mm256_min_ps(a, b) };
    let beyond = if LARGEST { f32::NEG_INFINITY } else { f32::INFINITY };
    let (blocks, rest) = keys.as_chunks::<16>();
    let mut best = [_mm256_set1_ps(beyond); 2];
    for block in blocks {
        let [low, high] = halves(block);
        best = [of(low, best[0]), of(high, best[1])];
    }
    let mut behind = [beyond; 16];
    behind[..rest.len()].copy_from_slice(rest);
    let [low, high] = halves(&behind);
    let eight = of(of(low, best[0]), of(high, best[1]));
    let four = of(eight, _mm256_permute2f128_ps::<1>(eight, eight));
    let two = of(four, _mm256_permute_ps::<0b01_00_11_10>(four));
    _mm256_cvtss_f32(of(two, _mm256_permute_ps::<0b10_11_00_01>(two)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn halves(block: &[f32; 16]) -> [__m256; 2] {
    // SAFETY: sixteen keys.
    unsafe { [_mm256_loadu_ps(block.as_ptr()), _mm256_loadu_ps(block.as_ptr().add(8))] }
}

/// A bit for each key of a block that is this one.
#[target_feature(enable = "avx2")]
#[inline]
fn equal(block: &[f32; 16], key: f32) -> u32 {
    let bits = |half| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(half, _mm256_set1_ps(key))) as u32;
    let [low, high] = halves(block);
    bits(low) | bits(high) << 8
}

/// See [`super::scalar::smallest`]: the smallest key first, then its place.
///
/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn smallest(keys: &[f32]) -> usize {
    let least = extreme::<false>(keys);
    if least == f32::INFINITY {
        return 0;
    }
    let (blocks, rest) = keys.as_chunks::<16>();
    for (number, block) in blocks.iter().enumerate() {
        let bits = equal(block, least);
        if bits != 0 {
            return 16 * number + bits.trailing_zeros() as usize;
        }
    }
    16 * blocks.len() + rest.iter().position(|&key| key == least).unwrap_or(0)
}

/// See [`super::scalar::largest`]: the largest key first, then its places.
///
/// # Safety
/// The machine has AVX2; there are as many vertices as keys.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn largest(keys: &[f32], vertices: &[u32]) -> usize {
    let most = extreme::<true>(keys);
    let mut worst: Option<usize> = None;
    let mut take = |at: usize| {
        if worst.is_none_or(|worst| vertices[at] > vertices[worst]) {
            worst = Some(at);
        }
    };
    let (blocks, rest) = keys.as_chunks::<16>();
    for (number, block) in blocks.iter().enumerate() {
        let mut bits = equal(block, most);
        while bits != 0 {
            take(16 * number + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
    let rest = (16 * blocks.len()..).zip(rest).filter(|(_, key)| **key == most);
    rest.for_each(|(at, _)| take(at));
    worst.unwrap_or(0)
}

/// See [`super::scalar::insert`].
///
/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn insert(keys: &mut [f32; FEW], vertices: &mut [u32; FEW], key: f32, vertex: u32) {
    let (keys, vertices) = (keys.as_mut_ptr(), vertices.as_mut_ptr());
    let key = _mm256_castps_si256(_mm256_set1_ps(key));
    let vertex = _mm256_set1_epi32(vertex as i32);
    // Numbers without a sign are compared as such with one once their highest bit is turned.
    let turned = _mm256_set1_epi32(i32::MIN);
    let up = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
    let (mut key_below, mut vertex_below) = (key, vertex);
    // Whether the lane below comes before the new one, in the first lane: at first there is none.
    let mut below = _mm256_set1_epi32(-1);
    for register in 0..FEW / 8 {
        // SAFETY: both arrays are four registers long.
        unsafe {
            let (at_keys, at_vertices) = (keys.add(8 * register), vertices.add(8 * register));
            let old_keys = _mm256_loadu_ps(at_keys);
            let old_vertices = _mm256_loadu_si256(at_vertices.cast());
            let less = _mm256_cmp_ps::<_CMP_LT_OQ>(old_keys, _mm256_castsi256_ps(key));
            let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(old_keys, _mm256_castsi256_ps(key));
            let lower = _mm256_cmpgt_epi32(_mm256_xor_si256(vertex, turned), _mm256_xor_si256(old_vertices, turned));
            let before = _mm256_castps_si256(_mm256_or_ps(less, _mm256_and_ps(equal, _mm256_castsi256_ps(lower))));
            // Lanes move up by one; the first lane behind those before is the new one's.
            let old_keys = _mm256_castps_si256(old_keys);
            let (keys_up, vertices_up) =
                (_mm256_permutevar8x32_epi32(old_keys, up), _mm256_permutevar8x32_epi32(old_vertices, up));
            let before_up = _mm256_permutevar8x32_epi32(before, up);
            let is_behind = _mm256_blend_epi32::<1>(before_up, below);
            let moved_keys = _mm256_blend_epi32::<1>(keys_up, key_below);
            let moved_vertices = _mm256_blend_epi32::<1>(vertices_up, vertex_below);
            let new_keys = _mm256_blendv_epi8(_mm256_blendv_epi8(moved_keys, key, is_behind), old_keys, before);
            let new_vertices =
                _mm256_blendv_epi8(_mm256_blendv_epi8(moved_vertices, vertex, is_behind), old_vertices, before);
            _mm256_storeu_si256(at_keys.cast(), new_keys);
            _mm256_storeu_si256(at_vertices.cast(), new_vertices);
            (key_below, vertex_below, below) = (keys_up, vertices_up, before_up);
        }
    }
}
