//! The portable kernels: what every other instruction set has to equal.

use super::probe::{Found, Probes};
use crate::dtype::Float;

/// Slots of a directory word.
const WORD: u32 = 32;

/// Looks each slot up in a directory; appends to `found` where the slot is taken.
pub(crate) fn probe(words: &[u64], n_slots: u32, probes: Probes<'_>, found: &mut Found) {
    let Probes { slots, direct, features, values } = probes;
    for (i, &fraction) in slots.iter().enumerate() {
        let slot = if direct { fraction } else { ((u64::from(fraction) * u64::from(n_slots)) >> 32) as u32 };
        let word = words[(slot / WORD) as usize];
        let bit = slot % WORD;
        if word >> bit & 1 == 0 {
            continue;
        }
        let below = word as u32 & ((1u32 << bit) - 1);
        found.rows.push((word >> 32) as u32 + below.count_ones());
        found.values.push(values[i]);
        if !direct {
            found.features.push(features[i]);
        }
    }
}

/// Adds `x` times each matched row to the children's sums.
///
/// `headers` hold `stride` entries a row: feature, offset into `values`, sibling mask. `sums` has 32 entries a mask word.
pub(crate) fn accumulate<W: Float>(
    headers: &[u32],
    stride: usize,
    values: &[W],
    rows: &[u32],
    xs: &[f32],
    sums: &mut [f32],
) {
    for (&row, &x) in rows.iter().zip(xs) {
        let header = &headers[row as usize * stride..][..stride];
        let mut at = header[1] as usize;
        for (word, &mask) in header[2..].iter().enumerate() {
            let mut bits = mask;
            while bits != 0 {
                let child = word * 32 + bits.trailing_zeros() as usize;
                // A product and a sum, rounded each: no path fuses them.
                let product = x * values[at].widen();
                sums[child] += product;
                bits &= bits - 1;
                at += 1;
            }
        }
    }
}
