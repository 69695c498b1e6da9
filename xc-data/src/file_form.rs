//! What the files of instances look like, as far as a reader cannot tell it from them.

use super::entries::IndexBase;
use super::fields::LabelSeparator;
use super::format::Format;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::LazyLock;

/// What the files of instances look like: what a user states, what a reader goes by ([`ReadOptions::form`](super::ReadOptions::form)),
/// and what a model remembers of those that it was trained on, to read others like them (`docs/formats/model.md`). What is `None`
/// is not stated: the reader's default holds.
///
/// ```
/// use xc_data::{FileForm, Format};
///
/// let kept = FileForm { format: Some(Format::Csv), text_fields: Some(vec!["title".into(), "body".into()]), ..FileForm::default() };
/// let json = serde_json::to_string(&kept)?;
/// assert_eq!(json, r#"{"format":"csv","text_fields":["title","body"]}"#);
/// let given = FileForm { text_fields: Some(vec!["name".into()]), ..FileForm::default() };
/// let form = given.or(&serde_json::from_str(&json)?);
/// assert_eq!((form.texts(), form.usual_format), (&["name".to_owned()][..], Some(Format::Csv)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileForm {
    /// The format; `None` detects it from name and content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Fields of JSONL, or columns of a table, that are joined into the text, in this order, separated by single blanks; `text`
    /// where none is stated. A field that is missing or null counts as empty, but an object must have one of them, and a header
    /// all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_fields: Option<Vec<String>>,
    /// Field or column with the labels; `labels` where none is stated. If it is missing or null in an object, there are no
    /// labels. A header must have it, unless this name is empty: then there are no labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_field: Option<String>,
    /// Fields or columns that are 1 where a label is true and 0 where it is not, in place of `label_field`: the label has the
    /// field's name. Every object and the header must have all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_fields: Option<Vec<String>>,
    /// How a string with labels is split; where it is not stated a string is one label, and one that could be several is an
    /// error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_separator: Option<LabelSeparator>,
    /// Field or column with what an instance is known by, a string or a number; `id` where none is stated. Read with
    /// [`Parts::Queries`](super::Parts::Queries).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_field: Option<String>,
    /// What stands between the fields of a table; `None`: a comma in CSV, a tab in TSV.
    #[serde(skip_serializing_if = "Option::is_none", with = "as_char")]
    pub delimiter: Option<u8>,
    /// Whether quotes in a table are text; then every line end ends a row.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_quotes: bool,
    /// Whether a table begins with its first instance, and columns are named by their numbers, from 1.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_header: bool,
    /// Number of the first svmlight feature; there is no default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svmlight_base: Option<IndexBase>,
    /// Number of the first svmlight label; 0 where it is not stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svmlight_label_base: Option<IndexBase>,
    /// The format of files whose name does not tell it and whose content fits several formats.
    #[serde(skip)]
    pub usual_format: Option<Format>,
    /// Whether every object and header must have the field of ids.
    #[serde(skip)]
    pub needs_id: bool,
    /// Whether a feature that a model does not know is an error.
    #[serde(skip)]
    pub refuse_unseen: bool,
}

/// The field of sparse features (JSONL): a map from id to value, or a list of `[id, value]` pairs.
pub const FEATURES_FIELD: &str = "features";

impl From<Format> for FileForm {
    fn from(format: Format) -> Self {
        Self { format: Some(format), ..Self::default() }
    }
}

impl FileForm {
    /// This, and where it says nothing what a model remembers, whose format becomes the usual one.
    pub fn or(&self, kept: &Self) -> Self {
        // Labels are in one field or in several: what is given for the one takes the place of the others.
        let (one, several) =
            (self.label_field.is_some() || self.label_separator.is_some(), self.label_fields.is_some());
        let kept_fields = || kept.label_fields.clone().filter(|_| !one);
        Self {
            format: self.format,
            text_fields: self.text_fields.clone().or_else(|| kept.text_fields.clone()),
            label_field: self.label_field.clone().or_else(|| kept.label_field.clone().filter(|_| !several)),
            label_fields: self.label_fields.clone().or_else(kept_fields),
            label_separator: self.label_separator.clone().or_else(|| kept.label_separator.clone()),
            id_field: self.id_field.clone().or_else(|| kept.id_field.clone()),
            delimiter: self.delimiter.or(kept.delimiter),
            no_quotes: self.no_quotes || kept.no_quotes,
            no_header: self.no_header || kept.no_header,
            svmlight_base: self.svmlight_base.or(kept.svmlight_base),
            svmlight_label_base: self.svmlight_label_base.or(kept.svmlight_label_base),
            usual_format: self.usual_format.or(kept.format),
            needs_id: self.needs_id,
            refuse_unseen: self.refuse_unseen,
        }
    }

    /// What a model keeps of this, when it is trained on a file of this format.
    pub fn kept(&self, format: Format) -> Self {
        Self { format: Some(format), usual_format: None, needs_id: false, refuse_unseen: false, ..self.clone() }
    }

    /// The same for a further file, whose format is its own affair.
    pub fn of_any_format(&self) -> Self {
        Self { format: None, usual_format: None, ..self.clone() }
    }

    /// Whether a file is svmlight, as stated or as usual.
    pub fn is_svmlight(&self) -> bool {
        self.format.or(self.usual_format) == Some(Format::Svmlight)
    }

    /// Fields that make up the text.
    pub fn texts(&self) -> &[String] {
        static USUAL: LazyLock<[String; 1]> = LazyLock::new(|| ["text".to_owned()]);
        self.text_fields.as_deref().unwrap_or(&*USUAL)
    }

    /// The field of the labels; empty where there are none.
    pub fn labels(&self) -> &str {
        self.label_field.as_deref().unwrap_or("labels")
    }

    /// Fields of one label each.
    pub fn indicators(&self) -> &[String] {
        self.label_fields.as_deref().unwrap_or(&[])
    }

    /// The field of ids.
    pub fn id(&self) -> &str {
        self.id_field.as_deref().unwrap_or("id")
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The empty text where nothing divides a string.
impl Serialize for LabelSeparator {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Self::Whole => "",
            Self::Text(text) => text,
        })
    }
}

impl<'de> Deserialize<'de> for LabelSeparator {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::of(&String::deserialize(from)?))
    }
}

/// 0 or 1.
impl Serialize for IndexBase {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(u8::from(*self == Self::One))
    }
}

impl<'de> Deserialize<'de> for IndexBase {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u8::deserialize(from)? {
            0 => Ok(Self::Zero),
            1 => Ok(Self::One),
            other => Err(serde::de::Error::custom(format_args!("{other} is no base of ids, expected 0 or 1"))),
        }
    }
}

/// A byte as a character.
mod as_char {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(byte: &Option<u8>, to: S) -> Result<S::Ok, S::Error> {
        byte.map(char::from).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
        let byte = |c| u8::try_from(c).map_err(|_| serde::de::Error::custom(format_args!("{c:?} is no byte")));
        Option::<char>::deserialize(from)?.map(byte).transpose()
    }
}
