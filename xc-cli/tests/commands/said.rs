//! What may surprise is said in a line on stderr.

use crate::program::{Folder, run};

const ROWS: [(&str, &str); 4] = [("apple red", "a"), ("car fast", "b"), ("sun hot", "c"), ("rain wet", "d")];

fn rows(folder: &Folder, name: &str, label: impl Fn(usize) -> String) {
    let line = |at: usize| serde_json::json!({ "text": ROWS[at % 4].0, "labels": [label(at)] }).to_string() + "\n";
    folder.write(name, (0..20).map(line).collect::<String>());
}

fn said(folder: &Folder, command: &str) -> String {
    let outcome = run(&mut folder.command(command));
    assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
    outcome.stderr
}

#[test]
fn labels_that_look_alike_or_are_separated_otherwise_are_said_and_others_are_not() {
    let folder = Folder::new();
    let train = "train tree --text.min-df 1 --model m --train";
    let alike = "differ from another only in blanks";
    rows(&folder, "plain.jsonl", |at| ROWS[at % 4].1.to_owned());
    assert!(!said(&folder, &format!("{train} plain.jsonl")).contains(alike));
    for other in ["A", " a", "a ", "cafe\u{301}", "1.0"] {
        let first = match other {
            "1.0" => "1",
            "cafe\u{301}" => "caf\u{e9}",
            _ => "a",
        };
        rows(&folder, "t.jsonl", |at| {
            if at % 8 == 0 {
                other.to_owned()
            } else if at % 4 == 0 {
                first.to_owned()
            } else {
                "z".to_owned()
            }
        });
        let line = said(&folder, &format!("{train} t.jsonl"));
        assert!(line.contains(&format!("1 names of labels {alike}")), "{other:?}: {line}");
    }
    folder.write("t.tsv", "text\tlabels\n".to_owned() + &"apple red\ta|b\ncar fast\tb|c\n".repeat(5));
    let meant = "--label-separator \"|\" is meant?";
    assert!(said(&folder, &format!("{train} t.tsv --label-separator ;")).contains(meant));
    assert!(!said(&folder, &format!("{train} t.tsv --label-separator |")).contains(meant));
}

#[test]
fn names_that_are_numbers_and_a_model_that_is_replaced_are_said() {
    let folder = Folder::new();
    rows(&folder, "t.jsonl", |at| (10 + at % 4).to_string());
    let train = "train tree --text.min-df 1 --model m --train t.jsonl";
    assert!(!said(&folder, train).contains("will be replaced"));
    let line = |at: usize| format!("{{\"text\":\"{} more{at}\",\"labels\":[\"{}\"]}}\n", ROWS[at % 4].0, 10 + at % 4);
    folder.write("v.jsonl", (0..20).map(line).collect::<String>());
    folder.ok("calibrate --model m --validation v.jsonl --output c");
    assert!(said(&folder, train).contains("m: the tree model there will be replaced"));
    assert!(
        said(&folder, &train.replace("--model m", "--model c"))
            .contains("c: the tree model there, its calibration will be replaced")
    );
    let numbers = "labels have names that are whole numbers";
    assert!(said(&folder, "predict --model m --input t.jsonl").contains(numbers));
    for silent in ["--names", "--output-format jsonl", "--output p.csv"] {
        assert!(!said(&folder, &format!("predict --model m --input t.jsonl {silent}")).contains(numbers), "{silent}");
    }
}

#[test]
fn a_small_model_with_a_flipped_byte_is_refused_and_a_large_one_where_it_is_asked_for() {
    let folder = Folder::new();
    rows(&folder, "t.jsonl", |at| ROWS[at % 4].1.to_owned());
    folder.ok("train tree --text.min-df 1 --model small --train t.jsonl");
    folder.ok("generate --preset demo --model large --features 60000 --labels 60000 ");
    folder.write("q.txt", "1 60000\n 3:1\n");
    folder.ok("predict --model large --input q.txt --verify");
    folder.ok("predict --model small --input t.jsonl --verify");
    let asked = |model: &str, commands: &[&str]| {
        let entries = std::fs::read_dir(folder.path(model)).unwrap().map(|entry| entry.unwrap().path());
        let path = entries.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut by_hash = 0;
        for part in 1..24 {
            let mut bytes = whole.clone();
            bytes[whole.len() * part / 24] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            for command in commands {
                let outcome = folder.xc(command);
                assert_eq!(outcome.code, 2, "{command}, byte {part}/24: {}", outcome.stderr);
                by_hash += usize::from(outcome.error().contains("damaged since it was saved"));
            }
        }
        std::fs::write(&path, whole).unwrap();
        by_hash
    };
    let small = asked("small", &["predict --model small --input t.jsonl", "evaluate --model small --input t.jsonl"]);
    let large = asked("large", &["predict --model large --input q.txt --verify"]);
    // Of others the structure tells.
    assert!(small > 0 && large > 0, "{small}, {large}");
}

#[test]
fn a_report_of_a_defect_can_say_the_build() {
    let folder = Folder::new();
    let text = folder.command("--version --verbose").output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["xc 0.", "commit: ", "optional features: ", "instruction set: ", "format of models"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = folder.command("-V --json").output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["version"].is_string() && json["instruction_set"].is_string() && json["features"].is_array());
}

#[test]
fn files_of_other_kinds_are_named_with_the_way_out() {
    let folder = Folder::new();
    rows(&folder, "t.jsonl", |at| ROWS[at % 4].1.to_owned());
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain("text,labels\n".bytes().flat_map(|b| [b, 0])).collect();
    for (name, bytes, expected) in [
        ("u.csv", &utf16[..], "iconv -f UTF-16"),
        ("l.csv", b"text,labels\ncaf\xe9,a\n", "iconv -f LATIN1"),
        ("p.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        ("s.csv", b"sep=;\ntext;labels\na;b\n", "tail -n +2"),
    ] {
        folder.write(name, bytes);
        let outcome = folder.xc(&format!("train tree --train {name} --model m"));
        assert!(outcome.code == 2 && outcome.error().contains(expected), "{name}: {}", outcome.stderr);
    }
}

#[test]
fn a_file_folder_or_label_that_is_nearly_there_is_named_and_no_other() {
    let folder = Folder::new();
    rows(&folder, "train.jsonl", |at| format!("label{}", at % 4));
    folder.write("other.jsonl", "{\"text\": \"apple\", \"labels\": [\"label1\"]}\n");
    folder.ok("train tree --text.min-df 1 --train train.jsonl --model my.model");
    for (command, near) in [
        ("predict --model my.modl --input train.jsonl", "my.model"),
        ("predict --model my.model --input tarin.jsonl", "train.jsonl"),
        ("predict --model my.model --input train.jsonl --exclude othr.jsonl", "othr.jsonl"),
        ("evaluate --model my.modell --input train.jsonl", "my.model"),
        ("evaluate --truth train.json --predictions other.jsonl", "train.jsonl"),
        ("train tree --train trainjsonl --model new", "train.jsonl"),
        ("convert --from jsonl other.jsonll --to csv o.csv", "other.jsonl"),
        ("inspect ./my_model", "./my.model"),
        ("explain --model my.model --input train.jsonl --label labl2", "\"label2\""),
    ] {
        let outcome = folder.xc(command);
        let near = near.replace("othr", "other");
        assert_eq!(outcome.code, 2, "{command}: {}", outcome.stderr);
        let (what, _) = outcome.stderr.split_once("; a similar ").unwrap_or_default();
        assert!(what.starts_with("xc: error: "), "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.ends_with(&format!(" is {near}\n")), "{command}: {}", outcome.stderr);
    }
    for command in ["predict --model model --input train.jsonl", "inspect mine", "evaluate --model my.model --input x"]
    {
        let outcome = folder.xc(command);
        assert!(outcome.code == 2 && !outcome.stderr.contains("similar"), "{command}: {}", outcome.stderr);
    }
}

#[test]
fn a_text_of_the_command_line_is_answered_and_explained_as_one_of_a_file() {
    let folder = Folder::new();
    rows(&folder, "train.jsonl", |at| format!("label{}", at % 4));
    folder.ok("train tree --text.min-df 1 --train train.jsonl --model m");
    folder.ok("convert --from jsonl train.jsonl --to xc-text --text.min-df 1 train.txt");
    folder.ok("train tree --train train.txt --model features");
    let texts = ["apple red", "- {\"text\": 1}", "sun", ""];
    let line = |text: &&str| serde_json::json!({ "text": text, "labels": [] }).to_string() + "\n";
    folder.write("texts.jsonl", texts.iter().map(line).collect::<String>());
    for command in ["predict --model m --names", "predict --model m --output-format csv", "explain --model m --label 2"]
    {
        let mut given = folder.command(command);
        texts.iter().for_each(|text| _ = given.arg(format!("--text={text}")));
        let given = run(&mut given);
        assert_eq!(
            (given.code, &*given.stdout),
            (0, &*folder.ok(&format!("{command} --input texts.jsonl"))),
            "{command}"
        );
    }
    for (refused, why) in [
        ("predict --model features --text apple", "--text: the model was trained on sparse features, not on text"),
        (
            "explain --model features --text apple --label 0",
            "--text: the model was trained on sparse features, not on text",
        ),
        ("predict --model m --text apple --input train.jsonl", "'--text <TEXT>' cannot be used with '--input <FILE>'"),
        ("predict --model m --text apple --format csv", "--format csv has no effect here: add --input FILE"),
        (
            "explain --model m --text apple --label 1 --text-fields a",
            "--text-fields a has no effect here: add --input FILE",
        ),
        ("predict --model m", "--input <FILE>"),
    ] {
        let outcome = folder.xc(refused);
        assert!(outcome.code == 2 && outcome.stderr.contains(why), "{refused}: {}", outcome.stderr);
    }
}
