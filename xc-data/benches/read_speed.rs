//! How fast a file is read: `cargo run --release --bench read_speed -- FILE [THREADS]`.
#![allow(clippy::print_stdout)] // an example has nobody else to print for

use std::time::Instant;
use xc_data::{ReadOptions, read_data};
use xc_sparse::rows::Rows;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).filter(|word| word != "--bench");
    let path = std::path::PathBuf::from(arguments.next().ok_or("name a file")?);
    let threads = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    for _ in 0..5 {
        let start = Instant::now();
        let data = pool.install(|| read_data(&path, &ReadOptions::default()))?;
        let seconds = start.elapsed().as_secs_f64();
        let (rows, nnz) = (data.rows().len(), if let Rows::Sparse(rows) = data.rows() { rows.nnz() } else { 0 });
        println!("{rows} rows, {nnz} values, {seconds:.3} s, {:.0} MB/s", megabytes / seconds);
    }
    Ok(())
}
