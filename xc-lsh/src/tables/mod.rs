//! Hash tables over items 0..N, flat in memory: what has the same key lies together.
//!
//! ```text
//!   keys     of item   0  1  2  3  4          one row a table, kept for updates and for queries by item
//!            table 0   3  0  3  1  0
//!   starts   of key    0  1  2  3 | 4         2^key_bits + 1 numbers a table
//!            table 0   0  2  3  3   5
//!   ids      table 0   1  4 | 3 | | 0  2      N a table: the items of key 0, 1, 2, 3, each ascending
//! ```
//!
//! A table is made by a counting sort of its keys. An item whose key changes later is added to the
//! table's overflow and found under both keys, until the table is sorted again: an old entry is one
//! candidate too many, never one too few.
//!
//! ```
//! use xc_lsh::tables::{Limits, QueryScratch, Tables};
//! use xc_lsh::{Kind, Scratch, Sizing};
//! use xc_sparse::DenseRows;
//!
//! let vectors: Vec<f32> = (0..1000 * 16).map(|i| ((i * 7919) % 1009) as f32 - 500.0).collect();
//! let rows = DenseRows::new(&vectors, 16);
//! let family = Sizing::try_new(1000, 20, 30.0, Kind::Wta { bin: 4 })?.params(16, 1).build()?;
//! let tables = Tables::of_dense(&*family, rows, &mut Scratch::default())?;
//!
//! // Candidates for the vector of item 7, found by the keys that the tables hold of it.
//! let (mut keys, mut found) = (Vec::new(), Vec::new());
//! tables.keys_of(7, &mut keys);
//! let limits = Limits { candidates: 100, per_bucket: 50 };
//! let counts = tables.query(&keys, 0, limits, &[], &mut QueryScratch::default(), &mut found);
//! assert!(found.contains(&7) && found.len() == counts.candidates);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod overflow;
mod query;

pub use query::{Limits, QueryCounts, QueryScratch};

use crate::family::{Family, HashError};
use crate::keys::Keys;
use crate::scratch::Scratch;
use overflow::Overflow;
use rayon::prelude::*;
use std::ops::Range;
use xc_sparse::{Buffer, CsrView, DenseRows, Rows};

/// Rows that are hashed at a time while tables are built.
const ROWS_AT_A_TIME: usize = 1 << 14;

/// L tables over the same items.
#[derive(Clone, Debug)]
pub struct Tables {
    n_items: usize,
    n_tables: usize,
    key_bits: u32,
    /// Table after table.
    starts: Buffer<u32>,
    ids: Buffer<u32>,
    keys: Buffer<u32>,
    overflow: Vec<Overflow>,
    n_zero: usize,
}

/// What tables look like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TableStats {
    /// Buckets with an item, in all tables.
    pub n_filled: usize,
    /// Items of the largest bucket.
    pub largest: usize,
    /// Items in the bucket of an item, itself included, on average over items and tables.
    pub mean: f64,
    /// Entries that wait for their table to be sorted.
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
    /// If the rows' width is not the family's, keys have more than 28 bits, or there are 2^32 rows or
    /// more.
    pub fn of_dense(family: &dyn Family, rows: DenseRows<'_>, scratch: &mut Scratch) -> Result<Self, HashError> {
        let width = rows.width();
        Self::build(family, rows.len(), |range, keys| {
            let part = DenseRows::new(&rows.values()[range.start * width..range.end * width], width);
            family.keys_dense(part, keys, scratch)
        })
    }

    /// Tables of sparse rows; else as [`Tables::of_dense`].
    ///
    /// # Errors
    /// A value that is not finite.
    ///
    /// # Panics
    /// As [`Tables::of_dense`].
    pub fn of_sparse(family: &dyn Family, rows: CsrView<'_>, scratch: &mut Scratch) -> Result<Self, HashError> {
        Self::build(family, rows.rows(), |range, keys| {
            family.keys_sparse(Rows::new(rows.slice_outer(range)), keys, scratch)
        })
    }

    fn build(
        family: &dyn Family,
        n_items: usize,
        mut hash: impl FnMut(Range<usize>, &mut Keys) -> Result<(), HashError>,
    ) -> Result<Self, HashError> {
        let (n_tables, key_bits) = (family.params().n_tables as usize, family.key_bits());
        assert!(key_bits <= 28 && n_items < u32::MAX as usize, "{n_items} items under keys of {key_bits} bits");
        let mut keys = vec![0u32; n_tables * n_items];
        let (mut some, mut n_zero) = (Keys::new(n_tables), 0);
        for first in (0..n_items).step_by(ROWS_AT_A_TIME) {
            let range = first..n_items.min(first + ROWS_AT_A_TIME);
            hash(range.clone(), &mut some).map_err(|error| error.moved(first))?;
            n_zero += some.n_zero();
            keys.par_chunks_mut(n_items).enumerate().for_each(|(table, keys)| {
                keys[range.clone()].iter_mut().zip(some.table(table)).for_each(|(to, key)| *to = key);
            });
        }
        let mut tables = Self {
            n_items,
            n_tables,
            key_bits,
            starts: vec![0; n_tables * ((1 << key_bits) + 1)].into(),
            ids: vec![0; n_tables * n_items].into(),
            keys: keys.into(),
            overflow: vec![Overflow::default(); n_tables],
            n_zero,
        };
        tables.sort(0..n_tables);
        Ok(tables)
    }

    /// Number of items, N.
    pub fn n_items(&self) -> usize {
        self.n_items
    }

    /// Number of tables, L.
    pub fn n_tables(&self) -> usize {
        self.n_tables
    }

    /// Bytes that the tables take, those that wait in overflows included.
    pub fn bytes(&self) -> usize {
        let flat = self.starts.len() + self.ids.len() + self.keys.len();
        4 * flat + self.overflow.iter().map(Overflow::bytes).sum::<usize>()
    }

    /// The keys that the tables hold of an item, one a table; they replace what is in `keys`.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn keys_of(&self, item: u32, keys: &mut Vec<u32>) {
        assert!((item as usize) < self.n_items, "item {item} of {}", self.n_items);
        keys.clear();
        keys.extend(self.keys.iter().skip(item as usize).step_by(self.n_items));
    }

    /// Gives items new keys, row i of `keys` to `items[i]`. Where one differs from what a table holds, the
    /// item is found under both until the table is [sorted](Tables::sort). Gives the number of such
    /// changes. Tables and the order of answers depend on the updates alone, not on threads.
    ///
    /// *Cost*: 1 cache miss an item and table, 2 where the key changed.
    ///
    /// # Panics
    /// If there is no such item, or not as many rows of keys, for as many tables.
    pub fn update(&mut self, items: &[u32], keys: &Keys) -> usize {
        assert!(keys.n_tables() == self.n_tables, "keys for {} tables of {}", keys.n_tables(), self.n_tables);
        assert!(keys.len() == items.len(), "{} items, keys of {}", items.len(), keys.len());
        if let Some(item) = items.iter().find(|&&item| item as usize >= self.n_items) {
            panic!("item {item} of {}", self.n_items);
        }
        if items.is_empty() {
            return 0;
        }
        let tables = self.keys.to_mut().par_chunks_mut(self.n_items).zip(&mut self.overflow).enumerate();
        tables
            .map(|(table, (held, overflow))| {
                let mut n_changed = 0;
                for (&item, key) in items.iter().zip(keys.table(table)) {
                    let held = &mut held[item as usize];
                    if *held != key {
                        *held = key;
                        overflow.insert(key, item);
                        n_changed += 1;
                    }
                }
                n_changed
            })
            .sum()
    }

    /// Sorts some tables by the keys that they hold: every item is then found under its own key
    /// alone.
    ///
    /// *Cost*: about 5 ns an item and table; threads of the pool that the caller is in share tables.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn sort(&mut self, tables: Range<usize>) {
        assert!(tables.start <= tables.end && tables.end <= self.n_tables, "tables {tables:?} of {}", self.n_tables);
        if self.n_items == 0 {
            return;
        }
        let (n, width) = (self.n_items, (1 << self.key_bits) + 1);
        let starts = self.starts.to_mut()[tables.start * width..tables.end * width].par_chunks_mut(width);
        let ids = self.ids.to_mut()[tables.start * n..tables.end * n].par_chunks_mut(n);
        let keys = self.keys[tables.start * n..tables.end * n].par_chunks(n);
        let overflow = self.overflow[tables].par_iter_mut();
        starts.zip(ids).zip(keys).zip(overflow).for_each(|(((starts, ids), keys), overflow)| {
            counting_sort(starts, ids, keys);
            *overflow = Overflow::default();
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

    /// The sorted items of a bucket.
    fn bucket(&self, table: usize, key: u32) -> Range<usize> {
        let at = table * ((1 << self.key_bits) + 1) + key as usize;
        let first = table * self.n_items;
        first + self.starts[at] as usize..first + self.starts[at + 1] as usize
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
    // The last item of a key goes to the end of its place first; then `starts[key + 1]` is where the
    // key begins.
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
