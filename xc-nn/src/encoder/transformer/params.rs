//! What a transformer is, how it learns, and what is impossible about one.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The families of models, which differ in the names of their weights and in what is added to a word's embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// Positions and token types (`[devlin2019bert]`).
    Bert,
    /// Positions alone.
    #[serde(rename = "distilbert")]
    DistilBert,
    /// Positions that begin at 2, and a bias of attention by distance.
    Mpnet,
    /// Positions that begin at 2, and one token type.
    Roberta,
    /// As [`Architecture::Roberta`].
    XlmRoberta,
}

/// How one vector comes of the states of an instance's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// Their mean.
    #[default]
    Mean,
    /// The state of the first.
    First,
}

/// A bias of attention by the distance of two tokens, shared by all layers: a number for each range of distances and
/// each head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distances {
    /// Number of ranges, half of them for tokens before and half for tokens behind.
    pub buckets: usize,
    /// Distances from here on are one range.
    pub most: usize,
}

/// What a transformer is. Answers depend on all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerParams {
    /// Where its weights come from or could go to.
    pub family: Architecture,
    /// Number of tokens that there are.
    pub vocabulary: usize,
    /// Most tokens of an instance.
    pub positions: usize,
    /// Row of the table of positions that is the first token's.
    pub first_position: usize,
    /// Token types; the first is every token's. There may be none.
    pub types: usize,
    /// Values of a token's state, and of their pooled vector.
    pub width: usize,
    /// Heads of attention, which share the width.
    pub heads: usize,
    /// Units between the two linear layers of a block.
    pub units: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Added to variances, against division by zero.
    pub epsilon: f32,
    /// The bias of attention by distance, where there is one.
    pub distances: Option<Distances>,
    /// How one vector comes of the tokens' states.
    pub pooling: Pooling,
    /// Linear layers behind the pooling, in their order; there may be none, and then they are not written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dense: Vec<DenseParams>,
}

/// What a linear layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseParams {
    /// Values of a vector that comes in.
    pub inputs: usize,
    /// Values of one that goes out.
    pub outputs: usize,
    /// What they go through at last.
    pub activation: DenseActivation,
}

/// What the values of a linear layer go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenseActivation {
    /// Nothing.
    Identity,
    /// The hyperbolic tangent.
    Tanh,
    /// Those above 0, and 0 for others.
    Relu,
    /// The logistic function.
    Sigmoid,
}

/// What trainers alone read of a transformer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerLearning {
    /// Chance that a value of a state is dropped, behind the embeddings and behind both halves of a block. Default 0.
    pub dropout: f32,
    /// Chance that a weight of attention is dropped. Default 0.
    pub attention_dropout: f32,
    /// Chance that a value of an instance's vector is dropped. Default 0.
    pub pooled_dropout: f32,
    /// The rate of each layer as a share of that of the layer above. Default 1.
    pub layer_decay: f32,
    /// So many of the lowest layers, and the embeddings with them, stay as they are. Default 0: all learn.
    pub frozen_layers: usize,
}

impl Default for TransformerLearning {
    fn default() -> Self {
        Self { dropout: 0.0, attention_dropout: 0.0, pooled_dropout: 0.0, layer_decay: 1.0, frozen_layers: 0 }
    }
}

/// Something impossible about a transformer.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{name} is {got}, expected {expected}")]
pub struct TransformerParamsError {
    /// The number.
    pub name: &'static str,
    /// Its value.
    pub got: f64,
    /// What it may be.
    pub expected: String,
}

/// More tokens than a transformer has positions for.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("an instance of {got} tokens, at most {most} are expected")]
pub struct TooManyTokens {
    /// Tokens of the instance.
    pub got: usize,
    /// Positions.
    pub most: usize,
}

/// Most of any size: products of three of them are numbers.
pub(super) const MOST: usize = 1 << 20;

impl TransformerParams {
    /// Says whether there is such a transformer.
    ///
    /// # Errors
    /// The first number that is impossible.
    pub fn check(&self) -> Result<(), TransformerParamsError> {
        let Self { vocabulary, positions, types, width, heads, units, layers, first_position, epsilon, .. } = *self;
        let fail = |name, got, expected| Err(TransformerParamsError { name, got, expected });
        for (name, got, least) in [
            ("vocabulary", vocabulary, 1),
            ("positions", positions, 1),
            ("first_position", first_position, 0),
            ("types", types, 0),
            ("width", width, 1),
            ("heads", heads, 1),
            ("units", units, 1),
            ("layers", layers, 1),
        ] {
            // Vocabularies are larger than anything else.
            let most = if name == "vocabulary" { 16 * MOST } else { MOST };
            if !(least..=most).contains(&got) {
                return fail(name, got as f64, format!("{least} to {most}"));
            }
        }
        if !width.is_multiple_of(heads) {
            return fail("width", width as f64, format!("a multiple of the {heads} heads"));
        }
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return fail("epsilon", f64::from(epsilon), "a finite number from 0 on".to_owned());
        }
        if let Some(Distances { buckets, most }) = self.distances {
            if !(4..=MOST).contains(&buckets) || !buckets.is_multiple_of(4) {
                return fail("buckets of distances", buckets as f64, format!("a multiple of 4, 4 to {MOST}"));
            }
            if most <= buckets / 4 {
                let expected = format!("more than a quarter of the {buckets} buckets");
                return fail("largest distance with a bucket", most as f64, expected);
            }
        }
        let mut before = width;
        for layer in &self.dense {
            if layer.inputs != before {
                return fail("inputs of a linear layer", layer.inputs as f64, format!("the {before} that come to it"));
            }
            if !(1..=MOST).contains(&layer.outputs) {
                return fail("outputs of a linear layer", layer.outputs as f64, format!("1 to {MOST}"));
            }
            before = layer.outputs;
        }
        Ok(())
    }

    /// Values of an instance's vector.
    pub fn vector_width(&self) -> usize {
        self.dense.last().map_or(self.width, |layer| layer.outputs)
    }
}

impl TransformerLearning {
    /// Says whether a transformer of so many layers can learn so.
    ///
    /// # Errors
    /// The first number that is impossible.
    pub fn check(&self, layers: usize) -> Result<(), TransformerParamsError> {
        let Self { dropout, attention_dropout, pooled_dropout, layer_decay, frozen_layers } = *self;
        let fail = |name, got, expected: &str| {
            Err(TransformerParamsError { name, got: f64::from(got), expected: expected.to_owned() })
        };
        for (name, got) in
            [("dropout", dropout), ("attention_dropout", attention_dropout), ("pooled_dropout", pooled_dropout)]
        {
            if !(0.0..1.0).contains(&got) {
                return fail(name, got, "0 <= rate < 1");
            }
        }
        if !(layer_decay > 0.0 && layer_decay <= 1.0) {
            return fail("layer_decay", layer_decay, "above 0, at most 1");
        }
        if frozen_layers > layers {
            let expected = format!("at most the {layers} layers");
            return Err(TransformerParamsError { name: "frozen_layers", got: frozen_layers as f64, expected });
        }
        Ok(())
    }
}
