//! Folders as HuggingFace's libraries write them: `config.json`, `model.safetensors` in one file or several, and
//! what sentence-transformers puts beside them.
//!
//! Nothing of a folder is believed: numbers are compared with the shapes of the arrays before anything is allocated for
//! them, so that memory follows from the length of the files.

use super::super::network::Transformer;
use super::super::params::{Architecture, Distances, Pooling, TransformerLearning, TransformerParams};
use super::super::weights::{Source, WORDS, sources};
use super::error::FolderError;
use super::files::{Weights, open_weights, read_object};
use super::sentence::{Modules, TextRules};
use crate::parameter::Init;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use xc_store::{OpenError, TensorFile};

pub(super) const CONFIG: &str = "config.json";
/// Row of the first position in families whose padding token has the number 1.
const BEHIND_PADDING: usize = 2;

/// A folder whose configuration and weights belong together.
#[derive(Debug)]
pub struct Folder {
    params: TransformerParams,
    files: Vec<TensorFile>,
    /// The file and the full name of each array that is wanted.
    places: BTreeMap<String, (usize, String)>,
    texts: TextRules,
    modules: Modules,
}

impl Folder {
    /// Reads the configuration, and looks whether all arrays are there in the shapes that it says.
    ///
    /// *Cost*: reads headers, no weights.
    ///
    /// # Errors
    /// What is missing, malformed, of another family or impossible; nothing is ever downloaded.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FolderError> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(FolderError::NoFolder { path: path.to_owned() });
        }
        let modules = Modules::read(path)?;
        let texts = modules.text_rules(path)?;
        let path = &*modules.transformer;
        let mut params = read_params(path, modules.pooling)?;
        params.dense = modules.dense_params(params.width)?;
        let Weights { files, places: found } = open_weights(path)?;
        let missing = |name: &str| {
            let path = files.first().map_or(path, |file| file.path());
            OpenError::MissingArray { path: path.to_owned(), name: name.to_owned() }
        };
        let prefix = found.keys().find_map(|name| name.strip_suffix(WORDS)).ok_or_else(|| missing(WORDS))?;
        let mut places = BTreeMap::new();
        // Each layer has an array: of more layers than arrays the first ones tell already that some are missing.
        let looked_for = TransformerParams { layers: params.layers.min(found.len() + 1), ..params.clone() };
        for Source { arrays, shape, .. } in sources(&looked_for) {
            for array in arrays {
                // Old files have other names for gains and biases of norms.
                let other =
                    array.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
                let names = [format!("{prefix}{array}"), format!("{prefix}{other}")];
                let found = names.into_iter().find_map(|name| found.get(&*name).map(|&at| (at, name)));
                let (at, name) = found.ok_or_else(|| missing(&format!("{prefix}{array}")))?;
                files[at].expect_floats(&name, &shape)?;
                places.insert(array, (at, name));
            }
        }
        Ok(Self { params, places, files, texts, modules })
    }

    /// The folder of the transformer and its tokenizer: that of the module where a folder has several.
    pub fn path(&self) -> &Path {
        &self.modules.transformer
    }

    /// How texts are to be read.
    pub fn text_rules(&self) -> &TextRules {
        &self.texts
    }

    /// The name of the module that scales vectors to length 1, where there is one.
    pub fn normalises(&self) -> Option<&str> {
        self.modules.normalise.as_deref()
    }

    /// What the transformer is.
    pub fn params(&self) -> &TransformerParams {
        &self.params
    }

    /// The transformer with the folder's weights.
    ///
    /// # Errors
    /// A file cannot be read, or a weight is not finite; what is impossible about the learning.
    pub fn read(self, learning: TransformerLearning) -> Result<Transformer, FolderError> {
        let impossible = |source| FolderError::Params { path: self.path().join(CONFIG), source };
        let mut out = Transformer::new(self.params.clone(), learning, Init::Zeros).map_err(impossible)?;
        self.read_into(&mut out)?;
        Ok(out)
    }

    /// Gives a transformer the folder's weights.
    ///
    /// # Errors
    /// A file cannot be read, or a weight is not finite; the transformer is then in the middle of being changed.
    ///
    /// # Panics
    /// If the transformer is another one than the folder's.
    pub fn read_into(mut self, transformer: &mut Transformer) -> Result<(), FolderError> {
        use crate::state::State as _;
        assert_eq!(transformer.params(), &self.params, "the transformer of the folder {}", self.path().display());
        let mut parameters: BTreeMap<String, _> =
            transformer.parameters_mut().into_iter().map(|named| (named.name, named.parameter)).collect();
        for Source { parameter, arrays, shape } in sources(&self.params) {
            let Some(to) = parameters.remove(&parameter) else { panic!("no parameter {parameter}") };
            let each = shape.iter().product();
            for (values, array) in to.values_mut().chunks_exact_mut(each).zip(&arrays) {
                let (at, name) = &self.places[array];
                let file = &mut self.files[*at];
                file.read_floats(name, &shape, values)?;
                if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                    return Err(FolderError::NotFinite { path: file.path().to_owned(), array: name.clone(), at });
                }
            }
        }
        self.modules.read_dense(&self.params.dense, &mut |parameter| {
            let Some(to) = parameters.remove(parameter) else { panic!("no parameter {parameter}") };
            to.values_mut()
        })
    }
}

fn read_params(folder: &Path, pooling: Pooling) -> Result<TransformerParams, FolderError> {
    let path = folder.join(CONFIG);
    let missing = || FolderError::Io { path: path.clone(), source: io::ErrorKind::NotFound.into() };
    let config = read_object(&path)?.ok_or_else(missing)?;
    let family = match config.values.get("model_type").and_then(Value::as_str) {
        Some("bert") => Architecture::Bert,
        Some("distilbert") => Architecture::DistilBert,
        Some("mpnet") => Architecture::Mpnet,
        Some("roberta") => Architecture::Roberta,
        Some("xlm-roberta") => Architecture::XlmRoberta,
        _ => return Err(config.wrong("model_type", "bert, distilbert, mpnet, roberta or xlm-roberta")),
    };
    let distil = family == Architecture::DistilBert;
    let key = |usual: &'static str, of_distil: &'static str| if distil { of_distil } else { usual };
    let gelu = key("hidden_act", "activation");
    config.only(gelu, &Value::from("gelu"), "gelu")?;
    config.only("position_embedding_type", &Value::from("absolute"), "absolute")?;
    for decodes in ["is_decoder", "add_cross_attention"] {
        config.only(decodes, &Value::from(false), "false: the encoder alone is known here")?;
    }
    let padding = |usual| config.number("pad_token_id", Some(usual));
    let first_position = match family {
        Architecture::Bert | Architecture::DistilBert => 0,
        Architecture::Mpnet => BEHIND_PADDING,
        Architecture::Roberta | Architecture::XlmRoberta => padding(BEHIND_PADDING - 1)?.saturating_add(1),
    };
    let positions = config.number("max_position_embeddings", None)?.saturating_sub(first_position);
    let types = match family {
        Architecture::DistilBert | Architecture::Mpnet => 0,
        Architecture::Bert | Architecture::Roberta | Architecture::XlmRoberta => {
            config.number("type_vocab_size", Some(2))?
        }
    };
    let distances = match family {
        Architecture::Mpnet => {
            let buckets = config.number("relative_attention_num_buckets", Some(32))?;
            Some(Distances { buckets, most: 128 })
        }
        _ => None,
    };
    let epsilon = if distil { 1e-12 } else { config.float("layer_norm_eps", 1e-12)? };
    let params = TransformerParams {
        family,
        vocabulary: config.number("vocab_size", None)?,
        positions,
        first_position,
        types,
        width: config.number(key("hidden_size", "dim"), None)?,
        heads: config.number(key("num_attention_heads", "n_heads"), None)?,
        units: config.number(key("intermediate_size", "hidden_dim"), None)?,
        layers: config.number(key("num_hidden_layers", "n_layers"), None)?,
        epsilon: epsilon as f32,
        distances,
        pooling,
        dense: Vec::new(),
    };
    params.check().map_err(|source| FolderError::Params { path, source })?;
    Ok(params)
}
