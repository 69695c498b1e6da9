//! JSONL: one object a line, with labels and either text fields or sparse features.
//!
//! ```text
//!   {"title": "A dog", "text": "It barks.", "labels": ["animal", "noise"]}
//!   {"features": {"3": 0.5, "17": 1}, "labels": [4, 9]}
//!   {"features": [[3, 0.5], [17, 1]], "labels": [4, 9]}
//! ```
//!
//! The specification is `docs/formats/jsonl.md`.

use super::fasttext::{TextRows, utf8_error};
use crate::io::blocks::LineParser;
use crate::io::digits::{push_f32, push_u64};
use crate::io::entries::{self, IdKind};
use crate::io::error::{LineError, ReadErrorKind, Snippet};
use crate::io::label::{LabelRef, TextInstance};
use crate::io::row::{Limits, MAX_IDS, RowBlock, RowBuffer, RowSeen, RowStore};
use crate::io::write::{same_rows, stream};
use crate::rows::{CsrView, LabelRows, Rows, SparseRow};
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};

/// Which fields of an object are read; the others are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonlFields {
    /// Fields joined (by single blanks, in this order) into the text. A field that is missing or
    /// null counts as empty, but one of them must be there.
    pub text: Vec<String>,
    /// Field with the labels: a list of whole numbers (ids) or of strings (names). Missing or null:
    /// no labels.
    pub labels: String,
    /// Field with sparse features: a map from id to value, or a list of `[id, value]` pairs.
    pub features: String,
}

impl Default for JsonlFields {
    fn default() -> Self {
        Self { text: vec!["text".into()], labels: "labels".into(), features: "features".into() }
    }
}

/// Reads a line with text into `into`.
///
/// # Errors
/// Torn JSON, wrong types, a repeated field, none of the text fields.
pub(crate) fn parse_jsonl_text(line: &[u8], fields: &JsonlFields, into: &mut TextInstance) -> Result<(), LineError> {
    into.text.clear();
    into.labels.clear();
    let mut parts: Vec<Option<String>> = vec![None; fields.text.len()];
    let row = ObjectSeed { fields, labels: &mut into.labels, content: Content::Text(&mut parts) };
    read_object(line, row)?;
    if parts.iter().all(Option::is_none) && !parts.is_empty() {
        let expected = fields.text.iter().map(|f| format!("{f:?}")).collect::<Vec<_>>().join(", ");
        return Err(LineError::whole(ReadErrorKind::MissingField { expected: expected.into() }));
    }
    for part in parts.iter().flatten().filter(|p| !p.is_empty()) {
        if !into.text.is_empty() {
            into.text.push(' ');
        }
        into.text.push_str(part);
    }
    Ok(())
}

/// Reads a line with sparse features into `row`, and its labels into `labels`.
///
/// # Errors
/// Torn JSON, wrong types, a repeated field or feature, no features field, an id out of bounds.
pub(crate) fn parse_jsonl_features(
    line: &[u8],
    fields: &JsonlFields,
    limits: &Limits,
    row: &mut RowBuffer,
    labels: &mut Vec<LabelRef>,
) -> Result<(), LineError> {
    row.clear();
    labels.clear();
    append_features(line, fields, limits, &mut row.store, labels)
}

fn append_features(
    line: &[u8],
    fields: &JsonlFields,
    limits: &Limits,
    store: &mut RowStore,
    labels: &mut Vec<LabelRef>,
) -> Result<(), LineError> {
    let mark = store.mark();
    let mut sink = FeatureSink { store, seen: RowSeen::default(), next_id: 0, limits, found: false, refused: None };
    let outcome = read_object(line, ObjectSeed { fields, labels, content: Content::Features(&mut sink) });
    // A bound that an id broke tells more than the JSON reader, which only knows that it was
    // stopped.
    if let Some(refused) = sink.refused.take() {
        return Err(LineError::whole(refused));
    }
    outcome?;
    if !sink.found {
        let expected = format!("{:?}", fields.features).into();
        return Err(LineError::whole(ReadErrorKind::MissingField { expected }));
    }
    let seen = sink.seen;
    store.finish_row(mark, seen)
}

/// A map or list of features alone.
///
/// # Errors
/// As [`parse_jsonl_features`].
pub(crate) fn parse_features(text: &str, limits: &Limits) -> Result<RowBuffer, LineError> {
    let mut row = RowBuffer::default();
    let mark = row.store.mark();
    let store = &mut row.store;
    let mut sink = FeatureSink { store, seen: RowSeen::default(), next_id: 0, limits, found: true, refused: None };
    let mut json = serde_json::Deserializer::from_str(text);
    let outcome = FeaturesSeed { sink: &mut sink }.deserialize(&mut json);
    if let Some(refused) = sink.refused.take() {
        return Err(LineError::whole(refused));
    }
    outcome.map_err(|e| json_error(&e))?;
    let seen = sink.seen;
    row.store.finish_row(mark, seen)?;
    Ok(row)
}

/// A list of labels alone.
pub(crate) fn parse_labels(text: &str) -> Result<Vec<LabelRef>, serde_json::Error> {
    let mut labels = Vec::new();
    LabelsSeed { labels: &mut labels }.deserialize(&mut serde_json::Deserializer::from_str(text))?;
    Ok(labels)
}

pub(crate) fn utf8(line: &[u8]) -> Result<&str, LineError> {
    std::str::from_utf8(line).map_err(|e| utf8_error(line, e.valid_up_to()))
}

fn read_object(line: &[u8], seed: ObjectSeed<'_, '_>) -> Result<(), LineError> {
    let text = utf8(line)?;
    if text.trim_ascii().is_empty() {
        let kind = ReadErrorKind::Malformed { got: Snippet::new(line), expected: "a JSON object" };
        return Err(LineError::whole(kind));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut json).and_then(|()| json.end()).map_err(|e| json_error(&e))
}

pub(crate) fn json_error(error: &serde_json::Error) -> LineError {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let problem = message.strip_suffix(&place).unwrap_or(&message);
    let problem = match error.classify() {
        serde_json::error::Category::Eof => format!("torn JSON: {problem}"),
        serde_json::error::Category::Syntax => format!("malformed JSON: {problem}"),
        _ => problem.to_owned(),
    };
    let kind = ReadErrorKind::Json { problem: problem.into() };
    LineError { column: error.column() as u64, kind }
}

// One object: what its fields are written to.
struct ObjectSeed<'a, 'b> {
    fields: &'a JsonlFields,
    labels: &'a mut Vec<LabelRef>,
    content: Content<'a, 'b>,
}

enum Content<'a, 'b> {
    Text(&'a mut [Option<String>]),
    Features(&'a mut FeatureSink<'b>),
}

struct FeatureSink<'a> {
    store: &'a mut RowStore,
    seen: RowSeen,
    next_id: u64,
    limits: &'a Limits,
    found: bool,
    refused: Option<ReadErrorKind>,
}

impl FeatureSink<'_> {
    fn push<E: serde::de::Error>(&mut self, id: u32, value: f32) -> Result<(), E> {
        if u64::from(id) >= Limits::below(self.limits.features) {
            self.refused = Some(entries::out_of_range(IdKind::Feature, id, self.limits.features));
            return Err(E::custom("a feature id out of range"));
        }
        if !value.is_finite() {
            return Err(E::custom(format_args!("feature {id}: expected a value that f32 can hold")));
        }
        self.seen.features_unsorted |= u64::from(id) < self.next_id;
        self.seen.zeros |= value == 0.0;
        self.next_id = u64::from(id) + 1;
        self.store.indices.push(id);
        self.store.values.push(value);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Text(usize),
    Labels,
    Features,
    Other,
}

impl<'de> Visitor<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut labels_seen = false;
        while let Some(field) = map.next_key_seed(KeySeed { fields: self.fields, content: &self.content })? {
            let repeated = |name: &str| A::Error::custom(format_args!("the field {name:?} is given twice"));
            match (field, &mut self.content) {
                (Field::Text(i), Content::Text(parts)) => {
                    let text = map.next_value_seed(TextSeed { field: &self.fields.text[i] })?;
                    if parts[i].is_some() {
                        return Err(repeated(&self.fields.text[i]));
                    }
                    parts[i] = text;
                }
                (Field::Features, Content::Features(sink)) => {
                    if sink.found {
                        return Err(repeated(&self.fields.features));
                    }
                    sink.found = true;
                    map.next_value_seed(FeaturesSeed { sink })?;
                }
                (Field::Labels, _) => {
                    if labels_seen {
                        return Err(repeated(&self.fields.labels));
                    }
                    labels_seen = true;
                    map.next_value_seed(LabelsSeed { labels: self.labels })?;
                }
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

struct KeySeed<'a, 'b, 'c> {
    fields: &'a JsonlFields,
    content: &'a Content<'b, 'c>,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_, '_> {
    type Value = Field;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_, '_, '_> {
    type Value = Field;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }
    fn visit_str<E>(self, key: &str) -> Result<Field, E> {
        Ok(match self.content {
            _ if key == self.fields.labels => Field::Labels,
            Content::Features(_) if key == self.fields.features => Field::Features,
            Content::Text(_) => self.fields.text.iter().position(|f| f == key).map_or(Field::Other, Field::Text),
            _ => Field::Other,
        })
    }
}

struct TextSeed<'a> {
    field: &'a str,
}

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = Option<String>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for TextSeed<'_> {
    type Value = Option<String>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string in the field {:?}", self.field)
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(text))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

struct LabelsSeed<'a> {
    labels: &'a mut Vec<LabelRef>,
}

impl<'de> DeserializeSeed<'de> for LabelsSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LabelsSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of labels: all ids or all names")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut first = None;
        while let Some(label) = seq.next_element_seed(LabelSeed)? {
            let is_id = matches!(label, LabelRef::Id(_));
            if *first.get_or_insert(is_id) != is_id {
                return Err(A::Error::custom("labels are ids and names in one list, expected all ids or all names"));
            }
            self.labels.push(label);
        }
        Ok(())
    }
}

struct LabelSeed;

impl<'de> DeserializeSeed<'de> for LabelSeed {
    type Value = LabelRef;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<LabelRef, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for LabelSeed {
    type Value = LabelRef;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a label: an id from 0 to 4294967294 or a name")
    }
    fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<LabelRef, E> {
        match u32::try_from(id) {
            Ok(small) if id < MAX_IDS => Ok(LabelRef::Id(small)),
            _ => Err(E::invalid_value(Unexpected::Unsigned(id), &self)),
        }
    }
    fn visit_i64<E: serde::de::Error>(self, id: i64) -> Result<LabelRef, E> {
        Err(E::invalid_value(Unexpected::Signed(id), &self))
    }
    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<LabelRef, E> {
        if name.is_empty() || name.contains(['\t', '\n', '\r']) {
            return Err(E::custom("a label name is empty or has a tab or line break, expected a printable name"));
        }
        Ok(LabelRef::Name(name.to_owned()))
    }
}

struct FeaturesSeed<'a, 'b> {
    sink: &'a mut FeatureSink<'b>,
}

impl<'de> DeserializeSeed<'de> for FeaturesSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FeaturesSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("features: a map from id to value or a list of [id, value] pairs")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(id) = map.next_key_seed(FeatureKeySeed)? {
            let value = map.next_value::<f32>()?;
            self.sink.push(id, value)?;
        }
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some((id, value)) = seq.next_element::<(u32, f32)>()? {
            self.sink.push(id, value)?;
        }
        Ok(())
    }
}

struct FeatureKeySeed;

impl<'de> DeserializeSeed<'de> for FeatureKeySeed {
    type Value = u32;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u32, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FeatureKeySeed {
    type Value = u32;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a feature id from 0 to 4294967294 in quotes")
    }
    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<u32, E> {
        match crate::io::number::scan_id(key.as_bytes(), 0) {
            Ok((id, end)) if end == key.len() => Ok(id),
            _ => Err(E::invalid_value(Unexpected::Str(key), &self)),
        }
    }
}

pub(crate) struct JsonlTextParser {
    pub(crate) fields: JsonlFields,
}

impl LineParser for JsonlTextParser {
    type Block = TextRows;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut TextRows) -> Result<(), LineError> {
        let mut instance = TextInstance::default();
        parse_jsonl_text(line, &self.fields, &mut instance)?;
        into.instances.push(instance);
        into.lines.push(line_no);
        Ok(())
    }
}

/// Feature rows whose labels may have names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedRows {
    pub(crate) rows: RowBlock,
    pub(crate) labels: Vec<Vec<LabelRef>>,
}

pub(crate) struct JsonlFeaturesParser {
    pub(crate) fields: JsonlFields,
    pub(crate) limits: Limits,
}

impl LineParser for JsonlFeaturesParser {
    type Block = NamedRows;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut NamedRows) -> Result<(), LineError> {
        let mut labels = Vec::new();
        append_features(line, &self.fields, &self.limits, &mut into.rows.store, &mut labels)?;
        into.rows.end_row(line_no);
        into.labels.push(labels);
        Ok(())
    }
}

#[derive(Serialize)]
struct TextLine<'a> {
    text: &'a str,
    labels: Vec<NameOrId<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum NameOrId<'a> {
    Id(u32),
    Name(&'a str),
}

/// Appends one line of JSONL with text, its end included; labels by name where there are names,
/// else by number.
pub fn push_jsonl_text(out: &mut Vec<u8>, text: &str, labels: &[u32], names: Option<&[String]>) -> io::Result<()> {
    let labels = labels.iter().map(|&l| match names {
        Some(names) => NameOrId::Name(&names[l as usize]),
        None => NameOrId::Id(l),
    });
    serde_json::to_writer(&mut *out, &TextLine { text, labels: labels.collect() })?;
    out.push(b'\n');
    Ok(())
}

/// Writes JSONL with the fields `text` and `labels`.
pub fn write_jsonl_text<S: AsRef<str>>(
    into: &mut impl Write,
    texts: &[S],
    labels: &LabelRows,
    names: Option<&[String]>,
) -> io::Result<()> {
    same_rows(texts.len(), labels.len());
    stream(into, texts.len(), Vec::new(), |out, i| push_jsonl_text(out, texts[i].as_ref(), labels.row(i), names))
}

/// Appends one line of JSONL with sparse features, its end included.
pub fn push_jsonl_features(
    out: &mut Vec<u8>,
    features: SparseRow<'_>,
    labels: &[u32],
    names: Option<&[String]>,
) -> io::Result<()> {
    out.extend_from_slice(b"{\"features\":{");
    for (i, (id, value)) in features.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.push(b'"');
        push_u64(out, u64::from(id));
        out.extend_from_slice(b"\":");
        push_f32(out, value);
    }
    out.extend_from_slice(b"},\"labels\":[");
    for (i, &label) in labels.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match names {
            Some(names) => serde_json::to_writer(&mut *out, &names[label as usize])?,
            None => push_u64(out, u64::from(label)),
        }
    }
    out.extend_from_slice(b"]}\n");
    Ok(())
}

/// Writes JSONL with the fields `features` and `labels`.
pub fn write_jsonl_features(
    into: &mut impl Write,
    features: CsrView<'_>,
    labels: &LabelRows,
    names: Option<&[String]>,
) -> io::Result<()> {
    let rows = Rows::new(features);
    same_rows(rows.len(), labels.len());
    stream(into, rows.len(), Vec::new(), |out, i| push_jsonl_features(out, rows.row(i), labels.row(i), names))
}

/// Whether the first object of a file holds text.
pub(crate) fn object_holds_text(line: &[u8], fields: &JsonlFields) -> bool {
    // A torn first line is for the reader to report.
    let object: HashMap<String, IgnoredAny> = serde_json::from_slice(line).unwrap_or_default();
    fields.text.iter().any(|f| object.contains_key(f)) || !object.contains_key(&fields.features)
}
