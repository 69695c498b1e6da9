//! Figures that a training announces and reports are bounded by what there is.

use crate::program::{Folder, run};

const OF_EVERY_NETWORK: &str = "--epochs 1 --network.widths 8";

/// The numbers of a text that count labels.
fn counts_of_labels(text: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_label = |word: &&str| word.trim_end_matches([',', ';', '.', ':']).trim_end_matches('s') == "label";
    let places = words.iter().enumerate().filter(|(_, word)| is_label(word)).map(|(at, _)| at);
    let number = |at: usize| {
        let adjectives = ["uniform", "hard", "such"];
        let before = words[..at].iter().rev().find(|word| !adjectives.contains(word))?;
        before.trim_start_matches('(').parse().ok()
    };
    places.filter_map(number).collect()
}

/// A line of the table of stages: milliseconds and a share, then what the stage does.
fn is_of_stage(line: &str) -> bool {
    let mut words = line.split_whitespace().skip(2);
    let mut is_number = || words.next().is_some_and(|word| word.parse::<f64>().is_ok());
    is_number() && is_number()
}

#[test]
fn no_network_speaks_of_more_labels_than_there_are() {
    for n_labels in [6, 40] {
        let folder = Folder::new();
        folder.ok(&format!(
            "generate --instances 90 --test-instances 5 --features 60 --labels {n_labels} --words 9 --output d"
        ));
        for (kind, options) in [
            ("mach", "--repetitions 2"),
            ("dense", ""),
            ("uniform", "--network.intermediate 16 --head.fan-in 4"),
            ("uniform", "--network.intermediate 16 --head.fan-in 4 --negatives.sampled 3"),
            ("lns", ""),
            ("lns", "--sampler all"),
            ("lns", "--sampler in-batch --negatives.uniform 2"),
            ("lns", "--sampler uniform --negatives.sampled 3"),
            ("lns", "--sampler top-k --negatives.sampled 3 --negatives.uniform 2"),
            ("lns", "--sampler ann --negatives.sampled 3 --negatives.uniform 2"),
            ("lns", "--sampler lsh-embedding --negatives.sampled 3 --negatives.uniform 2 --negatives.shared false"),
            ("astra", ""),
            ("astra", "--negatives.shared false"),
            ("astra", "--sampler random"),
            ("astra", "--sampler in-batch"),
            ("astra", "--sampler all"),
            ("astra", "--retrieval exact"),
            ("astra", "--negatives.hard 2 --negatives.uniform 3"),
        ] {
            let train = format!("train {kind} --train d/train.txt --model m {OF_EVERY_NETWORK} {options}");
            let trained = run(&mut folder.command(&train));
            assert_eq!(trained.code, 0, "{train}: {trained:?}");
            let explained = run(&mut folder.command(&format!("{train} --explain")));
            for said in [&trained.stderr, &explained.stdout, &explained.stderr] {
                // What an option would change is no figure of this training.
                let said: String = said
                    .lines()
                    .filter(|line| !line.starts_with("advice") && !line.starts_with("sizes") && !is_of_stage(line))
                    .collect::<Vec<_>>()
                    .join("\n");
                let counts = counts_of_labels(&said);
                assert!(counts.iter().all(|&n| n <= f64::from(n_labels)), "{n_labels}: {train}: {counts:?} in\n{said}");
            }
            assert!(!counts_of_labels(&trained.stderr).is_empty(), "{train}: {}", trained.stderr);
        }
    }
}

#[test]
fn stages_that_did_not_happen_are_not_reported() {
    let folder = Folder::new();
    folder.ok("generate --instances 90 --test-instances 5 --features 60 --labels 40 --words 9 --output d");
    for (train, absent) in [
        ("train lns --sampler all", &["hash", "search", "check"][..]),
        ("train lns", &["hash", "search", "check"]),
        ("train astra --sampler all", &["retrieve", "refresh", "wait"]),
    ] {
        let trained = run(&mut folder.command(&format!("{train} --train d/train.txt --model m {OF_EVERY_NETWORK}")));
        let of_steps = trained.stderr.lines().filter(|line| line.contains("a step") || line.starts_with("xc: "));
        let words: Vec<&str> = of_steps.flat_map(str::split_whitespace).collect();
        assert!(trained.code == 0 && trained.stderr.contains("a step"), "{trained:?}");
        for stage in absent {
            assert!(!words.contains(stage), "{train}: {stage} in\n{}", trained.stderr);
        }
    }
}
