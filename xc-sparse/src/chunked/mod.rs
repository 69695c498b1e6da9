//! Weights of one tree level, stored so that siblings are read together.
//!
//! A query that reaches a cluster scores *all* its children. Their weight columns are therefore stored
//! in one chunk, which has only the feature rows that at least one child uses.
//!
//! ```text
//!   children of 7:  14    15    16          chunk 7        key  offset  mask     values
//!   feature  2     0.5     .   -1.0         row             2      0    101      0.5 -1.0
//!   feature  9      .     2.0    .     =>   row             9      2    010      2.0
//!   feature 40     0.1    0.2   0.3         row            40      3    111      0.1  0.2  0.3
//! ```
//!
//! Rows are found by one of four iterators ([`IteratorKind`]). The mask of a row then expands the packed
//! values to the lanes of a vector register, where they are multiplied by the query's value and added to
//! the children's sums. Implements `[etter2022mscm]`, sections 4 and 5. Differs in: sibling masks,
//! half-precision values, a rank directory as the hash iterator, a choice of iterator for each (query,
//! chunk) pair.
//!
//! # When not to use
//! A level with one child per cluster: plain columns are smaller.

mod check;
mod directory;
#[cfg(feature = "store")]
mod file;
mod iterate;
mod layout;
mod level;
mod pack;
mod product;
mod query;
mod rows;
mod slot_map;
mod touched;

pub use check::ChunkedError;
#[cfg(feature = "store")]
pub use file::{LevelSizes, LevelStreams, OpenLevelError};
pub use iterate::{IteratorChoice, IteratorKind};
pub use level::{ChunkView, ChunkedLevel, ChunkedView, LevelArrays};
pub use pack::{PackError, PackedSizes, Packer, count_features};
pub use product::{ProductScratch, Visit, margins, margins_with, shared_margins};
pub use query::{ChunkQuery, DensePositions, QueryView};
pub use rows::{ChunkRows, ChunkRowsError};
pub use slot_map::SlotMap;
pub use touched::Touched;

/// Maximum number of children of a chunk; more siblings are split into several chunks.
pub const MAX_WIDTH: usize = 128;
