//! `xc inspect` from outside: output, messages and exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use xc_buffer::dtype::DType;
use xc_store::ContainerWriter;

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
    let mut writer = ContainerWriter::create(&path, "other").unwrap();
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
fn refused(model: &Path, more: &[&str], expected: &[&str]) {
    let (code, stdout, stderr) = inspect(model, more);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.starts_with("xc: error: ") && stderr.lines().count() == 1, "{stderr}");
    for part in expected {
        assert!(stderr.contains(part), "{part:?} in {stderr}");
    }
}

#[test]
fn a_sound_model_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let (code, stdout, stderr) = inspect(&model, &["--verify"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("kind        other (format version 1)\n"), "{stdout}");
    assert!(stdout.contains("content     as it was saved\n"), "{stdout}");
    let (code, stdout, _) = inspect(&model, &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &value["kind"], &value["parameters"]["beam"]), (0, &"other".into(), &10.into()));
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    refused(&folder.path().join("absent"), &[], &["absent: expected a model folder: No such file or directory"]);
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

#[test]
fn names_and_values_of_any_length_are_shown_and_obeyed_by_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    let mut writer = ContainerWriter::create(&path, "\u{1b}[31mkind").unwrap();
    writer.set_parameter(&"x".repeat(70_000), 1);
    writer.set_parameter("a\u{1b}[2J", "b\nc\u{9b}");
    writer.finish().unwrap();
    let (code, stdout, stderr) = inspect(&path, &[]);
    assert_eq!((code, &*stderr), (0, ""));
    assert!(stdout.contains("kind        \\u{1b}[31mkind") && stdout.contains("  a\\u{1b}[2J  "), "{}", &stdout[..500]);
    assert!(stdout.contains("  b\\nc\\u{9b}\n") && !stdout.contains(['\u{1b}', '\u{9b}']));
}

#[test]
fn verify_refuses_what_would_not_answer_and_looks_into_an_index() {
    let folder = crate::program::Folder::new();
    folder.ok("generate --instances 200 --features 100 --labels 40 --no-text --output d");
    folder.ok("train lns --train d/train.txt --network.widths 8 --epochs 1 --label-names d/labels.txt --model m");
    folder.ok("index build --model m");
    folder.ok("inspect m --verify");
    let file = array_file(&folder.path("m/index"));
    let sound = std::fs::read(&file).unwrap();
    let mut bytes = sound.clone();
    let last = bytes.len() - 5;
    bytes[last] ^= 4;
    std::fs::write(&file, bytes).unwrap();
    refused_with(&folder.path("m"), &["--verify"], &["m/index", "damaged since it was saved"]);
    std::fs::write(&file, &sound[..sound.len() - 64]).unwrap();
    refused_with(&folder.path("m"), &["--verify"], &["m/index", "truncated or damaged"]);
    std::fs::write(&file, sound).unwrap();
    folder.ok("inspect m --verify");

    // The same names twice, and names of fewer labels: hashes that fit, and no answer.
    for (names, words) in [(&["a", "a", "b", "c"][..], "\"a\""), (&["a", "b", "c"][..], "3 label names")] {
        let path = folder.path("named");
        tree_of_four_labels(&path, names);
        refused_with(&path, &["--verify"], &["named", words]);
        let outcome = folder.xc("predict --model named --input d/test.txt --names");
        assert_eq!(outcome.code, 2, "{outcome:?}");
        std::fs::remove_dir_all(path).unwrap();
    }
}

#[test]
fn verify_refuses_a_pipeline_that_cannot_be_used_whatever_the_kind_of_its_container() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, is_sound) in [("of-no-model", true), ("of-no-model", false), (xc_tree::KIND, false)] {
        let path = folder.path().join("m");
        let mut writer = ContainerWriter::create(&path, kind).unwrap();
        if !is_sound {
            writer.set_pipeline(serde_json::json!({ "params": { "blocks": [] } }));
        }
        writer.finish().unwrap();
        match is_sound {
            true => assert_eq!(inspect(&path, &["--verify"]).0, 0),
            false => refused_with(&path, &["--verify"], &[]),
        }
        std::fs::remove_dir_all(path).unwrap();
    }
}

/// Exit code 2 and one line that holds these words.
#[track_caller]
fn refused_with(model: &Path, more: &[&str], expected: &[&str]) {
    let (code, _, stderr) = inspect(model, more);
    assert_eq!((code, stderr.lines().count()), (2, 1), "{stderr}");
    expected.iter().for_each(|words| assert!(stderr.contains(words), "{words:?} in {stderr}"));
}

fn tree_of_four_labels(path: &Path, names: &[&str]) {
    use xc_sparse::chunked::ChunkRows;
    use xc_tree::{ModelInfo, PostProcessor, Topology, TreeModel, TreeParts};
    // Two clusters of two labels each; feature 0 is shared by the siblings of the first.
    let chunk = |entries: &[(u32, u32, f32)]| ChunkRows::from_entries(2, entries.to_vec(), vec![0.0; 2]).unwrap();
    let parts = TreeParts {
        topology: Topology::try_new(vec![vec![0, 2], vec![0, 2, 4]], vec![3, 1, 0, 2], 4).unwrap(),
        levels: vec![
            vec![chunk(&[(0, 0, 1.0), (1, 1, 1.0)])],
            vec![chunk(&[(0, 0, 1.0), (0, 1, 2.0), (2, 1, 1.0)]), chunk(&[(1, 0, 1.0)])],
        ],
    };
    let info = ModelInfo {
        n_features: 100,
        n_labels: 4,
        post: PostProcessor::Noop,
        normalise_rows: false,
        row_length: 1.0,
        beam: 10,
    };
    let model = TreeModel::from_parts(info, vec![parts], DType::F32).unwrap();
    let mut writer = ContainerWriter::create(path, xc_tree::KIND).unwrap();
    model.write(&mut writer).unwrap();
    if !names.is_empty() {
        writer.labels(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_tree_is_shown_level_by_level() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.model");
    tree_of_four_labels(&path, &[]);

    for verify in [&["--json"][..], &["--json", "--verify"]] {
        let (code, stdout, stderr) = inspect(&path, verify);
        assert_eq!(code, 0, "{stderr}");
        let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        let level = |l: usize, key: &str| value["levels"][l][key].as_f64().unwrap();
        assert_eq!([level(0, "parents"), level(0, "nodes"), level(0, "weights")], [1.0, 2.0, 2.0]);
        assert_eq!([level(1, "parents"), level(1, "nodes"), level(1, "weights")], [2.0, 4.0, 4.0]);
        assert_eq!([level(0, "siblings_per_row"), level(1, "siblings_per_row")], [1.0, 4.0 / 3.0]);
    }
    let (_, stdout, _) = inspect(&path, &[]);
    assert!(stdout.contains("tree  level  parents  nodes  weights  weights_per_node  siblings_per_row"), "{stdout}");
}
