//! What a folder of sentence-transformers says beside its transformer, in vectors of texts and in models that keep it.

use crate::made::N_NAMES;
use crate::trained::{run, texts, with_bert};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use xc_buffer::Cancel;
use xc_dense::MatmulPrecision;
use xc_hash::text::Vectorise as _;
use xc_model::Model;
use xc_model::classifier::Classifier;
use xc_model::tokens::{TextVectors, Tokenizer, TokenizerError};
use xc_nn::encoder::transformer::Folder;
use xc_nn::state::State as _;
use xc_options::Training;
use xc_sparse::rows::{OwnedRows, Rows, Texts};
use xc_train::fit::{Arrays, Embed, Silent, Watch};
use xc_train::network::Pretrained;

fn put(folder: &Path, name: &str, content: &Value) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content.to_string()).unwrap();
}

fn change(folder: &Path, name: &str, change: impl Fn(&mut Value)) {
    let mut content: Value = serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap();
    change(&mut content);
    put(folder, name, &content);
}

fn opened(from: &Path, prefix: Option<&str>) -> TextVectors {
    let (from, prefix) = (from.to_owned(), prefix.map(str::to_owned));
    let pretrained = Pretrained { from, max_tokens: 8, prefix };
    let of = Embed { pretrained, precision: MatmulPrecision::F32, normalise: false };
    of.open().unwrap()
}

fn vectors(of: &TextVectors, texts: &[&str]) -> Vec<Vec<f32>> {
    let rows = of.of(Texts::Slices(texts)).unwrap().0;
    rows.values.chunks_exact(of.width()).map(<[f32]>::to_vec).collect()
}

/// The same as a model's folder keeps it.
fn again(of: TextVectors) -> TextVectors {
    TextVectors::from_parts(Path::new("MODEL"), of.to_parts()).unwrap()
}

/// Weights, 5 x 16, and biases.
fn dense_values() -> (Vec<f32>, Vec<f32>) {
    let values = |range: std::ops::Range<usize>| range.map(|i| (i * 37 % 17) as f32 / 17.0 - 0.5).collect();
    (values(0..80), values(80..85))
}

/// Puts a linear layer of 16 to 5 values behind the pooling.
fn put_dense(folder: &Path) {
    let kind = |name: &str| format!("sentence_transformers.models.{name}");
    let module = |path: &str, name: &str| json!({ "path": path, "type": kind(name) });
    let list = [module("", "Transformer"), module("1_Pooling", "Pooling"), module("2_Dense", "Dense")];
    put(folder, "modules.json", &json!(list));
    let activation = "torch.nn.modules.activation.Tanh";
    let config = json!({ "in_features": 16, "out_features": 5, "bias": true, "activation_function": activation });
    put(folder, "2_Dense/config.json", &config);
    let header = json!({ "linear.weight": { "dtype": "F32", "shape": [5, 16], "data_offsets": [0, 320] },
        "linear.bias": { "dtype": "F32", "shape": [5], "data_offsets": [320, 340] } });
    let header = header.to_string();
    let (weights, bias) = dense_values();
    let values = weights.into_iter().chain(bias).flat_map(f32::to_le_bytes);
    let bytes = (header.len() as u64).to_le_bytes().into_iter().chain(header.bytes()).chain(values);
    std::fs::write(folder.join("2_Dense/model.safetensors"), bytes.collect::<Vec<u8>>()).unwrap();
}

/// What is said while something works.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Cancel for Notes {
    fn cancelled(&self) -> bool {
        false
    }
}

impl Watch for Notes {
    fn note(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

fn training(encoder: &str, from: &Path, model: &Path) -> Training {
    let (texts, labels) = texts();
    let mut training = Training::new("dense", Arrays::new(OwnedRows::Texts(texts), labels), model).unwrap();
    let from = from.display().to_string();
    for (name, value) in
        [("epochs", "1"), ("encoder", encoder), ("transformer.from", &from), ("transformer.max-tokens", "8")]
    {
        training.set(name, value).unwrap();
    }
    training
}

#[test]
fn a_linear_layer_is_applied_kept_and_trained() {
    let folder = with_bert();
    let bert = folder.path().join("bert");
    let texts = ["audio of mail", "reader", "", "windows server"];
    let before = vectors(&opened(&bert, None), &texts);
    put_dense(&bert);
    let of = opened(&bert, None);
    let got = vectors(&of, &texts);
    assert_eq!(of.width(), 5);
    let (weights, bias) = dense_values();
    for (got, before) in got.iter().zip(&before) {
        for (at, (got, bias)) in got.iter().zip(&bias).enumerate() {
            let sum: f32 = weights[at * 16..][..16].iter().zip(before).map(|(a, b)| a * b).sum();
            assert!((got - (sum + bias).tanh()).abs() < 1e-5, "{got} {sum}");
        }
    }
    assert_eq!(vectors(&again(of), &texts), got);

    let model = folder.path().join("m");
    run(&training("frozen", &bert, &model), 1, &Silent).unwrap();
    let rows = Model::open(&model).unwrap().features(Rows::Texts(Texts::Slices(&texts))).unwrap();
    let OwnedRows::Dense(rows) = rows else { panic!("vectors") };
    assert_eq!(rows.values[..], got.concat());

    // Below a network it is trained with the transformer, kept, and exported.
    let (trained, exported) = (folder.path().join("t"), folder.path().join("hf"));
    run(&training("transformer", &bert, &trained), 1, &Silent).unwrap();
    let opened_again = Model::open(&trained).unwrap();
    opened_again.export("huggingface", &exported, None).unwrap();
    let classifier = opened_again.as_kind::<Classifier>().unwrap();
    let of_folder = |path: &Path| Folder::open(path).unwrap().read(Default::default()).unwrap();
    let (before, after) = (of_folder(&bert), of_folder(&exported));
    let kept = classifier.transformer().unwrap();
    assert_eq!((classifier.params().encoder.top_width(0), after.params()), (5, kept.params()));
    for ((before, kept), after) in before.parameters().iter().zip(kept.parameters()).zip(after.parameters()) {
        assert!(kept.parameter.values() == after.parameter.values(), "{}", kept.name);
        let is_moved = before.parameter.values() != kept.parameter.values();
        assert!(is_moved || !kept.name.contains(".dense"), "{}", kept.name);
    }
}

#[test]
fn lower_case_is_made_where_the_folder_says_so() {
    let (upper, lower) = ("READER OF MAILS", "reader of mails");
    let is_lower = |files: &[(&str, Value)], normalizer: &dyn Fn(&mut Value)| {
        let folder = with_bert();
        let bert = folder.path().join("bert");
        change(&bert, "tokenizer.json", normalizer);
        files.iter().for_each(|(name, content)| put(&bert, name, content));
        let of = again(opened(&bert, None));
        let got = vectors(&of, &[upper, lower]);
        got[0] == got[1]
    };
    let keeps = |tokenizer: &mut Value| tokenizer["normalizer"]["lowercase"] = json!(false);
    let has_none = |tokenizer: &mut Value| tokenizer["normalizer"] = Value::Null;
    let of_sentences = |yes: bool| ("sentence_bert_config.json", json!({ "do_lower_case": yes }));
    let of_tokens = |yes: bool| ("tokenizer_config.json", json!({ "do_lower_case": yes }));
    assert!(!is_lower(&[], &keeps) && is_lower(&[], &|_| ()));
    assert!(is_lower(&[of_sentences(true)], &keeps) && is_lower(&[of_sentences(false)], &|_| ()));
    assert!(is_lower(&[of_tokens(true)], &keeps) && !is_lower(&[of_tokens(false)], &|_| ()));
    assert!(is_lower(&[of_tokens(true)], &has_none) && !is_lower(&[of_tokens(false)], &has_none));
}

#[test]
fn a_default_prompt_is_a_prefix_that_can_be_left_out() {
    let folder = with_bert();
    let bert = folder.path().join("bert");
    let texts = ["library", "mail of audio"];
    let (plain, prefixed) = (opened(&bert, None), opened(&bert, Some("reader of ")));
    let prompts = json!({ "prompts": { "query": "reader of ", "none": "" }, "default_prompt_name": "query" });
    put(&bert, "config_sentence_transformers.json", &prompts);
    assert_eq!(opened(&bert, None).to_parts(), prefixed.to_parts());
    assert_eq!(opened(&bert, Some("")).to_parts(), plain.to_parts());
    assert_ne!(vectors(&prefixed, &texts), vectors(&plain, &texts));
    for encoder in ["frozen", "transformer"] {
        let (model, notes) = (folder.path().join(encoder), Notes::default());
        run(&training(encoder, &bert, &model), 1, &notes).unwrap();
        let notes = notes.0.into_inner().unwrap();
        let said = "default prompt \"reader of \" stands before every text; --transformer.prefix '' leaves it out";
        assert!(notes.iter().any(|line| line.ends_with(said)), "{notes:?}");
        let kept = Model::open(&model).unwrap().pipeline().unwrap().to_parts().config;
        let tokens = if encoder == "frozen" { &kept["tokens"] } else { &kept };
        assert_eq!(tokens["prefix"], "reader of ");
    }
}

#[test]
fn the_longest_text_of_a_folder_is_a_bound() {
    let folder = with_bert();
    let bert = folder.path().join("bert");
    put(&bert, "sentence_bert_config.json", &json!({ "max_seq_length": 4 }));
    let of = opened(&bert, None);
    assert_eq!(vectors(&of, &["audio of mail"]), vectors(&of, &["audio of"]));
    assert_eq!(of.tokens().taken().note().unwrap(), "of 2 texts 1 is cut at 4 tokens");
    put(&bert, "sentence_bert_config.json", &json!({ "max_seq_length": 400 }));
    assert_eq!(opened(&bert, None).tokens().taken().max_tokens, 8);
}

#[test]
fn what_stands_in_the_place_of_a_tokenizer_is_named() {
    let folder = with_bert();
    let path = folder.path().join("bert/tokenizer.json");
    let open = || Tokenizer::open(path.parent().unwrap(), 8, N_NAMES).unwrap_err();
    std::fs::write(&path, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n").unwrap();
    assert!(matches!(open(), TokenizerError::Pointer { .. }), "{}", open());
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(open(), TokenizerError::Io { .. }), "{}", open());
    std::fs::write(path.with_file_name("vocab.txt"), "[PAD]").unwrap();
    assert!(open().to_string().contains("not there; vocab.txt is not read"), "{}", open());
}
