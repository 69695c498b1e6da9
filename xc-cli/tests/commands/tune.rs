//! The search for options, from outside.

use crate::program::{Folder, Stream, files, json, npy, run, wait_until};
use serde_json::Value;
use std::fmt::Write;

const SMALL: &str = "generate --instances 300 --test-instances 100 --features 400 --labels 30 --words 30 --output data";
const TUNE: &str = "tune tree --train data/train.txt --trees 1 --trials 6";

/// The table of trials without times.
fn table(folder: &Folder, output: &str) -> Vec<Value> {
    let text = folder.read(&format!("{output}/trials.jsonl"));
    let line = |line: &str| {
        let mut row = json(line);
        assert!(row.as_object_mut().unwrap().remove("wall_s").is_some_and(|s| s.as_f64().unwrap() > 0.0));
        row
    };
    text.lines().map(line).collect()
}

/// Texts whose labels follow from the order of two words: single words say half of it.
fn pairs(rows: usize) -> String {
    let words = ["apple", "brick", "cloud", "daisy"];
    let mut text = String::new();
    for row in 0..rows {
        let (first, second) = (row % 4, (row / 4) % 4);
        let (first, second) = if first == second { (first, (second + 1) % 4) } else { (first, second) };
        let label = 4 * first + second;
        let (a, b) = (words[first], words[second]);
        writeln!(text, r#"{{"text": "{a} {b} filler{}", "labels": ["l{label}"]}}"#, row % 7).unwrap();
    }
    text
}

#[test]
fn the_same_seed_finds_the_same_at_any_number_of_threads_and_after_kills() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder.ok(&format!("{TUNE} --output one --threads 1 --seed 3"));
    folder.ok(&format!("{TUNE} --output two --threads 2 --seed 3"));
    let rows = table(&folder, "one");
    assert_eq!(rows, table(&folder, "two"));
    assert_eq!((&rows[0]["trial"], &rows[0]["rung"], &rows[0]["options"]), (&0.into(), &0.into(), &json("{}")));
    let fresh = rows.iter().filter(|row| row["rung"] == 0).count();
    assert!(fresh == 6 && rows.len() > 7, "{rows:?}");
    assert_eq!(folder.read("one/best.toml"), folder.read("two/best.toml"));
    assert!(files(&folder.path("one/model")) == files(&folder.path("two/model")), "other models");
    assert!(folder.read("one/trials.svg").starts_with("<svg"));
    let names = |output: &str| {
        let entries = std::fs::read_dir(folder.path(output)).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names("one"), ["best.toml", "model", "model.log", "trials", "trials.jsonl", "trials.svg"]);

    folder.resumed_after_kills(&format!("{TUNE} --output killed --seed 3"), 6, |attempt| 150 + 170 * attempt);
    assert_eq!(table(&folder, "killed"), rows);
    assert_eq!(folder.read("killed/best.toml"), folder.read("one/best.toml"));
    assert_eq!(names("killed"), names("one"));
    // What is finished is not done again, and more trials go on from it.
    folder.ok(&format!("{TUNE} --output killed --seed 3 --resume"));
    assert_eq!(table(&folder, "killed"), rows);
    folder.ok("tune tree --train data/train.txt --trees 1 --trials 9 --output killed --seed 3 --resume --no-model");
    let more = table(&folder, "killed");
    assert!(more.len() > rows.len() && more[..rows.len()] == rows, "{more:?}");
}

#[test]
fn what_is_better_is_found_and_the_training_takes_its_options() {
    let folder = Folder::new();
    folder.write("train.jsonl", pairs(480));
    folder.write("test.jsonl", pairs(100));
    let report =
        json(&folder.ok("tune tree --train train.jsonl --output out --trials 5 --trees 1 --text-fields text --json"));
    assert_eq!((&report["metric"], &report["options"]["text.ngrams"]), (&"P@1".into(), &"2".into()), "{report}");
    let value = |name: &str| report[name].as_f64().unwrap();
    assert!(value("value") > 0.95 && value("default") < 0.8, "{report}");
    assert!(value("difference") > value("standard_error"), "{report}");
    let best = folder.read("out/best.toml");
    assert!(best.contains("\ntext.ngrams = 2\n") && best.contains("\ntrees = 1\n"), "{best}");
    assert!(best.contains("\ntext-fields = \"text\"\n") && !best.contains("train"), "{best}");
    folder.ok("train tree --config out/best.toml --train train.jsonl --model mine");
    assert!(files(&folder.path("mine")) == files(&folder.path("out/model")), "two ways to train");
    let metrics = json(
        &folder.ok("train tree --config out/best.toml --train train.jsonl --validation test.jsonl --model m --json"),
    );
    assert!(metrics["P@1"].as_f64().unwrap() > 0.95, "{metrics}");
}

#[test]
fn options_of_every_kind_of_network_are_searched_and_the_training_takes_them() {
    let folder = Folder::new();
    folder.ok(SMALL);
    for kind in ["mach", "dense", "uniform", "lns", "astra"] {
        let tune = format!("tune {kind} --train data/train.txt --trials 4 --epochs 2 --seed 3");
        folder.ok(&format!("{tune} --output {kind}1 --threads 1"));
        folder.ok(&format!("{tune} --output {kind}2 --threads 2"));
        let rows = table(&folder, &format!("{kind}1"));
        assert_eq!(rows, table(&folder, &format!("{kind}2")), "{kind}");
        assert!(rows.iter().filter(|row| row["rung"] == 0).count() == 4 && rows.len() > 4, "{kind}: {rows:?}");
        // A third is learned from, the rest judges.
        let judged = rows[0]["instances"].as_u64().unwrap();
        assert!(judged > 150 && judged < 250 && rows[0]["P@1"].as_f64().unwrap() > 0.0, "{kind}: {rows:?}");
        folder.ok(&format!("train {kind} --config {kind}1/best.toml --train data/train.txt --model mine --seed 3"));
        assert!(
            files(&folder.path("mine")) == files(&folder.path(&format!("{kind}1/model"))),
            "{kind}: two ways to train"
        );
    }
}

#[test]
fn options_of_networks_over_vectors_are_searched() {
    let folder = Folder::new();
    let rows = 60;
    folder.write("x.npy", npy(rows, 4, |row, column| if column == row % 3 { 1.0 } else { 0.001 * row as f32 }));
    let labels: String = (0..rows).map(|row| format!("{}\n", row % 3)).collect();
    folder.write("y.txt", format!("{rows} 0 3\n{labels}"));
    folder.ok("tune dense --train y.txt --features x.npy --trials 3 --epochs 5 --output out");
    let rows = table(&folder, "out");
    assert!(rows.iter().all(|row| row["P@1"].is_number()) && rows.len() > 3, "{rows:?}");
}

#[test]
fn a_file_judges_where_one_is_given() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let text = folder.ok(
        "tune tree --train data/train.txt --validation data/test.txt --trees 1 --trials 4 --metric PSP@3 --no-model --output out",
    );
    assert!(text.contains("all rows") && text.contains("PSP@3"), "{text}");
    let rows = table(&folder, "out");
    assert!(rows.iter().all(|row| row["instances"] == 100 && row["PSP@3"].is_number()), "{rows:?}");
    assert!(rows.iter().all(|row| row["rung"].as_u64().unwrap() < 2) && !folder.path("out/model").exists());
}

#[test]
fn options_that_are_given_hold_for_all_trials_and_the_plan_is_explained() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let text = folder.ok("tune tree --train data/train.txt --output out --explain");
    for word in ["--trees", "3* 5 10", "--tfidf", "parts 1 to 5 of 5"] {
        assert!(text.contains(word), "{text}");
    }
    assert!(!text.contains("--text."), "{text}");
    let text = folder.ok("tune tree --train data/train.txt --output out --explain --trees 2 --validation-fraction 0.5");
    assert!(!text.contains("--trees") && text.contains("parts 1 to 2 of 2"), "{text}");
    assert!(!folder.path("out").exists());
}

#[test]
#[cfg(unix)]
fn an_interrupted_search_says_how_to_go_on() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let mut search =
        Stream::new(folder.command("tune tree --train data/train.txt --trials 50 --output out").arg("--quiet"));
    wait_until(|| folder.path("out/trials/run-1").exists());
    search.signal("INT");
    assert_eq!(search.ended(), (130, "xc: error: interrupted; go on with --resume\n".to_owned()));
    assert!(!table(&folder, "out").is_empty());
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder
        .xc("tune astra --train data/train.txt --patience 2 --output out")
        .refused(2, "--patience: belongs to xc train; a search has none");
    let tune = "tune tree --train data/train.txt --trees 1 --output out";
    for (more, expected) in [
        ("--trials 1", "--trials 1: 2 or more are expected, the default options among them"),
        ("--metric MAP", "--metric MAP: P, nDCG, PSP, PSnDCG or recall @ 1 to 5 is expected"),
        ("--metric P@6", "--metric P@6: P, nDCG, PSP, PSnDCG or recall @ 1 to 5 is expected"),
        ("--checkpoint c", "--checkpoint: belongs to xc train; a search has none"),
        ("--validation-fraction 0.7", "--validation-fraction 0.7: a share above 0, of at most 0.5 is expected"),
        (
            "--validation-fraction 0.2 --validation data/test.txt",
            "--validation-fraction 0.2: --validation judges; one of the two is expected",
        ),
        ("--linear.cost 0", "--linear.cost 0: expected a finite number above 0"),
    ] {
        folder.xc(&format!("{tune} {more}")).refused(2, expected);
    }
    assert!(!folder.path("out").exists());
    folder.xc("tune tree --train absent.txt --output out").refused(2, "absent.txt: No such file or directory");
    let outcome = folder.xc(&format!("{tune} --budget 20"));
    assert!(outcome.code == 2 && outcome.stderr.contains("expected a time such as 90s"), "{}", outcome.stderr);

    // Three instances, none of which falls into the part that judges.
    folder.write("few.txt", "3 4 2\n0 0:1\n1 1:1\n0 2:1\n");
    let outcome = folder.xc("tune tree --train few.txt --output few --trials 2 --validation-fraction 0.01");
    assert!(
        outcome.code == 2 && outcome.stderr.contains("instances of few.txt would be held out"),
        "{}",
        outcome.stderr
    );

    let outcome = folder.xc(&format!("{tune} --budget 0.001s"));
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("too short for one trial beside the default options")
            && outcome.stderr.contains("or more are expected (--resume keeps what is done)"),
        "{}",
        outcome.stderr
    );
    // What was done is there, and belongs to these data and options.
    folder
        .xc(&format!("{tune} --trials 2"))
        .refused(2, "out: not empty; --resume goes on with the search in it, --restart removes it");
    let foreign = |outcome: crate::program::Outcome| {
        assert!(
            outcome.code == 2 && outcome.stderr.contains("belongs to other data or settings"),
            "{}",
            outcome.stderr
        );
    };
    foreign(folder.xc(&format!("{tune} --trials 2 --resume --metric P@3")));
    foreign(folder.xc(&format!("{tune} --trials 2 --resume --seed 1")));
    folder.ok("generate --instances 301 --test-instances 10 --features 400 --labels 30 --words 30 --output other");
    foreign(folder.xc("tune tree --train other/train.txt --trees 1 --output out --trials 2 --resume"));
    folder.ok(&format!("{tune} --trials 3 --resume"));
    let before = table(&folder, "out");
    folder.ok(&format!("{tune} --trials 3 --restart"));
    assert_eq!(table(&folder, "out"), before);

    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/notes.txt", "mine");
    for more in ["", "--restart"] {
        folder
            .xc(&format!("tune tree --train data/train.txt --output mine {more}"))
            .refused(2, "mine: holds \"notes.txt\", which is no part of a search; a new or empty folder is expected");
    }
    assert_eq!(folder.read("mine/notes.txt"), "mine");
}

#[test]
fn every_trial_has_one_line_and_none_comes_from_the_trainings() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let outcome = run(&mut folder.command(&format!("{TUNE} --output out --no-model")));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(lines.len(), table(&folder, "out").len() + 1, "{}", outcome.stderr);
    assert!(lines[0].starts_with("xc: tune: trial 0, a third of the rows: P@1 "), "{}", lines[0]);
    assert!(lines[..lines.len() - 1].iter().all(|line| line.starts_with("xc: tune: trial ")), "{}", outcome.stderr);
}
