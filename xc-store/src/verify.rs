//! Verification of content hashes.

use super::config::{CONFIG_FILE, LABELS_FILE, hex};
use super::{Container, OpenError};
use rayon::prelude::*;
use std::ops::Range;
use std::path::PathBuf;
use xc_buffer::FileBytes;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Bytes that are hashed before their pages are released.
const BLOCK: usize = 4 << 20;

/// A part of a model whose content differs from what was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The array of this name.
    Array(String),
    /// The bytes between arrays, which are zero in a valid file.
    Padding,
    /// `labels.txt`.
    Labels,
    /// `config.json`.
    Config,
}

/// One mismatch found by [`Container::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The file.
    pub file: PathBuf,
    /// Which part of it.
    pub damage: Damage,
    /// Hash found.
    pub got: String,
    /// Hash in `config.json`.
    pub expected: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        match &self.damage {
            Damage::Array(name) => write!(f, "array {name:?}")?,
            Damage::Padding => return write!(f, "bytes between arrays are not zero"),
            Damage::Labels => write!(f, "label names")?,
            Damage::Config => write!(f, "configuration")?,
        }
        write!(f, " has xxh3 {}, expected {}", self.got, self.expected)
    }
}

/// The hash of a range, whose pages do not stay.
fn hash(bytes: &FileBytes, range: Range<usize>) -> u64 {
    let mut hash = Xxh3Default::new();
    for start in range.clone().step_by(BLOCK) {
        let block = start..range.end.min(start + BLOCK);
        hash.update(&bytes.as_bytes()[block.clone()]);
        bytes.release(block);
    }
    hash.digest()
}

impl Container {
    /// Hashes everything and lists what differs from what was saved: arrays by name, then padding,
    /// labels and configuration. An empty list means that the folder is unchanged.
    ///
    /// # Errors
    /// `labels.txt` cannot be read.
    ///
    /// # Cost
    /// One read of all files, the arrays in parallel; some MiB per thread of mapped files are resident
    /// at a time.
    pub fn verify(&self) -> Result<Vec<Mismatch>, OpenError> {
        let places: Vec<_> = self.places.iter().collect();
        let mut found: Vec<Mismatch> = places
            .par_iter()
            .filter_map(|&(name, place)| {
                let file = &self.files[place.file];
                let got = hex(hash(&file.bytes, place.range.clone()));
                let expected = self.config.arrays.get(name)?.xxh3.clone();
                let damage = Damage::Array(name.clone());
                (got != expected).then(|| Mismatch { file: file.path.clone(), damage, got, expected })
            })
            .collect();
        for file in &self.files {
            let bytes = file.bytes.as_bytes();
            if file.pads.iter().any(|pad| bytes[pad.clone()].iter().any(|&byte| byte != 0)) {
                let (got, expected) = (String::new(), String::new());
                found.push(Mismatch { file: file.path.clone(), damage: Damage::Padding, got, expected });
            }
        }
        if let Some(labels) = &self.config.labels {
            let file = self.folder().join(LABELS_FILE);
            let bytes = self.label_bytes()?;
            let (got, expected) = (hex(xxh3_64(&bytes)), labels.xxh3.clone());
            if got != expected {
                found.push(Mismatch { file, damage: Damage::Labels, got, expected });
            }
        }
        if self.config_hash.got != self.config_hash.written {
            let (got, expected) = (self.config_hash.got.clone(), self.config_hash.written.clone());
            found.push(Mismatch { file: self.folder().join(CONFIG_FILE), damage: Damage::Config, got, expected });
        }
        Ok(found)
    }
}
