//! Uniform models from outside.

use crate::program::{Folder, contents, json, run};
use serde_json::Value;
use std::time::Duration;

const DATA: &str =
    "generate --instances 800 --test-instances 200 --features 2000 --labels 150 --words 50 --output data";
/// A small network that learns the data above in a second or two.
const QUICK: &str = "--network.widths 24 --network.intermediate 256 --head.fan-in 12 --epochs 12 --optimizer.rate 0.01";

fn precision(folder: &Folder, model: &str, instances: &str, more: &str) -> f64 {
    folder.ok(&format!("predict --model {model} --input {instances} --output answers.txt {more}"));
    let truth = instances.replace(".npy", ".txt");
    let report = json(&folder.ok(&format!("evaluate --truth {truth} --predictions answers.txt --json")));
    report["P@1"].as_f64().unwrap()
}

/// An npy file of f32 rows.
fn npy(rows: &[Vec<f32>]) -> Vec<u8> {
    let mut head = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
        rows.len(),
        rows.first().map_or(1, Vec::len)
    );
    while !(10 + head.len() + 1).is_multiple_of(64) {
        head.push(' ');
    }
    head.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((head.len() as u16).to_le_bytes());
    out.extend(head.bytes());
    out.extend(rows.iter().flatten().flat_map(|v| v.to_le_bytes()));
    out
}

/// `n` vectors of 16 values around the corner of a cube that belongs to their label, one of 40, and
/// their labels as XC text without features.
fn vectors(folder: &Folder, name: &str, n: usize) {
    let mut state = 7u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let corner = |label: usize, at: usize| if (label * 2_654_435_761) >> (at + 3) & 1 == 1 { 1.0 } else { -1.0 };
    let rows: Vec<Vec<f32>> = (0..n).map(|i| (0..16).map(|at| corner(i % 40, at) + noise()).collect()).collect();
    folder.write(&format!("{name}.npy"), npy(&rows));
    let labels: Vec<String> = (0..n).map(|i| format!("{}\n", i % 40)).collect();
    folder.write(&format!("{name}.txt"), format!("{n} 16 40\n{}", labels.concat()));
}

#[test]
fn it_learns_from_sparse_features_whatever_the_layer() {
    let folder = Folder::new();
    folder.ok(DATA);
    let train = format!("train uniform --train data/train.txt --model m {QUICK}")
        .replace("--epochs 12", "--epochs 30 --keep last");
    for more in [
        "",
        "--head.precision e4m3 --head.moments bf16",
        "--head.precision bf16 --head.wiring unstructured",
        "--head.wiring dense",
        "--negatives.sampled 60",
        "--sampler frequency --negatives.sampled 60",
        "--loss bce",
        "--network.init random",
        "--network.embedding-rate 0.5",
    ] {
        // A dense layer has no number of connections.
        let train = if more.contains("dense") { train.replace("--head.fan-in 12 ", "") } else { train.to_string() };
        let report = json(&folder.ok(&format!("{train} --validation data/test.txt --json {more}")));
        let (seen, held_out) =
            (precision(&folder, "m", "data/train.txt", ""), precision(&folder, "m", "data/test.txt", ""));
        assert!(seen > 0.8, "{more}: P@1 {seen} of what it learned");
        assert!(held_out > 0.1, "{more}: P@1 {held_out}");
        assert!(
            (report["P@1"].as_f64().unwrap() - held_out).abs() < 1e-9,
            "the report of training is that of evaluate"
        );
        let memory = &report["memory"];
        let bytes = |part: &str| memory[format!("{part}_bytes")].as_u64().unwrap();
        let sum: u64 = ["parameters", "moments", "best", "buffers", "resident"].map(bytes).iter().sum();
        // What reading the data took may have been more.
        assert!(bytes("total") >= sum && bytes("resident") >= bytes("data"), "{memory}");
    }
    // Without the layer between, the labels stand on the bag: it takes what --network.widths says.
    folder.ok("train uniform --train data/train.txt --model m --network.intermediate none --network.widths 64 --head.fan-in 64 --epochs 1");
    let config = json(&folder.read("m/config.json"));
    assert_eq!(config["parameters"]["classifier"]["encoder"]["widths"], serde_json::json!([64]));
    // Nor does it begin at an LSA then, unless told.
    let begins = |config: &Value| config["parameters"]["learning"]["init"].as_str().unwrap().to_owned();
    assert_eq!(begins(&config), "random");
    let told = folder
        .command("train uniform --train data/train.txt --model m --network.intermediate 40 --epochs 1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&told.stderr);
    assert!(told.contains("initial embeddings: lsa of 800 rows"), "{told}");
    assert_eq!(begins(&json(&folder.read("m/config.json"))), "lsa");
    // 32,000 instances are 1000 steps of 32.
    assert_eq!(config["parameters"]["learning"]["connections"]["rewire_every"], 1000);
}

#[test]
fn it_learns_from_vectors_and_says_what_it_wants() {
    let folder = Folder::new();
    vectors(&folder, "a", 1200);
    vectors(&folder, "b", 200);
    let layer = "--network.intermediate 256 --head.fan-in 12 --epochs 12 --optimizer.rate 0.003";
    folder.ok(&format!(
        "train uniform --train a.txt --features a.npy --validation b.txt --validation-features b.npy --model m {layer}"
    ));
    assert!(precision(&folder, "m", "a.npy", "") > 0.9);
    // The same as vectors with labels of their own.
    folder.ok(&format!(
        "train uniform --train a.npy --train-labels a.txt --validation b.npy --validation-labels b.txt --model n {layer}"
    ));
    assert_eq!(contents(&folder.path("m")), contents(&folder.path("n")));
    let shown = folder.ok("inspect m");
    for line in ["kind        uniform", "classifier.head.fan_in", "head.weights", "output layer"] {
        assert!(shown.contains(line), "{line:?} in {shown}");
    }
    for mode in ["online", "batch"] {
        let speed = json(&folder.ok(&format!("bench predict --model m --input b.npy --mode {mode} --repeat 1 --json")));
        assert_eq!(speed["queries"], 200);
    }
    folder.write("narrow.npy", npy(&vec![vec![1.0; 8]; 3]));
    folder.xc("predict --model m --input narrow.npy").refused(2, "narrow.npy: vectors of 8 values; the model wants 16");
    folder
        .xc("predict --model m --input b.txt")
        .refused(2, "b.txt: an npy file of vectors of 16 values is expected, since the model was trained on vectors");
    let mut rows = vec![vec![1.0; 16]; 5];
    rows[3][7] = f32::NAN;
    folder.write("nan.npy", npy(&rows));
    folder
        .xc("predict --model m --input nan.npy")
        .refused(2, "nan.npy: row 3: array npy: entry 7 is NaN, expected a finite value that f32 can hold");
    folder.write("five.txt", "0\n1\n2\n3\n4\n");
    let train = |more: &str| folder.xc(&format!("train uniform --model x {more}"));
    train("--train five.txt --features nan.npy")
        .refused(2, "nan.npy: row 3: array npy: entry 7 is NaN, expected a finite value that f32 can hold");
    train("--train five.txt --features b.npy")
        .refused(2, "five.txt: 5 rows of labels; b.npy has 200 vectors, and as many rows are expected");
    train("--train a.txt --features a.npy --validation five.txt --validation-features nan.npy")
        .refused(2, "nan.npy: row 3: array npy: entry 7 is NaN, expected a finite value that f32 can hold");
    folder.write("three.txt", "0\n1\n2\n");
    train("--train a.txt --features a.npy --validation three.txt --validation-features narrow.npy")
        .refused(2, "narrow.npy: vectors of 8 values; those of a.npy have 16");
    train("--train a.txt --features a.npy --validation b.txt").refused(
        2,
        "b.txt: no vectors; --validation-features FILE.npy is expected, since the training instances are vectors",
    );
    train("--train a.npy").refused(
        2,
        "a.npy: vectors without labels; --train-labels FILE is expected, or the labels as --train and these as --features",
    );
    train("--train a.txt --features gone.npy").refused(2, "gone.npy: No such file or directory");
    train("--train a.txt --features b.txt")
        .refused(2, "b.txt: array npy: the npy header is malformed: it does not begin with the magic bytes of npy");
    train("--train a.npy --train-labels a.txt --tfidf").refused(2, "--tfidf: vectors are used as they are");
    train("--train a.npy --train-labels a.txt --normalise").refused(2, "--normalise: vectors are used as they are");
    for option in ["network.init random", "network.embedding-rate 1"] {
        let name = option.split(' ').next().unwrap();
        let expected = format!(
            "--{name}: instances are vectors already, which no embeddings are made for; expected no such option"
        );
        train(&format!("--train a.txt --features a.npy --{option}")).refused(2, &expected);
    }
    folder.write("none.txt", "\n\n\n");
    train("--train none.txt --features narrow.npy --network.intermediate 32")
        .refused(2, "none.txt: no instance has a label; at least one label is expected");
    assert!(!folder.path("x").exists());
}

#[test]
fn batch_stream_candidates_and_label_sets_agree() {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.write("some.txt", "3\n77\n140\n");
    folder.write("shown.txt", "3,77,140\n".repeat(200));
    let all: Vec<String> = (0..150).map(|l| l.to_string()).collect();
    folder.write("all.txt", all.join("\n"));
    for more in ["", "--head.precision f16 --head.wiring unstructured", "--head.wiring dense"] {
        let quick = if more.contains("dense") { QUICK.replace("--head.fan-in 12 ", "") } else { QUICK.to_owned() };
        folder.ok(&format!("train uniform --train data/train.txt --model m {quick} {more}"));
        let ask = |more: &str| folder.ok(&format!("predict --model m {more}"));
        let batch = ask("--input data/test.txt --top-k 4 --threads 2");
        assert_eq!(batch.lines().count(), 200);
        let mut stream = folder.command("predict --model m --input - --top-k 4 --quiet --threads 1");
        stream.stdin(std::fs::File::open(folder.path("data/test.txt")).unwrap());
        assert_eq!(run(&mut stream).quiet_success(), batch, "{more}");
        let some = ask("--input data/test.txt --only-labels some.txt --top-k 2");
        assert_eq!(some, ask("--input data/test.txt --candidates shown.txt --top-k 2"), "{more}");
        for line in some.lines() {
            let labels: Vec<&str> = line.split(' ').map(|e| e.split(':').next().unwrap()).collect();
            assert!(labels.len() == 2 && labels.iter().all(|l| ["3", "77", "140"].contains(l)), "{more}: {line}");
        }
        assert_eq!(ask("--input data/test.txt --only-labels all.txt --top-k 4"), batch, "{more}");
        assert_eq!(ask("--input data/test.txt --top-k 4 --trusted --in-memory"), batch, "{more}");
    }
}

#[test]
fn text_keeps_its_pipeline_and_label_names() {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.ok(&format!("train uniform --train data/train.jsonl --label-names data/labels.txt --model m {QUICK}"));
    let answers = folder.ok("predict --model m --input data/test.jsonl --top-k 1 --names");
    let names = folder.read("data/labels.txt");
    let first = answers.lines().next().unwrap().rsplit_once(':').unwrap().0;
    assert!(names.lines().any(|name| name == first), "{first}");
    let outcome = folder.xc("predict --model m --input data/test.txt");
    assert!(outcome.code == 2 && outcome.stderr.contains("holds features; text"), "{}", outcome.stderr);
}

#[test]
fn threads_and_interruptions_do_not_show_in_the_bytes() {
    let folder = Folder::new();
    folder.ok(DATA);
    let train = format!(
        "train uniform --train data/train.txt --validation-fraction 0.1 {QUICK} --head.precision bf16 --head.moments bf16 \
         --head.rewire-every 7 --network.dropout 0.1 --checkpoint-every 20"
    );
    folder.ok(&format!("{train} --model whole --threads 1"));
    folder.ok(&format!("{train} --model two --threads 2"));
    assert_eq!(contents(&folder.path("whole")), contents(&folder.path("two")));
    folder.resumed_after_kills(&format!("{train} --model m"), 6, |attempt| 60 + 97 * attempt % 400);
    assert_eq!(contents(&folder.path("whole")), contents(&folder.path("m")));
}

#[test]
fn a_checkpoint_of_another_layer_is_refused() {
    let folder = Folder::new();
    folder.ok(DATA);
    let train = "train uniform --train data/train.txt --model m --network.widths 16 --epochs 400 --checkpoint-every 1";
    let mut child =
        folder.command(&format!("{train} --network.intermediate 64 --head.fan-in 8 --quiet")).spawn().unwrap();
    let state = folder.path("m.checkpoint/state/config.json");
    for _ in 0..600 {
        if state.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(state.exists(), "nothing was saved in half a minute: {:?}", folder.names());
    for other in [
        "--network.intermediate 64 --head.fan-in 9",
        "--network.intermediate 32 --head.fan-in 8",
        "--network.intermediate 64 --head.fan-in 8 --head.precision bf16",
        "--network.intermediate 64 --head.fan-in 8 --head.moments bf16",
        "--network.intermediate 64 --head.fan-in 8 --head.rewire-every 5",
        "--network.intermediate 64 --head.fan-in 8 --negatives.sampled 20",
        "--network.intermediate 64 --head.fan-in 8 --loss bce",
        "--network.intermediate 64 --head.fan-in 8 --network.init random",
        "--network.intermediate 64 --head.fan-in 8 --network.embedding-rate 0.2",
    ] {
        let outcome = folder.xc(&format!("{train} {other} --resume"));
        assert!(
            outcome.code == 2 && outcome.stderr.contains("belongs to other data or settings"),
            "{other}: {} {}",
            outcome.code,
            outcome.stderr
        );
    }
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let folder = Folder::new();
    folder.ok(DATA);
    let refused = |more: &str, expected: &str| {
        let outcome = folder.xc(&format!("train uniform --train data/train.txt --model m {more}"));
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{more}");
        assert_eq!(outcome.stderr, format!("xc: error: {expected}\n"), "{more}");
        assert!(!folder.path("m").exists());
    };
    refused(
        "--network.intermediate 20 --head.fan-in 21",
        "--head.fan-in: 21 connections a label, expected at most the number of inputs, 20",
    );
    refused("--head.fan-in 0", "--head.fan-in: the number of connections a label is 0, expected at least 1");
    refused("--network.intermediate 0", "--network.intermediate 0: at least 1 unit is expected, or none");
    refused(
        "--network.intermediate none --network.widths 16",
        "--head.fan-in: 32 connections a label, expected at most the number of inputs, 16",
    );
    refused("--network.widths 0", "--network.widths: widths [0, 32768], expected at least one width, none of them 0");
    refused(
        "--head.rewire-fraction 1.5",
        "--head.rewire-fraction: rewire_fraction is 1.5, expected a share from 0 to 1",
    );
    refused("--negatives.sampled 0", "--negatives.sampled: per_list is 0, expected at least 1");
    refused(
        "--sampler all --negatives.sampled 5",
        "--negatives.sampled: --sampler all scores every label; one of the two is expected",
    );
    refused(
        "--network.embedding-rate=-1",
        "--network.embedding-rate: embedding_rate is -1, expected a share of the learning rate, 0 or more",
    );
    refused(
        "--network.input-dropout 1",
        "--network.input-dropout: input_dropout is 1, expected a rate from 0 to below 1",
    );
    for option in ["head.precision bf16", "head.moments bf16", "negatives.sampled 5"] {
        let name = option.split(' ').next().unwrap();
        let expected = format!("--{name} belongs to sparse output layers; --head.wiring dense has none");
        refused(&format!("--head.wiring dense --{option}"), &expected);
    }
    let outcome = folder.xc("train uniform --train data/train.txt --model m --network.intermediate some");
    assert!(outcome.code == 2 && outcome.stderr.contains("expected a number of units or none"), "{}", outcome.stderr);
    // Memory: what needs it, and the first option that helps.
    let outcome =
        folder.xc("train uniform --train data/train.txt --model m --network.intermediate 32768 --max-memory 115M");
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    for words in [
        "xc train uniform needs about ",
        "more than --max-memory 109.7 MiB: parameters ",
        "moments ",
        "with --network.intermediate 8192 it would need ",
    ] {
        assert!(outcome.stderr.contains(words), "{words:?} in {}", outcome.stderr);
    }
    let outcome = folder.xc("train uniform --train data/train.txt --model m --max-memory 1M");
    assert!(outcome.code == 3 && outcome.stderr.contains("; even with --head.moments bf16 "), "{}", outcome.stderr);
    assert!(!folder.path("m").exists() && !folder.path("m.checkpoint").exists());
    // Labels without instances are a note.
    folder.write("names.txt", (0..160).map(|l| format!("label {l}\n")).collect::<String>());
    let mut command =
        folder.command(&format!("train uniform --train data/train.txt --label-names names.txt --model m {QUICK}"));
    let outcome = run(&mut command);
    assert_eq!(outcome.code, 0);
    assert!(outcome.stderr.contains("of 160 labels have no training instance"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("xc: memory: about "), "{}", outcome.stderr);
}

#[test]
fn a_damaged_model_is_refused_in_one_line() {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.ok(&format!("train uniform --train data/train.txt --model m {QUICK}"));
    let config = folder.read("m/config.json");
    let changed = |from: &str, to: &str, expected: &str| {
        assert!(config.contains(from), "{from} in {config}");
        folder.write("m/config.json", config.replace(from, to));
        let outcome = folder.xc("predict --model m --input data/test.txt");
        assert!(outcome.code == 2 && outcome.stderr.contains(expected), "{to}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    };
    changed("\"fan_in\": 12", "\"fan_in\": 13", "head.indices");
    changed(" 256\n", " 8\n", "12 connections a label, expected at most the number of inputs, 8");
    changed("\"weights\": \"F32\"", "\"weights\": \"BF16\"", "head.weights");
    changed("\"weights\": \"F32\"", "\"weights\": \"F65\"", "F65");
    changed("\"n_labels\": 150", "\"n_labels\": 151", "head.");
    changed("\"wiring\": \"uniform\"", "\"wiring\": \"other\"", "other");
}
