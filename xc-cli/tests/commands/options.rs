//! Options: what is said of wrong ones, and which values a training run has where none is given.

use crate::program::{Folder, json, run};
use serde_json::Value;
use xc_model::mach::MachParams;
use xc_train::preset::{self, DataShape};

const DATA: &str =
    "generate --instances 800 --test-instances 200 --features 2000 --labels 150 --words 50 --output data";

const KINDS: [&str; 7] = ["tree", "mach", "dense", "uniform", "lns", "astra", "skipgram"];

/// The arguments of a training of a kind, without further options.
fn train(kind: &str) -> String {
    let file = if kind == "skipgram" { "text.txt" } else { "data/train.txt" };
    format!("train {kind} --train {file} --model m")
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.write("text.txt", "a king and a queen\na king and a man\nthe queen and the king\n".repeat(5));
    folder
}

#[test]
fn a_wrong_option_or_command_is_told_in_a_sentence_and_tips_are_near() {
    let folder = Folder::new();
    let kinds = "tree, mach, dense, uniform, lns, astra or skipgram";
    let predict = "predict --model m --input x";
    for (arguments, expected) in [
        ("serve".to_owned(), "unknown command 'xc serve' (see 'xc --help')".to_owned()),
        ("--seed 1".to_owned(), "a command is expected (see 'xc --help')".to_owned()),
        ("train --seed 1".to_owned(), format!("a subcommand is expected: {kinds} (see 'xc train --help')")),
        (
            "train svm".to_owned(),
            format!("unknown command 'xc train svm'; {kinds} is expected (see 'xc train --help')"),
        ),
        (
            "train tre".to_owned(),
            "unknown command 'xc train tre'; a similar one is 'tree' (see 'xc train --help')".to_owned(),
        ),
        (
            "train --train x --model y".to_owned(),
            format!("unexpected argument '--train'; 'xc train' takes a kind first: {kinds} (see 'xc train --help')"),
        ),
        (
            format!("{predict} --outptu o"),
            "unexpected argument '--outptu'; a similar one is '--output' (see 'xc predict --help')".to_owned(),
        ),
        (
            "train tree --linear.branchng 3".to_owned(),
            "unexpected argument '--linear.branchng'; a similar one is '--tree.branching' (see 'xc train tree --help')"
                .to_owned(),
        ),
        (
            "train dense --treshold 3".to_owned(),
            "unexpected argument '--treshold' (see 'xc train dense --help')".to_owned(),
        ),
        (
            "evaluate --truth t --predictions p --colour".to_owned(),
            "unexpected argument '--colour' (see 'xc evaluate --help')".to_owned(),
        ),
        (format!("{predict} -k 3"), "unexpected argument '-k' (see 'xc predict --help')".to_owned()),
    ] {
        folder.xc(&arguments).refused(2, &expected);
    }
    let outcome = folder.xc("train lns --train x --model m --schedule cosin");
    assert!(outcome.stderr.contains("; a similar one is 'cosine' (see"), "{outcome:?}");
    assert!(!outcome.stderr.contains("tip"), "{outcome:?}");
}

#[test]
fn an_unknown_key_of_a_file_names_the_command_and_the_nearest_key() {
    let folder = Folder::new();
    folder.write("o.toml", "train = \"x\"\n[linear]\nbranchng = 4\n");
    folder.xc("train tree --config o.toml --model m").refused(
        2,
        "o.toml: line 3: `xc train tree` has no option --linear.branchng; a similar one is --tree.branching",
    );
}

#[test]
fn help_shows_the_defaults_of_trees() {
    let folder = Folder::new();
    let help = folder.ok("train tree --help").split_whitespace().collect::<Vec<_>>().join(" ");
    for shown in [
        "Trees whose scores are averaged [default: 3; 1 with --preset xr-linear]",
        "Children of a cluster [default: 16; 2 with --preset parabel; 100 with --preset bonsai]",
        "Target for the number of labels in a leaf cluster; a balanced tree may exceed it by half [default: 100]",
        "others are divided by their typical length [default: 1; 10 with --linear.loss logistic]",
        "0 for none [default: 1]",
        "(liblinear's eps) [default: 0.1]",
        "smaller and faster [default: 0.1; 0.2 with --linear.loss logistic]",
    ] {
        assert!(help.contains(shown), "{shown}: {help}");
    }
}

/// `--explain --json`, and its options by name.
fn explained(folder: &Folder, arguments: &str) -> (Value, impl Fn(&str) -> (String, String) + use<>) {
    let plan = json(&folder.ok(&format!("{arguments} --explain --json")));
    let options = plan["options"].as_array().unwrap().clone();
    let of = move |name: &str| {
        let option = options.iter().find(|option| option["option"] == name);
        let option = option.unwrap_or_else(|| panic!("--{name} is not explained"));
        (option["value"].as_str().unwrap().to_owned(), option["from"].as_str().unwrap().to_owned())
    };
    (plan, of)
}

fn pair(value: &str, from: &str) -> (String, String) {
    (value.to_owned(), from.to_owned())
}

#[test]
fn every_option_of_every_kind_is_explained_and_nothing_is_trained() {
    let folder = folder();
    let before = folder.names();
    for kind in KINDS {
        let help = folder.ok(&format!("train {kind} --help"));
        let text = folder.ok(&format!("{} --explain", train(kind)));
        // Descriptions stand further to the right.
        for option in help.lines().filter_map(|line| line.strip_prefix("      --")) {
            let name = option.split([' ', '[']).next().unwrap();
            assert!(name == "config" || text.contains(&format!("  --{name} ")), "{kind}: --{name} in\n{text}");
        }
        let (plan, of) = explained(&folder, &format!("{} --seed 7", train(kind)));
        assert_eq!((plan["kind"].as_str(), of("seed")), (Some(kind), pair("7", "given")));
        assert_eq!(of("model"), pair("m", "given"));
        assert!(plan["memory_bytes"].as_u64().unwrap() > 1000, "{plan}");
        assert_eq!(folder.names(), before, "{kind}");
    }
}

#[test]
fn what_is_explained_is_true_of_every_preset_of_trees() {
    let folder = folder();
    for preset in ["default", "parabel", "bonsai", "xr-linear"] {
        let train = format!("train tree --train data/train.txt --model m --preset {preset}");
        let (plan, of) = explained(&folder, &train);
        folder.ok(&train);
        let kept = &json(&folder.read("m/config.json"))["parameters"];
        assert_eq!(plan["parameters"], kept["training"], "{preset}");
        let from = format!("preset {preset}");
        for (option, value) in [
            ("trees", &kept["training"]["n_trees"]),
            ("tree.branching", &kept["training"]["cluster"]["branching"]),
            ("cluster.max-leaf", &kept["training"]["cluster"]["max_leaf"]),
            ("cluster.max-sample", &kept["training"]["cluster"]["max_sample"]),
            ("cluster.method", &kept["training"]["cluster"]["method"]),
            ("cluster.normalise-labels", &kept["training"]["normalise_labels"]),
            ("linear.max-passes", &kept["training"]["linear"]["max_passes"]),
            ("linear.tolerance", &kept["training"]["linear"]["tolerance"]),
            ("linear.prune-below", &kept["training"]["linear"]["prune_below"]),
        ] {
            assert_eq!(of(option), pair(value.to_string().trim_matches('"'), &from), "{preset}: {option}");
        }
        assert_eq!(of("post-processor").0, kept["post_processor"].as_str().unwrap(), "{preset}");
        let cluster = &kept["training"]["cluster"];
        let depth = match cluster["method"] == "unbalanced" {
            true => pair(&cluster["max_depth"].to_string(), &from),
            false => pair("none", "follows from --cluster.method"),
        };
        assert_eq!(of("cluster.max-depth"), depth, "{preset}");
    }
    let text = folder.ok("train tree --train data/train.txt --model n --preset xr-linear --explain");
    for said in ["a cut may move from the middle by 0.3", "at most 150 in each", "0.3", "32768"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("equal size"), "{text}");
    let (_, of) = explained(&folder, "train tree --train data/train.txt --model n --linear.loss logistic --trees 2");
    assert_eq!(of("linear.cost"), pair("10", "follows from --linear.loss"));
    assert_eq!((of("linear.loss"), of("trees")), (pair("logistic", "given"), pair("2", "given")));
    let (_, of) = explained(&folder, "train tree --train data/train.jsonl --model n --text.preset mach --text.pairs 9");
    assert_eq!((of("text.words"), of("text.pairs")), (pair("125000", "preset mach"), pair("9", "given")));
    folder.write("o.toml", "trees = 2\n[linear]\ncost = 3\n");
    let (_, of) = explained(&folder, "train tree --train data/train.txt --model n --config o.toml --trees 5");
    assert_eq!((of("linear.cost"), of("trees")), (pair("3", "given in the file of --config"), pair("5", "given")));
}

#[test]
fn what_is_explained_is_what_networks_are_trained_with() {
    let folder = folder();
    for (kind, more) in [
        ("dense", "--network.widths 24"),
        ("uniform", "--network.widths 24"),
        ("mach", "--network.widths 24 --repetitions-range 2..3"),
        ("lns", "--network.widths 24"),
        ("lns", "--preset text8 --negatives.sampled 20 --network.widths 32 --tables 5"),
        ("astra", "--network.widths 24 --negatives.hard 5 --negatives.uniform 30"),
    ] {
        let train = format!("train {kind} --train data/train.txt --model m --epochs 1 {more}");
        let (plan, of) = explained(&folder, &train);
        folder.ok(&train);
        let kept = &json(&folder.read("m/config.json"))["parameters"];
        let classifier = if kind == "mach" { &kept["mach"]["classifier"] } else { &kept["classifier"] };
        assert_eq!(&plan["parameters"]["classifier"], classifier, "{kind} {more}");
        assert_eq!(plan["parameters"]["learning"], kept["learning"], "{kind} {more}");
        assert_eq!(plan["parameters"]["training"]["settings"], kept["training"]["settings"], "{kind} {more}");
        let settings = &kept["training"]["settings"];
        assert_eq!((of("batch").0, of("epochs")), (settings["batch_size"].to_string(), pair("1", "given")));
        assert_eq!(of("optimizer.rate").0, settings["rate"].to_string(), "{kind} {more}");
        assert_eq!(of("loss").0, classifier["loss"].as_str().unwrap(), "{kind} {more}");
    }
    let (_, of) =
        explained(&folder, "train lns --train data/train.txt --model m --preset text8 --negatives.sampled 20");
    assert_eq!((of("batch"), of("tables")), (pair("512", "preset text8"), pair("50", "preset text8")));
    assert_eq!((of("network.widths"), of("sampler").0), (pair("200", "preset text8"), "lsh-embedding".to_owned()));
    let (_, of) = explained(&folder, "train lns --train data/train.txt --model m");
    assert_eq!((of("sampler"), of("network.widths")), (pair("all", "data"), pair("1024", "data")));
    let (_, of) = explained(&folder, "train uniform --train data/train.txt --model m");
    assert_eq!((of("head.fan-in"), of("negatives.sampled")), (pair("32", "data"), pair("none", "data")));
    let (_, of) = explained(&folder, "train skipgram --train text.txt --model m --preset text8 --negatives.sampled 2");
    assert_eq!(
        (of("batch"), of("vectors")),
        (pair("512", "preset text8"), pair("m.vectors.txt", "follows from --model"))
    );
}

#[test]
fn sizes_follow_from_rows_and_labels_as_the_library_says() {
    let folder = folder();
    let config = |model: &str| json(&folder.read(&format!("{model}/config.json")))["parameters"].clone();
    let data = DataShape { n_instances: 800, n_entries: 40_000, n_labels: 150, most_frequent: 0 };

    folder.ok("train uniform --train data/train.txt --model u");
    let of = preset::uniform_for(data);
    let classifier = &config("u")["classifier"];
    assert_eq!(classifier["encoder"]["widths"], serde_json::json!([512, 512]));
    assert_eq!(*classifier, xc_store::to_parameter(&of.params));
    let settings = &config("u")["training"]["settings"];
    assert_eq!(
        (&settings["batch_size"], &settings["rate"]),
        (&of.training.batch_size.into(), &of.training.rate.into())
    );

    folder.ok("train mach --train data/train.txt --model m --network.widths 24 --epochs 2");
    let mut classifier = preset::mach().params;
    *classifier.encoder.widths_mut() = vec![24];
    let of = MachParams::usual(150, classifier);
    let mut kept = config("m");
    // Instances of the data have several labels, or one.
    kept["mach"]["classifier"]["loss"] = xc_store::to_parameter(&of.classifier.loss);
    assert_eq!(kept["mach"], xc_store::to_parameter(&of));
    assert_eq!(kept["repetitions"].as_array().unwrap().len(), 8);
    assert!(of.n_buckets < 150);
}

#[test]
fn labels_are_added_to_a_mach_model_by_default_and_where_not_the_option_is_named() {
    let folder = folder();
    let train = "train mach --train data/train.txt --network.widths 24 --epochs 2 --repetitions 2";
    folder.ok(&format!("{train} --model m"));
    folder.ok("merge m --labels 5000 --output grown");
    let inspected = json(&folder.ok("inspect grown --json"));
    assert_eq!(inspected["parameters"]["n_labels"], 5000, "{inspected}");
    let answers = |model: &str| folder.ok(&format!("predict --model {model} --input data/test.txt"));
    assert_eq!(answers("grown").lines().count(), answers("m").lines().count());
    folder.ok(&format!("{train} --model p --hash.family prime"));
    folder.xc("merge p --labels 5000 --output q").refused(
        2,
        "--labels 5000: 5000 keys do not fit the prime 151 of these parameters; other families can grow (xc train mach \
         --hash.family multiply-shift makes models that can)",
    );
}

#[test]
fn floats_print_shortest_form() {
    let folder = folder();
    folder.ok("train tree --train data/train.txt --model m --trees 1");
    folder.ok("train uniform --train data/train.txt --model u --epochs 1");
    folder.ok("train mach --train data/train.txt --model h --epochs 1 --repetitions 2 --network.dropout 0.1");
    for model in ["m", "u", "h"] {
        let shown = folder.ok(&format!("inspect {model}")) + &folder.read(&format!("{model}.log/train.json"));
        for long in ["0.1000000014", "0.2000000029", "0.3000000119"] {
            assert!(!shown.contains(long), "{model}: {long} in {shown}");
        }
        assert!(shown.contains("0.1"), "{model}: {shown}");
    }
}

#[test]
fn counts_are_pluralised() {
    let folder = folder();
    let told = run(&mut folder.command("train tree --train data/train.txt --model m --trees 1"));
    assert!(told.stderr.contains(": 1 tree, ") && !told.stderr.contains("1 trees"), "{told:?}");
    folder.write("one.txt", "1 3 2\n0 0:1 2:1\n");
    let told = run(&mut folder.command("train tree --train one.txt --model one --explain"));
    assert!(told.stdout.contains("1 instance\n"), "{told:?}");
}

#[test]
fn a_line_of_the_validation_says_its_epoch_and_that_it_selects_the_model() {
    let folder = folder();
    let train =
        "train dense --train data/train.txt --validation data/test.txt --model m --epochs 2 --network.widths 24";
    let told = run(&mut folder.command(train)).stderr;
    for epoch in 1..3 {
        assert!(told.contains(&format!("epoch {epoch}, model selection by validation: loss ")), "{told}");
    }
    let told = run(&mut folder.command(&format!("{train} --keep last"))).stderr;
    assert!(told.contains("epoch 2, validation: loss ") && !told.contains("selection"), "{told}");
}

#[test]
fn progress_is_told_as_json_where_it_is_asked_for() {
    let folder = folder();
    let done = run(&mut folder.command("train tree --train data/train.txt --model m --progress json"));
    let told: Vec<Value> = done
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(!told.is_empty() && told.iter().all(|line| line["event"] == "progress"), "{}", done.stderr);
    let last = told.last().unwrap();
    assert!(last["task"].is_string() && last["done"].is_u64() && last["elapsed_s"].is_number(), "{last}");
    assert!(last["total"].is_null() || last["done"] == last["total"], "the end of a task: {last}");
    folder.ok("predict --model m --input data/test.txt --output p.txt --progress json");
}
