//! What the options of networks mean for the data.

use super::lns::CandidateChoices;
use super::{Session, System};
use crate::classifier::{InputKind, LearningParams};
use crate::fit::plan::{Origin, Plan, Resolved};
use crate::message::counted;
use crate::message::{label_of, name_of};
use serde_json::{Map, json};
use xc_lsh::Kind;
use xc_lsh::upkeep::Schedule;
use xc_nn::sampler::{AnnParams, Lists, LshParams, MidxParams, SamplerParams, ScheduleParams, Weighting};
use xc_sparse::store::to_parameter;

impl Session<'_> {
    /// The training, resolved.
    pub(super) fn plan(&self, system: &dyn System, memory: u64) -> Plan {
        let shape = &self.shape;
        let n_instances = self.instances.targets().len();
        let mut data = Map::from_iter([
            ("instances".to_owned(), json!(n_instances)),
            ("features".to_owned(), json!(shape.n_features)),
            ("labels".to_owned(), json!(shape.n_labels)),
        ]);
        let what = if shape.input == InputKind::Sparse { "feature" } else { "value" };
        let mut said = format!(
            "{}, {}, {}",
            counted(n_instances, "instance"),
            counted(shape.n_features, what),
            counted(shape.n_labels, "label")
        );
        if let Some(mean) = shape.sparse_data().map(|of| of.features_per_instance()) {
            said += &format!("; {mean:.1} features per instance");
            data.insert("features_per_instance".to_owned(), json!(mean));
        }
        let mut plan = Plan {
            kind: system.preset().name,
            lines: vec![("data", said)],
            resolved: Resolved::default(),
            data,
            parameters: json!({
                "classifier": to_parameter(&self.params),
                LearningParams::NAME: to_parameter(&self.params.learning),
                "training": self.kept(),
            }),
            memory,
        };
        self.resolve(system, &mut plan.resolved);
        system.explain(self, &mut plan);
        plan
    }

    /// The values that all networks have.
    fn resolve(&self, system: &dyn System, out: &mut Resolved) {
        let (params, training) = (&self.params, &self.training);
        let (encoder, learning) = (&params.encoder, &params.learning);
        let of = |option: &str| system.origin(option, &self.shape);
        let mut widths: Vec<_> = encoder.widths().iter().map(usize::to_string).collect();
        if system.has_intermediate() {
            widths.pop();
        }
        let widths = Some(widths.join(",")).filter(|widths| !widths.is_empty());
        out.set_some("network.widths", widths, "none", of("network.widths"));
        let is_sparse = encoder.input() == InputKind::Sparse;
        let no_embeddings = "none: instances are vectors";
        let init = is_sparse.then(|| name_of(&learning.init));
        out.set_some("network.init", init, no_embeddings, of("network.init"));
        let activation = encoder.activation().map(|activation| name_of(&activation));
        let by = if self.args.has_init() { Origin::Follows("network.init") } else { of("network.activation") };
        out.set_some("network.activation", activation, no_embeddings, by);
        let rate = is_sparse.then_some(learning.embedding_rate);
        out.set_some("network.embedding-rate", rate, no_embeddings, Origin::Follows("network.init"));
        let alone = self.args.has_dropout_alone();
        let dropout = if alone { Origin::Follows("network.dropout") } else { of("network.input-dropout") };
        out.set("network.input-dropout", learning.input_dropout, dropout);
        out.set("network.dropout", learning.dropout, of("network.dropout"));
        out.set("network.precision", params.precision.name(), of("network.precision"));
        out.set("loss", name_of(&params.loss), of("loss"));
        out.set("epochs", training.epochs, of("epochs"));
        out.set("batch", training.batch_size, of("batch"));
        let rate = if self.args.has_usual_rate() { of("optimizer.rate") } else { Origin::Follows("optimizer") };
        out.set("optimizer.rate", training.rate, rate);
        out.set("optimizer.weight-decay", self.optimizer.weight_decay(), Origin::Follows("optimizer"));
        out.set_some("schedule.warmup", self.args.warmup(), "none", Origin::Follows("schedule"));
        out.set_some("schedule.lowest", self.args.lowest(), "none", Origin::Follows("schedule"));
        out.set_some("clip-norm", training.clip_norm, "no clipping", Origin::Default);
        out.set("validation-fraction", self.args.held_out().unwrap_or(0.0), Origin::Default);
        out.set_some("split-seed", self.args.split_seed(), "that of --seed", Origin::Default);
        let patience = training.early_stopping.map(|stopping| stopping.patience);
        out.set_some("patience", patience, "never stops early", Origin::Default);
        let by = if self.has_judges() { Origin::Default } else { Origin::Follows("validation") };
        out.set("monitor", training.monitor, by);
        let every = self.args.checkpoint_every();
        out.set_some("checkpoint-every", every, "after epochs, at most one a minute", Origin::Default);
        out.set("normalise", is_sparse, Origin::Default);
        out.set("checkpoint", self.of.place.checkpoint().display(), Origin::Follows("model"));
    }
}

/// The values of a head whose steps score some labels.
pub(super) fn resolve_candidates(args: &CandidateChoices, session: &Session<'_>, out: &mut Resolved) {
    let negatives = &session.params.learning.negatives;
    let n_labels = session.shape.n_labels;
    let by_preset = |changed: bool| match &args.preset() {
        Some(name) if changed => Origin::Preset(name.clone()),
        _ => Origin::Default,
    };
    let few = if args.scores_all(n_labels) { Origin::Data } else { by_preset(true) };
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
