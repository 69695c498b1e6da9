//! Exact scans and searches of cells on a CUDA device, with the answers of the CPU.
//!
//! Both keep what may be among the best of a query where it is computed ([`xc_kernels::best`]), and let sums in f64
//! decide, which are the same on a device.

#![allow(unsafe_code, reason = "kernels are launched")]

mod cells;
mod exact;
mod sums;

pub use cells::{CellSearch, CellsError};
pub use exact::ExactScan;

use rayon::prelude::*;
use std::ops::Range;
use xc_dense::DenseRows;
use xc_kernels::best::Kept;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::{Device, Error};

/// Queries of a batch at most, and bytes of what is kept of them.
const QUERIES: usize = 1024;
const KEPT_BYTES: u64 = 256 << 20;
/// Values that are copied to a device at a time (64 MB).
const COPIED: usize = 1 << 24;

/// Queries of a batch that have room for so many keys each.
fn queries_together(room: usize) -> usize {
    (KEPT_BYTES / Kept::bytes(1, room)).clamp(1, QUERIES as u64) as usize
}

/// Copies rows to the device, `stride` values from one to the next; `part` gives the values of some of them.
fn upload_rows(
    device: &Device,
    rows: DenseRows<'_>,
    stride: usize,
    part: impl Fn(Range<usize>, &mut Vec<f32>) + Sync,
) -> Result<CudaSlice<f32>, Error> {
    /// Rows of a task.
    const EACH: usize = 256;
    let (n, width) = (rows.len(), rows.width());
    let mut out = device.zeros::<f32>(n * stride)?;
    let together = (COPIED / stride).max(1);
    for first in (0..n).step_by(together) {
        let end = n.min(first + together);
        let mut values = vec![0.0; (end - first) * stride];
        values.par_chunks_mut(EACH * stride).enumerate().for_each_init(Vec::new, |some, (at, to)| {
            let from = first + at * EACH;
            some.clear();
            part(from..end.min(from + EACH), some);
            let pairs = to.chunks_exact_mut(stride).zip(some.chunks_exact(width));
            pairs.for_each(|(to, row)| to[..width].copy_from_slice(row));
        });
        device.write(&values, &mut out.slice_mut(first * stride..end * stride))?;
    }
    Ok(out)
}

#[cfg(all(test, feature = "emulated"))]
mod tests;
