//! How the user says what a file holds.

use crate::context::Context;
use crate::error::CliError;
use clap::{Args, ValueEnum};
use std::path::Path;
use std::sync::Arc;
use xc_sparse::LabelRows;
use xc_sparse::io::{Fields, Format, IndexBase, LabelSeparator, ReadOptions, TableForm, UnseenCount, first_fields};
use xc_train::model::InputForm;

/// Options about the form of input files. What a model was trained with is kept in it; what is given
/// wins.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input options")]
pub(crate) struct InputArgs {
    /// Format of the input: xc, svmlight, fasttext, jsonl, csv, tsv, npz or npy [default: detected from name and
    /// content]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// JSONL fields or CSV columns that make up the text, joined by spaces [default: the model's, else text]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) text_fields: Option<Vec<String>>,
    /// JSONL field or CSV column with the labels; '' if there is none [default: the model's, else
    /// labels]
    #[arg(long, value_name = "NAME")]
    pub(crate) label_field: Option<String>,
    /// JSONL fields or CSV columns with 0 or 1, one for each label, which has the name of the field; in place of
    /// --label-field [default: the model's]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["label_field", "label_separator"])]
    pub(crate) label_fields: Option<Vec<String>>,
    /// Separator of labels that are written as one string; '' if each string is one label [default: the model's, else a
    /// string is one label, and one that contains ; | or , is refused]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub(crate) label_separator: Option<LabelSeparator>,
    /// JSONL field or CSV column with the id of an instance, which JSON answers repeat [default: the model's, else id
    /// if there is one]
    #[arg(long, value_name = "NAME")]
    pub(crate) id_field: Option<String>,
    /// What stands between the fields of a table: one character, or tab [default: the model's, else a comma in csv, a
    /// tab in tsv]
    #[arg(long, value_name = "C", allow_hyphen_values = true, value_parser = parse_delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// Read quotes in a table as text: fields are not in quotes, and each line is a row [default: as the model's]
    #[arg(long)]
    pub(crate) no_quotes: bool,
    /// The table has no header: its first line is an instance, and columns are named by their numbers, from 1
    /// [default: as the model's]
    #[arg(long)]
    pub(crate) no_header: bool,
    /// Number of the first svmlight feature; required, since svmlight files differ [default: the model's]
    #[arg(long, value_name = "0|1", value_parser = parse_base)]
    pub(crate) svmlight_base: Option<IndexBase>,
    /// Number of the first svmlight label [default: the model's, else 0]
    #[arg(long, value_name = "0|1", value_parser = parse_base)]
    pub(crate) svmlight_label_base: Option<IndexBase>,
    /// What to do about features of the input that the model was not trained on: leave them out and count them on
    /// stderr, or refuse the file
    #[arg(id = "unseen_features", long = "unseen", value_name = "WHAT", value_enum, default_value_t = Unseen::Ignore)]
    pub(crate) unseen: Unseen,
    /// The format that a model was trained on.
    #[arg(skip)]
    usual_format: Option<Format>,
    /// Whether the field of ids was given rather than kept.
    #[arg(skip)]
    kept_id: bool,
}

/// Options about the form of sparse rows without labels.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input options")]
pub(crate) struct RowArgs {
    /// Format of sparse rows: xc, svmlight, jsonl or npz [default: detected from name and content]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Number of the first svmlight feature; required, since svmlight files differ
    #[arg(long, value_name = "0|1", value_parser = parse_base)]
    svmlight_base: Option<IndexBase>,
}

impl RowArgs {
    /// What they are called.
    pub(crate) const NAMES: [&str; 2] = ["format", "svmlight-base"];

    /// The readers' options that these say.
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions { format: self.format, svmlight_base: self.svmlight_base, ..ReadOptions::default() }
    }
}

/// What becomes of features that a model does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unseen {
    Ignore,
    Refuse,
}

/// What stands between fields: a byte that is no part of one.
fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if (byte.is_ascii_punctuation() || matches!(byte, b' ' | b'\t' | 0x1e | 0x1f)) && *byte != b'"' => {
            Ok(*byte)
        }
        _ => Err("one character such as ; or |, or tab, is expected".to_owned()),
    }
}

fn parse_base(text: &str) -> Result<IndexBase, &'static str> {
    match text {
        "0" => Ok(IndexBase::Zero),
        "1" => Ok(IndexBase::One),
        _ => Err("0 or 1 is expected"),
    }
}

fn base_of(number: u8) -> IndexBase {
    if number == 0 { IndexBase::Zero } else { IndexBase::One }
}

impl InputArgs {
    /// What the options are called.
    pub(crate) const NAMES: [&str; 7] =
        ["format", "text-fields", "label-field", "label-separator", "id-field", "svmlight-base", "svmlight-label-base"];

    /// These, and where they say nothing what a model was trained with.
    pub(crate) fn or(&self, kept: &InputForm) -> Self {
        let kept_separator = || kept.label_separator.as_deref().map(separator_of);
        // Labels are in one field or in several: what is given for the one takes the place of the others.
        let (one, several) =
            (self.label_field.is_some() || self.label_separator.is_some(), self.label_fields.is_some());
        let kept_fields = || kept.label_fields.clone().filter(|_| !one);
        let kept_delimiter = || kept.delimiter.and_then(|c| u8::try_from(c).ok());
        Self {
            format: self.format,
            text_fields: self.text_fields.clone().or_else(|| kept.text_fields.clone()),
            label_field: self.label_field.clone().or_else(|| kept.label_field.clone().filter(|_| !several)),
            label_fields: self.label_fields.clone().or_else(kept_fields),
            label_separator: self.label_separator.clone().or_else(kept_separator),
            id_field: self.id_field.clone().or_else(|| kept.id_field.clone()),
            delimiter: self.delimiter.or_else(kept_delimiter),
            no_quotes: self.no_quotes || kept.no_quotes,
            no_header: self.no_header || kept.no_header,
            unseen: self.unseen,
            svmlight_base: self.svmlight_base.or(kept.svmlight_base.map(base_of)),
            svmlight_label_base: self.svmlight_label_base.or(kept.svmlight_label_base.map(base_of)),
            usual_format: self.usual_format.or_else(|| kept.format.as_deref()?.parse().ok()),
            kept_id: self.kept_id || (self.id_field.is_none() && kept.id_field.is_some()),
        }
    }

    /// Whether a file is svmlight, as stated or as the model's was.
    pub(crate) fn is_svmlight(&self) -> bool {
        self.format.or(self.usual_format) == Some(Format::Svmlight)
    }

    /// The same for a further file, whose format is its own affair.
    pub(crate) fn of_any_format(&self) -> Self {
        Self { format: None, usual_format: None, ..self.clone() }
    }

    /// The readers' options that these say.
    pub(crate) fn options(&self) -> ReadOptions {
        let default = Fields::default();
        let fields = Fields {
            text: self.text_fields.clone().unwrap_or(default.text),
            labels: self.label_field.clone().unwrap_or(default.labels),
            indicators: self.label_fields.clone().unwrap_or_default(),
            separator: self.label_separator.clone().unwrap_or_default(),
            id: self.id_field.clone().unwrap_or(default.id),
            needs_id: self.id_field.is_some() && !self.kept_id,
            features: default.features,
        };
        ReadOptions {
            format: self.format,
            usual_format: self.usual_format,
            svmlight_base: self.svmlight_base,
            svmlight_label_base: self.svmlight_label_base.unwrap_or(IndexBase::Zero),
            fields,
            table: TableForm { delimiter: self.delimiter, quotes: !self.no_quotes, header: !self.no_header },
            ..ReadOptions::default()
        }
    }

    /// Makes `options` those of rows for a model of so many features.
    pub(crate) fn expect(&self, options: &mut ReadOptions, n_features: usize) {
        options.n_features = Some(n_features);
        options.unseen = (self.unseen == Unseen::Ignore).then(Arc::default);
    }

    /// What a model keeps of these, when it is trained on a file of this format.
    pub(crate) fn form(&self, format: Format) -> InputForm {
        let number = |base: IndexBase| u8::from(base == IndexBase::One);
        let separator = |separator: &LabelSeparator| match separator {
            LabelSeparator::Unstated => None,
            LabelSeparator::Whole => Some(String::new()),
            LabelSeparator::Text(text) => Some(text.clone()),
        };
        InputForm {
            format: Some(format.name().to_owned()),
            text_fields: self.text_fields.clone(),
            label_field: self.label_field.clone(),
            label_fields: self.label_fields.clone(),
            label_separator: self.label_separator.as_ref().and_then(separator),
            delimiter: self.delimiter.map(char::from),
            no_quotes: self.no_quotes,
            no_header: self.no_header,
            id_field: self.id_field.clone(),
            svmlight_base: self.svmlight_base.map(number),
            svmlight_label_base: self.svmlight_label_base.map(number),
        }
    }
}

/// Says how many entries of rows were left out, if any were.
pub(crate) fn report_unseen(name: impl std::fmt::Display, unseen: Option<&UnseenCount>, context: &Context) {
    if let Some(unseen) = unseen.filter(|unseen| unseen.entries() > 0) {
        context.warn(format_args!(
            "{name}: features that the model was not trained on: {} entries in {} rows, left out (--unseen refuse)",
            unseen.entries(),
            unseen.rows()
        ));
    }
}

fn separator_of(text: &str) -> LabelSeparator {
    text.parse().unwrap_or_default()
}

/// Refuses a file in which no instance has a label, and says where labels are looked for; `option`
/// names a file with labels alone, if there is such an option.
pub(crate) fn require_labels(
    path: &Path,
    labels: &LabelRows,
    format: Option<Format>,
    options: &ReadOptions,
    option: Option<&str>,
) -> Result<(), CliError> {
    if labels.nnz() > 0 {
        return Ok(());
    }
    let hint = match (format, option) {
        (Some(Format::Jsonl | Format::Csv | Format::Tsv), _) => {
            let field = match &options.fields.indicators[..] {
                [] => options.fields.labels.clone(),
                indicators => indicators.join(","),
            };
            let found = match format {
                Some(Format::Jsonl) => first_fields(path, options).unwrap_or_default(),
                _ => Vec::new(),
            };
            let found = found.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let found = if found.is_empty() { found } else { format!("; the first object has {found}") };
            format!(" (in the field {field:?}{found}; --label-field names another)")
        }
        (_, Some(option)) => format!(" (a file without labels in it takes them from --{option})"),
        _ => String::new(),
    };
    Err(CliError::usage(format_args!(
        "{}: no instance has a label; at least one label is expected{hint}",
        path.display()
    )))
}
