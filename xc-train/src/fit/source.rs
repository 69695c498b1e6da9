//! What is learned from: files, or arrays in memory.

use super::data::{NamesFile, is_vectors};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use xc_data::{Data, DataRows, FileForm};
use xc_dense::DenseMatrix;
use xc_model::classifier::InputKind;
use xc_sparse::rows::{OwnedRows, Rows};
use xc_sparse::{CsrMatrix, CsrView, LabelRows};
use xc_store::CheckpointKey;

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

fn hash_features(rows: CsrView<'_>, key: &mut CheckpointKey) {
    key.settings(&(rows.rows(), rows.cols()));
    rows.indptr().iter().for_each(|end| key.bytes(&end.to_le_bytes()));
    rows.indices().iter().for_each(|id| key.bytes(&id.to_le_bytes()));
    rows.data().iter().for_each(|value| key.bytes(&value.to_le_bytes()));
}

fn hash_rows(rows: Rows<'_>, key: &mut CheckpointKey) {
    match rows {
        Rows::Sparse(rows) => hash_features(rows, key),
        Rows::OneHot(hot) => {
            key.settings(&(rows.len(), rows.width()));
            (0..rows.len()).for_each(|i| key.bytes(bytemuck::cast_slice(hot.row(i).indices())));
        }
        Rows::Dense(rows) => {
            key.settings(&(rows.len(), rows.width()));
            rows.values().iter().for_each(|value| key.bytes(&value.to_le_bytes()));
        }
        Rows::Texts(texts) => texts.iter().for_each(|text| key.text(text)),
        Rows::Tokens(rows) => {
            key.settings(&(rows.len(), rows.vocabulary()));
            (0..rows.len()).for_each(|i| key.numbers(&[rows.row(i).len() as u64]));
            rows.ids().iter().for_each(|id| key.bytes(&id.to_le_bytes()));
            rows.words().into_iter().for_each(|words| hash_features(words, key));
        }
    }
}

/// Everything that is learned from, in memory.
#[derive(Clone, Debug)]
pub struct Arrays {
    /// Training instances, their labels and the names of these.
    pub train: Data<'static>,
    /// Other instances, which judge, with labels of the same ids.
    pub validation: Option<Data<'static>>,
    /// Texts or features of the labels, one row a label.
    pub label_features: Option<OwnedRows>,
    /// Weight of each training instance in the loss (trees).
    pub instance_weights: Option<Vec<f32>>,
    /// Cost factor of each label (trees).
    pub label_costs: Option<Vec<f32>>,
}

fn hash_data(data: &Data<'_>, key: &mut CheckpointKey) {
    hash_rows(data.rows(), key);
    data.labels.iter().for_each(|list| key.settings(&list));
}

impl Arrays {
    /// Puts everything that a training run depends on into a key.
    pub fn put_into(&self, key: &mut CheckpointKey) {
        hash_data(&self.train, key);
        self.validation.iter().for_each(|set| hash_data(set, key));
        self.label_features.iter().for_each(|rows| hash_rows(rows.view(), key));
        key.settings(&(&self.train.names, &self.instance_weights, &self.label_costs));
    }

    /// Instances with labels and nothing else.
    pub fn new(rows: impl Into<DataRows<'static>>, labels: LabelRows) -> Self {
        Data::new(rows, labels).into()
    }

    /// With a name for each label.
    pub fn with_names(self, names: Vec<String>) -> Self {
        Self { train: self.train.with_names(names), ..self }
    }

    /// With other instances, which judge.
    pub fn with_validation(self, rows: impl Into<DataRows<'static>>, labels: LabelRows) -> Self {
        Self { validation: Some(Data::new(rows, labels)), ..self }
    }
}

/// Texts that somebody else has, and keeps as they are.
pub trait SharedTexts: Debug + Send + Sync {
    /// All of them, in order.
    fn texts(&self) -> Vec<&str>;
}

/// Training instances in memory that are not copied.
#[derive(Clone, Debug)]
pub enum Given {
    /// Rows that are given up as they are read, by one run.
    Once(Arc<Mutex<Option<OwnedRows>>>),
    /// Texts that are read where they lie.
    Shared(Arc<dyn SharedTexts>),
}

impl Given {
    /// Rows that are given up: the first time.
    pub fn take(&self) -> Option<OwnedRows> {
        match self {
            Self::Once(rows) => rows.lock().unwrap_or_else(PoisonError::into_inner).take(),
            Self::Shared(_) => None,
        }
    }

    /// Texts that are read where they lie.
    pub fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Self::Once(_) => None,
            Self::Shared(texts) => Some(texts.texts()),
        }
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

/// Instances with labels and nothing else.
impl From<Data<'static>> for Arrays {
    fn from(train: Data<'static>) -> Self {
        Self { train, validation: None, label_features: None, instance_weights: None, label_costs: None }
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

/// What messages call instances that are in no file.
pub(super) const MEMORY: &str = "training data";
pub(super) const MEMORY_VALIDATION: &str = "validation data";
pub(super) const MEMORY_LABELS: &str = "label features";

impl Source {
    /// Takes the training instances out, and leaves none of the same form; nothing where they are in files, or somebody else
    /// has them too.
    pub fn take_rows(&mut self) -> Option<Given> {
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
