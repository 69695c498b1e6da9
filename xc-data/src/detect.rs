//! Detection of a file's format.

use super::error::{ReadError, ReadErrorKind};
use super::foreign::{ForeignFile, is_named_parquet, is_vowpal_wabbit};
use super::format::Format;
use super::options::ReadOptions;
use super::source::Source;
use std::path::Path;

impl Format {
    /// True where the (decompressed) content alone tells the format without doubt.
    fn is_certain(self) -> bool {
        matches!(self, Self::Jsonl | Self::Npz | Self::Npy)
    }

    /// The format of a file: the one that the options state, otherwise that of its extension (without
    /// `.gz`, `.zst`, `.bz2` and `.xz`), otherwise that of its content.
    ///
    /// Extensions: `jsonl`, `ndjson`; `csv`; `tsv`; `npz`; `npy`; `svm`, `svmlight`, `libsvm`; `ft`,
    /// `fasttext`; `xc`. Others (`txt`) are decided by the first line: see [`Format::of_content`].
    ///
    /// # Errors
    /// A file that cannot be read, is empty, is of a format that is not read, or has no recognisable one.
    pub fn detect(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, ReadError> {
        let path = path.as_ref();
        if let Some(format) = options.form.format.or_else(|| Self::of_name(path)) {
            // No other format has that name.
            if is_named_parquet(path) {
                return Err(ReadError::path(path, ReadErrorKind::Foreign(ForeignFile::Parquet)));
            }
            // What cannot be opened is said by whoever reads it; a pipe is read once.
            let is_text = !matches!(format, Self::Npz | Self::Npy) && path.is_file();
            if let Some(Ok(mut source)) = is_text.then(|| Source::open_to_look(path, None)) {
                let mut head = Vec::new();
                if source.append(64, &mut head).is_ok()
                    && let Some(foreign) = ForeignFile::of_text(&head)
                {
                    return Err(ReadError::path(path, ReadErrorKind::Foreign(foreign)));
                }
            }
            return Ok(format);
        }
        let mut source = Source::open_to_look(path, None)?;
        let mut head = Vec::new();
        source.append(1 << 16, &mut head)?;
        if head.is_empty() {
            let expected = "rows of instances";
            return Err(ReadError::path(path, ReadErrorKind::Empty { expected }));
        }
        if let Some(foreign) = ForeignFile::of_content(&head) {
            return Err(ReadError::path(path, ReadErrorKind::Foreign(foreign)));
        }
        Self::of_content(&head, options).ok_or_else(|| {
            let is_vw = is_vowpal_wabbit(first_line(&head));
            let kind =
                if is_vw { ReadErrorKind::Foreign(ForeignFile::VowpalWabbit) } else { ReadErrorKind::UnknownFormat };
            ReadError::path(path, kind)
        })
    }

    /// The format of a file with this (decompressed) beginning: npz and npy by their magic bytes, JSONL
    /// by an opening brace, fastText by a label in its first line, XC text by a header or a colon, CSV
    /// and TSV by a header that names one of [`ReadOptions::form`]. svmlight looks like headerless XC
    /// text and is never detected, except by its `qid:` or `#`, or if it is
    /// [`FileForm::usual_format`](super::FileForm::usual_format), which takes precedence unless the content is JSONL, npz or npy, or
    /// has the header of XC text.
    pub fn of_content(head: &[u8], options: &ReadOptions) -> Option<Self> {
        let shown = Self::shown_by(head, options);
        let usual = options.form.usual_format.filter(|format| !format.is_certain());
        match shown {
            Some(shown) if shown.is_certain() => Some(shown),
            // No row of svmlight looks like the header of XC text.
            Some(Self::Xc) if usual == Some(Self::Svmlight) && is_xc_header(first_line(head)) => shown,
            shown => usual.or(shown),
        }
    }

    fn shown_by(head: &[u8], options: &ReadOptions) -> Option<Self> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        if head.starts_with(b"PK\x03\x04") {
            return Some(Self::Npz);
        }
        if head.starts_with(b"\x93NUMPY") {
            return Some(Self::Npy);
        }
        let line = first_line(head);
        if line.first() == Some(&b'{') || line.trim_ascii_start().first() == Some(&b'[') {
            return Some(Self::Jsonl);
        }
        let label = super::FASTTEXT_PREFIX.as_bytes();
        if line.split(u8::is_ascii_whitespace).any(|t| t.starts_with(label)) {
            return Some(Self::FastText);
        }
        if line.starts_with(b"#") || super::entries::tokens(line).any(|t| t.starts_with(b"qid:") || t.starts_with(b"#"))
        {
            return Some(Self::Svmlight);
        }
        let rows = || line.contains(&b':') && line.iter().all(|b| b" \t,.:+-eE".contains(b) || b.is_ascii_digit());
        if is_xc_header(line) || rows() {
            return Some(Self::Xc);
        }
        [Self::Csv, Self::Tsv].into_iter().find(|format| names_fields(line, *format, options))
    }
}

fn first_line(head: &[u8]) -> &[u8] {
    let line = head.split(|&b| b == b'\n').next().unwrap_or(head);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_xc_header(line: &[u8]) -> bool {
    super::entries::numbers(line).is_some_and(|n| n.len() == 2 || n.len() == 3)
}

/// Whether a line is the header of a table with a text or label column.
fn names_fields(line: &[u8], format: Format, options: &ReadOptions) -> bool {
    let fields = &options.form;
    let given = options.form.delimiter;
    let Some(delimiter) = format.delimiter(given).filter(|delimiter| line.contains(delimiter)) else { return false };
    let unquoted = |name: &[u8]| name.strip_prefix(b"\"").and_then(|n| n.strip_suffix(b"\"")).unwrap_or(name).to_vec();
    let mut columns = line.split(|b| *b == delimiter).map(unquoted);
    let names = || fields.texts().iter().chain(fields.indicators()).map(String::as_str).chain([fields.labels()]);
    columns.any(|column| names().any(|name| name.as_bytes() == column))
}
