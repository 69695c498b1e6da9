//! Every instruction set gives the same models and answers, to the bit.

mod program;

use program::{Folder, contents, npy, run};
use xc_sparse::Isa;

const KINDS: [(&str, &str); 6] = [
    ("tree", "--tree.branching 4"),
    ("dense", "--network.widths 16 --epochs 2"),
    ("uniform", "--network.widths 16 --network.intermediate 48 --head.fan-in 6 --epochs 2"),
    ("lns", "--network.widths 17 --epochs 2 --candidates 5 --uniform 20"),
    ("lns", "--network.widths 17 --epochs 2 --candidates 20 --lists own --head.precision bf16"),
    ("mach", "--buckets 20 --repetitions 2 --network.widths 16 --epochs 2"),
];

#[test]
fn models_and_answers_are_the_same_on_every_instruction_set() {
    let folder = Folder::new();
    folder.ok("generate --instances 200 --test-instances 40 --features 500 --labels 60 --words 30 --output data");
    for (kind, options) in KINDS {
        let mut first = None;
        for isa in Isa::available() {
            let on = |arguments: &str| {
                run(folder.command(arguments).arg("--quiet").env("XC_SIMD", isa.name())).quiet_success()
            };
            on(&format!("train {kind} --train data/train.txt --model {isa}.{kind} --seed 3 {options}"));
            let answers = on(&format!("predict --model {isa}.{kind} --input data/test.txt --top-k 5"));
            let got = (contents(&folder.path(&format!("{isa}.{kind}"))), answers);
            let (model, answers) = first.get_or_insert_with(|| got.clone());
            assert!(*model == got.0, "{kind}: the model of {isa} is another");
            assert!(*answers == got.1, "{kind}: the answers of {isa} are others");
        }
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
        let mut first = None;
        for isa in Isa::available() {
            let on = |arguments: &str| {
                run(folder.command(arguments).arg("--quiet").env("XC_SIMD", isa.name())).quiet_success()
            };
            on(&format!("index build --vectors {vectors} {options} --output {isa}.index"));
            let answers = on(&format!("index search --index {isa}.index --queries {queries}"));
            let got = (contents(&folder.path(&format!("{isa}.index"))), answers);
            let (index, answers) = first.get_or_insert_with(|| got.clone());
            assert!(*index == got.0, "{vectors} {options}: the index of {isa} is another");
            assert!(*answers == got.1, "{vectors} {options}: the answers of {isa} are others");
        }
    }
}

#[test]
fn an_unknown_instruction_set_is_an_error_of_the_user() {
    let folder = Folder::new();
    run(folder.command("predict --model none --input none").env("XC_SIMD", "foo"))
        .refused(2, "XC_SIMD=\"foo\": expected scalar, avx2 or avx512");
}
