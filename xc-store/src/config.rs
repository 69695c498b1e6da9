//! `config.json`.

use super::OpenError;
use super::opened::OpenFolder;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, io::ErrorKind, path::Path};
use xc_buffer::dtype::DType;
use xxhash_rust::xxh3::xxh3_64;

/// The format version that is written, and the newest that is read.
pub const FORMAT_VERSION: u64 = 1;

/// The word that tells our `config.json` from those of other programs.
pub(super) const FORMAT: &str = "xc-model";
pub(super) const CONFIG_FILE: &str = "config.json";
pub(super) const LABELS_FILE: &str = "labels.txt";
/// Bytes of `config.json`, at most: parsed, it takes some thirty times its size in memory.
const CONFIG_LIMIT: u64 = 32_000_000;
/// Bytes of `labels.txt`, at most.
pub(super) const LABELS_LIMIT: u64 = 1 << 34;
const HASH_FIELD: &str = "xxh3";

/// What `config.json` says about one array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayEntry {
    /// File in the model folder.
    pub file: String,
    /// Element type.
    pub dtype: DType,
    /// Extent of each dimension; row-major.
    pub shape: Vec<usize>,
    /// xxh3 (64 bits) of the array's bytes, 16 hexadecimal digits.
    pub xxh3: String,
}

impl ArrayEntry {
    /// Number of elements, or `None` if the product overflows.
    pub fn n_elements(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent))
    }

    /// Number of bytes, or `None` if the product overflows.
    pub fn n_bytes(&self) -> Option<usize> {
        self.n_elements()?.checked_mul(self.dtype.n_bytes())
    }
}

/// What `config.json` says about `labels.txt`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LabelsEntry {
    pub(super) count: usize,
    pub(super) xxh3: String,
}

/// The whole file. The hash of the rest, under the name `xxh3`, is added last when it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Config {
    pub(super) format: String,
    pub(super) format_version: u64,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pipeline: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) labels: Option<LabelsEntry>,
    pub(super) arrays: BTreeMap<String, ArrayEntry>,
}

/// A hash as it is written in `config.json`.
pub(super) fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// What a program that does not know the folder may learn from its `config.json`: is it ours?
#[derive(Deserialize)]
struct Head {
    format: String,
}

/// True when `folder` holds a `config.json` of ours, of any version.
pub(super) fn is_ours(folder: &Path) -> bool {
    let bytes = open_folder(folder).and_then(|folder| folder.read(CONFIG_FILE, "configuration", CONFIG_LIMIT));
    bytes.is_ok_and(|bytes| serde_json::from_slice::<Head>(&bytes).is_ok_and(|head| head.format == FORMAT))
}

/// Opens the folder of a model.
pub(super) fn open_folder(path: &Path) -> Result<OpenFolder, OpenError> {
    OpenFolder::open(path).map_err(|source| match source.kind() {
        ErrorKind::NotADirectory => OpenError::NotAModel { path: path.to_owned(), why: "it is no folder" },
        _ => OpenError::Io { path: path.to_owned(), source },
    })
}

impl Config {
    pub(super) fn new(kind: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            kind: kind.to_owned(),
            parameters: Map::new(),
            pipeline: None,
            labels: None,
            arrays: BTreeMap::new(),
        }
    }

    /// The file's bytes, with the hash of everything else in it.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut value = serde_json::to_value(self)?;
        let hash = content_hash(&value)?;
        if let Value::Object(fields) = &mut value {
            fields.insert(HASH_FIELD.to_owned(), Value::String(hex(hash)));
        }
        let mut bytes = serde_json::to_vec_pretty(&value)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads and checks the file of `folder`; also gives the hash written and the hash of what was
    /// found.
    pub(super) fn read(folder: &Path) -> Result<(Self, ConfigHash), OpenError> {
        Self::read_in(&open_folder(folder)?)
    }

    /// The same of a folder that is open.
    pub(super) fn read_in(folder: &OpenFolder) -> Result<(Self, ConfigHash), OpenError> {
        let bytes = match folder.read(CONFIG_FILE, "configuration", CONFIG_LIMIT) {
            Err(OpenError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Err(OpenError::NotAModel { path: folder.path.clone(), why: "it holds no config.json" });
            }
            other => other?,
        };
        Self::parse(&folder.path.join(CONFIG_FILE), &bytes)
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<(Self, ConfigHash), OpenError> {
        let malformed = |source| OpenError::Config { path: path.to_owned(), source };
        let mut value: Value = serde_json::from_slice(bytes).map_err(malformed)?;
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            let why = "config.json does not say \"format\": \"xc-model\"";
            return Err(OpenError::NotAModel { path: path.to_owned(), why });
        }
        // Before the rest is looked at: a later version may have changed any of it.
        if let Some(got) = value.get("format_version").and_then(Value::as_u64)
            && got > FORMAT_VERSION
        {
            return Err(OpenError::NewerVersion { path: path.to_owned(), got, supported: FORMAT_VERSION });
        }
        let written = value.as_object_mut().and_then(|fields| fields.remove(HASH_FIELD));
        let written = written.and_then(|hash| hash.as_str().map(str::to_owned)).unwrap_or_default();
        let got = hex(content_hash(&value).map_err(malformed)?);
        let config: Self = serde_json::from_value(value).map_err(malformed)?;
        Ok((config, ConfigHash { got, written }))
    }
}

/// Hash of the configuration as found, and as its writer noted it.
#[derive(Clone, Debug)]
pub(super) struct ConfigHash {
    pub(super) got: String,
    pub(super) written: String,
}

/// Hash of the compact form, so that blanks and line ends do not count.
fn content_hash(value: &Value) -> Result<u64, serde_json::Error> {
    Ok(xxh3_64(&serde_json::to_vec(value)?))
}

/// Settings in the form stored under `parameters`: f32 numbers with only the digits that they need, 0.1
/// rather than 0.10000000149011612. Read as f32, they are unchanged.
///
/// # Panics
/// If they cannot be written as JSON: maps whose keys are not strings.
pub fn to_parameter(settings: &impl Serialize) -> Value {
    // A number of a Value is an f64, of which text would have all digits.
    let text = serde_json::to_string(settings).and_then(|text| serde_json::from_str(&text));
    text.unwrap_or_else(|e| panic!("settings are plain values: {e}"))
}
