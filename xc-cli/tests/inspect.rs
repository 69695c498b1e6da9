//! `xc inspect` from outside: output, messages and exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use xc_sparse::store::ContainerWriter;

fn xc(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xc")).args(arguments).output().unwrap()
}

fn inspect(model: &Path, more: &[&str]) -> (i32, String, String) {
    let mut arguments = vec!["inspect", model.to_str().unwrap()];
    arguments.extend(more);
    let output = xc(&arguments);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn model(folder: &Path) -> PathBuf {
    let path = folder.join("a.model");
    let mut writer = ContainerWriter::create(&path, "tree").unwrap();
    writer.set_parameter("beam", 10);
    writer.add_slice("values", &[1.0f32; 1000]).unwrap();
    writer.finish().unwrap();
    path
}

fn array_file(model: &Path) -> PathBuf {
    std::fs::read_dir(model)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "safetensors"))
        .unwrap()
}

/// One line, exit code 2, nothing on stdout.
fn refused(model: &Path, more: &[&str], wanted: &[&str]) {
    let (code, stdout, stderr) = inspect(model, more);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.starts_with("xc: error: ") && stderr.lines().count() == 1, "{stderr}");
    for part in wanted {
        assert!(stderr.contains(part), "{part:?} in {stderr}");
    }
}

#[test]
fn a_sound_model_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let (code, stdout, stderr) = inspect(&model, &["--verify"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("kind        tree (format version 1)\n"), "{stdout}");
    assert!(stdout.contains("content     as it was saved\n"), "{stdout}");
    let (code, stdout, _) = inspect(&model, &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &value["kind"], &value["parameters"]["beam"]), (0, &"tree".into(), &10.into()));
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    refused(&folder.path().join("absent"), &[], &["absent: no such folder"]);
    refused(folder.path(), &[], &["not an xc model"]);
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    refused(&file, &[], &["file: not a folder"]);
}

#[test]
fn a_truncated_model_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let arrays = array_file(&model);
    let bytes = std::fs::read(&arrays).unwrap();
    std::fs::write(&arrays, &bytes[..bytes.len() - 100]).unwrap();
    refused(&model, &[], &["safetensors", "truncated or damaged"]);
}

#[test]
fn a_flipped_bit_is_found_by_verify() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let arrays = array_file(&model);
    let mut bytes = std::fs::read(&arrays).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 4;
    std::fs::write(&arrays, &bytes).unwrap();
    assert_eq!(inspect(&model, &[]).0, 0, "the structure is sound");
    let (code, stdout, stderr) = inspect(&model, &["--verify"]);
    assert_eq!(code, 2);
    assert!(stdout.contains("damaged     "), "{stdout}");
    assert!(stderr.contains("array \"values\" has xxh3") && stderr.contains("damaged since it was saved"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn a_model_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let config = model.join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let newer = text.replacen("\"format_version\": 1", "\"format_version\": 99", 1);
    assert_ne!(text, newer, "{text}");
    std::fs::write(&config, newer).unwrap();
    refused(&model, &[], &["config.json", "format version 99", "use a newer xc"]);
}
