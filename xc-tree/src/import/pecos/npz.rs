//! Sparse matrices as scipy saves them: a zip archive of five `.npy` arrays.

use super::error::{PecosError, io_error, matrix_error};
use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    path::Path,
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// A matrix by columns. After [`Columns::check`]: pointers rise from 0 to nnz, rows are in range and ascend inside a
/// column without repetition, values are finite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Columns {
    pub(super) n_rows: usize,
    pub(super) indptr: Vec<u64>,
    pub(super) rows: Vec<u32>,
    pub(super) values: Vec<f32>,
}

impl Columns {
    pub(super) fn n_columns(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Rows and values of column `c`.
    pub(super) fn column(&self, c: usize) -> (&[u32], &[f32]) {
        let range = self.indptr[c] as usize..self.indptr[c + 1] as usize;
        (&self.rows[range.clone()], &self.values[range])
    }

    /// Checks what outside arrays must hold, and sorts the columns that are not in order.
    pub(super) fn check(&mut self, path: &Path) -> Result<(), PecosError> {
        let nnz = self.rows.len();
        if self.values.len() != nnz {
            return Err(matrix_error(path, format!("{} values, wanted {nnz} as there are indices", self.values.len())));
        }
        if self.n_rows > u32::MAX as usize || self.n_columns() > u32::MAX as usize {
            return Err(matrix_error(path, format!("shape {} x {} is too large", self.n_rows, self.n_columns())));
        }
        if self.indptr.first() != Some(&0) || self.indptr.last() != Some(&(nnz as u64)) {
            return Err(matrix_error(path, format!("indptr must go from 0 to {nnz}")));
        }
        if let Some(at) = self.indptr.windows(2).position(|w| w[0] > w[1]) {
            return Err(matrix_error(path, format!("indptr falls at column {at}")));
        }
        if let Some(at) = self.rows.iter().position(|&row| row as usize >= self.n_rows) {
            let (met, n) = (self.rows[at], self.n_rows);
            return Err(matrix_error(path, format!("entry {at}: row {met}, there are only {n}")));
        }
        if let Some(at) = self.values.iter().position(|value| !value.is_finite()) {
            let column = self.indptr.partition_point(|&start| start <= at as u64) - 1;
            return Err(PecosError::NotFinite { path: path.to_owned(), column });
        }
        for column in 0..self.n_columns() {
            let range = self.indptr[column] as usize..self.indptr[column + 1] as usize;
            let (rows, values) = (&mut self.rows[range.clone()], &mut self.values[range]);
            if rows.windows(2).all(|w| w[0] < w[1]) {
                continue;
            }
            let mut pairs: Vec<(u32, f32)> = rows.iter().copied().zip(values.iter().copied()).collect();
            pairs.sort_by_key(|&(row, _)| row);
            if let Some(w) = pairs.windows(2).find(|w| w[0].0 == w[1].0) {
                return Err(PecosError::Repeated { path: path.to_owned(), column, row: w[0].0 });
            }
            for (i, (row, value)) in pairs.into_iter().enumerate() {
                (rows[i], values[i]) = (row, value);
            }
        }
        Ok(())
    }
}

/// Numbers of an `.npy` array that are not complex, structured or text.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Signed(usize),
    Unsigned(usize),
    Float(usize),
    Text,
}

/// Reads a CSC matrix.
///
/// # Cost
/// One copy of each array in memory.
pub(super) fn read_columns(path: &Path) -> Result<Columns, PecosError> {
    read_compressed(path, "csc")
}

/// The same with rows in the role of columns when `wanted` is "csr".
pub(super) fn read_compressed(path: &Path, wanted: &'static str) -> Result<Columns, PecosError> {
    let file = File::open(path).map_err(io_error(path))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(zip_error(path))?;
    let format = read_array(&mut archive, path, "format", Array::Text(Vec::new()))?.into_bytes();
    if format != wanted.as_bytes() {
        let met = String::from_utf8_lossy(&format).into_owned();
        return Err(matrix_error(path, format!("format {met:?}, wanted {wanted:?}")));
    }
    let shape = read_array(&mut archive, path, "shape", Array::Wide(Vec::new()))?.into_wide();
    let (n_rows, n_columns) = match shape[..] {
        [rows, columns] if wanted == "csc" => (rows, columns),
        [rows, columns] => (columns, rows),
        _ => return Err(matrix_error(path, format!("shape has {} entries, wanted 2", shape.len()))),
    };
    let indptr = read_array(&mut archive, path, "indptr", Array::Wide(Vec::new()))?.into_wide();
    if n_columns.checked_add(1) != Some(indptr.len() as u64) {
        return Err(matrix_error(path, format!("indptr has {} entries for {n_columns} columns", indptr.len())));
    }
    let rows = read_array(&mut archive, path, "indices", Array::Narrow(Vec::new()))?.into_narrow();
    let values = read_array(&mut archive, path, "data", Array::Real(Vec::new()))?.into_real();
    let mut matrix = Columns { n_rows: n_rows as usize, indptr, rows, values };
    matrix.check(path)?;
    Ok(matrix)
}

fn zip_error(path: &Path) -> impl FnOnce(ZipError) -> PecosError {
    let path = path.to_owned();
    move |source| match source {
        ZipError::Io(source) => PecosError::Io { path, source },
        source => PecosError::Zip { path, source },
    }
}

/// The form in which an array is wanted, and its elements.
enum Array {
    Text(Vec<u8>),
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
    Real(Vec<f32>),
}

// Each caller asks for the form that it handed in, so the other arms are never taken.
impl Array {
    fn into_bytes(self) -> Vec<u8> {
        if let Self::Text(list) = self { list } else { Vec::new() }
    }
    fn into_narrow(self) -> Vec<u32> {
        if let Self::Narrow(list) = self { list } else { Vec::new() }
    }
    fn into_wide(self) -> Vec<u64> {
        if let Self::Wide(list) = self { list } else { Vec::new() }
    }
    fn into_real(self) -> Vec<f32> {
        if let Self::Real(list) = self { list } else { Vec::new() }
    }
}

fn read_array<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    path: &Path,
    name: &str,
    wanted: Array,
) -> Result<Array, PecosError> {
    let fail = |what: String| PecosError::Array { path: path.to_owned(), array: name.to_owned(), what };
    let mut member = match archive.by_name(&format!("{name}.npy")) {
        Ok(member) => member,
        Err(ZipError::FileNotFound) => return Err(fail("is not in the archive".to_owned())),
        Err(error) => return Err(zip_error(path)(error)),
    };
    // Only a first guess of the memory to reserve: a hostile archive may say anything.
    let room = (member.size() as usize).min(1 << 28);
    let (kind, n_elements) = read_header(&mut member).map_err(|what| fail(what.to_owned()))?;
    read_elements(&mut member, kind, n_elements, room, wanted).map_err(|error| match error {
        ReadError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => fail("is truncated".to_owned()),
        ReadError::Io(error) => io_error(path)(error),
        ReadError::Value(what) => fail(what),
    })
}

/// The `.npy` header: element kind and number of elements.
fn read_header(member: &mut impl Read) -> Result<(Kind, u64), &'static str> {
    let truncated = |_| "is truncated in its header";
    let mut fixed = [0; 8];
    member.read_exact(&mut fixed).map_err(truncated)?;
    if &fixed[..6] != b"\x93NUMPY" {
        return Err("does not begin as an npy array");
    }
    let length = match fixed[6] {
        1 => {
            let mut bytes = [0; 2];
            member.read_exact(&mut bytes).map_err(truncated)?;
            u32::from(u16::from_le_bytes(bytes))
        }
        2 | 3 => {
            let mut bytes = [0; 4];
            member.read_exact(&mut bytes).map_err(truncated)?;
            u32::from_le_bytes(bytes)
        }
        _ => return Err("has an npy version other than 1, 2 and 3"),
    };
    if length > 1 << 16 {
        return Err("has a header of more than 64 KiB");
    }
    let mut text = vec![0; length as usize];
    member.read_exact(&mut text).map_err(truncated)?;
    let text = std::str::from_utf8(&text).map_err(|_| "has a header that is not text")?;
    let kind = quoted_after(text, "'descr':").ok_or("has no element type")?;
    let kind = match kind {
        "<i4" => Kind::Signed(4),
        "<i8" => Kind::Signed(8),
        "<u4" => Kind::Unsigned(4),
        "<u8" => Kind::Unsigned(8),
        "<f4" => Kind::Float(4),
        "<f8" => Kind::Float(8),
        text if text.starts_with("|S") || text.starts_with("<U") => Kind::Text,
        _ => return Err("has an element type other than i4, i8, u4, u8, f4, f8 and text, little-endian"),
    };
    let shape = text.split_once("'shape':").ok_or("has no shape")?.1;
    let shape = shape.split_once('(').and_then(|(_, rest)| rest.split_once(')')).ok_or("has no shape")?.0;
    let mut n_elements = 1u64;
    for extent in shape.split(',').map(str::trim).filter(|extent| !extent.is_empty()) {
        let extent: u64 = extent.parse().map_err(|_| "has a shape that is not numbers")?;
        n_elements = n_elements.checked_mul(extent).ok_or("has a shape that overflows")?;
    }
    Ok((kind, n_elements))
}

fn quoted_after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.split_once(key)?.1.trim_start();
    let rest = rest.strip_prefix('\'')?;
    Some(rest.split_once('\'')?.0)
}

enum ReadError {
    Io(io::Error),
    Value(String),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Bytes that are converted at a time; a multiple of every element size.
const BLOCK: usize = 1 << 16;

fn read_elements(member: &mut impl Read, kind: Kind, n: u64, room: usize, wanted: Array) -> Result<Array, ReadError> {
    let wrong = || Err(ReadError::Value("holds text where numbers are wanted, or the reverse".to_owned()));
    Ok(match (wanted, kind) {
        (Array::Text(mut list), Kind::Text) => {
            member.take(64).read_to_end(&mut list)?;
            // Fixed-width Unicode: four bytes a letter.
            list.retain(|&byte| byte != 0);
            Array::Text(list)
        }
        (Array::Narrow(mut list), Kind::Signed(4) | Kind::Unsigned(4)) => {
            list.reserve_exact(room / 4);
            // A negative index becomes one above 2^31, which the range check refuses.
            read_blocks::<4>(member, n, |b| list.push(u32::from_le_bytes(b)))?;
            Array::Narrow(list)
        }
        (Array::Narrow(mut list), Kind::Signed(8) | Kind::Unsigned(8)) => {
            list.reserve_exact(room / 8);
            let mut too_large = None;
            read_blocks::<8>(member, n, |b| match u32::try_from(u64::from_le_bytes(b)) {
                Ok(index) => list.push(index),
                Err(_) => too_large = Some(i64::from_le_bytes(b)),
            })?;
            if let Some(met) = too_large {
                return Err(ReadError::Value(format!("holds {met}, wanted 0 to 4294967295")));
            }
            Array::Narrow(list)
        }
        (Array::Wide(mut list), Kind::Signed(4)) => {
            // The sign is kept, so that a negative number is too large for every later check.
            read_blocks::<4>(member, n, |b| list.push(i64::from(i32::from_le_bytes(b)) as u64))?;
            Array::Wide(list)
        }
        (Array::Wide(mut list), Kind::Unsigned(4)) => {
            read_blocks::<4>(member, n, |b| list.push(u64::from(u32::from_le_bytes(b))))?;
            Array::Wide(list)
        }
        (Array::Wide(mut list), Kind::Signed(8) | Kind::Unsigned(8)) => {
            read_blocks::<8>(member, n, |b| list.push(u64::from_le_bytes(b)))?;
            Array::Wide(list)
        }
        (Array::Real(mut list), Kind::Float(4)) => {
            list.reserve_exact(room / 4);
            read_blocks::<4>(member, n, |b| list.push(f32::from_le_bytes(b)))?;
            Array::Real(list)
        }
        (Array::Real(mut list), Kind::Float(8)) => {
            list.reserve_exact(room / 8);
            read_blocks::<8>(member, n, |b| list.push(f64::from_le_bytes(b) as f32))?;
            Array::Real(list)
        }
        (Array::Real(_), Kind::Signed(_) | Kind::Unsigned(_)) | (_, Kind::Float(_)) | (_, Kind::Text) => {
            return wrong();
        }
        (Array::Text(_), _) | (_, Kind::Signed(_) | Kind::Unsigned(_)) => return wrong(),
    })
}

fn read_blocks<const N: usize>(member: &mut impl Read, n: u64, mut each: impl FnMut([u8; N])) -> io::Result<()> {
    let mut block = vec![0u8; BLOCK];
    let mut left = n;
    while left > 0 {
        let take = left.min((BLOCK / N) as u64) as usize;
        member.read_exact(&mut block[..take * N])?;
        for bytes in block[..take * N].as_chunks::<N>().0 {
            each(*bytes);
        }
        left -= take as u64;
    }
    Ok(())
}

/// Writes a CSC matrix as scipy's `save_npz(compressed=False)` does: stored members with their sizes in front, which is
/// what PECOS's own reader wants. No times enter the file.
pub(super) fn write_columns(path: &Path, matrix: &Columns) -> Result<(), PecosError> {
    let file = File::create_new(path).map_err(io_error(path))?;
    let mut archive = ZipWriter::new(BufWriter::with_capacity(1 << 20, file));
    let n_largest = matrix.rows.len().max(matrix.n_rows).max(matrix.n_columns());
    let is_wide = n_largest > i32::MAX as usize;
    let write = |archive: &mut ZipWriter<BufWriter<File>>| -> Result<(), ZipError> {
        let nnz = matrix.rows.len();
        begin(archive, "indices", if is_wide { "<i8" } else { "<i4" }, &format!("({nnz},)"), 8 * nnz)?;
        if is_wide {
            for &row in &matrix.rows {
                archive.write_all(&u64::from(row).to_le_bytes())?;
            }
        } else {
            archive.write_all(bytemuck::cast_slice(&matrix.rows))?;
        }
        let n = matrix.indptr.len();
        begin(archive, "indptr", if is_wide { "<i8" } else { "<i4" }, &format!("({n},)"), 8 * n)?;
        for &start in &matrix.indptr {
            archive.write_all(&start.to_le_bytes()[..if is_wide { 8 } else { 4 }])?;
        }
        begin(archive, "format", "|S3", "()", 3)?;
        archive.write_all(b"csc")?;
        begin(archive, "shape", "<i8", "(2,)", 16)?;
        archive.write_all(&(matrix.n_rows as u64).to_le_bytes())?;
        archive.write_all(&(matrix.n_columns() as u64).to_le_bytes())?;
        begin(archive, "data", "<f4", &format!("({nnz},)"), 4 * nnz)?;
        archive.write_all(bytemuck::cast_slice(&matrix.values))?;
        Ok(())
    };
    write(&mut archive).map_err(zip_error(path))?;
    let file = archive.finish().map_err(zip_error(path))?;
    let file = file.into_inner().map_err(|error| io_error(path)(error.into_error()))?;
    file.sync_all().map_err(io_error(path))
}

/// Starts a member and writes its `.npy` header, which ends at a multiple of 64 bytes.
fn begin<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    name: &str,
    descr: &str,
    shape: &str,
    n_bytes: usize,
) -> Result<(), ZipError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(n_bytes > u32::MAX as usize - 1024);
    archive.start_file(format!("{name}.npy"), options)?;
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', length - 1 - text.len()));
    text.push('\n');
    archive.write_all(b"\x93NUMPY\x01\x00")?;
    archive.write_all(&(length as u16).to_le_bytes())?;
    archive.write_all(text.as_bytes())?;
    Ok(())
}
