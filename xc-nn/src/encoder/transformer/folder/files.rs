//! Files of a folder: small JSON objects, weights in one file or several, and what stands in their places.

use super::error::FolderError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use xc_store::{LFS_POINTER, OpenError, TensorFile};

pub(super) const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Weights as they were written before, which programs of their own can be hidden in.
const PICKLED: [&str; 2] = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
/// Bytes of a configuration, at most.
const LIMIT: u64 = 16 << 20;
/// Files of weights, at most.
const MOST_FILES: usize = 1000;
/// Letters of a value that a message shows.
const SHOWN: usize = 60;
/// Files of weights, and which of them holds each array.
pub(super) struct Weights {
    pub(super) files: Vec<TensorFile>,
    pub(super) places: BTreeMap<String, usize>,
}

/// Opens the weights of a folder. Of several files the index says where each array is: others of the same name, and arrays
/// that it does not list, are not read.
pub(super) fn open_weights(folder: &Path) -> Result<Weights, FolderError> {
    let index = folder.join(INDEX);
    if folder.join(WEIGHTS).exists() || !index.exists() {
        let file = open_tensors(folder, WEIGHTS)?;
        let places = file.arrays().map(|(name, ..)| (name.to_owned(), 0)).collect();
        return Ok(Weights { files: vec![file], places });
    }
    let missing = || FolderError::Io { path: index.clone(), source: io::ErrorKind::NotFound.into() };
    let config = read_object(&index)?.ok_or_else(missing)?;
    let wrong = || config.wrong("weight_map", "names of arrays with files *.safetensors of the same folder");
    let map = config.values.get("weight_map").and_then(Value::as_object).ok_or_else(wrong)?;
    let is_plain = |name: &str| name.ends_with(".safetensors") && !name.contains(['/', '\\']);
    let names: Option<BTreeSet<&str>> = map.values().map(|file| file.as_str().filter(|name| is_plain(name))).collect();
    let names = names.filter(|names| (1..=MOST_FILES).contains(&names.len())).ok_or_else(wrong)?;
    let numbers: BTreeMap<&str, usize> = names.iter().copied().zip(0..).collect();
    let place = |(array, file): (&String, &Value)| Some((array.clone(), *numbers.get(file.as_str()?)?));
    let places = map.iter().filter_map(place).collect();
    let files = names.into_iter().map(|name| open_tensors(folder, name)).collect::<Result<_, _>>()?;
    Ok(Weights { files, places })
}

/// Opens a file of arrays; says which file is there in its place.
pub(super) fn open_tensors(folder: &Path, name: &str) -> Result<TensorFile, FolderError> {
    let path = folder.join(name);
    let mut first = Vec::new();
    if path.is_file() {
        let io = |source| FolderError::Io { path: path.clone(), source };
        File::open(&path).and_then(|file| file.take(LFS_POINTER.len() as u64).read_to_end(&mut first)).map_err(io)?;
    } else if let Some(found) = PICKLED.into_iter().find(|found| folder.join(found).is_file()) {
        return Err(FolderError::Pickled { path, found });
    }
    if first.starts_with(LFS_POINTER) {
        return Err(FolderError::Pointer { path });
    }
    Ok(TensorFile::open(folder, name)?)
}

/// Reads a small JSON object; `None` where there is no such file.
pub(super) fn read_object(path: &Path) -> Result<Option<Object>, FolderError> {
    let Some(text) = read_small(path)? else { return Ok(None) };
    let values = serde_json::from_slice(&text).map_err(|source| FolderError::Json { path: path.to_owned(), source })?;
    Ok(Some(Object { path: path.to_owned(), values }))
}

/// Reads small JSON of any form; `None` where there is no such file.
pub(super) fn read_values(path: &Path) -> Result<Option<Value>, FolderError> {
    let malformed = |source| FolderError::Json { path: path.to_owned(), source };
    read_small(path)?.map(|text| serde_json::from_slice(&text).map_err(malformed)).transpose()
}

/// Reads a small file; `None` where there is none.
fn read_small(path: &Path) -> Result<Option<Vec<u8>>, FolderError> {
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
    if text.starts_with(LFS_POINTER) {
        return Err(FolderError::Pointer { path: path.to_owned() });
    }
    Ok(Some(text))
}

/// A JSON object of a file.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) path: PathBuf,
    pub(super) values: serde_json::Map<String, Value>,
}

impl Object {
    pub(super) fn wrong(&self, key: &str, expected: &'static str) -> FolderError {
        let got = self.values.get(key).map_or("missing".to_owned(), Value::to_string);
        let got = match got.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}...", &got[..end]),
            None => got,
        };
        FolderError::Value { path: self.path.clone(), key: key.to_owned(), got, expected }
    }

    /// A whole number; `usual` where it is not given.
    pub(super) fn number(&self, key: &str, usual: Option<usize>) -> Result<usize, FolderError> {
        match (self.values.get(key), usual) {
            (None, Some(usual)) => Ok(usual),
            (value, _) => {
                let number = value.and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
                number.ok_or_else(|| self.wrong(key, "a whole number"))
            }
        }
    }

    /// A yes or no, where it is given.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, FolderError> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_bool().map(Some).ok_or_else(|| self.wrong(key, "true or false")),
        }
    }

    pub(super) fn float(&self, key: &str, usual: f64) -> Result<f64, FolderError> {
        match self.values.get(key) {
            None => Ok(usual),
            Some(value) => value.as_f64().ok_or_else(|| self.wrong(key, "a number")),
        }
    }

    /// The key is missing, or has the only value that is known here.
    pub(super) fn only(&self, key: &str, value: &Value, expected: &'static str) -> Result<(), FolderError> {
        match self.values.get(key) {
            Some(got) if got != value => Err(self.wrong(key, expected)),
            _ => Ok(()),
        }
    }
}
