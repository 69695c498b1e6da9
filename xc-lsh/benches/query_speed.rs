//! Hashing and querying tables of ever more labels, sized for the same number of candidates: one
//! JSON line a number of labels. Times are medians over blocks of queries, one thread.
//!
//! `cargo bench -p xc-lsh --bench query_speed [wta|wta-8|sim-hash] [LABELS...]`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::tables::{By, Query, QueryCounts, QueryLimits, QueryScratch, Tables};
use xc_lsh::{FamilyKind, KeyScratch, Projection, TableSizing};

const WIDTH: usize = 128;
const TABLES: u32 = 50;
const CANDIDATES: usize = 500;
const QUERIES: usize = 20_000;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut given = std::env::args().skip(1).filter(|word| word != "--bench").peekable();
    // The size of bins is free for winner-take-all: whatever needs most of the tables.
    let kinds: Vec<FamilyKind> = match given.next_if(|arg| arg.parse::<usize>().is_err()).as_deref() {
        None | Some("wta") => (4..=8).map(|bin| FamilyKind::Wta { bin }).collect(),
        Some("wta-8") => vec![FamilyKind::Wta { bin: 8 }],
        Some("sim-hash") => vec![FamilyKind::SimHash { projection: Projection::Hadamard }],
        Some(other) => return Err(format!("{other}, expected wta, wta-8 or sim-hash").into()),
    };
    let given: Vec<usize> = given.map(|n| n.parse()).collect::<Result<_, _>>()?;
    let sizes = if given.is_empty() { vec![10_000, 100_000, 670_000, 1_000_000, 3_000_000] } else { given };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| sizes.into_iter().try_for_each(|n| measure(&kinds, n)))
}

/// Queries that are timed together: too few for another program to come in between often.
const BLOCK: usize = 100;

/// The median over blocks of queries, in nanoseconds a query.
fn median(mut run: impl FnMut(usize)) -> f64 {
    let mut times: Vec<f64> = (0..3 * QUERIES / BLOCK)
        .map(|block| {
            let begin = Instant::now();
            (0..BLOCK).for_each(|i| run((block * BLOCK + i) % QUERIES));
            begin.elapsed().as_nanos() as f64 / BLOCK as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(kinds: &[FamilyKind], n: usize) -> Result<(), Box<dyn Error + Send + Sync>> {
    let sized = kinds.iter().map(|&kind| TableSizing::try_new(n as u64, TABLES, CANDIDATES as f64, kind, WIDTH));
    let sized: Vec<TableSizing> = sized.collect::<Result<_, _>>()?;
    let sizing = sized.into_iter().max_by_key(TableSizing::n_tables).ok_or("no family")?;
    let family = sizing.params(1).build()?;
    let mut scratch = KeyScratch::default();
    let mut values = vec![0.0; n * WIDTH];
    Stream::new(1).fill_uniform(1.0, &mut values);
    let begin = Instant::now();
    let tables = Tables::of_dense(&*family, DenseRows::new(&values, WIDTH), &mut scratch)?;
    let build = begin.elapsed().as_secs_f64();
    drop(values);
    // Queries are synthetic vectors of their own: all that they find is noise.
    let mut queries = vec![0.0; QUERIES * WIDTH];
    Stream::new(2).fill_uniform(1.0, &mut queries);
    let mut keys = xc_lsh::Keys::new(sizing.n_tables() as usize);
    family.keys_dense(DenseRows::new(&queries, WIDTH), &mut keys, &mut scratch)?;
    let (mut one, mut found, mut query) = (vec![0; keys.n_tables()], Vec::new(), QueryScratch::default());
    let mut ask = |limits, i| {
        let asked = Query { by: By::Keys(keys.row(i)), turn: i as u64, excluded: &[] };
        tables.query(asked, limits, &mut query, &mut found)
    };
    let (mut counts, mut failed) = (QueryCounts::default(), None);
    let hash_ns = median(|i| {
        let row = DenseRows::new(&queries[i * WIDTH..][..WIDTH], WIDTH);
        failed = family.hash_dense(row, &mut one, &mut scratch).err().or(failed);
    });
    failed.map_or(Ok(()), Err)?;
    let query_ns = median(|i| counts += ask(QueryLimits { candidates: CANDIDATES, per_bucket: 128 }, i));
    let mut uncapped = QueryCounts::default();
    (0..2000).for_each(|i| uncapped += ask(QueryLimits::NONE, i));
    let mean = |sum: usize| sum as f64 / counts.queries as f64;
    println!(
        r#"{{"kind": {}, "labels": {n}, "wanted": {CANDIDATES}, "codes": {}, "tables": {}, "bucket_bits": {}, "hashes": {}, "buckets": {:.1}, "entries": {:.1}, "candidates": {:.1}, "union": {:.1}, "expected_union": {:.1}, "hash_ns": {hash_ns:.0}, "query_ns": {query_ns:.0}, "build_s": {:.2}, "mb": {:.1}}}"#,
        serde_json::to_string(&family.params().kind)?,
        sizing.n_codes(),
        sizing.n_tables(),
        sizing.bucket_bits(),
        sizing.n_hashes(),
        mean(counts.buckets),
        mean(counts.entries),
        mean(counts.candidates),
        uncapped.candidates as f64 / 2000.0,
        sizing.expected_candidates(),
        build,
        tables.bytes() as f64 / 1e6
    );
    Ok(())
}
