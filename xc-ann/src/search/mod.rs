//! Searches: along the graph, in cells, over all codes or all rows; filters, proofs, and the width that reaches a recall.

pub(crate) mod beam;
pub(crate) mod best;
pub(crate) mod exact;
pub(crate) mod filter;
pub(crate) mod fit;
pub(crate) mod norm_bounds;
pub(crate) mod parts;
pub(crate) mod pool;
pub(crate) mod query;
pub(crate) mod rerank;
pub(crate) mod visited;
