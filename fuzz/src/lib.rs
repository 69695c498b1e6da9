//! What the fuzz targets share: readers take paths, so each input becomes a file in memory.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use xc_buffer::dtype::DType;
use xc_data::ReadOptions;
use xc_hash::text::{PartArray, PipelineParts};
use xc_store::{ArrayRef, ContainerWriter};

// One folder for the whole run, on a file system in memory where there is one.
static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary folder for the inputs")
});

/// Puts `bytes` into a file of this name, replacing the one before.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.path().join(name);
    std::fs::write(&path, bytes).expect("a temporary file for the input");
    path
}

/// Makes a folder of this name hold these files and nothing else.
pub fn folder(name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let path = FOLDER.path().join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).expect("the folder of the input before is removed");
    }
    std::fs::create_dir(&path).expect("a temporary folder for the input");
    for (name, bytes) in files {
        let file = path.join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(&path)).expect("a folder in it");
        std::fs::write(file, bytes).expect("a temporary file for the input");
    }
    path
}

/// Stands between the files of a folder in one input.
pub const SEPARATOR: &[u8] = b"\n#-next-#\n";

/// The parts of an input that are divided by [`SEPARATOR`]; missing ones are empty.
pub fn sections<const N: usize>(bytes: &[u8]) -> [&[u8]; N] {
    let mut rest = Some(bytes);
    std::array::from_fn(|_| {
        let here = rest.unwrap_or_default();
        match here.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
            Some(at) => {
                rest = Some(&here[at + SEPARATOR.len()..]);
                &here[..at]
            }
            None => {
                rest = None;
                here
            }
        }
    })
}

/// Options under which a small input cannot ask for much memory, and blocks end in the middle of it.
pub fn options() -> ReadOptions {
    ReadOptions {
        block_bytes: 64,
        max_expanded_bytes: Some(1 << 20),
        max_line_bytes: 1 << 16,
        ..ReadOptions::default()
    }
}

/// An error is one line that begins with the file.
pub fn check_message(path: &Path, message: &str) {
    assert!(message.starts_with(&path.display().to_string()), "the message names no file: {message}");
    assert!(!message.contains('\n'), "the message has several lines: {message:?}");
}

/// An array of an input: a line `NAME TYPE WIDTH`, then the bytes of its elements. The width `flat` is that of an array of one dimension.
pub struct Block<'a> {
    pub name: &'a str,
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bytes: &'a [u8],
}

/// The [`Block`]s of some sections; what is no block is left out.
pub fn blocks<'a>(sections: &[&'a [u8]]) -> Vec<Block<'a>> {
    sections.iter().filter_map(|section| block(section)).collect()
}

fn block(section: &[u8]) -> Option<Block<'_>> {
    let end = section.iter().position(|&b| b == b'\n')?;
    let mut words = std::str::from_utf8(&section[..end]).ok()?.split(' ');
    let name = words.next()?;
    let dtype = match words.next()? {
        "u8" => DType::U8,
        "u16" => DType::U16,
        "u32" => DType::U32,
        "u64" => DType::U64,
        "f16" => DType::F16,
        "bf16" => DType::Bf16,
        "e4m3" => DType::E4m3,
        "e5m2" => DType::E5m2,
        _ => DType::F32,
    };
    let width = words.next()?;
    let n = (section.len() - end - 1) / dtype.n_bytes();
    let shape = if width == "flat" {
        vec![n]
    } else {
        let width: usize = width.parse().ok()?;
        // A width of 0 has any number of rows: the input's next number.
        let rows = if width == 0 { words.next()?.parse().ok()? } else { n / width };
        vec![rows, width]
    };
    let bytes = &section[end + 1..][..shape.iter().product::<usize>() * dtype.n_bytes()];
    Some(Block { name, dtype, shape, bytes })
}

/// Elements of a block of 32-bit numbers.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// What a model's folder keeps of a feature pipeline, and a text: the configuration, the text, then the arrays. `None` where the
/// configuration is no JSON.
pub fn pipeline_parts(input: &[u8]) -> Option<(PipelineParts, String)> {
    let parts: [&[u8]; 40] = sections(input);
    let config = serde_json::from_slice(parts[0]).ok()?;
    let arrays = blocks(&parts[2..]).into_iter().map(|block| {
        let array = match block.dtype {
            DType::U8 => PartArray::U8(block.bytes.to_vec()),
            DType::U32 => PartArray::U32(words(block.bytes)),
            _ => PartArray::F32(words(block.bytes).into_iter().map(f32::from_bits).collect()),
        };
        (block.name.to_owned(), array)
    });
    Some((PipelineParts { config, arrays: arrays.collect() }, String::from_utf8_lossy(parts[1]).into_owned()))
}

/// A model folder of some kind. The first byte says how: configuration and arrays written anew from the input (so that hashes
/// and offsets hold), or its files as they stand in the input. `None` where the writer refuses.
pub fn model_folder(kind: &str, how: u8, input: &[u8]) -> Option<PathBuf> {
    model_folder_with(kind, how, input, |_| {})
}

/// As [`model_folder`]; `add` puts more into a folder that is written anew.
pub fn model_folder_with(kind: &str, how: u8, input: &[u8], add: impl FnOnce(&mut ContainerWriter)) -> Option<PathBuf> {
    if how % 2 != 0 {
        let [config, arrays] = sections(input);
        return Some(folder(kind, &[("config.json", config), ("model.safetensors", arrays)]));
    }
    let parts: [&[u8]; 25] = sections(input);
    let path = folder(kind, &[]);
    let mut writer = ContainerWriter::create(&path, kind).expect("an empty folder takes a model");
    let Ok(serde_json::Value::Object(parameters)) = serde_json::from_slice(parts[0]) else { return None };
    parameters.into_iter().for_each(|(name, value)| writer.set_parameter(&name, value));
    for Block { name, dtype, shape, bytes } in blocks(&parts[1..]) {
        writer.add(name, ArrayRef { dtype, shape: &shape, bytes }).ok()?;
    }
    add(&mut writer);
    writer.finish().expect("memory takes a small model");
    Some(path)
}
