//! File formats of instances, by name and extension.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use thiserror::Error;

/// File formats of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// XC-repository text, in one file or two.
    Xc,
    /// Multilabel svmlight.
    Svmlight,
    /// fastText.
    FastText,
    /// One JSON object per line.
    Jsonl,
    /// Rows of fields separated by commas, below a header.
    Csv,
    /// The same with tabs.
    Tsv,
    /// scipy's sparse matrix archive.
    Npz,
    /// numpy's dense array.
    Npy,
}

/// A format name that does not exist.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("format {got:?} does not exist, expected xc, svmlight, fasttext, jsonl, csv, tsv, npz or npy")]
pub struct FormatNameError {
    got: String,
}

impl FromStr for Format {
    type Err = FormatNameError;
    fn from_str(name: &str) -> Result<Self, FormatNameError> {
        Ok(match name {
            "xc" | "xc-text" => Self::Xc,
            "svmlight" | "libsvm" => Self::Svmlight,
            "fasttext" => Self::FastText,
            "jsonl" | "json" => Self::Jsonl,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "npz" => Self::Npz,
            "npy" => Self::Npy,
            _ => return Err(FormatNameError { got: name.to_owned() }),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Format {
    /// The name that [`Format::from_str`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xc => "xc",
            Self::Svmlight => "svmlight",
            Self::FastText => "fasttext",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Npz => "npz",
            Self::Npy => "npy",
        }
    }

    /// What the first line of a file should be.
    pub(crate) fn first_line(self) -> &'static str {
        match self {
            Self::Xc => "a header or a row",
            Self::Svmlight => "rows of svmlight",
            Self::Jsonl => "one JSON object a line",
            Self::Csv | Self::Tsv => "a header of column names",
            Self::FastText | Self::Npz | Self::Npy => "one instance a line",
        }
    }

    /// True for formats whose instances are text; JSONL may have either.
    pub fn may_hold_text(self) -> bool {
        matches!(self, Self::FastText | Self::Jsonl | Self::Csv | Self::Tsv)
    }

    /// What stands between the fields of a row, where the format is a table: the one that is `given`, or
    /// the usual one.
    pub(crate) fn delimiter(self, given: Option<u8>) -> Option<u8> {
        match self {
            Self::Csv => given.or(Some(b',')),
            Self::Tsv => given.or(Some(b'\t')),
            _ => None,
        }
    }

    /// The format that an extension names.
    pub fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = [".gz", ".zst", ".bz2", ".xz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        Some(match name.rsplit_once('.')?.1 {
            "jsonl" | "ndjson" => Self::Jsonl,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "npz" => Self::Npz,
            "npy" => Self::Npy,
            "svm" | "svmlight" | "libsvm" => Self::Svmlight,
            "ft" | "fasttext" => Self::FastText,
            "xc" => Self::Xc,
            _ => return None,
        })
    }
}
