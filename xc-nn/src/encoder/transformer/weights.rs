//! What the weights of each family are called, and which of ours they become.

use super::params::{Architecture, DenseParams, TransformerLearning, TransformerParams};
use rayon::current_num_threads;
use xc_dense::MatmulPrecision;

/// Arrays of a file that, one below the other, are one parameter of ours.
pub(super) struct Source {
    /// Name of the parameter.
    pub(super) parameter: String,
    /// Names of the arrays, without what a file puts before all of them.
    pub(super) arrays: Vec<String>,
    /// Shape of each array.
    pub(super) shape: Vec<usize>,
}

/// Tokens that are answered together, where no instance has more.
pub(super) const TOGETHER: usize = 2048;

/// What names of parameters begin with, and behind it those of a layer, before its number from 1 on.
const PREFIX: &str = "transformer.";
const LAYER: &str = "layer";
/// What the linear layers behind the pooling begin with there.
const DENSE: &str = "dense";

/// What the parameters of the linear layer at a place, from 0, are called before a dot.
pub(super) fn dense_name(at: usize) -> String {
    format!("{PREFIX}{DENSE}{}", at + 1)
}

impl DenseParams {
    /// Names and shapes of the weights and the biases of the layer at a place, from 0.
    pub(super) fn arrays(&self, at: usize) -> [(String, [usize; 2]); 2] {
        let name = dense_name(at);
        [(format!("{name}.weights"), [self.outputs, self.inputs]), (format!("{name}.bias"), [self.outputs, 1])]
    }
}

/// What stands before this in the name of the table of words stands before all names.
pub(super) const WORDS: &str = "embeddings.word_embeddings.weight";

/// A product of sizes; no memory of the world holds what does not fit.
fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1, |product: u64, &factor| product.saturating_mul(factor as u64))
}

impl TransformerParams {
    /// Names and shapes of a transformer's parameters, in the order of [`State::parameters`](crate::state::State).
    pub fn arrays(&self) -> Vec<(String, [usize; 2])> {
        let one = |Source { parameter, arrays, shape }: Source| {
            (parameter, [arrays.len() * shape[0], shape.get(1).copied().unwrap_or(1)])
        };
        let of_dense = self.dense.iter().enumerate().flat_map(|(at, layer)| layer.arrays(at));
        sources(self).into_iter().map(one).chain(of_dense).collect()
    }

    /// Bytes of a step's buffers over `n_tokens` tokens, at most `longest` of them of an instance, beside parameters and
    /// moments: what layers that learn keep, and what they share.
    pub fn step_bytes(&self, products: MatmulPrecision, n_tokens: usize, longest: usize, n_learning: usize) -> u64 {
        let (width, units) = (self.width, self.units);
        // Queries, keys and values, what attention mixes, units before GELU: in bf16 those of the layer at work as they
        // are, too.
        let (bytes, at_work) = match products {
            MatmulPrecision::F32 => (4, 0),
            MatmulPrecision::Bf16 => (2, product(&[4, n_tokens, 3 * width + units])),
        };
        let read = product(&[bytes, n_tokens, n_learning, 4 * width + units]);
        // Two normalised states of a layer; those of the embeddings.
        let normalised = product(&[4, n_tokens, n_learning + 1, 2 * width]);
        // Five states between layers, gradients of all sums of a layer, units behind GELU where gradients are clipped.
        let shared = product(&[4, n_tokens, 11 * width + 2 * units]);
        let parts = [read, at_work, normalised, shared, self.attention_bytes(longest)];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Bytes of the buffers of answers to batches of `n_tokens` tokens, at most `longest` of them of an instance.
    pub fn answer_bytes(&self, n_tokens: usize, longest: usize) -> u64 {
        let together = n_tokens.min(TOGETHER.max(longest));
        let (width, units) = (self.width, self.units);
        let of_thread = product(&[4, together, 11 * width + 2 * units]);
        of_thread.saturating_mul(current_num_threads() as u64).saturating_add(self.attention_bytes(longest))
    }

    fn attention_bytes(&self, longest: usize) -> u64 {
        product(&[4, current_num_threads(), 3, longest, longest])
    }

    /// Bytes of the weights of so many layers as answers keep them packed, beside the parameters; half of them where the
    /// machine multiplies bf16.
    pub fn packed_bytes(&self, n_layers: usize) -> u64 {
        product(&[4, n_layers, 4 * self.width * self.width + 2 * self.width * self.units])
    }

    /// Products and sums of steps over `n_tokens` tokens, where the squares of the instances' lengths have the sum
    /// `squares`: forward through all layers, and twice as many backward through the `n_learning` upper ones.
    pub fn step_operations(&self, n_tokens: u64, squares: u64, n_learning: usize) -> f64 {
        let (width, units) = (self.width as f64, self.units as f64);
        let linear = 2.0 * n_tokens as f64 * (4.0 * width * width + 2.0 * width * units);
        let attention = 4.0 * squares as f64 * width;
        (linear + attention) * (self.layers + 2 * n_learning.min(self.layers)) as f64
    }
}

impl TransformerLearning {
    /// Layers of a transformer that learn: the upper ones.
    pub fn n_learning(&self, of: &TransformerParams) -> usize {
        of.layers.saturating_sub(self.frozen_layers)
    }

    /// Whether a transformer's parameter of this name ([`TransformerParams::arrays`]) learns: what is below the layers
    /// stays where any of them does, and what is above them always learns. `None` for the name of another parameter.
    pub fn learns(&self, parameter: &str) -> Option<bool> {
        let of_ours = parameter.strip_prefix(PREFIX)?;
        if of_ours.starts_with(DENSE) {
            return Some(true);
        }
        let layer = of_ours.strip_prefix(LAYER).and_then(|rest| rest.split('.').next()?.parse().ok());
        Some(layer.map_or(self.frozen_layers == 0, |layer: usize| layer > self.frozen_layers))
    }
}

/// Names of the parts of a block.
struct Names {
    layers: &'static str,
    qkv: [&'static str; 3],
    attended: &'static str,
    norm1: &'static str,
    up: &'static str,
    down: &'static str,
    norm2: &'static str,
}

const BERT: Names = Names {
    layers: "encoder.layer",
    qkv: ["attention.self.query", "attention.self.key", "attention.self.value"],
    attended: "attention.output.dense",
    norm1: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm2: "output.LayerNorm",
};

const DISTILBERT: Names = Names {
    layers: "transformer.layer",
    qkv: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    attended: "attention.out_lin",
    norm1: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    norm2: "output_layer_norm",
};

const MPNET: Names = Names {
    qkv: ["attention.attn.q", "attention.attn.k", "attention.attn.v"],
    attended: "attention.attn.o",
    norm1: "attention.LayerNorm",
    ..BERT
};

/// Where every parameter of a transformer comes from, but those of the linear layers behind it.
pub(super) fn sources(of: &TransformerParams) -> Vec<Source> {
    let (width, units) = (of.width, of.units);
    let names = match of.family {
        Architecture::Bert | Architecture::Roberta | Architecture::XlmRoberta => BERT,
        Architecture::DistilBert => DISTILBERT,
        Architecture::Mpnet => MPNET,
    };
    let one = |parameter: String, array: String, shape: &[usize]| Source {
        parameter: format!("{PREFIX}{parameter}"),
        arrays: vec![array],
        shape: shape.to_vec(),
    };
    let mut out = vec![one("words".into(), WORDS.into(), &[of.vocabulary, width])];
    let positions = of.first_position + of.positions;
    out.push(one("positions".into(), "embeddings.position_embeddings.weight".into(), &[positions, width]));
    if of.types > 0 {
        out.push(one("types".into(), "embeddings.token_type_embeddings.weight".into(), &[of.types, width]));
    }
    let norm = |parameter: &str, array: &str| {
        [("gain", "weight"), ("bias", "bias")]
            .map(|(ours, theirs)| one(format!("{parameter}.{ours}"), format!("{array}.{theirs}"), &[width]))
    };
    out.extend(norm("norm", "embeddings.LayerNorm"));
    if let Some(distances) = of.distances {
        let array = "encoder.relative_attention_bias.weight";
        out.push(one("distances".into(), array.into(), &[distances.buckets, of.heads]));
    }
    for layer in 0..of.layers {
        let (ours, theirs) = (format!("{LAYER}{}", layer + 1), format!("{}.{layer}", names.layers));
        let linear = |parameter: &str, parts: &[&str], rows: usize, columns: usize| {
            [("weights", "weight", vec![rows, columns]), ("bias", "bias", vec![rows])].map(|(our, their, shape)| {
                Source {
                    parameter: format!("{PREFIX}{ours}.{parameter}.{our}"),
                    arrays: parts.iter().map(|part| format!("{theirs}.{part}.{their}")).collect(),
                    shape,
                }
            })
        };
        out.extend(linear("qkv", &names.qkv, width, width));
        out.extend(linear("attended", &[names.attended], width, width));
        out.extend(linear("up", &[names.up], units, width));
        out.extend(linear("down", &[names.down], width, units));
        out.extend(norm(&format!("{ours}.norm1"), &format!("{theirs}.{}", names.norm1)));
        out.extend(norm(&format!("{ours}.norm2"), &format!("{theirs}.{}", names.norm2)));
    }
    out
}
