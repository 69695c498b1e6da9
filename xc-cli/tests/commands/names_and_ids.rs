//! Names and ids of labels: what is written is read as what it is, and names never become other labels' ids.

use crate::program::{Folder, json};

/// Texts of one word each, four times, with these labels.
fn rows(names: &[&str]) -> String {
    let row = |(i, name): (usize, &&str)| format!("{{\"text\":\"tok{i} zed{i}\",\"labels\":[{name:?}]}}\n");
    names.iter().enumerate().map(row).collect::<String>().repeat(4)
}

/// `xc evaluate --json` of predictions for the training rows.
fn evaluated(folder: &Folder, predictions: &str) -> String {
    folder
        .ok(&format!("evaluate --truth d.jsonl --predictions {predictions} --label-names m/labels.txt --k 1,2 --json"))
}

#[test]
fn predictions_by_name_are_evaluated_as_those_by_id_whatever_the_names_are() {
    let numbers: Vec<String> = (0..20).map(|i| i.to_string()).collect();
    let years: Vec<String> = (1990..2010).map(|i| i.to_string()).collect();
    let odd = ["007", "1:2", "3:0.5 4", "-1", "1e3", "2.5", "\"4\"", "{\"labels\":[1]}", " 5", "a:1", "9 to 5", "red"];
    let kinds: [Vec<&str>; 3] =
        [numbers.iter().map(|n| &**n).collect(), years.iter().map(|n| &**n).collect(), odd.to_vec()];
    for names in kinds {
        let folder = Folder::new();
        folder.write("d.jsonl", rows(&names));
        folder.ok("train tree --train d.jsonl --model m");
        for options in ["--top-k 1", "--top-k 2", "--top-k 3 --min-score 0.9", "--top-k 1 --min-score 0.999999"] {
            folder.ok(&format!("predict --model m --input d.jsonl {options} --output ids.txt"));
            folder.ok(&format!("predict --model m --input d.jsonl {options} --names --output names.txt"));
            folder.ok(&format!("predict --model m --input d.jsonl {options} --names --output p.jsonl"));
            let expected = evaluated(&folder, "ids.txt");
            assert_eq!(evaluated(&folder, "names.txt"), expected, "{names:?} {options}: {}", folder.read("names.txt"));
            assert_eq!(evaluated(&folder, "p.jsonl"), expected);
            assert!(json(&expected)["P@1"].as_f64().unwrap() > 0.9 || options.contains("0.999999"), "{expected}");
        }
        // One by one in --only-labels, where a number may be an id.
        let stored = folder.read("m/labels.txt");
        for (id, name) in stored.lines().enumerate() {
            folder.write("only.txt", serde_json::to_string(name).unwrap());
            let answer = folder.ok("predict --model m --input d.jsonl --only-labels only.txt --top-k 1");
            assert!(answer.lines().all(|line| line.starts_with(&format!("{id}:"))), "{name}: {answer}");
        }
    }
}

#[test]
fn a_number_that_is_an_id_and_another_labels_name_is_refused_in_a_set_of_labels() {
    let folder = Folder::new();
    folder.write("d.jsonl", rows(&["2", "0", "cat", "dog"]));
    folder.ok("train tree --train d.jsonl --model m");
    folder.write("only.txt", "cat\n2\n");
    let refused = folder.xc("predict --model m --input d.jsonl --only-labels only.txt");
    refused.refused(
        2,
        "only.txt: line 2: 2 is the id of a label and the name of label 1; expected the id 1 for the latter, or its \
         name in quotes",
    );
    for (set, id) in [("0\n", 0), ("\"2\"\n", 1), ("1\n", 1), ("3\n", 3), ("dog", 3)] {
        folder.write("only.txt", set);
        let answer = folder.ok("predict --model m --input d.jsonl --only-labels only.txt --top-k 1");
        assert!(answer.lines().all(|line| line.starts_with(&format!("{id}:"))), "{set}: {answer}");
    }
}

#[test]
fn names_given_to_a_model_that_has_ids_are_refused_by_every_command_and_format() {
    let folder = Folder::new();
    let named = [("apple red", "a"), ("car fast", "b"), ("sun hot", "c"), ("rain wet", "d")];
    let ids: String = (0..4).map(|i| format!("{{\"text\":\"{}\",\"labels\":[{i}]}}\n", named[i].0)).collect();
    folder.write("ids.jsonl", ids.repeat(8));
    let some = || named.iter().filter(|row| row.1 == "b" || row.1 == "d");
    let lines = |row: &dyn Fn(&str, &str) -> String| some().map(|(text, name)| row(text, name)).collect::<String>();
    let files = [
        ("jsonl", "jsonl", lines(&|text, name| format!("{{\"text\":\"{text}\",\"labels\":[\"{name}\"]}}\n"))),
        ("one.jsonl", "jsonl", lines(&|text, name| format!("{{\"text\":\"{text}\",\"labels\":\"{name}\"}}\n"))),
        ("csv", "csv", format!("text,labels\n{}", lines(&|text, name| format!("{text},{name}\n")))),
        ("tsv", "tsv", format!("text\tlabels\n{}", lines(&|text, name| format!("{text}\t{name}\n")))),
        ("ft", "fasttext", lines(&|text, name| format!("__label__{name} {text}\n"))),
    ];
    folder.ok("train tree --train ids.jsonl --model m");
    folder.ok("train lns --train ids.jsonl --model n --epochs 1");
    folder.ok("convert --from jsonl ids.jsonl --to xc-text ids.txt --save-pipeline features");
    for (ending, format, content) in files {
        let file = format!("names.{ending}");
        folder.write(&file, content);
        for command in [
            format!("train tree --train ids.jsonl --validation {file} --model t"),
            format!("train dense --train ids.jsonl --validation {file} --model t"),
            format!("train mach --train ids.jsonl --validation {file} --model t --buckets 3"),
            format!("tune tree --train ids.jsonl --validation {file} --output t --trials 2"),
            format!("predict --model m --input {file} --candidates {file}"),
            format!("predict --model m --input ids.jsonl --exclude {file}"),
            format!("calibrate --model m --validation {file} --output c"),
            format!("blend m n --validation {file} --output b"),
            format!("convert --from {format} {file} --to xc-text o.txt --pipeline m"),
            format!("convert --from {format} {file} --to xc-text o.txt --pipeline features"),
            format!("index build --model n --fit-queries {file} --max-loss 1"),
            format!("evaluate --truth {file} --model m"),
            format!("evaluate --truth {file} --predictions p.txt"),
        ] {
            let outcome = folder.xc(&command);
            assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{command}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(&file), "{command}: {}", outcome.stderr);
        }
    }
    for name in ["t", "c", "b", "o.txt"] {
        assert!(!folder.path(name).exists(), "{name}");
    }
    // Digits are ids, as everywhere where labels have no names.
    folder.write("digits.csv", "text,labels\ncar fast,1\nrain wet,3\n");
    let shown = folder.ok("train tree --train ids.jsonl --validation digits.csv --model t --json");
    assert_eq!(json(&shown)["P@1"], 1.0, "{shown}");
}

#[test]
fn a_byte_order_mark_in_a_side_file_changes_nothing() {
    let folder = Folder::new();
    folder.write("d.jsonl", rows(&["n0", "n1", "n2", "n3"]));
    folder.write("truth.txt", "4 1 4\n0 0:1\n1 0:1\n2 0:1\n3 0:1\n");
    folder.write("p.txt", "0:1 1:0.5\n1:1\n0:1\n3:1\n");
    folder.write("v.npy", crate::program::npy(40, 4, |row, at| ((row * 7 + at * 3) % 11) as f32));
    folder.ok("train tree --train d.jsonl --model m");
    folder.ok("index build --vectors v.npy --metric l2 --output i");
    let weights = "1\n".repeat(16);
    for (content, command) in [
        ("n2\n", "predict --model m --input d.jsonl --only-labels SIDE"),
        ("1,2\n".repeat(16).as_str(), "predict --model m --input d.jsonl --candidates SIDE"),
        ("1,2\n".repeat(16).as_str(), "predict --model m --input d.jsonl --exclude SIDE"),
        ("a\nb\nc\nd\n", "predict --model m --input d.jsonl --names --label-names SIDE"),
        (
            "{\"t\":\"a\"}\n{\"t\":\"b\"}\n{\"t\":\"c\"}\n{\"t\":\"d\"}\n",
            "predict --model m --input d.jsonl --names --label-names SIDE --label-names-field t",
        ),
        ("top-k = 2\n", "predict --model m --input d.jsonl --config SIDE"),
        ("2\n1\n2\n1\n", "evaluate --truth truth.txt --predictions p.txt --weights SIDE"),
        ("0 1\n", "evaluate --truth truth.txt --predictions p.txt --filter SIDE"),
        ("2\n", "evaluate --truth truth.txt --predictions p.txt --exclude-rows SIDE"),
        ("0:1\n\n2:1\n3:1\n", "evaluate --truth truth.txt --predictions SIDE"),
        ("0:1\n\n2:1\n3:1\n", "evaluate --truth truth.txt --predictions p.txt --compare SIDE --resamples 10"),
        (
            "4 1 4\n0 0:1\n1 0:1\n0 0:1\n0 0:1\n",
            "evaluate --truth truth.txt --predictions p.txt --propensity-from SIDE",
        ),
        ("3\n5\n", "index search --index i --queries v.npy --top-k 1 --filter SIDE"),
        ("n1\n", "convert --from xc m --to xc kept --keep-labels SIDE"),
        (&weights, "train tree --train d.jsonl --model t --instance-weights SIDE"),
    ] {
        let name = if content.starts_with('{') { "side.json" } else { "side" };
        let command = command.replace("SIDE", name);
        folder.write(name, content);
        let plain = folder.ok(&command);
        folder.write(name, format!("\u{feff}{content}"));
        assert_eq!(folder.ok(&command), plain, "{command}");
    }
}

#[test]
fn label_names_of_json_lines_want_a_field_and_messages_name_the_file_of_the_names() {
    let folder = Folder::new();
    folder.write("ids.txt", "4 2 3\n0 0:1\n1 1:1\n2 0:1 1:1\n0 0:1\n");
    folder.write(
        "lbl.json",
        "{\"uid\":\"x\",\"title\":\"a b\"}\n{\"uid\":\"y\",\"title\":\"3\"}\n{\"uid\":\"z\",\"title\":\"c\"}\n",
    );
    folder.xc("train tree --train ids.txt --label-names lbl.json --model m").refused(
        2,
        "lbl.json: line 1: a JSON object, expected a label name; a field of the object holds the name: state which of \
         \"title\", \"uid\" (--label-names-field NAME)",
    );
    folder.ok("train tree --train ids.txt --label-names lbl.json --label-names-field title --model m");
    assert_eq!(folder.read("m/labels.txt"), "a b\n3\nc\n");

    folder.write("few.txt", "a\nb\n");
    folder.write("d.jsonl", rows(&["a", "b", "c"]));
    folder
        .xc("train tree --train d.jsonl --label-names few.txt --model t")
        .refused(2, "d.jsonl: line 3: label name \"c\" is not among the 2 names of few.txt");
    folder.write("p.txt", "0:1\n2:1\n0:1\n1:1\n");
    folder
        .xc("evaluate --truth ids.txt --predictions p.txt --label-names few.txt")
        .refused(2, "p.txt: line 2: label 2 has no name: few.txt names 2 labels, from 0 on");
    folder.write("e.jsonl", "{\"text\":\"x\",\"labels\":[\"q\"]}\n".repeat(4));
    let refused = folder.xc("predict --model m --input ids.txt --candidates e.jsonl");
    refused.refused(2, "e.jsonl: line 1: label name \"q\" is not among the 3 names of m/labels.txt");
    let refused = folder.xc("predict --model m --input ids.txt --exclude e.jsonl");
    refused.refused(2, "e.jsonl: the model has none of its 4 excluded labels: the file is of other labels");
}
