//! Sparse features of an object.

use super::{Content, json_error, missing_field, read_object};
use crate::blocks::LineParser;
use crate::entries;
use crate::entries::IdKind;
use crate::error::{FieldOf, LineError, ReadErrorKind};
use crate::file_form::FEATURES_FIELD;
use crate::instance::TextInstance;
use crate::label::LabelRef;
use crate::options::ReadOptions;
use crate::row::{RowBlock, RowBuffer, RowLimits, RowSeen, RowStore};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use std::fmt;

/// Reads a line with sparse features into `row`, and its labels and id into `into`.
///
/// # Errors
/// Torn JSON, wrong types, a repeated field or feature, no features field, an id out of bounds.
pub(crate) fn parse_jsonl_features(
    line: &[u8],
    options: &ReadOptions,
    limits: &RowLimits,
    row: &mut RowBuffer,
    into: &mut TextInstance,
) -> Result<(), LineError> {
    row.clear();
    append_features(line, options, limits, &mut row.store, into)
}

fn append_features(
    line: &[u8],
    options: &ReadOptions,
    limits: &RowLimits,
    store: &mut RowStore,
    into: &mut TextInstance,
) -> Result<(), LineError> {
    into.clear();
    let mark = store.mark();
    let mut sink = FeatureSink { store, seen: RowSeen::default(), next_id: 0, limits, found: false };
    read_object(line, options, into, Content::Features(&mut sink))?;
    if !sink.found {
        return Err(missing_field(line, FieldOf::Features, &[FEATURES_FIELD]));
    }
    let seen = sink.seen;
    store.finish_row(mark, seen)
}

/// A map or list of features alone.
///
/// # Errors
/// As [`parse_jsonl_features`].
pub(crate) fn parse_features(text: &str, limits: &RowLimits) -> Result<RowBuffer, LineError> {
    let mut row = RowBuffer::default();
    let mark = row.store.mark();
    let store = &mut row.store;
    let mut sink = FeatureSink { store, seen: RowSeen::default(), next_id: 0, limits, found: true };
    let mut json = serde_json::Deserializer::from_str(text);
    let mut refused = None;
    let outcome = FeaturesSeed { sink: &mut sink, refused: &mut refused }.deserialize(&mut json);
    if let Some(refused) = refused {
        return Err(LineError::whole(refused));
    }
    outcome.map_err(|e| json_error(&e))?;
    let seen = sink.seen;
    row.store.finish_row(mark, seen)?;
    Ok(row)
}

pub(super) struct FeatureSink<'a> {
    store: &'a mut RowStore,
    seen: RowSeen,
    next_id: u64,
    limits: &'a RowLimits,
    pub(super) found: bool,
}

impl FeatureSink<'_> {
    fn push<E: serde::de::Error>(&mut self, id: u32, value: f32, refused: &mut Option<ReadErrorKind>) -> Result<(), E> {
        if u64::from(id) >= RowLimits::below(self.limits.features) {
            *refused = Some(entries::out_of_range(IdKind::Feature, id, self.limits.features));
            return Err(E::custom("a feature id out of range"));
        }
        if !value.is_finite() {
            return Err(E::custom(format_args!("feature {id}: expected a value that f32 can hold")));
        }
        if self.limits.leaves_out(id) {
            self.seen.unseen += 1;
            return Ok(());
        }
        self.seen.features_unsorted |= u64::from(id) < self.next_id;
        self.seen.zeros |= value == 0.0;
        self.next_id = u64::from(id) + 1;
        self.store.indices.push(id);
        self.store.values.push(value);
        Ok(())
    }
}

pub(super) struct FeaturesSeed<'a, 'b> {
    pub(super) sink: &'a mut FeatureSink<'b>,
    pub(super) refused: &'a mut Option<ReadErrorKind>,
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
            self.sink.push(id, value, self.refused)?;
        }
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some((id, value)) = seq.next_element::<(u32, f32)>()? {
            self.sink.push(id, value, self.refused)?;
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
        match crate::number::scan_id(key.as_bytes(), 0) {
            Ok((id, end)) if end == key.len() => Ok(id),
            _ => Err(E::invalid_value(Unexpected::Str(key), &self)),
        }
    }
}

/// Feature rows whose labels may have names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedRows {
    pub(crate) rows: RowBlock,
    pub(crate) labels: Vec<Vec<LabelRef>>,
}

pub(crate) struct JsonlFeaturesParser {
    pub(crate) options: ReadOptions,
    pub(crate) limits: RowLimits,
}

impl LineParser for JsonlFeaturesParser {
    type Block = NamedRows;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut NamedRows) -> Result<(), LineError> {
        let mut instance = TextInstance::default();
        append_features(line, &self.options, &self.limits, &mut into.rows.store, &mut instance)?;
        into.rows.end_row(line_no);
        into.labels.push(instance.labels);
        Ok(())
    }
}
