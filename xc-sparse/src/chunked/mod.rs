//! Weights of one tree level, stored so that siblings are read together.

mod rows;

pub use rows::{ChunkRows, ChunkRowsError};
