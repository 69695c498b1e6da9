//! From scores to probabilities, and where to cut: fitted on rows that the model was not trained on.
//!
//! ```text
//!   held-out rows ──▶ model ──▶ (score, is it true?) ──┬─▶ Curve: score ─▶ probability
//!                                                       └─▶ Thresholds: micro F1, macro F1, each label
//! ```
//!
//! A [`Curve`] rises strictly, so ranked lists keep their order and every metric of ranks its value.
//! A [`Calibration`] is kept in the model's folder (`docs/formats/calibration.md`), and
//! [`Model::predict`](crate::Model::predict) applies it. [`fit`] makes one and says how good it is on rows
//! that had no part in the fit.
//!
//! # When not to use it
//! On rows of the training file: a model is surer of what it learned from. For labels below the
//! number that was asked for in the fit ([`Calibration::top_k`]): no score of those was seen.
//!
//! *References*: `[zadrozny2002transforming]` for isotonic regression of scores,
//! `[platt1999probabilistic]` and `[lin2007note]` for the logistic curve, `[yang2001study]` for
//! thresholds by label.

mod curve;
mod file;
pub mod fit;
mod isotonic;
mod platt;
mod reliability;
mod thresholds;

pub use curve::{Curve, Method};
pub use file::OpenCalibrationError;
pub use isotonic::{Block, pool};
pub use reliability::{Bin, Reliability};
pub use thresholds::{Best, Pair, best_by_label, best_macro, best_micro};

use xc_sparse::rank::{LabelId, Scored};

/// How the scores of a model become probabilities, and which of them are answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// From scores to probabilities.
    pub curve: Curve,
    /// Where answers are cut.
    pub thresholds: Thresholds,
    /// Best labels of each row that the fit looked at.
    pub top_k: usize,
}

/// Probabilities from which on a label is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// One for all labels, where micro F1 is largest.
    pub micro: f32,
    /// One for all labels, where macro F1 is largest.
    pub macro_: f32,
    /// One for each label, where its own F1 is largest; labels with few true rows have `macro_`.
    pub by_label: Vec<f32>,
}

/// Which thresholds cut an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdKind {
    /// [`Thresholds::micro`].
    Micro,
    /// [`Thresholds::macro_`].
    Macro,
    /// [`Thresholds::by_label`].
    Label,
}

impl ThresholdKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Micro, Self::Macro, Self::Label];

    /// Its name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Micro => "micro",
            Self::Macro => "macro",
            Self::Label => "label",
        }
    }
}

impl Thresholds {
    /// That of one label.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn of(&self, kind: ThresholdKind, label: LabelId) -> f32 {
        match kind {
            ThresholdKind::Micro => self.micro,
            ThresholdKind::Macro => self.macro_,
            ThresholdKind::Label => self.by_label[label as usize],
        }
    }
}

impl Calibration {
    /// Makes probabilities of the scores of a ranked list, which keeps its order: where a score is
    /// below the one before it, so is its probability.
    pub fn apply(&self, list: &mut [Scored]) {
        self.curve.apply_list(list);
    }
}
