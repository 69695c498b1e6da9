//! The tile in AVX2: 6 rows of two vectors, 12 of the 16 registers hold sums.

use std::arch::x86_64::*;

pub(super) const ROWS: usize = 6;
pub(super) const COLUMNS: usize = 16;

/// # Safety
/// The machine has AVX2 and FMA; `a` has `k * ROWS` values, `b` has `k * COLUMNS`, `c` has ROWS
/// rows of COLUMNS values, `stride` apart.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn tile(k: usize, a: *const f32, b: *const f32, c: *mut f32, stride: usize) {
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    for i in 0..ROWS {
        // SAFETY: row i of `c` has 16 values, by the contract.
        unsafe {
            sums[i][0] = _mm256_loadu_ps(c.add(i * stride));
            sums[i][1] = _mm256_loadu_ps(c.add(i * stride + 8));
        }
    }
    for p in 0..k {
        // SAFETY: p < k, so group p of both panels is there, by the contract.
        unsafe {
            let (b0, b1) = (_mm256_loadu_ps(b.add(p * COLUMNS)), _mm256_loadu_ps(b.add(p * COLUMNS + 8)));
            for i in 0..ROWS {
                let a = _mm256_set1_ps(*a.add(p * ROWS + i));
                sums[i][0] = _mm256_fmadd_ps(a, b0, sums[i][0]);
                sums[i][1] = _mm256_fmadd_ps(a, b1, sums[i][1]);
            }
        }
    }
    for i in 0..ROWS {
        // SAFETY: as for the loads.
        unsafe {
            _mm256_storeu_ps(c.add(i * stride), sums[i][0]);
            _mm256_storeu_ps(c.add(i * stride + 8), sums[i][1]);
        }
    }
}
