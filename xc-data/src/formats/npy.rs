//! numpy arrays: the `.npy` format, as a file or as a member of an `.npz` archive.
//!
//! Integers, booleans and floats of 2, 4 and 8 bytes, in either byte order. Allocations never rely on
//! the header's shape: arrays grow with the bytes that are read. The specification is
//! `docs/formats/npz.md`.

use crate::error::{ArrayProblem, ReadError, ReadErrorKind, Snippet};
use crate::options::ReadOptions;
use crate::row::MAX_IDS;
use crate::source::Source;
use half::f16;
use std::fmt;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use xc_dense::DenseMatrix;
use xc_sparse::rows::{LabelRows, group_by};

/// What an npy header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) kind: u8,
    pub(crate) item_bytes: usize,
    pub(crate) big_endian: bool,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<u64>,
}

/// Why an array could not be read, before its file is known.
pub(crate) enum NpyError {
    Io(io::Error),
    Problem(ArrayProblem),
}

impl NpyError {
    fn header(what: &'static str) -> Self {
        Self::Problem(ArrayProblem::Header(what))
    }
}

impl From<io::Error> for NpyError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

const MAX_HEADER_BYTES: usize = 1 << 16;
const TYPES: &str = "bool, integers of 1 to 8 bytes, or floats of 2, 4 or 8 bytes";

impl NpyHeader {
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self, NpyError> {
        let mut start = [0u8; 8];
        read_all(reader, &mut start)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err(NpyError::header("it does not begin with the magic bytes of npy"));
        }
        let length = match start[6] {
            1 => {
                let mut bytes = [0u8; 2];
                read_all(reader, &mut bytes)?;
                usize::from(u16::from_le_bytes(bytes))
            }
            2 | 3 => {
                let mut bytes = [0u8; 4];
                read_all(reader, &mut bytes)?;
                u32::from_le_bytes(bytes) as usize
            }
            _ => return Err(NpyError::header("its version is not 1, 2 or 3")),
        };
        if length > MAX_HEADER_BYTES {
            return Err(NpyError::header("it is longer than 65536 bytes"));
        }
        let mut text = vec![0u8; length];
        read_all(reader, &mut text)?;
        let text = std::str::from_utf8(&text).map_err(|_| NpyError::header("it is not UTF-8"))?;
        Self::parse(text)
    }

    // A Python dictionary with three known keys, each once.
    fn parse(text: &str) -> Result<Self, NpyError> {
        let torn = || NpyError::header("it is not a dictionary of descr, fortran_order and shape");
        let mut rest = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}')).ok_or_else(torn)?.trim();
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = quoted(rest).ok_or_else(torn)?;
            let value = after.trim_start().strip_prefix(':').ok_or_else(torn)?.trim_start();
            let after = match key {
                "descr" if descr.is_none() => {
                    if value.starts_with('[') {
                        let got = Snippet::new(value.as_bytes());
                        return Err(NpyError::Problem(ArrayProblem::Type { got, expected: TYPES }));
                    }
                    let (got, after) = quoted(value).ok_or_else(torn)?;
                    descr = Some(got);
                    after
                }
                "fortran_order" if fortran.is_none() => {
                    let (got, after) = match (value.strip_prefix("True"), value.strip_prefix("False")) {
                        (Some(after), _) => (true, after),
                        (_, Some(after)) => (false, after),
                        _ => return Err(torn()),
                    };
                    fortran = Some(got);
                    after
                }
                "shape" if shape.is_none() => {
                    let (inside, after) = value.strip_prefix('(').and_then(|v| v.split_once(')')).ok_or_else(torn)?;
                    let mut sizes = Vec::new();
                    for size in inside.split(',').map(str::trim).filter(|s| !s.is_empty()) {
                        // Python 2 wrote 3L.
                        sizes.push(size.trim_end_matches('L').parse().map_err(|_| torn())?);
                    }
                    shape = Some(sizes);
                    after
                }
                _ => return Err(torn()),
            };
            rest = after.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(after) => after.trim_start(),
                None if rest.is_empty() => rest,
                None => return Err(torn()),
            };
        }
        let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else { return Err(torn()) };
        let strange = || NpyError::Problem(ArrayProblem::Type { got: Snippet::new(descr.as_bytes()), expected: TYPES });
        let (order, code) = match descr.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), code @ ..] => (*order, code),
            _ => return Err(strange()),
        };
        let (&kind, size) = code.split_first().ok_or_else(strange)?;
        let item_bytes: usize =
            std::str::from_utf8(size).ok().and_then(|s| s.parse().ok()).filter(|&n| n <= 1024).ok_or_else(strange)?;
        Ok(Self { kind, item_bytes, big_endian: order == b'>', fortran, shape })
    }

    /// Whether the bytes of the entries are rows of f32 as a little-endian machine has them in
    /// memory.
    pub(crate) fn is_plain_f32(&self) -> bool {
        (self.kind, self.item_bytes, self.big_endian, self.fortran) == (b'f', 4, false, false)
    }

    /// Number of entries; `None` beyond `u64`.
    pub(crate) fn n_entries(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size))
    }

    fn descr(&self) -> String {
        format!("{}{}{}", if self.big_endian { '>' } else { '<' }, self.kind as char, self.item_bytes)
    }
}

// 'text' or "text" at the front, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let mark = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(mark)
}

fn read_all(reader: &mut impl Read, bytes: &mut [u8]) -> Result<(), NpyError> {
    reader.read_exact(bytes).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => NpyError::header("it is cut off"),
        _ => NpyError::Io(e),
    })
}

/// A type that array entries are converted to.
pub(crate) trait Entry: Sized {
    /// What is expected, in messages.
    const EXPECTED: &'static str;
    fn from_int(value: i128) -> Option<Self>;
    fn from_float(value: f64) -> Option<Self>;
}

impl Entry for f32 {
    const EXPECTED: &'static str = "a finite value that f32 can hold";
    fn from_int(value: i128) -> Option<Self> {
        Some(value as f32)
    }
    fn from_float(value: f64) -> Option<Self> {
        let value = value as f32;
        value.is_finite().then_some(value)
    }
}

impl Entry for f64 {
    const EXPECTED: &'static str = "a finite value";
    fn from_int(value: i128) -> Option<Self> {
        Some(value as f64)
    }
    fn from_float(value: f64) -> Option<Self> {
        value.is_finite().then_some(value)
    }
}

macro_rules! whole_entry {
    ($type:ty, $expected:literal) => {
        impl Entry for $type {
            const EXPECTED: &'static str = $expected;
            fn from_int(value: i128) -> Option<Self> {
                value.try_into().ok()
            }
            // Some tools keep ids in float arrays: whole values are taken.
            fn from_float(value: f64) -> Option<Self> {
                (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i128).and_then(Self::from_int)
            }
        }
    };
}
whole_entry!(u32, "a whole number from 0 to 4294967295");
whole_entry!(u64, "a whole number that is not negative");

/// Reads entries one after the other and hands each to `take`.
pub(crate) fn read_entries<T: Entry>(
    reader: &mut impl Read,
    header: &NpyHeader,
    mut take: impl FnMut(T),
) -> Result<(), NpyError> {
    let decode: fn(&[u8]) -> Result<i128, f64> = match (header.kind, header.item_bytes) {
        (b'b' | b'u', 1) => |b| Ok(i128::from(b[0])),
        (b'i', 1) => |b| Ok(i128::from(b[0] as i8)),
        (b'u', 2) => |b| Ok(i128::from(u16::from_le_bytes(sized(b)))),
        (b'i', 2) => |b| Ok(i128::from(i16::from_le_bytes(sized(b)))),
        (b'u', 4) => |b| Ok(i128::from(u32::from_le_bytes(sized(b)))),
        (b'i', 4) => |b| Ok(i128::from(i32::from_le_bytes(sized(b)))),
        (b'u', 8) => |b| Ok(i128::from(u64::from_le_bytes(sized(b)))),
        (b'i', 8) => |b| Ok(i128::from(i64::from_le_bytes(sized(b)))),
        (b'f', 2) => |b| Err(f64::from(f16::from_le_bytes(sized(b)))),
        (b'f', 4) => |b| Err(f64::from(f32::from_le_bytes(sized(b)))),
        (b'f', 8) => |b| Err(f64::from_le_bytes(sized(b))),
        _ => {
            let got = Snippet::new(header.descr().as_bytes());
            return Err(NpyError::Problem(ArrayProblem::Type { got, expected: TYPES }));
        }
    };
    let item = header.item_bytes;
    let expected_bytes = header.shape.iter().fold(item as u128, |n, &size| n.saturating_mul(u128::from(size)));
    let mut left = expected_bytes;
    let mut chunk = vec![0u8; (1 << 16) / item * item];
    let mut at = 0usize;
    while left > 0 {
        let want = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let got = fill(reader, &mut chunk[..want])?;
        if got < want {
            let got = (expected_bytes - left) as u64 + got as u64;
            return Err(NpyError::Problem(ArrayProblem::Length { got, expected: expected_bytes }));
        }
        for bytes in chunk[..want].chunks_exact_mut(item) {
            if header.big_endian {
                bytes.reverse();
            }
            let decoded = decode(bytes);
            let entry = match decoded {
                Ok(whole) => T::from_int(whole),
                Err(float) => T::from_float(float),
            };
            let Some(entry) = entry else {
                let got = match decoded {
                    Ok(whole) => whole.to_string(),
                    Err(float) => float.to_string(),
                };
                let problem = ArrayProblem::Entry { at, got: got.into(), expected: T::EXPECTED.into() };
                return Err(NpyError::Problem(problem));
            };
            take(entry);
            at += 1;
        }
        left -= want as u128;
    }
    if fill(reader, &mut [0u8])? > 0 {
        return Err(NpyError::Problem(ArrayProblem::Trailing { expected: expected_bytes }));
    }
    Ok(())
}

// The chunk's items have exactly the size that the header says.
fn sized<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}

// As many bytes as there are, up to the buffer.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

fn open_dense(path: &Path, options: &ReadOptions) -> Result<(Source, NpyHeader, [u64; 2]), ReadError> {
    let mut source = Source::open(path, options.max_expanded_bytes)?;
    let header = NpyHeader::read(&mut source.reading());
    let header = header.map_err(|e| locate(&source, e))?;
    let shape = check_dense(&header).map_err(|e| locate(&source, e))?;
    Ok((source, header, shape))
}

/// Rows and columns of a matrix of dense rows.
pub(crate) fn check_dense(header: &NpyHeader) -> Result<[u64; 2], NpyError> {
    let wrong = |expected: &str| {
        let got = format!("{:?}", header.shape).into();
        Err(NpyError::Problem(ArrayProblem::Shape { got, expected: expected.into() }))
    };
    let [rows, columns] = header.shape[..] else { return wrong("[rows, columns]") };
    // Every row has bytes then, so the file bounds the number of rows.
    if columns == 0 || columns > MAX_IDS || header.n_entries().is_none() {
        return wrong("[rows, columns] with 1 to 4294967295 columns");
    }
    Ok([rows, columns])
}

fn locate(source: &Source, error: NpyError) -> ReadError {
    match error {
        NpyError::Io(error) => source.fail(error),
        NpyError::Problem(_) => locate_in(source.name(), error),
    }
}

/// The error of a file of this name.
pub(crate) fn locate_in(name: &str, error: NpyError) -> ReadError {
    match error {
        NpyError::Io(error) => ReadError::file(name, ReadErrorKind::Io(error)),
        NpyError::Problem(problem) => ReadError::file(name, ReadErrorKind::Array { array: "npy".into(), problem }),
    }
}

/// Reads a two-dimensional `.npy` file as dense rows; Fortran order is converted.
///
/// # Errors
/// A shape that is not two-dimensional, a type that is not a number, values that f32 cannot hold,
/// missing bytes.
pub fn read_npy(path: impl AsRef<Path>, options: &ReadOptions) -> Result<DenseMatrix, ReadError> {
    let path = path.as_ref();
    let (mut source, header, [rows, columns]) = open_dense(path, options)?;
    let mut values: Vec<f32> = Vec::new();
    let outcome = read_entries(&mut source.reading(), &header, |value| values.push(value));
    outcome.map_err(|e| locate(&source, e))?;
    // All entries were there, so the sizes fit memory.
    let (rows, columns) = (rows as usize, columns as usize);
    if header.fortran {
        let mut by_row = vec![0.0; values.len()];
        for (at, &value) in values.iter().enumerate() {
            by_row[at % rows * columns + at / rows] = value;
        }
        values = by_row;
    }
    Ok(DenseMatrix::new(rows, columns, values))
}

/// Rows of a dense file without their zeros, as CSR arrays or (Fortran order) as CSC arrays.
pub(crate) struct CompressedDense {
    pub(crate) by_columns: bool,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) indptr: Vec<usize>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<f32>,
}

pub(crate) fn read_npy_sparse(path: &Path, options: &ReadOptions) -> Result<CompressedDense, ReadError> {
    let (mut source, header, [rows, columns]) = open_dense(path, options)?;
    let inner = if header.fortran { rows } else { columns };
    if inner > MAX_IDS {
        let problem = ArrayProblem::Shape {
            got: format!("{:?}", header.shape).into(),
            expected: "at most 4294967295 rows in Fortran order".into(),
        };
        return Err(locate(&source, NpyError::Problem(problem)));
    }
    let mut out = CompressedDense {
        by_columns: header.fortran,
        rows: rows as usize,
        columns: columns as usize,
        indptr: vec![0],
        indices: Vec::new(),
        values: Vec::new(),
    };
    let mut at = 0u64;
    let outcome = read_entries(&mut source.reading(), &header, |value: f32| {
        if value != 0.0 {
            out.indices.push(at as u32);
            out.values.push(value);
        }
        at += 1;
        if at == inner {
            at = 0;
            out.indptr.push(out.indices.len());
        }
    });
    outcome.map_err(|e| locate(&source, e))?;
    // No rows in Fortran order: columns without entries.
    if header.fortran && rows == 0 {
        out.by_columns = false;
    }
    Ok(out)
}

/// A value of an array of labels, as it was written.
#[derive(Clone, Copy)]
enum Written {
    Whole(i128),
    Float(f64),
}

impl Entry for Written {
    const EXPECTED: &'static str = "a number";
    fn from_int(value: i128) -> Option<Self> {
        Some(Self::Whole(value))
    }
    fn from_float(value: f64) -> Option<Self> {
        // Whole values are taken as such; what is not finite has no fraction of 0.
        let is_whole = value.fract() == 0.0 && value.abs() < 9e15;
        Some(if is_whole { Self::Whole(value as i128) } else { Self::Float(value) })
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// Reads labels from an array: one class for each row in the shapes `[rows]` and `[rows, 1]`, or a row of
/// 0 and 1 for each instance, with one column for each label.
pub(crate) fn read_npy_labels(path: &Path, options: &ReadOptions) -> Result<LabelRows, ReadError> {
    let mut source = Source::open(path, options.max_expanded_bytes)?;
    let header = NpyHeader::read(&mut source.reading());
    let header = header.map_err(|e| locate(&source, e))?;
    let (rows, columns) = match header.shape[..] {
        [rows] => (rows, 1),
        [rows, columns] if (1..=MAX_IDS).contains(&columns) && header.n_entries().is_some() => (rows, columns),
        _ => {
            let problem = ArrayProblem::Shape {
                got: format!("{:?}", header.shape).into(),
                expected: "[rows] or [rows, 1] with one class for each row, or [rows, labels] of 0 and 1".into(),
            };
            return Err(locate(&source, NpyError::Problem(problem)));
        }
    };
    let given = options.n_labels.map(|n| n as u64);
    if let (Some(expected), 2..) = (given, columns)
        && columns > expected
    {
        let (got, expected) = (columns as usize, expected as usize);
        return Err(ReadError::path(path, ReadErrorKind::TooManyColumns { got, expected }));
    }
    let below = given.unwrap_or(MAX_IDS).min(MAX_IDS);
    if rows > MAX_IDS {
        let problem = ArrayProblem::Shape {
            got: format!("{:?}", header.shape).into(),
            expected: "at most 4294967295 rows of labels".into(),
        };
        return Err(locate(&source, NpyError::Problem(problem)));
    }
    // Pairs of a row and its label, in the order of the file.
    let (mut pairs, mut largest, mut wrong) = (Vec::new(), 0, None);
    let mut at = 0u64;
    let outcome = read_entries(&mut source.reading(), &header, |value: Written| {
        let (row, column) = if header.fortran { (at % rows, at / rows) } else { (at / columns, at % columns) };
        at += 1;
        let label = match value {
            Written::Whole(class) if columns == 1 => u32::try_from(class).ok().filter(|&c| u64::from(c) < below),
            Written::Whole(0) => return,
            Written::Whole(1) => Some(column as u32),
            _ => None,
        };
        match label {
            Some(label) => {
                largest = largest.max(u64::from(label) + 1);
                pairs.push((row as u32, label));
            }
            None => _ = wrong.get_or_insert((row, column, value)),
        }
    });
    outcome.map_err(|e| locate(&source, e))?;
    if let Some((row, column, value)) = wrong {
        let got = format!("{value} (row {row}, column {column})").into();
        let expected = match columns {
            1 => format!("a class from 0 to {}", below.saturating_sub(1)),
            _ => "0 or 1: with several columns each is a label".to_owned(),
        };
        let at = if header.fortran { column * rows + row } else { row * columns + column } as usize;
        let problem = ArrayProblem::Entry { at, got, expected: expected.into() };
        return Err(locate(&source, NpyError::Problem(problem)));
    }
    // All entries were there, so the sizes fit memory.
    let n_labels = if columns > 1 { columns.max(given.unwrap_or(0)) } else { given.unwrap_or(largest) } as usize;
    // In Fortran order the labels of a row come in ascending order too.
    let (indptr, labels) = group_by(rows as usize, pairs.iter().copied()).into_parts();
    Ok(LabelRows::try_new(indptr, labels, n_labels).expect("ascending labels, bounded when read"))
}

/// Appends an npy header (version 1) whose data begin at a multiple of 64 bytes.
pub(crate) fn push_header(out: &mut Vec<u8>, descr: &str, shape: &[usize]) {
    let sizes: String = match shape {
        [one] => format!("{one},"),
        many => many.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let unpadded = 10 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    out.extend_from_slice(b"\x93NUMPY\x01\x00");
    // A few numbers: far below 65536 bytes.
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Writes dense rows as a `.npy` file of f32 in C order.
///
/// # Panics
/// If the number of values is not `rows * columns`.
pub fn write_npy(into: &mut impl Write, rows: usize, columns: usize, values: &[f32]) -> io::Result<()> {
    let expected = rows.checked_mul(columns);
    assert_eq!(Some(values.len()), expected, "{} values for {rows} rows of {columns}", values.len());
    let mut head = Vec::new();
    push_header(&mut head, "<f4", &[rows, columns]);
    into.write_all(&head)?;
    write_items(into, values.iter().map(|v| v.to_le_bytes()))
}

/// Writes rows of f32 as a `.npy` file, one after another: how many there are is put into the header at the end.
#[derive(Debug)]
pub struct NpyRows<W> {
    into: W,
    columns: usize,
    rows: usize,
}

impl<W: Write + Seek> NpyRows<W> {
    /// Begins a file at the position of `into`, which should be 0.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(mut into: W, columns: usize) -> io::Result<Self> {
        let mut head = Vec::new();
        push_header(&mut head, "<f4", &[0, columns]);
        into.write_all(&head)?;
        Ok(Self { into, columns, rows: 0 })
    }

    /// Adds rows.
    ///
    /// # Panics
    /// If the values are not whole rows.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn push(&mut self, values: &[f32]) -> io::Result<()> {
        assert!(
            values.len().is_multiple_of(self.columns.max(1)),
            "{} values in rows of {}",
            values.len(),
            self.columns
        );
        self.rows += values.len() / self.columns.max(1);
        write_items(&mut self.into, values.iter().map(|v| v.to_le_bytes()))
    }

    /// Says in the header how many there are.
    ///
    /// # Errors
    /// It cannot be written, or is a pipe.
    pub fn end(mut self) -> io::Result<W> {
        // The padding has room for any number of rows.
        let mut head = Vec::new();
        push_header(&mut head, "<f4", &[self.rows, self.columns]);
        self.into.rewind()?;
        self.into.write_all(&head)?;
        Ok(self.into)
    }
}

/// Writes items of fixed size through a buffer.
pub(crate) fn write_items<const N: usize>(
    into: &mut impl Write,
    items: impl Iterator<Item = [u8; N]>,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity((1 << 16) + N);
    for item in items {
        buffer.extend_from_slice(&item);
        if buffer.len() >= 1 << 16 {
            into.write_all(&buffer)?;
            buffer.clear();
        }
    }
    into.write_all(&buffer)
}
