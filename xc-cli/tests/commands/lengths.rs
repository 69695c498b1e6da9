//! Rows of features: scaled to length 1 in training and prediction, unless that is turned off.

use crate::program::{Folder, Outcome, run};

/// Rows of counts about four labels, every value times `factor`.
fn rows(factor: f32) -> String {
    let row = |i: usize| {
        let (label, common) = (i % 4, 4 + i / 4 % 2);
        format!("{label} {label}:{} {common}:{}\n", 7.0 * factor, 2.0 * factor)
    };
    "40 6 4\n".to_owned() + &(0..40).map(row).collect::<String>()
}

#[test]
fn every_kind_answers_rows_of_any_length_alike_unless_told_otherwise() {
    let folder = Folder::new();
    folder.write("counts.txt", rows(1.0));
    folder.write("large.txt", rows(1000.0));
    folder.write("tiny.txt", rows(1e-25));
    for (kind, options) in [
        ("tree", ""),
        ("mach", "--repetitions 2 --buckets 2 --epochs 2 --validation-fraction 0"),
        ("uniform", "--epochs 2 --validation-fraction 0"),
        ("lns", "--epochs 2 --validation-fraction 0"),
        ("astra", "--epochs 2 --validation-fraction 0"),
        ("dense", "--epochs 2 --validation-fraction 0"),
    ] {
        let spoken = |arguments: &str| -> Outcome { run(&mut folder.command(arguments)) };
        let train = format!("train {kind} --train counts.txt {options}");
        let said = spoken(&format!("{train} --model {kind}"));
        assert_eq!(said.code, 0, "{kind}: {said:?}");
        let note = "xc: counts.txt: features are whole numbers; word counts do better with --tfidf\n";
        assert!(said.stderr.contains(note), "{kind}: {said:?}");
        let answers = |model: &str, rows: &str| folder.ok(&format!("predict --model {model} --input {rows} --top-k 2"));
        let counts = answers(kind, "counts.txt");
        assert_eq!(counts.lines().count(), 40, "{kind}");
        // Powers of ten round values, and so may the last digit of a score.
        let labels = |answers: &str| -> Vec<String> {
            answers.lines().map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
        };
        for other in ["large.txt", "tiny.txt"] {
            assert_eq!(labels(&answers(kind, other)), labels(&counts), "{kind}, {other}");
        }
        let said = spoken(&format!("{train} --normalise false --model {kind}.raw"));
        assert!(said.code == 0 && !said.stderr.contains("--tfidf\n"), "{kind}: {said:?}");
        assert_ne!(answers(&format!("{kind}.raw"), "counts.txt"), counts, "{kind}");
        let said = spoken(&format!("{train} --tfidf --model {kind}.tfidf"));
        assert!(said.code == 0 && !said.stderr.contains("whole numbers"), "{kind}: {said:?}");
        assert_ne!(answers(&format!("{kind}.tfidf"), "counts.txt"), counts, "{kind}");
    }
}

#[test]
fn explain_says_how_rows_are_scaled() {
    let folder = Folder::new();
    folder.write("counts.txt", rows(1.0));
    for (options, expected) in [
        ("", "as they are, rows scaled to length 1; kept in the model"),
        ("--normalise", "as they are, rows scaled to length 1; kept in the model"),
        ("--normalise false", "as they are, since --normalise false is given"),
        ("--tfidf", "weighted by tf-idf, since --tfidf is given, rows scaled to length 1; kept in the model"),
        ("--tfidf --normalise false", "weighted by tf-idf, since --tfidf is given; kept in the model"),
    ] {
        let said = folder.ok(&format!("train tree --train counts.txt --model m --explain {options}"));
        assert!(said.contains(expected), "{options}: {said}");
    }
}
