//! What the options of networks mean for the data.

use super::{Session, System};
use crate::classifier::{InputKind, LearningParams};
use crate::fit::plan::{Origin, Plan, Resolved};
use crate::message::{counted, name_of};
use crate::settings::serialised;
use crate::settings::wide::{self, WideSettings};
use serde_json::{Map, json};
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
        out.set_some("split-seed", self.of.choices.split_seed(), "that of --seed", Origin::Default);
        let patience = training.early_stopping.map(|stopping| stopping.patience);
        out.set_some("patience", patience, "never stops early", Origin::Default);
        let by = if self.has_judges() { Origin::Default } else { Origin::Follows("validation") };
        out.set("monitor", training.monitor, by);
        if crate::fit::tables(system.preset().name).iter().any(|table| table.row("wide").is_some()) {
            let (settings, has_term) = (WideSettings::of(learning.wide), learning.wide.is_some());
            let all = serialised(&settings);
            for row in wide::TABLE.rows.iter().filter(|row| has_term || row.name == "wide") {
                let by = if row.name == "wide" { Origin::Data } else { of(row.name) };
                out.set_some(row.name, row.shown(&all), row.none, by);
            }
        }
        let every = self.args.checkpoint_every();
        out.set_some("checkpoint-every", every, "after epochs, at most one a minute", Origin::Default);
        out.set("normalise", is_sparse, Origin::Default);
        out.set("checkpoint", self.of.place.checkpoint().display(), Origin::Follows("model"));
    }
}
