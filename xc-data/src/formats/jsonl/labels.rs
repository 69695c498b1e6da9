//! The labels of an object.

use crate::error::ReadErrorKind;
use crate::fields::{label_of, split_labels};
use crate::label::{LabelRef, LabelStrings};
use crate::options::ReadOptions;
use crate::row::MAX_IDS;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Unexpected, Visitor};
use std::fmt;
use xc_buffer::is_control;

pub(super) struct LabelsSeed<'a> {
    pub(super) options: &'a ReadOptions,
    pub(super) labels: &'a mut Vec<LabelRef>,
    pub(super) refused: &'a mut Option<ReadErrorKind>,
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
        f.write_str("labels: a list of ids or of names, or one of them")
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let Self { options, labels, refused } = self;
        split_labels(text, options.form.label_separator.as_ref(), options.label_strings, labels).map_err(|kind| {
            *refused = Some(kind);
            E::custom("labels that do not read")
        })
    }
    fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<(), E> {
        self.labels.push(LabelSeed { strings: self.options.label_strings }.visit_u64(id)?);
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let (mut first, strings) = (None, self.options.label_strings);
        while let Some(label) = seq.next_element_seed(LabelSeed { strings })? {
            let is_id = matches!(label, LabelRef::Id(_));
            if *first.get_or_insert(is_id) != is_id {
                return Err(A::Error::custom("labels are ids and names in one list, expected all ids or all names"));
            }
            self.labels.push(label);
        }
        Ok(())
    }
}

struct LabelSeed {
    strings: LabelStrings,
}

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
        if name.is_empty() || name.contains(is_control) {
            return Err(E::custom("a label name is empty or has a control character, expected a printable name"));
        }
        match self.strings {
            LabelStrings::Names => Ok(LabelRef::Name(name.to_owned())),
            LabelStrings::Ids => label_of(name, self.strings).map_err(E::custom),
        }
    }
}

/// A list of labels, or one of them, that is given as JSON.
///
/// # Errors
/// Malformed JSON, ids and names in one list, an empty name.
pub fn labels_of_json(text: &str) -> Result<Vec<LabelRef>, serde_json::Error> {
    let (mut labels, mut refused) = (Vec::new(), None);
    let seed = LabelsSeed { options: &ReadOptions::default(), labels: &mut labels, refused: &mut refused };
    let outcome = seed.deserialize(&mut serde_json::Deserializer::from_str(text));
    match refused {
        Some(kind) => Err(serde_json::Error::custom(kind)),
        None => outcome.map(|()| labels),
    }
}
