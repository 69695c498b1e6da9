//! The settings that say what a file holds.

use super::FileContent::{Any, Instances, Labels};
use super::{Choices, Setting, Table, Values};
use Values::{Names, Switch, Text};
use xc_data::{FileForm, Format, IndexBase, LabelSeparator};

const fn row(name: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).heading("Input options")
}

/// Formats with named fields.
const WITH_FIELDS: &[Format] = &[Format::Jsonl, Format::Csv, Format::Tsv];
/// Those of fields with something between them.
const TABLES: &[Format] = &[Format::Csv, Format::Tsv];
const SVMLIGHT: &[Format] = &[Format::Svmlight];

/// What a model was trained with is kept in it; what is given wins.
pub const TABLE: Table = Table {
    rows: &[
        row("format", Text(check_format), "FORMAT").none("as the file says").usual("detected from name and content").help(
            "Format of the input: xc, svmlight, fasttext, jsonl, csv, tsv, npz or npy",
        ),
        row("text-fields", ANY, "NAMES").of_files(WITH_FIELDS, Instances).none("text").usual("text").help(
            "JSONL fields or CSV columns that make up the text, joined by spaces",
        ),
        row("label-field", ANY, "NAME").of_files(WITH_FIELDS, Labels).none("labels").usual("labels").help(
            "JSONL field or CSV column with the labels; '' if there is none",
        ),
        row("label-fields", ANY, "NAMES").of_files(WITH_FIELDS, Labels)
            .help(
                "JSONL fields or CSV columns with 0 or 1, one for each label, which has the name of the field; in place \
                 of --label-field",
            )
            .excludes(&["label-field", "label-separator"]),
        row("label-separator", ANY, "S").of_files(WITH_FIELDS, Labels).usual("a string is one label, and one that contains ; | or , is refused").help(
            "Separator of labels that are written as one string; '' if each string is one label",
        ),
        row("id-field", ANY, "NAME").of_files(WITH_FIELDS, Instances).usual("id if there is one").help(
            "JSONL field or CSV column with the id of an instance, which JSON answers repeat",
        ),
        row("delimiter", Text(check_delimiter), "C").of_files(TABLES, Any).usual("a comma in csv, a tab in tsv").help(
            "What stands between the fields of a table: one character, or tab",
        ),
        row("no-quotes", Switch, "").of_files(TABLES, Any).help(
            "Read quotes in a table as text: fields are not in quotes, and each line is a row",
        ),
        row("no-header", Switch, "").of_files(TABLES, Any).help(
            "The table has no header: its first line is an instance, and columns are named by their numbers, from 1",
        ),
        row("svmlight-base", BASE, "0|1").of_files(SVMLIGHT, Any).help(
            "Number of the first svmlight feature; required, since svmlight files differ",
        ),
        row("svmlight-label-base", BASE, "0|1").of_files(SVMLIGHT, Labels)
            .usual("0").help("Number of the first svmlight label"),
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
            .usual("detected from name and content")
            .help("Format of sparse rows: xc, svmlight, jsonl or npz"),
        row("svmlight-base", BASE, "0|1")
            .help("Number of the first svmlight feature; required, since svmlight files differ"),
    ],
    starts: &[],
};

fn check_format(text: &str) -> Result<(), String> {
    text.parse::<Format>().map(drop).map_err(|e| e.to_string())
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

/// What was chosen of a file's form; whether choices go together says [`Choices::refuse_conflicts`].
pub fn file_form(choices: &Choices) -> FileForm {
    let choices = choices.of(&TABLE);
    let text = |name: &str| choices.value::<String>(name);
    let names = |name: &str| text(name).map(|names| names.split(',').map(str::to_owned).collect());
    let id_field = text("id-field");
    // Values were checked when they were chosen.
    FileForm {
        format: text("format").and_then(|text| text.parse().ok()),
        text_fields: names("text-fields"),
        label_field: text("label-field"),
        label_fields: names("label-fields"),
        label_separator: text("label-separator").map(|text| LabelSeparator::of(&text)),
        delimiter: text("delimiter").and_then(|text| parse_delimiter(&text).ok()),
        no_quotes: choices.get("no-quotes").is_some(),
        no_header: choices.get("no-header").is_some(),
        svmlight_base: text("svmlight-base").and_then(|text| parse_base(&text).ok()),
        svmlight_label_base: text("svmlight-label-base").and_then(|text| parse_base(&text).ok()),
        usual_format: None,
        needs_id: id_field.is_some(),
        id_field,
        refuse_unseen: text("unseen").is_some_and(|what| what == "refuse"),
    }
}
