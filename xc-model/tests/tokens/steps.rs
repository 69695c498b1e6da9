//! The way from a text to ids: the same each time, at a bounded cost, and said where it is cut short.

use crate::file::file;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use xc_hash::text::{PartArray, Tokenise};
use xc_model::tokens::{Tokenizer, TokenizerError};

const N_TOKENS: usize = 27;

fn made(file: &Value, max_tokens: usize) -> Result<Tokenizer, TokenizerError> {
    Tokenizer::new(Path::new("tokenizer.json"), file.to_string().into_bytes(), max_tokens, N_TOKENS)
}

fn ids(of: &dyn Tokenise, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    of.append(text, &mut ids).unwrap();
    ids
}

/// A tokenizer of merged pieces: <unk> 0, then a, b, ab, c, abab.
fn of_merges() -> Value {
    json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" },
        "post_processor": null,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": { "<unk>": 0, "a": 1, "b": 2, "ab": 3, "c": 4, "abab": 5 },
            "merges": [["a", "b"], ["ab", "ab"]]
        }
    })
}

fn with(mut file: Value, pointer: &str, value: Value) -> Value {
    *file.pointer_mut(pointer).unwrap() = value;
    file
}

/// A token that is searched for behind the normalizer.
fn with_added(mut file: Value, content: &str) -> Value {
    let token = json!({ "id": 20, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": true, "special": true });
    file["added_tokens"].as_array_mut().unwrap().push(token);
    file
}

fn sequence(of: &str, steps: Vec<Value>) -> Value {
    json!({ "type": "Sequence", of: steps })
}

fn replace(pattern: Value, content: &str) -> Value {
    json!({ "type": "Replace", "pattern": pattern, "content": content })
}

#[test]
fn merges_are_not_left_out_at_random() {
    let (text, plain) = ("abab ab abababab c", made(&of_merges(), 32).unwrap());
    for dropout in [json!(0.5), json!(1.0), json!(7), json!("much")] {
        let random = made(&with(of_merges(), "/model/dropout", dropout), 32).unwrap();
        for _ in 0..20 {
            assert_eq!(ids(&random, text), ids(&plain, text));
        }
        // Nobody who is given the file leaves them out either.
        let parts = random.to_parts();
        let [(_, PartArray::U8(kept))] = &parts.arrays[..] else { panic!("{parts:?}") };
        assert_eq!(serde_json::from_slice::<Value>(kept).unwrap(), of_merges());
        let again = Tokenizer::from_parts(Path::new("MODEL"), parts).unwrap();
        assert_eq!(ids(&again, text), ids(&plain, text));
    }
}

#[test]
fn texts_that_are_cut_are_counted() {
    let tokenizer = made(&file(), 5).unwrap();
    assert_eq!(tokenizer.taken().note(), None);
    for text in ["", "the", "the cat sat"] {
        ids(&tokenizer, text);
    }
    let before = tokenizer.taken();
    assert_eq!((before.texts, before.cut, before.max_tokens), (3, 0, 5));
    ids(&tokenizer, "the cat sat on");
    assert_eq!(tokenizer.taken().note().unwrap(), "of 4 texts 1 is cut at 5 tokens");
    ids(&tokenizer, "the cat sat on the mat");
    assert_eq!(tokenizer.taken().since(before).note().unwrap(), "of 2 texts 2 are cut at 5 tokens");
    // Without special tokens, too.
    let bare = made(&of_merges(), 2).unwrap();
    ids(&bare, "c c");
    assert_eq!(bare.taken().cut, 0);
    ids(&bare, "c c c");
    assert_eq!(bare.taken().cut, 1);
}

#[test]
fn parts_of_a_file_that_the_library_ends_the_program_on_are_named() {
    let said = |file: &Value| made(file, 8).unwrap_err().to_string().replace("tokenizer.json: no tokenizer: ", "");
    let (fixed, white) = (json!({ "type": "FixedLength", "length": 0 }), json!({ "type": "Whitespace" }));
    let no_length = "pre_tokenizer: FixedLength: length 0, expected at least 1";
    assert_eq!(said(&with(file(), "/pre_tokenizer", fixed.clone())), no_length);
    let inside = sequence("pretokenizers", vec![white, fixed]);
    assert_eq!(said(&with(file(), "/pre_tokenizer", inside)), no_length);
    let three = json!({ "type": "FixedLength", "length": 3 });
    assert!(made(&with(file(), "/pre_tokenizer", three), 8).is_ok());

    let prefix = with(of_merges(), "/model/continuing_subword_prefix", json!("###"));
    assert_eq!(said(&prefix), "model: merge of \"a\" and \"b\": the second one is shorter than \"###\"");
    let lines = with(prefix, "/model/merges", json!(["a b"]));
    assert_eq!(said(&lines), "model: merge of \"a\" and \"b\": the second one is shorter than \"###\"");
    let longer = with(of_merges(), "/model/merges", json!([["abab", "ab"]]));
    assert_eq!(said(&longer), "model: merge of \"abab\" and \"ab\": no piece is as long as the two");

    let vanishes = with_added(file(), "\u{301}");
    assert_eq!(said(&vanishes), "added_tokens: nothing is left of \"\\u{301}\" behind the normalizer");
    let replaced = with(with_added(file(), "zz"), "/normalizer", replace(json!({ "String": "zz" }), ""));
    assert_eq!(said(&replaced), "added_tokens: nothing is left of \"zz\" behind the normalizer");
    assert_eq!(ids(&made(&with_added(file(), "猫"), 8).unwrap(), "a 猫"), [2, 5, 20, 3]);
}

#[test]
fn steps_that_multiply_a_text_are_refused_before_memory_ends() {
    const TOO_MUCH: &str = "Replace makes more than 16777216 bytes of one text";
    let ten = |pattern: Value| sequence("normalizers", vec![replace(pattern, &"a".repeat(10)); 9]);
    let thousands = |pattern: Value| sequence("normalizers", vec![replace(pattern, &"a".repeat(4096)); 3]);
    for steps in [
        ten(json!({ "String": "a" })),
        ten(json!({ "Regex": "" })),
        thousands(json!({ "String": "a" })),
        thousands(json!({ "Regex": "." })),
    ] {
        // The letters with which a tokenizer is tried may be too much by themselves.
        let said = match made(&with(file(), "/normalizer", steps), 8) {
            Ok(tokenizer) => tokenizer.append(&"aé".repeat(20), &mut Vec::new()).unwrap_err().why,
            Err(error) => error.to_string(),
        };
        assert!(said.starts_with("tokenizer.json: ") && said.ends_with(TOO_MUCH), "{said}");
    }
    let long = "a".repeat(5000);
    for step in [json!({ "type": "Prepend", "prepend": long }), replace(json!({ "String": "a" }), &long)] {
        let said = made(&with(file(), "/normalizer", step), 8).unwrap_err().to_string();
        assert!(said.ends_with(": 5000 bytes, expected at most 4096"), "{said}");
    }
    let mapped = |n: usize| {
        let map = [&1024u32.to_le_bytes()[..], &[0; 1024], "x".repeat(n).as_bytes(), &[0]].concat();
        let step = json!({ "type": "Precompiled", "precompiled_charsmap": base64::encode(map) });
        made(&with(file(), "/normalizer", step), 8).err().map(|error| error.to_string())
    };
    assert_eq!(mapped(64), None);
    assert!(mapped(65).unwrap().ends_with("a string of more than 64 bytes in the place of characters"));
    // A token of its own that becomes too much is found with the file.
    let steps = sequence("normalizers", vec![replace(json!({ "String": "z" }), &"z".repeat(10)); 9]);
    let said = made(&with(with_added(file(), "zz"), "/normalizer", steps), 8).unwrap_err().to_string();
    assert_eq!(said, format!("tokenizer.json: no tokenizer: added_tokens: \"zz\": {TOO_MUCH}"));
    let bytes = json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": false });
    for (part, list) in [("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")] {
        let of = |n: usize| with(file(), &format!("/{part}"), sequence(list, vec![bytes.clone(); n]));
        assert!(made(&of(2), 8).is_ok());
        let said = made(&of(3), 8).unwrap_err().to_string();
        assert!(said.ends_with(&format!("{part}: 3 steps of type ByteLevel, expected at most 2")), "{said}");
    }
    // Other texts have their tokens.
    let ten = with(
        file(),
        "/normalizer",
        sequence("normalizers", vec![replace(json!({ "String": "z" }), &"z".repeat(10)); 8]),
    );
    let tokenizer = made(&ten, 8).unwrap();
    assert!(tokenizer.append("zebra", &mut Vec::new()).unwrap_err().why.ends_with(TOO_MUCH));
    assert_eq!(ids(&tokenizer, "the cat"), [2, 4, 6, 3]);
    // What multiplies a little is a tokenizer.
    let twice = made(&with(file(), "/normalizer", replace(json!({ "String": "猫" }), "cat cat ")), 8).unwrap();
    assert_eq!(ids(&twice, "猫 sat"), [2, 6, 6, 7, 3]);
}

/// It is cut anyway, and what its steps make of it would fill memory.
#[test]
fn of_a_text_without_end_that_steps_multiply_less_is_read() {
    let words = json!({ "type": "WordLevel", "vocab": { "?": 0 }, "unk_token": "?" });
    let steps = replace(json!({ "String": "猫" }), &"a".repeat(400));
    let file = with(with(with(of_merges(), "/model", words), "/normalizer", steps), "/pre_tokenizer", Value::Null);
    let tokenizer = made(&file, 6).unwrap();
    assert_eq!((ids(&tokenizer, &"猫".repeat(1 << 19)), tokenizer.taken().cut), (vec![0], 1));
    let said = tokenizer.append(&"猫".repeat(1 << 18), &mut Vec::new()).unwrap_err().why;
    assert_eq!(said, "tokenizer.json: Replace makes more than 16777216 bytes of one text");
}

#[test]
fn of_a_text_without_end_the_first_mebibyte_is_read() {
    let tokenizer = made(&file(), 6).unwrap();
    for (text, cut) in
        [("cat ".repeat(1 << 18), 1), ("é cat ".repeat(3 << 20), 1), (" ".repeat(1 << 20), 0), (" ".repeat(2 << 20), 1)]
    {
        let before = tokenizer.taken();
        let few = &text[..text.floor_char_boundary(100)];
        assert_eq!(ids(&tokenizer, &text), ids(&made(&file(), 6).unwrap(), few));
        assert_eq!(tokenizer.taken().since(before).cut, cut);
    }
}

/// What texts repeat: words, blanks, controls, letters without end, characters that steps change, tokens of their own.
fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "the cat ",
        "ab ",
        "abab c ",
        " ",
        "\n",
        "\u{7}",
        "\u{200d}",
        "a",
        "猫",
        "é ",
        "e\u{301}",
        "[SEP]",
        "cat, ",
        "x1 ",
        "Σ ",
        "\u{fdfa} ",
        "\u{fdfa}",
    ])
}

/// Tokenizers of the kinds that are published, and one without words: a name and the file.
fn families() -> Vec<(&'static str, Value)> {
    let bytes = json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true });
    let letters = "a b c t x Ġ ã Ĺ ç".split(' ').zip(0..).map(|(letter, id)| (letter.to_owned(), json!(id)));
    let letters: serde_json::Map<String, Value> = letters.chain([("Ġc".to_owned(), json!(9))]).collect();
    let mut of_bytes = with(with(of_merges(), "/pre_tokenizer", bytes), "/model/vocab", letters.into());
    of_bytes = with(with(of_bytes, "/model/merges", json!([["Ġ", "c"]])), "/model/unk_token", Value::Null);
    let pieces = ["<unk>", "▁", "▁cat", "▁a", "b", "a", "t", "c", "ab"].map(|piece| json!([piece, -1.0]));
    let mark = json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true });
    let model = json!({ "type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": false });
    let blanks = sequence("normalizers", vec![json!({ "type": "NFKC" }), replace(json!({ "Regex": " {2,}" }), " ")]);
    let unigram = with(with(with(of_merges(), "/model", model), "/pre_tokenizer", mark), "/normalizer", blanks);
    let words = json!({ "type": "WordLevel", "vocab": { "?": 0, "cat": 1, "ab": 2, "é": 3 }, "unk_token": "?" });
    vec![
        ("WordPiece", with(file(), "/padding", Value::Null)),
        ("bytes", of_bytes),
        ("Unigram", unigram),
        ("WordLevel", with(of_merges(), "/model", words)),
        ("merges", of_merges()),
        ("no words", with(of_merges(), "/pre_tokenizer", Value::Null)),
    ]
}

/// A tokenizer of the library that cuts texts itself.
fn library(file: &Value, most: usize) -> tokenizers::Tokenizer {
    let mut library = tokenizers::Tokenizer::from_bytes(file.to_string()).unwrap();
    let cut = tokenizers::TruncationParams { max_length: most, ..Default::default() };
    library.with_truncation(Some(cut)).unwrap();
    library
}

#[test]
fn blanks_and_words_without_end_are_read_like_any_text() {
    let text =
        ["cat ".repeat(5), " ".repeat(9000), "a".repeat(9000), "\u{7}".repeat(3000), " ab c".repeat(900)].concat();
    for (name, file) in families() {
        assert_eq!(
            ids(&made(&file, 500).unwrap(), &text),
            library(&file, 500).encode(&*text, true).unwrap().get_ids(),
            "{name}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Of texts of which a tokenizer reads the first pieces alone, and of those that it reads whole.
    #[test]
    fn ids_of_long_texts_are_the_first_of_the_library(
        parts in prop::collection::vec((part(), 1usize..3000), 1..6), most in 12usize..300, prefix in any::<bool>(), lower in any::<bool>(),
    ) {
        let mut text: String = parts.iter().map(|(part, n)| part.repeat(n / part.len().max(1))).collect();
        text.truncate(text.floor_char_boundary(9000));
        let prefix = if prefix { "cat ab " } else { "" };
        for (name, file) in families() {
            let of = made(&file, most).unwrap().with_prefix(Path::new("tokenizer.json"), prefix).unwrap().with_lower_case(lower);
            let whole = format!("{prefix}{text}");
            let whole = if lower { whole.to_lowercase() } else { whole };
            let expected = library(&file, most).encode(&*whole, true).unwrap();
            prop_assert_eq!(ids(&of, &text), expected.get_ids(), "{}", name);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Those of the library, whatever is cut.
    #[test]
    fn ids_are_the_first_of_the_library(words in prop::collection::vec("the|cat|mats|believable|[SEP]|猫|é|.{0,3}| ", 0..30), merges in any::<bool>(), most in 3usize..40) {
        let (text, file) = (words.concat(), if merges { of_merges() } else { with(file(), "/padding", Value::Null) });
        let mut library = library(&file, most);
        let ours = made(&file, most).unwrap();
        let theirs = library.encode(&*text, true).unwrap();
        prop_assert_eq!(ids(&ours, &text), theirs.get_ids());
        library.with_truncation(None).unwrap();
        let whole = library.encode(&*text, true).unwrap();
        prop_assert_eq!(ours.taken().cut == 1, whole.len() > most);
    }
}
