//! A wide term beside a transformer: it reads all words where tokens are cut.

use crate::made::N_NAMES;
use crate::trained::{self, bytes, run, run_with_stops, with_bert, with_pipeline};
use serde_json::json;
use std::path::Path;
use xc_hash::text::{Featurizer, PipelineParts};
use xc_model::Model;
use xc_model::explain::ExplainOptions;
use xc_model::{Answer, Changes, QueryError, QueryOptions, Row, Rows, Scratch};
use xc_options::Training;
use xc_sparse::LabelRows;
use xc_sparse::rows::{OwnedRows, TokenRow, TokenRows};
use xc_train::fit::{Arrays, Context, FitErrorKind, Silent};

const NAMES: [&str; 8] = ["audio", "mail", "library", "reader", "client", "window", "server", "editor"];
/// Words that no tokenizer knows.
const RARE: [&str; 8] = ["alder", "birch", "cedar", "ebony", "hazel", "larch", "maple", "rowan"];

/// Texts of which a transformer reads the first words: these name one label, the last word another.
fn texts() -> (Vec<String>, LabelRows) {
    let text = |i: usize| format!("{0} of {0}s of {0} of {0}s, {1}", NAMES[i % 8], RARE[(i / 8) % 8]);
    let labels = (0..192).map(|i| vec![(i % 8) as u32, 8 + ((i / 8) % 8) as u32]);
    ((0..192).map(text).collect(), LabelRows::from_lists(labels, 16).unwrap())
}

fn training(kind: &str, from: &Path, model: &Path, more: &[(&str, &str)]) -> Training {
    let (texts, labels) = texts();
    let mut training = trained::training(kind, from, model, &[&[("epochs", "20")], more].concat());
    training.source = Arrays::new(OwnedRows::Texts(texts), labels).into();
    training
}

const WIDE: (&str, &str) = ("wide", "on");
const HARD: (&str, &str) = ("negatives.hard", "3");
const UNIFORM: (&str, &str) = ("negatives.uniform", "4");
const KINDS: [(&str, &[(&str, &str)]); 4] = [
    ("lns", &[]),
    ("dense", &[("network.precision", "bf16")]),
    ("uniform", &[("network.intermediate", "none"), ("head.fan-in", "8"), ("optimizer.rate", "0.02")]),
    ("astra", &[("index.exact-below", "1"), HARD, UNIFORM]),
];

/// Texts of which both labels are the best two answers.
fn n_right(model: &Model) -> usize {
    let (texts, labels) = texts();
    let views: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let answers = model.predict_batch(Rows::texts(&views), &QueryOptions::top(2)).unwrap().ranked;
    let is_right = |row: &usize| answers.row(*row).iter().all(|s| labels.row(*row).contains(&s.label));
    (0..texts.len()).filter(is_right).count()
}

#[test]
fn a_wide_term_beside_tokens_knows_words_behind_the_cut() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let (texts, _) = texts();
    for (kind, more) in KINDS {
        let more = [more, &[WIDE]].concat();
        run(&training(kind, &at("bert"), &at("one"), &more), 1, &Silent).unwrap_or_else(|e| panic!("{kind}: {e}"));
        run(&training(kind, &at("bert"), &at("other"), &more), 3, &Silent).unwrap();
        assert!(bytes(&at("one")) == bytes(&at("other")), "{kind}: one thread and three");
        let alone = training(kind, &at("bert"), &at("alone"), &more[..more.len() - 1]);
        run(&alone, 2, &Silent).unwrap();
        let (model, alone) = (Model::open(at("one")).unwrap(), Model::open(at("alone")).unwrap());
        let (with, without) = (n_right(&model), n_right(&alone));
        assert!(with == texts.len() && without < 60, "{kind}: {with} right with words, {without} without");

        // One by one, in a batch, and of tokens and words that somebody made.
        let options = QueryOptions::top(5);
        let views: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let answers = model.predict_batch(Rows::texts(&views), &options).unwrap().ranked;
        let made = model.features(Rows::texts(&views)).unwrap();
        let of_made = QueryOptions { made: true, ..options };
        assert_eq!(model.predict_batch(made.view(), &of_made).unwrap().ranked, answers, "{kind}");
        let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
        for (i, text) in texts.iter().enumerate().step_by(17) {
            model.predict(&Row::Text(text), &options, &mut scratch, &mut answer).unwrap();
            assert_eq!(answer.labels, answers.row(i), "{kind}: {text}");
            model.predict(&made.view().row(i), &of_made, &mut Scratch::default(), &mut answer).unwrap();
            assert_eq!(answer.labels, answers.row(i), "{kind}: {text}");
        }

        // Without the term it is the network that was trained alone, and makes no words.
        let changes = Changes { without_wide: true, ..Changes::default() };
        model.change(&changes).unwrap().save(at("changed")).unwrap();
        let changed = Model::open(at("changed")).unwrap();
        assert_eq!(changed.pipeline(), alone.pipeline(), "{kind}");
        let of = |model: &Model| model.predict_batch(Rows::texts(&views), &options).unwrap().ranked;
        assert_eq!(of(&changed), of(&alone), "{kind}");
        ["one", "other", "alone", "changed"].iter().for_each(|name| std::fs::remove_dir_all(at(name)).unwrap());
    }
}

#[test]
fn a_run_with_a_wide_term_that_was_stopped_ends_with_the_same_bytes() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let more = [WIDE, ("epochs", "4"), ("validation-fraction", "0.2"), ("text.ngrams", "2")];
    run(&training("lns", &at("bert"), &at("whole"), &more), 2, &Silent).unwrap();
    let mut stopped = training("lns", &at("bert"), &at("stopped"), &more);
    run_with_stops(&mut stopped, |stops| 8 + 2 * stops);
    assert!(bytes(&at("stopped")) == bytes(&at("whole")));
    // The text's own options count: other words are another training.
    let other = training("lns", &at("bert"), &at("other"), &more[..3]);
    run(&other, 2, &Silent).unwrap();
    let n_words = |name: &str| match Model::open(at(name)).unwrap().pipeline() {
        Some(Featurizer::Tokens(of)) => of.words().unwrap().n_features(),
        other => panic!("{other:?}"),
    };
    assert!(n_words("whole") > n_words("other"));
}

#[test]
fn nothing_is_learned_of_words_that_are_held_out() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let (mut texts, labels) = texts();
    texts.iter_mut().enumerate().for_each(|(i, text)| text.push_str(&format!(" own{i}")));
    let more = [WIDE, ("text.min-df", "1"), ("validation-fraction", "0.3"), ("epochs", "2")];
    let mut of = training("dense", &at("bert"), &at("model"), &more);
    of.source = Arrays::new(OwnedRows::Texts(texts.clone()), labels).into();
    run(&of, 2, &Silent).unwrap();
    let model = Model::open(at("model")).unwrap();
    let Some(Featurizer::Tokens(of)) = model.pipeline() else { panic!("a model of tokens") };
    let terms = of.words().unwrap();
    let n_own = (0..terms.n_features() as u32).filter(|&f| terms.term(f).unwrap().starts_with("own")).count();
    assert!((100..170).contains(&n_own), "{n_own} of 192 own words are known");
}

#[test]
fn texts_of_labels_have_words_too() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let (texts, labels) = texts();
    let of_labels: Vec<String> = NAMES.iter().chain(&RARE).map(|&name| name.to_owned()).collect();
    let arrays = Arrays::new(OwnedRows::Texts(texts), labels);
    let mut of = training("astra", &at("bert"), &at("model"), &[WIDE, HARD, UNIFORM]);
    of.source = Arrays { label_features: Some(OwnedRows::Texts(of_labels)), ..arrays }.into();
    let plan = of.explain(&Context::new(&Silent).with_threads(1)).unwrap();
    assert_eq!(plan.data["instances"], 208);
    run(&of, 2, &Silent).unwrap();
    assert!(n_right(&Model::open(at("model")).unwrap()) > 180);
}

#[test]
fn an_explanation_tells_tokens_and_words_apart() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    run(&training("lns", &at("bert"), &at("model"), &[WIDE]), 2, &Silent).unwrap();
    let model = Model::open(at("model")).unwrap();
    let (texts, _) = texts();
    let explained = model.explain(&Row::Text(&texts[0]), 8, &ExplainOptions::default()).unwrap();
    // Tokens are taken out; words stay, and are parts of the logit.
    assert_eq!(explained.effects.len(), 6);
    let wide = explained.wide.as_ref().unwrap();
    let strongest = wide.parts.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(model.term(strongest.0), Some("alder"));
    assert!((1.0 / (1.0 + (-wide.logit()).exp()) - explained.score).abs() < 1e-5, "{explained:?}");
    let report = explained.json(&model, 9);
    assert_eq!(report["wide"]["parts"][0]["term"], "alder", "{report}");
    // The same of tokens and words that somebody made.
    let made = model.features(Rows::texts(&[&*texts[0]])).unwrap();
    let options = ExplainOptions { made: true, ..ExplainOptions::default() };
    assert_eq!(model.explain(&made.view().row(0), 8, &options).unwrap(), explained);
}

#[test]
fn what_does_not_go_with_words_beside_tokens_is_said() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    run(&training("dense", &at("bert"), &at("model"), &[WIDE, ("epochs", "1")]), 1, &Silent).unwrap();
    let model = Model::open(at("model")).unwrap();
    let made = QueryOptions { made: true, ..QueryOptions::top(1) };
    let refused =
        |row: Row<'_>| model.predict(&row, &made, &mut Scratch::default(), &mut Answer::default()).unwrap_err();
    assert_eq!(refused(Row::tokens(&[2, 4, 3])), QueryError::NoWords);
    let mut alone = TokenRows::new(N_NAMES);
    alone.push(&[2, 4, 3]).unwrap();
    let said = model.predict_batch(Rows::Tokens(alone.view()), &made).unwrap_err();
    assert_eq!(said.source, QueryError::NoWords);
    let narrow = alone.with_words(xc_sparse::CsrMatrix::zero((1, 3))).unwrap();
    let said = model.predict_batch(Rows::Tokens(narrow.view()), &made).unwrap_err();
    assert!(matches!(said.source, QueryError::Width { got: 3, .. }), "{said}");
    let words = model.features(Rows::texts(&["audio"])).unwrap();
    let Row::Tokens(TokenRow { words: Some(words), .. }) = words.view().row(0) else { panic!("words") };
    let far = [9_999];
    let far = xc_sparse::SparseRow::try_new(&far, &words.values()[..1]).unwrap();
    let said = refused(Row::Tokens(TokenRow { ids: &[2, 3], words: Some(far) })).to_string();
    assert!(said.contains("9999"), "{said}");

    let of = |more: &[(&str, &str)]| {
        let said = run(&training("dense", &at("bert"), &at("no"), more), 1, &Silent).unwrap_err();
        assert!(said.kind() == FitErrorKind::Input && !at("no").exists(), "{said}");
        said.to_string()
    };
    assert!(of(&[WIDE, ("tfidf", "true")]).starts_with("--tfidf: "));
    let idle = of(&[("wide.labels", "3")]);
    assert_eq!(idle, "--wide.labels has no effect with --wide off: add --wide on, or leave it out");
    assert!(of(&[("text.ngrams", "2")]).starts_with("--text.ngrams 2: a transformer reads tokens"));
}

#[test]
fn folders_that_make_no_words_are_refused() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    run(&training("dense", &at("bert"), &at("model"), &[WIDE, ("epochs", "1")]), 1, &Silent).unwrap();
    let parts = Model::open(at("model")).unwrap().pipeline().unwrap().to_parts();
    let refused = |change: &dyn Fn(&mut PipelineParts), what: &str| {
        let mut parts = parts.clone();
        change(&mut parts);
        with_pipeline(&at("model"), &at("other"), Some(parts));
        let error = Model::open(at("other")).err().unwrap_or_else(|| panic!("opens; expected {what}"));
        std::fs::remove_dir_all(at("other")).unwrap();
        let cause = std::error::Error::source(&error).map_or_else(String::new, ToString::to_string);
        assert!(format!("{error}: {cause}").contains(what), "{error}: {cause}");
    };
    let later = |parts: &mut PipelineParts| (parts.config["version"], parts.config["more"]) = (json!(2), json!(1));
    refused(&later, "tokens and words of version 2; version 1 is expected");
    refused(&|parts| parts.config["version"] = json!(0), "tokens and words of version 0");
    refused(&|parts| parts.config["more"] = json!(1), "description of tokens and words");
    refused(&|parts| parts.config["tokens"]["version"] = json!(2), "tokens of version 2");
    refused(&|parts| parts.config["words"]["version"] = json!(9), "words beside tokens: pipeline version 9");
    refused(&|parts| parts.arrays.retain(|(name, _)| name != "words.idf"), "words beside tokens: array \"idf\"");
    refused(&|parts| parts.arrays.retain(|(name, _)| name != "tokenizer"), "0 arrays; version 1 and the array");
    // Tokens without words, and words of other texts.
    let config = parts.config["tokens"].clone();
    let alone = |parts: &mut PipelineParts| {
        parts.config = config.clone();
        parts.arrays.retain(|(name, _)| name == "tokenizer");
    };
    refused(&alone, "the pipeline makes none beside tokens");
    let of_more = training("dense", &at("bert"), &at("more"), &[WIDE, ("epochs", "1"), ("text.ngrams", "2")]);
    run(&of_more, 1, &Silent).unwrap();
    let more = Model::open(at("more")).unwrap().pipeline().unwrap().to_parts();
    refused(&|parts| *parts = more.clone(), "features of words, the pipeline makes");
    with_pipeline(&at("model"), &at("again"), Some(parts));
    assert!(Model::open(at("again")).is_ok());
}
