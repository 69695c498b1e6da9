//! Writes what a MACH model's repetitions say of some queries, as `.npy` of queries x repetitions x
//! buckets (f32).
//!
//! ```sh
//! cargo run --release -p xc-model --example bucket_scores -- MODEL QUERIES.txt 200 scores.npy
//! cargo bench -p xc-mach --bench decode_bench -- --labels L --seed SEED --scores scores.npy
//! ```
//!
//! The queries are XC text, features as the model takes them.

use std::io::{BufWriter, Write};
use std::path::Path;
use xc_data::{ReadOptions, read_dataset};
use xc_model::mach::MachContainer;
use xc_nn::Rows;
use xc_store::OpenMode;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, input, n_queries, output] = &arguments[..] else {
        return Err("expected: MODEL QUERIES.txt NUMBER SCORES.npy".into());
    };
    let (model, lost) = MachContainer::open(Path::new(model), OpenMode::Map)?.model(None)?;
    if let Some(lost) = lost.into_iter().next() {
        return Err(lost.into());
    }
    let options = ReadOptions { n_features: Some(model.n_features()), ..ReadOptions::default() };
    let queries = read_dataset(Path::new(input), &options)?.features;
    let n_queries = queries.rows().min(n_queries.parse()?);
    let queries = queries.slice(0..n_queries);
    let mut out = BufWriter::new(std::fs::File::create(output)?);
    let shape = (n_queries, model.assignment().n_repetitions(), model.assignment().n_buckets());
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape:?}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&u16::try_from(header.len())?.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let queries = Rows::Sparse(queries);
    model.blocks(queries, |_, scores| scores.iter().try_for_each(|score| out.write_all(&score.to_le_bytes())))?;
    out.flush()?;
    Ok(())
}
