//! JSONL: one object per line, with labels and either text fields or sparse features.
//!
//! ```text
//!   {"title": "A dog", "text": "It barks.", "labels": ["animal", "noise"]}
//!   {"features": {"3": 0.5, "17": 1}, "labels": [4, 9]}
//!   {"features": [[3, 0.5], [17, 1]], "labels": [4, 9]}
//! ```
//!
//! The specification is `docs/formats/jsonl.md`.

mod features;
mod labels;
mod write;

pub(crate) use features::{JsonlFeaturesParser, parse_features, parse_jsonl_features};
pub use labels::labels_of_json;
pub use write::{push_jsonl_features, push_jsonl_text, write_jsonl_features, write_jsonl_text};

use super::fasttext::{TextRows, utf8_error};
use crate::blocks::LineParser;
use crate::error::{FieldOf, LineError, ReadErrorKind, Snippet};
use crate::fields::{Parts, join_text, quoted};
use crate::file_form::{FEATURES_FIELD, FileForm};
use crate::ids::RowId;
use crate::instance::TextInstance;
use crate::label::LabelRef;
use crate::options::ReadOptions;
use features::{FeatureSink, FeaturesSeed};
use labels::LabelsSeed;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// Reads a line with text into `into`.
///
/// # Errors
/// Torn JSON, wrong types, a repeated field, none of the text fields where text is read.
pub(crate) fn parse_jsonl_text(line: &[u8], options: &ReadOptions, into: &mut TextInstance) -> Result<(), LineError> {
    into.clear();
    let fields = &options.form;
    let with_text = options.parts.have_text();
    // A field that is null is there, and its text is empty.
    let mut texts: Vec<Option<String>> = vec![None; if with_text { fields.texts().len() } else { 0 }];
    read_object(line, options, into, Content::Text(&mut texts))?;
    if texts.iter().all(Option::is_none) && !texts.is_empty() {
        return Err(missing_field(line, FieldOf::Text, fields.texts()));
    }
    join_text(texts.iter().flatten().map(String::as_str), &mut into.text);
    Ok(())
}

/// Says that an object, a line of JSON, has none of the fields.
#[cold]
pub fn missing_field<S: AsRef<str>>(line: &[u8], what: FieldOf, expected: &[S]) -> LineError {
    let object: BTreeMap<String, IgnoredAny> = serde_json::from_slice(line).unwrap_or_default();
    let fields = if object.is_empty() { "none".into() } else { quoted(object.keys()) };
    LineError::whole(ReadErrorKind::MissingField { what, expected: quoted(expected), fields })
}

/// The text of a line.
///
/// # Errors
/// Bytes that are not UTF-8, with their column.
pub fn line_text(line: &[u8]) -> Result<&str, LineError> {
    std::str::from_utf8(line).map_err(|e| utf8_error(line, e.valid_up_to()))
}

/// Reads one object into `into` and `content`.
fn read_object(
    line: &[u8],
    options: &ReadOptions,
    into: &mut TextInstance,
    mut content: Content<'_, '_>,
) -> Result<(), LineError> {
    let text = line_text(line)?;
    if text.trim_ascii().is_empty() {
        let kind = ReadErrorKind::Malformed { got: Snippet::new(line), expected: "a JSON object" };
        return Err(LineError::whole(kind));
    }
    if text.trim_ascii_start().starts_with('[') {
        return Err(LineError::whole(ReadErrorKind::JsonArray));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let mut refused = None;
    let seed = ObjectSeed { options, into, content: &mut content, refused: &mut refused };
    let outcome = seed.deserialize(&mut json).and_then(|()| json.end());
    // What was refused tells more than the JSON reader, which only knows that it was stopped.
    match refused {
        Some(kind) => return Err(LineError::whole(kind)),
        None => outcome.map_err(|e| json_error(&e))?,
    }
    if options.form.needs_id && options.parts == Parts::Queries && into.id.is_none() {
        return Err(missing_field(line, FieldOf::Id, &[options.form.id()]));
    }
    Ok(())
}

/// What a JSON reader says about a line, with the column.
pub fn json_error(error: &serde_json::Error) -> LineError {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let problem = message.strip_suffix(&place).unwrap_or(&message);
    let problem = match error.classify() {
        _ if matches!(problem, "lone leading surrogate in hex escape" | "unexpected end of hex escape") => {
            "a \\u escape of a surrogate without its other half: the text was cut inside a character, such as an emoji"
                .to_owned()
        }
        serde_json::error::Category::Eof => format!("incomplete JSON: {problem}"),
        serde_json::error::Category::Syntax => format!("malformed JSON: {problem}"),
        _ => problem.to_owned(),
    };
    let kind = ReadErrorKind::Json { problem: problem.into() };
    LineError { column: error.column() as u64, kind }
}

// One object: what its fields are written to.
struct ObjectSeed<'a, 'b, 'c> {
    options: &'a ReadOptions,
    into: &'a mut TextInstance,
    content: &'a mut Content<'b, 'c>,
    refused: &'a mut Option<ReadErrorKind>,
}

enum Content<'a, 'b> {
    Text(&'a mut [Option<String>]),
    Features(&'a mut FeatureSink<'b>),
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Text(usize),
    Labels,
    Indicator(usize),
    Features,
    Id,
    Other,
}

impl<'de> Visitor<'de> for ObjectSeed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { options, into, content, refused } = self;
        let fields = &options.form;
        let (mut labels_seen, mut id_seen) = (false, false);
        let mut indicated = vec![false; if options.parts.have_labels() { fields.indicators().len() } else { 0 }];
        while let Some(field) = map.next_key_seed(KeySeed { options, content })? {
            let repeated = |name: &str| A::Error::custom(format_args!("the field {name:?} is given twice"));
            match (field, &mut *content) {
                (Field::Text(i), Content::Text(texts)) => {
                    let text = map.next_value_seed(TextSeed { field: &fields.texts()[i] })?;
                    if texts[i].is_some() {
                        return Err(repeated(&fields.texts()[i]));
                    }
                    texts[i] = Some(text);
                }
                (Field::Features, Content::Features(sink)) => {
                    if sink.found {
                        return Err(repeated(FEATURES_FIELD));
                    }
                    sink.found = true;
                    map.next_value_seed(FeaturesSeed { sink, refused })?;
                }
                (Field::Labels, _) => {
                    if std::mem::replace(&mut labels_seen, true) {
                        return Err(repeated(fields.labels()));
                    }
                    map.next_value_seed(LabelsSeed { options, labels: &mut into.labels, refused })?;
                }
                (Field::Indicator(i), _) => {
                    let name = &fields.indicators()[i];
                    if std::mem::replace(&mut indicated[i], true) {
                        return Err(repeated(name));
                    }
                    if map.next_value_seed(IndicatorSeed { field: name })? {
                        into.labels.push(LabelRef::Name(name.clone()));
                    }
                }
                (Field::Id, _) => {
                    let json = map.next_value::<&RawValue>()?.get();
                    if std::mem::replace(&mut id_seen, true) {
                        return Err(repeated(fields.id()));
                    }
                    into.id = RowId::of_json(json);
                    // Beside labels an id only serves to compare.
                    if into.id.is_none() && json != "null" && options.parts == Parts::Queries {
                        let expected = format_args!("the field {:?} is no string and no number", fields.id());
                        return Err(A::Error::custom(expected));
                    }
                }
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        if let Some(absent) = indicated.iter().position(|indicated| !indicated) {
            let name = &fields.indicators()[absent];
            return Err(A::Error::custom(format_args!("the object has no field {name:?}, expected 0 or 1 there")));
        }
        Ok(())
    }
}

struct KeySeed<'a, 'b, 'c> {
    options: &'a ReadOptions,
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
        let (fields, parts) = (&self.options.form, self.options.parts);
        let indicator = || fields.indicators().iter().position(|field| field == key).map(Field::Indicator);
        let text = || fields.texts().iter().position(|field| field == key).map(Field::Text);
        Ok(match self.content {
            _ if parts.have_labels() && !fields.indicators().is_empty() && indicator().is_some() => {
                indicator().unwrap_or(Field::Other)
            }
            _ if parts.have_labels() && key == fields.labels() && fields.indicators().is_empty() => Field::Labels,
            Content::Features(_) if key == FEATURES_FIELD => Field::Features,
            Content::Text(texts) if !texts.is_empty() && text().is_some() => text().unwrap_or(Field::Other),
            _ if parts.have_ids() && key == fields.id() => Field::Id,
            _ => Field::Other,
        })
    }
}

/// A field that is 1 where its label is true, and 0 where it is not.
struct IndicatorSeed<'a> {
    field: &'a str,
}

impl<'de> DeserializeSeed<'de> for IndicatorSeed<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for IndicatorSeed<'_> {
    type Value = bool;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0 or 1 (or false or true) in the field {:?}", self.field)
    }
    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<bool, E> {
        if value > 1 { Err(E::invalid_value(Unexpected::Unsigned(value), &self)) } else { Ok(value == 1) }
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<bool, E> {
        let is_whole = value == 0.0 || value == 1.0;
        if is_whole { Ok(value == 1.0) } else { Err(E::invalid_value(Unexpected::Float(value), &self)) }
    }
}

struct TextSeed<'a> {
    field: &'a str,
}

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = String;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextSeed<'_> {
    type Value = String;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string in the field {:?}", self.field)
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned())
    }
    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(text)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(String::new())
    }
    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(A::Error::custom(format_args!(
            "an object in the field {:?}, expected a string; a table has one object a line (pandas writes that with \
             to_json(path, orient=\"records\", lines=True))",
            self.field
        )))
    }
}

pub(crate) struct JsonlTextParser {
    pub(crate) options: ReadOptions,
}

impl LineParser for JsonlTextParser {
    type Block = TextRows;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut TextRows) -> Result<(), LineError> {
        let mut instance = TextInstance::default();
        parse_jsonl_text(line, &self.options, &mut instance)?;
        into.instances.push(instance);
        into.lines.push(line_no);
        Ok(())
    }
}

/// Whether the first object of a file holds text.
pub(crate) fn object_holds_text(line: &[u8], fields: &FileForm) -> bool {
    // A torn first line is for the reader to report.
    let object: BTreeMap<String, IgnoredAny> = serde_json::from_slice(line).unwrap_or_default();
    fields.texts().iter().any(|f| object.contains_key(f)) || !object.contains_key(FEATURES_FIELD)
}
