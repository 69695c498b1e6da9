//! Tables in a folder: the arrays are mapped back as they are.

use super::Tables;
use super::state::{TablesStateError, overflows};
use crate::params::{FamilyParams, FamilyParamsError};
use rayon::prelude::*;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_buffer::Buffer;
use xc_store::{ArrayRef, Container, ContainerWriter, OpenError, OpenMode, WriteError, to_parameter};

/// The kind that a folder of tables states.
pub const KIND: &str = "lsh-tables";

/// Why tables do not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenTablesError {
    /// The folder, a parameter or an array is missing or of another form.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The parameters name no functions.
    #[error("{}: functions", path.display())]
    Functions {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: FamilyParamsError,
    },
    /// Numbers that no tables have.
    #[error("{}: {n_items} items under keys of {key_bits} bits, expected fewer than 2^32 - 1 and at most 28", path.display())]
    Sizes {
        /// The folder.
        path: PathBuf,
        /// Items.
        n_items: usize,
        /// Bits of a key.
        key_bits: u32,
    },
    /// Keys and changes do not belong together.
    #[error("{}: keys", path.display())]
    Keys {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: TablesStateError,
    },
    /// A bucket does not hold the items of its key.
    #[error("{}: table {table}: the bucket of key {key} does not hold its items, ascending and each once", path.display())]
    Bucket {
        /// The folder.
        path: PathBuf,
        /// The table.
        table: usize,
        /// The key.
        key: u32,
    },
}

impl Tables {
    /// Saves the tables, beside the parameters of the functions that made their keys.
    ///
    /// # Errors
    /// The folder cannot be written.
    ///
    /// # Panics
    /// If the parameters are those of other tables.
    pub fn save(&self, folder: impl AsRef<Path>, params: &FamilyParams) -> Result<(), WriteError> {
        let folder = folder.as_ref();
        assert_eq!(params.n_tables as usize, self.n_tables, "tables of the functions, and of the items");
        let mut writer = ContainerWriter::create(folder, KIND)?;
        writer.set_parameter("functions", to_parameter(params));
        writer.set_parameter("n_items", self.n_items);
        writer.set_parameter("key_bits", self.key_bits);
        writer.set_parameter("n_zero", self.n_zero);
        let state = self.state();
        let buckets = (1 << self.key_bits) + 1;
        writer.add("starts", ArrayRef::new(&self.starts[..], &[self.n_tables, buckets]))?;
        writer.add("ids", ArrayRef::new(&self.ids[..], &[self.n_tables, self.n_items]))?;
        writer.add("keys", ArrayRef::new(&self.keys[..], &[self.n_items, self.n_tables]))?;
        writer.add("ends", ArrayRef::new(&state.ends, &[self.n_tables]))?;
        writer.add("changes", ArrayRef::new(&state.changes, &[state.changes.len() / 3, 3]))?;
        writer.finish()
    }

    /// Opens what [`Tables::save`] wrote: the tables, and the parameters of their functions. Arrays
    /// stay in the file until they are to change.
    ///
    /// *Cost*: a pass over all arrays, which proves that every bucket holds the items of its key;
    /// nothing that was opened panics later.
    ///
    /// # Errors
    /// See [`OpenTablesError`].
    pub fn open(folder: impl AsRef<Path>, mode: OpenMode) -> Result<(Self, FamilyParams), OpenTablesError> {
        let folder = folder.as_ref();
        let container = Container::open(folder, mode)?;
        container.expect_kind(KIND)?;
        let path = || folder.to_owned();
        let params: FamilyParams = container.parameter("functions")?;
        params.check().map_err(|source| OpenTablesError::Functions { path: path(), source })?;
        let (n_items, key_bits): (usize, u32) = (container.parameter("n_items")?, container.parameter("key_bits")?);
        if key_bits > 28 || n_items >= u32::MAX as usize {
            return Err(OpenTablesError::Sizes { path: path(), n_items, key_bits });
        }
        let n_tables = params.n_tables as usize;
        let keys: Buffer<u32> = container.array_shaped("keys", &[n_items, n_tables])?;
        let ends: Buffer<u64> = container.array_shaped("ends", &[n_tables])?;
        let n_changes = ends.last().copied().unwrap_or(0) as usize;
        let changes: Buffer<u32> = container.array_shaped("changes", &[n_changes, 3])?;
        let (overflow, sorted_by) = overflows(n_tables, key_bits, &keys, &ends, &changes)
            .map_err(|source| OpenTablesError::Keys { path: path(), source })?;
        let tables = Self {
            n_items,
            n_tables,
            key_bits,
            starts: container.array_shaped("starts", &[n_tables, (1 << key_bits) + 1])?,
            ids: container.array_shaped("ids", &[n_tables, n_items])?,
            keys,
            overflow,
            n_zero: container.parameter("n_zero")?,
        };
        let bad = (0..n_tables)
            .into_par_iter()
            .find_map_first(|table| tables.bad_bucket(table, &sorted_by[table]).map(|key| (table, key)));
        match bad {
            Some((table, key)) => Err(OpenTablesError::Bucket { path: path(), table, key }),
            None => Ok((tables, params)),
        }
    }

    /// The first bucket of a table that does not hold what it should. Starts that ascend from 0 to
    /// N, and items that ascend in each bucket and have its key, are all items, each once.
    fn bad_bucket(&self, table: usize, sorted_by: &HashMap<u32, u32>) -> Option<u32> {
        let width = (1 << self.key_bits) + 1;
        let starts = &self.starts[table * width..][..width];
        let ids = &self.ids[table * self.n_items..][..self.n_items];
        let key_of = |item: u32| {
            let held = || self.keys[item as usize * self.n_tables + table];
            sorted_by.get(&item).copied().unwrap_or_else(held)
        };
        if starts[0] != 0 {
            return Some(0);
        }
        for (key, pair) in (0u32..).zip(starts.windows(2)) {
            let is_last = key as usize + 2 == width;
            let holds = |bucket: &[u32]| {
                bucket.windows(2).all(|pair| pair[0] < pair[1])
                    && bucket.iter().all(|&item| (item as usize) < self.n_items && key_of(item) == key)
            };
            let bucket = ids.get(pair[0] as usize..pair[1] as usize);
            if !bucket.is_some_and(holds) || is_last && pair[1] as usize != self.n_items {
                return Some(key);
            }
        }
        None
    }
}
