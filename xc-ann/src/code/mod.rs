//! How vectors are kept: 8-bit codes and their products, k-means words and the cells of an inverted file, rows that stand for one
//! vertex.

pub(crate) mod centering;
pub(crate) mod codes;
pub(crate) mod ivf;
pub mod kmeans;
pub(crate) mod product;
pub(crate) mod vertex_rows;
