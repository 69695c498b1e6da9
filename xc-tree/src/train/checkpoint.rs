//! What a long training has finished so far, in a folder.
//!
//! ```text
//!   key           16 hexadecimal digits: xxh3 of the input and of the parameters
//!   topology      the shape of the tree
//!   level-0 ...   the weights of each finished level
//! ```
//!
//! Every file is written under another name first, synchronised and renamed; a file is there whole or not at all. Layout
//! of an array file: `u64` count and little-endian elements, array after array, then the xxh3 of all that as `u64`.

use super::input::TrainInput;
use super::params::TreeParams;
use crate::model::{Topology, TopologyError};
use std::io::Write;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_sparse::Rows;
use xc_sparse::chunked::ChunkRows;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Counts as part of every key: raise it when training changes its results.
const VERSION: u64 = 1;

/// A checkpoint folder that fits the training at hand.
pub(crate) struct Checkpoint {
    folder: PathBuf,
}

/// Why a checkpoint is of no use.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The folder belongs to a training with other input or parameters.
    #[error(
        "checkpoint {path} belongs to other data or parameters (key {met}, wanted {wanted}); remove it or choose another folder"
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Key found there.
        met: String,
        /// Key of this training.
        wanted: String,
    },
    /// A file is damaged.
    #[error("checkpoint file {path} is damaged: {what}; remove it to train that part again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// The file system refused.
    #[error("checkpoint {path}")]
    Io {
        /// File or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl Checkpoint {
    /// Opens or makes the folder.
    pub(crate) fn open(
        folder: &Path,
        input: &TrainInput<'_>,
        params: &TreeParams,
        tree: usize,
    ) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(io)?;
        let checkpoint = Self { folder: folder.to_owned() };
        let wanted = format!("{:016x}", key(input, params, tree));
        match std::fs::read_to_string(folder.join("key")) {
            Ok(met) if met == wanted => Ok(checkpoint),
            Ok(met) => {
                let met = met.chars().take(16).collect();
                Err(CheckpointError::Foreign { path: folder.to_owned(), met, wanted })
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                checkpoint.write("key", wanted.as_bytes())?;
                Ok(checkpoint)
            }
            Err(e) => Err(io(e)),
        }
    }

    /// The shape, if it was finished.
    pub(crate) fn topology(&self) -> Result<Option<Topology>, CheckpointError> {
        let Some(mut file) = self.read("topology")? else { return Ok(None) };
        let head: Vec<u64> = file.array()?;
        let [n_labels, n_levels] = head[..] else { return Err(file.damaged("no sizes")) };
        let mut levels = Vec::new();
        for _ in 0..n_levels {
            levels.push(file.array::<u32>()?);
        }
        let labels = file.array()?;
        let broken = |_: TopologyError| file.damaged("not a tree");
        Topology::try_new(levels, labels, n_labels as usize).map(Some).map_err(broken)
    }

    pub(crate) fn save_topology(&self, topology: &Topology) -> Result<(), CheckpointError> {
        let n_labels = topology.labels().iter().max().map_or(0, |&l| u64::from(l) + 1);
        let mut out = Vec::new();
        put(&mut out, &[n_labels, topology.depth() as u64]);
        for level in 0..topology.depth() {
            put(&mut out, topology.boundaries(level));
        }
        put(&mut out, topology.labels());
        self.write_arrays("topology", out)
    }

    /// The weights of `level`, if it was finished.
    pub(crate) fn level(&self, topology: &Topology, level: usize) -> Result<Option<Vec<ChunkRows>>, CheckpointError> {
        let Some(mut file) = self.read(&format!("level-{level}"))? else { return Ok(None) };
        let boundaries = topology.boundaries(level);
        let mut chunks = Vec::with_capacity(boundaries.len() - 1);
        for children in boundaries.windows(2) {
            let chunk = ChunkRows {
                n_columns: (children[1] - children[0]) as usize,
                features: file.array()?,
                row_ptr: file.array()?,
                columns: file.array()?,
                values: file.array()?,
                bias: file.array()?,
            };
            chunk.check().map_err(|_| file.damaged("weights that fit no chunk"))?;
            chunks.push(chunk);
        }
        Ok(Some(chunks))
    }

    pub(crate) fn save_level(&self, level: usize, chunks: &[ChunkRows]) -> Result<(), CheckpointError> {
        let mut out = Vec::new();
        for chunk in chunks {
            put(&mut out, &chunk.features);
            put(&mut out, &chunk.row_ptr);
            put(&mut out, &chunk.columns);
            put(&mut out, &chunk.values);
            put(&mut out, &chunk.bias);
        }
        self.write_arrays(&format!("level-{level}"), out)
    }

    fn write_arrays(&self, name: &str, mut bytes: Vec<u8>) -> Result<(), CheckpointError> {
        let hash = xxh3_64(&bytes);
        bytes.extend_from_slice(&hash.to_le_bytes());
        self.write(name, &bytes)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), CheckpointError> {
        let path = self.folder.join(name);
        let partial = self.folder.join(format!("{name}.partial"));
        let save = || {
            let mut file = std::fs::File::create(&partial)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&partial, &path)
        };
        save().map_err(|source| CheckpointError::Io { path: path.clone(), source })
    }

    fn read(&self, name: &str) -> Result<Option<ArrayFile>, CheckpointError> {
        let path = self.folder.join(name);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(CheckpointError::Io { path, source }),
        };
        let mut file = ArrayFile { path, bytes, at: 0 };
        let Some(end) = file.bytes.len().checked_sub(8) else { return Err(file.damaged("too short")) };
        let mut hash = [0u8; 8];
        hash.copy_from_slice(&file.bytes[end..]);
        file.bytes.truncate(end);
        if xxh3_64(&file.bytes) != u64::from_le_bytes(hash) {
            return Err(file.damaged("its hash differs"));
        }
        Ok(Some(file))
    }
}

/// A file of arrays, read from front to back.
struct ArrayFile {
    path: PathBuf,
    bytes: Vec<u8>,
    at: usize,
}

impl ArrayFile {
    fn damaged(&self, what: &'static str) -> CheckpointError {
        CheckpointError::Damaged { path: self.path.clone(), what }
    }

    fn array<T: Element>(&mut self) -> Result<Vec<T>, CheckpointError> {
        let rest = &self.bytes[self.at..];
        let Some((count, rest)) = rest.split_first_chunk::<8>() else { return Err(self.damaged("it ends early")) };
        let count = u64::from_le_bytes(*count);
        let Some(bytes) = count.checked_mul(T::BYTES as u64).and_then(|b| rest.get(..usize::try_from(b).ok()?)) else {
            return Err(self.damaged("it ends early"));
        };
        let out = bytes.chunks_exact(T::BYTES).map(T::from_bytes).collect();
        self.at += 8 + bytes.len();
        Ok(out)
    }
}

/// A little-endian number.
trait Element: Copy {
    const BYTES: usize;
    fn put(self, out: &mut Vec<u8>);
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($type:ty) => {
        impl Element for $type {
            const BYTES: usize = size_of::<$type>();
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn from_bytes(bytes: &[u8]) -> Self {
                let mut own = [0u8; size_of::<$type>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }
        }
    };
}
element!(u32);
element!(u64);
element!(f32);

fn put<T: Element>(out: &mut Vec<u8>, items: &[T]) {
    out.reserve(8 + items.len() * T::BYTES);
    (items.len() as u64).put(out);
    items.iter().for_each(|item| item.put(out));
}

/// Hash of everything that the rankers depend on: neither the memory limit, nor what only predictions are told.
fn key(input: &TrainInput<'_>, params: &TreeParams, tree: usize) -> u64 {
    let mut hash = Xxh3::new();
    let numbers = |hash: &mut Xxh3, numbers: &[u64]| numbers.iter().for_each(|n| hash.update(&n.to_le_bytes()));
    let rows = |hash: &mut Xxh3, rows: Rows<'_>| {
        numbers(hash, &[rows.len() as u64, rows.n_features() as u64]);
        for i in 0..rows.len() {
            let row = rows.row(i);
            numbers(hash, &[row.nnz() as u64]);
            hash.update(bytemuck::cast_slice(row.indices));
            hash.update(bytemuck::cast_slice(row.values));
        }
    };
    let TreeParams { post, beam, precision, .. } = TreeParams::default();
    let counted = TreeParams { n_trees: 1, post, beam, precision, max_memory_bytes: None, ..params.clone() };
    let json = serde_json::to_vec(&counted).unwrap_or_else(|e| panic!("parameters are plain numbers: {e}"));
    numbers(&mut hash, &[VERSION, tree as u64, json.len() as u64]);
    hash.update(&json);
    rows(&mut hash, Rows::new(input.features));
    numbers(&mut hash, &[input.labels.n_labels() as u64]);
    for row in input.labels.iter() {
        numbers(&mut hash, &[row.len() as u64]);
        hash.update(bytemuck::cast_slice(row));
    }
    if let Some(given) = input.label_features {
        rows(&mut hash, Rows::new(given));
    }
    for list in [input.instance_weights, input.label_costs] {
        numbers(&mut hash, &[list.map_or(u64::MAX, |l| l.len() as u64)]);
        hash.update(bytemuck::cast_slice(list.unwrap_or_default()));
    }
    hash.digest()
}
