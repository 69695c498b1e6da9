//! Checkpoints from outside: what is the user's stays, what is ours is gone on with, and one
//! process at a time.

use crate::program::{Folder, contents, run};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DATA: &str = "generate --instances 1500 --features 3000 --labels 120 --no-text --no-names --output d";
/// Trainings of each kind that run for some seconds and save often.
const KINDS: [&str; 6] = [
    "tree --trees 40",
    "mach --repetitions 40 --buckets 20 --network.widths 24 --epochs 8 --batch-size 64 --checkpoint-every 2",
    "dense --network.widths 24 --epochs 400 --batch-size 64 --checkpoint-every 2",
    "lns --network.widths 24 --epochs 400 --batch-size 64 --checkpoint-every 2 --negatives.sampled 5 --negatives.uniform 40",
    "lns --network.widths 24 --epochs 400 --batch-size 64 --checkpoint-every 2 --negatives.sampled 9 --negatives.shared false --head.precision bf16",
    "uniform --network.widths 24 --epochs 400 --batch-size 64 --checkpoint-every 2",
];

fn train(kind: &str, more: &str) -> String {
    format!("train {kind} --train d/train.txt {more}")
}

fn start(folder: &Folder, arguments: &str) -> Child {
    let mut command = folder.command(arguments);
    command.arg("--quiet").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Interrupts a training run; gives its exit code and what it said.
fn interrupt(child: Child) -> (i32, String) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Waits until a checkpoint holds a part, at most a minute.
fn wait_for_part(checkpoint: &Path) {
    let start = Instant::now();
    while !has_part(checkpoint) {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing was saved");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn has_part(checkpoint: &Path) -> bool {
    let entries = std::fs::read_dir(checkpoint).into_iter().flatten().flatten();
    entries.into_iter().any(|e| {
        let name = e.file_name().to_string_lossy().into_owned();
        !name.starts_with('.') && e.path().join("config.json").exists()
    })
}

/// Every file below a folder with its content.
fn tree_of(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            out.push((entry.path(), None));
            out.extend(tree_of(&entry.path()));
        } else {
            out.push((entry.path(), Some(std::fs::read(entry.path()).unwrap())));
        }
    }
    out.sort();
    out
}

/// Exit code 2, one line that holds these words.
#[track_caller]
fn refused(folder: &Folder, arguments: &str, words: &[&str]) {
    let outcome = folder.xc(arguments);
    assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 1), "{arguments}: {outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{arguments}: {word:?} in {}", outcome.stderr);
    }
}

#[test]
fn folders_of_users_are_refused_and_stay_whatever_their_names() {
    let folder = Folder::new();
    folder.ok(DATA);
    std::fs::create_dir(folder.path("exp")).unwrap();
    folder.ok("train tree --train d/train.txt --trees 1 --model exp/tree-v1");
    for name in ["running-shoes", "finished-novel", "tree-house", "state", "tree-0", "running-0003"] {
        std::fs::create_dir_all(folder.path(&format!("one-{name}/{name}"))).unwrap();
        folder.write(&format!("one-{name}/{name}/notes.txt"), "mine");
    }
    let before = tree_of(&folder.path(""));
    for kind in KINDS {
        for resume in ["", "--resume", "--restart"] {
            for (mine, entry) in [
                ("exp", "tree-v1"),
                ("one-running-shoes", "running-shoes"),
                ("one-finished-novel", "finished-novel"),
                ("one-tree-house", "tree-house"),
                ("one-state", "state"),
                ("one-tree-0", "tree-0"),
                ("one-running-0003", "running-0003"),
            ] {
                refused(&folder, &train(kind, &format!("--model m --checkpoint {mine} {resume}")), &[mine, entry]);
            }
        }
    }
    assert!(tree_of(&folder.path("")) == before, "something of the user's changed");
}

#[test]
fn an_empty_folder_is_used_and_left_in_place() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (i, kind) in [
        "tree --trees 1",
        "mach --repetitions 1 --buckets 20 --network.widths 8 --epochs 1",
        "dense --network.widths 8 --epochs 1",
        "uniform --network.widths 8 --epochs 1",
    ]
    .iter()
    .enumerate()
    {
        std::fs::create_dir(folder.path("mine")).unwrap();
        folder.ok(&train(kind, &format!("--model m{i} --checkpoint mine")));
        assert!(tree_of(&folder.path("mine")).is_empty(), "{kind}");
        std::fs::remove_dir(folder.path("mine")).unwrap();
    }
}

#[test]
fn a_model_and_its_checkpoint_in_one_another_are_refused_before_the_work() {
    let folder = Folder::new();
    folder.ok(DATA);
    std::fs::create_dir(folder.path("out")).unwrap();
    folder.ok("train tree --train d/train.txt --trees 1 --model m");
    let before = tree_of(&folder.path(""));
    for kind in KINDS {
        refused(&folder, &train(kind, "--model out/model --checkpoint out"), &["out/model", "out"]);
        refused(&folder, &train(kind, "--model out --checkpoint out"), &["out"]);
        refused(&folder, &train(kind, "--model m --checkpoint m/checkpoint"), &["m/checkpoint"]);
        refused(&folder, &train(kind, "--model new --checkpoint new/checkpoint"), &["new"]);
    }
    assert!(tree_of(&folder.path("")) == before);
}

#[test]
fn a_repeated_command_keeps_the_checkpoint_and_names_what_goes_on() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (i, kind) in KINDS.iter().enumerate() {
        let (model, checkpoint) = (format!("m{i}"), format!("m{i}.checkpoint"));
        let child = start(&folder, &train(kind, &format!("--model {model}")));
        wait_for_part(&folder.path(&checkpoint));
        let (code, said) = interrupt(child);
        assert_eq!((code, &*said), (130, "xc: error: interrupted; go on with --resume\n"), "{kind}");
        let before = tree_of(&folder.path(&checkpoint));
        refused(&folder, &train(kind, &format!("--model {model}")), &[&checkpoint, "--resume", "--restart"]);
        assert!(tree_of(&folder.path(&checkpoint)) == before, "{kind}: the checkpoint changed");
        // A file of the user's in the folder of ours.
        folder.write(&format!("{checkpoint}/notes.txt"), "mine");
        let with_notes = tree_of(&folder.path(&checkpoint));
        for more in ["", "--resume", "--restart"] {
            refused(&folder, &train(kind, &format!("--model {model} {more}")), &[&checkpoint, "notes.txt"]);
        }
        assert!(tree_of(&folder.path(&checkpoint)) == with_notes, "{kind}: something changed");
    }
}

#[test]
fn a_refit_that_is_killed_in_either_training_goes_on_to_the_same_bytes() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (i, kind) in [
        "tree --trees 8",
        "lns --network.widths 24 --epochs 12 --batch-size 64 --checkpoint-every 2 --negatives.sampled 5 --negatives.uniform 40",
    ]
    .iter()
    .enumerate()
    {
        let command = |name: &str| train(kind, &format!("--validation-fraction 0.2 --model {name} --refit {name}r"));
        let whole = format!("whole{i}");
        folder.ok(&command(&whole));
        for part in ["", "r"] {
            let name = format!("k{i}{part}");
            let mut child = start(&folder, &command(&name));
            wait_for_part(&folder.path(&format!("{name}{part}.checkpoint")));
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(!folder.path(&format!("{name}r")).exists(), "{kind}: killed too late");
            folder.ok(&format!("{} --resume", command(&name)));
            for end in ["", "r"] {
                let [got, expected] = [&name, &whole].map(|model| contents(&folder.path(&format!("{model}{end}"))));
                assert!(got == expected, "{kind}: {name}{end}");
                assert!(!folder.path(&format!("{name}{end}.checkpoint")).exists());
            }
        }
    }
}

#[test]
fn restart_begins_anew_whatever_the_options_were() {
    let folder = Folder::new();
    folder.ok(DATA);
    let child = start(&folder, &train(KINDS[0], "--model m"));
    wait_for_part(&folder.path("m.checkpoint"));
    assert_eq!(interrupt(child).0, 130);
    let small = "train tree --train d/train.txt --trees 1 --linear.cost 2";
    refused(&folder, &format!("{small} --model m --resume"), &["m.checkpoint", "other data or settings"]);
    folder.ok(&format!("{small} --model m --restart"));
    folder.ok(&format!("{small} --model other"));
    assert!(contents(&folder.path("m")) == contents(&folder.path("other")));
    assert!(!folder.path("m.checkpoint").exists());
    refused(&folder, &format!("{small} --model m --restart --resume"), &["--restart", "--resume"]);
}

#[test]
fn a_second_start_is_refused_and_the_first_goes_on() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (i, kind) in KINDS.iter().enumerate() {
        let command = train(kind, &format!("--model m{i}"));
        let child = start(&folder, &command);
        wait_for_part(&folder.path(&format!("m{i}.checkpoint")));
        for more in ["", "--resume", "--restart"] {
            refused(&folder, &format!("{command} {more}"), &[&format!("m{i}.checkpoint"), "in use"]);
        }
        let (code, said) = interrupt(child);
        assert_eq!((code, &*said), (130, "xc: error: interrupted; go on with --resume\n"), "{kind}: the first goes on");
    }
}

#[test]
fn a_damaged_finished_repetition_is_refused() {
    let folder = Folder::new();
    folder.ok(DATA);
    let command = train(KINDS[1], "--model m");
    let child = start(&folder, &command);
    let finished = folder.path("m.checkpoint/finished-0000");
    let start = Instant::now();
    while !finished.join("config.json").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no repetition was finished");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(interrupt(child).0, 130);
    let file = finished.join("model-repetition-0000.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 64;
    std::fs::write(&file, bytes).unwrap();
    refused(&folder, &format!("{command} --resume"), &["model-repetition-0000.safetensors", "array \"r0."]);
    assert!(!folder.path("m").exists());
}

#[test]
fn a_part_of_one_tree_is_not_taken_for_that_of_another() {
    let folder = Folder::new();
    folder.ok(DATA);
    let command = train(KINDS[0], "--model m");
    let child = start(&folder, &command);
    let (zero, one) = (folder.path("m.checkpoint/tree-0-topology"), folder.path("m.checkpoint/tree-1-topology"));
    let start = Instant::now();
    while !one.join("config.json").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no second tree was begun");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(interrupt(child).0, 130);
    for (file, bytes) in contents(&one) {
        std::fs::write(zero.join(file), bytes).unwrap();
    }
    refused(&folder, &format!("{command} --resume"), &["m.checkpoint/tree-0-topology", "tree-1-topology"]);
}

#[test]
fn what_killed_saves_left_is_removed_by_the_next_run() {
    let folder = Folder::new();
    folder.ok(DATA);
    let command = train(KINDS[2], "--model m");
    let child = start(&folder, &command);
    wait_for_part(&folder.path("m.checkpoint"));
    assert_eq!(interrupt(child).0, 130);
    let partial = folder.path("m.checkpoint/.state.Ab3xYz.partial");
    std::fs::create_dir(&partial).unwrap();
    std::fs::write(partial.join("model.safetensors"), "half").unwrap();
    let child = start(&folder, &format!("{command} --resume"));
    let start = Instant::now();
    while partial.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "it is still there");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(interrupt(child).0, 130);
}

#[test]
fn what_would_fail_at_the_end_is_refused_at_the_beginning() {
    let folder = Folder::new();
    folder.ok(DATA);
    std::os::unix::fs::symlink("nowhere", folder.path("dangling")).unwrap();
    folder.write("m.log", "mine");
    for kind in KINDS {
        refused(&folder, &train(kind, "--model dangling"), &["dangling"]);
        refused(&folder, &train(kind, "--model m"), &["m.log"]);
        refused(&folder, &train(kind, "--model absent/m"), &["absent"]);
    }
    assert_eq!(folder.names(), ["d", "dangling", "m.log"]);
    // A model that would have its checkpoint and its log within itself.
    folder.ok("train tree --train d/train.txt --trees 1 --model n");
    let here = "train tree --train ../d/train.txt --trees 1 --model . --quiet";
    let outcome = run(folder.command(here).current_dir(folder.path("n")));
    outcome.refused(2, "--model .: a path that ends in a name is expected");
    assert_eq!(folder.names(), ["d", "dangling", "m.log", "n", "n.log"]);
}
