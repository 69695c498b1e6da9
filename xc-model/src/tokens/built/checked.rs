//! What the library of tokenizers is given of a `tokenizer.json`: it takes parts of a file at their word, and ends the
//! program later, at some text.

use super::super::LONGEST_PREFIX;
use super::steps::normalised;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tokenizers::{AddedToken, NormalizerWrapper};

/// Parts that make no ids: decoders turn ids into text, and models cut texts themselves and pad none.
const UNUSED: [&str; 3] = ["decoder", "padding", "truncation"];

/// The content of a file without the parts that make no ids.
///
/// # Errors
/// Malformed JSON, and what the library would not find in it.
pub(super) fn checked(file: &[u8]) -> Result<Vec<u8>, String> {
    let mut parts: BTreeMap<String, &RawValue> = serde_json::from_slice(file).map_err(|e| e.to_string())?;
    parts.retain(|part, _| !UNUSED.contains(&&**part));
    let check = |part: &str, check: fn(&Value) -> Result<(), String>| {
        let Some(text) = parts.get(part) else { return Ok(()) };
        let value = serde_json::from_str(text.get()).map_err(|e| e.to_string());
        value.and_then(|value| check(&value)).map_err(|what| format!("{part}: {what}"))
    };
    check("normalizer", |part| for_each_object(part, &mut check_normalizer))?;
    check("normalizer", check_byte_levels)?;
    check("pre_tokenizer", |part| for_each_object(part, &mut check_pre_tokenizer))?;
    check("pre_tokenizer", check_byte_levels)?;
    check("post_processor", check_post_processor)?;
    check_merges(parts.get("model").copied()).map_err(|what| format!("model: {what}"))?;
    check_added(parts.get("added_tokens").copied(), parts.get("normalizer").copied())?;
    serde_json::to_vec(&parts).map_err(|e| e.to_string())
}

/// The content of a file whose model leaves out merges at random, with a model that does not: that is for the training of
/// others, and the same text is to have the same ids. Other files stay as they are.
///
/// # Errors
/// Malformed JSON.
pub(super) fn without_dropout(file: Vec<u8>) -> Result<Vec<u8>, String> {
    const DROPOUT: &str = "dropout";
    let wrong = |e: serde_json::Error| e.to_string();
    let mut parts: BTreeMap<String, &RawValue> = serde_json::from_slice(&file).map_err(wrong)?;
    let model = parts.get("model").map(|model| serde_json::from_str::<BTreeMap<String, &RawValue>>(model.get()));
    let Some(Ok(mut model)) = model else { return Ok(file) };
    if model.get(DROPOUT).is_none_or(|dropout| dropout.get() == "null") {
        return Ok(file);
    }
    model.insert(DROPOUT.to_owned(), RawValue::NULL);
    let model = serde_json::value::to_raw_value(&model).map_err(wrong)?;
    parts.insert("model".to_owned(), &model);
    serde_json::to_vec(&parts).map_err(wrong)
}

/// The content of a file whose normalizer makes lower case, or does not, where it can do either; one without a normalizer
/// gets one for it. Other files stay as they are.
///
/// # Errors
/// Malformed JSON.
pub(super) fn with_lower_case(file: Vec<u8>, lower_case: bool) -> Result<Vec<u8>, String> {
    const NORMALIZER: &str = "normalizer";
    let wrong = |e: serde_json::Error| e.to_string();
    let mut parts: BTreeMap<String, &RawValue> = serde_json::from_slice(&file).map_err(wrong)?;
    let normalizer = parts.get(NORMALIZER).map(|part| serde_json::from_str(part.get()).map_err(wrong));
    let changed = match normalizer.transpose()?.unwrap_or(Value::Null) {
        Value::Object(mut of) if of.get("lowercase").is_some_and(|has| *has != lower_case) => {
            of.insert("lowercase".to_owned(), lower_case.into());
            Value::Object(of)
        }
        Value::Null if lower_case => serde_json::json!({ "type": "Lowercase" }),
        _ => return Ok(file),
    };
    let changed = serde_json::value::to_raw_value(&changed).map_err(wrong)?;
    parts.insert(NORMALIZER.to_owned(), &changed);
    serde_json::to_vec(&parts).map_err(wrong)
}

type Object = serde_json::Map<String, Value>;

/// Every object of a value, at any depth.
fn for_each_object(value: &Value, to: &mut impl FnMut(&Object) -> Result<(), String>) -> Result<(), String> {
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| for_each_object(value, to)),
        Value::Object(object) => {
            to(object)?;
            object.values().try_for_each(|value| for_each_object(value, to))
        }
        _ => Ok(()),
    }
}

/// One template at most: several tear a text apart between them.
fn check_post_processor(part: &Value) -> Result<(), String> {
    let mut templates = 0;
    for_each_object(part, &mut |object| {
        templates += usize::from(object.contains_key("single"));
        check_template(object)
    })?;
    if templates > 1 { Err(format!("{templates} templates, at most one is expected")) } else { Ok(()) }
}

/// In the template of one text stands no second one, and each special token is known.
fn check_template(of: &Object) -> Result<(), String> {
    let Some(pieces) = of.get("single").and_then(Value::as_array) else { return Ok(()) };
    let empty = Object::new();
    let special = of.get("special_tokens").and_then(Value::as_object).unwrap_or(&empty);
    for piece in pieces {
        if piece.pointer("/Sequence/id").is_some_and(|id| id != "A") {
            return Err("the template of one text has a second one".to_owned());
        }
        let id = piece.pointer("/SpecialToken/id").and_then(Value::as_str);
        if let Some(id) = id.filter(|&id| !special.contains_key(id)) {
            return Err(format!("special token {id:?} is not among special_tokens"));
        }
    }
    let n = |token: &Value, of: &str| token.get(of).and_then(Value::as_array).map(Vec::len);
    match special.iter().find(|(_, token)| n(token, "ids") != n(token, "tokens")) {
        Some((id, _)) => Err(format!("special token {id:?}: as many ids as tokens are expected")),
        None => Ok(()),
    }
}

/// Each writes most bytes as two: one is of use, many of them fill memory.
fn check_byte_levels(part: &Value) -> Result<(), String> {
    const MOST: usize = 2;
    let mut n = 0;
    for_each_object(part, &mut |object| {
        n += usize::from(object.get("type").is_some_and(|kind| kind == "ByteLevel"));
        Ok(())
    })?;
    if n > MOST { Err(format!("{n} steps of type ByteLevel, expected at most {MOST}")) } else { Ok(()) }
}

fn check_pre_tokenizer(of: &Object) -> Result<(), String> {
    let has_no_length = of.get("length").is_some_and(|length| length == 0);
    if has_no_length && of.get("type").is_some_and(|kind| kind == "FixedLength") {
        return Err("FixedLength: length 0, expected at least 1".to_owned());
    }
    Ok(())
}

/// The part of a model that makes longer pieces of shorter ones.
#[derive(Deserialize)]
struct Merges {
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    vocab: BTreeMap<String, IgnoredAny>,
    merges: Vec<Merge>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Pair(String, String),
    Line(String),
}

/// The second piece of a merge begins with what continues a word, and what the two become is no longer than the longest
/// piece that there is. What is no such model is not looked at.
fn check_merges(model: Option<&RawValue>) -> Result<(), String> {
    let Some(Merges { continuing_subword_prefix, vocab, merges }) =
        model.and_then(|model| serde_json::from_str(model.get()).ok())
    else {
        return Ok(());
    };
    let prefix = continuing_subword_prefix.unwrap_or_default();
    let longest = vocab.keys().map(String::len).max().unwrap_or(0);
    for merge in &merges {
        let pair = match merge {
            Merge::Pair(first, second) => Some((&**first, &**second)),
            Merge::Line(line) => line.split_once(' '),
        };
        let Some((first, second)) = pair else { continue };
        match second.get(prefix.len()..) {
            None => {
                return Err(format!("merge of {first:?} and {second:?}: the second one is shorter than {prefix:?}"));
            }
            Some(rest) if first.len() + rest.len() > longest => {
                return Err(format!("merge of {first:?} and {second:?}: no piece is as long as the two"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A token that stands beside the vocabulary is something behind the normalizer, too, where texts are searched for it there.
fn check_added(tokens: Option<&RawValue>, normalizer: Option<&RawValue>) -> Result<(), String> {
    let tokens = tokens.and_then(|part| serde_json::from_str::<Vec<AddedToken>>(part.get()).ok());
    let by = normalizer.and_then(|part| serde_json::from_str::<Option<NormalizerWrapper>>(part.get()).ok()?);
    let (Some(tokens), Some(by)) = (tokens, by) else { return Ok(()) };
    for AddedToken { content, .. } in tokens.iter().filter(|token| token.normalized && !token.content.is_empty()) {
        match normalised(&by, content) {
            Ok(made) if made.is_empty() => {
                return Err(format!("added_tokens: nothing is left of {content:?} behind the normalizer"));
            }
            Ok(_) => {}
            Err(what) => return Err(format!("added_tokens: {content:?}: {what}")),
        }
    }
    Ok(())
}

fn check_normalizer(of: &Object) -> Result<(), String> {
    // What is put before every text, or in the place of a piece of it.
    for name in ["prepend", "content"] {
        if let Some(n) = of.get(name).and_then(Value::as_str).map(str::len).filter(|&n| n > LONGEST_PREFIX) {
            return Err(format!("{name}: {n} bytes, expected at most {LONGEST_PREFIX}"));
        }
    }
    const MAP: &str = "precompiled_charsmap";
    match of.get(MAP) {
        None if of.get("type").is_none_or(|kind| kind != "Precompiled") => Ok(()),
        map => {
            let map = map.and_then(Value::as_str).ok_or_else(|| format!("{MAP}: a string is expected"))?;
            let map = base64::decode(map).map_err(|e| format!("{MAP}: {e}"))?;
            check_map(&map).map_err(|what| format!("{MAP}: {what}"))
        }
    }
}

/// Bytes of what a character becomes, at most: twice what Unicode's longest does.
const LONGEST_STRING: usize = 64;

/// A map of characters as SentencePiece writes it: the bytes of a trie, its units of 32 bits, then what strings become, each
/// with a 0 behind it.
///
/// *Cost*: 255 steps a node of the trie.
fn check_map(map: &[u8]) -> Result<(), &'static str> {
    const SHORT: &str = "shorter than its trie";
    let (length, rest) = map.split_first_chunk().ok_or(SHORT)?;
    let n_units = u32::from_le_bytes(*length) as usize / 4;
    let (units, strings) = rest.split_at_checked(4 * n_units).ok_or(SHORT)?;
    let units = units.chunks_exact(4).map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]));
    let units: Vec<u32> = units.collect();
    let strings = std::str::from_utf8(strings).map_err(|_| "strings that are not UTF-8")?;
    if strings.split('\0').any(|string| string.len() > LONGEST_STRING) {
        return Err("a string of more than 64 bytes in the place of characters");
    }
    let outside = "a node of its trie is outside of it";
    let children = |unit: u32| ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
    let mut found = vec![false; n_units];
    // A node may be reached by several ways, or by itself.
    let mut is_new = |node: usize| found.get_mut(node).map(|found| !std::mem::replace(found, true)).ok_or(outside);
    let first = children(*units.first().ok_or("no trie")?);
    is_new(first)?;
    let mut open = vec![first];
    while let Some(node) = open.pop() {
        for byte in 1..=0xff {
            let at = node ^ byte;
            let unit = *units.get(at).ok_or(outside)?;
            if (unit & (1 << 31 | 0xff)) as usize != byte {
                continue;
            }
            let next = at ^ children(unit);
            if is_new(next)? {
                open.push(next);
            }
            let is_end = (unit >> 8) & 1 == 1;
            if is_end && !strings.is_char_boundary((units[next] & !(1 << 31)) as usize) {
                return Err("a node of its trie has no string");
            }
        }
    }
    Ok(())
}
