//! The settings that say what a file holds.

use super::{Choices, Setting, Table, Values};
use crate::model::InputForm;
use Values::{Names, Switch, Text};
use std::sync::Arc;
use xc_data::{Fields, Format, IndexBase, LabelSeparator, ReadOptions, TableForm};

const fn row(name: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, name, values, unit).heading("Input options")
}

/// What a model was trained with is kept in it; what is given wins.
pub const TABLE: Table = Table {
    rows: &[
        row("format", Text(check_format), "FORMAT").none("as the file says").help(
            "Format of the input: xc, svmlight, fasttext, jsonl, csv, tsv, npz or npy [default: detected from name and \
             content]",
        ),
        row("text-fields", ANY, "NAMES").none("text").help(
            "JSONL fields or CSV columns that make up the text, joined by spaces [default: the model's, else text]",
        ),
        row("label-field", ANY, "NAME").none("labels").help(
            "JSONL field or CSV column with the labels; '' if there is none [default: the model's, else labels]",
        ),
        row("label-fields", ANY, "NAMES")
            .help(
                "JSONL fields or CSV columns with 0 or 1, one for each label, which has the name of the field; in place \
                 of --label-field [default: the model's]",
            )
            .excludes(&["label-field", "label-separator"]),
        row("label-separator", Text(check_separator), "S").help(
            "Separator of labels that are written as one string; '' if each string is one label [default: the model's, \
             else a string is one label, and one that contains ; | or , is refused]",
        ),
        row("id-field", ANY, "NAME").help(
            "JSONL field or CSV column with the id of an instance, which JSON answers repeat [default: the model's, else \
             id if there is one]",
        ),
        row("delimiter", Text(check_delimiter), "C").help(
            "What stands between the fields of a table: one character, or tab [default: the model's, else a comma in csv, \
             a tab in tsv]",
        ),
        row("no-quotes", Switch, "").help(
            "Read quotes in a table as text: fields are not in quotes, and each line is a row [default: as the model's]",
        ),
        row("no-header", Switch, "").help(
            "The table has no header: its first line is an instance, and columns are named by their numbers, from 1 \
             [default: as the model's]",
        ),
        row("svmlight-base", BASE, "0|1").help(
            "Number of the first svmlight feature; required, since svmlight files differ [default: the model's]",
        ),
        row("svmlight-label-base", BASE, "0|1")
            .help("Number of the first svmlight label [default: the model's, else 0]"),
        row("unseen", Names(&["ignore", "refuse"]), "WHAT").none("ignore").help(
            "What to do about features of the input that the model was not trained on: leave them out and count them on \
             stderr, or refuse the file",
        ),
    ],
    starts: &[],
};

const ANY: Values = Text(|_| Ok(()));
const BASE: Values = Text(|text| parse_base(text).map(drop).map_err(str::to_owned));

/// The form of sparse rows without labels.
pub const ROWS: Table = Table {
    rows: &[
        row("format", Text(check_format), "FORMAT")
            .help("Format of sparse rows: xc, svmlight, jsonl or npz [default: detected from name and content]"),
        row("svmlight-base", BASE, "0|1")
            .help("Number of the first svmlight feature; required, since svmlight files differ"),
    ],
    starts: &[],
};

fn check_format(text: &str) -> Result<(), String> {
    text.parse::<Format>().map(drop).map_err(|e| e.to_string())
}

fn check_separator(text: &str) -> Result<(), String> {
    text.parse::<LabelSeparator>().map(drop).map_err(|e| e.to_string())
}

fn check_delimiter(text: &str) -> Result<(), String> {
    parse_delimiter(text).map(drop)
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

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct InputSettings {
    /// Its format, where it was said.
    pub format: Option<Format>,
    /// Fields that make up the text.
    pub text_fields: Option<Vec<String>>,
    /// Field with the labels.
    pub label_field: Option<String>,
    /// Fields with 0 or 1, one for each label.
    pub label_fields: Option<Vec<String>>,
    /// What stands between labels in one string.
    pub label_separator: Option<LabelSeparator>,
    /// Field with the id of an instance.
    pub id_field: Option<String>,
    /// What stands between the fields of a table.
    pub delimiter: Option<u8>,
    /// Whether quotes in a table are text.
    pub no_quotes: bool,
    /// Whether a table has no header.
    pub no_header: bool,
    /// Number of the first svmlight feature.
    pub svmlight_base: Option<IndexBase>,
    /// Number of the first svmlight label.
    pub svmlight_label_base: Option<IndexBase>,
    /// Whether a feature that the model does not know is an error.
    pub refuse_unseen: bool,
    /// What was chosen, for what is refused.
    pub choices: Choices,
    /// The format that a model was trained on.
    usual_format: Option<Format>,
    /// Whether the field of ids was given rather than kept.
    kept_id: bool,
}

impl InputSettings {
    /// What was chosen; whether choices go together says [`Choices::refuse_conflicts`].
    pub fn new(choices: &Choices) -> Self {
        let choices = choices.of(&TABLE);
        let text = |name: &str| choices.value::<String>(name);
        let names = |name: &str| text(name).map(|names| names.split(',').map(str::to_owned).collect());
        // Values were checked when they were chosen.
        Self {
            format: text("format").and_then(|text| text.parse().ok()),
            text_fields: names("text-fields"),
            label_field: text("label-field"),
            label_fields: names("label-fields"),
            label_separator: text("label-separator").map(|text| separator_of(&text)),
            id_field: text("id-field"),
            delimiter: text("delimiter").and_then(|text| parse_delimiter(&text).ok()),
            no_quotes: choices.get("no-quotes").is_some(),
            no_header: choices.get("no-header").is_some(),
            svmlight_base: text("svmlight-base").and_then(|text| parse_base(&text).ok()),
            svmlight_label_base: text("svmlight-label-base").and_then(|text| parse_base(&text).ok()),
            refuse_unseen: text("unseen").is_some_and(|what| what == "refuse"),
            usual_format: None,
            kept_id: false,
            choices,
        }
    }

    /// These, and where they say nothing what a model was trained with.
    pub fn or(&self, kept: &InputForm) -> Self {
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
            refuse_unseen: self.refuse_unseen,
            choices: self.choices.clone(),
            svmlight_base: self.svmlight_base.or(kept.svmlight_base.map(base_of)),
            svmlight_label_base: self.svmlight_label_base.or(kept.svmlight_label_base.map(base_of)),
            usual_format: self.usual_format.or_else(|| kept.format.as_deref()?.parse().ok()),
            kept_id: self.kept_id || (self.id_field.is_none() && kept.id_field.is_some()),
        }
    }

    /// Whether a file is svmlight, as stated or as the model's was.
    pub fn is_svmlight(&self) -> bool {
        self.format.or(self.usual_format) == Some(Format::Svmlight)
    }

    /// The same for a further file, whose format is its own affair.
    pub fn of_any_format(&self) -> Self {
        Self { format: None, usual_format: None, ..self.clone() }
    }

    /// The readers' options that these say.
    pub fn options(&self) -> ReadOptions {
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
    pub fn expect(&self, options: &mut ReadOptions, n_features: usize) {
        options.n_features = Some(n_features);
        options.unseen = (!self.refuse_unseen).then(Arc::default);
    }

    /// What a model keeps of these, when it is trained on a file of this format.
    pub fn form(&self, format: Format) -> InputForm {
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

fn separator_of(text: &str) -> LabelSeparator {
    text.parse().unwrap_or_default()
}
