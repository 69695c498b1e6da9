//! The examples run.

use std::collections::BTreeSet;

#[expect(dead_code, reason = "its main writes to stdout")]
#[path = "../../examples/in_memory.rs"]
mod in_memory;
#[path = "../../examples/usual.rs"]
mod usual_values;

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
