//! What was chosen of the labels that a step scores, where these are not all.

use super::{Session, Shape};
use crate::classifier::ClassifierParams;
use crate::fit::FitError;
use crate::fit::plan::{Origin, Resolved};
use crate::message::label_of;
use crate::settings::Choices;
use crate::settings::candidates::CandidateSettings;
use xc_lsh::Kind;
use xc_lsh::upkeep::Schedule;
use xc_nn::sampler::{AnnParams, Lists, LshParams, MidxParams, SamplerParams, ScheduleParams, Weighting};

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
        let negatives = &session.params.learning.negatives;
        let n_labels = session.shape.n_labels;
        let by_preset = |changed: bool| match &self.preset() {
            Some(name) if changed => Origin::Preset(name.clone()),
            _ => Origin::Default,
        };
        let few = if self.scores_all(n_labels) { Origin::Data } else { by_preset(true) };
        out.set("sampler", label_of(&negatives.sampler), few.clone());
        out.set("negatives.shared", negatives.lists == Lists::Shared, by_preset(true));
        let candidates = match negatives.sampler {
            SamplerParams::All | SamplerParams::InBatch => None,
            SamplerParams::Uniform { per_list: n }
            | SamplerParams::LogUniform { per_list: n }
            | SamplerParams::Frequency { per_list: n, .. }
            | SamplerParams::TopK { per_instance: n }
            | SamplerParams::Ann(AnnParams { per_instance: n, .. })
            | SamplerParams::LabelText(AnnParams { per_instance: n, .. })
            | SamplerParams::Schedule(ScheduleParams { per_instance: n, .. })
            | SamplerParams::Midx(MidxParams { per_instance: n, .. })
            | SamplerParams::LshEmbedding(LshParams { candidates: n, .. })
            | SamplerParams::LshLabel(LshParams { candidates: n, .. }) => Some(n),
        };
        out.set_some("negatives.sampled", candidates, "none", few.clone());
        out.set("negatives.uniform", negatives.uniform, few);
        out.set("weighting", label_of(&negatives.weighting), Origin::Follows("sampler"));
        let tables = match negatives.sampler {
            SamplerParams::LshEmbedding(tables) | SamplerParams::LshLabel(tables) => Some(tables),
            _ => None,
        };
        const NO_TABLES: &str = "none: no tables";
        let width = session.params.encoder.top_width(session.shape.n_features);
        let sizing = tables.and_then(|tables| tables.sizing(n_labels as u64, width).ok());
        let of = || if tables.is_some() { by_preset(true) } else { Origin::Follows("sampler") };
        let by_rule = |codes_given: bool| if codes_given { of() } else { Origin::Data };
        let has_codes = tables.is_none_or(|tables| tables.n_codes.is_some());
        out.set_some("tables", sizing.as_ref().map(|sizing| sizing.n_tables()), NO_TABLES, by_rule(has_codes));
        out.set_some("codes", sizing.as_ref().map(|sizing| sizing.n_codes()), NO_TABLES, by_rule(has_codes));
        let family = tables.map(|tables| if matches!(tables.kind, Kind::SimHash { .. }) { "sim-hash" } else { "wta" });
        out.set_some("tables.family", family, NO_TABLES, of());
        out.set_some("tables.probes", tables.map(|tables| tables.probes), NO_TABLES, of());
        out.set_some("tables.per-bucket", tables.map(|tables| tables.per_bucket), NO_TABLES, of());
        let upkeep = tables.map(|tables| match tables.schedule {
            Schedule::Rebuild { .. } => "rebuild",
            Schedule::Immediate { .. } => "immediate",
            Schedule::Drift { .. } => "drift",
        });
        out.set_some("upkeep", upkeep, NO_TABLES, of());
        let (mut every, mut share, mut per_step, mut sort) = (None, None, None, None);
        match tables.map(|tables| tables.schedule) {
            Some(Schedule::Rebuild { every: n, .. }) => every = Some(n),
            Some(Schedule::Immediate { sort_every }) => sort = Some(sort_every),
            Some(Schedule::Drift { share: of, per_step: n, sort_every }) => {
                (share, per_step, sort) = (Some(of), Some(n), Some(sort_every));
            }
            None => {}
        }
        const NO_UPKEEP: &str = "none";
        let of_upkeep = || Origin::Follows("upkeep");
        out.set_some("upkeep.every", every, NO_UPKEEP, of_upkeep());
        out.set_some("upkeep.share", share, NO_UPKEEP, of_upkeep());
        out.set_some("upkeep.per-step", per_step, NO_UPKEEP, of_upkeep());
        out.set_some("upkeep.sort-every", sort, NO_UPKEEP, of_upkeep());
        let power = match negatives.sampler {
            SamplerParams::Frequency { power, .. } => Some(power),
            _ => None,
        };
        out.set_some("sampler.power", power, "none", Origin::Follows("sampler"));
        let cap = match negatives.weighting {
            Weighting::Inverse { cap } if negatives.sampler != SamplerParams::All => Some(cap.unwrap_or(0.0)),
            _ => None,
        };
        out.set_some("weight-cap", cap, "none", Origin::Follows("weighting"));
    }
}
