//! Work in parts: each a process with nothing but files in common with the others; all together the bytes of one.

use crate::program::{Folder, contents, json};

/// Answers of `of` parts, joined in order.
fn joined(folder: &Folder, predict: &str, of: u32) -> Vec<u8> {
    let mut all = Vec::new();
    for index in 0..of {
        folder.ok(&format!("{predict} --part {index}/{of} --output part"));
        all.extend(std::fs::read(folder.path("part")).unwrap());
    }
    all
}

/// Numbers of parts; the last has empty ones. Where a file is cut depends on it alone, so other forms of answers to
/// the same file need one number.
const NUMBERS: [u32; 5] = [1, 2, 3, 7, 40];

#[track_caller]
fn same_in_parts(folder: &Folder, predict: &str, numbers: &[u32]) {
    folder.ok(&format!("{predict} --output whole"));
    let whole = std::fs::read(folder.path("whole")).unwrap();
    assert!(whole.len() > 40, "{predict}");
    for &of in numbers {
        assert!(joined(folder, predict, of) == whole, "{predict} in {of} parts");
    }
}

fn texts() -> Vec<String> {
    (0..23).map(|i| format!("tok{} zed{} é\u{2028}", i % 5, i % 3)).collect()
}

fn text_model() -> Folder {
    let folder = Folder::new();
    let rows: String = (0..5).map(|i| format!("{{\"text\":\"tok{i} zed{i} é\",\"labels\":[\"l,{i}\"]}}\n")).collect();
    folder.write("d.jsonl", rows.repeat(4));
    folder.ok("train tree --train d.jsonl --model m");
    folder
}

#[test]
fn answers_to_parts_of_texts_are_those_of_the_file() {
    let folder = text_model();
    for (end, numbers) in [("\n", &NUMBERS[..]), ("\r\n", &[7])] {
        let plain: Vec<String> = texts();
        folder.write("q.ft", plain.join(end));
        let jsonl = |(i, text): (usize, &String)| serde_json::json!({ "id": i, "text": text }).to_string();
        folder.write("q.jsonl", plain.iter().enumerate().map(jsonl).collect::<Vec<_>>().join(end) + end);
        let mut rows = vec!["id,text,labels".to_owned()];
        for (i, text) in plain.iter().enumerate() {
            let text = if i % 3 == 0 { format!("\"{text},{end}\"\"tok1\"\"\"") } else { text.clone() };
            rows.push(format!("r{i},{text},{}", if i % 2 == 0 { "\"l,1\"" } else { "" }));
            rows.extend((i % 4 == 0).then(String::new));
        }
        folder.write("q.csv", format!("\u{feff}{}", rows.join(end)));
        for query in ["q.ft", "q.jsonl", "q.csv --text-fields text"] {
            for (form, numbers) in [("lines", numbers), ("lines --names", &[3]), ("jsonl", &[3]), ("csv", &[7])] {
                same_in_parts(&folder, &format!("predict --model m --input {query} --output-format {form}"), numbers);
            }
        }
        // Lists follow the row.
        let ids: Vec<String> = (0..23).map(|i| format!("{},{}", i % 5, (i + 1) % 5)).collect();
        folder.write("ids.txt", ids.join("\n") + "\n");
        for query in ["q.ft", "q.jsonl", "q.csv --text-fields text"] {
            same_in_parts(&folder, &format!("predict --model m --input {query} --candidates ids.txt"), &[7]);
            same_in_parts(&folder, &format!("predict --model m --input {query} --exclude ids.txt"), &[3]);
        }
        let own = "predict --model m --input q.csv --text-fields text --exclude-field labels --exclude-own-labels";
        same_in_parts(&folder, &format!("{own} --label-separator ;"), numbers);
    }
    // Lists of other numbers of rows.
    folder.write("ids.txt", "1\n".repeat(22));
    let outcome = folder.xc("predict --model m --input q.jsonl --candidates ids.txt --part 1/2");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("22 rows of candidates for"), "{}", outcome.stderr);
    folder.write("ids.txt", "1\n".repeat(24));
    let outcome = folder.xc("predict --model m --input q.jsonl --candidates ids.txt --part 1/2");
    assert!(outcome.stderr.contains("24 rows of candidates for 23 instances"), "{}", outcome.stderr);
    folder.ok("predict --model m --input q.jsonl --candidates ids.txt --part 0/2");
}

#[test]
fn answers_to_parts_of_features_and_vectors_are_those_of_the_file() {
    let folder = Folder::new();
    folder.ok("generate --instances 200 --test-instances 30 --features 300 --labels 30 --words 20 --output data");
    folder.ok("convert --from xc-text data/test.txt --to npz x.npz --output-labels y.npz");
    folder.ok("convert --from npz x.npz --input-labels y.npz --to svmlight test.svm --output-base 1");
    folder.write("headless.xc", folder.read("data/test.txt").split_once('\n').unwrap().1);
    folder.write("seen.txt", folder.read("data/test.txt"));
    folder.write("longer.xc", folder.read("data/test.txt") + "\n\r\n");
    folder.ok("train tree --train data/train.txt --model m");
    for query in ["data/test.txt", "headless.xc", "longer.xc", "x.npz", "test.svm --svmlight-base 1"] {
        for (form, numbers) in [("lines", &NUMBERS[..]), ("jsonl", &[3]), ("csv", &[7])] {
            same_in_parts(&folder, &format!("predict --model m --input {query} --output-format {form}"), numbers);
        }
        same_in_parts(&folder, &format!("predict --model m --input {query} --exclude seen.txt"), &[7]);
    }
    folder.write("v.npy", crate::program::npy(30, 4, |row, at| ((row * 7 + at * 3) % 11) as f32));
    folder.write("v.txt", (0..30).map(|i| format!("{}\n", i % 6)).collect::<String>());
    folder.ok("train dense --train v.txt --features v.npy --epochs 1 --model n");
    same_in_parts(&folder, "predict --model n --input v.npy --output-format csv", &NUMBERS);
    // One instance, and more parts than that.
    folder.write("one.xc", "1 300 30\n0 1:1\n");
    folder.ok("predict --model m --input one.xc --output whole");
    assert_eq!(joined(&folder, "predict --model m --input one.xc", 5), std::fs::read(folder.path("whole")).unwrap());
}

#[test]
fn what_has_no_parts_is_refused() {
    let folder = text_model();
    folder.write("q.jsonl", "{\"text\":\"tok1\"}\n{\"text\":\"tok2\"}\n");
    let predict = "predict --model m --part 1/2";
    let refused = |arguments: &str, line: &str| folder.xc(&format!("{predict} {arguments}")).refused(2, line);
    let stream = "--part 1/2: a stream has no parts that could be read apart; --input FILE is expected";
    refused("--input -", stream);
    let npz = "--part 1/2: an npz file is no part of another; lines, jsonl or csv is expected";
    refused("--input q.jsonl --output a.npz", npz);
    folder.write("q.jsonl.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
    let uncut = "cannot be read in parts";
    let packed = "it is compressed, and a line can be found from its beginning only";
    refused("--input q.jsonl.gz", &format!("q.jsonl.gz: {uncut}: {packed}"));
    folder.write("array.jsonl", "[{\"text\":\"tok1\"},\n{\"text\":\"tok2\"}]");
    refused("--input array.jsonl", &format!("array.jsonl: {uncut}: it is not one JSON object a line"));
    for text in ["2/2", "1", "a/b", "-1/2"] {
        let outcome = folder.xc(&format!("predict --model m --input q.jsonl --part={text}"));
        assert!(outcome.code == 2 && outcome.stderr.contains("expected I/N"), "{}", outcome.stderr);
    }
    // A line of a part is counted from the byte that its message says.
    folder.write("bad.jsonl", "{\"text\":\"tok1\"}\n{\"text\":\"tok2\"}\n{\"text\":3}\n");
    let outcome = folder.xc("predict --model m --input bad.jsonl --part 1/2");
    assert!(outcome.stderr.contains("bad.jsonl (from byte 32): line 1"), "{}", outcome.stderr);
}

#[test]
fn parts_of_mach_are_merged_to_the_model_of_one_run() {
    let folder = Folder::new();
    folder.ok("generate --instances 200 --test-instances 20 --features 300 --labels 30 --words 20 --output data");
    let train = "train mach --train data/train.txt --repetitions 4 --buckets 8 --epochs 2";
    folder.ok(&format!("{train} --model whole"));
    for of in [1, 2, 4] {
        let parts: Vec<String> = (0..of).map(|index| format!("part-{of}-{index}")).collect();
        for (index, part) in parts.iter().enumerate() {
            folder.ok(&format!("{train} --part {index}/{of} --model {part}"));
        }
        folder.ok(&format!("merge {} --output merged", parts.join(" ")));
        assert!(contents(&folder.path("merged")) == contents(&folder.path("whole")), "{of} parts");
    }
    folder
        .xc(&format!("{train} --part 0/5 --model p"))
        .refused(2, "--part 0/5: there are 4 repetitions; so many parts or fewer are expected");
    let range = "train mach --train data/train.txt --repetitions-range 0..2 --part 0/2 --model p";
    assert!(folder.xc(range).stderr.contains("--repetitions-range"));
}

#[test]
fn figures_of_answers_in_parts_are_those_of_the_whole() {
    let folder = Folder::new();
    folder.ok("generate --instances 200 --test-instances 60 --features 300 --labels 30 --words 20 --output data");
    folder.ok("train tree --train data/train.txt --model m");
    let predict = "predict --model m --input data/test.txt --top-k 5";
    for form in ["txt", "jsonl"] {
        folder.ok(&format!("{predict} --output whole.{form}"));
        for index in 0..12 {
            folder.ok(&format!("{predict} --part {index}/12 --output part-{index}.{form}"));
        }
        let evaluate =
            "evaluate --truth data/test.txt --propensity-from data/train.txt --intervals --json --predictions";
        let whole = folder.ok(&format!("{evaluate} whole.{form}"));
        assert!(json(&whole)["P@1"].as_f64().unwrap() > 0.3);
        assert_eq!(folder.ok(&format!("{evaluate} part-*.{form}")), whole);
        let names: Vec<String> = (0..12).map(|index| format!("part-{index}.{form}")).collect();
        assert_eq!(folder.ok(&format!("{evaluate} {}", names.join(" "))), whole);
        // As a shell orders what a pattern without quotes names.
        let mut sorted = names.clone();
        sorted.sort();
        let order = format!(
            "--predictions: part-11.{form} before part-2.{form}, against their numbers; a pattern in \
                             quotes takes files by their numbers"
        );
        folder.xc(&format!("{evaluate} {}", sorted.join(" "))).refused(2, &order);
        let outcome = folder.xc(&format!("{evaluate} {}", names[1..].join(" ")));
        assert!(outcome.code == 2 && outcome.stderr.contains("55 instances, expected 60"), "{}", outcome.stderr);
    }
    folder
        .xc("evaluate --truth data/test.txt --predictions none-*")
        .refused(2, "--predictions none-*: no file fits the pattern");
}

const TREES: &str = "train tree --train data/train.jsonl --trees 2 --cluster.max-leaf 4 --tree.branching 4";

fn tree_data() -> Folder {
    let folder = Folder::new();
    folder.ok("generate --instances 300 --test-instances 20 --features 300 --labels 60 --words 20 --output data");
    folder
}

#[test]
fn parts_of_trees_are_merged_to_the_model_of_one_run() {
    let folder = tree_data();
    folder.ok(&format!("{TREES} --model whole"));
    for of in [1, 2, 3, 5] {
        let parts: Vec<String> = (0..of).rev().map(|index| format!("part-{of}-{index}")).collect();
        for (index, part) in (0..of).rev().zip(&parts) {
            folder.ok(&format!("{TREES} --part {index}/{of} --model {part} --threads {}", 1 + index % 2));
        }
        folder.ok(&format!("merge {} --output merged", parts.join(" ")));
        assert!(contents(&folder.path("merged")) == contents(&folder.path("whole")), "{of} parts");
    }
    let report = json(&folder.ok("merge part-2-0 part-2-1 --output merged --json"));
    assert_eq!((&report["trees"], &report["labels"]), (&json("2"), &json("60")));
    assert!(!folder.path("part-2-0.checkpoint").exists());
    // A part is no model.
    let outcome = folder.xc("predict --model part-2-0 --input data/test.jsonl");
    assert!(outcome.code == 2 && outcome.stderr.contains("part"), "{}", outcome.stderr);
}

#[test]
fn parts_of_trees_that_do_not_belong_together_are_refused_and_named() {
    let folder = tree_data();
    for index in 0..3 {
        folder.ok(&format!("{TREES} --part {index}/3 --model p{index}"));
    }
    folder.xc("merge p2 p0 --output m").refused(2, "part 1/3 is missing: 2 of 3 parts are given");
    let twice = "p0: is part 0/3, as is p0; each part once is expected";
    folder.xc("merge p0 p0 p1 --output m").refused(2, twice);
    // Other settings, named; other data; a model in the place of a part.
    folder.ok(&format!("{TREES} --linear.cost 2 --part 1/3 --model cost"));
    let cost = folder.xc("merge p0 cost p2 --output m");
    assert!(cost.stderr.contains("cost: training.linear.cost is 2.0, expected"), "{}", cost.stderr);
    let rows = folder.read("data/train.jsonl");
    let fewer: String = rows.lines().skip(1).map(|line| format!("{line}\n")).collect();
    folder.write("data/train.jsonl", fewer);
    folder.ok(&format!("{TREES} --part 1/3 --model rows"));
    folder.write("data/train.jsonl", &rows);
    assert_eq!(folder.xc("merge p0 rows p2 --output m").code, 2);
    folder.ok(&format!("{TREES} --model whole"));
    assert!(folder.xc("merge p0 whole p2 --output m").stderr.contains("whole"));
    let labels = "--labels, --label-names: trees get no labels without training";
    folder.xc("merge p0 p1 p2 --labels 99 --output m").refused(2, labels);
    assert!(!folder.path("m").exists());
    // What a part cannot have.
    let negatives = folder.xc(&format!("{TREES} --negatives matcher-aware --part 0/3 --model n"));
    assert!(negatives.code == 2 && negatives.stderr.contains("--negatives"), "{}", negatives.stderr);
    for judged in ["--validation data/test.jsonl", "--validation-fraction 0.2"] {
        let outcome = folder.xc(&format!("{TREES} {judged} --part 0/3 --model n"));
        assert!(outcome.code == 2 && outcome.stderr.contains("a part is no model that could be judged"), "{outcome:?}");
    }
    // Damage is found before anything is written.
    let file = "p1/model.safetensors";
    let mut bytes = std::fs::read(folder.path(file)).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    folder.write(file, bytes);
    let damaged = folder.xc("merge p0 p1 p2 --output m");
    assert!(damaged.code == 2 && damaged.stderr.contains("damaged since it was saved"), "{}", damaged.stderr);
    assert!(!folder.path("m").exists());
}

#[cfg(unix)]
#[test]
fn a_part_of_trees_that_was_killed_goes_on_and_is_trained_by_one_process_at_a_time() {
    let folder = Folder::new();
    folder.ok("generate --instances 4000 --test-instances 20 --features 3000 --labels 900 --words 60 --output data");
    let train = "train tree --train data/train.txt --part 1/2 --model p1";
    folder.ok(&train.replace("p1", "whole"));
    folder.resumed_after_kills(train, 6, |attempt| 60 + 90 * attempt);
    assert!(contents(&folder.path("p1")) == contents(&folder.path("whole")));
    // Two processes on one part: the second finds the checkpoint taken.
    let mut first = folder.command(&format!("{train} --quiet --threads 1")).spawn().unwrap();
    crate::program::wait_until(|| folder.path("p1.checkpoint/config.json").exists());
    let second = folder.xc(train);
    assert_eq!(second.code, 2, "{}", second.stderr);
    assert!(second.stderr.contains("p1.checkpoint is in use by another process"), "{}", second.stderr);
    assert!(first.wait().unwrap().success());
    // Another part does not go on from it.
    let mut killed = folder.command(&format!("{train} --quiet --threads 1")).spawn().unwrap();
    crate::program::wait_until(|| folder.path("p1.checkpoint/tree-1-topology/config.json").exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    let other = folder.xc(&format!("{} --resume", train.replace("1/2", "0/2")));
    assert!(other.code == 2 && other.stderr.contains("other data or settings"), "{}", other.stderr);
}
