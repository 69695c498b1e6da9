//! The true labels, what predictions may name, and whether both belong together.

use super::Args;
use crate::context::Context;
use crate::data::{report_graded, report_joined, require_labels, strings_for};
use crate::error::{CliError, chain};
use std::path::Path;
use std::sync::Arc;
use xc_data::{
    FileForm, Format, HeaderRule, Join, JoinError, LabelNames, LabelStrings, ReadOptions, RowId, RowIds, UnknownLabels,
    Unmatched, read_labels, read_labels_and_ids,
};
use xc_metrics::Propensity;
use xc_model::Model;
use xc_options::settings::judge::{JudgeParams, Propensities};
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;
use xc_train::calibrate::CalibrateParams;

/// What is evaluated, and what the model says about it.
pub(super) struct Setting<'a> {
    pub(super) args: &'a Args,
    pub(super) judge: &'a JudgeParams,
    pub(super) model: Option<&'a Model>,
    /// Of the labels that may be predicted.
    pub(super) names: Option<Arc<LabelNames>>,
    /// The form of the input, and where nothing is said that of the model.
    pub(super) format: FileForm,
    pub(super) truth: &'a Path,
}

/// The true labels, and how many labels there are when something says so.
pub(super) struct Truth {
    pub(super) labels: LabelRows,
    pub(super) n_labels: Option<usize>,
    /// Names of all labels, those that only the truth has behind the others.
    pub(super) names: Option<Vec<String>>,
    /// Ids of the instances; empty where the file has none.
    pub(super) ids: Vec<Option<RowId>>,
    /// Columns of a matrix.
    pub(super) n_columns: Option<usize>,
}

impl<'a> Setting<'a> {
    /// # Errors
    /// Options that do not go together, names that cannot be read or are not as many as the model's labels.
    pub(super) fn new(args: &'a Args, judge: &'a JudgeParams, model: Option<&'a Model>) -> Result<Self, CliError> {
        let given = args.names.read()?;
        let names = match model {
            None => given,
            Some(model) => {
                args.names.check(given.as_ref(), model.describe().n_labels)?;
                match given {
                    None => model.dictionary()?,
                    given => given,
                }
            }
        };
        let Some(truth) = args.truth.as_deref().or(args.input.as_deref()) else {
            return Err(CliError::usage("--truth FILE is expected, or --model DIR and --input FILE"));
        };
        let format = model.map_or_else(|| args.format.settings(), |model| args.format.or(model.input()));
        Ok(Self { args, judge, model, names: names.map(Arc::new), format, truth })
    }

    /// The instances that the model answers, where it does.
    pub(super) fn input(&self) -> &Path {
        self.args.input.as_deref().unwrap_or(self.truth)
    }

    /// Labels that the model answers with.
    pub(super) fn top_k(&self, model: &Model) -> usize {
        let largest = self.judge.ks.iter().copied().max().unwrap_or(1);
        // As many as `xc predict` gives, unless a metric looks further.
        let usual = match self.judge.threshold {
            None => 5,
            Some(_) => model.calibration().map_or(CalibrateParams::default().top_k, |of| of.top_k),
        };
        self.args.top_k.unwrap_or_else(|| usual.max(largest))
    }

    /// Number of labels that is known beforehand.
    fn n_labels(&self) -> Option<usize> {
        self.model.map(|model| model.describe().n_labels).or(self.names.as_ref().map(|names| names.len()))
    }

    fn options(&self) -> ReadOptions {
        // Of the labels of a model without names only ids are known; without a model the labels' names are
        // refused below, with what to do.
        let label_strings = if self.model.is_some() { strings_for(self.names.as_deref()) } else { LabelStrings::Names };
        // A format that was stated is that of the instances, which may stand in another file.
        let apart = self.args.truth.is_some() && self.args.input.is_some();
        let format = if apart { self.format.of_any_format() } else { self.format.clone() };
        ReadOptions {
            label_names: self.names.clone(),
            unknown_labels: UnknownLabels::Append,
            label_strings,
            ..format.into()
        }
    }

    /// The labels of the truth. Their number is known from the model, the names, or a header.
    pub(super) fn read_truth(&self, context: &Context) -> Result<Truth, CliError> {
        let (path, known) = (self.truth, self.n_labels());
        let mut options = self.options();
        if options.form.format.is_none() {
            options.form.format = Some(Format::detect(path, &options)?);
        }
        // A file without header is told by its first line, so the second reading costs little.
        if options.form.format == Some(Format::Xc) {
            let strict = ReadOptions { header: HeaderRule::Required, ..options.clone() };
            match read_labels(path, &strict) {
                Ok(lists) => {
                    let n_labels = Some(known.unwrap_or(lists.labels.n_labels()));
                    let names = self.names.as_ref().map(|names| names.names().to_vec());
                    return Ok(Truth { labels: lists.labels, n_labels, names, ids: Vec::new(), n_columns: None });
                }
                Err(e) if e.line_number() == Some(1) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let (lists, ids) = read_labels_and_ids(path, &options)?;
        report_graded(path, lists.n_graded, &context.fit());
        if lists.label_names.is_some() && self.names.is_none() {
            return Err(CliError::usage(format_args!(
                "{}: labels are names, predictions are ids; expected --model DIR, or --label-names FILE, such as \
                 labels.txt of the model",
                path.display()
            )));
        }
        require_labels(path, &lists.labels, options.form.format, &options, None)?;
        let n_columns = (options.form.format == Some(Format::Npz)).then(|| lists.labels.n_labels());
        let names = lists.label_names.or_else(|| self.names.as_ref().map(|names| names.names().to_vec()));
        let truth = Truth { labels: lists.labels, n_labels: known.or(n_columns), names, ids: ids.ids, n_columns };
        self.check_columns(path, n_columns, &truth)?;
        Ok(truth)
    }

    /// Propensities of the training labels: those of a file, or else those that the model keeps.
    pub(super) fn propensity(&self, truth: &Truth) -> Result<Option<Propensity>, CliError> {
        let Propensities { a, b } = self.judge.propensity;
        let Some(path) = &self.args.propensity_from else {
            let rows = self.model.map(|model| model.training_rows().map_err(|e| CliError::usage(chain(&e))));
            let Some(rows) = rows.transpose()?.flatten() else { return Ok(None) };
            // Too few training instances leave the propensity metrics out, as in training.
            if rows.n_instances() < 3 {
                return Ok(None);
            }
            let made = Propensity::from_counts(rows.n_instances(), rows.label_counts(), a, b);
            return made.map(Some).map_err(|e| CliError::usage(chain(&e)));
        };
        let lists = read_labels(path, &self.options())?;
        if lists.label_names.is_some() && self.names.is_none() {
            return Err(CliError::usage(format_args!(
                "{}: labels are names, predictions are ids; expected --label-names FILE",
                path.display()
            )));
        }
        let is_matrix = Format::detect(path, &self.options()).is_ok_and(|format| format == Format::Npz);
        self.check_columns(path, is_matrix.then(|| lists.labels.n_labels()), truth)?;
        Propensity::from_training(&lists.labels, a, b).map(Some).map_err(|e| CliError::input(path, &e))
    }

    /// Refuses matrices that do not have the same labels as columns.
    pub(super) fn check_columns(&self, path: &Path, columns: Option<usize>, truth: &Truth) -> Result<(), CliError> {
        let Some(got) = columns else { return Ok(()) };
        let other = match (self.model, &self.names, truth.n_columns) {
            (Some(model), ..) => Some((model.describe().n_labels, format!("{} has", model.folder().display()))),
            (None, Some(names), _) => Some((names.len(), format!("{} gives", names.file().unwrap_or("--label-names")))),
            (None, None, Some(n)) => Some((n, format!("{} has", self.truth.display()))),
            (None, None, None) => None,
        };
        match other {
            Some((expected, whose)) if got != expected => Err(CliError::usage(format_args!(
                "{}: a matrix of {got} columns; {whose} {expected} labels, and a column for each is expected",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The answers to the instances of the truth, and whether ids said which are whose: those of other instances are left out.
    pub(super) fn join(
        &self,
        path: &Path,
        ranked: RankedBatch,
        ids: Vec<Option<RowId>>,
        truth: &Truth,
        context: &Context,
    ) -> Result<(RankedBatch, bool), CliError> {
        let of_same_number = |ranked: RankedBatch| {
            let (got, expected) = (ranked.len(), truth.labels.len());
            if got == expected {
                return Ok(ranked);
            }
            let (path, truth) = (path.display(), self.truth.display());
            Err(CliError::usage(format_args!("{path}: {got} instances, expected {expected} as in {truth}")))
        };
        if ids.is_empty() || truth.ids.is_empty() {
            return Ok((of_same_number(ranked)?, false));
        }
        let refused =
            |e: JoinError| CliError::usage(format_args!("{}: {e} ({})", path.display(), self.truth.display()));
        let mut join = Join::new(RowIds { ids, lines: Vec::new() }, ranked.len(), Unmatched::Refused);
        let mut rows = Vec::with_capacity(truth.ids.len());
        for id in &truth.ids {
            rows.extend(join.next(id.as_ref()).map_err(refused)?);
        }
        let joined = join.finish().map_err(refused)?;
        if !joined.by_ids {
            return Ok((of_same_number(ranked)?, false));
        }
        report_joined(path, self.truth, joined, &context.fit());
        if !joined.is_reordered && joined.left_out == 0 {
            return Ok((ranked, true));
        }
        let mut found = RankedBatch::new();
        rows.into_iter().for_each(|row| found.push_row(ranked.row(row)));
        Ok((found, true))
    }
}
