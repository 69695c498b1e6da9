//! Rows that models were not trained on, and what the models answer to them.

use crate::answer::query_error;
use crate::context::Context;
use crate::data::{Dataset, InputArgs, KnownLabels, Making, Queries, read_labelled, read_vectors, vector_source};
use crate::error::{CliError, chain};
use std::path::Path;
use xc_sparse::LabelRows;
use xc_sparse::io::{LabelNames, UnknownLabels};
use xc_sparse::rank::RankedBatch;
use xc_train::Model;
use xc_train::model::{QueryOptions, TrainingRows};

/// Share of the validation rows that models may have been trained on.
const MOST_SEEN: f64 = 0.01;

/// Instances that are read and answered together.
const BATCH: usize = 4096;

/// Where the rows come from.
pub(crate) struct Source<'a> {
    pub(crate) main: &'a Path,
    /// Their labels, where `main` does not carry them.
    pub(crate) labels: Option<&'a Path>,
    /// Leave out rows that a model was trained on, however many they are.
    pub(crate) held_out: bool,
    /// Take models that do not say what they were trained on.
    pub(crate) unknown_rows: bool,
    pub(crate) format: &'a InputArgs,
}

/// The rows that take part.
pub(crate) struct Validation {
    /// Which rows of the file they are.
    pub(crate) kept: Vec<bool>,
    pub(crate) n_left_out: usize,
    /// Their labels; those that the models do not know have ids behind the others.
    pub(crate) labels: LabelRows,
}

impl Source<'_> {
    /// What each model was trained on.
    pub(crate) fn training_rows(
        &self,
        models: &[Model],
        context: &Context,
    ) -> Result<Vec<Option<TrainingRows>>, CliError> {
        let mut rows = Vec::with_capacity(models.len());
        for model in models {
            let found = model.training_rows().map_err(|e| CliError::usage(chain(&e)))?;
            if found.is_none() {
                let line = format!("{}: does not say which rows it was trained on", model.folder().display());
                if !self.unknown_rows {
                    return Err(CliError::usage(format_args!("{line}; --unknown-rows overrides this")));
                }
                context.warn(line);
            }
            rows.push(found);
        }
        Ok(rows)
    }

    /// Reads labels, and which rows the models have seen. The models take the same input and have
    /// the same labels; `names` are those of the labels.
    pub(crate) fn read(
        &self,
        models: &[Model],
        rows: &[Option<TrainingRows>],
        names: Option<LabelNames>,
        context: &Context,
    ) -> Result<Validation, CliError> {
        let Dataset { labels, hashes, .. } = self.dataset(&models[0], names, context)?;
        let (n, file) = (hashes.len(), self.main.display());
        let mut kept = vec![true; n];
        for (rows, model) in rows.iter().zip(models) {
            let Some(rows) = rows else { continue };
            let mut seen = 0;
            for (kept, &hash) in kept.iter_mut().zip(&hashes) {
                let is_seen = rows.contains(hash);
                (*kept, seen) = (*kept && !is_seen, seen + usize::from(is_seen));
            }
            if !self.held_out && seen as f64 > MOST_SEEN * n as f64 {
                return Err(CliError::usage(format_args!(
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
            return Err(CliError::usage(format_args!(
                "{file}: every instance is a training instance of {one}; others are expected"
            )));
        }
        Ok(Validation { kept, n_left_out: n - numbers.len(), labels: labels.select(&numbers) })
    }

    /// All instances of the file, with their labels.
    fn dataset(&self, first: &Model, names: Option<LabelNames>, context: &Context) -> Result<Dataset, CliError> {
        let (main, labels, unknown) = (self.main, self.labels, UnknownLabels::Append);
        let input = &self.format.or(first.input());
        let data = match vector_source(main, labels, None, self.format.format, "validation")? {
            Some(source) => read_vectors(&source, &KnownLabels { names: names.as_ref(), unknown }, input, context)?,
            None => {
                let making = Making::Apply { maker: first.reading_pipeline(), n_features: first.describe().n_features };
                read_labelled(main, labels.into(), names.as_ref(), unknown, input, making, context)?
            }
        };
        if data.labels.nnz() == 0 {
            let hint = if labels.is_none() { " (--validation-labels FILE gives them)" } else { "" };
            let path = labels.unwrap_or(main).display();
            return Err(CliError::usage(format_args!("{path}: no instance has a label; labels are expected{hint}")));
        }
        Ok(data)
    }
}

impl Validation {
    /// What each model answers to the rows that take part.
    pub(crate) fn ask(
        &self,
        source: &Source<'_>,
        models: &[Model],
        options: &QueryOptions<'_>,
        context: &Context,
    ) -> Result<Vec<RankedBatch>, CliError> {
        let mut queries = Queries::open(source.main, source.format, &models[0])?;
        let mut answers = vec![RankedBatch::new(); models.len()];
        let task = context.progress.count("instances answered");
        let (mut done, file) = (0, source.main.display().to_string());
        while let Some(mut batch) = queries.next_batch(BATCH)? {
            let read = batch.len();
            batch.retain(&self.kept[done..done + read]);
            for (model, answers) in models.iter().zip(&mut answers) {
                context.check_interrupt()?;
                let answer = context.on_threads(|| batch.ask(|queries| model.predict_batch(queries, options)));
                answers.append(&answer.map_err(|e| query_error(&e, done, &file))?.ranked);
            }
            done += read;
            task.advance(read as u64);
        }
        Ok(answers)
    }
}
