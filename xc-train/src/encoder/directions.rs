//! Leading directions of sparse rows: where most of their weight lies, as the first values of a bag.
//!
//! A randomised range finder (`[halko2011finding]`, algorithm 4.4, with one orthonormalisation a pass): random columns are multiplied by `X^T X` and made orthogonal, a few times.
//! What comes out spans about what a truncated SVD does (latent semantic analysis), turned in itself: a layer above does not mind.
//!
//! ```text
//!   V: features x k, even in +-1          pass: V <- orthonormal( X^T X V )         rows of X at length 1
//!   stripes of 32 columns, one task each: row after row z = x V, W += x^T z         no rows x k matrix exists
//! ```

use crate::stream::{Purpose, fill_uniform, mix, name, stream};
use rayon::prelude::*;
use xc_sparse::{Rows, vectorised};

/// Columns of a task: two cache lines of a row of `V`.
const STRIPE: usize = 32;
/// Rows between two looks at whether to stop.
const ROWS: usize = 1024;
/// Features whose first values are one stream's.
const CHUNK: usize = 4096;
/// Features that are turned together: their rows and results stay in the first-level cache.
const TURNED: usize = 8;
/// A direction whose length falls below this share once those before it are taken away is within rounding of them.
const DEPENDENT: f64 = 1e-5;

/// About `k` leading directions of the rows `which`, one row of `k` values a feature, and scaled so that the sums of a row's features
/// (`x V`) have values of mean square `mean_square`.
///
/// Where rows span fewer than `k` directions some columns are 0; so they may be for directions that hold less than a hundred thousandth of
/// the weight of the first. Nothing comes back once `cancelled` says so. The bits are the same at any number of threads and on any processor, since
/// checkpoints are known by first values.
///
/// *Cost*: a pass 2 k multiplications an entry (k / 32 tasks) and k^2 a feature (the last pass twice that), and k^3 / 3 on one thread; two matrices of
/// features x k, and [`room`].
///
/// # Panics
/// If a row has a feature that is none, or fewer than two passes are asked for: the first begins with columns of any length.
pub(crate) fn leading(
    rows: Rows<'_>,
    which: &[u32],
    k: usize,
    passes: usize,
    mean_square: f64,
    seed: u64,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<f32>> {
    assert!(passes >= 2, "{passes} passes, wanted at least 2");
    let n_features = rows.n_features();
    let mut v = vec![0.0f32; n_features * k];
    v.par_chunks_mut((CHUNK * k).max(1)).enumerate().for_each(|(at, part)| {
        fill_uniform(&mut stream(mix(name(seed, Purpose::Directions, 0), at as u64)), 1.0, part);
    });
    let mut energy = 0.0;
    for pass in 0..passes {
        let stripes: Option<Vec<_>> = (0..k.div_ceil(STRIPE))
            .into_par_iter()
            .map(|at| multiplied(rows, which, &v, at * STRIPE..k.min((at + 1) * STRIPE), k, cancelled))
            .collect();
        let stripes = stripes?;
        energy = stripes.iter().map(|s| s.energy).sum();
        v.par_chunks_mut(k.max(1)).enumerate().for_each(|(feature, to)| {
            for (to, stripe) in to.chunks_mut(STRIPE).zip(&stripes) {
                to.copy_from_slice(&stripe.columns[feature * to.len()..][..to.len()]);
            }
        });
        drop(stripes);
        // Once leaves errors of the condition squared, which the next pass does not mind.
        for _ in 0..if pass + 1 < passes { 1 } else { 2 } {
            v = orthonormal(&v, k, cancelled)?;
        }
    }
    // Of the last pass but for its turn: the energy of the columns it began with.
    let met = energy / (which.len() * k) as f64;
    let scale = (mean_square / met).sqrt() as f32;
    if scale.is_finite() && scale > 0.0 {
        v.par_iter_mut().for_each(|v| *v *= scale);
    }
    Some(v)
}

/// Bytes that [`leading`] takes beside its two matrices.
pub(crate) fn room(k: usize) -> u64 {
    // Sums of the Gram matrix, two factors and the inverse in f32; a block of 32 columns more for what they round up to.
    32 * (k as u64).next_multiple_of(STRIPE as u64).pow(2)
}

struct Stripe {
    /// Columns of `X^T X V`, row-major.
    columns: Vec<f32>,
    /// Sum of squares of `X V` with rows as long as they are.
    energy: f64,
}

fn multiplied(
    rows: Rows<'_>,
    which: &[u32],
    v: &[f32],
    range: std::ops::Range<usize>,
    k: usize,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Option<Stripe> {
    let width = range.len();
    let mut columns = vec![0.0f32; rows.n_features() * width];
    let mut energy = 0.0;
    for which in which.chunks(ROWS) {
        if cancelled() {
            return None;
        }
        vectorised(|| {
            for &i in which {
                let row = rows.row(i as usize);
                let length = row.values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
                let scale = 1.0 / length;
                // Rows of nothing have no direction.
                if !(scale.is_finite() && scale > 0.0) {
                    continue;
                }
                let mut sums = [0.0f32; STRIPE];
                let sums = &mut sums[..width];
                let weight = |x: f32| (f64::from(x) * scale) as f32;
                for (&f, &x) in row.indices.iter().zip(row.values) {
                    let from = &v[f as usize * k + range.start..][..width];
                    let x = weight(x);
                    sums.iter_mut().zip(from).for_each(|(sum, v)| *sum += x * v);
                }
                for (&f, &x) in row.indices.iter().zip(row.values) {
                    let to = &mut columns[f as usize * width..][..width];
                    let x = weight(x);
                    to.iter_mut().zip(&*sums).for_each(|(to, sum)| *to += x * sum);
                }
                energy += length * length * sums.iter().map(|&z| f64::from(z).powi(2)).sum::<f64>();
            }
        });
    }
    Some(Stripe { columns, energy })
}

/// `V R^-1`, whose columns are orthonormal (Cholesky QR) but for errors of the condition squared. Those that depend on columns before them are 0.
fn orthonormal(v: &[f32], k: usize, cancelled: &(dyn Fn() -> bool + Sync)) -> Option<Vec<f32>> {
    let inverse = inverse_of_upper_factor(&gram(v, k, cancelled)?, k);
    let mut out = vec![0.0f32; v.len()];
    let chunk = (TURNED * k).max(1);
    let done = out.par_chunks_mut(chunk).zip(v.par_chunks(chunk)).map(|(to, rows)| {
        if cancelled() {
            return None;
        }
        vectorised(|| {
            // Row i of the inverse begins at the diagonal; it is used for all rows here while it is near.
            for (i, inverse) in inverse.chunks_exact(k).enumerate() {
                for (to, row) in to.chunks_exact_mut(k).zip(rows.chunks_exact(k)) {
                    let v = row[i];
                    to[i..].iter_mut().zip(&inverse[i..]).for_each(|(to, r)| *to += v * r);
                }
            }
        });
        Some(())
    });
    done.collect::<Option<()>>()?;
    Some(out)
}

/// `V^T V`, the lower triangle. In f64: what is left of a column without those before it is a difference of these sums.
fn gram(v: &[f32], k: usize, cancelled: &(dyn Fn() -> bool + Sync)) -> Option<Vec<f64>> {
    let n_stripes = k.div_ceil(STRIPE);
    let pairs: Vec<(usize, usize)> = (0..n_stripes).flat_map(|a| (0..=a).map(move |b| (a, b))).collect();
    let stripe = |at: usize| at * STRIPE..k.min((at + 1) * STRIPE);
    let block = |&(a, b): &(usize, usize)| {
        let (a, b) = (stripe(a), stripe(b));
        let mut sums = [[0.0f64; STRIPE]; STRIPE];
        if cancelled() {
            return None;
        }
        vectorised(|| {
            for row in v.chunks_exact(k) {
                let mut other = [0.0f64; STRIPE];
                other.iter_mut().zip(&row[b.clone()]).for_each(|(to, &v)| *to = f64::from(v));
                for (sums, &v) in sums.iter_mut().zip(&row[a.clone()]) {
                    sums.iter_mut().zip(&other).for_each(|(sum, other)| *sum += f64::from(v) * other);
                }
            }
        });
        Some(sums)
    };
    let blocks: Vec<_> = pairs.par_iter().map(block).collect::<Option<_>>()?;
    let mut out = vec![0.0f64; k * k];
    for (&(a, b), sums) in pairs.iter().zip(&blocks) {
        for (i, sums) in stripe(a).zip(sums) {
            stripe(b).zip(sums).for_each(|(j, &sum)| out[i * k + j] = sum);
        }
    }
    Some(out)
}

/// `R^-1` with `R^T R = gram`, R upper triangular; columns that depend on those before them are 0.
fn inverse_of_upper_factor(gram: &[f64], k: usize) -> Vec<f32> {
    // Rows of R^T, which is lower triangular.
    let mut lower = vec![0.0f64; k * k];
    let mut inverse = vec![0.0f64; k * k];
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for i in 0..k {
        for j in 0..i {
            let (above, row) = lower.split_at_mut(i * k);
            let other = &above[j * k..][..j + 1];
            // A column of 0 takes no part.
            row[j] = if other[j] > 0.0 { (gram[i * k + j] - dot(&row[..j], &other[..j])) / other[j] } else { 0.0 };
        }
        let row = &mut lower[i * k..][..i + 1];
        let left = gram[i * k + i] - dot(&row[..i], &row[..i]);
        row[i] = if left > DEPENDENT * DEPENDENT * gram[i * k + i] { left.sqrt() } else { 0.0 };
        // Row i of the inverse of the lower factor: column i of R^-1.
        let pivot = row[i];
        if pivot == 0.0 {
            continue;
        }
        let (above, to) = inverse.split_at_mut(i * k);
        for (j, &l) in row[..i].iter().enumerate().filter(|(_, l)| **l != 0.0) {
            to[..j + 1].iter_mut().zip(&above[j * k..][..j + 1]).for_each(|(to, a)| *to -= l * a);
        }
        to[i] = 1.0;
        to[..i + 1].iter_mut().for_each(|to| *to /= pivot);
    }
    let mut out = vec![0.0f32; k * k];
    for i in 0..k {
        for j in 0..=i {
            out[j * k + i] = inverse[i * k + j] as f32;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_sparse::CsrMatrix;

    /// Rows within the span of `rank` directions (of `n_features` values), each `decay` times as long as the one before.
    fn rows(n: usize, n_features: usize, rank: usize, decay: f64) -> (CsrMatrix, Vec<Vec<f64>>) {
        let mut random = stream(5);
        let mut draw = |n: usize| {
            let mut v = vec![0.0; n];
            fill_uniform(&mut random, 1.0, &mut v);
            v.into_iter().map(f64::from).collect::<Vec<f64>>()
        };
        let basis: Vec<_> = (0..rank).map(|_| draw(n_features)).collect();
        let mut values = Vec::new();
        for _ in 0..n {
            let shares = draw(rank);
            values.extend(
                (0..n_features)
                    .map(|f| (0..rank).map(|r| shares[r] * basis[r][f] * decay.powi(r as i32)).sum::<f64>() as f32),
            );
        }
        let indptr = (0..=n).map(|i| i * n_features).collect();
        let indices = (0..n).flat_map(|_| 0..n_features as u32).collect();
        (CsrMatrix::new((n, n_features), indptr, indices, values), basis)
    }

    fn found(x: &CsrMatrix, k: usize, mean_square: f64) -> Vec<f32> {
        let which: Vec<u32> = (0..x.rows() as u32).collect();
        leading(Rows::new(x.view()), &which, k, 3, mean_square, 1, &|| false).unwrap()
    }

    fn column(v: &[f32], k: usize, at: usize) -> Vec<f64> {
        v.iter().skip(at).step_by(k).map(|&v| f64::from(v)).collect()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn columns_are_orthogonal_and_span_what_the_rows_span() {
        let (n_features, rank) = (300, 40);
        let (x, basis) = rows(500, n_features, rank, 0.95);
        // As many as the rank, and more: two stripes and an odd one.
        for k in [rank, 45, 77] {
            let v = found(&x, k, 1.0 / 60.0);
            let columns: Vec<_> = (0..k).map(|at| column(&v, k, at)).collect();
            let length = dot(&columns[0], &columns[0]);
            let n_full = columns.iter().filter(|c| dot(c, c) > 0.0).count();
            assert_eq!(n_full, rank, "{k}");
            for (i, a) in columns.iter().enumerate() {
                for (j, b) in columns.iter().enumerate() {
                    let wanted = if i == j && dot(a, a) > 0.0 { length } else { 0.0 };
                    assert!((dot(a, b) - wanted).abs() < 1e-4 * length, "{k}: {i} {j} {}", dot(a, b) / length);
                }
            }
            for b in &basis {
                let within: f64 = columns.iter().map(|c| dot(c, b).powi(2)).sum::<f64>() / length;
                assert!((within / dot(b, b) - 1.0).abs() < 1e-3, "{k}: {}", within / dot(b, b));
            }
        }
    }

    #[test]
    fn few_columns_are_the_heaviest_directions_and_sums_have_the_size_asked_for() {
        let (x, _) = rows(500, 300, 40, 0.8);
        let (k, mean_square) = (20, 0.25);
        let v = found(&x, k, mean_square);
        let view = x.view();
        let sums = |v: &[f32]| -> f64 {
            let row = |i: usize| &view.data()[i * 300..][..300];
            let squares = |i: usize| {
                (0..k)
                    .map(|c| dot(&row(i).iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), &column(v, k, c)).powi(2))
                    .sum::<f64>()
            };
            (0..500).map(squares).sum()
        };
        let met = sums(&v) / (500 * k) as f64;
        assert!((met / mean_square - 1.0).abs() < 0.02, "{met}");
        // Random directions of the same length hold a fifteenth of the rows' weight, these nearly all that 20 can.
        let length = dot(&column(&v, k, 0), &column(&v, k, 0));
        let all: f64 = view.data().iter().map(|&v| f64::from(v).powi(2)).sum();
        assert!(sums(&v) / length > 0.95 * all, "{}", sums(&v) / length / all);
    }

    #[test]
    fn nothing_features_rows_and_huge_values_are_directions_too() {
        let empty = CsrMatrix::new((0, 5), vec![0], vec![], vec![]);
        assert_eq!(found(&empty, 3, 1.0), [0.0; 15]);
        let zeros = CsrMatrix::new((2, 3), vec![0, 0, 1], vec![1], vec![0.0]);
        assert_eq!(found(&zeros, 2, 1.0), [0.0; 6]);
        assert!(found(&CsrMatrix::new((2, 0), vec![0, 0, 0], vec![], vec![]), 4, 1.0).is_empty());
        let huge = CsrMatrix::new((2, 3), vec![0, 2, 3], vec![0, 1, 2], vec![3e38, -3e38, 1e-38]);
        let v = found(&huge, 2, 1.0);
        assert!(v.iter().all(|v| v.is_finite()), "{v:?}");
        // Rows count alike, whatever their length: both directions are there.
        assert!(v[4] != 0.0 || v[5] != 0.0, "{v:?}");
        let tiny = CsrMatrix::new((2, 3), vec![0, 1, 2], vec![0, 2], vec![1e-42, -1e-42]);
        let v = found(&tiny, 2, 1.0);
        assert!(v.iter().all(|v| v.is_finite()) && v.iter().any(|&v| v != 0.0), "{v:?}");
        // Library callers may have values that readers refuse.
        let infinite = CsrMatrix::new((2, 2), vec![0, 1, 2], vec![0, 1], vec![f32::INFINITY, 1.0]);
        assert!(found(&infinite, 1, 1.0).iter().all(|v| v.is_finite()));
    }

    #[test]
    fn asked_to_stop_there_is_none() {
        let (x, _) = rows(20, 10, 3, 1.0);
        assert!(leading(Rows::new(x.view()), &[0, 1], 2, 3, 1.0, 1, &|| true).is_none());
    }

    #[test]
    fn threads_do_not_matter() {
        // More rows than lie between two looks at the observer, more features than one stream's.
        let (n, n_features) = (2 * ROWS as u32 + 76, CHUNK as u32 + 904);
        let indices = (0..n).flat_map(|i| [i % 50, 50 + i * 7 % 700, 800 + i * 31 % (n_features - 800)]).collect();
        let indptr = (0..=n as usize).map(|i| 3 * i).collect();
        let values = (0..3 * n).map(|at| 1.0 + (at % 7) as f32).collect();
        let x = CsrMatrix::new((n as usize, n_features as usize), indptr, indices, values);
        let with = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(|| found(&x, 70, 1.0));
        let bits = |v: Vec<f32>| v.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(with(1)), bits(with(3)));
    }
}
