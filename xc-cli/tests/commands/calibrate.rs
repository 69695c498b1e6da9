//! Calibration and thresholds, from outside.

use crate::program::{Folder, files, json, run};

const SMALL: &str =
    "generate --instances 1500 --test-instances 400 --features 2000 --labels 60 --words 60 --output data";
const HELD_OUT: &str = "--validation-fraction 0.3";
const CALIBRATE: &str = "calibrate --validation data/train.txt --held-out";

fn tree(folder: &Folder) {
    folder.ok(SMALL);
    folder.ok(&format!("train tree --train data/train.txt {HELD_OUT} --trees 1 --model tree"));
}

/// Labels and scores of each test instance.
fn answers(folder: &Folder, model: &str, more: &str) -> Vec<Vec<(u32, f32)>> {
    let text = folder.ok(&format!("predict --model {model} --input data/test.txt {more}"));
    let entry = |word: &str| {
        let (label, score) = word.split_once(':').unwrap();
        (label.parse().unwrap(), score.parse().unwrap())
    };
    text.lines().map(|line| line.split_ascii_whitespace().map(entry).collect()).collect()
}

fn labels(rows: &[Vec<(u32, f32)>]) -> Vec<Vec<u32>> {
    rows.iter().map(|row| row.iter().map(|e| e.0).collect()).collect()
}

/// A metric of a file of answers.
fn metric(folder: &Folder, answers: &str, name: &str, more: &str) -> f64 {
    let report = folder.ok(&format!("evaluate --truth data/test.txt --predictions {answers} --json {more}"));
    json(&report)[name].as_f64().unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[test]
fn scores_become_probabilities_and_lists_keep_their_order() {
    let folder = Folder::new();
    tree(&folder);
    let raw = answers(&folder, "tree", "--top-k 30");
    for method in ["isotonic", "platt"] {
        let report = json(&folder.ok(&format!("{CALIBRATE} --model tree --method {method} --output {method} --json")));
        let error = |of: &str| report[of]["expected_calibration_error"].as_f64().unwrap();
        assert!(error("after") < error("before") && error("after") < 0.02, "{report}");
        let left_out = report["left_out"].as_u64().unwrap();
        assert!((950..1150).contains(&left_out) && report["instances"].as_u64().unwrap() + left_out == 1500);
        let calibrated = answers(&folder, method, "--top-k 30");
        assert_eq!(labels(&calibrated), labels(&raw), "{method}");
        for row in &calibrated {
            assert!(row.iter().all(|e| (0.0..=1.0).contains(&e.1)) && row.is_sorted_by(|a, b| a.1 >= b.1), "{row:?}");
        }
        assert_eq!(answers(&folder, method, "--top-k 30 --raw-scores"), raw);
        assert!(folder.read(&format!("{method}.log/calibration.svg")).starts_with("<svg"));
        folder.ok(&format!("inspect {method} --verify"));
    }
    assert!(!folder.path("tree.log/calibration.svg").exists());
    let table = folder.ok(&format!("{CALIBRATE} --model tree --output again --picture here.svg"));
    for word in ["expected calibration error", "0.9 to 1.0", "micro F1", "label"] {
        assert!(table.contains(word), "{table}");
    }
    assert!(folder.path("here.svg").is_file() && !folder.path("again.log").exists());
    assert!(files(&folder.path("again")) == files(&folder.path("isotonic")), "the same fit, other bytes");
}

#[test]
fn thresholds_of_the_calibration_cut_answers_where_f1_is_largest() {
    let folder = Folder::new();
    tree(&folder);
    // In place: the model is replaced as a whole, and what is trained stays.
    folder.ok(&format!("{CALIBRATE} --model tree"));
    folder.ok("predict --model tree --input data/test.txt --top-k 50 --output all.txt");
    let best = metric(&folder, "all.txt", "micro-F1", "--threshold best");
    for kind in ["micro", "macro", "label", "calibrated"] {
        folder.ok(&format!("predict --model tree --input data/test.txt --threshold {kind} --output {kind}.txt"));
    }
    assert_eq!(folder.read("micro.txt"), folder.read("calibrated.txt"));
    let micro = metric(&folder, "micro.txt", "micro-F1", "--threshold 0");
    assert!(micro > best - 0.02 && micro <= best + 1e-9, "{micro}, best {best}");
    assert!(
        metric(&folder, "label.txt", "macro-F1", "--threshold 0")
            > 0.9 * metric(&folder, "micro.txt", "macro-F1", "--threshold 0")
    );
    // A number cuts anywhere, and answers are as many as reach it.
    let cut = answers(&folder, "tree", "--threshold 0.4");
    let kept: Vec<Vec<(u32, f32)>> = answers(&folder, "tree", "--top-k 50")
        .iter()
        .map(|r| r.iter().copied().filter(|e| e.1 >= 0.4).collect())
        .collect();
    assert_eq!(cut, kept);
    assert!(cut.iter().any(|row| row.is_empty()) || cut.iter().any(|row| row.len() > 1));
}

#[test]
fn evaluate_says_that_the_best_threshold_was_chosen_on_these_rows() {
    let folder = Folder::new();
    folder.write("truth.txt", "4 1 3\n0,1 0:1\n2 0:1\n 0:1\n1 0:1\n");
    folder.write("answers.txt", "0:0.9 2:0.5 1:0.4\n2:0.8 0:0.1\n1:0.3\n1:0.45\n");
    let best = folder.ok("evaluate --truth truth.txt --predictions answers.txt --threshold best --json");
    assert_eq!(json(&best)["threshold_chosen_on_these_rows"], true);
    // 0:0.9, 2:0.8, 2:0.5, 1:0.45 and 1:0.4 are answered, four of them true, as all true ones.
    assert!((json(&best)["micro-F1"].as_f64().unwrap() - 8.0 / 9.0).abs() < 1e-12, "{best}");
    let threshold = json(&best)["threshold"].as_f64().unwrap();
    assert!(threshold > 0.3 && threshold <= 0.4, "{best}");
    let text = folder.ok("evaluate --truth truth.txt --predictions answers.txt --threshold best");
    assert!(text.contains("chosen on these rows"), "{text}");
    let fixed = folder.ok("evaluate --truth truth.txt --predictions answers.txt --threshold 0.6");
    assert!(fixed.contains("threshold 0.6") && !fixed.contains("chosen on these rows"), "{fixed}");
    let below = folder.ok("evaluate --truth truth.txt --predictions answers.txt --threshold -0.5");
    assert!(below.contains("threshold -0.5"), "{below}");
    let fixed = json(&folder.ok("evaluate --truth truth.txt --predictions answers.txt --threshold 0.6 --json"));
    assert_eq!((&fixed["micro-precision"], &fixed["micro-recall"]), (&1.0.into(), &0.5.into()));
    assert_eq!((&fixed["instance-recall"], &fixed["macro-recall"]), (&0.375.into(), &(2.0 / 3.0).into()));
    assert!(fixed.get("threshold_chosen_on_these_rows").is_none());
    folder.write("nothing.txt", "2:0.9\n\n\n\n");
    folder
        .xc("evaluate --truth truth.txt --predictions nothing.txt --threshold best")
        .refused(2, "--threshold best: nothing.txt: no prediction is true, so there is none");
}

#[test]
fn rows_that_the_model_was_trained_on_are_refused() {
    let folder = Folder::new();
    tree(&folder);
    let before = files(&folder.path("tree"));
    let outcome = folder.xc("calibrate --model tree --validation data/train.txt");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("of 1500 instances are training instances of tree"), "{}", outcome.stderr);
    folder.ok("train tree --train data/train.txt --trees 1 --model all");
    folder
        .xc(&format!("{CALIBRATE} --model all"))
        .refused(2, "data/train.txt: every instance is a training instance of the model; others are expected");
    folder
        .xc("predict --model tree --input data/test.txt --threshold micro")
        .refused(2, "--threshold micro: tree is not calibrated; `xc calibrate` finds thresholds");
    assert!(files(&folder.path("tree")) == before, "the model has changed");
    folder.ok("calibrate --model tree --validation data/test.txt");
    folder
        .xc("predict --model tree --input data/test.txt --threshold micro --raw-scores")
        .refused(2, "--threshold micro cuts probabilities, not --raw-scores");
}

#[test]
fn every_kind_of_model_is_calibrated_and_changes_drop_what_no_longer_fits() {
    let folder = Folder::new();
    tree(&folder);
    let network = "--epochs 2 --network.widths 16";
    for (kind, more) in [
        ("mach", "--buckets 20 --repetitions 2 --epochs 2 --network.widths 16"),
        ("dense", network),
        ("lns", network),
        ("uniform", "--epochs 2 --network.widths 16 --network.intermediate 64 --head.fan-in 8"),
    ] {
        folder.ok(&format!("train {kind} --train data/train.txt {HELD_OUT} {more} --model {kind}"));
    }
    folder.ok("blend tree dense --validation data/train.txt --held-out --output blend --folds 2 --networks 1");
    for kind in ["tree", "mach", "dense", "lns", "uniform", "blend"] {
        let raw = labels(&answers(&folder, kind, ""));
        let report = json(&folder.ok(&format!("{CALIBRATE} --model {kind} --json")));
        assert!(report["after"]["expected_calibration_error"].as_f64().unwrap() < 0.03, "{kind}: {report}");
        assert_eq!(labels(&answers(&folder, kind, "")), raw, "{kind}");
        folder.ok(&format!("predict --model {kind} --input data/test.txt --threshold label --output {kind}.txt"));
        folder.ok(&format!("inspect {kind} --verify"));
        // Calibrated again: what was there is replaced.
        let once = files(&folder.path(kind));
        folder.ok(&format!("{CALIBRATE} --model {kind}"));
        assert!(files(&folder.path(kind)) == once, "{kind}");
    }
    let merged = run(&mut folder.command("merge mach --output merged"));
    assert_eq!(merged.code, 0, "{merged:?}");
    let said = "xc: warning: mach: its calibration is of other scores and is left out\n";
    assert!(merged.stderr.contains(said), "{merged:?}");
    assert!(json(&folder.read("merged/config.json"))["parameters"].get("calibration").is_none());
    let convert = |more: &str| {
        let outcome = folder.xc(&format!("convert --from xc --to xc tree changed {more}"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        json(&folder.read("changed/config.json"))["parameters"].get("calibration").is_some()
    };
    folder.write("keep.txt", "0\n1\n2\n");
    assert!(convert("") && convert("--keep-labels keep.txt"));
    assert!(!convert("--post-processor sigmoid") && !convert("--prune-below 0.2"));
}

#[test]
fn a_damaged_calibration_is_refused_when_the_model_opens() {
    let folder = Folder::new();
    tree(&folder);
    folder.ok(&format!("{CALIBRATE} --model tree"));
    let file = folder.path("tree/model-calibration.safetensors");
    let whole = std::fs::read(&file).unwrap();
    // The last array holds the thresholds or the scores: a NaN in it.
    for at in [whole.len() - 4, whole.len() - 8] {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, bytes).unwrap();
        let outcome = folder.xc("predict --model tree --input data/test.txt");
        assert_eq!(outcome.code, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("tree: calibration: "), "{}", outcome.stderr);
    }
}

#[test]
fn a_blend_of_models_of_text_is_calibrated_from_text() {
    let folder = Folder::new();
    let line = |row: usize| {
        let label = row % 5;
        let words = ["ant", "bee", "cat", "dog", "elk"];
        let text = format!("{} {} {}", words[label], words[(row / 5) % 5], words[(row / 25) % 5]);
        format!("{{\"id\": {row}, \"text\": \"{text}\", \"labels\": [{label}]}}\n")
    };
    folder.write("train.jsonl", (0..600).map(line).collect::<String>());
    let train = format!("--train train.jsonl {HELD_OUT} --text.min-df 1");
    folder.ok(&format!("train tree {train} --model tree"));
    folder.ok(&format!("train dense {train} --model dense --network.widths 16 --epochs 5"));
    let validation = "--validation train.jsonl --held-out";
    folder.ok(&format!("blend tree dense {validation} --output blend --folds 2 --networks 1"));
    let report = json(&folder.ok(&format!("calibrate --model blend {validation} --output calibrated --json")));
    assert!(report["instances"].as_u64() > Some(30), "{report}");
    folder.ok("predict --model calibrated --input train.jsonl --threshold micro --output decided");
    folder.ok("inspect calibrated --verify");
}

#[test]
fn another_post_processor_takes_no_calibration_and_says_so() {
    let folder = Folder::new();
    tree(&folder);
    folder.ok(&format!("{CALIBRATE} --model tree --output calibrated"));
    let predict = "predict --input data/test.txt --post-processor sigmoid --top-k 3";
    let raw = folder.ok(&format!("{predict} --model tree"));
    let outcome = run(&mut folder.command(&format!("{predict} --model calibrated")));
    assert_eq!((outcome.code, &outcome.stdout), (0, &raw));
    assert!(outcome.stderr.contains("the calibration of the model was fitted to"), "{}", outcome.stderr);
    folder
        .xc(&format!("{predict} --model calibrated --threshold micro"))
        .refused(2, "--threshold micro: thresholds are of calibrated scores, which --post-processor sigmoid replaces");
}
