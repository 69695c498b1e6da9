//! From text to weighted features, stored and opened again: the whole of what training and serving
//! need.
//!
//! cargo run -p xc-hash --example text_to_features
#![allow(clippy::print_stdout)] // an example shows what it does

use xc_hash::text::{Block, Grams, Pipeline, PipelineParams};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let train = [
        "Rules of the transport committee",
        "The committee on fisheries",
        "Fisheries: rules on nets and rules on boats",
        "Transport by rail, transport by road",
    ];

    // 1. Say what becomes a feature. Here: words seen twice or more, and hashed character trigrams
    //    at half weight.
    let trigrams = Block { grams: Grams::CharsInWords { min: 3, max: 3 }, scale: 0.5, ..Block::words(1, 1).hashed(64) };
    let params = PipelineParams { blocks: vec![Block::words(1, 1), trigrams], ..PipelineParams::default() };

    // 2. Learn terms and their rarity from the training texts; make the training rows.
    let pipeline = Pipeline::fit(params, &train)?;
    let rows = pipeline.transform_batch(&train);
    println!("{} texts, {} features, {} non-zeros", rows.iter().len(), rows.n_features, rows.values.len());
    if let Some(words) = pipeline.vocabulary(0) {
        for id in 0..words.len() as u32 {
            println!("  feature {id} is {:?}, idf {:.3}", words.term(id), pipeline.weights().idf()[id as usize]);
        }
    }

    // 3. Store: a small JSON and plain arrays, which a model file keeps. Open: the same pipeline.
    let parts = pipeline.to_parts();
    println!("config {}", parts.config);
    for (name, _) in &parts.arrays {
        println!("  array {name}");
    }
    let served = Pipeline::from_parts(parts)?;

    // 4. Serve: one text at a time, no allocation after the first.
    let mut scratch = served.scratch();
    let (features, values) = served.transform_one("New rules for the TRANSPORT of fish", &mut scratch);
    for (feature, value) in features.iter().zip(values).take(5) {
        println!("  feature {feature}: {value:.3}");
    }
    Ok(())
}
