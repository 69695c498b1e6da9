//! `xc convert --from xc --to xc`: trained models, changed without training.

use crate::program::{Folder, files, json};

const SMALL: &str =
    "generate --instances 1200 --test-instances 200 --features 2000 --labels 100 --words 60 --output data";
const CHANGE: &str = "convert --from xc --to xc";

fn tree(folder: &Folder) {
    folder.ok(SMALL);
    folder.ok("train tree --train data/train.jsonl --label-names data/labels.txt --trees 2 --model tree");
}

/// Labels and scores of each test instance.
fn answers(folder: &Folder, model: &str, more: &str) -> Vec<Vec<(u32, f32)>> {
    let text = folder.ok(&format!("predict --model {model} --input data/test.jsonl --top-k 100 {more}"));
    let entry = |word: &str| {
        let (label, score) = word.split_once(':').unwrap();
        (label.parse().unwrap(), score.parse().unwrap())
    };
    text.lines().map(|line| line.split_ascii_whitespace().map(entry).collect()).collect()
}

fn p1(folder: &Folder, model: &str) -> f64 {
    folder.ok(&format!("predict --model {model} --input data/test.jsonl --output {model}.answers"));
    let report = folder.ok(&format!(
        "evaluate --truth data/test.jsonl --predictions {model}.answers --label-names data/labels.txt --k 1 --json"
    ));
    json(&report)["P@1"].as_f64().unwrap()
}

fn bytes(folder: &Folder, model: &str) -> u64 {
    files(&folder.path(model)).iter().filter(|(name, _)| name.ends_with(".safetensors")).map(|f| f.1.len() as u64).sum()
}

#[test]
fn a_tree_becomes_smaller_and_answers_nearly_as_well() {
    let folder = Folder::new();
    tree(&folder);
    let before = (files(&folder.path("tree")), p1(&folder, "tree"));
    for (more, share) in [("--precision bf16", 0.9), ("--prune-below 0.3", 0.9), ("--trees 1", 0.7)] {
        folder.ok(&format!("{CHANGE} tree small {more}"));
        assert!((bytes(&folder, "small") as f64) < share * bytes(&folder, "tree") as f64, "{more}");
        let got = p1(&folder, "small");
        assert!(got > before.1 - 0.05, "{more}: P@1 {got}, {} before", before.1);
        folder.ok("inspect small --verify");
    }
    let config = json(&folder.read("small/config.json"));
    assert_eq!(config["parameters"]["changed"]["trees"], 1);
    assert_eq!(config["parameters"]["training"], json(&folder.read("tree/config.json"))["parameters"]["training"]);
    assert!(files(&folder.path("tree")) == before.0, "the source has changed");
    // What was trained with the same threshold is what is pruned to it.
    folder.ok("train tree --train data/train.jsonl --label-names data/labels.txt --trees 2 --linear.prune-below 0.3 --model pruned");
    folder.ok(&format!("{CHANGE} tree small --prune-below 0.3"));
    assert_eq!(answers(&folder, "small", ""), answers(&folder, "pruned", ""));
}

#[test]
fn kept_labels_alone_are_answered_with_their_ids_names_and_scores() {
    let folder = Folder::new();
    tree(&folder);
    let name = folder.read("tree/labels.txt").lines().nth(7).unwrap().to_owned();
    folder.write("keep.txt", format!("3\n{name}\n40\n41\n42\n"));
    folder.ok(&format!("{CHANGE} tree few --keep-labels keep.txt"));
    let full = answers(&folder, "tree", "--only-labels keep.txt");
    let few = answers(&folder, "few", "--beam 100");
    assert!(few.iter().any(|row| row.len() == 5), "{few:?}");
    assert_eq!(few, full);
    assert!(bytes(&folder, "few") < bytes(&folder, "tree") / 2);
    assert_eq!(folder.read("few/labels.txt"), folder.read("tree/labels.txt"));
}

#[test]
fn another_post_processor_gives_other_scores_of_the_same_margins() {
    let folder = Folder::new();
    tree(&folder);
    folder.ok("train tree --train data/train.jsonl --label-names data/labels.txt --trees 2 --post-processor l2-hinge --model other");
    folder.ok(&format!("{CHANGE} tree changed --post-processor l2-hinge"));
    assert_eq!(answers(&folder, "changed", ""), answers(&folder, "other", ""));
    assert_ne!(answers(&folder, "changed", ""), answers(&folder, "tree", ""));
}

#[test]
fn every_kind_of_model_gets_label_names_and_answers_as_before() {
    let folder = Folder::new();
    folder.ok(SMALL);
    let names: Vec<String> = (0..100).map(|label| format!("label {label}")).collect();
    folder.write("names.txt", names.join("\n"));
    let network = "--epochs 1 --network.widths 16";
    let held_out = "--validation-fraction 0.2";
    for (kind, more) in [
        ("tree", ""),
        ("mach", "--buckets 20 --repetitions 2 --epochs 1 --network.widths 16"),
        ("dense", network),
        ("lns", network),
        ("uniform", "--epochs 1 --network.widths 16 --network.intermediate 64 --head.fan-in 8"),
    ] {
        folder.ok(&format!("train {kind} --train data/train.txt {held_out} {more} --model {kind}"));
    }
    folder.ok("blend tree dense --validation data/train.txt --held-out --output blend --folds 2 --networks 1");
    for kind in ["tree", "mach", "dense", "lns", "uniform", "blend"] {
        folder.ok(&format!("{CHANGE} {kind} {kind}.named --label-names names.txt"));
        let ask = |model: &str| folder.ok(&format!("predict --model {model} --input data/test.txt"));
        assert_eq!(ask(&format!("{kind}.named")), ask(kind), "{kind}");
        assert_eq!(folder.read(&format!("{kind}.named/labels.txt")), names.join("\n") + "\n");
        assert!(!folder.path(&format!("{kind}/labels.txt")).exists());
        let named = folder.ok(&format!("predict --model {kind}.named --input data/test.txt --names --top-k 1"));
        assert!(named.starts_with("label "), "{kind}: {named}");
        folder.ok(&format!("inspect {kind}.named --verify"));
    }
}

#[test]
fn output_layers_take_another_precision_and_lose_their_index() {
    let folder = Folder::new();
    folder.ok(SMALL);
    folder.ok("train lns --train data/train.txt --epochs 2 --network.widths 16 --model lns");
    folder.ok(
        "train uniform --train data/train.txt --epochs 2 --network.widths 16 --network.intermediate 64 --head.fan-in 8 --model uniform",
    );
    folder.ok("index build --model lns");
    for model in ["lns", "uniform"] {
        folder.ok(&format!("{CHANGE} {model} {model}.copy"));
        assert_eq!(bytes(&folder, &format!("{model}.copy")), bytes(&folder, model));
        let outcome = folder.xc(&format!("{CHANGE} {model} {model}.small --precision bf16"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(bytes(&folder, &format!("{model}.small")) < bytes(&folder, model));
        folder.ok(&format!("inspect {model}.small --verify"));
        folder.ok(&format!("predict --model {model}.small --input data/test.txt --output small.txt"));
        folder.ok(&format!("predict --model {model} --exact --input data/test.txt --output full.txt"));
        let best =
            |name: &str| folder.read(name).lines().map(|l| l.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
        let (small, full) = (best("small.txt"), best("full.txt"));
        let same = small.iter().zip(&full).filter(|(a, b)| a == b).count();
        assert!(same > 180, "{model}: {same} of 200 best labels are the same");
    }
    assert!(folder.path("lns.copy/index").is_dir() && !folder.path("lns.small/index").exists());
}

#[test]
fn changes_that_a_kind_does_not_have_are_refused_and_nothing_is_written() {
    let folder = Folder::new();
    tree(&folder);
    folder.ok("train dense --train data/train.jsonl --epochs 1 --network.widths 8 --wide off --model dense");
    folder.write("two.txt", "a\nb\n");
    folder.write("keep.txt", "100\n");
    let before = folder.names();
    for (rest, expected) in [
        (
            "dense x --prune-below 0.1",
            "--prune-below: dense is a model of kind \"dense\"; expected a tree, or a network with a wide term",
        ),
        (
            "dense x --precision bf16",
            "--precision: dense is a model of kind \"dense\"; expected a tree, or a network with a wide term or a sparse or sampled output layer (uniform, lns, astra)",
        ),
        ("tree x --trees 3", "tree: 3 trees; the model has 2, and 1 to 2 can be kept"),
        (
            "tree x --post-processor noop",
            "tree: post-processor noop gives negative scores, of which 2 trees have no mean; expected sigmoid or lP-hinge",
        ),
        ("tree x --prune-below -1", "tree: prune below -1; expected a finite number of 0 or more"),
        (
            "tree x --label-names two.txt",
            "two.txt: 2 label names; the model has 100 labels, and one name each is expected",
        ),
        ("tree x --keep-labels keep.txt", "keep.txt: line 1: got \"100\", expected a label name or an id below 100"),
        ("tree tree", "convert: tree and tree are one folder; another folder is expected"),
        ("tree ./tree/", "convert: tree and ./tree/ are one folder; another folder is expected"),
    ] {
        folder.xc(&format!("{CHANGE} {}", rest.replace("--prune-below -1", "--prune-below=-1"))).refused(2, expected);
    }
    folder
        .xc("convert --from xc --to pecos tree x --trees 1")
        .refused(2, "convert: --trees changes a model: --from xc --to xc is expected");
    assert_eq!(folder.names(), before);
}
