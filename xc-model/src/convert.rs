//! Models of other systems: read as models of this library, and written as those systems read them. All are label trees.

use super::Model;
use crate::tokens::write_transformer;
use std::error::Error;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_buffer::dtype::DType;
use xc_store::{Mismatch, OpenError};
use xc_tree::import::omikuji::{self, OmikujiModel};
use xc_tree::import::pecos::{self, PecosError, PecosModel};
use xc_tree::{ModelInfo, TreeModel};

/// Formats of other systems, by name.
pub const FOREIGN_FORMATS: [&str; 3] = ["pecos", "omikuji", HUGGINGFACE];
/// A transformer with its tokenizer, as HuggingFace's libraries read them. It is written alone.
const HUGGINGFACE: &str = "huggingface";

/// How a model of another system is read.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Number of labels, where it is more than the largest label of the model says.
    pub n_labels: Option<usize>,
    /// Type of the weights.
    pub weights: DType,
}

/// Why a model is not converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A format that is not known.
    #[error("unknown format {format:?} of models; expected {}", FOREIGN_FORMATS.join(" or "))]
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
    /// A format that is not read.
    #[error("{}: a folder of format {format} holds a transformer and no labels; xc train --encoder transformer learns from it", path.display())]
    Source {
        /// The folder.
        path: PathBuf,
        /// The format.
        format: &'static str,
    },
    /// A model without what the format holds.
    #[error("{}: {what}; a network that was trained over a transformer is expected (--encoder transformer)", path.display())]
    NoTransformer {
        /// Folder of the model.
        path: PathBuf,
        /// What there is instead.
        what: &'static str,
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

/// Reads a model of another system.
///
/// # Errors
/// An unknown format; a folder that holds no such model; fewer labels than it has.
pub fn import(format: &str, source: impl AsRef<Path>, options: &ImportOptions) -> Result<TreeModel, ConvertError> {
    let source = source.as_ref();
    let (mut info, trees) = match format {
        "pecos" => {
            let model = pecos::import(source).map_err(|e| ConvertError::Model(Box::new(e)))?;
            let PecosModel { n_features, n_labels, post, beam, parts, .. } = model;
            (ModelInfo { n_features, n_labels, post, normalise_rows: false, row_length: 1.0, beam }, vec![parts])
        }
        "omikuji" => {
            let model = omikuji::import(source).map_err(|e| ConvertError::Model(Box::new(e)))?;
            let OmikujiModel { trees, post, normalise_rows, n_features, n_labels } = model;
            // Its folder does not say a beam; 10 is its default.
            (ModelInfo { n_features, n_labels, post, normalise_rows, row_length: 1.0, beam: 10 }, trees)
        }
        HUGGINGFACE => return Err(ConvertError::Source { path: source.to_owned(), format: HUGGINGFACE }),
        _ => return Err(ConvertError::Format { format: format.to_owned() }),
    };
    // Other systems may not know of labels that no instance had.
    if let Some(expected) = options.n_labels {
        if expected < info.n_labels {
            return Err(ConvertError::Labels { path: source.to_owned(), largest: info.n_labels - 1, expected });
        }
        info.n_labels = expected;
    }
    TreeModel::from_parts(info, trees, options.weights).map_err(|e| ConvertError::Model(Box::new(e)))
}

impl Model {
    /// Writes the model as another system reads it; `part` says which tree, where the format holds
    /// one. What makes its features is left out; of a network over a transformer everything but this and its tokenizer.
    ///
    /// *Cost*: reads every file once more, since the hashes are compared: damage would go on in another
    /// form, where nothing tells.
    ///
    /// # Errors
    /// An unknown format; a format that cannot hold this model; a model that is damaged; a destination that is in the way or
    /// cannot be written.
    pub fn export(&self, format: &str, destination: impl AsRef<Path>, part: Option<usize>) -> Result<(), ConvertError> {
        let unknown = || ConvertError::Format { format: format.to_owned() };
        let format = FOREIGN_FORMATS.into_iter().find(|name| *name == format).ok_or_else(unknown)?;
        if let Some(mismatch) = self.container.verify()?.into_iter().next() {
            return Err(ConvertError::Damaged(mismatch));
        }
        let source = self.container.folder();
        if format == HUGGINGFACE {
            return write_transformer(self, destination.as_ref());
        }
        match self.as_kind() {
            Some(tree) if format == "pecos" => write_pecos(tree, source, destination.as_ref(), part),
            _ => Err(ConvertError::Kind { path: source.to_owned(), kind: self.kind.name, format }),
        }
    }
}

fn write_pecos(tree: &TreeModel, source: &Path, destination: &Path, part: Option<usize>) -> Result<(), ConvertError> {
    let (info, n_trees) = (tree.info(), tree.trees().len());
    let path = || source.to_owned();
    let chosen = part.or((n_trees == 1).then_some(0)).filter(|&tree| tree < n_trees);
    let chosen = chosen.ok_or_else(|| ConvertError::Tree { path: path(), n_trees })?;
    if info.normalise_rows {
        return Err(ConvertError::Normalises { path: path() });
    }
    // Rows are not divided by a length there: the weights are.
    let mut parts = tree.to_parts(chosen);
    if info.row_length != 1.0 {
        let weights = parts.levels.iter_mut().flatten().flat_map(|chunk| &mut chunk.values);
        weights.for_each(|weight| *weight /= info.row_length);
    }
    let converted = PecosModel {
        parts,
        post: info.post,
        beam: info.beam,
        level_top_k: vec![info.beam; tree.trees()[chosen].depth()],
        n_features: info.n_features,
        n_labels: info.n_labels,
        bias: 1.0,
    };
    pecos::export(&converted, destination).map_err(|error| match error {
        PecosError::Io { .. } | PecosError::Write(_) => ConvertError::Write(Box::new(error)),
        _ => ConvertError::Model(Box::new(error)),
    })
}
