//! Dense row-major matrices and their product.

mod product;

pub use product::{MatRef, MatmulPrecision, Scratch, SplitRows, Start, product, product_by_rows};
