//! What the tests of families share: vectors, and counts held against probabilities.

use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::{Family, FamilyKind, FamilyParams, KeyScratch};
use xc_sparse::SparseRow;

/// About normal numbers.
pub(crate) fn normals(stream: &mut Stream, n: usize) -> Vec<f32> {
    (0..n).map(|_| ((0..12).map(|_| stream.unit()).sum::<f64>() - 6.0) as f32).collect()
}

/// Two vectors whose coordinates have this correlation.
pub(crate) fn pair(stream: &mut Stream, n: usize, correlation: f32) -> (Vec<f32>, Vec<f32>) {
    let (x, other) = (normals(stream, n), normals(stream, n));
    let rest = (1.0 - correlation * correlation).sqrt();
    let y = x.iter().zip(&other).map(|(x, o)| correlation * x + rest * o).collect();
    (x, y)
}

/// The cosine of two vectors.
pub(crate) fn cosine(x: &[f32], y: &[f32]) -> f64 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(x, y) / (dot(x, x) * dot(y, y)).sqrt()
}

pub(crate) fn params(kind: FamilyKind, width: usize, n_codes: u32, n_tables: u32, seed: u64) -> FamilyParams {
    FamilyParams { kind, width, n_codes, n_tables, key_bits: 32, seed }
}

/// Keys of one vector.
pub(crate) fn keys_of(family: &dyn Family, vector: &[f32]) -> Vec<u32> {
    let mut keys = vec![0; family.params().n_tables as usize];
    family.hash_dense(DenseRows::new(vector, vector.len()), &mut keys, &mut KeyScratch::default()).unwrap();
    keys
}

/// Keys of one sparse row.
pub(crate) fn keys_of_sparse(family: &dyn Family, row: SparseRow<'_>) -> Vec<u32> {
    let mut keys = vec![0; family.params().n_tables as usize];
    family.hash_sparse(row, &mut keys, &mut KeyScratch::default()).unwrap();
    keys
}

/// Codes of a table that agree in two keys, the first one first.
pub(crate) fn agreeing<'a>(family: &'a dyn Family, x: &'a [u32], y: &'a [u32]) -> impl Iterator<Item = bool> + 'a {
    let (bits, n_codes) = (family.params().kind.code_bits(), family.params().n_codes);
    x.iter()
        .zip(y)
        .flat_map(move |(x, y)| (0..n_codes).rev().map(move |k| (x ^ y) >> (k * bits) & ((1 << bits) - 1) == 0))
}

/// Holds a share of `n` draws against a probability: five standard deviations, once in two million.
pub(crate) fn assert_share(hits: usize, n: usize, p: f64, of: &str) {
    let share = hits as f64 / n as f64;
    let spread = (p * (1.0 - p) / n as f64).sqrt().max(1.0 / n as f64);
    assert!(
        (share - p).abs() < 5.0 * spread,
        "{of}: {hits} of {n} are {share:.5}, expected {p:.5} within {spread:.5} times 5"
    );
}

/// Counts codes that agree, over families of different seeds.
pub(crate) fn count_agreeing(
    params: FamilyParams,
    seeds: std::ops::Range<u64>,
    keys: impl Fn(&dyn Family) -> [Vec<u32>; 2],
) -> (usize, usize) {
    let (mut hits, mut n) = (0, 0);
    for seed in seeds {
        let family = FamilyParams { seed, ..params }.build().unwrap();
        let [x, y] = keys(&*family);
        hits += agreeing(&*family, &x, &y).filter(|&a| a).count();
        n += params.codes();
    }
    (hits, n)
}

/// Holds the mean over families against a probability, where the codes of one family depend on one
/// another: five standard deviations of the families' shares.
pub(crate) fn assert_mean(shares: &[f64], p: f64, of: &str) {
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    let spread = (shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    assert!((mean - p).abs() < 5.0 * spread, "{of}: {mean:.5}, expected {p:.5} within {spread:.5} times 5");
}

/// Share of the codes that agree, for families of different seeds.
pub(crate) fn shares(
    params: FamilyParams,
    seeds: std::ops::Range<u64>,
    mut keys: impl FnMut(&dyn Family) -> [Vec<u32>; 2],
) -> Vec<f64> {
    let of_seed = |seed| {
        let family = FamilyParams { seed, ..params }.build().unwrap();
        let [x, y] = keys(&*family);
        agreeing(&*family, &x, &y).filter(|&a| a).count() as f64 / params.codes() as f64
    };
    seeds.map(of_seed).collect()
}

/// Covariance of the agreement of two codes over families of different seeds, and the standard
/// deviation of that count were they independent.
pub(crate) fn covariance(pairs: impl Iterator<Item = (bool, bool)>) -> (f64, f64) {
    let (mut n, mut a, mut b, mut both) = (0.0, 0.0, 0.0, 0.0);
    for (first, second) in pairs {
        n += 1.0;
        a += f64::from(first);
        b += f64::from(second);
        both += f64::from(first && second);
    }
    let (a, b, both) = (a / n, b / n, both / n);
    (both - a * b, (a * (1.0 - a) * b * (1.0 - b) / n).sqrt())
}
