//! Pipes and signals: answers line by line, readers that go away, Ctrl-C.

use crate::program::{Folder, Stream, contents, json, wait_until};
use std::io::Write;
use std::process::Command;

/// Runs the program from a shell that does something before.
fn after(folder: &Folder, before: &str, arguments: &str) -> Stream {
    let xc = folder.command(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before}; exec \"$0\" \"$@\" --quiet")]).arg(xc.get_program()).args(xc.get_args());
    Stream::new(shell.current_dir(xc.get_current_dir().unwrap()))
}

fn text_model(folder: &Folder) {
    let rows = "{\"text\":\"dog barks loud\",\"labels\":[0]}\n{\"text\":\"cat purrs low\",\"labels\":[1]}\n";
    folder.write("train.jsonl", rows.repeat(5));
    folder.ok("train tree --train train.jsonl --model m");
}

#[test]
fn each_line_is_answered_before_the_next_is_sent() {
    let folder = Folder::new();
    text_model(&folder);
    let batch = folder.write("in.jsonl", "{\"text\":\"dog barks\"}\n{\"text\":\"a cat\"}\n{\"text\":\"\"}\n");
    let expected = folder.ok("predict --model m --input in.jsonl --top-k 2");
    let mut stream = folder.stream("predict --model m --input - --top-k 2");
    for (line, expected) in std::fs::read_to_string(batch).unwrap().lines().zip(expected.lines()) {
        stream.send(format!("{line}\n"));
        // Without an answer to this line the test would wait here for ever: the pipe stays open.
        assert_eq!(stream.line(), format!("{expected}\n"));
    }
    assert_eq!(stream.end(), (0, String::new()));
}

#[test]
fn a_model_that_is_truncated_while_it_answers_ends_with_a_line() {
    let folder = Folder::new();
    // Arrays of many pages: those that were touched when it was opened stay in memory.
    folder.ok("generate --test-instances 10 --features 20000 --labels 5000 --model m --output d");
    let mut stream = folder.stream("predict --model m --input - --trusted");
    stream.send("1:1\n");
    stream.line();
    for entry in std::fs::read_dir(folder.path("m")).unwrap().map(|e| e.unwrap().path()) {
        std::fs::File::options().write(true).open(entry).unwrap().set_len(10).unwrap();
    }
    // The program may have ended by then.
    let _ = stream.stdin.as_mut().unwrap().write_all("7:1 9:1 300:1 10000:1\n".repeat(100).as_bytes());
    let (code, said) = stream.end();
    assert_eq!((code, said.lines().count()), (2, 1), "{said}");
    assert!(said.starts_with("xc: error: a mapped file was truncated by another program"), "{said}");
}

#[test]
fn a_reader_that_goes_away_is_success() {
    let folder = Folder::new();
    folder.ok("generate --instances 4000 --labels 50 --features 500 --words 10 --no-text --output d");
    folder.ok("train tree --train d/test.txt --model m");
    let mut stream = folder.stream("predict --model m --input d/train.txt --top-k 50");
    assert!(stream.line().contains(':'));
    drop(stream.stdout.take());
    assert_eq!(stream.end(), (0, String::new()));
}

#[test]
fn ctrl_c_ends_a_wait_for_input_and_leaves_no_file() {
    let folder = Folder::new();
    text_model(&folder);
    let before = folder.names();
    let mut stream = folder.stream("predict --model m --input - --output answers.txt");
    stream.send("{\"text\":\"dog\"}\n");
    // The temporary output shows that the program has begun to answer.
    wait_until(|| folder.names().len() > before.len());
    stream.signal("INT");
    assert_eq!(stream.ended(), (130, "xc: error: interrupted\n".to_owned()));
    assert_eq!(folder.names(), before);
}

#[test]
fn a_stream_that_is_stopped_answers_the_lines_that_it_has_read() {
    let folder = Folder::new();
    text_model(&folder);
    // SIGTERM: SIGHUP is ignored where the tests themselves are to outlive a terminal.
    let mut stream = folder.stream("predict --model m --input - --output answers.txt");
    // The last line is not whole.
    stream.send("{\"text\":\"dog\"}\n".repeat(4000));
    stream.send("{\"text\":\"c");
    // The output is there before the model is read: its first bytes show that lines are answered.
    let written = |name: &String| std::fs::metadata(folder.path(name)).is_ok_and(|file| file.len() > 0);
    wait_until(|| folder.names().iter().any(|name| name.contains("answers") && written(name)));
    stream.signal("TERM");
    let (code, said) = stream.ended();
    assert_eq!((code, &*said), (0, ""));
    let answers = std::fs::read_to_string(folder.path("answers.txt")).unwrap();
    assert!((1..=4000).contains(&answers.lines().count()) && answers.ends_with('\n'));
    assert!(answers.lines().all(|line| line.starts_with("0:")));
    std::fs::remove_file(folder.path("answers.txt")).unwrap();
}

#[test]
fn a_program_that_is_to_outlive_its_terminal_does() {
    let folder = Folder::new();
    text_model(&folder);
    let mut stream = after(&folder, "trap '' HUP", "predict --model m --input - --top-k 1");
    for _ in 0..2 {
        stream.send("{\"text\":\"dog\"}\n");
        let answer = stream.line();
        assert!(answer.starts_with("0:"), "{answer}");
        stream.signal("HUP");
    }
    assert_eq!(stream.end(), (0, String::new()));
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_leaves_no_file() {
    let folder = Folder::new();
    text_model(&folder);
    let before = folder.names();
    for command in [
        "generate --instances 2000 --labels 50 --features 500 --words 10 --no-text --output d",
        "train tree --train train.jsonl --model n",
    ] {
        let (code, said) = after(&folder, "ulimit -f 1", command).end();
        assert_eq!(code, 1, "{command}: {said}");
        assert!(said.starts_with("xc: error: ") && said.lines().count() == 1, "{command}: {said}");
        assert!(said.to_lowercase().contains("file too large"), "{command}: {said}");
        // The output folder of a generation stays, empty.
        assert_eq!(std::fs::read_dir(folder.path("d")).unwrap().count(), 0, "{command}");
        std::fs::remove_dir(folder.path("d")).unwrap_or(());
        assert_eq!(folder.names(), before, "{command}");
        std::fs::create_dir(folder.path("d")).unwrap();
    }
}

#[test]
fn an_interrupted_training_leaves_its_checkpoint_alone_and_goes_on_to_the_same_bytes() {
    let folder = Folder::new();
    folder.ok("generate --instances 1500 --features 3000 --labels 120 --no-text --no-names --output d");
    let train = "train tree --train d/train.txt --trees 8";
    folder.ok(&format!("{train} --model straight"));
    for (signal, code, how) in [("INT", 130, "interrupted"), ("TERM", 143, "stopped")] {
        let mut child = folder.stream(&format!("{train} --model m"));
        wait_until(|| folder.path("m.checkpoint/tree-1-topology").exists());
        child.signal(signal);
        assert_eq!(child.ended(), (code, format!("xc: error: {how}; go on with --resume\n")));
        assert_eq!(folder.names(), ["d", "m.checkpoint", "straight", "straight.log"]);
        folder.ok(&format!("{train} --model m --resume"));
        assert_eq!(folder.names(), ["d", "m", "m.log", "straight", "straight.log"]);
        assert!(contents(&folder.path("m")) == contents(&folder.path("straight")), "the resumed model differs");
        std::fs::remove_dir_all(folder.path("m")).unwrap();
        std::fs::remove_dir_all(folder.path("m.log")).unwrap();
    }
}

#[test]
fn a_checkpoint_of_other_options_is_refused() {
    let folder = Folder::new();
    folder.ok("generate --instances 1500 --features 3000 --labels 120 --no-text --no-names --output d");
    let mut child = folder.stream("train tree --train d/train.txt --trees 8 --model m");
    wait_until(|| folder.path("m.checkpoint/tree-0-topology").exists());
    child.signal("INT");
    assert_eq!(child.ended().0, 130);
    let outcome = folder.xc("train tree --train d/train.txt --trees 8 --linear.cost 2 --model m --resume");
    assert_eq!(outcome.code, 2, "{outcome:?}");
    assert!(
        outcome.stderr.contains("m.checkpoint") && outcome.stderr.contains("other data or settings"),
        "{outcome:?}"
    );
    // The old work is dropped when that is asked for.
    folder.ok("train tree --train d/train.txt --trees 1 --linear.cost 2 --model m --restart");
    assert!(!folder.path("m.checkpoint").exists());
}

#[test]
fn an_interrupted_generation_leaves_nothing() {
    let folder = Folder::new();
    let mut child = folder.stream("generate --preset amazon-3m --output d");
    wait_until(|| folder.path("d").exists() && std::fs::read_dir(folder.path("d")).unwrap().count() > 0);
    child.signal("INT");
    assert_eq!(child.ended(), (130, "xc: error: interrupted\n".to_owned()));
    assert_eq!(std::fs::read_dir(folder.path("d")).unwrap().count(), 0);
}

#[test]
fn a_closed_stdout_is_an_error_and_not_a_success_that_says_nothing() {
    let folder = Folder::new();
    text_model(&folder);
    folder.write("in.jsonl", "{\"text\":\"dog barks\"}\n");
    for command in ["inspect m", "predict --model m --input in.jsonl"] {
        let ended = after(&folder, "exec >&-", command).end();
        assert_eq!(ended, (1, "xc: error: standard output: cannot write: it is closed\n".to_owned()), "{command}");
    }
    // Nothing of it is needed where answers go to a file.
    let ended = after(&folder, "exec >&-", "predict --model m --input in.jsonl --output answers").end();
    assert_eq!(ended, (0, String::new()));
    assert!(folder.read("answers").starts_with("0:"));
}

/// The model of a file, whatever its form and the kind that is trained; what messages call it; and nothing stays.
#[test]
fn training_takes_what_stdin_gives() {
    let folder = Folder::new();
    let rows: Vec<(String, usize)> =
        (0..24).map(|at| (format!("word{} fruit tree{}", at % 4, at % 3), at % 4)).collect();
    let line = |(text, label): &(String, usize)| format!("{{\"text\": \"{text}\", \"labels\": [\"l{label}\"]}}\n");
    let jsonl = rows.iter().map(line).collect::<String>();
    let fasttext = rows.iter().map(|(text, label)| format!("__label__l{label} {text}\n")).collect::<String>();
    let features =
        format!("24 9 4\n{}", (0..24).map(|at| format!("{} {}:1 8:0.5\n", at % 4, at % 8)).collect::<String>());
    for (train, given) in [
        ("tree --text.min-df 1", jsonl.as_bytes()),
        ("tree --text.min-df 1", fasttext.as_bytes()),
        ("tree --text.min-df 1 --validation-fraction 0.25", jsonl.as_bytes()),
        ("mach --repetitions 2 --buckets 3 --epochs 1 --network.widths 4", features.as_bytes()),
        ("skipgram --min-count 1 --network.widths 4 --epochs 1 --threads 1", fasttext.as_bytes()),
    ] {
        folder.write("file", given);
        folder.ok(&format!("train {train} --train file --model of-file"));
        folder.answered(&format!("train {train} --train - --model of-stdin --quiet"), given).quiet_success();
        assert!(contents(&folder.path("of-file")) == contents(&folder.path("of-stdin")), "{train}");
    }
    assert_eq!(json(&folder.read("of-stdin.log/train.json"))["train"], "standard input");
    let explained = folder.answered("train tree --train - --text.min-df 1 --explain", &jsonl).quiet_success();
    assert!(explained.contains(" standard input: 24 instances\n"), "{explained}");
    let mut left = folder.names();
    left.retain(|name| !name.starts_with("of-file"));
    assert_eq!(left, ["file", "of-stdin", "of-stdin.log", "of-stdin.vectors.txt"]);

    let wrong = format!("{jsonl}{{\"text\": 1}}\n");
    let outcome = folder.answered("train tree --train - --text.min-df 1 --model new", wrong);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("xc: error: standard input: line 25, column 10: "), "{}", outcome.stderr);
    folder
        .answered("train tree --train - --model new", "")
        .refused(2, "standard input: the file is empty, expected rows of instances");
    let outcome = folder.answered("train tree --train - --model absent/new", &jsonl);
    assert_eq!((outcome.code, folder.path("absent").exists()), (2, false), "{}", outcome.stderr);
    assert_eq!(folder.names().iter().filter(|name| name.starts_with("new") || name.starts_with('.')).count(), 0);
}

/// A signal while stdin is read ends the program, and nothing stays.
#[cfg(unix)]
#[test]
fn a_signal_ends_training_that_waits_for_stdin() {
    let folder = Folder::new();
    let mut stream = folder.stream("train tree --train - --model m");
    stream.send("{\"text\": \"a\", \"labels\": [\"b\"]}\n");
    wait_until(|| {
        folder.path("").read_dir().unwrap().flatten().any(|e| e.file_name().to_string_lossy().contains("stdin"))
    });
    stream.signal("INT");
    assert_eq!(stream.ended().0, 130);
    assert_eq!(folder.path("").read_dir().unwrap().count(), 0);
}
