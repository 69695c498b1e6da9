//! Densified winner-take-all: winners of bins that hold few of many features.
//!
//! ```text
//!   permutation 0   feature 4 ▶ bin 2, position 1      bin 0 .   bin 1 .   bin 2: 0.7 at 1, 0.2 at 3 ▶ code 1
//!                   feature 9 ▶ bin 2, position 3      bins 0 and 1 borrow the code of another bin
//! ```
//!
//! Bin and position of a feature come from a seeded function, not from a table: memory does not
//! grow with the features. Each feature that is not 0 is thrown once for each permutation; then
//! every empty bin looks for a filled one.
//!
//! ```
//! use xc_lsh::{Dwta, Family, FamilyParams, FamilyKind, KeyScratch};
//! use xc_sparse::SparseRow;
//!
//! let kind = FamilyKind::dwta_for(8, 6, 50, 3);
//! let dwta = Dwta::new(FamilyParams { kind, width: 1_000_000, n_codes: 6, n_tables: 50, key_bits: 32, seed: 1 })?;
//! let (mut a, mut b, mut scratch) = ([0; 50], [0; 50], KeyScratch::default());
//! dwta.hash_sparse(SparseRow::try_new(&[7, 99, 123_456], &[0.5, 2.0, 1.0])?, &mut a, &mut scratch)?;
//! // The same order of features, other values.
//! dwta.hash_sparse(SparseRow::try_new(&[7, 99, 123_456], &[0.1, 9.0, 0.2])?, &mut b, &mut scratch)?;
//! assert_eq!(a, b);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A dense row is taken as the sparse row of its values that are not 0; of equal values in a bin
//! the lower feature wins.
//!
//! Implements `[chen2018densified]`. *Differs in*: functions of features instead of stored
//! permutations, so that two features may share a position; several permutations over the bins;
//! borrowing as `[shrivastava2017optimal]` does it.

use crate::borrow::Borrow;
use crate::family::{Alternative, FEATURES, Family, HashError, all_zero, check_dense, check_sparse};
use crate::keys::Packing;
use crate::params::{FamilyKind, FamilyParams, FamilyParamsError};
use crate::scratch::KeyScratch;
use xc_dense::DenseRows;
use xc_hash::universal::{self, Tabulation, UniversalHash};
use xc_sparse::SparseRow;

/// Densified winner-take-all: see the [module](self).
///
/// *Cost*: nnz P hashes and an attempt or a few for each empty bin; memory 4 KiB a permutation.
#[derive(Clone, Debug)]
pub struct Dwta {
    params: FamilyParams,
    packing: Packing,
    bin: u32,
    /// From feature to (bin, position), one of each permutation.
    permutations: Vec<Permutation>,
    borrow: Borrow,
}

#[derive(Clone, Debug)]
struct Permutation {
    first_bin: usize,
    n_bins: u32,
    hash: Box<Tabulation>,
}

impl Dwta {
    /// Draws the functions.
    ///
    /// # Errors
    /// See [`FamilyParamsError`].
    ///
    /// # Panics
    /// If the parameters are those of another family.
    pub fn new(params: FamilyParams) -> Result<Self, FamilyParamsError> {
        params.check()?;
        let FamilyKind::Dwta { bin, permutations } = params.kind else {
            panic!("parameters of {}, expected dwta", params.kind.name())
        };
        let n_bins = params.codes() as u64;
        let first = |at: u32| (u64::from(at) * n_bins / u64::from(permutations)) as u32;
        let seed = params.stream(&[FEATURES]);
        let draw = |at: u32| {
            // Its 32-bit values are what is used: the number of buckets does not matter.
            let functions = universal::UniversalParams {
                family: universal::UniversalFamily::Tabulation,
                n_keys: u64::from(u32::MAX),
                n_buckets: 1,
                seed,
            };
            match functions.hash(at) {
                Ok(UniversalHash::Tabulation(hash)) => {
                    Permutation { first_bin: first(at) as usize, n_bins: first(at + 1) - first(at), hash }
                }
                other => panic!("{other:?}, expected tabulation"),
            }
        };
        let permutations = (0..permutations).map(draw).collect();
        Ok(Self { params, packing: params.packing(), bin, permutations, borrow: Borrow::new(&params) })
    }

    /// Bins of a permutation, the fewest of any.
    pub fn bins_of_permutation(&self) -> usize {
        self.params.codes() / self.permutations.len()
    }

    fn keys(&self, row: SparseRow<'_>, keys: &mut [u32], bins: &mut Vec<u64>, rest: Rest<'_>) {
        bins.clear();
        bins.resize(self.params.codes(), 0);
        for Permutation { first_bin, n_bins, hash } in &self.permutations {
            let bins = &mut bins[*first_bin..][..*n_bins as usize];
            for (&feature, &value) in row.indices().iter().zip(row.values()) {
                // The upper part of a product is the bin, the rest of it scaled again the position.
                let scaled = u64::from(hash.value(feature)) * u64::from(*n_bins);
                let position = ((scaled & u64::from(u32::MAX)) * u64::from(self.bin)) >> 32;
                let held = &mut bins[(scaled >> 32) as usize];
                // The value above its position; of equal values the first feature stays. 0 is as
                // good as absent.
                let new = if value == 0.0 { 0 } else { u64::from(ordered(value)) << 32 | position };
                *held = if new >> 32 > *held >> 32 { new } else { *held };
            }
        }
        rest.codes.clear();
        rest.codes.extend(bins.iter().map(|&held| held as u8));
        self.borrow.fill(bins, rest.codes, rest.empty);
        let n_tables = self.params.n_tables as usize;
        self.packing.pack(rest.codes, n_tables, n_tables, keys, rest.wide);
    }
}

/// Buffers behind the bins.
struct Rest<'a> {
    codes: &'a mut Vec<u8>,
    empty: &'a mut Vec<u32>,
    wide: &'a mut Vec<u64>,
}

/// Numbers above 0 in the order of finite values.
#[inline]
fn ordered(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

impl Family for Dwta {
    fn params(&self) -> &FamilyParams {
        &self.params
    }

    fn key_bits(&self) -> u32 {
        self.packing.key_bits()
    }

    fn memory_bytes(&self) -> usize {
        // Tables of tabulation.
        let permutations = self.permutations.len() * (size_of::<Permutation>() + 4096);
        permutations + self.borrow.memory_bytes() + self.packing.memory_bytes()
    }

    fn hash_dense(&self, rows: DenseRows<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<usize, HashError> {
        check_dense(&self.params, rows, keys);
        let mut n_zero = 0;
        for (i, (row, keys)) in rows.iter().zip(keys.chunks_exact_mut(self.params.n_tables as usize)).enumerate() {
            n_zero += usize::from(all_zero(row, i, |at| at)?);
            let KeyScratch { features, feature_values, bins, codes, empty, wide, .. } = &mut *scratch;
            features.clear();
            feature_values.clear();
            for (feature, &value) in row.iter().enumerate().filter(|e| *e.1 != 0.0) {
                features.push(feature as u32);
                feature_values.push(value);
            }
            self.keys(SparseRow::from_checked(features, feature_values), keys, bins, Rest { codes, empty, wide });
        }
        Ok(n_zero)
    }

    fn hash_sparse(&self, row: SparseRow<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<bool, HashError> {
        check_sparse(&self.params, row, keys);
        let zero = all_zero(row.values(), 0, |at| row.indices()[at] as usize)?;
        let KeyScratch { bins, codes, empty, wide, .. } = scratch;
        self.keys(row, keys, bins, Rest { codes, empty, wide });
        Ok(zero)
    }

    fn alternatives(
        &self,
        _: &[f32],
        _: &mut [u64],
        _: &mut [Alternative],
        _: &mut KeyScratch,
    ) -> Result<(), HashError> {
        Err(HashError::NoAlternatives { family: self.params.kind.name() })
    }

    fn key_of(&self, table: usize, codes: u64) -> u32 {
        self.packing.finish(table, codes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_order_of_their_values_and_none_is_0() {
        let values = [f32::MIN, -1.0, -1e-39, -1e-45, 1e-45, 1e-39, 0.5, 1.0, f32::MAX];
        assert!(values.windows(2).all(|w| ordered(w[0]) < ordered(w[1])));
        assert!(ordered(f32::MIN) > 0);
    }
}
