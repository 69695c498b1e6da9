//! How many codes a key needs, and how much memory the tables take.

use crate::params::{FamilyKind, FamilyParams};
use crate::theory::Spread;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// A key is not made shorter for want of so small a share of the candidates.
const SHORTAGE: f64 = 0.08;

/// Similarity of rows that are to be found. Of keys that find equally many unrelated rows, longer ones
/// find these more surely, until they are hashed to so few bits that chance fills the answers.
const SIMILAR: f64 = 0.5;

/// What sizes follow from, the wanted number by its bits.
type Asked = (u64, u32, u64, FamilyKind, usize);

/// Sizes that were asked for last: options of a network ask for the same ones several times before it is made.
static KNOWN: Mutex<Vec<(Asked, TableSizing)>> = Mutex::new(Vec::new());
const MOST_KNOWN: usize = 32;

/// Codes per key, tables and their bits, from the number of labels and the wanted number of
/// candidates.
///
/// L tables of keys of K codes find N (1 - (1 - q)^L) labels that are unrelated to a query, on
/// average over pairs of rows ([`Spread`](crate::theory::Spread)); q is p^K, plus 2^-b if codes are
/// hashed down to b bits. For each K there is an L that finds the wanted number of candidates; among
/// the K whose L is allowed, the rule takes the one most likely to find a row of similarity 0.5. K
/// grows with the logarithm of N, so that answers have the same length for any number of labels.
///
/// ```
/// use xc_lsh::{FamilyKind, TableSizing};
///
/// let kind = FamilyKind::Wta { bin: 8 };
/// let sizing = TableSizing::try_new(670_000, 50, 500.0, kind, 128)?;
/// assert_eq!((sizing.n_codes(), sizing.n_tables()), (6, 50));
/// assert!((450.0..550.0).contains(&sizing.expected_candidates()));
/// // Ten times the labels, one or two codes more.
/// assert_eq!(TableSizing::try_new(6_700_000, 50, 500.0, kind, 128)?.n_codes(), 7);
/// // 1 MiB of buckets and 4 bytes a label for each table.
/// assert_eq!((sizing.bucket_bits(), sizing.table_bytes()), (18, 4 * ((1 << 18) + 1) + 4 * 670_000));
/// assert!(sizing.check_limit(100 << 20).is_err());
/// # Ok::<(), xc_lsh::TableSizingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSizing {
    n_labels: u64,
    n_tables: u32,
    n_codes: u32,
    kind: FamilyKind,
    width: usize,
}

/// Why no tables have the wanted sizes.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum TableSizingError {
    /// Nothing to be found, or nothing to find it in.
    #[error("{got} {setting}, expected at least 1")]
    Nothing {
        /// What there is none of.
        setting: &'static str,
        /// The number got.
        got: u64,
    },
    /// Ids of labels are 32-bit numbers.
    #[error("{got} labels, expected at most {}", u32::MAX)]
    TooManyLabels {
        /// Labels got.
        got: u64,
    },
    /// An invalid number of candidates.
    #[error("{got} candidates wanted, expected a number above 0")]
    Candidates {
        /// The number got.
        got: f64,
    },
    /// A bin cannot be filled from so few coordinates.
    #[error("bins of {bin} coordinates from vectors of {width}, expected at most as many")]
    BinAboveWidth {
        /// Coordinates of a bin.
        bin: u32,
        /// Values of a vector.
        width: usize,
    },
    /// The codes of a key would not fit 64 bits.
    #[error(
        "{n_codes} codes of {code_bits} bits are needed, expected at most {most}: allow more candidates, or fewer tables"
    )]
    LongKey {
        /// Codes needed.
        n_codes: u32,
        /// Bits of a code.
        code_bits: u32,
        /// Most codes of a key.
        most: u32,
    },
    /// The tables would take more memory than there is.
    #[error("{n_tables} tables take {needed} bytes of {limit}; {fitting} tables would fit")]
    Memory {
        /// Tables asked for.
        n_tables: u32,
        /// Bytes that they take.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
        /// Tables that would fit; 0 where not even one does.
        fitting: u32,
    },
}

impl TableSizing {
    /// The K and L for `candidates` of `n_labels` labels with at most `max_tables` tables, for rows
    /// of `width` values. If even keys of one code find fewer: one code and all tables.
    ///
    /// *Cost*: some milliseconds; nothing where the same was asked for lately.
    ///
    /// # Errors
    /// See [`TableSizingError`].
    pub fn try_new(
        n_labels: u64,
        max_tables: u32,
        candidates: f64,
        kind: FamilyKind,
        width: usize,
    ) -> Result<Self, TableSizingError> {
        if !(candidates > 0.0 && candidates.is_finite()) {
            return Err(TableSizingError::Candidates { got: candidates });
        }
        let asked = (n_labels, max_tables, candidates.to_bits(), kind, width);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sizing)) = known.iter().find(|(of, _)| *of == asked) {
            return Ok(*sizing);
        }
        let made = Self::of_candidates(asked, candidates)?;
        known.truncate(MOST_KNOWN - 1);
        known.insert(0, (asked, made));
        Ok(made)
    }

    fn of_candidates((n_labels, max_tables, _, kind, width): Asked, candidates: f64) -> Result<Self, TableSizingError> {
        let shortest = Self::with_codes(n_labels, max_tables, 1, kind, width)?;
        let spread = Spread::of_unrelated(kind, width as f64);
        let mut best = shortest.with_tables_for(candidates, &spread);
        for n_codes in 2..=64 / kind.code_bits().max(1) {
            let longest = Self { n_codes, n_tables: max_tables, ..best };
            if longest.found(&spread) < (1.0 - SHORTAGE) * candidates {
                break;
            }
            let longer = longest.with_tables_for(candidates, &spread);
            // Short keys may find too many labels even with one table: those nearer the wanted number come first.
            let excess = |of: &Self| (of.found(&spread) / candidates - 1.0).max(SHORTAGE);
            let (before, now) = (excess(&best), excess(&longer));
            let is_surer = || longer.params(0).inclusion(SIMILAR) > best.params(0).inclusion(SIMILAR);
            if now < before || now == before && is_surer() {
                best = longer;
            }
        }
        Ok(best)
    }

    /// As many of these tables as find `candidates`: the first number that finds enough, or the one
    /// before if that is nearer.
    fn with_tables_for(self, candidates: f64, spread: &Spread) -> Self {
        let with = |n_tables| Self { n_tables, ..self }.found(spread);
        let (mut few, mut enough) = (0, self.n_tables);
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            *if with(middle) < candidates { &mut few } else { &mut enough } = middle;
        }
        let is_nearer = few > 0 && candidates - with(few) < with(enough) - candidates;
        Self { n_tables: if is_nearer { few } else { enough }, ..self }
    }

    /// The sizes of tables with `n_codes` codes a key.
    ///
    /// # Errors
    /// See [`TableSizingError`].
    pub fn with_codes(
        n_labels: u64,
        n_tables: u32,
        n_codes: u32,
        kind: FamilyKind,
        width: usize,
    ) -> Result<Self, TableSizingError> {
        let settings = [
            ("labels", n_labels),
            ("tables", n_tables.into()),
            ("codes of a key", n_codes.into()),
            ("values of a row", width as u64),
        ];
        if let Some(&(setting, got)) = settings.iter().find(|s| s.1 == 0) {
            return Err(TableSizingError::Nothing { setting, got });
        }
        if n_labels > u64::from(u32::MAX) {
            return Err(TableSizingError::TooManyLabels { got: n_labels });
        }
        if let FamilyKind::Wta { bin } = kind
            && bin as usize > width
        {
            return Err(TableSizingError::BinAboveWidth { bin, width });
        }
        let code_bits = kind.code_bits();
        let most = 64 / code_bits.max(1);
        if n_codes > most {
            return Err(TableSizingError::LongKey { n_codes, code_bits, most });
        }
        Ok(Self { n_labels, n_tables, n_codes, kind, width })
    }

    /// Number of labels, N.
    pub fn n_labels(&self) -> u64 {
        self.n_labels
    }

    /// Number of tables, L.
    pub fn n_tables(&self) -> u32 {
        self.n_tables
    }

    /// Codes of a key, K.
    pub fn n_codes(&self) -> u32 {
        self.n_codes
    }

    /// Bits of a table's bucket numbers: those of a key, but at most two buckets per label.
    pub fn bucket_bits(&self) -> u32 {
        let key_bits = self.n_codes * self.kind.code_bits();
        (self.n_labels.ilog2() + 1).min(28).min(key_bits)
    }

    /// Expected number of labels in an answer without limits when none is related to the query.
    pub fn expected_candidates(&self) -> f64 {
        self.found(&Spread::of_unrelated(self.kind, self.width as f64))
    }

    fn found(&self, spread: &Spread) -> f64 {
        self.n_labels as f64 * spread.inclusion(self.n_codes, self.params(0).folded_bits(), self.n_tables)
    }

    /// Hash evaluations of a query, K L.
    pub fn n_hashes(&self) -> u64 {
        u64::from(self.n_codes) * u64::from(self.n_tables)
    }

    /// Parameters of these functions.
    pub fn params(&self, seed: u64) -> FamilyParams {
        let (n_codes, n_tables) = (self.n_codes, self.n_tables);
        FamilyParams { kind: self.kind, width: self.width, n_codes, n_tables, key_bits: self.bucket_bits(), seed }
    }

    /// Bytes of one table: the start of each bucket, and the labels by bucket.
    pub fn table_bytes(&self) -> u64 {
        4 * ((1u64 << self.bucket_bits()) + 1) + 4 * self.n_labels
    }

    /// Bytes of the labels' keys in all tables, which are kept so that labels can be moved without rehashing all of
    /// them.
    pub fn keys_bytes(&self) -> u64 {
        4 * self.n_labels * u64::from(self.n_tables)
    }

    /// Bytes of all tables and keys.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.n_tables) * self.table_bytes() + self.keys_bytes()
    }

    /// Whether tables and keys fit.
    ///
    /// # Errors
    /// [`TableSizingError::Memory`], with the number of tables that would fit.
    pub fn check_limit(&self, limit: u64) -> Result<(), TableSizingError> {
        let needed = self.memory_bytes();
        if needed <= limit {
            return Ok(());
        }
        let one = needed / u64::from(self.n_tables);
        Err(TableSizingError::Memory { n_tables: self.n_tables, needed, limit, fitting: (limit / one) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Projection;

    #[test]
    fn the_tables_find_what_is_wanted_and_similar_rows_most_surely() {
        let kinds = [
            FamilyKind::Wta { bin: 8 },
            FamilyKind::Wta { bin: 5 },
            FamilyKind::SimHash { projection: Projection::Gaussian },
            FamilyKind::MinHash { minima: crate::Minima::Classic, code_bits: 4 },
        ];
        for kind in kinds {
            for (n_labels, max_tables, wanted) in [(10_000, 50, 500.0), (670_000, 400, 1000.0), (3_000_000, 30, 50.0)] {
                let sizing = TableSizing::try_new(n_labels, max_tables, wanted, kind, 128).unwrap();
                let (found, n_tables) = (sizing.expected_candidates(), sizing.n_tables());
                let off = (found / wanted - 1.0).abs();
                assert!(
                    off < 0.6 / f64::from(n_tables) + 1e-9 || n_tables == max_tables && off < SHORTAGE,
                    "{sizing:?}: {found}"
                );
                assert!(n_tables <= max_tables);
                let spread = Spread::of_unrelated(kind, 128.0);
                for n_codes in 1..=64 / kind.code_bits() {
                    let other = TableSizing::with_codes(n_labels, max_tables, n_codes, kind, 128).unwrap();
                    let other = other.with_tables_for(wanted, &spread);
                    let found = other.expected_candidates() / wanted;
                    let is_as_many = (1.0 - SHORTAGE..=1.0 + SHORTAGE).contains(&found);
                    let surer = other.params(0).inclusion(SIMILAR) > sizing.params(0).inclusion(SIMILAR);
                    assert!(!is_as_many || !surer, "{other:?} rather than {sizing:?}");
                }
                assert_eq!(sizing.params(1).codes() as u64, sizing.n_hashes());
            }
        }
    }

    #[test]
    fn keys_are_not_hashed_to_bits_that_fill_the_answer_by_chance() {
        let sizing = TableSizing::try_new(20_253, 50, 20.0, FamilyKind::Wta { bin: 8 }, 129).unwrap();
        assert_eq!((sizing.n_codes(), sizing.bucket_bits()), (5, 15));
        // Seven codes a key find as many, but 18.5 of the 20 by chance.
        let longer = TableSizing::with_codes(20_253, 30, 7, FamilyKind::Wta { bin: 8 }, 129).unwrap();
        assert!((18.0..22.0).contains(&longer.expected_candidates()));
        assert!(sizing.params(0).inclusion(0.5) > 3.0 * longer.params(0).inclusion(0.5));
    }

    #[test]
    fn few_labels_get_one_code_and_all_tables() {
        let kind = FamilyKind::SimHash { projection: Projection::Sparse };
        let sizing = TableSizing::try_new(300, 4, 500.0, kind, 64).unwrap();
        assert_eq!((sizing.n_codes(), sizing.n_tables(), sizing.bucket_bits()), (1, 4, 1));
        assert!(sizing.expected_candidates() < 300.0);
    }

    #[test]
    fn what_cannot_be_says_what_could() {
        let kind = FamilyKind::Wta { bin: 8 };
        let sized = |n_labels, n_tables, wanted| TableSizing::try_new(n_labels, n_tables, wanted, kind, 64);
        assert_eq!(sized(0, 5, 1.0), Err(TableSizingError::Nothing { setting: "labels", got: 0 }));
        assert_eq!(sized(5, 0, 1.0), Err(TableSizingError::Nothing { setting: "tables", got: 0 }));
        assert_eq!(sized(1 << 32, 5, 1.0), Err(TableSizingError::TooManyLabels { got: 1 << 32 }));
        assert_eq!(sized(5, 5, 0.0), Err(TableSizingError::Candidates { got: 0.0 }));
        assert!(sized(5, 5, f64::NAN).is_err());
        let long = TableSizing::with_codes(5, 5, 22, kind, 64);
        assert_eq!(long, Err(TableSizingError::LongKey { n_codes: 22, code_bits: 3, most: 21 }));
        let narrow = TableSizing::try_new(9, 9, 9.0, kind, 7);
        assert_eq!(narrow, Err(TableSizingError::BinAboveWidth { bin: 8, width: 7 }));
        let sizing = TableSizing::with_codes(100_000, 50, 5, kind, 64).unwrap();
        let limit = sizing.memory_bytes() / 5;
        let Err(TableSizingError::Memory { fitting, needed, .. }) = sizing.check_limit(limit) else {
            panic!("it fits")
        };
        assert_eq!((fitting, needed), (10, sizing.memory_bytes()));
        let smaller = TableSizing::with_codes(100_000, fitting, sizing.n_codes(), kind, 64).unwrap();
        assert_eq!(smaller.check_limit(limit), Ok(()));
        assert_eq!(sizing.check_limit(needed), Ok(()));
        assert!(sizing.params(1).build().unwrap().key_bits() <= sizing.bucket_bits());
    }
}
