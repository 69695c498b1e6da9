//! The example runs on a model that is trained here.

#[expect(dead_code, reason = "its main reads arguments")]
#[path = "../../../xc-model/examples/serve.rs"]
mod serve;

use crate::folders::{self, Front};
use xc_model::Model;

#[test]
fn the_example_answers_every_line_with_names() {
    let folder = tempfile::tempdir().unwrap();
    folders::tree(folder.path(), Front::Text, 1);
    let mut out = Vec::new();
    serve::serve(&Model::open(folder.path()).unwrap(), &b"alpha3 beta3\nalpha17 gamma2 delta\n"[..], &mut out).unwrap();
    let lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("label 3 0.") && lines[1].starts_with("label 17 0."), "{lines:?}");
}
