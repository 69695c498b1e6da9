//! The portable walk: what every other instruction set has to equal.
//!
//! A residue and its bucket step together, so that neither a multiplication nor a division is
//! needed: where the residue grows by s, the bucket grows by s mod B; where the residue wraps, the
//! bucket falls by p mod B; either way modulo B.

use super::Residues;

/// Calls `visit` with the bucket of each of the first `n` elements.
#[inline(always)]
fn walk(residues: &Residues, n: usize, mut visit: impl FnMut(usize, u32)) {
    let (prime, n_buckets) = (residues.prime, u64::from(residues.n_buckets));
    let step_bucket = residues.step % n_buckets;
    let prime_bucket = prime % n_buckets;
    let mut residue = residues.start;
    let mut bucket = residue % n_buckets;
    for t in 0..n {
        visit(t, bucket as u32);
        residue += residues.step;
        bucket += step_bucket;
        if bucket >= n_buckets {
            bucket -= n_buckets;
        }
        if residue >= prime {
            residue -= prime;
            bucket = if bucket >= prime_bucket { bucket - prime_bucket } else { bucket + n_buckets - prime_bucket };
        }
    }
}

/// See [`super::buckets`].
pub(super) fn buckets(residues: &Residues, out: &mut [u32]) {
    let n = out.len();
    walk(residues, n, |t, bucket| out[t] = bucket);
}

/// See [`super::fold`].
#[inline(always)]
pub(super) fn fold(residues: &Residues, table: &[f32], out: &mut [f32], fold: impl Fn(f32, f32) -> f32) {
    let n = out.len();
    walk(residues, n, |t, bucket| out[t] = fold(out[t], table[bucket as usize]));
}

/// See [`super::count`].
pub(super) fn count(residues: &Residues, bits: &[u32], out: &mut [f32]) {
    let n = out.len();
    walk(residues, n, |t, bucket| out[t] += (bits[bucket as usize / 32] >> (bucket % 32) & 1) as f32);
}
