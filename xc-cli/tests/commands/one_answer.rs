//! One answer everywhere: whichever way a model is asked, a label that two ways return has the same bits of score.
//!
//! Rows of the table are kinds of models, columns pairs of ways to ask them; every kind answers 1,000 instances. Some
//! of the instances are texts without a known word. [`WHY_NOT`] has what differs, and the words of the help that say so.

use crate::program::{Folder, json, npy};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use xc_data::{ReadOptions, read_dataset};
use xc_model::blend::{DEPTH, Features, Rule, RuleScratch};
use xc_model::{Answer, InputKind, Model, QueryOptions, Rows, Scratch};
use xc_sparse::rank::{RankedBatch, Scored};
use xc_store::{Container, OpenMode, member_folder};

const TRAIN: usize = 500;
const TEST: usize = 1000;
const LABELS: usize = 120;
const WIDTH: usize = 24;

/// An option, and words of its help.
type Helped = (&'static str, &'static str);

/// Pairs that may differ for a kind, and words of the help of both options.
const WHY_NOT: [(&str, &str, [Helped; 2]); 3] = [
    ("candidates", "ensemble", [("--candidates", BEAM), ("--beam", BEAM)]),
    ("candidates", "uniform", [("--candidates", STEPS), ("--only-labels", SEE)]),
    ("candidates", "blend", [("--candidates", RANKS), ("--only-labels", SEE)]),
];
const BEAM: &str = "trees whose beam does not reach a label count 0 for it";
const STEPS: &str = "one step apart";
const RANKS: &str = "ranks among its members' answers";
const SEE: &str = "with the exceptions of --candidates";

/// A kind of model and how it is made; `train.jsonl` or vectors, and `--validation` where it is one of instances.
struct Kind {
    name: &'static str,
    of_vectors: bool,
    train: &'static str,
    /// Made of the model that was trained.
    then: &'static [&'static str],
}

const NETWORK: &str = "--network.widths 24 --epochs 6 --optimizer.rate 0.02 --batch-size 32 --threads 2";

const KINDS: [Kind; 12] = [
    Kind { name: "tree", of_vectors: false, train: "train tree --trees 1", then: &[] },
    Kind { name: "ensemble", of_vectors: false, train: "train tree --trees 3 --beam 3", then: &[] },
    Kind { name: "tree-of-vectors", of_vectors: true, train: "train tree --trees 1", then: &[] },
    Kind { name: "mach", of_vectors: false, train: "train mach --buckets 30 --repetitions 5", then: &[] },
    Kind { name: "mach-of-vectors", of_vectors: true, train: "train mach --buckets 30 --repetitions 4", then: &[] },
    Kind { name: "dense", of_vectors: false, train: "train dense", then: &[] },
    Kind {
        name: "uniform",
        of_vectors: false,
        train: "train uniform --network.intermediate 128 --head.fan-in 12",
        then: &[],
    },
    Kind {
        name: "lns",
        of_vectors: false,
        train: "train lns --loss squared-hinge --negatives.sampled 20 --negatives.uniform 30",
        then: &[],
    },
    Kind {
        name: "astra",
        of_vectors: false,
        train: "train astra --negatives.hard 5 --negatives.uniform 30 --loss bce",
        then: &[],
    },
    Kind {
        name: "index",
        of_vectors: false,
        train: "train dense",
        then: &["index build --model m --fit-queries held.jsonl"],
    },
    Kind {
        name: "blend",
        of_vectors: false,
        train: "train dense",
        then: &[
            "train tree --trees 3 --train train.jsonl --model tree",
            "blend m tree --validation held.jsonl --folds 2 --networks 1 --output whole",
        ],
    },
    Kind {
        name: "calibrated",
        of_vectors: false,
        train: "train dense",
        then: &["calibrate --model m --validation held.jsonl --output whole"],
    },
];

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// A text of one to three labels, of words that two labels share each.
fn instance(random: &mut Random, label: Option<usize>) -> (String, Vec<usize>) {
    let mut labels: Vec<usize> = (0..1 + random.below(3)).map(|_| random.below(LABELS)).chain(label).collect();
    labels.sort_unstable();
    labels.dedup();
    let mut text = String::new();
    for &label in &labels {
        (0..3).for_each(|_| _ = write!(text, "w{}x{} ", label / 2, random.below(3 + label % 2)));
    }
    (0..random.below(4)).for_each(|_| _ = write!(text, "common{} ", random.below(9)));
    (text, labels)
}

/// Files of instances, as texts and as vectors.
fn data() -> Folder {
    let folder = Folder::new();
    for (name, n, seed) in [("train", TRAIN, 1), ("held", 300, 2), ("test", TEST, 3)] {
        let mut random = Random(seed);
        let (mut texts, mut labels) = (String::new(), format!("{n} 1 {LABELS}\n"));
        let mut rows = Vec::new();
        for row in 0..n {
            // Every label has a training instance.
            let (mut text, of) = instance(&mut random, (name == "train" && row < LABELS).then_some(row));
            if name != "train" && row % 13 == 5 {
                text = if row % 2 == 0 { String::new() } else { format!("unheard{row}") };
            }
            writeln!(texts, "{}", json!({ "text": text, "labels": of })).unwrap();
            let list: Vec<String> = of.iter().map(usize::to_string).collect();
            writeln!(labels, "{} 0:1", list.join(",")).unwrap();
            let mut vector = vec![0.0f32; WIDTH];
            for label in of {
                let mut direction = Random(label as u64 + 77);
                vector.iter_mut().for_each(|v| *v += direction.below(2001) as f32 / 1000.0 - 1.0);
            }
            vector.iter_mut().for_each(|v| *v += random.below(601) as f32 / 1000.0 - 0.3);
            rows.push(vector);
        }
        folder.write(&format!("{name}.jsonl"), texts);
        folder.write(&format!("{name}.labels"), labels);
        folder.write(&format!("{name}.npy"), npy(n, WIDTH, |row, column| rows[row][column]));
    }
    folder
}

/// Labels and bits of their scores, in the order of a line.
type Row = Vec<(u32, u32)>;

fn parsed(text: &str) -> Vec<Row> {
    let entry = |word: &str| {
        let (label, score) = word.split_once(':').unwrap();
        (label.parse::<u32>().unwrap(), score.parse::<f32>().unwrap().to_bits())
    };
    text.lines().map(|line| line.split_ascii_whitespace().map(entry).collect()).collect()
}

/// A line as it is shown where it is not as expected.
fn shown(row: &[(u32, u32)]) -> Vec<(u32, f32, u32)> {
    row.iter().map(|&(label, bits)| (label, f32::from_bits(bits), bits)).collect()
}

fn lines_of(ranked: &RankedBatch) -> String {
    let line = |row: &[Scored]| {
        let entries: Vec<String> = row.iter().map(|s| format!("{}:{}", s.label, s.score)).collect();
        entries.join(" ")
    };
    ranked.iter().map(|row| line(row) + "\n").collect()
}

/// One kind of model, and what was found of it.
struct Table {
    folder: Folder,
    kind: &'static Kind,
    model: &'static str,
    input: &'static str,
    /// Five best of every instance.
    five: String,
}

impl Table {
    fn predict(&self, more: &str) -> String {
        self.folder.ok(&format!("predict --model {} --input {} {more}", self.model, self.input))
    }

    fn may_differ(&self, pair: &str) -> bool {
        WHY_NOT.iter().any(|(of, kind, _)| (*of, *kind) == (pair, self.kind.name))
    }

    /// Two ways whose answers are the same.
    #[track_caller]
    fn equal(&self, pair: &str, one: &str, other: &str) {
        let (one, other) = (parsed(one), parsed(other));
        assert_eq!((one.len(), other.len()), (TEST, TEST), "{}, {pair}", self.kind.name);
        for (at, (a, b)) in one.iter().zip(&other).enumerate() {
            assert_eq!(shown(a), shown(b), "{}, {pair}: instance {at}", self.kind.name);
        }
    }

    /// Two ways that return some labels both: their scores have the same bits. At least this share of the first way's
    /// labels is returned by the second.
    #[track_caller]
    fn same_bits(&self, pair: &str, one: &str, other: &str, share: f64) {
        let (one, other) = (parsed(one), parsed(other));
        assert_eq!((one.len(), other.len()), (TEST, TEST), "{}, {pair}", self.kind.name);
        let (mut n, mut common) = (0, 0);
        for (at, (a, b)) in one.iter().zip(&other).enumerate() {
            let b: BTreeMap<u32, u32> = b.iter().copied().collect();
            n += a.len();
            for (label, bits) in a {
                let Some(of_other) = b.get(label) else { continue };
                common += 1;
                if !self.may_differ(pair) {
                    let [a, b] = [*bits, *of_other].map(f32::from_bits);
                    assert_eq!(bits, of_other, "{}, {pair}: instance {at}, label {label}: {a} {b}", self.kind.name);
                }
            }
        }
        assert!(common as f64 >= share * n as f64 && n > TEST, "{}, {pair}: {common} of {n}", self.kind.name);
    }

    fn requests(&self, more: &Value) -> String {
        let mut lines = String::new();
        if self.kind.of_vectors {
            let bytes = std::fs::read(self.folder.path("test.npy")).unwrap();
            let values: Vec<f32> = bytes[bytes.len() - 4 * WIDTH * TEST..]
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
                .collect();
            for row in values.chunks_exact(WIDTH) {
                let mut request = json!({ "vector": row });
                request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                writeln!(lines, "{request}").unwrap();
            }
        } else {
            for line in self.folder.read("test.jsonl").lines() {
                let mut request = json!({ "text": json(line)["text"] });
                request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                writeln!(lines, "{request}").unwrap();
            }
        }
        lines
    }

    /// Validation during training, and answers that are evaluated.
    fn validation(&self, report: &Value) {
        let (truth, path) = (if self.kind.of_vectors { "test.labels" } else { "test.jsonl" }, "five.txt");
        self.folder.write(path, &self.five);
        let evaluated =
            json(&self.folder.ok(&format!("evaluate --truth {truth} --predictions {path} --k 1,3,5 --json")));
        for metric in ["P@1", "P@3", "P@5", "nDCG@3", "nDCG@5"] {
            let [a, b] = [report, &evaluated].map(|of| of[metric].as_f64().unwrap());
            assert_eq!(a, b, "{}, validation: {metric}", self.kind.name);
        }
        assert!(evaluated["P@1"].as_f64().unwrap() > 0.2, "{}: {evaluated}", self.kind.name);
        // The log of a network: the epoch that was kept. It knows nothing of a wide term, which is learned at the end.
        let Ok(log) = std::fs::read_to_string(self.folder.path("m.log/log.jsonl")) else { return };
        let events =
            log.lines().map(json).filter(|event| event["event"] == "validation" && event.get("epoch").is_some());
        let best = events.map(|event| event["P@1"].as_f64().unwrap()).fold(f64::NAN, f64::max);
        let has_term = ["dense", "uniform", "lns", "astra"].contains(&self.kind.name);
        let precision = &report["wide"]["precision"];
        if has_term {
            let [with, without] = ["with", "without"].map(|of| precision[of][0].as_f64().unwrap());
            let whole = evaluated["P@1"].as_f64().unwrap();
            assert!((best - without).abs() < 1e-12 && (whole - with).abs() < 1e-12, "{best}, {whole}: {precision}");
            return;
        }
        assert!(best.is_nan() || best == evaluated["P@1"].as_f64().unwrap(), "{}: {best}", self.kind.name);
    }

    /// The library: one at a time, in batches, from several threads at once, features made before.
    fn library(&self) {
        let model = Model::open(self.folder.path(self.model)).unwrap();
        let options = QueryOptions::top(5);
        let texts: Vec<String> = self
            .folder
            .read("test.jsonl")
            .lines()
            .map(|line| json(line)["text"].as_str().unwrap().to_owned())
            .collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let read;
        let vectors;
        let queries = match model.describe().takes {
            InputKind::Text => Rows::texts(&texts),
            InputKind::Sparse => {
                read = read_dataset(&self.folder.path("test.npy"), &ReadOptions::default()).unwrap();
                Rows::Sparse(read.features.view())
            }
            InputKind::Dense => {
                vectors = xc_data::Vectors::open(&self.folder.path("test.npy"), &ReadOptions::default()).unwrap();
                Rows::Dense(xc_dense::DenseRows::new(vectors.values(), WIDTH))
            }
            InputKind::Tokens => panic!("a model of tokens without texts"),
        };
        let batch = lines_of(&model.predict_batch(queries, &options).unwrap().ranked);
        self.equal("library in a batch", &self.five, &batch);
        // Several threads at once, with two scratches each taking turns.
        let answers: Vec<String> = std::thread::scope(|scope| {
            let ask = |first: usize| {
                let (model, options) = (&model, &options);
                move || {
                    let (mut scratches, mut answer) = ([Scratch::default(), Scratch::default()], Answer::default());
                    let mut ranked = RankedBatch::new();
                    for at in (first..TEST).step_by(3) {
                        model.predict(&queries.row(at), options, &mut scratches[at % 2], &mut answer).unwrap();
                        ranked.push_row(&answer.labels);
                    }
                    lines_of(&ranked)
                }
            };
            let threads: Vec<_> = (0..3).map(|first| scope.spawn(ask(first))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut of_threads: Vec<_> = answers.iter().map(|answers| answers.lines()).collect();
        let mut merged = String::new();
        (0..TEST).for_each(|at| _ = writeln!(merged, "{}", of_threads[at % 3].next().unwrap()));
        self.equal("library one at a time, from three threads", &self.five, &merged);
        if model.describe().takes == InputKind::Text && model.pipeline().is_some() {
            let made = model.features(queries).unwrap();
            let asked = QueryOptions { made: true, ..options };
            let of_features = model.predict_batch(made.view(), &asked).unwrap();
            self.equal("text and its features", &self.five, &lines_of(&of_features.ranked));
        }
    }

    /// The blend's own answers, and what its rule makes of its members' answers.
    fn members(&self) {
        let folder = self.folder.path(self.model);
        let container = Container::open(&folder, OpenMode::Map).unwrap();
        let texts: Vec<String> = self
            .folder
            .read("test.jsonl")
            .lines()
            .map(|line| json(line)["text"].as_str().unwrap().to_owned())
            .collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let answers: Vec<_> = (0..2)
            .map(|number| {
                let member = Model::open(folder.join(member_folder(number))).unwrap();
                member.predict_batch(Rows::texts(&texts), &QueryOptions::top(DEPTH)).unwrap()
            })
            .collect();
        let counts = container.array::<u32>("label_counts").unwrap().to_vec();
        let features = Features::new(container.parameter("scales").unwrap(), counts);
        let numbers = |name: &str| container.array::<f32>(name).unwrap().to_vec();
        let features = features.with_standard(numbers("features.mean"), numbers("features.factor"));
        let rule = Rule::of(&container, features.n(), true).unwrap();
        let mut ranked = RankedBatch::new();
        for row in 0..TEST {
            let lists: Vec<&[Scored]> = answers.iter().map(|of| of.ranked.row(row)).collect();
            rule.rank(&features, std::iter::once(&lists[..]), &mut RuleScratch::default(), |best| {
                ranked.push_row(&best[..best.len().min(5)]);
            });
        }
        self.equal("a blend and its members' combination", &self.five, &lines_of(&ranked));
    }

    /// Every pair that the kind has.
    fn check(&self, report: Option<&Value>) {
        if let Some(report) = report {
            self.validation(report);
        }
        let fifty = self.predict("--top-k 50");
        let unknown = self.five.lines().filter(|line| line.is_empty()).count();
        assert_eq!(unknown, if self.kind.of_vectors { 0 } else { TEST.div_ceil(13) }, "{}", self.kind.name);
        let first: String =
            fifty.lines().map(|line| line.split(' ').take(5).collect::<Vec<_>>().join(" ") + "\n").collect();
        self.equal("--top-k 5 and the first of 50", &self.five, &first);
        for threads in [1, 2, 3] {
            self.equal("threads", &self.five, &self.predict(&format!("--top-k 5 --threads {threads}")));
        }
        self.equal("in memory and mapped", &self.five, &self.predict("--top-k 5 --in-memory"));
        self.equal("checked and trusted", &self.five, &self.predict("--top-k 5 --trusted"));
        let answered = |requests: String, more: &str| {
            let outcome =
                self.folder.answered(&format!("predict --model {} --input - --quiet {more}", self.model), requests);
            assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{}", self.kind.name);
            outcome.stdout
        };
        // Lines that ask for nothing of their own are answered together, others one at a time.
        self.equal("lines of stdin", &self.five, &answered(self.requests(&json!({})), "--top-k 5"));
        self.equal("requests", &self.five, &answered(self.requests(&json!({ "top_k": 5 })), "--top-k 1"));
        self.equal("two at a time", &self.five, &answered(self.requests(&json!({ "top_k": 5 })), "--threads 2"));

        // Every third label that is among the best, and some that are not.
        let lists: Vec<Vec<u32>> = parsed(&fifty).iter().map(|row| row.iter().map(|e| e.0).collect()).collect();
        let candidates: String = lists
            .iter()
            .enumerate()
            .map(|(row, list)| {
                let mut some: Vec<u32> = list.iter().copied().skip(row % 3).step_by(3).collect();
                some.extend([(row % LABELS) as u32, (row * 7 % LABELS) as u32]);
                some.sort_unstable();
                some.dedup();
                some.iter().map(u32::to_string).collect::<Vec<_>>().join(",") + "\n"
            })
            .collect();
        self.folder.write("candidates.txt", &candidates);
        let of_candidates = self.predict("--top-k 60 --candidates candidates.txt");
        self.same_bits("candidates", &of_candidates, &fifty, 0.6);
        let some: String = (0..LABELS).step_by(2).map(|label| format!("{label}\n")).collect();
        self.folder.write("only.txt", some);
        let only = self.predict("--top-k 60 --only-labels only.txt");
        self.same_bits("candidates", &only, &fifty, 0.05);
        self.same_bits("candidates", &only, &of_candidates, 0.0);
        let excluded: String =
            lists.iter().map(|list| list.first().map_or(String::new(), u32::to_string) + "\n").collect();
        self.folder.write("excluded.txt", excluded);
        let without = self.predict("--top-k 20 --exclude excluded.txt");
        self.same_bits("--exclude", &without, &fifty, 0.95);
        self.library();
        match self.kind.name {
            "mach" | "mach-of-vectors" => {
                self.equal("a decode that may stop early", &self.five, &self.predict("--top-k 5 --max-labels 1000000"));
                let all: String = (0..LABELS).map(|label| format!("{label}\n")).collect();
                self.folder.write("all.txt", all);
                self.equal("a decode and all labels", &fifty, &self.predict("--top-k 50 --only-labels all.txt"));
            }
            "index" => {
                for reach in ["", "--search-width inf", "--search-width=-0.5"] {
                    self.same_bits(
                        "--exact",
                        &self.predict(&format!("--top-k 20 {reach}")),
                        &self.predict("--top-k 50 --exact"),
                        0.8,
                    );
                }
            }
            "blend" => self.members(),
            "calibrated" => {
                let raw = self.predict("--top-k 5 --raw-scores");
                self.equal("raw scores", &self.folder.ok("predict --model m --input test.jsonl"), &raw);
            }
            _ => {}
        }
    }
}

/// Makes a model of a kind and asks it in every way.
fn check(name: &str) {
    let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
    let folder = data();
    let network = if kind.train.starts_with("train tree") { "" } else { NETWORK };
    let files = match (kind.of_vectors, kind.train.starts_with("train tree")) {
        (false, _) => "--train train.jsonl --validation test.jsonl",
        (true, true) => {
            "--train train.npy --train-labels train.labels --validation test.npy --validation-labels test.labels"
        }
        (true, false) => {
            "--train train.labels --features train.npy --validation test.labels --validation-features test.npy"
        }
    };
    let report = json(&folder.ok(&format!("{} {files} --model m {network} --json", kind.train)));
    kind.then.iter().for_each(|then| _ = folder.ok(then));
    let model = if kind.then.iter().any(|then| then.ends_with("whole")) { "whole" } else { "m" };
    let input = if kind.of_vectors { "test.npy" } else { "test.jsonl" };
    let five = folder.ok(&format!("predict --model {model} --input {input} --top-k 5"));
    let is_as_trained = kind.then.is_empty();
    Table { folder, kind, model, input, five }.check(is_as_trained.then_some(&report));
}

macro_rules! kinds {
    ($($test:ident: $name:literal,)*) => {
        $(#[test] fn $test() { check($name); })*

        #[test]
        fn every_kind_of_the_table_is_asked() {
            assert_eq!([$($name),*], KINDS.map(|kind| kind.name));
        }
    };
}

kinds! {
    a_tree_has_one_answer: "tree",
    three_trees_have_one_answer: "ensemble",
    trees_of_vectors_have_one_answer: "tree-of-vectors",
    mach_has_one_answer: "mach",
    mach_of_vectors_has_one_answer: "mach-of-vectors",
    a_dense_network_has_one_answer: "dense",
    a_uniform_network_has_one_answer: "uniform",
    lns_has_one_answer: "lns",
    astra_has_one_answer: "astra",
    an_index_gives_the_answers_of_its_network: "index",
    a_blend_has_one_answer: "blend",
    a_calibrated_model_has_one_answer: "calibrated",
}

#[test]
fn what_differs_is_in_the_help_of_both_options() {
    assert!(WHY_NOT.len() <= 6);
    let folder = Folder::new();
    let help = folder.ok("predict --help");
    for (pair, kind, options) in WHY_NOT {
        for (option, words) in options {
            let start = help.find(&format!("      {option} ")).unwrap_or_else(|| panic!("{option} in\n{help}"));
            let rest = &help[start + 8..];
            let of_option = &rest[..rest.find("\n      --").unwrap_or(rest.len())];
            let plain = of_option.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(plain.contains(words), "{pair}, {kind}: {option}: {plain}");
        }
    }
}

/// Rows of features that `xc convert` makes of texts train the model that the texts train.
#[test]
fn a_model_of_converted_features_answers_as_the_model_of_the_texts() {
    let folder = data();
    folder.ok("convert --from jsonl train.jsonl --to xc-text train.txt --save-pipeline p");
    folder.ok("convert --from jsonl test.jsonl --to xc-text test.txt --pipeline p");
    for train in [
        "train tree --trees 1 --normalise false",
        "train tree --trees 3 --normalise false",
        "train dense --normalise false",
    ] {
        let network = if train.contains("tree") { "" } else { NETWORK };
        folder.ok(&format!("{train} --train train.txt --model rows {network}"));
        folder.ok(&format!("{} --train train.jsonl --model texts {network}", train.replace("--normalise false", "")));
        let [rows, texts] = [("rows", "test.txt"), ("texts", "test.jsonl")]
            .map(|(model, input)| folder.ok(&format!("predict --model {model} --input {input} --top-k 10")));
        let (mut equal, mut unknown) = (0, 0);
        for (rows, texts) in rows.lines().zip(texts.lines()) {
            // A row without a feature is an instance like others to a model of features, and no known word to one of
            // texts.
            match texts {
                "" => unknown += 1,
                _ => {
                    assert_eq!(rows, texts, "{train}");
                    equal += 1;
                }
            }
        }
        assert_eq!((unknown, equal), (TEST.div_ceil(13), TEST - TEST.div_ceil(13)));
    }
}
