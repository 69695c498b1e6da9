//! From a data file to ranked labels, with the pieces that the model crates are made of.
//!
//! `cargo run -p xc-data --example file_to_ranking`

#![allow(clippy::print_stdout)] // an example shows what it does

use xc_buffer::DType;
use xc_data::{ReadOptions, read_dataset, write_prediction_lines};
use xc_sparse::chunked::{
    ChunkQuery, ChunkRows, ChunkedLevel, IteratorChoice, ProductScratch, SlotMap, count_features, margins,
};
use xc_sparse::rank::{RankedBatch, Scored, TopK};
use xc_sparse::rows::normalise_rows;
use xc_store::atomic::write_file;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 1. Read a data set. The header says: 4 instances, 6 features, 3 labels.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("train.txt");
    std::fs::write(&path, "4 6 3\n0 0:1 1:1\n0,1 1:2 3:1\n2 4:1 5:1\n2 5:3\n")?;
    let mut data = read_dataset(&path, &ReadOptions::default())?;
    normalise_rows(&mut data.features);
    println!("{} instances, {} features, {} labels", data.labels.len(), data.features.cols(), data.labels.n_labels());

    // 2. A model: the weight of a feature for a label is the sum of its values over the label's
    //    instances.
    let rows = data.features.view();
    let instances_of = data.labels.transpose();
    let mut weights = std::collections::BTreeMap::new();
    for (label, instances) in (0u32..).zip(instances_of.iter()) {
        for (feature, value) in instances.iter().flat_map(|&i| rows.row(i as usize).iter()) {
            *weights.entry((feature, label)).or_insert(0.0) += value;
        }
    }
    let entries = weights.into_iter().map(|((feature, label), weight)| (feature, label, weight)).collect();
    let n_labels = data.labels.n_labels();
    let parents = [ChunkRows::from_entries(n_labels, entries, vec![0.0; n_labels])?];

    // 3. Pack it: siblings lie side by side, in half precision.
    let map = SlotMap::new(&count_features(&parents, data.features.cols()));
    let level = ChunkedLevel::pack(&parents, &map, DType::F16)?;
    println!("{} weights in {} bytes", level.view().nnz(), level.view().n_bytes());

    // 4. Answer each instance: margins of all labels, of which the best two are kept. Nothing is
    //    allocated from the second query on but the answers.
    let (mut query, mut product, mut top) = (ChunkQuery::default(), ProductScratch::default(), TopK::default());
    let (mut scores, mut answers) = (Vec::new(), RankedBatch::new());
    for i in 0..rows.rows() {
        scores.clear();
        let query = query.prepare(rows.row(i), &map);
        margins(&level.view(), &query, &[0], IteratorChoice::Auto, &mut product, &mut scores);
        top.reset(2);
        (0..).zip(&scores).for_each(|(label, &score)| top.push(Scored { label, score }));
        answers.push_row(top.sorted());
    }

    // 5. Write the answers: the file appears when it is complete.
    let output = folder.path().join("predictions.txt");
    write_file(&output, |into| write_prediction_lines(into, &answers, None))?;
    let text = std::fs::read_to_string(&output)?;
    print!("{text}");
    assert!(text.lines().zip(data.labels.iter()).all(|(line, truth)| line.starts_with(&truth[0].to_string())));
    Ok(())
}
