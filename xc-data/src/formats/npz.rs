//! scipy's sparse matrix archives: a zip of `.npy` members.
//!
//! ```text
//!   indices.npy  <i4 | <i8   ids of each row (csr) or column (csc)         coo instead: row.npy, col.npy, data.npy
//!   indptr.npy   <i4 | <i8   where rows or columns begin
//!   format.npy   |S3         csr, csc
//!   shape.npy    <i8         rows, columns
//!   data.npy     <f4 ...     values
//! ```
//!
//! Members are read stored or deflated, and written stored, in this order, with their sizes in the local
//! headers (some readers use only those and do not support data descriptors). The specification is
//! `docs/formats/npz.md`.

use super::npy::{self, Entry, NpyError, NpyHeader};
use crate::compression::Compression;
use crate::error::{ArrayProblem, ReadError, ReadErrorKind, Snippet};
use crate::foreign::ForeignFile;
use crate::options::ReadOptions;
use crate::row::MAX_IDS;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use xc_sparse::rows::{CsrMatrix, CsrView, group_by, sort_row};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// How a matrix is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NpzLayout {
    /// By rows.
    Csr,
    /// By columns.
    Csc,
}

/// A sparse matrix as stored in its file: entries of a row (or column) in the order of the file, zeros
/// kept.
///
/// # Invariants
/// `indptr` ascends from 0 to `indices.len() == values.len()` and has one entry more than rows (csr) or
/// columns (csc); ids are below the other dimension; values are finite.
#[derive(Clone, Debug, PartialEq)]
pub struct NpzMatrix {
    /// By rows or by columns.
    pub layout: NpzLayout,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Starts of the rows (csr) or columns (csc).
    pub indptr: Vec<usize>,
    /// Ids of columns (csr) or rows (csc).
    pub indices: Vec<u32>,
    /// Values.
    pub values: Vec<f32>,
}

// Ids of the smaller side are u32, and row pointers of a transposed matrix are allocated from the
// shape alone, which must therefore stand in some relation to the entries that are really there.
const FREE_ROWS: u64 = 1 << 20;
const ROWS_PER_ENTRY: u64 = 1 << 10;

struct Archive<'a> {
    file: &'a str,
    zip: ZipArchive<BufReader<File>>,
    left_bytes: u64,
    limit_bytes: u64,
}

impl<'a> Archive<'a> {
    fn open(path: &Path, file: &'a str, options: &ReadOptions) -> Result<Self, ReadError> {
        let fail = |e| ReadError::file(file, ReadErrorKind::Io(e));
        let opened = File::open(path).map_err(fail)?;
        let meta = opened.metadata().map_err(fail)?;
        if meta.is_dir() {
            return Err(fail(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if meta.len() == 0 {
            return Err(ReadError::file(file, ReadErrorKind::Empty { expected: EXPECTED }));
        }
        let limit_bytes = options.max_expanded_bytes.unwrap_or_else(|| crate::source::default_expansion(meta.len()));
        let mut opened = BufReader::new(opened);
        if let Some(compression) = Compression::around(&mut opened).map_err(fail)? {
            return Err(ReadError::file(file, ReadErrorKind::Wrapped { format: "npz", compression }));
        }
        let zip = ZipArchive::new(opened).map_err(|e| zip_error(file, e))?;
        let mut again = BufReader::new(File::open(path).map_err(fail)?);
        if let Some(name) = repeated_member(&mut again, zip.central_directory_start()).map_err(|e| damaged(file, e))? {
            return Err(ReadError::file(file, ReadErrorKind::RepeatedMember { got: Snippet::new(&name) }));
        }
        Ok(Self { file, zip, left_bytes: limit_bytes, limit_bytes })
    }

    fn has(&self, member: &str) -> bool {
        self.zip.index_for_name(member).is_some()
    }

    /// Opens a member and reads its header; `read` gets the header and the entries that follow.
    fn member<T>(
        &mut self,
        member: &'static str,
        read: impl FnOnce(&mut dyn Read, NpyHeader) -> Result<T, NpyError>,
    ) -> Result<T, ReadError> {
        let (file, limit_bytes) = (self.file, self.limit_bytes);
        let opened = match self.zip.by_name(member) {
            Ok(opened) => opened,
            Err(ZipError::FileNotFound) => {
                return Err(ReadError::file(file, ReadErrorKind::MissingMember { member, expected: EXPECTED }));
            }
            Err(e) => return Err(zip_error(file, e)),
        };
        let allowance = self.left_bytes;
        // One byte more than allowed may pass, so that running into the limit is seen.
        let mut reader = BufReader::with_capacity(1 << 16, opened.take(allowance.saturating_add(1)));
        let outcome = NpyHeader::read(&mut reader).and_then(|header| read(&mut reader, header));
        let unread = reader.into_inner().limit();
        if unread == 0 {
            return Err(ReadError::file(file, ReadErrorKind::Expands { limit_bytes }));
        }
        self.left_bytes = unread - 1;
        outcome.map_err(|error| match error {
            NpyError::Problem(problem) => ReadError::file(file, ReadErrorKind::Array { array: member.into(), problem }),
            NpyError::Io(error) => damaged(file, error),
        })
    }

    fn list<T: Entry>(&mut self, member: &'static str) -> Result<Vec<T>, ReadError> {
        self.member(member, |reader, header| {
            if header.shape.len() != 1 {
                let got = format!("{:?}", header.shape).into();
                return Err(NpyError::Problem(ArrayProblem::Shape { got, expected: "one dimension".into() }));
            }
            let mut out = Vec::new();
            npy::read_entries(&mut { reader }, &header, |entry| out.push(entry))?;
            Ok(out)
        })
    }

    // The one string in format.npy: bytes, or UTF-32 as older writers have it.
    fn format(&mut self) -> Result<String, ReadError> {
        self.member("format.npy", |reader, header| {
            let unknown = |text: &str| ArrayProblem::Entry {
                at: 0,
                got: format!("{text:?}").into(),
                expected: "csr, csc or coo".into(),
            };
            let strange = !header.shape.is_empty() || !matches!(header.kind, b'S' | b'U');
            if strange || header.item_bytes > 64 {
                return Err(NpyError::Problem(unknown("not a short string")));
            }
            let bytes_each = if header.kind == b'U' { 4 } else { 1 };
            let mut text = String::new();
            let mut bytes = Vec::new();
            reader.take((header.item_bytes * bytes_each) as u64).read_to_end(&mut bytes)?;
            for unit in bytes.chunks_exact(bytes_each) {
                let position = if header.big_endian { bytes_each - 1 } else { 0 };
                text.push(char::from(unit[position]));
            }
            let text = text.trim_end_matches('\0').to_owned();
            match text.as_str() {
                "csr" | "csc" | "coo" => Ok(text),
                other => Err(NpyError::Problem(unknown(other))),
            }
        })
    }

    fn wrong(&self, member: &str, at: usize, got: impl ToString, expected: impl Into<String>) -> ReadError {
        let problem = ArrayProblem::Entry { at, got: got.to_string().into(), expected: expected.into().into() };
        ReadError::file(self.file, ReadErrorKind::Array { array: member.into(), problem })
    }

    fn length(&self, member: &str, got: usize, expected: String) -> ReadError {
        let problem = ArrayProblem::Shape { got: format!("[{got}]").into(), expected: expected.into() };
        ReadError::file(self.file, ReadErrorKind::Array { array: member.into(), problem })
    }
}

/// A name that two members of an archive have, as numpy names them (without `.npy`): which of them is
/// read depends on the reader. The directory of the archive begins at `start`.
fn repeated_member(file: &mut (impl Read + Seek), start: u64) -> io::Result<Option<Vec<u8>>> {
    file.seek(SeekFrom::Start(start))?;
    let mut names = HashSet::new();
    loop {
        let mut head = [0u8; 46];
        match file.read_exact(&mut head) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        if &head[..4] != b"PK\x01\x02" {
            return Ok(None);
        }
        let length = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let mut name = vec![0u8; length(28) as usize];
        file.read_exact(&mut name)?;
        let skipped = (length(30) + length(32)) as i64;
        file.seek(SeekFrom::Current(skipped))?;
        let key = name.strip_suffix(b".npy").unwrap_or(&name).to_vec();
        if !names.insert(key) {
            return Ok(Some(name));
        }
    }
}

const EXPECTED: &str = "a sparse matrix as scipy.sparse.save_npz writes it";

fn zip_error(file: &str, error: ZipError) -> ReadError {
    match error {
        ZipError::Io(error) => damaged(file, error),
        other => ReadError::file(file, ReadErrorKind::Compressed { compression: "zip", source: other.into() }),
    }
}

fn damaged(file: &str, error: io::Error) -> ReadError {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    let kind = match error.kind() {
        UnexpectedEof | InvalidData | InvalidInput | Other => {
            ReadErrorKind::Compressed { compression: "zip", source: error.into() }
        }
        _ => ReadErrorKind::Io(error),
    };
    ReadError::file(file, kind)
}

/// Reads a sparse matrix (csr, csc, or coo which becomes csr) as stored in its file.
///
/// # Errors
/// A damaged archive, missing members, unsupported types, row pointers that decrease, ids out of range,
/// values that f32 cannot hold, an archive that expands beyond [`ReadOptions::max_expanded_bytes`].
pub fn read_npz(path: impl AsRef<Path>, options: &ReadOptions) -> Result<NpzMatrix, ReadError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let mut archive = Archive::open(path, &file, options)?;
    if !archive.has("format.npy") && !archive.has("indptr.npy") && !archive.has("data.npy") && !archive.zip.is_empty() {
        return Err(ReadError::file(&file, ReadErrorKind::Foreign(ForeignFile::Savez)));
    }
    if !archive.has("format.npy") && archive.has("indptr.npy") {
        let kind = ReadErrorKind::MissingMember { member: "format.npy", expected: EXPECTED };
        return Err(ReadError::file(&file, kind));
    }
    let format = archive.format()?;
    let shape: Vec<u64> = archive.list("shape.npy")?;
    let [rows, columns] = shape[..] else {
        return Err(archive.length("shape.npy", shape.len(), "[2]".into()));
    };
    let values: Vec<f32> = archive.list("data.npy")?;
    if format == "coo" {
        return read_coo(archive, rows, columns, values);
    }
    let layout = if format == "csr" { NpzLayout::Csr } else { NpzLayout::Csc };
    let (outer, inner) = if layout == NpzLayout::Csr { (rows, columns) } else { (columns, rows) };
    let indices = ids(&mut archive, "indices.npy", inner, values.len())?;
    let indptr: Vec<u64> = archive.list("indptr.npy")?;
    if indptr.len() as u64 != outer.saturating_add(1) {
        let expected = format!("[{}]: one entry more than the shape's {outer}", outer.saturating_add(1));
        return Err(archive.length("indptr.npy", indptr.len(), expected));
    }
    if indptr[0] != 0 {
        return Err(archive.wrong("indptr.npy", 0, indptr[0], "0"));
    }
    if let Some(at) = indptr.windows(2).position(|w| w[0] > w[1]) {
        let expected = format!("at least {}, the entry before", indptr[at]);
        return Err(archive.wrong("indptr.npy", at + 1, indptr[at + 1], expected));
    }
    let last = indptr[indptr.len() - 1];
    if last != values.len() as u64 {
        let expected = format!("{}, the number of values", values.len());
        return Err(archive.wrong("indptr.npy", indptr.len() - 1, last, expected));
    }
    let indptr = indptr.into_iter().map(|p| p as usize).collect();
    Ok(NpzMatrix { layout, rows: rows as usize, columns: columns as usize, indptr, indices, values })
}

/// The values of [`read_npz`], in the same order, as f64.
pub(crate) fn read_npz_values(path: &Path, options: &ReadOptions) -> Result<Vec<f64>, ReadError> {
    let file = path.display().to_string();
    let mut archive = Archive::open(path, &file, options)?;
    let values: Vec<f64> = archive.list("data.npy")?;
    if archive.format()? != "coo" {
        return Ok(values);
    }
    let shape: Vec<u64> = archive.list("shape.npy")?;
    let rows: Vec<u32> = archive.list("row.npy")?;
    let n_rows = shape.first().map_or(0, |&n| n as usize);
    Ok(group_by(n_rows, rows.into_iter().zip(values)).into_parts().1)
}

fn ids(archive: &mut Archive<'_>, member: &'static str, below: u64, n_values: usize) -> Result<Vec<u32>, ReadError> {
    if below > MAX_IDS {
        return Err(archive.wrong("shape.npy", 0, below, "at most 4294967295 for ids of 32 bits"));
    }
    let ids: Vec<u32> = archive.list(member)?;
    if ids.len() != n_values {
        return Err(archive.length(member, ids.len(), format!("[{n_values}]: one for each value")));
    }
    match ids.iter().position(|&id| u64::from(id) >= below) {
        Some(at) => Err(archive.wrong(member, at, ids[at], format!("an id below {below} (said by the shape)"))),
        None => Ok(ids),
    }
}

fn check_outer(archive: &Archive<'_>, outer: u64, n_values: usize) -> Result<(), ReadError> {
    let most = FREE_ROWS + ROWS_PER_ENTRY.saturating_mul(n_values as u64);
    if outer > most {
        let expected = format!("at most {most} for {n_values} entries that are not by rows");
        return Err(archive.wrong("shape.npy", 0, outer, expected));
    }
    Ok(())
}

fn read_coo(mut archive: Archive<'_>, rows: u64, columns: u64, values: Vec<f32>) -> Result<NpzMatrix, ReadError> {
    check_outer(&archive, rows, values.len())?;
    let row_ids = ids(&mut archive, "row.npy", rows, values.len())?;
    let column_ids = ids(&mut archive, "col.npy", columns, values.len())?;
    let entries = column_ids.into_iter().zip(values).collect::<Vec<_>>();
    let pairs = row_ids.iter().copied().zip(entries.iter().copied());
    let (indptr, entries) = group_by(rows as usize, pairs).into_parts();
    let (indices, values) = entries.into_iter().unzip();
    let (rows, columns) = (rows as usize, columns as usize);
    Ok(NpzMatrix { layout: NpzLayout::Csr, rows, columns, indptr, indices, values })
}

impl NpzMatrix {
    /// Sorts each row (or column), adds up the entries of a repeated id as scipy does, and drops zeros.
    ///
    /// # Errors
    /// `(row, id)` of repeated entries in a row (or column) whose sum f32 cannot hold.
    fn into_sorted(mut self) -> Result<Self, (usize, u32)> {
        let mut order: Vec<(u32, f32)> = Vec::new();
        let mut kept = 0;
        let mut start = 0;
        for row in 0..self.indptr.len() - 1 {
            let range = start..self.indptr[row + 1];
            start = range.end;
            let (indices, values) = (&mut self.indices[range.clone()], &mut self.values[range.clone()]);
            if sort_row(indices, values, &mut order).is_err() {
                let n = add_repeated(indices, values, &mut order).map_err(|id| (row, id))?;
                values[n..].fill(0.0);
            }
            for i in range {
                if self.values[i] != 0.0 {
                    self.indices[kept] = self.indices[i];
                    self.values[kept] = self.values[i];
                    kept += 1;
                }
            }
            self.indptr[row + 1] = kept;
        }
        self.indices.truncate(kept);
        self.values.truncate(kept);
        Ok(self)
    }
}

/// Sorts entries by id and adds up those of one id, in f64; gives how many are left, at the front.
fn add_repeated(indices: &mut [u32], values: &mut [f32], order: &mut Vec<(u32, f32)>) -> Result<usize, u32> {
    order.clear();
    order.extend(indices.iter().copied().zip(values.iter().copied()));
    // Stable: the sum does not depend on how equal ids are sorted.
    order.sort_by_key(|&(id, _)| id);
    let mut n = 0;
    for entries in order.chunk_by(|a, b| a.0 == b.0) {
        let sum = entries.iter().map(|&(_, value)| f64::from(value)).sum::<f64>() as f32;
        if !sum.is_finite() {
            return Err(entries[0].0);
        }
        (indices[n], values[n]) = (entries[0].0, sum);
        n += 1;
    }
    Ok(n)
}

/// Reads a sparse matrix of any layout by rows, without zeros. Entries of one place are added up.
///
/// # Errors
/// As [`read_npz`]; entries of one place whose sum f32 cannot hold; by columns, a number of rows that is
/// out of proportion to the entries.
pub fn read_npz_matrix(path: impl AsRef<Path>, options: &ReadOptions) -> Result<CsrMatrix, ReadError> {
    let path = path.as_ref();
    by_rows(path, read_npz(path, options)?)
}

/// As [`read_npz_matrix`], of a matrix whose entries above 0 are labels, and the number of them that are not 1.
///
/// # Errors
/// As [`read_npz_matrix`]; an entry below 0, which some write where a label is not true.
pub(crate) fn read_npz_labels(path: &Path, options: &ReadOptions) -> Result<(CsrMatrix, u64), ReadError> {
    let entries = read_npz(path, options)?;
    if let Some(at) = entries.values.iter().position(|&value| value < 0.0) {
        let (outer, inner) = (entries.indptr.partition_point(|&start| start <= at) - 1, entries.indices[at] as usize);
        let (row, column) = if entries.layout == NpzLayout::Csr { (outer, inner) } else { (inner, outer) };
        let got = format!("{} (row {row}, column {column})", entries.values[at]).into();
        let expected = "0, or more than 0 where a label is true".into();
        let problem = ArrayProblem::Entry { at, got, expected };
        return Err(ReadError::path(path, ReadErrorKind::Array { array: "data.npy".into(), problem }));
    }
    let n_graded = entries.values.iter().filter(|&&value| value != 0.0 && value != 1.0).count() as u64;
    Ok((by_rows(path, entries)?, n_graded))
}

fn by_rows(path: &Path, entries: NpzMatrix) -> Result<CsrMatrix, ReadError> {
    let wrong = |array: &str, problem| ReadError::path(path, ReadErrorKind::Array { array: array.into(), problem });
    let sum = |(row, id)| wrong("data.npy", ArrayProblem::Sum { row, id });
    let NpzMatrix { layout, rows, columns, indptr, indices, values } = entries.into_sorted().map_err(sum)?;
    if layout == NpzLayout::Csr {
        return Ok(CsrMatrix::from_checked((rows, columns), indptr, indices, values));
    }
    // Row pointers of the transposed matrix are allocated from the shape.
    let most = FREE_ROWS + ROWS_PER_ENTRY.saturating_mul(values.len() as u64);
    if rows as u64 > most || columns as u64 > MAX_IDS {
        let got = format!("[{rows}, {columns}]").into();
        let expected = format!("at most {most} rows for {} entries stored by columns", values.len()).into();
        return Err(wrong("shape.npy", ArrayProblem::Shape { got, expected }));
    }
    Ok(CsrMatrix::from_checked((columns, rows), indptr, indices, values).transpose().to_csr())
}

/// Writes a sparse matrix as `scipy.sparse.save_npz(compressed=False)` does: csr, `<i4` ids if they fit (otherwise `<i8`), `<f4` values. The same matrix gives the same bytes.
///
/// # Errors
/// The writer's error.
pub fn write_npz(into: impl Write + Seek, matrix: CsrView<'_>) -> io::Result<()> {
    let (indptr, indices, values) = (matrix.indptr(), matrix.indices(), matrix.data());
    write_npz_arrays(into, NpzLayout::Csr, matrix.rows(), matrix.cols(), indptr, indices, values)
}

/// Writes a sparse matrix from its arrays, which need not be sorted within a row (ranked lists are not).
///
/// # Errors
/// The writer's error.
pub fn write_npz_arrays(
    into: impl Write + Seek,
    layout: NpzLayout,
    rows: usize,
    columns: usize,
    indptr: &[usize],
    indices: &[u32],
    values: &[f32],
) -> io::Result<()> {
    let base = indptr[0]; // a slice of a matrix keeps the pointers of the whole
    let nnz = values.len();
    let small = nnz <= i32::MAX as usize && rows.max(columns) <= i32::MAX as usize;
    let mut zip = ZipWriter::new(UpToError::new(into)?);
    let begin = |zip: &mut ZipWriter<_>, name: &str, descr: &str, shape: &[usize], item: usize| {
        let bytes = shape.iter().product::<usize>() * item;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .large_file(bytes as u64 > u64::from(u32::MAX) - 4096);
        zip.start_file(name, options)?;
        let mut head = Vec::new();
        npy::push_header(&mut head, descr, shape);
        zip.write_all(&head)
    };
    if small {
        begin(&mut zip, "indices.npy", "<i4", &[nnz], 4)?;
        npy::write_items(&mut zip, indices.iter().map(|i| i.to_le_bytes()))?;
        begin(&mut zip, "indptr.npy", "<i4", &[indptr.len()], 4)?;
        npy::write_items(&mut zip, indptr.iter().map(|p| ((p - base) as u32).to_le_bytes()))?;
    } else {
        begin(&mut zip, "indices.npy", "<i8", &[nnz], 8)?;
        npy::write_items(&mut zip, indices.iter().map(|&i| u64::from(i).to_le_bytes()))?;
        begin(&mut zip, "indptr.npy", "<i8", &[indptr.len()], 8)?;
        npy::write_items(&mut zip, indptr.iter().map(|p| ((p - base) as u64).to_le_bytes()))?;
    }
    begin(&mut zip, "format.npy", "|S3", &[], 3)?;
    zip.write_all(if layout == NpzLayout::Csr { b"csr" } else { b"csc" })?;
    begin(&mut zip, "shape.npy", "<i8", &[2], 8)?;
    npy::write_items(&mut zip, [rows, columns].into_iter().map(|n| (n as u64).to_le_bytes()))?;
    begin(&mut zip, "data.npy", "<f4", &[nnz], 4)?;
    npy::write_items(&mut zip, values.iter().map(|v| v.to_le_bytes()))?;
    zip.finish()?.flush()
}

/// A writer that takes everything after its first error and writes nothing more: the archive is ended
/// when it is dropped, and what is wrong then would be printed.
struct UpToError<W> {
    into: W,
    failed: bool,
    /// Position in what is written, or would be.
    at: u64,
    /// Its length.
    len: u64,
}

impl<W: Write + Seek> UpToError<W> {
    fn new(mut into: W) -> io::Result<Self> {
        let at = into.stream_position()?;
        Ok(Self { into, failed: false, at, len: at })
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        let outcome = work(&mut self.into);
        if outcome.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            // Behind everything, wherever it was: what is ended then has no part before its beginning.
            (self.failed, self.at) = (true, self.len);
        }
        outcome
    }
}

impl<W: Write + Seek> Write for UpToError<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = if self.failed { bytes.len() } else { self.attempt(|into| into.write(bytes))? };
        self.at += n as u64;
        self.len = self.len.max(self.at);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failed { Ok(()) } else { self.attempt(Write::flush) }
    }
}

impl<W: Write + Seek> Seek for UpToError<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = if self.failed {
            let (from, by) = match to {
                SeekFrom::Start(at) => (at, 0),
                SeekFrom::End(by) => (self.len, by),
                SeekFrom::Current(by) => (self.at, by),
            };
            from.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?
        } else {
            self.attempt(|into| into.seek(to))?
        };
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Takes so many bytes, and counts what it is asked for afterwards.
    struct Full {
        into: Cursor<Vec<u8>>,
        room: usize,
        after: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.room {
                self.after += 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= bytes.len();
            self.into.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.into.seek(to)
        }
    }

    #[test]
    fn a_full_disk_is_asked_once_wherever_it_is_full() {
        let matrix = CsrMatrix::from_checked((2, 3), vec![0, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0]);
        let mut whole = Cursor::new(Vec::new());
        write_npz(&mut whole, matrix.view()).unwrap();
        let n = whole.into_inner().len();
        for room in (0..n).step_by(7) {
            let mut full = Full { into: Cursor::default(), room, after: 0 };
            let error = write_npz(&mut full, matrix.view()).unwrap_err();
            assert_eq!((error.kind(), full.after), (io::ErrorKind::StorageFull, 1), "{room} of {n} bytes");
        }
        let mut enough = Full { into: Cursor::default(), room: 2 * n, after: 0 };
        write_npz(&mut enough, matrix.view()).unwrap();
        assert_eq!(enough.after, 0);
    }
}
