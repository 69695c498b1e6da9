//! Options of a head whose steps score some labels, which kinds of networks share: the rows of their settings.

use super::network::{Session, Shape};
use crate::error::CliError;
use crate::settings::{Chosen, OfTable};
use xc_train::classifier::ClassifierParams;
use xc_train::settings::candidates::{self, CandidateSettings};
use xc_train::settings::{Setting, Table};

/// Which labels a step scores.
#[derive(clap::Args, Debug)]
pub(crate) struct CandidateArgs {
    #[command(flatten)]
    chosen: Chosen<OfCandidates>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OfCandidates;

impl OfTable for OfCandidates {
    const TABLE: Table = candidates::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        (row.name == "head.precision").then(|| "f32".to_owned())
    }
}

impl CandidateArgs {
    fn settings(&self) -> Result<CandidateSettings, CliError> {
        Ok(CandidateSettings::new(&self.chosen.choices)?)
    }

    /// The paper's settings that were asked for.
    pub(super) fn preset(&self) -> Option<String> {
        self.chosen.choices.value("preset")
    }

    /// Gives the classifier this head, and refuses one that is impossible for instances of a shape.
    pub(super) fn apply(&self, shape: &Shape, params: &mut ClassifierParams) -> Result<(), CliError> {
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
}
