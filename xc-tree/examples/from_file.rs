//! From a file to answers with this crate and xc-data alone: `cargo run -p xc-tree --example from_file`.
use xc_data::{FileForm, HoldOut};
use xc_tree::{PredictParams, PredictScratch, TrainInput, TreeModel, TreeParams};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (folder, mut text) = (tempfile::tempdir()?, "600 47 40\n".to_owned());
    (0..600).for_each(|i| text += &format!("{} {}:1 {}:0.5\n", i % 40, i % 40, 40 + i * i % 7));
    std::fs::write(folder.path().join("train.txt"), text)?;

    let data = FileForm::default().read(folder.path().join("train.txt"))?; // the format is found
    let split = data.hold_out(HoldOut { share: 0.1, seed: 7, part: 0 });
    let (train, held_out) = (data.select(&split.kept), data.select(&split.held_out));
    let params = TreeParams { n_trees: 1, ..TreeParams::default() };
    let model = TreeModel::train(&TrainInput::new(train.rows().sparse()?, &train.labels), &params)?;
    model.save(folder.path().join("my.model"))?;
    let (mut scratch, mut best) = (PredictScratch::default(), Vec::new());
    for (row, truth) in held_out.rows().sparse()?.iter().zip(held_out.labels.iter()) {
        model.predict_one(row, &PredictParams::top(5), &mut scratch, &mut best)?;
        assert_eq!(best[0].label, truth[0]);
    }
    Ok(())
}

#[test]
fn the_example_runs() {
    main().unwrap();
}
