//! Tables as plain arrays, and back: overflows included.
//!
//! The items' present keys and the changes since each table was sorted are all that there is to
//! keep: taking the changes back, the last one first, gives the keys by which a table was sorted.

use super::Tables;
use super::overflow::{Change, Overflow};
use crate::keys::Keys;
use std::borrow::Cow;
use std::collections::HashMap;
use thiserror::Error;

/// What tables are made of again, bit for bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablesState<'a> {
    /// Keys of the items, one row an item.
    pub keys: Cow<'a, [u32]>,
    /// Where the changes of each table end.
    pub ends: Vec<u64>,
    /// Changes since each table was sorted, in the order in which they came: the key before, the
    /// key after, the item.
    pub changes: Vec<u32>,
    /// Items without values other than 0 when the tables were built.
    pub n_zero: u64,
}

/// Why arrays make no tables.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TablesStateError {
    /// A key that no bucket has.
    #[error("item {item}: key {key}, expected one of {key_bits} bits")]
    Key {
        /// The item.
        item: usize,
        /// The key got.
        key: u32,
        /// Bits of keys.
        key_bits: u32,
    },
    /// Ends of changes that fall, or do not end with the last change.
    #[error("{n_changes} changes of {n_tables} tables, and ends that do not divide them")]
    Ends {
        /// Changes got.
        n_changes: usize,
        /// Tables.
        n_tables: usize,
    },
    /// A change that did not lead to the keys.
    #[error("table {table}: change {at} of item {item} to key {key} does not lead to the keys of the items")]
    Change {
        /// The table.
        table: usize,
        /// Number of the change in its table.
        at: usize,
        /// Its item.
        item: u32,
        /// The key after it.
        key: u32,
    },
}

impl Tables {
    /// What has to be kept of the tables. *Cost*: a copy of the changes.
    pub fn state(&self) -> TablesState<'_> {
        let mut state = TablesState {
            keys: Cow::Borrowed(&self.keys),
            ends: Vec::new(),
            changes: Vec::new(),
            n_zero: self.n_zero as u64,
        };
        for overflow in &self.overflow {
            state.changes.extend(overflow.changes().iter().flat_map(|c| [c.before, c.key, c.item]));
            state.ends.push(state.changes.len() as u64 / 3);
        }
        state
    }

    /// The tables that [`Tables::state`] was taken of: every query has the answer that it had, in
    /// the same order. *Cost*: that of sorting all tables.
    ///
    /// # Errors
    /// The arrays are not those of tables with keys of `key_bits` bits.
    ///
    /// # Panics
    /// If there is no table, or not one end each; if keys or changes are no whole number of rows.
    pub fn restore(n_tables: usize, key_bits: u32, state: TablesState<'_>) -> Result<Self, TablesStateError> {
        let TablesState { keys, ends, changes, n_zero } = state;
        assert!(ends.len() == n_tables, "{} ends of {n_tables} tables", ends.len());
        assert!(changes.len().is_multiple_of(3), "{} numbers of changes, three each", changes.len());
        let (overflow, sorted_by) = overflows(n_tables, key_bits, &keys, &ends, &changes)?;
        let mut sorted = keys.to_vec();
        for (table, items) in sorted_by.iter().enumerate() {
            items.iter().for_each(|(&item, &key)| sorted[item as usize * n_tables + table] = key);
        }
        let mut tables = Self::of_keys(key_bits, Keys::from_rows(n_tables, sorted));
        tables.n_zero = n_zero as usize;
        (tables.keys, tables.overflow) = (keys.into_owned().into(), overflow);
        Ok(tables)
    }
}

/// The overflows of tables, and for each table the items that it holds under another key than their
/// own.
///
/// # Errors
/// The arrays are not those of tables.
#[expect(clippy::type_complexity, reason = "two parts of tables")]
pub(super) fn overflows(
    n_tables: usize,
    key_bits: u32,
    keys: &[u32],
    ends: &[u64],
    changes: &[u32],
) -> Result<(Vec<Overflow>, Vec<HashMap<u32, u32>>), TablesStateError> {
    if let Some(at) = keys.iter().position(|&key| u64::from(key) >> key_bits != 0) {
        return Err(TablesStateError::Key { item: at / n_tables, key: keys[at], key_bits });
    }
    let n_changes = changes.len() / 3;
    let rises = ends.windows(2).all(|pair| pair[0] <= pair[1]);
    if !rises || ends.last() != Some(&(n_changes as u64)) {
        return Err(TablesStateError::Ends { n_changes, n_tables });
    }
    let (mut overflow, mut sorted_by) = (vec![Overflow::default(); n_tables], vec![HashMap::new(); n_tables]);
    let mut start = 0;
    for (table, &end) in ends.iter().enumerate() {
        let changes = &changes[3 * start..3 * end as usize];
        for (at, change) in changes.chunks_exact(3).enumerate().rev() {
            let (before, key, item) = (change[0], change[1], change[2]);
            let wrong = TablesStateError::Change { table, at, item, key };
            let own = keys.get(item as usize * n_tables + table).ok_or(wrong)?;
            let held = sorted_by[table].entry(item).or_insert(*own);
            if *held != key || u64::from(before) >> key_bits != 0 {
                return Err(wrong);
            }
            *held = before;
        }
        for change in changes.chunks_exact(3) {
            overflow[table].insert(Change { before: change[0], key: change[1], item: change[2] });
        }
        start = end as usize;
    }
    Ok((overflow, sorted_by))
}
