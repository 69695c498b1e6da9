//! The products of a sparse output layer in AVX2: see `vectors`.

use super::vectors::products;
use crate::uniform::{IndexWidth, Sums, UniformLine};
use std::arch::x86_64::*;

type V = __m256;

/// Numbers of a vector.
const WIDTH: usize = 8;
/// Vectors that hold sixteen numbers.
const N: usize = 16 / WIDTH;

#[inline]
#[target_feature(enable = "avx2,fma")]
fn zero() -> V {
    _mm256_setzero_ps()
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn all(value: f32) -> V {
    _mm256_set1_ps(value)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn sum(a: V, b: V) -> V {
    _mm256_add_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn product(a: V, b: V) -> V {
    _mm256_mul_ps(a, b)
}

/// `a * b + c`, rounded once.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fused(a: V, b: V, c: V) -> V {
    _mm256_fmadd_ps(a, b, c)
}

/// The lanes that are not at or below a bar; NaN is not.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn not_below(values: V, bar: V) -> u32 {
    _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLE_UQ>(values, bar)) as u32
}

/// # Safety
/// There are 8 numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn load_one(from: *const f32) -> V {
    // SAFETY: by the contract.
    unsafe { _mm256_loadu_ps(from) }
}

/// # Safety
/// There is room for 8 numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn store_one(to: *mut f32, values: V) {
    // SAFETY: by the contract.
    unsafe { _mm256_storeu_ps(to, values) }
}

/// The lower and the upper halves of words, each a bf16, as f32.
///
/// # Safety
/// There are 8 words.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn halves(words: *const u32) -> [V; 2] {
    // SAFETY: by the contract.
    let words = unsafe { _mm256_loadu_si256(words.cast()) };
    let upper = _mm256_set1_epi32(0xffff_0000_u32 as i32);
    [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(words)), _mm256_castsi256_ps(_mm256_and_si256(words, upper))]
}

/// One instance: plain code with fused multiplication as an instruction.
///
/// # Safety
/// The machine has the instructions.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn forward_one<I: IndexWidth>(
    values: &[f32],
    inputs: &[I],
    weights: &[f32],
    fan_in: usize,
    out: &mut [f32],
) {
    super::scalar::forward_one(values, inputs, weights, fan_in, out);
}

products!("avx2,fma");
