//! Nearest vectors by SimHash: candidates from tables, asked for with several probes each, and
//! ranked by their exact cosines. Vectors are made up in groups; recall is against a scan of all.
//!
//! `cargo run --release -p xc-lsh --example nearest_vectors`

#![allow(clippy::print_stdout)]

use std::error::Error;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::tables::{By, Query, QueryCounts, QueryLimits, QueryScratch, Tables};
use xc_lsh::{FamilyKind, KeyScratch, Probes, Projection, TableSizing};
use xc_sparse::rank::{Scored, TopK};

const VECTORS: usize = 20_000;
const WIDTH: usize = 64;
const QUERIES: usize = 200;
const BEST: usize = 10;

/// Prints and gives the share of the ten nearest that was found.
///
/// # Errors
/// There are no such tables.
pub fn main() -> Result<(), Box<dyn Error>> {
    let recall = recall()?;
    if recall > 0.9 { Ok(()) } else { Err(format!("recall {recall}").into()) }
}

fn recall() -> Result<f64, Box<dyn Error>> {
    let (vectors, queries) = made_up();
    let kind = FamilyKind::SimHash { projection: Projection::Gaussian };
    let sizing = TableSizing::try_new(VECTORS as u64, 20, 100.0, kind, WIDTH)?;
    let family = sizing.params(1).build()?;
    let mut scratch = KeyScratch::default();
    let tables = Tables::of_dense(&*family, DenseRows::new(&vectors, WIDTH), &mut scratch)?;

    let (mut probes, mut query_scratch, mut found) = (Probes::default(), QueryScratch::default(), Vec::new());
    let (mut keys, mut counts, mut right) = (Vec::new(), QueryCounts::default(), 0);
    for (turn, query) in queries.chunks_exact(WIDTH).enumerate() {
        probes.find(&*family, query, 4, &mut scratch)?;
        keys.clear();
        (0..tables.n_tables()).for_each(|table| keys.extend_from_slice(probes.keys(table)));
        let asked = Query { by: By::Keys(&keys), turn: turn as u64, excluded: &[] };
        counts += tables.query(asked, QueryLimits::NONE, &mut query_scratch, &mut found);
        let nearest = best(&vectors, query, found.iter().copied());
        let exact = best(&vectors, query, 0..VECTORS as u32);
        right += exact.iter().filter(|item| nearest.contains(item)).count();
    }
    let recall = right as f64 / (BEST * QUERIES) as f64;
    println!(
        r#"{{"vectors": {VECTORS}, "codes": {}, "tables": {}, "probes": 4, "candidates": {:.1}, "recall_at_{BEST}": {recall:.4}}}"#,
        sizing.n_codes(),
        tables.n_tables(),
        counts.candidates as f64 / QUERIES as f64
    );
    Ok(recall)
}

/// The items of the largest dot products; vectors have length 1.
fn best(vectors: &[f32], query: &[f32], items: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut top = TopK::new(BEST);
    for item in items {
        let vector = &vectors[item as usize * WIDTH..][..WIDTH];
        let score = vector.iter().zip(query).map(|(v, q)| v * q).sum();
        top.push(Scored { label: item, score });
    }
    top.sorted().iter().map(|scored| scored.label).collect()
}

/// Groups of twenty around random centres, and queries near some of the vectors.
fn made_up() -> (Vec<f32>, Vec<f32>) {
    let mut stream = Stream::new(1);
    let mut near = |centre: &[f32], noise: f32| {
        let mut vector = vec![0.0; WIDTH];
        stream.fill_uniform(noise, &mut vector);
        vector.iter_mut().zip(centre).for_each(|(v, c)| *v += c);
        let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|v| *v /= length);
        vector
    };
    let mut vectors = Vec::with_capacity(VECTORS * WIDTH);
    for _ in 0..VECTORS / 20 {
        let centre = near(&[0.0; WIDTH], 1.0);
        (0..20).for_each(|_| vectors.extend(near(&centre, 0.1)));
    }
    let of_query = |i: usize| i * 97 % VECTORS * WIDTH;
    let queries = (0..QUERIES).flat_map(|i| near(&vectors[of_query(i)..][..WIDTH], 0.05)).collect();
    (vectors, queries)
}
