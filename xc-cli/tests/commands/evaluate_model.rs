//! `xc evaluate --model`: the model answers and says what its labels are; truth and predictions that do not belong
//! together are refused; reports of labels and rows.

use crate::program::{Folder, json, npy, table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Texts with labels in a column of their own, ids, a comma in a name, and a test label that training does not have.
fn csv_folder() -> Folder {
    let folder = Folder::new();
    let row = |i: usize| {
        let (a, b) = (i % 5, (i / 2) % 5);
        let names = ["red", "9", "blue, dark", "2019", "x\"y"];
        let tags = if a == b { names[a].to_owned() } else { format!("{};{}", names[a], names[b]) };
        let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        format!("u{i},tok{a} tok{b} common,body{},{}\n", i % 3, quote(&tags))
    };
    let header = "uid,title,body,tags\n";
    folder.write("train.csv", header.to_owned() + &(0..80).map(row).collect::<String>());
    let more = "u100,tok1 tok2,body1,other;9\nu101,tok3,body2,\nu102,zzz,qqq,red\n";
    folder.write("test.csv", header.to_owned() + &(80..110).map(row).collect::<String>() + more);
    folder.ok(
        "train tree --train train.csv --text-fields title,body --label-field tags --label-separator ; --id-field uid \
         --model m",
    );
    folder
}

/// Every metric, without the counts that only training labels give.
fn metrics(text: &str) -> Value {
    json(text)
}

#[test]
fn a_model_gives_what_its_options_would_say_and_answers_as_predict_does() {
    let folder = csv_folder();
    for form in ["p.txt", "p.jsonl", "p.npz"] {
        folder.ok(&format!("predict --model m --input test.csv --output {form}"));
    }
    folder.ok("predict --model m --input test.csv --names --output names.txt");
    let by_hand = folder
        .ok("evaluate --truth test.csv --predictions p.txt --label-names m/labels.txt --label-field tags \
         --label-separator ; --propensity-from train.csv --json");
    assert!(json(&by_hand)["PSP@1"].as_f64().unwrap() > 0.0 && json(&by_hand)["counts"]["unknown_labels"] == 1);
    for command in [
        "evaluate --model m --input test.csv --json",
        "evaluate --model m --truth test.csv --json",
        "evaluate --model m --truth test.csv --predictions p.txt --json",
        "evaluate --model m --truth test.csv --predictions p.jsonl --json",
        "evaluate --model m --truth test.csv --predictions p.npz --json",
        "evaluate --model m --truth test.csv --predictions names.txt --json",
    ] {
        assert_eq!(metrics(&run(&folder, command)), metrics(&by_hand), "{command}");
    }
    for form in ["p.txt", "p.jsonl", "names.txt"] {
        let outcome = folder.answered("evaluate --model m --truth test.csv --predictions - --json", folder.read(form));
        assert_eq!((outcome.code, metrics(&outcome.stdout)), (0, metrics(&by_hand)), "{form}: {}", outcome.stderr);
    }
    // The answers themselves, of all rows that have labels.
    run(&folder, "evaluate --model m --input test.csv --k 1,3 --worst worst.jsonl");
    let answers = folder.read("p.jsonl");
    let answers: Vec<&str> = answers.lines().collect();
    let worst = folder.read("worst.jsonl");
    assert_eq!(worst.lines().count(), 32);
    for line in worst.lines() {
        let row = json(line);
        let answer = answers[row["instance"].as_u64().unwrap() as usize];
        let answer = &answer[answer.find("\"labels\"").unwrap()..];
        assert!(line.ends_with(answer), "{line}\n{answer}");
    }
}

/// What a run prints, whatever it says on stderr beside.
#[track_caller]
fn run(folder: &Folder, command: &str) -> String {
    let outcome = folder.xc(command);
    assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
    outcome.stdout
}

#[test]
fn every_kind_of_model_and_input_is_evaluated_as_its_predictions_are() {
    let folder = Folder::new();
    let rows = |first: usize| -> String {
        (first..first + 60)
            .map(|i| format!("{},{} {}:1 {}:{}\n", i % 4, 4 + i % 3, i % 7, 7 + i % 4, 1 + i % 2))
            .collect()
    };
    folder.write("train.txt", format!("60 11 7\n{}", rows(0)));
    folder.write("test.txt", format!("60 11 7\n{}", rows(5)));
    folder.ok("convert --from xc-text test.txt --to npz x.npz --output-labels y.npz");
    folder.ok("convert --from xc-text test.txt --to svmlight test.svm --output-base 1");
    folder.write("v.npy", npy(60, 5, |row, at| ((row * 3 + at * 5) % 7) as f32 / 7.0));
    for (train, model, options) in [
        ("tree", "t", ""),
        ("dense", "d", "--epochs 2"),
        ("lns", "l", "--epochs 2"),
        ("mach", "h", "--epochs 1 --buckets 5 --repetitions 3"),
    ] {
        folder.ok(&format!("train {train} --train train.txt --model {model} {options}"));
        for (input, more, truth) in [
            ("test.txt", "", "--truth test.txt"),
            ("test.svm", "--svmlight-base 1", "--truth test.svm --svmlight-base 1"),
            ("x.npz", "", "--truth y.npz"),
        ] {
            folder.ok(&format!("predict --model {model} --input {input} {more} --top-k 6 --output p.txt"));
            let by_hand = run(
                &folder,
                &format!("evaluate {truth} --predictions p.txt --k 1,6 --propensity-from train.txt --json"),
            );
            let truth = if input == "x.npz" { truth } else { more };
            let own = run(&folder, &format!("evaluate --model {model} --input {input} {truth} --k 1,6 --json"));
            let mut expected = json(&by_hand);
            // A file of rows without header does not say how many labels there are.
            expected["counts"]["labels"] = 7.into();
            assert_eq!(json(&own), expected, "{train} {input}");
        }
    }
    folder.ok("train dense --train v.npy --train-labels y.npz --model v --epochs 1");
    folder.ok("predict --model v --input v.npy --output p.txt");
    let by_hand = run(&folder, "evaluate --truth y.npz --predictions p.txt --propensity-from y.npz --json");
    assert_eq!(json(&run(&folder, "evaluate --model v --input v.npy --truth y.npz --json")), json(&by_hand));
}

#[test]
fn answers_are_compared_with_the_truth_of_their_ids() {
    let folder = csv_folder();
    // Each id once.
    let unique = folder
        .read("test.csv")
        .replace("u102,zzz", "u112,zzz")
        .replace("u100,tok1 tok2,body1,other", "u110,tok1 tok2,body1,other");
    folder.write("test.csv", unique.replace("u101,tok3,body2,", "u111,tok3,body2,"));
    folder.ok("predict --model m --input test.csv --output p.jsonl");
    let (test, answers) = (folder.read("test.csv"), folder.read("p.jsonl"));
    let with = |name: &str, change: &dyn Fn(&mut Vec<&str>)| {
        let mut lines: Vec<&str> = test.lines().collect();
        let mut rows = lines.split_off(1);
        change(&mut rows);
        folder.write(name, format!("{}\n{}\n", lines[0], rows.join("\n")));
    };
    with("reversed.csv", &|rows| rows.reverse());
    with("swapped.csv", &|rows| rows.swap(3, 4));
    with("other.csv", &|rows| rows[2] = "new,tok1,body1,red");
    let evaluate = "evaluate --model m --predictions p.jsonl --truth";
    let expected = run(&folder, &format!("{evaluate} test.csv"));
    assert_eq!(run(&folder, &format!("{evaluate} reversed.csv")), expected);
    assert_eq!(run(&folder, &format!("{evaluate} swapped.csv")), expected);
    folder
        .xc(&format!("{evaluate} other.csv"))
        .refused(2, "p.jsonl: no row has the id \"new\" of instance 2; one for each instance is expected (other.csv)");
    // Without a model, as comparison, from stdin, and of answers that are made now.
    let options = "--label-names m/labels.txt --label-field tags --label-separator ; --id-field uid";
    let reversed: Vec<&str> = answers.lines().rev().collect();
    folder.write("q.jsonl", reversed.join("\n"));
    for (command, same) in [
        ("evaluate --truth reversed.csv --predictions p.jsonl", "evaluate --truth test.csv --predictions p.jsonl"),
        ("evaluate --truth test.csv --predictions q.jsonl", "evaluate --truth test.csv --predictions p.jsonl"),
        (
            "evaluate --truth test.csv --predictions p.jsonl --compare q.jsonl",
            "evaluate --truth test.csv --predictions p.jsonl --compare p.jsonl",
        ),
    ] {
        let of = |command: &str| run(&folder, &format!("{command} {options}")).replace("q.jsonl", "p.jsonl");
        assert_eq!(of(command).replace("reversed.csv", "test.csv"), of(same), "{command}");
    }
    let now = run(&folder, "evaluate --model m --input test.csv --truth test.csv");
    assert_eq!(run(&folder, "evaluate --model m --input test.csv --truth reversed.csv"), now);
    let outcome = folder.answered("evaluate --model m --truth reversed.csv --predictions - --quiet", &answers);
    assert_eq!(outcome.quiet_success(), expected);
    // An id is the same as a number and as a text; files without ids are taken as they are.
    run(&folder, &format!("{evaluate} test.csv"));
    let lines = |id: &str| {
        let row = |(i, line): (usize, &str)| {
            format!("{{{}\"labels\"{}\n", id.replace("ID", &i.to_string()), line.split_once("\"labels\"").unwrap().1)
        };
        answers.lines().enumerate().map(row).collect::<String>()
    };
    let numbered: String = test
        .lines()
        .skip(1)
        .enumerate()
        .map(|(i, line)| format!("{i},{}\n", line.split_once(',').unwrap().1))
        .collect();
    folder.write("numbered.csv", format!("uid,title,body,tags\n{numbered}"));
    for id in ["\"id\":ID,", "\"id\":\"ID\",", "", "\"id\":null,"] {
        folder.write("p2.jsonl", lines(id));
        run(&folder, "evaluate --model m --predictions p2.jsonl --truth numbered.csv");
    }
}

#[test]
fn matrices_of_other_widths_than_the_labels_are_refused() {
    let folder = Folder::new();
    let rows: String = (0..12).map(|i| format!("{} {}:1 9:1\n", i % 3, i % 3)).collect();
    folder.write("train.txt", format!("12 10 3\n{rows}"));
    folder.ok("convert --from xc-text train.txt --to npz x.npz --output-labels y.npz");
    folder.ok("train tree --train train.txt --model m");
    folder.ok("predict --model m --input x.npz --output p.npz");
    folder.write("names.txt", "a\nb\nc\nd\n");
    for (command, expected) in [
        (
            "--truth x.npz --predictions p.npz",
            "p.npz: a matrix of 3 columns; x.npz has 10 labels, and a column for each is expected",
        ),
        (
            "--truth y.npz --predictions x.npz",
            "x.npz: a matrix of 10 columns; y.npz has 3 labels, and a column for each is expected",
        ),
        (
            "--truth y.npz --predictions p.npz --compare x.npz",
            "x.npz: a matrix of 10 columns; y.npz has 3 labels, and a column for each is expected",
        ),
        (
            "--truth y.npz --predictions p.npz --propensity-from x.npz",
            "x.npz: a matrix of 10 columns; y.npz has 3 labels, and a column for each is expected",
        ),
        (
            "--truth train.txt --predictions p.npz --label-names names.txt",
            "p.npz: a matrix of 3 columns; names.txt gives 4 labels, and a column for each is expected",
        ),
        (
            "--model m --input x.npz --truth x.npz",
            "x.npz: a matrix of 10 columns; m has 3 labels, and a column for each is expected",
        ),
        (
            "--model m --truth y.npz --predictions x.npz",
            "x.npz: a matrix of 10 columns; m has 3 labels, and a column for each is expected",
        ),
    ] {
        folder.xc(&format!("evaluate {command}")).refused(2, expected);
    }
    run(&folder, "evaluate --truth y.npz --predictions p.npz");
    run(&folder, "evaluate --model m --input x.npz --truth y.npz");
}

#[test]
fn labels_of_a_field_are_left_out_but_not_the_true_ones() {
    let folder = Folder::new();
    let row = |i: usize| {
        format!("{{\"text\":\"tok{0} zed{0}\",\"seen\":[\"l{1}\"],\"next\":[\"l{0}\"]}}\n", i % 4, (i + 1) % 4)
    };
    let rows: String = (0..16).map(row).collect();
    folder.write("h.jsonl", &rows);
    let cells: String =
        (0..4).map(|i| format!("tok{0} zed{0},l{1};l{2},l{0}\n", i, (i + 1) % 4, (i + 2) % 4)).collect();
    folder.write("h.csv", format!("text,seen,next\n{cells}"));
    folder.ok("train tree --train h.jsonl --label-field next --model m");
    for input in ["h.jsonl", "h.csv --label-separator ;"] {
        let answers = folder.ok(&format!("predict --model m --input {input} --exclude-field seen --top-k 4 --names"));
        for (i, line) in answers.lines().enumerate() {
            let names: Vec<&str> = line.split('\t').map(|entry| entry.split_once(':').unwrap().0).collect();
            assert!(
                names.contains(&&*format!("l{}", i % 4)) && !names.contains(&&*format!("l{}", (i + 1) % 4)),
                "{line}"
            );
        }
    }
    let own = "these are the instances' own labels, in the field that the model was trained on (\"next\"), and no true label \
               would be answered; ";
    let all_the_same = "--exclude-own-labels leaves them out all the same";
    for (command, begins) in [
        ("--exclude-field next", format!("--exclude-field next: {own}{all_the_same}")),
        (
            "--exclude h.jsonl",
            format!(
                "--exclude h.jsonl: the file is also --input: {own}--exclude-field NAME reads another field, {all_the_same}"
            ),
        ),
        ("--exclude ./h.jsonl --label-field next", "--exclude ./h.jsonl: the file is also --input: ".to_owned()),
        ("--exclude-field sean", "--exclude-field sean: h.jsonl: no object lists a label there; the first object has \"next\", \"seen\", \"text\"".to_owned()),
        ("--exclude-own-labels", "--exclude-own-labels: --exclude FILE or --exclude-field NAME is expected".to_owned()),
    ] {
        let outcome = folder.xc(&format!("predict --model m --input h.jsonl {command}"));
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{command}");
        assert!(outcome.stderr.starts_with(&format!("xc: error: {begins}")), "{command}: {}", outcome.stderr);
    }
    let outcome = folder.answered("predict --model m --input - --exclude-field seen", "tok1\n");
    assert!(
        outcome.code == 2 && outcome.stderr.contains("have a field \"exclude\" of their own"),
        "{}",
        outcome.stderr
    );
    for command in ["--exclude-field next", "--exclude h.jsonl"] {
        let answers = folder.ok(&format!("predict --model m --input h.jsonl {command} --exclude-own-labels --names"));
        assert!(answers.lines().enumerate().all(|(i, line)| !line.contains(&format!("l{}:", i % 4))), "{answers}");
    }
    let other = folder.ok("predict --model m --input h.jsonl --exclude h.jsonl --label-field seen");
    assert_eq!(other, folder.ok("predict --model m --input h.jsonl --exclude-field seen"));
    // Files of ids: the labels of the instances themselves.
    folder
        .write("t.txt", "8 4 4\n".to_owned() + &(0..8).map(|i| format!("{} {}:1\n", i % 4, i % 4)).collect::<String>());
    folder.ok("train tree --train t.txt --model x");
    let outcome = folder.xc("predict --model x --input t.txt --exclude t.txt");
    assert!(outcome.code == 2 && outcome.stderr.contains("the file is also --input"), "{}", outcome.stderr);
    folder.ok("predict --model x --input t.txt --exclude t.txt --exclude-own-labels");
    let outcome = folder.xc("predict --model x --input t.txt --exclude-field seen");
    assert!(outcome.stderr.contains("which has no fields"), "{}", outcome.stderr);
}

/// A truth and lists with ties, empty lists, rows without labels, and a label beyond the predicted ones.
fn lists(seed: u64) -> (Vec<BTreeSet<u32>>, Vec<BTreeMap<u32, u32>>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    (0..25)
        .map(|_| {
            let truth = (0..next(4)).map(|_| next(7) as u32).collect();
            let list = (0..next(6)).map(|_| (next(6) as u32, next(4) as u32)).collect();
            (truth, list)
        })
        .unzip()
}

#[test]
fn the_report_of_labels_equals_counts_of_pairs() {
    for seed in 1..6 {
        let (truth, scores) = lists(seed);
        let folder = Folder::new();
        folder.write("names.txt", "a\nb,c\n\"d\"\n3\ne\nf\n");
        let names = ["a", "b,c", "\"d\"", "3", "e", "f"];
        let joined = |labels: &BTreeSet<u32>| labels.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        folder.write(
            "t.jsonl",
            truth.iter().map(|labels| format!("{{\"labels\":[{}]}}\n", joined(labels))).collect::<String>(),
        );
        let entry = |(label, score): (&u32, &u32)| format!("{label}:{}", f64::from(*score) / 4.0);
        let line = |list: &BTreeMap<u32, u32>| list.iter().map(entry).collect::<Vec<_>>().join(" ") + "\n";
        folder.write("p.txt", scores.iter().map(line).collect::<String>());
        // Larger scores first, equal ones by ascending label.
        let ranked: Vec<Vec<(u32, f64)>> = scores
            .iter()
            .map(|list| {
                let mut list: Vec<(u32, f64)> =
                    list.iter().map(|(&label, &score)| (label, f64::from(score) / 4.0)).collect();
                list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                list
            })
            .collect();
        for threshold in [None, Some(0.5)] {
            let option = threshold.map(|at| format!("--threshold {at}")).unwrap_or_default();
            run(
                &folder,
                &format!(
                    "evaluate --truth t.jsonl --predictions p.txt --label-names names.txt --k 3,1 {option} --per-label l.csv"
                ),
            );
            let cuts: Vec<(String, Option<usize>)> = [("@1".to_owned(), Some(1)), ("@3".to_owned(), Some(3))]
                .into_iter()
                .chain(threshold.map(|_| (String::new(), None)))
                .collect();
            let cut = |row: usize, k: Option<usize>| -> Vec<u32> {
                match k {
                    Some(k) => ranked[row].iter().take(k).map(|item| item.0).collect(),
                    None => ranked[row].iter().filter(|item| item.1 >= threshold.unwrap()).map(|item| item.0).collect(),
                }
            };
            let mut rows = table(&folder.read("l.csv"));
            let header = rows.remove(0);
            let mut listed = Vec::new();
            for row in rows {
                let cell = |name: &str| &*row[header.iter().position(|column| column == name).unwrap()];
                let number = |name: &str| cell(name).parse::<f64>().unwrap();
                let label: u32 = cell("id").parse().unwrap();
                listed.push(label);
                assert_eq!(cell("name"), names.get(label as usize).copied().unwrap_or(""));
                let support = truth.iter().filter(|labels| labels.contains(&label)).count();
                assert_eq!(number("support"), support as f64);
                for (at, k) in &cuts {
                    let predicted = (0..25).filter(|&i| cut(i, *k).contains(&label)).count();
                    let correct = (0..25).filter(|&i| cut(i, *k).contains(&label) && truth[i].contains(&label)).count();
                    let share = |of: usize| if of == 0 { 0.0 } else { correct as f64 / of as f64 };
                    assert_eq!(number(&format!("predicted{at}")), predicted as f64);
                    assert_eq!(number(&format!("precision{at}")), share(predicted));
                    assert_eq!(number(&format!("recall{at}")), share(support));
                    assert!((number(&format!("F1{at}")) - 2.0 * share(support + predicted)).abs() < 1e-12);
                }
                let own = if threshold.is_some() { None } else { Some(1) };
                let times = |other: u32| {
                    let wrong = |i: &usize| {
                        let list = cut(*i, own);
                        truth[*i].contains(&label)
                            && !list.contains(&label)
                            && list.contains(&other)
                            && !truth[*i].contains(&other)
                    };
                    (0..25).filter(wrong).count()
                };
                let most = (0..7).map(times).max().unwrap();
                match (0..7).find(|&other| times(other) == most).filter(|_| most > 0) {
                    Some(other) => {
                        assert_eq!(
                            [cell("confused_id"), cell("confused_times")],
                            [&*other.to_string(), &*most.to_string()]
                        );
                        assert_eq!(cell("confused_name"), names[other as usize]);
                    }
                    None => assert_eq!([cell("confused_id"), cell("confused_name"), cell("confused_times")], [""; 3]),
                }
            }
            let present = |label: &u32| {
                truth.iter().any(|labels| labels.contains(label))
                    || cuts.iter().any(|(_, k)| (0..25).any(|i| cut(i, *k).contains(label)))
            };
            assert_eq!(listed, (0..7).filter(present).collect::<Vec<_>>());
        }
    }
}

#[test]
fn options_that_need_a_model_or_one_another_say_so() {
    let folder = csv_folder();
    folder.ok("predict --model m --input test.csv --output p.txt");
    for (command, expected) in [
        ("--truth test.csv", "--predictions"),
        ("--predictions p.txt --label-names m/labels.txt", "--truth"),
        ("--input test.csv --predictions p.txt", "--input"),
        ("--model m --input test.csv --predictions p.txt", "--input"),
        ("--model m", "--truth"),
        ("--model m --truth test.csv --predictions p.txt --top-k 3", "--top-k"),
        ("--model m --truth test.csv --worst-rows 3", "--worst"),
        ("--model m --truth test.csv --predictions - --compare -", "stdin is read once"),
        ("--model m --input test.csv --per-label m/l.csv", "inside the folder of the model"),
        ("--model absent --input test.csv", "absent"),
        ("--model m --input absent.csv", "absent.csv"),
    ] {
        let outcome = folder.xc(&format!("evaluate {command}"));
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{command}: {}", outcome.stderr);
    }
    assert!(!folder.path("m/l.csv").exists());
}
