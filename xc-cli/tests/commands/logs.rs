//! What a training run leaves beside its model, and says meanwhile.

use crate::program::{Folder, json, run};

const SMALL: &str =
    "generate --instances 600 --test-instances 200 --features 2000 --labels 90 --words 60 --output data";

#[test]
fn trees_have_a_curve_over_their_number() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let report = json(&folder.ok("train tree --train data/train.txt --validation data/test.txt --model m --json"));
    let log = folder.read("m.log/log.jsonl");
    let lines: Vec<_> = log.lines().map(json).collect();
    let numbers: Vec<u64> = lines.iter().map(|line| line["trees"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    for metric in ["P@1", "P@5", "PSP@3"] {
        assert_eq!(lines[2][metric], report[metric]);
    }
    assert!(lines[0]["P@5"] != lines[2]["P@5"], "{log}");
    // A part of the ensemble answers as a model that has no other trees.
    folder.ok("convert --from xc m --to xc two --trees 2");
    folder.ok("predict --model two --input data/test.txt --top-k 5 --output two.answers");
    let two = json(&folder.ok("evaluate --truth data/test.txt --predictions two.answers --json"));
    assert_eq!(lines[1]["P@3"], two["P@3"]);
    let picture = folder.read("m.log/curve.svg");
    assert!(picture.starts_with("<svg") && picture.contains("PSP@5") && picture.contains("trees"));

    folder.ok("train tree --train data/train.txt --model n");
    assert!(!folder.path("n.log/curve.svg").exists(), "a curve without instances that judge");
}

#[test]
fn the_last_line_of_each_task_says_that_it_is_done() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let outcome = run(&mut folder.command("train tree --train data/train.txt --model m --trees 2 --progress json"));
    let lines = outcome.stderr.lines().filter(|line| line.starts_with('{')).map(json);
    let lines: Vec<_> = lines.filter(|line| line["total"].is_number()).collect();
    let tasks: std::collections::BTreeSet<&str> = lines.iter().filter_map(|line| line["task"].as_str()).collect();
    for part in ["label vectors", "clustering labels", "level 1"] {
        let task = tasks.iter().find(|task| task.contains(part)).unwrap_or_else(|| panic!("{part}: {tasks:?}"));
        let last = lines.iter().rfind(|line| line["task"] == **task).unwrap();
        assert_eq!(last["done"], last["total"], "{last}");
    }
}
