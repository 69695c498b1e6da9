//! Options that say what files hold, and how text becomes features: the rows of their settings.

use crate::error::CliError;
use crate::settings::{Chosen, OfTable};
use std::path::{Path, PathBuf};
use xc_data::{FileForm, Format, LabelNames, ReadOptions};
use xc_hash::text::PipelineParams;
use xc_options::data::NamesFile;
use xc_options::settings::input;
use xc_options::settings::text;
use xc_options::settings::{FileContent, OfFiles, Setting, Table};
use xc_options::training::{refuse_idle_form, refuse_idle_of_instances, refuse_idle_of_labels};

/// What the options of a table are called.
const fn names<const N: usize>(table: &Table) -> [&'static str; N] {
    let (mut out, mut at) = ([""; N], 0);
    while at < N {
        out[at] = table.rows[at].name;
        at += 1;
    }
    out
}

fn about(fits: impl Fn(&OfFiles) -> bool) -> Vec<&'static str> {
    input::TABLE.rows.iter().filter(|row| row.of_files.is_some_and(|of| fits(&of))).map(|row| row.name).collect()
}

/// Options of the input that are about its labels.
pub(crate) fn of_labels() -> Vec<&'static str> {
    about(|of| of.content == FileContent::Labels)
}

/// Options of the input that are about tables alone.
pub(crate) fn of_tables() -> Vec<&'static str> {
    about(|of| of.formats.iter().all(|format| matches!(format, Format::Csv | Format::Tsv)))
}

/// Options about the form of input files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfInput;

impl OfTable for OfInput {
    const TABLE: Table = input::TABLE;

    /// A model keeps what it was trained with, but for what a file says itself, and what is done about it.
    fn usual(row: &Setting) -> Option<String> {
        Some(match (row.name, row.usual) {
            ("format", usual) => usual?.to_owned(),
            ("unseen", _) => row.none.to_owned(),
            (_, Some(usual)) => format!("the model's, else {usual}"),
            (_, None) => "the model's".to_owned(),
        })
    }
}

/// Options about the form of input files. What a model was trained with is kept in it; what is given wins.
pub(crate) type InputArgs = Chosen<OfInput>;

impl InputArgs {
    /// What they say.
    pub(crate) fn settings(&self) -> FileForm {
        input::file_form(&self.choices)
    }

    /// The same, and where they say nothing what a model was trained with.
    pub(crate) fn or(&self, kept: &FileForm) -> FileForm {
        self.settings().or(kept)
    }

    /// The readers' options that these say.
    pub(crate) fn options(&self) -> ReadOptions {
        self.settings().into()
    }

    /// Refuses options about forms that none of the files has.
    pub(crate) fn refuse_idle<'a>(
        &self,
        form: &FileForm,
        files: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), CliError> {
        Ok(refuse_idle_form(&self.choices, form, files)?)
    }

    /// The same of the options about labels, in the files that labels are read from.
    pub(crate) fn refuse_idle_of_labels<'a>(
        &self,
        form: &FileForm,
        files: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), CliError> {
        Ok(refuse_idle_of_labels(&self.choices, form, files)?)
    }

    /// The same of the options about texts and ids, in the files that instances are read from.
    pub(crate) fn refuse_idle_of_instances<'a>(
        &self,
        form: &FileForm,
        files: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), CliError> {
        Ok(refuse_idle_of_instances(&self.choices, form, files)?)
    }

    /// What the options are called.
    pub(crate) const NAMES: [&str; input::TABLE.rows.len()] = names(&input::TABLE);
}

/// Options about the form of sparse rows without labels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfRows;

impl OfTable for OfRows {
    const TABLE: Table = input::ROWS;
}

/// The same.
pub(crate) type RowArgs = Chosen<OfRows>;

impl RowArgs {
    /// What they are called.
    pub(crate) const NAMES: [&str; input::ROWS.rows.len()] = names(&input::ROWS);

    /// The readers' options that these say.
    pub(crate) fn options(&self) -> ReadOptions {
        input::file_form(&self.choices).into()
    }
}

/// How text becomes features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfText;

impl OfTable for OfText {
    const TABLE: Table = text::TABLE;
}

/// What a word is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfTokens;

impl OfTable for OfTokens {
    const TABLE: Table = text::TOKENS;
}

/// Options of the text pipeline; they have no effect on inputs that are features already.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TextArgs {
    #[command(flatten)]
    pub(crate) terms: Chosen<OfText>,
    #[command(flatten)]
    pub(crate) tokens: Chosen<OfTokens>,
}

impl TextArgs {
    /// The pipeline that these say.
    pub(crate) fn params(&self) -> Result<PipelineParams, CliError> {
        let mut choices = self.terms.choices.clone();
        choices.extend(&self.tokens.choices);
        Ok(text::params(&choices)?)
    }
}

/// Names of labels, given by the user.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct NamesArgs {
    /// Names of the labels, one per line in the order of their ids, such as labels.txt of a model
    #[arg(long, value_name = "FILE")]
    pub(crate) label_names: Option<PathBuf>,
    /// Column of --label-names that holds the names, from 1; columns are separated by tabs
    #[arg(long, value_name = "N", default_value = "1", requires = "label_names", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) label_names_column: u32,
    /// Field of --label-names that holds the names, if the file has a JSON object per line
    #[arg(long, value_name = "NAME", conflicts_with = "label_names_column", requires = "label_names")]
    pub(crate) label_names_field: Option<String>,
}

impl NamesArgs {
    /// Where the names are.
    pub(crate) fn file(&self) -> NamesFile {
        let (path, field) = (self.label_names.clone(), self.label_names_field.clone());
        NamesFile { path, column: self.label_names_column as usize - 1, field }
    }

    /// The file, where one is given.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.label_names.as_deref()
    }

    /// Reads the names, where a file is given.
    pub(crate) fn read(&self) -> Result<Option<LabelNames>, CliError> {
        Ok(self.file().read()?)
    }

    /// Refuses names that are fewer or more than the labels.
    pub(crate) fn check(&self, names: Option<&LabelNames>, n_labels: usize) -> Result<(), CliError> {
        Ok(self.file().check(names, n_labels)?)
    }
}
