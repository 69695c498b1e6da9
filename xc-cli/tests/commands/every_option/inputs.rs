//! Files and models that the scenarios use, in the folder `in`.

use crate::program::{Folder, npy};
use std::fmt::Write;

/// Instances to learn from, and to ask.
pub(crate) const TRAIN: usize = 60;
const TEST: usize = 20;
const FEATURES: usize = 40;
pub(crate) const LABELS: usize = 13;

/// The last label has no instance.
const SEEN: usize = LABELS - 1;

/// Numbers that look drawn, the same in every run.
fn mixed(a: usize, b: usize) -> usize {
    let mut x = (a as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (b as u64 + 7).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 33) as usize
}

/// One to three labels of an instance, ascending.
fn labels(row: usize) -> Vec<usize> {
    let mut labels = vec![row % SEEN];
    labels.extend((0..row % 3).map(|at| mixed(row, at) % SEEN));
    labels.sort_unstable();
    labels.dedup();
    labels
}

fn joined(row: usize) -> String {
    labels(row).iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// Features of an instance: some that belong to its first label, and others.
fn features(row: usize) -> Vec<(usize, f32)> {
    let own = 3 * (row % SEEN);
    let mut all: Vec<usize> =
        (0..3).map(|at| own + at).chain((0..6).map(|at| mixed(row, 50 + at) % FEATURES)).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|feature| (feature, 0.5 + (mixed(row, feature) % 100) as f32 / 40.0)).collect()
}

fn rows(range: std::ops::Range<usize>) -> String {
    let mut out = format!("{} {FEATURES} {LABELS}\n", range.len());
    for row in range {
        out += &joined(row);
        features(row).iter().for_each(|(feature, value)| write!(out, " {feature}:{value}").unwrap());
        out.push('\n');
    }
    out
}

/// Instances of 60 labels without any order in their features.
fn many() -> String {
    let mut out = format!("180 {FEATURES} 60\n");
    for row in 0..180 {
        write!(out, "{}", row % 60).unwrap();
        let features: std::collections::BTreeSet<usize> = (0..5).map(|at| mixed(row, at + 900) % FEATURES).collect();
        features.iter().for_each(|feature| write!(out, " {feature}:{}", 1 + feature % 3).unwrap());
        out.push('\n');
    }
    out
}

fn svmlight(range: std::ops::Range<usize>) -> String {
    let mut out = String::new();
    for row in range {
        let labels = labels(row).iter().map(|label| (label + 1).to_string()).collect::<Vec<_>>().join(",");
        out += &labels;
        features(row).iter().for_each(|(feature, value)| write!(out, " {}:{value}", feature + 1).unwrap());
        out.push('\n');
    }
    out
}

/// A word, some with a capital, some with an accent, some of one letter.
fn word(number: usize) -> String {
    let stem = ["caf\u{e9}", "Berg", "luna", "x", "table", "Ost", "rio", "stone"][number % 8];
    format!("{stem}{}", ["", "a", "ing", "er", "BIG"][number / 8 % 5])
}

fn text(row: usize) -> String {
    let words: Vec<String> = features(row).iter().map(|(feature, _)| word(*feature)).collect();
    words.join(if row.is_multiple_of(4) { "-" } else { " " })
}

fn name(label: usize) -> String {
    format!("{}-{label}", ["ape", "bee", "cat", "dog"][label % 4])
}

fn named(row: usize) -> String {
    labels(row).iter().map(|&label| name(label)).collect::<Vec<_>>().join(";")
}

fn jsonl(range: std::ops::Range<usize>) -> String {
    let mut out = String::new();
    for row in range {
        let list = labels(row).iter().map(|&label| format!("{:?}", name(label))).collect::<Vec<_>>().join(",");
        let other = format!("{:?}", name(mixed(row, 3) % SEEN));
        let (text, title) = (text(row), text(mixed(row, 5) % TRAIN));
        writeln!(
            out,
            "{{\"text\": \"{text}\", \"title\": \"{title}\", \"labels\": [{list}], \"other\": [{other}], \"id\": {row}, \
             \"key\": \"k{row}\"}}"
        )
        .unwrap();
    }
    out
}

fn csv(range: std::ops::Range<usize>) -> String {
    let mut out = "text,title,labels,other,id,key\n".to_owned();
    for row in range {
        let other = name(mixed(row, 3) % SEEN);
        writeln!(out, "{},{},{},{other},{row},k{row}", text(row), text(row + 1), named(row)).unwrap();
    }
    out
}

fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(|at| line(at) + "\n").collect()
}

/// Writes files and trains models.
pub(crate) fn make() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("in")).unwrap();
    let write = |name: &str, bytes: &[u8]| drop(folder.write(&format!("in/{name}"), bytes));
    let all = TRAIN + TEST;
    write("train.txt", rows(0..TRAIN).as_bytes());
    write("test.txt", rows(TRAIN..all).as_bytes());
    write("many.txt", many().as_bytes());
    write("train.svm", svmlight(0..TRAIN).as_bytes());
    write("test.svm", svmlight(TRAIN..all).as_bytes());
    write("train.jsonl", jsonl(0..TRAIN).as_bytes());
    write("test.jsonl", jsonl(TRAIN..all).as_bytes());
    write("train.csv", csv(0..TRAIN).as_bytes());
    write("test.csv", csv(TRAIN..all).as_bytes());
    let vector = |first: usize| {
        move |row: usize, column: usize| {
            let row = first + row;
            let near = if row % SEEN == column { 2.0 } else { 0.0 };
            near + (mixed(row, column) % 200) as f32 / 100.0 - 1.0
        }
    };
    write("train.npy", &npy(TRAIN, 8, vector(0)));
    write("test.npy", &npy(TEST, 8, vector(TRAIN)));
    write("large.npy", &npy(3000, 8, |row, column| (mixed(row, column) % 2000) as f32 / 1000.0 - 1.0));
    write(
        "large-moved.npy",
        &npy(3000, 8, |row, column| {
            (mixed(row, column) % 2000) as f32 / 1000.0 - 1.0 + (mixed(row, column + 9) % 100) as f32 / 250.0
        }),
    );
    write("moved.npy", &npy(TRAIN, 8, move |row, column| vector(0)(row, column) * 1.01));
    let without_labels = |row: usize| format!(" {}:1 {}:2", row % FEATURES, (row + 7) % FEATURES);
    write("rows.txt", format!("{TEST} {FEATURES} {LABELS}\n{}", lines(TEST, without_labels)).as_bytes());
    write("names.txt", lines(LABELS, |at| format!("{}\tword{at}", name(at))).as_bytes());
    write("other-names.txt", lines(LABELS, |at| format!("other{at}\tword{at}")).as_bytes());
    write("more-names.txt", lines(LABELS + 7, |at| format!("more{at}\tword{at}")).as_bytes());
    let labels_of = |range: std::ops::Range<usize>| range.map(|row| joined(row) + "\n").collect::<String>();
    write("lists.txt", labels_of(TRAIN..all).as_bytes());
    write("others.txt", rows(TRAIN + 1..all + 1).as_bytes());
    write("train-others.txt", rows(1..TRAIN + 1).as_bytes());
    write("some.txt", b"1\n3\n4\n");
    write("more-some.txt", b"1\n3\n4000\n");
    write("pairs.txt", lines(LABELS, |at| format!("0 {at}")).as_bytes());
    write("weights.txt", lines(TRAIN, |at| (0.5 + (at % 5) as f32).to_string()).as_bytes());
    write("test-weights.txt", lines(TEST, |at| (0.5 + (at % 5) as f32).to_string()).as_bytes());
    write("costs.txt", lines(LABELS, |at| (0.2 + (at % 4) as f32).to_string()).as_bytes());
    let of_labels = rows(100..100 + LABELS);
    write("label-rows.txt", of_labels.as_bytes());
    write("label-texts.jsonl", lines(SEEN, |at| format!("{{\"text\": \"{}\"}}", text(at + 200))).as_bytes());
    write("words.txt", lines(TRAIN, |at| text(at).replace('-', " ")).as_bytes());
    write("empty.toml", b"");
    write("requests.txt", b"0:1 3:2\nnonsense\n4:1\n{\"features\": {\"0\": 1}, \"key\": \"k\", \"id\": 5}\n");
    folder.ok("convert --from xc-text in/train.txt --to npz in/train.npz --output-labels in/train-y.npz");
    folder.ok("convert --from xc-text in/test.txt --to npz in/test.npz --output-labels in/test-y.npz");
    folder.ok(
        "train dense --train in/train.txt --validation in/test.txt --epochs 3 --network.widths 8 --model in/logged",
    );
    std::fs::copy(folder.path("in/logged.log/log.jsonl"), folder.path("in/log.jsonl")).unwrap();
    for train in [
        "tree --train in/train.txt --trees 2 --validation-fraction 0.3 --cluster.max-leaf 3 --tree.branching 2 --model in/tree",
        "tree --train in/train.txt --trees 1 --validation-fraction 0.3 --model in/tree2",
        "tree --train in/train.txt --cluster.max-leaf 3 --tree.branching 2 --trees 1 --model in/whole",
        "tree --train in/train.txt --cluster.max-leaf 3 --tree.branching 2 --trees 1 --preset xr-linear --model in/whole2",
        "tree --train in/train.txt --cluster.max-leaf 3 --tree.branching 2 --trees 1 --label-names in/names.txt --model in/named",
        "tree --train in/train.jsonl --cluster.max-leaf 3 --tree.branching 2 --trees 1 --text.min-df 1 --model in/text",
        "tree --train in/train.jsonl --trees 2 --text.min-df 1 --model in/text2",
        "dense --train in/train.jsonl --text.min-df 1 --epochs 2 --network.widths 8 --model in/text-dense",
        "mach --train in/train.txt --epochs 2 --repetitions 3 --buckets 6 --model in/mach",
        "mach --train in/train.txt --epochs 2 --buckets 6 --repetitions-range 0..1 --network.widths 8 --model in/part1",
        "mach --train in/train.txt --epochs 2 --buckets 6 --repetitions-range 1..3 --network.widths 8 --model in/part2",
        "dense --train in/train.txt --epochs 2 --network.widths 8 --model in/dense",
        "dense --train in/train.txt --epochs 2 --network.widths 8 --model in/indexed",
        "dense --train in/train.txt --features in/train.npy --epochs 2 --network.widths 8 --model in/vectors",
        "uniform --train in/train.txt --epochs 2 --network.widths 8 --network.intermediate 16 --head.fan-in 6 --model in/uniform",
        "lns --train in/train.txt --epochs 2 --network.widths 8 --model in/lns",
        "skipgram --train in/words.txt --min-count 1 --sampler all --network.widths 8 --epochs 1 --model in/words",
    ] {
        folder.ok(&format!("train {train}"));
    }
    folder.ok(
        "tune tree --train in/train.txt --trials 2 --trees 2 --validation in/test.txt --part 0/1 --output in/tuned",
    );
    folder.ok("index build --model in/indexed --cells 3");
    folder.ok("index build --vectors in/train.npy --metric l2 --output in/l2 --cells 4");
    folder.ok("index build --vectors in/train.npy --metric ip --output in/ip --cells 0");
    folder.ok("index build --vectors in/train.txt --metric ip --output in/lists");
    folder.ok("calibrate --model in/tree --validation in/train.txt --held-out --output in/calibrated");
    folder.ok("index build --vectors in/large.npy --metric ip --output in/large --cells 0");
    folder.ok("index build --model in/text-dense");
    folder.ok("train dense --train in/train.txt --epochs 1 --network.widths 8 --model in/continued");
    folder.ok("index build --model in/continued");
    folder.ok("train dense --train in/train.txt --epochs 2 --network.widths 8 --model in/continued");
    folder.ok("convert --from xc in/whole --to pecos in/pecos");
    folder.ok("convert --from pecos in/pecos --to xc in/foreign");
    folder
        .ok("convert --from jsonl in/train.jsonl --to xc-text in/made.txt --save-pipeline in/pipeline --text.ngrams 2");
    for (model, top) in [("tree", 5), ("tree2", 5), ("tree", 2)] {
        folder
            .ok(&format!("predict --model in/{model} --input in/test.txt --top-k {top} --output in/{model}-{top}.txt"));
    }
    folder
}
