//! Lines of stdin as requests: one line out for each line in, whatever it holds.

use crate::program::{Folder, json};
use serde_json::Value;
use std::io::Write;

/// Texts of two labels, read from two fields.
fn text_model(folder: &Folder) {
    let rows = "{\"title\":\"dog\",\"body\":\"barks loud\",\"labels\":[\"bark\"]}\n\
                {\"title\":\"cat\",\"body\":\"purrs low\",\"labels\":[\"purr\"]}\n";
    folder.write("train.jsonl", rows.repeat(5));
    folder.ok("train tree --train train.jsonl --text-fields title,body --model m");
}

const TEXT: &str = "predict --model m --input - --text-fields title,body --top-k 1";

/// Rows of three features and labels, as XC text and as vectors.
fn row_models(folder: &Folder) {
    let mut rows = String::from("30 3 3\n");
    let mut vectors = Vec::new();
    for i in 0..30 {
        let label = i % 3;
        rows.push_str(&format!("{label} {label}:1\n"));
        vectors.extend((0..3).map(|at| if at == label { 1f32 } else { 0.0 }));
    }
    folder.write("rows.txt", &rows);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (30, 3), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    let padded = format!("{header:<117}\n");
    npy.extend((padded.len() as u16).to_le_bytes());
    npy.extend(padded.bytes());
    vectors.iter().for_each(|value| npy.extend(value.to_le_bytes()));
    folder.write("rows.npy", &npy);
}

#[test]
fn every_line_has_one_answer_and_stderr_says_what_is_wrong() {
    let folder = Folder::new();
    text_model(&folder);
    let mut input =
        b"\xef\xbb\xbfdog barks\n\n{\"text\":\n\xff\xfe\n{\"title\":\"cat\"}\n{\"title\":5}\r\nzzz\n".to_vec();
    input.extend(vec![b'a'; (1 << 26) + 1]);
    input.extend(b"\n{\"text\":\"cat\",\"title\":null}");
    let outcome = folder.answered(TEXT, &input);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let starts: Vec<&str> = outcome.stdout.lines().map(|line| line.get(..2).unwrap_or("")).collect();
    assert_eq!(starts, ["0:", "", "", "", "1:", "", "", "", "1:"], "{}", outcome.stdout);
    let said: Vec<&str> = outcome.stderr.lines().collect();
    for (line, expected) in said.iter().zip([
        "xc: warning: standard input: line 2: a blank line",
        "xc: warning: standard input: line 3, column 8: incomplete JSON: ",
        "xc: warning: standard input: line 4, column 1: bytes that are not UTF-8",
        "xc: warning: standard input: line 6, column 10: title: invalid type: integer `5`",
        "xc: warning: standard input: line 8: the line is longer than 64 MiB",
        "xc: warning: standard input: 5 of 9 lines have no answer",
        "xc: warning: standard input: texts without a word that the model knows: 1; their answers are empty",
    ]) {
        assert!(line.starts_with(expected), "{line}\nfor {expected}");
    }
    assert_eq!(said.len(), 7, "{}", outcome.stderr);

    // The others: nothing for such lines, or the end.
    let skipped = folder.answered(&format!("{TEXT} --on-error skip --quiet"), &input);
    assert_eq!((skipped.code, skipped.stdout.lines().count(), &*skipped.stderr), (0, 4, ""));
    let stopped = folder.answered(&format!("{TEXT} --on-error stop --quiet"), &input);
    assert_eq!((stopped.code, &*stopped.stderr), (2, "xc: error: standard input: line 2: a blank line\n"));
    assert!(stopped.stdout.starts_with("0:") && stopped.stdout.lines().count() == 1, "{}", stopped.stdout);
}

#[test]
fn json_answers_carry_the_id_and_the_error() {
    let folder = Folder::new();
    text_model(&folder);
    let requests = [
        r#"{"id": 17, "title": "dog", "top_k": 2, "min_score": 0}"#,
        r#"{"id": "a", "text": "dog", "candidates": ["purr"]}"#,
        r#"{"id": [1,2], "text": "dog", "exclude": [0]}"#,
        r#"{"id": 9, "text": "dog", "candidates": [2]}"#,
        r#"{"id": 10, "text": "dog", "exclude": ["meow"]}"#,
        r#"{"id": 11, "text": "dog", "topK": 1}"#,
        r#"{"id": 12, "other": 1}"#,
        r#"{"id": 13, "text": "zzz"}"#,
        "purrs",
        r#"{"id": 14, "text": "x"#,
    ];
    let outcome = folder.answered(&format!("{TEXT} --output-format jsonl --quiet"), requests.join("\n"));
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    let answers: Vec<Value> = outcome.stdout.lines().map(json).collect();
    assert_eq!(answers.len(), requests.len(), "{}", outcome.stdout);
    let labels = |at: usize| &answers[at]["labels"];
    assert_eq!((&answers[0]["id"], labels(0)[0].as_u64()), (&17.into(), Some(0)));
    assert_eq!((&answers[1]["id"], labels(1)), (&"a".into(), &json("[1]")));
    assert_eq!((&answers[2]["id"], labels(2)), (&json("[1,2]"), &json("[1]")));
    for (at, id, error) in [
        (5, 11, "unknown field \"topK\"; \"top_k\" is meant?"),
        (6, 12, "the object has none of the fields \"title\", \"body\", \"text\""),
        (9, 14, "incomplete JSON"),
    ] {
        assert_eq!(answers[at]["id"], id);
        assert!(answers[at]["error"].as_str().unwrap().contains(error), "{}", answers[at]);
    }
    // Labels that the model lacks are left out, also when nothing is left.
    let warnings = |at: usize| answers[at]["warnings"][0].as_str().unwrap();
    assert_eq!(warnings(3), "candidates: label 2 is not in the model, which has 2 labels; it is left out");
    assert_eq!(labels(3), &json("[]"));
    assert_eq!(warnings(4), "exclude: label name \"meow\" is not among the 2 names of m/labels.txt; it is left out");
    assert!(!labels(4).as_array().unwrap().is_empty());
    assert!(answers[0].get("warnings").is_none());
    assert_eq!(answers[7], json(r#"{"id":13,"known_terms":0,"labels":[],"names":[],"scores":[]}"#));
    assert_eq!((answers[8].get("id"), labels(8)), (None, &json("[1]")));
    // Lists of answers to lines, with empty ones for errors.
    folder.write("answers.jsonl", &outcome.stdout);
    folder.write("truth.jsonl", "{\"text\":\"\",\"labels\":[0]}\n".repeat(10));
    folder.ok("evaluate --truth truth.jsonl --predictions answers.jsonl --k 1");
}

#[test]
fn rows_and_vectors_answer_every_kind_of_model_of_features() {
    let folder = Folder::new();
    row_models(&folder);
    folder.ok("train tree --train rows.txt --model tree");
    folder.ok("train dense --train rows.txt --epochs 2 --model dense");
    folder.ok("train uniform --train rows.npy --train-labels rows.txt --epochs 2 --model vectors");
    folder.ok("train tree --train rows.npy --train-labels rows.txt --model tree-of-vectors");
    for model in ["tree", "dense", "vectors", "tree-of-vectors"] {
        let input = "30 3 3\n1:1\n{\"features\":{\"1\":1}}\n{\"vector\":[0,1,0]}\n{\"vector\":[1]}\n7:1\n{\"vector\":[0,1,1e40]}\n";
        let outcome = folder.answered(&format!("predict --model {model} --input - --top-k 3 --unseen refuse"), input);
        assert_eq!(outcome.code, 0, "{model}: {}", outcome.stderr);
        let answers: Vec<&str> = outcome.stdout.lines().collect();
        assert_eq!(answers.len(), 6, "{model}: {}", outcome.stdout);
        assert!(
            answers[0].contains(':') && answers[1] == answers[0] && answers[2] == answers[0],
            "{model}: {answers:?}"
        );
        assert_eq!(answers[3..], ["", "", ""], "{model}");
        for expected in
            ["line 5: the query has 1 values; the model takes 3", "line 6, column 1: feature 7 is out of range"]
        {
            assert!(outcome.stderr.contains(expected), "{model}: {}", outcome.stderr);
        }
    }
    // A stated width that is another one is no header of this model.
    for (header, options) in [("30 2 3", ""), ("30 4 3", "--unseen refuse")] {
        let outcome = folder.answered(&format!("predict --model tree --input - {options}"), format!("{header}\n1:1\n"));
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    }
}

#[test]
fn many_lines_are_answered_in_order_as_from_a_file_at_any_number_of_threads() {
    let folder = Folder::new();
    folder.ok("generate --instances 3000 --labels 60 --features 800 --words 12 --no-names --output d");
    folder.ok("train tree --train d/train.jsonl --model text");
    folder.ok("train tree --train d/train.txt --model rows");
    folder.ok("train dense --train d/train.txt --epochs 1 --model dense");
    for (model, file) in [("text", "train.jsonl"), ("rows", "train.txt"), ("dense", "train.txt")] {
        let expected = folder.ok(&format!("predict --model {model} --input d/{file} --top-k 3"));
        let input = folder.read(&format!("d/{file}"));
        for threads in [1, 2, 3] {
            let stream = format!("predict --model {model} --input - --top-k 3 --quiet --threads {threads}");
            let answers = folder.answered(&stream, &input).quiet_success();
            assert!(answers == expected, "{model} on {threads} threads");
        }
        // A bad line between them changes no other answer.
        let bad: String = input.lines().flat_map(|line| [line, "\n", "{\n"]).collect();
        let header = usize::from(file == "train.txt");
        let answers =
            folder.answered(&format!("predict --model {model} --input - --top-k 3 --quiet"), bad).quiet_success();
        let others: String = answers.lines().skip(header).step_by(2).flat_map(|line| [line, "\n"]).collect();
        assert!(others == expected, "{model} with bad lines");
    }
}

#[test]
fn excluded_labels_of_a_file_leave_their_places_to_others() {
    let folder = Folder::new();
    folder.ok("generate --instances 600 --labels 40 --features 500 --words 12 --no-text --no-names --output d");
    folder.ok("train tree --train d/train.txt --model tree");
    folder.ok("train dense --train d/train.txt --epochs 1 --model dense");
    let labels = |line: &str| -> Vec<String> {
        line.split_whitespace().map(|pair| pair.split_once(':').unwrap().0.to_owned()).collect()
    };
    for model in ["tree", "dense"] {
        let full = folder.ok(&format!("predict --model {model} --input d/test.txt --top-k 40 --output -"));
        // Of each row the best and third best, of every fourth none.
        let seen: String = full
            .lines()
            .enumerate()
            .map(|(at, line)| match labels(line) {
                labels if at % 4 > 0 && labels.len() > 2 => format!("{},{}\n", labels[0], labels[2]),
                _ => "\n".to_owned(),
            })
            .collect();
        folder.write("seen.txt", &seen);
        let exclude = "--exclude seen.txt --top-k 4";
        let from_file = folder.ok(&format!("predict --model {model} --input d/test.txt {exclude}"));
        let stream = format!("predict --model {model} --input - {exclude} --quiet");
        assert_eq!(folder.answered(&stream, folder.read("d/test.txt")).quiet_success(), from_file, "{model}");
        for ((full, seen), got) in full.lines().zip(seen.lines()).zip(from_file.lines()) {
            let seen: Vec<&str> = seen.split(',').collect();
            let kept = labels(full).into_iter().filter(|label| !seen.contains(&&**label));
            assert_eq!(labels(got), kept.take(4).collect::<Vec<_>>(), "{model}");
        }
    }
    // A file of another number of rows is refused before anything is answered.
    folder.write("few.txt", "1\n2\n");
    for option in ["exclude", "candidates"] {
        let outcome = folder.xc(&format!("predict --model tree --input d/test.txt --{option} few.txt"));
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{}", outcome.stderr);
        assert!(outcome.stderr.starts_with("xc: error: few.txt: 2 rows of "), "{}", outcome.stderr);
    }
}

#[test]
fn answers_do_not_take_the_place_of_files_of_the_model() {
    let folder = Folder::new();
    row_models(&folder);
    folder.ok("train tree --train rows.txt --model m");
    let before = crate::program::contents(&folder.path("m"));
    for output in ["m/model.safetensors", "m/answers.txt", "./m/../m/config.json"] {
        let expected = format!("--output {output}: inside the folder of the model, which answers must not change");
        folder.xc(&format!("predict --model m --input rows.txt --output {output}")).refused(2, &expected);
    }
    assert!(crate::program::contents(&folder.path("m")) == before);
    folder.ok("predict --model m --input rows.txt --output answers.txt");
}

#[test]
fn a_post_processor_is_chosen_where_scores_are_made_of_margins() {
    let folder = Folder::new();
    row_models(&folder);
    folder.ok("train tree --train rows.txt --trees 1 --model tree");
    folder.ok("train tree --train rows.txt --trees 2 --model trees");
    folder.ok("train dense --train rows.txt --epochs 3 --model dense");
    folder.ok("train mach --train rows.txt --buckets 2 --repetitions 2 --epochs 1 --model mach");
    let scores = |model: &str, name: &str| -> Vec<f32> {
        let options = format!("predict --model {model} --input - --top-k 3 --quiet --post-processor {name}");
        let line = folder.answered(&options, "1:1\n").quiet_success();
        line.split_whitespace().map(|pair| pair.split_once(':').unwrap().1.parse().unwrap()).collect()
    };
    let near = |a: f32, b: f32| (a - b).abs() < 1e-5;
    // One level: a score is that of the margin alone.
    let margins = scores("tree", "noop");
    for (&z, sigmoid) in margins.iter().zip(scores("tree", "sigmoid")) {
        assert!(near(1.0 / (1.0 + (-z).exp()), sigmoid), "{z} {sigmoid}");
    }
    for (&z, hinge) in margins.iter().zip(scores("tree", "log-l3-hinge")) {
        assert!(near(-(1.0 - z).max(0.0).powi(3), hinge), "{z} {hinge}");
    }
    let logits = scores("dense", "noop");
    let sum: f32 = logits.iter().map(|z| z.exp()).sum();
    for ((&z, softmax), sigmoid) in logits.iter().zip(scores("dense", "softmax")).zip(scores("dense", "sigmoid")) {
        assert!(near(z.exp() / sum, softmax) && near(1.0 / (1.0 + (-z).exp()), sigmoid), "{z} {softmax} {sigmoid}");
    }
    assert!(scores("trees", "sigmoid").len() == 3);
    for (model, name, expected) in [
        (
            "trees",
            "noop",
            "post-processor noop gives negative scores, of which 2 trees have no mean; expected sigmoid or lP-hinge",
        ),
        (
            "tree",
            "softmax",
            "unknown post-processor \"softmax\"; expected sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge with P from 1 to 9",
        ),
        (
            "dense",
            "l3-hinge",
            "a network has no post-processor \"l3-hinge\"; expected one of softmax, sigmoid, l2-hinge and noop",
        ),
        (
            "mach",
            "sigmoid",
            "mach: the scores of a model of kind \"mach\" are not made of margins: there is no post-processor to choose",
        ),
    ] {
        folder.xc(&format!("predict --model {model} --input rows.txt --post-processor {name}")).refused(2, expected);
    }
}

#[test]
fn values_whose_scores_are_not_finite_are_an_error_that_names_the_row() {
    let folder = Folder::new();
    let row = |label: usize, value: &str, step: usize| -> String {
        let pairs = (label..300).step_by(step).map(|feature| format!(" {feature}:{value}"));
        format!("{label}{}\n", pairs.collect::<String>())
    };
    folder.write("rows.txt", format!("30 300 3\n{}", (0..30).map(|i| row(i % 3, "1", 3)).collect::<String>()));
    let rows = format!("2 300 3\n{}{}", row(1, "1", 3), row(0, "3e38", 1));
    folder.write("large.txt", &rows);
    for kind in ["dense", "uniform", "lns", "astra", "mach --buckets 2 --repetitions 2"] {
        folder.ok(&format!("train {kind} --train rows.txt --epochs 3 --normalise false --model m"));
        let outcome = folder.xc("predict --model m --input large.txt --output answers.txt");
        outcome.refused(2, "large.txt: instance 1: its values are too large: scores are not finite");
        let outcome = folder.answered("predict --model m --input - --output-format jsonl --quiet", &rows);
        let answers: Vec<Value> = outcome.stdout.lines().map(json).collect();
        assert!(outcome.code == 0 && answers.len() == 2 && answers[0]["scores"][0].is_number(), "{kind}: {answers:?}");
        assert_eq!(answers[1], json(r#"{"error":"its values are too large: scores are not finite"}"#), "{kind}");
    }
}

#[test]
fn ctrl_c_ends_a_stream_whose_lines_keep_coming_and_leaves_no_file() {
    let folder = Folder::new();
    text_model(&folder);
    let before = folder.names();
    let mut stream = folder.stream(&format!("{TEXT} --output answers.txt"));
    let mut stdin = stream.stdin.take().unwrap();
    // Ends when the program no longer reads.
    let send = std::thread::spawn(move || while stdin.write_all(b"dog barks\ncat purrs\n").is_ok() {});
    crate::program::wait_until(|| folder.names().len() > before.len());
    stream.signal("INT");
    let sent = std::time::Instant::now();
    assert_eq!(stream.ended(), (130, "xc: error: interrupted\n".to_owned()));
    assert!(sent.elapsed().as_secs() < 4, "it was ended, and did not end");
    send.join().unwrap();
    assert_eq!(folder.names(), before);
}
