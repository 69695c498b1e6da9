//! Models blended into one: fitted on rows that no member saw, asked as any other model.

use crate::program::{Folder, Shared, files, json};
use std::io::Write;
use std::process::Stdio;

const SMALL: &str =
    "generate --instances 800 --test-instances 300 --features 3000 --labels 120 --words 60 --output data";
const HELD_OUT: &str = "--validation-fraction 0.2";
const DENSE: &str = "--network.widths 32 --epochs 3 --optimizer.rate 0.02";

/// Members of two kinds that hold out the same rows, and a tree of all rows.
fn members() -> Folder {
    static MEMBERS: Shared<Folder> = Shared::new();
    MEMBERS.copy(|folder| {
        folder.ok(SMALL);
        folder.ok(&format!("train tree --train data/train.txt {HELD_OUT} --model tree"));
        folder.ok(&format!("train dense --train data/train.txt {HELD_OUT} {DENSE} --model dense"));
        folder.ok("train tree --train data/train.txt --model tree.all");
    })
}

const BLEND: &str = "blend tree dense --validation data/train.txt --held-out --output blend";
/// A fit of less work, where its quality is of no matter.
const QUICK: &str = "--folds 2 --networks 1";

fn p1(folder: &Folder, model: &str) -> f64 {
    folder.ok(&format!("predict --model {model} --input data/test.txt --output {model}.answers"));
    let report = folder.ok(&format!("evaluate --truth data/test.txt --predictions {model}.answers --k 1 --json"));
    json(&report)["P@1"].as_f64().unwrap()
}

#[test]
fn runs_of_several_seeds_hold_out_the_rows_of_one_split_seed() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder.ok(&format!("train tree --train data/train.txt {HELD_OUT} --seed 1 --split-seed 7 --model tree"));
    folder.ok(&format!("train dense --train data/train.txt {HELD_OUT} {DENSE} --seed 2 --split-seed 7 --model dense"));
    let report = json(&folder.ok(&format!("{BLEND} {QUICK} --json")));
    assert!((587..693).contains(&report["left_out"].as_u64().unwrap()), "{report}");
    folder.ok(&format!("train tree --train data/train.txt {HELD_OUT} --seed 7 --model other"));
    let blend = "blend other dense --validation data/train.txt --held-out --output same --json";
    let report = json(&folder.ok(&format!("{blend} {QUICK}")));
    assert!((587..693).contains(&report["left_out"].as_u64().unwrap()), "{report}");
    let alone = folder.xc("train tree --train data/train.txt --split-seed 7 --model no");
    assert!(alone.code == 2 && alone.stderr.contains("--split-seed"), "{alone:?}");
}

#[test]
fn a_blend_is_a_model_that_is_no_worse_than_its_members() {
    let folder = members();
    let report = json(&folder.ok(&format!("{BLEND} --folds 3 --networks 2 --json")));
    let left_out = report["left_out"].as_u64().unwrap();
    assert_eq!(report["instances"].as_u64().unwrap() + left_out, 800);
    assert!((587..693).contains(&left_out), "{report}");
    assert_eq!((report["rules"].as_array().unwrap().len(), report["members"].as_array().unwrap().len()), (4, 2));
    assert!(report["rules"][1]["log_loss"].as_f64().unwrap() < 0.5 && report["model_bytes"].as_u64() > Some(10_000));

    let best = f64::max(p1(&folder, "tree"), p1(&folder, "dense"));
    let got = p1(&folder, "blend");
    assert!(got > best - 0.02, "P@1 {got}, members {best}");
    // Scores are probabilities, and lists of any length agree.
    let answers = |k: usize| folder.ok(&format!("predict --model blend --input data/test.txt --top-k {k}"));
    let (short, long) = (answers(3), answers(500));
    for (short, long) in short.lines().zip(long.lines()) {
        assert!(long.starts_with(short), "{short} is not the beginning of {long}");
        let scores: Vec<f64> = long.split(' ').map(|e| e.split_once(':').unwrap().1.parse().unwrap()).collect();
        assert!(scores.iter().all(|p| (0.0..=1.0).contains(p)) && scores.is_sorted_by(|a, b| a >= b), "{long}");
    }
    // The members are inside: those outside may go.
    for name in ["tree", "dense"] {
        std::fs::remove_dir_all(folder.path(name)).unwrap();
    }
    assert_eq!(answers(3), short);
    folder.ok("inspect blend --verify");
    let shown = folder.ok("inspect blend");
    assert!(shown.contains("\nmembers\n") && shown.contains("dense") && shown.contains("rule"), "{shown}");
    assert_eq!(json(&folder.ok("inspect blend --json"))["members"][0]["kind"], "tree");
}

#[test]
fn the_same_bytes_at_any_number_of_threads_and_answers_line_by_line_as_from_a_file() {
    let folder = members();
    for threads in [1, 3] {
        folder.ok(&format!("{BLEND}{threads} --folds 2 --networks 2 --rule net --threads {threads}"));
        folder.ok(&format!("predict --model blend1 --input data/test.txt --output {threads}.txt --threads {threads}"));
    }
    assert!(files(&folder.path("blend1")) == files(&folder.path("blend3")), "threads show in the model");
    assert_eq!(folder.read("1.txt"), folder.read("3.txt"));
    let test = folder.read("data/test.txt");
    let mut child = folder.command("predict --model blend1 --input - --quiet");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(test.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), folder.read("1.txt"));
    for (rule, size) in [("reciprocal-ranks", ""), ("logistic", ""), ("net", "--networks 1")] {
        folder.ok(&format!("{BLEND} --rule {rule} --folds 2 {size}"));
        assert_eq!(json(&folder.read("blend/config.json"))["parameters"]["rule"], rule);
    }
}

#[test]
fn members_of_every_kind_hold_out_the_same_rows_and_say_which() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let network = "--epochs 1 --network.widths 16";
    for (kind, more) in [
        ("tree", ""),
        ("mach", "--buckets 20 --repetitions 2 --epochs 1 --network.widths 16"),
        ("dense", network),
        ("lns", network),
        ("uniform", "--epochs 1 --network.widths 16 --network.intermediate 64 --head.fan-in 8"),
    ] {
        folder.ok(&format!("train {kind} --train data/train.jsonl {HELD_OUT} {more} --model {kind}"));
    }
    let arrays = |model: &str| {
        let arrays = json(&folder.ok(&format!("inspect {model} --json")))["arrays"].clone();
        let arrays = arrays.as_array().unwrap().iter().filter(|a| a["name"].as_str().unwrap().starts_with("training."));
        arrays.map(|a| (a["name"].clone(), a["xxh3"].clone())).collect::<Vec<_>>()
    };
    let expected = arrays("tree");
    assert_eq!(expected.len(), 4);
    for kind in ["mach", "dense", "lns", "uniform"] {
        assert_eq!(arrays(kind), expected, "{kind}");
    }
    folder.ok("train tree --train data/train.jsonl --validation-fraction 0.2 --seed 1 --model other");
    assert_ne!(arrays("other"), expected);
    // Text goes to each member's own pipeline.
    folder.ok("train tree --train data/train.jsonl --validation-fraction 0.2 --text.ngrams 2 --model pairs");
    folder.ok(&format!("blend tree pairs mach --validation data/train.jsonl --held-out --output blend {QUICK}"));
    let answers = folder.ok("predict --model blend --input data/test.jsonl --top-k 2");
    assert!(answers.lines().count() == 300 && answers.lines().all(|l| l.matches(':').count() == 2), "{answers}");
    let times = json(&folder.ok("bench predict --model blend --input data/test.jsonl --mode online --repeat 1 --json"));
    assert!(times["mean_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn members_that_learned_from_all_rows_take_the_places_of_the_others() {
    let folder = members();
    folder.ok(&format!("train dense --train data/train.txt {DENSE} --model dense.all"));
    folder.ok(&format!("{BLEND} {QUICK} --refit-members tree.all dense.all"));
    let config = json(&folder.read("blend/config.json"));
    let hash = |model: &str| json(&folder.read(&format!("{model}/config.json")))["xxh3"].clone();
    let parameters = &config["parameters"];
    assert_eq!(parameters["members"][0]["xxh3"], hash("tree.all"));
    assert_eq!(parameters["fitted_with"][1]["xxh3"], hash("dense"));
    assert!(p1(&folder, "blend") > 0.5);
    let refused = |refits: &str, expected: &str| {
        folder.xc(&format!("{BLEND}2 --refit-members {refits}")).refused(2, expected);
    };
    refused("tree.all", "1 members trained again for 2 members; one for each is expected, in the same order");
    refused("dense.all tree.all", "dense.all: a model of kind \"dense\"; one of kind \"tree\" is expected, as tree");
    assert!(!folder.path("blend2").exists());
}

#[test]
fn a_refit_is_the_model_that_all_rows_give() {
    let folder = Folder::new();
    folder.ok(SMALL);
    // The rows that are held out say how much a network counts beside a wide term.
    let network = format!("{DENSE} --wide off");
    for (kind, more) in [("tree", ""), ("dense", &*network), ("mach", "--buckets 20 --repetitions 2 --epochs 2")] {
        folder.ok(&format!("train {kind} --train data/train.txt {more} {HELD_OUT} --model part --refit again"));
        folder.ok(&format!("train {kind} --train data/train.txt {more} --model all"));
        assert!(files(&folder.path("again")) == files(&folder.path("all")), "{kind}");
        let rows = |model: &str| json(&folder.ok(&format!("inspect {model} --json")))["arrays"].to_string();
        assert!(rows("part").contains("training.held_out") && !rows("again").contains("training.held_out"));
    }
    folder.xc("train tree --train data/train.txt --model m --refit r").refused(
        2,
        "--refit r: no instance is held out, so the model learns from all; --validation-fraction is expected",
    );
    folder
        .xc(&format!("train tree --train data/train.txt {HELD_OUT} --model m --refit m"))
        .refused(2, "--refit m: is --model; another folder is expected");
    assert!(!folder.path("m").exists());
}

#[test]
fn rows_that_a_member_learned_from_are_refused() {
    let folder = members();
    let report = json(&folder.ok("inspect tree --json"));
    let arrays = report["arrays"].as_array().unwrap();
    let seen = arrays.iter().find(|a| a["name"] == "training.rows").unwrap()["shape"][0].as_u64().unwrap();
    folder.xc("blend tree dense --validation data/train.txt --output b").refused(
        2,
        &format!(
            "data/train.txt: {seen} of 800 instances are training instances of tree; at most 1% are expected \
             (--held-out leaves them out)"
        ),
    );
    folder
        .xc("blend tree.all tree --validation data/train.txt --held-out --output b")
        .refused(2, "data/train.txt: every instance is a training instance of a member; others are expected");
    // Other rows need no option.
    folder.ok(&format!("blend tree dense --validation data/test.txt --output b {QUICK}"));
}

#[test]
fn what_makes_no_blend_is_said_in_one_line_and_leaves_nothing() {
    let folder = members();
    folder.ok("generate --instances 300 --features 3000 --labels 80 --words 60 --output other");
    folder.ok("train tree --train other/train.txt --model fewer");
    folder.ok("train tree --train data/train.jsonl --model text");
    folder.ok("convert --from xc tree --to pecos theirs --tree 0");
    folder.ok("convert --from pecos theirs --to xc imported");
    let names: Vec<String> = folder.read("data/labels.txt").lines().rev().map(str::to_owned).collect();
    folder.write("turned.txt", names.join("\n") + "\n");
    folder.ok("train tree --train data/train.txt --label-names data/labels.txt --model named");
    folder.ok("train tree --train data/train.txt --label-names turned.txt --model turned");
    let refused = |arguments: &str, expected: &str| {
        folder.xc(&format!("blend {arguments} --output out")).refused(2, expected);
        assert!(!folder.path("out").exists());
    };
    let rows = "--validation data/test.txt";
    refused(&format!("tree tree {rows}"), "tree: the same model as tree; different members are expected");
    refused(&format!("tree absent {rows}"), "absent: expected a model folder: No such file or directory");
    refused(&format!("tree fewer {rows}"), "fewer: 80 labels; tree has 120, and the same labels are expected");
    refused(&format!("tree text {rows}"), "text: takes text; tree takes sparse features");
    refused(
        &format!("imported dense {rows}"),
        "imported: does not say which rows it was trained on; --unknown-rows overrides this",
    );
    let (a, b) = (names.last().unwrap(), &names[0]);
    refused(&format!("named turned {rows}"), &format!("turned: label 0 is called {b:?}; in named it is {a:?}"));
    refused(&format!("named tree {rows}"), "tree: labels have no names, those of named have");
    refused(
        "tree dense --validation data/test.jsonl",
        "data/test.jsonl: holds text; features are expected, since the model was trained on features",
    );
    folder.write("bare.txt", "2 3000\n 1:1 4:1\n 2:1\n");
    refused(
        "tree dense --validation bare.txt",
        "bare.txt: no instance has a label; labels are expected (--validation-labels FILE gives them)",
    );
    folder.write("one.txt", "1 3000 120\n0 1:1 4:1\n");
    refused("tree dense --validation one.txt", "one.txt: 1 rows with labels; at least 2 are expected");
    refused(&format!("tree dense {rows} --folds 1"), "folds 1; at least 2 is expected");
    folder.ok(&format!("{BLEND} --rule logistic"));
    refused(&format!("tree blend {rows}"), "blend: a blend; models of other kinds are expected as members");
    folder.ok(&format!("blend imported dense {rows} --unknown-rows --output taken {QUICK}"));
    let outcome = folder.xc(&format!("blend tree dense {rows} --output tree"));
    outcome.refused(2, "--output tree: is the member tree; another folder is expected");

    // A member that changed since it was saved.
    let path = folder.path("dense/model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let outcome = folder.xc(&format!("blend tree dense {rows} --output out"));
    assert!(outcome.code == 2 && outcome.stderr.contains("damaged since it was saved"), "{outcome:?}");
    // In a blend, one that was replaced or is gone.
    std::fs::remove_dir_all(folder.path("blend/member-1")).unwrap();
    let outcome = folder.xc("predict --model blend --input data/test.txt");
    assert!(
        outcome.code == 2 && outcome.stderr.starts_with("xc: error: blend/member-1: expected a model folder"),
        "{outcome:?}"
    );
    folder.ok("train tree --train data/train.txt --model blend/member-1");
    folder
        .xc("predict --model blend --input data/test.txt")
        .refused(2, "blend/member-1: another model than the one that was blended");
    folder
        .xc("predict --model taken --input data/test.txt --beam 3")
        .refused(2, "--beam: the model is of kind \"blend\", which has no such option");
}

#[test]
fn shares_that_hold_out_nothing_are_refused() {
    let folder = Folder::new();
    folder.write("few.txt", "3 4 2\n0 0:1\n1 1:1\n0 2:1\n");
    for (share, expected) in [
        ("1.5", "--validation-fraction 1.5: a share from 0 to below 1 is expected".to_owned()),
        (
            "0.0001",
            "--validation-fraction 0.0001: none of the 3 instances of few.txt would be held out; a share that parts \
             them is expected"
                .to_owned(),
        ),
    ] {
        folder.xc(&format!("train tree --train few.txt --validation-fraction {share} --model m")).refused(2, &expected);
        assert!(!folder.path("m").exists());
    }
}
