//! Files being written: complete under their name, or not there at all.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// An output that could not be written.
#[derive(Debug)]
pub struct WriteFileError {
    file: String,
    source: io::Error,
}

impl WriteFileError {
    /// Names the file that `source` is about.
    pub fn new(file: &str, source: io::Error) -> Self {
        Self { file: file.to_owned(), source }
    }

    /// What the operating system said.
    pub fn io(&self) -> &io::Error {
        &self.source
    }

    /// True when whoever read our output has gone: not a failure for a program that writes to a pipe.
    pub fn is_broken_pipe(&self) -> bool {
        self.source.kind() == io::ErrorKind::BrokenPipe
    }
}

impl fmt::Display for WriteFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot be written: {}", self.file, self.source)
    }
}

impl std::error::Error for WriteFileError {}

/// A file that appears under its name when it is complete.
///
/// Bytes go to a temporary file in the same folder; [`OutputFile::commit`] syncs it and renames it over the target,
/// keeping the permissions of a file that was there. Dropped before that, the target is as it was. A symbolic link is
/// followed; a device or pipe is written directly, since it cannot be replaced.
#[derive(Debug)]
pub struct OutputFile {
    name: String,
    into: Target,
}

#[derive(Debug)]
enum Target {
    Replace { writer: BufWriter<NamedTempFile>, path: PathBuf },
    Direct(BufWriter<File>),
}

const BUFFER_BYTES: usize = 1 << 18;

impl OutputFile {
    /// Begins a file that will stand at `path`.
    ///
    /// # Errors
    /// The folder is missing or not writable, or `path` is a folder.
    pub fn create(path: &Path) -> Result<Self, WriteFileError> {
        let name = path.display().to_string();
        let fail = |source| WriteFileError { file: name.clone(), source };
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let present = match fs::metadata(&path) {
            Ok(meta) => Some(meta),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(fail(e)),
        };
        if let Some(meta) = &present {
            if meta.is_dir() {
                return Err(fail(io::Error::from(io::ErrorKind::IsADirectory)));
            }
            if !meta.is_file() {
                let file = File::options().write(true).open(&path).map_err(fail)?;
                let into = Target::Direct(BufWriter::with_capacity(BUFFER_BYTES, file));
                return Ok(Self { name, into });
            }
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let temporary = new_temporary(folder).map_err(fail)?;
        if let Some(meta) = present {
            temporary.as_file().set_permissions(meta.permissions()).map_err(fail)?;
        }
        let writer = BufWriter::with_capacity(BUFFER_BYTES, temporary);
        Ok(Self { name, into: Target::Replace { writer, path } })
    }

    /// Writes out what is buffered, syncs, and puts the file under its name.
    ///
    /// # Errors
    /// Disk full and the like; the target is then as it was.
    pub fn commit(self) -> Result<(), WriteFileError> {
        let fail = |source| WriteFileError { file: self.name.clone(), source };
        match self.into {
            Target::Direct(mut writer) => writer.flush().map_err(fail),
            Target::Replace { writer, path } => {
                let temporary = writer.into_inner().map_err(|e| fail(e.into_error()))?;
                temporary.as_file().sync_all().map_err(fail)?;
                temporary.persist(&path).map_err(|e| fail(e.error))?;
                // The name is safe only once the folder is: a file system that cannot sync folders is no failure.
                if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
                    _ = File::open(folder).and_then(|f| f.sync_all());
                }
                Ok(())
            }
        }
    }

    /// The error of this file for `source`.
    pub fn error(&self, source: io::Error) -> WriteFileError {
        WriteFileError { file: self.name.clone(), source }
    }
}

#[cfg(unix)]
fn new_temporary(folder: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    // The umask takes its part off, as for any new file.
    tempfile::Builder::new().prefix(".xc-").permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder)
}

#[cfg(not(unix))]
fn new_temporary(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".xc-").tempfile_in(folder)
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.into {
            Target::Replace { writer, .. } => writer.write(bytes),
            Target::Direct(writer) => writer.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.into {
            Target::Replace { writer, .. } => writer.flush(),
            Target::Direct(writer) => writer.flush(),
        }
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.into {
            Target::Replace { writer, .. } => writer.seek(to),
            Target::Direct(writer) => writer.seek(to),
        }
    }
}

/// Writes a whole file: `fill` gets the writer, and the file appears when it returns `Ok`.
///
/// # Errors
/// What [`OutputFile`] or `fill` met.
pub fn write_file(path: &Path, fill: impl FnOnce(&mut OutputFile) -> io::Result<()>) -> Result<(), WriteFileError> {
    let mut file = OutputFile::create(path)?;
    fill(&mut file).map_err(|e| file.error(e))?;
    file.commit()
}

/// Appends a whole number.
#[inline]
pub(crate) fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the shortest digits that read back as the same `f32`; whole numbers have no point.
#[inline]
pub fn push_f32(out: &mut Vec<u8>, value: f32) {
    if !value.is_finite() {
        _ = write!(out, "{value}");
        return;
    }
    // Counts are the usual whole values.
    if (0.0..1e7).contains(&value) && value.fract() == 0.0 && !(value == 0.0 && value.is_sign_negative()) {
        push_u64(out, value as u64);
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let digits = buffer.format_finite(value);
    out.extend_from_slice(digits.strip_suffix(".0").unwrap_or(digits).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: f32) -> String {
        let mut out = Vec::new();
        push_f32(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn digits_read_back_as_the_same_value_and_are_no_longer_than_the_standard_ones(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(!value.is_nan());
            let text = text(value);
            prop_assert_eq!(text.parse::<f32>().unwrap().to_bits(), bits);
            let digits = |t: &str| t.split(['e', 'E']).next().unwrap().trim_start_matches('-').replace('.', "").trim_matches('0').len();
            let standard = format!("{value:e}");
            prop_assert!(digits(&text) <= digits(&standard), "{} against {}", text, standard);
        }
    }

    #[test]
    fn whole_values_have_no_point() {
        let written: Vec<String> =
            [0.0, -0.0, 1.0, -3.0, 0.5, 1e6, 1e7, 16777216.0, 1e30, 1e-30, f32::MAX, f32::INFINITY].map(text).into();
        assert_eq!(
            written,
            ["0", "-0", "1", "-3", "0.5", "1000000", "10000000", "16777216", "1e+30", "1e-30", "3.4028235e+38", "inf"]
        );
    }
}
