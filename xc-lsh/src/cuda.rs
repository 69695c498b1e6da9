//! Keys of [`SimHash`] on a CUDA device, with the keys of the CPU.
//!
//! ```text
//!   rows x projections ─▶ product of f32, one chain an entry ─▶ bits: above 0 or not ─▶ bits of a table side by side
//! ```

#![allow(unsafe_code, reason = "kernels are launched")]

use crate::family::{Family, HashError, all_zero};
use crate::keys::Keys;
use crate::simhash::SimHash;
use rayon::prelude::*;
use thiserror::Error;
use xc_dense::DenseRows;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::product::{Operands, Rows, Tiles};
use xc_kernels::{Device, Kernel, Plan, Shape, address, arguments};

arguments! {
    /// `XcSigns` of `lsh.cu`.
    struct Signs {
        words: u64,
        stride: u64,
    }
}

/// Values of rows, and bits, that are on the device at a time at most.
const VALUES: usize = 1 << 24;
/// Threads of a block that joins bits.
const THREADS: usize = 256;

/// Why there are no keys.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DeviceKeysError {
    /// Of these rows there are none.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// The device lacks memory, or failed.
    #[error(transparent)]
    Device(#[from] xc_kernels::Error),
    /// The device has no such projections.
    #[error(
        "projections of sim-hash by Hadamard transforms are not computed on a device; a matrix is, gaussian or sparse"
    )]
    Hadamard,
}

/// The projections of a [`SimHash`] on a device.
pub struct SimHashOn<'a> {
    device: &'a Device,
    family: &'a SimHash,
    /// A row a bit, `stride` values from one to the next.
    projections: CudaSlice<f32>,
    stride: usize,
    tiles: Tiles,
    join: Kernel,
}

impl<'a> SimHashOn<'a> {
    /// Copies the projections to the device: 4 K L bytes a column of rows.
    ///
    /// # Errors
    /// They are no matrix; the device lacks memory, or fails.
    pub fn new(device: &'a Device, family: &'a SimHash) -> Result<Self, DeviceKeysError> {
        let (matrix, _) = family.matrix().ok_or(DeviceKeysError::Hadamard)?;
        let (width, n_bits) = (family.params().width, family.params().codes());
        // Whole groups of 4 values are copied faster within the device.
        let stride = width.next_multiple_of(4);
        Plan::new().of::<f32>("projections", n_bits * stride).fits_on(device)?;
        let mut turned = vec![0.0; n_bits * stride];
        turned.par_chunks_mut(stride).enumerate().for_each(|(bit, row)| {
            row.iter_mut().zip(matrix[bit..].iter().step_by(n_bits)).for_each(|(to, &value)| *to = value);
        });
        Ok(Self {
            device,
            family,
            projections: device.upload(&turned)?,
            stride,
            tiles: Tiles::without_streams(device, "xc_lsh_signs")?,
            join: device.kernel("xc_lsh_join")?,
        })
    }

    /// Keys of all rows, which replace the content of `keys`: those of [`Family::keys_dense`].
    ///
    /// # Errors
    /// A value that is not finite, as [`Family::keys_dense`] has it; the device lacks memory, or fails. No keys are
    /// left then.
    ///
    /// # Panics
    /// If the width of rows or the number of tables is another than the family's.
    pub fn keys_dense(&self, rows: DenseRows<'_>, keys: &mut Keys) -> Result<(), DeviceKeysError> {
        let (params, width) = (self.family.params(), rows.width());
        let n_tables = params.n_tables as usize;
        assert_eq!(width, params.width, "width of the rows, and of the family");
        assert_eq!(keys.n_tables(), n_tables, "tables of the keys, and of the family");
        keys.clear();
        let zeros = rows.values().par_chunks_exact(width).enumerate().map(|(i, row)| all_zero(row, i, |at| at));
        // In order: the first bad value of all is reported.
        let zeros: Vec<Result<bool, HashError>> = zeros.collect();
        let n_zero = zeros.into_iter().map(|zero| zero.map(usize::from)).sum::<Result<usize, HashError>>()?;
        let together = (VALUES / self.stride.max(params.codes())).max(1);
        let of_all = keys.prepare(rows.len());
        let parts = rows.values().chunks(together * width).zip(of_all.chunks_mut(together * n_tables));
        let hashed = parts.into_iter().try_for_each(|(rows, keys)| self.hash(DenseRows::new(rows, width), keys));
        match hashed {
            Ok(()) => keys.count_zero(n_zero),
            Err(_) => keys.clear(),
        }
        hashed
    }

    /// Writes the keys of some rows.
    fn hash(&self, rows: DenseRows<'_>, keys: &mut [u32]) -> Result<(), DeviceKeysError> {
        let (device, stream, params) = (self.device, self.device.stream(), self.family.params());
        let (n, width, n_bits) = (rows.len(), rows.width(), params.codes());
        let on_rows = device.upload(rows.values())?;
        let n_words = n_bits.div_ceil(64);
        let words = device.zeros::<u64>(n * n_words)?;
        let signs = Signs { words: address(&words), stride: n_words as u64 };
        let projections = Rows::new(&self.projections, n_bits, width, self.stride);
        let operands = Operands::new(Rows::new(&on_rows, n, width, width), projections, None);
        // SAFETY: rows and projections are there, and a word for every 64 bits of a row.
        unsafe { self.tiles.launch(stream, &operands, &signs) }?;
        let packing = self.family.matrix().filter(|(_, packing)| packing.is_folded()).map(|(_, packing)| packing);
        let mut narrow = device.zeros::<u32>(if packing.is_some() { 0 } else { keys.len() })?;
        let mut wide = packing.map(|_| device.zeros::<u64>(keys.len())).transpose()?;
        let to_wide = wide.as_ref().map_or(0, address);
        let (stride, n_rows, n_tables, n_codes) = (n_words as u64, n as u64, params.n_tables, params.n_codes);
        let call = self.join.call(stream).arg(&words).arg(&stride).arg(&n_rows).arg(&n_tables).arg(&n_codes);
        let blocks = keys.len().div_ceil(THREADS).min(64 * device.limits().processors as usize);
        let shape = Shape { grid: [blocks, 1, 1], threads: THREADS as u32, shared: 0 };
        // SAFETY: of each row there are all words, and room for the codes of each table in one of the two.
        unsafe { call.arg(&mut narrow).arg(&to_wide).launch(shape) }?;
        match (packing, &mut wide) {
            (Some(packing), Some(wide)) => {
                let codes = device.download(wide)?;
                let n_tables = n_tables as usize;
                keys.par_chunks_mut(n_tables).zip(codes.par_chunks(n_tables)).for_each(|(keys, codes)| {
                    let tables = keys.iter_mut().zip(codes).enumerate();
                    tables.for_each(|(table, (key, &codes))| *key = packing.finish(table, codes));
                });
            }
            _ => keys.copy_from_slice(&device.download(&narrow)?[..keys.len()]),
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "emulated"))]
mod tests;
