//! The tiles in AVX-512: 12 rows of two vectors, 24 of the 32 registers hold sums.

use std::arch::x86_64::*;

pub(super) const ROWS: usize = 12;
pub(super) const COLUMNS: usize = 32;

/// # Safety
/// The machine has AVX-512F; `a` has `k * ROWS` values, `b` has `k * COLUMNS`, `c` has ROWS rows of COLUMNS values,
/// `stride` apart.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn tile(k: usize, a: *const f32, b: *const f32, c: *mut f32, stride: usize) {
    let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
    for i in 0..ROWS {
        // SAFETY: row i of `c` has 32 values, by the contract.
        unsafe {
            sums[i][0] = _mm512_loadu_ps(c.add(i * stride));
            sums[i][1] = _mm512_loadu_ps(c.add(i * stride + 16));
        }
    }
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
    for i in 0..ROWS {
        // SAFETY: as for the loads.
        unsafe {
            _mm512_storeu_ps(c.add(i * stride), sums[i][0]);
            _mm512_storeu_ps(c.add(i * stride + 16), sums[i][1]);
        }
    }
}

/// As [`tile`], of pairs of bf16: `vdpbf16ps` adds both products of a place.
///
/// # Safety
/// The machine has AVX-512F and AVX512_BF16; panels and `c` as for [`tile`], each place of a panel two bf16.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn tile_of_pairs(k: usize, a: *const f32, b: *const f32, c: *mut f32, stride: usize) {
    let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
    for i in 0..ROWS {
        // SAFETY: row i of `c` has 32 values, by the contract.
        unsafe {
            sums[i][0] = _mm512_loadu_ps(c.add(i * stride));
            sums[i][1] = _mm512_loadu_ps(c.add(i * stride + 16));
        }
    }
    for p in 0..k {
        // SAFETY: p < k, so group p of both panels is there, by the contract; any bits are two bf16.
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
    for i in 0..ROWS {
        // SAFETY: as for the loads.
        unsafe {
            _mm512_storeu_ps(c.add(i * stride), sums[i][0]);
            _mm512_storeu_ps(c.add(i * stride + 16), sums[i][1]);
        }
    }
}

/// The same 512 bits as 32 bf16.
#[inline]
#[target_feature(enable = "avx512f")]
fn bf16s(bits: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes, and any bits are bf16.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(bits) }
}
