//! Models of other systems: read as models of this library, and written as those systems read them. All are label trees.

use super::Model;
use std::error::Error;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_sparse::dtype::DType;
use xc_sparse::store::{Mismatch, OpenError};
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
            return self.write_transformer(destination.as_ref());
        }
        match self.as_kind() {
            Some(tree) if format == "pecos" => write_pecos(tree, source, destination.as_ref(), part),
            _ => Err(ConvertError::Kind { path: source.to_owned(), kind: self.kind.name, format }),
        }
    }
}

#[cfg(feature = "transformer")]
impl Model {
    /// Writes the transformer that was trained below a network, and its tokenizer.
    fn write_transformer(&self, destination: &Path) -> Result<(), ConvertError> {
        use crate::classifier::Classifier;
        use crate::tokens::FILE;
        use xc_hash::text::{Featurizer, PartArray};
        use xc_sparse::atomic::{OutputFolder, WriteFileError};
        let lacking = |what| ConvertError::NoTransformer { path: self.container.folder().to_owned(), what };
        let transformer = self.as_kind::<Classifier>().and_then(Classifier::transformer);
        let Some((transformer, Featurizer::Tokens(tokens))) = transformer.zip(self.pipeline()) else {
            let is_frozen = matches!(self.pipeline(), Some(Featurizer::Vectors(_)));
            let frozen = "its transformer is as it came, in the folder that it was trained from";
            return Err(lacking(if is_frozen { frozen } else { "it has no transformer" }));
        };
        let parts = tokens.to_parts();
        let file = parts.arrays.into_iter().find_map(|(name, array)| match array {
            PartArray::U8(file) if name == crate::tokens::TOKENIZER => Some(file),
            _ => None,
        });
        let file = file.ok_or_else(|| lacking("it has no tokenizer"))?;
        let write = || -> Result<(), WriteFileError> {
            let folder = OutputFolder::create(destination)?;
            transformer.write_folder(&folder)?;
            folder.file(FILE, |to| std::io::Write::write_all(to, &file))?;
            let of_tokens = parts.config.get("tokens").unwrap_or(&parts.config);
            for (name, config) in configurations(&file, of_tokens) {
                folder.file(name, |to| std::io::Write::write_all(to, format!("{config:#}\n").as_bytes()))?;
            }
            folder.commit()
        };
        write().map_err(|e| ConvertError::Write(Box::new(e)))
    }
}

/// What libraries are told of a tokenizer beside its own file: they would change it to what is usual for its kind. Texts
/// are cut there as they are here.
#[cfg(feature = "transformer")]
fn configurations(file: &[u8], tokens: &serde_json::Value) -> [(&'static str, serde_json::Value); 2] {
    use serde_json::{Map, Value, json};
    let (max_tokens, lower_case) = (&tokens["max_tokens"], tokens["lower_case"] == true);
    let tokenizer: Value = serde_json::from_slice(file).unwrap_or_default();
    let (normalizer, pre_tokenizer) = (&tokenizer["normalizer"], &tokenizer["pre_tokenizer"]);
    // Of the class that reads the file as it is: that of the family builds its usual tokenizer anew.
    let class = json!("PreTrainedTokenizerFast");
    let mut config =
        Map::from_iter([("model_max_length".to_owned(), max_tokens.clone()), ("tokenizer_class".to_owned(), class)]);
    let of_bert = [("do_lower_case", "lowercase"), ("strip_accents", "strip_accents")];
    let of_bert = of_bert.into_iter().chain([("tokenize_chinese_chars", "handle_chinese_chars")]);
    let mut copy = |from: &Value, theirs: &str, ours: &str| config.insert(theirs.to_owned(), from[ours].clone());
    if normalizer["type"] == "BertNormalizer" {
        of_bert.for_each(|(theirs, ours)| drop(copy(normalizer, theirs, ours)));
    }
    if pre_tokenizer["type"] == "ByteLevel" {
        ["add_prefix_space", "trim_offsets"].into_iter().for_each(|name| drop(copy(pre_tokenizer, name, name)));
    }
    let of_sentences = json!({ "max_seq_length": max_tokens, "do_lower_case": lower_case });
    [("tokenizer_config.json", Value::Object(config)), ("sentence_bert_config.json", of_sentences)]
}

#[cfg(not(feature = "transformer"))]
impl Model {
    /// No model that opens in this build has one.
    fn write_transformer(&self, _: &Path) -> Result<(), ConvertError> {
        let path = self.container.folder().to_owned();
        Err(ConvertError::NoTransformer { path, what: "it has no transformer" })
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
