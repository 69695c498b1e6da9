//! The portable kernels, the reference for every other instruction set.

use xc_buffer::dtype::Float;

/// Adds `x` times each matched row to the children's sums.
///
/// `headers` hold `stride` entries a row: feature, offset into `values`, sibling mask. `sums` has
/// 32 entries a mask word.
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
