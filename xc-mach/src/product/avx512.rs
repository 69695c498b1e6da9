//! AVX-512: sixteen elements at a time, each in a lane of its own.
//!
//! Lane i holds elements i, i + 16, i + 32, ...; all lanes step by sixteen times the step. A
//! minimum of unsigned numbers reduces modulo p: of x and x - p the wrapped difference is the
//! larger unless x >= p.

use super::Fold;
use super::Residues;
use super::lanes::Lanes;
use std::arch::x86_64::*;

const WIDTH: usize = 16;

/// Residues and buckets of sixteen elements, and what they step by.
struct Walk {
    residue: __m512i,
    bucket: __m512i,
    prime: __m512i,
    n_buckets: __m512i,
    step: __m512i,
    step_bucket: __m512i,
    prime_bucket: __m512i,
}

impl Walk {
    #[target_feature(enable = "avx512f")]
    fn new(residues: &Residues) -> Self {
        let lanes = Lanes::<WIDTH>::new(residues);
        // SAFETY: both arrays hold sixteen numbers.
        let (residue, bucket) = unsafe {
            (_mm512_loadu_si512(lanes.residues.as_ptr().cast()), _mm512_loadu_si512(lanes.buckets.as_ptr().cast()))
        };
        Self {
            residue,
            bucket,
            prime: _mm512_set1_epi32(lanes.prime as i32),
            n_buckets: _mm512_set1_epi32(lanes.n_buckets as i32),
            step: _mm512_set1_epi32(lanes.step as i32),
            step_bucket: _mm512_set1_epi32(lanes.step_bucket as i32),
            prime_bucket: _mm512_set1_epi32(lanes.prime_bucket as i32),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn advance(&mut self) {
        let grown = _mm512_add_epi32(self.residue, self.step);
        let wraps = _mm512_cmpge_epu32_mask(grown, self.prime);
        self.residue = _mm512_mask_sub_epi32(grown, wraps, grown, self.prime);
        let grown = _mm512_add_epi32(self.bucket, self.step_bucket);
        let grown = _mm512_min_epu32(grown, _mm512_sub_epi32(grown, self.n_buckets));
        let fallen = _mm512_mask_sub_epi32(grown, wraps, grown, self.prime_bucket);
        self.bucket = _mm512_min_epu32(fallen, _mm512_add_epi32(fallen, self.n_buckets));
    }
}

/// The first `n` lanes, at most all.
fn first(n: usize) -> __mmask16 {
    if n >= WIDTH { 0xffff } else { (1 << n) - 1 }
}

/// See [`super::scalar::buckets`].
#[target_feature(enable = "avx512f")]
pub(super) fn buckets(residues: &Residues, out: &mut [u32]) {
    let mut walk = Walk::new(residues);
    for out in out.chunks_mut(WIDTH) {
        // SAFETY: the mask lets as many lanes be stored as `out` has entries.
        unsafe { _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), first(out.len()), walk.bucket) };
        walk.advance();
    }
}

/// See [`super::scalar::fold`].
///
/// # Safety
/// `table` has an entry for each bucket.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn fold(residues: &Residues, table: &[f32], fold: Fold, out: &mut [f32]) {
    debug_assert!(table.len() >= residues.n_buckets as usize);
    // SAFETY: the caller's promise is passed on.
    unsafe {
        match fold {
            Fold::Set => fold_by(residues, table, out, |_, v| v),
            Fold::Add => fold_by(residues, table, out, |a, v| _mm512_add_ps(a, v)),
            // Of equal numbers the second operand is the result: the one that was there.
            Fold::Min => fold_by(residues, table, out, |a, v| _mm512_min_ps(v, a)),
            Fold::CountFrom(bar) => {
                let (bar, one) = (_mm512_set1_ps(bar), _mm512_set1_ps(1.0));
                fold_by(residues, table, out, |a, v| {
                    _mm512_mask_add_ps(a, _mm512_cmp_ps_mask::<_CMP_GE_OQ>(v, bar), a, one)
                });
            }
        }
    }
}

/// # Safety
/// `table` has an entry for each bucket.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn fold_by(residues: &Residues, table: &[f32], out: &mut [f32], fold: impl Fn(__m512, __m512) -> __m512) {
    let mut walk = Walk::new(residues);
    let (whole, rest) = out.as_chunks_mut::<WIDTH>();
    for out in whole {
        // SAFETY: buckets are below `n_buckets` and `table` has as many entries; `out` has sixteen.
        unsafe {
            let value = _mm512_i32gather_ps::<4>(walk.bucket, table.as_ptr());
            _mm512_storeu_ps(out.as_mut_ptr(), fold(_mm512_loadu_ps(out.as_ptr()), value));
        }
        walk.advance();
    }
    let lanes = first(rest.len());
    // SAFETY: as above; the mask keeps to the entries of `rest`.
    unsafe {
        let value = _mm512_i32gather_ps::<4>(walk.bucket, table.as_ptr());
        let before = _mm512_maskz_loadu_ps(lanes, rest.as_ptr());
        _mm512_mask_storeu_ps(rest.as_mut_ptr(), lanes, fold(before, value));
    }
}

/// See [`super::scalar::count`]; N walks, whose counts stay in registers.
///
/// # Safety
/// Each of `bits` has a bit for each bucket of its walk.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn count<const N: usize>(residues: [&Residues; N], bits: [&[u32]; N], out: &mut [f32]) {
    debug_assert!(residues.iter().zip(bits).all(|(walk, bits)| bits.len() * 32 >= walk.n_buckets as usize));
    let mut walks = residues.map(|residues| Walk::new(residues));
    let (one, low) = (_mm512_set1_ps(1.0), _mm512_set1_epi32(31));
    let bit = _mm512_set1_epi32(1);
    for out in out.chunks_mut(WIDTH) {
        let lanes = first(out.len());
        // SAFETY: the mask keeps to the entries of `out`.
        let mut counts = unsafe { _mm512_maskz_loadu_ps(lanes, out.as_ptr()) };
        for (walk, bits) in walks.iter_mut().zip(bits) {
            // SAFETY: buckets are below `n_buckets`, and there are as many bits.
            let words =
                unsafe { _mm512_i32gather_epi32::<4>(_mm512_srli_epi32::<5>(walk.bucket), bits.as_ptr().cast()) };
            let is_set = _mm512_test_epi32_mask(words, _mm512_sllv_epi32(bit, _mm512_and_si512(walk.bucket, low)));
            counts = _mm512_mask_add_ps(counts, is_set, counts, one);
            walk.advance();
        }
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), lanes, counts) };
    }
}
