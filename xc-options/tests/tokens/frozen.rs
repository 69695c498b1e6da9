//! Models over vectors that a transformer makes as it comes: trained from texts, saved, opened, asked, explained; and
//! folders that make no vectors.

use crate::made::N_NAMES;
use crate::trained::{bytes, check_other_weights, run, run_with_stops, texts, with_bert, with_pipeline};
use serde_json::json;
use std::path::Path;
use xc_dense::DenseMatrix;
use xc_dense::MatmulPrecision;
use xc_hash::text::{Featurizer, PartArray, PipelineParts};
use xc_model::Model;
use xc_model::explain::ExplainOptions;
use xc_model::tokens::vectorise;
use xc_model::{Answer, Candidates, QueryError, QueryOptions, Row, Rows, Scratch, Texts};
use xc_options::Training;
use xc_sparse::rows::{InputKind, OwnedRows, TokenRows};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_train::fit::{Arrays, Embed, FitErrorKind, Silent};
use xc_train::network::Pretrained;

/// Kinds that learn from vectors, with what makes them small.
const KINDS: [(&str, &[(&str, &str)]); 5] = [
    ("dense", &[("network.precision", "bf16"), ("network.widths", "24")]),
    ("lns", &[]),
    ("uniform", &[("network.intermediate", "48"), ("head.fan-in", "12")]),
    ("astra", &[("index.exact-below", "1"), ("index.every", "7"), ("negatives.hard", "3"), ("negatives.uniform", "4")]),
    ("mach", &[("repetitions", "3"), ("buckets", "8")]),
];

fn training(kind: &str, source: Arrays, model: &Path, more: &[(&str, &str)]) -> Training {
    let mut training = Training::new(kind, source, model).unwrap();
    for (name, value) in [("epochs", "6"), ("batch", "16"), ("loss", "bce")].iter().chain(more) {
        training.set(name, value).unwrap();
    }
    training
}

fn frozen(kind: &str, from: &Path, model: &Path, more: &[(&str, &str)]) -> Training {
    let (texts, labels) = texts();
    let from = from.display().to_string();
    let of_transformer = [("encoder", "frozen"), ("transformer.from", &*from), ("transformer.max-tokens", "6")];
    training(kind, Arrays::new(OwnedRows::Texts(texts), labels), model, &[&of_transformer, more].concat())
}

/// The vectors of texts.
fn vectors(from: &Path, precision: MatmulPrecision, texts: &[String]) -> DenseMatrix {
    let pretrained = Pretrained { from: from.to_owned(), max_tokens: 6, prefix: None };
    let of = Embed { pretrained, precision, normalise: false };
    of.open().unwrap().of(Texts::Strings(texts)).unwrap().0
}

#[test]
fn a_model_over_frozen_vectors_is_one_of_these_vectors_and_answers_texts() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let (texts, labels) = texts();
    let views: Vec<&str> = texts.iter().map(|text| &**text).collect();
    for (kind, more) in KINDS {
        for threads in [1, 3] {
            let model = at(&format!("{kind}{threads}"));
            run(&frozen(kind, &at("bert"), &model, more), threads, &Silent).unwrap_or_else(|e| panic!("{kind}: {e}"));
        }
        assert!(bytes(&at(&format!("{kind}1"))) == bytes(&at(&format!("{kind}3"))), "{kind}: one thread and three");
        // That of the kind where none is chosen.
        let is_bf16 = kind == "uniform" || more.contains(&("network.precision", "bf16"));
        let precision = if is_bf16 { MatmulPrecision::Bf16 } else { MatmulPrecision::F32 };
        let made = vectors(&at("bert"), precision, &texts);
        let of_vectors = Arrays::new(OwnedRows::Dense(made.clone()), labels.clone());
        run(&training(kind, of_vectors, &at("vectors"), more), 2, &Silent).unwrap();

        let (model, of_vectors) = (Model::open(at(&format!("{kind}1"))).unwrap(), Model::open(at("vectors")).unwrap());
        let about = model.describe();
        assert_eq!((about.takes, about.n_features, about.n_labels), (InputKind::Text, 16, 16));
        let options = QueryOptions::top(4);
        let answers = model.predict_batch(Rows::texts(&views), &options).unwrap().ranked;
        assert_eq!(answers, of_vectors.predict_batch(Rows::Dense(made.view()), &options).unwrap().ranked, "{kind}");
        assert_eq!(model.features(Rows::texts(&views)).unwrap(), OwnedRows::Dense(made.clone()), "{kind}");
        for (i, text) in texts.iter().enumerate() {
            let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
            model.predict(&Row::Text(text), &options, &mut scratch, &mut answer).unwrap();
            assert_eq!(answer.labels, answers.row(i), "{kind}: {text}");
        }
        // Vectors that somebody made have the same answers, and others than texts none.
        let made = Row::Dense(made.view().row(7));
        let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
        model.predict(&made, &QueryOptions { made: true, ..options }, &mut scratch, &mut answer).unwrap();
        assert_eq!(answer.labels, answers.row(7), "{kind}");
        let refused = model.predict(&made, &options, &mut scratch, &mut answer).unwrap_err();
        assert_eq!(refused, QueryError::Input { got: InputKind::Dense, expected: InputKind::Text });
        std::fs::remove_dir_all(at("vectors")).unwrap();
    }
}

#[test]
fn an_explanation_takes_the_tokens_out_one_by_one() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    for (kind, more) in [KINDS[0], KINDS[4]] {
        run(&frozen(kind, &at("bert"), &at(kind), more), 2, &Silent).unwrap();
        let model = Model::open(at(kind)).unwrap();
        let Some(Featurizer::Vectors(of)) = model.pipeline() else { panic!("{kind}: a model of vectors") };
        let (text, label) = ("audio of mails", 9);
        let mut ids = Vec::new();
        of.tokens().append(text, &mut ids).unwrap();
        assert_eq!(ids.len(), 6);
        let score = |ids: &[u32]| {
            let mut tokens = TokenRows::new(N_NAMES);
            tokens.push(ids).unwrap();
            let made = vectorise(&**of, tokens.view()).unwrap();
            let asked = QueryOptions { made: true, candidates: Candidates::Labels(&[label]), ..QueryOptions::top(1) };
            model.predict_batch(Rows::Dense(made.view()), &asked).unwrap().ranked.row(0)[0].score
        };
        let explained = model.explain(&Row::Text(text), label, &ExplainOptions::default()).unwrap();
        assert_eq!((explained.score, explained.effects.len()), (score(&ids), ids.len()), "{kind}");
        for (at, &id) in ids.iter().enumerate() {
            let without: Vec<u32> = (0..).zip(&ids).filter(|(other, _)| *other != at).map(|(_, &id)| id).collect();
            let effect = explained.effects.iter().find(|effect| effect.feature.number == Some(id)).unwrap();
            assert_eq!(effect.feature.term, of.tokens().token(id), "{kind}");
            assert_eq!(effect.score, score(&ids) - score(&without), "{kind}: token {at}");
        }
    }
}

#[test]
fn texts_of_labels_have_vectors_too() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    // A label that no instance has, known by the vector of its text alone.
    let (texts, labels) = texts();
    let unseen = "editor editor editor".to_owned();
    let of_labels: Vec<String> = texts[..16].iter().cloned().chain([unseen.clone()]).collect();
    let mut training = frozen("astra", &at("bert"), &at("astra"), &[KINDS[3].1, &[("epochs", "60")]].concat());
    let arrays = Arrays::new(OwnedRows::Texts(texts.clone()), labels.with_n_labels(17));
    training.source = Arrays { label_features: Some(OwnedRows::Texts(of_labels)), ..arrays }.into();
    run(&training, 2, &Silent).unwrap();
    let model = Model::open(at("astra")).unwrap();
    let asked = [&*unseen, "audio of mails"];
    let answers = model.predict_batch(Rows::texts(&asked), &QueryOptions::top(17)).unwrap().ranked;
    let place = |row: usize| answers.row(row).iter().position(|scored| scored.label == 16).unwrap();
    assert!(place(0) + 4 < place(1), "{} of its text, {} of another", place(0), place(1));
}

#[test]
fn a_run_that_was_stopped_ends_with_the_same_bytes_and_not_over_other_weights() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    for (kind, more) in [KINDS[1], KINDS[4]] {
        run(&frozen(kind, &at("bert"), &at("whole"), more), 2, &Silent).unwrap();
        run_with_stops(&mut frozen(kind, &at("bert"), &at("stopped"), more), |stops| 8 + stops);
        assert!(bytes(&at("stopped")) == bytes(&at("whole")), "{kind}");
        std::fs::remove_dir_all(at("whole")).unwrap();
        std::fs::remove_dir_all(at("stopped")).unwrap();
    }
    check_other_weights(&mut frozen("lns", &at("bert"), &at("stopped"), &[("epochs", "30")]), &at("bert"));
}

#[test]
fn folders_that_make_no_vectors_are_refused() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    run(&frozen("dense", &at("bert"), &at("model"), &[("epochs", "1")]), 1, &Silent).unwrap();
    let parts = Model::open(at("model")).unwrap().pipeline().unwrap().to_parts();
    let refused = |change: &dyn Fn(&mut PipelineParts), what: &str| {
        let mut parts = parts.clone();
        change(&mut parts);
        with_pipeline(&at("model"), &at("other"), Some(parts));
        let said = Model::open(at("other")).err().unwrap_or_else(|| panic!("opens; expected {what}")).to_string();
        std::fs::remove_dir_all(at("other")).unwrap();
        assert!(said.contains(what), "{said}");
    };
    const WORDS: &str = "transformer.words";
    let set = |parts: &mut PipelineParts, values: PartArray| {
        parts.arrays.retain(|(name, _)| name != WORDS);
        parts.arrays.push((WORDS.to_owned(), values));
    };
    let n = N_NAMES * 16;
    refused(&|parts| parts.config["version"] = json!(2), "vectors of version 2; version 1 is expected");
    let later = |parts: &mut PipelineParts| (parts.config["version"], parts.config["more"]) = (json!(2), json!(1));
    refused(&later, "vectors of version 2; version 1 is expected");
    refused(&|parts| parts.config["version"] = json!(0), "vectors of version 0; version 1 is expected");
    refused(&|parts| parts.config["tokens"]["version"] = json!(2), "tokens of version 2, and 1 arrays");
    refused(&|parts| parts.config["precision"] = json!("f8"), "description of vectors");
    refused(&|parts| parts.config["more"] = json!(1), "description of vectors");
    refused(&|parts| parts.config["tokens"]["max_tokens"] = json!(2), "room for one of the text is expected");
    refused(&|parts| parts.config["tokens"]["max_tokens"] = json!(25), "25 tokens at most; the transformer takes 24");
    refused(&|parts| parts.config["tokens"]["n_tokens"] = json!(15), "15 tokens of a vocabulary of that size");
    refused(&|parts| parts.config["transformer"]["heads"] = json!(3), "transformer of texts");
    refused(
        &|parts| parts.config["transformer"]["layers"] = json!(1 << 20),
        "\"transformer.layer1048576\" of the transf",
    );
    refused(
        &|parts| parts.config["transformer"]["width"] = json!(1 << 20),
        "224 numbers; 14680064 numbers of type F32",
    );
    refused(
        &|parts| parts.config["transformer"]["layers"] = json!(1),
        "belongs to no part of the transformer of texts",
    );
    refused(&|parts| parts.arrays.retain(|(name, _)| name != WORDS), "missing; 224 numbers of type F32 are expected");
    refused(&|parts| set(parts, PartArray::U32(vec![1; n])), "of another type; 224 numbers");
    refused(&|parts| set(parts, PartArray::F32(vec![0.5; n + 1])), "225 numbers; 224 numbers");
    refused(
        &|parts| set(parts, PartArray::F32([vec![0.5; n - 1], vec![f32::NAN]].concat())),
        "value 223 is not finite",
    );
    refused(&|parts| parts.arrays.retain(|(name, _)| name != "tokenizer"), "0 arrays; version 1 and the array");
    // A network of other vectors.
    let rows = Arrays::new(OwnedRows::Dense(DenseMatrix::new(160, 5, vec![1.0; 800])), texts().1);
    run(&training("dense", rows, &at("five"), &[("epochs", "1")]), 1, &Silent).unwrap();
    with_pipeline(&at("five"), &at("other"), Some(parts.clone()));
    let said = Model::open(at("other")).err().unwrap().to_string();
    assert!(said.contains("makes 16 features, the model takes 5"), "{said}");
    with_pipeline(&at("model"), &at("again"), Some(parts));
    assert!(Model::open(at("again")).is_ok());
}

#[test]
fn what_does_not_go_with_frozen_vectors_is_said() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let refused = |of: &Training| {
        let said = run(of, 1, &Silent).err().unwrap_or_else(|| panic!("{:?}", of.choices));
        assert_eq!(said.kind(), FitErrorKind::Input, "{said}");
        assert!(!said.to_string().contains('\n') && !at("model").exists(), "{said}");
        said.to_string()
    };
    for kind in ["lns", "mach"] {
        let with = |more: &[(&str, &str)]| refused(&frozen(kind, &at("bert"), &at("model"), more));
        assert_eq!(with(&[("tfidf", "true")]), "--tfidf: a transformer reads tokens of texts, not features");
        assert!(with(&[("normalise", "true")]).starts_with("--normalise true: a transformer reads tokens"), "{kind}");
        assert!(with(&[("network.init", "lsa")]).starts_with("--network.init: instances are vectors"), "{kind}");
        assert!(with(&[("transformer.max-tokens", "25")]).ends_with("bert has 24 positions"), "{kind}");
        let (_, labels) = texts();
        for rows in [
            OwnedRows::Sparse(CsrMatrix::zero((160, 3))),
            OwnedRows::Dense(DenseMatrix::new(160, 1, [1.0; 160].to_vec())),
        ] {
            let is_dense = matches!(rows, OwnedRows::Dense(_));
            let mut of_rows = frozen(kind, &at("bert"), &at("model"), &[]);
            of_rows.source = Arrays::new(rows, LabelRows::clone(&labels)).into();
            let expected = if is_dense { "--encoder frozen: instances are no texts" } else { "text is expected" };
            assert!(refused(&of_rows).contains(expected), "{kind}: {}", refused(&of_rows));
        }
        let mut alone = frozen(kind, &at("bert"), &at("model"), &[]);
        alone.choices.remove("transformer.from");
        assert_eq!(refused(&alone), "--encoder frozen: a folder is expected with it (--transformer.from)");
    }
    assert!(refused(&frozen("lns", &at("bert"), &at("model"), &[("wide", "on")])).starts_with("--wide on: "));
    let rate = refused(&frozen("lns", &at("bert"), &at("model"), &[("transformer.rate", "0.1")]));
    assert_eq!(
        rate,
        "--transformer.rate has no effect with --encoder frozen: add --encoder transformer, or leave it out"
    );
    let mut mach = frozen("mach", &at("bert"), &at("model"), &[]);
    let said = mach.set("encoder", "transformer").unwrap_err().to_string();
    assert!(said.contains("features") && said.contains("frozen"), "{said}");
    assert!(mach.set("transformer.rate", "0.1").is_err());
}
