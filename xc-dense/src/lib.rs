//! Dense row-major matrices and their product.
//!
//! The product is blocked for the caches and has one order of sums: the same bits for any number of
//! threads.
//!
//! ```
//! use xc_dense::{MatMut, MatRef, MatmulPrecision, Scratch, Start, product};
//!
//! // Scores of two instances for three labels: inputs times the weights of the labels, and a bias each.
//! let (inputs, weights) = ([1.0, 2.0, 0.0, 1.0], [1.0, 0.0, 0.5, 0.5, 0.0, -1.0]);
//! let (inputs, weights) = (MatRef::new(&inputs, 2, 2), MatRef::new(&weights, 3, 2).t());
//! let mut scores = [0.0; 6];
//! let bias = Start::Bias(&[0.0, 0.0, 1.0]);
//! product(MatMut::new(&mut scores, 2, 3), inputs, weights, bias, MatmulPrecision::F32, &mut Scratch::default());
//! assert_eq!(scores, [1.0, 1.5, -1.0, 0.0, 0.5, 0.0]);
//! ```

#![deny(unsafe_code)] // kernels alone may have it

mod product;
mod rows;
mod vectors;

pub use product::{
    MatMut, MatRef, MatmulPrecision, Packed, Scratch, SplitRows, Start, bf16_of_products, product, product_alone,
    product_by_rows, product_in_leaves, product_packed,
};
pub use rows::{DenseMatrix, DenseRows};
pub use vectors::{
    dot, squared_distance, wide_dot, wide_dot_and_square, wide_dots, wide_dots_and_squares, wide_squared_distance,
    wide_squared_distances,
};
