//! The file of a tokenizer.

use serde_json::{Value, json};

/// A tokenizer of pieces of words, as BERT's: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, then the words.
pub(crate) fn file() -> Value {
    of_words(WORDS)
}

/// Words and pieces of words.
const WORDS: &str = "the a cat sat on mat un ##believ ##able ##s run ##ning é e cafe naive 猫 , . ! 1 2 ##3";

/// The same of other words.
pub(crate) fn of_words(words: &str) -> Value {
    let words = words.split(' ');
    let all = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].into_iter().chain(words);
    let vocab: serde_json::Map<String, Value> = all.zip(0..).map(|(word, id)| (word.to_owned(), json!(id))).collect();
    let special = |id: u32, content: &str| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true })
    };
    json!({
        "version": "1.0",
        // Both are switched off: a model cuts texts itself, and pads none.
        "truncation": { "direction": "Left", "max_length": 3, "strategy": "LongestFirst", "stride": 0 },
        "padding": { "strategy": { "Fixed": 9 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "[PAD]" },
        "added_tokens": [special(0, "[PAD]"), special(1, "[UNK]"), special(2, "[CLS]"), special(3, "[SEP]")],
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2] },
        "decoder": null,
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab }
    })
}
