//! Folders that hold no transformer that is known: an error of one line each, and never a panic.

use crate::made::{arrays, reference, safetensors, values, write_folder};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use xc_nn::encoder::transformer::{Folder, FolderError, Pooling};
use xc_nn::state::State;

fn read(folder: &Path) -> Result<Vec<f32>, FolderError> {
    let transformer = Folder::open(folder)?.read(Default::default())?;
    Ok(transformer.parameters().iter().flat_map(|named| named.parameter.values().to_vec()).collect())
}

/// The message with its causes, without the folder.
fn said(folder: &Path) -> String {
    let error = read(folder).unwrap_err();
    let (mut all, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        all = format!("{all}: {error}");
        cause = error.source();
    }
    assert!(!all.contains('\n'), "{all}");
    all.replace(&format!("{}/", folder.display()), "")
}

fn with_config(family: &str, change: impl Fn(&mut Value)) -> tempfile::TempDir {
    let (folder, mut reference) = (tempfile::tempdir().unwrap(), reference(family));
    change(&mut reference["config"]);
    write_folder(folder.path(), &reference);
    folder
}

#[test]
fn what_a_configuration_says_that_is_not_known_is_said() {
    for (family, key, value, expected) in [
        (
            "bert",
            "model_type",
            json!("gpt2"),
            "config.json: model_type is \"gpt2\", expected bert, distilbert, mpnet, roberta or xlm-roberta",
        ),
        ("bert", "hidden_act", json!("gelu_new"), "config.json: hidden_act is \"gelu_new\", expected gelu"),
        ("distilbert", "activation", json!("relu"), "config.json: activation is \"relu\", expected gelu"),
        (
            "bert",
            "position_embedding_type",
            json!("relative_key"),
            "config.json: position_embedding_type is \"relative_key\", expected absolute",
        ),
        (
            "bert",
            "is_decoder",
            json!(true),
            "config.json: is_decoder is true, expected false: the encoder alone is known here",
        ),
        ("bert", "hidden_size", json!(-3), "config.json: hidden_size is -3, expected a whole number"),
        ("bert", "hidden_size", Value::Null, "config.json: hidden_size is null, expected a whole number"),
        ("bert", "num_attention_heads", json!(3), "config.json: width is 16, expected a multiple of the 3 heads"),
        ("bert", "num_hidden_layers", json!(0), "config.json: layers is 0, expected 1 to 1048576"),
        ("bert", "vocab_size", json!(1u64 << 40), "config.json: vocabulary is 1099511627776, expected 1 to 16777216"),
        ("roberta", "max_position_embeddings", json!(2), "config.json: positions is 0, expected 1 to 1048576"),
        (
            "mpnet",
            "relative_attention_num_buckets",
            json!(6),
            "config.json: buckets of distances is 6, expected a multiple of 4, 4 to 1048576",
        ),
        ("bert", "layer_norm_eps", json!("small"), "config.json: layer_norm_eps is \"small\", expected a number"),
        // Sizes that the arrays do not have are found before anything is allocated for them.
        (
            "bert",
            "vocab_size",
            json!(16_000_000),
            "model.safetensors: array \"embeddings.word_embeddings.weight\" has shape [50, 16], expected [16000000, 16]",
        ),
        (
            "bert",
            "num_hidden_layers",
            json!(3),
            "model.safetensors: no array \"encoder.layer.2.attention.self.query.weight\"",
        ),
        (
            "bert",
            "intermediate_size",
            json!(41),
            "model.safetensors: array \"encoder.layer.0.intermediate.dense.weight\" has shape [40, 16], expected [41, 16]",
        ),
    ] {
        let folder = with_config(family, |config| config[key] = value.clone());
        assert_eq!(said(folder.path()), expected);
    }
}

#[test]
fn files_that_are_missing_or_damaged_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let starts = |with: &str| assert!(said(at).starts_with(with), "{}", said(at));
    starts("config.json: cannot be read: ");
    std::fs::write(at.join("config.json"), "[]").unwrap();
    starts("config.json: malformed: ");
    let reference = reference("bert");
    std::fs::write(at.join("config.json"), reference["config"].to_string()).unwrap();
    starts("model.safetensors: cannot be read: ");
    std::fs::write(at.join("model.safetensors"), "abc").unwrap();
    assert_eq!(said(at), "model.safetensors: 3 bytes, expected 8: truncated or damaged");
    let no_words: Vec<_> = arrays(&reference).into_iter().skip(1).collect();
    std::fs::write(at.join("model.safetensors"), safetensors(&no_words, values)).unwrap();
    assert_eq!(said(at), "model.safetensors: no array \"embeddings.word_embeddings.weight\"");
    let not_finite = |name: &str, n: usize| {
        let mut values = values(name, n);
        if name == "encoder.layer.1.output.dense.bias" {
            values[7] = f32::NAN;
        }
        values
    };
    std::fs::write(at.join("model.safetensors"), safetensors(&arrays(&reference), not_finite)).unwrap();
    assert_eq!(said(at), "model.safetensors: array \"encoder.layer.1.output.dense.bias\": value 7 is not finite");
}

#[test]
fn weights_in_several_files_with_other_names_are_the_same() {
    let (one, reference) = (with_config("bert", |_| ()), reference("bert"));
    let expected = read(one.path()).unwrap();
    // The names of a model of which the encoder is a part, and old ones of gains.
    let named = |(name, shape): (String, Vec<usize>)| {
        let name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
        (format!("bert.{name}"), shape)
    };
    let all: Vec<_> = arrays(&reference).into_iter().map(named).chain([("cls.bias".to_owned(), vec![50])]).collect();
    let of = |name: &str, n: usize| {
        let name = name.strip_prefix("bert.").unwrap_or(name);
        values(&name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"), n)
    };
    let (folder, half) = (tempfile::tempdir().unwrap(), all.len() / 2);
    let at = folder.path();
    std::fs::write(at.join("config.json"), reference["config"].to_string()).unwrap();
    let mut map = serde_json::Map::new();
    for (file, some) in
        [("model-00001-of-00002.safetensors", &all[..half]), ("model-00002-of-00002.safetensors", &all[half..])]
    {
        std::fs::write(at.join(file), safetensors(some, of)).unwrap();
        map.extend(some.iter().map(|(name, _)| (name.clone(), json!(file))));
    }
    let write_index = |map: Value| {
        let index = json!({ "metadata": {}, "weight_map": map });
        std::fs::write(at.join("model.safetensors.index.json"), index.to_string()).unwrap();
    };
    write_index(map.into());
    assert_eq!(read(at).unwrap(), expected);
    for map in
        [json!({ "a": "../../etc/a.safetensors" }), json!({ "a": "a.bin" }), json!({ "a": 1 }), json!({}), json!(7)]
    {
        write_index(map);
        assert!(
            said(at).ends_with("expected names of arrays with files *.safetensors of the same folder"),
            "{}",
            said(at)
        );
    }
}

#[test]
fn pooling_is_what_the_folder_says_and_the_mean_otherwise() {
    let folder = with_config("bert", |_| ());
    let pooling = || Folder::open(folder.path()).map(|folder| folder.params().pooling);
    assert_eq!(pooling().unwrap(), Pooling::Mean);
    std::fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    let write =
        |config: Value| std::fs::write(folder.path().join("1_Pooling/config.json"), config.to_string()).unwrap();
    write(json!({ "word_embedding_dimension": 16, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false }));
    assert_eq!(pooling().unwrap(), Pooling::First);
    write(json!({ "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true }));
    assert_eq!(pooling().unwrap(), Pooling::Mean);
    write(json!({ "pooling_mode": "cls" }));
    assert_eq!(pooling().unwrap(), Pooling::First);
    for config in [
        json!({ "pooling_mode_max_tokens": true }),
        json!({}),
        json!({ "pooling_mode": "weightedmean" }),
        json!({ "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true }),
    ] {
        write(config);
        assert!(said(folder.path()).starts_with("1_Pooling/config.json: pooling_mode"), "{}", said(folder.path()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_folder_of_damaged_files_is_an_error_or_reads(of_config in any::<bool>(), at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..4), cut in prop::option::of(any::<prop::sample::Index>())) {
        let folder = with_config("mpnet", |_| ());
        let path = folder.path().join(if of_config { "config.json" } else { "model.safetensors" });
        let mut content = std::fs::read(&path).unwrap();
        let at = at.index(content.len());
        let end = content.len().min(at + bytes.len());
        content[at..end].copy_from_slice(&bytes[..end - at]);
        if let Some(cut) = cut {
            content.truncate(cut.index(content.len()));
        }
        std::fs::write(&path, content).unwrap();
        if read(folder.path()).is_err() {
            prop_assert!(!said(folder.path()).is_empty());
        }
    }
}
