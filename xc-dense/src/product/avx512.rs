//! The tiles in AVX-512: 12 rows of two vectors, 24 of the 32 registers hold sums.

use super::job::{Blocking, Job};
use std::arch::x86_64::*;

pub(super) const ROWS: usize = 12;
pub(super) const COLUMNS: usize = 32;

/// A panel of B is 256 * 32 * 4 bytes = 32 KB, and stays in the first-level cache.
pub(super) const BLOCKING: Blocking = Blocking { depth: 256, chunk_depth: 2048, leaf_tiles: 4 };

/// # Safety
/// The machine has AVX-512F; `c` has ROWS rows of COLUMNS values, `stride` apart, and `start` is null or has COLUMNS values.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(c: *const f32, stride: usize, start: *const f32) -> [[__m512; 2]; ROWS] {
    let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
    for i in 0..ROWS {
        // SAFETY: row i of `c` has 32 values, and so has `start`, by the contract.
        unsafe {
            let row = if start.is_null() { c.add(i * stride) } else { start };
            sums[i] = [_mm512_loadu_ps(row), _mm512_loadu_ps(row.add(16))];
        }
    }
    sums
}

/// # Safety
/// As for [`load`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store(c: *mut f32, stride: usize, sums: &[[__m512; 2]; ROWS]) {
    for i in 0..ROWS {
        // SAFETY: as for the loads.
        unsafe {
            _mm512_storeu_ps(c.add(i * stride), sums[i][0]);
            _mm512_storeu_ps(c.add(i * stride + 16), sums[i][1]);
        }
    }
}

/// # Safety
/// The machine has AVX-512F, and `job` is as [`Job`] says.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn tile(job: Job) {
    let Job { k, a, b, c, stride, start, .. } = job;
    // SAFETY: the rows are there, by the contract.
    let mut sums = unsafe { load(c, stride, start) };
    for p in 0..k {
        // SAFETY: p < k, so group p of both panels is there, by the contract.
        unsafe {
            let (b0, b1) = (_mm512_loadu_ps(b.add(p * COLUMNS)), _mm512_loadu_ps(b.add(p * COLUMNS + 16)));
            for i in 0..ROWS {
                let a = _mm512_set1_ps(*a.add(p * ROWS + i));
                sums[i][0] = _mm512_fmadd_ps(a, b0, sums[i][0]);
                sums[i][1] = _mm512_fmadd_ps(a, b1, sums[i][1]);
            }
        }
    }
    // SAFETY: as for the load.
    unsafe { store(c, stride, &sums) };
}

/// As [`tile`], of pairs of bf16: `vdpbf16ps` adds both products of a place.
///
/// # Safety
/// The machine has AVX-512F and AVX512_BF16, and `job` is as [`Job`] says, each place of a panel two bf16.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn tile_of_pairs(job: Job) {
    let Job { k, a, b, c, stride, start, .. } = job;
    // SAFETY: the rows are there, by the contract.
    let mut sums = unsafe { load(c, stride, start) };
    for p in 0..k {
        // SAFETY: p < k, so group p of both panels is there, by the contract; any bits are two
        // bf16.
        unsafe {
            let b = b.add(p * COLUMNS).cast::<i32>();
            let (b0, b1) = (bf16s(_mm512_loadu_epi32(b)), bf16s(_mm512_loadu_epi32(b.add(16))));
            for i in 0..ROWS {
                let a = bf16s(_mm512_set1_epi32(*a.add(p * ROWS + i).cast::<i32>()));
                sums[i][0] = _mm512_dpbf16_ps(sums[i][0], a, b0);
                sums[i][1] = _mm512_dpbf16_ps(sums[i][1], a, b1);
            }
        }
    }
    // SAFETY: as for the load.
    unsafe { store(c, stride, &sums) };
}

/// The same 512 bits as 32 bf16.
#[inline]
#[target_feature(enable = "avx512f")]
fn bf16s(bits: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes, and any bits are bf16.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(bits) }
}

/// Nearest bf16 of two lists of sixteen: those of `upper` in the upper half. Values below the
/// smallest of full precision become 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn rounded(upper: __m512, lower: __m512) -> __m512i {
    // SAFETY: both are 64 bytes, and any bits are integers.
    unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(upper, lower)) }
}

/// `out[i]` holds `first[i]` and `second[i]` in bf16, the first in its upper half.
///
/// # Safety
/// The machine has AVX-512F, BW and AVX512_BF16.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn pair_rows(first: &[f32], second: &[f32], out: &mut [u32]) {
    // Place 2 i is value i of the lower half, place 2 i + 1 value i of the upper.
    let mut order = [0u16; 32];
    order.iter_mut().zip(0..).for_each(|(o, at)| *o = at / 2 + at % 2 * 16);
    // SAFETY: 32 numbers of 16 bits.
    let order = unsafe { _mm512_loadu_epi16(order.as_ptr().cast()) };
    let n = out.len().min(first.len()).min(second.len());
    for at in (0..n).step_by(16) {
        let mask = mask_of(n - at);
        // SAFETY: the mask has only places below the length of all three.
        unsafe {
            let first = _mm512_maskz_loadu_ps(mask, first.as_ptr().add(at));
            let second = _mm512_maskz_loadu_ps(mask, second.as_ptr().add(at));
            let pairs = _mm512_permutexvar_epi16(order, rounded(first, second));
            _mm512_mask_storeu_epi32(out.as_mut_ptr().add(at).cast(), mask, pairs);
        }
    }
}

/// The first places, all sixteen from 16 on.
#[inline]
fn mask_of(n: usize) -> u16 {
    if n >= 16 { u16::MAX } else { (1 << n) - 1 }
}

/// `out[p * group + i]` holds the values 2 p and 2 p + 1 of line i in bf16, the first in its upper
/// half: `n` lines of `k` values, `stride` apart, with 0 past their end.
///
/// # Safety
/// The machine has AVX-512F, BW and AVX512_BF16; `lines` has `n` lines of `k` values, `stride`
/// apart; `out` has `ceil(k / 2)` groups of `group >= n`.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn pair_lines(lines: *const f32, stride: usize, n: usize, k: usize, out: *mut u32, group: usize) {
    for i in (0..n).step_by(16) {
        let n = 16.min(n - i);
        for p in (0..k).step_by(32) {
            let left = k - p;
            let (low, high) = (mask_of(left), mask_of(left.saturating_sub(16)));
            let mut words = [_mm512_setzero_si512(); 16];
            for (line, words) in words.iter_mut().enumerate().take(n) {
                // SAFETY: the masks have only places before the end of line i + line, which is one
                // of the `n`.
                unsafe {
                    let from = lines.add((i + line) * stride + p);
                    let lower = _mm512_maskz_loadu_ps(low, from);
                    let upper = _mm512_maskz_loadu_ps(high, from.wrapping_add(16));
                    *words = _mm512_rol_epi32::<16>(rounded(upper, lower));
                }
            }
            transpose(&mut words);
            for (at, words) in words.iter().enumerate().take(left.div_ceil(2).min(16)) {
                // SAFETY: group p / 2 + at is there, and has places for lines i to i + n.
                unsafe { _mm512_mask_storeu_epi32(out.add((p / 2 + at) * group + i).cast(), mask_of(n), *words) };
            }
        }
    }
}

/// `out[p * group + i]` holds value p of line i: `n` lines of `k` values, `stride` apart.
///
/// # Safety
/// The machine has AVX-512F; `lines` has `n` lines of `k` values, `stride` apart; `out` has `k`
/// groups of `group >= n`.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn plain_lines(lines: *const f32, stride: usize, n: usize, k: usize, out: *mut f32, group: usize) {
    for i in (0..n).step_by(16) {
        let n = 16.min(n - i);
        for p in (0..k).step_by(16) {
            let mut words = [_mm512_setzero_si512(); 16];
            for (line, words) in words.iter_mut().enumerate().take(n) {
                // SAFETY: the mask has only places before the end of line i + line, which is one of
                // the `n`.
                *words = unsafe {
                    _mm512_maskz_loadu_epi32(mask_of(k - p), lines.add((i + line) * stride + p).cast::<i32>())
                };
            }
            transpose(&mut words);
            for (at, words) in words.iter().enumerate().take(k - p) {
                // SAFETY: group p + at is there, and has places for lines i to i + n.
                unsafe { _mm512_mask_storeu_epi32(out.add((p + at) * group + i).cast(), mask_of(n), *words) };
            }
        }
    }
}

/// Rows become columns.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(rows: &mut [__m512i; 16]) {
    // In each step, pairs of rows exchange pieces of 1, 2, 4 and 8 words.
    let mut out = [_mm512_setzero_si512(); 16];
    for i in 0..8 {
        out[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        out[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    for i in 0..4 {
        for half in 0..2 {
            let (a, b) = (out[4 * i + half], out[4 * i + half + 2]);
            rows[4 * i + 2 * half] = _mm512_unpacklo_epi64(a, b);
            rows[4 * i + 2 * half + 1] = _mm512_unpackhi_epi64(a, b);
        }
    }
    // Row 4 g + c holds, in its quarter q, column 4 q + c of rows 4 g to 4 g + 3.
    for c in 0..4 {
        let [a, b, d, e] = [rows[c], rows[4 + c], rows[8 + c], rows[12 + c]];
        let (even_low, odd_low) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b));
        let (even_high, odd_high) = (_mm512_shuffle_i32x4::<0x88>(d, e), _mm512_shuffle_i32x4::<0xdd>(d, e));
        out[c] = _mm512_shuffle_i32x4::<0x88>(even_low, even_high);
        out[8 + c] = _mm512_shuffle_i32x4::<0xdd>(even_low, even_high);
        out[4 + c] = _mm512_shuffle_i32x4::<0x88>(odd_low, odd_high);
        out[12 + c] = _mm512_shuffle_i32x4::<0xdd>(odd_low, odd_high);
    }
    *rows = out;
}
