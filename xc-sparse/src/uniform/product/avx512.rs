//! The products of a sparse output layer in AVX-512: see `vectors`.

use super::vectors::products;
use crate::uniform::{IndexWidth, Sums, UniformLine};
use std::arch::x86_64::*;

type V = __m512;

/// Numbers of a vector.
const WIDTH: usize = 16;
/// Vectors that hold sixteen numbers.
const N: usize = 16 / WIDTH;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn zero() -> V {
    _mm512_setzero_ps()
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn all(value: f32) -> V {
    _mm512_set1_ps(value)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sum(a: V, b: V) -> V {
    _mm512_add_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn product(a: V, b: V) -> V {
    _mm512_mul_ps(a, b)
}

/// `a * b + c`, rounded once.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn fused(a: V, b: V, c: V) -> V {
    _mm512_fmadd_ps(a, b, c)
}

/// The lanes that are not at or below a bar; NaN is not.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn not_below(values: V, bar: V) -> u32 {
    _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(values, bar) as u32
}

/// # Safety
/// There are 16 numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn load_one(from: *const f32) -> V {
    // SAFETY: by the contract.
    unsafe { _mm512_loadu_ps(from) }
}

/// # Safety
/// There is room for 16 numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn store_one(to: *mut f32, values: V) {
    // SAFETY: by the contract.
    unsafe { _mm512_storeu_ps(to, values) }
}

/// The lower and the upper halves of words, each a bf16, as f32.
///
/// # Safety
/// There are 16 words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn halves(words: *const u32) -> [V; 2] {
    // SAFETY: by the contract.
    let words = unsafe { _mm512_loadu_si512(words.cast()) };
    let upper = _mm512_set1_epi32(0xffff_0000_u32 as i32);
    [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)), _mm512_castsi512_ps(_mm512_and_si512(words, upper))]
}

products!("avx512f,avx512bw,avx512dq,avx512vl");
