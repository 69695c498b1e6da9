//! Maps scores to probabilities and chooses thresholds; fitted on rows that the model was not
//! trained on.
//!
//! ```text
//!   held-out rows ──▶ model ──▶ (score, is it true?) ──┬─▶ Curve: score ─▶ probability
//!                                                       └─▶ Thresholds: micro F1, macro F1, each label
//! ```
//!
//! A [`Curve`] is strictly increasing, so ranked lists keep their order and every rank metric keeps
//! its value. A [`Calibration`] is stored in the model's folder (`docs/formats/calibration.md`),
//! and [`Model::predict`](crate::Model::predict) applies it. `xc-train` computes one and measures its
//! quality on rows that had no part in the fit.
//!
//! # When not to use it
//! On rows that the model was trained on: it is more confident there than on other rows. For labels
//! that rank below the number requested in the fit ([`Calibration::top_k`]): no score of those was
//! seen.
//!
//! *References*: `[zadrozny2002transforming]` for isotonic regression of scores,
//! `[platt1999probabilistic]` and `[lin2007note]` for the logistic curve, `[yang2001study]` for
//! thresholds by label.

mod curve;
mod file;
mod isotonic;
mod platt;
mod reliability;
mod thresholds;

pub use curve::{Curve, Method};
pub use file::OpenCalibrationError;
pub use isotonic::{IsotonicBlock, pool};
pub use reliability::{Bin, Reliability};
pub use thresholds::{BestThreshold, Pair, best_by_label, best_macro, best_micro, best_threshold};

use xc_sparse::rank::{LabelId, Scored};

/// Maps the scores of a model to probabilities, and has the thresholds of predicted labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Maps scores to probabilities.
    pub curve: Curve,
    /// The thresholds at which answers are cut.
    pub thresholds: Thresholds,
    /// Number of best labels of each row that the fit used.
    pub top_k: usize,
}

/// The smallest probabilities of predicted labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// One for all labels, with the largest micro F1.
    pub micro: f32,
    /// One for all labels, with the largest macro F1.
    pub macro_: f32,
    /// One for each label, with its largest F1; labels with few true rows have `macro_`.
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
    /// The threshold of one label.
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
    /// Replaces the scores of a ranked list by probabilities. The list keeps its order: a score
    /// below the previous one gets a smaller probability.
    pub fn apply(&self, list: &mut [Scored]) {
        self.curve.apply_list(list);
    }
}
