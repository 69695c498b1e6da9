//! Options of the readers.

use super::blocks::{BLOCK_BYTES, MAX_LINE_BYTES};
use super::fields::Parts;
use super::file_form::FileForm;
use super::format::Format;
use super::label::{LabelCollector, LabelNames, LabelStrings, UnknownLabels};
use super::row::{RowLimits, Unseen};
use super::xc_text::HeaderRule;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Options of the readers. The default reads every format but svmlight, whose base must be stated.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// What the file looks like.
    pub form: FileForm,
    /// File with the labels, for npz, npy and the two-file form of XC text. Its format is detected from
    /// its own name and content.
    pub labels: Option<PathBuf>,
    /// Whether XC text begins with a header.
    pub header: HeaderRule,
    /// Number of features: larger ids are errors, and so is a file that states another number (a header,
    /// the columns of a matrix). `None`: that of the file, otherwise the largest id + 1.
    pub n_features: Option<usize>,
    /// Counts the entries of features beyond `n_features`, which are then left out; a file may have more
    /// features then. `None`: they are errors.
    pub unseen: Option<Arc<UnseenCount>>,
    /// Number of labels: larger ids are errors. `None`: that of the header, otherwise the largest id +
    /// 1.
    pub n_labels: Option<usize>,
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

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            form: FileForm::default(),
            labels: None,
            header: HeaderRule::Detect,
            n_features: None,
            unseen: None,
            n_labels: None,
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

impl From<FileForm> for ReadOptions {
    fn from(form: FileForm) -> Self {
        Self { form, ..Self::default() }
    }
}

impl From<Format> for ReadOptions {
    fn from(format: Format) -> Self {
        FileForm::from(format).into()
    }
}

impl ReadOptions {
    /// The same of a file of this format.
    pub fn with_format(mut self, format: Format) -> Self {
        self.form.format = Some(format);
        self
    }

    /// The same for a further file, whose format is its own affair.
    pub fn of_any_format(mut self) -> Self {
        (self.form.format, self.form.usual_format) = (None, None);
        self
    }

    /// Makes them those of rows for a model of so many features.
    pub fn expect(&mut self, n_features: usize) {
        self.n_features = Some(n_features);
        self.unseen = (!self.form.refuse_unseen).then(Arc::default);
    }

    pub(crate) fn limits(&self) -> RowLimits {
        match (&self.unseen, self.n_features) {
            (Some(_), Some(n)) => RowLimits { known: Some(n as u64), ..RowLimits::given(None, self.n_labels) },
            _ => RowLimits::given(self.n_features, self.n_labels),
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
        let indicators = options.form.indicators();
        let names = options.label_names.clone().or_else(|| {
            // Every column is a label, whether or not an instance has it.
            let columns = LabelNames::try_new(indicators.to_vec()).ok();
            columns.filter(|columns| !columns.is_empty()).map(Arc::new)
        });
        match names {
            Some(names) => Self::with_names(names, options.unknown_labels),
            None => Self::new(),
        }
        .with_bound(options.n_labels)
    }
}
