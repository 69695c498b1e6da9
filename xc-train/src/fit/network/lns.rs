//! A network whose steps score some labels.

use super::candidates::CandidateChoices;
use super::choices::NetworkChoices;
use super::dense::suited_to;
use super::{Session, Shape, System};
use crate::classifier::preset::{FEW, FOR_EACH, LONG, MANY, SHARE};
use crate::classifier::{ClassifierParams, InputKind, Preset, preset};
use crate::fit::FitError;
use crate::fit::plan::Plan;
use crate::settings::Choices;

pub(in crate::fit) struct Lns {
    network: NetworkChoices,
    head: CandidateChoices,
}

impl Lns {
    pub(super) fn new(choices: &Choices) -> Self {
        Self { network: NetworkChoices::new(choices), head: CandidateChoices::new(choices) }
    }
}

/// What width, initial embeddings, dropout, loss, rate and epochs follow from.
pub(super) fn few_or_long(shape: &Shape) -> (&'static str, String) {
    let said = match shape.sparse_data() {
        Some(data) => {
            let number = if data.has_few_instances() { "fewer than" } else { "at least" };
            let length = if data.has_long_instances() { "at least" } else { "fewer than" };
            let labels = match () {
                () if data.has_many_labels() => format!("at least {MANY} labels"),
                () if data.has_rare_labels_alone() => {
                    format!("labels that are all rare (one for {FOR_EACH} instances, none on more than one of {SHARE})")
                }
                () => format!("fewer than {MANY} labels, not all of them rare"),
            };
            format!(
                "{number} {FEW} instances, of {length} {LONG} features on average, {labels}: width, initial \
                 embeddings, dropout, loss, rate and epochs follow from this; few instances come before long ones, long \
                 ones before many or rare labels"
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
    fn network(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        self.head.preset().as_deref().and_then(preset::lns_of).unwrap_or_else(preset::lns)
    }

    fn preset_for(&self, shape: &Shape) -> Preset {
        let usual = shape.sparse_data().map_or_else(preset::lns, preset::lns_for);
        self.named_preset().map_or_else(|| suited_to(shape, usual), |_| self.preset())
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, FitError> {
        let mut params = self.network.apply(&self.preset_for(shape), shape.input, seed)?;
        self.head.apply(shape, &mut params)?;
        Ok(params)
    }

    fn named_preset(&self) -> Option<String> {
        self.head.preset()
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        plan.lines.extend(self.head.preset().is_none().then(|| few_or_long(&session.shape)));
        self.head.resolve(session, &mut plan.resolved);
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), FitError> {
        self.head.announce(session);
        Ok(())
    }
}
