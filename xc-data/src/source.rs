//! Sources of bytes: files and streams, plain or compressed.

mod gzip;
mod one_a_line;

use super::compression::Compression;
use super::error::{ReadError, ReadErrorKind};
use bzip2::bufread::MultiBzDecoder;
use gzip::GzipMembers;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use one_a_line::{BadJson, OneALine};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// Bytes of a file or stream, decompressed if they are compressed.
pub struct Source {
    name: String,
    compression: Compression,
    reader: Box<dyn BufRead + Send>,
    left_bytes: u64,
    limit_bytes: u64,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).field("compression", &self.compression).finish()
    }
}

// A compressed file may always expand to this, and beyond it to EXPANSION times its size.
const FREE_EXPANSION_BYTES: u64 = 1 << 30;
const EXPANSION: u64 = 200;
const BUFFER_BYTES: usize = 1 << 16;
// Memory of the decoder of xz: four times what `xz -9` asks for.
const XZ_BYTES: u64 = 1 << 28;

/// What a compressed file of this size may expand to unless told otherwise.
pub(crate) fn default_expansion(file_bytes: u64) -> u64 {
    FREE_EXPANSION_BYTES.max(file_bytes.saturating_mul(EXPANSION))
}

impl Source {
    /// Opens a file. `max_expanded_bytes` bounds the decompressed size; the default is the larger of 1
    /// GiB and 200 times the file.
    pub fn open(path: impl AsRef<Path>, max_expanded_bytes: Option<u64>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let fail = |e| ReadError::path(path, ReadErrorKind::Io(e));
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if meta.is_dir() {
            return Err(fail(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let expanded = default_expansion(meta.len());
        Self::from_reader(&path.display().to_string(), file, Some(max_expanded_bytes.unwrap_or(expanded)))
    }

    /// Opens a file for a look at its beginning, which another reader will read again.
    pub(crate) fn open_to_look(path: &Path, max_expanded_bytes: Option<u64>) -> Result<Self, ReadError> {
        // What is looked at is gone from a pipe.
        match std::fs::metadata(path) {
            Ok(meta) if !meta.is_file() && !meta.is_dir() => Err(ReadError::path(path, ReadErrorKind::NotAFile)),
            _ => Self::open(path, max_expanded_bytes),
        }
    }

    /// Wraps a stream; `name` is used in messages. Without `max_expanded_bytes` compressed data may
    /// expand without limit.
    pub fn from_reader(
        name: &str,
        mut reader: impl Read + Send + 'static,
        max_expanded_bytes: Option<u64>,
    ) -> Result<Self, ReadError> {
        let fail = |e| ReadError::file(name, ReadErrorKind::Io(e));
        // Byte by byte, and no further than needed: a pipe may be waiting for an answer to a line
        // of one byte.
        let mut head = Vec::with_capacity(Compression::HEAD_BYTES);
        while Compression::is_open(&head) {
            if (&mut reader).take(1).read_to_end(&mut head).map_err(fail)? == 0 {
                break;
            }
        }
        let compression = Compression::of(&head);
        let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(head).chain(reader));
        let reader: Box<dyn BufRead + Send> = match compression {
            Compression::Plain => Box::new(whole),
            Compression::Gzip => Box::new(BufReader::with_capacity(BUFFER_BYTES, GzipMembers::new(whole))),
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(whole).map_err(fail)?;
                Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
            }
            Compression::Bzip2 => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiBzDecoder::new(whole))),
            Compression::Xz => {
                let stream = Stream::new_stream_decoder(XZ_BYTES, CONCATENATED).map_err(|e| fail(e.into()))?;
                Box::new(BufReader::with_capacity(BUFFER_BYTES, XzDecoder::new_stream(whole, stream)))
            }
        };
        let limit_bytes = match compression {
            Compression::Plain => u64::MAX,
            _ => max_expanded_bytes.unwrap_or(u64::MAX),
        };
        Ok(Self { name: name.to_owned(), compression, reader, left_bytes: limit_bytes, limit_bytes })
    }

    /// Wraps bytes that are not compressed, whatever they look like.
    pub(crate) fn plain(name: String, reader: impl Read + Send + 'static) -> Self {
        let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, reader));
        Self { name, compression: Compression::Plain, reader, left_bytes: u64::MAX, limit_bytes: u64::MAX }
    }

    /// The name that is used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the bytes are compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The bytes as a plain reader; running over the limit on expansion is an error of it.
    pub(crate) fn reading(&mut self) -> impl Read + '_ {
        Reading(self)
    }

    /// Whether the bytes are one JSON object a line, as far as the beginning shows.
    pub(crate) fn holds_one_object_a_line(self) -> bool {
        !OneALine::new(self.reader).look()
    }

    /// The same bytes with JSON objects that fill several lines, and arrays of objects, as one object a
    /// line. Lines are counted so where the file has another form, which its name in messages then says.
    pub(crate) fn one_object_a_line(mut self) -> Self {
        let whole = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        let mut lines = OneALine::new(whole);
        if lines.look() {
            self.name.push_str(" (as one object a line)");
        }
        self.reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, lines));
        self
    }

    pub(crate) fn fail(&self, error: io::Error) -> ReadError {
        if let Some(BadJson { line, problem }) = error.get_ref().and_then(|e| e.downcast_ref()) {
            return ReadError::line(&self.name, *line, ReadErrorKind::Json { problem: (*problem).into() });
        }
        if self.left_bytes == 0 && error.kind() == io::ErrorKind::FileTooLarge {
            return ReadError::file(&self.name, ReadErrorKind::Expands { limit_bytes: self.limit_bytes });
        }
        let damaged = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::InvalidData
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::Other
        );
        let kind = match self.compression {
            Compression::Plain => ReadErrorKind::Io(error),
            compression if damaged => {
                ReadErrorKind::Compressed { compression: compression.name(), source: error.into() }
            }
            _ => ReadErrorKind::Io(error),
        };
        ReadError::file(&self.name, kind)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ReadError> {
        match self.left_bytes.checked_sub(bytes as u64) {
            Some(left) => self.left_bytes = left,
            None => {
                let kind = ReadErrorKind::Expands { limit_bytes: self.limit_bytes };
                return Err(ReadError::file(&self.name, kind));
            }
        }
        Ok(())
    }

    /// Appends up to `bytes` bytes to `into`; gives the number appended, 0 at the end.
    pub(crate) fn append(&mut self, bytes: usize, into: &mut Vec<u8>) -> Result<usize, ReadError> {
        let got = (&mut self.reader).take(bytes as u64).read_to_end(into).map_err(|e| self.fail(e))?;
        self.spend(got)?;
        Ok(got)
    }

    /// What has arrived and is not consumed; waits until there is something, or the end (no bytes).
    pub(crate) fn available(&mut self) -> Result<&[u8], ReadError> {
        // Asked for twice: an error of the first borrow would keep it.
        loop {
            match self.reader.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fail(error)),
            }
        }
        match self.reader.fill_buf() {
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(ReadError::file(&self.name, ReadErrorKind::Io(error))),
        }
    }

    /// Takes bytes of [`Self::available`] out.
    pub(crate) fn consume(&mut self, bytes: usize) -> Result<(), ReadError> {
        self.reader.consume(bytes);
        self.spend(bytes)
    }

    /// Reads one line without its end (`\n` or `\r\n`, and a `\r` at the end of the input) into
    /// `line`; false at the end of the input.
    pub(crate) fn read_line(
        &mut self,
        line: &mut Vec<u8>,
        line_no: u64,
        max_line_bytes: usize,
    ) -> Result<bool, ReadError> {
        line.clear();
        let limit = max_line_bytes as u64 + 2;
        let got = (&mut self.reader).take(limit).read_until(b'\n', line).map_err(|e| self.fail(e))?;
        self.spend(got)?;
        if got == 0 {
            return Ok(false);
        }
        for end in [b'\n', b'\r'] {
            if line.last() == Some(&end) {
                line.pop();
            }
        }
        if line.len() > max_line_bytes {
            let kind = ReadErrorKind::LineTooLong { limit_bytes: max_line_bytes };
            return Err(ReadError::line(&self.name, line_no, kind));
        }
        Ok(true)
    }
}

struct Reading<'a>(&'a mut Source);

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.0.reader.read(buffer)?;
        match self.0.left_bytes.checked_sub(got as u64) {
            Some(left) => self.0.left_bytes = left,
            None => {
                self.0.left_bytes = 0;
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
        }
        Ok(got)
    }
}
