//! A model is the same, byte for byte, from arrays and from files; no pool of the whole process is made.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use xc_buffer::{Cancel, Part};
use xc_data::{ReadOptions, read_dataset, write_npy};
use xc_dense::DenseMatrix;
use xc_metrics::Metric;
use xc_model::Model;
use xc_model::blend::RuleKind;
use xc_options::data::NamesFile;
use xc_options::data::{Files, HeldOut, Source};
use xc_options::settings::Setting;
use xc_options::{Training, tuning::Tuning};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_store::{Container, OpenMode};
use xc_train::blend::FitParams;
use xc_train::calibrate::CalibrateParams;
use xc_train::fit::{Arrays, Context, FitErrorKind, OwnedRows, Place, Report, SharedTexts, Silent, Watch};

mod examples;
mod kinds;

/// Text in which the words of an instance name its labels.
fn texts() -> (Vec<String>, LabelRows) {
    let words = ["audio", "mail", "library", "reader", "client", "window", "server", "editor"];
    let text = |i: usize| format!("{} {} {}", words[i % 8], words[(i / 3) % 8], words[(i * 5 + 1) % 8]);
    let labels = (0..240).map(|i| vec![(i % 8) as u32, 8 + ((i / 3) % 8) as u32]);
    ((0..240).map(text).collect(), LabelRows::from_lists(labels, 16).unwrap())
}

fn rows() -> (CsrMatrix, LabelRows) {
    let (texts, labels) = texts();
    let options = ReadOptions::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.txt");
    std::fs::write(&path, xc_file(&texts, &labels)).unwrap();
    // Outside of a pool the rows would be read in that of the process.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let read = pool.install(|| read_dataset(&path, &options)).unwrap();
    (read.features, read.labels)
}

/// The texts as rows of word counts, in XC format.
fn xc_file(texts: &[String], labels: &LabelRows) -> String {
    let mut ids = BTreeMap::new();
    texts.iter().flat_map(|text| text.split(' ')).for_each(|word| {
        let next = ids.len();
        ids.entry(word.to_owned()).or_insert(next);
    });
    let mut out = format!("{} {} {}\n", texts.len(), ids.len(), labels.n_labels());
    for (text, list) in texts.iter().zip(labels.iter()) {
        let mut counts = BTreeMap::new();
        text.split(' ').for_each(|word| *counts.entry(ids[word]).or_insert(0.25) += 0.5);
        let list: Vec<String> = list.iter().map(u32::to_string).collect();
        let row: Vec<String> = counts.iter().map(|(id, count)| format!("{id}:{count}")).collect();
        out += &format!("{} {}\n", list.join(","), row.join(" "));
    }
    out
}

fn jsonl_file(texts: &[String], labels: &LabelRows) -> String {
    let line = |(text, list): (&String, &[u32])| {
        let names: Vec<String> = list.iter().map(|label| format!("\"l{label:02}\"")).collect();
        format!("{{\"text\": {text:?}, \"labels\": [{}]}}\n", names.join(", "))
    };
    texts.iter().zip(labels.iter()).map(line).collect()
}

const KINDS: [(&str, &[(&str, &str)]); 8] = [
    ("tree", &[("cluster.max-leaf", "4"), ("trees", "2")]),
    ("mach", &[("buckets", "8"), ("repetitions", "2"), ("epochs", "2")]),
    ("dense", &[("epochs", "2"), ("network.widths", "16")]),
    ("uniform", &[("epochs", "2"), ("network.widths", "16"), ("network.intermediate", "32"), ("head.fan-in", "4")]),
    ("lns", &[("epochs", "2"), ("network.widths", "16")]),
    ("astra", &[("epochs", "2"), ("network.widths", "16"), ("negatives.hard", "2")]),
    ("dense", &[("epochs", "2"), ("network.widths", "16"), ("wide", "off")]),
    (
        "uniform",
        &[
            ("epochs", "2"),
            ("network.widths", "16"),
            ("network.intermediate", "32"),
            ("head.fan-in", "4"),
            ("wide.precision", "bf16"),
        ],
    ),
];

/// Trains and gives the bytes of each file of the model; what the config says of the form of the input is left out.
fn trained(kind: &str, source: Source, settings: &[(&str, &str)], folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let model = folder.join("model");
    let mut training = Training::new(kind, source, &model).unwrap();
    for (name, value) in settings {
        training.set(name, value).unwrap();
    }
    training.place = Place { restart: true, ..Place::new(&model) };
    training.run(&Context::new(&Silent).with_seed(3).with_threads(2)).unwrap_or_else(|e| panic!("{kind}: {e}"));
    files_of(&model, kind)
}

/// The bytes of each file of a model, as [`trained`] gives them.
fn files_of(model: &Path, kind: &str) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(model).unwrap().map(|entry| entry.unwrap());
    files
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            let bytes = std::fs::read(file.path()).unwrap();
            if name != "config.json" {
                return (name, bytes);
            }
            let mut config: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            let parameters = config["parameters"].as_object_mut().unwrap();
            assert!(parameters.remove("input").is_some(), "{kind}: {parameters:?}");
            // The hash of the whole config.
            config.as_object_mut().unwrap().remove("xxh3");
            (name, serde_json::to_vec(&config).unwrap())
        })
        .collect()
}

fn same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>, what: &str) {
    assert!(a.keys().eq(b.keys()), "{what}: {:?} {:?}", a.keys(), b.keys());
    for (name, bytes) in a {
        assert!(*bytes == b[name], "{what}: {name}");
    }
}

#[test]
fn arrays_give_the_model_of_files_for_every_kind_and_no_global_pool_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (texts, labels) = texts();
    let of_rows = folder.path().join("rows.txt");
    std::fs::write(&of_rows, xc_file(&texts, &labels)).unwrap();
    let of_texts = folder.path().join("texts.jsonl");
    std::fs::write(&of_texts, jsonl_file(&texts, &labels)).unwrap();
    let names: Vec<String> = (0..16).map(|label| format!("l{label:02}")).collect();
    let of_names = folder.path().join("names.txt");
    std::fs::write(&of_names, names.join("\n")).unwrap();
    for (kind, settings) in KINDS {
        let held_out: Vec<_> = settings.iter().copied().chain([("validation-fraction", "0.2")]).collect();
        let from_file = trained(kind, (&*of_rows).into(), &held_out, folder.path());
        let from_arrays = trained(kind, rows().into(), &held_out, folder.path());
        same(&from_file, &from_arrays, &format!("{kind}, rows"));

        let names = names.clone();
        let arrays = Arrays::new(OwnedRows::Texts(texts.clone()), labels.clone()).with_names(names);
        let names = NamesFile { path: Some(of_names.clone()), ..NamesFile::default() };
        let files = Files { train: of_texts.clone(), names, ..Files::default() };
        let from_file = trained(kind, files.into(), settings, folder.path());
        let from_arrays = trained(kind, arrays.into(), settings, folder.path());
        same(&from_file, &from_arrays, &format!("{kind}, texts"));
    }
    let (rows, labels) = rows();
    let dense = |row: usize| {
        let mut values = vec![0.0; rows.cols()];
        rows.view().row(row).iter().for_each(|(id, value)| values[id as usize] = value);
        values
    };
    let values: Vec<f32> = (0..rows.rows()).flat_map(dense).collect();
    let vectors = DenseMatrix::new(rows.rows(), rows.cols(), values);
    let as_file = folder.path().join("vectors.npy");
    write_npy(&mut std::fs::File::create(&as_file).unwrap(), vectors.rows, vectors.columns, &vectors.values).unwrap();
    for (kind, settings) in [KINDS[0], KINDS[3], KINDS[4]] {
        let files = Files { train: as_file.clone(), train_labels: Some(of_rows.clone()), ..Files::default() };
        let settings: Vec<_> = settings.iter().copied().filter(|(name, _)| *name != "network.widths").collect();
        let from_file = trained(kind, files.into(), &settings, folder.path());
        let from_arrays = trained(kind, (vectors.clone(), labels.clone()).into(), &settings, folder.path());
        same(&from_file, &from_arrays, &format!("{kind}, vectors"));
    }
    let words =
        Arrays::new(OwnedRows::Texts(texts.clone()), LabelRows::from_lists(vec![vec![]; texts.len()], 0).unwrap());
    let of_words = folder.path().join("words.txt");
    std::fs::write(&of_words, texts.join("\n")).unwrap();
    let settings = [("epochs", "1"), ("network.widths", "8")];
    let model = folder.path().join("words");
    let train = |source: Source| {
        let mut training = Training::new("skipgram", source, &model).unwrap();
        settings.iter().for_each(|(name, value)| training.set(name, value).unwrap());
        training.run(&Context::new(&Silent).with_threads(2)).unwrap();
        std::fs::read(folder.path().join("words.vectors.txt")).unwrap()
    };
    assert!(train((&*of_words).into()) == train(words.into()), "skipgram");
    what_follows_is_the_same(folder.path(), &of_rows);
    // Had anything asked for the pool of the process, it would be there.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
}

/// Blends, calibrated models and searches over rows in memory are those over a file.
fn what_follows_is_the_same(folder: &Path, file: &Path) {
    let context = Context::new(&Silent).with_threads(2);
    let mut members = Vec::new();
    for (kind, settings) in [KINDS[0], KINDS[2]] {
        let place = folder.join(format!("member-{kind}"));
        let mut training = Training::new(kind, file, &place).unwrap();
        settings.iter().for_each(|(name, value)| training.set(name, value).unwrap());
        training.set("validation-fraction", "0.4").unwrap();
        training.run(&context).unwrap();
        members.push(place);
    }
    let open = |path: &std::path::PathBuf| Model::open(path).unwrap();
    let sources: [Source; 2] = [file.into(), rows().into()];
    let done = sources.map(|source| {
        let held_out = HeldOut { leave_out_seen: true, ..HeldOut::new(source.clone()) };
        let blend = folder.join("blend");
        let params = FitParams { rule: Some(RuleKind::Logistic), ..FitParams::default() };
        let models = || members.iter().map(open).collect::<Vec<Model>>();
        let blended = xc_options::data::blend(models(), None, &held_out, &params, &blend, &context).unwrap();
        let calibrated = folder.join("calibrated");
        let params = CalibrateParams::default();
        let curve = xc_options::data::calibrate(&models()[0], &held_out, &params, &calibrated, &context).unwrap();
        assert!(blended.left_out > 100 && blended.instances == curve.instances);
        let search = folder.join("search");
        let _ = std::fs::remove_dir_all(&search);
        let mut training = Training::new("tree", source, &search).unwrap();
        training.set("trees", "1").unwrap();
        let tuning = Tuning { trials: Some(3), ..Tuning::new(training) };
        let found = tuning.run(&context).unwrap();
        assert!(search.join("best.toml").exists() && !search.join("trial").exists());
        let best = tuning.best(&found).unwrap().run(&context).unwrap();
        let bytes = |folder: &Path| std::fs::read(folder.join("model.safetensors")).unwrap();
        (bytes(&blend), bytes(&calibrated), found.changes, found.values.map(f64::to_bits), bytes(&best.model))
    });
    assert!(done[0] == done[1], "{:?} {:?}", done[0].2, done[1].2);
}

/// One that learned from a row for each label, such as a tree over names, knows nothing of how frequent these are.
#[test]
fn label_counts_of_a_blend_are_those_of_the_member_that_learned_from_most_rows() {
    let (folder, context) = (tempfile::tempdir().unwrap(), Context::new(&Silent).with_threads(2));
    let (texts, labels) = texts();
    // No two rows are the same.
    let texts: Vec<String> = texts.iter().enumerate().map(|(row, text)| format!("{text} number{row}")).collect();
    let first = |n: usize| {
        let all: Vec<u32> = (0..n as u32).collect();
        (texts[..n].to_vec(), labels.select(&all))
    };
    for (name, n) in [("few", 20), ("many", 120)] {
        let mut training = Training::new("tree", first(n), folder.path().join(name)).unwrap();
        training.set("text.min-df", "1").unwrap();
        training.run(&context).unwrap();
    }
    let counts = |names: [&str; 2]| {
        let members = names.map(|name| Model::open(folder.path().join(name)).unwrap());
        let held_out = HeldOut { leave_out_seen: true, ..HeldOut::new((texts.clone(), labels.clone())) };
        let (blend, params) =
            (folder.path().join(names.concat()), FitParams { rule: Some(RuleKind::Logistic), ..FitParams::default() });
        let done = xc_options::data::blend(members.into(), None, &held_out, &params, &blend, &context).unwrap();
        let container = Container::open(&blend, OpenMode::Read).unwrap();
        let of_members = done.fitted.members.iter().map(|of| of.value(Metric::Precision(1)).unwrap()).collect();
        let files = ["config.json", "model.safetensors"].map(|name| std::fs::read(blend.join(name)).unwrap());
        (container.array::<u32>("label_counts").unwrap().to_vec(), files, of_members)
    };
    let (expected, files, mut of_members): (_, _, Vec<f64>) = counts(["many", "few"]);
    let turned = counts(["few", "many"]);
    assert_eq!((&expected, &files), (&turned.0, &turned.1), "one blend, in whichever order its members are named");
    of_members.reverse();
    assert_eq!(of_members, turned.2, "figures of members are in the order in which they were named");
    assert!(of_members[0] != of_members[1]);
    assert_eq!(expected.iter().sum::<u32>(), 240, "two labels for each of 120 rows");
}

#[test]
fn every_setting_of_every_kind_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let of_words = folder.path().join("text.txt");
    std::fs::write(&of_words, "one two three two one\n".repeat(9)).unwrap();
    for kind in xc_options::KINDS {
        let source = if kind == "skipgram" { of_words.as_path().into() } else { Source::from(rows()) };
        let training = Training::new(kind, source, folder.path().join("m")).unwrap();
        let plan = training.explain(&Context::new(&Silent)).unwrap();
        // What makes vectors is said where a transformer does.
        let is_said =
            |row: &&Setting| row.name != "encoder" && row.belongs_to.is_none_or(|(other, _)| other != "encoder");
        for row in xc_options::tables(kind).iter().flat_map(|table| table.rows).filter(is_said) {
            let (value, _) =
                plan.resolved.get(row.name).unwrap_or_else(|| panic!("{kind}: --{} is not there", row.name));
            let is_one = row.names().is_none_or(|names| names.contains(&value));
            assert!(is_one || value == "none" || value == row.none, "{kind}: --{} {value}", row.name);
        }
    }
}

/// Stops a run once a part of its checkpoint is saved.
#[derive(Default)]
struct UntilSaved(Mutex<PathBuf>);

impl Cancel for UntilSaved {
    fn cancelled(&self) -> bool {
        entries(&self.0.lock().unwrap()).iter().any(|part| part.join("config.json").exists())
    }
}

impl Watch for UntilSaved {
    fn resumable(&self, checkpoint: &Path) {
        checkpoint.clone_into(&mut self.0.lock().unwrap());
    }
}

/// Stops a run once its checkpoint has begun, and has the key of that.
#[derive(Default)]
struct UntilBegun {
    checkpoint: Mutex<PathBuf>,
    key: OnceLock<String>,
}

impl Cancel for UntilBegun {
    fn cancelled(&self) -> bool {
        let Ok(marker) = std::fs::read(self.checkpoint.lock().unwrap().join("config.json")) else { return false };
        let marker: Value = serde_json::from_slice(&marker).unwrap();
        self.key.get_or_init(|| marker["parameters"]["checkpoint"]["key"].as_str().unwrap().to_owned());
        true
    }
}

impl Watch for UntilBegun {
    fn resumable(&self, checkpoint: &Path) {
        checkpoint.clone_into(&mut self.checkpoint.lock().unwrap());
    }

    fn resumable_search(&self, trials: &Path) {
        self.resumable(trials);
    }
}

/// A checkpoint of an earlier version goes on where its training gives the same bytes: what is hashed, settings by their names in
/// files, data by their bytes, is a stored form, and changes only with the version in the key.
#[test]
fn keys_of_checkpoints_are_those_of_stored_ones() {
    let keys = [
        "0ac04c345d8150d4",
        "6eedc9c8a33a6549",
        "b1935492fe628450",
        "b994a99ab58ad5da",
        "00065934e96e4375",
        "40fc5dacb15c3ff9",
        "b1935492fe628450",
        "4e1a2cc40b529766",
        "d6a2658db2108f45",
        "f4f4ed047c6b6077",
    ];
    let folder = tempfile::tempdir().unwrap();
    let of = |kind: &str, settings: &[(&str, &str)], name: &str| {
        let mut training = Training::new(kind, rows(), folder.path().join(name)).unwrap();
        settings.iter().for_each(|(name, value)| training.set(name, value).unwrap());
        training
    };
    let key = |run: &dyn Fn(&Context<'_>) -> Option<FitErrorKind>, what: &str| {
        let stop = UntilBegun::default();
        let context = Context::new(&stop).with_seed(3).with_threads(2);
        assert_eq!(run(&context), Some(FitErrorKind::Cancelled), "{what}");
        stop.key.into_inner().unwrap()
    };
    let mut got = Vec::new();
    for (at, (kind, settings)) in KINDS.into_iter().enumerate() {
        let every = (kind != "tree").then_some(("checkpoint-every", "1"));
        let settings: Vec<_> = settings.iter().copied().chain([("validation-fraction", "0.2")]).chain(every).collect();
        let training = of(kind, &settings, &format!("m{at}"));
        got.push(key(&|context| training.run(context).err().map(|e| e.kind()), kind));
    }
    let mut part = of("tree", &[("trees", "2")], "part");
    part.place.part = Some(Part::new(1, 3).unwrap());
    got.push(key(&|context| part.run(context).err().map(|e| e.kind()), "part"));
    let search = Tuning { trials: Some(2), ..Tuning::new(of("tree", &[("trees", "1")], "search")) };
    got.push(key(&|context| search.run(context).err().map(|e| e.kind()), "search"));
    assert_eq!(got, keys);
}

/// What is in a folder, in the order in which a finished run removes it: parts, what they belong to, the lock.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten();
    let mut all: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    all.sort_by_key(|path| (path.is_file(), path.ends_with(".xc-lock"), path.clone()));
    all
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in entries(from) {
        let to = to.join(entry.file_name().unwrap());
        if entry.is_dir() { copy(&entry, &to) } else { std::fs::copy(&entry, &to).map(drop).unwrap() }
    }
}

/// Leaves a checkpoint beside the model that is there, as runs leave it that were killed after they had removed more
/// and more of it, and hands each to `resume`.
fn with_what_kills_leave(training: &Training, mut resume: impl FnMut(&str)) {
    let (checkpoint, mut training) = (training.place.checkpoint(), training.clone());
    training.place.restart = true;
    let stop = UntilSaved::default();
    let stopped = training.run(&Context::new(&stop).with_seed(3).with_threads(2)).unwrap_err();
    assert_eq!(stopped.kind(), FitErrorKind::Cancelled, "{}", training.kind());
    let whole = checkpoint.with_extension("whole");
    std::fs::rename(&checkpoint, &whole).unwrap();
    for removed in 0..=entries(&whole).len() {
        copy(&whole, &checkpoint);
        for entry in &entries(&checkpoint)[..removed] {
            if entry.is_dir() { std::fs::remove_dir_all(entry) } else { std::fs::remove_file(entry) }.unwrap();
        }
        let what = format!("{}, {removed} removed", training.kind());
        resume(&what);
        assert!(!checkpoint.exists(), "{what}");
    }
    std::fs::remove_dir_all(whole).unwrap();
}

#[test]
fn a_run_that_was_killed_while_it_removed_its_checkpoint_ends_when_it_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let read =
        |model: &Path| -> Vec<Vec<u8>> { entries(model).iter().map(|file| std::fs::read(file).unwrap()).collect() };
    let context = Context::new(&Silent).with_seed(3).with_threads(2);
    for (at, (kind, settings)) in KINDS.into_iter().enumerate() {
        let mut training = Training::new(kind, rows(), folder.path().join(format!("m{at}"))).unwrap();
        let every = (kind != "tree").then_some(("checkpoint-every", "1"));
        for (name, value) in settings.iter().copied().chain([("validation-fraction", "0.2")]).chain(every) {
            training.set(name, value).unwrap();
        }
        training.refit = (at % 2 == 0).then(|| folder.path().join(format!("r{at}")));
        let model = training.run(&context).unwrap().model;
        let expected = read(&model);
        with_what_kills_leave(&training, |what| {
            let mut resumed = training.clone();
            resumed.place.resume = true;
            assert!(read(&resumed.run(&context).unwrap().model) == expected, "{what}");
            assert!(!folder.path().join(format!("r{at}.checkpoint")).exists(), "{what}");
        });
    }
    // The final model of a search.
    let mut training = Training::new("tree", rows(), folder.path().join("search")).unwrap();
    training.set("trees", "1").unwrap();
    let search = |resume: bool| {
        let mut training = training.clone();
        training.place.resume = resume;
        let tuning = Tuning { trials: Some(2), ..Tuning::new(training) };
        let best = tuning.best(&tuning.run(&context).unwrap()).unwrap();
        best.run(&context).unwrap();
        best
    };
    let best = search(false);
    let expected = read(&best.place.model);
    with_what_kills_leave(&best, |what| {
        search(true);
        assert!(read(&best.place.model) == expected, "search: {what}");
    });
}

#[test]
fn what_cannot_be_is_said_by_the_name_of_the_setting_and_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("m");
    let (texts, labels) = texts();
    let wrong = |kind: &str, settings: &[(&str, &str)], source: Source| {
        let error = xc_options::fit(kind, source, settings, &model, &Silent).unwrap_err();
        assert_eq!(error.kind(), FitErrorKind::Input, "{error}");
        assert!(!model.exists());
        error.to_string()
    };
    let source = || Source::from((texts.clone(), labels.clone()));
    assert!(wrong("forest", &[], source()).contains("expected one of tree, mach"));
    assert_eq!(wrong("lns", &[("epoch", "3")], source()), "--epoch: models of kind lns have no such setting");
    assert!(wrong("lns", &[("epochs", "x")], source()).starts_with("--epochs x: "));
    assert!(wrong("tree", &[("text.hash", "8"), ("text.min-df", "3")], source()).contains("cannot be used with"));
    assert!(wrong("tree", &[("format", "xc")], source()).contains("has no effect here: it needs a file"));
    assert!(wrong("dense", &[("tfidf", "true")], source()).contains("it is for sparse rows, and there are none"));
    assert!(wrong("tree", &[("text.ngrams", "2")], rows().into()).contains("it is for texts, and there is none"));
    let fewer = LabelRows::from_lists(vec![vec![0]; 3], 1).unwrap();
    assert!(wrong("tree", &[], (texts.clone(), fewer).into()).contains("240 rows and 3 rows of labels"));
    let none = LabelRows::from_lists(vec![vec![]; 240], 2).unwrap();
    assert!(wrong("lns", &[], (texts.clone(), none).into()).contains("at least one label is expected"));
    let names = Arrays::new(OwnedRows::Texts(texts.clone()), labels.clone()).with_names(vec!["a".to_owned(); 16]);
    assert!(wrong("lns", &[], names.into()).starts_with("label names: "));
}

#[test]
fn rows_that_a_tree_learned_from_as_vectors_are_known_again() {
    let folder = tempfile::tempdir().unwrap();
    let labels = LabelRows::from_lists((0..40u32).map(|i| [i % 4]), 4).unwrap();
    let value = |row: usize, column: usize| if row % 4 == column { 2.0 } else { (row * 7 + column) as f32 % 5.0 / 5.0 };
    let values: Vec<f32> = (0..40).flat_map(|row| (0..6).map(move |column| value(row, column))).collect();
    let vectors = DenseMatrix::new(40, 6, values);
    let (npy, of_labels) = (folder.path().join("x.npy"), folder.path().join("y.jsonl"));
    write_npy(&mut std::fs::File::create(&npy).unwrap(), 40, 6, &vectors.values).unwrap();
    let line = |i: usize| format!("{{\"labels\": [{}]}}\n", i % 4);
    std::fs::write(&of_labels, (0..40).map(line).collect::<String>()).unwrap();
    let files = Files { train: npy, train_labels: Some(of_labels), ..Files::default() };
    let sources: [Source; 2] = [files.into(), (vectors, labels).into()];
    let context = Context::new(&Silent).with_threads(1);
    for (number, source) in sources.iter().enumerate() {
        let place = folder.path().join(format!("tree-{number}"));
        let mut training = Training::new("tree", source.clone(), &place).unwrap();
        training.set("validation-fraction", "0.5").unwrap();
        training.run(&context).unwrap();
        let model = Model::open(&place).unwrap();
        // Which rows are held out follows from their hashes.
        let held_out = model.training_rows().unwrap().unwrap().held_out().len();
        assert!((1..40).contains(&held_out), "{held_out}");
        let seen = 40 - held_out;
        for (asked, rows) in sources.iter().enumerate() {
            let output = folder.path().join(format!("calibrated-{number}-{asked}"));
            let calibrate = |leave_out_seen| {
                let held_out = HeldOut { leave_out_seen, ..HeldOut::new(rows.clone()) };
                xc_options::data::calibrate(&model, &held_out, &CalibrateParams::default(), &output, &context)
            };
            let error = calibrate(false).unwrap_err();
            let said = format!("{seen} of 40 instances are training instances of");
            assert!(error.to_string().contains(&said), "{error}");
            let done = calibrate(true).unwrap();
            assert_eq!((done.instances, done.left_out), (held_out, seen));
        }
    }
}

/// Texts of somebody else.
#[derive(Debug)]
struct Lent(Vec<String>);

impl SharedTexts for Lent {
    fn texts(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

#[test]
fn rows_that_are_given_up_or_lent_give_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let (texts, labels) = texts();
    let (sparse, of_rows) = rows();
    let values = sparse.data().iter().copied().chain(std::iter::repeat(0.5)).take(240 * 6).collect::<Vec<_>>();
    let sources: [(&str, Source); 4] = [
        ("sparse", (sparse, of_rows).into()),
        ("vectors", (DenseMatrix::new(240, 6, values), labels.clone()).into()),
        ("texts", (texts.clone(), labels.clone()).into()),
        ("lent", (texts.clone(), labels.clone()).into()),
    ];
    for kind in ["tree", "dense"] {
        for (name, source) in &sources {
            let place = |which: &str| folder.path().join(format!("{kind}-{name}-{which}"));
            let made = |source: Source, which: &str| {
                let mut training = Training::new(kind, source, place(which)).unwrap();
                if *kind == *"dense" {
                    training.set("epochs", "2").unwrap();
                }
                training
            };
            let context = Context::new(&Silent);
            made(source.clone(), "kept").run(&context).unwrap();
            // Somebody else has them, too: they are copied.
            made(source.clone(), "shared").run_once(&context).unwrap();
            let alone = match (*name, source) {
                ("lent", _) => {
                    let none = Arrays::new(OwnedRows::Texts(Vec::new()), labels.clone()).into();
                    made(none, "alone").over_texts(Arc::new(Lent(texts.clone())))
                }
                (_, Source::Memory(arrays)) => made((**arrays).clone().into(), "alone"),
                (_, Source::Files(_)) => unreachable!("rows in memory"),
            };
            alone.run_once(&context).unwrap();
            let answers = |which: &str| files_of(&place(which), kind);
            same(&answers("shared"), &answers("kept"), name);
            same(&answers("alone"), &answers("kept"), name);
        }
    }
}

#[test]
fn a_model_that_stays_in_memory_is_that_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let [saved, model] = ["saved", "model"].map(|name| folder.path().join(name));
    let before = entries(Path::new("."));
    let context = Context::new(&Silent).with_seed(3).with_threads(2);
    let ((rows, of_rows), fraction) = (rows(), ("validation-fraction", "0.2"));
    let validated = Arrays::new(rows.clone(), of_rows.clone()).with_validation(rows.clone(), of_rows.clone());
    let sources =
        [(Source::from(texts()), Some(fraction)), (Source::from((rows, of_rows)), None), (validated.into(), None)];
    for (kind, settings) in KINDS {
        for (source, held_out) in &sources {
            let mut training = Training::new(kind, source.clone(), &model).unwrap();
            settings.iter().chain(held_out).for_each(|(name, value)| training.set(name, value).unwrap());
            let of_folder = training.run(&context).unwrap_or_else(|e| panic!("{kind}: {e}"));
            let fitted = training.fit(&context).unwrap_or_else(|e| panic!("{kind}: {e}"));
            let p_at_1 = |report: &Report| report.metrics.as_ref().map(|metrics| metrics.value(Metric::Precision(1)));
            assert_eq!((fitted.report.kind, p_at_1(&fitted.report)), (kind, p_at_1(&of_folder)));
            assert!(
                p_at_1(&of_folder).is_some() || !matches!(source, Source::Memory(of) if of.validation.is_some()),
                "{kind}"
            );
            assert_eq!(fitted.report.what, of_folder.what);
            assert_eq!(fitted.model.describe(), Model::open(&model).unwrap().describe());
            assert!(fitted.model.folder().as_os_str().is_empty() && fitted.report.model.as_os_str().is_empty());
            fitted.model.save(&saved).unwrap();
            same(&files_of(&saved, kind), &files_of(&model, kind), kind);
        }
    }
    // Nothing was left beside the models.
    assert_eq!(entries(folder.path()), [folder.path().join("model"), saved]);
    assert_eq!(entries(Path::new(".")), before);
    let mut part = Training::new("tree", texts(), "").unwrap();
    part.place.part = Some("0/2".parse().unwrap());
    let refused = part.fit(&Context::new(&Silent)).unwrap_err().to_string();
    assert_eq!(refused, "--part: a folder is expected with it, and the model stays in memory");
}
