//! Options, files of options and names that no sensible user gives: one line and an exit code.

use crate::program::{Folder, Outcome};

const DATA: &str = "generate --instances 120 --test-instances 20 --features 60 --labels 10 --words 8 --output d";

/// Numbers beyond what any option means.
const NUMBERS: [&str; 12] = [
    "-1",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "",
];

/// The options of a command that take a number, as its help lists them.
fn numbers_of(folder: &Folder, command: &str) -> Vec<String> {
    let help = folder.xc(&format!("{command} --help")).stdout;
    let of_line = |line: &str| {
        let (name, rest) = line.trim_start().strip_prefix("--")?.split_once(" <")?;
        let value = rest.split('>').next()?;
        let is_number = value.len() <= 2 || ["SHARE", "RATE", "STEPS", "BYTES"].contains(&value);
        is_number.then(|| name.to_owned())
    };
    let names: Vec<String> = help.lines().filter_map(of_line).collect();
    assert!(names.len() >= 2, "{command}: {names:?} of {help}");
    names
}

#[track_caller]
fn ends_properly(got: &Outcome, what: &str) {
    assert!((0..=3).contains(&got.code) && !got.stderr.contains("internal error"), "{what}: {got:?}");
    if got.code > 0 {
        assert_eq!(got.stderr.lines().filter(|line| line.starts_with("xc: error:")).count(), 1, "{what}: {got:?}");
    }
}

/// Whatever a number says, the command refuses it or works.
fn try_numbers(folder: &Folder, command: &str, name: &str, beside: &[&str]) {
    for option in numbers_of(folder, name) {
        if beside.contains(&&*option) || ["threads", "max-memory", "seed"].contains(&&*option) {
            continue;
        }
        for number in NUMBERS {
            let kept: Vec<&str> = {
                let mut words = Vec::new();
                let mut given = command.split_whitespace().peekable();
                while let Some(word) = given.next() {
                    if word.strip_prefix("--") == Some(&*option) {
                        given.next();
                    } else {
                        words.push(word);
                    }
                }
                words
            };
            let line = format!("{} --{option}={number} --threads 1 --max-memory 2GiB", kept.join(" "));
            ends_properly(&folder.xc(&line), &line);
        }
    }
}

#[test]
fn absurd_numbers_of_a_blend_are_refused_or_served() {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.ok("train tree --train d/train.txt --trees 1 --validation-fraction 0.3 --model a");
    folder.ok("train tree --train d/train.txt --trees 1 --validation-fraction 0.3 --beam 3 --seed 1 --model b");
    let blend = "blend a b --validation d/train.txt --held-out --rule reciprocal-ranks --output c";
    try_numbers(&folder, blend, "blend", &[]);
    for (option, most) in [("hidden", "65536"), ("networks", "1024")] {
        for number in ["65537", "4294967295", "18446744073709551615"] {
            let got = folder.xc(&format!("{} --{option} {number}", blend.replace("reciprocal-ranks", "net")));
            assert_eq!(got.code, 2, "{got:?}");
            assert!(got.stderr.ends_with(&format!("{number}; at most {most} is expected\n")), "{got:?}");
        }
    }
    try_numbers(&folder, "calibrate --model a --validation d/train.txt --held-out --output c", "calibrate", &[]);
}

#[test]
fn absurd_numbers_of_skip_grams_are_refused_or_served() {
    let folder = Folder::new();
    folder.ok(DATA);
    let train = "train skipgram --train d/train.jsonl --epochs 1 --network.widths 4 --model w";
    for number in ["4294967296", "18446744073709551614", "18446744073709551615"] {
        let got = folder.xc(&format!("{train} --window {number}"));
        assert_eq!((got.code, got.stderr.lines().count()), (2, 1), "{got:?}");
    }
    // A window as long as any line is none that cannot be.
    folder.ok(&format!("{train} --window 4294967295"));
}

#[test]
fn numbers_whose_sums_and_products_overflow_are_refused_or_served() {
    let folder = Folder::new();
    for option in ["instances", "test-instances"] {
        for number in ["4294967296", "9223372036854775807", "18446744073709551615"] {
            let got = folder.xc(&format!("generate --labels 9 --features 9 --{option} {number} --output d"));
            assert_eq!((got.code, got.stderr.lines().count()), (2, 1), "{got:?}");
        }
    }
    folder.ok(DATA);
    for number in ["9223372036854775807", "18446744073709551615"] {
        folder.ok(&format!("train tree --train d/train.txt --trees 1 --tree.branching {number} --model a"));
        let held_out = "--validation d/test.txt";
        folder.ok(&format!("calibrate --model a {held_out} --folds {number} --top-k {number} --output b"));
    }
}

#[test]
fn a_file_of_options_has_an_end_and_names_no_other() {
    let folder = Folder::new();
    let evaluate = "evaluate --truth t --predictions p --config";
    folder.write("long.toml", "# comment\n".repeat(200_000));
    folder
        .xc(&format!("{evaluate} long.toml"))
        .refused(2, "long.toml: more than 1048576 bytes; a file of options is expected");
    if cfg!(unix) {
        folder
            .xc(&format!("{evaluate} /dev/zero"))
            .refused(2, "/dev/zero: more than 1048576 bytes; a file of options is expected");
    }
    folder.write("other.toml", "json = true\nconfig = \"x.toml\"\n");
    folder
        .xc(&format!("{evaluate} other.toml"))
        .refused(2, "other.toml: line 2: config: a file of options cannot name another one");
    folder.write("bytes.toml", b"\xff\xfe");
    let got = folder.xc(&format!("{evaluate} bytes.toml"));
    assert_eq!((got.code, got.stderr.lines().count()), (2, 1), "{got:?}");
    folder.xc(&format!("{evaluate} .")).refused(2, ".: Is a directory");
}

/// One character of each kind that a reader does not see and a terminal obeys.
const UNSEEN: [char; 16] = [
    '\0', '\u{1}', '\u{7}', '\u{8}', '\u{b}', '\u{1b}', '\u{1f}', '\u{7f}', '\u{80}', '\u{85}', '\u{9b}', '\u{2028}',
    '\u{2029}', '\u{202e}', '\u{2066}', '\u{200f}',
];

#[test]
fn label_names_with_characters_that_nobody_sees_are_refused_wherever_they_are_read() {
    let folder = Folder::new();
    folder.ok(DATA);
    folder.ok("train tree --train d/train.jsonl --label-names d/labels.txt --trees 1 --model m");
    let names: Vec<String> = folder.read("d/labels.txt").lines().map(str::to_owned).collect();
    for unseen in UNSEEN {
        let name = format!("re{unseen}d");
        let escaped = serde_like(&name);
        folder.write("a.jsonl", format!("{{\"text\": \"some words\", \"labels\": [\"{escaped}\", \"other\"]}}\n"));
        folder.write("a.csv", format!("text,labels\nsome words,{name}\nmore words,other\n"));
        folder.write("a.txt", format!("__label__{name} some words\n__label__other more words\n"));
        folder.write("names.txt", format!("{name}\n{}\n", names[1..].join("\n")));
        let refused = [
            "train tree --train a.jsonl --model n".to_owned(),
            "train tree --train a.csv --model n".to_owned(),
            "convert --from xc m --to xc n --label-names names.txt".to_owned(),
            "evaluate --truth d/test.jsonl --predictions p --label-names names.txt".to_owned(),
            "train tree --train a.txt --format fasttext --model n".to_owned(),
        ];
        for command in refused {
            let got = folder.xc(&command);
            assert_eq!(
                (got.code, &*got.stdout, got.stderr.lines().count()),
                (2, "", 1),
                "{unseen:?}: {command}: {got:?}"
            );
            assert!(got.stderr.contains("printable") && !got.stderr.contains(unseen), "{unseen:?}: {command}: {got:?}");
        }
        // A model that somebody else made.
        let labels = folder.read("m/labels.txt");
        folder.write("m/labels.txt", folder.read("names.txt"));
        for command in ["predict --model m --input d/test.jsonl --names", "inspect m --verify"] {
            let got = folder.xc(command);
            assert_eq!(got.code, 2, "{unseen:?}: {command}: {got:?}");
            assert!(!got.stderr.contains(unseen) && !got.stdout.contains(unseen), "{unseen:?}: {command}: {got:?}");
        }
        folder.write("m/labels.txt", labels);
    }
    // Blanks and letters of any script are names.
    let row = "{\"text\": \"some words\", \"labels\": [\"red wine\", \"vin rouge à 12 °\", \"赤\"]}\n";
    folder.write("a.jsonl", row.repeat(4));
    folder.ok("train tree --train a.jsonl --trees 1 --model n");
    assert!(folder.ok("predict --model n --input a.jsonl --names").contains("赤"));
}

/// A string as JSON has it.
fn serde_like(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}
