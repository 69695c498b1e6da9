//! Word vectors, from outside.

use crate::program::{Folder, contents, json, run};
use std::io::Write;
use std::process::Stdio;

const TOPICS: usize = 5;
const WORDS: usize = 8;

/// Lines of seven words of one topic each: `t3w5` is a word of topic 3.
fn text() -> String {
    let mut state = 1u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    (0..900)
        .map(|_| {
            let topic = below(TOPICS);
            let line: Vec<String> = (0..7).map(|_| format!("T{topic}w{}", below(WORDS))).collect();
            line.join(" ") + ".\n"
        })
        .collect()
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("text.txt", text());
    folder
}

const QUICK: &str = "--network.widths 16 --epochs 4 --optimizer.rate 0.02 --batch-size 64";

#[test]
fn words_of_a_topic_are_nearest_to_each_other_whatever_the_sampler() {
    let folder = folder();
    let words: String = (0..TOPICS).map(|topic| format!("t{topic}w0\n")).collect();
    folder.write("words.txt", &words);
    for more in [
        "",
        "--sampler uniform --negatives.sampled 12 --loss bce",
        "--negatives.sampled 4 --negatives.uniform 8 --tables 4 --codes 2",
    ] {
        let report =
            json(&folder.ok(&format!(
                "train skipgram --train text.txt --model m {QUICK} --validation-fraction 0.1 --json {more}"
            )));
        assert!(report["cost"]["ms"]["score"].as_f64().unwrap() > 0.0, "{more}: {report}");
        // 9 bytes a word: its number, where its line begins, its place in the order.
        assert_eq!(report["memory"]["data_bytes"], 9 * 900 * 7, "{more}");
        let log = folder.read("m.log/log.jsonl");
        assert!(log.contains("\"P@1\""), "{more}: {log}");
        let answers = folder.ok("predict --model m --input words.txt --names --top-k 7");
        for (topic, line) in answers.lines().enumerate() {
            let near: Vec<&str> = line.split('\t').map(|entry| entry.split(':').next().unwrap()).collect();
            let own = near.iter().filter(|word| word.starts_with(&format!("t{topic}w"))).count();
            assert!(near.len() == 7 && own >= 6 && !near.contains(&&*format!("t{topic}w0")), "{more}: {topic}: {line}");
        }
        assert_eq!(answers.lines().count(), TOPICS);
    }
}

#[test]
fn the_model_and_the_text_form_hold_the_same_words_and_vectors() {
    let folder = folder();
    folder.ok(&format!("train skipgram --train text.txt --model m {QUICK} --vocabulary 30"));
    let (names, text) = (folder.read("m/labels.txt"), folder.read("m.vectors.txt"));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("30 16"));
    let rows: Vec<(&str, Vec<f32>)> = lines
        .map(|line| {
            let (word, values) = line.split_once(' ').unwrap();
            (word, values.split(' ').map(|v| v.parse().unwrap()).collect())
        })
        .collect();
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), names.lines().collect::<Vec<_>>());
    // What predict answers are cosines of these vectors.
    let answer = json(&folder.ok_with_input("predict --model m --input - --output-format jsonl", rows[3].0));
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    for (label, score) in answer["labels"].as_array().unwrap().iter().zip(answer["scores"].as_array().unwrap()) {
        let (a, b) = (&rows[3].1, &rows[label.as_u64().unwrap() as usize].1);
        let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
        assert!((cosine - score.as_f64().unwrap()).abs() < 1e-4, "{label}: {score}, expected {cosine}");
    }
    let about = json(&folder.ok("inspect m --verify --json"));
    assert_eq!((&about["kind"], &about["label_names"]), (&"skipgram".into(), &30.into()));
    assert_eq!(about["parameters"]["skipgram"]["window"], 2);
    assert_eq!(about["parts"][0]["numbers"], 30 * 16);
    assert!(folder.ok("inspect m").contains("vectors"));
    folder.ok(&format!("train skipgram --train text.txt --model other {QUICK} --vectors mine.txt"));
    assert!(folder.path("mine.txt").exists() && !folder.path("other.vectors.txt").exists());
}

#[test]
fn words_that_are_not_known_have_empty_answers_and_are_counted() {
    let folder = folder();
    folder.ok(&format!("train skipgram --train text.txt --model m {QUICK}"));
    folder.write("words.txt", "\nT1W1\nnobody\nt1w1 nobody t1w2\n");
    for more in ["", "--output-format jsonl --names"] {
        let outcome = run(&mut folder.command(&format!("predict --model m --input words.txt --top-k 3 {more}")));
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        let empty = if more.is_empty() { "" } else { "{\"known_terms\":0,\"labels\":[],\"names\":[],\"scores\":[]}" };
        assert_eq!((outcome.code, lines.len(), lines[0], lines[2]), (0, 4, empty, empty), "{outcome:?}");
        assert!(lines[1] != empty && lines[3] != empty, "{outcome:?}");
        let warning = "words.txt: texts without a word that the model knows: 2; their answers are empty\n";
        assert!(outcome.stderr.contains(warning), "{outcome:?}");
    }
}

#[test]
fn vectors_are_the_same_at_any_number_of_threads_and_after_kills() {
    let folder = folder();
    let more = "--subsample 0.02 --negatives.sampled 4 --negatives.uniform 8 --tables 4 --codes 2 --validation-fraction 0.1 --seed 3";
    let train = |model: &str| format!("train skipgram --train text.txt --model {model} {QUICK} {more}");
    for threads in [1, 2, 3] {
        folder.ok(&format!("{} --threads {threads}", train(&format!("m{threads}"))));
    }
    let one = contents(&folder.path("m1"));
    assert!(one == contents(&folder.path("m2")) && one == contents(&folder.path("m3")));
    assert!(folder.read("m1.vectors.txt") == folder.read("m3.vectors.txt"));
    folder.resumed_after_kills(&format!("{} --checkpoint-every 7", train("m4")), 6, |attempt| 40 + 35 * attempt);
    assert!(one == contents(&folder.path("m4")) && folder.read("m1.vectors.txt") == folder.read("m4.vectors.txt"));
    folder.ok(&format!("{} --seed 4", train("m5").replace("--seed 3", "")));
    assert!(one != contents(&folder.path("m5")));
}

#[test]
fn texts_and_options_that_are_impossible_are_refused_in_one_line() {
    let folder = folder();
    folder.write("empty.txt", "");
    folder.write("blank.txt", "\n ,\n\n");
    folder.write("one.txt", "alone ".repeat(9));
    folder.write("lonely.txt", "one\ntwo\n".repeat(9));
    folder.write("broken.txt", b"good words here\nbad \xff\xfe here\n");
    let refused = |text: &str, more: &str, why: &str| {
        folder.xc(&format!("train skipgram --train {text} --model m {QUICK} {more}")).refused(2, why);
    };
    let none = "no word; at least two different ones are expected";
    refused("empty.txt", "", &format!("empty.txt: {none}"));
    refused("blank.txt", "", &format!("blank.txt: {none}"));
    let few = "different words occur 5 times or more; at least two are expected (--min-count, --vocabulary)";
    refused("one.txt", "", &format!("one.txt: 1 of 1 {few}"));
    let beside = "no line has two of the words that are kept; no word has a neighbour";
    refused("lonely.txt", "", &format!("lonely.txt: {beside}"));
    refused(".", "", ".: a file of text is expected, which can be read twice");
    let broken = folder.xc(&format!("train skipgram --train broken.txt --model m {QUICK}"));
    let why = "xc: error: broken.txt: line 2, column 5: bytes that are not UTF-8";
    assert!(broken.code == 2 && broken.stderr.starts_with(why) && broken.stderr.lines().count() == 1, "{broken:?}");
    refused("text.txt", "--window 0", "--window 0: at least 1 is expected");
    refused("text.txt", "--vocabulary 1", "--vocabulary 1: at least 2 is expected");
    refused("text.txt", "--subsample -1", "--subsample -1: a share from 0 on is expected");
    refused(
        "text.txt",
        "--sampler uniform --negatives.sampled 40",
        "--negatives.sampled: 40 of 40 labels; fewer are expected, or --sampler all",
    );
    refused("text.txt", "--network.init lsa", "--network.init: vectors of words begin at random");
    let widths = folder.xc("train skipgram --train text.txt --model m --network.widths 16,8");
    widths.refused(2, "--network.widths: one width is expected, that of the vectors");
    refused("text.txt", "--vectors .", ".: a folder; a file is expected there");
    let outcome = folder.xc(&format!("train skipgram --train text.txt --model m {QUICK} --max-memory 10KB"));
    assert!(outcome.code == 3 && outcome.stderr.contains("more than --max-memory"), "{outcome:?}");
    assert!(!folder.path("m").exists());
}

impl Folder {
    /// As `ok`, with a line on stdin.
    #[track_caller]
    fn ok_with_input(&self, arguments: &str, line: &str) -> String {
        let mut child = self.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}
