//! Explanations as objects.

use crate::error;
use crate::model::Model;
use pyo3::prelude::*;
use serde_json::{Value, json};
use xc_train::model::explain::{Explanation, Feature};
use xc_train::xc_hash::text::Featurizer;
use xc_train::xc_tree::PathNode;

impl Model {
    /// An explanation as `xc explain --json` writes it.
    pub(crate) fn explained(&self, py: Python<'_>, found: &Explanation) -> PyResult<Value> {
        let Explanation { label, score, logit, wide, effects, others, paths } = found;
        let with = |mut entry: Value, effect: f32, logit: Option<f32>| {
            entry["effect"] = json!(effect);
            logit.into_iter().for_each(|logit| entry["logit"] = json!(logit));
            entry
        };
        let of_feature = |feature: &Feature| {
            let mut entry = json!({ "value": feature.value });
            feature.number.into_iter().for_each(|number| entry["feature"] = json!(number));
            feature.term.iter().for_each(|term| entry["term"] = json!(term));
            if feature.hashed {
                entry["hashed"] = json!(true);
            }
            entry
        };
        let parts = |parts: &[(u32, f32)]| {
            let mut parts = parts.to_vec();
            parts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
            let part = |&(feature, part): &(u32, f32)| {
                let mut entry = json!({ "feature": feature, "part": part });
                self.term(feature).into_iter().for_each(|term| entry["term"] = json!(term));
                entry
            };
            parts.iter().map(part).collect::<Vec<_>>()
        };
        let effects = effects.iter().map(|effect| with(of_feature(&effect.feature), effect.score, effect.logit));
        let mut out = json!({ "label": label, "score": score, "effects": effects.collect::<Vec<_>>() });
        let name = self.inner.name_of(*label).map_err(|e| error::model(py, &e))?;
        name.into_iter().for_each(|name| out["name"] = json!(name));
        logit.iter().for_each(|logit| out["logit"] = json!(logit));
        if let Some(others) = others {
            out["others"] = with(json!({ "features": others.n }), others.score, others.logit);
        }
        if let Some(of) = wide {
            let (network, bias) = (of.network, of.bias);
            out["wide"] = json!({ "logit": of.logit(), "network": network, "bias": bias, "parts": parts(&of.parts) });
        }
        if !paths.is_empty() {
            let node = |node: &PathNode| {
                let PathNode { node, margin, bias, parts: of_node, score } = node;
                json!({ "node": node, "margin": margin, "score": score, "bias": bias, "parts": parts(of_node) })
            };
            out["trees"] = paths.iter().map(|path| path.iter().map(node).collect::<Vec<_>>()).collect();
        }
        Ok(out)
    }

    /// The term that a feature counts, where the model knows it.
    fn term(&self, feature: u32) -> Option<&str> {
        match self.inner.pipeline() {
            Some(Featurizer::Text(pipeline)) => pipeline.term(feature),
            _ => None,
        }
    }
}
