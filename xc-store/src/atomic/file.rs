//! Single files.

use super::{Partial, WriteFileError, failed};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 18;

/// A file that appears under its name only when complete; see [`atomic`](super).
///
/// A file that was there keeps its permissions, and is refused when it may not be written. A
/// symbolic link is followed; one to nothing is replaced. A device or pipe is written directly,
/// since it cannot be replaced.
#[derive(Debug)]
pub struct OutputFile {
    name: PathBuf,
    writer: BufWriter<File>,
    /// What is renamed, and to which path; nothing for a device or pipe.
    replace: Option<(Partial, PathBuf)>,
}

impl OutputFile {
    /// Begins a file that will be at `path`.
    ///
    /// # Errors
    /// The folder is missing or not writable; `path` is a folder, or a file that may not be
    /// written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, WriteFileError> {
        let path = path.as_ref();
        let (file, replace) = open(path).map_err(failed(path, "write"))?;
        Ok(Self { name: path.to_owned(), writer: BufWriter::with_capacity(BUFFER_BYTES, file), replace })
    }

    /// Writes out what is buffered, syncs, and puts the file under its name.
    ///
    /// # Errors
    /// Disk full and the like; the target is then as it was.
    pub fn commit(self) -> Result<(), WriteFileError> {
        let fail = || failed(&self.name, "write");
        let file = self.writer.into_inner().map_err(|e| fail()(e.into_error()))?;
        let Some((mut partial, path)) = self.replace else { return Ok(()) };
        file.sync_all().map_err(fail())?;
        partial.rename_to(&path)
    }
}

fn open(path: &Path) -> io::Result<(File, Option<(Partial, PathBuf)>)> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let permissions = match fs::metadata(&path) {
        Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_file() => {
            File::options().append(true).open(&path)?;
            Some(found.permissions())
        }
        Ok(_) => return Ok((File::options().write(true).open(&path)?, None)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let (partial, file) = Partial::beside(&path, |path| File::create_new(path))?;
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
    Ok((file, Some((partial, path))))
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.writer.seek(to)
    }
}

/// Writes a whole file: `fill` gets the writer, and the file appears when it returns `Ok`.
///
/// # Errors
/// Those of [`OutputFile`], or of `fill`.
pub fn write_file(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut OutputFile) -> io::Result<()>,
) -> Result<(), WriteFileError> {
    let path = path.as_ref();
    let mut file = OutputFile::create(path)?;
    fill(&mut file).map_err(failed(path, "write"))?;
    file.commit()
}
