//! Keys of many rows, and how codes become keys.

use xc_buffer::simd::{Loop, vectorised_loop};
use xc_hash::universal::{self, BucketHash, UniversalHash};

/// Keys of rows: one key for each table.
///
/// *Shapes*: `len()` rows of `n_tables()` keys, each row contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    n_tables: usize,
    keys: Vec<u32>,
    n_zero: usize,
}

impl Keys {
    /// No rows yet.
    ///
    /// # Panics
    /// If there is no table.
    pub fn new(n_tables: usize) -> Self {
        assert!(n_tables > 0, "keys for 0 tables");
        Self { n_tables, keys: Vec::new(), n_zero: 0 }
    }

    /// Rows whose keys were computed before: one row after another.
    ///
    /// # Panics
    /// If there is no table, or the last row is not whole.
    pub fn from_rows(n_tables: usize, keys: Vec<u32>) -> Self {
        assert!(n_tables > 0 && keys.len().is_multiple_of(n_tables), "{} keys for {n_tables} tables", keys.len());
        Self { n_tables, keys, n_zero: 0 }
    }

    /// Number of tables: keys of a row.
    pub fn n_tables(&self) -> usize {
        self.n_tables
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.keys.len() / self.n_tables
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys of row `i`, one a table.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.keys[i * self.n_tables..][..self.n_tables]
    }

    /// The keys of one table, one a row.
    ///
    /// # Panics
    /// If `table >= n_tables()`.
    pub fn table(&self, table: usize) -> impl ExactSizeIterator<Item = u32> {
        assert!(table < self.n_tables, "table {table} of {}", self.n_tables);
        self.keys.chunks_exact(self.n_tables).map(move |row| row[table])
    }

    /// All keys, row after row.
    pub fn as_slice(&self) -> &[u32] {
        &self.keys
    }

    /// Number of rows without a nonzero value: their keys carry no information.
    pub fn n_zero(&self) -> usize {
        self.n_zero
    }

    pub(crate) fn into_inner(self) -> Vec<u32> {
        self.keys
    }

    /// Room for `n` rows, whose keys are to be written.
    pub(crate) fn prepare(&mut self, n: usize) -> &mut [u32] {
        self.n_zero = 0;
        self.keys.resize(n * self.n_tables, 0);
        &mut self.keys
    }

    /// Forgets all rows.
    pub(crate) fn clear(&mut self) {
        self.n_zero = 0;
        self.keys.clear();
    }

    pub(crate) fn count_zero(&mut self, n: usize) {
        self.n_zero += n;
    }
}

/// From the K codes of a table to its key: the codes side by side, the first one in the highest
/// bits; where those are more bits than a key has, a function drawn for the table maps them to
/// fewer.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    n_codes: usize,
    code_bits: u32,
    key_bits: u32,
    /// Functions of the lower and the upper 32 bits of each table's codes; empty when codes fit.
    folds: Vec<[UniversalHash; 2]>,
}

impl Packing {
    /// # Panics
    /// If a code has no bit or a table more than 64, or a key has no bit or more than 32.
    pub(crate) fn new(n_codes: usize, code_bits: u32, key_bits: u32, n_tables: usize, name: u64) -> Self {
        let wide = n_codes as u32 * code_bits;
        assert!((1..=64).contains(&wide) && (1..=32).contains(&key_bits), "{n_codes} codes of {code_bits} bits");
        if wide <= key_bits {
            return Self { n_codes, code_bits, key_bits: wide, folds: Vec::new() };
        }
        // Numbers of buckets are 32-bit numbers, so there are no functions to 32 bits.
        let key_bits = key_bits.min(31);
        let params = universal::UniversalParams {
            family: universal::UniversalFamily::MultiplyShift,
            n_keys: u64::from(u32::MAX),
            n_buckets: 1 << key_bits,
            seed: name,
        };
        // One bucket or more, and keys of 32 bits: such functions always exist.
        let draw = |number| params.hash(number).unwrap_or_else(|error| panic!("{error}"));
        let folds = (0..n_tables as u32).map(|table| [draw(2 * table), draw(2 * table + 1)]).collect();
        Self { n_codes, code_bits, key_bits, folds }
    }

    /// Bits of a key.
    pub(crate) fn key_bits(&self) -> u32 {
        self.key_bits
    }

    /// Bits of a code.
    pub(crate) fn code_bits(&self) -> u32 {
        self.code_bits
    }

    /// Whether codes do not fit into a key, so that a function maps them to it.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_folded(&self) -> bool {
        !self.folds.is_empty()
    }

    /// Where the code of number `code` begins.
    pub(crate) fn shift(&self, code: usize) -> u32 {
        (self.n_codes - 1 - code) as u32 * self.code_bits
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(self.folds.as_slice())
    }

    /// The key of `table` for its codes side by side.
    pub(crate) fn finish(&self, table: usize, codes: u64) -> u32 {
        match self.folds.get(table) {
            None => codes as u32,
            // The difference of two sums of independent functions: 2-universal over 64 bits.
            Some([low, high]) => low.bucket(codes as u32) ^ high.bucket((codes >> 32) as u32),
        }
    }

    /// Keys of all tables.
    ///
    /// *Shapes*: `codes` holds, for each group of `group` tables, K lists of `stride >= group`
    /// codes, one list for each place of a code in a key.
    pub(crate) fn pack(&self, codes: &[u8], stride: usize, group: usize, keys: &mut [u32], wide: &mut Vec<u64>) {
        let (bits, n_codes) = (self.code_bits, self.n_codes);
        if self.folds.is_empty() {
            vectorised_loop(Join { codes, stride, group, bits, n_codes, keys });
        } else {
            wide.clear();
            wide.resize(keys.len(), 0);
            vectorised_loop(Join { codes, stride, group, bits, n_codes, keys: wide });
            for (table, (key, &codes)) in keys.iter_mut().zip(wide.iter()).enumerate() {
                *key = self.finish(table, codes);
            }
        }
    }

    /// The codes of all tables side by side, without a function over them: see [`Packing::pack`].
    pub(crate) fn join(&self, codes: &[u8], stride: usize, group: usize, joined: &mut [u64]) {
        vectorised_loop(Join { codes, stride, group, bits: self.code_bits, n_codes: self.n_codes, keys: joined });
    }
}

/// A number that codes are joined in.
trait Word: Copy {
    const ZERO: Self;
    fn push(self, bits: u32, code: u8) -> Self;
}

impl Word for u32 {
    const ZERO: Self = 0;
    #[inline(always)]
    fn push(self, bits: u32, code: u8) -> Self {
        self << bits | Self::from(code)
    }
}

impl Word for u64 {
    const ZERO: Self = 0;
    #[inline(always)]
    fn push(self, bits: u32, code: u8) -> Self {
        self << bits | Self::from(code)
    }
}

struct Join<'a, W> {
    codes: &'a [u8],
    stride: usize,
    group: usize,
    bits: u32,
    n_codes: usize,
    keys: &'a mut [W],
}

impl<W: Word> Loop for Join<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let groups = self.codes.chunks_exact(self.n_codes * self.stride);
        for (keys, codes) in self.keys.chunks_mut(self.group).zip(groups) {
            keys.fill(W::ZERO);
            for codes in codes.chunks_exact(self.stride) {
                for (key, &code) in keys.iter_mut().zip(codes) {
                    *key = key.push(self.bits, code);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_side_by_side_with_exact_widths() {
        // Two groups of two tables, three codes each, lists of four of which two count.
        let codes = [7, 0, 9, 9, 1, 5, 9, 9, 2, 6, 9, 9, 0, 7, 9, 9, 0, 7, 9, 9, 1, 7, 9, 9];
        let packing = Packing::new(3, 3, 32, 4, 1);
        let (mut keys, mut joined) = ([0; 4], [0; 4]);
        packing.pack(&codes, 4, 2, &mut keys, &mut Vec::new());
        assert_eq!(keys, [0o712, 0o056, 0o001, 0o777]);
        assert_eq!((packing.key_bits(), packing.shift(0), packing.shift(2)), (9, 6, 0));
        packing.join(&codes, 4, 2, &mut joined);
        assert_eq!(joined, [0o712, 0o056, 0o001, 0o777]);
    }

    #[test]
    fn codes_that_do_not_fit_are_mapped_to_keys_that_do() {
        for (n_codes, key_bits) in [(24, 20), (64, 32), (33, 32), (5, 4)] {
            let packing = Packing::new(n_codes, 1, key_bits, 2, 7);
            assert_eq!(packing.key_bits(), key_bits.min(31));
            let mut seen = std::collections::BTreeSet::new();
            for i in 0..64u64 {
                let codes = if n_codes == 64 { 1 << i } else { i };
                let key = packing.finish(1, codes);
                assert!(key < 1 << packing.key_bits());
                seen.insert(key);
            }
            assert!(seen.len() > 8, "{n_codes} codes in {key_bits} bits: {} keys of 64", seen.len());
            assert_ne!(packing.finish(0, 5), packing.finish(1, 5), "tables share a function");
        }
    }

    #[test]
    fn a_table_s_keys_are_a_column() {
        let mut keys = Keys::new(2);
        keys.prepare(3).copy_from_slice(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(keys.table(1).collect::<Vec<_>>(), [2, 4, 6]);
        assert_eq!((keys.len(), keys.row(2)), (3, &[5, 6][..]));
    }
}
