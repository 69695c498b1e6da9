//! Networks over a transformer: trained from texts, saved, resumed, opened, asked; and what is refused.

use crate::made::{N_NAMES, of_words, write_folder};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use xc_buffer::Cancel;
use xc_hash::text::{PipelineParts, RowWeights, TermWeighting};
use xc_model::Model;
use xc_model::{Answer, PIPELINE_PREFIX, QueryError, QueryOptions, Row, Rows, Scratch, write_pipeline};
use xc_options::Training;
use xc_sparse::rows::{InputKind, OwnedRows, TokenRows};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_store::{ArrayRef, Container, ContainerWriter, OpenMode};
use xc_train::fit::{Arrays, Context, FitError, FitErrorKind, Report, Silent, Watch};

/// A folder with a small BERT in it.
pub(crate) fn with_bert() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bert")).unwrap();
    write_folder(&folder.path().join("bert"));
    folder
}

/// Texts whose words name their labels.
pub(crate) fn texts() -> (Vec<String>, LabelRows) {
    let words = ["audio", "mail", "library", "reader", "client", "window", "server", "editor"];
    let text = |i: usize| format!("{} of {}s", words[i % 8], words[(i / 3) % 8]);
    let labels = (0..160).map(|i| vec![(i % 8) as u32, 8 + ((i / 3) % 8) as u32]);
    ((0..160).map(text).collect(), LabelRows::from_lists(labels, 16).unwrap())
}

pub(crate) fn training(kind: &str, from: &Path, model: &Path, more: &[(&str, &str)]) -> Training {
    let (texts, labels) = texts();
    let mut training = Training::new(kind, Arrays::new(OwnedRows::Texts(texts), labels), model).unwrap();
    let from = from.display().to_string();
    let usual = [
        ("encoder", "transformer"),
        ("transformer.from", &*from),
        ("transformer.max-tokens", "6"),
        ("transformer.rate", "0.005"),
        ("transformer.dropout", "0.05"),
        ("network.input-dropout", "0.1"),
        ("epochs", "40"),
        ("batch", "16"),
        ("loss", "bce"),
    ];
    for (name, value) in usual.iter().chain(more) {
        training.set(name, value).unwrap();
    }
    training
}

pub(crate) fn run(training: &Training, threads: usize, observer: &dyn Watch) -> Result<Report, FitError> {
    training.run(&Context::new(observer).with_seed(3).with_threads(threads))
}

pub(crate) fn bytes(model: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(model).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

/// Every kind that stands above a transformer, with what it does beside it.
const KINDS: [(&str, &[(&str, &str)]); 6] = [
    ("lns", &[]),
    ("dense", &[("network.precision", "bf16"), ("network.widths", "24")]),
    ("uniform", &[("network.intermediate", "48"), ("head.fan-in", "12"), ("head.rewire-every", "9"), WIDER]),
    ("uniform", &[("network.intermediate", "none"), ("head.fan-in", "8"), WIDER]),
    ("astra", &[("index.exact-below", "1"), ("index.every", "7"), HARD, UNIFORM]),
    ("astra", &[("retrieval", "schedule"), ("retrieval.every", "2"), HARD, UNIFORM]),
];
const WIDER: (&str, &str) = ("optimizer.rate", "0.02");
const HARD: (&str, &str) = ("negatives.hard", "3");
const UNIFORM: (&str, &str) = ("negatives.uniform", "4");

#[test]
fn a_network_over_a_transformer_learns_is_saved_and_answers_texts() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let (texts, labels) = texts();
    for (kind, more) in KINDS {
        let one = training(kind, &at("bert"), &at("one"), more);
        run(&one, 1, &Silent).unwrap_or_else(|e| panic!("{kind}: {e}"));
        let other = training(kind, &at("bert"), &at("other"), more);
        run(&other, 3, &Silent).unwrap();
        assert!(bytes(&at("one")) == bytes(&at("other")), "{kind}: one thread and three");

        let model = Model::open(at("one")).unwrap();
        let about = model.describe();
        assert_eq!((about.takes, about.n_features, about.n_labels), (InputKind::Text, N_NAMES, 16));
        let options = QueryOptions::top(2);
        let views: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let answers = pool.install(|| model.predict_batch(Rows::texts(&views), &options)).unwrap();
        let mut hits = 0;
        for (i, text) in texts.iter().enumerate() {
            let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
            model.predict(&Row::Text(text), &options, &mut scratch, &mut answer).unwrap();
            assert_eq!(answer.labels, answers.ranked.row(i), "{kind}: {text}");
            hits += usize::from(labels.row(i).contains(&answer.labels[0].label));
        }
        assert!(hits >= 150, "{kind} {more:?}: {hits} of 160 right");
        // Tokens that somebody made have the same answers.
        let mut tokens = TokenRows::new(N_NAMES);
        tokens.push(&[2, 4, 13, 5, 12, 3]).unwrap();
        let made = QueryOptions { made: true, ..options };
        let of_tokens = model.predict_batch(Rows::Tokens(tokens.view()), &made).unwrap();
        let of_text = model.predict_batch(Rows::texts(&["audio of mails"]), &options).unwrap();
        assert_eq!(of_tokens.ranked, of_text.ranked);
        let refused = |row: Row<'_>, options: &QueryOptions<'_>| {
            model.predict(&row, options, &mut Scratch::default(), &mut Answer::default()).unwrap_err()
        };
        let too_many = QueryError::TooManyTokens { got: 25, most: 24 };
        assert_eq!(refused(Row::tokens(&[4; 25]), &made), too_many);
        let unknown = QueryError::Token { token: 14, position: 1, n_tokens: N_NAMES };
        assert_eq!(refused(Row::tokens(&[4, 14]), &made), unknown);
        let other = QueryError::Input { got: InputKind::Tokens, expected: InputKind::Text };
        assert_eq!(refused(Row::tokens(&[4]), &options), other);
        std::fs::remove_dir_all(at("one")).unwrap();
        std::fs::remove_dir_all(at("other")).unwrap();
    }
}

#[test]
fn a_prefix_is_as_if_it_stood_in_every_text() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let prefix = ("transformer.prefix", "library ");
    run(&training("dense", &at("bert"), &at("option"), &[prefix, ("epochs", "4")]), 1, &Silent).unwrap();
    let (texts, labels) = texts();
    let longer: Vec<String> = texts.iter().map(|text| format!("library {text}")).collect();
    let mut of_longer = training("dense", &at("bert"), &at("texts"), &[("epochs", "4")]);
    of_longer.source = Arrays::new(OwnedRows::Texts(longer.clone()), labels).into();
    run(&of_longer, 1, &Silent).unwrap();
    let answers = |model: &str, texts: &[String]| {
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        Model::open(at(model)).unwrap().predict_batch(Rows::texts(&texts), &QueryOptions::top(5)).unwrap().ranked
    };
    assert_eq!(answers("option", &texts), answers("texts", &longer));
    assert_ne!(answers("option", &texts), answers("texts", &texts));
}

/// Copies a model, with these parts as its pipeline.
pub(crate) fn with_pipeline(from: &Path, to: &Path, parts: Option<PipelineParts>) {
    let container = Container::open(from, OpenMode::Read).unwrap();
    let mut writer = ContainerWriter::create(to, container.kind()).unwrap();
    container.parameters().iter().for_each(|(name, value)| writer.set_parameter(name, value.clone()));
    for (name, entry) in container.arrays().filter(|(name, _)| !name.starts_with(PIPELINE_PREFIX)) {
        let bytes = container.bytes(name, entry.dtype, &entry.shape).unwrap();
        writer.add(name, ArrayRef { dtype: entry.dtype, shape: &entry.shape, bytes }).unwrap();
    }
    parts.into_iter().for_each(|parts| write_pipeline(&mut writer, parts).unwrap());
    writer.finish().unwrap();
}

#[test]
fn a_model_and_a_pipeline_that_do_not_belong_together_are_refused() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    run(&training("dense", &at("bert"), &at("tokens"), &[("epochs", "1")]), 1, &Silent).unwrap();
    let rows = OwnedRows::Sparse(CsrMatrix::zero((160, N_NAMES)));
    let mut of_features = Training::new("dense", Arrays::new(rows, texts().1), at("features")).unwrap();
    of_features.set("epochs", "1").unwrap();
    run(&of_features, 1, &Silent).unwrap();
    let tokens = Model::open(at("tokens")).unwrap().pipeline().unwrap().to_parts();
    let weights = RowWeights::fit(TermWeighting::default(), N_NAMES, &[0, 1], &[0], &[1.0]).unwrap().into_parts();
    for (model, parts, what) in [
        ("tokens", None, "takes tokens, its pipeline makes nothing: there is none"),
        ("tokens", Some(weights), "takes tokens, its pipeline makes sparse features"),
        ("features", Some(tokens), "takes sparse features, its pipeline makes tokens"),
    ] {
        with_pipeline(&at(model), &at("other"), parts);
        let said = Model::open(at("other")).err().unwrap().to_string();
        assert!(said.contains(what), "{said}");
        std::fs::remove_dir_all(at("other")).unwrap();
    }
    with_pipeline(&at("features"), &at("other"), None);
    assert!(Model::open(at("other")).is_ok());
}

/// Stops when it is asked for the nth time.
struct StopsAt(AtomicU32);

impl Cancel for StopsAt {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

impl Watch for StopsAt {}

/// Runs a training that is stopped again and again, after so many questions, and goes on at another number of threads.
pub(crate) fn run_with_stops(of: &mut Training, after: impl Fn(u32) -> u32) {
    let checkpoint = of.place.model.with_extension("checkpoint");
    let mut stops = 0;
    while let Err(error) = run(of, stops as usize % 3 + 1, &StopsAt(AtomicU32::new(after(stops)))) {
        assert_eq!(error.kind(), FitErrorKind::Cancelled, "{error}");
        of.place.resume = of.place.resume || checkpoint.exists();
        stops += 1;
        assert!(stops < 200, "{}", of.kind());
    }
    assert!(stops >= 2, "{}: stopped {stops} times", of.kind());
}

/// A training that was stopped does not go on over other weights.
pub(crate) fn check_other_weights(of: &mut Training, folder: &Path) {
    assert!(run(of, 2, &StopsAt(AtomicU32::new(40))).is_err());
    let place = folder.join("model.safetensors");
    let mut weights = std::fs::read(&place).unwrap();
    let last = weights.len() - 2;
    weights[last] ^= 0x10;
    std::fs::write(place, weights).unwrap();
    of.place.resume = true;
    let refused = run(of, 2, &Silent).unwrap_err().to_string();
    assert!(refused.contains("checkpoint"), "{refused}");
}

#[test]
fn texts_of_labels_go_through_the_same_transformer() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let (texts, labels) = texts();
    let words = ["audio", "mail", "library", "reader", "client", "window", "server", "editor"];
    // A label that no instance has, known by its text alone.
    let unseen = "editor editor editor";
    let of_labels: Vec<String> = (0..16).map(|label| words[label % 8].to_owned()).chain([unseen.to_owned()]).collect();
    let arrays = |of_labels: &[String]| {
        let arrays = Arrays::new(OwnedRows::Texts(texts.clone()), labels.clone().with_n_labels(17));
        Arrays { label_features: Some(OwnedRows::Texts(of_labels.to_vec())), ..arrays }
    };
    for sampler in ["weights", "label-text"] {
        let name = |threads: usize| at(&format!("{sampler}{threads}"));
        let more = [("sampler", sampler), HARD, UNIFORM, ("validation-fraction", "0.3"), ("keep", "last")];
        for threads in [1, 3] {
            let mut of = training("astra", &at("bert"), &name(threads), &more);
            of.source = arrays(&of_labels).into();
            let plan = of.explain(&Context::new(&Silent).with_threads(1)).unwrap();
            assert_eq!(plan.data["instances"], 177, "rows of labels are instances");
            run(&of, threads, &Silent).unwrap();
        }
        assert!(bytes(&name(1)) == bytes(&name(3)), "{sampler}: one thread and three");
        let model = Model::open(name(1)).unwrap();
        let of = |text: &str| {
            let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
            model.predict(&Row::Text(text), &QueryOptions::top(17), &mut scratch, &mut answer).unwrap();
            answer.labels.iter().position(|scored| scored.label == 16).unwrap()
        };
        let (own, other) = (of(unseen), of("audio of mails"));
        assert!(own < 3 && other > 3, "{sampler}: {own} of its text, {other} of another");
    }
    // Fewer texts than labels, features instead of texts, and texts that no label is compared by.
    let mut of = training("astra", &at("bert"), &at("model"), &[]);
    let mut refused = |source: Arrays| {
        of.source = source.into();
        let said = run(&of, 1, &Silent).unwrap_err();
        assert_eq!(said.kind(), FitErrorKind::Input, "{said}");
        said.to_string()
    };
    let said = refused(arrays(&of_labels[..16]));
    assert!(said.ends_with("16 rows; one for each of the 17 labels is expected"), "{said}");
    let rows = OwnedRows::Sparse(CsrMatrix::zero((17, N_NAMES)));
    let said = refused(Arrays { label_features: Some(rows), ..arrays(&of_labels) });
    assert!(said.contains("text is expected"), "{said}");
    let none = training("astra", &at("bert"), &at("model"), &[("sampler", "label-text")]);
    let said = run(&none, 1, &Silent).unwrap_err().to_string();
    assert!(said.starts_with("--sampler label-text: texts of the labels are expected"), "{said}");
}

#[test]
fn a_run_that_was_stopped_ends_with_the_same_bytes() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    for (kind, of_kind) in KINDS {
        let more = [("transformer.layer-decay", "0.8"), ("transformer.frozen-layers", "1"), ("epochs", "5")];
        let more = [of_kind, &more].concat();
        run(&training(kind, &at("bert"), &at("whole"), &more), 2, &Silent).unwrap();
        let expected = bytes(&at("whole"));
        // What frozen layers make of the texts stays in memory, and changes nothing.
        let more = [&more[..], &[("transformer.cache-states", "true")]].concat();
        let mut stopped = training(kind, &at("bert"), &at("stopped"), &more);
        run_with_stops(&mut stopped, |stops| 8 + stops / 10);
        assert!(bytes(&at("stopped")) == expected, "{kind} {of_kind:?}");
        std::fs::remove_dir_all(at("whole")).unwrap();
        std::fs::remove_dir_all(at("stopped")).unwrap();
    }
}

#[test]
fn a_run_of_other_weights_does_not_go_on() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    check_other_weights(&mut training("lns", &at("bert"), &at("stopped"), &[("epochs", "30")]), &at("bert"));
}

#[test]
fn what_does_not_go_with_a_transformer_is_said() {
    let folder = with_bert();
    let at = |name: &str| folder.path().join(name);
    let refused = |of: &Training| {
        let said = run(of, 1, &Silent).unwrap_err();
        assert_eq!(said.kind(), FitErrorKind::Input, "{said}");
        assert!(!said.to_string().contains('\n') && !at("model").exists(), "{said}");
        said.to_string()
    };
    let with = |more: &[(&str, &str)]| refused(&training("lns", &at("bert"), &at("model"), more));
    assert_eq!(with(&[("tfidf", "true")]), "--tfidf: a transformer reads tokens of texts, not features");
    assert!(with(&[("text.ngrams", "2")]).starts_with("--text.ngrams 2: a transformer reads tokens"));
    assert!(with(&[("network.init", "lsa")]).starts_with("--network.init: instances are tokens"));
    assert!(with(&[("transformer.max-tokens", "25")]).ends_with("bert has 24 positions"));
    assert!(with(&[("transformer.max-tokens", "2")]).contains("room for one of the text is expected"));
    let long = with(&[("transformer.prefix", "library of a mail")]);
    assert_eq!(long, "--transformer.prefix \"library of a mail\": it takes all of at most 6 tokens");
    assert!(with(&[("transformer.frozen-layers", "3")]).contains("frozen_layers is 3, expected at most the 2 layers"));
    let idle = "--transformer.cache-states has no effect here: add --transformer.frozen-layers, or leave it out";
    assert_eq!(with(&[("transformer.cache-states", "true")]), idle);
    assert!(with(&[("transformer.dropout", "1")]).contains("dropout is 1, expected 0 <= rate < 1"));
    assert!(with(&[("transformer.from", "nowhere")]).starts_with("nowhere: no such folder"));
    let (_, labels) = texts();
    let rows = Arrays::new(OwnedRows::Sparse(CsrMatrix::zero((160, 3))), labels);
    let mut of_rows = training("lns", &at("bert"), &at("model"), &[]);
    of_rows.source = rows.into();
    assert!(refused(&of_rows).contains("text is expected"), "{}", refused(&of_rows));
    let mut alone = Training::new("dense", of_rows.source.clone(), at("model")).unwrap();
    alone.set("encoder", "transformer").unwrap();
    assert_eq!(refused(&alone), "--encoder transformer: a folder is expected with it (--transformer.from)");
    let mut idle = Training::new("dense", of_rows.source.clone(), at("model")).unwrap();
    idle.set("transformer.rate", "0.1").unwrap();
    assert!(refused(&idle).ends_with("add --encoder transformer, or leave it out"));
    // A tokenizer of other weights.
    std::fs::write(at("bert/tokenizer.json"), of_words(&format!("{} more", crate::made::NAMES)).to_string()).unwrap();
    assert!(with(&[]).ends_with("the two do not belong together"));
}
