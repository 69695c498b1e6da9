//! The kernels in AVX-512: four products of bytes are one instruction, and four rows share the sum
//! over lanes.

use super::{Asked, BLOCK, BLOCK_SIDES, Blocked, Coded, FEW, LINE, TOGETHER};
use std::arch::x86_64::*;

/// See [`super::scalar::keys`].
///
/// # Safety
/// The machine has AVX-512 F, BW, VL and VNNI; the query is a whole number of lines, and there are at
/// most [`TOGETHER`] rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn keys(
    asked: Asked<'_>,
    coded: Coded<'_>,
    rows: &[u32],
    limit: f32,
    keys: &mut [f32; TOGETHER],
) -> u64 {
    let width = asked.bytes.len();
    let row = |row: u32| coded.bytes[row as usize * width..][..width].as_ptr();
    let (shift, factor, norm) = (_mm_set1_epi32(asked.shift), _mm_set1_ps(asked.factor), _mm_set1_ps(asked.norm));
    let (limit, mut near) = (_mm_set1_ps(limit), 0u64);
    for (turn, four) in rows.chunks(4).enumerate() {
        // Places that are left over repeat the first row.
        let four: [u32; 4] = std::array::from_fn(|at| four.get(at).copied().unwrap_or(four[0]));
        let at = four.map(row);
        let mut of = [_mm512_setzero_si512(); 4];
        for first in (0..width).step_by(LINE) {
            // SAFETY: a line of the query, and one of each row.
            unsafe {
                let query = _mm512_loadu_si512(asked.bytes.as_ptr().add(first).cast());
                for (of, at) in of.iter_mut().zip(at) {
                    *of = _mm512_dpbusd_epi32(*of, _mm512_loadu_si512(at.add(first).cast()), query);
                }
            }
        }
        let [a, b, c, d] = of;
        let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        let all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
        let two = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64::<1>(all));
        let sums = _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256::<1>(two));
        let [a, b, c, d] = four.map(|row| {
            let side: &[f32; 2] = &coded.sides[row as usize];
            // SAFETY: two numbers.
            _mm_castsi128_ps(unsafe { _mm_loadl_epi64(side.as_ptr().cast()) })
        });
        let (ab, cd) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
        let (norms, scales) = (_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
        let sums = _mm_cvtepi32_ps(_mm_sub_epi32(sums, shift));
        let four = _mm_sub_ps(_mm_add_ps(norm, norms), _mm_mul_ps(_mm_mul_ps(factor, scales), sums));
        // SAFETY: four of 64 keys: there are at most so many rows.
        unsafe { _mm_storeu_ps(keys.as_mut_ptr().add(4 * turn), four) };
        near |= u64::from(_mm_cmp_ps_mask::<_CMP_LE_OQ>(four, limit)) << (4 * turn);
    }
    if rows.len() < TOGETHER { near & ((1 << rows.len()) - 1) } else { near }
}

/// See [`super::scalar::block_keys`].
///
/// # Safety
/// The machine has AVX-512 F, BW, VL and VNNI; the query is a whole number of 16 bytes, and there are
/// at most four blocks, which are whole.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn block_keys(asked: Asked<'_>, blocks: Blocked<'_>, limit: f32, keys: &mut [f32; TOGETHER]) -> u64 {
    // SAFETY: the caller vouches for the machine and for so many blocks. Few blocks have some sums each, as one
    // would wait for itself.
    unsafe {
        match blocks.sides.len() / BLOCK_SIDES {
            0 => 0,
            1 => some_block_keys::<1, 4>(asked, blocks, limit, keys),
            2 => some_block_keys::<2, 2>(asked, blocks, limit, keys),
            3 => some_block_keys::<3, 2>(asked, blocks, limit, keys),
            _ => some_block_keys::<4, 1>(asked, blocks, limit, keys),
        }
    }
}

/// # Safety
/// As [`block_keys`]; there are `N` blocks, and `SUMS` divides 16.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
unsafe fn some_block_keys<const N: usize, const SUMS: usize>(
    asked: Asked<'_>,
    blocks: Blocked<'_>,
    limit: f32,
    keys: &mut [f32; TOGETHER],
) -> u64 {
    let width = asked.bytes.len();
    let mut of = [[_mm512_setzero_si512(); SUMS]; N];
    for first in (0..width).step_by(4 * SUMS) {
        for sum in 0..SUMS {
            let at = first + 4 * sum;
            // SAFETY: four bytes of the query, and of each row of a block: `width` is a multiple of 16.
            unsafe {
                let query = _mm512_set1_epi32(asked.bytes.as_ptr().add(at).cast::<i32>().read_unaligned());
                for (block, of) in of.iter_mut().enumerate() {
                    let rows = blocks.bytes.as_ptr().add(BLOCK * (block * width + at));
                    of[sum] = _mm512_dpbusd_epi32(of[sum], _mm512_loadu_si512(rows.cast()), query);
                }
            }
        }
    }
    let (shift, factor, norm) =
        (_mm512_set1_epi32(asked.shift), _mm512_set1_ps(asked.factor), _mm512_set1_ps(asked.norm));
    let (limit, mut near) = (_mm512_set1_ps(limit), 0u64);
    for (block, of) in of.into_iter().enumerate() {
        let sum = of.into_iter().fold(_mm512_setzero_si512(), |sum, of| _mm512_add_epi32(sum, of));
        // SAFETY: the norms and the scales of a block, and its sixteen of 64 keys.
        unsafe {
            let sides = blocks.sides.as_ptr().add(BLOCK_SIDES * block);
            let (norms, scales) = (_mm512_loadu_ps(sides), _mm512_loadu_ps(sides.add(BLOCK)));
            let sum = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, shift));
            let of = _mm512_sub_ps(_mm512_add_ps(norm, norms), _mm512_mul_ps(_mm512_mul_ps(factor, scales), sum));
            _mm512_storeu_ps(keys.as_mut_ptr().add(BLOCK * block), of);
            near |= u64::from(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(of, limit)) << (BLOCK * block);
        }
    }
    near
}

/// See [`super::scalar::smallest`]. Two chains, as one would wait for itself.
///
/// # Safety
/// The machine has AVX-512 F.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn smallest(keys: &[f32]) -> usize {
    let infinite = _mm512_set1_ps(f32::INFINITY);
    let (mut best, mut at) = ([infinite; 2], [_mm512_setzero_si512(); 2]);
    let mut turn = 0;
    let (blocks, rest) = keys.as_chunks::<32>();
    for block in blocks {
        for half in 0..2 {
            // SAFETY: sixteen keys.
            let keys = unsafe { _mm512_loadu_ps(block.as_ptr().add(16 * half)) };
            let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(keys, best[half]);
            best[half] = _mm512_min_ps(keys, best[half]);
            at[half] = _mm512_mask_mov_epi32(at[half], less, _mm512_set1_epi32(turn + 16 * half as i32));
        }
        turn += 32;
    }
    for (half, keys) in rest.chunks(16).enumerate() {
        // SAFETY: as many lanes are read as there are keys.
        let keys = unsafe { _mm512_mask_loadu_ps(infinite, ((1u32 << keys.len()) - 1) as u16, keys.as_ptr()) };
        let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(keys, best[half]);
        best[half] = _mm512_min_ps(keys, best[half]);
        at[half] = _mm512_mask_mov_epi32(at[half], less, _mm512_set1_epi32(turn + 16 * half as i32));
    }
    let least = _mm512_reduce_min_ps(_mm512_min_ps(best[0], best[1]));
    if least == f32::INFINITY {
        return 0;
    }
    let lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let place = |half: usize| {
        let is_least = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(best[half], _mm512_set1_ps(least));
        _mm512_mask_mov_epi32(_mm512_set1_epi32(i32::MAX), is_least, _mm512_add_epi32(at[half], lane))
    };
    _mm512_reduce_min_epi32(_mm512_min_epi32(place(0), place(1))) as usize
}

/// See [`super::scalar::largest`]: the largest key first, then its places.
///
/// # Safety
/// The machine has AVX-512 F; there are as many vertices as keys.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn largest(keys: &[f32], vertices: &[u32]) -> usize {
    let least = _mm512_set1_ps(f32::NEG_INFINITY);
    let lanes = |keys: &[f32]| ((1u32 << keys.len()) - 1) as u16;
    let mut most = [least; 2];
    for keys in keys.chunks(32) {
        let (low, high) = keys.split_at(keys.len().min(16));
        // SAFETY: as many lanes are read as there are keys.
        unsafe {
            most[0] = _mm512_max_ps(most[0], _mm512_mask_loadu_ps(least, lanes(low), low.as_ptr()));
            most[1] = _mm512_max_ps(most[1], _mm512_mask_loadu_ps(least, lanes(high), high.as_ptr()));
        }
    }
    let most = _mm512_set1_ps(_mm512_reduce_max_ps(_mm512_max_ps(most[0], most[1])));
    let mut worst: Option<usize> = None;
    for (block, keys) in keys.chunks(16).enumerate() {
        // SAFETY: as many lanes are read as there are keys.
        let keys_here = unsafe { _mm512_mask_loadu_ps(least, lanes(keys), keys.as_ptr()) };
        let mut equal = _mm512_mask_cmp_ps_mask::<_CMP_EQ_OQ>(lanes(keys), keys_here, most);
        while equal != 0 {
            let at = 16 * block + equal.trailing_zeros() as usize;
            equal &= equal - 1;
            if worst.is_none_or(|worst| vertices[at] > vertices[worst]) {
                worst = Some(at);
            }
        }
    }
    worst.unwrap_or(0)
}

/// See [`super::scalar::insert`].
///
/// # Safety
/// The machine has AVX-512 F.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn insert(keys: &mut [f32; FEW], vertices: &mut [u32; FEW], key: f32, vertex: u32) {
    let (key, vertex) = (_mm512_set1_ps(key), _mm512_set1_epi32(vertex as i32));
    let (mut at_keys, mut at_vertices) = (keys.as_mut_ptr(), vertices.as_mut_ptr());
    let (mut key_below, mut vertex_below) = (key, vertex);
    // Whether all keys of the register below come before the new one: at first there are none.
    let mut below = 1u16;
    // SAFETY: both arrays are two registers long.
    unsafe {
        for _ in 0..FEW / 16 {
            let (old_keys, old_vertices) = (_mm512_loadu_ps(at_keys), _mm512_loadu_si512(at_vertices.cast()));
            let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(old_keys, key);
            let equal = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(old_keys, key);
            let before = less | _mm512_mask_cmplt_epu32_mask(equal, old_vertices, vertex);
            // Lanes move up by one; the first lane behind those before is the new one's.
            let bits = _mm512_castps_si512(old_keys);
            let moved = _mm512_alignr_epi32::<15>(bits, _mm512_castps_si512(key_below));
            let moved_vertices = _mm512_alignr_epi32::<15>(old_vertices, vertex_below);
            let here = !before & (before << 1 | below);
            let new_keys = _mm512_mask_mov_epi32(moved, before, bits);
            let new_keys = _mm512_mask_mov_epi32(new_keys, here, _mm512_castps_si512(key));
            let new_vertices = _mm512_mask_mov_epi32(moved_vertices, before, old_vertices);
            let new_vertices = _mm512_mask_mov_epi32(new_vertices, here, vertex);
            _mm512_storeu_ps(at_keys, _mm512_castsi512_ps(new_keys));
            _mm512_storeu_si512(at_vertices.cast(), new_vertices);
            (key_below, vertex_below, below) = (old_keys, old_vertices, before >> 15);
            (at_keys, at_vertices) = (at_keys.add(16), at_vertices.add(16));
        }
    }
}
