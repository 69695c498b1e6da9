//! CSV and TSV in and out, options of input that the model keeps, ids, labels read alone, label names.

use crate::program::{Folder, json};

/// Rows about four tags, with fields of several lines; some rows have two tags.
fn table(delimiter: &str, with_tags: bool) -> String {
    let columns: &[&str] = if with_tags { &["uid", "title", "body", "tags"] } else { &["uid", "title", "body"] };
    let mut out = columns.join(delimiter) + "\n";
    for i in 0..40 {
        let words = ["chess board", "pawn, queen", "soup bowl", "knife fork"];
        let names = ["board games", "chess", "soup", "cutlery"];
        let (word, tag) = (words[i % 4], names[i % 4]);
        let tags = if i % 4 < 2 { format!("games; {tag}") } else { tag.to_owned() };
        let row = [
            format!("r{i:02}"),
            format!("about {word}").replace(", ", " "),
            format!("\"{word}\nline \"\"{}\"\"\"", i % 3),
            tags,
        ];
        out += &row[..columns.len()].join(delimiter);
        out.push('\n');
    }
    out
}

const FIELDS: &str = "--text-fields title,body --label-field tags --label-separator ; --id-field uid";

/// A training run with little in it.
fn train(kind: &str) -> String {
    let options = match kind {
        "tree" => "--trees 1",
        "mach" => "--buckets 3 --epochs 2 --validation-fraction 0",
        _ => "--epochs 2 --validation-fraction 0",
    };
    format!("train {kind} --text.min-df 1 {options}")
}

#[test]
fn a_table_is_trained_on_and_asked_without_an_option_said_twice() {
    let folder = Folder::new();
    folder.write("train.csv", table(",", true));
    folder.write("test.csv", table(",", false));
    folder.write("test.tsv", table("\t", false));
    for kind in ["tree", "mach", "uniform", "dense", "lns", "astra"] {
        folder.ok(&format!("{} --train train.csv --model {kind} {FIELDS}", train(kind)));
        let kept = &json(&folder.read(&format!("{kind}/config.json")))["parameters"]["input"];
        let expected = serde_json::json!({
            "format": "csv", "text_fields": ["title", "body"], "label_field": "tags", "label_separator": ";",
            "id_field": "uid"
        });
        assert_eq!(kept, &expected, "{kind}");
        let answers = folder.ok(&format!("predict --model {kind} --input test.csv --output-format jsonl --top-k 2"));
        let ids: Vec<String> = answers.lines().map(|line| json(line)["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, (0..40).map(|i| format!("r{i:02}")).collect::<Vec<_>>(), "{kind}");
        let tabs = folder.ok(&format!("predict --model {kind} --input test.tsv --output-format jsonl --top-k 2"));
        assert_eq!(tabs, answers, "{kind}");
        folder.ok(&format!("bench predict --model {kind} --input test.csv --mode online --repeat 1"));
    }
    // Answers are right: the same text names its tags.
    folder.ok("predict --model tree --input train.csv --output answers.txt");
    let report = folder
        .ok("evaluate --truth train.csv --label-field tags --label-separator ; --predictions answers.txt --json \
         --label-names tree/labels.txt");
    assert_eq!(json(&report)["P@1"], 1.0, "{report}");
}

#[test]
fn a_blend_and_a_merged_model_keep_the_form_of_their_input() {
    let folder = Folder::new();
    folder.write("train.csv", table(",", true));
    folder.write("test.csv", table(",", false));
    let train = "train.csv --text.min-df 1 --validation-fraction 0.3";
    folder.ok(&format!("train tree --trees 1 --train {train} --model tree {FIELDS}"));
    folder.ok(&format!("train dense --epochs 2 --train {train} --model dense {FIELDS}"));
    folder.ok("blend tree dense --validation train.csv --held-out --rule reciprocal-ranks --output blend --json");
    let answers = folder.ok("predict --model blend --input test.csv --output-format jsonl");
    assert_eq!(json(answers.lines().next().unwrap())["id"], "r00");

    for part in ["0..1", "1..2"] {
        let options = "--buckets 3 --epochs 1 --validation-fraction 0 --text.min-df 1";
        folder.ok(&format!(
            "train mach {options} --repetitions-range {part} --train train.csv --model part{part} {FIELDS}"
        ));
    }
    folder.ok("merge part0..1 part1..2 --output merged");
    assert_eq!(folder.ok("predict --model merged --input test.csv").lines().count(), 40);
}

#[test]
fn options_that_are_given_win_over_those_that_are_kept() {
    let folder = Folder::new();
    folder.write("train.csv", table(",", true));
    folder.ok(&format!("{} --train train.csv --model m {FIELDS}", train("tree")));
    folder.write("other.jsonl", "{\"name\": 5, \"words\": \"soup bowl\"}\n");
    let answer = folder.ok(
        "predict --model m --input other.jsonl --text-fields words --id-field name --output-format jsonl --top-k 1",
    );
    let answer = json(&answer);
    assert_eq!((&answer["id"], &answer["names"][0]), (&serde_json::json!(5), &serde_json::json!("soup")));
    folder.xc("predict --model m --input other.jsonl").refused(
        2,
        "other.jsonl: line 1: the object has none of the fields \"title\", \"body\"; its fields are \"name\", \"words\" \
         (--text-fields NAMES)",
    );
    folder.xc("predict --model m --input train.csv --id-field name --output-format jsonl").refused(
        2,
        "train.csv: line 1: the header has no column \"name\"; its columns are \"uid\", \"title\", \"body\", \"tags\" \
         (--id-field NAME)",
    );
}

#[test]
fn the_base_of_svmlight_is_kept_whatever_the_file_is_called() {
    let folder = Folder::new();
    let rows: String = (0..40).map(|i| format!("{} {}:1 {}:0.5\n", i % 4, 1 + i % 4, 5 + i % 3)).collect();
    folder.write("train.svm", &rows);
    folder.write("test.txt", &rows);
    folder.ok("train tree --trees 1 --train train.svm --svmlight-base 1 --model m");
    let by_name = folder.ok("predict --model m --input train.svm");
    assert_eq!(folder.ok("predict --model m --input test.txt"), by_name);
    assert_eq!(by_name.lines().map(|line| &line[..1]).collect::<String>(), "0123".repeat(10));
}

#[test]
fn commands_that_read_labels_alone_ask_for_no_text() {
    let folder = Folder::new();
    let row = |i: usize| format!("{{\"title\": \"word{} other\", \"labels\": [{}]}}\n", i % 3, i % 3);
    let rows: String = (0..30).map(row).collect();
    folder.write("train.jsonl", &rows);
    folder.ok(&format!("{} --train train.jsonl --text-fields title --model m", train("tree")));
    folder.ok("predict --model m --input train.jsonl --output p.txt");
    let report = folder.ok("evaluate --truth train.jsonl --predictions p.txt --json --propensity-from train.jsonl");
    assert_eq!(json(&report)["P@1"], 1.0);
    folder.write("candidates.jsonl", "{\"labels\": [1, 2]}\n".repeat(30));
    let answers = folder.ok("predict --model m --input train.jsonl --candidates candidates.jsonl --top-k 3");
    assert!(answers.lines().all(|line| !line.contains("0:") || line.split(' ').count() == 2), "{answers}");
    folder.write("candidates.csv", "labels\n".to_owned() + &"1\n".repeat(30));
    let answers = folder.ok("predict --model m --input train.jsonl --candidates candidates.csv --top-k 3");
    assert!(answers.lines().all(|line| line.starts_with("1:")), "{answers}");
}

#[test]
fn errors_about_labels_name_the_option_that_helps() {
    let folder = Folder::new();
    let refuse = |name: &str, content: &str, options: &str, expected: &str| {
        folder.write(name, content);
        folder.xc(&format!("train tree --train {name} --model m {options}")).refused(2, &format!("{name}: {expected}"));
    };
    refuse(
        "a.jsonl",
        "{\"text\": \"a b\", \"tags\": [\"x\"]}\n{\"text\": \"a b\"}\n",
        "--text.min-chars 1",
        "no instance has a label; at least one label is expected (in the field \"labels\"; the first object has \
         \"tags\", \"text\"; --label-field names another)",
    );
    refuse(
        "a.csv",
        "text,tags\na b,x\n",
        "",
        "line 1: the header has no column \"labels\"; its columns are \"text\", \"tags\" (--label-field NAME)",
    );
    refuse(
        "a.csv",
        "text,labels\na b,x;y\n",
        "",
        "line 2: in column \"labels\": \"x;y\" may be one label or several, expected a statement of what separates \
         labels (--label-separator S; '' takes each string as one label)",
    );
    refuse(
        "a.csv",
        "text,labels,text\na b,x,y\n",
        "",
        "line 1: column \"text\" is named twice in the header, expected each name once",
    );
    refuse("a.csv", "text,labels\na b,x\nc\n", "", "line 3: 1 fields, expected 2 as in the header");
    assert!(!folder.path("m").exists());
    // Truth without a label is no truth.
    folder.write("p.txt", "0:1\n0:1\n");
    folder.write("a.jsonl", "{\"tags\": [0]}\n{\"tags\": [0]}\n");
    let refused = folder.xc("evaluate --truth a.jsonl --predictions p.txt");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--label-field names another"), "{}", refused.stderr);
    folder.ok("evaluate --truth a.jsonl --predictions p.txt --label-field tags");
}

#[test]
fn text_becomes_a_table_and_a_table_text() {
    let folder = Folder::new();
    let rows = "{\"text\":\"a \\\"b\\\", c\\nd\",\"labels\":[\"x\",\"y z\"]}\n{\"text\":\"\",\"labels\":[]}\n";
    folder.write("a.jsonl", rows);
    for format in ["csv", "tsv"] {
        folder.ok(&format!("convert --from jsonl a.jsonl --to {format} a.{format}"));
        folder.ok(&format!("convert --from {format} a.{format} --to jsonl again.jsonl --label-separator ;"));
        assert_eq!(folder.read("again.jsonl"), rows, "{format}");
    }
    assert_eq!(folder.read("a.csv"), "text,labels\n\"a \"\"b\"\", c\nd\",x;y z\n,\n");
    let refused = folder.xc("convert --from jsonl a.jsonl --to csv b.csv --label-separator y");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("do not read back from csv; another label separator"), "{}", refused.stderr);
    assert!(!folder.path("b.csv").exists());
}
