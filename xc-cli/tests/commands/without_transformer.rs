//! A program that was built without transformers, asked for one.

use crate::program::Folder;
use xc_store::{Container, ContainerWriter, OpenMode};

/// Kinds that stand above a transformer.
pub(crate) const KINDS: [&str; 4] = ["dense", "lns", "uniform", "astra"];

#[test]
fn a_program_without_transformers_says_so_in_a_line() {
    let Some(folder) = Folder::of_default_program() else { return };
    folder.ok("generate --instances 40 --features 50 --labels 8 --no-names --output d");
    let lacks = "this program was built without transformers (feature transformer of xc-cli or xc-train: cargo build \
                 --features transformer)";
    for kind in KINDS {
        let train = format!("train {kind} --train d/train.jsonl --model m");
        for (typed, option) in [
            ("--encoder transformer", "--encoder transformer"),
            ("--encoder transformer --transformer.from nowhere", "--encoder transformer"),
            ("--transformer.from nowhere", "--transformer.from"),
            ("--transformer.rate 0.1", "--transformer.rate"),
            ("--encoder features --transformer.max-tokens 3 --explain", "--transformer.max-tokens"),
        ] {
            folder.xc(&format!("{train} {typed}")).refused(3, &format!("{option}: {lacks}"));
        }
        assert!(!folder.path("m").exists());
        // Options that only lead there are not shown, in help, plans and completions of options.
        for shown in [format!("train {kind} --help"), format!("{train} --explain --network.widths 4")] {
            assert!(!folder.ok(&shown).contains("transformer"), "{shown}");
        }
    }
    folder.xc("embed --from nowhere --input d/train.jsonl --output x.npy").refused(3, &format!("xc embed: {lacks}"));
    assert!(!folder.ok("--help").contains("embed") && !folder.path("x.npy").exists());
    let mach = "train mach --train d/train.jsonl --model m";
    folder.xc(&format!("{mach} --encoder frozen")).refused(3, &format!("--encoder frozen: {lacks}"));
    folder.xc(&format!("{mach} --transformer.prefix x")).refused(3, &format!("--transformer.prefix: {lacks}"));
    assert!(!folder.ok("train mach --help").contains("frozen"));
    let little = "--train d/train.jsonl --epochs 1 --network.widths 4 --threads 1";
    folder.ok(&format!("train dense {little} --model usual"));
    folder.ok(&format!("train dense {little} --encoder features --model features"));
    assert!(crate::program::contents(&folder.path("usual")) == crate::program::contents(&folder.path("features")));
}

#[test]
fn a_pipeline_that_another_build_made_is_named() {
    let Some(folder) = Folder::of_default_program() else { return };
    folder.ok("generate --instances 40 --features 50 --labels 8 --no-names --output d");
    folder.ok("train tree --train d/train.jsonl --text.min-df 1 --model m");
    for kind in ["tokens", "vectors"] {
        let source = Container::open(folder.path("m"), OpenMode::Read).unwrap();
        let mut writer = ContainerWriter::copy_of(&source, folder.path(kind)).unwrap();
        writer.set_pipeline(serde_json::json!({ "kind": kind, "version": 1 }));
        writer.finish().unwrap();
        let said = "its texts are read by a transformer, which this build lacks (feature transformer)";
        let outcome = folder.xc(&format!("predict --model {kind} --input d/test.jsonl"));
        assert!(outcome.code != 0 && outcome.stderr.trim_end().ends_with(said), "{outcome:?}");
    }
}
