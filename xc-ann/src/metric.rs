//! Metrics: how vectors are compared.

use serde::{Deserialize, Serialize};

/// How vectors are compared, and what the score of an answer is: a larger score is always better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Metric {
    /// Euclidean distance; the score is the negative squared distance.
    #[serde(rename = "l2")]
    L2,
    /// Cosine of the angle. Zeros have no direction: such a row is never an answer, such a query has none.
    #[serde(rename = "cosine")]
    Cosine,
    /// Inner product of vectors of any length.
    #[serde(rename = "ip")]
    InnerProduct,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::L2, Self::Cosine, Self::InnerProduct];

    /// `l2`, `cosine` or `ip`.
    pub fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::Cosine => "cosine",
            Self::InnerProduct => "ip",
        }
    }

    /// The key of a score: smaller is nearer. Keys of codes under the cosine are squared distances of
    /// unit vectors.
    pub(crate) fn key_of_score(self, score: f32) -> f32 {
        if self.is_angular() { 2.0 - 2.0 * score } else { -score }
    }

    /// The score of a key.
    pub(crate) fn score_of_key(self, key: f32) -> f32 {
        if self.is_angular() { 1.0 - 0.5 * key } else { -key }
    }

    /// Whether only directions count.
    pub(crate) fn is_angular(self) -> bool {
        self == Self::Cosine
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
