//! Where commands write: stdout, or files that appear only when they are whole.

use crate::closed::stdout_was_closed;
use crate::error::CliError;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use xc_store::atomic::OutputFile;
use xc_train::fit::{self, check_file};

const BUFFER_BYTES: usize = 1 << 18;

/// Stdout, a device or pipe, or a file that is replaced by [`Output::commit`].
pub(crate) struct Output {
    sink: Sink,
    name: String,
}

enum Sink {
    Stdout(BufWriter<io::Stdout>),
    File(Box<OutputFile>),
}

impl Output {
    /// Opens `path`, or stdout for `-`. A regular file stays as it was until [`Output::commit`].
    ///
    /// # Errors
    /// The folder is absent or not writable, or `path` is a folder or has the name of a compressed file; the program was
    /// started without a stdout.
    pub(crate) fn create(path: &Path) -> Result<Self, CliError> {
        if path == Path::new("-") {
            if stdout_was_closed() {
                return Err(CliError::failed("standard output: cannot write: it is closed"));
            }
            let writer = BufWriter::with_capacity(BUFFER_BYTES, io::stdout());
            return Ok(Self { sink: Sink::Stdout(writer), name: "standard output".to_owned() });
        }
        refuse_compressed(path)?;
        let name = path.display().to_string();
        let file = OutputFile::create(path).map_err(|e| match e.source.kind() {
            io::ErrorKind::IsADirectory => {
                CliError::usage(format_args!("{name}: is a folder; a file name is expected"))
            }
            _ => CliError::unwritable(&e),
        })?;
        Ok(Self { sink: Sink::File(Box::new(file)), name })
    }

    /// Refuses to write bytes that are no text to a terminal; `what` they are.
    ///
    /// # Errors
    /// `path` is stdout, and stdout is a terminal, or `path` is the terminal itself.
    pub(crate) fn refuse_terminal(path: &Path, what: &str) -> Result<(), CliError> {
        let name = path.to_str().unwrap_or_default();
        let is_stdout = matches!(name, "-" | "/dev/stdout" | "/dev/fd/1") && io::stdout().is_terminal();
        if is_stdout || name == "/dev/tty" {
            return Err(CliError::usage(format_args!(
                "{what} is binary and is not written to a terminal; a file is expected"
            )));
        }
        Ok(())
    }

    /// Where this writes, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes bytes; the error names the file.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.write_all(bytes).map_err(|e| CliError::write(&self.name, &e))
    }

    /// Sends what is buffered on its way (for answers that are awaited line by line).
    pub(crate) fn send(&mut self) -> Result<(), CliError> {
        self.flush().map_err(|e| CliError::write(&self.name, &e))
    }

    /// Finishes: flushes, syncs and puts the file in its place.
    pub(crate) fn commit(mut self) -> Result<(), CliError> {
        self.send()?;
        match self.sink {
            Sink::Stdout(_) => Ok(()),
            Sink::File(file) => file.commit().map_err(|e| CliError::write(&self.name, &e.source)),
        }
    }
}

/// Refuses a file that cannot be written, before the work whose result it is to hold: nothing is changed.
///
/// # Errors
/// As [`Output::create`].
pub(crate) fn check(path: &Path) -> Result<(), CliError> {
    if path == Path::new("-") {
        return Output::create(path).map(drop);
    }
    refuse_compressed(path)?;
    Ok(check_file(path)?)
}

/// Programs that compress, by the ends of the names of their files.
const COMPRESSED: [(&str, &str); 4] = [("gz", "gzip"), ("zst", "zstd"), ("xz", "xz"), ("bz2", "bzip2")];

/// Refuses a name that says that the file is compressed: none is.
fn refuse_compressed(path: &Path) -> Result<(), CliError> {
    let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
    match COMPRESSED.iter().find(|(of, _)| end.as_deref() == Some(of)) {
        Some((_, program)) => Err(CliError::usage(format_args!(
            "{}: files are not written compressed; a name without .{} is expected, or - piped through {program}",
            path.display(),
            end.unwrap_or_default()
        ))),
        None => Ok(()),
    }
}

/// The same of a file whose folder is made where there is none.
///
/// # Errors
/// As [`check`] and [`make_folder`].
pub(crate) fn check_in_folder(path: &Path) -> Result<(), CliError> {
    Ok(fit::check_in_folder(path)?)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Stdout(w) => w.write(bytes),
            Sink::File(w) => w.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Stdout(w) => w.flush(),
            Sink::File(w) => w.flush(),
        }
    }
}

/// Writes one block of text to stdout (reports, JSON).
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = Output::create(Path::new("-"))?;
    out.put(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.put(b"\n")?;
    }
    out.commit()
}

/// Makes an output folder, and its parents, unless it is there.
pub(crate) fn make_folder(path: &Path) -> Result<(), CliError> {
    Ok(fit::make_folder(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_only_when_committed_and_an_abandoned_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "old").unwrap();
        let mut abandoned = Output::create(&path).unwrap();
        abandoned.put(b"new").unwrap();
        drop(abandoned);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        let mut out = Output::create(&path).unwrap();
        out.put(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        out.commit().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_is_exit_code_1() {
        let mut out = Output::create(Path::new("/dev/full")).unwrap();
        out.put(b"x").unwrap(); // still in the buffer
        let error = out.commit().unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.line().unwrap().starts_with("/dev/full: cannot write: No space left"), "{error:?}");
    }
}
