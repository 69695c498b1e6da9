//! Buffers of hashing.

/// Buffers that a caller keeps from call to call: after the first row of a shape, hashing on one
/// thread allocates nothing.
///
/// It serves all families, one after another.
#[derive(Debug, Default)]
pub struct KeyScratch {
    /// A vector that was gathered, or projections.
    pub(crate) values: Vec<f32>,
    /// Blocks of a transform.
    pub(crate) lanes: Vec<f32>,
    /// Codes before they are packed.
    pub(crate) codes: Vec<u8>,
    /// Codes side by side that do not fit a key.
    pub(crate) wide: Vec<u64>,
    /// Ranks of coordinates within each subset.
    pub(crate) ranks: Vec<[u8; 128]>,
    /// Features of a row.
    pub(crate) features: Vec<u32>,
    /// Their values.
    pub(crate) feature_values: Vec<f32>,
    /// Elements of a set.
    pub(crate) elements: Vec<u64>,
    /// What a bin holds.
    pub(crate) bins: Vec<u64>,
    /// Bins that are not filled yet.
    pub(crate) empty: Vec<u32>,
    pub(crate) product: xc_dense::MatmulScratch,
}
