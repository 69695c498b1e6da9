//! Files as people have them: tables of other programs, JSON of every shape, features of a test file alone.

use crate::program::{Folder, json};

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// `xc` with these arguments, of which some hold blanks.
fn xc(folder: &Folder, arguments: &[&str]) -> crate::program::Outcome {
    let mut command = folder.command("");
    command.args(arguments);
    crate::program::run(command.arg("--quiet"))
}

#[track_caller]
fn refuses(outcome: &crate::program::Outcome, expected: &[&str]) {
    assert_eq!(outcome.code, 2, "{outcome:?}");
    for expected in expected {
        assert!(outcome.stderr.contains(expected), "{}\nfor {expected}", outcome.stderr);
    }
}

const BZ2: &str = "425a683931415926535955444c8c0000075800001040007810200021a68f4421800439c4ab75376f8bb9229c28482aa2\
    264600";
const XZ: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a301001132203320320a3020303a310a3120313a310a000000\
    3ba4946867e71aac00012a124b0854bc1fb6f37d010000000004595a";
const GZ: &str = "1f8b08000000000002033352305630e2325030b032e432543004920084cc31fa12000000";

/// The field `text` of each row.
fn texts(folder: &Folder, name: &str) -> Vec<String> {
    folder.read(name).lines().map(|line| json(line)["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_table_whose_quotes_do_not_enclose_fields_is_refused_with_its_line_or_read_without_quotes() {
    let folder = Folder::new();
    for (text, expected) in [
        (
            "text\tlabels\n\"Tis the season\ta\nplain row\tb\nsay \"hi\" now\tc\nlast\td\n",
            "line 2: text behind the closing quote of a field in the row that begins here, got \"hi",
        ),
        ("text\tlabels\nplain\ta\n\"abc\"def\tb\n", "line 3: text behind the closing quote"),
        ("text\tlabels\n\"say \\\"hi\\\" now\"\ta\n", "a backslash does not escape a quote"),
        ("text\tlabels\n\"one\" \ta\n", "line 2: text behind the closing quote"),
        ("text\tlabels\na\tx\n\"open\ta\nb\tc\n", "line 3: a quoted field that is not closed"),
        (
            "text\tlabels\nan \"inner\" one\tx\n\"begins\ta\nand ends\"\tb\n",
            "line 3: a quoted field of several lines in a file that also has quotes inside",
        ),
    ] {
        for (format, delimiter) in [("tsv", "\t"), ("csv", ",")] {
            folder.write("d", text.replace('\t', delimiter));
            let convert = format!("convert --from {format} d --to jsonl o.jsonl");
            refuses(&folder.xc(&convert), &[expected, "(--no-quotes, if quotes are text in this file)"]);
            // As text, each line is a row.
            folder.ok(&format!("{convert} --no-quotes"));
            let lines: Vec<&str> = text.lines().skip(1).map(|line| line.split('\t').next().unwrap()).collect();
            assert_eq!(texts(&folder, "o.jsonl"), lines);
        }
    }
    // What is written by the rules is read as it is.
    folder.write("d", "text,labels\n\"a \"\"quote\"\",\nand a line\",x\nb \"inner\" c,y\n\"C:\\dir\\\",z\n");
    refuses(&folder.xc("convert --from csv d --to jsonl o.jsonl"), &["line 4: a quoted field of several lines"]);
    folder.write("d", "text,labels\n\"a \"\"quote\"\",\nand a line\",x\n\"C:\\dir\\\",z\n");
    folder.ok("convert --from csv d --to jsonl o.jsonl");
    assert_eq!(texts(&folder, "o.jsonl"), ["a \"quote\",\nand a line", "C:\\dir\\"]);
}

#[test]
fn a_carriage_return_makes_no_row() {
    let folder = Folder::new();
    let read = |text: &str| {
        folder.write("d.csv", text);
        folder.xc("convert --from csv d.csv --to jsonl o.jsonl --label-field=")
    };
    for text in ["text\none\rtwo\nthree\n", "text\r\none\r\ntwo\rthree\r\n", "text\n\rtwo\n"] {
        refuses(&read(text), &["a carriage return inside a field that is not in quotes"]);
    }
    for text in ["text\r\na\r\nb\r\n", "text\ra\rb", "text\r\r\na\r\r\nb\r\r\n", "text\na\n\nb\r"] {
        assert_eq!(read(text).code, 0, "{text:?}");
        assert_eq!(texts(&folder, "o.jsonl"), ["a", "b"], "{text:?}");
    }
}

#[test]
fn a_table_says_what_separates_its_columns_or_is_told() {
    let folder = Folder::new();
    for (delimiter, name) in [(";", ";"), ("|", "|"), ("\t", "tab")] {
        folder.write("d.csv", format!("text{delimiter}tags\none{delimiter}a\ntwo, three{delimiter}b\n"));
        let convert = ["convert", "--from", "csv", "d.csv", "--to", "jsonl", "o.jsonl", "--label-field", "tags"];
        let hint = if name == "tab" { "(--delimiter tab,".to_owned() } else { format!("(--delimiter '{name}',") };
        refuses(&xc(&folder, &convert), &[&hint]);
        let outcome = xc(&folder, &[&convert[..], &["--delimiter", name]].concat());
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert_eq!(texts(&folder, "o.jsonl"), ["one", "two, three"]);
    }
    // Without a header columns have numbers.
    folder.write("d.tsv", "a b\tx\nc d\ty\n");
    folder.ok("convert --from tsv d.tsv --to jsonl o.jsonl --no-header --text-fields 1 --label-field 2");
    assert_eq!(
        folder.read("o.jsonl"),
        "{\"text\":\"a b\",\"labels\":[\"x\"]}\n{\"text\":\"c d\",\"labels\":[\"y\"]}\n"
    );
    refuses(&folder.xc("convert --from tsv d.tsv --to jsonl o.jsonl"), &["--no-header"]);
    refuses(&folder.xc("convert --from csv d.tsv --to jsonl o.jsonl --delimiter a"), &["--delimiter"]);
}

#[test]
fn a_model_keeps_the_form_of_its_tables_and_columns_of_0_and_1_are_labels() {
    let folder = Folder::new();
    let rows = "dog barks;1;0;0\ncat purrs;0;1;0\ndog cat;1.0;true;0\nbird;0.0;FALSE;0\n";
    folder.write("train.csv", format!("text;bark;purr;chirp\n{}", rows.repeat(5)));
    let train = "train tree --train train.csv --delimiter ; --label-fields bark,purr,chirp --model m";
    folder.ok(train);
    assert_eq!(folder.read("m/labels.txt"), "bark\npurr\nchirp\n");
    folder.write("test.csv", format!("text;bark;purr;chirp\n{rows}"));
    let named = folder.ok("predict --model m --input test.csv --names --top-k 1");
    assert_eq!(named.lines().take(2).map(|line| line.split(':').next().unwrap()).collect::<Vec<_>>(), ["bark", "purr"]);
    // The same labels as those of one field.
    let as_field = rows.replace(";1;0;0", ";bark").replace(";0;1;0", ";purr").replace(";1.0;true;0", ";bark|purr");
    let as_field = as_field.replace(";0.0;FALSE;0", ";");
    folder.write("field.csv", format!("text;tags\n{as_field}"));
    let jsonl = "convert --from csv --to jsonl --delimiter ;";
    folder.ok(&format!("{jsonl} test.csv a.jsonl --label-fields bark,purr,chirp"));
    folder.ok(&format!("{jsonl} field.csv b.jsonl --label-field tags --label-separator |"));
    assert_eq!(folder.read("a.jsonl"), folder.read("b.jsonl"));
    // JSONL has such fields too.
    folder.write(
        "rows.jsonl",
        "{\"text\":\"dog\",\"bark\":1,\"purr\":false}\n{\"text\":\"cat\",\"purr\":1.0,\"bark\":0}\n",
    );
    folder.ok("convert --from jsonl rows.jsonl --to jsonl c.jsonl --label-fields bark,purr");
    assert_eq!(
        folder.read("c.jsonl"),
        "{\"text\":\"dog\",\"labels\":[\"bark\"]}\n{\"text\":\"cat\",\"labels\":[\"purr\"]}\n"
    );
    for (row, expected) in [
        ("x;2;0;0", "in column \"bark\": got \"2\", expected 0 or 1"),
        ("x;;0;0", "expected 0 or 1"),
        ("x;-1;0;0", "expected 0 or 1"),
        ("x;nan;0;0", "expected 0 or 1"),
    ] {
        folder.write("bad.csv", format!("text;bark;purr;chirp\n{row}\n"));
        refuses(&folder.xc(&format!("{jsonl} bad.csv o.jsonl --label-fields bark,purr,chirp")), &["line 2", expected]);
    }
    refuses(&folder.xc(&format!("{jsonl} test.csv o.jsonl --label-fields bark,bark")), &["\"bark\" is named twice"]);
    refuses(&folder.xc(&format!("{jsonl} test.csv o.jsonl --label-fields bark,moo")), &["no column \"moo\""]);
    refuses(&folder.xc(&format!("{jsonl} test.csv o.jsonl --label-field bark,purr")), &["(--label-fields NAMES for"]);
}

#[test]
fn a_null_text_is_an_empty_one() {
    let folder = Folder::new();
    let rows = "{\"text\":\"dog barks\",\"labels\":[\"d\"]}\n{\"text\":\"cat purrs\",\"labels\":[\"c\"]}\n";
    folder.write("d.jsonl", format!("{}{{\"text\":null,\"labels\":[\"d\"]}}\n", rows.repeat(3)));
    folder.ok("convert --from jsonl d.jsonl --to csv o.csv");
    assert!(folder.read("o.csv").ends_with("\n,d\n"));
    folder.ok("train tree --train d.jsonl --model m");
    let outcome = folder.answered(
        "predict --model m --input - --output-format jsonl --quiet",
        "{\"text\":null}\n{\"text\":\"\"}\n{}\n",
    );
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[0], lines[1]);
    assert!(lines[2].contains("none of the fields"), "{}", lines[2]);
    folder.write("q.jsonl", "{\"text\":null}\n{\"text\":\"dog\"}\n");
    assert_eq!(folder.ok("predict --model m --input q.jsonl").lines().count(), 2);
    for row in ["{\"text\":null,\"text\":\"a\"}", "{\"text\":\"a\",\"text\":null}", "{\"text\":null,\"text\":null}"] {
        folder.write("q.jsonl", format!("{row}\n"));
        refuses(&folder.xc("predict --model m --input q.jsonl"), &["the field \"text\" is given twice"]);
    }
    for text in ["\\ud83d", "\\ud83d and more", "\\ude00", "\\ud83d\\u0041"] {
        folder.write("q.jsonl", format!("{{\"text\":\"{text}\"}}\n"));
        refuses(
            &folder.xc("predict --model m --input q.jsonl"),
            &["line 1", "cut inside a character, such as an emoji"],
        );
        let outcome = folder
            .answered("predict --model m --input - --on-error stop --quiet", format!("{{\"text\":\"{text}\"}}\n"));
        refuses(&outcome, &["cut inside a character, such as an emoji"]);
    }
}

#[test]
fn a_table_of_a_header_only_has_no_instance() {
    let folder = Folder::new();
    for (name, delimiter) in [("d.csv", ","), ("d.tsv", "\t")] {
        folder.write(name, format!("text{delimiter}labels\n"));
        refuses(
            &folder.xc(&format!("train tree --train {name} --model m")),
            &[name, "no instance; at least one is expected"],
        );
    }
}

/// Rows of three features, and the same with features that they have not.
fn with_unseen(folder: &Folder) {
    let (mut train, mut known, mut more) = (String::from("40 3 4\n"), String::new(), String::new());
    for row in 0..40 {
        train += &format!("{} {}:1 2:0.{}\n", row % 4, row % 2, row + 1);
    }
    for row in 0..8 {
        let (label, own) = (row % 4, format!("{}:1", row % 2));
        known += &format!("{label} {own}\n");
        more += &format!("{label} {own}{}\n", if row % 4 == 0 { " 3:5 90:1" } else { "" });
    }
    folder.write("train.txt", train);
    folder.write("known.txt", format!("8 3 4\n{known}"));
    folder.write("more.txt", format!("8 100 4\n{more}"));
    folder.write("known.svm", &known);
    folder.write("more.svm", &more);
    for name in ["known", "more"] {
        folder.ok(&format!("convert --from xc-text {name}.txt --to npz {name}.npz --output-labels {name}.y.npz"));
        folder.ok(&format!("convert --from xc-text {name}.txt --to jsonl {name}.jsonl"));
    }
}

const UNSEEN: &str = "features that the model was not trained on: 4 entries in 2 rows, left out (--unseen refuse)";

#[test]
fn features_that_training_had_not_are_left_out_and_counted_by_every_kind_of_model() {
    let folder = Folder::new();
    with_unseen(&folder);
    let network = "--network.widths 8 --epochs 1 --batch 8";
    for (kind, options) in [
        ("tree", String::new()),
        ("dense", network.into()),
        ("lns", network.into()),
        ("mach", format!("--buckets 2 --repetitions 2 {network}")),
    ] {
        folder.ok(&format!("train {kind} --train train.txt --model {kind} --seed 7 {options}"));
        for end in ["txt", "svm --svmlight-base 0", "npz", "jsonl"] {
            let predict = |name: &str| {
                let answered =
                    crate::program::run(&mut folder.command(&format!("predict --model {kind} --input {name}.{end}")));
                assert_eq!(answered.code, 0, "{kind} {name}.{end}: {}", answered.stderr);
                (answered.stdout, answered.stderr)
            };
            let (expected, silent) = predict("known");
            assert!(!silent.contains("not trained on"), "{silent}");
            let (got, said) = predict("more");
            assert_eq!(got, expected, "{kind} {end}");
            assert!(said.contains(UNSEEN), "{kind} {end}: {said}");
            let strict = folder.xc(&format!("predict --model {kind} --input more.{end} --unseen refuse"));
            assert_eq!((strict.code, &*strict.stdout), (2, ""), "{strict:?}");
        }
    }
}

#[test]
fn features_that_training_had_not_are_counted_wherever_rows_come_for_a_model() {
    let folder = Folder::new();
    with_unseen(&folder);
    folder.ok("train tree --train train.txt --model m");
    folder.ok("train tree --train train.txt --model n --seed 1");
    for command in [
        "train tree --train train.txt --validation more.txt --model v",
        "train dense --train train.txt --validation more.svm --svmlight-base 0 --model w --epochs 1",
        "calibrate --model m --validation more.txt --output c",
        "blend m n --validation more.jsonl --output b --held-out",
        "bench predict --model m --input more.npz --mode batch",
        "evaluate --model m --truth more.txt",
        "convert --from xc-text more.txt --to jsonl o.jsonl --pipeline m",
    ] {
        let outcome = crate::program::run(&mut folder.command(command));
        assert!(outcome.stderr.contains(UNSEEN), "{command}: {outcome:?}");
        let strict = folder.xc(&format!("{command} --unseen refuse"));
        assert_eq!(strict.code, 2, "{command}: {strict:?}");
    }
    // Requests and lines of stdin.
    let lines = "0:1 3:2\n{\"features\":{\"1\":1,\"77\":3}}\n1:1\n{\"features\":[[5,1],[0,1],[6,1]]}\n";
    let known = "0:1\n{\"features\":{\"1\":1}}\n1:1\n{\"features\":[[0,1]]}\n";
    let answered = folder.answered("predict --model m --input -", lines);
    assert_eq!(answered.stdout, folder.answered("predict --model m --input -", known).stdout);
    assert!(answered.stderr.contains("not trained on: 4 entries in 3 rows, left out"), "{}", answered.stderr);
    let strict = folder.answered("predict --model m --input - --unseen refuse", lines);
    assert_eq!(strict.stdout.lines().filter(|line| line.is_empty()).count(), 3, "{}", strict.stderr);
    // A narrower file is of other features; so are malformed values of features that are left out.
    folder.write("narrow.txt", "1 2 4\n0 0:1\n");
    refuses(&folder.xc("predict --model m --input narrow.txt"), &["2 features, expected 3"]);
    folder.write("bad.txt", "1 100 4\n0 0:1 50:x\n");
    refuses(&folder.xc("predict --model m --input bad.txt"), &["line 2, column 10"]);
    folder.write("beyond.txt", "1 50 4\n0 0:1 50:1\n");
    refuses(&folder.xc("predict --model m --input beyond.txt"), &["feature 50 is out of range"]);
}

#[test]
fn json_of_other_shapes_is_read_as_one_object_a_line() {
    let folder = Folder::new();
    let rows = [
        r#"{"text": "dog [barks] {", "labels": ["a", "b"], "more": {"x": [1, {}]}}"#,
        r#"{"text": "say \"}]\\", "labels": []}"#,
        r#"{"text": "tab\tand \u00e9", "labels": "c"}"#,
    ];
    folder.write("d.jsonl", rows.join("\n"));
    folder.ok("convert --from jsonl d.jsonl --to jsonl expected.jsonl");
    let spread = |row: &str| row.replace(", \"", ",\r\n  \"").replacen('{', "{\n  ", 1);
    let pretty: Vec<String> = rows.iter().map(|row| spread(row)).collect();
    for (text, name) in [
        (format!("[{}]", rows.join(",")), "on one line"),
        (format!("[\n{}\n]\n", rows.join(",\n")), "one a line"),
        (format!(" [{}]\n\n", pretty.join(" , ")), "spread"),
        (format!("\u{feff}[\n{}]", pretty.join("\n,")), "with a mark"),
        (pretty.join("\n"), "spread objects"),
        (pretty.join(""), "objects one behind the other"),
        (pretty.join("\n\n\n"), "blank lines between"),
    ] {
        folder.write("d.json", &text);
        let outcome = folder.xc("convert --from json d.json --to jsonl o.jsonl");
        assert_eq!(outcome.code, 0, "{name}: {outcome:?}");
        assert_eq!(folder.read("o.jsonl"), folder.read("expected.jsonl"), "{name}");
    }
    // By its content, and for queries.
    folder.write("train.json", format!("[{}]", rows.repeat(4).join(",\n")));
    folder.ok("train tree --train train.json --model m --text.min-df 1");
    folder.write("q.json", format!("[{}]", pretty.join(",")));
    let whole = folder.ok("predict --model m --input q.json --top-k 1");
    assert_eq!(whole, folder.ok("predict --model m --input d.jsonl --top-k 1"));
    folder.ok("predict --model m --input q.json --top-k 1 --output p.txt");
    folder.ok("evaluate --truth q.json --predictions p.txt --label-names m/labels.txt");
}

#[test]
fn json_that_is_torn_is_refused_with_its_place() {
    let folder = Folder::new();
    for (text, expected) in [
        ("[{\"text\":\"a\"},\n{\"text\":\"b\"}\n", "line 3: incomplete JSON: an array that is not closed"),
        ("[{\"text\":\"a\"}\n{\"text\":\"b\"}]\n", "line 2: malformed JSON: expected `,` or `]`"),
        ("[{\"text\":\"a\"},]\n", "line 1: malformed JSON: a comma without a value"),
        ("[,{\"text\":\"a\"}]\n", "line 1: malformed JSON: a comma without a value"),
        ("[{\"text\":\"a\"}] x\n", "line 1: malformed JSON: text behind the array"),
        ("[{\"text\":\"a\"}]\n[{\"text\":\"a\"}]\n", "line 2: malformed JSON: text behind the array"),
        ("[{\"text\":\"a", "incomplete JSON: an array that is not closed"),
        ("{\n\"text\":\"a\n\"}\n", "line 2: malformed JSON: a string that is not closed on its line"),
        ("{\n\"text\":\"a\"\n", "incomplete JSON: an object that is not closed"),
        ("{\"text\":\"a\"\n{\"text\":\"b\"}\n", "line 2: malformed JSON: the value before is not closed"),
        ("{\"text\":\"a\n{\"text\":\"b\"}\n", "line 1, column"),
        ("[1, 2]\n", "(as one object a line): line 1"),
        ("[[{\"text\":\"a\"}]]\n", "(as one object a line): line 1"),
        ("[\n{\"text\":\"a\"},\n{\"text\":5}\n]\n", "(as one object a line): line 2, column 9"),
        ("[]\n", "the file is empty"),
    ] {
        folder.write("d.json", text);
        refuses(&folder.xc("train tree --train d.json --format jsonl --model m --label-field="), &["d.json", expected]);
    }
    folder.write("d.json", format!("[{}", "[".repeat(200_000)));
    refuses(&folder.xc("train tree --train d.json --format jsonl --model m"), &["more than 128 brackets are open"]);
}

#[test]
fn files_that_are_not_read_are_named_with_what_makes_readable_ones_of_them() {
    let folder = Folder::new();
    for (name, bytes, expected) in [
        ("d.parquet", &b"PAR1\x15\x04\x15"[..], &["Parquet is not read", "read_parquet", "to_json"][..]),
        ("d.bin", b"PAR1\x15\x04\x15", &["Parquet is not read"]),
        ("d.feather", b"ARROW1\0\0", &["Arrow and Feather are not read", "read_feather"]),
        ("d.h5", b"\x89HDF\r\n\x1a\n", &["HDF5 is not read"]),
        ("d.pkl", b"\x80\x04\x95\x10", &["a Python pickle is not read", "to_json"]),
        ("d.arff", b"% Title\n%\n\n@RELATION 'x: -C 6'\n@attribute a numeric\n", &["ARFF is not read", "save_npz"]),
        ("d.vw", b"1 |words red apple\n-1 |words pear\n", &["Vowpal Wabbit is not read", "__label__"]),
        (
            "d.txt",
            b"a text a line\nanother\n",
            &["the format is not recognised", "texts alone, one a line, are fasttext", "--format"],
        ),
    ] {
        folder.write(name, bytes);
        let outcome = folder.xc(&format!("train tree --train {name} --model m"));
        refuses(&outcome, expected);
        assert!(!outcome.stderr.contains('\u{fffd}'), "{}", outcome.stderr);
    }
    let outcome = folder.xc("convert --from csv d.parquet --to jsonl o.jsonl");
    refuses(&outcome, &["Parquet is not read"]);
}

#[test]
fn compressed_files_are_read_to_their_end_and_refused_when_they_are_damaged() {
    let folder = Folder::new();
    folder.write("plain.txt", "2 3 2\n0 0:1\n1 1:1\n");
    folder.ok("convert --from xc-text plain.txt --to jsonl expected.jsonl");
    let convert = "convert --from xc-text d --to jsonl o.jsonl";
    for (name, hex) in [("gzip", GZ), ("bzip2", BZ2), ("xz", XZ)] {
        let whole = unhex(hex);
        folder.write("d", &whole);
        folder.ok(convert);
        assert_eq!(folder.read("o.jsonl"), folder.read("expected.jsonl"), "{name}");
        // Cut anywhere behind the magic bytes, and with anything behind the end.
        for cut in 10..whole.len() {
            folder.write("d", &whole[..cut]);
            refuses(&folder.xc(convert), &[name]);
        }
        for garbage in [&b"x"[..], b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10", b"\n"] {
            folder.write("d", [&whole, garbage].concat());
            refuses(&folder.xc(convert), &[name]);
        }
        let mut wrong = whole.clone();
        let middle = whole.len() / 2;
        wrong[middle] ^= 0x55;
        folder.write("d", wrong);
        refuses(&folder.xc(convert), &[name]);
        // An archive is not read inside of another.
        folder.write("x.npz", &whole);
        refuses(
            &folder.xc("convert --from npz x.npz --to jsonl o.jsonl"),
            &[&format!("npz inside {name} is not read")],
        );
    }
    // Zeros behind the last member are padding, and between members.
    let gzip = unhex(GZ);
    for zeros in [1, 4, 511, 100_000] {
        folder.write("d", [&gzip[..], &vec![0; zeros]].concat());
        folder.ok(convert);
        assert_eq!(folder.read("o.jsonl"), folder.read("expected.jsonl"));
    }
    folder.write("d", [&gzip[..], &[0; 9], b"x"].concat());
    refuses(&folder.xc(convert), &["gzip"]);
    // Text may begin as bzip2 does.
    folder.write("d", "BZh9,labels\nx,a\n");
    folder.ok("convert --from csv d --to jsonl o.jsonl --text-fields BZh9");
}

#[test]
fn labels_of_svmlight_may_be_decimals_and_have_no_weights() {
    let folder = Folder::new();
    folder.write("d.svm", "1.0 1:2.5\n2.,3.00 2:1\n 1:1\n4\n");
    let convert = "convert --from svmlight d.svm --to xc-text o.txt --svmlight-base 1";
    folder.ok(convert);
    assert_eq!(folder.read("o.txt"), "4 2 5\n1 0:2.5\n2,3 1:1\n 0:1\n4\n");
    for (row, expected) in [
        ("1.5 1:1", "got \"1.5\", expected a label id"),
        ("1.0e0 1:1", "expected a label id"),
        ("-1.0 1:1", "not negative"),
        ("1.0:2 1:1", "expected"),
        ("1:2.5 2:1", "line 1, column 1: got \"1:2.5\", expected labels, without weights"),
    ] {
        folder.write("d.svm", format!("{row}\n"));
        refuses(&folder.xc(convert), &[expected]);
    }
}

#[test]
fn label_ids_with_gaps_are_named_as_what_needs_the_memory() {
    let folder = Folder::new();
    folder.write("d.txt", "4 2 4000000000\n0 0:1\n3999999999 1:1\n0 0:1\n3999999999 1:1\n");
    for kind in ["tree", "dense"] {
        let outcome = folder.xc(&format!("train {kind} --train d.txt --model m --max-memory 2GiB"));
        assert_eq!(outcome.code, 3, "{outcome:?}");
        assert!(outcome.stderr.contains("label ids go up to 3999999999"), "{kind}: {}", outcome.stderr);
    }
}
