//! From rows and labels in memory to instances that are learned from.

use super::data::{Dataset, Making, TextSource, no_labels, of_features, of_vectors, read_texts, with_names};
use super::source::{Given, MEMORY, MEMORY_VALIDATION};
use super::{Context, FitError};
use std::borrow::Cow;
use std::path::Path;
use xc_buffer::is_control;
use xc_data::{Data, LabelNames, UnknownLabels, Vectors};
use xc_hash::text::{Idf, Norm, PipelineParams, TermWeighting, Tf};
use xc_model::OwnedRows;
use xc_model::message::chain;
use xc_sparse::rows::{Rows, Texts};
use xc_sparse::{CsrMatrix, LabelRows};

/// How instances become features.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureParams {
    /// Of texts.
    pub text: PipelineParams,
    /// Of sparse rows: how they are weighted and scaled; `None`: not at all.
    pub weighting: Option<TermWeighting>,
}

impl Default for FeatureParams {
    /// Words of texts by TF-IDF; rows scaled to length 1.
    fn default() -> Self {
        let weighting = TermWeighting { tf: Tf::Raw, idf: Idf::None, norm: Norm::L2 };
        Self { text: PipelineParams::default(), weighting: Some(weighting) }
    }
}

/// How instances in memory become those that are learned from.
pub struct ArrayReader<'a> {
    /// Training instances that are not copied, in place of those that are given.
    pub given: Option<&'a Given>,
    /// Whether vectors are taken as rows of features, without those that are 0.
    pub vectors_as_rows: bool,
    /// Threads, seed, memory, and who watches.
    pub context: &'a Context<'a>,
}

impl ArrayReader<'_> {
    /// Instances to learn from, and others to judge by.
    ///
    /// # Errors
    /// Names or rows that are not one a label or instance, instances without a label, rows of another width.
    pub fn datasets(
        &self,
        train: &Data<'_>,
        validation: Option<&Data<'_>>,
        making: Making<'_>,
    ) -> Result<(Dataset, Option<Dataset>), FitError> {
        let names = train.names.as_deref();
        let known = names.map(|names| LabelNames::try_new(names.to_vec())).transpose();
        let known = known.map_err(|e| FitError::usage(format_args!("label names: {}", chain(&e))))?;
        // Before anything is learned: the folder of the model would refuse them.
        let is_wrong = |name: &str| name.is_empty() || name.contains(is_control);
        if let Some((label, name)) = names.into_iter().flatten().enumerate().find(|(_, name)| is_wrong(name)) {
            return Err(FitError::usage(format_args!(
                "label names: label {label}: {name:?} is empty or has a control character; a printable name is expected"
            )));
        }
        let name = Path::new(MEMORY);
        let mut data = match self.given.and_then(Given::texts) {
            Some(texts) => {
                let source = TextSource::Memory { name, texts: Texts::Slices(&texts) };
                check_lengths(name, &train.labels, texts.len())?;
                Dataset {
                    labels: train.labels.clone().into_owned(),
                    ..read_texts(&source, false, making, self.context)?
                }
            }
            None => {
                let taken = self.given.and_then(Given::take).map(Cow::Owned);
                let rows = taken.unwrap_or_else(|| train.rows.to_owned_rows());
                self.dataset(name, rows, &train.labels, making)?
            }
        };
        if data.labels.nnz() == 0 {
            return Err(FitError::usage(format_args!(
                "{MEMORY}: no instance has a label; at least one label is expected"
            )));
        }
        (data.labels, data.names) = with_names(name, data.labels, None, known.as_ref(), UnknownLabels::Refuse)?;
        let validation = validation.map(|set| {
            let making = Making::Apply { maker: data.maker.as_ref(), n_features: data.width() };
            let rows = set.rows.to_owned_rows();
            let set = self.dataset(Path::new(MEMORY_VALIDATION), rows, &set.labels, making)?;
            let (got, expected) = (set.width(), data.width());
            if got != expected {
                return Err(FitError::usage(format_args!(
                    "{MEMORY_VALIDATION}: rows of {got} features; those of the training data have {expected}"
                )));
            }
            Ok(set)
        });
        let validation = validation.transpose()?;
        Ok((data, validation))
    }

    /// Instances in memory as they are learned from.
    fn dataset(
        &self,
        name: &Path,
        rows: Cow<'_, OwnedRows>,
        labels: &LabelRows,
        making: Making<'_>,
    ) -> Result<Dataset, FitError> {
        check_lengths(name, labels, rows.len())?;
        let data = self.features(name, rows, making)?;
        Ok(Dataset { labels: labels.clone(), ..data })
    }

    /// Rows in memory without labels, which messages call `name`.
    ///
    /// # Errors
    /// Tokens; values that cannot be weighted; texts that no feature can be made of.
    pub fn features(&self, name: &Path, rows: Cow<'_, OwnedRows>, making: Making<'_>) -> Result<Dataset, FitError> {
        if let Rows::Texts(texts) = rows.view() {
            return read_texts(&TextSource::Memory { name, texts }, false, making, self.context);
        }
        // A copy of rows that stay with the source; those that were taken from it are moved.
        match rows.into_owned() {
            OwnedRows::Sparse(rows) => {
                let labels = no_labels(rows.rows());
                of_features(name, rows, labels, making, true, self.context)
            }
            OwnedRows::Dense(vectors) if self.vectors_as_rows => {
                let rows = CsrMatrix::from_matrix(vectors);
                let labels = no_labels(rows.rows());
                of_features(name, rows, labels, making, false, self.context)
            }
            OwnedRows::Dense(rows) => of_vectors(Vectors::in_memory(&name.display().to_string(), rows)),
            OwnedRows::Texts(_) | OwnedRows::Tokens(_) => Err(FitError::usage(format_args!(
                "{}: tokens; sparse rows, vectors or texts are expected",
                name.display()
            ))),
        }
    }
}

/// Refuses rows of labels that are not those of so many instances.
fn check_lengths(name: &Path, labels: &LabelRows, expected: usize) -> Result<(), FitError> {
    match labels.len() {
        got if got == expected && got > 0 => Ok(()),
        got => Err(FitError::usage(format_args!(
            "{}: {expected} rows and {got} rows of labels; they must be as many, at least 1",
            name.display()
        ))),
    }
}
