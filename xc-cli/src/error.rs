//! The one error type of the program: a line for a person and an exit code.

use crate::whole_stdin;
use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;
use xc_data::ReadError;
use xc_model::OpenModelError;
use xc_model::message::without_os_numbers;
pub(crate) use xc_model::message::{causes, chain, escaped, one_line};
use xc_store::atomic::WriteFileError;
use xc_store::{CheckpointError, WriteError};
use xc_train::fit::{FitError, FitErrorKind};

/// Why a command ends, by exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// 1: failed while working.
    Failed,
    /// 2: something the user named is absent, malformed or impossible.
    Input,
    /// 3: a feature or memory is missing.
    Missing,
    /// 128 and the number of a signal: 130 for Ctrl-C, 143 for SIGTERM.
    Interrupted,
    /// 0: the reader of our output went away, which is success.
    BrokenPipe,
}

/// What went wrong and which exit code says so.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    line: String,
}

impl CliError {
    fn new(kind: Kind, line: impl Display) -> Self {
        Self { kind, line: one_line(&without_os_numbers(&whole_stdin::named(&line.to_string()))) }
    }

    /// Exit code 1: the work failed.
    pub(crate) fn failed(line: impl Display) -> Self {
        Self::new(Kind::Failed, line)
    }

    /// Exit code 2: an option that cannot be.
    pub(crate) fn usage(line: impl Display) -> Self {
        Self::new(Kind::Input, line)
    }

    /// Exit code 2: a named file is at fault.
    pub(crate) fn input(path: &Path, error: &dyn Error) -> Self {
        FitError::input(path, error).into()
    }

    /// Exit code 3: something the machine or this build lacks.
    pub(crate) fn missing(line: impl Display) -> Self {
        Self::new(Kind::Missing, line)
    }

    /// An output cannot be begun or put in its place: exit code 2 where the path cannot be (no such folder,
    /// something else in its place), 1 where the system refuses to write there.
    pub(crate) fn unwritable(error: &WriteFileError) -> Self {
        FitError::unwritable(error).into()
    }

    /// The same of what is written without a partial file.
    pub(crate) fn unwritable_at(path: &Path, error: io::Error) -> Self {
        FitError::unwritable_at(path, error).into()
    }

    /// An output could not be written; a reader that went away is success.
    pub(crate) fn write(what: &str, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Kind::BrokenPipe, "");
        }
        Self::new(Kind::Failed, format_args!("{what}: cannot write: {error}"))
    }

    /// Ended by a signal.
    pub(crate) fn interrupted() -> Self {
        Self::new(Kind::Interrupted, crate::interrupt::line())
    }

    /// The same, of a file that it stands in.
    pub(crate) fn within(self, file: &Path) -> Self {
        Self::new(self.kind, format_args!("{}: {}", file.display(), self.line))
    }

    /// The same with a clause behind it.
    pub(crate) fn and(self, clause: impl Display) -> Self {
        Self::new(self.kind, format_args!("{}; {clause}", self.line))
    }

    /// The line to print, unless there is nothing to say.
    pub(crate) fn line(&self) -> Option<&str> {
        (self.kind != Kind::BrokenPipe).then_some(&*self.line)
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Failed => 1,
            Kind::Input => 2,
            Kind::Missing => 3,
            Kind::Interrupted => crate::interrupt::exit_code(),
            Kind::BrokenPipe => 0,
        }
    }
}

impl From<FitError> for CliError {
    fn from(error: FitError) -> Self {
        match error.kind() {
            // A wait for input ends with an error when Ctrl-C is pressed.
            FitErrorKind::Input if crate::interrupt::interrupted() => Self::interrupted(),
            FitErrorKind::Cancelled => Self::interrupted(),
            FitErrorKind::Failed => Self::failed(error),
            FitErrorKind::Memory | FitErrorKind::NotBuilt => Self::missing(error),
            _ => Self::usage(error),
        }
    }
}

impl From<ReadError> for CliError {
    fn from(error: ReadError) -> Self {
        FitError::from(error).into()
    }
}

impl From<OpenModelError> for CliError {
    fn from(error: OpenModelError) -> Self {
        FitError::from(error).into()
    }
}

impl From<WriteError> for CliError {
    fn from(error: WriteError) -> Self {
        FitError::from(error).into()
    }
}

impl From<&WriteError> for CliError {
    fn from(error: &WriteError) -> Self {
        FitError::from(error).into()
    }
}

impl From<&CheckpointError> for CliError {
    fn from(error: &CheckpointError) -> Self {
        FitError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_success_and_says_nothing() {
        let error = CliError::write("x", &io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((error.exit_code(), error.line()), (0, None));
    }

    #[test]
    fn numbers_of_the_operating_system_are_left_out() {
        let error = CliError::failed("a: No space left on device (os error 28): b (os error x) (os error 2)");
        assert_eq!(error.line(), Some("a: No space left on device: b (os error x)"));
    }

    #[test]
    fn a_place_that_cannot_be_is_exit_code_2_and_one_that_may_not_be_written_1() {
        use io::ErrorKind as E;
        let code = |kind: E| CliError::unwritable_at(Path::new("a"), kind.into()).exit_code();
        let misnamed = [E::NotFound, E::NotADirectory, E::IsADirectory, E::InvalidFilename, E::DirectoryNotEmpty];
        assert_eq!(misnamed.map(code), [2; 5]);
        let refused = [E::PermissionDenied, E::ReadOnlyFilesystem, E::StorageFull, E::QuotaExceeded, E::FileTooLarge];
        assert_eq!(refused.map(code), [1; 5]);
    }

    #[test]
    fn an_error_is_one_line_whatever_its_source_wrote() {
        let error = CliError::failed("first\n  second\r\nthird\n");
        assert_eq!(error.line(), Some("first second third"));
        assert_eq!(error.exit_code(), 1);
    }
}
