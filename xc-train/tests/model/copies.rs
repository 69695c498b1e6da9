//! What a model says about itself, its copies and its labels.

use crate::folders::{self, Front, N_LABELS};
use xc_model::{Model, QueryOptions, Rows};

#[test]
fn a_copy_answers_alike_and_a_model_knows_that_it_was_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("m"), folder.path().join("copy"));
    folders::tree(&path, Front::Plain, 3);
    let model = Model::open(&path).unwrap();
    let names = model.label_names().unwrap().unwrap();
    model.save(&copy).unwrap();
    let copy = Model::open(&copy).unwrap();
    let rows = folders::rows(20);
    let ask = |model: &Model| model.predict_batch(Rows::Sparse(rows.view()), &QueryOptions::default()).unwrap();
    assert_eq!(ask(&copy), ask(&model));

    assert!(!model.was_replaced());
    folders::tree(&path, Front::Plain, 1);
    assert!(model.was_replaced() && !copy.was_replaced() && !Model::open(&path).unwrap().was_replaced());
    // The names are read from the folder that was opened.
    for (label, name) in names.iter().enumerate() {
        assert_eq!(model.name_of(label as u32).unwrap(), Some(&**name));
    }
    assert_eq!(model.name_of(N_LABELS as u32).unwrap(), None);
    assert!(!model.describe().calibrated);
}
