//! Vectors and gradients against those that HuggingFace gave once (`reference.py`).

use crate::made::{arrays, batch, reference, write_folder};
use serde_json::Value;
use std::path::{Path, PathBuf};
use xc_nn::encoder::transformer::{Folder, Transformer};
use xc_nn::state::State;
use xc_nn::{Activations, Encoder, Mode, Optimizer, Step, Update, UpdateRule};
use xc_sparse::rows::TokenRows;
use xc_store::atomic::OutputFolder;

/// The parameter that an array of HuggingFace's is a part of, and which third of its rows.
fn ours(name: &str) -> (String, Option<usize>) {
    let names = [
        ("embeddings.word_embeddings.weight", "words"),
        ("embeddings.position_embeddings.weight", "positions"),
        ("embeddings.token_type_embeddings.weight", "types"),
        ("embeddings.LayerNorm.weight", "norm.gain"),
        ("embeddings.LayerNorm.bias", "norm.bias"),
        ("encoder.relative_attention_bias.weight", "distances"),
    ];
    if let Some((_, ours)) = names.into_iter().find(|(theirs, _)| *theirs == name) {
        return (format!("transformer.{ours}"), None);
    }
    let (_, of_layer) = name.split_once(".layer.").unwrap();
    let (layer, part) = of_layer.split_once('.').unwrap();
    let (part, which) = part.rsplit_once('.').unwrap();
    let (ours, third) = match part {
        "attention.self.query" | "attention.q_lin" | "attention.attn.q" => ("qkv", Some(0)),
        "attention.self.key" | "attention.k_lin" | "attention.attn.k" => ("qkv", Some(1)),
        "attention.self.value" | "attention.v_lin" | "attention.attn.v" => ("qkv", Some(2)),
        "attention.output.dense" | "attention.out_lin" | "attention.attn.o" => ("attended", None),
        "attention.output.LayerNorm" | "sa_layer_norm" | "attention.LayerNorm" => ("norm1", None),
        "intermediate.dense" | "ffn.lin1" => ("up", None),
        "output.dense" | "ffn.lin2" => ("down", None),
        "output.LayerNorm" | "output_layer_norm" => ("norm2", None),
        other => panic!("{other} of {name}"),
    };
    let which = match which {
        "weight" if ours.starts_with("norm") => "gain",
        "weight" => "weights",
        other => other,
    };
    (format!("transformer.layer{}.{ours}.{which}", layer.parse::<usize>().unwrap() + 1), third)
}

fn parameter(of: &Transformer, name: &str) -> Vec<f64> {
    let parameters = of.parameters();
    let named = parameters.iter().find(|named| named.name == name);
    let named = named.unwrap_or_else(|| panic!("no parameter {name}"));
    named.parameter.values().iter().map(|&value| f64::from(value)).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    serde_json::from_value(value.clone()).unwrap()
}

/// The vectors of instances, by what is expected of them: at most 1e-5 apart in every value.
fn check_vectors(name: &str, vectors: &Activations, expected: &Value) {
    let expected = expected.as_array().unwrap();
    assert_eq!(vectors.len(), expected.len());
    for (i, expected) in expected.iter().enumerate() {
        let expected = numbers(expected);
        assert_eq!(vectors.width(), expected.len());
        for (got, expected) in vectors.row(i).iter().zip(expected) {
            assert!((f64::from(*got) - expected).abs() < 1e-5, "{name}, instance {i}: {got} {expected}");
        }
    }
}

fn check(family: &str) {
    let reference = reference(family);
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path(), &reference);
    check_folder(family, folder.path(), &reference);
}

/// The weights of a folder, whose vectors are the means of the tokens' states.
fn check_folder(family: &str, folder: &Path, reference: &Value) {
    let before = Folder::open(folder).unwrap().read(Default::default()).unwrap();
    let mut rows = TokenRows::new(before.params().vocabulary);
    let texts: Vec<Vec<u32>> = serde_json::from_value(reference["tokens"].clone()).unwrap();
    texts.iter().for_each(|ids| rows.push(ids).unwrap());
    let batch = batch(&rows, &(0..texts.len() as u32).collect::<Vec<_>>());

    let (mut vectors, mut scratch) = (Activations::default(), Default::default());
    let at = Step { number: 0, epoch: 0, seed: 1 };
    before.forward(&batch, Mode::Train(at), &mut vectors, &mut scratch).unwrap();
    check_vectors(family, &vectors, &reference["vectors"]);

    // The form of `reference.py` is linear in the vectors; with plain descent at rate 1 a step takes its gradient away.
    let mut gradient = Activations::default();
    gradient.reshape(vectors.len(), vectors.width());
    for (i, row) in gradient.values_mut().chunks_mut(vectors.width()).enumerate() {
        row.iter_mut().enumerate().for_each(|(j, g)| *g = (((j * 31 + i * 5) % 17) as f32 - 8.0) / 8.0);
    }
    let squares = before.squared_norm(&batch, &gradient, &mut scratch).unwrap();
    let mut after = before.clone();
    let update = Update::new(at, UpdateRule { optimizer: Optimizer::sgd(), rate: 1.0 }, 1.0);
    after.update(&batch, &gradient, &mut scratch, &update).unwrap();
    let mut sum = 0.0;
    for array in reference["gradients"].as_array().unwrap() {
        let (name, expected) = (array["name"].as_str().unwrap(), array["norm"].as_f64().unwrap());
        let (ours, third) = ours(name);
        let (before, after) = (parameter(&before, &ours), parameter(&after, &ours));
        let all: Vec<f64> = before.iter().zip(&after).map(|(before, after)| before - after).collect();
        let part = third.map_or(&all[..], |third| &all[third * all.len() / 3..(third + 1) * all.len() / 3]);
        let got = part.iter().map(|g| g * g).sum::<f64>().sqrt();
        // That of the keys' biases is 0 but for rounding.
        assert!((got - expected).abs() < 1e-4 * expected + 1e-5, "{family}, {name}: {got} {expected}");
        sum += expected * expected;
    }
    assert!((squares / sum - 1.0).abs() < 1e-4, "{family}: {squares} {sum}");
    // Written and read again it is the same.
    let place = tempfile::tempdir().unwrap();
    let written = OutputFolder::create(place.path().join("written")).unwrap();
    before.write_folder(&written).unwrap();
    written.commit().unwrap();
    let written = place.path().join("written");
    let again = Folder::open(&written).unwrap().read(Default::default()).unwrap();
    assert_eq!(again.params(), before.params());
    for (again, before) in again.parameters().iter().zip(before.parameters()) {
        assert!(again.name == before.name && again.parameter.values() == before.parameter.values(), "{}", again.name);
    }
    // Its keys and values are theirs.
    if let Some(theirs) = reference["config"].as_object() {
        let ours: Value = serde_json::from_slice(&std::fs::read(written.join("config.json")).unwrap()).unwrap();
        for (key, value) in ours.as_object().unwrap().iter().filter(|(key, _)| *key != "architectures") {
            let is_equal =
                value == &theirs[key] || value.as_f64().zip(theirs[key].as_f64()).is_some_and(|(a, b)| a == b);
            assert!(is_equal, "{family}: {key} is {value}, theirs {}", theirs[key]);
        }
    }
    assert_eq!(arrays(reference).len() + before.parameters().len() - before.params().layers * 4, {
        // Queries, keys and values are three arrays of theirs, in weights and biases.
        2 * before.parameters().len()
    });
}

#[test]
fn bert() {
    check("bert");
}

#[test]
fn distilbert() {
    check("distilbert");
}

#[test]
fn mpnet() {
    check("mpnet");
}

#[test]
fn roberta() {
    check("roberta");
}

#[test]
fn xlm_roberta() {
    check("xlm-roberta");
}

/// Weights that were trained: the folder `models/NAME` of the one that `XC_DATA` names (`bench/transformer_weights.py`).
fn check_weights(name: &str) {
    let data = std::env::var_os("XC_DATA").expect("SKIPPED: XC_DATA is not set");
    let folder = PathBuf::from(data).join("models").join(name);
    let reference = reference(name);
    check_folder(name, &folder, &reference);
    // The state of the first token, of the same weights with another pooling.
    let other = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(folder.join(file), other.path().join(file)).unwrap();
    }
    std::fs::create_dir(other.path().join("1_Pooling")).unwrap();
    let pooling = r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
    std::fs::write(other.path().join("1_Pooling/config.json"), pooling).unwrap();
    let transformer = Folder::open(other.path()).unwrap().read(Default::default()).unwrap();
    let mut rows = TokenRows::new(transformer.params().vocabulary);
    let texts: Vec<Vec<u32>> = serde_json::from_value(reference["tokens"].clone()).unwrap();
    texts.iter().for_each(|ids| rows.push(ids).unwrap());
    let batch = batch(&rows, &(0..texts.len() as u32).collect::<Vec<_>>());
    let mut states = Activations::default();
    transformer.forward(&batch, Mode::Predict, &mut states, &mut Default::default()).unwrap();
    check_vectors(name, &states, &reference["firsts"]);
}

#[test]
#[ignore = "needs weights: XC_DATA=FOLDER with models/all-MiniLM-L6-v2/ in it"]
fn weights_of_all_minilm_l6_v2() {
    check_weights("all-MiniLM-L6-v2");
}

#[test]
#[ignore = "needs weights: XC_DATA=FOLDER with models/paraphrase-MiniLM-L3-v2/ in it"]
fn weights_of_paraphrase_minilm_l3_v2() {
    check_weights("paraphrase-MiniLM-L3-v2");
}

#[test]
#[ignore = "needs weights: XC_DATA=FOLDER with models/all-mpnet-base-v2/ in it"]
fn weights_of_all_mpnet_base_v2() {
    check_weights("all-mpnet-base-v2");
}
