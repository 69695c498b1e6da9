//! Explanations as reports.

use super::Model;
use super::explain::{Explanation, Feature};
use serde_json::{Value, json};
use xc_hash::text::Featurizer;
use xc_tree::PathNode;

impl Model {
    /// The term that a feature counts, for a model of text that knows it; of tokens a feature of the words beside them.
    pub fn term(&self, feature: u32) -> Option<&str> {
        match self.pipeline() {
            Some(Featurizer::Text(pipeline)) => pipeline.term(feature),
            Some(Featurizer::Tokens(of)) => of.words().and_then(|pipeline| pipeline.term(feature)),
            _ => None,
        }
    }
}

/// A feature and what it adds to a margin.
type Part = (u32, f32);

/// The parts of a margin with the largest magnitudes, `top` at most, and the number and sum of the others.
pub fn largest_parts(parts: &[Part], top: usize) -> (Vec<Part>, Option<(usize, f32)>) {
    let mut parts = parts.to_vec();
    parts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let rest = parts.split_off(parts.len().min(top));
    let sum = rest.iter().map(|part| part.1).sum();
    (parts, (!rest.is_empty()).then_some((rest.len(), sum)))
}

impl Explanation {
    /// As an object: the `top` strongest effects, and as many parts of each margin; `model` is the one that was asked.
    pub fn json(&self, model: &Model, top: usize) -> Value {
        let Self { label, score, logit, wide, effects, others, paths } = self;
        let of_feature = |feature: &Feature| {
            let mut entry = json!({ "value": feature.value });
            feature.number.into_iter().for_each(|number| entry["feature"] = json!(number));
            feature.term.iter().for_each(|term| entry["term"] = json!(term));
            if feature.hashed {
                entry["hashed"] = json!(true);
            }
            entry
        };
        let with = |mut entry: Value, effect: f32, logit: Option<f32>| {
            entry["effect"] = json!(effect);
            logit.into_iter().for_each(|logit| entry["logit"] = json!(logit));
            entry
        };
        let with_parts = |mut entry: Value, parts: &[(u32, f32)]| {
            let (parts, rest) = largest_parts(parts, top);
            let part = |&(feature, part): &(u32, f32)| {
                let mut entry = json!({ "feature": feature, "part": part });
                model.term(feature).into_iter().for_each(|term| entry["term"] = json!(term));
                entry
            };
            entry["parts"] = parts.iter().map(part).collect();
            rest.into_iter().for_each(|(n, sum)| entry["others"] = json!({ "features": n, "part": sum }));
            entry
        };
        let effects = effects.iter().take(top);
        let effects = effects.map(|effect| with(of_feature(&effect.feature), effect.score, effect.logit));
        let mut out = json!({ "label": label, "score": score, "effects": effects.collect::<Vec<_>>() });
        logit.iter().for_each(|logit| out["logit"] = json!(logit));
        if let Some(others) = others {
            out["others"] = with(json!({ "features": others.n }), others.score, others.logit);
        }
        if let Some(of) = wide {
            let entry = json!({ "logit": of.logit(), "network": of.network, "bias": of.bias });
            out["wide"] = with_parts(entry, &of.parts);
        }
        if !paths.is_empty() {
            let node = |node: &PathNode| {
                let entry = json!({ "node": node.node, "margin": node.margin, "score": node.score, "bias": node.bias });
                with_parts(entry, &node.parts)
            };
            out["trees"] = paths.iter().map(|path| path.iter().map(node).collect::<Vec<_>>()).collect();
        }
        out
    }
}
