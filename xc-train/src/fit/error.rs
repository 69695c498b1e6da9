//! Why training ends without a model.

use std::error::Error;
use std::fmt::{self, Display};
use std::io;
use std::path::Path;
use xc_data::{FieldOf, ReadError, ReadErrorKind};
use xc_model::OpenModelError;
use xc_model::message::{chain, one_line, without_os_numbers};
use xc_store::atomic::WriteFileError;
use xc_store::{CheckpointError, WriteError};

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FitErrorKind {
    /// A setting, a file or data that were given are absent, malformed or impossible.
    Input,
    /// The work itself failed: a disk that is full, say.
    Failed,
    /// There is not enough memory.
    Memory,
    /// This build lacks what was asked for.
    NotBuilt,
    /// It was cancelled.
    Cancelled,
}

/// What went wrong: one line for a person, with file or setting, what was found, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitError {
    kind: FitErrorKind,
    line: String,
}

impl FitError {
    fn new(kind: FitErrorKind, line: impl Display) -> Self {
        Self { kind, line: one_line(&without_os_numbers(&line.to_string())) }
    }

    /// Whose fault it is.
    pub fn kind(&self) -> FitErrorKind {
        self.kind
    }

    /// The work failed.
    pub fn failed(line: impl Display) -> Self {
        Self::new(FitErrorKind::Failed, line)
    }

    /// A setting or data that cannot be.
    pub fn usage(line: impl Display) -> Self {
        Self::new(FitErrorKind::Input, line)
    }

    /// A named file is at fault.
    pub fn input(path: &Path, error: &dyn Error) -> Self {
        Self::usage(format_args!("{}: {}", path.display(), chain(error)))
    }

    /// There is too little memory.
    pub fn missing(line: impl Display) -> Self {
        Self::new(FitErrorKind::Memory, line)
    }

    /// What was asked for needs a transformer, and this build has none.
    pub fn without_transformers(what: impl Display) -> Self {
        Self::new(
            FitErrorKind::NotBuilt,
            format_args!(
                "{what}: this program was built without transformers (feature transformer of xc-cli or xc-train: cargo \
                 build --features transformer)"
            ),
        )
    }

    /// An output cannot be begun or put in its place: a path that cannot be is the caller's fault, a system that
    /// refuses to write there is not.
    pub fn unwritable(error: &WriteFileError) -> Self {
        Self::new(Self::kind_of(error.is_misnamed()), chain(error))
    }

    /// The same of what is written without a partial file.
    pub fn unwritable_at(path: &Path, error: io::Error) -> Self {
        Self::unwritable(&WriteFileError { path: path.to_owned(), doing: "write", source: error })
    }

    fn kind_of(is_misnamed: bool) -> FitErrorKind {
        if is_misnamed { FitErrorKind::Input } else { FitErrorKind::Failed }
    }

    /// It was cancelled.
    pub fn interrupted() -> Self {
        Self::new(FitErrorKind::Cancelled, "cancelled")
    }
}

impl Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Error for FitError {}

/// A model that does not open is what the caller named.
impl From<OpenModelError> for FitError {
    fn from(error: OpenModelError) -> Self {
        Self::usage(chain(&error))
    }
}

impl From<&CheckpointError> for FitError {
    fn from(error: &CheckpointError) -> Self {
        Self::new(Self::kind_of(!error.is_failure()), chain(error))
    }
}

impl From<CheckpointError> for FitError {
    fn from(error: CheckpointError) -> Self {
        Self::from(&error)
    }
}

impl From<&WriteError> for FitError {
    fn from(error: &WriteError) -> Self {
        Self::new(Self::kind_of(error.is_misnamed()), chain(error))
    }
}

impl From<WriteError> for FitError {
    fn from(error: WriteError) -> Self {
        Self::from(&error)
    }
}

/// The option that says more about a field.
fn field_option(kind: &ReadErrorKind) -> String {
    let option = match kind {
        ReadErrorKind::MissingColumn { delimiter: Some(delimiter), .. } => {
            let delimiter = if *delimiter == '\t' { "tab".to_owned() } else { format!("'{delimiter}'") };
            return format!(" (--delimiter {delimiter}, if the header has several columns)");
        }
        ReadErrorKind::MissingColumn { what: FieldOf::Labels, expected, .. } if expected.contains(',') => {
            " (--label-fields NAMES for columns of 0 and 1)"
        }
        ReadErrorKind::MissingColumn { what: FieldOf::Text, .. } => {
            " (--text-fields NAMES; --no-header, if the file has no header)"
        }
        ReadErrorKind::MissingField { what, .. } | ReadErrorKind::MissingColumn { what, .. } => match what {
            FieldOf::Text => " (--text-fields NAMES)",
            FieldOf::Labels => " (--label-field NAME)",
            FieldOf::Id => " (--id-field NAME)",
            FieldOf::Features => "",
        },
        ReadErrorKind::BehindQuote { .. } | ReadErrorKind::OpenQuote | ReadErrorKind::MixedQuotes => {
            " (--no-quotes, if quotes are text in this file)"
        }
        ReadErrorKind::Undivided { .. } => " (--label-separator S; '' takes each string as one label)",
        ReadErrorKind::LabelList { .. } => {
            " (pandas: df[\"labels\"].str.join(\";\") before to_csv, and --label-separator ';')"
        }
        ReadErrorKind::InColumn { problem, .. } => return field_option(problem),
        _ => "",
    };
    option.to_owned()
}

impl From<ReadError> for FitError {
    fn from(error: ReadError) -> Self {
        // The error names its file itself; the reader cannot know what the option is called.
        let option = match error.kind() {
            ReadErrorKind::Cancelled => return Self::interrupted(),
            ReadErrorKind::BaseNotStated => " (--svmlight-base 0 or 1)".to_owned(),
            ReadErrorKind::UnknownFormat => " (--format)".to_owned(),
            ReadErrorKind::NameField { .. } => " (--label-names-field NAME)".to_owned(),
            kind => field_option(kind),
        };
        Self::usage(format_args!("{}{option}", chain(&error)))
    }
}
