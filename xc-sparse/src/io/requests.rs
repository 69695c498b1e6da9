//! Queries of a stream, one per line: JSON requests, or plain lines of text or features.
//!
//! ```
//! use xc_sparse::io::{Asked, PlainLines, ReadOptions, Request, RequestParser};
//!
//! let parser = RequestParser::new("stdin", PlainLines::Text, &ReadOptions::default())?;
//! let mut request = Request::default();
//! parser.parse(br#"{"id": 7, "text": "a dog", "top_k": 3}"#, &mut request).unwrap();
//! assert_eq!((request.id.as_deref(), request.top_k), (Some("7"), Some(3)));
//! assert_eq!(request.asked, Asked::Text("a dog".into()));
//! parser.parse(b"a dog", &mut request).unwrap();
//! assert_eq!((request.id, request.asked), (None, Asked::Text("a dog".into())));
//! # Ok::<(), xc_sparse::io::ReadError>(())
//! ```
//!
//! The specification is `docs/formats/requests.md`.

use super::entries::IdKind;
use super::error::{FieldOf, LineError, ReadError, ReadErrorKind, Snippet};
use super::fasttext::parse_fasttext_line;
use super::fields::{Fields, join_text};
use super::form::{Begun, Form};
use super::format::Format;
use super::instance::TextInstance;
use super::jsonl;
use super::label::LabelRef;
use super::options::ReadOptions;
use super::row::{Limits, RowBuffer};
use super::svmlight::{SvmlightForm, parse_svmlight_line};
use super::xc_text::{HeaderRule, XcHeader, parse_xc_columns_line, parse_xc_line};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The content of a line that is not a JSON request, unless its format is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainLines {
    /// Text.
    Text,
    /// A row of XC text.
    Features,
}

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

impl Request {
    /// Whether the answer depends only on the query.
    pub fn is_plain(&self) -> bool {
        self.top_k.is_none() && self.min_score.is_none() && self.candidates.is_none() && self.exclude.is_empty()
    }
}

/// Parses each line on its own: one that begins with `{` is a JSON request, any other only a query.
#[derive(Clone, Debug)]
pub struct RequestParser {
    plain: PlainLines,
    /// Of plain lines; `None`: they are refused.
    form: Option<Form>,
    limits: Limits,
    options: ReadOptions,
}

impl RequestParser {
    /// A parser of the lines of a stream, whose name is used in messages. [`ReadOptions::format`] states
    /// the format of plain lines; with jsonl there are none.
    ///
    /// # Errors
    /// A format that is not read line by line, or has features although text is expected or the reverse;
    /// svmlight without a base.
    pub fn new(name: &str, plain: PlainLines, options: &ReadOptions) -> Result<Self, ReadError> {
        // What a model was trained on tells rows apart that look alike.
        let usual = options.usual_format.filter(|_| plain == PlainLines::Features);
        let usual = usual.filter(|format| matches!(format, Format::Xc | Format::Svmlight));
        let format = options.format.or(usual).unwrap_or(match plain {
            PlainLines::Text => Format::FastText,
            PlainLines::Features => Format::Xc,
        });
        let limits = options.limits();
        let form = match format {
            Format::Jsonl => None,
            Format::Xc => Some(Form::Xc),
            Format::Csv | Format::Tsv => {
                let kind = ReadErrorKind::WrongFormat { format: format.name(), expected: "one query a line" };
                return Err(ReadError::file(name, kind));
            }
            format => Some(Begun::at(&[], name, format, IdKind::Feature, options)?.form),
        };
        let expected = match plain {
            PlainLines::Text => "text",
            PlainLines::Features => "features",
        };
        if form.is_some_and(|form| matches!(form, Form::FastText) != (plain == PlainLines::Text)) {
            return Err(ReadError::file(name, ReadErrorKind::WrongFormat { format: format.name(), expected }));
        }
        Ok(Self { plain, form, limits, options: options.clone() })
    }

    /// Tells whether the first line of the stream is a header of XC text rather than a query.
    ///
    /// # Errors
    /// A header with a different number of features.
    pub fn header(&mut self, line: &[u8]) -> Result<bool, LineError> {
        if !matches!(self.form, Some(Form::Xc)) {
            return Ok(false);
        }
        let Ok(Some(header)) = XcHeader::parse(line, HeaderRule::Detect) else { return Ok(false) };
        // Labels are not looked at.
        self.limits.features = header.limits(&Limits { labels: None, ..self.limits })?.features;
        if header.n_labels.is_none() {
            self.form = Some(Form::XcColumns(IdKind::Feature));
        }
        Ok(true)
    }

    /// Reads a line into `into`. After an error `into` has the id, if it could be read; its other
    /// content is unspecified.
    ///
    /// # Errors
    /// A blank line, JSON that is malformed or not a request, a malformed row.
    pub fn parse(&self, line: &[u8], into: &mut Request) -> Result<(), LineError> {
        *into = Request::default();
        if line.trim_ascii().is_empty() {
            return Err(LineError::whole(ReadErrorKind::Blank));
        }
        if line.first() == Some(&b'{') {
            return self.json(line, into);
        }
        let limits = &self.limits;
        let mut row = RowBuffer::default();
        match self.form {
            Some(Form::FastText) => {
                let mut text = TextInstance::default();
                parse_fasttext_line(line, self.options.label_strings, &mut text)?;
                into.asked = Asked::Text(text.text);
                return Ok(());
            }
            Some(Form::Xc) => parse_xc_line(line, limits, &mut row)?,
            Some(Form::XcColumns(_)) => parse_xc_columns_line(line, limits, &mut row)?,
            Some(Form::Svmlight(form)) => {
                let form = SvmlightForm { labels_first: false, ..form };
                if !parse_svmlight_line(line, form, limits, &mut row)? {
                    return Err(LineError::whole(ReadErrorKind::Blank));
                }
            }
            Some(Form::JsonlText | Form::JsonlFeatures | Form::Table { .. }) | None => {
                let kind = ReadErrorKind::Malformed { got: Snippet::new(line), expected: "a JSON object" };
                return Err(LineError::whole(kind));
            }
        }
        into.asked = self.row(row);
        Ok(())
    }

    fn row(&self, row: RowBuffer) -> Asked {
        self.options.count_unseen(row.store.unseen);
        let (indices, values) = row.into_features();
        Asked::Features { indices, values }
    }

    fn json(&self, line: &[u8], into: &mut Request) -> Result<(), LineError> {
        let text = jsonl::utf8(line)?;
        let mut entries: Vec<(Cow<'_, str>, &RawValue)> = Vec::new();
        let mut json = serde_json::Deserializer::from_str(text);
        let outcome = Entries(&mut entries).deserialize(&mut json).and_then(|()| json.end());
        // Whatever is wrong with the others, the answer carries the id.
        let own = self.fields();
        let named = |name: &str| entries.iter().find(|(key, _)| key == name && !own.contains(&&**key));
        let id = named(&self.options.fields.id).or_else(|| named("id"));
        into.id = id.map(|(_, value)| value.get().to_owned()).filter(|id| id != "null");
        outcome.map_err(|e| jsonl::json_error(&e))?;
        for (at, (key, value)) in entries.iter().enumerate() {
            if entries[..at].iter().any(|(other, _)| other == key) && (own.contains(&&**key) || is_option(key)) {
                return Err(here(text, value, format!("the field {key:?} is given twice")));
            }
        }
        let value = |name: &str| entries.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
        let option = |name: &'static str| value(name).filter(|_| !own.contains(&name));
        if let Some((key, meant, value)) = entries.iter().find_map(|(key, value)| Some((key, misspelt(key)?, value)))
            && !own.contains(&&**key)
        {
            return Err(here(text, value, format!("unknown field {key:?}; {meant:?} is meant?")));
        }
        if let Some(value) = option("top_k") {
            let top_k: Option<u64> = inside(text, value, "top_k")?;
            if top_k == Some(0) {
                return Err(here(text, value, "top_k: 0, expected at least 1".to_owned()));
            }
            into.top_k = top_k.map(|k| usize::try_from(k).unwrap_or(usize::MAX));
        }
        if let Some(value) = option("min_score") {
            into.min_score = inside(text, value, "min_score")?;
            if into.min_score.is_some_and(|score| !score.is_finite()) {
                return Err(here(text, value, "min_score: expected a number that f32 can hold".to_owned()));
            }
        }
        if let Some(value) = option("candidates") {
            into.candidates = labels(text, value, "candidates")?;
        }
        if let Some(value) = option("exclude") {
            into.exclude = labels(text, value, "exclude")?.unwrap_or_default();
        }
        into.asked = match self.plain {
            PlainLines::Text => self.text(text, value)?,
            PlainLines::Features => self.features(text, value)?,
        };
        Ok(())
    }

    /// Fields that hold the query; an option of the same name is none.
    fn fields(&self) -> Vec<&str> {
        let Fields { text, features, .. } = &self.options.fields;
        match self.plain {
            PlainLines::Text if text.iter().any(|field| field == TEXT) => text.iter().map(|f| &**f).collect(),
            PlainLines::Text => text.iter().map(|field| &**field).chain([TEXT]).collect(),
            PlainLines::Features => vec![features, VECTOR],
        }
    }

    /// The fields that the model was trained on, or else `text`.
    fn text<'a>(&self, line: &str, value: impl Fn(&str) -> Option<&'a RawValue>) -> Result<Asked, LineError> {
        let mut parts = Vec::new();
        let trained = self.options.fields.text.iter().map(|field| &**field);
        let own: Vec<&str> = trained.filter(|field| value(field).is_some_and(|v| v.get() != "null")).collect();
        for field in if own.is_empty() { &[TEXT][..] } else { &own } {
            let Some(part) = value(field) else { continue };
            parts.extend(inside::<Cow<'_, str>>(line, part, field)?);
        }
        // Fields that are null are there, and their text is empty.
        if parts.is_empty() && !self.fields().into_iter().any(|field| value(field).is_some()) {
            return Err(self.missing(line));
        }
        let mut joined = String::new();
        join_text(parts.iter().map(|part| &**part), &mut joined);
        Ok(Asked::Text(joined))
    }

    fn features<'a>(&self, line: &str, value: impl Fn(&str) -> Option<&'a RawValue>) -> Result<Asked, LineError> {
        let given = |name: &str| value(name).filter(|value| value.get() != "null");
        match (given(&self.options.fields.features), given(VECTOR)) {
            (Some(_), Some(vector)) => {
                Err(here(line, vector, format!("both {:?} and {VECTOR:?} are given", self.options.fields.features)))
            }
            (Some(value), None) => {
                let row = jsonl::parse_features(value.get(), &self.limits);
                Ok(self.row(row.map_err(|e| moved(line, value, e))?))
            }
            (None, Some(value)) => {
                let values: Vec<f32> = inside(line, value, VECTOR)?.unwrap_or_default();
                match values.iter().position(|v| !v.is_finite()) {
                    Some(at) => Err(here(line, value, format!("value {at} of {VECTOR:?} is more than f32 can hold"))),
                    None => Ok(Asked::Vector(values)),
                }
            }
            (None, None) => Err(self.missing(line)),
        }
    }

    fn missing(&self, line: &str) -> LineError {
        let what = if self.plain == PlainLines::Text { FieldOf::Text } else { FieldOf::Features };
        jsonl::missing(line.as_bytes(), what, &self.fields())
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

/// The value of a field; `None` for null.
fn inside<'a, T: serde::Deserialize<'a>>(line: &str, value: &'a RawValue, name: &str) -> Result<Option<T>, LineError> {
    serde_json::from_str(value.get()).map_err(|e| named(line, value, name, &e))
}

/// Labels of a field; `None` for null.
fn labels(line: &str, value: &RawValue, name: &str) -> Result<Option<Vec<LabelRef>>, LineError> {
    if value.get() == "null" {
        return Ok(None);
    }
    jsonl::parse_labels(value.get()).map(Some).map_err(|e| named(line, value, name, &e))
}

/// A problem of the value of a field.
fn here(line: &str, value: &RawValue, problem: String) -> LineError {
    LineError::at(place(line, value), ReadErrorKind::Json { problem: problem.into() })
}

/// What is wrong inside the value of a field that is named.
fn named(line: &str, value: &RawValue, name: &str, error: &serde_json::Error) -> LineError {
    let mut error = jsonl::json_error(error);
    if let ReadErrorKind::Json { problem } = &mut error.kind {
        *problem = format!("{name}: {problem}").into();
    }
    moved(line, value, error)
}

/// An error of a value as one of the line.
fn moved(line: &str, value: &RawValue, mut error: LineError) -> LineError {
    error.column = error.column.max(1) + place(line, value) as u64;
    error
}

/// Where a value stands in its line, from 0.
fn place(line: &str, value: &RawValue) -> usize {
    value.get().as_ptr() as usize - line.as_ptr() as usize
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

    fn parser(plain: PlainLines, options: &ReadOptions) -> RequestParser {
        let options = ReadOptions { n_features: Some(10), ..options.clone() };
        RequestParser::new("test", plain, &options).unwrap()
    }

    fn read(parser: &RequestParser, line: &str) -> Result<Request, (Option<String>, String)> {
        let mut request = Request::default();
        match parser.parse(line.as_bytes(), &mut request) {
            Ok(()) => Ok(request),
            Err(e) => Err((request.id, e.locate("in", 1).to_string())),
        }
    }

    fn titles() -> ReadOptions {
        let fields = Fields { text: vec!["title".into(), "body".into()], ..Fields::default() };
        ReadOptions { fields, ..ReadOptions::default() }
    }

    #[test]
    fn a_request_has_the_fields_of_the_model_or_text_and_its_own_options() {
        let parser = parser(PlainLines::Text, &titles());
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
        let options = titles();
        let options = ReadOptions { fields: Fields { id: "sku".into(), ..options.fields }, ..options };
        let parser = parser(PlainLines::Text, &options);
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
        let parser = parser(PlainLines::Text, &titles());
        let id = || Some("7".to_owned());
        for (line, id, expected) in [
            ("", None, "line 1: a blank line"),
            (" \t", None, "line 1: a blank line"),
            (r#"{"id":7,"title":5}"#, id(), "line 1, column 17: title: invalid type: integer `5`, expected"),
            (r#"{"title":5,"id":7}"#, id(), "line 1, column 10: title: invalid type"),
            (r#"{"id":7,"text":"a"#, id(), "line 1, column 17: incomplete JSON"),
            (r#"{"id":7,"text":"a"} x"#, id(), "line 1, column 21: malformed JSON: trailing characters"),
            (r#"{"id":7}"#, id(), r#"line 1: the object has none of the fields "title", "body", "text""#),
            (r#"{"text":"a","top_k":0}"#, None, "line 1, column 21: top_k: 0, expected at least 1"),
            (r#"{"text":"a","top_k":-1}"#, None, "top_k: invalid value: integer `-1`"),
            (r#"{"text":"a","topK":1}"#, None, r#"unknown field "topK"; "top_k" is meant?"#),
            (r#"{"text":"a","text":"b"}"#, None, r#"the field "text" is given twice"#),
            (r#"{"text":"a","min_score":1e39}"#, None, "min_score: "),
            (r#"{"text":"a","exclude":[1,"a"]}"#, None, "exclude: labels are ids and names in one list"),
            ("{bad json", None, "line 1, column 2: malformed JSON: key must be a string"),
        ] {
            let (got_id, got) = read(&parser, line).unwrap_err();
            assert!(got.starts_with("in: ") && got.contains(expected), "{line}: {got}");
            assert_eq!(got_id, id, "{line}");
        }
        let mut request = Request::default();
        assert!(parser.parse(b"\xff\xfe", &mut request).is_err());
        assert!(parser.parse(b"{\"text\":\"\xff\"}", &mut request).is_err());
    }

    #[test]
    fn features_come_as_rows_objects_or_vectors() {
        let mut parser = parser(PlainLines::Features, &ReadOptions::default());
        let expected = Asked::Features { indices: vec![3, 7], values: vec![0.5, 1.0] };
        for line in ["3:0.5 7:1", "0,2 7:1 3:0.5", r#"{"features":{"7":1,"3":0.5}}"#, r#"{"features":[[3,0.5],[7,1]]}"#]
        {
            assert_eq!(read(&parser, line).unwrap().asked, expected, "{line}");
        }
        assert_eq!(read(&parser, r#"{"vector":[1,0.5]}"#).unwrap().asked, Asked::Vector(vec![1.0, 0.5]));
        for (line, expected) in [
            ("10:1", "line 1, column 1: feature 10 is out of range"),
            (r#"{"features":{"10":1}}"#, "line 1, column 13: feature 10 is out of range"),
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
        let options = |format| ReadOptions { format: Some(format), ..ReadOptions::default() };
        assert!(
            read(&parser(PlainLines::Text, &options(Format::Jsonl)), "words").unwrap_err().1.contains("a JSON object")
        );
        let rows = ReadOptions { svmlight_base: Some(super::super::IndexBase::One), ..options(Format::Svmlight) };
        let rows = parser(PlainLines::Features, &rows);
        assert_eq!(read(&rows, "0 3:1").unwrap().asked, Asked::Features { indices: vec![2], values: vec![1.0] });
        assert!(read(&rows, "# no row").unwrap_err().1.contains("a blank line"));
        for (plain, format) in
            [(PlainLines::Text, Format::Xc), (PlainLines::Features, Format::FastText), (PlainLines::Text, Format::Npz)]
        {
            assert!(RequestParser::new("test", plain, &options(format)).is_err(), "{format:?}");
        }
    }
}
