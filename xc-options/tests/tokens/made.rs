//! Folders of small transformers.

#[expect(dead_code, reason = "tokenizers have other words here")]
#[path = "../../../xc-model/tests/tokens/file.rs"]
mod file;

pub(crate) use file::of_words;
use serde_json::{Value, json};
use std::path::Path;

/// Words of the texts that networks are trained on, in their tokenizer.
pub(crate) const NAMES: &str = "audio mail library reader client window server editor ##s of";

/// Tokens of that tokenizer.
pub(crate) const N_NAMES: usize = 14;

/// A folder with a BERT of two layers and width 16 whose weights are numbers of their own, and that tokenizer.
pub(crate) fn write_folder(folder: &Path) {
    let (width, units) = (16, 32);
    let config = json!({
        "model_type": "bert", "vocab_size": N_NAMES, "hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": units, "hidden_act": "gelu", "max_position_embeddings": 24, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12
    });
    let mut arrays: Vec<(String, Vec<usize>)> = Vec::new();
    let mut push = |name: String, shape: &[usize]| arrays.push((name, shape.to_vec()));
    push("embeddings.word_embeddings.weight".into(), &[N_NAMES, width]);
    push("embeddings.position_embeddings.weight".into(), &[24, width]);
    push("embeddings.token_type_embeddings.weight".into(), &[2, width]);
    for part in ["weight", "bias"] {
        push(format!("embeddings.LayerNorm.{part}"), &[width]);
        for layer in (0..2).map(|layer| format!("encoder.layer.{layer}")) {
            let mut linear = |name: &str, rows: usize, columns: usize| {
                let shape = [rows, columns];
                push(format!("{layer}.{name}.{part}"), if part == "bias" { &shape[..1] } else { &shape });
            };
            ["query", "key", "value"].iter().for_each(|of| linear(&format!("attention.self.{of}"), width, width));
            linear("attention.output.dense", width, width);
            linear("intermediate.dense", units, width);
            linear("output.dense", width, units);
            push(format!("{layer}.attention.output.LayerNorm.{part}"), &[width]);
            push(format!("{layer}.output.LayerNorm.{part}"), &[width]);
        }
    }
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape) in &arrays {
        let gain = if name.ends_with("LayerNorm.weight") { 1.0 } else { 0.0 };
        let one = |i: usize| gain + (((i * 7919 + name.len() * 31) % 211) as f32 / 105.0 - 1.0) * 0.2;
        let begin = data.len();
        data.extend((0..shape.iter().product()).flat_map(|i| one(i).to_le_bytes()));
        header.insert(name.clone(), json!({ "dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()] }));
    }
    let header = Value::from(header).to_string();
    let weights = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    std::fs::write(folder.join("model.safetensors"), weights).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), of_words(NAMES).to_string()).unwrap();
}
