//! Tokenizers of HuggingFace's libraries as a model uses them.

use crate::file::file;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use xc_hash::text::{Featurizer, PartArray, Tokenise};
use xc_model::tokens::{Tokenizer, TokenizerError, tokenise};
use xc_sparse::rows::Texts;

const N_TOKENS: usize = 27;

fn made(file: &Value, max_tokens: usize, n_tokens: usize) -> Result<Tokenizer, TokenizerError> {
    Tokenizer::new(Path::new("tokenizer.json"), file.to_string().into_bytes(), max_tokens, n_tokens)
}

fn ids(of: &dyn Tokenise, text: &str) -> Vec<u32> {
    let mut ids = vec![99];
    of.append(text, &mut ids).unwrap();
    ids.split_off(1)
}

/// A map of characters, as SentencePiece writes it: of `X` it makes the string at byte `string` of `x`, 0, `é`, 0. What follows
/// an `X` is in the units of its trie from `node` on.
fn map(node: u32, string: u32) -> Vec<u8> {
    let x = u32::from(b'X');
    let mut units = [0u32; 256];
    units[x as usize] = x | 1 << 8 | (node ^ x) << 10;
    units[node as usize % 256] = string | 1 << 31;
    let units = units.iter().flat_map(|unit| unit.to_le_bytes());
    1024u32.to_le_bytes().into_iter().chain(units).chain("x\0é\0".bytes()).collect()
}

/// A tokenizer of pieces that are all as likely, as XLM-R's: <s> 0, </s> 1, <unk> 2, then the pieces. Its map of
/// characters makes `x` of `X`.
fn of_pieces() -> Value {
    let pieces = ["<s>", "</s>", "<unk>", "▁", "▁cat", "x", "at", "c"];
    let vocab: Vec<Value> = pieces.iter().map(|piece| json!([piece, -1.0])).collect();
    let special = |id: u32, token: &str| json!({ "id": token, "ids": [id], "tokens": [token] });
    let piece = |token: &str| json!({ "SpecialToken": { "id": token, "type_id": 0 } });
    json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": { "type": "Precompiled", "precompiled_charsmap": base64::encode(map(1, 0)) },
        "pre_tokenizer": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [piece("<s>"), { "Sequence": { "id": "A", "type_id": 0 } }, piece("</s>")],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 0 } }],
            "special_tokens": { "<s>": special(0, "<s>"), "</s>": special(1, "</s>") }
        },
        "model": { "type": "Unigram", "unk_id": 2, "vocab": vocab, "byte_fallback": false }
    })
}

#[test]
fn texts_become_ids_in_their_order_and_the_last_special_token_stays() {
    let tokenizer = made(&file(), 8, N_TOKENS).unwrap();
    assert_eq!((tokenizer.n_tokens(), tokenizer.max_tokens()), (N_TOKENS, 8));
    for (text, expected) in [
        ("", &[2, 3][..]),
        (" \u{0}\u{7}\t\n", &[2, 3]),
        ("The cat sat.", &[2, 4, 6, 7, 22, 3]),
        ("unbelievables", &[2, 10, 11, 12, 13, 3]),
        ("Café naïve", &[2, 18, 19, 3]),
        ("猫猫", &[2, 20, 20, 3]),
        ("zebra \u{1F980} cat", &[2, 1, 1, 6, 3]),
        // Eight tokens and no more, [SEP] among them.
        ("the cat sat on the mat, the cat sat", &[2, 4, 6, 7, 8, 4, 9, 3]),
        // Special tokens in a text are what they are.
        ("a [SEP] cat", &[2, 5, 3, 6, 3]),
    ] {
        assert_eq!(ids(&tokenizer, text), expected, "{text:?}");
    }
    let long = "cat ".repeat(100_000);
    assert_eq!(ids(&tokenizer, &long), [2, 6, 6, 6, 6, 6, 6, 3]);
}

#[test]
fn a_prefix_stands_before_every_text() {
    let path = Path::new("tokenizer.json");
    let with = |prefix| made(&file(), 6, N_TOKENS).unwrap().with_prefix(path, prefix);
    let (plain, prefixed) = (made(&file(), 6, N_TOKENS).unwrap(), with("the cat ").unwrap());
    for text in ["", "sat", "on the mat, on the mat"] {
        assert_eq!(ids(&prefixed, text), ids(&plain, &format!("the cat {text}")), "{text:?}");
    }
    let again = Tokenizer::from_parts(path, prefixed.to_parts()).unwrap();
    assert_eq!(ids(&again, "sat"), ids(&prefixed, "sat"));
    assert!(again.into_featurizer() == prefixed.into_featurizer());
    assert_eq!(with("").unwrap().to_parts(), plain.to_parts());
    for (prefix, what) in [
        ("the cat sat on", "it takes all of at most 6 tokens"),
        ("the\ncat", "expected one line"),
        (&" ".repeat(4097), "4097 bytes, expected at most 4096"),
    ] {
        let expected = format!("tokenizer.json: what stands before every text: {what}");
        assert_eq!(with(prefix).unwrap_err().to_string(), expected);
    }
}

#[test]
fn many_texts_have_the_ids_of_each_at_any_number_of_threads() {
    let tokenizer = made(&file(), 6, N_TOKENS).unwrap();
    let texts: Vec<String> =
        (0..500).map(|i| "the cat sat on a mat ".repeat(i % 3) + ["cat", "", "mats"][i % 3]).collect();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let rows = pool.install(|| tokenise(&tokenizer, Texts::Strings(&texts))).unwrap();
        assert_eq!((rows.len(), rows.view().vocabulary()), (500, N_TOKENS));
        for (i, text) in texts.iter().enumerate() {
            assert_eq!(rows.view().row(i), ids(&tokenizer, text));
        }
    }
    assert!(tokenise(&tokenizer, Texts::Slices(&[])).unwrap().is_empty());
}

#[test]
fn what_is_stored_comes_back() {
    let tokenizer = made(&file(), 5, N_TOKENS).unwrap();
    let parts = tokenizer.to_parts();
    assert!(Tokenizer::describes(&parts.config) && !Tokenizer::describes(&json!({ "kind": "text" })));
    let again = Tokenizer::from_parts(Path::new("MODEL"), parts.clone()).unwrap();
    assert_eq!(ids(&again, "the cat sat on"), ids(&tokenizer, "the cat sat on"));
    let (again, tokenizer) = (again.into_featurizer(), tokenizer.into_featurizer());
    assert!(again == tokenizer && again.n_features() == N_TOKENS && again.to_parts() == parts);
    assert!(again != made(&file(), 6, N_TOKENS).unwrap().into_featurizer());
    assert!(Featurizer::from_parts(parts.clone()).is_err(), "the crate of pipelines has no tokenizer");
    let refused = |config: Value, arrays| {
        let parts = xc_hash::text::PipelineParts { config, arrays };
        Tokenizer::from_parts(Path::new("MODEL"), parts).unwrap_err().to_string()
    };
    let newer = json!({ "kind": "tokens", "version": 2, "max_tokens": 5, "n_tokens": 27 });
    assert!(refused(newer, parts.arrays.clone()).starts_with("MODEL: tokens of version 2, and 1 arrays; version 1"));
    assert!(refused(parts.config.clone(), vec![]).starts_with("MODEL: tokens of version 1, and 0 arrays"));
    assert!(refused(json!({ "kind": "tokens" }), parts.arrays.clone()).starts_with("MODEL: description of tokens"));
    let other = vec![("tokenizer".to_owned(), PartArray::U32(vec![1]))];
    assert!(refused(parts.config, other).starts_with("MODEL: tokens of version 1, and 1 arrays"));
}

#[test]
fn a_file_that_is_no_tokenizer_or_of_other_weights_is_said_in_one_line() {
    let said = |file: &Value, max_tokens, n_tokens| {
        let said = made(file, max_tokens, n_tokens).unwrap_err().to_string();
        assert!(!said.contains('\n'), "{said}");
        said
    };
    assert!(said(&json!({}), 8, N_TOKENS).starts_with("tokenizer.json: no tokenizer: "));
    assert!(said(&json!([1]), 8, N_TOKENS).starts_with("tokenizer.json: no tokenizer: "));
    assert_eq!(
        said(&file(), 8, N_TOKENS - 1),
        "tokenizer.json: token 26 (\"##3\"); the weights have 26 tokens: the two do not belong together"
    );
    assert_eq!(
        said(&file(), 2, N_TOKENS),
        "tokenizer.json: at most 2 tokens, 2 of them special: room for one of the text is expected"
    );
    let mut unknown = file();
    unknown["model"]["unk_token"] = json!("[NONE]");
    assert!(
        said(&unknown, 8, N_TOKENS).starts_with("tokenizer.json: no tokenizer: "),
        "{}",
        said(&unknown, 8, N_TOKENS)
    );
    // A special token that stands in no vocabulary.
    let mut special = file();
    special["post_processor"]["sep"] = json!(["[SEP]", 40]);
    assert!(said(&special, 8, N_TOKENS).ends_with("token 40, expected one below 27"));
    let folder = tempfile::tempdir().unwrap();
    let absent = Tokenizer::open(folder.path(), 8, N_TOKENS).unwrap_err();
    assert!(matches!(absent, TokenizerError::Io { .. }), "{absent}");
    std::fs::write(folder.path().join("tokenizer.json"), file().to_string()).unwrap();
    assert_eq!(ids(&Tokenizer::open(folder.path(), 8, N_TOKENS).unwrap(), "cat"), [2, 6, 3]);
}

#[test]
fn parts_of_a_file_that_make_no_ids_do_not_count() {
    let expected = ids(&made(&file(), 8, N_TOKENS).unwrap(), "the cat sat");
    for part in ["decoder", "padding", "truncation"] {
        let mut file = file();
        file[part] = json!([{ "type": 5 }]);
        assert_eq!(ids(&made(&file, 8, N_TOKENS).unwrap(), "the cat sat"), expected, "{part}");
    }
}

#[test]
fn what_the_library_would_end_the_program_on_is_said() {
    assert_eq!(ids(&made(&of_pieces(), 8, 8).unwrap(), "cat X"), [0, 4, 3, 5, 1]);
    let said = |pointer: &str, value: Value| {
        let mut file = of_pieces();
        *file.pointer_mut(pointer).unwrap() = value;
        made(&file, 8, 8).unwrap_err().to_string()
    };
    const POST: &str = "tokenizer.json: no tokenizer: post_processor: ";
    let other = json!([{ "SpecialToken": { "id": "[CLS]", "type_id": 0 } }]);
    assert_eq!(
        said("/post_processor/single", other),
        format!("{POST}special token \"[CLS]\" is not among special_tokens")
    );
    let second = json!([{ "Sequence": { "id": "B", "type_id": 0 } }]);
    assert_eq!(said("/post_processor/single", second), format!("{POST}the template of one text has a second one"));
    assert_eq!(
        said("/post_processor/special_tokens/<s>/ids", json!([0, 0])),
        format!("{POST}special token \"<s>\": as many ids as tokens are expected")
    );
    let one = of_pieces()["post_processor"].clone();
    let two = json!({ "type": "Sequence", "processors": [one, one] });
    assert_eq!(said("/post_processor", two), format!("{POST}2 templates, at most one is expected"));
    const MAP: &str = "tokenizer.json: no tokenizer: normalizer: precompiled_charsmap: ";
    let nested = json!({ "type": "Sequence", "normalizers": [{ "type": "NFKC" }, { "type": "Precompiled" }] });
    assert_eq!(said("/normalizer", nested), format!("{MAP}a string is expected"));
    let of = |text: &str| said("/normalizer/precompiled_charsmap", json!(text));
    assert!(of("?").starts_with(MAP), "{}", of("?"));
    assert_eq!(of("AAAAAA=="), format!("{MAP}no trie"));
    assert_eq!(of(&base64::encode(map(300, 0))), format!("{MAP}a node of its trie is outside of it"));
    for string in [3, 6] {
        assert_eq!(of(&base64::encode(map(1, string))), format!("{MAP}a node of its trie has no string"), "{string}");
    }
}

#[test]
fn a_map_of_characters_leads_to_its_own_nodes_and_strings() {
    let open = |map: &[u8]| {
        let mut file = of_pieces();
        file["normalizer"]["precompiled_charsmap"] = json!(base64::encode(map));
        made(&file, 8, 8)
    };
    for (string, expected) in [(0, [0, 4, 3, 5, 1]), (2, [0, 4, 3, 2, 1])] {
        assert_eq!(ids(&open(&map(1, string)).unwrap(), "cat X"), expected);
    }
    for string in [1, 4, 5] {
        assert!(open(&map(1, string)).is_ok(), "an empty string, at {string}");
    }
    // Without its end: what the trie leads to is there, in whole characters.
    let whole = map(1, 0);
    for n in 0..whole.len() {
        let got = open(&whole[..n]);
        assert_eq!(got.is_ok(), [1028, 1029, 1030, 1032].contains(&n), "{n}: {:?}", got.err());
    }
}

/// Ids of texts as HuggingFace's libraries gave them once (`xc-nn/tests/transformer/reference.py`), of weights in the
/// folder `models/NAME` of the one that `XC_DATA` names.
fn check_ids(name: &str) {
    let data = std::env::var_os("XC_DATA").expect("SKIPPED: XC_DATA is not set");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../xc-nn/tests/transformer/{name}.json"));
    let reference: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let tokenizer = Tokenizer::open(&Path::new(&data).join("models").join(name), 48, 40_000).unwrap();
    let (texts, expected) = (reference["texts"].as_array().unwrap(), reference["tokens"].as_array().unwrap());
    assert!(texts.len() == expected.len() && texts.len() > 2);
    for (text, expected) in texts.iter().zip(expected) {
        assert_eq!(json!(ids(&tokenizer, text.as_str().unwrap())), *expected, "{text}");
    }
}

#[test]
#[ignore = "needs weights: XC_DATA=FOLDER with models/all-MiniLM-L6-v2/ in it"]
fn ids_of_weights_of_all_minilm_l6_v2() {
    check_ids("all-MiniLM-L6-v2");
}

#[test]
#[ignore = "needs weights: XC_DATA=FOLDER with models/all-mpnet-base-v2/ in it"]
fn ids_of_weights_of_all_mpnet_base_v2() {
    check_ids("all-mpnet-base-v2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_file_is_an_error_or_a_tokenizer(pieces in any::<bool>(), at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..4), text in ".{0,40}") {
        let mut content = if pieces { of_pieces() } else { file() }.to_string().into_bytes();
        let at = at.index(content.len());
        let end = content.len().min(at + bytes.len());
        content[at..end].copy_from_slice(&bytes[..end - at]);
        if let Ok(tokenizer) = Tokenizer::new(Path::new("tokenizer.json"), content, 8, N_TOKENS) {
            let mut ids = Vec::new();
            if tokenizer.append(&text, &mut ids).is_ok() {
                prop_assert!(ids.iter().all(|&id| (id as usize) < N_TOKENS));
            }
        }
    }
}
