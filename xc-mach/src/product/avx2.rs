//! AVX2: eight elements at a time, each in a lane of its own; otherwise as for AVX-512.

use super::Fold;
use super::Residues;
use super::lanes::Lanes;
use std::arch::x86_64::*;

const WIDTH: usize = 8;

/// Residues and buckets of eight elements, and what they step by.
struct Walk {
    residue: __m256i,
    bucket: __m256i,
    prime: __m256i,
    n_buckets: __m256i,
    step: __m256i,
    step_bucket: __m256i,
    prime_bucket: __m256i,
}

impl Walk {
    #[target_feature(enable = "avx2")]
    fn new(residues: &Residues) -> Self {
        let lanes = Lanes::<WIDTH>::new(residues);
        // SAFETY: both arrays hold eight numbers.
        let (residue, bucket) = unsafe {
            (_mm256_loadu_si256(lanes.residues.as_ptr().cast()), _mm256_loadu_si256(lanes.buckets.as_ptr().cast()))
        };
        Self {
            residue,
            bucket,
            prime: _mm256_set1_epi32(lanes.prime as i32),
            n_buckets: _mm256_set1_epi32(lanes.n_buckets as i32),
            step: _mm256_set1_epi32(lanes.step as i32),
            step_bucket: _mm256_set1_epi32(lanes.step_bucket as i32),
            prime_bucket: _mm256_set1_epi32(lanes.prime_bucket as i32),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn advance(&mut self) {
        let grown = _mm256_add_epi32(self.residue, self.step);
        self.residue = _mm256_min_epu32(grown, _mm256_sub_epi32(grown, self.prime));
        // It wrapped where the reduced number is not the grown one.
        let stays = _mm256_cmpeq_epi32(grown, self.residue);
        let grown = _mm256_add_epi32(self.bucket, self.step_bucket);
        let grown = _mm256_min_epu32(grown, _mm256_sub_epi32(grown, self.n_buckets));
        let fallen = _mm256_sub_epi32(grown, _mm256_andnot_si256(stays, self.prime_bucket));
        self.bucket = _mm256_min_epu32(fallen, _mm256_add_epi32(fallen, self.n_buckets));
    }
}

/// See [`super::scalar::buckets`].
#[target_feature(enable = "avx2")]
pub(super) fn buckets(residues: &Residues, out: &mut [u32]) {
    let mut walk = Walk::new(residues);
    let (whole, rest) = out.as_chunks_mut::<WIDTH>();
    for out in whole {
        // SAFETY: `out` has eight entries.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), walk.bucket) };
        walk.advance();
    }
    let mut last = [0u32; WIDTH];
    // SAFETY: `last` has eight entries.
    unsafe { _mm256_storeu_si256(last.as_mut_ptr().cast(), walk.bucket) };
    rest.copy_from_slice(&last[..rest.len()]);
}

/// See [`super::scalar::fold`].
///
/// # Safety
/// `table` has an entry for each bucket.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn fold(residues: &Residues, table: &[f32], fold: Fold, out: &mut [f32]) {
    debug_assert!(table.len() >= residues.n_buckets as usize);
    // SAFETY: the caller's promise is passed on.
    unsafe {
        match fold {
            Fold::Set => fold_by(residues, table, out, |_, v| v),
            Fold::Add => fold_by(residues, table, out, |a, v| _mm256_add_ps(a, v)),
            // Of equal numbers the second operand is the result: the one that was there.
            Fold::Min => fold_by(residues, table, out, |a, v| _mm256_min_ps(v, a)),
            Fold::CountFrom(bar) => {
                let (bar, one) = (_mm256_set1_ps(bar), _mm256_set1_ps(1.0));
                fold_by(residues, table, out, |a, v| {
                    _mm256_add_ps(a, _mm256_and_ps(one, _mm256_cmp_ps::<_CMP_GE_OQ>(v, bar)))
                });
            }
        }
    }
}

/// # Safety
/// `table` has an entry for each bucket.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn fold_by(residues: &Residues, table: &[f32], out: &mut [f32], fold: impl Fn(__m256, __m256) -> __m256) {
    let mut walk = Walk::new(residues);
    let (whole, rest) = out.as_chunks_mut::<WIDTH>();
    for out in whole {
        // SAFETY: buckets are below `n_buckets` and `table` has as many entries; `out` has eight.
        unsafe {
            let value = _mm256_i32gather_ps::<4>(table.as_ptr(), walk.bucket);
            _mm256_storeu_ps(out.as_mut_ptr(), fold(_mm256_loadu_ps(out.as_ptr()), value));
        }
        walk.advance();
    }
    let mut last = [0f32; WIDTH];
    last[..rest.len()].copy_from_slice(rest);
    // SAFETY: as above; `last` has eight entries.
    unsafe {
        let value = _mm256_i32gather_ps::<4>(table.as_ptr(), walk.bucket);
        _mm256_storeu_ps(last.as_mut_ptr(), fold(_mm256_loadu_ps(last.as_ptr()), value));
    }
    rest.copy_from_slice(&last[..rest.len()]);
}

/// See [`super::scalar::count`]; N walks, whose counts stay in registers.
///
/// # Safety
/// Each of `bits` has a bit for each bucket of its walk.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn count<const N: usize>(residues: [&Residues; N], bits: [&[u32]; N], out: &mut [f32]) {
    debug_assert!(residues.iter().zip(bits).all(|(walk, bits)| bits.len() * 32 >= walk.n_buckets as usize));
    let mut walks = residues.map(|residues| Walk::new(residues));
    let (one, low) = (_mm256_set1_ps(1.0), _mm256_set1_epi32(31));
    let mut add = |mut counts: __m256| {
        for (walk, bits) in walks.iter_mut().zip(bits) {
            // SAFETY: buckets are below `n_buckets`, and there are as many bits.
            let words =
                unsafe { _mm256_i32gather_epi32::<4>(bits.as_ptr().cast(), _mm256_srli_epi32::<5>(walk.bucket)) };
            // A set bit as the sign of its lane, then as all of its bits.
            let places = _mm256_sub_epi32(low, _mm256_and_si256(walk.bucket, low));
            let is_set = _mm256_srai_epi32::<31>(_mm256_sllv_epi32(words, places));
            counts = _mm256_add_ps(counts, _mm256_and_ps(one, _mm256_castsi256_ps(is_set)));
            walk.advance();
        }
        counts
    };
    let (whole, rest) = out.as_chunks_mut::<WIDTH>();
    for out in whole {
        // SAFETY: `out` has eight entries.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), add(_mm256_loadu_ps(out.as_ptr()))) };
    }
    let mut last = [0f32; WIDTH];
    last[..rest.len()].copy_from_slice(rest);
    // SAFETY: `last` has eight entries.
    unsafe { _mm256_storeu_ps(last.as_mut_ptr(), add(_mm256_loadu_ps(last.as_ptr()))) };
    rest.copy_from_slice(&last[..rest.len()]);
}
