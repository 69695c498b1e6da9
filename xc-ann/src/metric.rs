//! What near means.

use serde::{Deserialize, Serialize};

/// What is compared, and what the score of an answer is: larger is better under each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Metric {
    /// Euclidean distance; the score is the squared distance with a minus.
    #[serde(rename = "l2")]
    L2,
    /// Cosine of the angle. A row of zeros has no direction: it is no answer, and no query.
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

    /// The score of two vectors; that of a vector of zeros under [`Metric::Cosine`] is 0.
    ///
    /// # Panics
    /// If they differ in length.
    pub fn score(self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len(), "coordinates of two vectors");
        match self {
            Self::L2 => -crate::product::squared_distance(a, b),
            Self::InnerProduct => crate::product::inner(a, b),
            Self::Cosine => cosine(a, b),
        }
    }

    /// Whether only directions count.
    pub(crate) fn is_angular(self) -> bool {
        self == Self::Cosine
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let squares = f64::from(crate::product::inner(a, a)) * f64::from(crate::product::inner(b, b));
    if squares > 0.0 { (f64::from(crate::product::inner(a, b)) / squares.sqrt()) as f32 } else { 0.0 }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
