//! Vectors in the file formats of nearest-neighbour benchmarks, all little-endian.
//!
//! ```text
//!   .fvecs .bvecs .ivecs   each row: its number of values (i32), then the values: f32, u8 or i32
//!   .fbin .u8bin           rows (u32), values of a row (u32), then all values: f32 or u8
//! ```

use crate::error::{ArrayProblem, ReadError, ReadErrorKind};
use crate::npy::write_items;
use crate::options::ReadOptions;
use crate::source::Source;
use std::io::{self, Read, Write};
use std::path::Path;
use xc_dense::{DenseMatrix, DenseRows};

/// Integers up to this are f32 exactly.
const EXACT: i32 = 1 << 24;
/// Bytes that are taken at a time, whatever a file says about its size.
const AT_A_TIME: u64 = 1 << 20;

/// A kind of file, told by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorFile {
    name: &'static str,
    value: Value,
    has_header: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    F32,
    U8,
    I32,
}

impl Value {
    fn n_bytes(self) -> u64 {
        if self == Self::U8 { 1 } else { 4 }
    }
}

const KINDS: [VectorFile; 5] = [
    VectorFile { name: "fvecs", value: Value::F32, has_header: false },
    VectorFile { name: "bvecs", value: Value::U8, has_header: false },
    VectorFile { name: "ivecs", value: Value::I32, has_header: false },
    VectorFile { name: "fbin", value: Value::F32, has_header: true },
    VectorFile { name: "u8bin", value: Value::U8, has_header: true },
];

impl VectorFile {
    /// By the ending of the name, before that of a compression.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        KINDS.into_iter().find(|kind| name.strip_suffix(kind.name).is_some_and(|rest| rest.ends_with('.')))
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// Rows of different or no lengths, fewer or more bytes than the file says, integers that f32
    /// does not hold.
    pub(crate) fn read(self, path: &Path, options: &ReadOptions) -> Result<DenseMatrix, ReadError> {
        let mut source = Source::open(path, options.max_expanded_bytes)?;
        let outcome = if self.has_header { self.read_whole(&mut source) } else { self.read_rows(&mut source) };
        outcome.map_err(|e| match e {
            Failure::Io(error) => source.fail(error),
            Failure::Problem(problem) => {
                ReadError::file(source.name(), ReadErrorKind::Array { array: self.name.into(), problem })
            }
        })
    }

    fn read_rows(self, source: &mut Source) -> Result<DenseMatrix, Failure> {
        let (mut rows, mut columns, mut values, mut bytes) = (0usize, 0u64, Vec::new(), Vec::new());
        loop {
            take(source, 4, &mut bytes)?;
            if bytes.is_empty() {
                break;
            }
            let Ok(head) = <[u8; 4]>::try_from(&bytes[..]) else { return Err(short(bytes.len(), 4)) };
            let len = i32::from_le_bytes(head);
            if len <= 0 || rows > 0 && len as u64 != columns {
                let expected =
                    if rows == 0 { "at least one value".into() } else { format!("{columns} values as before") };
                return Err(shape(format!("row {rows} of {len} values"), expected));
            }
            columns = len as u64;
            let expected = columns * self.value.n_bytes();
            take(source, expected, &mut bytes)?;
            if (bytes.len() as u64) < expected {
                return Err(short(bytes.len(), expected));
            }
            self.push(&bytes, &mut values)?;
            rows += 1;
        }
        if rows == 0 {
            return Err(shape("no rows".into(), "at least one, which says how many values there are".into()));
        }
        Ok(DenseMatrix::new(rows, columns as usize, values))
    }

    fn read_whole(self, source: &mut Source) -> Result<DenseMatrix, Failure> {
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        take(source, 8, &mut bytes)?;
        let Ok(head) = <[u8; 8]>::try_from(&bytes[..]) else { return Err(short(bytes.len(), 8)) };
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (rows, columns) = (u64::from(number(0)), u64::from(number(4)));
        if columns == 0 {
            return Err(shape(format!("{rows} rows of 0 values"), "at least one value".into()));
        }
        let expected = u128::from(rows) * u128::from(columns) * u128::from(self.value.n_bytes());
        let mut got = 0u64;
        while u128::from(got) < expected {
            let wanted = (expected - u128::from(got)).min(u128::from(AT_A_TIME)) as u64;
            take(source, wanted, &mut bytes)?;
            got += bytes.len() as u64;
            if (bytes.len() as u64) < wanted {
                return Err(Failure::Problem(ArrayProblem::Length { got, expected }));
            }
            self.push(&bytes, &mut values)?;
        }
        take(source, 1, &mut bytes)?;
        if !bytes.is_empty() {
            return Err(Failure::Problem(ArrayProblem::Trailing { expected }));
        }
        // All values were there, so the sizes fit memory.
        Ok(DenseMatrix::new(rows as usize, columns as usize, values))
    }

    fn push(self, bytes: &[u8], values: &mut Vec<f32>) -> Result<(), Failure> {
        let words = || bytes.as_chunks::<4>().0.iter();
        match self.value {
            Value::U8 => values.extend(bytes.iter().map(|&byte| f32::from(byte))),
            Value::F32 => values.extend(words().map(|&word| f32::from_le_bytes(word))),
            Value::I32 => {
                for &word in words() {
                    let value = i32::from_le_bytes(word);
                    if value.unsigned_abs() > EXACT as u32 {
                        let (got, expected) = (value.to_string().into(), format!("an integer up to {EXACT}").into());
                        return Err(Failure::Problem(ArrayProblem::Entry { at: values.len(), got, expected }));
                    }
                    values.push(value as f32);
                }
            }
        }
        Ok(())
    }
}

enum Failure {
    Io(io::Error),
    Problem(ArrayProblem),
}

fn short(got: usize, expected: u64) -> Failure {
    Failure::Problem(ArrayProblem::Length { got: got as u64, expected: u128::from(expected) })
}

fn shape(got: String, expected: String) -> Failure {
    Failure::Problem(ArrayProblem::Shape { got: got.into(), expected: expected.into() })
}

/// The next bytes, fewer at the end of the file. Memory grows with what is there.
fn take(source: &mut Source, n: u64, bytes: &mut Vec<u8>) -> Result<(), Failure> {
    bytes.clear();
    (&mut source.reading()).take(n).read_to_end(bytes).map(|_| ()).map_err(Failure::Io)
}

/// Writes rows as `.fvecs`.
///
/// # Errors
/// A write fails.
///
/// # Panics
/// If rows have 2^31 values or more.
pub fn write_fvecs(into: &mut impl Write, rows: DenseRows<'_>) -> io::Result<()> {
    let width = i32::try_from(rows.width()).unwrap_or_else(|_| panic!("rows of {} values", rows.width()));
    let of_row = |row: &'_ [f32]| {
        std::iter::once(width.to_le_bytes()).chain(row.iter().map(|v| v.to_le_bytes())).collect::<Vec<_>>()
    };
    write_items(into, rows.iter().flat_map(of_row))
}

/// Writes rows as `.fbin`.
///
/// # Errors
/// A write fails.
///
/// # Panics
/// If there are 2^32 rows or more, or 2^32 values per row or more.
pub fn write_fbin(into: &mut impl Write, rows: DenseRows<'_>) -> io::Result<()> {
    let number = |n: usize| u32::try_from(n).unwrap_or_else(|_| panic!("{n} rows or values")).to_le_bytes();
    into.write_all(&[number(rows.len()), number(rows.width())].concat())?;
    write_items(into, rows.values().iter().map(|v| v.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(name: &str, bytes: &[u8]) -> Result<DenseMatrix, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let kind = VectorFile::of_name(&path).unwrap();
        kind.read(&path, &ReadOptions::default()).map_err(|e| e.to_string())
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_were(columns in 1usize..9, rows in 1usize..20, seed: u32) {
            let values: Vec<f32> = (0..rows * columns).map(|i| (i as f32 + 0.5) * seed as f32).collect();
            let matrix = DenseMatrix::new(rows, columns, values);
            let (mut fvecs, mut fbin) = (Vec::new(), Vec::new());
            write_fvecs(&mut fvecs, matrix.view()).unwrap();
            write_fbin(&mut fbin, matrix.view()).unwrap();
            prop_assert_eq!(read("a.fvecs", &fvecs).unwrap(), matrix.clone());
            prop_assert_eq!(read("a.b.fbin", &fbin).unwrap(), matrix);
            // Whatever is cut off is missed.
            for cut in [1, 3, 5] {
                prop_assert!(read("a.fvecs", &fvecs[..fvecs.len() - cut]).is_err());
                prop_assert!(read("a.fbin", &fbin[..fbin.len() - cut]).is_err());
            }
            fbin.push(0);
            prop_assert!(read("a.fbin", &fbin).unwrap_err().contains("more than"));
        }
    }

    #[test]
    fn bytes_and_integers_become_floats() {
        let wanted = DenseMatrix::new(2, 2, vec![1.0, 255.0, 0.0, 7.0]);
        assert_eq!(read("a.bvecs", &[2, 0, 0, 0, 1, 255, 2, 0, 0, 0, 0, 7]).unwrap(), wanted);
        assert_eq!(read("a.u8bin", &[2, 0, 0, 0, 2, 0, 0, 0, 1, 255, 0, 7]).unwrap(), wanted);
        let ivecs: Vec<u8> = [1i32, -5, 1, EXACT].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(read("a.ivecs", &ivecs).unwrap().values[..], [-5.0, EXACT as f32]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (name, bytes, expected) in [
            ("a.fvecs", &[][..], "no rows"),
            ("a.fvecs", &[0, 0, 0, 0], "row 0 of 0 values"),
            ("a.fvecs", &[255, 255, 255, 255], "row 0 of -1 values"),
            ("a.fvecs", &[1, 0], "2 bytes of data, the shape asks for 4"),
            ("a.bvecs", &[1, 0, 0, 0, 9, 2, 0, 0, 0, 9, 9], "row 1 of 2 values"),
            ("a.bvecs", &[255, 255, 255, 127, 9], "1 bytes of data, the shape asks for 2147483647"),
            ("a.u8bin", &[255, 255, 255, 255, 255, 255, 255, 255, 1], "1 bytes of data"),
            ("a.u8bin", &[1, 0, 0, 0, 0, 0, 0, 0], "1 rows of 0 values"),
            ("a.ivecs", &[1, 0, 0, 0, 1, 0, 0, 1], "entry 0 is 16777217"),
        ] {
            let error = read(name, bytes).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
        }
        assert_eq!(VectorFile::of_name(Path::new("fvecs")), None);
        assert_eq!(VectorFile::of_name(Path::new("a.fvecs.gz")), Some(KINDS[0]));
    }
}
