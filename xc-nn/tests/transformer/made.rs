//! Small transformers and batches, and folders that hold them.

use serde_json::{Value, json};
use std::path::Path;
use xc_nn::encoder::transformer::{Architecture, Distances, Pooling, TransformerParams};
use xc_nn::{Batch, Examples, Rows};
use xc_sparse::LabelRows;
use xc_sparse::rows::TokenRows;

/// The values of an array by its name, as `reference.py` makes them.
pub(crate) fn values(name: &str, n: usize) -> Vec<f32> {
    let mut state = name.bytes().fold(0u64, |state, byte| (state * 131 + u64::from(byte)) % 65521);
    let gain = if name.to_lowercase().ends_with("norm.weight") { 1.0 } else { 0.0 };
    let one = |_| {
        state = (state * 75 + 74) % 65537;
        ((state as f64 / 65537.0 - 0.5) / 2.0) as f32 + gain
    };
    (0..n).map(one).collect()
}

/// What HuggingFace gave for a family.
pub(crate) fn reference(family: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/transformer/{family}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Name and shape of each array of a reference.
pub(crate) fn arrays(reference: &Value) -> Vec<(String, Vec<usize>)> {
    let shape = |array: &Value| serde_json::from_value(array["shape"].clone()).unwrap();
    let arrays = reference["gradients"].as_array().unwrap();
    arrays.iter().map(|array| (array["name"].as_str().unwrap().to_owned(), shape(array))).collect()
}

/// A safetensors file of arrays in f32.
pub(crate) fn safetensors(arrays: &[(String, Vec<usize>)], of: impl Fn(&str, usize) -> Vec<f32>) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape) in arrays {
        let begin = data.len();
        data.extend(of(name, shape.iter().product()).iter().flat_map(|value| value.to_le_bytes()));
        header.insert(name.clone(), json!({ "dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()] }));
    }
    let header = Value::from(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

/// The folder of a reference, with its configuration and the values that it was computed of.
pub(crate) fn write_folder(folder: &Path, reference: &Value) {
    std::fs::write(folder.join("config.json"), reference["config"].to_string()).unwrap();
    std::fs::write(folder.join("model.safetensors"), safetensors(&arrays(reference), values)).unwrap();
}

/// A transformer of a few hundred values.
pub(crate) fn small(distances: Option<Distances>, pooling: Pooling, types: usize) -> TransformerParams {
    TransformerParams {
        family: Architecture::Bert,
        vocabulary: 11,
        positions: 9,
        first_position: 2,
        types,
        width: 8,
        heads: 2,
        units: 12,
        layers: 3,
        epsilon: 1e-5,
        distances,
        dense: Vec::new(),
        pooling,
    }
}

/// Instances of 4, 1, 0, 7 and so on tokens of `vocabulary`.
pub(crate) fn tokens(n: usize, vocabulary: usize, longest: usize) -> TokenRows {
    let mut rows = TokenRows::new(vocabulary);
    for i in 0..n {
        let len = if i == 2 { 0 } else { (4 + i * 5 + i / 3) % longest + 1 };
        let ids: Vec<u32> = (0..len).map(|at| ((i * 7 + at * at * 3 + at) % vocabulary) as u32).collect();
        rows.push(&ids).unwrap();
    }
    rows
}

/// A batch for training of some instances.
pub(crate) fn batch(rows: &TokenRows, numbers: &[u32]) -> Batch {
    let targets = LabelRows::from_lists((0..rows.len() as u32).map(|i| [i % 3]), 3).unwrap();
    let mut batch = Batch::default();
    batch.fill(&Examples::try_new(Rows::Tokens(rows.view()), &targets).unwrap(), numbers);
    batch
}
