//! Answers as they are written.

use crate::error::CliError;
use crate::output::Output;
use clap::ValueEnum;
use std::io::Cursor;
use xc_sparse::io::{
    AnswerNotes, LabelNames, push_prediction_error, push_prediction_json, push_prediction_line, push_prediction_names,
    write_prediction_npz,
};
use xc_sparse::rank::{RankedBatch, Scored};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    Lines,
    Jsonl,
    Npz,
}

/// How answers are written.
#[derive(Clone, Copy)]
pub(super) struct Style<'n> {
    pub(super) form: Form,
    pub(super) names: Option<&'n LabelNames>,
}

impl Style<'_> {
    /// Appends an answer; nothing in an npz file.
    pub(super) fn push(self, out: &mut Vec<u8>, row: &[Scored], notes: &AnswerNotes<'_>) {
        match (self.form, self.names) {
            (Form::Lines, None) => push_prediction_line(out, row),
            (Form::Lines, Some(names)) => push_prediction_names(out, row, names.names()),
            (Form::Jsonl, names) => push_prediction_json(out, row, names.map(LabelNames::names), notes),
            (Form::Npz, _) => {}
        }
    }

    /// Appends the answer to a query that has none.
    pub(super) fn push_error(self, out: &mut Vec<u8>, id: Option<&str>, error: &str) {
        match self.form {
            Form::Lines => out.push(b'\n'),
            Form::Jsonl => push_prediction_error(out, id, error),
            Form::Npz => {}
        }
    }
}

/// Where answers go, one after the other.
pub(super) struct Writer<'n> {
    pub(super) style: Style<'n>,
    pub(super) out: Output,
    /// An npz file needs all rows before its first byte.
    kept: RankedBatch,
    n_labels: usize,
    buffer: Vec<u8>,
}

impl<'n> Writer<'n> {
    pub(super) fn new(style: Style<'n>, out: Output, n_labels: usize) -> Self {
        Self { style, out, kept: RankedBatch::new(), n_labels, buffer: Vec::new() }
    }

    pub(super) fn row(&mut self, row: &[Scored], notes: &AnswerNotes<'_>) -> Result<(), CliError> {
        if self.style.form == Form::Npz {
            self.keep(row);
            return Ok(());
        }
        self.buffer.clear();
        self.style.push(&mut self.buffer, row, notes);
        self.out.put(&self.buffer)
    }

    /// Keeps a row of an npz file.
    pub(super) fn keep(&mut self, row: &[Scored]) {
        self.kept.push_row(row);
    }

    pub(super) fn finish(mut self) -> Result<(), CliError> {
        if self.style.form == Form::Npz {
            let mut bytes = Cursor::new(Vec::new());
            write_prediction_npz(&mut bytes, &self.kept, self.n_labels)
                .map_err(|e| CliError::write(self.out.name(), &e))?;
            self.out.put(bytes.get_ref())?;
        }
        self.out.commit()
    }
}
