//! Arrays of safetensors files that other programs wrote, or are to read.

use super::OpenError;
use super::header::{HEADER_LIMIT, Header};
use super::opened::OpenFolder;
use half::{bf16, f16};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use xc_buffer::dtype::{DType, Float};

/// Bytes read at a time: a multiple of the size of every number.
const PIECE: usize = 1 << 20;

/// An open safetensors file of any program: its arrays are read one by one into memory of the
/// caller, and widened to f32 where they are stored in 16 bits.
///
/// The file is not mapped: whoever changes it meanwhile makes an array of other numbers or an
/// error, no more.
///
/// *Cost*: opening reads the header, which may have 32 MB at most.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    file: File,
    /// Where the data part begins.
    start: u64,
    header: Header,
}

impl TensorFile {
    /// Opens the file `name` in `folder` and checks that header and length agree.
    ///
    /// # Errors
    /// It cannot be read, is no regular file, or its header is malformed, describes arrays that overlap or leave holes,
    /// or another length than the file has.
    pub fn open(folder: &Path, name: &str) -> Result<Self, OpenError> {
        let path = folder.join(name);
        let io = |source| OpenError::Io { path: path.clone(), source };
        let opened = OpenFolder::open(folder).map_err(|source| OpenError::Io { path: folder.to_owned(), source })?;
        let mut file = opened.file(name).map_err(io)?;
        let got = file.metadata().map_err(io)?.len();
        let length = |expected| OpenError::Length { path: path.clone(), got, expected };
        if got < 8 {
            return Err(length(8));
        }
        let mut prefix = [0; 8];
        file.read_exact(&mut prefix).map_err(io)?;
        let n_header = u64::from_le_bytes(prefix);
        if n_header > HEADER_LIMIT {
            let (what, limit) = ("header", HEADER_LIMIT);
            return Err(OpenError::TooLarge { path, what, got: n_header, limit });
        }
        if got < 8 + n_header {
            return Err(length(8 + n_header));
        }
        let mut text = vec![0; n_header as usize];
        file.read_exact(&mut text).map_err(io)?;
        let header: Header =
            serde_json::from_slice(&text).map_err(|source| OpenError::Header { path: path.clone(), source })?;
        let start = 8 + n_header;
        let expected = start.saturating_add(header.data_len());
        if got != expected {
            return Err(length(expected));
        }
        Ok(Self { path, file, start, header })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name, type and shape of each array, by name.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, DType, &[usize])> {
        self.header.arrays().iter().map(|(name, info)| (name.as_str(), info.dtype, &*info.shape))
    }

    /// Whether there is an array of that name and shape, of F32, F16 or BF16.
    ///
    /// # Errors
    /// What is otherwise.
    pub fn expect_floats(&self, name: &str, shape: &[usize]) -> Result<(), OpenError> {
        let path = || self.path.clone();
        let Some(info) = self.header.arrays().get(name) else {
            return Err(OpenError::MissingArray { path: path(), name: name.to_owned() });
        };
        if !matches!(info.dtype, DType::F32 | DType::F16 | DType::Bf16) {
            let (got, expected) = (info.dtype.to_string(), DType::F32);
            return Err(OpenError::Dtype { path: path(), name: name.to_owned(), got, expected });
        }
        if info.shape != shape {
            let (got, expected) = (info.shape.clone(), shape.to_vec());
            return Err(OpenError::Shape { path: path(), name: name.to_owned(), got, expected });
        }
        Ok(())
    }

    /// Reads an array of floats, row-major, widened to f32.
    ///
    /// # Errors
    /// As [`TensorFile::expect_floats`]; the file cannot be read.
    ///
    /// # Panics
    /// If `into` has not the length of the shape.
    pub fn read_floats(&mut self, name: &str, shape: &[usize], into: &mut [f32]) -> Result<(), OpenError> {
        self.expect_floats(name, shape)?;
        let (dtype, from) = {
            let info = &self.header.arrays()[name];
            (info.dtype, self.start + info.data_offsets.0 as u64)
        };
        let expected = shape.iter().product::<usize>();
        assert!(into.len() == expected, "array {name}: room for {} values, expected {expected}", into.len());
        let Self { file, path, .. } = self;
        let each = dtype.n_bytes();
        let mut read = || {
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = vec![0; PIECE.min(into.len() * each)];
            for values in into.chunks_mut(PIECE / each) {
                let bytes = &mut bytes[..values.len() * each];
                file.read_exact(bytes)?;
                match dtype {
                    DType::F32 => widen(bytes, values, f32::from_le_bytes),
                    DType::F16 => widen(bytes, values, |two| f16::from_le_bytes(two).widen()),
                    _ => widen(bytes, values, |two| bf16::from_le_bytes(two).widen()),
                }
            }
            Ok(())
        };
        read().map_err(|source| OpenError::Io { path: path.clone(), source })
    }
}

/// An array of floats that [`write_tensors`] writes: its name, its shape and its values, row-major.
pub type NamedFloats<'a> = (String, Vec<usize>, &'a [f32]);

/// Writes arrays as a safetensors file for other programs, PyTorch's among them, in the given order.
///
/// # Errors
/// The file cannot be written.
///
/// # Panics
/// If an array has not as many values as its shape, or two have one name.
pub fn write_tensors(arrays: &[NamedFloats<'_>], to: &mut impl Write) -> io::Result<()> {
    // Libraries over PyTorch refuse files that do not say so.
    let mut header = serde_json::Map::from_iter([("__metadata__".to_owned(), json!({ "format": "pt" }))]);
    let mut end = 0;
    for (name, shape, values) in arrays {
        assert!(shape.iter().product::<usize>() == values.len(), "array {name}: values for {shape:?}");
        let begin = end;
        end += 4 * values.len();
        let entry = json!({ "dtype": DType::F32.to_string(), "shape": shape, "data_offsets": [begin, end] });
        assert!(header.insert(name.clone(), entry).is_none(), "array {name} twice");
    }
    let mut header = serde_json::Value::Object(header).to_string();
    // Numbers begin where they can be mapped.
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    to.write_all(&(header.len() as u64).to_le_bytes())?;
    to.write_all(header.as_bytes())?;
    for (_, _, values) in arrays {
        for values in values.chunks(PIECE / 4) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            to.write_all(&bytes)?;
        }
    }
    Ok(())
}

fn widen<const N: usize>(bytes: &[u8], values: &mut [f32], of: impl Fn([u8; N]) -> f32) {
    let (numbers, _) = bytes.as_chunks::<N>();
    values.iter_mut().zip(numbers).for_each(|(value, &bytes)| *value = of(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file with a header of that text.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn opened(bytes: &[u8]) -> Result<TensorFile, OpenError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.safetensors"), bytes).unwrap();
        TensorFile::open(folder.path(), "a.safetensors")
    }

    const HEADER: &str = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},
        "b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},"c":{"dtype":"F16","shape":[1],"data_offsets":[12,14]},
        "d":{"dtype":"I64","shape":[1],"data_offsets":[14,22]}}"#;

    fn data() -> Vec<u8> {
        let floats = [1.5f32, -2.0].map(f32::to_le_bytes).concat();
        let halves = [bf16::from_f32(0.5), bf16::from_f32(-3.0)].map(bf16::to_le_bytes).concat();
        [&*floats, &halves, &f16::from_f32(0.25).to_le_bytes(), &7i64.to_le_bytes()].concat()
    }

    #[test]
    fn floats_of_any_width_are_read_by_name_type_and_shape() {
        let mut file = opened(&file(HEADER, &data())).unwrap();
        assert_eq!(file.arrays().map(|(name, ..)| name).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        let mut read = |name: &str, shape: &[usize]| {
            let mut out = vec![f32::NAN; shape.iter().product()];
            file.read_floats(name, shape, &mut out).map(|()| out).map_err(|e| e.to_string())
        };
        assert_eq!(read("b", &[2]), Ok(vec![0.5, -3.0]));
        assert_eq!(read("a", &[1, 2]), Ok(vec![1.5, -2.0]));
        assert_eq!(read("c", &[1]), Ok(vec![0.25]));
        let said = |outcome: Result<Vec<f32>, String>| {
            outcome.unwrap_err().split_once("a.safetensors: ").map(|(_, what)| what.to_owned()).unwrap()
        };
        assert_eq!(said(read("a", &[2, 1])), r#"array "a" has shape [1, 2], expected [2, 1]"#);
        assert_eq!(said(read("d", &[1])), r#"array "d" is of type I64, expected F32"#);
        assert_eq!(said(read("e", &[1])), r#"no array "e""#);
    }

    proptest! {
        #[test]
        fn arrays_that_were_written_are_read_again(
            arrays in prop::collection::btree_map("[a-z.\"]{1,6}", (0usize..4, prop::collection::vec(any::<f32>(), 0..9)), 0..5)
        ) {
            let arrays: Vec<(String, Vec<usize>, Vec<f32>)> = arrays.into_iter().map(|(name, (rank, values))| {
                let shape = std::iter::repeat_n(1, rank).chain([values.len()]).collect();
                (name, shape, values)
            }).collect();
            let views: Vec<NamedFloats<'_>> =
                arrays.iter().map(|(name, shape, values)| (name.clone(), shape.clone(), &**values)).collect();
            let mut bytes = Vec::new();
            write_tensors(&views, &mut bytes).unwrap();
            let mut file = opened(&bytes).unwrap();
            prop_assert_eq!(file.arrays().count(), arrays.len());
            for (name, shape, values) in &arrays {
                let mut again = vec![0.0; values.len()];
                file.read_floats(name, shape, &mut again).unwrap();
                prop_assert!(again.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
            }
        }

        #[test]
        fn a_damaged_file_is_an_error_or_gives_numbers(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let mut bytes = file(HEADER, &data());
            let n = bytes.len();
            bytes[at.index(n)] = byte;
            prop_assert!(opened(&bytes[..cut.index(n)]).is_err());
            if let Ok(mut file) = opened(&bytes) {
                let all: Vec<(String, Vec<usize>)> = file.arrays().map(|(name, _, shape)| (name.to_owned(), shape.to_vec())).collect();
                for (name, shape) in all {
                    let mut out = vec![0.0; shape.iter().product()];
                    let _is_of_floats = file.read_floats(&name, &shape, &mut out).is_ok();
                }
            }
        }
    }
}
