//! Walking equal steps modulo a prime: which bucket each falls into, and what stands there.
//!
//! The scalar file defines every operation; the others are tested against it bit for bit.

mod scalar;

use crate::assign::Residues;
use xc_sparse::Isa;

/// What becomes of the value found in an element's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// It replaces what was there.
    Set,
    /// It is added.
    Add,
    /// The smaller of the two stays; of equal ones the one that was there.
    Min,
}

/// Buckets of the first elements, one an entry of `out`.
pub(crate) fn buckets(residues: &Residues, out: &mut [u32]) {
    buckets_with(Isa::current(), residues, out);
}

/// Folds what `table` holds for the bucket of each element into `out`.
pub(crate) fn fold(residues: &Residues, table: &[f32], fold: Fold, out: &mut [f32]) {
    fold_with(Isa::current(), residues, table, fold, out);
}

/// [`buckets`] with a given instruction set.
fn buckets_with(isa: Isa, residues: &Residues, out: &mut [u32]) {
    let _ = isa;
    scalar::buckets(residues, out);
}

/// [`fold`] with a given instruction set.
fn fold_with(isa: Isa, residues: &Residues, table: &[f32], fold: Fold, out: &mut [f32]) {
    let _ = isa;
    match fold {
        Fold::Set => scalar::fold(residues, table, out, |_, v| v),
        Fold::Add => scalar::fold(residues, table, out, |a, v| a + v),
        Fold::Min => scalar::fold(residues, table, out, |a, v| if v < a { v } else { a }),
    }
}
