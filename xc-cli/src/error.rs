//! The one error type of the program: a line for a person and an exit code.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;
use xc_sparse::atomic::WriteFileError;
use xc_sparse::store::is_control;

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
    /// 1: a panic whose line is already printed.
    Panicked,
}

/// What went wrong and which exit code says so.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    line: String,
}

impl CliError {
    fn new(kind: Kind, line: impl Display) -> Self {
        Self { kind, line: one_line(&without_os_numbers(&line.to_string())) }
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
        Self::new(Kind::Input, format_args!("{}: {}", path.display(), chain(error)))
    }

    /// Exit code 3: something the machine or this build lacks.
    pub(crate) fn missing(line: impl Display) -> Self {
        Self::new(Kind::Missing, line)
    }

    /// An output cannot be begun or put in its place: exit code 2 where the path cannot be (no such folder,
    /// something else in its place), 1 where the system refuses to write there.
    pub(crate) fn unwritable(error: &WriteFileError) -> Self {
        let kind = if error.is_misnamed() { Kind::Input } else { Kind::Failed };
        Self::new(kind, chain(error))
    }

    /// The same of what is written without a partial file.
    pub(crate) fn unwritable_at(path: &Path, error: io::Error) -> Self {
        Self::unwritable(&WriteFileError { path: path.to_owned(), doing: "write", source: error })
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

    pub(crate) fn reported_panic() -> Self {
        Self::new(Kind::Panicked, "")
    }

    /// The same, of a file that it stands in.
    pub(crate) fn within(self, file: &Path) -> Self {
        Self::new(self.kind, format_args!("{}: {}", file.display(), self.line))
    }

    /// The line to print, unless there is nothing to say.
    pub(crate) fn line(&self) -> Option<&str> {
        (!matches!(self.kind, Kind::BrokenPipe | Kind::Panicked)).then_some(&*self.line)
    }

    /// Whether a signal ended the work.
    pub(crate) fn is_interruption(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Failed | Kind::Panicked => 1,
            Kind::Input => 2,
            Kind::Missing => 3,
            Kind::Interrupted => crate::interrupt::exit_code(),
            Kind::BrokenPipe => 0,
        }
    }
}

/// What caused an error, what caused that, and so on.
pub(crate) fn causes<'e>(error: &'e dyn Error) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// An error and what caused it, in one line: control characters in what came from outside are
/// escaped, and a cause that the error itself ends with is said once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let text = causes(error)
        .map(ToString::to_string)
        .fold(error.to_string(), |text, cause| if text.ends_with(&cause) { text } else { format!("{text}: {cause}") });
    without_os_numbers(&escaped(&text))
}

/// Characters of a message, at most: what came from outside may have any length.
const LONGEST: usize = 2000;

/// A message as it is printed: in one line, whatever its sources wrote, without control characters,
/// and without the middle of what is longer than anybody reads.
pub(crate) fn one_line(text: &str) -> String {
    let lines: Vec<_> = text.split(['\n', '\r']).map(str::trim).filter(|s| !s.is_empty()).collect();
    let line = escaped(&lines.join(" "));
    if line.len() <= LONGEST {
        return line;
    }
    let (head, tail) = (line.floor_char_boundary(LONGEST / 2), line.ceil_char_boundary(line.len() - LONGEST / 2));
    format!("{} ... {}", &line[..head], &line[tail..])
}

/// Control characters as they are written in a program: a terminal would obey them.
pub(crate) fn escaped(text: &str) -> String {
    let escape = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Takes every ` (os error 2)` out.
fn without_os_numbers(text: &str) -> String {
    const MARK: &str = " (os error ";
    let mut parts = text.split(MARK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => out.push_str(rest),
            _ => {
                out.push_str(MARK);
                out.push_str(part);
            }
        }
    }
    out
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
    fn a_chain_has_each_link_once_and_no_control_characters() {
        let system = io::Error::from_raw_os_error(2);
        let error = xc_sparse::io::ReadError::path(Path::new("a\nb"), xc_sparse::io::ReadErrorKind::Io(system));
        assert_eq!(chain(&error), "a\\nb: cannot be read: No such file or directory");
    }

    #[test]
    fn a_cause_that_an_error_says_itself_is_not_said_again() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot start: {0}")]
        struct Outer(#[source] io::Error);
        let error = Outer(io::Error::from_raw_os_error(11));
        assert_eq!(chain(&error), "cannot start: Resource temporarily unavailable");
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
    fn a_message_of_any_length_is_short_and_obeyed_by_no_terminal() {
        let line = one_line(&format!("m: \u{1b}[31mred\u{9b} {}é end", "é".repeat(100_000)));
        assert!(line.starts_with("m: \\u{1b}[31mred\\u{9b} é") && line.ends_with("é end"), "{line}");
        assert!(line.len() < 2 * LONGEST && line.contains(" ... "));
        assert_eq!(one_line("a\tb\n c"), "a\\tb c");
    }

    #[test]
    fn an_error_is_one_line_whatever_its_source_wrote() {
        let error = CliError::failed("first\n  second\r\nthird\n");
        assert_eq!(error.line(), Some("first second third"));
        assert_eq!(error.exit_code(), 1);
    }
}
