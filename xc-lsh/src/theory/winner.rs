//! Winner-take-all: the largest of a few coordinates is the same in two vectors.

use super::normal::{cumulative, density};
use xc_sparse::SparseRow;

/// Below this root of 1 - correlation^2 the integral is replaced by its behaviour near 0.
const NARROW: f64 = 0.06;

/// Probability that the largest of `bin` coordinates stands at the same place in two vectors, over
/// the draw of the coordinates and of the vectors: pairs of coordinates are independent and normal,
/// of this correlation.
///
/// With F the distribution function of such a pair and f its density it is m times the integral of
/// f F^(m-1). Nearly the same for two fixed vectors of many coordinates with that cosine, if their
/// values are about normal. *Range*: correlations are cut to [-1, 1]. *Cost*: some milliseconds.
/// *Error*: below 1e-4.
///
/// ```
/// let p = xc_lsh::theory::winner_of_normals(0.0, 8);
/// assert!((p - 1.0 / 8.0).abs() < 1e-6);
/// ```
///
/// # Panics
/// If `bin` is 0.
pub fn winner_of_normals(correlation: f64, bin: u32) -> f64 {
    assert!(bin > 0, "a bin of 0 coordinates");
    let correlation = correlation.clamp(-1.0, 1.0);
    if bin == 1 || correlation == 1.0 {
        return 1.0;
    }
    let narrow = (1.0 - correlation * correlation).max(0.0).sqrt();
    if narrow >= NARROW {
        return integral(correlation, narrow, bin);
    }
    // 1 - p (or p, at -1) is a c + b c^2 near c = 0: a parabola through 0 and two points.
    let at = |c: f64| {
        let rho = (1.0 - c * c).sqrt().copysign(correlation);
        if correlation > 0.0 { 1.0 - integral(rho, c, bin) } else { integral(rho, c, bin) }
    };
    let (first, second) = (at(NARROW) / NARROW, at(2.0 * NARROW) / (2.0 * NARROW));
    let b = (second - first) / NARROW;
    let off = narrow * (first + b * (narrow - NARROW));
    if correlation > 0.0 { 1.0 - off } else { off }.clamp(0.0, 1.0)
}

/// m times the integral of f F^(m-1), by sums over a grid: such sums are exact to many digits for
/// smooth functions that vanish at both ends, if the grid is finer than the narrowest bump, of
/// width `narrow`.
fn integral(rho: f64, narrow: f64, bin: u32) -> f64 {
    let end = 7.0;
    let n = (2.0 * end / (0.6 * narrow).min(0.1)).ceil() as usize;
    let h = 2.0 * end / n as f64;
    let places: Vec<(f64, f64)> = (0..=n).map(|i| -end + i as f64 * h).map(|x| (x, density(x))).collect();
    let mut sum = 0.0;
    for &(y, _) in &places {
        // F(x, y) grows along x: the sum so far, half the present term, and the next correction at
        // the moving end.
        let mut below = 0.0;
        for &(x, f) in &places {
            let z = (y - rho * x) / narrow;
            let (inner, bump) = (cumulative(z), density(z));
            let term = f * inner;
            let slope = -x * term - f * bump * rho / narrow;
            let joint = (h * (below + 0.5 * term) - h * h / 12.0 * slope).max(0.0);
            sum += f * bump / narrow * joint.powi(bin as i32 - 1);
            below += term;
        }
    }
    (f64::from(bin) * sum * h * h).clamp(0.0, 1.0)
}

/// Whether coordinate `i` loses against `j`: the larger value wins, of equal ones the lower index.
fn loses(values: &[f32], i: usize, j: usize) -> bool {
    values[i] < values[j] || values[i] == values[j] && i > j
}

/// Probability that the largest of `bin` coordinates is the same in two given vectors, over the
/// draw of the coordinates without repetition: the sum over i of C(n_i, m-1) / C(d, m), n_i the
/// coordinates that lose against i in both. *Cost*: O(d^2).
///
/// ```
/// // Two of three coordinates: 0 and 1 agree, 0 and 2 do, 1 and 2 do not.
/// let p = xc_lsh::theory::winner_of(&[3.0, 2.0, 1.0], &[3.0, 1.0, 2.0], 2);
/// assert!((p - 2.0 / 3.0).abs() < 1e-12);
/// ```
///
/// # Panics
/// If the vectors differ in length, or `bin` is 0 or above it.
pub fn winner_of(x: &[f32], y: &[f32], bin: u32) -> f64 {
    assert_eq!(x.len(), y.len(), "widths of the two vectors");
    let (d, m) = (x.len(), bin as usize);
    assert!(m > 0 && m <= d, "bins of {m} from {d} coordinates");
    let beaten = |i: usize| (0..d).filter(|&j| loses(x, j, i) && loses(y, j, i)).count();
    // C(n, m-1) / C(d, m) is m / d times a product of ratios.
    let share = |n: usize| (0..m - 1).map(|j| n.saturating_sub(j) as f64 / (d - 1 - j) as f64).product::<f64>();
    (0..d).map(|i| share(beaten(i))).sum::<f64>() * m as f64 / d as f64
}

/// Probability that a code of densified winner-take-all is the same for two given rows, over
/// functions that throw features into bins independently: `n_bins` of a permutation, positions
/// below `bin`.
///
/// With q = 1 / `n_bins`: a bin holds the same winner with probability a = sum over shared i of q
/// (1 - q)^(features that beat i in either row), and is empty in both with e = (1 - q)^(features of
/// either). A bin that is empty in both is filled alike; where winners differ their positions agree
/// by chance: (a + (1 - e - a) / m) / (1 - e). *Cost*: O(nnz^2).
pub fn winner_of_sparse(x: SparseRow<'_>, y: SparseRow<'_>, n_bins: u32, bin: u32) -> f64 {
    let stored = |row: SparseRow<'_>| row.iter().filter(|&(_, v)| v != 0.0).collect::<Vec<_>>();
    let (x, y) = (stored(x), stored(y));
    let mut union: Vec<u32> = x.iter().chain(&y).map(|e| e.0).collect();
    union.sort_unstable();
    union.dedup();
    let value = |row: &[(u32, f32)], feature| row.iter().find(|e| e.0 == feature).map(|e| e.1);
    let beats = |row: &[(u32, f32)], j: u32, i: u32| match (value(row, j), value(row, i)) {
        (Some(vj), Some(vi)) => vj > vi || vj == vi && j < i,
        (there, _) => there.is_some(),
    };
    let q = 1.0 / f64::from(n_bins);
    let shared = union.iter().filter(|&&i| value(&x, i).is_some() && value(&y, i).is_some());
    let same: f64 = shared
        .map(|&i| {
            let above = union.iter().filter(|&&j| j != i && (beats(&x, j, i) || beats(&y, j, i))).count();
            q * (1.0 - q).powi(above as i32)
        })
        .sum();
    let some = 1.0 - (1.0 - q).powi(union.len() as i32);
    if some == 0.0 { 1.0 } else { ((same + (some - same) / f64::from(bin)) / some).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_hash::stream::Stream;

    #[test]
    fn two_coordinates_have_a_formula() {
        // The larger of two is the sign of a difference: the differences have the correlation of
        // the vectors.
        for rho in [-0.999, -0.9, -0.3, 0.0, 0.2, 0.5, 0.9, 0.99, 0.998, 0.9995] {
            let (met, expected) = (winner_of_normals(rho, 2), crate::theory::simhash(rho));
            assert!((met - expected).abs() < 1e-4, "{rho}: {met}, expected {expected}");
        }
    }

    #[test]
    fn independent_vectors_agree_once_in_m_and_equal_ones_always() {
        for bin in [1, 2, 3, 8, 16] {
            assert!((winner_of_normals(0.0, bin) - 1.0 / f64::from(bin)).abs() < 1e-6);
            assert_eq!(winner_of_normals(1.0, bin), 1.0);
        }
        assert!(winner_of_normals(-1.0, 8) < 1e-4);
    }

    #[test]
    fn the_probability_rises_with_the_correlation() {
        let p: Vec<f64> = (-20..=20).map(|i| winner_of_normals(f64::from(i) / 20.0, 8)).collect();
        assert!(p.windows(2).all(|w| w[0] <= w[1]), "{p:?}");
    }

    #[test]
    fn the_sum_over_subsets_is_the_count_over_all_of_them() {
        let mut stream = Stream::new(5);
        for m in 1..=4u32 {
            let draw = |stream: &mut Stream| (0..7).map(|_| stream.below(4) as f32).collect::<Vec<_>>();
            let (x, y) = (draw(&mut stream), draw(&mut stream));
            let (mut all, mut same) = (0, 0);
            for subset in (0u32..1 << 7).filter(|s| s.count_ones() == m) {
                let winner = |values: &[f32]| {
                    let of = |&i: &usize| subset >> i & 1 == 1;
                    (0..7).filter(of).max_by(|&a, &b| values[a].total_cmp(&values[b]).then(b.cmp(&a)))
                };
                all += 1;
                same += i32::from(winner(&x) == winner(&y));
            }
            assert!((winner_of(&x, &y, m) - f64::from(same) / f64::from(all)).abs() < 1e-12, "m {m}");
        }
    }

    #[test]
    fn rows_with_equal_values_agree_by_their_overlap() {
        // Shared features are as likely to win as any: s + (1 - s) / m, whatever the number of
        // bins.
        let row = |range: std::ops::Range<u32>| (range.clone().collect::<Vec<_>>(), vec![1.0f32; range.len()]);
        let ((a, av), (b, bv)) = (row(0..30), row(10..40));
        let (x, y) = (SparseRow::from_checked(&a, &av), SparseRow::from_checked(&b, &bv));
        // Of equal values the lower feature wins; features 0 to 9, of one row alone, win over the
        // shared ones.
        let p = winner_of_sparse(x, y, 1_000_000, 8);
        assert!((p - crate::theory::with_chance(0.5, 8.0)).abs() < 1e-4, "{p}");
        assert_eq!(winner_of_sparse(x, x, 16, 8), 1.0);
    }
}
