//! MACH and the dense network from outside.

use crate::program::{Folder, contents, json, run};
use serde_json::Value;

const DATA: &str =
    "generate --instances 800 --test-instances 200 --features 2000 --labels 150 --words 50 --output data";
const QUICK: &str = "--network.widths 24 --epochs 12 --optimizer.rate 0.02 --batch-size 64 --loss softmax";

fn precision(folder: &Folder, model: &str, more: &str) -> f64 {
    folder.ok(&format!("predict --model {model} --input data/test.txt --output {model}.txt {more}"));
    let report = json(&folder.ok(&format!("evaluate --truth data/test.txt --predictions {model}.txt --json")));
    report["P@1"].as_f64().unwrap()
}

#[test]
fn mach_learns_with_a_tenth_of_the_outputs_and_more_repetitions_answer_better() {
    let folder = Folder::new();
    folder.ok(&DATA.replace("--instances 800", "--instances 3000"));
    let report = folder.ok(&format!(
        "train mach --train data/train.txt --validation data/test.txt --repetitions 6 --buckets 15 --model mach {QUICK} --json"
            ));
    let report = json(&report);
    folder.ok(&format!("train dense --train data/train.txt --model dense --wide off {QUICK}"));
    let (mach, dense) = (precision(&folder, "mach", ""), precision(&folder, "dense", ""));
    assert!((report["P@1"].as_f64().unwrap() - mach).abs() < 1e-9, "the report of training is that of evaluate");
    assert_eq!(
        (&report["output_parameters"], &report["dense_output_parameters"]),
        (&(6 * 15 * 25).into(), &(150 * 25).into())
    );
    let one = precision(&folder, "mach", "--repetitions 2");
    assert!(
        dense > 0.35 && mach > dense - 0.1 && one < mach - 0.05,
        "dense {dense}, mach {mach}, one repetition {one}"
    );
    // The other decoders and a decode that stops early answer too.
    for more in ["--decoder min", "--decoder median", "--max-labels 1000000"] {
        assert!(precision(&folder, "mach", more) > 0.2, "{more}");
    }
    assert!(folder.path("mach.log/repetition-0005/curve.svg").exists());
    assert!(folder.path("dense.log/log.jsonl").exists());
    assert!(!folder.path("mach.checkpoint").exists() && !folder.path("dense.checkpoint").exists());
}

#[test]
fn parts_trained_apart_merge_into_the_bytes_of_one_run() {
    let folder = Folder::new();
    folder.ok(DATA);
    let train =
        format!("train mach --train data/train.jsonl --label-names data/labels.txt --buckets 20 {QUICK} --seed 3");
    folder.ok(&format!("{train} --repetitions 4 --model whole --threads 2"));
    folder.ok(&format!("{train} --repetitions-range 2..4 --model b --threads 1"));
    folder.ok(&format!("{train} --repetitions-range 0..2 --model a --threads 2"));
    folder.ok("merge b a --output merged");
    assert_eq!(contents(&folder.path("whole")), contents(&folder.path("merged")));
    assert!(contents(&folder.path("whole")).contains_key("labels.txt"));
    // More labels, without training: those that were there keep their scores.
    let mut names = folder.read("whole/labels.txt");
    names.push_str("a new label\n");
    let n = names.lines().count();
    folder.write("names.txt", names);
    let grown = folder.xc(&format!("merge whole --labels {n} --label-names names.txt --output grown"));
    match grown.code {
        0 => {
            folder.ok("predict --model grown --input data/test.jsonl --top-k 1000 --output grown.txt");
            assert_eq!(folder.read("grown.txt").lines().next().unwrap().split(' ').count(), n);
        }
        // The prime may be full already.
        code => assert!(code == 2 && grown.stderr.contains("do not fit the prime"), "{}", grown.stderr),
    }
    folder
        .xc("merge a a --output again")
        .refused(2, "a: repetition 0 is also in a; expected parts with different repetitions");
    folder.ok(&format!(
        "train mach --train data/train.jsonl --label-names data/labels.txt --buckets 20 {QUICK} --seed 4 --repetitions-range 2..3 --model c"
    ));
    folder.xc("merge a c --output again").refused(2, "c: mach.seed is 4, expected 3 as in a");
    folder.ok(&format!(
        "train mach --train data/train.jsonl --label-names data/labels.txt --buckets 21 {QUICK} --seed 3 --repetitions-range 2..3 --model d"
    ));
    folder.xc("merge a d --output again").refused(2, "d: mach.n_buckets is 21, expected 20 as in a");
    folder.ok(&format!("{train} --text.ngrams 1 --text.min-chars 3 --repetitions-range 2..3 --model e"));
    let outcome = folder.xc("merge a e --output again");
    assert!(outcome.code == 2 && outcome.stderr.contains("e: "), "{}", outcome.stderr);
    folder.ok("train tree --train data/train.jsonl --model tree");
    let outcome = folder.xc("merge a tree --output again");
    assert!(
        outcome.code == 2 && outcome.stderr.contains("tree") && outcome.stderr.contains("mach"),
        "{}",
        outcome.stderr
    );
    folder.xc("merge tree --output again").refused(2, "tree: models of kind \"tree\" cannot be merged; expected mach");
    folder
        .xc("convert --from xc a --to pecos again")
        .refused(2, "a: a model of kind \"mach\" cannot be converted to pecos");
    assert!(!folder.path("again").exists());
}

#[test]
fn batch_stream_candidates_and_label_sets_agree() {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.ok(&format!("train mach --train data/train.txt --repetitions 3 --buckets 20 --model mach {QUICK}"));
    folder.ok(&format!("train dense --train data/train.txt --model dense {QUICK}"));
    folder.ok("train tree --train data/train.txt --model tree --tree.branching 4");
    folder.write("some.txt", "3\n77\n140\n");
    folder.write("shown.txt", "3,77,140\n".repeat(200));
    for model in ["mach", "dense", "tree"] {
        let ask = |more: &str| folder.ok(&format!("predict --model {model} {more}"));
        let batch = ask("--input data/test.txt --top-k 4 --threads 2");
        assert_eq!(batch.lines().count(), 200);
        let mut stream = folder.command(&format!("predict --model {model} --input - --top-k 4 --quiet"));
        stream.stdin(std::fs::File::open(folder.path("data/test.txt")).unwrap());
        assert_eq!(run(&mut stream).quiet_success(), batch, "{model}");
        let some = ask("--input data/test.txt --only-labels some.txt --top-k 2");
        assert_eq!(some, ask("--input data/test.txt --candidates shown.txt --top-k 2"), "{model}");
        for line in some.lines() {
            let labels: Vec<&str> = line.split(' ').map(|e| e.split(':').next().unwrap()).collect();
            assert!(labels.len() == 2 && labels.iter().all(|l| ["3", "77", "140"].contains(l)), "{model}: {line}");
        }
        // Every label given: the answer of a search that sees all.
        let all: Vec<String> = (0..150).map(|l| l.to_string()).collect();
        folder.write("all.txt", all.join("\n"));
        if model != "tree" {
            assert_eq!(ask("--input data/test.txt --only-labels all.txt --top-k 4"), batch, "{model}");
        }
        let bench = format!("bench predict --model {model} --input data/test.txt --mode online --repeat 1 --json");
        let latency = json(&folder.ok(&bench));
        assert_eq!(latency["queries"], 200);
    }
    folder.write("few.txt", "3\n4\n");
    folder
        .xc("predict --model mach --input data/test.txt --candidates few.txt")
        .refused(2, "few.txt: 2 rows of candidates for 200 instances; one a row is expected");
    folder.write("many.txt", "3\n".repeat(201));
    folder
        .xc("predict --model mach --input data/test.txt --candidates many.txt --output none.txt")
        .refused(2, "many.txt: 201 rows of candidates for 200 instances; one a row is expected");
    assert!(!folder.path("none.txt").exists());
    folder
        .xc("predict --model mach --input data/test.txt --beam 5")
        .refused(2, "--beam: the model is of kind \"mach\", which has no such option");
    folder
        .xc("predict --model tree --input data/test.txt --decoder min")
        .refused(2, "--decoder: the model is of kind \"tree\", which has no such option");
    folder
        .xc("predict --model dense --input data/test.txt --repetitions 1")
        .refused(2, "dense: a model of kind \"dense\" has no repetitions to choose from");
    folder
        .xc("bench predict --model dense --input data/test.txt --mode online --floor")
        .refused(2, "--floor: a model of kind \"dense\" cannot tell what memory a query touches");
}

#[test]
fn a_lost_repetition_is_said_and_the_others_answer() {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.ok(&format!("train mach --train data/train.txt --repetitions 3 --buckets 20 --model mach {QUICK}"));
    let two = folder.ok("predict --model mach --input data/test.txt --repetitions 0,2");
    std::fs::remove_file(folder.path("mach/model-repetition-0001.safetensors")).unwrap();
    let outcome = run(&mut folder.command("predict --model mach --input data/test.txt"));
    assert_eq!((outcome.code, outcome.stdout), (0, two));
    for words in ["warning: repetition 1 is left out", "model-repetition-0001.safetensors", "2 of 3 repetitions answer"]
    {
        assert!(outcome.stderr.contains(words), "{words:?} in {}", outcome.stderr);
    }
    let inspected = folder.xc("inspect mach");
    assert!(
        inspected.code == 2 && inspected.stdout.contains("lost") && inspected.stdout.contains("whole"),
        "{}",
        inspected.stdout
    );
    let merged = folder.xc("merge mach --output other");
    assert!(merged.code == 2 && merged.stderr.contains("model-repetition-0001"), "{}", merged.stderr);
    let absent = folder.xc("predict --model mach --input data/test.txt --repetitions 7");
    absent.refused(2, "mach: no repetition 7; it has 0-2");
    for number in [0, 2] {
        std::fs::write(folder.path(&format!("mach/model-repetition-000{number}.safetensors")), "x").unwrap();
    }
    let outcome = folder.xc("predict --model mach --input data/test.txt");
    assert!(
        outcome.code == 2 && outcome.stderr.contains("none of the 3 repetitions can be read"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let folder = Folder::new();
    folder.ok(DATA);
    let refused = |more: &str, expected: &str| {
        let outcome = folder.xc(&format!("train mach --train data/train.txt --model m {more}"));
        assert!(outcome.code == 2 && outcome.stderr.contains(expected), "{more}: {} {}", outcome.code, outcome.stderr);
        assert!(!folder.path("m").exists());
    };
    refused("--buckets 150", "150 buckets for 150 labels");
    refused("--buckets 1", "expected at least 2");
    refused("--buckets 20 --repetitions 0", "--repetitions 0: at least 1 is expected");
    refused("--buckets 20 --repetitions-range 4..4", "expected FROM..TO");
    refused("--buckets 20 --epochs 0", "--epochs 0");
    refused("--buckets 20 --batch-size 0", "batch_size");
    refused("--buckets 20 --network.widths 0", "none of them 0");
    refused("--buckets 20 --network.dropout 1", "a rate from 0 to below 1");
    refused("--buckets 20 --optimizer.rate nan", "rate");
    refused("--buckets 20 --optimizer.weight-decay 1", "adamw has");
    refused("--buckets 20 --validation-fraction 1.5", "--validation-fraction 1.5");
    refused("--buckets 20 --checkpoint-every 0", "--checkpoint-every 0");
    refused(
        "--buckets 20 --schedule.lowest 0.1",
        " has no effect with --schedule cosine: add --schedule plateau, or leave it out",
    );
    refused("--buckets 20 --schedule plateau --schedule.lowest 2", "--schedule.lowest 2: a share from 0 to 1");
    refused("--buckets 20 --patience-from lowest-rate", "--patience");
    refused("--buckets 20 --patience 1 --patience-from lowest-rate", "a schedule that reaches its lowest rate");
    let endless = "--buckets 20 --patience 1 --patience-from lowest-rate --schedule plateau";
    refused(endless, "a schedule that reaches its lowest rate");
    // A loss that is not finite: exit code 1, and the last good state named.
    let diverging = "train mach --train data/train.txt --model m --buckets 20 --repetitions 1 --network.widths 24 \
                     --checkpoint-every 1 --schedule constant --optimizer sgd --optimizer.rate 1e30";
    let outcome = folder.xc(diverging);
    assert!(outcome.code == 1 && outcome.stderr.contains("the loss is"), "{} {}", outcome.code, outcome.stderr);
    // What it left is gone on with only when its settings are the same.
    if folder.path("m.checkpoint").exists() {
        let outcome = folder
            .xc(&format!("train mach --train data/train.txt --model m --buckets 20 --repetitions 1 {QUICK} --resume"));
        assert!(
            outcome.code == 2 && outcome.stderr.contains("belongs to other data or settings"),
            "{}",
            outcome.stderr
        );
    }
    // The checkpoint is removed in the end: a folder with other things in it is none, whether
    // resumed or not.
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/notes.txt", "mine");
    for kind in ["tree", "dense", "mach --buckets 20"] {
        for resume in ["", "--resume"] {
            let train = format!("train {kind} --train data/train.txt --model n --checkpoint mine {resume}");
            folder
                .xc(&train)
                .refused(2, "mine: holds \"notes.txt\", which is no part of a checkpoint; another folder is expected");
            assert_eq!(folder.read("mine/notes.txt"), "mine");
        }
    }
    let outcome =
        folder.xc(&format!("train mach --train data/train.txt --model large --buckets 20 {QUICK} --max-memory 1000"));
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
}

#[test]
fn killed_at_any_moment_mach_resumes_to_the_same_bytes() {
    let folder = Folder::new();
    folder.ok(DATA);
    let train = format!("train mach --train data/train.txt --repetitions 3 --buckets 20 {QUICK} --checkpoint-every 2");
    folder.ok(&format!("{train} --model whole --threads 1"));
    folder.resumed_after_kills(&format!("{train} --model m"), 12, |attempt| 20 + 37 * attempt % 400);
    assert_eq!(contents(&folder.path("whole")), contents(&folder.path("m")));
    // The log has the lines of an uninterrupted run, but for times and for what it notes of
    // checkpoints.
    let lines = |model: &str| -> Vec<Value> {
        let log = folder.read(&format!("{model}.log/repetition-0001/log.jsonl"));
        let mut lines: Vec<Value> = log.lines().map(json).filter(|line| line["event"] != "saved").collect();
        for line in &mut lines {
            ["instances_per_s", "wall_s", "cpu_s"].iter().for_each(|time| line[*time] = Value::Null);
        }
        lines
    };
    assert_eq!(lines("whole"), lines("m"));
    let curve = |model: &str| folder.read(&format!("{model}.log/repetition-0001/curve.svg"));
    assert!(curve("m").starts_with("<svg") && curve("m") == curve("whole"), "{}", curve("m"));
}

#[test]
fn training_goes_by_precision_at_three_down_to_the_lowest_rate() {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.ok(
        "train dense --train data/train.txt --validation data/test.txt --model dense --network.widths 16 --batch-size 64 \
         --epochs 200 --optimizer.rate 0.02 --monitor P@3 --schedule plateau --schedule.lowest 0.25 --patience 1 \
         --patience-from lowest-rate",
    );
    let log = std::fs::read_to_string(folder.path("dense.log/log.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(json).collect();
    let of = |event: &str, key: &str| -> Vec<f64> {
        lines.iter().filter(|line| line["event"] == event).map(|line| line[key].as_f64().unwrap()).collect()
    };
    // The first evaluation without improvement at a quarter of the rate is the last one.
    let rates = of("step", "rate");
    assert_eq!((rates[0], rates[rates.len() - 1]), (0.02, 0.005));
    let got = of("validation", "P@3");
    assert!(got.len() < 200, "it never stopped");
    let before = got[..got.len() - 1].iter().copied().fold(0.0, f64::max);
    assert!(got[got.len() - 1] <= before, "{got:?}");
    let curve = folder.read("dense.log/curve.svg");
    for text in ["training loss", "validation loss", "validation P@3", "step"] {
        assert!(curve.contains(&format!(">\n{text}\n</text>")), "no {text}: {curve}");
    }
    let config = json(&std::fs::read_to_string(folder.path("dense/config.json")).unwrap());
    let training = &config["parameters"]["training"];
    assert_eq!(training["settings"]["monitor"], "P@3");
    assert_eq!(training["settings"]["early_stopping"]["from"], "lowest-rate");
    assert_eq!(training["schedule"], "plateau, lowest 0.25");
}

#[test]
fn curves_of_trainings_stand_in_one_picture_over_steps_or_time() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (name, width) in [("a", 4), ("b", 16)] {
        folder.ok(&format!(
            "train dense --train data/train.txt --validation data/test.txt --model {name} --network.widths {width} \
             --batch-size 64 --epochs 3"
        ));
    }
    let logs = "--log narrow=a.log --log b.log/log.jsonl --output race.svg";
    for (over, axis) in [("", "step"), ("--x wall --log-x", "time of the training, seconds"), ("--x epoch", "epoch")] {
        let report = json(&folder.ok(&format!("bench curves {logs} {over} --json")));
        assert_eq!(report["x"], axis);
        let names = [&report["trainings"][0]["name"], &report["trainings"][1]["name"]];
        assert_eq!(names, ["narrow", "b.log/log.jsonl"]);
        let picture = folder.read("race.svg");
        for text in ["narrow", "P@1", "loss", axis] {
            assert!(picture.contains(&format!(">\n{text}\n</text>")), "no {text}: {picture}");
        }
    }
    // The table has the best value of the log, and where it was reached.
    let log = folder.read("a.log/log.jsonl");
    let lines: Vec<Value> = log.lines().map(json).filter(|line| line["event"] == "validation").collect();
    let best = lines.iter().map(|line| line["P@1"].as_f64().unwrap()).fold(0.0, f64::max);
    let table = folder.ok(&format!("bench curves {logs} --x cpu"));
    assert!(table.contains(&format!("{:.2}", 100.0 * best)), "{table}");
    // Runs of one name: mean and standard deviation of their best values.
    let best_of = |report: &Value| report["trainings"][0]["best"].as_f64().unwrap();
    let [a, b] = ["a", "b"].map(|run| json(&folder.ok(&format!("bench curves --log {run}.log --output o.svg --json"))));
    let both = json(&folder.ok("bench curves --log x=a.log --log x=b.log --output o.svg --json"));
    let (a, b) = (best_of(&a), best_of(&b));
    assert!((best_of(&both) - (a + b) / 2.0).abs() < 1e-12, "{both}");
    let deviation = both["trainings"][0]["deviation"].as_f64().unwrap();
    assert!((deviation - (a - b).abs() / 2f64.sqrt()).abs() < 1e-12 && both["trainings"][0]["runs"] == 2, "{both}");
    // Time of the training grows from line to line.
    let times: Vec<f64> = lines.iter().map(|line| line["wall_s"].as_f64().unwrap()).collect();
    assert!(times[0] > 0.0 && times.is_sorted(), "{times:?}");
    let log_expected = "No such file or directory; expected the log of a training run: MODEL.log, or its log.jsonl";
    let no_metric = "no validation with P@77 and its step; expected the log of a training run with --validation or \
                     --validation-fraction";
    for (wrong, line) in [
        ("--log none.log", format!("none.log: {log_expected}")),
        ("--log a", format!("a/log.jsonl: {log_expected}")),
        ("--log a.log --metric P@77", format!("a.log/log.jsonl: {no_metric}")),
    ] {
        folder.xc(&format!("bench curves {wrong} --output race.svg")).refused(2, &line);
    }
}

#[test]
fn sizes_of_a_lost_repetition_may_be_any() {
    let folder = Folder::new();
    folder.ok("generate --instances 100 --features 50 --labels 30 --no-text --no-names --output d");
    folder.ok("train mach --train d/train.txt --repetitions 2 --buckets 8 --network.widths 8 --epochs 1 --model m");
    let config = folder.read("m/config.json");
    let mut value = json(&config);
    for (name, entry) in value["arrays"].as_object_mut().unwrap() {
        if name.starts_with("r1.") {
            entry["shape"] = serde_json::json!([u64::MAX]);
        }
    }
    folder.write("m/config.json", value.to_string());
    let outcome = folder.xc("inspect m");
    assert!(outcome.code == 2 && outcome.stdout.contains("lost") && !outcome.stderr.contains("defect"), "{outcome:?}");
}
