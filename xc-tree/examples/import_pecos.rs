//! A PECOS XLinear model becomes one of ours: read its folder, pack it, save it.
//!
//! cargo run -p xc-tree --example import_pecos -- [FOLDER that XLinearModel.save wrote]
#![allow(clippy::print_stdout)] // an example shows what it does

use std::path::{Path, PathBuf};
use xc_buffer::dtype::DType;
use xc_sparse::SparseRow;
use xc_sparse::chunked::ChunkRows;
use xc_tree::import::pecos::{self, PecosModel};
use xc_tree::{ModelInfo, PostProcessor, Topology, TreeModel, TreeParts};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(std::env::args_os().nth(1).map(PathBuf::from))
}

fn run(given: Option<PathBuf>) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let source = match given {
        Some(path) => path,
        None => write_one(&folder.path().join("pecos"))?,
    };

    // 1. Read. PECOS's folder says how its margins become scores; it never scales rows.
    let PecosModel { parts, post, beam, n_features, n_labels, .. } = pecos::import(&source)?;
    println!("{}: {n_features} features, {n_labels} labels, {} levels", source.display(), parts.topology.depth());

    // 2. Pack for prediction, and save.
    let info = ModelInfo { n_features, n_labels, post, normalise_rows: false, row_length: 1.0, beam };
    let model = TreeModel::from_parts(info, vec![parts], DType::F32)?;
    let path = folder.path().join("my.model");
    model.save(&path)?;

    // 3. Ask.
    let answer = TreeModel::open(&path)?.predict(SparseRow::try_new(&[0], &[1.0])?, 3)?;
    println!("feature 0 alone: {answer:?}");
    Ok(())
}

/// A PECOS folder of two features and four labels, written as PECOS writes it.
fn write_one(path: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let topology = Topology::try_new(vec![vec![0, 2], vec![0, 2, 4]], vec![0, 1, 2, 3], 4)?;
    // Feature 0 speaks for the first child of each parent, feature 1 for the second.
    let chunk = || ChunkRows::from_entries(2, vec![(0, 0, 1.0), (1, 1, 1.0)], vec![0.0; 2]);
    let parts = TreeParts { topology, levels: vec![vec![chunk()?], vec![chunk()?, chunk()?]] };
    let (post, level_top_k) = (PostProcessor::Hinge { p: 3 }, vec![10, 10]);
    let model = PecosModel { parts, post, beam: 10, level_top_k, n_features: 2, n_labels: 4, bias: 0.0 };
    pecos::export(&model, path)?;
    Ok(path.to_owned())
}

#[test]
fn the_example_runs() {
    run(None).unwrap();
}
