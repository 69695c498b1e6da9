//! The second operand of many products, packed once.

use super::tile::Tile;
use super::{Chunk, MatMut, MatRef, MatmulPrecision, MatmulScratch, Operands, Start, cuts, product_with};
use std::fmt;
use std::ops::Range;

/// A matrix in the order in which products read it: what [`product`](super::product) packs in each call. It pays where
/// the other operand has few rows, so that packing takes as long as the product.
///
/// *Memory*: a copy of the matrix, columns filled up to whole tiles; half of that in bf16 on machines with AVX512_BF16.
#[derive(Clone)]
pub struct Packed {
    tile: Tile,
    shape: (usize, usize),
    values: Vec<f32>,
    /// Where each piece ends in `values`.
    ends: Vec<usize>,
}

impl Packed {
    /// Packs a matrix for products of a precision, on the calling thread.
    pub fn new(b: MatRef<'_>, products: MatmulPrecision) -> Self {
        let tile = Tile::current(products);
        let shape = b.shape();
        let mut out = Self { tile, shape, values: Vec::new(), ends: Vec::new() };
        let mut scratch = MatmulScratch::default();
        for (columns, inner) in cuts(tile, shape) {
            out.values.extend_from_slice(Chunk::pack(tile, b, inner, columns, false, &mut scratch).packed);
            out.ends.push(out.values.len());
        }
        out.values.shrink_to_fit();
        out
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Piece `at`, of these columns and rows.
    pub(super) fn chunk(&self, at: usize, columns: &Range<usize>, inner: Range<usize>) -> Chunk<'_> {
        let first = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Chunk { tile: self.tile, inner, n_columns: columns.len(), packed: &self.values[first..self.ends[at]] }
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// `c = start + a * b` with the bits of [`product`](super::product), by the threads of the ambient pool, or, if `is_alone`,
/// by the calling thread.
///
/// # Panics
/// If shapes disagree.
pub fn product_packed(c: MatMut<'_>, a: MatRef<'_>, b: &Packed, start: Start<'_>, is_alone: bool) {
    product_with(b.tile, c, a, Operands::Packed(b), start, !is_alone);
}
