//! Latent semantic analysis of sparse rows: a truncated SVD, as the initial embeddings of a bag.
//!
//! A randomised range finder (`[halko2011finding]`, algorithm 4.4): random columns are multiplied
//! by `X^T X` and made orthonormal, a few times. The result spans approximately the space of the
//! leading right singular vectors, up to a rotation, which a layer above can undo.
//!
//! ```text
//!   V: features x k, even in +-1          pass: V <- Q of ( X^T X V ) = Q R         rows of X at length 1
//!   stripes of 32 columns, one task each: row after row z = x V, W += x^T z         no rows x k matrix exists
//! ```

use super::orthonormal;
use rayon::prelude::*;
use xc_buffer::simd::prefetch_start;
use xc_buffer::{Loop, vectorised_loop};
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::CsrView;

/// Columns of a task: two cache lines of a row of `V`.
const STRIPE: usize = orthonormal::COLUMNS;
/// A row's columns of a stripe.
type Part = orthonormal::Part;
/// Features between asking for a part and reading it.
const AHEAD: usize = 8;
/// Rows between two looks at whether to stop.
const ROWS: usize = 1024;
/// Features whose first values are one stream's.
const CHUNK: usize = 4096;

/// Embeddings of `k` values, one row per feature, that span the top right singular vectors of the
/// rows `which`, scaled so that the embedding sums of these rows (`x V`) have values of mean square
/// `mean_square`.
///
/// Where rows span fewer than `k` directions some columns are 0; so they may be for directions that
/// hold less than a hundred thousandth of the weight of the first. Nothing comes back once
/// `cancelled` says so.
///
/// *Determinism*: the same bits at any number of threads.
///
/// *Cost*: a pass 2 k multiplications per entry (k / 32 tasks) and 2 k^2 per feature; memory as [`bytes`] says.
///
/// # Panics
/// If a row has a feature that is none, or there is no pass.
pub fn embeddings(
    rows: CsrView<'_>,
    which: &[u32],
    k: usize,
    passes: usize,
    mean_square: f64,
    seed: u64,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<f32>> {
    assert!(passes > 0, "no pass");
    let (n_features, n_stripes) = (rows.cols(), k.div_ceil(STRIPE));
    // A row is `n_stripes` parts; columns behind the k-th are 0 and stay so.
    let mut v = vec![[0.0f32; STRIPE]; n_features * n_stripes];
    v.par_chunks_mut((CHUNK * n_stripes).max(1)).enumerate().for_each(|(at, parts)| {
        let mut stream = Stream::new(name(seed, Purpose::SingularVectors, &[0, at as u64]));
        for row in parts.chunks_mut(n_stripes.max(1)) {
            stream.fill_uniform(1.0, &mut row.as_flattened_mut()[..k]);
        }
    });
    let mut energy = 0.0;
    for _ in 0..passes {
        let stripes: Option<Vec<Stripe>> = (0..n_stripes)
            .into_par_iter()
            .map(|stripe| {
                let mut to = Stripe { columns: vec![[0.0; STRIPE]; n_features], energy: 0.0 };
                for which in which.chunks(ROWS) {
                    if cancelled() {
                        return None;
                    }
                    vectorised_loop(Multiply { rows, which, v: &v, stripe, n_stripes, to: &mut to });
                }
                Some(to)
            })
            .collect();
        let stripes = stripes?;
        energy = stripes.iter().map(|s| s.energy).sum();
        for (at, stripe) in stripes.into_iter().enumerate() {
            if cancelled() {
                return None;
            }
            orthonormal::append(&mut v, n_stripes, at, stripe.columns);
        }
        if cancelled() {
            return None;
        }
    }
    // Of the last pass but for its rotation: the energy of the columns it began with.
    let got = energy / (which.len() * k) as f64;
    let scale = (mean_square / got).sqrt() as f32;
    let scale = if scale.is_finite() && scale > 0.0 { scale } else { 1.0 };
    let mut out = vec![0.0f32; n_features * k];
    out.par_chunks_mut(k.max(1)).zip(v.par_chunks(n_stripes.max(1))).for_each(|(to, row)| {
        to.iter_mut().zip(row.as_flattened()).for_each(|(to, v)| *to = v * scale);
    });
    Some(out)
}

/// Bytes that [`embeddings`] takes at most, its result included: two matrices, what it gives being
/// one, and the triangular factors.
pub fn bytes(n_features: usize, k: usize) -> u64 {
    let columns = (k as u64).checked_next_multiple_of(STRIPE as u64).unwrap_or(u64::MAX);
    let matrices = columns.saturating_mul(n_features as u64).saturating_mul(8);
    matrices.saturating_add(columns.saturating_mul(columns).saturating_mul(8))
}

/// Some columns of a pass.
struct Stripe {
    /// Columns of `X^T X V`.
    columns: Vec<Part>,
    /// Sum of squares of `X V` with rows as long as they are.
    energy: f64,
}

/// Adds what the rows `which` give to a stripe.
struct Multiply<'a> {
    rows: CsrView<'a>,
    which: &'a [u32],
    v: &'a [Part],
    stripe: usize,
    n_stripes: usize,
    to: &'a mut Stripe,
}

impl Loop for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, which, v, stripe, n_stripes, to: Stripe { columns, energy } } = self;
        for &i in which {
            let row = rows.row(i as usize);
            let length = row.values().iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            let scale = 1.0 / length;
            // Rows of nothing have no direction.
            if !(scale.is_finite() && scale > 0.0) {
                continue;
            }
            let weight = |x: f32| (f64::from(x) * scale) as f32;
            let mut sums = [0.0f32; STRIPE];
            for (at, (&f, &x)) in row.indices().iter().zip(row.values()).enumerate() {
                // Parts lie anywhere, in both matrices: those of later features are asked for now.
                if let Some(&f) = row.indices().get(at + AHEAD) {
                    prefetch_start(&v[f as usize * n_stripes + stripe]);
                    prefetch_start(&columns[f as usize]);
                }
                let (from, x) = (&v[f as usize * n_stripes + stripe], weight(x));
                sums.iter_mut().zip(from).for_each(|(sum, v)| *sum += x * v);
            }
            for (&f, &x) in row.indices().iter().zip(row.values()) {
                let (to, x) = (&mut columns[f as usize], weight(x));
                to.iter_mut().zip(&sums).for_each(|(to, sum)| *to += x * sum);
            }
            *energy += length * length * sums.iter().map(|&z| f64::from(z).powi(2)).sum::<f64>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_sparse::CsrMatrix;

    /// Rows within the span of `rank` directions (of `n_features` values), each `decay` times as
    /// long as the one before.
    fn rows(n: usize, n_features: usize, rank: usize, decay: f64) -> (CsrMatrix, Vec<Vec<f64>>) {
        let mut random = Stream::new(5);
        let mut draw = |n: usize| {
            let mut v = vec![0.0; n];
            random.fill_uniform(1.0, &mut v);
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
        (CsrMatrix::from_checked((n, n_features), indptr, indices, values), basis)
    }

    fn found(x: &CsrMatrix, k: usize, mean_square: f64) -> Vec<f32> {
        let which: Vec<u32> = (0..x.rows() as u32).collect();
        embeddings(x.view(), &which, k, 3, mean_square, 1, &|| false).unwrap()
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
                    let expected = if i == j && dot(a, a) > 0.0 { length } else { 0.0 };
                    assert!((dot(a, b) - expected).abs() < 1e-4 * length, "{k}: {i} {j} {}", dot(a, b) / length);
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
        let got = sums(&v) / (500 * k) as f64;
        assert!((got / mean_square - 1.0).abs() < 0.02, "{got}");
        // Random directions of the same length hold a fifteenth of the rows' weight, these nearly
        // all that 20 can.
        let length = dot(&column(&v, k, 0), &column(&v, k, 0));
        let all: f64 = view.data().iter().map(|&v| f64::from(v).powi(2)).sum();
        assert!(sums(&v) / length > 0.95 * all, "{}", sums(&v) / length / all);
    }

    #[test]
    fn nothing_features_rows_and_huge_values_are_directions_too() {
        let empty = CsrMatrix::from_checked((0, 5), vec![0], vec![], vec![]);
        assert_eq!(found(&empty, 3, 1.0), [0.0; 15]);
        let zeros = CsrMatrix::from_checked((2, 3), vec![0, 0, 1], vec![1], vec![0.0]);
        assert_eq!(found(&zeros, 2, 1.0), [0.0; 6]);
        assert!(found(&CsrMatrix::from_checked((2, 0), vec![0, 0, 0], vec![], vec![]), 4, 1.0).is_empty());
        let huge = CsrMatrix::from_checked((2, 3), vec![0, 2, 3], vec![0, 1, 2], vec![3e38, -3e38, 1e-38]);
        let v = found(&huge, 2, 1.0);
        assert!(v.iter().all(|v| v.is_finite()), "{v:?}");
        // Rows count alike, whatever their length: both directions are there.
        assert!(v[4] != 0.0 || v[5] != 0.0, "{v:?}");
        let tiny = CsrMatrix::from_checked((2, 3), vec![0, 1, 2], vec![0, 2], vec![1e-42, -1e-42]);
        let v = found(&tiny, 2, 1.0);
        assert!(v.iter().all(|v| v.is_finite()) && v.iter().any(|&v| v != 0.0), "{v:?}");
        // Library callers may have values that readers refuse.
        let infinite = CsrMatrix::from_checked((2, 2), vec![0, 1, 2], vec![0, 1], vec![f32::INFINITY, 1.0]);
        assert!(found(&infinite, 1, 1.0).iter().all(|v| v.is_finite()));
    }

    #[test]
    fn asked_to_stop_there_is_none() {
        let (x, _) = rows(20, 10, 3, 1.0);
        assert!(embeddings(x.view(), &[0, 1], 2, 3, 1.0, 1, &|| true).is_none());
    }

    #[test]
    fn instruction_sets_do_not_matter() {
        let (x, _) = rows(40, 50, 20, 0.9);
        let (x, which): (_, Vec<u32>) = (x.view(), (0..40).collect());
        let mut v = vec![[0.0f32; STRIPE]; 50 * 2];
        Stream::new(3).fill_uniform(1.0, v.as_flattened_mut());
        let bits = |parts: &[Part]| parts.as_flattened().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        // A loop that is called as it stands is compiled for the baseline instruction set.
        let pass = |vectors: bool| {
            let mut to = Stripe { columns: vec![[0.0; STRIPE]; 50], energy: 0.0 };
            let pass = Multiply { rows: x, which: &which, v: &v, stripe: 1, n_stripes: 2, to: &mut to };
            if vectors {
                vectorised_loop(pass)
            } else {
                pass.run()
            }
            (bits(&to.columns), to.energy.to_bits())
        };
        assert_eq!(pass(true), pass(false));
    }

    #[test]
    fn threads_do_not_matter() {
        // More rows than lie between two looks at the observer, more features than one stream's.
        let (n, n_features) = (2 * ROWS as u32 + 76, CHUNK as u32 + 904);
        let indices = (0..n).flat_map(|i| [i % 50, 50 + i * 7 % 700, 800 + i * 31 % (n_features - 800)]).collect();
        let indptr = (0..=n as usize).map(|i| 3 * i).collect();
        let values = (0..3 * n).map(|at| 1.0 + (at % 7) as f32).collect();
        let x = CsrMatrix::from_checked((n as usize, n_features as usize), indptr, indices, values);
        let with = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(|| found(&x, 70, 1.0));
        let bits = |v: Vec<f32>| v.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(with(1)), bits(with(3)));
    }
}
