#![doc = include_str!("../README.md")]
#![deny(unsafe_code)] // kernels alone may have it

#[cfg(feature = "faer")]
mod of_faer;
mod product;
mod rows;
mod vectors;

#[cfg(feature = "faer")]
pub use ::faer;
#[cfg(feature = "faer")]
pub use of_faer::FromFaerError;
pub use product::{
    MatMut, MatRef, MatmulPrecision, MatmulScratch, Packed, SplitRows, Start, bf16_of_products, product, product_alone,
    product_by_rows, product_in_leaves, product_packed,
};
pub use rows::{DenseMatrix, DenseRows};
pub use vectors::{
    dot, squared_distance, wide_dot, wide_dot_and_square, wide_dots, wide_dots_and_squares, wide_squared_distance,
    wide_squared_distances,
};
