//! The scale of features and the share of what training keeps: what is learned, and what is said.

use crate::program::{Folder, json, npy, run};
use std::fmt::Write as _;

const CLASSES: usize = 10;
const WIDTH: usize = 24;

/// Random numbers from -1 to 1, the same for the same name.
fn random(name: u64) -> f32 {
    let mut z = name.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// A value of an instance: noise around the centre of its class.
fn value(row: usize, column: usize, noise: f32) -> f32 {
    let centre = random((row % CLASSES * WIDTH + column) as u64);
    centre + noise * random((1 << 32) + (row * WIDTH + column) as u64)
}

/// Vectors and sparse rows of the same instances, times a factor, with their labels.
fn write(folder: &Folder, name: &str, rows: std::ops::Range<usize>, noise: f32, factor: f32) {
    let (first, n) = (rows.start, rows.len());
    folder.write(&format!("{name}.npy"), npy(n, WIDTH, |row, column| factor * value(first + row, column, noise)));
    let mut sparse = format!("{n} {WIDTH} {CLASSES}\n");
    let mut labels = format!("{n} {CLASSES}\n");
    for row in rows {
        write!(sparse, "{}", row % CLASSES).unwrap();
        // Rows of many lengths, as counts have.
        let length = 1.0 + (row % 7) as f32;
        (0..WIDTH)
            .for_each(|column| write!(sparse, " {column}:{}", factor * length * value(row, column, noise)).unwrap());
        sparse.push('\n');
        writeln!(labels, "{}:1", row % CLASSES).unwrap();
    }
    folder.write(&format!("{name}.txt"), sparse);
    folder.write(&format!("{name}.labels.txt"), labels);
}

/// Instances to learn from and others, times a factor.
fn folder(noise: f32, factor: f32) -> Folder {
    let folder = Folder::new();
    write(&folder, "train", 0..1200, noise, factor);
    write(&folder, "test", 1200..2400, noise, factor);
    folder
}

/// The options of a training run on vectors, or on sparse rows as they are.
fn inputs(vectors: bool) -> (&'static str, &'static str) {
    if vectors {
        ("--train train.npy --train-labels train.labels.txt", "test.npy")
    } else {
        ("--train train.txt --normalise false", "test.txt")
    }
}

/// The answers to the test instances: label and score of each.
fn answers(folder: &Folder, kind: &str, vectors: bool, more: &str) -> String {
    let (train, test) = inputs(vectors);
    folder.ok(&format!("train {kind} {train} --model m {more}"));
    folder.ok(&format!("predict --model m --input {test} --top-k 3"))
}

/// Share of the instances whose first answer is their class.
fn precision(answers: &str) -> f64 {
    let right = answers.lines().enumerate().filter(|(row, line)| line.starts_with(&format!("{}:", row % CLASSES)));
    right.count() as f64 / answers.lines().count() as f64
}

#[test]
fn trees_rank_alike_whatever_power_of_two_features_are_multiplied_with() {
    for (vectors, more) in
        [(true, ""), (false, ""), (true, "--linear.loss logistic --trees 1"), (false, "--precision f16")]
    {
        let expected = answers(&folder(1.5, 1.0), "tree", vectors, more);
        for power in [-10, -3, 1, 10] {
            let got = answers(&folder(1.5, 2f32.powi(power)), "tree", vectors, more);
            assert_eq!(got, expected, "times 2^{power}, vectors: {vectors}, {more}");
        }
    }
}

#[test]
fn trees_are_as_right_at_any_scale_and_networks_name_the_length_of_vectors() {
    for vectors in [true, false] {
        let expected = precision(&answers(&folder(1.5, 1.0), "tree", vectors, ""));
        assert!((0.6..0.99).contains(&expected), "{expected}");
        for factor in [1e-3, 0.3, 77.0, 1e3] {
            let got = precision(&answers(&folder(1.5, factor), "tree", vectors, ""));
            assert!((got - expected).abs() <= 0.003, "times {factor}: {got}, at 1 {expected}");
        }
    }
    for factor in [1e-3, 0.05, 1e3] {
        for kind in ["dense", "mach --buckets 4", "lns", "uniform --network.intermediate 64", "astra"] {
            let folder = folder(0.5, factor);
            let (train, _) = inputs(true);
            let done = run(&mut folder.command(&format!("train {kind} {train} --model m --epochs 1")));
            assert_eq!(done.code, 0, "{}", done.stderr);
            assert!(done.stderr.contains("typical length of"), "{kind} times {factor}: {}", done.stderr);
        }
    }
}

#[test]
fn a_converted_tree_takes_vectors_as_long_as_those_it_learned_from() {
    let folder = folder(0.8, 500.0);
    let expected = answers(&folder, "tree", true, "--trees 1");
    folder.ok("convert --from xc m --to pecos p");
    folder.ok("convert --from pecos p --to xc back");
    let best = |text: &str| text.lines().map(|line| line.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
    let back = folder.ok("predict --model back --input test.npy --top-k 3");
    assert_eq!(best(&back), best(&expected));
    // What training prunes by is what a conversion prunes by.
    folder.ok("convert --from xc m --to xc pruned --prune-below 0.1");
    assert_eq!(folder.ok("predict --model pruned --input test.npy --top-k 3"), expected);
}

#[test]
fn a_tree_that_kept_hardly_a_weight_says_so() {
    for (more, gone) in [("", false), ("--linear.prune-below 50", true), ("--linear.max-weights 0", true)] {
        for vectors in [true, false] {
            let folder = folder(1.0, 20.0);
            let (train, _) = inputs(vectors);
            let done = run(&mut folder.command(&format!("train tree {train} --model m {more}")));
            assert_eq!(done.code, 0, "{}", done.stderr);
            let said = done.stderr.contains("kept no weight");
            assert_eq!(said, gone, "{more}: {}", done.stderr);
        }
    }
}

/// Texts as JSON lines, with one of three labels each.
fn texts(folder: &Folder, texts: &[String]) {
    let mut out = String::new();
    for (row, text) in texts.iter().enumerate() {
        writeln!(out, "{{\"text\": \"{text}\", \"labels\": [\"l{}\"]}}", row % 3).unwrap();
    }
    folder.write("t.jsonl", out);
}

#[test]
fn training_says_when_texts_have_no_feature_or_few_terms_are_kept_and_what_keeps_more() {
    let japanese = ["犬が好き", "猫と遊ぶ", "雨が降る", "風が強い"];
    let joined: Vec<String> = (0..40).map(|i| format!("{}{}", japanese[i % 4], i * 7919 % 104_729)).collect();
    let letters: Vec<String> = (0..40).map(|i| format!("{} {}", ['a', 'b', 'c'][i % 3], ['x', 'y'][i % 2])).collect();
    let mut some = letters.clone();
    some.push("word".to_owned());
    some.push("word again".to_owned());
    let tickets = ["printer is on fire", "my screen stays black", "the invoice has wrong sums", "fire in the mailbox"];
    let tickets: Vec<String> = tickets.map(str::to_owned).to_vec();
    let sound: Vec<String> = (0..60).map(|i| format!("word{} word{} common text", i % 12, (i + 1) % 12)).collect();
    for (given, expected) in [
        (&some, Some("40 of 42 texts are without a feature")),
        (&some, Some("--text.min-chars 1")),
        (&tickets, Some("--text.min-df 1 keeps")),
        (&sound, None),
    ] {
        for kind in ["tree", "dense --epochs 1"] {
            let folder = Folder::new();
            texts(&folder, given);
            let done = run(&mut folder.command(&format!("train {kind} --train t.jsonl --model m")));
            assert_eq!(done.code, 0, "{}", done.stderr);
            match expected {
                Some(expected) => assert!(done.stderr.contains(expected), "{kind}: {}", done.stderr),
                None => assert!(!done.stderr.contains("warning"), "{kind}: {}", done.stderr),
            }
            assert!(!folder.ok("inspect m --json").is_empty());
        }
    }
    // Where nothing is left, the error says what took it and what keeps more.
    for (given, cause, option) in [
        (&letters, "has a term of words with at least 2 characters", "--text.min-chars 1 keeps 5"),
        (&joined, "is within the document-frequency bounds", "--text.chars 1-3 keeps"),
    ] {
        let folder = Folder::new();
        texts(&folder, given);
        let done = folder.xc("train tree --train t.jsonl --model m");
        assert_eq!(done.code, 2);
        assert!(done.stderr.contains(cause) && done.stderr.contains(option), "{}", done.stderr);
    }
    // Features, too.
    let folder = Folder::new();
    let rows: String =
        (0..20).map(|i| if i % 4 == 0 { format!("{} 1:1\n", i % 2) } else { format!("{}\n", i % 2) }).collect();
    folder.write("x.txt", format!("20 3 2\n{rows}"));
    let done = run(&mut folder.command("train tree --train x.txt --model m"));
    assert!(done.stderr.contains("15 of 20 instances are without a feature"), "{}", done.stderr);
    let explained = json(&folder.ok("train tree --train x.txt --model n --explain --json"));
    assert_eq!(explained["data"]["instances"], 20);
}
