//! SimHash: a code is the side of a random hyperplane that a vector is on.
//!
//! ```text
//!   vector ──▶ projections: a product with a matrix of K L columns, or signs and transforms ──▶ above 0: 1, else 0
//! ```
//!
//! Two vectors at an angle t differ in a bit with probability t / pi. With normal projections that
//! is exact; with sparse ones and with Hadamard transforms nearly so for vectors that are not made
//! of a few coordinates.
//!
//! ```
//! use xc_lsh::{Family, FamilyParams, Keys, FamilyKind, Projection, KeyScratch, SimHash};
//!
//! let kind = FamilyKind::SimHash { projection: Projection::Gaussian };
//! let family = SimHash::new(FamilyParams { kind, width: 4, n_codes: 9, n_tables: 50, key_bits: 32, seed: 1 })?;
//! // A vector, a close one, and its opposite.
//! let rows = [1.0, 2.0, 3.0, 4.0, 1.1, 2.0, 3.0, 3.9, -1.0, -2.0, -3.0, -4.0];
//! let mut keys = Keys::new(50);
//! family.keys_dense(xc_dense::DenseRows::new(&rows, 4), &mut keys, &mut KeyScratch::default())?;
//! let shared = |a: usize, b: usize| keys.row(a).iter().zip(keys.row(b)).filter(|(a, b)| a == b).count();
//! assert!(shared(0, 1) > 30);
//! assert_eq!(shared(0, 2), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The bits of projections do not depend on the instruction set, nor on how many rows are hashed
//! together: every sum is one chain in the order of the coordinates. A sum that is not a number, of
//! values near the largest ones, counts as 0.
//!
//! Implements `[charikar2002similarity]`; `[achlioptas2003database]`, `[andoni2015practical]`.
//! *Differs in*: bits of one Hadamard block of 128 share their signs and are not independent; the
//! codes of a table come from different blocks where there are as many tables as bits of a block.

mod hadamard;
mod normal;

use crate::family::{
    Alternative, Family, HashError, PROJECTIONS, all_zero, check_alternatives, check_dense, check_sparse, scatter,
};
use crate::keys::Packing;
use crate::params::{FamilyKind, FamilyParams, FamilyParamsError, Projection};
use crate::product::{Combination, combine};
use crate::scratch::KeyScratch;
use hadamard::Hadamard;
use xc_buffer::simd::vectorised;
use xc_dense::DenseRows;
use xc_dense::{MatMut, MatRef, MatmulPrecision, Start, product};
use xc_hash::stream::{Stream, mix};
use xc_sparse::SparseRow;

/// Signs of random projections: see the [module](self).
///
/// *Cost*: with a matrix, K L products a value that is not 0, and 4 K L bytes for each value of a
/// vector; with Hadamard transforms 3 w log2 w additions for every 128 bits, w the width rounded up
/// to a power of two.
#[derive(Clone, Debug)]
pub struct SimHash {
    params: FamilyParams,
    packing: Packing,
    functions: Functions,
}

/// Columns stand code by code: bit k of table t is column k L + t.
#[derive(Clone, Debug)]
enum Functions {
    /// `width` rows of K L values.
    Matrix(Vec<f32>),
    Hadamard(Hadamard),
}

impl SimHash {
    /// Draws the projections.
    ///
    /// # Errors
    /// See [`FamilyParamsError`].
    ///
    /// # Panics
    /// If the parameters are those of another family.
    pub fn new(params: FamilyParams) -> Result<Self, FamilyParamsError> {
        params.check()?;
        let FamilyKind::SimHash { projection } = params.kind else {
            panic!("parameters of {}, expected sim-hash", params.kind.name())
        };
        let functions = match projection {
            Projection::Hadamard => Functions::Hadamard(Hadamard::new(&params)),
            Projection::Gaussian => Functions::Matrix(draw(&params, normal::fill_normal)),
            Projection::Sparse => Functions::Matrix(draw(&params, fill_sparse)),
        };
        Ok(Self { params, packing: params.packing(), functions })
    }

    /// The projections as `width` rows of K L values, where they are a matrix; and how codes become keys.
    #[cfg(feature = "cuda")]
    pub(crate) fn matrix(&self) -> Option<(&[f32], &Packing)> {
        match &self.functions {
            Functions::Matrix(matrix) => Some((matrix, &self.packing)),
            Functions::Hadamard(_) => None,
        }
    }

    /// From projections to codes: a byte each.
    fn codes(projections: &[f32], codes: &mut Vec<u8>) {
        codes.resize(projections.len(), 0);
        vectorised(|| codes.iter_mut().zip(projections).for_each(|(code, &p)| *code = u8::from(p > 0.0)));
    }

    fn pack(&self, projections: &[f32], keys: &mut [u32], codes: &mut Vec<u8>, wide: &mut Vec<u64>) {
        Self::codes(projections, codes);
        let n_tables = self.params.n_tables as usize;
        self.packing.pack(codes, n_tables, n_tables, keys, wide);
    }

    /// Projections of rows, into `scratch.values`.
    fn project(&self, rows: DenseRows<'_>, scratch: &mut KeyScratch) {
        let n_bits = self.params.codes();
        match &self.functions {
            Functions::Matrix(matrix) if rows.len() == 1 => {
                scratch.values.resize(n_bits, 0.0);
                combine(Combination { matrix, rows: None, factors: rows.values() }, &mut scratch.values);
            }
            Functions::Matrix(matrix) => {
                scratch.values.resize(rows.len() * n_bits, 0.0);
                let a = MatRef::new(rows.values(), rows.len(), rows.width());
                let b = MatRef::new(matrix, rows.width(), n_bits);
                let c = MatMut::new(&mut scratch.values, rows.len(), n_bits);
                product(c, a, b, Start::Zero, MatmulPrecision::F32, &mut scratch.product);
            }
            Functions::Hadamard(hadamard) => {
                hadamard.project(rows.row(0), &mut scratch.lanes, &mut scratch.values);
            }
        }
    }

    /// Rows that are projected together.
    fn together(&self) -> usize {
        match self.functions {
            Functions::Matrix(_) => usize::MAX,
            Functions::Hadamard(_) => 1,
        }
    }
}

/// A row of columns for each value of a vector, from a stream of its own.
fn draw(params: &FamilyParams, fill: impl Fn(&mut Stream, &mut [f32])) -> Vec<f32> {
    let n_bits = params.codes();
    let name = params.stream(&[PROJECTIONS]);
    let mut matrix = vec![0.0; params.width * n_bits];
    for (at, row) in matrix.chunks_exact_mut(n_bits).enumerate() {
        fill(&mut Stream::new(mix(name, at as u64)), row);
    }
    matrix
}

/// +1 and -1 with probability 1/6 each.
fn fill_sparse(stream: &mut Stream, out: &mut [f32]) {
    for value in out {
        *value = match stream.below(6) {
            0 => 1.0,
            1 => -1.0,
            _ => 0.0,
        };
    }
}

impl Family for SimHash {
    fn params(&self) -> &FamilyParams {
        &self.params
    }

    fn key_bits(&self) -> u32 {
        self.packing.key_bits()
    }

    fn memory_bytes(&self) -> usize {
        let functions = match &self.functions {
            Functions::Matrix(matrix) => size_of_val(matrix.as_slice()),
            Functions::Hadamard(hadamard) => hadamard.memory_bytes(),
        };
        functions + self.packing.memory_bytes()
    }

    fn hash_dense(&self, rows: DenseRows<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<usize, HashError> {
        check_dense(&self.params, rows, keys);
        let mut n_zero = 0;
        for (i, row) in rows.iter().enumerate() {
            n_zero += usize::from(all_zero(row, i, |at| at)?);
        }
        let (width, n_tables) = (rows.width(), self.params.n_tables as usize);
        let together = self.together().min(rows.len()).max(1);
        for (rows, keys) in rows.values().chunks(together * width).zip(keys.chunks_mut(together * n_tables)) {
            self.project(DenseRows::new(rows, width), scratch);
            let KeyScratch { values, codes, wide, .. } = scratch;
            for (projections, keys) in values.chunks_exact(self.params.codes()).zip(keys.chunks_exact_mut(n_tables)) {
                self.pack(projections, keys, codes, wide);
            }
        }
        Ok(n_zero)
    }

    fn hash_sparse(&self, row: SparseRow<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<bool, HashError> {
        check_sparse(&self.params, row, keys);
        let zero = all_zero(row.values(), 0, |at| row.indices()[at] as usize)?;
        let n_bits = self.params.codes();
        let KeyScratch { values, feature_values, lanes, codes, wide, .. } = scratch;
        match &self.functions {
            Functions::Matrix(matrix) => {
                values.resize(n_bits, 0.0);
                combine(Combination { matrix, rows: Some(row.indices()), factors: row.values() }, values);
            }
            Functions::Hadamard(hadamard) => {
                scatter(row, self.params.width, feature_values);
                hadamard.project(feature_values, lanes, values);
            }
        }
        self.pack(values, keys, codes, wide);
        Ok(zero)
    }

    /// The other side of each hyperplane, and how far away it is.
    fn alternatives(
        &self,
        vector: &[f32],
        codes: &mut [u64],
        alternatives: &mut [Alternative],
        scratch: &mut KeyScratch,
    ) -> Result<(), HashError> {
        check_alternatives(&self.params, vector, codes, alternatives);
        all_zero(vector, 0, |at| at)?;
        self.project(DenseRows::new(vector, vector.len()), scratch);
        let (n_tables, n_codes) = (codes.len(), self.params.n_codes as usize);
        Self::codes(&scratch.values, &mut scratch.codes);
        self.packing.join(&scratch.codes, n_tables, n_tables, codes);
        for (at, alternative) in alternatives.iter_mut().enumerate() {
            let (table, code) = (at / n_codes, at % n_codes);
            let projection = scratch.values[code * n_tables + table];
            // What is not a number says nothing of its side: it is the last to be doubted.
            let loss = if projection.is_nan() { f32::MAX } else { projection.abs() };
            *alternative = Alternative { mask: 1 << self.packing.shift(code), loss };
        }
        Ok(())
    }

    fn key_of(&self, table: usize, codes: u64) -> u32 {
        self.packing.finish(table, codes)
    }
}
