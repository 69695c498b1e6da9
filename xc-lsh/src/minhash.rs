//! MinHash: minima of random orders of a set.
//!
//! Two sets have the same minimum with the probability of their Jaccard similarity: the common
//! elements' share of all. A code keeps a few bits of a minimum ([`FamilyKind::MinHash`]).
//!
//! ```text
//!   classic           one order for each code, the least element of the set in each
//!   one permutation   elements ▶ 64 bits: bin, value      least value in each of K L bins; empty bins borrow
//! ```
//!
//! A row is the set of its features that are not 0; other sets of 64-bit elements, such as hashed
//! shingles of a text, go by [`MinHash::hash_set`].
//!
//! ```
//! use xc_hash::murmur3_32;
//! use xc_lsh::{Family, FamilyParams, FamilyKind, MinHash, Minima, KeyScratch};
//!
//! let kind = FamilyKind::MinHash { minima: Minima::OnePermutation, code_bits: 4 };
//! let family = MinHash::new(FamilyParams { kind, width: 1 << 20, n_codes: 2, n_tables: 100, key_bits: 32, seed: 1 })?;
//! let shingles = |text: &str| text.as_bytes().windows(5).map(|s| u64::from(murmur3_32(s, 0))).collect::<Vec<_>>();
//! let mut scratch = KeyScratch::default();
//! let mut keys = |text: &str| {
//!     let mut keys = vec![0; 100];
//!     family.hash_set(&shingles(text), &mut keys, &mut scratch);
//!     keys
//! };
//! let shared = |a: &[u32], b: &[u32]| a.iter().zip(b).filter(|(a, b)| a == b).count();
//! let text = keys("a regulation on the common organisation of the markets in fishery products");
//! let close = keys("the regulation on the common organisation of the market in fishery products");
//! let other = keys("rules that govern how trains are to be inspected at the border of a state");
//! assert!(shared(&text, &close) > 40 && shared(&text, &other) < 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Implements `[broder1997resemblance]`, `[li2012onepermutation]`, `[li2010bbit]`. *Differs in*:
//! orders are those of SplitMix64 of the element and a name, and the largest number stands for the
//! minimum.

use crate::borrow::Borrow;
use crate::family::{Alternative, ELEMENTS, Family, HashError, all_zero, check_dense, check_sparse};
use crate::keys::Packing;
use crate::params::{FamilyKind, FamilyParams, FamilyParamsError, Minima};
use crate::scratch::KeyScratch;
use xc_buffer::simd::{Loop, vectorised_loop};
use xc_dense::DenseRows;
use xc_hash::stream::mix;
use xc_sparse::SparseRow;

/// MinHash: see the [module](self).
///
/// *Cost*: with one permutation an operation for each element, and some for each of K L bins that
/// is empty; classic K L operations an element.
#[derive(Clone, Debug)]
pub struct MinHash {
    params: FamilyParams,
    packing: Packing,
    code_bits: u32,
    functions: Functions,
}

#[derive(Clone, Debug)]
enum Functions {
    /// A name for each code.
    Classic(Vec<u64>),
    OnePermutation {
        name: u64,
        borrow: Borrow,
    },
}

impl MinHash {
    /// Draws the functions.
    ///
    /// # Errors
    /// See [`FamilyParamsError`].
    ///
    /// # Panics
    /// If the parameters are those of another family.
    pub fn new(params: FamilyParams) -> Result<Self, FamilyParamsError> {
        params.check()?;
        let FamilyKind::MinHash { minima, code_bits } = params.kind else {
            panic!("parameters of {}, expected min-hash", params.kind.name())
        };
        let name = params.stream(&[ELEMENTS]);
        let functions = match minima {
            Minima::Classic => Functions::Classic((0..params.codes() as u64).map(|at| mix(name, at)).collect()),
            Minima::OnePermutation => Functions::OnePermutation { name, borrow: Borrow::new(&params) },
        };
        Ok(Self { params, packing: params.packing(), code_bits, functions })
    }

    /// Writes the keys of a set; elements that stand there twice count once. True if the set is
    /// empty.
    ///
    /// # Panics
    /// If there is not one key a table.
    pub fn hash_set(&self, elements: &[u64], keys: &mut [u32], scratch: &mut KeyScratch) -> bool {
        let n_tables = self.params.n_tables as usize;
        assert_eq!(keys.len(), n_tables, "keys, and tables");
        let KeyScratch { bins, codes, empty, wide, .. } = scratch;
        let code = |held: u64| held as u8 & (u8::MAX >> (8 - self.code_bits));
        bins.clear();
        bins.resize(self.params.codes(), 0);
        codes.clear();
        match &self.functions {
            Functions::Classic(names) => {
                vectorised_loop(Classic { names, elements, bins });
                codes.extend(bins.iter().map(|&held| code(held)));
            }
            Functions::OnePermutation { name, borrow } => {
                let n_bins = bins.len() as u64;
                for &element in elements {
                    let drawn = mix(*name, element);
                    let held = &mut bins[(((drawn >> 32) * n_bins) >> 32) as usize];
                    // Above what an empty bin holds.
                    *held = (*held).max(drawn & u64::from(u32::MAX) | 1 << 32);
                }
                codes.extend(bins.iter().map(|&held| code(held)));
                borrow.fill(bins, codes, empty);
            }
        }
        self.packing.pack(codes, n_tables, n_tables, keys, wide);
        elements.is_empty()
    }

    /// The keys of features.
    fn hash_features(&self, features: impl Iterator<Item = u32>, keys: &mut [u32], scratch: &mut KeyScratch) {
        let mut elements = std::mem::take(&mut scratch.elements);
        elements.clear();
        elements.extend(features.map(u64::from));
        self.hash_set(&elements, keys, scratch);
        scratch.elements = elements;
    }
}

/// The largest number of a set in each of many orders; 0 of an empty set.
struct Classic<'a> {
    names: &'a [u64],
    elements: &'a [u64],
    bins: &'a mut [u64],
}

impl Loop for Classic<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (held, &name) in self.bins.iter_mut().zip(self.names) {
            *held = self.elements.iter().fold(0, |held, &element| held.max(mix(name, element)));
        }
    }
}

impl Family for MinHash {
    fn params(&self) -> &FamilyParams {
        &self.params
    }

    fn key_bits(&self) -> u32 {
        self.packing.key_bits()
    }

    fn memory_bytes(&self) -> usize {
        let functions = match &self.functions {
            Functions::Classic(names) => size_of_val(names.as_slice()),
            Functions::OnePermutation { borrow, .. } => borrow.memory_bytes(),
        };
        functions + self.packing.memory_bytes()
    }

    fn hash_dense(&self, rows: DenseRows<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<usize, HashError> {
        check_dense(&self.params, rows, keys);
        let mut n_zero = 0;
        for (i, (row, keys)) in rows.iter().zip(keys.chunks_exact_mut(self.params.n_tables as usize)).enumerate() {
            n_zero += usize::from(all_zero(row, i, |at| at)?);
            let features = (0..).zip(row).filter(|(_, v)| **v != 0.0).map(|(feature, _)| feature);
            self.hash_features(features, keys, scratch);
        }
        Ok(n_zero)
    }

    fn hash_sparse(&self, row: SparseRow<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<bool, HashError> {
        check_sparse(&self.params, row, keys);
        let zero = all_zero(row.values(), 0, |at| row.indices()[at] as usize)?;
        self.hash_features(row.iter().filter(|e| e.1 != 0.0).map(|e| e.0), keys, scratch);
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
