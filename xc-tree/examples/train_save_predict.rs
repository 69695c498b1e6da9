//! Features and labels to a model folder, and back to answers.
//!
//! cargo run -p xc-tree --example train_save_predict
#![allow(clippy::print_stdout)] // an example shows what it does

use xc_sparse::{CsrMatrix, LabelRows, SparseRow};
use xc_tree::{PredictParams, PredictScratch, TrainInput, TreeModel, TreeParams};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 1. Data: 600 instances of 40 labels. Label l shows in feature l, and a little in its
    //    neighbour's.
    let (n, n_labels) = (600, 40);
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n as u32 {
        let label = i % n_labels;
        let mut row = [(label, 1.0f32), ((label + 1) % n_labels, 0.2), (n_labels + i % 7, 0.5)];
        row.sort_by_key(|entry| entry.0);
        indices.extend(row.map(|entry| entry.0));
        values.extend(row.map(|entry| entry.1));
        indptr.push(indices.len());
    }
    let features = CsrMatrix::try_new((n, n_labels as usize + 7), indptr, indices, values)?;
    let labels = LabelRows::from_lists((0..n as u32).map(|i| [i % n_labels]), n_labels as usize)?;

    // 2. Train. The parameters hold all that makes the model; rows are scaled here and in every
    //    prediction.
    let mut params = TreeParams::default();
    params.cluster.max_leaf = 10;
    let model = TreeModel::train(&TrainInput::new(features.view(), &labels), &params)?;
    println!("{} trees of {} levels, {} weights", model.trees().len(), model.trees()[0].depth(), model.nnz());

    // 3. Save: the folder is there whole or not at all. Open: arrays are mapped, not read.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("my.model");
    model.save(&path)?;
    let model = TreeModel::open(&path)?;

    // 4. Ask. A server keeps the scratch: then a query allocates nothing.
    let query = SparseRow::try_new(&[3, 4], &[2.0, 0.4])?;
    let (params, mut scratch, mut answer) = (PredictParams::top(3), PredictScratch::default(), Vec::new());
    model.predict_one(query, &params, &mut scratch, &mut answer)?;
    for item in &answer {
        println!("label {}: {:.3}", item.label, item.score);
    }
    assert_eq!(answer[0].label, 3);
    assert_eq!(answer, model.predict(query, 3)?);
    Ok(())
}

#[test]
fn the_example_runs() {
    main().unwrap();
}
