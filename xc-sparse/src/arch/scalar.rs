//! The portable kernels: what every other instruction set has to equal.

use crate::chunked::Weight;

/// Slots of a directory word.
const WORD: u32 = 32;

/// Looks each slot up in a directory: appends (first possible row, position in `slots`) where the slot is taken.
///
/// `slots` are the slots themselves when `direct`, and otherwise fractions of `n_bits` in units of 2^-32.
pub(crate) fn probe(words: &[u64], n_bits: u32, direct: bool, slots: &[u32], rows: &mut Vec<u32>, of: &mut Vec<u32>) {
    let start = rows.len();
    rows.resize(start + slots.len(), 0);
    of.resize(start + slots.len(), 0);
    let mut n = start;
    for (i, &fraction) in slots.iter().enumerate() {
        let slot = if direct { fraction } else { ((u64::from(fraction) * u64::from(n_bits)) >> 32) as u32 };
        let word = words[(slot / WORD) as usize];
        let bit = slot % WORD;
        let below = word as u32 & ((1u32 << bit) - 1);
        rows[n] = (word >> 32) as u32 + below.count_ones();
        of[n] = i as u32;
        n += (word >> bit & 1) as usize;
    }
    rows.truncate(n);
    of.truncate(n);
}

/// Adds `x` times each matched row to the children's sums.
///
/// `headers` hold `stride` entries a row: feature, offset into `values`, sibling mask. `sums` has 32 entries a mask word.
pub(crate) fn accumulate<W: Weight>(
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
                let product = x * values[at].to_f32();
                sums[child] += product;
                bits &= bits - 1;
                at += 1;
            }
        }
    }
}
