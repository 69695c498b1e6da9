//! Models of other systems: read as models of this library, and written as those systems read them.
//!
//! A format is a line in [`FORMATS`]; it says which kind of model it becomes and which kinds can be
//! written in it.

mod tree;

use super::Model;
use std::any::Any;
use std::error::Error;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_sparse::dtype::DType;
use xc_sparse::store::{ContainerWriter, Mismatch, OpenError, WriteError};

/// Every format of another system.
const FORMATS: &[Format] = &[tree::PECOS, tree::OMIKUJI];

/// A form in which another system keeps its models.
struct Format {
    name: &'static str,
    import: fn(&Path, &ImportOptions) -> Result<Imported, ConvertError>,
    /// Writes a model of a kind that the format can hold; `None` for others.
    export: fn(&dyn Any, &Export<'_>) -> Option<Result<(), ConvertError>>,
}

/// Where and how a model is written.
struct Export<'a> {
    /// Folder of the model, for messages.
    source: &'a Path,
    destination: &'a Path,
    part: Option<usize>,
}

/// How a model of another system is read.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Number of labels, where it is more than the largest label of the model says.
    pub n_labels: Option<usize>,
    /// Type of the weights.
    pub weights: DType,
}

/// Adds a model to a container.
type Write = Box<dyn Fn(&mut ContainerWriter) -> Result<(), WriteError>>;

/// A model of another system, read.
pub struct Imported {
    /// The kind that it is of.
    pub kind: &'static str,
    /// Number of labels.
    pub n_labels: usize,
    /// Its sizes, for a person.
    pub summary: String,
    write: Write,
}

impl Imported {
    /// Adds the model to a container of its kind.
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        (self.write)(writer)
    }
}

/// Why a model is not converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A format that is not known.
    #[error("unknown format {format:?} of models; expected {}", foreign_formats().collect::<Vec<_>>().join(" or "))]
    Format {
        /// The format.
        format: String,
    },
    /// A format that cannot hold the kind of model.
    #[error("{}: a model of kind {kind:?} cannot be converted to {format}", path.display())]
    Kind {
        /// Folder of the model.
        path: PathBuf,
        /// Its kind.
        kind: &'static str,
        /// The format.
        format: &'static str,
    },
    /// Fewer labels than the model has.
    #[error("{}: the model has label {largest}; expected at most {expected} labels", path.display())]
    Labels {
        /// The folder.
        path: PathBuf,
        /// Largest label of the model.
        largest: usize,
        /// Number of labels that was asked for.
        expected: usize,
    },
    /// The model has no such tree, or none was chosen.
    #[error("{}: has {n_trees} trees and the format holds one; expected the number of a tree, from 0", path.display())]
    Tree {
        /// Folder of the model.
        path: PathBuf,
        /// Number of its trees.
        n_trees: usize,
    },
    /// The model scales its rows, and the format cannot say so.
    #[error("{}: scales rows to length 1, which the format cannot say; train without normalisation", path.display())]
    Normalises {
        /// Folder of the model.
        path: PathBuf,
    },
    /// A file changed since it was saved.
    #[error("{0}: damaged since it was saved")]
    Damaged(Mismatch),
    /// A file of the model that cannot be read.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// The source, or a destination that is in the way.
    #[error(transparent)]
    Model(Box<dyn Error + Send + Sync>),
    /// The destination cannot be written.
    #[error(transparent)]
    Write(Box<dyn Error + Send + Sync>),
}

/// Names of the formats of other systems.
pub fn foreign_formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

fn format(name: &str) -> Result<&'static Format, ConvertError> {
    let found = FORMATS.iter().find(|format| format.name == name);
    found.ok_or_else(|| ConvertError::Format { format: name.to_owned() })
}

/// Reads a model of another system.
///
/// # Errors
/// An unknown format; a folder that holds no such model; fewer labels than it has.
pub fn import(format_name: &str, source: &Path, options: &ImportOptions) -> Result<Imported, ConvertError> {
    (format(format_name)?.import)(source, options)
}

impl Model {
    /// Writes the model as another system reads it; `part` says which tree, where the format holds
    /// one. What makes its features is left out.
    ///
    /// *Cost*: reads every file once more, since the hashes are compared: damage would go on in another
    /// form, where nothing tells.
    ///
    /// # Errors
    /// An unknown format; a format that cannot hold this model; a model that is damaged; a destination that is in the way or
    /// cannot be written.
    pub fn export(&self, format_name: &str, destination: &Path, part: Option<usize>) -> Result<(), ConvertError> {
        let format = format(format_name)?;
        if let Some(mismatch) = self.container.verify()?.into_iter().next() {
            return Err(ConvertError::Damaged(mismatch));
        }
        let (source, kind) = (self.container.folder(), self.kind.name);
        let outcome = (format.export)(&*self.system, &Export { source, destination, part });
        outcome.unwrap_or_else(|| Err(ConvertError::Kind { path: source.to_owned(), kind, format: format.name }))
    }
}
