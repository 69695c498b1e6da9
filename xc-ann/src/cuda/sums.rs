//! Sums in f64 over rows on a device, for scores that decide.

use crate::metric::Metric;
use xc_dense::DenseRows;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::{Device, Error, Kernel, Shape, address};

/// Keys of a block, half a warp each; and blocks of a query at most.
const TOGETHER: usize = 16;
const BLOCKS: usize = 64;

/// Loaded once for all rows.
pub(super) struct Sums {
    kernel: Kernel,
    is_distance: u32,
}

impl Sums {
    pub(super) fn load(device: &Device, metric: Metric) -> Result<Self, Error> {
        Ok(Self { kernel: device.kernel("xc_ann_sums")?, is_distance: u32::from(metric == Metric::L2) })
    }

    /// Two sums for each key of a query, whose label is a row, or what has a row in `first`: see
    /// [`Scorer::of_sums`](crate::search::rerank::Scorer::of_sums). Rows have `stride` values from one to the next.
    pub(super) fn of(
        &self,
        device: &Device,
        queries: DenseRows<'_>,
        (rows, stride): (&CudaSlice<f32>, usize),
        first: Option<&CudaSlice<u32>>,
        keys: &CudaSlice<u64>,
        begin: &[u64],
    ) -> Result<Vec<[f64; 2]>, Error> {
        let (on_queries, on_begin) = (device.upload(queries.values())?, device.upload(begin)?);
        let n_keys = begin.last().map_or(0, |&n| n as usize);
        let mut out = device.zeros::<f64>(2 * n_keys)?;
        let (width, row_stride, first) = (queries.width() as u32, stride as u64, first.map_or(0, address));
        let call = self.kernel.call(device.stream()).arg(&on_queries).arg(rows).arg(&row_stride).arg(&first);
        let call = call.arg(&width).arg(&self.is_distance).arg(keys).arg(&on_begin).arg(&mut out);
        // Enough for the query that has most keys.
        let most = begin.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
        let grid = [queries.len(), most.div_ceil(TOGETHER).clamp(1, BLOCKS), 1];
        // SAFETY: keys are of rows that are there, and each has two sums.
        unsafe { call.launch(Shape { grid, threads: 256, shared: 0 }) }?;
        let out = device.download(&out)?;
        Ok(out.as_chunks::<2>().0.to_vec())
    }
}
