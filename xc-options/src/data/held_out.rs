//! Rows that models were not trained on, and what the models answer to them.

use super::{KnownLabels, LabelsFrom, Queries, Source, read_labelled, read_vectors, vector_source};
use std::borrow::Cow;
use xc_data::{FileForm, LabelNames, UnknownLabels, hash_rows};
use xc_hash::text::Featurizer;
use xc_model::Model;
use xc_model::message::chain;
use xc_model::{BatchError, QueryError, QueryOptions, TrainingRows};
use xc_model::{InputKind, Rows};
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;
use xc_train::fit::data::{Dataset, Making};
use xc_train::fit::{Arrays, Context, FitError};

/// Share of the validation rows that models may have been trained on.
const MOST_SEEN: f64 = 0.01;

/// Instances that are read and answered together: between two batches an observer may cancel, some tenths of a second
/// apart.
const BATCH: usize = 512;

/// Where rows that models were not trained on come from.
#[derive(Clone, Debug)]
pub struct HeldOut {
    /// The rows and their labels: what would be training instances.
    pub source: Source,
    /// What the files hold.
    pub input: FileForm,
    /// Leave out rows that a model was trained on, however many they are; else more than 1% of them are refused.
    pub leave_out_seen: bool,
    /// Take models that do not say what they were trained on.
    pub allow_unverified: bool,
}

/// The rows that take part.
pub(super) struct Validation {
    /// Which rows of the file they are.
    pub(super) kept: Vec<bool>,
    pub(super) n_left_out: usize,
    /// Their labels; those that the models do not know have ids behind the others.
    pub(super) labels: LabelRows,
}

impl HeldOut {
    /// All rows of a source that no model was trained on.
    pub fn new(source: impl Into<Source>) -> Self {
        Self { source: source.into(), input: FileForm::default(), leave_out_seen: false, allow_unverified: false }
    }

    /// The same with rows in memory in the form that a model takes: for one of features, vectors are rows of features.
    pub(super) fn for_model(&self, model: &Model) -> Cow<'_, Self> {
        match &self.source {
            Source::Memory(arrays) if model.describe().takes == InputKind::Sparse => match arrays.train.rows() {
                Rows::Dense(vectors) => {
                    let labels = arrays.train.labels.clone().into_owned();
                    let source = Arrays::new(xc_sparse::CsrMatrix::from_vectors(vectors), labels).into();
                    Cow::Owned(Self { source, ..self.clone() })
                }
                _ => Cow::Borrowed(self),
            },
            _ => Cow::Borrowed(self),
        }
    }

    /// What each model was trained on.
    pub(super) fn training_rows(
        &self,
        models: &[Model],
        context: &Context<'_>,
    ) -> Result<Vec<Option<TrainingRows>>, FitError> {
        let mut rows = Vec::with_capacity(models.len());
        for model in models {
            let found = model.training_rows().map_err(|e| FitError::usage(chain(&e)))?;
            if found.is_none() {
                let line = format!("{}: does not say which rows it was trained on", model.folder().display());
                if !self.allow_unverified {
                    return Err(FitError::usage(format_args!("{line}; --unknown-rows overrides this")));
                }
                context.warn(line);
            }
            rows.push(found);
        }
        Ok(rows)
    }

    /// Reads labels, and which rows the models have seen. The models take the same input and have
    /// the same labels; `names` are those of the labels.
    pub(super) fn read(
        &self,
        models: &[Model],
        rows: &[Option<TrainingRows>],
        names: Option<LabelNames>,
        context: &Context<'_>,
    ) -> Result<Validation, FitError> {
        let (labels, hashes) = self.labelled(&models[0], names, context)?;
        let (n, file) = (hashes.len(), self.source.name().display());
        let mut kept = vec![true; n];
        for (rows, model) in rows.iter().zip(models) {
            let Some(rows) = rows else { continue };
            let mut seen = 0;
            for (kept, &hash) in kept.iter_mut().zip(&hashes) {
                let is_seen = rows.contains(hash);
                (*kept, seen) = (*kept && !is_seen, seen + usize::from(is_seen));
            }
            if !self.leave_out_seen && seen as f64 > MOST_SEEN * n as f64 {
                return Err(FitError::usage(format_args!(
                    "{file}: {seen} of {n} instances are training instances of {}; at most {:.0}% are expected \
                     (--held-out leaves them out)",
                    model.folder().display(),
                    100.0 * MOST_SEEN
                )));
            }
        }
        let numbers: Vec<u32> = (0..n as u32).filter(|&row| kept[row as usize]).collect();
        if numbers.is_empty() {
            let one = if models.len() == 1 { "the model" } else { "a member" };
            return Err(FitError::usage(format_args!(
                "{file}: every instance is a training instance of {one}; others are expected"
            )));
        }
        Ok(Validation { kept, n_left_out: n - numbers.len(), labels: labels.select(&numbers) })
    }

    /// The labels of all instances, and what each instance is known by.
    fn labelled(
        &self,
        first: &Model,
        names: Option<LabelNames>,
        context: &Context<'_>,
    ) -> Result<(LabelRows, Vec<u64>), FitError> {
        let files = match &self.source {
            Source::Files(files) => files,
            Source::Memory(arrays) => return of_arrays(arrays),
        };
        let (main, labels, unknown) = (&*files.train, files.train_labels.as_deref(), UnknownLabels::Append);
        let input = &self.input.or(first.input());
        // A model of features was trained on vectors as rows of features, and knows them as such.
        let vectors = match first.describe().takes {
            InputKind::Dense => vector_source(main, labels, files.features.as_deref(), input.format, "validation")?,
            _ => None,
        };
        let data: Dataset = match vectors {
            Some(source) => read_vectors(&source, &KnownLabels { names: names.as_ref(), unknown }, input, context)?,
            None => {
                let making = match first.reading_pipeline() {
                    // Models make tokens and vectors when they are asked.
                    Some(Featurizer::Tokens(_) | Featurizer::Vectors(_)) => Making::Unmade,
                    // A custom kind that reads texts itself.
                    None if first.describe().takes == InputKind::Text => Making::Unmade,
                    maker => Making::Apply { maker, n_features: first.describe().n_features },
                };
                read_labelled(main, LabelsFrom::from(labels), names.as_ref(), unknown, input, making, context)?
            }
        };
        if data.labels.nnz() == 0 {
            let hint = if labels.is_none() { " (--validation-labels FILE gives them)" } else { "" };
            let path = labels.unwrap_or(main).display();
            return Err(FitError::usage(format_args!("{path}: no instance has a label; labels are expected{hint}")));
        }
        Ok((data.labels, data.hashes))
    }
}

/// The same of instances in memory.
fn of_arrays(arrays: &Arrays) -> Result<(LabelRows, Vec<u64>), FitError> {
    let (rows, labels) = (arrays.train.rows(), &*arrays.train.labels);
    let hashes = hash_rows(rows);
    let (got, expected) = (labels.len(), hashes.len());
    if got != expected || labels.nnz() == 0 {
        return Err(FitError::usage(format_args!(
            "validation data: {expected} instances, {got} rows of labels, {} labels; as many rows and some labels are \
             expected",
            labels.nnz()
        )));
    }
    Ok((labels.clone(), hashes))
}

impl Validation {
    /// What each model answers to the rows that take part.
    pub(super) fn ask(
        &self,
        source: &HeldOut,
        models: &[Model],
        options: &QueryOptions<'_>,
        context: &Context<'_>,
    ) -> Result<Vec<RankedBatch>, FitError> {
        let mut queries = match &source.source {
            Source::Files(files) => {
                let input = source.input.or(models[0].input());
                let path = files.features.as_deref().unwrap_or(&files.train);
                Some(Queries::open(path, &input, &models[0])?)
            }
            Source::Memory(_) => None,
        };
        let mut answers = vec![RankedBatch::new(); models.len()];
        let mut advance = context.observer.task("instances answered");
        let (mut done, file) = (0, source.source.name().display().to_string());
        loop {
            // The rows that take part, and how many there are with the others.
            let kept = |read: usize| {
                let kept = (0..).zip(&self.kept[done..done + read]).filter(|(_, kept)| **kept);
                kept.map(|(row, _)| row).collect::<Vec<u32>>()
            };
            let (read, batch) = match (&mut queries, &source.source) {
                (Some(queries), _) => {
                    let Some(all) = queries.next_batch(BATCH)? else { break };
                    (all.len(), all.view().select(&kept(all.len())))
                }
                (None, Source::Memory(arrays)) if done < arrays.train.rows().len() => {
                    let read = BATCH.min(arrays.train.rows().len() - done);
                    let numbers: Vec<u32> = kept(read).into_iter().map(|row| done as u32 + row).collect();
                    (read, arrays.train.rows().select(&numbers))
                }
                _ => break,
            };
            for (model, answers) in models.iter().zip(&mut answers) {
                context.check_interrupt()?;
                let answer = model.predict_batch(batch.view(), options);
                answers.append(&answer.map_err(|e| query_error(&e, done, &file))?.ranked);
            }
            done += read;
            advance(read as u64);
        }
        Ok(answers)
    }
}

/// What is wrong with a query; `first` is the number of the first one of the batch, `input` where
/// they come from. Of options, their names are said.
pub fn query_error(error: &BatchError, first: usize, input: &str) -> FitError {
    match error.source {
        QueryError::Beam => FitError::usage("--beam 0: at least 1 is expected"),
        QueryError::NoIndex { option } => {
            FitError::usage(format_args!("--{option}: {}; `xc index build --model` makes one", error.source))
        }
        QueryError::NoWidth { option } => FitError::usage(format_args!("--{option}: {}", error.source)),
        QueryError::NoCells => {
            let advice = "`xc index build --model --cells N` makes some";
            FitError::usage(format_args!("--cells: {}; {advice}", error.source))
        }
        QueryError::SearchWidth { width } => {
            FitError::usage(format_args!("--search-width {width}: a number above -1 is expected"))
        }
        QueryError::Option { option, kind } => {
            FitError::usage(format_args!("--{option}: the model is of kind {kind:?}, which has no such option"))
        }
        _ => FitError::usage(format_args!("{input}: instance {}: {}", first + error.query, chain(&error.source))),
    }
}
