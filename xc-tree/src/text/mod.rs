//! A tree that takes text: the model and its feature pipeline in one folder.
//!
//! ```
//! # #[cfg(not(feature = "train"))]
//! # fn main() {}
//! # #[cfg(feature = "train")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use xc_hash::text::PipelineParams;
//! use xc_sparse::{CsrMatrix, LabelRows};
//! use xc_tree::{TreeParams, text::TextModel};
//!
//! let texts = ["a red car", "a red bus", "a green tree", "the green leaf"];
//! let labels = LabelRows::from_lists([[0], [0], [1], [1]], 2)?;
//! let model = TextModel::train(&texts, &labels, PipelineParams::default(), &TreeParams::default())?;
//! assert_eq!(model.predict("Red!", 1)[0].label, 0);
//! # Ok(())
//! # }
//! ```

mod pipeline;

pub use pipeline::{PIPELINE_PREFIX, StoredPipelineError, read_parts, read_pipeline, write_pipeline};

use crate::model::{KIND, OpenTreeError, TreeModel};
use crate::predict::{PredictParams, PredictScratch};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_hash::text::{Featurizer, Pipeline, PipelineScratch};
use xc_sparse::SparseRow;
use xc_sparse::rank::Scored;
use xc_store::{Container, ContainerWriter, OpenError, OpenMode, WriteError};

/// A tree over the features of a text pipeline.
///
/// # Invariants
/// The pipeline makes as many features as the tree takes.
#[derive(Debug)]
pub struct TextModel {
    tree: TreeModel,
    pipeline: Pipeline,
}

/// Memory of one thread's predictions from text.
#[derive(Clone, Debug, Default)]
pub struct TextScratch {
    pipeline: PipelineScratch,
    tree: PredictScratch,
}

/// Why a folder cannot be opened as a tree that takes text.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenTextError {
    /// The tree.
    #[error(transparent)]
    Tree(#[from] OpenTreeError),
    /// The folder.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// The pipeline.
    #[error(transparent)]
    Pipeline(#[from] StoredPipelineError),
    /// The model takes features unchanged, or weighted counts.
    #[error("{}: the model takes no text", path.display())]
    NoText {
        /// The folder.
        path: PathBuf,
    },
    /// Pipeline and tree differ in width.
    #[error("{}: the pipeline makes {got} features, the tree takes {expected}", path.display())]
    Width {
        /// The folder.
        path: PathBuf,
        /// Features that come out of the pipeline.
        got: usize,
        /// Features that the tree takes.
        expected: usize,
    },
}

impl TextModel {
    /// A tree and the pipeline that made the features it was trained on.
    ///
    /// # Panics
    /// If the numbers of features of pipeline and tree differ.
    pub fn new(tree: TreeModel, pipeline: Pipeline) -> Self {
        let (got, expected) = (pipeline.n_features(), tree.info().n_features);
        assert!(got == expected, "a pipeline of {got} features for a tree of {expected}");
        Self { tree, pipeline }
    }

    /// Writes the model's folder: complete, or not at all. An existing model is replaced.
    ///
    /// # Errors
    /// The folder holds something other than a model, or the system refuses to write.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        let mut writer = ContainerWriter::create(folder.as_ref(), KIND)?;
        write_pipeline(&mut writer, self.pipeline.to_parts())?;
        self.tree.write(&mut writer)?;
        writer.finish()
    }

    /// Opens a model's folder: the tree's arrays are mapped and checked, the pipeline is read.
    ///
    /// # Errors
    /// See [`OpenTextError`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenTextError> {
        let path = folder.as_ref();
        let container = Container::open(path, OpenMode::Map)?;
        let tree = TreeModel::from_container(&container)?;
        let Some(Featurizer::Text(pipeline)) = read_pipeline(&container)? else {
            return Err(OpenTextError::NoText { path: path.to_owned() });
        };
        let (got, expected) = (pipeline.n_features(), tree.info().n_features);
        if got != expected {
            return Err(OpenTextError::Width { path: path.to_owned(), got, expected });
        }
        Ok(Self { tree, pipeline })
    }

    /// The tree.
    pub fn tree(&self) -> &TreeModel {
        &self.tree
    }

    /// The pipeline that turns text into features.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The `top_k` best labels of one text, best first, with the model's own beam.
    ///
    /// *Cost*: see [`TreeModel::predict`].
    pub fn predict(&self, text: &str, top_k: usize) -> Vec<Scored> {
        let mut out = Vec::new();
        self.predict_one(text, &PredictParams::top(top_k), &mut TextScratch::default(), &mut out);
        out
    }

    /// The best labels of one text, best first, into `out`. Allocates nothing once `scratch` and
    /// `out` have grown.
    pub fn predict_one(&self, text: &str, params: &PredictParams, scratch: &mut TextScratch, out: &mut Vec<Scored>) {
        let (indices, values) = self.pipeline.transform_one(text, &mut scratch.pipeline);
        let answered = self.tree.predict_one(SparseRow::from_checked(indices, values), params, &mut scratch.tree, out);
        answered.expect("the features of the pipeline are the model's");
    }
}

#[cfg(feature = "train")]
mod train {
    use super::TextModel;
    use crate::model::TreeModel;
    use crate::train::{TrainError, TrainInput, TreeParams};
    use thiserror::Error;
    use xc_hash::text::{FitPipelineError, Pipeline, PipelineParams};
    use xc_sparse::{CsrMatrix, LabelRows};

    /// Why no tree was trained on texts.
    #[derive(Debug, Error)]
    #[non_exhaustive]
    pub enum TrainTextError {
        /// The pipeline's parameters, or texts without a feature.
        #[error(transparent)]
        Pipeline(#[from] FitPipelineError),
        /// The tree.
        #[error(transparent)]
        Tree(#[from] TrainError),
    }

    impl TextModel {
        /// Fits a pipeline to texts and trains a tree on the resulting features; `labels` has one list
        /// per text.
        ///
        /// # Errors
        /// See [`TrainTextError`].
        pub fn train<T: AsRef<str> + Sync>(
            texts: &[T],
            labels: &LabelRows,
            text: PipelineParams,
            params: &TreeParams,
        ) -> Result<Self, TrainTextError> {
            let pipeline = Pipeline::fit(text, texts)?;
            let rows = pipeline.transform_batch(texts);
            let features =
                CsrMatrix::from_checked((texts.len(), rows.n_features), rows.indptr, rows.indices, rows.values);
            Ok(Self::new(TreeModel::train(&TrainInput::new(features.view(), labels), params)?, pipeline))
        }
    }
}

#[cfg(feature = "train")]
pub use train::TrainTextError;

#[cfg(all(test, feature = "train"))]
mod tests {
    use super::*;
    use crate::train::{TrainInput, TreeParams};
    use xc_hash::text::PipelineParams;
    use xc_sparse::{CsrMatrix, LabelRows};

    #[test]
    fn a_saved_model_answers_texts_as_the_one_that_was_trained() {
        let texts: Vec<String> = (0..60).map(|i| format!("word{} word{} common", i % 12, (i + 1) % 12)).collect();
        let labels = LabelRows::from_lists((0..60u32).map(|i| [i % 12]), 12).unwrap();
        let trained = TextModel::train(&texts, &labels, PipelineParams::default(), &TreeParams::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        trained.save(&path).unwrap();
        let opened = TextModel::open(&path).unwrap();
        assert_eq!(opened.pipeline(), trained.pipeline());
        let rows = trained.pipeline().transform_batch(&texts);
        let shape = (texts.len(), rows.n_features);
        let rows = CsrMatrix::try_new(shape, rows.indptr, rows.indices, rows.values).unwrap();
        let batch = trained.tree().predict_batch(rows.view(), &PredictParams::top(3)).unwrap();
        let (params, mut scratch, mut out) = (PredictParams::top(3), TextScratch::default(), Vec::new());
        for (i, text) in texts.iter().enumerate() {
            opened.predict_one(text, &params, &mut scratch, &mut out);
            assert_eq!((&out[..], &opened.predict(text, 3)[..]), (batch.row(i), batch.row(i)));
            assert_eq!(out[0].label, i as u32 % 12);
        }
    }

    #[test]
    fn a_model_of_plain_features_takes_no_text() {
        let x = CsrMatrix::from_checked((2, 2), vec![0, 1, 2], vec![0, 1], vec![1.0, 1.0]);
        let y = LabelRows::from_lists([[0], [1]], 2).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        TreeModel::train(&TrainInput::new(x.view(), &y), &TreeParams::default()).unwrap().save(&path).unwrap();
        assert!(matches!(TextModel::open(&path), Err(OpenTextError::NoText { .. })));
        assert!(matches!(TextModel::open(folder.path()), Err(OpenTextError::Container(_))));
    }
}
