//! Generate, train, predict, evaluate: the main job from outside.

use crate::program::{Folder, contents, json};
use std::collections::HashMap;

/// A data set that trains in a second and is far from trivial.
const SMALL: &str =
    "generate --instances 1500 --test-instances 300 --features 3000 --labels 120 --words 60 --output data";

fn labels_of(line: &str) -> Vec<u32> {
    let head = line.split(' ').next().unwrap_or("");
    if head.contains(':') {
        Vec::new()
    } else {
        head.split(',').filter(|l| !l.is_empty()).map(|l| l.parse().unwrap()).collect()
    }
}

/// True labels of every row of an XC file.
fn truth(text: &str) -> Vec<Vec<u32>> {
    text.lines().skip(1).map(labels_of).collect()
}

#[test]
fn a_trained_tree_is_far_better_than_the_most_frequent_label_and_evaluate_agrees_with_counting() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder.ok("train tree --train data/train.txt --model model");
    folder.ok("predict --model model --input data/test.txt --top-k 3 --output predictions.txt");
    let report = json(&folder.ok("evaluate --truth data/test.txt --predictions predictions.txt --k 1,3 --json"));

    let truth_rows = truth(&folder.read("data/test.txt"));
    let predictions = folder.read("predictions.txt");
    let ranked: Vec<Vec<u32>> = predictions
        .lines()
        .map(|line| {
            line.split(' ').filter(|e| !e.is_empty()).map(|e| e.split_once(':').unwrap().0.parse().unwrap()).collect()
        })
        .collect();
    assert_eq!((truth_rows.len(), ranked.len()), (300, 300));
    for k in [1, 3] {
        let hits: usize =
            truth_rows.iter().zip(&ranked).map(|(t, r)| r.iter().take(k).filter(|l| t.contains(l)).count()).sum();
        let counted = hits as f64 / (300 * k) as f64;
        let got = report[format!("P@{k}")].as_f64().unwrap();
        assert!((got - counted).abs() < 1e-12, "P@{k}: {got}, counted {counted}");
    }
    let mut counts = HashMap::new();
    truth(&folder.read("data/train.txt")).iter().flatten().for_each(|&l| *counts.entry(l).or_insert(0) += 1);
    let frequent = *counts.iter().max_by_key(|&(&l, &n)| (n, l)).unwrap().0;
    let baseline = truth_rows.iter().filter(|t| t.contains(&frequent)).count() as f64 / 300.0;
    let got = report["P@1"].as_f64().unwrap();
    assert!(got > 0.6 && got > 3.0 * baseline, "P@1 {got}, most frequent label {baseline}");
}

#[test]
fn one_and_two_threads_give_the_same_bytes() {
    let folders = [1, 2].map(|threads| {
        let folder = Folder::new();
        let threads = format!("--threads {threads} --seed 3");
        folder.ok(&format!("{SMALL} {threads}"));
        folder.ok(&format!("train tree --train data/train.txt --model model --trees 2 {threads}"));
        folder.ok(&format!("train tree --train data/train.jsonl --model text {threads}"));
        folder.ok(&format!("predict --model model --input data/test.txt --output predictions.txt {threads}"));
        folder.ok(&format!("predict --model text --input data/test.jsonl --output answers.txt {threads}"));
        folder
    });
    let [one, two] = &folders;
    for name in ["data", "model", "text"] {
        let (a, b) = (contents(&one.path(name)), contents(&two.path(name)));
        assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
        for (file, bytes) in &a {
            assert!(*bytes == b[file], "{name}/{file} differs");
        }
    }
    for name in ["predictions.txt", "answers.txt"] {
        assert_eq!(one.read(name), two.read(name), "{name}");
    }
    let other = Folder::new();
    other.ok(&format!("{SMALL} --seed 4"));
    assert_ne!(other.read("data/train.txt"), one.read("data/train.txt"));
}

#[test]
fn every_form_of_the_same_data_gives_the_same_predictions() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder.ok("convert --from jsonl data/train.jsonl --to xc-text train.txt --save-pipeline features");
    folder.ok("convert --from jsonl data/test.jsonl --to xc-text test.txt --pipeline features");
    folder.ok("convert --from xc-text train.txt --to npz x.npz --output-labels y.npz");
    folder.ok("convert --from npz x.npz --input-labels y.npz --to svmlight train.svm --output-base 1");
    folder.ok("train tree --train data/train.jsonl --model text");
    folder.ok("predict --model text --input data/test.jsonl --output text.txt");
    let expected = folder.read("text.txt");
    assert_eq!(expected.lines().count(), 300);
    for (name, options) in [
        ("xc", "--train train.txt"),
        ("npz", "--train x.npz --train-labels y.npz"),
        ("svmlight", "--train train.svm --svmlight-base 1"),
    ] {
        folder.ok(&format!("train tree {options} --model {name}"));
        folder.ok(&format!("predict --model {name} --input test.txt --output {name}.txt"));
        assert_eq!(folder.read(&format!("{name}.txt")), expected, "{name}");
    }
    // A model folder serves as a pipeline too.
    folder.ok("convert --from jsonl data/test.jsonl --to xc-text again.txt --pipeline text");
    assert_eq!(folder.read("again.txt"), folder.read("test.txt"));
}

#[test]
fn tfidf_is_kept_in_the_model_and_equals_weights_written_before() {
    let folder = Folder::new();
    folder.ok(&format!("{SMALL} --values counts --no-text --no-names"));
    folder.ok("convert --from xc-text data/train.txt --to xc-text train.txt --tfidf --save-pipeline w");
    folder.ok("convert --from xc-text data/test.txt --to xc-text test.txt --pipeline w");
    folder.ok("train tree --train data/train.txt --tfidf --model a");
    folder.ok("train tree --train train.txt --model b");
    folder.ok("predict --model a --input data/test.txt --output a.txt");
    folder.ok("predict --model b --input test.txt --output b.txt");
    assert_eq!(folder.read("a.txt"), folder.read("b.txt"));
}

#[test]
fn labels_by_name_are_learned_kept_and_answered() {
    let folder = Folder::new();
    let row = |text: &str, labels: &str| format!("{{\"title\":\"{text}\",\"body\":\"said\",\"labels\":[{labels}]}}\n");
    let animals = row("dog barks loud", "\"dog\",\"animal\"") + &row("cat purrs low", "\"cat\",\"animal\"");
    let things = row("red stone rolls", "\"stone\"");
    folder.write("train.jsonl", (animals.clone() + &things).repeat(4));
    folder.write("test.jsonl", animals + &row("dog barks", "\"animal\",\"unheard\""));
    let fields = "--text-fields title,body";
    folder.ok(&format!("train tree --train train.jsonl {fields} --model m"));
    assert_eq!(folder.read("m/labels.txt"), "animal\ncat\ndog\nstone\n");
    let named = folder.ok(&format!("predict --model m --input test.jsonl {fields} --top-k 2 --names"));
    let names: Vec<Vec<&str>> =
        named.lines().map(|l| l.split('\t').map(|e| e.rsplit_once(':').unwrap().0).collect()).collect();
    assert!(names[0].contains(&"dog") && names[1].contains(&"cat"), "{named}");
    let answers = folder.ok(&format!("predict --model m --input test.jsonl {fields} --top-k 2 --output-format jsonl"));
    let first = json(answers.lines().next().unwrap());
    let id = first["labels"][0].as_u64().unwrap() as usize;
    assert_eq!(first["names"][0], ["animal", "cat", "dog", "stone"][id]);
    // The truth names a label that training never saw: it is counted, and missed.
    folder.ok(&format!("predict --model m --input test.jsonl {fields} --top-k 2 --output p.txt"));
    let report =
        json(&folder.ok("evaluate --truth test.jsonl --label-names m/labels.txt --predictions p.txt --k 1 --json"));
    assert_eq!(report["counts"]["unknown_labels"], 1);
    assert_eq!(report["instances"], 3);
}

#[test]
fn labels_are_named_at_any_time_from_any_column() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder.ok("train tree --train data/train.txt --trees 1 --model m");
    let header = folder.read("data/train.txt");
    let n_labels: usize = header.lines().next().unwrap().split(' ').nth(2).unwrap().parse().unwrap();
    let column = |n: usize| (0..n).map(|i| format!("{i}\tlabel {i}\tsaid\n")).collect::<String>();
    folder.write("names.tsv", column(n_labels));
    let predict = "predict --model m --input data/test.txt --top-k 3";
    let ids = folder.ok(predict);
    let named = folder.ok(&format!("{predict} --names --label-names names.tsv --label-names-column 2"));
    let expected: Vec<String> = ids
        .lines()
        .map(|line| {
            line.split(' ').filter(|e| !e.is_empty()).map(|e| format!("label {e}")).collect::<Vec<_>>().join("\t")
        })
        .collect();
    assert_eq!(named.lines().collect::<Vec<_>>(), expected);
    // Requests name labels by them, too.
    let line = "{\"features\": {\"0\": 1}, \"candidates\": [\"label 1\", \"label 3\"]}\n";
    let ask = "predict --model m --input - --output-format jsonl --label-names names.tsv --label-names-column 2";
    let answer = json(&folder.answered(ask, line).stdout);
    assert_eq!(answer["names"].as_array().map(Vec::len), Some(2), "{answer}");
    folder
        .ok("train tree --train data/train.txt --trees 1 --label-names names.tsv --label-names-column 2 --model named");
    assert!(folder.read("named/labels.txt").starts_with("label 0\nlabel 1\n"));
    // A file of another length is named.
    folder.write("names.tsv", column(n_labels - 1));
    let short = format!("names.tsv: {} names; expected one for each of {n_labels} labels", n_labels - 1);
    folder.xc(&format!("{predict} --names --label-names names.tsv --label-names-column 2")).refused(2, &short);
    let beyond = format!("label {} has no name: names.tsv names {} labels, from 0 on", n_labels - 1, n_labels - 1);
    folder.write("one.jsonl", format!("{{\"features\":{{\"0\":1}},\"labels\":[{}]}}\n", n_labels - 1));
    let outcome = folder.xc("train tree --train one.jsonl --label-names names.tsv --label-names-column 2 --model n");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains(&beyond), "{}", outcome.stderr);
    folder
        .xc(&format!("{predict} --names --label-names names.tsv --label-names-column 4"))
        .refused(2, "names.tsv: line 1: got \"0\\tlabel 0\\tsaid\", expected a column of label names: columns are separated by tabs");
}

#[test]
fn pecos_models_go_out_and_come_back_with_the_same_answers() {
    let folder = Folder::new();
    folder.ok(SMALL);
    // What makes features stays behind.
    folder.ok("train tree --train data/train.txt --normalise false --model ours --trees 1");
    folder.ok("convert --from xc ours --to pecos theirs");
    folder.ok("convert --from pecos theirs --to xc back");
    for model in ["ours", "back"] {
        folder.ok(&format!("predict --model {model} --input data/test.txt --output {model}.txt"));
    }
    assert_eq!(folder.read("ours.txt"), folder.read("back.txt"));

    // Damage goes into no other form.
    let config = json(&folder.read("ours/config.json"));
    let file = config["arrays"]["tree0.level0.values"]["file"].as_str().unwrap();
    let arrays = folder.path(&format!("ours/{file}"));
    let mut bytes = std::fs::read(&arrays).unwrap();
    let n_header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = json(std::str::from_utf8(&bytes[8..8 + n_header]).unwrap());
    let at = header["tree0.level0.values"]["data_offsets"][0].as_u64().unwrap() as usize;
    // The last bit of a weight: its structure is sound.
    bytes[8 + n_header + at] ^= 1;
    std::fs::write(&arrays, bytes).unwrap();
    let outcome = folder.xc("convert --from xc ours --to pecos damaged");
    assert!(outcome.code == 2 && outcome.stderr.contains("damaged since it was saved"), "{outcome:?}");
    assert!(!folder.path("damaged").exists());
}

#[test]
fn reports_have_the_fields_that_scripts_read() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let report = json(&folder.ok("train tree --train data/train.txt --model m --validation data/test.txt --json"));
    for key in ["wall_s", "model_bytes", "P@1", "nDCG@5", "PSP@3", "instances"] {
        assert!(report[key].is_number(), "{key} in {report}");
    }
    assert_eq!(report["instances"], 300);
    assert!(json(&folder.read("m.log/train.json"))["parameters"]["cluster"]["branching"].is_number());
    for mode in ["online", "batch"] {
        let arguments =
            format!("bench predict --model m --input data/test.txt --mode {mode} --repeat 2 --top-k 3 --json");
        let report = json(&folder.ok(&arguments));
        let percentiles = ["p50_ms", "p95_ms", "p99_ms"];
        let of_queries = if mode == "online" { &percentiles[..] } else { &[] };
        for key in ["mean_ms", "load_ms", "model_bytes"].iter().chain(of_queries) {
            assert!(report[key].as_f64().unwrap() > 0.0, "{key} in {report}");
        }
        if mode == "online" {
            assert!(report["p50_ms"].as_f64() <= report["p99_ms"].as_f64(), "{report}");
        } else {
            // Passes are timed, no query is.
            assert!(percentiles.iter().all(|key| report.get(key).is_none()), "{report}");
        }
        assert_eq!(report["queries"], 300);
    }
    let plan = folder.ok("train tree --train data/train.txt --model other --tree.branching 8 --explain");
    assert!(plan.contains("1500 instances") && plan.contains("--tree.branching"), "{plan}");
    assert!(!folder.path("other").exists() && !folder.path("other.checkpoint").exists());
}

#[test]
fn options_come_from_a_file_and_what_is_typed_wins() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder
        .write("o.toml", "train = \"data/train.txt\"\ntrees = 2\n[tree]\nbranching = 8\n[linear]\nprune-below = 0.2\n");
    folder.ok("train tree --config o.toml --model m --tree.branching 4");
    let parameters = &json(&folder.read("m/config.json"))["parameters"]["training"];
    assert_eq!((&parameters["n_trees"], &parameters["cluster"]["branching"]), (&2.into(), &4.into()));
    let prune = parameters["linear"]["prune_below"].as_f64().unwrap();
    assert!((prune - 0.2).abs() < 1e-6, "{prune}");
    folder.write("bad.toml", "train = \"data/train.txt\"\n[tree]\nbranching = \"many\"\n");
    let outcome = folder.xc("train tree --config bad.toml --model n");
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.starts_with("xc: error: bad.toml: invalid value 'many' for '--tree.branching"),
        "{outcome:?}"
    );
}

#[test]
fn quickstart_shows_and_runs_the_four_steps() {
    let folder = Folder::new();
    let report = json(folder.ok("quickstart --output here --json").lines().last().unwrap());
    let p1 = report["P@1"].as_f64().unwrap();
    assert!((0.6..0.97).contains(&p1), "P@1 {p1}");
    assert_eq!(folder.names(), ["here"]);
}

#[test]
fn an_untrained_tree_of_a_wanted_shape_answers_and_imitates_a_trained_one() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder.ok("train tree --train data/train.txt --model trained");
    let shape = "generate --labels 2000 --features 3000 --tree.branching 16 --json";
    let report =
        json(&folder.ok(&format!("{shape} --model large --test-instances 50 --output queries --like trained")));
    assert_eq!((&report["labels"], &report["levels"]), (&2000.into(), &3.into()));
    let shares: Vec<f64> = report["overlap"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    assert!(shares.len() > 1 && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    let answers = folder.ok("predict --model large --input queries/test.txt --top-k 3");
    assert!(answers.lines().all(|l| l.split(' ').count() == 3) && answers.lines().count() == 50, "{answers}");
    folder.ok(&format!(
        "{shape} --model again --threads 1 --tree.overlap {}",
        shares.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
    ));
    assert!(contents(&folder.path("large")) == contents(&folder.path("again")), "threads show in the model");
}

#[test]
fn completions_know_the_commands_of_each_shell() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.ok(&format!("completions {shell}"));
        assert!(script.contains("quickstart") && script.contains("evaluate"), "{shell}");
    }
}
