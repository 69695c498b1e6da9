//! The tile and the packing of pairs without vector instructions: defines what the others compute.

use super::job::{Blocking, Job};
use xc_buffer::dtype::nearest_bf16;

pub(super) const ROWS: usize = 4;
pub(super) const COLUMNS: usize = 8;
pub(super) const BLOCKING: Blocking = Blocking { depth: 256, chunk_depth: 2048, leaf_tiles: 4 };

/// # Safety
/// `job` is as [`Job`] says.
pub(super) unsafe fn tile(job: Job) {
    let Job { k, a, b, c, stride, start, .. } = job;
    // SAFETY: by the contract above; `c` is not read through another pointer meanwhile.
    let (a, b, c) = unsafe {
        (
            std::slice::from_raw_parts(a, k * ROWS),
            std::slice::from_raw_parts(b, k * COLUMNS),
            std::slice::from_raw_parts_mut(c, (ROWS - 1) * stride + COLUMNS),
        )
    };
    // SAFETY: null or COLUMNS values, by the contract above.
    let start = (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, COLUMNS) });
    let mut sums = [[0.0f32; COLUMNS]; ROWS];
    for (i, row) in sums.iter_mut().enumerate() {
        row.copy_from_slice(start.unwrap_or(&c[i * stride..][..COLUMNS]));
    }
    for (a, b) in a.as_chunks::<ROWS>().0.iter().zip(b.as_chunks::<COLUMNS>().0) {
        for (row, &a) in sums.iter_mut().zip(a) {
            for (sum, &b) in row.iter_mut().zip(b) {
                // Rounded once, as the instruction of the others does it.
                *sum = a.mul_add(b, *sum);
            }
        }
    }
    for (i, row) in sums.iter().enumerate() {
        c[i * stride..][..COLUMNS].copy_from_slice(row);
    }
}

fn pair(first: f32, second: f32) -> u32 {
    flushed(first).to_bits() | flushed(second).to_bits() >> 16
}

pub(super) fn pair_rows(first: &[f32], second: &[f32], out: &mut [u32]) {
    for (out, (&first, &second)) in out.iter_mut().zip(first.iter().zip(second)) {
        *out = pair(first, second);
    }
}

pub(super) fn pair_lines(lines: &[f32], stride: usize, n: usize, k: usize, out: &mut [u32], group: usize) {
    for i in 0..n {
        for (p, two) in lines[i * stride..][..k].chunks(2).enumerate() {
            out[p * group + i] = pair(two[0], two.get(1).copied().unwrap_or(0.0));
        }
    }
}

/// The bits of the bf16 that [`MatmulPrecision::Bf16`](super::MatmulPrecision) makes of a value: the nearest; what is below
/// the smallest value of full precision is 0 of its sign, as the machine's conversion has it.
#[inline(always)]
pub fn bf16_of_products(value: f32) -> u16 {
    let is_full = value.to_bits() & 0x7f80_0000 != 0;
    if is_full { nearest_bf16(value) } else { (value.to_bits() >> 16) as u16 & 0x8000 }
}

/// The same in f32.
#[inline(always)]
pub(super) fn flushed(value: f32) -> f32 {
    f32::from_bits(u32::from(bf16_of_products(value)) << 16)
}
