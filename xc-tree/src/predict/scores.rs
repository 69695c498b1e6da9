//! From margins to ranking scores, and to what is kept of them.

use crate::model::{ModelInfo, PostProcessor};
use xc_sparse::SparseRow;
use xc_sparse::rank::{Scored, TopK};

/// Scales the values of a row as the model asks for.
pub(crate) fn scaled<'a>(row: SparseRow<'a>, info: &ModelInfo, room: &'a mut Vec<f32>) -> SparseRow<'a> {
    if info.normalise_rows {
        xc_sparse::rows::normalised(row, room)
    } else if info.row_length != 1.0 {
        room.clear();
        room.extend(row.values().iter().map(|v| v / info.row_length));
        SparseRow::from_checked(row.indices(), room)
    } else {
        row
    }
}

/// Turns the margins of one parent's children into ranking scores, in place.
#[inline]
pub(crate) fn rank_scores(post: PostProcessor, parent: f32, margins: &mut [f32]) {
    // The cubic hinge is what trained models use: its loop is kept free of the choice and
    // vectorises.
    match post {
        PostProcessor::Hinge { p: 3 } | PostProcessor::LogHinge { p: 3 } => {
            for z in margins {
                let gap = (1.0 - *z).max(0.0);
                *z = parent - gap * gap * gap;
            }
        }
        _ => {
            for z in margins {
                *z = post.accumulate(parent, *z);
            }
        }
    }
}

/// Children that are compared with the threshold together, before each for itself: most of the time
/// none passes.
const OFFERED: usize = 8;

/// Ranks the children of one parent, given their margins, and offers them to `select` as nodes, of which the first
/// has the number `first`.
#[inline(always)]
pub(crate) fn offer_nodes(post: PostProcessor, parent: f32, first: u32, margins: &mut [f32], select: &mut TopK) {
    rank_scores(post, parent, margins);
    for (first, scores) in (first..).step_by(OFFERED).zip(margins.chunks(OFFERED)) {
        if select.may_keep(scores) {
            for (child, &score) in (first..).zip(scores) {
                select.push(Scored { label: child, score });
            }
        }
    }
}

/// Offers leaves to `select` by their labels.
#[inline(always)]
pub(crate) fn offer_leaves(labels: &[u32], scores: &[f32], select: &mut TopK) {
    for (labels, scores) in labels.chunks(OFFERED).zip(scores.chunks(OFFERED)) {
        if select.may_keep(scores) {
            for (&label, &score) in labels.iter().zip(scores) {
                select.push(Scored { label, score });
            }
        }
    }
}

/// Leaves that the beams of several trees reached, tree after tree, with their ranking scores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached {
    pub(super) labels: Vec<u32>,
    pub(super) scores: Vec<f32>,
    // How many of them are of the first tree.
    n_of_first: usize,
}

impl Reached {
    pub(crate) fn clear(&mut self) {
        self.labels.clear();
        self.scores.clear();
        self.n_of_first = 0;
    }

    /// Says that all leaves of a tree were added.
    pub(crate) fn end_tree(&mut self) {
        if self.n_of_first == 0 {
            self.n_of_first = self.labels.len();
        }
    }

    /// What the first tree says.
    pub(super) fn of_first(&self) -> (&[u32], &[f32]) {
        (&self.labels[..self.n_of_first], &self.scores[..self.n_of_first])
    }

    /// Adds leaves of one tree.
    #[inline(always)]
    pub(crate) fn extend(&mut self, labels: &[u32], scores: &[f32]) {
        self.labels.extend_from_slice(labels);
        self.scores.extend_from_slice(scores);
    }

    /// Adds leaves of one tree, each with its ranking score.
    #[cfg(feature = "cuda")]
    pub(crate) fn extend_scored(&mut self, leaves: impl Iterator<Item = (u32, f32)>) {
        for (label, score) in leaves {
            self.labels.push(label);
            self.scores.push(score);
        }
    }
}

/// Where leaves go that a search scores.
pub(crate) enum Leaves<'a> {
    /// The best are selected: the answer of one tree.
    Best(&'a mut TopK),
    /// All are kept: what one of several trees says.
    All(&'a mut Reached),
}

impl<'a> Leaves<'a> {
    /// All into `reached`, where there is such, or the best into `select`.
    pub(crate) fn of(reached: Option<&'a mut Reached>, select: &'a mut TopK) -> Self {
        reached.map_or(Self::Best(select), Self::All)
    }

    /// Ranks leaves of one parent, given their margins and labels, and offers them.
    #[inline(always)]
    pub(crate) fn offer(&mut self, post: PostProcessor, parent: f32, labels: &[u32], margins: &mut [f32]) {
        rank_scores(post, parent, margins);
        match self {
            Leaves::Best(select) => offer_leaves(labels, margins, select),
            Leaves::All(reached) => reached.extend(labels, margins),
        }
    }
}
