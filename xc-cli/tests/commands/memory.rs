//! What commands foresee of their memory, and what happens where there is not so much.

use crate::program::{Folder, Outcome, contents, json, run};
use std::process::{Command, Stdio};

/// Some thousand labels, whose trees weigh more than the program and the data.
const DATA: &str = "generate --instances 6000 --test-instances 50 --features 8000 --labels 3000 --no-text --no-names \
                    --output data";

/// Estimate and peak of a training run.
fn trained(folder: &Folder, more: &str) -> (f64, f64) {
    let report = json(&folder.ok(&format!("train {more} --json")));
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    (number(&report["memory"]["total_bytes"]), number(&report["peak_rss_bytes"]))
}

#[track_caller]
fn is_refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!((outcome.code, &*outcome.stdout), (3, ""), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    for words in words {
        assert!(outcome.stderr.contains(words), "{words:?} in {}", outcome.stderr);
    }
}

#[test]
#[ignore = "trains to the peak, with .ci/run --all"]
fn sixteen_trees_take_the_memory_of_one_and_no_more_than_was_foreseen() {
    let folder = Folder::new();
    folder.ok(DATA);
    let train = "tree --train data/train.txt --model m --linear.max-passes 3 --threads 2 --trees";
    let [one, many] = [1, 16].map(|trees| trained(&folder, &format!("{train} {trees}")));
    let (estimate, peak) = many;
    assert!(peak < 1.25 * one.1, "peaks {} and {peak}", one.1);
    assert!(estimate > 0.97 * peak, "estimate {estimate}, peak {peak}");
    // The program itself and its packing have their share of so small a training run.
    assert!(estimate < 1.25 * peak + 64e6, "estimate {estimate}, peak {peak}");
}

#[test]
fn a_refused_training_names_options_with_which_it_fits() {
    is_refused_with_options_that_fit(|folder, train, limit| {
        let plan = json(&folder.ok(&format!("train {train} --explain --json")));
        assert!(plan["memory_bytes"].as_f64().unwrap() <= limit, "{train}: {plan}");
    });
}

#[test]
#[ignore = "trains to the peak, with .ci/run --all"]
fn a_training_with_the_options_that_a_refusal_names_fits() {
    is_refused_with_options_that_fit(|folder, train, limit| {
        let (_, peak) = trained(folder, &format!("{train} --max-memory {}", limit as u64));
        assert!(peak < 1.05 * limit, "{train}: peak {peak}, limit {limit}");
    });
}

/// `fits` looks at a training with the options that its refusal named, and the memory in which it has to fit.
fn is_refused_with_options_that_fit(fits: impl Fn(&Folder, &str, f64)) {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.ok("generate --instances 4000 --test-instances 50 --features 20000 --labels 8000 --words 400 --no-text \
               --no-names --output wide");
    for (train, option) in [
        ("tree --train wide/train.txt --trees 1 --linear.max-passes 2", "--cluster.max-label-nnz"),
        (
            "uniform --train data/train.txt --epochs 1 --network.widths 64 --network.intermediate 8192 --network.init random",
            "--",
        ),
        ("dense --train data/train.txt --epochs 1 --network.widths 128 --batch 2048", "--batch 32"),
        ("lns --train data/train.txt --epochs 1 --network.widths 128 --sampler all --batch 2048", "--batch 32"),
        ("mach --train data/train.txt --epochs 1 --buckets 2000 --repetitions 1 --batch 2048", "--batch 32"),
        ("dense --train data/train.txt --epochs 1 --network.widths 768 --batch 32", "--network.widths 384"),
        (
            "mach --train data/train.txt --epochs 1 --repetitions 1 --network.widths 512 --batch 32",
            "--network.widths 256",
        ),
        ("lns --train data/train.txt --epochs 1 --sampler all --network.widths 512 --batch 256", "--"),
    ] {
        let train = format!("{train} --model m --threads 2");
        let estimate = json(&folder.ok(&format!("train {train} --explain --json")))["memory_bytes"].as_f64().unwrap();
        let limit = (estimate * 0.95).floor();
        let limited = format!("--max-memory {limit}");
        let refused = folder.xc(&format!("train {train} {limited}"));
        is_refused(&refused, &["needs about", "more than --max-memory", "with ", option]);
        let (_, advice) = refused.stderr.rsplit_once("with ").unwrap();
        let (advice, _) = advice.split_once(" it would need").unwrap();
        // An option is given once.
        let given = train.split(" --").filter(|given| !given.is_empty());
        let name = |option: &str| option.split(' ').next().map(str::to_owned);
        let advised: Vec<_> = advice.split("--").map(name).collect();
        let kept: Vec<&str> = given.filter(|given| !advised.contains(&name(given))).collect();
        let train = kept.join(" --");
        fits(&folder, &format!("{train} {advice}"), limit);
    }
    assert!(!folder.path("m.checkpoint").exists());
}

#[test]
fn what_would_not_be_a_number_is_refused_with_the_option_that_says_it() {
    let folder = Folder::new();
    folder.ok("generate --instances 60 --features 50 --labels 20 --no-text --no-names --output data");
    folder.ok("train tree --train data/train.txt --model t");
    let huge = ["9223372036854775807", "4294967296", "18446744073709551615"];
    let file = "--train data/train.txt --model m --epochs 1";
    for huge in huge {
        for (arguments, option) in [
            (format!("train dense {file} --network.widths {huge}"), "--network.widths"),
            (format!("train mach {file} --network.widths {huge}"), "--network.widths"),
            (format!("train uniform {file} --network.widths {huge}"), "--network.widths"),
            (format!("train lns {file} --network.widths {huge}"), "--network.widths"),
            (format!("train astra {file} --network.widths {huge}"), "--network.widths"),
            (format!("train uniform {file} --network.intermediate {huge}"), "--network.intermediate"),
            (format!("train uniform {file} --negatives.sampled {huge}"), "--negatives.sampled"),
            (format!("train uniform {file} --head.fan-in {huge}"), "--head.fan-in"),
            (format!("train lns {file} --negatives.sampled {huge}"), "--negatives.sampled"),
            (format!("train dense {file} --batch {huge}"), "--batch"),
            (format!("generate --features {huge} --output g"), "--features"),
            (format!("bench predict --model t --input data/test.txt --mode online --repeat {huge}"), "--repeat"),
        ] {
            for limit in ["", " --max-memory 1GiB"] {
                let outcome = folder.xc(&format!("{arguments}{limit}"));
                let words = format!("{arguments}{limit}: {outcome:?}");
                // 4,294,967,296 times of few queries fit into some machines, and take for ever there.
                assert!(matches!(outcome.code, 2 | 3), "{words}");
                assert!(outcome.stderr.lines().any(|line| line.contains(option)), "{words}");
                assert!(!outcome.stderr.contains("internal error"), "{words}");
            }
        }
    }
    assert!(!folder.path("m").exists() && !folder.path("g").exists());
}

#[test]
fn what_is_beyond_the_memory_of_the_machine_is_refused_unless_it_is_allowed() {
    let folder = Folder::new();
    folder.ok("generate --instances 60 --features 50 --labels 20 --no-text --no-names --output data");
    let train = "train dense --train data/train.txt --model m --epochs 1 --network.widths 16777216,16777216";
    is_refused(&folder.xc(train), &["xc train dense needs about", "that are free (--max-memory"]);
    let allowed = folder.xc(&format!("{train} --max-memory 1TiB"));
    is_refused(&allowed, &["more than --max-memory 1.0 TiB"]);
}

#[test]
fn work_that_needs_more_than_its_limit_ends_with_one_line_and_leaves_nothing() {
    let folder = Folder::new();
    // Of forty million lines of nothing some bytes each are kept.
    folder.write("lines.txt", "\n".repeat(40_000_000));
    let outcome = folder.xc("evaluate --truth lines.txt --format fasttext --predictions lines.txt --max-memory 48MiB");
    is_refused(&outcome, &["are resident, more than --max-memory 48.0 MiB"]);
}

#[test]
fn an_allocation_that_fails_ends_with_one_line() {
    let folder = Folder::new();
    folder.write("feature.txt", "1 1000000001 1\n0 1000000000:1\n");
    folder.write("label.txt", "1 1 1000000001\n1000000000 0:1\n");
    for file in ["feature", "label"] {
        let xc = env!("CARGO_BIN_EXE_xc");
        let line = format!(
            "ulimit -v 3000000; exec {xc} train tree --train {file}.txt --model m --quiet --threads 1 --max-memory 500GiB"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(folder.path("")).stdin(Stdio::null());
        is_refused(&run(&mut command), &["out of memory: "]);
    }
    let left = folder.names();
    // An empty checkpoint, which the next run takes.
    assert_eq!(left, ["feature.txt", "label.txt", "m.checkpoint"]);
}

#[test]
fn a_limit_changes_no_byte() {
    let folder = Folder::new();
    folder.ok("generate --instances 900 --features 500 --labels 200 --no-text --no-names --output data");
    let train = "train tree --train data/train.txt --tree.branching 3 --cluster.max-leaf 5 --model";
    folder.ok(&format!("{train} free --threads 2"));
    folder.ok(&format!("{train} bound --threads 1 --max-memory 1GiB"));
    assert!(contents(&folder.path("free")) == contents(&folder.path("bound")));
}
