//! The outputs that a step goes over, a tile at a time.

use super::screening::tiles_without;
use crate::head::chosen::Chosen;

/// What becomes of an output where it is false, if a sampler chose it: a loss that adds up over
/// outputs is multiplied by the weight, a softmax takes log q away from the logit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correction {
    pub(super) weight: f32,
    pub(super) log_q: f32,
}

impl Correction {
    pub(super) const NONE: Self = Self { weight: 1.0, log_q: 0.0 };
}

/// Outputs that are worked on together: all from one on, or some that were chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tile<'a> {
    Range { first: usize, len: usize },
    List { outputs: &'a [u32], weight: &'a [f32], log_q: &'a [f32] },
}

impl Tile<'_> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Range { len, .. } => len,
            Self::List { outputs, .. } => outputs.len(),
        }
    }

    /// At most `len` outputs from a place on.
    pub(super) fn part(self, at: usize, len: usize) -> Self {
        let len = len.min(self.len() - at);
        match self {
            Self::Range { first, .. } => Self::Range { first: first + at, len },
            Self::List { outputs, weight, log_q } => {
                let range = at..at + len;
                Self::List { outputs: &outputs[range.clone()], weight: &weight[range.clone()], log_q: &log_q[range] }
            }
        }
    }

    #[inline(always)]
    pub(super) fn output(self, at: usize) -> usize {
        match self {
            Self::Range { first, .. } => first + at,
            Self::List { outputs, .. } => outputs[at] as usize,
        }
    }

    #[inline(always)]
    pub(super) fn correction(self, at: usize) -> Correction {
        match self {
            Self::Range { .. } => Correction::NONE,
            Self::List { weight, log_q, .. } => Correction { weight: weight[at], log_q: log_q[at] },
        }
    }
}

/// The tiles that a step goes over, one after another.
pub(super) struct Tiles {
    /// The outputs of the step, if they are not all.
    chosen: Option<Chosen>,
    n: usize,
    /// Outputs of a tile.
    size: usize,
    first: usize,
    /// Whether any tile is screened.
    screens: bool,
    /// Tiles that do without screening from here on.
    without: usize,
}

impl Tiles {
    pub(super) fn new(chosen: Option<Chosen>, n: usize, size: usize, screens: bool) -> Self {
        Self { chosen, n, size, first: 0, screens, without: 0 }
    }

    pub(super) fn all(&self) -> Tile<'_> {
        match &self.chosen {
            None => Tile::Range { first: 0, len: self.n },
            Some(chosen) => Tile::List { outputs: chosen.labels(), weight: chosen.weight(), log_q: chosen.log_q() },
        }
    }

    /// Whether all of them are done.
    pub(super) fn is_done(&self) -> bool {
        self.first >= self.n
    }

    /// The next one, and whether it is screened.
    pub(super) fn next(&self) -> (Tile<'_>, bool) {
        (self.all().part(self.first, self.size), self.screens && self.without == 0)
    }

    /// Goes on after a tile, of which screening found `n_seen` out of `n_screened` blocks worth a
    /// full score, if it was screened. A step decides for itself, so that one that is repeated
    /// after an interruption decides the same.
    pub(super) fn advance(&mut self, screened: Option<(usize, usize)>) {
        self.first += self.size;
        self.without = match screened {
            Some((n_seen, n_screened)) => tiles_without(n_seen, n_screened),
            None => self.without.saturating_sub(1),
        };
    }
}
