//! Every instruction set gives the same models and answers, to the bit.

use crate::program::{Folder, contents, npy, run};
use xc_buffer::Isa;

const KINDS: [(&str, &str); 6] = [
    ("tree", "--tree.branching 4"),
    ("dense", "--network.widths 16 --epochs 2"),
    ("uniform", "--network.widths 16 --network.intermediate 48 --head.fan-in 6 --epochs 2"),
    ("lns", "--network.widths 17 --epochs 2 --negatives.sampled 5 --negatives.uniform 20"),
    ("lns", "--network.widths 17 --epochs 2 --negatives.sampled 20 --negatives.shared false --head.precision bf16"),
    ("mach", "--buckets 20 --repetitions 2 --network.widths 16 --epochs 2"),
];

/// Two commands that end with the option of a folder: the first makes it, the second asks it.
fn same_everywhere(folder: &Folder, make: &str, ask: &str) {
    let mut first = None;
    for isa in Isa::available() {
        let on = |command: &str| {
            let command = format!("{command} {isa}.made");
            run(folder.command(&command).arg("--quiet").env("XC_SIMD", isa.name())).quiet_success()
        };
        on(make);
        let answers = on(ask);
        let got = (contents(&folder.path(&format!("{isa}.made"))), answers);
        let (made, answers) = first.get_or_insert_with(|| got.clone());
        assert!(*made == got.0, "{make}: what {isa} makes is another");
        assert!(*answers == got.1, "{make}: the answers of {isa} are others");
    }
}

#[test]
fn models_and_answers_are_the_same_on_every_instruction_set() {
    let folder = Folder::new();
    folder.ok("generate --instances 200 --test-instances 40 --features 500 --labels 60 --words 30 --output data");
    for (kind, options) in KINDS {
        same_everywhere(
            &folder,
            &format!("train {kind} --train data/train.txt --seed 3 {options} --model"),
            "predict --input data/test.txt --top-k 5 --model",
        );
    }
}

#[test]
fn indexes_and_their_answers_are_the_same_on_every_instruction_set() {
    let folder = Folder::new();
    folder.ok("generate --instances 600 --test-instances 40 --features 200 --labels 20 --words 20 --output data");
    let value = |row: usize, column: usize| (row * 7919 + column * 104_729 + row * column * 31) as f32 % 1009.0 / 100.0;
    folder.write("rows.npy", npy(700, 21, value));
    folder.write("queries.npy", npy(40, 21, |row, column| value(3 * row + 1, column) + 0.3));
    for (vectors, queries, options) in [
        ("rows.npy", "queries.npy", "--metric l2"),
        ("rows.npy", "queries.npy", "--metric cosine --cells 20"),
        ("rows.npy", "queries.npy", "--metric ip --fit-queries queries.npy"),
        ("data/train.txt", "data/test.txt", "--metric ip"),
    ] {
        same_everywhere(
            &folder,
            &format!("index build --vectors {vectors} {options} --output"),
            &format!("index search --queries {queries} --index"),
        );
    }
}

#[test]
fn an_unknown_instruction_set_is_an_error_of_the_user() {
    let folder = Folder::new();
    run(folder.command("predict --model none --input none").env("XC_SIMD", "foo"))
        .refused(2, "XC_SIMD=\"foo\": expected scalar, avx2 or avx512");
}
