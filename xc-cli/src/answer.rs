//! What a query is told: search options, and the labels to choose from.

use crate::context::Context;
use crate::data::{label_format, report_graded, strings_for};
use crate::error::CliError;
use crate::settings::{Chosen, OfTable};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xc_buffer::Part;
use xc_data::{
    FileForm, Format, Join, LabelNames, ReadErrorKind, ReadOptions, RowId, RowIds, UnknownLabels, Unmatched,
    first_fields, read_labels_and_ids,
};
use xc_model::{BatchError, Candidates};
use xc_options::settings::Table;
use xc_options::settings::search::{self, LabelSearch};
use xc_sparse::LabelRows;
use xc_sparse::rank::LabelId;

/// How a model searches; each option belongs to one kind of model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfSearch;

impl OfTable for OfSearch {
    const TABLE: Table = search::TABLE;
}

/// The same.
pub(crate) type SearchArgs = Chosen<OfSearch>;

impl SearchArgs {
    /// What they say.
    pub(crate) fn params(&self) -> Result<LabelSearch, CliError> {
        Ok(search::params(&self.choices)?)
    }
}

/// What labels to leave out are called.
pub(crate) const EXCLUDED: &str = "excluded labels";

/// Lists of labels of a file, a row an instance.
pub(crate) struct LabelLists {
    path: PathBuf,
    /// What the labels are: `candidates`.
    what: &'static str,
    rows: LabelRows,
    /// Which row is which instance's.
    join: Join,
    /// The lists of the instances that are answered next, where they are found by their ids.
    batch: Option<LabelRows>,
}

impl LabelLists {
    /// Reads a file of lists of ids, or the labels of any input format. Labels that the model lacks are refused, or left out
    /// and counted, as `unknown` says; an instance without a row of excluded labels excludes none.
    pub(crate) fn read(
        path: &Path,
        what: &'static str,
        unknown: UnknownLabels,
        n_labels: usize,
        names: Option<&Arc<LabelNames>>,
        input: &FileForm,
        context: &Context,
    ) -> Result<Self, CliError> {
        let options = ReadOptions::from(input.of_any_format());
        let (format, header) = label_format(path, &options)?;
        let options = ReadOptions { header, ..options.with_format(format) };
        let lists = read_labels_and_ids(path, &of_labels(options, unknown, n_labels, names))?;
        Self::of(path, what, n_labels, lists, context)
    }

    /// Reads the lists of one field of the instances' own file.
    pub(crate) fn read_field(
        path: &Path,
        field: &str,
        n_labels: usize,
        names: Option<&Arc<LabelNames>>,
        input: &FileForm,
        context: &Context,
    ) -> Result<Self, CliError> {
        let mut options = ReadOptions::from(input.clone());
        let format = Format::detect(path, &options)?;
        if !matches!(format, Format::Jsonl | Format::Csv | Format::Tsv) {
            return Err(CliError::usage(format_args!(
                "--exclude-field {field}: {} is {format}, which has no fields; jsonl, csv or tsv is expected",
                path.display()
            )));
        }
        options.form.format = Some(format);
        options.form.label_field = Some(field.to_owned());
        let read = read_labels_and_ids(path, &of_labels(options.clone(), UnknownLabels::Drop, n_labels, names));
        let (lists, _) = read.map_err(|e| match e.kind() {
            ReadErrorKind::MissingColumn { .. } => CliError::usage(format_args!("--exclude-field {field}: {e}")),
            _ => e.into(),
        })?;
        // A field that no object has is a wrong name rather than an empty history.
        if format == Format::Jsonl && lists.labels.nnz() == 0 && lists.n_dropped == 0 {
            let found = first_fields(path, &options)?;
            if !found.iter().any(|name| name == field) {
                let found = found.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
                return Err(CliError::usage(format_args!(
                    "--exclude-field {field}: {}: no object lists a label there; the first object has {found}",
                    path.display()
                )));
            }
        }
        // Each row is its own.
        Self::of(path, EXCLUDED, n_labels, (lists, RowIds::default()), context)
    }

    fn of(
        path: &Path,
        what: &'static str,
        n_labels: usize,
        (lists, ids): (xc_data::LabelLists, RowIds),
        context: &Context,
    ) -> Result<Self, CliError> {
        report_graded(path, lists.n_graded, &context.fit());
        let n_known = lists.labels.nnz();
        let rows = if lists.labels.n_labels() > n_labels { lists.labels.within(n_labels) } else { lists.labels };
        let dropped = lists.n_dropped + (n_known - rows.nnz()) as u64;
        if dropped > 0 {
            let shown = path.display();
            if rows.nnz() == 0 {
                return Err(CliError::usage(format_args!(
                    "{shown}: the model has none of its {dropped} {what}: the file is of other labels"
                )));
            }
            context.note(format_args!("{shown}: {dropped} {what} that the model does not have are left out"));
        }
        let unmatched = if what == EXCLUDED { Unmatched::Empty } else { Unmatched::Refused };
        let join = Join::new(ids, rows.len(), unmatched);
        Ok(Self { path: path.to_owned(), what, rows, join, batch: None })
    }

    /// Begins with this instance, from 0.
    pub(crate) fn begin_at(&mut self, instance: usize) {
        self.join.begin_at(instance);
    }

    /// Whether ids of instances are asked for.
    pub(crate) fn has_ids(&self) -> bool {
        self.join.has_ids()
    }

    /// Turns to the next `n` instances, with their ids where they have some.
    pub(crate) fn turn<'a>(&mut self, n: usize, ids: impl Fn(usize) -> Option<&'a RowId>) -> Result<(), CliError> {
        self.batch = None;
        if !self.join.has_ids() {
            return Ok(());
        }
        let mut found = Vec::with_capacity(n);
        for at in 0..n {
            found.push(self.join.next(ids(at)).map_err(|e| CliError::input(&self.path, &e))?);
        }
        if self.join.is_by_id() {
            let lists = found.iter().map(|row| row.map_or(&[][..], |row| self.rows.row(row)));
            self.batch = Some(
                LabelRows::from_lists(lists.map(<[u32]>::to_vec), self.rows.n_labels())
                    .unwrap_or_else(|e| panic!("lists of lists: {e}")),
            );
        }
        Ok(())
    }

    /// The lists, and which of them is that of instance `first`, to which the lists were turned.
    pub(crate) fn rows(&self, first: usize) -> (&LabelRows, usize) {
        self.batch.as_ref().map_or((&self.rows, first), |batch| (batch, 0))
    }

    /// Instances that have a list: those of its number of rows, unless they are found by their ids.
    pub(crate) fn n_answered(&self) -> usize {
        if self.join.is_by_id() { usize::MAX } else { self.rows.len() }
    }

    /// After the last instance: lists of other instances are left out where ids say that they are, and counted, unless the
    /// instances are a part of all.
    pub(crate) fn finish(&mut self, instances: usize, part: Option<Part>, context: &Context) -> Result<(), CliError> {
        if part.is_some_and(|part| !part.is_last()) {
            return self.check(instances, false);
        }
        let joined = self.join.finish().map_err(|e| CliError::input(&self.path, &e))?;
        if !joined.by_ids {
            return self.check(instances, true);
        }
        if joined.left_out > 0 && part.is_none() {
            let (path, what, n) = (self.path.display(), self.what, joined.left_out);
            context.note(format_args!("{path}: {n} rows of {what} are of other instances"));
        }
        Ok(())
    }

    /// There is a row for each instance, and no row more where there are no more instances (`is_end`).
    pub(crate) fn check(&self, instances: usize, is_end: bool) -> Result<(), CliError> {
        let n = self.rows.len();
        if self.join.is_by_id() || instances <= n && !(is_end && instances < n) {
            return Ok(());
        }
        let (path, what) = (self.path.display(), self.what);
        let at_least = if is_end { "" } else { "at least " };
        Err(CliError::usage(format_args!(
            "{path}: {n} rows of {what} for {at_least}{instances} instances; one a row is expected"
        )))
    }
}

/// How lists of labels are read for a model: by its names where it has some.
fn of_labels(
    options: ReadOptions,
    unknown: UnknownLabels,
    n_labels: usize,
    names: Option<&Arc<LabelNames>>,
) -> ReadOptions {
    ReadOptions {
        // Unknown ids are left out afterwards.
        n_labels: (unknown == UnknownLabels::Refuse).then_some(n_labels),
        label_names: names.cloned(),
        unknown_labels: unknown,
        label_strings: strings_for(names.map(|names| &**names)),
        ..options
    }
}

/// Which labels are scored.
pub(crate) enum Only {
    /// All that the model finds.
    All,
    /// These, ascending.
    Labels(Vec<LabelId>),
    /// For each query its own.
    Candidates(Box<LabelLists>),
}

impl Only {
    /// Those of the queries from number `first` on.
    pub(crate) fn from(&self, first: usize) -> Candidates<'_> {
        match self {
            Self::All => Candidates::All,
            Self::Labels(labels) => Candidates::Labels(labels),
            Self::Candidates(lists) => {
                let (rows, first) = lists.rows(first);
                Candidates::ByQuery { rows, first }
            }
        }
    }
}

/// What is wrong with a query; `first` is the number of the first one of the batch, `input` where
/// they come from.
pub(crate) fn query_error(error: &BatchError, first: usize, input: &str) -> CliError {
    xc_options::data::query_error(error, first, input).into()
}
