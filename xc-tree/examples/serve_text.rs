//! A model of texts in a folder, opened and asked by a program that answers line by line. It trains
//! the model it asks; for one that is trained already, of any kind, see
//! `xc-model/examples/serve.rs`.
//!
//! cargo run --release -p xc-tree --example serve_text < QUESTIONS
#![allow(clippy::print_stdout)] // an example shows what it does

use std::io::BufRead;
use std::path::Path;
use xc_hash::text::PipelineParams;
use xc_sparse::LabelRows;
use xc_tree::text::{TextModel, TextScratch};
use xc_tree::{PredictParams, TreeParams};

/// Answers each line: the whole of a server but its socket.
fn serve(model: &Path, questions: impl BufRead) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let model = TextModel::open(model)?;
    let (params, mut scratch, mut answer) = (PredictParams::top(2), TextScratch::default(), Vec::new());
    let mut best = Vec::new();
    for line in questions.lines() {
        model.predict_one(&line?, &params, &mut scratch, &mut answer);
        let shown: Vec<String> = answer.iter().map(|item| format!("{}:{:.3}", item.label, item.score)).collect();
        println!("{}", shown.join(" "));
        best.extend(answer.first().map(|item| item.label));
    }
    Ok(best)
}

fn run(questions: impl BufRead) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    // What somebody has trained before: label 0 is fishing, 1 transport, 2 taxes.
    let texts = [
        "rules on fishing nets",
        "fishing boats and nets",
        "transport by rail",
        "rail transport rules",
        "taxes on income",
        "income taxes rules",
    ];
    let labels = LabelRows::from_lists([[0], [0], [1], [1], [2], [2]], 3)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("my.model");
    TextModel::train(&texts, &labels, PipelineParams::default(), &TreeParams::default())?.save(&path)?;
    serve(&path, questions)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(std::io::stdin().lock()).map(drop)
}

#[test]
fn the_example_runs() {
    assert_eq!(run("New nets for fishing\nTAXES!".as_bytes()).unwrap(), [0, 2]);
}
