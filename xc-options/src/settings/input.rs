//! The settings that say what a file holds.

use super::FileContent::{Any, Instances, Labels};
use super::{At, Choices, Setting, SettingPlace, Slot, Table, Values, field};
use Values::{Names, Switch, Text};
use serde_json::Value;
use xc_data::{FileForm, Format, IndexBase};

const fn row(name: &'static str, at: At<FileForm>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::File(at)).heading("Input options")
}

const FORMAT: At<FileForm> = At::Form {
    name: "format",
    get: |of| of.format.map(|format| format.name().into()),
    put: |of, value| {
        of.format = Some(said(value).parse::<Format>().map_err(|e| e.to_string())?);
        Ok(())
    },
};

const TEXT_FIELDS: At<FileForm> = At::Form {
    name: "text_fields",
    get: |of| of.text_fields.as_ref().map(|names| names.join(",").into()),
    put: |of, value| {
        of.text_fields = Some(names(value));
        Ok(())
    },
};

const LABEL_FIELDS: At<FileForm> = At::Form {
    name: "label_fields",
    get: |of| of.label_fields.as_ref().map(|names| names.join(",").into()),
    put: |of, value| {
        of.label_fields = Some(names(value));
        Ok(())
    },
};

/// A field that is named has to be there.
const ID_FIELD: At<FileForm> = At::Form {
    name: "id_field",
    get: |of| of.id_field.clone().map(Value::from),
    put: |of, value| {
        of.needs_id = true;
        of.id_field.put(value)
    },
};

const DELIMITER: At<FileForm> = At::Form {
    name: "delimiter",
    get: |of| of.delimiter.map(|byte| char::from(byte).to_string().into()),
    put: |of, value| {
        of.delimiter = Some(parse_delimiter(said(value))?);
        Ok(())
    },
};

const SVMLIGHT_BASE: At<FileForm> = At::Form {
    name: "svmlight_base",
    get: |of| of.svmlight_base.map(base_said),
    put: |of, value| {
        of.svmlight_base = Some(parse_base(said(value))?);
        Ok(())
    },
};

const SVMLIGHT_LABEL_BASE: At<FileForm> = At::Form {
    name: "svmlight_label_base",
    get: |of| of.svmlight_label_base.map(base_said),
    put: |of, value| {
        of.svmlight_label_base = Some(parse_base(said(value))?);
        Ok(())
    },
};

const UNSEEN: At<FileForm> = At::Form {
    name: "refuse_unseen",
    get: |of| Some(if of.refuse_unseen { REFUSE } else { "ignore" }.into()),
    put: |of, value| {
        of.refuse_unseen = *value == REFUSE;
        Ok(())
    },
};

const REFUSE: &str = "refuse";

/// Formats with named fields.
const WITH_FIELDS: &[Format] = &[Format::Jsonl, Format::Csv, Format::Tsv];
/// Those of fields with something between them.
const TABLES: &[Format] = &[Format::Csv, Format::Tsv];
const SVMLIGHT: &[Format] = &[Format::Svmlight];

/// What a model was trained with is kept in it; what is given wins.
pub const TABLE: Table = Table {
    rows: &[
        row("format", FORMAT, Text(check_format), "FORMAT").none("as the file says").usual("detected from name and content").help(
            "Format of the input: xc, svmlight, fasttext, jsonl, csv, tsv, npz or npy",
        ),
        row("text-fields", TEXT_FIELDS, ANY, "NAMES").of_files(WITH_FIELDS, Instances).none("text").usual("text").help(
            "JSONL fields or CSV columns that make up the text, joined by spaces",
        ),
        row("label-field", field!(label_field), ANY, "NAME").of_files(WITH_FIELDS, Labels).none("labels").usual("labels").help(
            "JSONL field or CSV column with the labels; '' if there is none",
        ),
        row("label-fields", LABEL_FIELDS, ANY, "NAMES").of_files(WITH_FIELDS, Labels)
            .help(
                "JSONL fields or CSV columns with 0 or 1, one for each label, which has the name of the field; in place \
                 of --label-field",
            )
            .excludes(&["label-field", "label-separator"]),
        row("label-separator", field!(label_separator), ANY, "S").of_files(WITH_FIELDS, Labels).usual("a string is one label, and one that contains ; | or , is refused").help(
            "Separator of labels that are written as one string; '' if each string is one label",
        ),
        row("id-field", ID_FIELD, ANY, "NAME").of_files(WITH_FIELDS, Instances).usual("id if there is one").help(
            "JSONL field or CSV column with the id of an instance, which JSON answers repeat",
        ),
        row("delimiter", DELIMITER, Text(check_delimiter), "C").of_files(TABLES, Any).usual("a comma in csv, a tab in tsv").help(
            "What stands between the fields of a table: one character, or tab",
        ),
        row("no-quotes", field!(no_quotes), Switch, "").of_files(TABLES, Any).help(
            "Read quotes in a table as text: fields are not in quotes, and each line is a row",
        ),
        row("no-header", field!(no_header), Switch, "").of_files(TABLES, Any).help(
            "The table has no header: its first line is an instance, and columns are named by their numbers, from 1",
        ),
        row("svmlight-base", SVMLIGHT_BASE, BASE, "0|1").of_files(SVMLIGHT, Any).help(
            "Number of the first svmlight feature; required, since svmlight files differ",
        ),
        row("svmlight-label-base", SVMLIGHT_LABEL_BASE, BASE, "0|1").of_files(SVMLIGHT, Labels)
            .usual("0").help("Number of the first svmlight label"),
        row("unseen", UNSEEN, Names(&["ignore", REFUSE]), "WHAT").none("ignore").help(
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
        row("format", FORMAT, Text(check_format), "FORMAT")
            .usual("detected from name and content")
            .help("Format of sparse rows: xc, svmlight, jsonl or npz"),
        row("svmlight-base", SVMLIGHT_BASE, BASE, "0|1")
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

fn said(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn names(value: &Value) -> Vec<String> {
    said(value).split(',').map(str::to_owned).collect()
}

fn base_said(base: IndexBase) -> Value {
    Value::from(if base == IndexBase::One { "1" } else { "0" })
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
    let made = TABLE.fill(FileForm::default(), choices);
    made.unwrap_or_else(|e| panic!("a value that was checked when it was chosen: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_data::LabelSeparator;

    #[test]
    fn every_row_leads_to_a_place_of_its_own_and_changes_it() {
        let usual = FileForm::default();
        for row in TABLE.rows {
            let value = match row.name {
                "format" => "csv",
                "unseen" => REFUSE,
                "text-fields" | "label-fields" => "a,b",
                "delimiter" => ";",
                _ if matches!(row.values, Switch) => "true",
                _ => "1",
            };
            let form = file_form(&TABLE.given([(row.name, value)]).unwrap());
            assert_eq!(row.shown_in(&form).as_deref(), Some(value), "{}", row.name);
            let changed = TABLE.rows.iter().filter(|other| other.shown_in(&form) != other.shown_in(&usual));
            assert_eq!(changed.map(|other| other.name).collect::<Vec<_>>(), [row.name]);
            assert_eq!(form.needs_id, row.name == "id-field");
        }
        assert_eq!(file_form(&Choices::default()), usual);
        let tab = file_form(&TABLE.given([("delimiter", "tab"), ("label-separator", "")]).unwrap());
        assert_eq!((tab.delimiter, tab.label_separator), (Some(b'\t'), Some(LabelSeparator::Whole)));
    }
}
