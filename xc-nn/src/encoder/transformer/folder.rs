//! Folders as HuggingFace's libraries write them: `config.json`, `model.safetensors` in one file or several, and
//! `1_Pooling/config.json` of sentence-transformers.
//!
//! Nothing of a folder is believed: numbers are compared with the shapes of the arrays before anything is allocated for
//! them, so that memory follows from the length of the files.

use super::Transformer;
use super::params::{Distances, Family, Pooling, TransformerLearning, TransformerParams, TransformerParamsError};
use super::weights::{Source, WORDS, sources};
use crate::parameter::Init;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_sparse::store::{OpenError, TensorFile};

pub(super) const CONFIG: &str = "config.json";
pub(super) const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
pub(super) const POOLING: &str = "1_Pooling/config.json";
/// Bytes of a configuration, at most.
const LIMIT: u64 = 16 << 20;
/// Files of weights, at most.
const MOST_FILES: usize = 1000;
/// Letters of a value that a message shows.
const SHOWN: usize = 60;
/// Row of the first position in families whose padding token has the number 1.
const BEHIND_PADDING: usize = 2;

/// A folder whose configuration and weights belong together.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    params: TransformerParams,
    files: Vec<TensorFile>,
    /// The file and the full name of each array that is wanted.
    places: BTreeMap<String, (usize, String)>,
}

/// Why a folder holds no transformer that is known here.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A system error.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A configuration that is no JSON object.
    #[error("{}: malformed", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// A value that is not known here.
    #[error("{}: {key} is {got}, expected {expected}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The value, shortened.
        got: String,
        /// What it may be.
        expected: &'static str,
    },
    /// Sizes that are impossible.
    #[error("{}", path.display())]
    Params {
        /// The file.
        path: PathBuf,
        /// Which.
        source: TransformerParamsError,
    },
    /// A file of weights, or an array in it.
    #[error(transparent)]
    Weights(#[from] OpenError),
    /// A weight is infinite or no number.
    #[error("{}: array {array:?}: value {at} is not finite", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The array.
        array: String,
        /// Position of the value.
        at: usize,
    },
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
        let params = read_params(path)?;
        let files = open_files(path)?;
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, file) in files.iter().enumerate() {
            file.arrays().for_each(|(name, ..)| {
                found.entry(name).or_insert(at);
            });
        }
        let missing = |name: &str| {
            let path = files.first().map_or(path, |file| file.path());
            OpenError::MissingArray { path: path.to_owned(), name: name.to_owned() }
        };
        let prefix = found.keys().find_map(|name| name.strip_suffix(WORDS)).ok_or_else(|| missing(WORDS))?;
        let mut places = BTreeMap::new();
        for Source { arrays, shape, .. } in sources(&params) {
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
        Ok(Self { path: path.to_owned(), params, places, files })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
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
        let impossible = |source| FolderError::Params { path: self.path.join(CONFIG), source };
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
        assert_eq!(transformer.params(), &self.params, "the transformer of the folder {}", self.path.display());
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
        Ok(())
    }
}

/// Reads a small JSON object; `None` where there is no such file.
fn read_object(path: &Path) -> Result<Option<Object>, FolderError> {
    let io = |source| FolderError::Io { path: path.to_owned(), source };
    // Pipes and devices have no end, or keep their reader waiting.
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found if !found.as_ref().is_ok_and(std::fs::Metadata::is_file) => {
            let source =
                found.err().unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            return Err(io(source));
        }
        Ok(_) | Err(_) => {}
    }
    let mut text = Vec::new();
    File::open(path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut text)).map_err(io)?;
    if text.len() as u64 > LIMIT {
        let (path, limit) = (path.to_owned(), LIMIT);
        return Err(OpenError::TooLarge { path, what: "configuration", got: limit + 1, limit }.into());
    }
    let values = serde_json::from_slice(&text).map_err(|source| FolderError::Json { path: path.to_owned(), source })?;
    Ok(Some(Object { path: path.to_owned(), values }))
}

/// A JSON object of a file.
struct Object {
    path: PathBuf,
    values: serde_json::Map<String, Value>,
}

impl Object {
    fn wrong(&self, key: &str, expected: &'static str) -> FolderError {
        let got = self.values.get(key).map_or("missing".to_owned(), Value::to_string);
        let got = match got.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}...", &got[..end]),
            None => got,
        };
        FolderError::Value { path: self.path.clone(), key: key.to_owned(), got, expected }
    }

    /// A whole number; `usual` where it is not given.
    fn number(&self, key: &str, usual: Option<usize>) -> Result<usize, FolderError> {
        match (self.values.get(key), usual) {
            (None, Some(usual)) => Ok(usual),
            (value, _) => {
                let number = value.and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
                number.ok_or_else(|| self.wrong(key, "a whole number"))
            }
        }
    }

    fn float(&self, key: &str, usual: f64) -> Result<f64, FolderError> {
        match self.values.get(key) {
            None => Ok(usual),
            Some(value) => value.as_f64().ok_or_else(|| self.wrong(key, "a number")),
        }
    }

    /// The key is missing, or has the only value that is known here.
    fn only(&self, key: &str, value: &Value, expected: &'static str) -> Result<(), FolderError> {
        match self.values.get(key) {
            Some(got) if got != value => Err(self.wrong(key, expected)),
            _ => Ok(()),
        }
    }
}

fn read_params(folder: &Path) -> Result<TransformerParams, FolderError> {
    let path = folder.join(CONFIG);
    let missing = || FolderError::Io { path: path.clone(), source: io::ErrorKind::NotFound.into() };
    let config = read_object(&path)?.ok_or_else(missing)?;
    let family = match config.values.get("model_type").and_then(Value::as_str) {
        Some("bert") => Family::Bert,
        Some("distilbert") => Family::DistilBert,
        Some("mpnet") => Family::Mpnet,
        Some("roberta") => Family::Roberta,
        Some("xlm-roberta") => Family::XlmRoberta,
        _ => return Err(config.wrong("model_type", "bert, distilbert, mpnet, roberta or xlm-roberta")),
    };
    let distil = family == Family::DistilBert;
    let key = |usual: &'static str, of_distil: &'static str| if distil { of_distil } else { usual };
    let gelu = key("hidden_act", "activation");
    config.only(gelu, &Value::from("gelu"), "gelu")?;
    config.only("position_embedding_type", &Value::from("absolute"), "absolute")?;
    for decodes in ["is_decoder", "add_cross_attention"] {
        config.only(decodes, &Value::from(false), "false: the encoder alone is known here")?;
    }
    let padding = |usual| config.number("pad_token_id", Some(usual));
    let first_position = match family {
        Family::Bert | Family::DistilBert => 0,
        Family::Mpnet => BEHIND_PADDING,
        Family::Roberta | Family::XlmRoberta => padding(BEHIND_PADDING - 1)?.saturating_add(1),
    };
    let positions = config.number("max_position_embeddings", None)?.saturating_sub(first_position);
    let types = match family {
        Family::DistilBert | Family::Mpnet => 0,
        Family::Bert | Family::Roberta | Family::XlmRoberta => config.number("type_vocab_size", Some(2))?,
    };
    let distances = match family {
        Family::Mpnet => {
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
        pooling: read_pooling(folder)?,
    };
    params.check().map_err(|source| FolderError::Params { path, source })?;
    Ok(params)
}

/// The mean of the tokens where nothing says otherwise.
fn read_pooling(folder: &Path) -> Result<Pooling, FolderError> {
    const EXPECTED: &str =
        "the mean of the tokens (pooling_mode_mean_tokens) or the first (pooling_mode_cls_token) alone";
    let Some(config) = read_object(&folder.join(POOLING))? else { return Ok(Pooling::Mean) };
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

fn open_files(folder: &Path) -> Result<Vec<TensorFile>, FolderError> {
    let index = folder.join(INDEX);
    if folder.join(WEIGHTS).exists() || !index.exists() {
        return Ok(vec![TensorFile::open(folder, WEIGHTS)?]);
    }
    let missing = || FolderError::Io { path: index.clone(), source: io::ErrorKind::NotFound.into() };
    let config = read_object(&index)?.ok_or_else(missing)?;
    let wrong = || config.wrong("weight_map", "names of arrays with files *.safetensors of the same folder");
    let map = config.values.get("weight_map").and_then(Value::as_object).ok_or_else(wrong)?;
    let is_plain = |name: &str| name.ends_with(".safetensors") && !name.contains(['/', '\\']);
    let names: Option<BTreeSet<&str>> = map.values().map(|file| file.as_str().filter(|name| is_plain(name))).collect();
    let names = names.filter(|names| (1..=MOST_FILES).contains(&names.len())).ok_or_else(wrong)?;
    Ok(names.into_iter().map(|name| TensorFile::open(folder, name)).collect::<Result<_, _>>()?)
}
