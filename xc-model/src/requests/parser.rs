//! Lines as requests.

use super::error::{RequestCode, RequestError};
use crate::InputKind;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use xc_data::{
    FEATURES_FIELD, FieldOf, FileForm, Format, InstanceBuffer, InstanceParser, LabelRef, Parts, ReadError,
    ReadErrorKind, ReadOptions, RowBuffer, join_text, json_error, labels_of_json, line_text, missing_field,
};

/// The content of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Text.
    Text(String),
    /// Sparse features, ascending.
    Features {
        /// Their ids.
        indices: Vec<u32>,
        /// Their values.
        values: Vec<f32>,
    },
    /// A vector.
    Vector(Vec<f32>),
}

/// One query and the options of its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The id that the answer repeats, as JSON.
    pub id: Option<String>,
    /// The query.
    pub asked: Asked,
    /// Largest number of labels in the answer.
    pub top_k: Option<usize>,
    /// The smallest score in the answer.
    pub min_score: Option<f32>,
    /// The labels to choose from.
    pub candidates: Option<Vec<LabelRef>>,
    /// Labels to leave out.
    pub exclude: Vec<LabelRef>,
}

impl Default for Asked {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Asked {
    fn features(row: RowBuffer) -> Self {
        let (indices, values) = row.into_features();
        Self::Features { indices, values }
    }
}

impl Request {
    /// Whether the answer depends only on the query.
    pub fn is_plain(&self) -> bool {
        self.top_k.is_none() && self.min_score.is_none() && self.candidates.is_none() && self.exclude.is_empty()
    }
}

/// Parses each line on its own: one that begins with `{` is a JSON request, any other only a query.
///
/// ```
/// use xc_data::ReadOptions;
/// use xc_model::InputKind;
/// use xc_model::requests::{Asked, Request, RequestParser};
///
/// let parser = RequestParser::new("stdin", InputKind::Text, &ReadOptions::default(), false)?;
/// let mut request = Request::default();
/// parser.parse(br#"{"id": 7, "text": "a dog", "top_k": 3}"#, &mut request)?;
/// assert_eq!((request.id.as_deref(), request.top_k), (Some("7"), Some(3)));
/// assert_eq!(request.asked, Asked::Text("a dog".into()));
/// parser.parse(b"a dog", &mut request)?;
/// assert_eq!((request.id, request.asked), (None, Asked::Text("a dog".into())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The specification is `docs/formats/requests.md`.
#[derive(Clone, Debug)]
pub struct RequestParser {
    /// Whether queries are texts, rather than features or vectors.
    is_text: bool,
    /// Whether fields that nothing reads are refused.
    strict: bool,
    /// Of plain lines.
    plain: InstanceParser,
    form: FileForm,
}

impl RequestParser {
    /// A parser of the lines of a stream, whose name is used in messages, for a model that takes this.
    /// [`FileForm::format`] states the format of plain lines; with jsonl there are none. `strict` refuses plain
    /// lines and fields that nothing reads.
    ///
    /// # Errors
    /// A format that is not read line by line, or has features although text is expected or the reverse;
    /// svmlight without a base.
    pub fn new(name: &str, takes: InputKind, options: &ReadOptions, strict: bool) -> Result<Self, ReadError> {
        let is_text = takes == InputKind::Text;
        // What a model was trained on tells rows apart that look alike.
        let usual = options.form.usual_format.filter(|_| !is_text);
        let usual = usual.filter(|format| matches!(format, Format::Xc | Format::Svmlight));
        let stated = if strict { Some(Format::Jsonl) } else { options.form.format.or(usual) };
        let format = stated.unwrap_or(if is_text { Format::FastText } else { Format::Xc });
        let plain = InstanceParser::new(name, format, &ReadOptions { parts: Parts::Queries, ..options.clone() })?;
        if plain.holds_text().is_some_and(|holds_text| holds_text != is_text) {
            let expected = if is_text { "text" } else { "features" };
            return Err(ReadError::file(name, ReadErrorKind::WrongFormat { format: format.name(), expected }));
        }
        Ok(Self { is_text, strict, plain, form: options.form.clone() })
    }

    /// Tells whether the first line of the stream is a header of XC text rather than a query.
    ///
    /// # Errors
    /// A header with a different number of features.
    pub fn header(&mut self, line: &[u8]) -> Result<bool, RequestError> {
        Ok(self.plain.header(line)?)
    }

    /// Reads a line into `into`. After an error `into` has the id, if it could be read; its other
    /// content is unspecified.
    ///
    /// # Errors
    /// A blank line, JSON that is malformed or not a request, a malformed row.
    pub fn parse(&self, line: &[u8], into: &mut Request) -> Result<(), RequestError> {
        *into = Request::default();
        // An object may stand anywhere in a body.
        let line = if self.strict { line.trim_ascii() } else { line };
        if line.trim_ascii().is_empty() {
            return Err(RequestError::blank());
        }
        if line.first() == Some(&b'{') {
            return self.json(line, into);
        }
        let mut instance = InstanceBuffer::default();
        if !self.plain.parse(line, &mut instance)? {
            return Err(RequestError::blank());
        }
        into.asked = if self.is_text { Asked::Text(instance.text.text) } else { Asked::features(instance.row) };
        Ok(())
    }

    fn json(&self, line: &[u8], into: &mut Request) -> Result<(), RequestError> {
        let text = line_text(line)?;
        let mut entries: Vec<(Cow<'_, str>, &RawValue)> = Vec::new();
        let mut json = serde_json::Deserializer::from_str(text);
        let outcome = Entries(&mut entries).deserialize(&mut json).and_then(|()| json.end());
        // Whatever is wrong with the others, the answer carries the id.
        let own = self.fields();
        let named = |name: &str| entries.iter().find(|(key, _)| key == name && !own.contains(&&**key));
        let id = named(self.form.id()).or_else(|| named("id"));
        into.id = id.map(|(_, value)| value.get().to_owned()).filter(|id| id != "null");
        outcome.map_err(|e| json_error(&e))?;
        for (at, (key, value)) in entries.iter().enumerate() {
            if entries[..at].iter().any(|(other, _)| other == key) && (own.contains(&&**key) || is_option(key)) {
                let problem = format!("the field {key:?} is given twice");
                return Err(Field { line: text, name: key, value }.here(RequestCode::RepeatedField, problem));
            }
        }
        for (key, value) in entries.iter().filter(|(key, _)| !own.contains(&&**key)) {
            let field = Field { line: text, name: key, value };
            if let Some(meant) = misspelt(key) {
                return Err(field.unknown(&format!("{meant:?} is meant?")));
            }
            if self.strict && !is_option(key) && **key != *self.form.id() {
                let known: Vec<String> = own.iter().chain(&OPTIONS).map(|name| format!("{name:?}")).collect();
                return Err(field.unknown(&format!("expected one of {}", known.join(", "))));
            }
        }
        let field = |name: &'static str| of_name(text, &entries, name);
        let option = |name: &'static str| field(name).filter(|_| !own.contains(&name));
        if let Some(field) = option("top_k") {
            let top_k: Option<u64> = field.read()?;
            if top_k == Some(0) {
                return Err(field.here(RequestCode::InvalidValue, "top_k: 0, expected at least 1".to_owned()));
            }
            into.top_k = top_k.map(|k| usize::try_from(k).unwrap_or(usize::MAX));
        }
        if let Some(field) = option("min_score") {
            into.min_score = field.read()?;
            if into.min_score.is_some_and(|score| !score.is_finite()) {
                let problem = "min_score: expected a number that f32 can hold".to_owned();
                return Err(field.here(RequestCode::InvalidValue, problem));
            }
        }
        if let Some(field) = option("candidates") {
            into.candidates = field.labels()?;
        }
        if let Some(field) = option("exclude") {
            into.exclude = field.labels()?.unwrap_or_default();
        }
        into.asked = if self.is_text { self.text(text, &entries)? } else { self.features(text, &entries)? };
        Ok(())
    }

    /// The field that a query stands in, if it is one alone.
    pub(super) fn field_of(&self, asked: &Asked) -> Option<&str> {
        match asked {
            Asked::Text(_) => None,
            Asked::Features { .. } => Some(FEATURES_FIELD),
            Asked::Vector(_) => Some(VECTOR),
        }
    }

    /// Fields that hold the query; an option of the same name is none.
    fn fields(&self) -> Vec<&str> {
        let text = self.form.texts();
        match self.is_text {
            true if text.iter().any(|field| field == TEXT) => text.iter().map(|f| &**f).collect(),
            true => text.iter().map(|field| &**field).chain([TEXT]).collect(),
            false => vec![FEATURES_FIELD, VECTOR],
        }
    }

    /// The fields that the model was trained on, or else `text`.
    fn text(&self, line: &str, entries: &[(Cow<'_, str>, &RawValue)]) -> Result<Asked, RequestError> {
        let mut parts = Vec::new();
        let trained = self.form.texts().iter().filter_map(|name| of_name(line, entries, name));
        let own: Vec<Field<'_>> = trained.filter(|field| !field.is_null()).collect();
        let other = of_name(line, entries, TEXT).filter(|_| own.is_empty());
        for field in own.iter().chain(&other) {
            parts.extend(field.read::<Cow<'_, str>>()?);
        }
        // Fields that are null are there, and their text is empty.
        if parts.is_empty() && !self.fields().into_iter().any(|name| of_name(line, entries, name).is_some()) {
            return Err(self.missing(line));
        }
        let mut joined = String::new();
        join_text(parts.iter().map(|part| &**part), &mut joined);
        Ok(Asked::Text(joined))
    }

    fn features(&self, line: &str, entries: &[(Cow<'_, str>, &RawValue)]) -> Result<Asked, RequestError> {
        let given = |name| of_name(line, entries, name).filter(|field| !field.is_null());
        match (given(FEATURES_FIELD), given(VECTOR)) {
            (Some(features), Some(vector)) => {
                let problem = format!("both {:?} and {VECTOR:?} are given", features.name);
                Err(vector.here(RequestCode::InvalidValue, problem))
            }
            (Some(field), None) => {
                let row = self.plain.features_of_json(field.value.get());
                Ok(Asked::features(row.map_err(|e| field.moved(e.into()))?))
            }
            (None, Some(field)) => {
                let values: Vec<f32> = field.read()?.unwrap_or_default();
                match values.iter().position(|v| !v.is_finite()) {
                    Some(at) => {
                        let problem = format!("value {at} of {VECTOR:?} is more than f32 can hold");
                        Err(field.here(RequestCode::InvalidValue, problem))
                    }
                    None => Ok(Asked::Vector(values)),
                }
            }
            (None, None) => Err(self.missing(line)),
        }
    }

    fn missing(&self, line: &str) -> RequestError {
        let what = if self.is_text { FieldOf::Text } else { FieldOf::Features };
        let error = missing_field(line.as_bytes(), what, &self.fields());
        RequestError { code: RequestCode::MissingField, ..error.into() }
    }
}

const TEXT: &str = "text";
const VECTOR: &str = "vector";
const OPTIONS: [&str; 5] = ["id", "top_k", "candidates", "exclude", "min_score"];

fn is_option(key: &str) -> bool {
    OPTIONS.contains(&key)
}

/// The option that a key differs from in capitals, dashes and underscores alone.
fn misspelt(key: &str) -> Option<&'static str> {
    let plain = |key: &str| -> String {
        key.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).map(|c| c.to_ascii_lowercase()).collect()
    };
    OPTIONS.into_iter().find(|option| *option != "id" && *option != key && plain(option) == plain(key))
}

/// A field of a request.
#[derive(Clone, Copy)]
struct Field<'a> {
    line: &'a str,
    name: &'a str,
    value: &'a RawValue,
}

/// The first field of this name.
fn of_name<'a>(line: &'a str, entries: &[(Cow<'_, str>, &'a RawValue)], name: &'a str) -> Option<Field<'a>> {
    let (_, value) = entries.iter().find(|(key, _)| key == name)?;
    Some(Field { line, name, value })
}

impl<'a> Field<'a> {
    fn is_null(&self) -> bool {
        self.value.get() == "null"
    }

    /// Its value; `None` for null.
    fn read<T: serde::Deserialize<'a>>(&self) -> Result<Option<T>, RequestError> {
        serde_json::from_str(self.value.get()).map_err(|e| self.named(&e))
    }

    /// Its labels; `None` for null.
    fn labels(&self) -> Result<Option<Vec<LabelRef>>, RequestError> {
        if self.is_null() {
            return Ok(None);
        }
        labels_of_json(self.value.get()).map(Some).map_err(|e| self.named(&e))
    }

    /// A problem of its value.
    fn here(&self, code: RequestCode, message: String) -> RequestError {
        let (field, column) = (Some(self.name.to_owned()), Some(self.place() + 1));
        RequestError { code, field, column, message }
    }

    fn unknown(&self, advice: &str) -> RequestError {
        self.here(RequestCode::UnknownField, format!("unknown field {:?}; {advice}", self.name))
    }

    /// What is wrong inside its value, with its name.
    fn named(&self, error: &serde_json::Error) -> RequestError {
        let error = RequestError::from(json_error(error));
        self.moved(RequestError { message: format!("{}: {}", self.name, error.message), ..error })
    }

    /// An error of its value as one of the line.
    fn moved(&self, error: RequestError) -> RequestError {
        let column = Some(error.column.unwrap_or(1) + self.place());
        RequestError { code: RequestCode::InvalidValue, field: Some(self.name.to_owned()), column, ..error }
    }

    /// Where the value stands in its line, from 0.
    fn place(&self) -> u64 {
        (self.value.get().as_ptr() as usize - self.line.as_ptr() as usize) as u64
    }
}

/// Reads the fields of an object, up to what is malformed.
struct Entries<'e, 'de>(&'e mut Vec<(Cow<'de, str>, &'de RawValue)>);

impl<'de> DeserializeSeed<'de> for Entries<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key()? {
            if self.0.len() == MAX_FIELDS {
                return Err(A::Error::custom(format_args!("more than {MAX_FIELDS} fields")));
            }
            self.0.push((key, map.next_value()?));
        }
        Ok(())
    }
}

/// Most fields of a request.
const MAX_FIELDS: usize = 1 << 10;

/// Borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use xc_data::IndexBase;

    fn parser(takes: InputKind, options: &ReadOptions) -> RequestParser {
        let options = ReadOptions { n_features: Some(10), ..options.clone() };
        RequestParser::new("test", takes, &options, false).unwrap()
    }

    fn read(parser: &RequestParser, line: &str) -> Result<Request, (Option<String>, String)> {
        let mut request = Request::default();
        match parser.parse(line.as_bytes(), &mut request) {
            Ok(()) => Ok(request),
            Err(e) => Err((request.id, e.to_string())),
        }
    }

    fn titles() -> ReadOptions {
        FileForm { text_fields: Some(vec!["title".into(), "body".into()]), ..FileForm::default() }.into()
    }

    #[test]
    fn a_request_has_the_fields_of_the_model_or_text_and_its_own_options() {
        let parser = parser(InputKind::Text, &titles());
        for (line, expected) in [
            (r#"{"title":"a","body":"b","text":"c"}"#, "a b"),
            (r#"{"body":"b"}"#, "b"),
            (r#"{"text":"c"}"#, "c"),
            (r#"{"text":"c","title":null,"other":{"x":[1]}}"#, "c"),
            (r#"{"title":"","body":"\u0062"}"#, "b"),
            ("plain words", "plain words"),
        ] {
            assert_eq!(read(&parser, line).unwrap().asked, Asked::Text(expected.into()), "{line}");
        }
        let line = r#"{"id":[1, "x"],"top_k":3,"min_score":-0.5,"candidates":[1,2],"exclude":["a"],"text":"c"}"#;
        let request = read(&parser, line).unwrap();
        let expected = Request {
            id: Some(r#"[1, "x"]"#.into()),
            asked: Asked::Text("c".into()),
            top_k: Some(3),
            min_score: Some(-0.5),
            candidates: Some(vec![LabelRef::Id(1), LabelRef::Id(2)]),
            exclude: vec![LabelRef::Name("a".into())],
        };
        assert_eq!(request, expected);
        assert!(!request.is_plain() && read(&parser, r#"{"id":1,"text":"c","top_k":null}"#).unwrap().is_plain());
    }

    #[test]
    fn an_id_is_in_the_field_that_is_named_or_in_id() {
        let mut options = titles();
        options.form.id_field = Some("sku".into());
        let parser = parser(InputKind::Text, &options);
        for (line, id) in [
            (r#"{"id":7,"text":"a"}"#, Some("7")),
            (r#"{"id":8,"sku":7,"text":"a"}"#, Some("7")),
            (r#"{"text":"a"}"#, None),
        ] {
            assert_eq!(read(&parser, line).unwrap().id.as_deref(), id, "{line}");
        }
    }

    #[test]
    fn an_error_names_the_field_and_its_place_and_leaves_the_id() {
        let parser = parser(InputKind::Text, &titles());
        let id = || Some("7".to_owned());
        for (line, id, expected) in [
            ("", None, "a blank line"),
            (" \t", None, "a blank line"),
            (r#"{"id":7,"title":5}"#, id(), "column 17: title: invalid type: integer `5`, expected"),
            (r#"{"title":5,"id":7}"#, id(), "column 10: title: invalid type"),
            (r#"{"id":7,"text":"a"#, id(), "column 17: incomplete JSON"),
            (r#"{"id":7,"text":"a"} x"#, id(), "column 21: malformed JSON: trailing characters"),
            (r#"{"id":7}"#, id(), r#"the object has none of the fields "title", "body", "text""#),
            (r#"{"text":"a","top_k":0}"#, None, "column 21: top_k: 0, expected at least 1"),
            (r#"{"text":"a","top_k":-1}"#, None, "top_k: invalid value: integer `-1`"),
            (r#"{"text":"a","topK":1}"#, None, r#"unknown field "topK"; "top_k" is meant?"#),
            (r#"{"text":"a","text":"b"}"#, None, r#"the field "text" is given twice"#),
            (r#"{"text":"a","min_score":1e39}"#, None, "min_score: "),
            (r#"{"text":"a","exclude":[1,"a"]}"#, None, "exclude: labels are ids and names in one list"),
            ("{bad json", None, "column 2: malformed JSON: key must be a string"),
        ] {
            let (got_id, got) = read(&parser, line).unwrap_err();
            assert!(got.contains(expected), "{line}: {got}");
            assert_eq!(got_id, id, "{line}");
        }
        let mut request = Request::default();
        assert!(parser.parse(b"\xff\xfe", &mut request).is_err());
        assert!(parser.parse(b"{\"text\":\"\xff\"}", &mut request).is_err());
    }

    #[test]
    fn features_come_as_rows_objects_or_vectors() {
        let mut parser = parser(InputKind::Sparse, &ReadOptions::default());
        let expected = Asked::Features { indices: vec![3, 7], values: vec![0.5, 1.0] };
        for line in ["3:0.5 7:1", "0,2 7:1 3:0.5", r#"{"features":{"7":1,"3":0.5}}"#, r#"{"features":[[3,0.5],[7,1]]}"#]
        {
            assert_eq!(read(&parser, line).unwrap().asked, expected, "{line}");
        }
        assert_eq!(read(&parser, r#"{"vector":[1,0.5]}"#).unwrap().asked, Asked::Vector(vec![1.0, 0.5]));
        for (line, expected) in [
            ("10:1", "column 1: feature 10 is out of range"),
            (r#"{"features":{"10":1}}"#, "column 13: feature 10 is out of range"),
            (r#"{"features":{"3":1},"vector":[]}"#, r#"both "features" and "vector" are given"#),
            (r#"{"vector":[1,1e40]}"#, "vector"),
            (r#"{"text":"a"}"#, r#"the object has none of the fields "features", "vector""#),
        ] {
            let (_, got) = read(&parser, line).unwrap_err();
            assert!(got.contains(expected), "{line}: {got}");
        }
        assert!(!parser.clone().header(b"3:0.5").unwrap() && !parser.clone().header(b"0,2").unwrap());
        assert!(parser.clone().header(b"4 11 9").is_err());
        assert!(parser.header(b"4 10 9").unwrap());
    }

    #[test]
    fn a_stated_format_says_what_plain_lines_are() {
        let options = ReadOptions::from;
        assert!(
            read(&parser(InputKind::Text, &options(Format::Jsonl)), "words").unwrap_err().1.contains("a JSON object")
        );
        let rows = FileForm { svmlight_base: Some(IndexBase::One), ..Format::Svmlight.into() }.into();
        let rows = parser(InputKind::Sparse, &rows);
        assert_eq!(read(&rows, "0 3:1").unwrap().asked, Asked::Features { indices: vec![2], values: vec![1.0] });
        assert!(read(&rows, "# no row").unwrap_err().1.contains("a blank line"));
        for (takes, format) in
            [(InputKind::Text, Format::Xc), (InputKind::Sparse, Format::FastText), (InputKind::Text, Format::Npz)]
        {
            assert!(RequestParser::new("test", takes, &options(format), false).is_err(), "{format:?}");
        }
    }
}
