//! Networks whose steps score the hardest labels, from outside.

use crate::program::{Folder, contents, json};
use std::fmt::Write;

const DATA: &str =
    "generate --instances 800 --test-instances 200 --features 2000 --labels 150 --words 50 --output data";
const QUICK: &str = "--network.widths 24 --epochs 12 --optimizer.rate 0.02 --batch-size 64";
/// An index over as few labels as there are.
const INDEX: &str = "--index.exact-below 0 --negatives.hard 5 --negatives.uniform 30";

fn precision(folder: &Folder, model: &str, input: &str) -> f64 {
    folder.ok(&format!("predict --model {model} --input {input} --output {model}.txt"));
    let report = json(&folder.ok(&format!("evaluate --truth {input} --predictions {model}.txt --json")));
    report["P@1"].as_f64().unwrap()
}

/// One row a label in the features of the training instances: label l has feature l.
fn label_rows(folder: &Folder) {
    let mut text = "150 2000 150\n".to_owned();
    (0..150).for_each(|label| writeln!(text, "{label} {label}:1").unwrap());
    folder.write("labels.xc", text);
}

#[test]
fn every_strategy_learns_and_says_what_its_steps_took() {
    let folder = Folder::new();
    folder.ok(DATA);
    label_rows(&folder);
    for more in [
        "--negatives.hard 5 --negatives.uniform 30",
        INDEX,
        "--index.exact-below 0 --negatives.hard 5 --negatives.uniform 30 --negatives.shared false --index.every 7 --index.recall 0.8",
        "--retrieval exact --negatives.hard 5 --negatives.uniform 30 --weighting unbiased",
        "--retrieval schedule --retrieval.every 2 --negatives.hard 5 --negatives.uniform 30",
        "--negatives.hard 5 --negatives.uniform 30 --hard-from-epoch 4 --weighting none",
        "--sampler random --negatives.uniform 60 --loss softmax",
        "--sampler in-batch --head.precision bf16",
        "--sampler all",
        "--sampler label-text --negatives.hard 5 --negatives.uniform 30 --label-features labels.xc --format xc",
    ] {
        let train =
            format!("train astra --train data/train.txt --validation data/test.txt --model m {QUICK} --json {more}");
        let report = json(&folder.ok(&train));
        let (seen, held_out) = (precision(&folder, "m", "data/train.txt"), precision(&folder, "m", "data/test.txt"));
        assert!(seen > 0.5 && held_out > 0.2, "{more}: P@1 {seen} of what it learned, {held_out} of others");
        let (ms, read) = (&report["cost"]["ms"], report["cost"]["per_step"]["rows_read"].as_f64().unwrap());
        let searches =
            ["--negatives.hard", "--index"].iter().any(|word| more.contains(word)) && !more.contains("schedule");
        assert_eq!(ms["search"].as_f64().unwrap() > 0.0, searches, "{more}: {ms}");
        assert!(read > 1.0 && read <= 150.0, "{more}: {read} rows");
    }
    let mut again = folder.command(&format!("train astra --train data/train.txt --model m {QUICK} {INDEX}"));
    let told = again.output().unwrap();
    let told = String::from_utf8_lossy(&told.stderr);
    for stage in ["stage ", "encode ", "retrieve ", "list ", "head ", "refresh ", "wait ", "step "] {
        assert!(told.contains(stage), "{stage}: {told}");
    }
    assert!(told.contains("150 labels: steps over all of them take little more time (--sampler all)"), "{told}");
    assert_eq!(json(&folder.ok("inspect m --verify --json"))["kind"], "astra");
}

#[test]
fn a_model_is_the_same_at_any_number_of_threads() {
    let folder = Folder::new();
    folder.ok(DATA);
    for more in [
        INDEX,
        "--retrieval schedule --retrieval.every 1 --negatives.hard 5 --negatives.uniform 30",
        "--negatives.hard 5 --negatives.shared false",
    ] {
        for threads in [1, 2, 3] {
            let train = format!("train astra --train data/train.txt --model m{threads} --seed 4 --threads {threads}");
            folder.ok(&format!("{train} {QUICK} {more}"));
        }
        let one = contents(&folder.path("m1"));
        assert!(one == contents(&folder.path("m2")) && one == contents(&folder.path("m3")), "{more}");
    }
}

#[test]
fn killed_within_an_epoch_it_resumes_to_the_same_bytes_index_included() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (at, more) in [
        format!("{INDEX} --index.every 5"),
        "--retrieval schedule --retrieval.every 2 --negatives.hard 5 --negatives.uniform 30".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        // Thirteen steps an epoch.
        let train = format!(
            "train astra --train data/train.txt --network.widths 24 --batch-size 64 --epochs 16 --checkpoint-every 3 {more}"
        );
        folder.ok(&format!("{train} --model straight{at}"));
        folder.resumed_after_kills(&format!("{train} --model m{at}"), 4, |attempt| 60 + 97 * attempt % 400);
        assert!(
            contents(&folder.path(&format!("straight{at}"))) == contents(&folder.path(&format!("m{at}"))),
            "{more}: resumed"
        );
    }
}

#[test]
fn a_plan_is_told_and_nothing_is_trained() {
    let folder = Folder::new();
    folder.ok(DATA);
    let plan = folder.ok("train astra --train data/train.txt --model m --explain --negatives.hard 7");
    for said in
        ["7 hard labels per instance by comparing all", "150 uniform ones per list", "at most 4", "--sampler all:"]
    {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    let plan = json(&folder.ok("train astra --train data/train.txt --model m --explain --json --sampler random"));
    assert_eq!(plan["plan"][0]["about"], "data");
    assert!(!folder.path("m").exists() && !folder.path("m.checkpoint").exists() && !folder.path("m.log").exists());
}

#[test]
fn what_is_impossible_about_negatives_is_refused_in_one_line() {
    let folder = Folder::new();
    folder.ok(DATA);
    label_rows(&folder);
    let refused = |more: &str, why: &str| {
        let outcome = folder.xc(&format!("train astra --train data/train.txt --model m {QUICK} {more}"));
        assert!(outcome.code == 2 && outcome.stderr.contains(why), "{more}: {outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    };
    refused("--negatives.hard 150", "--negatives.hard: 150 of 150 labels; fewer are expected, or --sampler all");
    refused("--negatives.uniform 200", "--negatives.uniform: 200 of 150 labels; fewer are expected, or --sampler all");
    refused("--negatives.hard 0", "--negatives.hard: 0, expected at least 1");
    refused("--sampler random --negatives.uniform 0", "--negatives.uniform: 0, expected at least 1");
    refused(
        "--sampler all --negatives.uniform 5",
        "--negatives.uniform has no effect with --sampler all: choose a --sampler other than all, or leave it out",
    );
    refused(
        "--sampler random --negatives.hard 5",
        "--negatives.hard has no effect with --sampler random: add --sampler weights or label-text, or leave it out",
    );
    refused(
        "--retrieval.every 2",
        "--retrieval.every has no effect with --retrieval in-step: add --retrieval schedule, or leave it out",
    );
    refused(
        "--retrieval exact --index.every 5",
        "--index.every has no effect with --retrieval exact: add --retrieval in-step, or leave it out",
    );
    refused("--retrieval schedule --hard-from-epoch 2", "--hard-from-epoch: a schedule keeps vectors in one epoch");
    refused("--hard-from-epoch 0", "--hard-from-epoch: 0, expected at least 1");
    refused("--index.recall 2", "--index.recall: recall is 2, expected a share above 0, at most 1");
    refused("--weight-cap -1", "--weight-cap: cap is -1, expected a finite number above 0");
    refused("--sampler label-text", "--sampler label-text: texts of the labels are expected (--label-features FILE)");
    refused("--label-features absent.xc", "absent.xc: No such file or directory");
    folder.write("few.xc", "2 2000 150\n0 0:1\n1 1:1\n");
    refused("--label-features few.xc", "few.xc: 2 rows; one for each of the 150 labels is expected");
    assert!(!folder.path("m").exists());
}
