//! Folders of sentence-transformers: what stands beside a transformer is applied or refused by name.

use crate::made::{arrays, reference, safetensors, values, write_folder};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use xc_nn::Encoder as _;
use xc_nn::encoder::transformer::{DenseActivation, DenseParams, Folder, FolderError, Pooling, TextRules, Transformer};
use xc_nn::state::State;
use xc_store::atomic::OutputFolder;

fn write(path: &Path, content: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content.to_string()).unwrap();
}

fn weights(folder: Folder) -> Vec<f32> {
    let transformer = folder.read(Default::default()).unwrap();
    transformer.parameters().iter().flat_map(|named| named.parameter.values().to_vec()).collect()
}

fn modules(of: &[(&str, &str)]) -> Value {
    let one = |(at, (path, kind)): (usize, &(&str, &str))| {
        let kind = format!("sentence_transformers.models.{kind}");
        json!({ "idx": at, "name": at.to_string(), "path": path, "type": kind })
    };
    of.iter().enumerate().map(one).collect()
}

/// A folder with a transformer at a place, of these modules.
fn folder(transformer: &str, of: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join(transformer);
    std::fs::create_dir_all(&at).unwrap();
    write_folder(&at, &reference("bert"));
    write(&folder.path().join("modules.json"), &modules(of));
    folder
}

fn said(folder: &Path) -> String {
    let error = Folder::open(folder).map(drop).unwrap_err();
    error.to_string().replace(&format!("{}/", folder.display()), "")
}

fn first() -> Value {
    json!({ "word_embedding_dimension": 16, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false })
}

#[test]
fn modules_say_where_the_transformer_and_its_pooling_are() {
    for (place, pooling) in [("", "1_Pooling"), ("0_Transformer", "1_Pooling"), ("", "pool"), ("a/b", "a/c")] {
        let made = folder(place, &[(place, "Transformer"), (pooling, "Pooling"), ("2_Normalize", "Normalize")]);
        write(&made.path().join(pooling).join("config.json"), &first());
        let opened = Folder::open(made.path()).unwrap();
        assert_eq!((opened.params().pooling, opened.normalises()), (Pooling::First, Some("2_Normalize")));
        assert_eq!(opened.path(), made.path().join(place));
        let plain = tempfile::tempdir().unwrap();
        write_folder(plain.path(), &reference("bert"));
        assert_eq!(weights(opened), weights(Folder::open(plain.path()).unwrap()));
    }
}

#[test]
fn modules_that_are_not_known_are_named() {
    let order = "expected Transformer, Pooling, Dense and Normalize in this order";
    for (of, expected) in [
        (&[("", "Transformer")][..], "no Pooling behind the Transformer".to_owned()),
        (&[("", "Transformer"), ("1", "Transformer")], "module 1 is a second Transformer, expected one".to_owned()),
        (&[("", "Transformer"), ("1", "Dense")], format!("module 1 is Dense, {order}")),
        (
            &[("", "Transformer"), ("1", "Pooling"), ("2", "Normalize"), ("3", "Dense")],
            format!("module 3 is Dense, {order}"),
        ),
        (
            &[("", "Transformer"), ("1", "Pooling"), ("2", "LSTM")],
            "module 2 is \"sentence_transformers.models.LSTM\", expected Transformer, Pooling, Dense or Normalize"
                .to_owned(),
        ),
        (
            &[("", "BoW"), ("1", "Pooling")],
            "module 0 is \"sentence_transformers.models.BoW\", expected a Transformer".to_owned(),
        ),
        (
            &[("", "Transformer"), ("../1", "Pooling")],
            "module 1: path \"../1\", expected one inside of the folder".to_owned(),
        ),
    ] {
        assert_eq!(said(folder("", of).path()), format!("modules.json: {expected}"));
    }
    let made = folder("", &[("", "Transformer"), ("1", "Pooling")]);
    write(&made.path().join("1/config.json"), &json!({ "pooling_mode": "max" }));
    assert_eq!(said(made.path()), "1/config.json: pooling_mode is \"max\", expected mean or cls");
    for list in [json!({}), json!([]), json!([{ "type": 1, "path": "" }])] {
        write(&made.path().join("modules.json"), &list);
        assert!(said(made.path()).starts_with("modules.json: "), "{}", said(made.path()));
    }
    let adapted = folder("", &[("", "Transformer"), ("1", "Pooling")]);
    write(&adapted.path().join("adapter_config.json"), &json!({}));
    assert!(said(adapted.path()).starts_with("adapter_config.json: an adapter beside the weights"));
}

#[test]
fn linear_layers_follow_each_other() {
    let made = folder("", &[("", "Transformer"), ("1", "Pooling"), ("2", "Dense"), ("3", "Dense")]);
    let layer = |at: &str, inputs: usize, outputs: usize, activation: &str, more: Value| {
        let of = "torch.nn.modules.activation.";
        let mut config = json!({ "in_features": inputs, "out_features": outputs, "bias": true,
            "activation_function": format!("{of}{activation}") });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = made.path().join(at);
        write(&path.join("config.json"), &config);
        let arrays = [("linear.weight".to_owned(), vec![outputs, inputs]), ("linear.bias".to_owned(), vec![outputs])];
        std::fs::write(path.join("model.safetensors"), safetensors(&arrays, values)).unwrap();
    };
    layer("2", 16, 6, "Tanh", json!({}));
    layer("3", 6, 9, "ReLU", json!({ "bias": false }));
    let read = Folder::open(made.path()).unwrap().read(Default::default()).unwrap();
    let params = |inputs, outputs, activation| DenseParams { inputs, outputs, activation };
    let expected = [params(16, 6, DenseActivation::Tanh), params(6, 9, DenseActivation::Relu)];
    assert_eq!((read.width(), &read.params().dense[..]), (9, &expected[..]));
    let behind = |read: &Transformer| -> Vec<(String, Vec<f32>)> {
        let all = read.parameters().into_iter().filter(|named| named.name.contains(".dense"));
        all.map(|named| (named.name, named.parameter.values().to_vec())).collect()
    };
    let of = |name: &str, values: Vec<f32>| (format!("transformer.{name}"), values);
    let (weights, bias) = (|n| values("linear.weight", n), |n| values("linear.bias", n));
    let without = of("dense2.bias", vec![0.0; 9]);
    let expected =
        [of("dense1.weights", weights(96)), of("dense1.bias", bias(6)), of("dense2.weights", weights(54)), without];
    assert_eq!(behind(&read), expected);
    // Written and read again they are the same.
    let place = tempfile::tempdir().unwrap();
    let written = OutputFolder::create(place.path().join("written")).unwrap();
    read.write_folder(&written).unwrap();
    written.commit().unwrap();
    let again = Folder::open(place.path().join("written")).unwrap().read(Default::default()).unwrap();
    assert_eq!((again.params(), behind(&again)), (read.params(), behind(&read)));
    layer("3", 7, 9, "ReLU", json!({}));
    assert_eq!(said(made.path()), "3/config.json: in_features is 7, expected the values of a vector that comes to it");
    layer("3", 6, 9, "Softmax", json!({}));
    assert!(
        said(made.path()).ends_with("Softmax\", expected Tanh, Identity, ReLU or Sigmoid"),
        "{}",
        said(made.path())
    );
    layer("3", 6, 9, "Tanh", json!({ "module_input_name": "token_embeddings" }));
    assert!(said(made.path()).starts_with("3/config.json: module_input_name"), "{}", said(made.path()));
    layer("3", 6, 9, "Tanh", json!({ "out_features": 8 }));
    assert!(said(made.path()).contains("array \"linear.weight\" has shape [9, 6]"), "{}", said(made.path()));
    std::fs::remove_file(made.path().join("2/model.safetensors")).unwrap();
    std::fs::write(made.path().join("2/pytorch_model.bin"), "").unwrap();
    assert!(said(made.path()).contains("not there; pytorch_model.bin is not read"), "{}", said(made.path()));
}

#[test]
fn small_files_say_how_texts_are_read() {
    let made = folder("0", &[("0", "Transformer"), ("1", "Pooling")]);
    let rules = || Folder::open(made.path()).map(|folder| folder.text_rules().clone());
    let put = |name: &str, content: Value| write(&made.path().join(name), &content);
    assert_eq!(rules().unwrap(), TextRules::default());
    put("0/sentence_bert_config.json", json!({ "max_seq_length": 32, "do_lower_case": true }));
    put("0/tokenizer_config.json", json!({ "do_lower_case": true, "tokenizer_class": "BertTokenizer" }));
    put("config_sentence_transformers.json", json!({ "prompts": { "query": "q: " }, "default_prompt_name": "query" }));
    let all = TextRules {
        lower_case: true,
        tokenizer_lower_case: Some(true),
        max_tokens: Some(32),
        prompt: Some("q: ".to_owned()),
    };
    assert_eq!(rules().unwrap(), all);
    put("1/config.json", json!({ "pooling_mode": "mean", "include_prompt": false }));
    let left_out = rules().unwrap_err().to_string();
    assert!(
        left_out.ends_with("include_prompt is false, expected true where texts have a default prompt"),
        "{left_out}"
    );
    // A class that reads tokenizer.json as it is; nothing is chosen.
    put("0/tokenizer_config.json", json!({ "do_lower_case": true, "tokenizer_class": "PreTrainedTokenizerFast" }));
    put("0/sentence_bert_config.json", json!({ "max_seq_length": null, "do_lower_case": false }));
    put("config_sentence_transformers.json", json!({ "prompts": { "query": "q: " }, "default_prompt_name": null }));
    assert_eq!(rules().unwrap(), TextRules::default());
    for (name, content) in [
        ("0/sentence_bert_config.json", json!({ "max_seq_length": "long" })),
        ("0/sentence_bert_config.json", json!({ "do_lower_case": 1 })),
        ("config_sentence_transformers.json", json!({ "prompts": {}, "default_prompt_name": "query" })),
    ] {
        let before = std::fs::read(made.path().join(name)).unwrap();
        put(name, content);
        let said = rules().unwrap_err();
        assert!(matches!(&said, FolderError::Value { path, .. } if path.ends_with(name)), "{said}");
        std::fs::write(made.path().join(name), before).unwrap();
    }
}

#[test]
fn what_stands_in_the_place_of_a_file_is_named() {
    let (missing, made) = (Path::new("owner/name-of-a-repository"), tempfile::tempdir().unwrap());
    assert!(Folder::open(missing).unwrap_err().to_string().contains("no such folder"));
    write_folder(made.path(), &reference("bert"));
    let weights = made.path().join("model.safetensors");
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 9\n", "a".repeat(64));
    for name in ["model.safetensors", "config.json"] {
        let before = std::fs::read(made.path().join(name)).unwrap();
        std::fs::write(made.path().join(name), &pointer).unwrap();
        assert!(said(made.path()).starts_with(&format!("{name}: a pointer of git-lfs in place of the file")));
        std::fs::write(made.path().join(name), before).unwrap();
    }
    std::fs::rename(&weights, made.path().join("pytorch_model.bin")).unwrap();
    assert!(said(made.path()).starts_with("model.safetensors: not there; pytorch_model.bin is not read"));
}

#[test]
fn more_layers_than_the_weights_have_are_refused_at_once() {
    let (made, mut reference) = (tempfile::tempdir().unwrap(), reference("bert"));
    reference["config"]["num_hidden_layers"] = json!(1 << 20);
    write_folder(made.path(), &reference);
    let began = std::time::Instant::now();
    assert!(said(made.path()).contains("no array \"encoder.layer.2."), "{}", said(made.path()));
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each array lies in each file, with its own values where the index says so alone.
    #[test]
    fn arrays_are_those_of_the_file_that_the_index_names(places in prop::collection::vec(0usize..3, 64), left_out in any::<prop::sample::Index>()) {
        let (made, reference) = (tempfile::tempdir().unwrap(), reference("bert"));
        write_folder(made.path(), &reference);
        let expected = weights(Folder::open(made.path()).unwrap());
        std::fs::remove_file(made.path().join("model.safetensors")).unwrap();
        let (all, name) = (arrays(&reference), |file: usize| format!("model-{file}.safetensors"));
        let place = |array: &str| places[all.iter().position(|(name, _)| name == array).unwrap() % places.len()];
        for file in 0..3 {
            let of = |array: &str, n: usize| if place(array) == file { values(array, n) } else { vec![9.0; n] };
            std::fs::write(made.path().join(name(file)), safetensors(&all, of)).unwrap();
        }
        let mut map: serde_json::Map<String, Value> =
            all.iter().map(|(array, _)| (array.clone(), json!(name(place(array))))).collect();
        let index = made.path().join("model.safetensors.index.json");
        write(&index, &json!({ "weight_map": map }));
        prop_assert_eq!(weights(Folder::open(made.path()).unwrap()), expected);
        // One that is not listed is not there.
        let gone = &all[left_out.index(all.len())].0;
        map.remove(gone);
        write(&index, &json!({ "weight_map": map }));
        prop_assert!(said(made.path()).ends_with(&format!("no array {gone:?}")), "{}", said(made.path()));
    }
}
