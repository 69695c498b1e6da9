//! Adds matched rows to the sums of their chunk's children.

use crate::chunked::MAX_WIDTH;
use crate::chunked::level::{ChunkView, ChunkedView};
use xc_buffer::FloatSlice;
use xc_buffer::dtype::Float;
use xc_buffer::simd::Isa;

/// Adds the matched rows times their `xs` to `sums`, one for each child.
pub(super) fn multiply(
    isa: Isa,
    level: &ChunkedView<'_>,
    chunk: &ChunkView<'_>,
    rows: &[u32],
    xs: &[f32],
    sums: &mut [f32; MAX_WIDTH],
) {
    if !rows.is_empty() {
        match level.values {
            FloatSlice::F32(values) => accumulate(isa, chunk, values, rows, xs, sums),
            FloatSlice::F16(values) => accumulate(isa, chunk, values, rows, xs, sums),
            FloatSlice::Bf16(values) => accumulate(isa, chunk, values, rows, xs, sums),
            _ => unreachable!("levels hold f32, f16 or bf16"),
        }
    }
}

/// Turns sums into margins: adds the bias of each child.
pub(super) fn add_bias<'s>(
    level: &ChunkedView<'_>,
    chunk: &ChunkView<'_>,
    sums: &'s mut [f32; MAX_WIDTH],
) -> &'s mut [f32] {
    let margins = &mut sums[..chunk.width()];
    let bias = &level.bias[chunk.first_child as usize..][..margins.len()];
    for (sum, bias) in margins.iter_mut().zip(bias) {
        *sum += bias;
    }
    margins
}

fn accumulate<W: Float>(
    isa: Isa,
    chunk: &ChunkView<'_>,
    values: &[W],
    rows: &[u32],
    xs: &[f32],
    sums: &mut [f32; MAX_WIDTH],
) {
    let stride = chunk.stride as usize;
    let values = &values[chunk.value_start..];
    debug_assert!(values.len() >= chunk.value_end - chunk.value_start + crate::chunked::layout::VALUE_PADDING);
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction set is available; rows are positions inside the chunk, their
        // offsets lie inside the chunk's values and 16 more entries follow the last value of the
        // level, all by the level's invariants. The groups cover the chunk's width, and its mask
        // words cover the groups.
        Isa::Avx512 => unsafe {
            use super::avx512::accumulate as run;
            let (h, v) = (chunk.headers.as_ptr(), values.as_ptr());
            match chunk.width {
                0..=16 => run::<W, 1>(h, stride, v, rows, xs, sums),
                17..=32 => run::<W, 2>(h, stride, v, rows, xs, sums),
                33..=48 => run::<W, 3>(h, stride, v, rows, xs, sums),
                49..=64 => run::<W, 4>(h, stride, v, rows, xs, sums),
                65..=80 => run::<W, 5>(h, stride, v, rows, xs, sums),
                81..=96 => run::<W, 6>(h, stride, v, rows, xs, sums),
                _ => run::<W, 8>(h, stride, v, rows, xs, sums),
            }
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above, with eight entries for sixteen.
        Isa::Avx2 => unsafe {
            use super::avx2::accumulate as run;
            let (h, v) = (chunk.headers.as_ptr(), values.as_ptr());
            match chunk.width {
                0..=8 => run::<W, 1>(h, stride, v, rows, xs, sums),
                9..=16 => run::<W, 2>(h, stride, v, rows, xs, sums),
                17..=32 => run::<W, 4>(h, stride, v, rows, xs, sums),
                33..=48 => run::<W, 6>(h, stride, v, rows, xs, sums),
                49..=64 => run::<W, 8>(h, stride, v, rows, xs, sums),
                65..=80 => run::<W, 10>(h, stride, v, rows, xs, sums),
                81..=96 => run::<W, 12>(h, stride, v, rows, xs, sums),
                _ => run::<W, 16>(h, stride, v, rows, xs, sums),
            }
        },
        _ => super::scalar::accumulate(chunk.headers, stride, values, rows, xs, sums),
    }
}
