//! How a graph follows rows that moved, and what came of it.

use serde::{Deserialize, Serialize};

/// How a graph follows rows that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refresh {
    /// Codes alone.
    Codes,
    /// Each vertex searches for edges from itself (under inner products from the entry), keeping so many
    /// vertices.
    Search(usize),
    /// Edges among the neighbours and theirs.
    TwoHops,
    /// [`Refresh::TwoHops`], then [`Refresh::SHORT`].
    Both,
    /// All edges anew.
    Rebuild,
}

impl Refresh {
    /// A short search from each vertex itself.
    pub const SHORT: Self = Self::Search(Self::SHORT_KEEPS);
    /// Vertices that it keeps.
    pub(crate) const SHORT_KEEPS: usize = 32;
}

/// What a refresh did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Refreshed {
    /// How edges were found.
    pub policy: Refresh,
    /// With the new codes and the old edges: the share of queries' nearest rows that a search finds as far as was
    /// fitted, or, without queries, or where not the edges but a scan or cells answer, that of vectors made of rows.
    pub before: f64,
    /// The same with the new edges.
    pub after: f64,
}
