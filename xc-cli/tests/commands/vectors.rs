//! Vectors as instances: every kind of model that learns from them answers them, as they are.

use crate::program::{Folder, npy};

const ROWS: usize = 240;
const LABELS: usize = 6;

/// A vector points where its label is, `length` far.
fn vectors(rows: usize, length: f32) -> Vec<u8> {
    let value =
        |row: usize, column: usize| if column == row % LABELS { 1.0 } else { 0.01 * ((row * 7 + column) % 5) as f32 };
    npy(rows, 8, |row, column| length * value(row, column))
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("x.npy", vectors(ROWS, 1.0));
    folder.write("few.npy", vectors(12, 1.0));
    folder.write("far.npy", vectors(12, 9.0));
    let labels: String = (0..ROWS).map(|row| format!("{}\n", row % LABELS)).collect();
    folder.write("y.txt", format!("{ROWS} 0 {LABELS}\n{labels}"));
    folder
}

fn best(answers: &str) -> Vec<String> {
    answers.lines().map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_kind_answers_vectors_from_a_file_and_line_by_line() {
    let folder = folder();
    let expected: Vec<String> = (0..12).map(|row| (row % LABELS).to_string()).collect();
    for (kind, more) in [
        ("tree", ""),
        ("mach", "--epochs 40 --buckets 5 --repetitions 8 --network.widths 32"),
        ("dense", "--epochs 40 --network.widths 32"),
        ("uniform", "--epochs 40 --batch 16 --network.intermediate 64 --head.fan-in 16"),
        ("lns", "--epochs 40 --network.widths 32"),
        ("astra", "--epochs 40 --network.widths 32"),
    ] {
        folder.ok(&format!("train {kind} --train x.npy --train-labels y.txt --model {kind} {more}"));
        let answers = folder.ok(&format!("predict --model {kind} --input few.npy --top-k 2"));
        assert_eq!(best(&answers), expected, "{kind}: {answers}");
        let two = folder.ok(&format!("predict --model {kind} --input few.npy --top-k 2 --threads 2"));
        assert_eq!(answers, two, "{kind}");
        let lines: String = (0..12)
            .map(|row| {
                let value = |column| if column == row % LABELS { 1.0 } else { 0.01 * ((row * 7 + column) % 5) as f32 };
                let values: Vec<String> = (0..8).map(|column| value(column).to_string()).collect();
                format!("{{\"vector\": [{}]}}\n", values.join(", "))
            })
            .collect();
        let stream = folder.answered(&format!("predict --model {kind} --input - --top-k 2"), lines);
        assert_eq!((stream.code, best(&stream.stdout)), (0, expected.clone()), "{kind}: {}", stream.stderr);
        folder.ok(&format!("inspect {kind} --verify"));
    }
}

/// Rows of features are scaled to length 1, vectors are not.
#[test]
fn the_length_of_a_vector_counts_unless_an_option_says_otherwise() {
    let folder = folder();
    for (more, same) in [("", false), (" --normalise", true)] {
        folder.ok(&format!("train tree --train x.npy --train-labels y.txt --trees 1 --model m{more}"));
        let of = |name: &str| folder.ok(&format!("predict --model m --input {name}.npy --top-k 1"));
        assert_eq!(of("few") == of("far"), same, "{more}: {} {}", of("few"), of("far"));
        std::fs::remove_dir_all(folder.path("m")).unwrap();
    }
    let plan = folder.ok("train tree --train x.npy --train-labels y.txt --explain --model m");
    assert!(plan.contains("vectors, as they are"), "{plan}");
}
