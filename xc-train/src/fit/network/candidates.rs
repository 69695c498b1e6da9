//! What was chosen of the labels that a step scores, where these are not all.

use super::{Session, Shape};
use crate::classifier::ClassifierParams;
use crate::fit::FitError;
use crate::fit::plan::{Origin, Resolved};
use crate::settings::Choices;
use crate::settings::candidates::{self, CandidateSettings};

/// Which labels a step scores.
pub(in crate::fit) struct CandidateChoices {
    choices: Choices,
}

impl CandidateChoices {
    pub(super) fn new(choices: &Choices) -> Self {
        Self { choices: choices.clone() }
    }

    fn settings(&self) -> Result<CandidateSettings, FitError> {
        Ok(CandidateSettings::new(&self.choices)?)
    }

    /// The paper's settings that were asked for.
    pub(super) fn preset(&self) -> Option<String> {
        self.choices.value("preset")
    }

    /// Gives the classifier this head, and refuses one that is impossible for instances of a shape.
    pub(super) fn apply(&self, shape: &Shape, params: &mut ClassifierParams) -> Result<(), FitError> {
        Ok(self.settings()?.put(shape.n_features, shape.n_labels, params)?)
    }

    /// Whether labels are so few that what a list is to hold by default would be all of them.
    pub(super) fn scores_all(&self, n_labels: usize) -> bool {
        self.settings().is_ok_and(|settings| settings.scores_all(n_labels))
    }

    /// Says where few labels change what a step does.
    pub(super) fn announce(&self, session: &Session<'_>) {
        let n_labels = session.shape.n_labels;
        if self.scores_all(n_labels) {
            session
                .context
                .note(format_args!("{n_labels} labels are no more than a step would choose: it scores all of them"));
        }
    }

    /// The values that they come to.
    pub(super) fn resolve(&self, session: &Session<'_>, out: &mut Resolved) {
        let all = CandidateSettings::of(&session.params, session.shape.n_features, session.shape.n_labels);
        out.add(&candidates::TABLE, &all, &self.choices, |_, _| self.preset().map(Origin::Preset));
    }
}
