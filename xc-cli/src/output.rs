//! Output files: written beside their place and renamed when whole, so that nothing half-written is ever seen.

use crate::error::{CliError, io_text};
use crate::interrupt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

const BUFFER_BYTES: usize = 1 << 18;

/// Where a command writes: stdout, a device or pipe, or a file that appears only when it is whole.
pub(crate) struct Output {
    sink: Sink,
    name: String,
}

enum Sink {
    Stdout(BufWriter<io::Stdout>),
    /// Devices and pipes cannot be renamed over.
    Direct(BufWriter<File>),
    Atomic {
        writer: BufWriter<NamedTempFile>,
        path: PathBuf,
    },
}

impl Output {
    /// Opens `path`, or stdout for `-`. A regular file stays as it was until [`Output::commit`].
    ///
    /// # Errors
    /// The folder is absent or not writable, or `path` is a folder.
    pub(crate) fn create(path: &Path) -> Result<Self, CliError> {
        if path == Path::new("-") {
            let writer = BufWriter::with_capacity(BUFFER_BYTES, io::stdout());
            return Ok(Self { sink: Sink::Stdout(writer), name: "standard output".to_owned() });
        }
        let name = path.display().to_string();
        let failed = |e: &io::Error| CliError::failed(format_args!("{name}: cannot write: {}", io_text(e)));
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(CliError::usage(format_args!("{name}: is a folder; a file name is wanted")));
            }
            Ok(meta) if !meta.is_file() => {
                let file = File::options().write(true).open(path).map_err(|e| failed(&e))?;
                return Ok(Self { sink: Sink::Direct(BufWriter::with_capacity(BUFFER_BYTES, file)), name });
            }
            // A file that may not be written is refused even though its folder would allow the rename.
            Ok(_) => drop(File::options().append(true).open(path).map_err(|e| failed(&e))?),
            Err(_) => {}
        }
        // A link keeps pointing where it pointed: its target is what is replaced.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".xc-").suffix(".partial");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666)); // less the umask, like any new file
        }
        let file = builder.tempfile_in(folder).map_err(|e| failed(&e))?;
        interrupt::remember(file.path());
        Ok(Self { sink: Sink::Atomic { writer: BufWriter::with_capacity(BUFFER_BYTES, file), path }, name })
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
        if let Sink::Atomic { writer, path } = self.sink {
            let failed = |e: &io::Error| CliError::write(&self.name, e);
            let file = writer.into_inner().map_err(|e| failed(e.error()))?;
            file.as_file().sync_all().map_err(|e| failed(&e))?;
            let temporary = file.path().to_owned();
            file.persist(&path).map_err(|e| failed(&e.error))?;
            interrupt::forget(&temporary);
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Stdout(w) => w.write(bytes),
            Sink::Direct(w) => w.write(bytes),
            Sink::Atomic { writer, .. } => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Stdout(w) => w.flush(),
            Sink::Direct(w) => w.flush(),
            Sink::Atomic { writer, .. } => writer.flush(),
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
    std::fs::create_dir_all(path)
        .map_err(|e| CliError::failed(format_args!("{}: cannot make the folder: {}", path.display(), io_text(&e))))
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
        assert!(error.line().unwrap().starts_with("/dev/full: cannot write: no space left"), "{error:?}");
    }
}
