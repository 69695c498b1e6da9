//! Settings of builds and searches.

use crate::code::product::{MOST_COORDINATES, TOGETHER};
use crate::error::BuildError;
use crate::metric::Metric;
use serde::{Deserialize, Deserializer, Serialize};

/// How a graph is built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildParams {
    /// How rows are compared.
    pub metric: Metric,
    /// Maximum number of edges of a vertex: 1 to 64.
    #[serde(rename = "degree")]
    pub max_degree: usize,
    /// Vertices that the search for edges keeps. More take longer and give better edges.
    #[serde(rename = "keep")]
    pub build_width: usize,
    /// Pruning factor: a candidate edge is dropped if a vertex already linked is nearer to its target by
    /// this factor. More edges are kept above 1 for distances, below 1 for inner products. `None`: 1, and
    /// for inner products the factor with which small graphs over some of the rows are searched best.
    #[serde(rename = "factor")]
    pub alpha: Option<f32>,
    /// Passes over all vertices: a later pass finds edges in the graph of the previous one.
    pub passes: usize,
    /// Seed of the order in which vertices are linked.
    pub seed: u64,
    /// Answers per query that the search width is fitted for.
    pub top_k: usize,
    /// The share of the best rows that should be among them.
    pub target_recall: f64,
    /// Also requires recall@1 to reach the target: recall counts all answers alike, and what is missed may be the first
    /// ones.
    #[serde(default, rename = "best_too")]
    pub require_recall_at_1: bool,
    /// A build whose fitted scope finds a smaller share fails with [`BuildError::TooFewFound`]. It is a demand on
    /// the build and no property of the graph: it is not stored, and refreshes do not check it. A graph without
    /// rows meets it.
    #[serde(skip)]
    pub min_recall: Option<f64>,
    /// Number of cells in addition to the graph: the rows of a cell are near each other, and their codes
    /// are contiguous. `None`: twice the square root of the number of rows, kept if they are faster than
    /// the graph.
    #[serde(default)]
    pub cells: Option<usize>,
}

impl BuildParams {
    /// The default values for a metric.
    pub fn new(metric: Metric) -> Self {
        Self {
            metric,
            max_degree: 32,
            build_width: 100,
            alpha: None,
            passes: 2,
            seed: 0,
            top_k: 10,
            target_recall: 0.95,
            require_recall_at_1: false,
            min_recall: None,
            cells: None,
        }
    }

    pub(crate) fn check(&self, width: usize) -> Result<(), BuildError> {
        if !(1..=TOGETHER).contains(&self.max_degree) {
            return Err(BuildError::Degree { degree: self.max_degree, most: TOGETHER });
        }
        let counts = [("keep", self.build_width), ("passes", self.passes), ("top k", self.top_k)];
        if let Some((what, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(BuildError::Nothing { what });
        }
        let recalls = [Some(self.target_recall), self.min_recall];
        if let Some(recall) = recalls.into_iter().flatten().find(|recall| !(0.0..=1.0).contains(recall)) {
            return Err(BuildError::Recall { recall });
        }
        if let Some(factor) = self.alpha.filter(|factor| !(*factor > 0.0 && factor.is_finite())) {
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
/// So few vertices are scanned where a fit is to hold for other queries, and are in no cells.
pub(crate) const SCANNED: usize = 2000;

/// Where a search looks, and how far. `for_k`: a search for fewer answers than this looks as far as one for so many does, since
/// what finds a share of ten answers finds less where one is sought, as the search then ends at the first. 0: a search looks
/// for as many as are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Scope {
    /// Along the graph: a vertex is expanded if it is further off than the last answer by at most the share `slack` of the
    /// answer's distance (of its score, for inner products). Above -1: -0.2 is fast and coarse, 0.1 finds nearly all. A search
    /// that has compared an eighth of all codes continues by comparing all.
    /// [`Graph::fit`](crate::Graph::fit) finds the least slack that reaches a recall.
    Beam {
        /// Share of the distance.
        slack: f32,
        /// Answers to look for, at least.
        for_k: usize,
    },
    /// All rows of the nearest cells; with a filter, and in searches for all rows above a score, along the graph, or where
    /// `slack` is 16 or more over all codes.
    Cells {
        /// How many, 1 or more.
        cells: usize,
        /// Where cells are not looked at, that of [`Scope::Beam`].
        slack: f32,
        /// Answers to look for, at least.
        for_k: usize,
    },
    /// All codes, one after the other.
    AllCodes {
        /// Answers to look for, at least.
        for_k: usize,
    },
    /// All rows.
    Exact,
}

impl Scope {
    /// Along the graph with a slack; from 16 on all codes, where it is infinite all rows.
    pub const fn width(width: f32) -> Self {
        Self::wide(width, 0)
    }

    const fn wide(slack: f32, for_k: usize) -> Self {
        match () {
            () if slack == f32::INFINITY => Self::Exact,
            () if slack >= SCANS_FROM => Self::AllCodes { for_k },
            () => Self::Beam { slack, for_k },
        }
    }

    /// In cells; with a filter all codes.
    pub const fn cells(cells: usize) -> Self {
        match cells {
            0 => Self::AllCodes { for_k: 0 },
            _ => Self::Cells { cells, slack: SCANS_FROM, for_k: 0 },
        }
    }

    /// The slack along the graph: 16 for all codes, infinite for all rows.
    pub const fn slack(&self) -> f32 {
        match *self {
            Self::Beam { slack, .. } | Self::Cells { slack, .. } => slack,
            Self::AllCodes { .. } => SCANS_FROM,
            Self::Exact => f32::INFINITY,
        }
    }

    /// Cells to look at; 0 where it is no search of cells.
    pub const fn n_cells(&self) -> usize {
        match *self {
            Self::Cells { cells, .. } => cells,
            Self::Beam { .. } | Self::AllCodes { .. } | Self::Exact => 0,
        }
    }

    /// Answers to look for, at least.
    pub const fn for_k(&self) -> usize {
        match *self {
            Self::Beam { for_k, .. } | Self::Cells { for_k, .. } | Self::AllCodes { for_k } => for_k,
            Self::Exact => 0,
        }
    }
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchParams {
    /// Answers of a query.
    pub top_k: usize,
    /// How much is visited to find them. Default: as fitted, see [`Graph::default_scope`](crate::Graph::default_scope).
    pub scope: Option<Scope>,
}

impl SearchParams {
    /// The `k` best, searched as fitted.
    pub const fn top(k: usize) -> Self {
        Self { top_k: k, scope: None }
    }

    /// Another scope.
    pub const fn with_scope(self, scope: Scope) -> Self {
        Self { scope: Some(scope), ..self }
    }

    /// Along the graph.
    pub const fn with_width(self, width: f32) -> Self {
        self.with_scope(Scope::width(width))
    }

    /// In cells.
    pub const fn with_cells(self, cells: usize) -> Self {
        self.with_scope(Scope::cells(cells))
    }
}

/// A search width, and what it reaches on the queries that it was found with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// Answers of a query.
    pub k: usize,
    /// The recall to reach.
    pub target: f64,
    /// The least width found to reach it; infinite if none does.
    #[serde(deserialize_with = "null_is_infinite")]
    pub width: f32,
    /// The least number of cells found to reach it, if that is faster; 0 if the graph is.
    #[serde(default)]
    pub cells: usize,
    /// The recall with this width, or these cells.
    pub recall: f64,
    /// Number of queries.
    pub n_queries: usize,
}

/// JSON has no infinite numbers, and `null` for them.
fn null_is_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f32::INFINITY))
}

impl Fitted {
    /// The scope of a search that reaches the recall, whether `k` answers are sought or fewer.
    pub fn scope(&self) -> Scope {
        match self.cells {
            0 => Scope::wide(self.width, self.k),
            cells => Scope::Cells { cells, slack: self.width, for_k: self.k },
        }
    }

    /// Whether it is what a fit may have found; a search of another one may find nothing, or be refused.
    pub(crate) fn is_sound(&self) -> bool {
        let shares = [self.target, self.recall];
        self.k > 0 && self.width > -1.0 && shares.iter().all(|share| (0.0..=1.0).contains(share))
    }
}
