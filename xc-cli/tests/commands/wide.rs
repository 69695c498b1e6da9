//! Networks with a wide term, from training to answers.

use crate::program::{Folder, contents, files, json};
use serde_json::Value;
use xc_hash::stream::mix;

const DATA: &str =
    "generate --instances 900 --test-instances 200 --features 1500 --labels 120 --words 40 --output data";
const QUICK: &str = "--network.widths 16 --epochs 4 --batch 64";
const TRAIN: &str = "--train data/train.txt";
/// Kinds with a term, and one whose sampler has tables.
const KINDS: [(&str, &str); 4] = [
    ("lns", "--negatives.sampled 5 --negatives.uniform 30 --tables 8"),
    ("astra", "--negatives.hard 4 --negatives.uniform 20 --loss softmax"),
    ("dense", "--wide on --loss softmax"),
    ("uniform", "--wide on --network.intermediate 64 --head.fan-in 8 --wide.precision bf16"),
];

fn data() -> Folder {
    let folder = Folder::new();
    folder.ok(DATA);
    folder
}

/// Labels and scores of each row.
fn parsed(text: &str) -> Vec<Vec<(u32, f64)>> {
    let entry = |word: &str| {
        let (label, score) = word.split_once(':').unwrap();
        (label.parse().unwrap(), score.parse().unwrap())
    };
    text.lines().map(|line| line.split_ascii_whitespace().map(entry).collect()).collect()
}

/// The parameters that a model keeps.
fn parameters(folder: &Folder, model: &str) -> Value {
    json(&folder.read(&format!("{model}/config.json")))["parameters"].clone()
}

#[test]
fn a_model_is_the_same_at_any_number_of_threads_and_killed_and_resumed_at_random_steps() {
    let folder = data();
    for (at, (kind, more)) in KINDS.into_iter().enumerate() {
        let train = format!(
            "train {kind} {TRAIN} --validation-fraction 0.2 {more} --network.widths 16 --batch 64 --epochs 12 \
             --checkpoint-every 1"
        );
        // Two have the runs that are resumed.
        for threads in [1, 3] {
            folder.ok(&format!("{train} --model {kind}-{threads} --threads {threads}"));
        }
        let drawn = |attempt: u64| 30 + mix(at as u64, attempt) % 200;
        folder.resumed_after_kills(&format!("{train} --model {kind}"), 6, drawn);
        let straight = contents(&folder.path(&format!("{kind}-1")));
        assert!(parameters(&folder, kind)["wide"].is_object(), "{kind}");
        for other in [format!("{kind}-3"), kind.to_owned()] {
            assert!(straight == contents(&folder.path(&other)), "{other}");
        }
    }
}

#[test]
fn held_out_rows_choose_the_weight_that_is_the_best_of_those_that_can_be_set() {
    const WEIGHTS: [f64; 10] = [0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 1.0, 1.5, 2.2];
    let folder = data();
    for (kind, more) in [KINDS[0], KINDS[2]] {
        let train = format!("train {kind} {TRAIN} --validation data/test.txt {more} {QUICK} --restart --json");
        let report = json(&folder.ok(&format!("{train} --model fitted")));
        let at = |report: &Value| ["P@1", "P@3", "P@5"].map(|name| report[name].as_f64().unwrap());
        // What is said of held-out rows is what is measured of the model.
        let says_what_is_measured = |report: &Value| {
            let with = report["wide"]["precision"]["with"].as_array().unwrap();
            with.iter().zip(at(report)).all(|(said, got)| (said.as_f64().unwrap() - got).abs() < 1e-9)
        };
        let sums = WEIGHTS.map(|weight| {
            let report = json(&folder.ok(&format!("{train} --model m --wide.weight {weight}")));
            assert!((report["wide"]["weight"].as_f64().unwrap() - weight).abs() < 1e-6);
            assert!(says_what_is_measured(&report), "{kind}, weight {weight}: {report}");
            at(&report).iter().sum::<f64>()
        });
        let best = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let expected = WEIGHTS[sums.iter().position(|sum| *sum > best - 1e-9).unwrap()];
        let got = report["wide"]["weight"].as_f64().unwrap();
        assert!((got - expected).abs() < 1e-6, "{kind}: {got}, sums {sums:?}");
        assert!(sums.iter().any(|sum| *sum < best - 1e-3), "{kind}: every weight is as good, {sums:?}");
        assert!(says_what_is_measured(&report), "{kind}: {report}");
        assert!((parameters(&folder, "fitted")["wide"]["weight"].as_f64().unwrap() - got).abs() < 1e-6);
    }
}

#[test]
fn a_refit_has_the_weight_that_the_rows_held_out_from_the_first_model_said() {
    let folder = data();
    let train = format!("train dense {TRAIN} {} {}", KINDS[2].1, QUICK.replace("--epochs 4", ""));
    folder.ok(&format!("{train} --epochs 4 --validation-fraction 0.3 --model part --refit again"));
    let [part, again] = ["part", "again"].map(|model| parameters(&folder, model));
    assert_eq!(part["wide"], again["wide"]);
    assert_ne!(
        part["wide"]["weight"].as_f64().map(|weight| weight as f32),
        Some(0.3),
        "the weight without held-out rows"
    );
    folder.ok(&format!(
        "{train} --epochs {} --wide.weight {} --model all",
        part["training"]["epochs"], part["wide"]["weight"]
    ));
    assert!(contents(&folder.path("again")) == contents(&folder.path("all")));
}

/// The configuration of a model, which holds the hash of every array, without what it says of learning.
fn without_learning(folder: &Folder, model: &str) -> Value {
    let mut config = json(&folder.read(&format!("{model}/config.json")));
    config.as_object_mut().unwrap().remove("xxh3");
    let parameters = config["parameters"].as_object_mut().unwrap();
    parameters.remove("learning").unwrap();
    parameters.remove("changed");
    config
}

#[test]
fn a_term_is_left_out_by_convert_as_if_it_had_not_been_learned() {
    let folder = data();
    for (kind, more) in KINDS {
        let train = format!("train {kind} {TRAIN} {QUICK}");
        let more = more.replace("--wide.precision bf16", "");
        folder.ok(&format!("{train} {more} --model {kind}"));
        folder.ok(&format!("{train} {} --model {kind}.off --wide off", more.replace("--wide on", "")));
        folder.ok(&format!("convert --from xc --to xc {kind} {kind}.converted --wide off"));
        let [off, converted] = ["off", "converted"].map(|end| without_learning(&folder, &format!("{kind}.{end}")));
        assert_eq!(off, converted, "{kind}");
        let names = |end: &str| files(&folder.path(&format!("{kind}.{end}"))).into_keys().collect::<Vec<_>>();
        assert_eq!(names("off"), names("converted"), "{kind}");
        assert_eq!(parameters(&folder, &format!("{kind}.converted"))["changed"]["wide"], "off");
        let ask = |model: &str| folder.ok(&format!("predict --model {kind}{model} --input data/test.txt"));
        assert_eq!(ask(".off"), ask(".converted"), "{kind}");
        assert_ne!(ask(""), ask(".off"), "{kind}");
        folder.ok(&format!("inspect {kind}.converted --verify"));
    }
}

#[test]
fn rankers_are_rounded_and_pruned_by_convert_the_index_stays_and_the_calibration_does_not() {
    let folder = data();
    folder.ok(&format!("train dense {TRAIN} {} {QUICK} --validation-fraction 0.2 --model m", KINDS[2].1));
    folder.ok("index build --model m");
    folder.ok(&format!("calibrate --model m --validation {} --held-out --output m.calibrated", &TRAIN[8..]));
    folder.ok("index build --model m.calibrated");
    let size = |model: &str| {
        let arrays = json(&folder.ok(&format!("inspect {model} --json")))["arrays"].as_array().unwrap().clone();
        let of = |name: &str| arrays.iter().find(|array| array["name"] == name).cloned().unwrap_or_default();
        (of("wide.weights"), of("head.weights"))
    };
    let ask = |model: &str| folder.ok(&format!("predict --model {model} --input data/test.txt --exact"));
    let before = size("m");
    for more in ["--precision bf16", "--prune-below 0.4", "--wide off"] {
        for model in ["m", "m.calibrated"] {
            let outcome = folder.xc(&format!("convert --from xc --to xc {model} small {more}"));
            assert_eq!(outcome.code, 0, "{more}: {outcome:?}");
            folder.ok("inspect small --verify");
            let config = parameters(&folder, "small");
            assert!(config.get("calibration").is_none(), "{more}: {config}");
            // Of the same output layer: it answers.
            assert!(folder.path("small/index").is_dir(), "{more}");
            let outcome = folder.xc("predict --model small --input data/test.txt");
            assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{more}");
            let after = size("small");
            assert_eq!(before.1, after.1, "{more}: the output layer");
            assert_ne!(before.0, after.0, "{more}");
            assert_ne!(ask("small"), ask("m"), "{more}");
        }
    }
    let best = |model: &str| -> Vec<u32> { parsed(&ask(model)).iter().map(|row| row[0].0).collect() };
    folder.ok("convert --from xc --to xc m small --precision bf16");
    let same = best("small").iter().zip(best("m")).filter(|(a, b)| **a == *b).count();
    assert!(same >= 190, "{same} of 200 best labels are the same");
    // What was trained with the same threshold is what is pruned to it.
    let train = format!("train lns {TRAIN} {} {QUICK}", KINDS[0].1);
    folder.ok(&format!("{train} --model lns"));
    folder.ok(&format!("{train} --wide.prune-below 0.4 --model pruned"));
    folder.ok("convert --from xc --to xc lns small --prune-below 0.4");
    assert_eq!(ask("small"), ask("pruned"));
}

#[test]
fn changes_of_a_term_that_a_model_does_not_have_are_refused_by_the_option() {
    let folder = data();
    folder.ok(&format!("train tree {TRAIN} --trees 1 --model tree"));
    folder.ok(&format!("train mach {TRAIN} {QUICK} --buckets 20 --repetitions 1 --model mach"));
    folder.ok(&format!("train lns {TRAIN} {QUICK} --wide off --model lns"));
    folder.ok(&format!("train dense {TRAIN} {QUICK} --wide on --model dense"));
    let before = folder.names();
    let pruned = "a tree, or a network with a wide term";
    let layered = "a tree, or a network with a wide term or a sparse or sampled output layer (uniform, lns, astra)";
    for (model, option, more, expected) in [
        ("tree", "--wide", "--wide off", "a network with a wide term"),
        ("mach", "--wide", "--wide off", "a network with a wide term"),
        ("lns", "--wide", "--wide off", "a network with a wide term"),
        ("mach", "--prune-below", "--prune-below 0.1", pruned),
        ("lns", "--prune-below", "--prune-below 0.1", pruned),
        ("dense", "--prune-below", "--wide off --prune-below 0.1", pruned),
        ("dense", "--precision", "--wide off --precision bf16", layered),
    ] {
        let expected = format!("{option}: {model} is a model of kind {model:?}; expected {expected}");
        folder.xc(&format!("convert --from xc --to xc {model} x {more}")).refused(2, &expected);
    }
    folder
        .xc("convert --from xc --to xc dense x --prune-below=-1")
        .refused(2, "dense: prune below -1; expected a finite number of 0 or more");
    let outcome = folder.xc("convert --from xc --to xc dense x --wide on");
    assert!(outcome.code == 2 && outcome.stderr.contains("--wide"), "{outcome:?}");
    assert_eq!(folder.names(), before);
}

#[test]
fn an_explanation_says_what_the_logit_of_both_consists_of() {
    let folder = Folder::new();
    let rows = "{\"text\":\"dog barks loud\",\"labels\":[\"bark\"]}\n{\"text\":\"cat purrs low\",\"labels\":[\"purr\"]}\n\
                {\"text\":\"cow moos loud\",\"labels\":[\"moo\"]}\n";
    folder.write("train.jsonl", rows.repeat(5));
    folder.write("test.jsonl", rows);
    folder.ok("train dense --train train.jsonl --epochs 3 --network.widths 8 --wide on --wide.weight 0.5 --model m");
    let raw = parsed(&folder.ok("predict --model m --input test.jsonl --top-k 3 --post-processor noop"));
    let explained = folder.ok("explain --model m --input test.jsonl --label bark --label moo --label purr --json");
    let explained: Vec<Value> = explained.lines().map(json).collect();
    let text = folder.ok("explain --model m --input test.jsonl --label bark --label moo --label purr");
    assert_eq!(explained.len(), 9);
    for of in &explained {
        let (row, label) = (of["instance"].as_u64().unwrap() as usize, of["label"].as_u64().unwrap() as u32);
        let score = raw[row].iter().find(|(other, _)| *other == label).unwrap().1;
        let wide = &of["wide"];
        let number = |name: &str| wide[name].as_f64().unwrap();
        assert!((number("logit") - score).abs() < 1e-5, "{of}, raw score {score}");
        let parts = wide["parts"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part["part"].as_f64().unwrap()).sum();
        assert!((sum + number("network") + number("bias") - score).abs() < 1e-5, "{of}, raw score {score}");
        assert!(number("network") <= 0.0 && parts.iter().all(|part| part["term"].is_string()), "{of}");
        let line = format!(
            "  with the wide term: logit {:.6}: network {:+.6}, bias {:+.6}",
            number("logit"),
            number("network"),
            number("bias")
        );
        assert!(text.contains(&line), "{line:?} in {text}");
    }
    let own = explained.iter().find(|of| of["name"] == "bark").unwrap();
    let dog = own["wide"]["parts"].as_array().unwrap().iter().find(|part| part["term"] == "dog").unwrap();
    assert!(dog["part"].as_f64().unwrap() > 0.0, "{own}");
    folder.ok("convert --from xc --to xc m network --wide off");
    let alone =
        json(folder.ok("explain --model network --input test.jsonl --label bark --json").lines().next().unwrap());
    assert!(alone.get("wide").is_none() && alone["logit"] == explained[0]["logit"], "{alone}");
}

#[test]
fn settings_of_a_term_need_one_and_a_term_needs_sparse_features() {
    let folder = data();
    let before = folder.names();
    for (option, value) in [
        ("wide.weight", "0.9"),
        ("wide.labels", "5"),
        ("wide.negatives", "5"),
        ("wide.cost", "3"),
        ("wide.prune-below", "0.3"),
        ("wide.precision", "f16"),
    ] {
        for command in ["train dense", "train uniform", "train lns", "train astra"] {
            let expected = format!("--{option} has no effect with --wide off: add --wide on, or leave it out");
            folder.xc(&format!("{command} {TRAIN} --wide off --model m --{option} {value}")).refused(2, &expected);
        }
        let outcome = folder.xc(&format!("train mach {TRAIN} --model m --{option} {value}"));
        assert!(outcome.code == 2 && outcome.stderr.contains(option), "{outcome:?}");
    }
    for (option, value) in [
        ("wide", "maybe"),
        ("wide.weight", "-1"),
        ("wide.weight", "nan"),
        ("wide.labels", "0"),
        ("wide.negatives", "0"),
        ("wide.cost", "0"),
        ("wide.prune-below", "-0.1"),
        ("wide.precision", "e4m3"),
    ] {
        let outcome = folder.xc(&format!("train lns {TRAIN} --model m --{option}={value}"));
        assert!(
            outcome.code == 2 && outcome.stderr.contains(&format!("--{option}")),
            "--{option} {value}: {outcome:?}"
        );
    }
    folder.write("train.npy", crate::program::npy(900, 6, |row, column| (row * (column + 3) % 7) as f32));
    let vectors = format!("{TRAIN} --features train.npy --model m");
    for kind in ["lns", "dense"] {
        folder
            .xc(&format!("train {kind} {vectors} --wide on"))
            .refused(2, "--wide on: instances are vectors; a term of features is expected to have features");
    }
    std::fs::remove_file(folder.path("train.npy")).unwrap();
    assert!(!folder.names().iter().any(|name| name == "m" || name == "m.log"), "{before:?}");
}

#[test]
fn a_plan_shows_the_settings_of_a_term_where_there_is_one() {
    let folder = data();
    let rows =
        ["wide", "wide.weight", "wide.labels", "wide.negatives", "wide.cost", "wide.prune-below", "wide.precision"];
    let plan = |arguments: &str| {
        let plan = json(&folder.ok(&format!("train {arguments} {TRAIN} --explain --json")));
        let options = plan["options"].as_array().unwrap().clone();
        rows.map(|row| options.iter().find(|of| of["option"] == row).unwrap()["value"].as_str().unwrap().to_owned())
    };
    let fitted = "the best on instances that are held out, else 0.3; of a squared hinge 1";
    // The features of the test are no more than the values of an embedding: without a word there is no term.
    assert_eq!(plan("lns")[0], "off");
    for arguments in ["lns --wide on", "astra --wide on", "dense --wide on", "uniform --wide on"] {
        assert_eq!(plan(arguments), ["on", fitted, "100", "20", "2", "0.1", "f32"], "{arguments}");
        let text = folder.ok(&format!("train {arguments} {TRAIN} --explain"));
        assert!(text.contains("--wide.negatives") && text.contains(fitted), "{arguments}: {text}");
        // Epochs are judged without the term, where instances judge them.
        let alone = "of the network alone after each epoch";
        assert!(!text.contains(alone), "{arguments}: {text}");
        let held_out = folder.ok(&format!("train {arguments} {TRAIN} --validation-fraction 0.3 --explain"));
        assert!(held_out.contains(alone), "{arguments}: {held_out}");
    }
    for kind in ["lns", "astra", "dense", "uniform"] {
        let arguments = format!("{kind} --wide off");
        assert_eq!(plan(&arguments), ["off", "none", "none", "none", "none", "none", "none"], "{arguments}");
        let held_out = folder.ok(&format!("train {arguments} {TRAIN} --validation-fraction 0.3 --explain"));
        assert!(!held_out.contains("of the network alone"), "{arguments}: {held_out}");
    }
    let given = plan("lns --wide.weight 0.5 --wide.labels 7 --wide.precision bf16");
    assert_eq!(given, ["on", "0.5", "7", "20", "2", "0.1", "bf16"]);
}

#[test]
fn members_of_blends_calibrated_models_searches_and_evaluations_may_have_a_term() {
    let folder = data();
    let held_out = "--validation-fraction 0.3";
    for (kind, more) in [KINDS[0], KINDS[3]] {
        folder.ok(&format!("train {kind} {TRAIN} {more} {QUICK} {held_out} --model {kind}"));
        folder
            .ok(&format!("calibrate --model {kind} --validation data/train.txt --held-out --output {kind}.calibrated"));
        let evaluate = |model: &str| {
            json(&folder.ok(&format!("evaluate --truth data/test.txt --model {model} --k 1 --json")))["P@1"]
                .as_f64()
                .unwrap()
        };
        assert!(evaluate(kind) > 0.1, "{kind}: P@1 {}", evaluate(kind));
        assert_eq!(evaluate(kind), evaluate(&format!("{kind}.calibrated")), "{kind}: a calibration keeps the order");
        let calibrated = folder.ok(&format!("predict --model {kind}.calibrated --input data/test.txt --raw-scores"));
        assert_eq!(calibrated, folder.ok(&format!("predict --model {kind} --input data/test.txt")), "{kind}");
    }
    folder.ok("blend lns uniform --validation data/train.txt --held-out --output both --folds 2 --networks 1");
    let answers = parsed(&folder.ok("predict --model both --input data/test.txt"));
    assert!(answers.len() == 200 && answers.iter().all(|row| row.len() == 5));
    let search =
        format!("tune lns {TRAIN} {held_out} --trials 2 {} --output search", QUICK.replace("--epochs 4", "--epochs 2"));
    folder.ok(&search);
    assert!(folder.path("search/best.toml").exists());
}

/// Some thousand labels, whose term weighs more than the program and the data.
const MANY: &str =
    "generate --instances 8000 --test-instances 50 --features 8000 --labels 3000 --no-text --no-names --output data";

#[test]
#[ignore = "trains to the peak, with .ci/run --all"]
fn a_term_fits_into_the_memory_that_was_foreseen_for_it() {
    let folder = Folder::new();
    folder.ok(MANY);
    for (kind, more) in [
        ("lns", "--network.widths 32 --epochs 6 --batch 512 --wide.negatives 60"),
        ("lns", "--network.widths 32 --epochs 2 --batch 2048 --negatives.sampled 50 --negatives.shared false"),
        ("astra", "--network.widths 32 --epochs 4 --batch 512 --validation-fraction 0.2"),
        ("dense", "--network.widths 32 --epochs 2 --batch 512 --wide on --wide.negatives 200"),
    ] {
        let report = json(&folder.ok(&format!("train {kind} {TRAIN} {more} --model m --threads 2 --restart --json")));
        let number = |value: &Value| value.as_f64().unwrap();
        let (estimate, peak) = (number(&report["memory"]["total_bytes"]), number(&report["peak_rss_bytes"]));
        assert!(number(&report["memory"]["wide_bytes"]) > 0.0, "{kind} {more}: {}", report["memory"]);
        assert!(peak < 1.05 * estimate, "{kind} {more}: peak {peak}, estimate {estimate}");
    }
}

#[test]
fn a_term_of_any_number_of_labels_is_refused_or_served() {
    let folder = data();
    let huge = format!("train lns {TRAIN} --model n --epochs 1 --wide.negatives 18446744073709551615");
    let outcome = folder.xc(&huge);
    assert!(outcome.code == 3 && outcome.stderr.contains("--wide"), "{outcome:?}");
    folder.ok(&format!("train lns {TRAIN} --model n --epochs 1 --network.widths 8 --wide.labels 18446744073709551615"));
    folder.ok("predict --model n --input data/test.txt --output n.txt");
}
