//! Answers as they are written: lines, JSONL, npz or CSV.

use crate::error::CliError;
use crate::output::Output;
use clap::ValueEnum;
use std::io::Cursor;
use std::path::Path;
use xc_data::{
    AnswerNotes, LabelNames, PREDICTION_CSV_HEADER, push_prediction_csv, push_prediction_error, push_prediction_json,
    push_prediction_line, push_prediction_names, write_prediction_npz,
};
use xc_sparse::rank::{RankedBatch, Scored};

/// The form of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Lines,
    Jsonl,
    Npz,
    Csv,
}

impl Form {
    /// The form that was given, or else the one that the file's name tells.
    ///
    /// # Errors
    /// A name that tells a form that answers do not have; npz to a terminal.
    pub(crate) fn choose(given: Option<Self>, output: &Path) -> Result<Self, CliError> {
        let form = match given {
            Some(form) => form,
            None => Self::of_name(output)?,
        };
        if form == Self::Npz {
            Output::refuse_terminal(output, "npz")?;
        }
        Ok(form)
    }

    fn of_name(path: &Path) -> Result<Self, CliError> {
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        Ok(match extension.as_deref() {
            Some("npz") => Self::Npz,
            Some("jsonl" | "ndjson") => Self::Jsonl,
            Some("csv") => Self::Csv,
            Some("npy" | "json" | "tsv" | "parquet" | "gz" | "zst" | "bz2" | "xz" | "zip") => {
                return Err(CliError::usage(format_args!(
                    "--output {}: answers are npz, jsonl or csv by the name of the file, else lines; with another \
                     such ending --output-format is expected",
                    path.display()
                )));
            }
            _ => Self::Lines,
        })
    }

    /// Whether answers in this form have the names of labels where these are known.
    pub(crate) fn has_names(self) -> bool {
        matches!(self, Self::Jsonl | Self::Csv)
    }
}

/// How answers are written.
#[derive(Clone, Copy)]
pub(crate) struct Style<'n> {
    pub(crate) form: Form,
    pub(crate) names: Option<&'n LabelNames>,
}

impl Style<'_> {
    /// Appends the answer to query `number`; nothing in an npz file.
    pub(crate) fn push(self, out: &mut Vec<u8>, row: &[Scored], notes: &AnswerNotes<'_>, number: usize) {
        let names = self.names.map(LabelNames::names);
        match (self.form, names) {
            (Form::Lines, None) => push_prediction_line(out, row),
            (Form::Lines, Some(names)) => push_prediction_names(out, row, names),
            (Form::Jsonl, names) => push_prediction_json(out, row, names, notes),
            (Form::Csv, names) => push_prediction_csv(out, row, names, notes.id, number),
            (Form::Npz, _) => {}
        }
    }

    /// Appends the answer to a query that has none.
    pub(crate) fn push_error(self, out: &mut Vec<u8>, id: Option<&str>, error: &str) {
        match self.form {
            Form::Lines => out.push(b'\n'),
            Form::Jsonl => push_prediction_error(out, id, error),
            Form::Npz | Form::Csv => {}
        }
    }
}

/// Where answers go, one after the other.
pub(crate) struct Writer<'n> {
    pub(crate) style: Style<'n>,
    pub(crate) out: Output,
    /// An npz file needs all rows before its first byte.
    kept: RankedBatch,
    n_labels: usize,
    /// Answers that were written.
    n_rows: usize,
    buffer: Vec<u8>,
}

impl<'n> Writer<'n> {
    /// Begins a file; `n_labels` are the columns of an npz matrix.
    pub(crate) fn new(style: Style<'n>, out: Output, n_labels: usize) -> Result<Self, CliError> {
        let mut writer = Self::behind(style, out, n_labels, 0);
        if style.form == Form::Csv {
            writer.out.put(format!("{PREDICTION_CSV_HEADER}\n").as_bytes())?;
        }
        Ok(writer)
    }

    /// Begins a file of answers that follow `n_rows` others in another one.
    pub(crate) fn behind(style: Style<'n>, out: Output, n_labels: usize, n_rows: usize) -> Self {
        Self { style, out, kept: RankedBatch::new(), n_labels, n_rows, buffer: Vec::new() }
    }

    /// Writes the next answer.
    pub(crate) fn row(&mut self, row: &[Scored], notes: &AnswerNotes<'_>) -> Result<(), CliError> {
        if self.style.form == Form::Npz {
            self.keep(row);
            return Ok(());
        }
        self.buffer.clear();
        self.style.push(&mut self.buffer, row, notes, self.n_rows);
        self.n_rows += 1;
        self.out.put(&self.buffer)
    }

    /// Keeps a row of an npz file.
    pub(crate) fn keep(&mut self, row: &[Scored]) {
        self.kept.push_row(row);
    }

    /// Ends the file and puts it in its place.
    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        if self.style.form == Form::Npz {
            let mut bytes = Cursor::new(Vec::new());
            write_prediction_npz(&mut bytes, &self.kept, self.n_labels)
                .map_err(|e| CliError::write(self.out.name(), &e))?;
            self.out.put(bytes.get_ref())?;
        }
        self.out.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_the_name_unless_it_is_given() {
        let of = |name: &str| Form::choose(None, Path::new(name)).ok();
        for (name, form) in [
            ("-", Form::Lines),
            ("a", Form::Lines),
            ("a.txt", Form::Lines),
            ("a.npz", Form::Npz),
            ("a.b.NPZ", Form::Npz),
            ("a.jsonl", Form::Jsonl),
            ("a.ndjson", Form::Jsonl),
            ("d.csv/a.csv", Form::Csv),
            ("d.csv/a", Form::Lines),
        ] {
            assert_eq!(of(name), Some(form), "{name}");
        }
        for name in ["a.npy", "a.json", "a.tsv", "a.csv.gz", "a.parquet"] {
            assert_eq!(of(name), None, "{name}");
            assert_eq!(Form::choose(Some(Form::Lines), Path::new(name)).ok(), Some(Form::Lines));
        }
        assert_eq!(Form::choose(Some(Form::Jsonl), Path::new("a.npz")).ok(), Some(Form::Jsonl));
    }
}
