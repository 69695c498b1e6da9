//! The examples run.

use std::collections::BTreeSet;

#[expect(dead_code, reason = "its main writes to stdout")]
#[path = "../../examples/in_memory.rs"]
mod in_memory;
#[path = "../../examples/names.rs"]
mod names;
#[path = "../../examples/usual.rs"]
mod usual_values;

#[test]
fn texts_of_labels_in_a_file_are_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let lines = |texts: &[&str]| {
        texts.iter().map(|text| format!("{{\"text\": \"{text}\", \"labels\": [0]}}\n")).collect::<String>()
    };
    std::fs::write(path("train.jsonl"), lines(&["a mail client", "a web server"])).unwrap();
    std::fs::write(path("labels.jsonl"), lines(&["openssl", "thunderbird mail client", "nginx web server"])).unwrap();
    names::run(&[path("train.jsonl"), path("labels.jsonl"), path("m")]).unwrap();
    let about = xc_model::Model::open(path("m")).unwrap().describe();
    assert_eq!((about.kind, about.n_labels), ("names", 3));
    assert!(names::run(&[]).is_err());
}

#[test]
fn usual_values_are_changed_trained_asked_and_saved() {
    usual_values::main().unwrap();
}

#[test]
fn a_model_in_memory_answers_without_a_file() {
    let entries =
        || -> BTreeSet<_> { std::fs::read_dir(".").unwrap().map(|entry| entry.unwrap().file_name()).collect() };
    let (mut out, before) = (Vec::new(), entries());
    in_memory::run(&mut out).unwrap();
    let said = String::from_utf8(out).unwrap();
    assert!(said.starts_with("tree: 1 of 3 trees, ") && said.contains("\nlns: 1 of "), "{said}");
    assert_eq!(entries(), before);
}
