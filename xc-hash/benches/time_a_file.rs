//! Speed of fitting and transforming on a file of JSON lines with a "text" (and perhaps a "title").
//!
//! ```text
//! RAYON_NUM_THREADS=1 cargo bench -p xc-hash --bench time_a_file -- \
//!     train.jsonl [hash|bigrams|chars] [rows.json]
//! ```
//!
//! With a third argument the rows of the first 500 texts are written there as JSON.
#![allow(clippy::print_stdout)] // an example shows what it does

use std::io::{BufRead, BufReader, Write};
use std::time::Instant;
use xc_hash::text::{Block, Grams, Pipeline, PipelineParams};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).filter(|word| word != "--bench");
    let path = args.next().ok_or("name a file of JSON lines")?;
    let kind = args.next().unwrap_or_default();
    let mut texts = Vec::new();
    for line in BufReader::new(std::fs::File::open(path)?).lines() {
        let value: serde_json::Value = serde_json::from_str(&line?)?;
        let field = |name: &str| value[name].as_str().unwrap_or_default().to_string();
        texts.push(field("title") + " " + &field("text"));
    }
    let megabytes = texts.iter().map(String::len).sum::<usize>() as f64 / 1e6;
    let one = Block::words(1, 1);
    let blocks = match kind.as_str() {
        "hash" => vec![one.hashed(1 << 20)],
        "bigrams" => vec![Block::words(1, 2)],
        "chars" => vec![Block { grams: Grams::CharsInWords { min: 3, max: 3 }, ..one }],
        _ => vec![one],
    };
    let params = PipelineParams { blocks, ..PipelineParams::default() };

    let start = Instant::now();
    let pipeline = Pipeline::fit(params, &texts)?;
    let fit = start.elapsed().as_secs_f64();
    println!("fit        {} texts, {megabytes:.1} MB: {fit:.2} s, {:.1} MB/s", texts.len(), megabytes / fit);
    let start = Instant::now();
    let rows = pipeline.transform_batch(&texts);
    let transform = start.elapsed().as_secs_f64();
    println!(
        "transform  {} features, {} non-zeros: {transform:.2} s, {:.1} MB/s",
        rows.n_features,
        rows.values.len(),
        megabytes / transform
    );
    let mut scratch = pipeline.scratch();
    let start = Instant::now();
    let nnz: usize = texts.iter().map(|text| pipeline.transform_one(text, &mut scratch).0.len()).sum();
    let one = start.elapsed().as_secs_f64();
    println!("one by one {nnz} non-zeros: {one:.2} s, {:.1} MB/s", megabytes / one);
    let start = Instant::now();
    let opened = Pipeline::from_parts(pipeline.to_parts())?;
    println!("copy, open {:.1} ms, equal: {}", start.elapsed().as_secs_f64() * 1e3, opened == pipeline);
    if let Some(path) = args.next() {
        let rows: Vec<_> = rows.iter().take(500).collect();
        serde_json::to_writer(std::fs::File::create(path)?, &rows)?;
    }
    std::io::stdout().flush()?;
    Ok(())
}
