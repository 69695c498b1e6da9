//! Dense vectors of many instances, left in their `.npy` file if possible.

use super::Format;
use super::compression::Compression;
use super::error::{ArrayProblem, ReadError, ReadErrorKind};
use super::npy::{NpyError, NpyHeader, check_dense, locate_in, read_npy};
use super::options::ReadOptions;
use super::vecs::VectorFile;
use rayon::prelude::*;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use xc_buffer::map_elements;
use xc_dense::DenseMatrix;

/// Rows of f32, mapped or in memory.
///
/// *Shapes*: `rows()` rows of `columns()` values, each row contiguous.
#[derive(Clone, Debug)]
pub struct Vectors {
    name: String,
    matrix: DenseMatrix,
}

impl Vectors {
    /// Opens a two-dimensional `.npy` file. Uncompressed little-endian f32 in C order is mapped, so that
    /// rows are read on first access; anything else that [`read_npy`] supports is read and converted, as
    /// are files whose names end in `.fvecs`, `.bvecs`, `.ivecs`, `.fbin` or `.u8bin`.
    ///
    /// While the file is mapped, no other program may change it.
    ///
    /// *Cost*: mapping reads none of the values; see [`Vectors::check`].
    ///
    /// # Errors
    /// As [`read_npy`].
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        if let Some(kind) = VectorFile::of_name(path) {
            return Ok(Self::in_memory(&name, kind.read(path, options)?));
        }
        if let Some(mapped) = Self::map(path, &name)? {
            return Ok(mapped);
        }
        Ok(Self::in_memory(&name, read_npy(path, options)?))
    }

    /// Rows that are in memory already; `name` is what errors call them.
    pub fn in_memory(name: &str, matrix: DenseMatrix) -> Self {
        Self { name: name.to_owned(), matrix }
    }

    /// The rows, where they lie.
    pub fn into_matrix(self) -> DenseMatrix {
        self.matrix
    }

    /// Maps a file whose bytes are the rows as they are wanted; none if they are not.
    fn map(path: &Path, name: &str) -> Result<Option<Self>, ReadError> {
        let fail = |e| ReadError::file(name, ReadErrorKind::Io(e));
        let problem = |e| locate_in(name, e);
        let mut file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        // What is read from a pipe is gone; a big-endian machine would have to turn the bytes.
        if !meta.is_file() || cfg!(target_endian = "big") {
            return Ok(None);
        }
        let mut head = [0u8; Compression::HEAD_BYTES];
        let n = file.read(&mut head).map_err(fail)?;
        if Compression::of(&head[..n]) != Compression::Plain {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(0)).map_err(fail)?;
        let header = NpyHeader::read(&mut file).map_err(problem)?;
        let [rows, columns] = check_dense(&header).map_err(problem)?;
        if !header.is_plain_f32() {
            return Ok(None);
        }
        let start = file.stream_position().map_err(fail)?;
        let expected = u128::from(rows) * u128::from(columns) * 4;
        let got = meta.len().saturating_sub(start);
        if u128::from(got) < expected {
            return Err(problem(NpyError::Problem(ArrayProblem::Length { got, expected })));
        }
        if u128::from(got) > expected {
            return Err(problem(NpyError::Problem(ArrayProblem::Trailing { expected })));
        }
        // All bytes are there, so the sizes fit memory; headers of unusual length leave values that
        // are not aligned.
        let range = start as usize..meta.len() as usize;
        let Some(values) = map_elements::<f32>(&file, range).map_err(fail)? else { return Ok(None) };
        Ok(Some(Self::in_memory(name, DenseMatrix::new(rows as usize, columns as usize, values))))
    }

    /// Whether the name of a file tells that it holds vectors: by `.npy` or another ending that
    /// [`Vectors::open`] lists.
    pub fn has_name(path: &Path) -> bool {
        VectorFile::of_name(path).is_some() || Format::of_name(path) == Some(Format::Npy)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.matrix.rows
    }

    /// Values per row; at least one.
    pub fn columns(&self) -> usize {
        self.matrix.columns
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.matrix.values
    }

    /// The values of some rows.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn some(&self, rows: Range<usize>) -> &[f32] {
        &self.values()[rows.start * self.columns()..rows.end * self.columns()]
    }

    /// Whether the values are in the file rather than in memory of the process.
    pub fn is_mapped(&self) -> bool {
        self.matrix.values.is_foreign()
    }

    /// Checks some rows for values that are infinite or not numbers. *Cost*: reads the rows.
    ///
    /// # Errors
    /// The first such value, with its row.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn check(&self, rows: Range<usize>) -> Result<(), ReadError> {
        /// Values of a task.
        const BLOCK: usize = 1 << 16;
        let first = rows.start * self.columns();
        let values = self.some(rows);
        let is_wrong = |v: &f32| !v.is_finite();
        let blocks = values.par_chunks(BLOCK).enumerate();
        let found = blocks.find_map_first(|(block, part)| part.iter().position(is_wrong).map(|at| block * BLOCK + at));
        let Some(at) = found else { return Ok(()) };
        let (row, column) = ((first + at) / self.columns(), (first + at) % self.columns());
        let problem = ArrayProblem::Entry {
            at: column,
            got: values[at].to_string().into(),
            expected: "a finite value that f32 can hold".into(),
        };
        Err(ReadError::row(&self.name, row as u64, ReadErrorKind::Array { array: "npy".into(), problem }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::npy::{push_header, write_npy};
    use super::*;

    /// An error and what caused it, joined as a program prints them.
    trait Said {
        fn said(&self) -> String;
    }

    impl<E: std::error::Error> Said for E {
        fn said(&self) -> String {
            let links = std::iter::successors(self.source(), |link| link.source());
            links.fold(self.to_string(), |text, link| format!("{text}: {link}"))
        }
    }

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    fn npy(rows: usize, columns: usize, values: &[f32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_npy(&mut bytes, rows, columns, values).unwrap();
        bytes
    }

    fn open(bytes: &[u8]) -> Result<Vectors, String> {
        let file = file(bytes);
        let name = file.path().display().to_string();
        Vectors::open(file.path(), &ReadOptions::default()).map_err(|e| e.said().replace(&name, "F"))
    }

    #[test]
    fn plain_f32_is_mapped_and_anything_else_is_read_to_the_same_values() {
        let values = [1.0f32, -2.5, 0.0, 4.0, 5.5, -6.0];
        let bytes = npy(3, 2, &values);
        let mapped = open(&bytes).unwrap();
        assert!(mapped.is_mapped() && (mapped.rows(), mapped.columns()) == (3, 2) && mapped.values() == values);
        assert_eq!(mapped.some(1..3), &values[2..]);
        // Doubles, the other byte order, columns first, compressed, a header that leaves the values
        // unaligned.
        let doubles = {
            let mut out = Vec::new();
            push_header(&mut out, "<f8", &[3, 2]);
            values.iter().for_each(|&v| out.extend(f64::from(v).to_le_bytes()));
            out
        };
        let big = {
            let mut out = Vec::new();
            push_header(&mut out, ">f4", &[3, 2]);
            values.iter().for_each(|v| out.extend(v.to_be_bytes()));
            out
        };
        let data = values.iter().flat_map(|v| v.to_le_bytes());
        let unaligned = {
            let head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
            let mut out = b"\x93NUMPY\x01\x00".to_vec();
            let len = (0..4).map(|pad| head.len() + pad).find(|n| !(10 + n).is_multiple_of(4)).unwrap();
            out.extend((len as u16).to_le_bytes());
            out.extend(format!("{head:<len$}").bytes());
            out.extend(data.clone());
            out
        };
        let columns_first = {
            let text = String::from_utf8_lossy(&bytes[..10 + 118]).into_owned();
            assert!(text.contains("False, "));
            let mut out = bytes[..128].to_vec();
            let at = out.windows(7).position(|w| w == b"False, ").unwrap();
            out[at..at + 7].copy_from_slice(b"True,  ");
            let turned = [0, 2, 4, 1, 3, 5].map(|at| values[at]);
            out.extend(turned.iter().flat_map(|v| v.to_le_bytes()));
            out
        };
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, &bytes).unwrap();
        for other in [doubles, big, unaligned, columns_first, gzip.finish().unwrap()] {
            let read = open(&other).unwrap();
            assert!(!read.is_mapped());
            assert_eq!(read.values(), values);
        }
    }

    #[test]
    fn what_is_missing_or_too_much_or_not_finite_is_said() {
        let bytes = npy(2, 3, &[1.0; 6]);
        let wrong = |bytes: &[u8]| open(bytes).unwrap_err();
        assert_eq!(wrong(&bytes[..bytes.len() - 1]), "F: array npy: 23 bytes of data, the shape asks for 24");
        assert_eq!(
            wrong(&[&bytes[..], &[0]].concat()),
            "F: array npy: more than the 24 bytes of data that the shape asks for"
        );
        assert!(wrong(&bytes[..20]).contains("cut off"));
        assert!(wrong(b"0,1 3:0.5\n").contains("magic bytes"));
        let mut huge = Vec::new();
        push_header(&mut huge, "<f4", &[1 << 30, 1 << 20]);
        assert!(wrong(&huge).contains("0 bytes of data"), "{}", wrong(&huge));
        let mut flat = Vec::new();
        push_header(&mut flat, "<f4", &[6]);
        assert!(wrong(&flat).contains("[rows, columns]"));
        let mut values = vec![1.0; 200_000];
        (values[131_073], values[150_000]) = (f32::NAN, f32::INFINITY);
        let bytes = npy(50_000, 4, &values);
        let file = file(&bytes);
        let open = Vectors::open(file.path(), &ReadOptions::default()).unwrap();
        let said = |rows| open.check(rows).unwrap_err().said();
        assert!(
            said(0..50_000)
                .ends_with(": row 32768: array npy: entry 1 is NaN, expected a finite value that f32 can hold")
        );
        assert!(said(32_769..50_000).contains(": row 37500: array npy: entry 0 is inf"));
        assert!(open.check(0..32_768).is_ok() && open.check(37_501..50_000).is_ok() && open.check(7..7).is_ok());
    }

    #[test]
    fn no_rows_are_rows_too() {
        let none = open(&npy(0, 7, &[])).unwrap();
        assert_eq!((none.rows(), none.columns(), none.values().len()), (0, 7, 0));
    }
}
