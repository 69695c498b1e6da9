//! What is learned from, in memory.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use xc_data::{Data, DataRows};
use xc_sparse::rows::{OwnedRows, Rows};
use xc_sparse::{CsrView, LabelRows};
use xc_store::CheckpointKey;

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

/// Instances with labels and nothing else.
impl From<Data<'static>> for Arrays {
    fn from(train: Data<'static>) -> Self {
        Self { train, validation: None, label_features: None, instance_weights: None, label_costs: None }
    }
}

/// What messages call instances that are in no file.
pub const MEMORY: &str = "training data";
pub(super) const MEMORY_VALIDATION: &str = "validation data";
