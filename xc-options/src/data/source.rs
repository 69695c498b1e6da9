//! What is learned from: files, or arrays in memory.

use super::{NamesFile, is_vectors};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use xc_data::{Data, DataRows, FileForm};
use xc_dense::DenseMatrix;
use xc_model::classifier::InputKind;
use xc_sparse::rows::OwnedRows;
use xc_sparse::{CsrMatrix, LabelRows};
use xc_train::fit::{Arrays, Given, MEMORY};

/// Files that are learned from.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Training instances, or their labels alone where `features` has vectors.
    pub train: PathBuf,
    /// Labels of the training instances, where `train` has none.
    pub train_labels: Option<PathBuf>,
    /// Vectors of the training instances, npy.
    pub features: Option<PathBuf>,
    /// Other instances, which judge.
    pub validation: Option<PathBuf>,
    /// Their labels, where `validation` has none.
    pub validation_labels: Option<PathBuf>,
    /// Their vectors, npy.
    pub validation_features: Option<PathBuf>,
    /// Texts or features of the labels, one row a label.
    pub label_features: Option<PathBuf>,
    /// Names of the labels.
    pub names: NamesFile,
    /// Weight of each training instance in the loss, one number a line (trees).
    pub instance_weights: Option<PathBuf>,
    /// Cost factor of each label, one number a line (trees).
    pub label_costs: Option<PathBuf>,
}

impl Files {
    /// All files that are named.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let Self { train, names, .. } = self;
        let more = [
            &self.train_labels,
            &self.validation,
            &self.validation_labels,
            &names.path,
            &self.features,
            &self.validation_features,
            &self.label_features,
            &self.instance_weights,
            &self.label_costs,
        ];
        more.into_iter().flatten().chain([train])
    }
}

/// Where the data of a training run are. *Cost* of a copy: none, the data are shared.
#[derive(Clone, Debug)]
pub enum Source {
    /// Files.
    Files(Arc<Files>),
    /// Memory.
    Memory(Arc<Arrays>),
}

impl From<Files> for Source {
    fn from(files: Files) -> Self {
        Self::Files(Arc::new(files))
    }
}

impl From<Data<'static>> for Source {
    fn from(train: Data<'static>) -> Self {
        Arrays::from(train).into()
    }
}

impl From<Arrays> for Source {
    fn from(arrays: Arrays) -> Self {
        Self::Memory(Arc::new(arrays))
    }
}

/// A file, as its path was given.
impl From<&Path> for Source {
    fn from(train: &Path) -> Self {
        Files { train: train.to_owned(), ..Files::default() }.into()
    }
}

/// Sparse rows and their labels.
impl From<(CsrMatrix, LabelRows)> for Source {
    fn from((rows, labels): (CsrMatrix, LabelRows)) -> Self {
        Arrays::new(rows, labels).into()
    }
}

/// Vectors and their labels.
impl From<(DenseMatrix, LabelRows)> for Source {
    fn from((rows, labels): (DenseMatrix, LabelRows)) -> Self {
        Arrays::new(rows, labels).into()
    }
}

/// Texts and their labels.
impl From<(Vec<String>, LabelRows)> for Source {
    fn from((texts, labels): (Vec<String>, LabelRows)) -> Self {
        Arrays::new(texts, labels).into()
    }
}

/// What messages call rows of labels that are in no file.
pub(super) const MEMORY_LABELS: &str = "label features";

impl Source {
    /// Takes the training instances out, and leaves none of the same form; nothing where they are in files, or somebody else
    /// has them too.
    pub(crate) fn take_rows(&mut self) -> Option<Given> {
        let Self::Memory(arrays) = self else { return None };
        let DataRows::Owned(rows) = &mut Arc::get_mut(arrays)?.train.rows else { return None };
        let none = match &*rows {
            OwnedRows::Sparse(rows) => OwnedRows::Sparse(CsrMatrix::zero((0, rows.cols()))),
            OwnedRows::Dense(rows) => OwnedRows::Dense(DenseMatrix::new(0, rows.columns, Vec::new())),
            OwnedRows::Texts(_) => OwnedRows::Texts(Vec::new()),
            OwnedRows::Tokens(_) => return None,
        };
        Some(Given::Once(Arc::new(Mutex::new(Some(std::mem::replace(rows, none))))))
    }

    /// What messages call the training instances.
    pub fn name(&self) -> &Path {
        match self {
            Self::Files(files) => &files.train,
            Self::Memory(_) => Path::new(MEMORY),
        }
    }

    /// What the instances are, as far as can be said before they are read.
    pub fn input(&self) -> InputKind {
        let is_dense = match self {
            Self::Files(files) => files.features.is_some(),
            Self::Memory(arrays) => arrays.train.rows().kind() == InputKind::Dense,
        };
        if is_dense { InputKind::Dense } else { InputKind::Sparse }
    }

    /// Whether rows are vectors, which are not scaled.
    pub fn is_vectors(&self, input: &FileForm) -> bool {
        match self {
            Self::Files(files) => is_vectors(&files.train, input.format),
            Self::Memory(arrays) => arrays.train.rows().kind() == InputKind::Dense,
        }
    }

    /// Whether there are instances of their own to judge by.
    pub fn has_validation(&self) -> bool {
        match self {
            Self::Files(files) => files.validation.is_some(),
            Self::Memory(arrays) => arrays.validation.is_some(),
        }
    }

    /// The same without these.
    pub fn without_validation(&self) -> Self {
        match self {
            Self::Files(files) => {
                let (validation, validation_labels, validation_features) = (None, None, None);
                Files { validation, validation_labels, validation_features, ..(**files).clone() }.into()
            }
            Self::Memory(arrays) if arrays.validation.is_none() => self.clone(),
            Self::Memory(arrays) => Arrays { validation: None, ..(**arrays).clone() }.into(),
        }
    }

    /// Whether labels have texts or features.
    pub fn has_label_features(&self) -> bool {
        match self {
            Self::Files(files) => files.label_features.is_some(),
            Self::Memory(arrays) => arrays.label_features.is_some(),
        }
    }
}
