//! Options that change nothing are refused by their name and with what they need, wherever they are given.

use crate::program::Folder;

const DATA: &str = "generate --instances 120 --test-instances 20 --features 90 --labels 15 --words 9 --output d";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.ok(DATA);
    folder
}

#[test]
fn an_option_of_a_choice_that_is_not_made_is_refused_with_that_choice() {
    let folder = folder();
    for (command, option, value, needs) in [
        ("train tree", "cluster.max-depth", "9", "--cluster.method unbalanced"),
        ("train tree --cluster.method unbalanced", "cluster.slack", "0.3", "--cluster.method balanced"),
        ("train tree", "negatives.beam", "77", "--negatives matcher-aware"),
        ("train tree --preset bonsai", "cluster.slack", "0.1", "--cluster.method balanced"),
        ("train lns --sampler uniform --negatives.sampled 3", "codes", "3", "--sampler lsh-embedding or lsh-label"),
        (
            "train lns --sampler uniform --negatives.sampled 3 --weighting none",
            "weight-cap",
            "7",
            "--weighting inverse",
        ),
        (
            "train lns --sampler lsh-label --negatives.sampled 2 --negatives.uniform 2 --upkeep immediate",
            "upkeep.share",
            "0.9",
            "--upkeep drift",
        ),
        (
            "train lns --sampler lsh-label --negatives.sampled 2 --negatives.uniform 2",
            "upkeep.every",
            "9",
            "--upkeep rebuild",
        ),
        ("train dense --schedule constant", "schedule.lowest", "0.5", "--schedule plateau"),
        ("train dense --network.widths 8 --network.input-dropout 0.1", "network.dropout", "0.2", "a hidden layer"),
        ("train uniform --head.rewire-every 0", "head.rewire-fraction", "0.2", "a --head.rewire-every above 0"),
        (
            "train astra --negatives.hard 2 --negatives.uniform 3 --weighting none",
            "weight-cap",
            "7",
            "--weighting capped",
        ),
    ] {
        let train = format!("{command} --train d/train.txt --model m");
        let begin = format!("xc: error: --{option} has no effect ");
        let typed = folder.xc(&format!("{train} --{option} {value}"));
        let said = typed.stderr.strip_prefix(&begin).and_then(|rest| rest.split_once(": "));
        let is_expected = |(_, change): (&str, &str)| {
            let says = if needs.starts_with("--") { "add" } else { "it needs" };
            change.starts_with(&format!("{says} {needs}")) && (says != "add" || change.ends_with(", or leave it out\n"))
        };
        assert!(typed.code == 2 && said.is_some_and(is_expected), "{command}: {typed:?}");
        let (table, key) = option.rsplit_once('.').unwrap_or(("", option));
        let header = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        folder.write("o.toml", format!("{header}{key} = {value}\n"));
        let in_file = folder.xc(&format!("{train} --config o.toml"));
        let said = in_file.stderr.replacen("o.toml: ", "", 1);
        assert!(in_file.code == 2 && said == typed.stderr && said != in_file.stderr, "{command}: {in_file:?}");
        let tuned = folder.xc(&format!(
            "{} --train d/train.txt --output t --trials 2 --{option} {value}",
            command.replace("train", "tune")
        ));
        assert_eq!((tuned.code, &tuned.stderr), (2, &typed.stderr), "{command}");
        assert!(!folder.names().iter().any(|name| name == "m" || name == "t"), "{command}");
    }
    folder
        .xc("train uniform --train d/train.txt --model m --head.wiring dense --head.fan-in 7")
        .refused(2, "--head.fan-in belongs to sparse output layers; --head.wiring dense has none");
    let told = folder.xc("train lns --train d/train.txt --model m --negatives.shared false --tables 4");
    assert!(
        told.code == 2 && told.stderr.contains("--negatives.shared has no effect: 15 labels are no more"),
        "{told:?}"
    );
    let told = folder.xc("train lns --train d/train.txt --model m --tables 4");
    assert!(told.code == 2 && told.stderr.contains("--tables has no effect: 15 labels are no more"), "{told:?}");
}

#[test]
fn options_of_forms_that_no_file_has_are_refused() {
    let folder = folder();
    for (option, value, says) in [
        ("text.hash", "16", "it is for texts, and d/train.txt holds features"),
        ("text.keep-case", "", "it is for texts, and d/train.txt holds features"),
        ("label-field", "x", "it is for jsonl, csv or tsv files, and the file is xc"),
        ("svmlight-base", "1", "it is for svmlight files, and the file is xc"),
    ] {
        let given = format!("--{option} {value}");
        let expected = format!("{}: {says}", given.trim_end());
        for kind in ["tree", "dense", "lns"] {
            folder.xc(&format!("train {kind} --train d/train.txt --model m {given}")).refused(2, &expected);
        }
    }
    for option in ["tfidf", "normalise"] {
        let outcome = folder.xc(&format!("train tree --train d/train.jsonl --model m --{option}"));
        assert!(outcome.code == 2 && outcome.stderr.contains("d/train.jsonl holds text"), "{outcome:?}");
    }
    folder.ok("train tree --train d/train.jsonl --model m --trees 1 --text.min-df 1 --label-field labels");
    folder.xc("predict --model m --input d/test.jsonl --label-field labels").refused(
        2,
        "--label-field labels has no effect here: add --candidates or --exclude, or leave it out (labels of the input are ignored)",
    );
}

#[test]
fn what_an_empty_plan_and_a_bound_that_is_never_reached_need() {
    let folder = folder();
    let plan = folder.ok("train tree --train d/train.txt --explain");
    assert!(plan.contains("MODEL.checkpoint"), "{plan}");
    for kind in ["mach", "dense", "uniform", "lns", "astra"] {
        folder.ok(&format!("train {kind} --train d/train.txt --explain"));
    }
    let outcome = folder.xc("train tree --train d/train.txt");
    assert!(outcome.code == 2 && outcome.stderr.contains("--model <DIR>"), "{outcome:?}");
    folder.ok("train tree --train d/train.txt --model m --trees 1 --validation-fraction 0.3");
    folder.ok("calibrate --model m --validation d/train.txt --held-out --output c");
    folder.ok("train dense --train d/train.txt --model n --epochs 1 --network.widths 8");
    for model in ["m", "n", "c"] {
        let predict = format!("predict --model {model} --input d/test.txt");
        for option in ["threshold", "min-score"] {
            folder
                .xc(&format!("{predict} --{option} 1.5"))
                .refused(2, &format!("--{option} 1.5: scores of this model are at most 1"));
            folder.ok(&format!("{predict} --{option} 1"));
        }
        if model != "c" {
            folder.ok(&format!("{predict} --threshold 1.5 --post-processor noop"));
        }
    }
    assert!(folder.ok("bench predict --model m --input d/test.txt --repeat 1").contains("p99"));
}

#[test]
fn a_file_without_queries_is_said() {
    let folder = folder();
    folder.write("rows.npy", crate::program::npy(40, 4, |row, column| (row * 7 + column * 3) as f32 % 11.0 - 5.0));
    folder.write("none.npy", crate::program::npy(0, 4, |_, _| 0.0));
    folder.ok("index build --vectors rows.npy --metric l2 --output i");
    for command in ["search", "evaluate"] {
        folder.xc(&format!("index {command} --index i --queries none.npy")).refused(2, "none.npy: no queries");
    }
    folder.write("labels.txt", "40 4 3\n".to_owned() + &"1\n2\n0\n2\n".repeat(10));
    folder.ok("train dense --train labels.txt --features rows.npy --epochs 1 --network.widths 4 --model v");
    folder.write("none.txt", "");
    for input in ["none.npy", "none.txt"] {
        let outcome = folder.xc(&format!("predict --model v --input {input}"));
        assert!(outcome.code == 2 && outcome.stderr.contains(input), "{outcome:?}");
    }
}

#[test]
fn absurd_values_of_one_option_are_judged_alike_by_all_commands() {
    let folder = folder();
    folder.ok("train tree --train d/train.txt --model m --trees 1 --validation-fraction 0.3");
    folder.ok("predict --model m --input d/test.txt --output p.txt");
    folder.write("rows.npy", crate::program::npy(40, 4, |row, column| (row * 7 + column * 3) as f32 % 11.0 - 5.0));
    folder.ok("index build --vectors rows.npy --metric l2 --cells 3 --output i");
    let of_top_k = [
        "predict --model m --input d/test.txt --top-k",
        "bench predict --model m --input d/test.txt --repeat 1 --top-k",
        "calibrate --model m --validation d/train.txt --held-out --output c --top-k",
        "index build --vectors rows.npy --metric l2 --output j --top-k",
        "index search --index i --queries rows.npy --top-k",
        "index evaluate --index i --queries rows.npy --runs 1 --top-k",
        "evaluate --truth d/test.txt --predictions p.txt --k",
    ];
    let of_bounds = [
        "predict --model m --input d/test.txt --min-score",
        "predict --model m --input d/test.txt --threshold",
        "evaluate --truth d/test.txt --predictions p.txt --threshold",
    ];
    let lns =
        "train lns --train d/train.txt --model x --epochs 1 --network.widths 4 --sampler uniform --negatives.sampled 3";
    let astra = "train astra --train d/train.txt --model x --epochs 1 --network.widths 4 --negatives.hard 2 --negatives.uniform 3";
    let caps = [format!("{lns} --weighting inverse --weight-cap"), format!("{astra} --weight-cap")];
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    for (commands, refused, taken) in [
        (&of_top_k[..], &["0", "-1", "NaN", "1e3", "99999999999999999999"][..], &["3"][..]),
        (&of_bounds, &["NaN", "inf", "-inf", "x"], &["0", "-1", "0.5"]),
        (&caps, &["-1", "NaN", "x"], &["0", "0.5", "2"]),
    ] {
        for command in commands {
            for value in refused {
                let outcome = folder.xc(&format!("{command}={value}"));
                let option = command.rsplit(' ').next().unwrap();
                assert!(outcome.code == 2 && outcome.stderr.contains(option), "{command} {value}: {outcome:?}");
                assert!(!outcome.stderr.contains("internal error"), "{command} {value}: {outcome:?}");
            }
            for value in taken {
                let outcome = folder.xc(&format!("{command}={value}"));
                assert_eq!(outcome.code, 0, "{command} {value}: {outcome:?}");
            }
        }
    }
}
