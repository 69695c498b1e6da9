//! Settings of builds and searches.

use crate::error::BuildError;
use crate::metric::Metric;
use crate::product::{MOST_COORDINATES, TOGETHER};
use serde::{Deserialize, Deserializer, Serialize};

/// How a graph is built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildParams {
    /// What near means.
    pub metric: Metric,
    /// Edges of a vertex, at most: 1 to 64.
    pub degree: usize,
    /// Vertices that the search for edges keeps. More of them cost time and find better edges.
    pub keep: usize,
    /// A vertex found is left out when one that was taken is nearer to it by this factor: under
    /// distances more than 1 keeps more edges, under inner products less does. Nothing: 1, and for inner
    /// products what small graphs over some of the rows are searched best with.
    pub factor: Option<f32>,
    /// Passes over all vertices: a later one finds edges in the graph of the one before.
    pub passes: usize,
    /// Seed of the order in which vertices are linked.
    pub seed: u64,
    /// What the search width is fitted to: answers of a query.
    pub top_k: usize,
    /// And the share of the best that are to be among them.
    pub target_recall: f64,
    /// Cells beside the graph: the rows of a cell are near to each other, and their codes lie side by side.
    /// Nothing: twice the square root of the number of rows, which stay if they are faster than the graph.
    #[serde(default)]
    pub cells: Option<usize>,
}

impl BuildParams {
    /// The usual values of a metric.
    pub fn new(metric: Metric) -> Self {
        Self {
            metric,
            degree: 32,
            keep: 100,
            factor: None,
            passes: 2,
            seed: 0,
            top_k: 10,
            target_recall: 0.95,
            cells: None,
        }
    }

    pub(crate) fn check(&self, width: usize) -> Result<(), BuildError> {
        if !(1..=TOGETHER).contains(&self.degree) {
            return Err(BuildError::Degree { degree: self.degree, most: TOGETHER });
        }
        let counts = [("keep", self.keep), ("passes", self.passes), ("top k", self.top_k)];
        if let Some((what, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(BuildError::Nothing { what });
        }
        if !(0.0..=1.0).contains(&self.target_recall) {
            return Err(BuildError::Recall { recall: self.target_recall });
        }
        if let Some(factor) = self.factor.filter(|factor| !(*factor > 0.0 && factor.is_finite())) {
            return Err(BuildError::Factor { factor });
        }
        if width > MOST_COORDINATES {
            return Err(BuildError::Width { width, most: MOST_COORDINATES });
        }
        Ok(())
    }
}

/// From this width on all codes are compared, one after the other.
pub(crate) const SCANS_FROM: f32 = 16.0;

/// What a search looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scope {
    /// How far to look: a vertex is expanded while it is no further off than the last answer and this
    /// share of its distance (of the score, for inner products). Above -1: -0.2 is fast and coarse, 0.1
    /// finds nearly all, 16 compares all codes, and infinity all rows exactly. A search that has compared
    /// an eighth of all codes goes on to compare all.
    /// [`Graph::fit`](crate::Graph::fit) finds the least that reaches a recall.
    pub width: f32,
    /// Where this is not 0, all rows of so many cells are compared, the nearest ones, rather than those that
    /// edges lead to. Not so with a filter, nor for all rows above a score.
    pub cells: usize,
}

impl Scope {
    /// Along the graph.
    pub const fn width(width: f32) -> Self {
        Self { width, cells: 0 }
    }

    /// In cells; with a filter all codes.
    pub const fn cells(cells: usize) -> Self {
        Self { width: SCANS_FROM, cells }
    }
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchParams {
    /// Answers of a query.
    pub k: usize,
    /// What is looked at for them.
    pub scope: Scope,
}

impl SearchParams {
    /// Along the graph.
    pub const fn new(k: usize, width: f32) -> Self {
        Self { k, scope: Scope::width(width) }
    }

    /// In cells.
    pub const fn in_cells(k: usize, cells: usize) -> Self {
        Self { k, scope: Scope::cells(cells) }
    }
}

/// A search width, and what it reaches on the queries that it was found with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// Answers of a query.
    pub k: usize,
    /// The recall that was wanted.
    pub target: f64,
    /// The least width that was found to reach it; infinite where none does.
    #[serde(deserialize_with = "null_is_infinite")]
    pub width: f32,
    /// The least number of cells that was found to reach it, where that is faster; 0 where the graph is.
    #[serde(default)]
    pub cells: usize,
    /// The recall at this width, or of these cells.
    pub recall: f64,
    /// Queries.
    pub n_queries: usize,
}

/// JSON has no infinite numbers, and `null` for them.
fn null_is_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f32::INFINITY))
}

impl Fitted {
    /// What a search looks at to reach the recall.
    pub fn scope(&self) -> Scope {
        Scope { width: self.width, cells: self.cells }
    }
}
