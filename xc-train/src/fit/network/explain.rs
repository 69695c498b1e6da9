//! What the options of networks mean for the data.

use super::{Session, Shape, System};
use crate::classifier::preset::SHAPES;
use crate::classifier::{LearningParams, Preset};
use crate::fit::FitError;
use crate::fit::plan::{Origin, Plan};
use crate::message::counted;
use crate::settings::network::{self, NetworkSettings};
use crate::settings::wide::{self, WideSettings};
use crate::settings::{Setting, serialised};
use serde::Serialize;
use serde_json::{Map, json};
use xc_sparse::store::to_parameter;

impl Session<'_> {
    /// The training, resolved.
    pub(super) fn plan(&self, system: &dyn System, memory: u64) -> Result<Plan, FitError> {
        let shape = &self.shape;
        let n_instances = self.instances.targets().len();
        let mut data = Map::from_iter([
            ("instances".to_owned(), json!(n_instances)),
            ("features".to_owned(), json!(shape.n_features)),
            ("labels".to_owned(), json!(shape.n_labels)),
        ]);
        let mut said = format!(
            "{}, {}, {}",
            counted(n_instances, "instance"),
            counted(shape.n_features, shape.unit()),
            counted(shape.n_labels, "label")
        );
        if let Some(mean) = shape.sparse_data().map(|of| of.features_per_instance()) {
            said += &format!("; {mean:.1} features per instance");
            data.insert("features_per_instance".to_owned(), json!(mean));
        }
        let mut plan = Plan {
            kind: system.preset().name,
            lines: vec![("data", said)],
            resolved: self.of.resolved()?,
            data,
            parameters: json!({
                "classifier": to_parameter(&self.params),
                LearningParams::NAME: to_parameter(&self.params.learning),
                "training": self.kept(),
            }),
            memory,
        };
        let choices = &self.of.choices;
        let settings = self.args.settings(&system.preset_for(shape), shape.input)?;
        let settings = NetworkSettings { monitor: Some(self.training.monitor), ..settings };
        let of_preset = self.of_preset(system, |preset| NetworkSettings::of_preset(preset, shape.input));
        plan.resolved.add(&network::TABLE, &settings, choices, of_preset);
        let of_preset = self.of_preset(system, |preset| WideSettings::of(preset.params.learning.wide));
        plan.resolved.add(&wide::TABLE, &WideSettings::of(self.params.learning.wide), choices, of_preset);
        #[cfg(feature = "transformer")]
        if let Some(settings) = crate::settings::transformer::TransformerSettings::new(choices)? {
            let none = |_: &Setting, _: Option<&str>| None;
            plan.resolved.add(&crate::settings::transformer::TABLE, &settings, choices, none);
        }
        system.explain(self, &mut plan);
        if self.params.learning.wide.is_some() && self.has_judges() {
            let said = "of the network alone after each epoch, which chooses the epoch; the wide term is learned after the \
                        last one, and the report has the precision with it and without";
            plan.lines.push(("validation", said.to_owned()));
        }
        Ok(plan)
    }

    /// Where a value comes from, if it is that of the kind's preset: from the data where presets for others differ.
    fn of_preset<S: Serialize>(
        &self,
        system: &dyn System,
        settings: impl Fn(&Preset) -> S,
    ) -> impl Fn(&Setting, Option<&str>) -> Option<Origin> {
        let of = |shape: &Shape| serialised(&settings(&system.preset_for(shape)));
        let (own, named) = (of(&self.shape), system.named_preset());
        let shapes = SHAPES.iter().flat_map(|&(_, data)| [1, 2].map(|most| (data, most)));
        let others: Vec<_> =
            shapes.map(|(data, most_labels)| of(&Shape { data: Some(data), most_labels, ..self.shape })).collect();
        move |row, value| {
            let usual = row.shown(&own);
            (value == usual.as_deref()).then(|| match &named {
                Some(name) => Origin::Preset(name.clone()),
                None if others.iter().any(|other| row.shown(other) != usual) => Origin::Data,
                None => Origin::Default,
            })
        }
    }
}
