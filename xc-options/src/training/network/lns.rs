//! A network whose steps score some labels.

use super::System;
use super::choices::NetworkChoices;
use crate::settings::{Choices, candidates};
use crate::training::plan::{Origin, Resolved, TrainingPlan};
use xc_model::classifier::InputKind;
use xc_train::fit::{FitError, NetworkSession, TrainingShape};
use xc_train::kinds::NetworkKind;
use xc_train::network::NetworkParams;
use xc_train::preset::{self, FEW, FOR_EACH, LONG, MANY, Preset, SHARE};

pub(super) struct Lns {
    network: NetworkChoices,
    choices: Choices,
}

impl Lns {
    pub(super) fn new(choices: &Choices) -> Self {
        Self { network: NetworkChoices::new(choices), choices: choices.clone() }
    }
}

/// Says where few labels change what a step does.
pub(super) fn say_if_all(session: &NetworkSession<'_>, choices: &Choices) {
    let n_labels = session.shape.n_labels;
    if candidates::scores_all(n_labels, choices) {
        session
            .context
            .note(format_args!("{n_labels} labels are no more than a step would choose: it scores all of them"));
    }
}

/// The values of the settings of candidates.
pub(super) fn resolve_candidates(network: &NetworkParams, choices: &Choices, out: &mut Resolved) {
    let preset: Option<String> = choices.value("preset");
    out.add_placed(&candidates::TABLE, network, choices, |_, _| preset.clone().map(Origin::Preset));
}

/// The same with tables of the sizes that they have for the data.
pub(super) fn size_tables(session: &NetworkSession<'_>, choices: &Choices, out: &mut Resolved) {
    let TrainingShape { n_features, n_labels, .. } = session.shape;
    let sized = candidates::shown(session.network.clone(), n_features, n_labels);
    resolve_candidates(&sized, choices, out);
}

/// What width, initial embeddings, dropout, loss, rate and epochs follow from.
pub(super) fn few_or_long(shape: &TrainingShape) -> (&'static str, String) {
    let said = match shape.sparse_data() {
        Some(data) => {
            let of = match () {
                () if data.has_few_instances() => "few instances",
                () if data.has_long_instances() => "long instances",
                () if data.has_many_labels() => "many labels",
                () if data.has_rare_labels_alone() => "rare labels alone",
                () => "none of these",
            };
            format!(
                "defaults of {of}: width, initial embeddings, dropout, loss, rate and epochs follow from the first of few \
                 instances (fewer than {FEW}), long instances ({LONG} features or more on average), many labels ({MANY} or \
                 more), and rare labels alone (one for {FOR_EACH} instances, none on more than one of {SHARE})"
            )
        }
        None => match shape.input {
            InputKind::Tokens => "tokens: defaults do not depend on their number",
            _ => "vectors: batch and epochs follow from their number, so that few make enough steps",
        }
        .to_owned(),
    };
    ("sizes", said)
}

impl System for Lns {
    fn choices(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        self.named_preset().as_deref().and_then(preset::lns_of).unwrap_or_else(preset::lns)
    }

    fn preset_for(&self, shape: &TrainingShape) -> Preset {
        if self.named_preset().is_some() { self.preset() } else { NetworkKind::Lns.preset_for(shape) }
    }

    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError> {
        let network = self.network.network(&self.preset_for(shape), shape.input, seed, has_file)?;
        Ok(candidates::add(network, shape.n_features, shape.n_labels, &self.choices)?)
    }

    fn named_preset(&self) -> Option<String> {
        self.choices.value("preset")
    }

    fn resolve(&self, _: &TrainingShape, network: &NetworkParams, out: &mut Resolved) {
        resolve_candidates(network, &self.choices, out);
    }

    fn explain(&self, session: &NetworkSession<'_>, plan: &mut TrainingPlan) {
        plan.lines.extend(self.named_preset().is_none().then(|| few_or_long(&session.shape)));
        size_tables(session, &self.choices, &mut plan.resolved);
    }

    fn announce(&self, session: &NetworkSession<'_>) -> Result<(), FitError> {
        say_if_all(session, &self.choices);
        Ok(())
    }
}
