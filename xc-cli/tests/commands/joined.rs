//! Two files that both say which row is which belong together by their ids, whichever option names the second.

use crate::program::{Folder, Outcome};

const LABELS: [&str; 4] = ["fig", "kiwi", "nut", "pear"];
const WORDS: [&str; 4] = ["purple", "hairy", "brown", "green"];

/// A row of the second file: its id and its labels.
type Row = (String, Vec<&'static str>);

/// Texts whose words say their label, with ids that are no numbers of rows.
fn folder() -> Folder {
    let folder = Folder::new();
    let line = |at: usize| format!("{{\"id\":\"i{at}\",\"text\":\"{} fruit w{at}\"}}\n", WORDS[at % 4]);
    folder.write("x.jsonl", (0..12).map(line).collect::<String>());
    let own = |at: usize| format!("{{\"text\":\"{} fruit\",\"labels\":[\"{}\"]}}\n", WORDS[at % 4], LABELS[at % 4]);
    folder.write("own.jsonl", (0..12).map(own).collect::<String>());
    folder.ok("train tree --train own.jsonl --model m --text.min-df 1");
    folder
}

fn rows(labels: impl Fn(usize) -> Vec<&'static str>) -> Vec<Row> {
    (0..12).map(|at| (format!("i{at}"), labels(at))).collect()
}

fn written(folder: &Folder, rows: &[Row]) {
    let line = |(id, labels): &Row| format!("{}\n", serde_json::json!({ "id": id, "labels": labels }));
    folder.write("y.jsonl", rows.iter().map(line).collect::<String>());
    let line = |(id, labels): &Row| format!("{id},{}\n", labels.join(";"));
    folder.write("y.csv", format!("id,labels\n{}", rows.iter().map(line).collect::<String>()));
}

/// What a command makes of the second file `y`: answers or the bytes of a file.
type Door = (&'static str, fn(&Folder, &str) -> Outcome, Option<&'static str>);

fn separated(folder: &Folder, command: &str, y: &str) -> Outcome {
    let separator = if y.ends_with("csv") { " --label-separator ;" } else { "" };
    folder.xc(&format!("{command} {y}{separator}"))
}

const DOORS: [Door; 6] = [
    (
        "train --train-labels",
        |folder, y| separated(folder, "train tree --train x.jsonl --model made --text.min-df 1 --train-labels", y),
        Some("made/config.json"),
    ),
    (
        "train --validation-labels",
        |folder, y| {
            let command = "train tree --train own.jsonl --model made --text.min-df 1 --validation x.jsonl --json \
                           --validation-labels";
            let outcome = separated(folder, command, y);
            let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
            Outcome { stdout: report["validation"].to_string(), ..outcome }
        },
        None,
    ),
    (
        "convert --input-labels",
        |folder, y| separated(folder, "convert --from jsonl x.jsonl --to csv made.csv --input-labels", y),
        Some("made.csv"),
    ),
    ("predict --candidates", |folder, y| separated(folder, "predict --model m --input x.jsonl --candidates", y), None),
    ("predict --exclude", |folder, y| separated(folder, "predict --model m --input x.jsonl --exclude", y), None),
    (
        "evaluate --truth",
        |folder, y| {
            let answered = folder.ok("predict --model m --input x.jsonl --output-format jsonl");
            folder.write("p.jsonl", answered);
            let separator = if y.ends_with("csv") { " --label-separator ;" } else { "" };
            folder.xc(&format!("evaluate --model m --truth {y} --predictions p.jsonl{separator}"))
        },
        None,
    ),
];

#[test]
fn rows_in_another_order_are_found_by_their_ids_whatever_the_door() {
    let folder = folder();
    let rows =
        rows(|at| if at % 3 == 0 { vec![LABELS[(at + 1) % 4]] } else { vec![LABELS[at % 4], LABELS[(at + 2) % 4]] });
    for (door, run, file) in DOORS {
        let made = |rows: &[Row], y: &str| {
            written(&folder, rows);
            let outcome = run(&folder, y);
            assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{door}, {y}");
            outcome.stdout + &file.map_or_else(String::new, |name| folder.read(name))
        };
        for y in ["y.jsonl", "y.csv"] {
            let expected = made(&rows, y);
            let reversed: Vec<Row> = rows.iter().rev().cloned().collect();
            let larger = [vec![("more".to_owned(), vec!["fig"])], reversed.clone()].concat();
            let behind = [rows.clone(), vec![("more".to_owned(), vec!["fig"])]].concat();
            // Of the truth further rows are instances without an answer.
            let others = if door.starts_with("evaluate") { vec![reversed] } else { vec![reversed, larger, behind] };
            for other in others {
                assert_eq!(made(&other, y), expected, "{door}, {y}: {other:?}");
            }
            if door.starts_with("evaluate") {
                continue;
            }
            let mut lacking = rows[1..].to_vec();
            lacking.reverse();
            written(&folder, &lacking);
            let outcome = run(&folder, y);
            if door.ends_with("exclude") {
                assert_eq!(outcome.code, 0, "{door}: an instance without a row excludes nothing: {}", outcome.stderr);
            } else {
                assert_eq!(outcome.code, 2, "{door}");
                assert!(outcome.error().contains("no row has the id \"i0\""), "{door}: {}", outcome.stderr);
            }
            let repeated = [vec![rows[3].clone()], rows.iter().rev().cloned().collect()].concat();
            written(&folder, &repeated);
            let outcome = run(&folder, y);
            assert_eq!(outcome.code, 2, "{door}");
            assert!(outcome.error().contains("the id \"i3\" again"), "{door}: {}", outcome.stderr);
        }
    }
}

#[test]
fn ids_that_agree_row_by_row_may_occur_again_and_be_absent() {
    let folder = folder();
    let x = |id: &str| format!("{{{id}\"text\":\"green\"}}\n");
    let y = |id: &str| format!("{{{id}\"labels\":[\"nut\"]}}\n");
    let ids = ["\"id\":7,", "", "\"id\":\"7\",", "\"id\":8,"];
    folder.write("q.jsonl", ids.map(x).concat());
    folder.write("y.jsonl", ids.map(y).concat());
    let answers = folder.ok("predict --model m --input q.jsonl --candidates y.jsonl --names --top-k 1");
    assert!(answers.lines().count() == 4 && answers.lines().all(|line| line.starts_with("nut:")), "{answers}");
}

#[test]
fn requests_find_their_rows_by_their_ids() {
    let folder = folder();
    let rows = rows(|at| vec![LABELS[at % 4]]);
    written(&folder, &rows.iter().rev().cloned().collect::<Vec<_>>());
    let requests = (0..12).map(|at| format!("{{\"id\":\"i{at}\",\"text\":\"fruit\"}}\n")).collect::<String>();
    let outcome = folder.answered("predict --model m --input - --names --candidates y.jsonl --quiet", requests);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    let names: Vec<&str> = outcome.stdout.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(names, (0..12).map(|at| LABELS[at % 4]).collect::<Vec<_>>());
}

#[test]
fn texts_of_labels_belong_to_the_labels_that_their_ids_name() {
    let folder = folder();
    let text = |at: usize| format!("{{\"id\":\"{}\",\"text\":\"said of {} w{at}\"}}\n", LABELS[at], LABELS[at]);
    let train = |order: &[usize]| {
        folder.write("labels.jsonl", order.iter().map(|&at| text(at)).collect::<String>());
        folder.xc("train tree --train own.jsonl --model made --text.min-df 1 --cluster.representation label-features --label-features labels.jsonl --json")
    };
    let bytes = || ["config.json", "labels.txt"].map(|name| folder.read(&format!("made/{name}")));
    assert_eq!(train(&[0, 1, 2, 3]).code, 0);
    let expected = bytes();
    assert_eq!(train(&[3, 1, 0, 2]).code, 0);
    assert_eq!(bytes(), expected);
    let lacking = train(&[3, 1, 0]);
    assert_eq!(lacking.code, 2);
    assert!(lacking.error().contains("no row has the id \"nut\", which is that of label 2"), "{}", lacking.stderr);
    // Ids that are the labels' numbers.
    let numbered = |order: [usize; 4]| {
        let line = |at: usize| format!("{{\"id\":{at},\"text\":\"said of {} w{at}\"}}\n", LABELS[at]);
        folder.write("labels.jsonl", order.map(line).concat());
        folder.ok("train tree --train own.jsonl --model made --text.min-df 1 --cluster.representation label-features --label-features labels.jsonl");
        bytes()
    };
    assert_eq!(numbered([2, 0, 3, 1]), expected);
}

#[test]
fn names_of_labels_belong_to_the_numbers_beside_them() {
    let folder = Folder::new();
    folder.write("t.txt", "4 4 4\n0 0:1\n1 1:1\n2 2:1\n3 3:1\n");
    let names = |order: &[(i64, &str)]| {
        order.iter().map(|(id, n)| format!("{{\"id\":{id},\"name\":\"{n}\"}}\n")).collect::<String>()
    };
    let train = |field: &str| {
        folder.xc(&format!("train tree --train t.txt --model m --label-names n.txt --label-names-{field}"))
    };
    folder.write("n.txt", names(&[(1, "b"), (0, "a"), (3, "d"), (2, "c")]));
    assert_eq!(train("field name").code, 0);
    assert_eq!(folder.read("m/labels.txt"), "a\nb\nc\nd\n");
    folder.write("n.txt", "1\tb\n0\ta\n3\td\n2\tc\n");
    assert_eq!(train("column 2").code, 0);
    assert_eq!(folder.read("m/labels.txt"), "a\nb\nc\nd\n");
    // Keys of another table, in the order of the labels.
    folder.write("n.txt", names(&[(17, "a"), (20, "b"), (21, "c"), (93, "d")]));
    assert_eq!(train("field name").code, 0);
    assert_eq!(folder.read("m/labels.txt"), "a\nb\nc\nd\n");
    for wrong in [
        [(0, "a"), (1, "b"), (2, "c"), (5, "d")],
        [(7, "a"), (1, "b"), (2, "c"), (3, "d")],
        [(0, "a"), (0, "b"), (1, "c"), (2, "d")],
    ] {
        folder.write("n.txt", names(&wrong));
        let refused = train("field name");
        assert!(refused.code == 2 && refused.stderr.contains("the id "), "{wrong:?}: {}", refused.stderr);
    }
}
