//! Text features from outside: sizes a kind of terms, slots for unknown terms, folding.

use crate::program::{Folder, contents};
use serde_json::{Value, json};

const SMALL: &str =
    "generate --instances 600 --test-instances 100 --features 2000 --labels 60 --words 40 --output data";

fn config(folder: &Folder, model: &str) -> Value {
    serde_json::from_str(&folder.read(&format!("{model}/config.json"))).unwrap()
}

#[test]
fn the_mach_preset_is_kept_in_the_model_and_makes_the_same_features_at_serving() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder.ok("train tree --train data/train.jsonl --model text --text.preset mach --threads 2");
    folder.ok("predict --model text --input data/test.jsonl --output text.txt");

    let pipeline = &config(&folder, "text")["pipeline"];
    let params = &pipeline["params"];
    assert_eq!((&pipeline["version"], &pipeline["n_features"]), (&json!(1), &json!(80_000)));
    assert_eq!((&params["oov_slots"], &params["fold"]["n_features"]), (&json!(500_000), &json!(80_000)));
    let sizes: Vec<&Value> = params["blocks"].as_array().unwrap().iter().map(|b| &b["slots"]["max_features"]).collect();
    assert_eq!(sizes, [125_000, 20_000, 70_000]);

    // A pipeline fitted apart and one taken out of the model write the same features, and these
    // train the same tree.
    folder.ok("convert --from jsonl data/train.jsonl --to xc-text train.txt --text.preset mach --save-pipeline apart");
    folder.ok("convert --from jsonl data/train.jsonl --to xc-text again.txt --pipeline text");
    assert!(folder.read("train.txt") == folder.read("again.txt"), "the stored pipeline makes other features");
    folder.ok("convert --from jsonl data/test.jsonl --to xc-text test.txt --pipeline apart");
    assert!(folder.read("test.txt").starts_with("100 80000 "), "{:.20}", folder.read("test.txt"));
    folder.ok("train tree --train train.txt --model features");
    folder.ok("predict --model features --input test.txt --output features.txt");
    assert_eq!(folder.read("features.txt"), folder.read("text.txt"));
    // One query at a time, as a server would.
    let test = std::fs::read(folder.path("data/test.jsonl")).unwrap();
    let mut served = folder.command("predict --model text --input - --quiet");
    let mut child = served.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &test).unwrap());
    let answers = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    feed.join().unwrap();
    assert_eq!(answers, folder.read("text.txt"));

    folder.ok("train tree --train data/train.jsonl --model one --text.preset mach --threads 1");
    assert!(contents(&folder.path("one")) == contents(&folder.path("text")), "threads show in the model");
}

#[test]
fn single_sizes_change_the_preset_and_stand_alone() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let kinds = |model: &str| -> Vec<(String, u64)> {
        let blocks = config(&folder, model)["pipeline"]["params"]["blocks"].clone();
        let kind = |b: &Value| format!("{} {}", b["grams"]["kind"].as_str().unwrap(), b["grams"]["min"]);
        let size = |b: &Value| b["slots"]["max_features"].as_u64().unwrap();
        blocks.as_array().unwrap().iter().map(|b| (kind(b), size(b))).collect()
    };
    let train = "train tree --train data/train.jsonl";
    folder.ok(&format!("{train} --model a --text.preset mach --text.pairs 0 --text.words 70 --text.fold 300"));
    assert_eq!(kinds("a"), [("words 1".into(), 70), ("chars-in-words 3".into(), 70_000)]);
    assert_eq!(config(&folder, "a")["pipeline"]["n_features"], 300);

    folder.ok(&format!("{train} --model b --text.pairs 90"));
    assert_eq!(kinds("b"), [("words 2".into(), 90)]);
    let pipeline = &config(&folder, "b")["pipeline"];
    assert_eq!((&pipeline["n_features"], &pipeline["version"]), (&json!(90), &json!(1)));

    folder.ok(&format!("{train} --model c --text.max-features 50 --text.oov 25"));
    let c = &config(&folder, "c")["pipeline"];
    assert_eq!((&c["n_features"], &c["params"]["fold"]), (&json!(75), &Value::Null));
}

#[test]
fn a_bound_on_memory_costs_passes_and_changes_nothing() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let convert = "convert --from jsonl data/train.jsonl --to xc-text --text.pairs 500 --text.words 100 --text.oov 30";
    folder.ok(&format!("{convert} free.txt"));
    folder.ok(&format!("{convert} bounded.txt --max-memory 1M"));
    assert!(folder.read("free.txt") == folder.read("bounded.txt"), "the bound shows");
    let outcome = folder.xc(&format!("{convert} none.txt --max-memory 1k"));
    outcome.refused(
        3,
        "data/train.jsonl: the different terms of the texts do not fit into 250 bytes, even in 64 passes over them; \
         --max-memory is too small",
    );
    assert!(!folder.path("none.txt").exists());
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let folder = Folder::new();
    folder.write("train.jsonl", "{\"text\": \"a b c\", \"labels\": [0]}\n");
    let refuse = |options: &str, expected: &str| {
        let outcome = folder.xc(&format!("train tree --train train.jsonl --model m {options}"));
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{outcome:?}");
        assert!(outcome.stderr.contains(expected), "expected {expected:?} in {:?}", outcome.stderr);
    };
    refuse("--text.words 5 --text.ngrams 2", "'--text.words <N>' cannot be used with '--text.ngrams <N>'");
    refuse("--text.trigrams 5 --text.chars 3-3", "'--text.trigrams <N>' cannot be used with '--text.chars");
    refuse("--text.preset mach --text.max-features 7", "'--text.preset <NAME>' cannot be used with");
    refuse("--text.preset mach --text.hash 7", "'--text.preset <NAME>' cannot be used with '--text.hash <N>'");
    refuse("--text.oov 5 --text.hash 7", "'--text.oov <N>' cannot be used with '--text.hash <N>'");
    refuse("--text.fold 5 --text.hash 7", "'--text.fold <N>' cannot be used with '--text.hash <N>'");
    refuse("--text.preset parabel", "invalid value 'parabel' for '--text.preset <NAME>' [possible values: mach]");
    refuse("--text.words 0", "--text.*: there is no block of features");
    refuse("--text.fold 4000000000", "fold: n_features is 4000000000; it must lie between 1 and 2147483648");
    assert!(!folder.path("m").exists());
}
