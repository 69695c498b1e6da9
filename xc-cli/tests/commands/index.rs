//! Indexes of vectors, from outside.

use crate::program::{Folder, contents, json, npy, run};
use serde_json::Value;

fn value(row: usize, column: usize) -> f32 {
    let mixed = (row * 31 + column * 17 + row * column * 7919) % 1009;
    (row % 12) as f32 * ((column % 3) as f32 - 1.0) + mixed as f32 / 300.0
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("rows.npy", npy(900, 20, value));
    folder.write("queries.npy", npy(60, 20, |row, column| value(row * 13 + 1, column) + 0.01));
    folder
}

#[test]
fn an_index_answers_as_a_scan_does() {
    let folder = folder();
    for metric in ["l2", "cosine", "ip"] {
        let told = json(&folder.ok(&format!(
            "index build --vectors rows.npy --metric {metric} --output m.index --fit-queries queries.npy --json"
        )));
        assert!(told["fitted"]["recall"].as_f64().unwrap() >= 0.95, "{told}");
        let scanned = folder.ok("index search --index m.index --queries queries.npy --top-k 5 --exact");
        let wide = folder.ok("index search --index m.index --queries queries.npy --top-k 5 --search-width inf");
        assert_eq!(scanned.lines().count(), 60);
        assert_eq!(scanned, wide, "{metric}");
        let one = folder.ok("index search --index m.index --queries queries.npy --top-k 5 --threads 1 --in-memory");
        assert_eq!(one, folder.ok("index search --index m.index --queries queries.npy --top-k 5"));
        let report = json(&folder.ok(
            "index evaluate --index m.index --queries queries.npy --target-recall 0.95 --plot p.svg --runs 1 --json",
        ));
        assert!(report["fitted"]["recall"].as_f64().unwrap() >= 0.95, "{report}");
        assert!(report["recall"].as_f64().unwrap() >= 0.9 && report["qps"].as_f64().unwrap() > 0.0, "{report}");
        assert!(folder.read("p.svg").contains("<svg"));
    }
    // The index is that of inner products.
    let narrow = "index search --index m.index --queries queries.npy --top-k 5 --search-width -0.9 --prove 900";
    let proven = run(&mut folder.command(narrow));
    assert!(proven.stderr.contains("60 of 60 queries are proven"), "{}", proven.stderr);
    assert_eq!(
        proven.stdout,
        folder.ok("index search --index m.index --queries queries.npy --top-k 5 --search-width inf")
    );
    let fvecs: Vec<u8> = (0..60)
        .flat_map(|row| {
            [20i32.to_le_bytes()].into_iter().chain((0..20).map(move |c| (value(row * 13 + 1, c) + 0.01).to_le_bytes()))
        })
        .flatten()
        .collect();
    folder.write("queries.fvecs", fvecs);
    let search = |queries: &str| folder.ok(&format!("index search --index m.index --queries {queries} --top-k 5"));
    assert_eq!(search("queries.fvecs"), search("queries.npy"));
    let jsonl = folder.ok("index search --index m.index --queries queries.npy --top-k 2 --output-format jsonl");
    assert_eq!(jsonl.lines().count(), 60);
    let table = folder.ok("index evaluate --index m.index --queries queries.npy --runs 1");
    assert!(table.contains("search width") && table.contains("bytes a vector"), "{table}");
}

#[test]
fn a_width_is_fitted_to_other_queries_than_it_is_measured_with() {
    let folder = folder();
    // Queries of two kinds by turns: rows themselves, and vectors that are nowhere near.
    let by_turns =
        |row: usize, column: usize| if row.is_multiple_of(2) { value(row * 7, column) } else { far(row, column) };
    folder.write("mixed.npy", npy(80, 20, by_turns));
    folder.write("near.npy", npy(40, 20, |row, column| by_turns(2 * row, column)));
    folder.write("far.npy", npy(40, 20, |row, column| by_turns(2 * row + 1, column)));
    folder.ok("index build --vectors rows.npy --metric l2 --cells 30 --output m.index");
    let evaluate = |options: &str| {
        json(&folder.ok(&format!("index evaluate --index m.index --runs 1 --threads 1 --json --queries {options}")))
    };
    let told = evaluate("mixed.npy --target-recall 0.9");
    assert_eq!((&told["queries"], &told["fitted"]["n_queries"]), (&40.into(), &40.into()), "{told}");
    // As if each half had a file of its own.
    let apart = evaluate("near.npy --target-recall 0.9 --fit-queries far.npy");
    for key in ["queries", "recall", "search_width", "cells", "distances", "hops", "fitted"] {
        assert_eq!(told[key], apart[key], "{key}: {told} {apart}");
    }
    let other = evaluate("far.npy --target-recall 0.9 --fit-queries near.npy");
    assert_ne!((&told["search_width"], &told["cells"]), (&other["search_width"], &other["cells"]), "{told} {other}");
    // A width that is given is measured with all.
    let reach = match told["cells"].as_u64() {
        Some(0) => format!("--search-width={}", told["search_width"]),
        cells => format!("--cells={}", cells.unwrap()),
    };
    let given = evaluate(&format!("mixed.npy {reach}"));
    assert_eq!((&given["queries"], &given["fitted"]), (&80.into(), &Value::Null), "{given}");
    assert_eq!(evaluate(&format!("near.npy {reach}"))["recall"], told["recall"]);
    assert_eq!(evaluate("mixed.npy")["queries"], 80);
    // Several shares are those of one after the other.
    let several = evaluate("mixed.npy --target-recall 0.5,0.9,0.99");
    let measured = several["measured"].as_array().unwrap();
    let targets: Vec<_> = measured.iter().map(|m| m["fitted"]["target"].as_f64().unwrap()).collect();
    assert_eq!((targets, several.get("recall")), (vec![0.5, 0.9, 0.99], None), "{several}");
    assert_eq!((&measured[1]["recall"], &measured[1]["fitted"]), (&told["recall"], &told["fitted"]));
    let table = folder.ok("index evaluate --index m.index --runs 1 --queries mixed.npy --target-recall 0.9");
    assert!(table.contains("fitted to 40 other queries for 0.9: "), "{table}");
}

fn far(row: usize, column: usize) -> f32 {
    30.0 * (((row * 7 + column * 5) % 11) as f32 - 5.0)
}

#[test]
fn only_rows_of_a_filter_are_answers() {
    let folder = folder();
    folder.ok("index build --vectors rows.npy --metric l2 --output m.index");
    folder.write("few.txt", "5\n17\n899\n");
    folder.write("half.txt", (0..900).step_by(2).map(|row| format!("{row}\n")).collect::<String>());
    for (filter, most) in [("few.txt", 3), ("half.txt", 4)] {
        let search = format!("index search --index m.index --queries queries.npy --top-k 4 --filter {filter}");
        let found = folder.ok(&format!("{search} --search-width inf"));
        assert_eq!(found, folder.ok(&format!("{search} --exact")));
        let passes = |answer: &str| {
            let row: u32 = answer.split(':').next().unwrap().parse().unwrap();
            if most == 3 { [5, 17, 899].contains(&row) } else { row.is_multiple_of(2) }
        };
        assert!(found.lines().all(|line| line.split(' ').count() == most && line.split(' ').all(passes)), "{found}");
    }
    let told = json(&folder.ok(
        "index evaluate --index m.index --queries queries.npy --filter half.txt --search-width inf --runs 1 --json",
    ));
    assert_eq!(told["recall"], 1.0, "{told}");
    assert!(told["p50_us"].as_f64().unwrap() <= told["p99_us"].as_f64().unwrap());
    folder.write("bad.txt", "5\n900\n");
    let got = folder.xc("index search --index m.index --queries queries.npy --filter bad.txt");
    assert!(
        got.code == 2 && got.stderr.contains("bad.txt: line 2: got \"900\", expected the number of a row below 900"),
        "{}",
        got.stderr
    );
}

/// A model whose labels are vectors, and instances for it.
fn model(folder: &Folder, epochs: u32) {
    if !folder.path("data").exists() {
        folder.ok("generate --instances 900 --test-instances 150 --features 500 --labels 700 --words 30 --output data");
    }
    folder.ok(&format!(
        "train lns --train data/train.txt --model m --network.widths 24 --epochs {epochs} --optimizer.rate 0.02 --sampler all"
    ));
}

#[test]
fn labels_of_a_model_are_found_by_its_index() {
    let folder = Folder::new();
    model(&folder, 6);
    let predict = |options: &str| folder.ok(&format!("predict --model m --input data/test.txt --top-k 5 {options}"));
    let labels = |text: &str| -> Vec<Vec<String>> {
        let labels = |line: &str| line.split(' ').map(|pair| pair.split(':').next().unwrap().to_owned()).collect();
        text.lines().map(labels).collect()
    };
    let shared = |a: &str, b: &str| {
        let (a, b) = (labels(a), labels(b));
        let hits: usize = a.iter().zip(&b).map(|(a, b)| a.iter().filter(|label| b.contains(label)).count()).sum();
        hits as f64 / a.iter().map(Vec::len).sum::<usize>() as f64
    };
    let without = predict("");
    let got = folder.xc("predict --model m --input data/test.txt --search-width 0.1");
    assert!(got.code == 2 && got.stderr.contains("--search-width: no index of the labels"), "{}", got.stderr);
    let got = folder.xc("index build --model m --max-memory 100k");
    assert!(got.code == 3 && got.stderr.contains("--max-memory"), "{}", got.stderr);
    let told = json(&folder.ok("index build --model m --fit-queries data/train.txt --json"));
    assert_eq!((&told["labels"], &told["columns"]), (&700.into(), &25.into()));
    let lost = |told: &Value| ["P@1", "P@3", "P@5"].map(|name| told["lost"][name].as_f64().unwrap());
    assert!(lost(&told).iter().all(|lost| *lost <= 0.001), "{told}");
    let told = json(&folder.ok("index build --model m --fit-queries data/train.txt --max-loss 50 --json"));
    assert!(lost(&told).iter().all(|lost| *lost <= 0.5), "{told}");
    // Instances without labels, and a recall that is asked for.
    let rows = folder.read("data/train.txt");
    let unlabelled: String = rows.lines().skip(1).map(|row| format!(" {}\n", row.split_once(' ').unwrap().1)).collect();
    folder.write("rows.txt", unlabelled);
    let got = folder.xc("index build --model m --fit-queries rows.txt --max-loss 0.1");
    assert!(got.code == 2 && got.stderr.contains("--max-loss needs the labels of instances"), "{}", got.stderr);
    let got = run(&mut folder.command("index build --model m --fit-queries rows.txt"));
    assert!(got.code == 0 && got.stderr.contains("fitted to the best labels"), "{}", got.stderr);
    let got = folder.xc("index build --model m --fit-queries rows.txt --max-loss 101");
    assert!(got.code == 2 && got.stderr.contains("--max-loss"), "{}", got.stderr);
    let told = json(&folder.ok("index build --model m --fit-queries data/train.txt --target-recall 0.99 --json"));
    assert!(told["lost"].is_null() && told["fitted"]["recall"].as_f64().unwrap() >= 0.99, "{told}");
    assert_eq!(predict("--exact"), without, "all labels are scored");
    assert_eq!(labels(&predict("--search-width inf")), labels(&without));
    let found = predict("");
    assert!(shared(&without, &found) > 0.85, "{}", shared(&without, &found));
    assert_eq!(predict("--threads 1"), found);
    folder.write("few.txt", "1\n2\n3\n");
    assert!(labels(&predict("--only-labels few.txt")).iter().all(|row| row.len() == 3), "a list is scored whole");
    // One by one as all together.
    let lines = std::fs::File::open(folder.path("data/test.txt")).unwrap();
    let line_by_line = run(folder.command("predict --model m --input - --top-k 5 --quiet").stdin(lines));
    assert_eq!(line_by_line.quiet_success(), found);

    // Weights that changed: the index does not answer until it follows them.
    model(&folder, 7);
    let aloud = |arguments: &str| run(&mut folder.command(arguments));
    let got = aloud("predict --model m --input data/test.txt --top-k 5");
    assert!(got.stderr.contains("an index of other weights, ") && got.stderr.contains("steps older"), "{}", got.stderr);
    assert_eq!(got.stdout, predict("--exact"));
    let refused = folder.xc("predict --model m --input data/test.txt --search-width 0.1");
    assert!(refused.code == 2 && refused.stderr.contains("no index of the labels"), "{}", refused.stderr);
    let old = folder.xc("predict --model m --input data/test.txt --top-k 5 --search-width 0.3 --max-age 1000");
    assert!(old.code == 0 && shared(&got.stdout, &old.stdout) > 0.5, "{}", old.stderr);
    let told = json(&folder.ok("index refresh --model m --fit-queries data/train.txt --json"));
    assert!(told["refresh"]["after"].is_number() && lost(&told).iter().all(|lost| *lost <= 0.001), "{told}");
    let fresh = aloud("predict --model m --input data/test.txt --top-k 5");
    assert!(!fresh.stderr.contains("other weights") && shared(&got.stdout, &fresh.stdout) > 0.85, "{}", fresh.stderr);

    // Models without vectors of labels, and an index of another model.
    folder.ok("train tree --train data/train.txt --model t");
    let got = folder.xc("index build --model t");
    assert!(got.code == 2 && got.stderr.contains("has no vectors of labels"), "{}", got.stderr);
    let got = folder.xc("predict --model t --input data/test.txt --exact");
    assert!(got.code == 2 && got.stderr.contains("--exact: the model is of kind \"tree\""), "{}", got.stderr);
    std::fs::remove_dir_all(folder.path("m/index")).unwrap();
    folder.write("rows.npy", npy(900, 20, value));
    folder.ok("index build --vectors rows.npy --metric ip --output m/index");
    let got = aloud("predict --model m --input data/test.txt --top-k 5");
    assert!(got.code == 0 && got.stderr.contains("does not answer"), "{}", got.stderr);
}

#[test]
fn lists_of_a_sparse_output_layer_answer_as_all_labels_do() {
    let folder = Folder::new();
    folder.ok("generate --instances 900 --test-instances 70 --features 500 --labels 700 --words 30 --output data");
    let train = |epochs: u32| {
        folder
            .ok(&format!("train uniform --train data/train.txt --model u --network.intermediate 900 --epochs {epochs}"))
    };
    train(2);
    let predict = |options: &str| folder.ok(&format!("predict --model u --input data/test.txt --top-k 9 {options}"));
    let one_by_one = |options: &str| {
        let lines = std::fs::File::open(folder.path("data/test.txt")).unwrap();
        let mut command = folder.command(&format!("predict --model u --input - --top-k 9 --quiet {options}"));
        run(command.stdin(lines)).quiet_success()
    };
    let without = predict("");
    for option in ["--fit-queries data/train.txt", "--degree 8"] {
        let got = folder.xc(&format!("index build --model u {option}"));
        assert!(got.code == 2 && got.stderr.contains("no graph to fit"), "{}", got.stderr);
    }
    let told = json(&folder.ok("index build --model u --json"));
    assert_eq!((&told["labels"], &told["columns"]), (&700.into(), &901.into()));
    for answers in [predict(""), predict("--exact"), one_by_one(""), one_by_one("--exact")] {
        assert_eq!(answers, without);
    }
    let got = folder.xc("predict --model u --input data/test.txt --search-width 0.1");
    assert!(
        got.code == 2 && got.stderr.contains("--search-width: the index of a sparse output layer"),
        "{}",
        got.stderr
    );
    train(3);
    let got = run(&mut folder.command("predict --model u --input data/test.txt --top-k 9"));
    assert!(got.code == 0 && got.stderr.contains("an index of other weights"), "{}", got.stderr);
    let got = folder.xc("index refresh --model u --policy search");
    assert!(got.code == 2 && got.stderr.contains("--policy: the index of a sparse output layer"), "{}", got.stderr);
    folder.ok("index refresh --model u");
    assert_eq!(one_by_one(""), predict("--exact"));
    assert_ne!(predict(""), without);
}

#[test]
fn threads_change_no_byte_of_an_index() {
    let folder = folder();
    for threads in [1, 2, 3] {
        folder.ok(&format!("index build --vectors rows.npy --metric l2 --output m{threads} --threads {threads}"));
        assert_eq!(contents(&folder.path(&format!("m{threads}"))), contents(&folder.path("m1")));
    }
}

#[test]
fn a_refresh_follows_vectors_that_moved() {
    let folder = folder();
    folder.ok("index build --vectors rows.npy --metric l2 --output m.index");
    let before = contents(&folder.path("m.index"));
    let told = json(&folder.ok("index refresh --index m.index --vectors rows.npy --json"));
    assert_eq!((&told["refresh"]["policy"], contents(&folder.path("m.index")) == before), (&"codes".into(), true));
    folder
        .write("moved.npy", npy(900, 20, |row, column| value(row, column) + value(column * 50 + row, row % 19) * 0.3));
    for policy in ["", "--policy search", "--policy two-hops", "--policy both", "--policy rebuild"] {
        folder.ok(&format!("index refresh --index m.index --vectors moved.npy --output new.index {policy}"));
        let wide = "index search --index new.index --queries queries.npy --top-k 5";
        assert_eq!(folder.ok(&format!("{wide} --search-width inf")), folder.ok(&format!("{wide} --exact")), "{policy}");
    }
}

#[test]
fn what_does_not_fit_is_said_in_one_line() {
    let folder = folder();
    folder.ok("index build --vectors rows.npy --metric cosine --output m.index");
    folder.write("narrow.npy", npy(3, 7, value));
    folder.write("nan.npy", npy(3, 20, |row, column| if (row, column) == (2, 4) { f32::NAN } else { 1.0 }));
    folder.write("none.npy", npy(0, 20, value));
    folder.write("one.npy", npy(1, 20, value));
    // Up to 2,000 rows are scanned, which finds all.
    folder.write("many.npy", npy(2100, 20, value));
    for (arguments, code, expected) in [
        ("index search --index m.index --queries narrow.npy", 2, "vectors of 7 values; those of the index have 20"),
        ("index search --index m.index --queries nan.npy", 2, "nan.npy"),
        (
            "index search --index m.index --queries queries.npy --search-width -1",
            2,
            "search width -1, expected a number above -1",
        ),
        ("index search --index m.index --queries queries.npy --prove 9", 2, "an index of inner products"),
        ("index search --index rows.npy --queries queries.npy", 2, "rows.npy"),
        ("index evaluate --index m.index --queries none.npy", 2, "none.npy: no queries"),
        ("index evaluate --index m.index --queries queries.npy --target-recall 2", 2, "a share from 0 to 1"),
        ("index evaluate --index m.index --queries queries.npy --target-recall 0.9,-1", 2, "-1: a share from 0 to 1"),
        ("index evaluate --index m.index --queries one.npy --target-recall 0.9", 2, "one.npy: one query"),
        ("index evaluate --index m.index --queries queries.npy --fit-queries one.npy", 2, "--target-recall"),
        (
            "index evaluate --index m.index --queries queries.npy --target-recall 0.9 --fit-queries narrow.npy",
            2,
            "narrow.npy: vectors of 7 values",
        ),
        (
            "index evaluate --index m.index --queries queries.npy --target-recall 0.9 --fit-queries none.npy",
            2,
            "none.npy: no queries",
        ),
        ("index refresh --index m.index --vectors queries.npy", 2, "60 vectors of 20 values; the index has 900 of 20"),
        ("index build --vectors nan.npy --metric l2 --output x", 2, "nan.npy"),
        ("index build --vectors rows.npy --metric l2 --output x --degree 65", 2, "degree 65"),
        ("index build --vectors rows.npy --metric l2 --output x --fit-queries none.npy", 2, "none.npy: no queries"),
        ("index build --vectors rows.npy --metric l2 --output x --keep 0", 2, "keep is 0"),
        ("index build --vectors rows.npy --metric l2 --output x --top-k 0", 2, "--top-k 0: at least 1"),
        ("index build --vectors rows.npy --metric l2 --output x --max-memory 100k", 3, "--max-memory"),
        (
            "index build --vectors many.npy --metric l2 --output x --target-recall 0 --min-recall 1",
            2,
            "of the 10 best are found; a larger --keep",
        ),
        ("index build --vectors rows.npy --metric l2 --output x --min-recall 1.5", 2, "--min-recall 1.5: a share from"),
    ] {
        let got = folder.xc(arguments);
        let is_one_line = got.stderr.starts_with("xc: error: ") && got.stderr.lines().count() == 1;
        assert!(got.code == code && got.stdout.is_empty() && is_one_line, "{arguments}: {} {}", got.code, got.stderr);
        assert!(got.stderr.contains(expected), "{arguments}: {}", got.stderr);
        assert!(!folder.path("x").exists(), "{arguments}");
    }
    // Fewer rows than are wanted, and none at all.
    folder.write("few.npy", npy(3, 20, value));
    for (rows, lines) in [("few.npy", 3), ("none.npy", 0)] {
        folder.ok(&format!("index build --vectors {rows} --metric l2 --output s.index"));
        let found = folder.ok("index search --index s.index --queries queries.npy --top-k 10");
        assert!(
            found.lines().count() == 60 && found.lines().all(|line| line.split_whitespace().count() == lines),
            "{rows}"
        );
    }
}

#[test]
fn sparse_rows_are_answered_exactly() {
    let folder = Folder::new();
    folder.ok("generate --instances 700 --test-instances 40 --features 300 --labels 90 --words 20 --output data");
    // The scores of all rows, from the text itself.
    let rows = |name: &str| -> Vec<Vec<(u32, f64)>> {
        let pair = |pair: &str| pair.split_once(':').map(|(c, v)| (c.parse().unwrap(), v.parse().unwrap()));
        folder.read(name).lines().skip(1).map(|line| line.split(' ').filter_map(pair).collect()).collect()
    };
    let (base, queries) = (rows("data/train.txt"), rows("data/test.txt"));
    let dot = |a: &[(u32, f64)], b: &[(u32, f64)]| -> f64 {
        a.iter().map(|(c, v)| b.iter().find(|(of_b, _)| of_b == c).map_or(0.0, |(_, w)| v * w)).sum()
    };
    for metric in ["ip", "l2", "cosine"] {
        let told = json(
            &folder.ok(&format!("index build --vectors data/train.txt --metric {metric} --output s.index --json")),
        );
        assert_eq!((&told["rows"], &told["columns"]), (&700.into(), &300.into()));
        let found = folder.ok("index search --index s.index --queries data/test.txt --top-k 3");
        assert_eq!(
            found,
            folder.ok("index search --index s.index --queries data/test.txt --top-k 3 --exact --in-memory")
        );
        for (line, query) in found.lines().zip(&queries) {
            let score = |row: &Vec<(u32, f64)>| match metric {
                "ip" => dot(query, row),
                "l2" => 2.0 * dot(query, row) - dot(query, query) - dot(row, row),
                _ => dot(query, row) / (dot(query, query) * dot(row, row)).sqrt(),
            };
            let best = base.iter().map(score).fold(f64::MIN, f64::max);
            let (row, told) = line.split(' ').next().unwrap().split_once(':').unwrap();
            let told: f64 = told.parse().unwrap();
            assert!((told - best).abs() < 1e-5 * best.abs().max(1.0), "{metric}: {told}, {best}");
            assert!((score(&base[row.parse::<usize>().unwrap()]) - told).abs() < 1e-5 * best.abs().max(1.0));
        }
    }
    let told = json(&folder.ok("index evaluate --index s.index --queries data/test.txt --runs 1 --json"));
    assert!(told["recall"] == 1.0 && told["weights_added"].as_f64().unwrap() > 0.0, "{told}");
    folder.write("few.txt", "5\n17\n");
    let found = folder.ok("index search --index s.index --queries data/test.txt --filter few.txt");
    assert!(found.lines().all(|line| line.split(' ').count() == 2), "{found}");
    folder.write("rows.npy", npy(9, 300, value));
    folder.write("text.jsonl", "{\"text\": \"a\", \"labels\": [\"b\"]}\n");
    folder.write("wide.txt", "1 301 1\n0 300:1\n");
    for (arguments, expected) in [
        ("search --index s.index --queries data/test.txt --search-width 0.1", "answers exactly"),
        ("search --index s.index --queries rows.npy", "the index has sparse rows"),
        ("search --index s.index --queries wide.txt", "wide.txt"),
        ("evaluate --index s.index --queries data/test.txt --target-recall 0.9", "--target-recall: an index of sparse"),
        (
            "evaluate --index s.index --queries data/test.txt --plot p.svg",
            "--plot: an index of sparse rows answers exactly",
        ),
        ("refresh --index s.index --vectors rows.npy", "kind \"inverted-index\""),
        (
            "build --vectors data/train.txt --metric ip --output t.index --degree 8",
            "--degree 8: an index of sparse rows",
        ),
        ("build --vectors text.jsonl --metric ip --output t.index", "text.jsonl: jsonl, expected vectors"),
    ] {
        let got = folder.xc(&format!("index {arguments}"));
        assert!(got.code == 2 && got.stderr.contains(expected), "{arguments}: {}", got.stderr);
    }
}
