//! Groups of labels for the auxiliary task of `xc train uniform`: clustered by the instances that the labels have.

use crate::error::CliError;
use crate::interrupt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use std::sync::Arc;
use xc_sparse::{CsrMatrix, LabelRows, Rows};
use xc_train::{DenseRows, Features};
use xc_tree::{Event, Observer, group_labels};

/// Wider vectors are projected to so many values: groups need no more, and a copy of all vectors would not fit beside a large layer.
const NARROW: usize = 32;

/// The group of each label, by the instances `learned`, ascending: what judges has no say.
pub(super) fn groups(
    features: Features<'_>,
    labels: &LabelRows,
    learned: &[u32],
    n_groups: usize,
    seed: u64,
) -> Result<Arc<[u32]>, CliError> {
    let row = |i: usize| if learned.binary_search(&(i as u32)).is_ok() { labels.row(i) } else { &[] };
    let labels = LabelRows::from_lists((0..labels.len()).map(row), labels.n_labels())
        .unwrap_or_else(|e| panic!("a part of label rows is none: {e}"));
    let of = match features {
        Features::Sparse(rows) => group_labels(rows, &labels, n_groups, seed, &UntilInterrupted),
        Features::Dense(rows) => {
            let narrow = projected(rows, seed);
            group_labels(Rows::new(narrow.view()), &labels, n_groups, seed, &UntilInterrupted)
        }
    };
    of.map(Arc::from).ok_or_else(CliError::interrupted)
}

/// Bytes that grouping takes for a while, beside the data.
pub(super) fn n_bytes(features: Features<'_>, labels: &LabelRows) -> u64 {
    let lists = 20 * (labels.nnz() + labels.n_labels() + labels.len()) as u64;
    let vectors = match features {
        Features::Sparse(rows) => {
            let summed: usize = (0..rows.len()).map(|i| rows.row(i).nnz() * labels.row(i).len()).sum();
            8 * summed.min(rows.n_features() * labels.n_labels()) as u64
        }
        Features::Dense(rows) => 8 * (NARROW.min(rows.width()) * (rows.len() + labels.n_labels())) as u64,
    };
    lists + vectors
}

struct UntilInterrupted;

impl Observer for UntilInterrupted {
    fn event(&self, _: Event) {}

    fn cancelled(&self) -> bool {
        interrupt::interrupted()
    }
}

/// Sums of the values with random signs, [`NARROW`] of them, which keep angles about as they are.
fn projected(rows: DenseRows<'_>, seed: u64) -> CsrMatrix {
    let (n, width) = (rows.len(), rows.width());
    let narrow = NARROW.min(width);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let signs: Vec<u32> = (0..width).map(|_| random.next_u32()).collect();
    let mut values = vec![0.0f32; n * narrow];
    values.par_chunks_mut(narrow.max(1)).enumerate().for_each(|(i, to)| {
        let row = rows.row(i);
        if narrow == width {
            return to.copy_from_slice(row);
        }
        for (&value, &signs) in row.iter().zip(&signs) {
            for (bit, to) in to.iter_mut().enumerate() {
                *to += if signs >> bit & 1 == 0 { value } else { -value };
            }
        }
    });
    let indptr = (0..=n).map(|i| i * narrow).collect();
    let indices = (0..n).flat_map(|_| 0..narrow as u32).collect();
    CsrMatrix::new((n, narrow), indptr, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_like_vectors_are_together_whatever_their_width() {
        for width in [3, 32, 200] {
            // Instances of the first ten labels point one way, those of the others another way.
            let values: Vec<f32> = (0..40 * width)
                .map(|at| {
                    let (i, j) = (at / width, at % width);
                    let side = if i < 20 { j % 2 == 0 } else { j % 2 == 1 };
                    f32::from(u8::from(side)) + (at * 7919 % 101) as f32 / 2000.0
                })
                .collect();
            let labels = LabelRows::from_lists((0..40u32).map(|i| vec![i / 2]), 20).unwrap();
            let features = Features::Dense(DenseRows::new(&values, width));
            let all: Vec<u32> = (0..40).collect();
            let of = groups(features, &labels, &all, 2, 3).unwrap();
            assert!(of[..10].iter().all(|&g| g == of[0]) && of[10..].iter().all(|&g| g == of[10]), "{width}: {of:?}");
            assert_ne!(of[0], of[10]);
            // Without its instances a label is anywhere, the others are where they were.
            let some = groups(features, &labels, &all[2..], 2, 3).unwrap();
            assert!(some[1..10].iter().all(|&g| g == some[1]) && some[10..].iter().all(|&g| g == some[10]));
        }
    }
}
