//! The interface of every family.

use crate::keys::{Keys, Packing};
use crate::params::FamilyParams;
use crate::scratch::KeyScratch;
use rayon::prelude::*;
use std::fmt::Debug;
use thiserror::Error;
use xc_buffer::parallel::in_pool;
use xc_buffer::simd::vectorised;
use xc_dense::DenseRows;
use xc_hash::stream::{self, Purpose};
use xc_sparse::{CsrView, SparseRow};

/// Rows that one task hashes.
const BLOCK: usize = 256;

/// Why rows have no keys.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum HashError {
    /// NaN or an infinity.
    #[error("row {row}, column {column}: {value}, expected a finite number")]
    NotFinite {
        /// The row.
        row: usize,
        /// The column; of a sparse row the feature.
        column: usize,
        /// The value got.
        value: f32,
    },
    /// The family knows no second-best code.
    #[error("the family {family} has no alternative keys; sim-hash and wta have")]
    NoAlternatives {
        /// Its name.
        family: &'static str,
    },
}

impl HashError {
    /// The same of an item, of which row i is `items[i]`.
    pub(crate) fn of_item(self, items: &[u32]) -> Self {
        match self {
            Self::NotFinite { row, column, value } => Self::NotFinite { row: items[row] as usize, column, value },
            other => other,
        }
    }

    /// The same of a row that stands `rows` further down.
    pub(crate) fn moved(self, rows: usize) -> Self {
        match self {
            Self::NotFinite { row, column, value } => Self::NotFinite { row: row + rows, column, value },
            other => other,
        }
    }
}

/// Another value of a code, and the loss of taking it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Alternative {
    /// Bits that change in the concatenated codes.
    pub mask: u64,
    /// Distance of the code from the other value, at least 0: the size of a projection, or the
    /// difference between the winner of a bin and the second.
    pub loss: f32,
}

/// Functions of one family: they map rows to keys of K codes, one key for each of L tables.
///
/// Keys depend only on parameters and rows: not on the instruction set, the threads, or other rows.
/// 0 and -0 are the same value. All rows without a nonzero value have the same keys; they are counted
/// ([`Keys::n_zero`]), since their keys carry no information. NaN and infinities are errors.
///
/// # Panics
/// Every method that takes rows panics if their width is not that of the parameters (a feature of a
/// sparse row is not below it), or if the space for keys does not hold L keys per row.
pub trait Family: Debug + Send + Sync {
    /// Settings and seed.
    fn params(&self) -> &FamilyParams;

    /// Bits of a key: all are below 2 to this power.
    fn key_bits(&self) -> u32;

    /// Bytes that the functions take.
    fn memory_bytes(&self) -> usize;

    /// Probability that one code agrees for two rows of this similarity (see
    /// [`theory`](crate::theory) for what that is).
    fn probability(&self, similarity: f64) -> f64 {
        self.params().kind.probability(similarity)
    }

    /// Writes the keys of a few dense rows, on this thread; returns the number of rows that are all
    /// 0.
    ///
    /// # Errors
    /// [`HashError::NotFinite`], of the first such value.
    fn hash_dense(&self, rows: DenseRows<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<usize, HashError>;

    /// Writes the keys of a sparse row, which equal those of [`Family::hash_dense`] for the same row;
    /// returns true if it has no nonzero value.
    ///
    /// # Errors
    /// [`HashError::NotFinite`], in row 0.
    fn hash_sparse(&self, row: SparseRow<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<bool, HashError>;

    /// For [probes](crate::probe): the concatenated codes of each table, and K alternatives for each
    /// table.
    ///
    /// *Shapes*: `codes` L, `alternatives` L K, those of a table together.
    ///
    /// # Errors
    /// [`HashError::NotFinite`]; [`HashError::NoAlternatives`] where
    /// [`FamilyKind::has_alternatives`](crate::FamilyKind::has_alternatives) is false.
    fn alternatives(
        &self,
        vector: &[f32],
        codes: &mut [u64],
        alternatives: &mut [Alternative],
        scratch: &mut KeyScratch,
    ) -> Result<(), HashError>;

    /// The key of a table whose concatenated codes are `codes`.
    fn key_of(&self, table: usize, codes: u64) -> u32;

    /// Keys of all rows, which replace the content of `keys`. The rows are divided among the threads of
    /// the caller's pool.
    ///
    /// # Errors
    /// As [`Family::hash_dense`]; no keys are left then.
    fn keys_dense(&self, rows: DenseRows<'_>, keys: &mut Keys, scratch: &mut KeyScratch) -> Result<(), HashError> {
        let width = rows.width();
        let hash = |first: usize, keys: &mut [u32], scratch: &mut KeyScratch| {
            let n = keys.len() / self.params().n_tables as usize;
            let block = DenseRows::new(&rows.values()[first * width..][..n * width], width);
            self.hash_dense(block, keys, scratch).map_err(|error| error.moved(first))
        };
        all_blocks(self.params(), rows.len(), keys, scratch, &hash)
    }

    /// [`Family::keys_dense`] for sparse rows.
    ///
    /// # Errors
    /// As [`Family::hash_sparse`]; no keys are left then.
    fn keys_sparse(&self, rows: CsrView<'_>, keys: &mut Keys, scratch: &mut KeyScratch) -> Result<(), HashError> {
        let n_tables = self.params().n_tables as usize;
        let hash = |first: usize, keys: &mut [u32], scratch: &mut KeyScratch| {
            let mut n_zero = 0;
            for (i, keys) in keys.chunks_exact_mut(n_tables).enumerate() {
                let hashed = self.hash_sparse(rows.row(first + i), keys, scratch);
                n_zero += usize::from(hashed.map_err(|error| error.moved(first + i))?);
            }
            Ok(n_zero)
        };
        all_blocks(self.params(), rows.rows(), keys, scratch, &hash)
    }
}

type HashBlock<'a> = dyn Fn(usize, &mut [u32], &mut KeyScratch) -> Result<usize, HashError> + Sync + 'a;

/// Hashes `n` rows block by block: `hash` gets the number of the first row and the room for the
/// keys.
fn all_blocks(
    params: &FamilyParams,
    n: usize,
    keys: &mut Keys,
    scratch: &mut KeyScratch,
    hash: &HashBlock<'_>,
) -> Result<(), HashError> {
    let n_tables = params.n_tables as usize;
    assert_eq!(keys.n_tables(), n_tables, "tables of the keys, and of the family");
    let size = BLOCK * n_tables;
    let room = keys.prepare(n);
    let n_zero = if in_pool() && n > BLOCK {
        let counts: Vec<Result<usize, HashError>> = room
            .par_chunks_mut(size)
            .enumerate()
            .map_init(KeyScratch::default, |scratch, (block, keys)| hash(block * BLOCK, keys, scratch))
            .collect();
        // In order: the first bad value of all is reported.
        counts.into_iter().sum::<Result<usize, HashError>>()
    } else {
        room.chunks_mut(size).enumerate().map(|(block, keys)| hash(block * BLOCK, keys, scratch)).sum()
    };
    match n_zero {
        Ok(n_zero) => keys.count_zero(n_zero),
        Err(_) => keys.clear(),
    }
    n_zero.map(|_| ())
}

impl FamilyParams {
    /// The stream of these functions called `path`.
    pub(crate) fn stream(&self, path: &[u64]) -> u64 {
        stream::name(self.seed, Purpose::Lsh, path)
    }

    /// How codes become keys; the parameters were checked.
    pub(crate) fn packing(&self) -> Packing {
        let name = self.stream(&[FOLDS]);
        Packing::new(self.n_codes as usize, self.kind.code_bits(), self.key_bits, self.n_tables as usize, name)
    }
}

/// First numbers of the paths of streams.
const FOLDS: u64 = 0;
pub(crate) const PROJECTIONS: u64 = 1;
pub(crate) const SIGNS: u64 = 2;
pub(crate) const SUBSETS: u64 = 3;
pub(crate) const WINNERS: u64 = 4;
pub(crate) const FEATURES: u64 = 5;
pub(crate) const BORROWED: u64 = 6;
pub(crate) const ELEMENTS: u64 = 7;
pub(crate) const SAMPLED: u64 = 8;

/// Whether all values are 0.
///
/// # Errors
/// The first value that is not finite, in row `row` at the column that `column` gives for its
/// place.
pub(crate) fn all_zero(values: &[f32], row: usize, column: impl Fn(usize) -> usize) -> Result<bool, HashError> {
    const EXPONENT: u32 = 0x7f80_0000;
    let (some, wild) = vectorised(|| {
        values.iter().fold((0, false), |(some, wild), v| {
            let bits = v.to_bits() << 1;
            (some | bits, wild | (bits >> 1 >= EXPONENT))
        })
    });
    match values.iter().position(|v| wild && !v.is_finite()) {
        Some(at) => Err(HashError::NotFinite { row, column: column(at), value: values[at] }),
        None => Ok(some == 0),
    }
}

/// The parts of a contract that every family checks.
pub(crate) fn check_dense(params: &FamilyParams, rows: DenseRows<'_>, keys: &[u32]) {
    assert_eq!(rows.width(), params.width, "width of the rows, and of the family");
    let expected = rows.len().checked_mul(params.n_tables as usize);
    assert_eq!(Some(keys.len()), expected, "keys, and rows times tables");
}

/// [`check_dense`] for a sparse row.
pub(crate) fn check_sparse(params: &FamilyParams, row: SparseRow<'_>, keys: &[u32]) {
    if let Some(&last) = row.indices().last() {
        assert!((last as usize) < params.width, "feature {last}, in rows of {}", params.width);
    }
    assert_eq!(row.indices().len(), row.values().len(), "features, and values");
    assert_eq!(keys.len(), params.n_tables as usize, "keys, and tables");
}

/// [`check_dense`] for alternatives.
pub(crate) fn check_alternatives(params: &FamilyParams, vector: &[f32], codes: &[u64], alternatives: &[Alternative]) {
    assert_eq!(vector.len(), params.width, "width of the vector, and of the family");
    assert_eq!(codes.len(), params.n_tables as usize, "joined codes, and tables");
    assert_eq!(alternatives.len(), params.codes(), "alternatives, and codes");
}

/// Writes a sparse row as a vector.
pub(crate) fn scatter(row: SparseRow<'_>, width: usize, values: &mut Vec<f32>) {
    values.clear();
    values.resize(width, 0.0);
    for (feature, value) in row.iter() {
        values[feature as usize] = value;
    }
}
