//! `xc evaluate` from outside: the exact output of a small case, and every kind of bad input.

use std::path::PathBuf;
use std::process::Command;

/// Four instances, five labels; the third has no true label.
const TRUTH: &str = "4 3 5\n0,1 0:1\n2 1:1\n 2:1\n1,3 0:0.5 1:1\n";
const PREDICTIONS: &str = "0:0.9 2:0.5 1:0.25\n1:0.75 2:0.75\n4:1\n\n";
/// Labels 0 to 3, so label 4 is never trained on.
const TRAIN: &str = "6 3 5\n0 0:1\n0,1 0:1\n0,2 1:1\n0 2:1\n0,3 0:1\n1 1:1\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.file("truth.txt", TRUTH);
        folder.file("predictions.txt", PREDICTIONS);
        folder.file("train.txt", TRAIN);
        folder
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// `xc evaluate` in the folder: exit code, stdout, stderr.
    fn evaluate(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xc"));
        command.current_dir(self.0.path()).arg("evaluate").args(arguments);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn default_with(&self, more: &[&str]) -> (i32, String, String) {
        let mut arguments = vec!["--truth", "truth.txt", "--predictions", "predictions.txt"];
        arguments.extend(more);
        self.evaluate(&arguments)
    }

    /// Exit code 2 and exactly this line.
    fn refused(&self, arguments: &[&str], expected: &str) {
        let (code, stdout, stderr) = self.evaluate(arguments);
        assert_eq!((code, &*stdout), (2, ""), "{arguments:?}: {stderr}");
        assert_eq!(stderr, format!("xc: error: {expected}\n"), "{arguments:?}");
    }
}

#[test]
fn the_table_of_a_small_case() {
    let folder = Folder::new();
    let (code, stdout, stderr) = folder.default_with(&["--k", "1,2"]);
    assert_eq!((code, &*stderr), (0, ""));
    assert_eq!(
        stdout,
        "instances 4 (1 without labels, 1 without predictions); labels 5 (4 in the truth)\n\
         %            @1     @2\n\
         P         25.00  25.00\n\
         nDCG      25.00  31.10\n\
         recall    12.50  37.50\n\
         MAP       25.00  25.00\n\
         micro-F1  25.00  40.00\n\
         macro-F1  25.00  41.67\n\
         coverage  25.00  50.00\n\
         whole lists: MAP 33.33, MRR 37.50\n"
    );
}

#[test]
fn the_json_of_a_small_case() {
    let folder = Folder::new();
    let (code, stdout, stderr) = folder.default_with(&["--k", "1", "--propensity-from", "train.txt", "--json"]);
    assert_eq!((code, &*stderr), (0, ""));
    assert_eq!(stdout.lines().count(), 1);
    let keys: Vec<&str> = stdout.split('"').skip(1).step_by(2).collect();
    assert_eq!(
        keys[..13],
        [
            "instances",
            "P@1",
            "nDCG@1",
            "PSP@1",
            "PSnDCG@1",
            "recall@1",
            "MAP@1",
            "micro-F1@1",
            "macro-F1@1",
            "coverage@1",
            "MAP",
            "MRR",
            "counts"
        ]
    );
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let inverse = |n: f64| 1.0 + (6f64.ln() - 1.0) * 2.5f64.powf(0.55) * (n + 1.5).powf(-0.55);
    // One hit on label 0 (5 training rows); the best gains are those of labels 1, 2 and 3 (2, 1 and
    // 1 rows).
    let psp = inverse(5.0) / (inverse(2.0) + inverse(1.0) + inverse(1.0));
    assert!((value["PSP@1"].as_f64().unwrap() - psp).abs() < 1e-12, "{stdout}");
    assert_eq!(value["P@1"], 0.25);
    assert_eq!(value["instances"], 4);
    assert_eq!(value["counts"]["unknown_labels"], 0);
}

#[test]
fn labels_never_trained_on_are_counted() {
    let folder = Folder::new();
    folder.file("truth.txt", "1 3 7\n4,6 0:1\n");
    folder.file("predictions.txt", "4:1\n");
    let (code, stdout, _) = folder.default_with(&["--propensity-from", "train.txt", "--k", "1"]);
    assert_eq!(code, 0);
    assert!(
        stdout.contains("unknown labels in the truth: 2, in 2 (instance, label) pairs; always missed\n"),
        "{stdout}"
    );
}

#[test]
fn weights_pairs_and_rows_are_applied() {
    let folder = Folder::new();
    folder.file("w", "1\n2\n0.5\n4e0\n");
    folder.file("pairs", "0 0\n1 1\n\n");
    folder.file("rows", "2\n3\n");
    let more = ["--weights", "w", "--filter", "pairs", "--exclude-rows", "rows", "--k", "1", "--json"];
    let (code, stdout, stderr) = folder.default_with(&more);
    assert_eq!(code, 0, "{stderr}");
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    // Instance 0 without label 0: 2 1 against {1}; instance 1 without label 1: 2 against {2}.
    assert_eq!(value["P@1"].as_f64(), Some(2.0 / 3.0));
    assert_eq!(value["unweighted"]["P@1"].as_f64(), Some(0.5));
    assert_eq!((&value["instances"], &value["counts"]["excluded"]), (&2.into(), &2.into()));
    assert_eq!((&value["counts"]["filtered_truth"], &value["counts"]["filtered_predictions"]), (&1.into(), &2.into()));
}

#[test]
fn intervals_and_comparison_are_the_same_at_any_number_of_threads() {
    let folder = Folder::new();
    folder.file("other.txt", "0:1\n2:1\n\n3:1\n");
    let more = ["--k", "1", "--intervals", "--compare", "other.txt", "--resamples", "200", "--seed", "3"];
    let run = |threads, json| {
        let mut arguments = more.to_vec();
        arguments.extend(["--threads", threads]);
        arguments.extend(json);
        let (code, stdout, stderr) = folder.default_with(&arguments);
        assert_eq!((code, &*stderr), (0, ""));
        stdout
    };
    let table = run("1", None);
    assert_eq!(table, run("3", None));
    assert!(table.contains("\nintervals: 95 % of 200 bootstrap resamples, seed 3\n"), "{table}");
    assert!(table.contains("\ninstances 4; paired bootstrap: 95 % of 200 resamples, seed 3\n"), "{table}");
    let value: serde_json::Value = serde_json::from_str(&run("2", Some("--json"))).unwrap();
    assert_eq!(value["comparison"]["P@1"]["difference"], -0.5);
    assert_eq!(value["comparison"]["P@1"]["interval"][1], 0.0);
    assert_eq!(value["intervals"]["P@1"].as_array().map(Vec::len), Some(2));
}

#[test]
fn names_in_the_truth_need_the_names_of_the_model() {
    let folder = Folder::new();
    folder.file(
        "truth.jsonl",
        "{\"text\": \"a\", \"labels\": [\"dog\", \"emu\"]}\n{\"text\": \"b\", \"labels\": [\"cat\"]}\n",
    );
    folder.file("labels.txt", "cat\ndog\n");
    folder.file("predictions.txt", "1:1 0:0.5\n0:1\n");
    let arguments = ["--truth", "truth.jsonl", "--predictions", "predictions.txt", "--k", "1"];
    folder.refused(
        &arguments,
        "truth.jsonl: labels are names, predictions are ids; expected --model DIR, or --label-names FILE, such as \
         labels.txt of the model",
    );
    let with_names: Vec<&str> = arguments.into_iter().chain(["--label-names", "labels.txt"]).collect();
    let (code, stdout, stderr) = folder.evaluate(&with_names);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("unknown labels in the truth: 1, in 1 (instance, label) pairs"), "{stdout}");
    assert!(stdout.contains("recall     75.00\n"), "{stdout}");
    folder.file("predictions.txt", "1:1 0:0.5\n2:1\n");
    folder.refused(&with_names, "predictions.txt: line 2: label 2 has no name: labels.txt names 2 labels, from 0 on");
}

#[test]
fn without_a_header_no_label_is_out_of_range() {
    let folder = Folder::new();
    folder.file("truth.txt", "0,1 0:1\n2 1:1\n");
    folder.file("predictions.txt", "9:1 0:0.5\n2:1\n");
    let (code, stdout, stderr) = folder.default_with(&["--k", "1"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("instances 2; labels 10 (3 in the truth)\n"), "{stdout}");
}

#[test]
fn bad_predictions_are_refused_with_file_and_line() {
    let folder = Folder::new();
    let arguments = ["--truth", "truth.txt", "--predictions", "p"];
    for (text, expected) in [
        ("", "p: the file is empty, expected one line of label:score entries per instance"),
        ("0:1\n", "p: 1 instances, expected 4 as in truth.txt"),
        ("0:1\n1;1\n\n\n", "p: line 2, column 1: got \"1;1\", expected label:value"),
        ("0:1\n1:x\n\n\n", "p: line 2, column 3: got \"x\", expected a score (a number)"),
        ("0:1\n\n-1:1\n\n", "p: line 3, column 1: got \"-1\", expected a label id that is not negative"),
        ("0:1\n\n1:nan\n\n", "p: line 3, column 3: got \"nan\", expected a score (a number)"),
        ("0:1\n\n5:1\n\n", "p: line 3, column 1: label 5 is out of range, expected an id below 5 (the number given)"),
        ("0:1 1:0.5 0:0.25\n\n\n\n", "p: line 1: label 0 is named twice in this row, expected each label once"),
    ] {
        folder.file("p", text);
        folder.refused(&arguments, expected);
    }
    folder.file("p", b"0:1\n\xff:1\n\n\n");
    folder.refused(&arguments, "p: line 2, column 1: got \"\u{fffd}\", expected a label id (a whole number)");
}

#[test]
fn bad_lists_are_refused_with_file_and_line() {
    let folder = Folder::new();
    let cases = [
        ("--weights", "1\n1\n1\n", "f: 3 weights, expected 4: one a line for each instance of the truth"),
        ("--weights", "1\nx\n1\n1\n", "f: line 2: got \"x\", expected a weight"),
        ("--weights", "1\n-1\n1\n1\n", "f: line 2: got \"-1\", expected a finite weight of at least 0"),
        ("--weights", "inf\n1\n1\n1\n", "f: line 1: got \"inf\", expected a finite weight of at least 0"),
        ("--weights", "0\n0\n0\n0\n", "f: the weights of all 4 instances are zero"),
        ("--filter", "0 1\n4 1\n", "f: line 2: instance 4 is out of range; the truth has 4, counted from 0"),
        ("--filter", "0\n", "f: line 1: got \"0\", expected an instance and a label id"),
        ("--filter", "0 cat\n", "f: line 1: got \"cat\", expected a label id"),
        ("--exclude-rows", "0\n4\n", "f: line 2: instance 4 is out of range; the truth has 4, counted from 0"),
        ("--exclude-rows", "0\n-1\n", "f: line 2: got \"-1\", expected an instance"),
        ("--exclude-rows", "0\n1\n2\n3\n", "f: every instance is excluded"),
    ];
    for (option, text, expected) in cases {
        folder.file("f", text);
        folder.refused(&["--truth", "truth.txt", "--predictions", "predictions.txt", option, "f"], expected);
    }
}

#[test]
fn bad_options_and_absent_files_are_refused() {
    let folder = Folder::new();
    let with = |more: &[&str]| {
        let (code, stdout, stderr) = folder.default_with(more);
        assert_eq!((code, &*stdout, stderr.lines().count()), (2, "", 1), "{more:?}: {stderr}");
        stderr
    };
    for (more, expected) in [
        (&["--k", "1,0"][..], "--k: k must be at least 1; got 0"),
        (&["--k", "3,3"], "--k: k = 3 is named twice"),
        (&["--k", "x"], "invalid value 'x' for '--k <K,...>'"),
        (&["--resamples", "0"], "at least one resample is expected; got 0"),
        (&["--level", "1"], "the level must lie between 0 and 1; got 1"),
        (&["--propensity-from", "train.txt", "--propensity-a", "-1"], "train.txt: propensity A must be"),
        (&["--propensity-from", "train.txt", "--propensity-b", "0"], "train.txt: propensity B must be"),
        (&["--propensity-from", "absent"], "absent"),
        (&["--compare", "absent"], "absent: "),
        (&["--weights", "absent"], "absent: "),
        (&["--filter", "absent"], "absent: "),
        (&["--exclude-rows", "absent"], "absent: "),
        (&["--label-names", "absent"], "absent: "),
    ] {
        let stderr = with(more);
        assert!(stderr.contains(expected), "{more:?}: {stderr}");
    }
    folder.file("one.txt", "1 3 5\n0 0:1\n");
    assert!(
        with(&["--propensity-from", "one.txt"]).contains("one.txt: propensities need at least 3 training instances")
    );
    folder.refused(
        &["--truth", "truth.txt", "--predictions", "absent"],
        "absent: cannot be read: No such file or directory",
    );
    for truth in ["", "4 3 5\n0,5 0:1\n", "5 3 5\n0 0:1\n", "2 3 5\n0 0:1\n1 0;1\n"] {
        folder.file("bad.txt", truth);
        let (code, _, stderr) = folder.evaluate(&["--truth", "bad.txt", "--predictions", "predictions.txt"]);
        assert_eq!(code, 2, "{truth:?}: {stderr}");
        assert!(stderr.starts_with("xc: error: bad.txt: ") && stderr.lines().count() == 1, "{truth:?}: {stderr}");
    }
}

#[test]
fn predictions_may_be_jsonl() {
    let folder = Folder::new();
    folder.file(
        "p.jsonl",
        "{\"labels\":[0,2,1],\"scores\":[0.9,0.5,0.25]}\n{\"labels\":[1,2],\"scores\":[0.75,0.75]}\n\
         {\"labels\":[4],\"scores\":[1]}\n{\"labels\":[],\"scores\":[]}\n",
    );
    let (_, lines, _) = folder.default_with(&["--json"]);
    let (_, jsonl, stderr) = folder.evaluate(&["--truth", "truth.txt", "--predictions", "p.jsonl", "--json"]);
    assert_eq!(lines, jsonl, "{stderr}");
}

#[test]
fn predictions_that_hold_names_are_read_where_names_are_given() {
    let folder = Folder::new();
    folder.file("names.txt", "0\ta b\n1\tb\n2\tc:d\n3\td\n4\t7\n");
    folder.file("ids.txt", "0:0.9 2:0.5 1:0.25\n1:0.75 2:0.75\n4:1\n\n");
    folder.file("named.txt", "a b:0.9\tc:d:0.5\tb:0.25\nb:0.75\tc:d:0.75\n\"7\":1\n\n");
    let evaluate = |predictions: &str, more: &[&str]| {
        folder
            .evaluate(&[&["--truth", "truth.txt", "--predictions", predictions, "--k", "1,3", "--json"], more].concat())
    };
    let names = ["--label-names", "names.txt", "--label-names-column", "2"];
    let (code, by_name, stderr) = evaluate("named.txt", &names);
    assert_eq!((code, &*stderr), (0, ""));
    assert_eq!(by_name, evaluate("ids.txt", &names).1);
    // Without names: what would help.
    let (code, _, stderr) = evaluate("named.txt", &[]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.starts_with("{\"error\":\"named.txt: line 1"), "{stderr}");
    let help = "predictions that hold names are read with --model DIR, or with --label-names FILE, such as labels.txt of the \
                model\"";
    assert!(stderr.contains(help), "{stderr}");
    for (line, problem) in [
        ("b:0.5\tq:0.25", "named.txt: line 1, column 7: label name \"q\" is not among the 5 names of names.txt"),
        ("b:0.5\tb:0.25", "named.txt: line 1: label 1 is named twice in this row, expected each label once"),
        ("b:0.5\td", "named.txt: line 1, column 7: got \"d\", expected name:score"),
        ("b:NaN", "named.txt: line 1, column 1: got \"b:NaN\", expected name:score, where the score is a number"),
    ] {
        folder.file("named.txt", format!("{line}\n\n\n\n"));
        let (code, _, stderr) = evaluate("named.txt", &names);
        let said: serde_json::Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((code, said["error"].as_str()), (2, Some(problem)), "{line}");
    }
}

#[test]
fn metrics_beyond_the_end_of_all_lists_are_said_to_be_lower_bounds() {
    let folder = Folder::new();
    let (code, stdout, stderr) = folder.default_with(&["--k", "3,4,5", "--json"]);
    let expected =
        "xc: warning: predictions.txt: lists hold at most 3 labels: @4, @5 are lower bounds (predict with --top-k 5)\n";
    assert_eq!((code, &*stderr), (0, expected));
    let (_, quiet, stderr) = folder.default_with(&["--k", "3,4,5", "--json", "--quiet"]);
    assert_eq!((quiet, &*stderr), (stdout, ""));
}
