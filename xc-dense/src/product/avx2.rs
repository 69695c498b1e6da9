//! The tile in AVX2: 6 rows of two vectors, 12 of the 16 registers hold sums; and lines packed for it.

use super::job::{Blocking, Job, STEPS};
use std::arch::x86_64::*;
use xc_buffer::simd::values_of_a_line;

pub(super) const ROWS: usize = 6;
pub(super) const COLUMNS: usize = 16;

/// The packed rows of a leaf are 72 * 768 * 4 bytes = 221 KB: with two panels of B (49 KB each) they stay in a second-level
/// cache of 512 KB. C is read and written once for 768 places.
pub(super) const BLOCKING: Blocking = Blocking { depth: 768, chunk_depth: 768, leaf_tiles: 12 };

/// # Safety
/// The machine has AVX2 and FMA, and `job` is as [`Job`] says.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn tile(job: Job) {
    let Job { k, a, b, c, stride, start, next } = job;
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    for i in 0..ROWS {
        // SAFETY: row i of `c` has 16 values, and so has `start`, by the contract.
        unsafe {
            let row = if start.is_null() { c.add(i * stride) } else { start };
            sums[i] = [_mm256_loadu_ps(row), _mm256_loadu_ps(row.add(8))];
        }
        // Both ends: a row may begin within a line.
        _mm_prefetch::<_MM_HINT_T0>(next.c.wrapping_add(i * stride).cast());
        _mm_prefetch::<_MM_HINT_T0>(next.c.wrapping_add(i * stride + COLUMNS - 1).cast());
    }
    let mut step = |p: usize| {
        // SAFETY: p < k, so group p of both panels is there, by the contract.
        unsafe {
            let (b0, b1) = (_mm256_loadu_ps(b.add(p * COLUMNS)), _mm256_loadu_ps(b.add(p * COLUMNS + 8)));
            for i in 0..ROWS {
                let a = _mm256_set1_ps(*a.add(p * ROWS + i));
                sums[i][0] = _mm256_fmadd_ps(a, b0, sums[i][0]);
                sums[i][1] = _mm256_fmadd_ps(a, b1, sums[i][1]);
            }
        }
    };
    let whole = k / STEPS * STEPS;
    for p in (0..whole).step_by(STEPS) {
        _mm_prefetch::<_MM_HINT_T1>(next.b.wrapping_add(p / STEPS * values_of_a_line::<f32>()).cast());
        for q in 0..STEPS {
            step(p + q);
        }
    }
    for p in whole..k {
        step(p);
    }
    for i in 0..ROWS {
        // SAFETY: as for the loads.
        unsafe {
            _mm256_storeu_ps(c.add(i * stride), sums[i][0]);
            _mm256_storeu_ps(c.add(i * stride + 8), sums[i][1]);
        }
    }
}

/// `out[p * GROUP + i]`: value p of line i, for GROUP lines of `k` values, `stride` apart.
///
/// # Safety
/// The machine has AVX2; GROUP is ROWS or COLUMNS, `lines` has GROUP lines of `k` values, `out` has `k * GROUP` values.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn plain_lines<const GROUP: usize>(lines: *const f32, stride: usize, k: usize, out: *mut f32) {
    let whole = k / 8 * 8;
    for p in (0..whole).step_by(8) {
        for first in (0..GROUP).step_by(8) {
            let n = if GROUP - first < 8 { GROUP - first } else { 8 };
            let mut rows = [_mm256_setzero_ps(); 8];
            for i in 0..n {
                // SAFETY: p + 8 <= k and first + i < GROUP, so these values of the line are there, by the contract.
                rows[i] = unsafe { _mm256_loadu_ps(lines.add((first + i) * stride + p)) };
            }
            for (q, column) in transposed(rows).into_iter().enumerate() {
                // SAFETY: p + q < k, and the n lanes that are written are lines of its group.
                unsafe {
                    let out = out.add((p + q) * GROUP + first);
                    if n == 8 {
                        _mm256_storeu_ps(out, column);
                    } else {
                        let (low, high) = (_mm256_castps256_ps128(column), _mm256_extractf128_ps::<1>(column));
                        _mm_storeu_ps(out, low);
                        _mm_storel_epi64(out.add(4).cast(), _mm_castps_si128(high));
                    }
                }
            }
        }
    }
    for p in whole..k {
        for i in 0..GROUP {
            // SAFETY: value p of line i, and its place, by the contract.
            unsafe { *out.add(p * GROUP + i) = *lines.add(i * stride + p) };
        }
    }
}

// What is stored of a group that is no multiple of eight: four values and two.
const _: () = assert!(ROWS == 6 && COLUMNS.is_multiple_of(8));

/// Eight rows of eight values as columns.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed(rows: [__m256; 8]) -> [__m256; 8] {
    let [a, b, c, d, e, f, g, h] = rows;
    // Pairs of two rows, then fours of four, each half of a vector by itself.
    let pairs = |x, y| (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
    let ((ab0, ab1), (cd0, cd1), (ef0, ef1), (gh0, gh1)) = (pairs(a, b), pairs(c, d), pairs(e, f), pairs(g, h));
    let fours = |x, y| (_mm256_shuffle_ps::<0x44>(x, y), _mm256_shuffle_ps::<0xee>(x, y));
    let ((l0, l1), (l2, l3)) = (fours(ab0, cd0), fours(ab1, cd1));
    let ((h0, h1), (h2, h3)) = (fours(ef0, gh0), fours(ef1, gh1));
    let low = |x, y| _mm256_permute2f128_ps::<0x20>(x, y);
    let high = |x, y| _mm256_permute2f128_ps::<0x31>(x, y);
    [low(l0, h0), low(l1, h1), low(l2, h2), low(l3, h3), high(l0, h0), high(l1, h1), high(l2, h2), high(l3, h3)]
}
