//! Label vectors shortened by the singular value decomposition of the crate faer, and an index over them: a query is
//! shortened by the same vectors: `cargo run --release -p xc-ann --features faer --example faer_svd`

#![allow(clippy::print_stdout)]

use std::error::Error;
use xc_ann::{BuildParams, Index, Metric, SearchScratch, Silent};
use xc_dense::faer::linalg::matmul::matmul;
use xc_dense::faer::{self, Accum, Mat, Par};
use xc_dense::{DenseMatrix, DenseRows};

fn main() -> Result<(), Box<dyn Error>> {
    let (labels, width, kept) = (500, 48, 8);
    let value =
        |at: usize| ((at % width) as f32 * 0.3).sin() * ((at / width) as f32 * 0.11).cos() + (at as f32).sin() * 0.01;
    let vectors: Vec<f32> = (0..labels * width).map(value).collect();
    let rows: faer::MatRef<'_, f32> = DenseRows::new(&vectors, width).into(); // the same memory
    let svd = rows.thin_svd().map_err(|e| format!("{e:?}"))?;
    let mut short = Mat::zeros(labels, kept);
    matmul(short.as_mut(), Accum::Replace, rows, svd.V().subcols(0, kept), 1.0, Par::Seq);

    let DenseMatrix { values, .. } = short.as_ref().into();
    let queries = values.to_vec();
    let index = Index::build(queries.clone(), kept, &BuildParams::new(Metric::InnerProduct), &Silent)?;
    let best = index.nearest(&queries[..kept], 3, &mut SearchScratch::default())?;
    println!("nearest labels of label 0: {:?}", best.iter().map(|found| found.label).collect::<Vec<_>>());
    Ok(())
}
