//! From an `.npy` file to neighbours: `cargo run --release -p xc-ann --example neighbours -- ROWS.npy`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::PathBuf;
use xc_ann::{BuildParams, Index, Metric, SearchScratch, Silent};
use xc_data::read_npy;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).map(PathBuf::from).ok_or("expected the path of an .npy file")?;
    let rows = read_npy(&path, &Default::default())?;
    let query = rows.view().row(0).to_vec();
    let index = Index::build(rows.values, rows.columns, &BuildParams::new(Metric::L2), &Silent)?;
    let found = index.nearest(&query, 10, &mut SearchScratch::default())?;
    found.iter().for_each(|row| println!("{} {}", row.label, row.score));
    Ok(())
}
