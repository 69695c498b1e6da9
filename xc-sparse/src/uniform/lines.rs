//! A batch of dense inputs with the instances innermost.

use xc_buffer::HugePageVec;
use xc_buffer::dtype::nearest_bf16;
use xc_buffer::parallel::for_each_part;

/// Instances in a line.
pub const LANES: usize = 32;

/// One input of [`LANES`] instances in bf16: one cache line. The lower half of word `i` is instance `i`,
/// the upper half instance `i + 16`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub struct UniformLine(pub [u32; LANES / 2]);

impl UniformLine {
    /// The value of instance `i`.
    ///
    /// # Panics
    /// If `i >= LANES`.
    #[inline(always)]
    pub fn get(&self, i: usize) -> f32 {
        let word = self.0[i % 16];
        f32::from_bits(if i < 16 { word << 16 } else { word & 0xffff_0000 })
    }

    /// All values: instances 0 to 15, then 16 to 31.
    #[inline(always)]
    pub fn widen(&self) -> [[f32; 16]; 2] {
        [self.0.map(|word| f32::from_bits(word << 16)), self.0.map(|word| f32::from_bits(word & 0xffff_0000))]
    }
}

/// Dense inputs of a batch, rounded to bf16 and transposed: blocks of [`LANES`] instances, each with one
/// [`UniformLine`] per input. The lanes beyond the last instance are zeros.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    lines: HugePageVec<UniformLine>,
    n_inputs: usize,
    len: usize,
}

/// Inputs that are transposed at a time: their part of 32 rows fits the first-level cache.
const STRIPE: usize = 64;

impl Lines {
    /// Takes row-major values, one row per instance. Each is rounded to the nearest bf16.
    ///
    /// # Panics
    /// If the number of values is not `len * n_inputs`.
    pub fn fill(&mut self, values: &[f32], len: usize, n_inputs: usize) {
        let expected = len.checked_mul(n_inputs);
        assert!(Some(values.len()) == expected, "{} values, expected {len} x {n_inputs}", values.len());
        let n = len.div_ceil(LANES) * n_inputs;
        // Every line is written below: what it held before does not matter.
        self.lines.resize(n);
        (self.n_inputs, self.len) = (n_inputs, len);
        if n == 0 {
            return;
        }
        for_each_part(&mut self.lines, n_inputs, |block, lines| {
            let rows = &values[block * LANES * n_inputs..len.min((block + 1) * LANES) * n_inputs];
            // Rows that are not there stay zeros.
            let mut halves = [[0u16; STRIPE]; LANES];
            for (first, stripe) in (0..).step_by(STRIPE).zip(lines.chunks_mut(STRIPE)) {
                for (half, row) in halves.iter_mut().zip(rows.chunks_exact(n_inputs)) {
                    half.iter_mut()
                        .zip(&row[first..])
                        .take(stripe.len())
                        .for_each(|(half, &value)| *half = nearest_bf16(value));
                }
                for (j, line) in stripe.iter_mut().enumerate() {
                    for k in 0..16 {
                        line.0[k] = u32::from(halves[k][j]) | u32::from(halves[k + 16][j]) << 16;
                    }
                }
            }
        });
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.len.div_ceil(LANES)
    }

    /// One line per input, for the instances from `block * LANES` on.
    ///
    /// # Panics
    /// If `block >= n_blocks()`.
    pub fn block(&self, block: usize) -> &[UniformLine] {
        assert!(block < self.n_blocks(), "block {block} of {}", self.n_blocks());
        &self.lines[block * self.n_inputs..][..self.n_inputs]
    }

    /// Number of instances in a block.
    pub fn lanes(&self, block: usize) -> usize {
        (self.len - (block * LANES).min(self.len)).min(LANES)
    }

    /// Bytes in memory.
    pub fn n_bytes(&self) -> usize {
        self.lines.n_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_is_where_it_belongs(len in 0usize..70, n_inputs in 0usize..150) {
            let value = |i: usize| i as f32 / 3.0 - 5.0;
            let values: Vec<f32> = (0..len * n_inputs).map(value).collect();
            let mut lines = Lines::default();
            lines.fill(&vec![1.0; 40 * 200], 40, 200);
            lines.fill(&values, len, n_inputs);
            prop_assert_eq!(lines.n_blocks(), len.div_ceil(LANES));
            for block in 0..lines.n_blocks() {
                prop_assert_eq!(lines.lanes(block), (len - block * LANES).min(LANES));
                for (j, line) in lines.block(block).iter().enumerate() {
                    for i in 0..LANES {
                        let row = block * LANES + i;
                        let expected = if row < len { bf16::from_f32(values[row * n_inputs + j]).to_f32() } else { 0.0 };
                        prop_assert_eq!(line.get(i), expected);
                        prop_assert_eq!(line.widen()[i / 16][i % 16], expected);
                    }
                }
            }
        }
    }
}
