//! Networks whose steps score some labels, from outside.

use crate::program::{Folder, contents, json};

const DATA: &str =
    "generate --instances 800 --test-instances 200 --features 2000 --labels 150 --words 50 --output data";
const QUICK: &str = "--network.widths 24 --epochs 12 --optimizer.rate 0.02 --batch-size 64";

fn precision(folder: &Folder, model: &str, input: &str) -> f64 {
    folder.ok(&format!("predict --model {model} --input {input} --output {model}.txt"));
    let report = json(&folder.ok(&format!("evaluate --truth {input} --predictions {model}.txt --json")));
    report["P@1"].as_f64().unwrap()
}

#[test]
fn every_sampler_loss_and_list_learns_and_says_what_its_steps_took() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (more, rows) in [
        ("", 150.0),
        ("--sampler all --head.precision bf16 --loss softmax", 150.0),
        ("--sampler uniform --negatives.sampled 40", 140.0),
        ("--sampler uniform --negatives.sampled 40 --negatives.shared false --loss softmax", 150.0),
        ("--sampler log-uniform --negatives.sampled 60 --loss nce", 150.0),
        ("--sampler frequency --negatives.sampled 60 --loss nce --negatives.shared false --head.precision bf16", 150.0),
        ("--sampler in-batch --negatives.uniform 0", 150.0),
        ("--sampler top-k --negatives.sampled 5 --negatives.uniform 30 --weight-cap 0", 150.0),
        ("--sampler lsh-embedding --negatives.sampled 5 --negatives.uniform 30 --tables 8 --codes 2", 150.0),
        (
            "--sampler lsh-label --negatives.sampled 20 --negatives.shared false --loss softmax --tables.family sim-hash --upkeep immediate",
            150.0,
        ),
        ("--sampler midx --negatives.sampled 5 --negatives.uniform 30", 150.0),
        ("--sampler midx --negatives.sampled 30 --negatives.shared false --negatives.uniform 0 --loss nce", 150.0),
        (
            "--negatives.shared false --negatives.sampled 20 --negatives.uniform 20 --upkeep rebuild --upkeep.every 10",
            150.0,
        ),
    ] {
        let train =
            format!("train lns --train data/train.txt --validation data/test.txt --model m {QUICK} --json {more}");
        let report = json(&folder.ok(&train));
        let (seen, held_out) = (precision(&folder, "m", "data/train.txt"), precision(&folder, "m", "data/test.txt"));
        assert!(seen > 0.5 && held_out > 0.2, "{more}: P@1 {seen} of what it learned, {held_out} of others");
        assert!((report["P@1"].as_f64().unwrap() - held_out).abs() < 1e-9, "{more}");
        let (ms, counts) = (&report["cost"]["ms"], &report["cost"]["per_step"]);
        // Own lists and tiles score while they learn.
        for stage in ["encode", "backward"] {
            assert!(ms[stage].as_f64().unwrap() > 0.0, "{more}: {stage} took no time: {ms}");
        }
        // In epochs of 13 steps the twelfth has the 100th and more.
        let has_tables = ["lsh", "--tables", "--upkeep"].iter().any(|word| more.contains(word));
        let read = counts["rows_read"].as_f64().unwrap();
        assert!(read > 1.0 && read <= rows && counts["rows_written"] == counts["rows_read"], "{more}: {counts}");
        assert!(report["cost"]["staleness"].as_f64().is_some_and(|share| share < 0.5) == has_tables, "{more}");
        let log = folder.read("m.log/log.jsonl");
        assert!(json(log.lines().next().unwrap())["cost"]["ms"]["score"].is_number(), "{more}: {log}");
    }
    let mut again = folder.command(&format!(
        "train lns --train data/train.txt --model m {QUICK} --negatives.sampled 5 --negatives.uniform 40"
    ));
    let told = again.output().unwrap();
    let told = String::from_utf8_lossy(&told.stderr);
    assert!(told.contains("a step: encode ") && told.contains("rows read"), "{told}");
}

#[test]
fn a_model_is_the_same_at_any_number_of_threads_and_is_inspected_and_measured() {
    let folder = Folder::new();
    folder.ok(DATA);
    for more in [
        "--negatives.sampled 5 --negatives.uniform 40",
        "--negatives.sampled 20 --negatives.shared false --head.precision bf16",
    ] {
        for threads in [1, 2, 3] {
            let train = format!("train lns --train data/train.txt --model m{threads} --seed 4 --threads {threads}");
            folder.ok(&format!("{train} {QUICK} {more}"));
        }
        let one = contents(&folder.path("m1"));
        assert!(one == contents(&folder.path("m2")) && one == contents(&folder.path("m3")), "{more}");
    }
    let about = json(&folder.ok("inspect m1 --verify --json"));
    assert_eq!(about["kind"], "lns");
    folder.ok("bench predict --model m1 --input data/test.txt --mode online --top-k 5 --json");
    folder.ok("bench predict --model m1 --input data/test.txt --mode batch --top-k 5 --json");
}

#[test]
fn what_is_impossible_about_candidates_is_refused_in_one_line() {
    let folder = Folder::new();
    folder.ok(DATA);
    let refused = |more: &str, why: &str| {
        let outcome = folder.xc(&format!("train lns --train data/train.txt --model m {QUICK} {more}"));
        assert!(outcome.code == 2 && outcome.stderr.contains(why), "{more}: {outcome:?}");
    };
    refused(
        "--sampler uniform --negatives.sampled 150",
        "--negatives.sampled: 150 of 150 labels; fewer are expected, or --sampler all",
    );
    refused(
        "--negatives.sampled 100 --negatives.uniform 60",
        "--negatives.uniform: 160 of 150 labels; fewer are expected",
    );
    refused(
        "--sampler in-batch",
        "--sampler: in-batch takes 2000 labels unless told otherwise, of 150 here; --negatives.uniform for fewer, or --sampler all",
    );
    refused("--negatives.sampled 0", "--negatives.sampled: 0 labels, expected at least 1");
    refused(
        "--sampler all --negatives.sampled 5",
        "--negatives.sampled has no effect with --sampler all: choose a --sampler other than all or in-batch, or leave it out",
    );
    refused(
        "--sampler in-batch --negatives.sampled 5",
        "--negatives.sampled has no effect with --sampler in-batch: choose a --sampler other than all or in-batch, or leave it out",
    );
    refused(
        "--sampler all --negatives.uniform 5",
        "--negatives.uniform has no effect with --sampler all: choose a --sampler other than all, or leave it out",
    );
    refused(
        "--negatives.sampled 5 --negatives.uniform 9 --weight-cap -1",
        "--weight-cap: cap is -1, expected a finite number above 0",
    );
    let nce = "--loss: loss nce with a sampler that does not know the chance of every label";
    refused("--sampler top-k --negatives.sampled 5 --negatives.uniform 0 --loss nce", nce);
    let drawn = "--sampler uniform --negatives.sampled 40 --loss nce";
    refused(&format!("{drawn} --weighting none"), "loss nce with another weighting than log-q");
    refused(&format!("{drawn} --negatives.uniform 5 --weighting log-q"), "loss nce with uniform labels in addition");
    refused(
        "--sampler uniform --negatives.sampled 40 --tables 5",
        "--tables has no effect with --sampler uniform: add --sampler lsh-embedding or lsh-label, or leave it out",
    );
    refused(
        "--negatives.sampled 5 --negatives.uniform 9 --upkeep.share=-1",
        "--upkeep.share: share is -1, expected a finite number from 0 on",
    );
    refused(
        "--negatives.sampled 5 --negatives.uniform 0 --weighting inverse",
        "--weighting: the chance that wta tables find a label",
    );
    refused("--negatives.sampled 5 --negatives.uniform 9 --tables 0", "--tables: ");
    refused("--negatives.sampled 5 --negatives.uniform 9 --codes 200", "--tables: ");
    refused(
        "--negatives.sampled 5 --negatives.uniform 9 --upkeep.share nan",
        "invalid value 'nan' for '--upkeep.share <X>'",
    );
    refused("--sampler tables", "invalid value 'tables' for '--sampler <SAMPLER>'");
    assert!(!folder.path("m").exists());
}

#[test]
fn killed_within_an_epoch_it_resumes_to_the_same_bytes_tables_included() {
    let folder = Folder::new();
    folder.ok(DATA);
    let tables = "--negatives.sampled 5 --negatives.uniform 30 --tables 8 --codes 2";
    for (at, more) in [
        format!("{tables} --upkeep drift"),
        format!("{tables} --upkeep rebuild --upkeep.every 7"),
        "--negatives.sampled 20 --negatives.shared false --tables 8 --codes 2 --upkeep immediate --head.precision bf16"
            .to_owned(),
        "--sampler midx --negatives.sampled 20 --negatives.shared false --optimizer row-adagrad".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        // Thirteen steps an epoch.
        let train = format!(
            "train lns --train data/train.txt --network.widths 24 --batch-size 64 --epochs 16 --checkpoint-every 3 {more}"
        );
        for threads in [1, 3] {
            folder.ok(&format!("{train} --model straight{at}-{threads} --threads {threads}"));
        }
        folder.resumed_after_kills(&format!("{train} --model m{at}"), 4, |attempt| 60 + 97 * attempt % 400);
        let straight = contents(&folder.path(&format!("straight{at}-1")));
        assert!(straight == contents(&folder.path(&format!("straight{at}-3"))), "{more}: threads");
        assert!(straight == contents(&folder.path(&format!("m{at}"))), "{more}: resumed");
    }
}

#[test]
fn tables_beyond_memory_are_refused_with_a_number_that_fits() {
    let folder = Folder::new();
    folder.ok("generate --instances 400 --features 500 --labels 20000 --no-text --no-names --output d");
    let train = "train lns --train d/train.txt --network.widths 16 --wide off --epochs 1 --codes 3 --negatives.sampled 2 --negatives.uniform 9";
    let outcome = folder.xc(&format!("{train} --tables 400 --model m --max-memory 100M"));
    assert!(outcome.code == 3 && outcome.stderr.contains("needs about"), "{outcome:?}");
    let (_, rest) = outcome.stderr.split_once("with --tables ").unwrap_or_else(|| panic!("{outcome:?}"));
    let n_tables: u32 = rest.split(' ').next().unwrap().parse().unwrap();
    assert!((1..400).contains(&n_tables));
    folder.ok(&format!("{train} --tables {n_tables} --model m --max-memory 100M"));
    // Not many more would fit: what the program itself has resident differs a little from run to run.
    let more = folder.xc(&format!("{train} --tables {} --model n --max-memory 100M", n_tables * 3 / 2 + 8));
    assert!(more.code == 3 && more.stderr.contains("with --tables "), "{more:?}");
}

#[test]
fn a_checkpoint_of_other_settings_is_refused() {
    let folder = Folder::new();
    folder.ok(DATA);
    let train = "train lns --train data/train.txt --model m --network.widths 8 --batch-size 64 --checkpoint-every 1";
    let mut child = folder
        .command(&format!("{train} --epochs 4000 --negatives.sampled 5 --negatives.uniform 40 --quiet"))
        .spawn()
        .unwrap();
    let state = folder.path("m.checkpoint");
    // What is still being written lies in a folder whose name begins with a dot.
    let is_part = |e: std::fs::DirEntry| {
        !e.file_name().to_string_lossy().starts_with('.') && e.path().join("config.json").exists()
    };
    let has_part = || std::fs::read_dir(&state).is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(is_part)));
    let began = std::time::Instant::now();
    while !has_part() && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let outcome = folder.xc(&format!("{train} --epochs 4000 --negatives.sampled 5 --negatives.uniform 41 --resume"));
    assert!(outcome.code == 2 && outcome.stderr.contains("checkpoint"), "{outcome:?}");
}
