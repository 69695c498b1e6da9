//! What the library of tokenizers is given of a `tokenizer.json`: it takes parts of a file at their word, and ends the
//! program later, at some text.

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

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
    check("post_processor", check_post_processor)?;
    serde_json::to_vec(&parts).map_err(|e| e.to_string())
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

fn check_normalizer(of: &Object) -> Result<(), String> {
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
