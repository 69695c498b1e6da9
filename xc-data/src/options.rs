//! Options of the readers.

use super::blocks::{BLOCK_BYTES, MAX_LINE_BYTES};
use super::entries::IndexBase;
use super::fields::{Fields, Parts};
use super::format::Format;
use super::label::{LabelCollector, LabelNames, LabelStrings, UnknownLabels};
use super::row::{Limits, Unseen};
use super::xc_text::HeaderRule;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Options of the readers. The default reads every format but svmlight, whose base must be stated.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format; `None` detects it from name and content.
    pub format: Option<Format>,
    /// The format of files whose name does not tell it and whose content fits several formats.
    pub usual_format: Option<Format>,
    /// File with the labels, for npz, npy and the two-file form of XC text. Its format is detected from
    /// its own name and content.
    pub labels: Option<PathBuf>,
    /// Whether XC text begins with a header.
    pub header: HeaderRule,
    /// Base of svmlight's feature ids; there is no default.
    pub svmlight_base: Option<IndexBase>,
    /// Base of svmlight's label ids.
    pub svmlight_label_base: IndexBase,
    /// Number of features: larger ids are errors, and so is a file that states another number (a header,
    /// the columns of a matrix). `None`: that of the file, otherwise the largest id + 1.
    pub n_features: Option<usize>,
    /// Counts the entries of features beyond `n_features`, which are then left out; a file may have more
    /// features then. `None`: they are errors.
    pub unseen: Option<Arc<UnseenCount>>,
    /// Number of labels: larger ids are errors. `None`: that of the header, otherwise the largest id +
    /// 1.
    pub n_labels: Option<usize>,
    /// Fields of JSONL, columns of CSV and TSV.
    pub fields: Fields,
    /// How the rows of CSV and TSV are written.
    pub table: TableForm,
    /// Which parts of the instances are read.
    pub parts: Parts,
    /// How labels that are written as text are interpreted.
    pub label_strings: LabelStrings,
    /// Dictionary of label names; `None` builds one from the file.
    pub label_names: Option<Arc<LabelNames>>,
    /// What to do with names that `label_names` does not have.
    pub unknown_labels: UnknownLabels,
    /// Largest decompressed size in bytes; `None`: the larger of 1 GiB and 200 times the file.
    pub max_expanded_bytes: Option<u64>,
    /// Longest line, in bytes.
    pub max_line_bytes: usize,
    /// Size of the blocks that are parsed in parallel; the result does not depend on it.
    pub block_bytes: usize,
}

/// Entries that were left out because nobody knows their features.
#[derive(Debug, Default)]
pub struct UnseenCount {
    entries: AtomicU64,
    rows: AtomicU64,
}

impl UnseenCount {
    /// Entries that were left out.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Rows that they were left out of.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// How the rows of a table (CSV, TSV) are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableForm {
    /// What stands between fields; `None`: a comma in CSV, a tab in TSV.
    pub delimiter: Option<u8>,
    /// Whether fields may be in quotes. Otherwise a quote is text, and every line end ends a row.
    pub quotes: bool,
    /// Whether the first row names the columns. Otherwise their names are their numbers, from 1.
    pub header: bool,
}

impl Default for TableForm {
    fn default() -> Self {
        Self { delimiter: None, quotes: true, header: true }
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            usual_format: None,
            labels: None,
            header: HeaderRule::Detect,
            svmlight_base: None,
            svmlight_label_base: IndexBase::Zero,
            n_features: None,
            unseen: None,
            n_labels: None,
            fields: Fields::default(),
            table: TableForm::default(),
            parts: Parts::Instances,
            label_strings: LabelStrings::Names,
            label_names: None,
            unknown_labels: UnknownLabels::Refuse,
            max_expanded_bytes: None,
            max_line_bytes: MAX_LINE_BYTES,
            block_bytes: BLOCK_BYTES,
        }
    }
}

impl ReadOptions {
    pub(crate) fn limits(&self) -> Limits {
        match (&self.unseen, self.n_features) {
            (Some(_), Some(n)) => Limits { known: Some(n as u64), ..Limits::given(None, self.n_labels) },
            _ => Limits::given(self.n_features, self.n_labels),
        }
    }

    /// Adds what was left out of some rows.
    pub(crate) fn count_unseen(&self, unseen: Unseen) {
        if let Some(count) = self.unseen.as_ref().filter(|_| unseen.entries > 0) {
            count.entries.fetch_add(unseen.entries, Ordering::Relaxed);
            count.rows.fetch_add(unseen.rows, Ordering::Relaxed);
        }
    }
}

impl LabelCollector {
    /// A collector of the labels of a file that is read with these options.
    pub fn of(options: &ReadOptions) -> Self {
        let indicators = &options.fields.indicators;
        let names = options.label_names.clone().or_else(|| {
            // Every column is a label, whether or not an instance has it.
            let columns = LabelNames::try_new(indicators.clone()).ok();
            columns.filter(|columns| !columns.is_empty()).map(Arc::new)
        });
        match names {
            Some(names) => Self::with_names(names, options.unknown_labels),
            None => Self::new(),
        }
        .with_bound(options.n_labels)
    }
}
