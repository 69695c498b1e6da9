//! What the options of networks mean for the data.

use super::System;
use crate::settings::{Choices, Setting, network, transformer, wide};
use crate::training::Training;
use crate::training::plan::{Origin, Resolved, TrainingPlan};
use serde_json::{Map, Value, json};
use xc_model::classifier::LearningParams;
use xc_model::message::counted;
use xc_store::to_parameter;
use xc_train::fit::{FitError, NetworkSession, TrainingShape};
use xc_train::network::{EncoderName, NetworkParams, RunParams, TextEncoder};
use xc_train::preset::SHAPES;

/// The training, resolved.
pub(super) fn plan(
    session: &NetworkSession<'_>,
    system: &dyn System,
    of: &Training,
    memory: u64,
) -> Result<TrainingPlan, FitError> {
    let shape = &session.shape;
    let n_instances = session.instances.targets().len();
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
    let tokens = of_tokens(session, &mut data, of);
    let mut plan = TrainingPlan {
        kind: system.preset().name,
        lines: vec![("data", said)],
        resolved: of.resolved()?,
        data,
        parameters: json!({
            "classifier": to_parameter(&session.network.classifier),
            LearningParams::NAME: to_parameter(&session.network.classifier.learning),
            "training": session.kept(),
        }),
        memory,
    };
    plan.lines.extend(tokens);
    resolve(system, &of.choices, shape, (&session.network, &session.run), &mut plan.resolved)?;
    system.explain(session, &mut plan);
    if session.network.classifier.learning.wide.is_some() && session.has_judges() {
        let said = "of the network alone after each epoch, which chooses the epoch; the wide term is learned after the \
                    last one, and the report has the precision with it and without";
        plan.lines.push(("validation", said.to_owned()));
    }
    Ok(plan)
}

/// The values of all settings of a network for instances of a shape: those of how it looks and learns, of the run beside it, of
/// a transformer, and those of the kind alone.
pub(in crate::training) fn resolve(
    system: &dyn System,
    choices: &Choices,
    shape: &TrainingShape,
    (network, run): (&NetworkParams, &RunParams),
    out: &mut Resolved,
) -> Result<(), FitError> {
    // Without what a kind adds to the layers.
    let mut shown = system.choices().shown(&system.preset_for(shape), shape.input)?;
    shown.training.monitor = network.training.monitor;
    shown.classifier.learning.wide = network.classifier.learning.wide;
    let of_preset = of_preset(shape, system);
    out.add_placed(&network::TABLE, &shown, choices, &of_preset);
    out.add_placed(&network::TABLE, run, choices, &of_preset);
    out.add_placed(&wide::TABLE, &shown, choices, &of_preset);
    if let Some(encoder) = transformer::encoder(choices)? {
        let none = |_: &Setting, _: Option<&str>| None;
        let trains = encoder.encoder == EncoderName::Transformer;
        let table = if trains { transformer::TABLE } else { transformer::FROZEN };
        out.add_placed(&table, &encoder, choices, none);
    }
    system.resolve(shape, network, out);
    Ok(())
}

/// What is said of the tokens of the instances, where a transformer reads them.
fn of_tokens(
    session: &NetworkSession<'_>,
    data: &mut Map<String, Value>,
    training: &Training,
) -> Vec<(&'static str, String)> {
    if let (xc_nn::Rows::Tokens(rows), Some(of)) =
        (session.instances.features(), session.network.classifier.encoder.tokens())
    {
        let mut lengths: Vec<usize> = (0..rows.len()).map(|i| rows.row(i).len()).collect();
        lengths.sort_unstable();
        let (n_tokens, n) = (rows.ids().len(), lengths.len().max(1));
        let mean = n_tokens as f64 / n as f64;
        let most = lengths.get((lengths.len() * 9).div_ceil(10).saturating_sub(1)).copied().unwrap_or(0);
        let limit =
            training.choices.value("transformer.max-tokens").unwrap_or(TextEncoder::default().pretrained.max_tokens);
        let n_full = lengths.iter().filter(|&&length| length >= limit).count();
        let squares = lengths.iter().map(|&length| (length * length) as u64).sum();
        let n_learning = session.network.classifier.learning.tokens.layers.n_learning(&of.transformer);
        let operations = of.transformer.step_operations(n_tokens as u64, squares, n_learning);
        data.insert("tokens_per_instance".to_owned(), json!(mean));
        data.insert("full_instances".to_owned(), json!(n_full));
        data.insert("transformer_operations_per_epoch".to_owned(), json!(operations));
        let lengths = format!(
            "{mean:.1} an instance in the mean, at most {most} of nine in ten; {n_full} of {n} have all {limit} \
             (--transformer.max-tokens): texts that end there or are cut"
        );
        let work = format!(
            "{:.3} TFLOP an epoch in a transformer of {} layers of {} values, {n_learning} of which learn",
            operations / 1e12,
            of.transformer.layers,
            of.transformer.width,
        );
        return vec![("tokens", lengths), ("work", work)];
    }
    Vec::new()
}

/// Where a value comes from, if it is that of the kind's preset: from the data where presets for others differ.
fn of_preset(own: &TrainingShape, system: &dyn System) -> impl Fn(&Setting, Option<&str>) -> Option<Origin> {
    let of = |shape: &TrainingShape| {
        let preset = system.preset_for(shape);
        let mut made = NetworkParams::of(&preset, shape.input);
        // What a term has where there is one.
        made.classifier.learning.wide = Some(preset.params.learning.wide.unwrap_or_default());
        made
    };
    let (made, named) = (of(own), system.named_preset());
    let shapes = SHAPES.iter().flat_map(|&(_, data)| [1, 2].map(|most| (data, most)));
    let others: Vec<_> =
        shapes.map(|(data, most_labels)| of(&TrainingShape { data: Some(data), most_labels, ..*own })).collect();
    move |row, value| {
        let usual = row.shown_in(&made);
        (value == usual.as_deref()).then(|| match &named {
            Some(name) => Origin::Preset(name.clone()),
            None if others.iter().any(|other| row.shown_in(other) != usual) => Origin::Data,
            None => Origin::Default,
        })
    }
}
