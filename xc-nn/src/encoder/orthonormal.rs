//! An orthonormal basis of the columns of a tall matrix, a block of columns after the other.
//!
//! Block Gram-Schmidt, twice, with a Cholesky factor in f64 within each block: once leaves what rounding of nearly
//! dependent columns leaves, twice is enough (`[barlow2013reorthogonalized]`).
//!
//! ```text
//!   Q: n x k, rows of parts       twice:  Y -= Q (Q^T Y)            Q the blocks before
//!   Y: n x 32                             Y^T Y = R^T R, Y <- Y R^-1
//! ```

use rayon::prelude::*;
use xc_buffer::sums::Blocks;
use xc_buffer::{Loop, vectorised_loop};
use xc_dense::{MatMut, MatRef, MatmulPrecision, MatmulScratch, Start, product, product_in_leaves};

/// Columns of a block: two cache lines of a row.
pub(super) const COLUMNS: usize = 32;
/// A row's values in a block.
pub(super) type Part = [f32; COLUMNS];
/// Products of a block's columns.
type Square = [[f64; COLUMNS]; COLUMNS];

/// A column whose length falls below this share once those before it are taken away is within rounding of them.
const DEPENDENT: f64 = 1e-5;
/// Rows of a task, and of a sum in one chain.
const ROWS: usize = 4096;
/// Leaves of a sum over all rows, at most.
const LEAVES: usize = 64;

/// Puts the columns that `y` adds to the span of the blocks before `block` into this block of `q` (`n_blocks` parts a
/// row): orthonormal, what is left of each without those before it; 0 where that is within rounding of nothing.
///
/// *Determinism*: the same bits at any number of threads.
///
/// *Cost*: 8 * 32 multiplications for each value of `q` in the blocks before.
///
/// # Panics
/// If `q` has not `n_blocks` parts for each of `y`.
pub(super) fn append(q: &mut [Part], n_blocks: usize, block: usize, mut y: Vec<Part>) {
    assert!(q.len() == y.len() * n_blocks && block < n_blocks, "{} parts, {} rows of {n_blocks}", q.len(), y.len());
    let first = squares(&y);
    let mut least: Part64 = std::array::from_fn(|at| DEPENDENT.powi(2) * first[at][at]);
    for _ in 0..2 {
        subtract(&q[..], n_blocks, block, &mut y);
        let factor = Factor::of(&squares(&y), &least);
        y.par_chunks_mut(ROWS).for_each(|rows| vectorised_loop(Divide { rows, by: &factor }));
        // Columns are 0 or of length 1 now.
        least = [DEPENDENT.powi(2); COLUMNS];
    }
    q.par_chunks_mut(n_blocks).zip(&y).for_each(|(row, part)| row[block] = *part);
}

/// A number a column.
type Part64 = [f64; COLUMNS];

/// Takes from `y` what lies in the span of the blocks before `block`, which are orthonormal.
fn subtract(q: &[Part], n_blocks: usize, block: usize, y: &mut [Part]) {
    let (n, before) = (y.len(), block * COLUMNS);
    if before == 0 || n == 0 {
        return;
    }
    let q = MatRef::with_strides(q.as_flattened(), (n, before), (n_blocks * COLUMNS, 1));
    let mut scratch = MatmulScratch::default();
    let mut shares = vec![0.0; before * COLUMNS];
    let order = Blocks::new(n, LEAVES, ROWS);
    let precision = MatmulPrecision::F32;
    let to = MatMut::new(&mut shares, before, COLUMNS);
    product_in_leaves(to, q.t(), MatRef::new(y.as_flattened(), n, COLUMNS), &order, precision, &mut scratch);
    shares.iter_mut().for_each(|share| *share = -*share);
    let to = MatMut::new(y.as_flattened_mut(), n, COLUMNS);
    product(to, q, MatRef::new(&shares, before, COLUMNS), Start::Kept, precision, &mut scratch);
}

/// `Y^T Y`, in f64.
fn squares(y: &[Part]) -> Square {
    let parts: Vec<Square> = y
        .par_chunks(ROWS)
        .map(|rows| {
            let mut sums = [[0.0; COLUMNS]; COLUMNS];
            vectorised_loop(Squares { rows, sums: &mut sums });
            sums
        })
        .collect();
    // In the order of the rows.
    parts.iter().fold([[0.0; COLUMNS]; COLUMNS], |mut all, part| {
        all.as_flattened_mut().iter_mut().zip(part.as_flattened()).for_each(|(all, part)| *all += part);
        all
    })
}

struct Squares<'a> {
    rows: &'a [Part],
    sums: &'a mut Square,
}

impl Loop for Squares<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.rows {
            let row = row.map(f64::from);
            for (sums, a) in self.sums.iter_mut().zip(row) {
                sums.iter_mut().zip(&row).for_each(|(sum, b)| *sum += a * b);
            }
        }
    }
}

/// An upper triangular factor R, `R^T R` being the products of the columns that are kept.
struct Factor {
    rows: Square,
    /// `1 / R[i][i]`; 0 of columns that are not kept.
    inverse: Part64,
}

impl Factor {
    /// `least`: squares of lengths up to which a column is not kept.
    fn of(squares: &Square, least: &Part64) -> Self {
        let mut rest = *squares;
        let mut factor = Self { rows: [[0.0; COLUMNS]; COLUMNS], inverse: [0.0; COLUMNS] };
        for i in 0..COLUMNS {
            if rest[i][i] > least[i] {
                let inverse = 1.0 / rest[i][i].sqrt();
                factor.inverse[i] = inverse;
                factor.rows[i] = rest[i].map(|product| product * inverse);
            }
            let of = factor.rows[i];
            for j in i + 1..COLUMNS {
                let share = of[j];
                rest[j].iter_mut().zip(&of).for_each(|(rest, of)| *rest -= share * of);
            }
        }
        factor
    }
}

/// `Y <- Y R^-1`, row after row.
struct Divide<'a> {
    rows: &'a mut [Part],
    by: &'a Factor,
}

impl Loop for Divide<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Factor { rows: factor, inverse } = self.by;
        for row in self.rows {
            let mut rest = row.map(f64::from);
            for i in 0..COLUMNS {
                let value = rest[i] * inverse[i];
                row[i] = value as f32;
                rest.iter_mut().zip(&factor[i]).for_each(|(rest, of)| *rest -= value * of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xc_hash::stream::Stream;

    /// Modified Gram-Schmidt in f64, column after column.
    fn reference(columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut basis: Vec<Vec<f64>> = Vec::new();
        for column in columns {
            let (mut rest, length) = (column.clone(), dot(column, column).sqrt());
            for _ in 0..2 {
                for of in &basis {
                    let share = dot(of, &rest);
                    rest.iter_mut().zip(of).for_each(|(rest, of)| *rest -= share * of);
                }
            }
            let left = dot(&rest, &rest).sqrt();
            let scale = if left > DEPENDENT * length { 1.0 / left } else { 0.0 };
            basis.push(rest.iter().map(|v| v * scale).collect());
        }
        basis
    }

    proptest! {
        #[test]
        fn columns_are_those_of_gram_schmidt(
            n in 0usize..200,
            n_blocks in 1usize..4,
            // Columns that repeat earlier ones, or are nothing.
            repeats in proptest::collection::vec((0usize..96, 0usize..96), 0..6),
            seed in any::<u64>(),
        ) {
            let k = n_blocks * COLUMNS;
            let mut stream = Stream::new(seed);
            let mut values = vec![0.0f32; n * k];
            stream.fill_uniform(1.0, &mut values);
            for (from, to) in repeats {
                let (from, to) = (from % k, to % k);
                (0..n).for_each(|i| values[i * k + to] = if from == to { 0.0 } else { values[i * k + from] });
            }
            let mut q = vec![[0.0; COLUMNS]; n * n_blocks];
            for block in 0..n_blocks {
                let y = (0..n).map(|i| std::array::from_fn(|j| values[i * k + block * COLUMNS + j])).collect();
                append(&mut q, n_blocks, block, y);
            }
            let columns: Vec<Vec<f64>> =
                (0..k).map(|j| (0..n).map(|i| f64::from(values[i * k + j])).collect()).collect();
            let expected = reference(&columns);
            let q = q.as_flattened();
            for (j, expected) in expected.iter().enumerate() {
                for (i, &expected) in expected.iter().enumerate() {
                    prop_assert!((f64::from(q[i * k + j]) - expected).abs() < 2e-3, "{i} {j}");
                }
            }
            for a in 0..k {
                for b in 0..=a {
                    let product: f64 = (0..n).map(|i| f64::from(q[i * k + a]) * f64::from(q[i * k + b])).sum();
                    let expected = if a == b && product > 0.5 { 1.0 } else { 0.0 };
                    prop_assert!((product - expected).abs() < 1e-5, "{a} {b}: {product}");
                }
            }
        }
    }
}
