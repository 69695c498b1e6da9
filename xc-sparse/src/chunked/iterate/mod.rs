//! Four ways to find the rows that a query and a chunk share, all with the same result.
//!
//! | iterator | time for q query features and r rows | extra memory |
//! |---|---|---|
//! | marching | q + r | none |
//! | galloping | min(q, r) log of the other | none |
//! | hashed | q | 2 bytes per row, see [`super::SlotMap`] |
//! | lookup | q, and r to load a chunk once | one number per feature |

mod choose;
mod galloping;
mod hashed;
mod lookup;
mod marching;
mod probe;

use super::level::{ChunkView, ChunkedView};
use super::query::{DensePositions, QueryView};

use probe::Found;

pub use choose::IteratorChoice;
pub(crate) use choose::choose;
pub(crate) use hashed::{Probed, confirm, probe};

/// How the features of a query are matched with the rows of a chunk (etter2022mscm, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IteratorKind {
    /// Two pointers, both moving forward.
    Marching,
    /// Binary search for each element of the shorter side, starting where the previous one ended.
    Galloping,
    /// One probe of the chunk's directory for each feature of the query.
    Hashed,
    /// One read of a dense array for each feature of the query; the chunk is scattered into it
    /// beforehand.
    Lookup,
}

impl IteratorKind {
    /// All four.
    pub const ALL: [IteratorKind; 4] = [Self::Marching, Self::Galloping, Self::Hashed, Self::Lookup];
}

impl std::fmt::Display for IteratorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Marching => "marching",
            Self::Galloping => "galloping",
            Self::Hashed => "hashed",
            Self::Lookup => "lookup",
        })
    }
}

/// Rows that a query and a chunk share, features ascending, with the query's values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matches {
    pub(crate) found: Found,
    // Hashed iterator: rows that may match.
    pub(crate) candidates: Found,
}

impl Matches {
    /// Forgets everything, keeps the memory.
    pub(crate) fn clear(&mut self) {
        for found in [&mut self.found, &mut self.candidates] {
            found.rows.clear();
            found.values.clear();
            found.features.clear();
        }
    }

    fn push(&mut self, row: u32, value: f32) {
        self.found.rows.push(row);
        self.found.values.push(value);
    }
}

/// Appends the shared rows of a query and a chunk to the matches found, by any iterator but the
/// hashed one, which works in two steps ([`probe`], [`confirm`]).
///
/// For [`IteratorKind::Lookup`], `dense` holds the rows of this chunk.
///
/// # Panics
/// If `how` is [`IteratorKind::Lookup`] and `dense` has fewer entries than the level has features; if
/// it is [`IteratorKind::Hashed`].
pub(crate) fn find(
    chunk: &ChunkView<'_>,
    query: &QueryView<'_>,
    how: IteratorKind,
    dense: &DensePositions,
    matches: &mut Matches,
) {
    if chunk.n_rows == 0 || query.indices.is_empty() {
        return;
    }
    match how {
        IteratorKind::Marching => marching::find(chunk, query, matches),
        IteratorKind::Galloping => galloping::find(chunk, query, matches),
        IteratorKind::Lookup => lookup::find(query, dense, matches),
        IteratorKind::Hashed => unreachable!("the hashed iterator works in two steps"),
    }
}
