//! Answers in files: the form follows the file's name.

use crate::program::{Folder, json, table};
use serde_json::Value;

fn folder() -> Folder {
    let folder = Folder::new();
    let rows: String = (0..4)
        .map(|i| format!("{{\"id\":\"r,{i}\",\"text\":\"tok{i} zed{i}\",\"labels\":[\"l,{i}\\\"\"]}}\n"))
        .collect();
    folder.write("d.jsonl", rows.repeat(4));
    folder.write("q.jsonl", format!("{rows}{{\"text\":\"unknown\"}}\n{{\"id\":7,\"text\":\"tok1\"}}\n"));
    folder.ok("train tree --train d.jsonl --model m");
    folder.write("v.npy", crate::program::npy(40, 4, |row, at| ((row * 7 + at * 3) % 11) as f32));
    folder.ok("index build --vectors v.npy --metric l2 --output i");
    folder
}

/// Rows of answers below the header.
fn answers(csv: &str) -> Vec<Vec<String>> {
    let mut rows = table(csv);
    assert_eq!(rows.remove(0), ["id", "rank", "label", "name", "score"]);
    rows
}

/// The same rows of answers in JSONL.
fn table_of(jsonl: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (number, line) in jsonl.lines().enumerate() {
        let answer = json(line);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let id = answer.get("id").map_or(number.to_string(), text);
        for (at, label) in answer["labels"].as_array().unwrap().iter().enumerate() {
            let name = answer.get("names").map_or(String::new(), |names| text(&names[at]));
            rows.push(vec![
                id.clone(),
                (at + 1).to_string(),
                label.to_string(),
                name,
                answer["scores"][at].to_string(),
            ]);
        }
    }
    rows
}

fn numbers(rows: Vec<Vec<String>>) -> Vec<(Vec<String>, f32)> {
    rows.into_iter()
        .map(|mut row| (row.split_off(4), row))
        .map(|(score, row)| (row, score[0].parse().unwrap()))
        .collect()
}

#[test]
fn the_form_of_answers_follows_the_name_of_the_file() {
    let folder = folder();
    for command in ["predict --model m --input q.jsonl --top-k 3", "index search --index i --queries v.npy --top-k 3"] {
        for form in ["npz", "jsonl", "csv", "lines"] {
            let name = if form == "lines" { "named.txt".to_owned() } else { format!("named.{form}") };
            folder.ok(&format!("{command} --output {name}"));
            folder.ok(&format!("{command} --output-format {form} --output given"));
            let read = |name: &str| std::fs::read(folder.path(name)).unwrap();
            assert_eq!(read(&name), read("given"), "{command} {form}");
            let begins: &[u8] = match form {
                "npz" => b"PK\x03\x04",
                "jsonl" => b"{",
                "csv" => b"id,rank,label,name,score\n",
                _ => b"",
            };
            assert!(read(&name).starts_with(begins), "{command} {form}");
        }
        let (csv, jsonl) = (folder.read("named.csv"), folder.read("named.jsonl"));
        assert_eq!(numbers(answers(&csv)), numbers(table_of(&jsonl)), "{csv}");
        for name in ["p.npy", "p.json", "p.tsv", "p.csv.gz", "p.parquet"] {
            let outcome = folder.xc(&format!("{command} --output {name}"));
            assert_eq!(outcome.code, 2, "{name}");
            assert!(outcome.stderr.contains("--output-format is expected"), "{}", outcome.stderr);
            assert!(!folder.path(name).exists());
        }
    }
}

#[test]
fn lines_of_stdin_are_answered_as_csv_with_their_numbers() {
    let folder = folder();
    let input = "tok1\n\n{\"id\":[1],\"text\":\"tok2\"}\ntok3\n";
    let outcome = folder.answered("predict --model m --input - --top-k 1 --output-format csv --threads 2", input);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let rows = answers(&outcome.stdout);
    let shown: Vec<[&str; 3]> = rows.iter().map(|row| [&*row[0], &*row[1], &*row[3]]).collect();
    assert_eq!(shown, [["0", "1", "l,1\""], ["[1]", "1", "l,2\""], ["3", "1", "l,3\""]]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_matrix_is_not_written_to_a_terminal() {
    let folder = folder();
    let program = env!("CARGO_BIN_EXE_xc");
    for command in [
        "predict --model m --input q.jsonl --output-format npz",
        "index search --index i --queries v.npy --output-format npz",
        "convert --from jsonl d.jsonl --to npz - --output-labels y.npz",
    ] {
        // `script` runs a command at a terminal of its own.
        let mut terminal = std::process::Command::new("script");
        terminal.args(["-qec", &format!("{program} {command}"), "/dev/null"]).current_dir(folder.path("."));
        let Ok(output) = terminal.stdin(std::process::Stdio::null()).output() else { return };
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{command}: {shown}");
        assert!(shown.contains("npz is binary and is not written to a terminal"), "{shown}");
        assert!(!shown.contains("PK"), "{shown}");
    }
    let outcome = folder.command("predict --model m --input q.jsonl --output-format npz").output().unwrap();
    assert!(outcome.stdout.starts_with(b"PK"));
}

#[test]
fn a_name_of_a_compressed_file_is_refused_by_every_command_that_writes_files() {
    let folder = folder();
    for command in [
        "predict --model m --input q.jsonl --output-format jsonl --output a.jsonl.gz",
        "convert --from jsonl d.jsonl --to csv a.csv.zst",
        "convert --from jsonl d.jsonl --to npz a.npz --output-labels l.npz.GZ",
        "evaluate --model m --input d.jsonl --per-label a.csv.xz",
        "evaluate --model m --input d.jsonl --worst a.jsonl.bz2",
    ] {
        let outcome = folder.xc(command);
        let name = command.rsplit(' ').next().unwrap();
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{command}: {outcome:?}");
        assert!(
            outcome.stderr.contains(&format!("{name}: files are not written compressed")),
            "{command}: {outcome:?}"
        );
        assert!(!folder.path(name).exists() && !folder.path("a.npz").exists());
    }
}
