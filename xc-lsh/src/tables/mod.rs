//! Hash tables over items 0..N, flat in memory: items with the same key are contiguous.
//!
//! ```text
//!   keys     of item 0   3  0  1               one row an item: for updates, and for queries by item
//!            of item 1   0  2  1
//!   starts   of key      0  1  2  3            2^key_bits + 1 numbers a table
//!            table 0     0  1  1  1  2
//!   ids      table 0     1 | | | 0             N a table: the items of key 0, 1, 2, 3, each ascending
//! ```
//!
//! A table is built by a counting sort of its keys. An item whose key changes later is added to the
//! table's overflow and found under both keys until the table is sorted again: an old entry adds a
//! candidate and never hides one. [`Tables::state`] gives plain arrays from which the same tables can
//! be restored, including overflows.
//!
//! ```
//! use xc_lsh::tables::{By, QueryLimits, Query, QueryScratch, Tables};
//! use xc_lsh::{FamilyKind, KeyScratch, TableSizing};
//! use xc_dense::DenseRows;
//!
//! let vectors: Vec<f32> = (0..1000 * 16).map(|i| ((i * 7919) % 1009) as f32 - 500.0).collect();
//! let rows = DenseRows::new(&vectors, 16);
//! let family = TableSizing::try_new(1000, 20, 30.0, FamilyKind::Wta { bin: 4 }, 16)?.params(1).build()?;
//! let tables = Tables::of_dense(&*family, rows, &mut KeyScratch::default())?;
//!
//! // Candidates beside item 7, found by the keys that the tables hold of it.
//! let mut found = Vec::new();
//! let query = Query { by: By::Items(&[7]), turn: 0, excluded: &[7] };
//! let limits = QueryLimits { candidates: 100, per_bucket: 50 };
//! let counts = tables.query(query, limits, &mut QueryScratch::default(), &mut found);
//! assert!(!found.contains(&7) && found.len() == counts.candidates);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
#[cfg(feature = "store")]
mod file;
mod overflow;
mod query;
mod state;

pub use batch::BatchFound;
#[cfg(feature = "store")]
pub use file::{KIND, OpenTablesError};
pub use query::{By, NO_KEY, Query, QueryCounts, QueryLimits, QueryScratch};
pub use state::{TablesState, TablesStateError};

use crate::family::{Family, HashError};
use crate::keys::Keys;
use crate::scratch::KeyScratch;
use overflow::{Change, Overflow};
use rayon::prelude::*;
use std::ops::Range;
use xc_buffer::Buffer;
use xc_buffer::HugePageVec;
use xc_buffer::parallel::in_pool;
use xc_dense::DenseRows;
use xc_sparse::CsrView;

/// Most tables that one task works on: they have their keys in the same cache lines.
const TOGETHER: usize = 4;

/// L tables over the same items.
#[derive(Clone, Debug)]
pub struct Tables {
    n_items: usize,
    n_tables: usize,
    key_bits: u32,
    /// Table after table.
    starts: Buffer<u32>,
    ids: Buffer<u32>,
    /// Item after item.
    keys: Buffer<u32>,
    overflow: Vec<Overflow>,
    n_zero: usize,
}

/// Statistics of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TableStats {
    /// Buckets with an item, in all tables.
    pub n_filled: usize,
    /// Items of the largest bucket.
    pub largest: usize,
    /// Items in the bucket of an item, itself included, on average over items and tables.
    pub mean: f64,
    /// Entries in overflows, until their table is sorted.
    pub n_overflow: usize,
    /// Items without values other than 0 when the tables were built.
    pub n_zero: usize,
}

impl Tables {
    /// Tables of dense rows.
    ///
    /// *Cost*: the keys of all rows, and about 5 ns a row and table; see [`Tables::bytes`] for the
    /// memory.
    ///
    /// # Errors
    /// A value that is not finite.
    ///
    /// # Panics
    /// If the rows' width is not the family's, keys have more than 28 bits, or there are 2^32 rows
    /// or more.
    pub fn of_dense(family: &dyn Family, rows: DenseRows<'_>, scratch: &mut KeyScratch) -> Result<Self, HashError> {
        let mut keys = Keys::new(family.params().n_tables as usize);
        family.keys_dense(rows, &mut keys, scratch)?;
        Ok(Self::of_keys(family.key_bits(), keys))
    }

    /// Tables of sparse rows; else as [`Tables::of_dense`].
    ///
    /// # Errors
    /// A value that is not finite.
    ///
    /// # Panics
    /// As [`Tables::of_dense`].
    pub fn of_sparse(family: &dyn Family, rows: CsrView<'_>, scratch: &mut KeyScratch) -> Result<Self, HashError> {
        let mut keys = Keys::new(family.params().n_tables as usize);
        family.keys_sparse(rows, &mut keys, scratch)?;
        Ok(Self::of_keys(family.key_bits(), keys))
    }

    /// Tables of items whose keys are known: row i is item i.
    ///
    /// # Panics
    /// If keys have more than 28 bits, one is too large, or there are 2^32 - 1 items or more.
    pub fn of_keys(key_bits: u32, keys: Keys) -> Self {
        let (n_items, n_tables, n_zero) = (keys.len(), keys.n_tables(), keys.n_zero());
        assert!(key_bits <= 28 && n_items < u32::MAX as usize, "{n_items} items under keys of {key_bits} bits");
        let keys = keys.into_inner();
        assert!(keys.iter().all(|key| key >> key_bits == 0), "keys of at most {key_bits} bits");
        let mut tables = Self {
            n_items,
            n_tables,
            key_bits,
            starts: HugePageVec::zeros(n_tables * ((1 << key_bits) + 1)).into(),
            ids: HugePageVec::zeros(n_tables * n_items).into(),
            keys: keys.into(),
            overflow: vec![Overflow::default(); n_tables],
            n_zero,
        };
        tables.sort(0..n_tables);
        tables
    }

    /// Number of items, N.
    pub fn n_items(&self) -> usize {
        self.n_items
    }

    /// Number of tables, L.
    pub fn n_tables(&self) -> usize {
        self.n_tables
    }

    /// Bytes of the tables, including overflows.
    pub fn bytes(&self) -> usize {
        let flat = self.starts.len() + self.ids.len() + self.keys.len();
        4 * flat + self.overflow.iter().map(Overflow::bytes).sum::<usize>()
    }

    /// Bits of a key.
    pub fn key_bits(&self) -> u32 {
        self.key_bits
    }

    /// The keys that the tables hold of an item, one a table.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn keys_of(&self, item: u32) -> &[u32] {
        assert!((item as usize) < self.n_items, "item {item} of {}", self.n_items);
        &self.keys[item as usize * self.n_tables..][..self.n_tables]
    }

    /// Gives items new keys, row i of `keys` to `items[i]`. If a key differs from the one in a table,
    /// the item is found under both until the table is [sorted](Tables::sort). Returns the number of
    /// such changes. Tables and the order of answers depend only on the updates, not on threads.
    ///
    /// *Cost*: the keys of an item are read and written, and a cache miss for each table whose key
    /// changed. Tables are divided among the threads of the caller's pool.
    ///
    /// # Panics
    /// If items do not ascend, one is not there, a key is too large, or there are not as many rows
    /// of keys, for as many tables.
    pub fn update(&mut self, items: &[u32], keys: &Keys) -> usize {
        assert!(keys.n_tables() == self.n_tables, "keys for {} tables of {}", keys.n_tables(), self.n_tables);
        assert!(keys.len() == items.len(), "{} items, keys of {}", items.len(), keys.len());
        items.windows(2).for_each(|pair| assert!(pair[0] < pair[1], "item {} after {}", pair[1], pair[0]));
        let Some(&last) = items.last() else { return 0 };
        assert!((last as usize) < self.n_items, "item {last} of {}", self.n_items);
        assert!(keys.as_slice().iter().all(|key| key >> self.key_bits == 0), "keys of at most {} bits", self.key_bits);
        let (n_tables, held) = (self.n_tables, &self.keys);
        let insert = |(group, overflows): (usize, &mut [Overflow])| {
            let tables = group * TOGETHER..;
            let mut n_changed = 0;
            for (at, &item) in items.iter().enumerate() {
                let row = &held[item as usize * n_tables..][..n_tables];
                for (table, overflow) in tables.clone().zip(&mut *overflows) {
                    let (before, key) = (row[table], keys.row(at)[table]);
                    if before != key {
                        overflow.insert(Change { before, key, item });
                        n_changed += 1;
                    }
                }
            }
            n_changed
        };
        let n_changed = if in_pool() {
            self.overflow.par_chunks_mut(TOGETHER).enumerate().map(insert).sum()
        } else {
            self.overflow.chunks_mut(TOGETHER).enumerate().map(insert).sum()
        };
        let held = self.keys.to_mut();
        for (at, &item) in items.iter().enumerate() {
            held[item as usize * n_tables..][..n_tables].copy_from_slice(keys.row(at));
        }
        n_changed
    }

    /// Gives the items from `first` on new keys, under which they are not found before all tables
    /// are sorted.
    pub(crate) fn overwrite(&mut self, first: usize, keys: &Keys) {
        assert_eq!(keys.n_tables(), self.n_tables, "tables of the keys, and of the items");
        self.keys.to_mut()[first * self.n_tables..][..keys.as_slice().len()].copy_from_slice(keys.as_slice());
    }

    /// Sorts some tables by their keys: every item is then found only under its own key. Calls with one
    /// table at a time keep each call short.
    ///
    /// *Cost*: about 6 ns per item and table; tables are divided among the threads of the caller's
    /// pool.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn sort(&mut self, tables: Range<usize>) {
        assert!(tables.start <= tables.end && tables.end <= self.n_tables, "tables {tables:?} of {}", self.n_tables);
        if self.n_items == 0 {
            return;
        }
        let (n, width, n_tables) = (self.n_items, (1 << self.key_bits) + 1, self.n_tables);
        let starts = &mut self.starts.to_mut()[tables.start * width..tables.end * width];
        let ids = &mut self.ids.to_mut()[tables.start * n..tables.end * n];
        let overflow = &mut self.overflow[tables.clone()];
        let keys = &self.keys;
        let together = (tables.len() / rayon::current_num_threads()).clamp(1, TOGETHER);
        let starts = starts.par_chunks_mut(together * width);
        let ids = ids.par_chunks_mut(together * n);
        let overflow = overflow.par_chunks_mut(together);
        starts.zip(ids).zip(overflow).enumerate().for_each_init(Vec::new, |columns, (group, ((starts, ids), late))| {
            let first = tables.start + group * together;
            columns.clear();
            columns.resize(ids.len(), 0);
            for (item, row) in keys.chunks_exact(n_tables).enumerate() {
                columns.iter_mut().skip(item).step_by(n).zip(&row[first..]).for_each(|(to, &key)| *to = key);
            }
            let of_table = starts.chunks_exact_mut(width).zip(ids.chunks_exact_mut(n)).zip(columns.chunks_exact(n));
            of_table.for_each(|((starts, ids), keys)| counting_sort(starts, ids, keys));
            late.fill_with(Overflow::default);
        });
    }

    /// What the tables look like. *Cost*: a pass over all buckets.
    pub fn stats(&self) -> TableStats {
        let width = (1 << self.key_bits) + 1;
        let mut stats = TableStats { n_zero: self.n_zero, ..TableStats::default() };
        let mut squares = 0u64;
        for starts in self.starts.chunks_exact(width) {
            for pair in starts.windows(2) {
                let n = (pair[1] - pair[0]) as usize;
                stats.n_filled += usize::from(n > 0);
                stats.largest = stats.largest.max(n);
                squares += (n * n) as u64;
            }
        }
        stats.n_overflow = self.overflow.iter().map(Overflow::len).sum();
        stats.mean = squares as f64 / (self.n_tables * self.n_items).max(1) as f64;
        stats
    }

    /// Where the start of a bucket stands.
    fn place(&self, table: usize, key: u32) -> usize {
        table * ((1 << self.key_bits) + 1) + key as usize
    }
}

/// Items by key, ascending in each: `starts` has one number for each key and one past the last.
fn counting_sort(starts: &mut [u32], ids: &mut [u32], keys: &[u32]) {
    starts.fill(0);
    keys.iter().for_each(|&key| starts[key as usize + 1] += 1);
    let mut end = 0;
    for start in &mut starts[1..] {
        end += *start;
        *start = end;
    }
    // The last item of a key goes to the end of its place first; then `starts[key + 1]` is where
    // the key begins.
    for (item, &key) in keys.iter().enumerate().rev() {
        let at = &mut starts[key as usize + 1];
        *at -= 1;
        ids[*at as usize] = item as u32;
    }
    starts.copy_within(1.., 0);
    if let Some(last) = starts.last_mut() {
        *last = keys.len() as u32;
    }
}
