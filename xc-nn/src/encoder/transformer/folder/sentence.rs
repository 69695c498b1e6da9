//! What a folder of sentence-transformers says beside a transformer: `modules.json`, and small files of its modules.
//!
//! ```text
//!   text ──▶ prompt, lower case ──▶ tokens, cut ──▶ Transformer ──▶ Pooling ──▶ Dense ──▶ Normalize
//! ```
//!
//! Whatever changes vectors is applied or refused by name.

use super::super::params::{DenseActivation, DenseParams, MOST, Pooling};
use super::error::FolderError;
use super::files::{Object, WEIGHTS, open_tensors, read_object, read_values};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

pub(super) const MODULES: &str = "modules.json";
pub(super) const POOLING: &str = "1_Pooling";
pub(super) const MODULE_CONFIG: &str = "config.json";
/// Weights and biases of a linear layer in its file.
pub(super) const DENSE_ARRAYS: [&str; 2] = ["linear.weight", "linear.bias"];
/// What the transformer's module is called in files of its own; of some families they are named after it.
const SENTENCE_CONFIGS: [&str; 8] = [
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_mpnet_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlm_roberta_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
];
const PROMPTS: &str = "config_sentence_transformers.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const INCLUDE_PROMPT: &str = "include_prompt";
const ADAPTER: &str = "adapter_config.json";
/// Modules of a folder, at most.
const MOST_MODULES: usize = 16;

/// How a folder wants texts to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextRules {
    /// Whether texts are made lower case before they are tokenised.
    pub lower_case: bool,
    /// Whether the tokenizer's own normalizer makes lower case, where the folder says so beside it.
    pub tokenizer_lower_case: Option<bool>,
    /// Tokens of a text, at most, special ones included.
    pub max_tokens: Option<usize>,
    /// What stands before every text unless something else is asked for.
    pub prompt: Option<String>,
}

/// The modules of a folder, by the places of their files.
#[derive(Debug)]
pub(super) struct Modules {
    /// The folder of the transformer.
    pub(super) transformer: PathBuf,
    pub(super) pooling: Pooling,
    /// The configuration of a pooling that leaves the tokens of a prompt out.
    leaves_prompt_out: Option<Object>,
    /// Folders of linear layers.
    dense: Vec<PathBuf>,
    /// The module that scales vectors to length 1.
    pub(super) normalise: Option<String>,
}

impl Modules {
    /// Of a folder without `modules.json`: the transformer, and the usual place of a pooling.
    pub(super) fn read(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(MODULES);
        let mut out = Self {
            transformer: folder.to_owned(),
            pooling: Pooling::Mean,
            leaves_prompt_out: None,
            dense: Vec::new(),
            normalise: None,
        };
        let Some(values) = read_values(&path)? else {
            out.read_pooling(&folder.join(POOLING))?;
            return Ok(out);
        };
        let wrong = |what: String| FolderError::Module { path: path.clone(), what };
        let list = values.as_array().filter(|list| (1..=MOST_MODULES).contains(&list.len()));
        let list = list.ok_or_else(|| wrong(format!("expected a list of 1 to {MOST_MODULES} modules")))?;
        let mut has_pooling = false;
        for (at, module) in list.iter().enumerate() {
            let text = |key: &str| module.get(key).and_then(Value::as_str);
            let (Some(kind), Some(place)) = (text("type"), text("path")) else {
                return Err(wrong(format!("module {at}: a type and a path are expected")));
            };
            let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
            if !Path::new(place).components().all(inside) {
                return Err(wrong(format!("module {at}: path {place:?}, expected one inside of the folder")));
            }
            let at_place = folder.join(place);
            let name = kind.rsplit('.').next().unwrap_or(kind);
            match name {
                "Transformer" if at == 0 => out.transformer = at_place,
                "Transformer" => return Err(wrong(format!("module {at} is a second Transformer, expected one"))),
                _ if at == 0 => return Err(wrong(format!("module 0 is {kind:?}, expected a Transformer"))),
                "Pooling" if at == 1 => {
                    has_pooling = true;
                    out.read_pooling(&at_place)?;
                }
                "Dense" if at > 1 && out.normalise.is_none() => out.dense.push(at_place),
                "Normalize" if at > 1 => out.normalise = Some(if place.is_empty() { name } else { place }.to_owned()),
                "Pooling" | "Dense" | "Normalize" => {
                    return Err(wrong(format!(
                        "module {at} is {name}, expected Transformer, Pooling, Dense and Normalize in this order"
                    )));
                }
                _ => {
                    return Err(wrong(format!(
                        "module {at} is {kind:?}, expected Transformer, Pooling, Dense or Normalize"
                    )));
                }
            }
        }
        if has_pooling { Ok(out) } else { Err(wrong("no Pooling behind the Transformer".to_owned())) }
    }

    /// The mean of the tokens where nothing says otherwise.
    fn read_pooling(&mut self, folder: &Path) -> Result<(), FolderError> {
        let Some(config) = read_object(&folder.join(MODULE_CONFIG))? else { return Ok(()) };
        self.pooling = pooling_of(&config)?;
        self.leaves_prompt_out = Some(config).filter(|config| config.values.get(INCLUDE_PROMPT) == Some(&false.into()));
        Ok(())
    }

    /// The linear layers behind vectors of `width` values.
    ///
    /// *Cost*: reads headers, no weights.
    pub(super) fn dense_params(&self, mut width: usize) -> Result<Vec<DenseParams>, FolderError> {
        let mut out = Vec::with_capacity(self.dense.len());
        for folder in &self.dense {
            let (config, params) = read_dense_config(folder, width)?;
            let file = open_tensors(folder, WEIGHTS)?;
            for (array, shape) in dense_arrays(&config, &params)? {
                file.expect_floats(array, &shape)?;
            }
            width = params.outputs;
            out.push(params);
        }
        Ok(out)
    }

    /// Fills the parameters of linear layers that [`Modules::dense_params`] found, by their names; biases that a layer has
    /// not are 0.
    pub(super) fn read_dense<'p>(
        &self,
        layers: &[DenseParams],
        parameter: &mut dyn FnMut(&str) -> &'p mut [f32],
    ) -> Result<(), FolderError> {
        for (at, (folder, layer)) in self.dense.iter().zip(layers).enumerate() {
            let (config, params) = read_dense_config(folder, layer.inputs)?;
            if params != *layer {
                return Err(config.wrong("out_features", "what was there when the folder was opened"));
            }
            let (names, mut arrays) = (layer.arrays(at).map(|(name, _)| name), dense_arrays(&config, layer)?);
            let mut file = open_tensors(folder, WEIGHTS)?;
            for name in &names {
                let values = parameter(name);
                let Some((array, shape)) = arrays.next() else {
                    values.fill(0.0);
                    continue;
                };
                file.read_floats(array, &shape, values)?;
                if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                    return Err(FolderError::NotFinite { path: file.path().to_owned(), array: array.to_owned(), at });
                }
            }
        }
        Ok(())
    }

    /// How texts are read.
    pub(super) fn text_rules(&self, folder: &Path) -> Result<TextRules, FolderError> {
        let adapter = self.transformer.join(ADAPTER);
        if adapter.exists() {
            let what =
                "an adapter beside the weights, which is not applied: `merge_and_unload` of peft makes weights of \
                        both"
                    .to_owned();
            return Err(FolderError::Module { path: adapter, what });
        }
        let mut rules = TextRules::default();
        for name in SENTENCE_CONFIGS {
            let Some(config) = read_object(&self.transformer.join(name))? else { continue };
            rules.lower_case = config.flag("do_lower_case")?.unwrap_or(false);
            if config.values.get("max_seq_length").is_some_and(|most| !most.is_null()) {
                rules.max_tokens = Some(config.number("max_seq_length", None)?);
            }
            break;
        }
        if let Some(config) = read_object(&self.transformer.join(TOKENIZER_CONFIG))? {
            // Other classes read tokenizer.json as it is.
            let class = config.values.get("tokenizer_class").and_then(Value::as_str);
            if class.is_none_or(|class| ["Bert", "MPNet"].iter().any(|part| class.contains(part))) {
                rules.tokenizer_lower_case = config.flag("do_lower_case")?;
            }
        }
        if let Some(config) = read_object(&folder.join(PROMPTS))? {
            rules.prompt = read_prompt(&config)?;
        }
        if let Some(pooling) = self.leaves_prompt_out.as_ref().filter(|_| rules.prompt.is_some()) {
            return Err(pooling.wrong(INCLUDE_PROMPT, "true where texts have a default prompt"));
        }
        Ok(rules)
    }
}

/// The prompt that texts have where none is chosen.
fn read_prompt(config: &Object) -> Result<Option<String>, FolderError> {
    const NAME: &str = "default_prompt_name";
    let Some(name) = config.values.get(NAME).filter(|name| !name.is_null()) else { return Ok(None) };
    let prompts = config.values.get("prompts").and_then(Value::as_object);
    let prompt = name.as_str().and_then(|name| prompts?.get(name)?.as_str());
    let prompt = prompt.ok_or_else(|| config.wrong(NAME, "the name of one of prompts"))?;
    Ok(Some(prompt.to_owned()).filter(|prompt| !prompt.is_empty()))
}

fn pooling_of(config: &Object) -> Result<Pooling, FolderError> {
    const EXPECTED: &str =
        "the mean of the tokens (pooling_mode_mean_tokens) or the first (pooling_mode_cls_token) alone";
    if let Some(mode) = config.values.get("pooling_mode") {
        return match mode.as_str() {
            Some("mean") => Ok(Pooling::Mean),
            Some("cls") => Ok(Pooling::First),
            _ => Err(config.wrong("pooling_mode", "mean or cls")),
        };
    }
    let modes =
        config.values.iter().filter(|(key, value)| key.starts_with("pooling_mode") && **value == Value::Bool(true));
    match modes.map(|(key, _)| &**key).collect::<Vec<_>>()[..] {
        ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["pooling_mode_cls_token"] => Ok(Pooling::First),
        [other, ..] => Err(config.wrong(other, EXPECTED)),
        [] => Err(config.wrong("pooling_mode_mean_tokens", EXPECTED)),
    }
}

/// What a folder says of a linear layer behind vectors of `width` values.
fn read_dense_config(folder: &Path, width: usize) -> Result<(Object, DenseParams), FolderError> {
    let path = folder.join(MODULE_CONFIG);
    let missing = || FolderError::Io { path: path.clone(), source: std::io::ErrorKind::NotFound.into() };
    let config = read_object(&path)?.ok_or_else(missing)?;
    let (inputs, outputs) = (config.number("in_features", None)?, config.number("out_features", None)?);
    if inputs != width {
        return Err(config.wrong("in_features", "the values of a vector that comes to it"));
    }
    if !(1..=MOST).contains(&outputs) {
        return Err(config.wrong("out_features", "1 to 1048576"));
    }
    for input in ["module_input_name", "module_output_name"] {
        config.only(input, &Value::from("sentence_embedding"), "sentence_embedding")?;
    }
    let name = config.values.get("activation_function").and_then(Value::as_str);
    let activation = name.and_then(activation_of);
    let activation =
        activation.ok_or_else(|| config.wrong("activation_function", "Tanh, Identity, ReLU or Sigmoid"))?;
    Ok((config, DenseParams { inputs, outputs, activation }))
}

/// Names and shapes of the weights and, where the layer has them, the biases in its file.
fn dense_arrays(
    config: &Object,
    layer: &DenseParams,
) -> Result<impl Iterator<Item = (&'static str, Vec<usize>)> + use<>, FolderError> {
    let weights = (DENSE_ARRAYS[0], vec![layer.outputs, layer.inputs]);
    let bias = config.flag("bias")?.unwrap_or(true).then(|| (DENSE_ARRAYS[1], vec![layer.outputs]));
    Ok(std::iter::once(weights).chain(bias))
}

/// Activations of linear layers, and their classes in PyTorch.
const CLASSES: [(DenseActivation, &str); 4] = [
    (DenseActivation::Identity, "torch.nn.modules.linear.Identity"),
    (DenseActivation::Tanh, "torch.nn.modules.activation.Tanh"),
    (DenseActivation::Relu, "torch.nn.modules.activation.ReLU"),
    (DenseActivation::Sigmoid, "torch.nn.modules.activation.Sigmoid"),
];

/// The class of an activation.
pub(super) fn class_of(activation: DenseActivation) -> &'static str {
    CLASSES.into_iter().find(|(of, _)| *of == activation).map_or("", |(_, class)| class)
}

/// The activation of a class, wherever in PyTorch that stands.
fn activation_of(class: &str) -> Option<DenseActivation> {
    let last = |class: &str| class.rsplit('.').next().unwrap_or_default().to_owned();
    CLASSES.into_iter().find(|(_, known)| last(known) == last(class)).map(|(activation, _)| activation)
}
