use super::*;
use std::io::Write as _;

/// Names of what stands in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn full(into: &mut impl io::Write) -> io::Result<()> {
    into.write_all(b"half")?;
    Err(ErrorKind::StorageFull.into())
}

#[test]
fn a_file_that_failed_leaves_the_older_one_whole_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    fs::write(&path, "before").unwrap();
    let error = write_file(&path, full).unwrap_err();
    assert_eq!(
        (error.to_string(), error.source.kind()),
        (format!("{}: cannot write", path.display()), ErrorKind::StorageFull)
    );
    assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("before".into(), vec!["a.txt".into()]));
    write_file(&path, |out| out.write_all(b"after")).unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("after".into(), vec!["a.txt".into()]));
}

#[test]
fn a_file_is_not_there_before_it_is_committed_and_its_partial_has_a_name_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let mut file = OutputFile::create(&path).unwrap();
    file.write_all(b"x").unwrap();
    let present = names(folder.path());
    assert_eq!(present.len(), 1);
    assert_eq!(name_of_partial(&present[0]), Some("a.txt"));
    file.commit().unwrap();
    assert_eq!(names(folder.path()), ["a.txt"]);
}

#[test]
fn what_killed_writers_left_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    // As a process that was killed leaves them: nothing is dropped.
    std::mem::forget(OutputFile::create(&path).unwrap());
    let left = OutputFolder::create(&path).unwrap();
    left.file("a/b", |file| file.write_all(b"half")).unwrap();
    std::mem::forget(left);
    write_file(&path, |out| out.write_all(b"whole")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    fs::remove_file(&path).unwrap();
    let whole = OutputFolder::create(&path).unwrap();
    whole.file("a/b", |file| file.write_all(b"whole")).unwrap();
    whole.commit().unwrap();
    assert_eq!(fs::read_to_string(path.join("a/b")).unwrap(), "whole");
    assert_eq!(names(folder.path()).iter().filter(|name| name_of_partial(name) == Some("out")).count(), 2);
}

#[cfg(unix)]
#[test]
fn what_killed_writers_left_is_removed_by_the_next_one_and_nothing_else_is() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let under_way = OutputFile::create(&path("out")).unwrap();
    fs::write(path(".out.0123abcd.partial"), "half").unwrap();
    fs::create_dir_all(path(".out.ffffffff.partial/member-0")).unwrap();
    // Of other runs in this folder.
    fs::write(path(".other.0123abcd.partial"), "half").unwrap();
    fs::create_dir(path(".model.89abcdef.partial")).unwrap();
    let held = OutputFile::create(&path("held")).unwrap();
    let kept = [".out.0123ABCD.partial", ".out.removed.partial", ".out.0123abcd", "out.txt"];
    kept.iter().for_each(|name| fs::write(path(name), "mine").unwrap());
    write_file(&path("out"), |out| out.write_all(b"x")).unwrap();
    let mut left = names(place.path());
    left.retain(|name| !kept.contains(&name.as_str()) && name != "out");
    let of: Vec<Option<&str>> = left.iter().map(|name| name_of_partial(name)).collect();
    assert_eq!(of, [Some("held"), Some("out")], "{left:?}");
    assert_eq!(names(place.path()).len(), kept.len() + 3);
    drop((under_way, held));
    assert_eq!(names(place.path()).len(), kept.len() + 1);
}

#[test]
fn a_missing_parent_and_a_folder_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder.txt");
    assert_eq!(OutputFile::create(&missing).unwrap_err().source.kind(), ErrorKind::NotFound);
    assert_eq!(OutputFolder::create(&missing).unwrap_err().source.kind(), ErrorKind::NotFound);
    assert_eq!(OutputFile::create(folder.path()).unwrap_err().source.kind(), ErrorKind::IsADirectory);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_folder_that_failed_leaves_the_older_one_and_one_that_did_not_replaces_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("export");
    let write = |text: &str| {
        let folder = OutputFolder::create(&path).unwrap();
        folder.file("a", |file| file.write_all(text.as_bytes())).unwrap();
        folder
    };
    write("first").commit().unwrap();
    let failed = OutputFolder::create(&path).unwrap();
    assert_eq!(failed.file("a", full).unwrap_err().source.kind(), ErrorKind::StorageFull);
    drop(failed);
    assert!(write("second").commit().is_err(), "a filled folder stands there");
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "first");
    let refused = write("third").commit_over(|old| {
        assert_eq!(fs::read_to_string(old.join("a")).unwrap(), "first");
        Err(WriteFileError { path: old.to_owned(), doing: "replace", source: ErrorKind::DirectoryNotEmpty.into() })
    });
    assert!(refused.is_err_and(|error| error.doing == "replace"));
    assert_eq!(
        (fs::read_to_string(path.join("a")).unwrap(), names(place.path())),
        ("first".into(), vec!["export".into()])
    );
    write("third").commit_over(|_| Ok::<_, WriteFileError>(())).unwrap();
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "third");
    assert_eq!(names(place.path()), ["export"]);
    assert!(under_way().iter().all(|partial| !partial.starts_with(place.path())), "none is remembered");
}

#[test]
fn a_name_of_any_length_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["n".repeat(255), format!("a{}", "é".repeat(127))] {
        write_file(&folder.path().join(&name), |out| out.write_all(b"x")).unwrap();
        assert!(folder.path().join(&name).is_file());
    }
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn names_of_partial_files_are_told_from_others() {
    let of = [".a.txt.1f.partial", ".state.removed.partial", ".x.partial", "..1.partial", "a.1.partial", ".a.1.part"];
    assert_eq!(of.map(name_of_partial), [Some("a.txt"), Some("state"), None, None, None, None]);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_link_is_followed_and_one_to_nothing_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [target, link, dangling] = ["target", "link", "dangling"].map(|name| folder.path().join(name));
        fs::write(&target, "before").unwrap();
        symlink("target", &link).unwrap();
        symlink("nothing", &dangling).unwrap();
        write_file(&link, |out| out.write_all(b"after")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
        write_file(&dangling, |out| out.write_all(b"file")).unwrap();
        assert!(!dangling.is_symlink());
        assert_eq!(names(folder.path()), ["dangling", "link", "target"]);
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_file(&path, |out| out.write_all(b"after")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_device_and_a_pipe_are_written_directly() {
        let error = write_file(Path::new("/dev/full"), |out| out.write_all(b"x")).unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::StorageFull);
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write_file(&pipe, |out| out.write_all(b"through")).unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert_eq!(names(folder.path()), ["pipe"]);
    }
}

#[test]
fn what_is_being_written_is_known_between_two_writes_of_a_save_too() {
    let write = Writing::begin();
    assert!(is_writing());
    drop(write);
    assert!(is_writing());
}
