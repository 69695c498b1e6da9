//! Pipes and signals: answers line by line, readers that go away, Ctrl-C.

#![cfg(unix)]

mod program;

use program::{Folder, contents};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn piped(folder: &Folder, arguments: &str) -> Child {
    let mut command = folder.command(arguments);
    command.arg("--quiet").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    send(child, "INT");
}

fn send(child: &Child, signal: &str) {
    let signal = format!("-{signal}");
    assert!(Command::new("kill").args([&signal, &child.id().to_string()]).status().unwrap().success());
}

/// Runs the program from a shell that does something before.
fn after(folder: &Folder, before: &str, arguments: &str) -> Child {
    let xc = folder.command(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before}; exec \"$0\" \"$@\" --quiet")]).arg(xc.get_program()).args(xc.get_args());
    shell.current_dir(xc.get_current_dir().unwrap());
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(mut child: Child) -> (i32, String) {
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (status.code().unwrap(), stderr)
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
    let mut child = piped(&folder, "predict --model m --input - --top-k 2");
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for (line, expected) in std::fs::read_to_string(batch).unwrap().lines().zip(expected.lines()) {
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        // Without an answer to this line the test would wait here for ever: the pipe stays open.
        stdout.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("{expected}\n"));
    }
    drop(stdin);
    assert_eq!(end(child), (0, String::new()));
}

#[test]
fn plain_lines_are_text_and_a_bad_line_ends_the_answers() {
    let folder = Folder::new();
    text_model(&folder);
    for (input, answers, code, stderr) in [
        (&b"dog barks\ncat purrs\n"[..], 2, 0, ""),
        (b"", 0, 0, ""),
        (b"\xef\xbb\xbf{\"text\":\"dog\"}\n{\"text\":\n", 1, 2, "xc: error: standard input: line 2"),
        (b"{\"text\":\"dog\"}\n{\"text\":\n", 1, 2, "xc: error: standard input: line 2"),
    ] {
        let mut child = piped(&folder, "predict --model m --input - --top-k 1");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        assert_eq!(stdout.lines().count(), answers, "{stdout}");
        let (got_code, got) = end(child);
        assert_eq!(got_code, code, "{got}");
        assert!(got.starts_with(stderr) && got.is_empty() == stderr.is_empty(), "{got}");
    }
}

#[test]
fn a_model_that_is_truncated_while_it_answers_ends_with_a_line() {
    let folder = Folder::new();
    // Arrays of many pages: those that were touched when it was opened stay in memory.
    folder.ok("generate --instances 10 --features 20000 --labels 5000 --no-text --no-names --model m --output d");
    let mut child = piped(&folder, "predict --model m --input - --trusted");
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut answer = String::new();
    stdin.write_all(b"1:1\n").unwrap();
    stdout.read_line(&mut answer).unwrap();
    for entry in std::fs::read_dir(folder.path("m")).unwrap().map(|e| e.unwrap().path()) {
        std::fs::File::options().write(true).open(entry).unwrap().set_len(10).unwrap();
    }
    // The program may have ended by then.
    let _ = stdin.write_all("7:1 9:1 300:1 10000:1\n".repeat(100).as_bytes());
    drop(stdin);
    let (code, said) = end(child);
    assert_eq!((code, said.lines().count()), (2, 1), "{said}");
    assert!(said.starts_with("xc: error: a mapped file was truncated by another program"), "{said}");
}

#[test]
fn a_reader_that_goes_away_is_success() {
    let folder = Folder::new();
    folder.ok("generate --instances 4000 --labels 50 --features 500 --words 10 --no-text --output d");
    folder.ok("train tree --train d/test.txt --model m");
    let mut child = piped(&folder, "predict --model m --input d/train.txt --top-k 50");
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains(':'));
    drop(stdout);
    assert_eq!(end(child), (0, String::new()));
}

#[test]
fn ctrl_c_ends_a_wait_for_input_and_leaves_no_file() {
    let folder = Folder::new();
    text_model(&folder);
    let before = folder.names();
    let mut child = piped(&folder, "predict --model m --input - --output answers.txt");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"text\":\"dog\"}\n").unwrap();
    // The temporary output shows that the program has begun to answer.
    wait_until(|| folder.names().len() > before.len());
    interrupt(&child);
    assert_eq!(end(child), (130, "xc: error: interrupted\n".to_owned()));
    assert_eq!(folder.names(), before);
}

#[test]
fn a_stream_that_is_stopped_answers_the_lines_that_it_has_read() {
    let folder = Folder::new();
    text_model(&folder);
    // SIGTERM: SIGHUP is ignored where the tests themselves are to outlive a terminal.
    let mut child = piped(&folder, "predict --model m --input - --output answers.txt");
    let mut stdin = child.stdin.take().unwrap();
    // The last line is not whole.
    stdin.write_all("{\"text\":\"dog\"}\n".repeat(4000).as_bytes()).unwrap();
    stdin.write_all(b"{\"text\":\"c").unwrap();
    wait_until(|| folder.names().iter().any(|name| name.contains("answers")));
    send(&child, "TERM");
    let (code, said) = end(child);
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
    let mut child = after(&folder, "trap '' HUP", "predict --model m --input - --top-k 1");
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut stdout = BufReader::new(stdout);
    for _ in 0..2 {
        stdin.write_all(b"{\"text\":\"dog\"}\n").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.starts_with("0:"), "{answer}");
        send(&child, "HUP");
    }
    drop(stdin);
    assert_eq!(end(child), (0, String::new()));
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
        let (code, said) = end(after(&folder, "ulimit -f 1", command));
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
        let child = piped(&folder, &format!("{train} --model m"));
        wait_until(|| folder.path("m.checkpoint/tree-1-topology").exists());
        send(&child, signal);
        assert_eq!(end(child), (code, format!("xc: error: {how}; go on with --resume\n")));
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
    let child = piped(&folder, "train tree --train d/train.txt --trees 8 --model m");
    wait_until(|| folder.path("m.checkpoint/tree-0-topology").exists());
    interrupt(&child);
    assert_eq!(end(child).0, 130);
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
    let child = piped(&folder, "generate --preset amazon-3m --output d");
    wait_until(|| folder.path("d").exists() && std::fs::read_dir(folder.path("d")).unwrap().count() > 0);
    interrupt(&child);
    assert_eq!(end(child), (130, "xc: error: interrupted\n".to_owned()));
    assert_eq!(std::fs::read_dir(folder.path("d")).unwrap().count(), 0);
}

/// Waits for an event of another process, at most a minute.
fn wait_until(mut event: impl FnMut() -> bool) {
    let start = Instant::now();
    while !event() {
        assert!(start.elapsed() < Duration::from_secs(60), "it did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}
