//! Hashing and querying tables of many labels, one JSON line a number of labels.
//!
//! `cargo run --release -p xc-lsh --example query_speed [LABELS...]`

#![allow(clippy::print_stdout)]

use std::time::Instant;
use xc_hash::stream::Stream;
use xc_lsh::tables::{By, Limits, Query, QueryScratch, Tables};
use xc_lsh::{Kind, Scratch, Sizing};
use xc_sparse::DenseRows;

const WIDTH: usize = 128;
const TABLES: u32 = 50;
const CANDIDATES: usize = 500;
const QUERIES: usize = 2000;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let given: Vec<usize> = std::env::args().skip(1).map(|n| n.parse()).collect::<Result<_, _>>()?;
    let sizes = if given.is_empty() { vec![10_000, 100_000, 670_000, 3_000_000] } else { given };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| sizes.into_iter().try_for_each(measure))
}

fn measure(n: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut values = vec![0.0; n * WIDTH];
    Stream::new(1).fill_uniform(1.0, &mut values);
    let rows = DenseRows::new(&values, WIDTH);
    let sizing = Sizing::try_new(n as u64, TABLES, CANDIDATES as f64, Kind::Wta { bin: 8 })?;
    let family = sizing.params(WIDTH, 1).build()?;
    let mut scratch = Scratch::default();
    let begin = Instant::now();
    let tables = Tables::of_dense(&*family, rows, &mut scratch)?;
    let build = begin.elapsed().as_secs_f64();
    // Queries are made-up vectors of their own: all that they find is noise.
    let mut queries = vec![0.0; QUERIES * WIDTH];
    Stream::new(2).fill_uniform(1.0, &mut queries);
    let queries = DenseRows::new(&queries, WIDTH);
    let limits = Limits { candidates: CANDIDATES, per_bucket: 128 };
    let (mut keys, mut found, mut query) = (vec![0; TABLES as usize], Vec::new(), QueryScratch::default());
    let (mut hash_ns, mut query_ns) = (f64::INFINITY, f64::INFINITY);
    let (mut buckets, mut entries, mut candidates, mut uncapped) = (0, 0, 0, 0);
    for _ in 0..5 {
        let (mut hash, mut ask) = (0, 0);
        (buckets, entries, candidates, uncapped) = (0, 0, 0, 0);
        for (turn, row) in queries.iter().enumerate() {
            let begin = Instant::now();
            family.hash_dense(DenseRows::new(row, WIDTH), &mut keys, &mut scratch)?;
            hash += begin.elapsed().as_nanos();
            let begin = Instant::now();
            let asked = Query { by: By::Keys(&keys), turn: turn as u64, excluded: &[] };
            let counts = tables.query(asked, limits, &mut query, &mut found);
            ask += begin.elapsed().as_nanos();
            buckets += counts.buckets;
            entries += counts.entries;
            candidates += counts.candidates;
        }
        hash_ns = hash_ns.min(hash as f64 / QUERIES as f64);
        query_ns = query_ns.min(ask as f64 / QUERIES as f64);
    }
    for row in queries.iter().take(200) {
        family.hash_dense(DenseRows::new(row, WIDTH), &mut keys, &mut scratch)?;
        let asked = Query { by: By::Keys(&keys), turn: 0, excluded: &[] };
        uncapped += tables.query(asked, Limits::NONE, &mut query, &mut found).candidates;
    }
    let mean = |sum: usize| sum as f64 / QUERIES as f64;
    println!(
        r#"{{"labels": {n}, "codes": {}, "tables": {TABLES}, "bucket_bits": {}, "hash_us": {:.2}, "query_us": {:.2}, "buckets": {:.1}, "entries": {:.1}, "candidates": {:.1}, "uncapped": {:.1}, "expected_noise": {:.1}, "build_s": {build:.2}, "mb": {:.1}}}"#,
        sizing.n_codes(),
        sizing.bucket_bits(),
        hash_ns / 1e3,
        query_ns / 1e3,
        mean(buckets),
        mean(entries),
        mean(candidates),
        uncapped as f64 / 200.0,
        sizing.expected_noise(),
        tables.bytes() as f64 / 1e6
    );
    Ok(())
}
