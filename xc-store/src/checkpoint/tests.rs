//! What is taken for a checkpoint, what is refused, and what is removed.

use super::*;
use std::fs;

const LAYOUT: CheckpointLayout = CheckpointLayout { system: "sum", parts: &["state", "term-#-of-#"] };

fn begin(path: &Path, key: &str) -> Result<Checkpoint, CheckpointError> {
    CheckpointFolder::claim(path, LAYOUT)?.begin(key.to_owned())
}

fn save(checkpoint: &Checkpoint, part: &str, value: u64) {
    checkpoint.save::<WriteError>(part, KIND, |writer| writer.add_slice("value", &[value])).unwrap();
}

fn value(checkpoint: &Checkpoint, part: &str) -> Option<u64> {
    checkpoint.part(part).unwrap().map(|container| container.array::<u64>("value").unwrap()[0])
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn patterns_stand_for_numbers_alone() {
    for (pattern, name, expected) in [
        ("state", "state", true),
        ("state", "state-", false),
        ("term-#-of-#", "term-0-of-12", true),
        ("term-#-of-#", "term--of-12", false),
        ("term-#-of-#", "term-1-of-", false),
        ("term-#-of-#", "term-1-of-2x", false),
        ("tree-#", "tree-v1", false),
        ("tree-#", "tree-house", false),
        ("running-#", "running-shoes", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
    assert!(LAYOUT.is_leftover(".state.Ab3xYz.partial") && LAYOUT.is_leftover(".term-1-of-2.removed.partial"));
    assert!(!LAYOUT.is_leftover(".other.Ab3xYz.partial") && !LAYOUT.is_leftover(".state.partial"));
}

#[test]
fn parts_are_found_again_and_finish_removes_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    for existed in [false, true] {
        let path = folder.path().join("c");
        if existed {
            fs::create_dir(&path).unwrap();
        }
        let checkpoint = begin(&path, "k").unwrap();
        save(&checkpoint, "state", 1);
        save(&checkpoint, "state", 2);
        save(&checkpoint, "term-3-of-4", 3);
        drop(checkpoint);
        let checkpoint = begin(&path, "k").unwrap();
        assert_eq!((value(&checkpoint, "state"), value(&checkpoint, "term-3-of-4")), (Some(2), Some(3)));
        assert_eq!(value(&checkpoint, "term-0-of-4"), None);
        checkpoint.remove("state").unwrap();
        checkpoint.remove("state").unwrap();
        assert_eq!(value(&checkpoint, "state"), None);
        checkpoint.finish().unwrap();
        assert_eq!(path.exists(), existed, "a folder that was there stays");
        assert!(!existed || names(&path).is_empty());
    }
}

#[test]
fn a_folder_without_parts_is_left_as_it_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    drop(CheckpointFolder::claim(&path, LAYOUT).unwrap());
    assert!(!path.exists());
    drop(begin(&path, "k").unwrap());
    assert!(!path.exists());
    fs::create_dir(&path).unwrap();
    drop(begin(&path, "k").unwrap());
    assert!(names(&path).is_empty());
    // A process that was killed before it saved anything: another training may begin there.
    let folder = CheckpointFolder::claim(&path, LAYOUT).unwrap();
    folder.folder().write_marker("k").unwrap();
    std::mem::forget(folder);
    assert_eq!(names(&path), [".xc-lock", "config.json"]);
}

#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let first = begin(&path, "k").unwrap();
    save(&first, "state", 1);
    let second = begin(&path, "k").unwrap_err();
    assert!(matches!(second, CheckpointError::InUse { .. }), "{second}");
    assert_eq!(value(&first, "state"), Some(1));
    drop(first);
    assert_eq!(value(&begin(&path, "k").unwrap(), "state"), Some(1));
}

#[test]
fn a_folder_that_was_made_goes_though_its_first_process_was_killed_before_it_began() {
    let place = tempfile::tempdir().unwrap();
    let [made, empty] = ["made", "empty"].map(|name| place.path().join(name));
    std::fs::create_dir(&empty).unwrap();
    for path in [&made, &empty] {
        let claimed = CheckpointFolder::claim(path, LAYOUT).unwrap();
        // As a killed process leaves it: the lock is free, and its file stays.
        let lock = path.join(".xc-lock");
        let noted = std::fs::read(&lock).unwrap();
        drop(claimed);
        std::fs::create_dir_all(path).unwrap();
        std::fs::write(&lock, noted).unwrap();
        begin(path, "k").unwrap().finish().unwrap();
    }
    assert_eq!(names(place.path()), ["empty"]);
    assert!(names(&empty).is_empty());
}

#[test]
fn what_is_not_ours_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let refused = |name: &str, is_folder: bool| {
        let entry = path.join(name);
        if is_folder { fs::create_dir_all(&entry) } else { fs::write(&entry, "mine") }.unwrap();
        let got = begin(&path, "k").map(|_| ()).unwrap_err();
        assert!(matches!(got, CheckpointError::Occupied { .. }), "{name}: {got}");
        assert!(entry.exists() && got.to_string().contains("holds"), "{got}");
        if is_folder { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) }.unwrap();
    };
    let foreign = || {
        for name in ["notes.txt", "state", "term-1-of-2", ".state.Ab3xYz.partial"] {
            refused(name, false);
        }
        for name in ["term-v1", "stately", ".other.Ab3xYz.partial", "config.json"] {
            refused(name, true);
        }
    };
    fs::create_dir(&path).unwrap();
    foreign();
    refused("config.json", false);
    assert!(names(&path).is_empty(), "not even a lock was made");
    // A folder with the name of a part is none.
    refused("state", true);
    let checkpoint = begin(&path, "k").unwrap();
    save(&checkpoint, "state", 1);
    drop(checkpoint);
    for name in ["notes.txt", "term-1-of-2", ".state.Ab3xYz.partial"] {
        refused(name, false);
    }
    for name in ["term-v1", "term-0-of-1", ".other.Ab3xYz.partial", "state/mine"] {
        refused(name, true);
    }
    refused("state/notes.txt", false);
    refused("state/model-mine.safetensors", false);
    assert_eq!(value(&begin(&path, "k").unwrap(), "state"), Some(1));
    // What comes while a training runs stays in the end, with the folder.
    let checkpoint = begin(&path, "k").unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();
    checkpoint.finish().unwrap();
    assert_eq!(names(&path), ["notes.txt"]);
}

#[test]
fn what_killed_saves_left_is_removed_by_the_next_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let checkpoint = begin(&path, "k").unwrap();
    save(&checkpoint, "state", 1);
    drop(checkpoint);
    for (name, file) in
        [(".state.Ab3xYz.partial", "model.safetensors"), (".term-1-of-2.removed.partial", "config.json")]
    {
        fs::create_dir(path.join(name)).unwrap();
        fs::write(path.join(name).join(file), "half").unwrap();
    }
    drop(begin(&path, "k").unwrap());
    assert_eq!(names(&path), [".xc-lock", "config.json", "state"]);
}

#[test]
fn other_keys_other_places_and_damage_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let checkpoint = begin(&path, "k").unwrap();
    save(&checkpoint, "state", 1);
    save(&checkpoint, "term-0-of-2", 2);
    let copy = |from: &str, to: &str| {
        fs::create_dir_all(path.join(to)).unwrap();
        for file in ["config.json", "model.safetensors"] {
            fs::copy(path.join(from).join(file), path.join(to).join(file)).unwrap();
        }
    };
    copy("term-0-of-2", "term-1-of-2");
    let got = checkpoint.part("term-1-of-2").unwrap_err();
    assert!(matches!(&got, CheckpointError::WrongPart { part, .. } if part == "term-0-of-2"), "{got}");
    drop(checkpoint);
    let got = begin(&path, "k").unwrap_err();
    assert!(matches!(got, CheckpointError::WrongPart { .. }), "{got}");
    fs::remove_dir_all(path.join("term-1-of-2")).unwrap();

    let got = begin(&path, "other").unwrap_err();
    assert!(matches!(got, CheckpointError::Foreign { .. }), "{got}");
    let product = CheckpointLayout { system: "product", ..LAYOUT };
    let got = CheckpointFolder::claim(&path, product).unwrap().begin("k".to_owned()).unwrap_err();
    assert!(matches!(got, CheckpointError::Foreign { .. }), "{got}");

    let file = path.join("state/model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let checkpoint = begin(&path, "k").unwrap();
    let got = checkpoint.part("state").unwrap_err().to_string();
    assert!(got.contains("array \"value\"") && got.contains("damaged"), "{got}");
    drop(checkpoint);
    // Cleared, it may begin with another key.
    let folder = CheckpointFolder::claim(&path, product).unwrap();
    folder.clear().unwrap();
    assert!(!folder.has_parts().unwrap());
    folder.begin("other".to_owned()).unwrap().finish().unwrap();
    assert!(!path.exists());
}

#[test]
fn keys_tell_parts_and_their_order_apart() {
    let of = |add: &dyn Fn(&mut CheckpointKey)| {
        let mut key = CheckpointKey::new("sum", 1);
        add(&mut key);
        key.finish()
    };
    let keys = [
        of(&|_| {}),
        of(&|key| key.text("ab")),
        of(&|key| (key.text("a"), key.text("b")).1),
        of(&|key| (key.text("b"), key.text("a")).1),
        of(&|key| key.numbers(&[1])),
        CheckpointKey::new("sum", 2).finish(),
    ];
    let unique: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(unique.len(), keys.len());
    assert!(keys.iter().all(|key| key.len() == 16));
}
