//! The outputs that a step goes over, a tile at a time.

use super::screening::tiles_without;
use crate::Targets;
use crate::sampler::CandidateList;

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

/// Outputs of a step that a sampler chose, and those that are true of any instance: ascending.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    outputs: Vec<u32>,
    corrections: Vec<Correction>,
}

impl Chosen {
    pub(super) fn new(list: CandidateList<'_>, targets: Targets<'_>) -> Self {
        let drawn = list.labels.iter().zip(list.weight.iter().zip(list.log_q));
        let mut all: Vec<(u32, Correction)> =
            drawn.map(|(&output, (&weight, &log_q))| (output, Correction { weight, log_q })).collect();
        // Where it was not drawn, an output that is true of another instance says nothing about the
        // sum that a softmax estimates.
        let alone = Correction { weight: 1.0, log_q: f32::INFINITY };
        all.extend((0..targets.len()).flat_map(|i| targets.row(i)).map(|&output| (output, alone)));
        // A stable sort: what was drawn stands before.
        all.sort_by_key(|&(output, _)| output);
        all.dedup_by_key(|&mut (output, _)| output);
        let (outputs, corrections) = all.into_iter().unzip();
        Self { outputs, corrections }
    }

    pub(super) fn outputs(&self) -> &[u32] {
        &self.outputs
    }
}

/// Outputs that are worked on together: all from one on, or some that were chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tile<'a> {
    Range { first: usize, len: usize },
    List { outputs: &'a [u32], corrections: &'a [Correction] },
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
            Self::List { outputs, corrections } => {
                Self::List { outputs: &outputs[at..at + len], corrections: &corrections[at..at + len] }
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
            Self::List { corrections, .. } => corrections[at],
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
            Some(Chosen { outputs, corrections }) => Tile::List { outputs, corrections },
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
