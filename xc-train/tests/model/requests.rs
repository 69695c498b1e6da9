//! Requests: what they say is what the model is asked; what is wrong is said by field and code.

use crate::folders::{self, Front, N_FEATURES, N_LABELS};
use rayon::ThreadPoolBuilder;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;
use xc_data::{Format, IndexBase, LabelNames};
use xc_model::blend::RuleKind;
use xc_model::requests::{RequestCode, RequestOptions, Responder, Response};
use xc_model::{Answer, Candidates, Excluded, Model, QueryError, QueryOptions, Row, Scratch, SearchOptions};
use xc_sparse::LabelRows;

struct Models {
    folder: TempDir,
    texts: Arc<Model>,
    rows: Arc<Model>,
}

static MODELS: LazyLock<Models> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    folders::tree(&at("texts"), Front::Text, 3);
    folders::tree(&at("rows"), Front::Plain, 1);
    let [texts, rows] = ["texts", "rows"].map(|name| Arc::new(Model::open(at(name)).unwrap()));
    Models { folder, texts, rows }
});

/// A responder of texts in the fields `title` and `body`, or of rows.
fn responder(model: &Arc<Model>, strict: bool) -> Responder<Arc<Model>> {
    let mut options = RequestOptions { strict, ..RequestOptions::of(model) };
    options.read.form.text_fields = Some(vec!["title".into(), "body".into()]);
    options.read.unseen = None;
    Responder::new(Arc::clone(model), options).unwrap()
}

fn answer_one(responder: &Responder<Arc<Model>>, request: &str) -> Response {
    responder.answer(&[request.as_bytes()], &QueryOptions::default()).unwrap().remove(0)
}

fn many() -> Vec<String> {
    let request = |i: usize| match i % 4 {
        0 => format!("alpha{} beta{}", i % N_LABELS, i % 7),
        1 => json!({"id": i, "text": format!("alpha{}", i % N_LABELS), "top_k": i % 5 + 1}).to_string(),
        2 => json!({"id": i, "title": format!("gamma{}", i % 11), "exclude": [i % 3]}).to_string(),
        3 if i % 43 >= 40 => json!({"text": "alpha1", "top_k": 0}).to_string(),
        _ => json!({"text": "alpha1", "candidates": [format!("label {}", i % 43), "label 1"]}).to_string(),
    };
    (0..300).map(request).collect()
}

fn lines(of: &[String]) -> Vec<&[u8]> {
    of.iter().map(String::as_bytes).collect()
}

#[test]
fn a_request_is_what_the_model_is_asked() {
    let responder = responder(&MODELS.texts, false);
    let ask = |text: &str, options: &QueryOptions<'_>| {
        let mut answer = Answer::default();
        MODELS.texts.predict(&Row::Text(text), options, &mut Scratch::default(), &mut answer).unwrap();
        answer
    };
    let options = QueryOptions {
        top_k: 3,
        min_score: Some(0.01),
        candidates: Candidates::Labels(&[4, 17, 3, 8]),
        exclude: Excluded::Labels(&[8]),
        ..QueryOptions::default()
    };
    let request = r#"{"id": "a", "title": "alpha3", "body": "beta1", "top_k": 3, "min_score": 0.01,
        "candidates": ["label 4", "label 17", "label 3", "label 8"], "exclude": [8]}"#
        .replace('\n', " ");
    let response = answer_one(&responder, &request);
    assert_eq!(response.id.as_deref(), Some("\"a\""));
    assert_eq!(response.outcome, Ok(ask("alpha3 beta1", &options)));
    // What the request does not say, the options say; labels to leave out come from both.
    let common = QueryOptions { exclude: Excluded::Labels(&[3]), ..QueryOptions::top(2) };
    let all = [&br#"{"text": "alpha3", "exclude": [17]}"#[..], b"alpha3"];
    let [own, plain] = &responder.answer(&all, &common).unwrap()[..] else { panic!("two answers") };
    let both = QueryOptions { exclude: Excluded::Labels(&[3, 17]), ..common };
    assert_eq!((&own.outcome, &plain.outcome), (&Ok(ask("alpha3", &both)), &Ok(ask("alpha3", &common))));
    let mut written = Vec::new();
    own.push_json(responder.names().unwrap().map(LabelNames::names), &mut written);
    assert!(written.starts_with(b"{\"labels\":[") && written.ends_with(b"]}\n"));
}

#[test]
fn rows_and_vectors_are_what_a_model_of_features_takes() {
    let responder = responder(&MODELS.rows, false);
    let mut vector = vec![0.0; N_FEATURES];
    (vector[3], vector[41]) = (2.0, 1.0);
    let forms = [
        "3:2 41:1".to_owned(),
        json!({"features": {"41": 1, "3": 2}}).to_string(),
        json!({"vector": vector}).to_string(),
    ];
    let answers = forms.map(|form| answer_one(&responder, &form).outcome.unwrap());
    assert!(!answers[0].labels.is_empty() && answers[1] == answers[0] && answers[2] == answers[0]);
    let rule = RuleKind::Logistic;
    let at = |name: &str| MODELS.folder.path().join(name);
    folders::dense(&at("dense"), Front::Plain, xc_nn::Loss::Bce);
    folders::blend(&at("blend"), &[&at("rows"), &at("dense")], rule);
    let blend = Model::open(at("blend")).unwrap();
    let responder = Responder::new(&blend, RequestOptions::of(&blend)).unwrap();
    let responses = responder.answer(&[b"3:2 41:1", b"{\"features\":{\"3\":1,\"1000\":1}}"], &QueryOptions::top(4));
    assert!(responses.unwrap().iter().all(|response| response.outcome.as_ref().unwrap().labels.len() == 4));
}

#[test]
fn requests_are_answered_alike_alone_together_and_by_four_threads() {
    let (model, many) = (&MODELS.texts, many());
    let responder = responder(model, false);
    let alone: Vec<Response> = many.iter().map(|request| answer_one(&responder, request)).collect();
    assert!(alone.iter().any(|r| r.outcome.is_err()) && alone.iter().any(|r| r.outcome.is_ok()));
    let options = QueryOptions::default();
    let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    for size in [300, 100, 9, 8, 3] {
        let together = |part: &[String]| pool.install(|| responder.answer(&lines(part), &options)).unwrap();
        assert_eq!(many.chunks(size).flat_map(together).collect::<Vec<_>>(), alone, "{size} together");
    }
    // The same with lists of their own for every request.
    let of = |at: usize, n: u32| (0..n).map(|i| at as u32 % 25 + i).collect::<Vec<u32>>();
    let list = |n| LabelRows::from_lists((0..many.len()).map(|at| of(at, n)), N_LABELS).unwrap();
    let (candidates, excluded) = (list(12), list(2));
    let common = |first| QueryOptions {
        candidates: Candidates::ByQuery { rows: &candidates, first },
        exclude: Excluded::ByQuery { rows: &excluded, first },
        ..options
    };
    let one = |(at, request): (usize, &String)| responder.answer(&[request.as_bytes()], &common(at)).unwrap().remove(0);
    let expected: Vec<Response> = many.iter().enumerate().map(one).collect();
    assert_eq!(pool.install(|| responder.answer(&lines(&many), &common(0))).unwrap(), expected);
    let few = responder.answer(&lines(&many), &common(1)).unwrap_err();
    assert_eq!(few, QueryError::Lists { what: "candidates", got: 300, expected: 301 });

    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(responder.answer(&lines(&many), &options).unwrap(), alone);
                let mut scratch = Scratch::default();
                for (at, response) in alone.iter().enumerate().step_by(4) {
                    let (query, mut answer) = (Row::Text(&many[at]), Answer::default());
                    model.predict(&query, &options, &mut scratch, &mut answer).unwrap();
                    assert_eq!(Ok(&answer), response.outcome.as_ref());
                }
            });
        }
    });
}

#[test]
fn what_is_wrong_is_said_by_code_field_and_place() {
    use RequestCode as Code;
    let table = [
        (false, "", Code::Blank, None, "a blank line"),
        (false, "{\"text\":\"\u{1}\"}", Code::Malformed, None, "column 9: malformed JSON"),
        (false, r#"{"text":"a","topK":1}"#, Code::UnknownField, Some("topK"), "\"top_k\" is meant?"),
        (false, r#"{"text":"a","text":"b"}"#, Code::RepeatedField, Some("text"), "is given twice"),
        (false, r#"{"id":7}"#, Code::MissingField, None, "the object has none of the fields"),
        (false, r#"{"title":5}"#, Code::InvalidValue, Some("title"), "column 10: title: invalid type"),
        (false, r#"{"text":"a","top_k":0}"#, Code::InvalidValue, Some("top_k"), "expected at least 1"),
        (true, "alpha3", Code::Malformed, None, "expected a JSON object"),
        (true, "\"charged twice\"", Code::Malformed, None, "expected a JSON object"),
        (
            true,
            r#"{"text":"a","limit":1}"#,
            Code::UnknownField,
            Some("limit"),
            "column 21: unknown field \"limit\"; expected one of \"title\", \"body\", \"text\", \"id\", \"top_k\"",
        ),
        (true, r#"{"text":"a","features":{}}"#, Code::UnknownField, Some("features"), "unknown field"),
    ];
    for (strict, request, code, field, message) in table {
        let error = answer_one(&responder(&MODELS.texts, strict), request).outcome.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (code, field), "{request}: {error}");
        assert!(error.to_string().contains(message), "{request}: {error}");
        assert!(!code.name().is_empty());
    }
    // Labels that the model lacks are left out.
    for (request, warning) in [
        (r#"{"text":"a","exclude":[40]}"#, "exclude: label 40 is not in the model"),
        (r#"{"text":"a","candidates":["dog"]}"#, "candidates: label name \"dog\" is not among"),
    ] {
        let response = answer_one(&responder(&MODELS.texts, true), request);
        assert!(response.outcome.is_ok(), "{request}");
        assert!(
            response.warnings[0].starts_with(warning) && response.warnings[0].ends_with("; it is left out"),
            "{request}"
        );
    }
    let rows = responder(&MODELS.rows, true);
    for (request, field) in [
        (r#"{"vector":[1]}"#, "vector"),
        (r#"{"features":{"90":1}}"#, "features"),
        (r#"{"features":{},"vector":[]}"#, "vector"),
    ] {
        let error = answer_one(&rows, request).outcome.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidValue, Some(field)), "{request}: {error}");
    }
    // What is wrong with the options of all is no request's error.
    let options = QueryOptions { search: SearchOptions { beam: Some(0), ..Default::default() }, ..Default::default() };
    assert_eq!(rows.answer(&[b"{\"features\":{}}"], &options), Err(QueryError::Beam));
}

/// Answers to the seeds of the fuzz target, as they are expected: `requests.jsonl` has those of the lenient mode.
#[test]
fn strict_and_lenient_answer_the_seeds_of_the_fuzz_target_as_expected() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/requests");
    let expected = include_str!("requests.jsonl");
    let mut expected = expected.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    for name in ["features", "many_features", "many_texts", "svmlight", "text"] {
        let seed = std::fs::read(seeds.join(name)).unwrap();
        let (first, seed) = seed.split_first().unwrap();
        let model = if first & 1 == 0 { &MODELS.texts } else { &MODELS.rows };
        let mut options = RequestOptions::of(model);
        options.read.form.text_fields = Some(vec!["title".into(), "body".into()]);
        options.read.form.svmlight_base = Some(IndexBase::One);
        options.read.form.format = (name == "svmlight").then_some(Format::Svmlight);
        let strict = RequestOptions { strict: true, ..options.clone() };
        let strict = Responder::new(Arc::clone(model), strict).unwrap();
        let lenient = Responder::new(Arc::clone(model), options).unwrap();
        let names = lenient.names().unwrap().map(LabelNames::names);
        for line in seed.strip_suffix(b"\n").unwrap_or(seed).split(|&b| b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let shown = String::from_utf8_lossy(line);
            let response = lenient.answer(&[line], &QueryOptions::default()).unwrap().remove(0);
            let mut json = Vec::new();
            response.push_json(names, &mut json);
            // Messages name the file of the label names.
            let json = String::from_utf8(json).unwrap().replace(&model.folder().display().to_string(), "MODEL");
            let mut got: Value = serde_json::from_str(&json).unwrap();
            got.as_object_mut().unwrap().remove("scores");
            assert_eq!(Some(got), expected.next(), "{name}: {shown}");
            let same = strict.answer(&[line], &QueryOptions::default()).unwrap().remove(0);
            match &same.outcome {
                Err(error) if response.outcome.is_ok() => match error.code {
                    RequestCode::UnknownField => assert!(error.message.contains("expected one of")),
                    code => assert!(code == RequestCode::Malformed && !line.starts_with(b"{"), "{shown}"),
                },
                Err(_) if !line.starts_with(b"{") => {}
                Err(error) => assert!(same == response || error.code == RequestCode::UnknownField, "{shown}"),
                Ok(_) => assert_eq!(same, response, "{shown}"),
            }
        }
    }
    assert_eq!(expected.next(), None);
}
