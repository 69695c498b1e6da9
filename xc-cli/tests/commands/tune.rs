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
        let tune = format!("tune {kind} --train data/train.txt --trials 4 --epochs 1 --seed 3");
        folder.ok(&format!("{tune} --output {kind}1 --threads 1"));
        folder.ok(&format!("{tune} --output {kind}2 --threads 2 --no-model"));
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

#[test]
fn a_search_in_parts_finds_what_one_process_does_round_by_round() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let tune = "tune tree --train data/train.txt --trees 1 --trials 9 --seed 3";
    // One process does every round; several do each a share of the first, or of all that there are.
    folder.ok(&format!("{tune} --part 0/1 --output whole"));
    folder.ok(&format!("{tune} --from whole --output one"));
    let parts = |round: &str, of: usize, from: &str| -> String {
        let names: Vec<String> = (0..of).map(|index| format!("{round}-{index}")).collect();
        for (index, name) in names.iter().enumerate() {
            folder.ok(&format!("{tune} --part {index}/{of} {from} --output {name}"));
            assert!(!folder.path(name).join("model").exists() && !folder.path(name).join("best.toml").exists());
        }
        // The order of the folders says nothing.
        names.into_iter().rev().collect::<Vec<_>>().join(" ")
    };
    let first = parts("first", 4, "");
    let rows: Vec<usize> = (0..4).map(|index| table(&folder, &format!("first-{index}")).len()).collect();
    assert_eq!(rows, [3, 2, 2, 2]);
    folder.ok(&format!("{tune} --from {first} --output short"));
    let second = parts("second", 2, &format!("--from {first}"));
    let third = parts("third", 5, &format!("--from {second} {first}"));
    folder.ok(&format!("{tune} --from {first} {third} {second} --output long"));
    let rows = table(&folder, "one");
    assert!(rows.iter().filter(|row| row["rung"] == 0).count() == 9, "{rows:?}");
    assert!((1..4).all(|rung| rows.iter().any(|row| row["rung"] == rung)), "{rows:?}");
    for output in ["short", "long"] {
        assert_eq!(table(&folder, output), rows, "{output}");
        assert_eq!(folder.read(&format!("{output}/best.toml")), folder.read("one/best.toml"), "{output}");
        assert!(
            files(&folder.path(output).join("model")) == files(&folder.path("one/model")),
            "{output}: other models"
        );
    }
    // The first part that is judged on a rung by itself has nothing to be compared with, and says so in its table.
    assert!(table(&folder, "first-1").iter().all(|row| row.get("difference").is_none() && row["P@1"].is_number()));

    // What is finished is not done again.
    folder.ok(&format!("{tune} --part 1/4 --output first-1 --resume"));
    folder.resumed_after_kills(&format!("{tune} --part 1/3 --output killed"), 3, |attempt| 100 + 150 * attempt);
    folder.ok(&format!("{tune} --part 0/3 --output other-0"));
    folder.ok(&format!("{tune} --part 2/3 --output other-2"));
    folder.ok(&format!("{tune} --from other-0 killed other-2 --output again --no-model"));
    assert_eq!(table(&folder, "again"), rows);
    let fourth = parts("fourth", 1, &format!("--from {first} {second} {third}"));
    folder
        .xc(&format!("{tune} --from {first} {second} {third} {fourth} --part 0/2 --output p"))
        .refused(2, "--part 0/2: all trials are judged; no --part is expected, which ends the search");

    let refused = |more: &str, line: &str| folder.xc(&format!("{tune} --output p {more}")).refused(2, line);
    let part = |more: &str, line: &str| refused(&format!("--from {more}"), line);
    part(
        "first-0 first-1 first-3",
        "--from: part 2/4 of the trials by a third of the rows is missing: 3 of 4 parts are given",
    );
    part("first-0 first-1 first-0", "first-0: is part 0/4, as is first-0; each part once is expected");
    part("first-0 other-2", "other-2: is part 2/3, expected a part of 4 as first-0");
    part("second-0 second-1", "second-0: holds other trials than the rounds before give, or these are not in --from");
    part("data", "data/part: not there; the --output of an `xc tune --part` that has ended is expected");
    let other = "was made with other data or options; the same for all parts are expected";
    let first_path = "first-0/part";
    for more in ["--metric P@3", "--trials 8", "--seed 4", "--trees 2"] {
        let name = more.split(' ').next().unwrap();
        let tune = tune.split(&format!("{name} ")).collect::<Vec<_>>();
        let without = match tune[..] {
            [before, after] => format!("{before}{}", after.split_once(' ').map_or("", |(_, rest)| rest)),
            _ => tune.concat(),
        };
        folder.xc(&format!("{without} {more} --from first-0 --output p")).refused(2, &format!("{first_path}: {other}"));
    }
    let trials = "tune tree --train data/train.txt --output p";
    folder
        .xc(&format!("{trials} --part 0/2"))
        .refused(2, "--part 0/2: shares out a number of trials; --trials N is expected, the same for all parts");
    folder
        .xc(&format!("{trials} --from first-0"))
        .refused(2, "--from: shares out a number of trials; --trials N is expected, the same for all parts");
    folder.xc(&format!("{trials} --trials 4 --budget 20s --part 0/2")).refused(
        2,
        "--budget: trials that are shared out have no time of their own; --trials N is expected (--part 0/2)",
    );
    assert!(!folder.path("p").exists());
    // A changed byte.
    let path = folder.path("first-2/part/config.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("wall_s", "wall_t", 1)).unwrap();
    let outcome = folder.xc(&format!("{tune} --from {first} --output p"));
    assert!(outcome.code == 2 && outcome.stderr.contains("first-2/part"), "{}", outcome.stderr);
}
