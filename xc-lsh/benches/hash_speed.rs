//! What a row costs, family by family: one JSON line a case. One thread, medians over blocks of rows.
//!
//! `cargo bench -p xc-lsh --bench hash_speed`

#![allow(clippy::print_stdout)]

use std::time::Instant;
use xc_buffer::simd::Isa;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::{FamilyKind, FamilyParams, KeyScratch, Minima, Projection};
use xc_sparse::SparseRow;

const ROWS: usize = 2000;

/// Rows that are timed together: too few for another program to come in between often.
const BLOCK: usize = 50;

/// The median over blocks of rows, in nanoseconds a row.
fn median(mut run: impl FnMut(std::ops::Range<usize>)) -> f64 {
    let mut times: Vec<f64> = (0..9 * ROWS / BLOCK)
        .map(|block| {
            let first = block * BLOCK % ROWS;
            let begin = Instant::now();
            run(first..first + BLOCK);
            begin.elapsed().as_nanos() as f64 / BLOCK as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn report(case: &str, params: &FamilyParams, ns: f64) {
    println!(
        r#"{{"case": "{case}", "isa": "{}", "width": {}, "codes": {}, "tables": {}, "ns_per_row": {ns:.0}, "ns_per_code": {:.3}}}"#,
        Isa::current(),
        params.width,
        params.n_codes,
        params.n_tables,
        ns / params.codes() as f64
    );
}

fn dense(case: &str, params: FamilyParams) -> Result<(), Box<dyn std::error::Error>> {
    let mut values = vec![0.0; ROWS * params.width];
    Stream::new(1).fill_uniform(1.0, &mut values);
    let rows = DenseRows::new(&values, params.width);
    let family = params.build()?;
    let (mut keys, mut scratch) = (vec![0; params.n_tables as usize], KeyScratch::default());
    let mut sum = 0u32;
    let mut failed = None;
    let ns = median(|block| {
        for at in block {
            match family.hash_dense(DenseRows::new(rows.row(at), params.width), &mut keys, &mut scratch) {
                Ok(_) => sum = sum.wrapping_add(keys[0]),
                Err(error) => failed = Some(error),
            }
        }
    });
    report(&format!("{case}, one row at a time"), &params, ns);
    let mut keys = xc_lsh::Keys::new(params.n_tables as usize);
    let part = |block: std::ops::Range<usize>| {
        DenseRows::new(&values[block.start * params.width..block.end * params.width], params.width)
    };
    let ns = median(|block| failed = family.keys_dense(part(block), &mut keys, &mut scratch).err().or(failed));
    report(&format!("{case}, rows together"), &params, ns);
    std::hint::black_box(sum);
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn sparse(case: &str, params: FamilyParams, nnz: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mut stream = Stream::new(1);
    let rows: Vec<(Vec<u32>, Vec<f32>)> = (0..ROWS)
        .map(|_| {
            let mut features: Vec<u32> = (0..nnz).map(|_| stream.below(params.width as u32)).collect();
            features.sort_unstable();
            features.dedup();
            let values = features.iter().map(|_| stream.unit() as f32 + 0.01).collect();
            (features, values)
        })
        .collect();
    let family = params.build()?;
    let (mut keys, mut scratch) = (vec![0; params.n_tables as usize], KeyScratch::default());
    let mut failed = None;
    let ns = median(|block| {
        for (indices, values) in &rows[block] {
            failed =
                family.hash_sparse(SparseRow::from_checked(indices, values), &mut keys, &mut scratch).err().or(failed);
        }
    });
    report(&format!("{case}, {nnz} features"), &params, ns);
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let params =
        |kind, width, n_codes, n_tables| FamilyParams { kind, width, n_codes, n_tables, key_bits: 32, seed: 1 };
    for width in [128, 768] {
        dense("wta", params(FamilyKind::Wta { bin: 8 }, width, 6, 400))?;
        for projection in [Projection::Gaussian, Projection::Hadamard] {
            dense(&format!("sim-hash {projection:?}"), params(FamilyKind::SimHash { projection }, width, 9, 50))?;
        }
    }
    sparse("dwta", params(FamilyKind::dwta_for(8, 6, 400, 75), 500_000, 6, 400), 75)?;
    let kind = FamilyKind::MinHash { minima: Minima::OnePermutation, code_bits: 4 };
    sparse("min-hash, one permutation", params(kind, 500_000, 4, 50), 75)?;
    sparse("sim-hash Gaussian", params(FamilyKind::SimHash { projection: Projection::Gaussian }, 20_000, 9, 50), 75)
}
