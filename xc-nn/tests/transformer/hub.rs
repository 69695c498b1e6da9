//! Folders by the names of their repositories, in the cache of Hugging Face's programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use xc_nn::encoder::transformer::{FolderError, find_folder_by};

/// Where each way to say the place of the cache leads to.
fn caches(root: &Path) -> [(Vec<(&'static str, PathBuf)>, PathBuf); 5] {
    let at = |path: &str| root.join(path);
    [
        (vec![("HF_HUB_CACHE", at("a")), ("HF_HOME", at("no")), ("HOME", at("no"))], at("a")),
        (vec![("HF_HUB_CACHE", PathBuf::new()), ("HF_HOME", at("b")), ("XDG_CACHE_HOME", at("no"))], at("b/hub")),
        (vec![("XDG_CACHE_HOME", at("c")), ("HOME", at("no"))], at("c/huggingface/hub")),
        (vec![("HOME", at("d"))], at("d/.cache/huggingface/hub")),
        (vec![("HF_HOME", at("e")), ("HOME", at("d"))], at("e/hub")),
    ]
}

fn found(name: &str, variables: &[(&str, PathBuf)]) -> Result<PathBuf, FolderError> {
    let of = |wanted: &str| -> Option<OsString> {
        variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone().into_os_string())
    };
    find_folder_by(Path::new(name), of)
}

#[test]
fn a_repository_is_the_snapshot_that_its_main_branch_names() {
    for (name, folder) in [("org/small.bert-1_x", "models--org--small.bert-1_x"), ("bert", "models--bert")] {
        let root = tempfile::tempdir().unwrap();
        for (variables, cache) in caches(root.path()) {
            let at = cache.join(folder);
            let said = || found(name, &variables).unwrap_err().to_string();
            let expected = format!(
                "{name}: no such folder, and no model of this name in {}; `hf download {name}` ",
                cache.display()
            );
            assert!(said().starts_with(&expected), "{}", said());
            std::fs::create_dir_all(at.join("refs")).unwrap();
            let expected = |what: &str| {
                format!("{}: {what}; `hf download {name}` fetches it again, or name a folder", at.display())
            };
            assert_eq!(said(), expected("no refs/main"));
            for wrong in ["", "../..", "0a 1b", "/tmp"] {
                std::fs::write(at.join("refs/main"), wrong).unwrap();
                assert_eq!(said(), expected("refs/main names no snapshot"), "{wrong:?}");
            }
            std::fs::write(at.join("refs/main"), "0a1b\n").unwrap();
            assert_eq!(said(), expected("no snapshots/0a1b"));
            std::fs::create_dir_all(at.join("snapshots/0a1b")).unwrap();
            assert_eq!(found(name, &variables).unwrap(), at.join("snapshots/0a1b"));
        }
    }
}

#[test]
fn a_folder_is_itself_and_what_is_no_name_is_not_looked_for() {
    let root = tempfile::tempdir().unwrap();
    let cache = [("HF_HUB_CACHE", root.path().to_owned())];
    let at = root.path().join("models--bert");
    std::fs::create_dir_all(&at).unwrap();
    let named = at.display().to_string();
    assert_eq!(found(&named, &cache).unwrap(), at);
    for name in ["", "a/b/c", "../bert", "./bert", "bert/", "/bert", "a b", "é", "-x"] {
        let said = found(name, &cache).unwrap_err();
        assert!(matches!(said, FolderError::NoFolder { .. }), "{name}: {said}");
    }
    assert!(matches!(found("bert", &[]).unwrap_err(), FolderError::NoFolder { .. }), "no place is known");
}
