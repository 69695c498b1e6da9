//! Rows that are held out, by what they are.

use rayon::prelude::*;
use xc_hash::stream::{Purpose, name};
use xc_sparse::rows::{Row, Rows, SparseRow};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// What an instance is known by: a hash of what a query consists of, before any weighting. Labels do not count. Rows that are equal
/// are one row, whatever container they lie in.
///
/// It is no secret: whoever has a row can tell whether it is among others.
pub fn hash_row(row: Row<'_>) -> u64 {
    match row {
        Row::Sparse(row) => hash_sparse(row),
        Row::Dense(values) => xxh3_64(bytemuck::cast_slice(values)),
        Row::Text(text) => hash_text(text),
        Row::Tokens(row) => xxh3_64(bytemuck::cast_slice(row.ids)),
    }
}

/// [`hash_row`] of each.
pub fn hash_rows(rows: Rows<'_>) -> Vec<u64> {
    (0..rows.len()).into_par_iter().map(|i| hash_row(rows.row(i))).collect()
}

/// [`hash_row`] of a text.
pub fn hash_text(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

/// Values that are 0 do not count.
fn hash_sparse(row: SparseRow<'_>) -> u64 {
    let mut hash = Xxh3Default::new();
    for (feature, value) in row.iter().filter(|&(_, value)| value != 0.0) {
        hash.update(&feature.to_le_bytes());
        hash.update(&value.to_le_bytes());
    }
    hash.digest()
}

/// Which rows are held out: a share of them, drawn by their hashes and a seed.
///
/// Whether a row is held out depends on nothing else, so the same rows of the same file are held out whatever is learned from the
/// others, rows that are equal stay on one side, and more rows move none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldOut {
    /// Share of the rows, from 0 to 1; that of a file differs from it by chance.
    pub share: f64,
    /// Names the draw.
    pub seed: u64,
    /// Which rows: those of the parts 0, 1, ... of one share and seed are all different. Usually 0.
    pub part: u32,
}

impl HoldOut {
    /// Whether a row of this hash is held out.
    pub fn takes(&self, hash: u64) -> bool {
        // 53 bits are exact in f64.
        let draw = (name(self.seed, Purpose::Split, &[hash]) >> 11) as f64 / (1u64 << 53) as f64;
        let end_of = |parts: u32| self.share * f64::from(parts);
        end_of(self.part) <= draw && draw < end_of(self.part + 1)
    }

    /// The rows of these hashes in two parts.
    pub fn split(&self, hashes: &[u64]) -> Split {
        let (kept, held_out) = (0..hashes.len() as u32).partition(|&row| !self.takes(hashes[row as usize]));
        Split { kept, held_out }
    }
}

/// Rows in two parts, by number; each part ascends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Those that are learned from.
    pub kept: Vec<u32>,
    /// The others.
    pub held_out: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stored_zeros_and_the_kind_of_container_do_not_change_a_rows_hash() {
        let (indices, values) = ([2, 5, 9], [1.0, 0.0, -2.5]);
        let row = SparseRow::from_checked(&indices, &values);
        let plain = SparseRow::from_checked(&[2, 9], &[1.0, -2.5]);
        assert_eq!(hash_row(Row::Sparse(row)), hash_row(Row::Sparse(plain)));
        assert_ne!(hash_sparse(row), hash_sparse(SparseRow::from_checked(&[2, 8], &[1.0, -2.5])));
        // Frozen: models are compared with files of later versions.
        assert_eq!(hash_text(""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash_row(Row::Dense(&[])), hash_text(""));
    }

    proptest! {
        #[test]
        fn a_row_is_held_out_by_its_hash_alone(hashes in prop::collection::vec(0u64..40, 0..80), share in 0.0f64..1.0, seed in 0u64..4) {
            let hold_out = HoldOut { share, seed, part: 0 };
            let Split { kept, held_out } = hold_out.split(&hashes);
            prop_assert_eq!(kept.len() + held_out.len(), hashes.len());
            for &a in &kept {
                prop_assert!(held_out.iter().all(|&b| hashes[a as usize] != hashes[b as usize]));
            }
            prop_assert_eq!(HoldOut { share: 0.0, seed, part: 0 }.split(&hashes).held_out, Vec::<u32>::new());
        }
    }

    #[test]
    fn the_share_of_many_rows_is_what_was_asked_for() {
        let hashes: Vec<u64> = (0..20_000).map(|i| hash_text(&i.to_string())).collect();
        let held = HoldOut { share: 0.1, seed: 3, part: 0 }.split(&hashes).held_out;
        assert!((1_850..2_150).contains(&held.len()), "{}", held.len());
        assert_ne!(HoldOut { share: 0.1, seed: 4, part: 0 }.split(&hashes).held_out, held);
    }

    #[test]
    fn parts_of_a_share_hold_out_each_row_once() {
        let hashes: Vec<u64> = (0..1_000).map(|i| hash_text(&i.to_string())).collect();
        let parts = [0, 1, 2, 3, 4].map(|part| HoldOut { share: 0.2, seed: 3, part }.split(&hashes).held_out);
        assert!(parts.iter().all(|held| (150..250).contains(&held.len())));
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<u32>>());
    }
}
