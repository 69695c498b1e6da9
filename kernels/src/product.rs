//! Dense products on a card, with the bytes of `xc_dense::product`.
//!
//! ```text
//!   C (m x n)  =  start  +  A (m x k) * B (n x k)^T        rows of A and of B contiguous
//! ```
//!
//! Every entry of C is one chain of fused multiply-adds in ascending k; with leaves one chain a leaf, and the leaves
//! are added as `xc_buffer::sums` adds them. What is not a number has other bits on a card.
//!
//! A kernel decides what becomes of the entries: [`Product`] writes them, others keep what beats a bar. Each comes in
//! four sizes, of which [`Tiles`] takes one by the rows of A: for 1 and for up to 8 it streams B, above that a block
//! has a tile of C with 8 x 8 entries a thread.

use crate::{Device, Error, Kernel, Shape, address, arguments};
use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

arguments! {
    /// `XcProduct` of `product.cuh`.
    pub struct Operands {
        /// Row 0 of A.
        a: u64,
        /// Values from one row of A to the next.
        a_stride: u64,
        /// Row 0 of B.
        b: u64,
        /// Values from one row of B to the next.
        b_stride: u64,
        /// What entries begin with, by row of B; 0: with nothing.
        start: u64,
        /// The row of B that is the first column of C.
        first: u64,
        /// Rows of A.
        m: u32,
        /// Rows of B that are columns of C.
        n: u32,
        /// Values of a row.
        k: u32,
        /// Chains of an entry.
        leaves: u32,
    }

    /// `XcStore` of `product.cuh`.
    pub struct Store {
        /// C.
        c: u64,
        /// Values from one row of C to the next.
        stride: u64,
        /// Values from the sums of one leaf to those of the next.
        leaf_stride: u64,
    }
}

/// Rows are at most so many values apart: offsets within a tile have 32 bits.
const MOST_STRIDE: usize = 1 << 24;

/// Some rows of a matrix on the card.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    address: u64,
    rows: (u64, usize),
    width: usize,
    stride: usize,
    life: PhantomData<&'a CudaSlice<f32>>,
}

impl<'a> Rows<'a> {
    /// `n` rows of `width` values, `stride` values from one to the next. Products are fastest where `stride` is a
    /// multiple of 4.
    ///
    /// # Panics
    /// If the last value is not among the values, or rows are wider or farther apart than 2^24 values.
    pub fn new(values: &'a CudaSlice<f32>, n: usize, width: usize, stride: usize) -> Self {
        let last = n.saturating_sub(1).checked_mul(stride).and_then(|start| start.checked_add(width));
        assert!(
            n == 0 || last.is_some_and(|end| end <= values.len()),
            "{} values, expected {n} rows of {width}, {stride} apart",
            values.len()
        );
        // SAFETY: the rows are there, and so is the slice while this lives.
        unsafe { Self::at(address(values), 0, n, width, stride) }
    }

    /// `n` rows from row `first` on, of a matrix whose row 0 is at `address`.
    ///
    /// # Panics
    /// If rows are wider or farther apart than 2^24 values.
    ///
    /// # Safety
    /// The rows named are on the card and stay there while they are used; others need not be.
    pub unsafe fn at(address: u64, first: u64, n: usize, width: usize, stride: usize) -> Self {
        assert!(width <= MOST_STRIDE && stride <= MOST_STRIDE, "rows of {width} values, {stride} apart, at most 2^24");
        Self { address, rows: (first, n), width, stride, life: PhantomData }
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// If not all of them are there.
    pub fn range(self, rows: Range<usize>) -> Self {
        let n = self.rows.1;
        assert!(rows.start <= rows.end && rows.end <= n, "rows {rows:?} of {n}");
        Self { rows: (self.rows.0 + rows.start as u64, rows.len()), ..self }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }
}

impl Operands {
    /// The product of the rows of `a` and of `b`, in one chain an entry; `start` has a value for each row of the matrix
    /// that `b` is a part of.
    ///
    /// # Panics
    /// If widths differ, there are 2^32 rows or more, or `start` is too short.
    pub fn new(a: Rows<'_>, b: Rows<'_>, start: Option<&CudaSlice<f32>>) -> Self {
        assert!(a.width == b.width, "rows of {} and of {} values", a.width, b.width);
        let of = |n: usize| u32::try_from(n).unwrap_or_else(|_| panic!("{n} rows, expected fewer than 2^32"));
        let n_starts = b.rows.0 + b.rows.1 as u64;
        assert!(start.is_none_or(|s| s.len() as u64 >= n_starts), "values to start with for {n_starts} rows");
        Self {
            a: a.address + 4 * a.rows.0 * a.stride as u64,
            a_stride: a.stride as u64,
            b: b.address,
            b_stride: b.stride as u64,
            start: start.map_or(0, address),
            first: b.rows.0,
            m: of(a.rows.1),
            n: of(b.rows.1),
            k: a.width as u32,
            leaves: 1,
        }
    }
}

/// Rows of A up to which B is streamed, and up to which tiles have 32 rows.
const FEW: usize = 8;
const LOW: usize = 96;
/// Warps of a block that streams, rows of B that each has at a time, and blocks of a multiprocessor.
const STREAMS: usize = 2;
const LANES: usize = 32;
const RESIDENT: usize = 6;
/// Floats of a stage's row, and stages.
const LINE: usize = 20;
const STAGES: usize = 2;

/// A kernel in its sizes.
#[derive(Clone, Debug)]
pub struct Tiles {
    /// Those that stream, where there are such, and the tiles.
    streams: Option<[Kernel; 2]>,
    tiles: [Kernel; 2],
    processors: usize,
}

impl Tiles {
    /// Kernels `NAME_1`, `NAME_8`, `NAME_32` and `NAME_128`, which take [`Operands`] and an epilogue.
    pub fn load(device: &Device, name: &str) -> Result<Self, Error> {
        let of = |size: &str| device.kernel(&format!("{name}{size}"));
        Ok(Self { streams: Some([of("_1")?, of("_8")?]), ..Self::without_streams(device, name)? })
    }

    /// Kernels `NAME_32` and `NAME_128` alone, which are slow for a few rows of A.
    pub fn without_streams(device: &Device, name: &str) -> Result<Self, Error> {
        let of = |size: &str| device.kernel(&format!("{name}{size}"));
        let processors = device.limits().processors as usize;
        Ok(Self { streams: None, tiles: [of("_32")?, of("_128")?], processors })
    }

    /// Runs the kernel of the size that fits; an empty product runs nothing.
    ///
    /// # Safety
    /// What the operands and the epilogue point to is on the card, as the kernel asks for, until it has run.
    pub unsafe fn launch<E: DeviceRepr>(
        &self,
        stream: &Arc<CudaStream>,
        operands: &Operands,
        epilogue: &E,
    ) -> Result<(), Error> {
        let (m, n, leaves) = (operands.m as usize, operands.n as usize, operands.leaves as usize);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let tiled = |tall: usize, wide: usize, threads: u32| Shape {
            grid: [m.div_ceil(tall) * n.div_ceil(wide), leaves, 1],
            threads,
            shared: STAGES * (tall + wide) * LINE * size_of::<f32>(),
        };
        let (kernel, shape) = match &self.streams {
            // Streams have no leaves.
            Some(streams) if m <= FEW && leaves == 1 => {
                let blocks = n.div_ceil(STREAMS * LANES).min(RESIDENT * self.processors);
                let shape = Shape { grid: [blocks, 1, 1], threads: (STREAMS * LANES) as u32, shared: 0 };
                (&streams[usize::from(m > 1)], shape)
            }
            _ if m <= LOW => (&self.tiles[0], tiled(32, 256, 128)),
            _ => (&self.tiles[1], tiled(128, 128, 256)),
        };
        // SAFETY: the caller's promise; the shape is the kernel's.
        unsafe { kernel.call(stream).arg(operands).arg(epilogue).launch(shape) }
    }
}

/// Products whose entries are written.
#[derive(Clone, Debug)]
pub struct Product {
    tiles: Tiles,
    add: Kernel,
}

impl Product {
    /// Loads the kernels.
    pub fn load(device: &Device) -> Result<Self, Error> {
        Ok(Self { tiles: Tiles::load(device, "xc_sparse_product")?, add: device.kernel("xc_sparse_add_leaves")? })
    }

    /// `c = start + a * b^T`, row after row; `start` has a value for each row of the matrix that `b` is a part of.
    ///
    /// *Cost*: 2 m n k operations; of a row or a few, reading `b`.
    ///
    /// # Panics
    /// If shapes disagree, or `c` is too short.
    pub fn run(
        &self,
        stream: &Arc<CudaStream>,
        a: Rows<'_>,
        b: Rows<'_>,
        start: Option<&CudaSlice<f32>>,
        c: &mut CudaSlice<f32>,
    ) -> Result<(), Error> {
        let operands = Operands::new(a, b, start);
        self.leaves(stream, operands, c)
    }

    /// `c = a * b^T` with the sums along k in leaves, a power of two: those of `xc_buffer::sums::Blocks`. `c` has room
    /// for a product a leaf, of which the first becomes the answer.
    ///
    /// # Panics
    /// If shapes disagree, `c` is too short, or `leaves` is no power of two.
    pub fn run_in_leaves(
        &self,
        stream: &Arc<CudaStream>,
        a: Rows<'_>,
        b: Rows<'_>,
        leaves: u32,
        c: &mut CudaSlice<f32>,
    ) -> Result<(), Error> {
        assert!(leaves.is_power_of_two(), "{leaves} leaves, expected a power of two");
        self.leaves(stream, Operands { leaves, ..Operands::new(a, b, None) }, c)
    }

    fn leaves(&self, stream: &Arc<CudaStream>, operands: Operands, c: &mut CudaSlice<f32>) -> Result<(), Error> {
        let (leaves, n) = (operands.leaves, u64::from(operands.m) * u64::from(operands.n));
        assert!(c.len() as u64 / u64::from(leaves) >= n, "room for {} values, expected {leaves} x {n}", c.len());
        let store = Store { c: address(c), stride: operands.n.into(), leaf_stride: n };
        // SAFETY: the operands were made of rows that are there, and the room was just compared.
        unsafe { self.tiles.launch(stream, &operands, &store) }?;
        if leaves == 1 || n == 0 {
            return Ok(());
        }
        let call = self.add.call(stream).arg(c).arg(&n).arg(&n).arg(&leaves);
        let blocks = (n as usize).div_ceil(256).min(16 * self.tiles.processors);
        // SAFETY: the kernel reads and writes `leaves` times `n` values.
        unsafe { call.launch(Shape { grid: [blocks, 1, 1], threads: 256, shared: 0 }) }
    }
}
