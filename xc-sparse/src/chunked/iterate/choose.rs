//! The choice of an iterator for each (query, chunk) pair.

use super::IteratorKind;

/// How the iterator of a pair is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IteratorChoice {
    /// By the sizes of query and chunk and, in a batch, by the number of queries that share the chunk.
    #[default]
    Auto,
    /// Always the same one.
    Fixed(IteratorKind),
}

/// A long query against a small chunk: below this share of the query's features, walking the chunk
/// is taken. A guess from the counts of steps, not measured.
const SMALL_CHUNK: usize = 4;

/// Queries that must share a chunk before scattering it pays: a scatter and its undoing touch each
/// row twice, and a look-up should save about as much as one such touch. A guess, not measured.
const SHARED_BY: usize = 3;

/// The iterator for a query of `nnz` features and a chunk of `n_rows` rows that `n_queries` queries
/// of the batch visit.
pub(crate) fn choose(choice: IteratorChoice, nnz: usize, n_rows: usize, n_queries: usize) -> IteratorKind {
    match choice {
        IteratorChoice::Fixed(how) => how,
        IteratorChoice::Auto if n_rows * SMALL_CHUNK < nnz => IteratorKind::Galloping,
        IteratorChoice::Auto if n_queries > 1 && n_queries * nnz > SHARED_BY * n_rows => IteratorKind::Lookup,
        IteratorChoice::Auto => IteratorKind::Hashed,
    }
}
