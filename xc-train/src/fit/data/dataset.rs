//! Instances with labels in memory, whatever they were read from.

use crate::fit::FitError;
use std::path::Path;
use xc_data::{FileForm, HoldOut, Split};
use xc_hash::text::Featurizer;
use xc_model::{OwnedRows, TrainingRows};
use xc_nn::Rows;
use xc_sparse::rank::RankedBatch;
use xc_sparse::{CsrMatrix, CsrView, LabelRows};

/// Instances of a file with their labels.
pub struct Dataset {
    /// What is known of the instances: sparse features, or vectors, which are mapped where the file allows it.
    pub features: OwnedRows,
    /// Labels of each.
    pub labels: LabelRows,
    /// Name of each label where labels have names.
    pub names: Option<Vec<String>>,
    /// How the features were made, when they were not simply read.
    pub maker: Option<Featurizer>,
    /// Whether the instances are texts: those without a known word, which are rows without a feature, have no
    /// answer.
    pub of_texts: bool,
    /// What each instance is known by, whatever is made of it.
    pub hashes: Vec<u64>,
    /// What the file looks like.
    pub form: FileForm,
}

/// What is learned from, and what else is watched.
pub struct Datasets {
    /// All instances of the training file.
    pub train: Dataset,
    /// Instances that judge.
    pub validation: Option<Dataset>,
    /// The training instance that is the text of label 0, those of the others behind it, where texts of
    /// labels are learned from.
    pub label_texts: Option<usize>,
    /// Which instances of the training file are held out, where some are.
    pub split: Option<Split>,
}

impl Dataset {
    /// Parts the instances, which messages call `name`.
    ///
    /// # Errors
    /// A part without an instance.
    pub fn split(&self, name: &Path, hold_out: HoldOut) -> Result<Split, FitError> {
        let split = hold_out.split(&self.hashes);
        if split.kept.is_empty() || split.held_out.is_empty() {
            let (share, name, all) = (hold_out.share, name.display(), self.len());
            let which = if split.kept.is_empty() { "all" } else { "none" };
            return Err(FitError::usage(format_args!(
                "--validation-fraction {share}: {which} of the {all} instances of {name} would be held out; a share \
                 that parts them is expected"
            )));
        }
        Ok(split)
    }

    /// Number of instances.
    #[expect(clippy::len_without_is_empty, reason = "readers refuse a file without an instance")]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Number of features of an instance, or values of its vector.
    pub fn width(&self) -> usize {
        self.features().width()
    }

    /// As a network takes them.
    pub fn features(&self) -> Rows<'_> {
        self.features.view()
    }

    /// The features of a file that was read as sparse ones.
    ///
    /// # Panics
    /// If they are vectors.
    pub fn sparse(&self) -> &CsrMatrix {
        match &self.features {
            OwnedRows::Sparse(matrix) => matrix,
            _ => panic!("other rows, where sparse features were read"),
        }
    }

    /// The features alone.
    ///
    /// # Panics
    /// If they are vectors.
    pub fn into_sparse(self) -> CsrMatrix {
        match self.features {
            OwnedRows::Sparse(matrix) => matrix,
            _ => panic!("other rows, where sparse features were read"),
        }
    }

    /// The instances with these numbers.
    pub fn select(&self, rows: &[u32]) -> Self {
        Self {
            features: self.features().select(rows),
            labels: self.labels.select(rows),
            names: self.names.clone(),
            maker: self.maker.clone(),
            of_texts: self.of_texts,
            hashes: rows.iter().map(|&row| self.hashes[row as usize]).collect(),
            form: self.form.clone(),
        }
    }

    /// The instances with these numbers, which ascend, in the memory of all.
    fn keep(self, rows: &[u32]) -> Self {
        Self {
            features: self.features.keep(rows),
            labels: self.labels.select(rows),
            hashes: rows.iter().map(|&row| self.hashes[row as usize]).collect(),
            ..self
        }
    }

    /// Answers of a model to these instances, as it gives them to whoever asks: to texts without a known word none.
    pub fn answered(&self, answers: RankedBatch) -> RankedBatch {
        let Rows::Sparse(rows) = self.features() else { return answers };
        let is_known = |row: usize| !self.of_texts || !rows.row(row).indices().is_empty();
        if (0..rows.rows()).all(is_known) {
            return answers;
        }
        let mut given = RankedBatch::new();
        answers.iter().enumerate().for_each(|(row, best)| given.push_row(if is_known(row) { best } else { &[] }));
        given
    }

    /// Bytes of features and labels in memory.
    pub fn n_bytes(&self) -> u64 {
        let of_features = |rows: CsrView<'_>| 8 * rows.nnz() + 8 * rows.rows();
        let features = match &self.features {
            OwnedRows::Sparse(matrix) => of_features(matrix.view()),
            OwnedRows::Dense(vectors) if vectors.values.is_foreign() => 0,
            OwnedRows::Dense(vectors) => 4 * vectors.values.len(),
            OwnedRows::Texts(texts) => texts.iter().map(String::len).sum(),
            OwnedRows::Tokens(rows) => {
                let rows = rows.view();
                4 * rows.ids().len() + 8 * rows.len() + rows.words().map_or(0, of_features)
            }
        };
        (features + 4 * self.labels.nnz() + 8 * self.labels.len()) as u64
    }

    /// Bytes that stay in a file until they are looked at.
    pub fn mapped_bytes(&self) -> u64 {
        match &self.features {
            OwnedRows::Dense(vectors) if vectors.values.is_foreign() => 4 * vectors.values.len() as u64,
            _ => 0,
        }
    }
}

impl Datasets {
    /// What the model keeps of the instances that it learns from.
    pub fn training_rows(&self) -> TrainingRows {
        let (all, none) = ((0..self.train.hashes.len() as u32).collect(), Vec::new());
        let whole = Split { kept: all, held_out: none };
        let Split { kept, held_out } = self.split.as_ref().unwrap_or(&whole);
        TrainingRows::new(&self.train.hashes, &self.train.labels, kept, held_out.clone())
    }

    /// The instances to learn from alone; those held out judge them unless others do.
    pub fn parted(self) -> Self {
        let Some(Split { kept, held_out }) = &self.split else { return self };
        let validation = self.validation.unwrap_or_else(|| self.train.select(held_out));
        Self { train: self.train.keep(kept), validation: Some(validation), split: None, label_texts: None }
    }

    /// Bytes of features and labels in memory.
    pub fn n_bytes(&self) -> u64 {
        self.train.n_bytes() + self.validation.as_ref().map_or(0, Dataset::n_bytes)
    }
}
