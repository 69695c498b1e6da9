//! Hash functions, and text to weighted features.

pub mod murmur3;
pub mod text;

pub use murmur3::murmur3_32;
