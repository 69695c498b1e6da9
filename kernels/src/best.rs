//! The k best entries of each row of a product, without writing the others.
//!
//! ```text
//!   columns of C    | room |      4 times as many      |    ...                 |
//!   each part       keeps keys that beat the row's bar ─▶ narrow: the k best so far give the next bar
//! ```
//!
//! Keys are those of `xc_sparse::rank::rank_key`, in the order of a ranking: the smallest is the best. A row has room for
//! some keys; if a part brings more, those that were kept still give a bar, and all columns are gone over again with it.

use crate::product::{Operands, Rows, Tiles};
use crate::{Device, Error, Kernel, Shape, address, arguments};
use cudarc::driver::CudaSlice;
use std::ops::Range;

arguments! {
    /// `XcBest` of `best.cuh`.
    pub struct Keeping {
        /// Of each row of A, keys below it are kept.
        bars: u64,
        /// Keys kept.
        kept: u64,
        /// How many there were of each row.
        n_kept: u64,
        /// Bits of labels that may be kept; 0: all may.
        filter: u64,
        /// Keys that a row has room for.
        room: u32,
        /// Label of the first column.
        label0: u32,
    }
}

impl crate::layout::Plain for Keeping {}

/// Keys that rows of A have kept so far, on the card.
#[derive(Debug)]
pub struct Kept {
    bars: CudaSlice<u64>,
    keys: CudaSlice<u64>,
    n_kept: CudaSlice<u32>,
    lost: CudaSlice<u32>,
    gather: Kernel,
    n_rows: usize,
    room: usize,
    k: usize,
}

/// Keys that a row has room for, for each that is wanted; and at least.
const ROOM: usize = 16;
const LEAST_ROOM: usize = 1024;
/// Threads of a block that has a row to itself.
const THREADS: u32 = 256;

impl Kept {
    /// Keys that a row has room for where `k` of `n` are wanted.
    pub fn usual_room(n: usize, k: usize) -> usize {
        k.saturating_mul(ROOM).max(LEAST_ROOM).min(n)
    }

    /// Nothing yet, of rows that want `k` keys each and have room for `room`.
    ///
    /// # Panics
    /// If `k` is 0 or above `room`, or a row has room for 2^32 keys.
    pub fn new(device: &Device, n_rows: usize, k: usize, room: usize) -> Result<Self, Error> {
        assert!(k > 0 && k <= room && u32::try_from(room).is_ok(), "{k} keys wanted, room for {room}");
        Ok(Self {
            bars: device.upload(&vec![u64::MAX; n_rows])?,
            keys: device.zeros(n_rows * room)?,
            n_kept: device.zeros(n_rows)?,
            lost: device.zeros(n_rows)?,
            gather: device.kernel("xc_sparse_gather")?,
            n_rows,
            room,
            k,
        })
    }

    /// Bytes on the card.
    pub fn bytes(n_rows: usize, room: usize) -> u64 {
        n_rows as u64 * (8 * room as u64 + 16)
    }

    /// Goes over `n` columns part by part: `offer` keeps keys of a part, `narrow` those that may be among the best of a
    /// row, sets its bar, and writes to its second argument which rows have lost keys. Where some did, all columns are
    /// gone over again, `most` times in all at most.
    ///
    /// Returns the rows that lost keys the last time.
    pub fn search(
        &mut self,
        device: &Device,
        n: usize,
        most: usize,
        offer: impl Fn(Range<usize>, &Keeping) -> Result<(), Error>,
        narrow: impl Fn(&Keeping, &mut CudaSlice<u32>) -> Result<(), Error>,
    ) -> Result<Vec<usize>, Error> {
        let growth = (self.room / (4 * self.k)).max(1);
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut done = 0;
        while done < n {
            let part = self.room.max(done.saturating_mul(growth)).min(n - done);
            parts.push(done..done + part);
            done += part;
        }
        self.search_parts(device, &parts, most, offer, narrow)
    }

    /// [`Kept::search`] of these parts.
    pub fn search_parts(
        &mut self,
        device: &Device,
        parts: &[Range<usize>],
        most: usize,
        offer: impl Fn(Range<usize>, &Keeping) -> Result<(), Error>,
        narrow: impl Fn(&Keeping, &mut CudaSlice<u32>) -> Result<(), Error>,
    ) -> Result<Vec<usize>, Error> {
        for time in 1.. {
            for part in parts {
                let keeping = Keeping {
                    bars: address(&self.bars),
                    kept: address(&self.keys),
                    n_kept: address(&self.n_kept),
                    filter: 0,
                    room: self.room as u32,
                    label0: part.start as u32,
                };
                offer(part.clone(), &keeping)?;
                narrow(&keeping, &mut self.lost)?;
            }
            let lost = device.download(&self.lost)?;
            let rows: Vec<usize> = (0..self.n_rows).filter(|&row| lost[row] != 0).collect();
            if rows.is_empty() || time == most {
                return Ok(rows);
            }
            (self.lost, self.n_kept) = (device.zeros(self.n_rows)?, device.zeros(self.n_rows)?);
        }
        Ok(Vec::new())
    }

    /// The keys of all rows together, in no order, and where those of each row begin and end.
    pub fn gathered(&mut self, device: &Device) -> Result<(CudaSlice<u64>, Vec<u64>), Error> {
        let n_kept = device.download(&self.n_kept)?;
        let mut begin = vec![0u64];
        for &n in &n_kept[..self.n_rows] {
            begin.push(begin[begin.len() - 1] + u64::from(n.min(self.room as u32)));
        }
        let total = begin[self.n_rows] as usize;
        let (mut out, on_begin, room) = (device.zeros::<u64>(total)?, device.upload(&begin)?, self.room as u64);
        let call = self.gather.call(device.stream()).arg(&self.keys).arg(&room).arg(&on_begin).arg(&mut out);
        let shape = Shape { grid: [self.n_rows, 1, 1], threads: THREADS, shared: 0 };
        // SAFETY: each row has as many keys as it begins before the next one.
        unsafe { call.launch(shape) }?;
        Ok((out, begin))
    }
}

/// Ranked keys of some rows, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranked {
    keys: Vec<u64>,
    begin: Vec<u64>,
}

impl Ranked {
    /// The keys of row `i`: see [`key`].
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> &[u64] {
        &self.keys[self.begin[i] as usize..self.begin[i + 1] as usize]
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.begin.len().saturating_sub(1)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Finds the best entries of rows of products.
#[derive(Clone, Debug)]
pub struct Best {
    tiles: Tiles,
    narrow: Kernel,
}

impl Best {
    /// Loads the kernels.
    pub fn load(device: &Device) -> Result<Self, Error> {
        Ok(Self { tiles: Tiles::load(device, "xc_sparse_best")?, narrow: device.kernel("xc_sparse_narrow")? })
    }

    /// The `k` best entries of each row of `start + a * b^T`, as `xc_sparse::rank::TopK` keeps them: by score, of equal
    /// ones the lower label, which is the number of the row of `b`; none that is no number. `start` has a value for
    /// each row of the matrix that `b` is a part of.
    ///
    /// *Cost*: the product, and what it keeps; nothing of the size of the product is written.
    ///
    /// # Panics
    /// If shapes disagree, or `b` has 2^32 rows.
    pub fn run(
        &self,
        device: &Device,
        a: Rows<'_>,
        b: Rows<'_>,
        start: Option<&CudaSlice<f32>>,
        k: usize,
    ) -> Result<Ranked, Error> {
        self.with_room(device, a, b, start, k, Kept::usual_room(b.len(), k))
    }

    /// [`Best::run`] with room for so many keys a row, at least twice as many as are wanted or all.
    ///
    /// # Panics
    /// As [`Best::run`].
    pub fn with_room(
        &self,
        device: &Device,
        a: Rows<'_>,
        b: Rows<'_>,
        start: Option<&CudaSlice<f32>>,
        k: usize,
        room: usize,
    ) -> Result<Ranked, Error> {
        let (k, stream) = (k.min(b.len()), device.stream());
        // Checks the whole product before a part of it.
        let whole = Operands::new(a, b, start);
        if k == 0 || a.is_empty() {
            return Ok(Ranked { keys: Vec::new(), begin: vec![0; a.len() + 1] });
        }
        let mut kept = Kept::new(device, a.len(), k, room.max(2 * k).min(b.len()))?;
        let offer = |part: Range<usize>, keeping: &Keeping| {
            let operands = Operands { first: whole.first + part.start as u64, n: part.len() as u32, ..whole };
            // SAFETY: the operands were made of rows that are there, and `kept` has room for its rows.
            unsafe { self.tiles.launch(stream, &operands, keeping) }
        };
        let wanted = k as u32;
        let narrow = |keeping: &Keeping, lost: &mut CudaSlice<u32>| {
            let call = self.narrow.call(stream).arg(keeping).arg(&wanted).arg(lost);
            // SAFETY: `kept` has room for its rows, of which each has a block.
            unsafe { call.launch(Shape { grid: [a.len(), 1, 1], threads: THREADS, shared: 0 }) }
        };
        // Bars become better each time, so that this ends.
        kept.search(device, b.len(), usize::MAX, offer, narrow)?;
        let (keys, begin) = kept.gathered(device)?;
        let mut keys = device.download(&keys)?;
        begin.windows(2).for_each(|ends| keys[ends[0] as usize..ends[1] as usize].sort_unstable());
        Ok(Ranked { keys, begin })
    }
}
