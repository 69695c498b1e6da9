//! How many codes a key needs, and what the tables take.

use crate::params::{FamilyParams, Kind};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Codes of a key and bits of a table for a number of labels, from the noise that is allowed.
///
/// L tables of keys of K codes give N L p0^K unrelated labels, where p0 is the chance that a code
/// of unrelated rows agrees ([`Kind::chance`]). K is the least number that keeps this at the noise
/// allowed: it grows with the logarithm of N, so that an answer is of the same length for any
/// number of labels.
///
/// ```
/// use xc_lsh::{Kind, Sizing};
///
/// let sizing = Sizing::try_new(670_000, 50, 1000.0, Kind::Wta { bin: 8 })?;
/// assert_eq!(sizing.n_codes(), 6);
/// assert!(sizing.expected_noise() <= 1000.0);
/// // Ten times the labels, one or two codes more.
/// assert_eq!(Sizing::try_new(6_700_000, 50, 1000.0, Kind::Wta { bin: 8 })?.n_codes(), 7);
/// // 2 MiB of buckets and 4 bytes a label for each table.
/// assert_eq!((sizing.bucket_bits(), sizing.table_bytes()), (18, 4 * ((1 << 18) + 1) + 4 * 670_000));
/// assert!(sizing.check_limit(100 << 20).is_err());
/// # Ok::<(), xc_lsh::SizingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizing {
    n_labels: u64,
    n_tables: u32,
    n_codes: u32,
    kind: Kind,
}

/// Why there are no such tables.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SizingError {
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
    /// No number of labels that can be allowed.
    #[error("{got} unrelated labels allowed, expected a number above 0")]
    Noise {
        /// The number got.
        got: f64,
    },
    /// Codes side by side would not fit 64 bits.
    #[error(
        "{n_codes} codes of {code_bits} bits are needed, expected at most {most}: allow more noise, or bins of fewer coordinates"
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

impl Sizing {
    /// The least K that keeps the expected noise of `n_tables` tables at `noise` labels: ceil(ln(N
    /// L / noise) / ln(1 / p0)), at least 1.
    ///
    /// # Errors
    /// See [`SizingError`].
    pub fn try_new(n_labels: u64, n_tables: u32, noise: f64, kind: Kind) -> Result<Self, SizingError> {
        if !(noise > 0.0 && noise.is_finite()) {
            return Err(SizingError::Noise { got: noise });
        }
        let chance = kind.chance();
        let all = n_labels as f64 * f64::from(n_tables);
        let needed = ((all / noise).ln() / -chance.ln()).ceil().max(1.0);
        // The logarithms may miss by a little where the quotient is a whole number.
        let mut n_codes = needed.min(f64::from(u32::MAX)) as u32;
        while n_codes > 1 && all * chance.powi(n_codes as i32 - 1) <= noise {
            n_codes -= 1;
        }
        Self::with_codes(n_labels, n_tables, n_codes, kind)
    }

    /// The sizes of tables with `n_codes` codes a key.
    ///
    /// # Errors
    /// See [`SizingError`].
    pub fn with_codes(n_labels: u64, n_tables: u32, n_codes: u32, kind: Kind) -> Result<Self, SizingError> {
        let settings = [("labels", n_labels), ("tables", n_tables.into()), ("codes of a key", n_codes.into())];
        if let Some(&(setting, got)) = settings.iter().find(|s| s.1 == 0) {
            return Err(SizingError::Nothing { setting, got });
        }
        if n_labels > u64::from(u32::MAX) {
            return Err(SizingError::TooManyLabels { got: n_labels });
        }
        let code_bits = kind.code_bits();
        let most = 64 / code_bits.max(1);
        if n_codes > most {
            return Err(SizingError::LongKey { n_codes, code_bits, most });
        }
        Ok(Self { n_labels, n_tables, n_codes, kind })
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

    /// Bits of a table's buckets: about two labels a bucket, but no more bits than a key has.
    pub fn bucket_bits(&self) -> u32 {
        let key_bits = self.n_codes * self.kind.code_bits();
        self.n_labels.ilog2().saturating_sub(1).clamp(1, 31).min(key_bits)
    }

    /// Unrelated labels that an answer is expected to have, each counted once a table.
    pub fn expected_noise(&self) -> f64 {
        crate::theory::expected_noise(self.n_labels, self.n_tables, self.kind.chance(), self.n_codes)
    }

    /// Parameters of these functions for rows of `width` values.
    pub fn params(&self, width: usize, seed: u64) -> FamilyParams {
        let (n_codes, n_tables) = (self.n_codes, self.n_tables);
        FamilyParams { kind: self.kind, width, n_codes, n_tables, key_bits: self.bucket_bits(), seed }
    }

    /// Bytes of one table: the start of each bucket, and the labels by bucket.
    pub fn table_bytes(&self) -> u64 {
        4 * ((1u64 << self.bucket_bits()) + 1) + 4 * self.n_labels
    }

    /// Bytes of the labels' keys in all tables, which are kept where labels are to be moved without
    /// hashing all of them.
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
    /// [`SizingError::Memory`], with the number of tables that would fit.
    pub fn check_limit(&self, limit: u64) -> Result<(), SizingError> {
        let needed = self.memory_bytes();
        if needed <= limit {
            return Ok(());
        }
        let one = needed / u64::from(self.n_tables);
        Err(SizingError::Memory { n_tables: self.n_tables, needed, limit, fitting: (limit / one) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Projection;

    #[test]
    fn the_codes_keep_the_noise_and_one_fewer_would_not() {
        let kinds = [
            Kind::Wta { bin: 8 },
            Kind::Dwta { bin: 5, permutations: 1 },
            Kind::SimHash { projection: Projection::Gaussian },
            Kind::MinHash { minima: crate::Minima::Classic, code_bits: 4 },
        ];
        for kind in kinds {
            for (n_labels, n_tables, noise) in [(10_000, 50, 500.0), (670_000, 400, 1000.0), (3_000_000, 1, 1.5)] {
                let sizing = Sizing::try_new(n_labels, n_tables, noise, kind).unwrap();
                assert!(sizing.expected_noise() <= noise * (1.0 + 1e-12), "{sizing:?}");
                let shorter = Sizing::with_codes(n_labels, n_tables, sizing.n_codes() - 1, kind).unwrap();
                assert!(shorter.expected_noise() > noise, "{shorter:?}");
            }
        }
    }

    #[test]
    fn whole_quotients_and_generous_noise_give_no_code_too_many() {
        let kind = Kind::SimHash { projection: Projection::Sparse };
        assert_eq!(Sizing::try_new(1 << 20, 1, 1.0, kind).unwrap().n_codes(), 20);
        assert_eq!(Sizing::try_new(8, 2, 1e9, kind).unwrap().n_codes(), 1);
        assert_eq!(Sizing::try_new(8u64.pow(5), 8, 64.0, Kind::Wta { bin: 8 }).unwrap().n_codes(), 4);
    }

    #[test]
    fn what_cannot_be_says_what_could() {
        let kind = Kind::Wta { bin: 8 };
        assert_eq!(Sizing::try_new(0, 5, 1.0, kind), Err(SizingError::Nothing { setting: "labels", got: 0 }));
        assert_eq!(Sizing::try_new(5, 0, 1.0, kind), Err(SizingError::Nothing { setting: "tables", got: 0 }));
        assert_eq!(Sizing::try_new(1 << 32, 5, 1.0, kind), Err(SizingError::TooManyLabels { got: 1 << 32 }));
        assert_eq!(Sizing::try_new(5, 5, 0.0, kind), Err(SizingError::Noise { got: 0.0 }));
        assert!(Sizing::try_new(5, 5, f64::NAN, kind).is_err());
        let long = Sizing::try_new(5, 5, 1e-30, kind);
        assert_eq!(long, Err(SizingError::LongKey { n_codes: 35, code_bits: 3, most: 21 }));
        let sizing = Sizing::try_new(100_000, 50, 100.0, kind).unwrap();
        let limit = sizing.memory_bytes() / 5;
        let Err(SizingError::Memory { fitting, needed, .. }) = sizing.check_limit(limit) else { panic!("it fits") };
        assert_eq!((fitting, needed), (10, sizing.memory_bytes()));
        let smaller = Sizing::with_codes(100_000, fitting, sizing.n_codes(), kind).unwrap();
        assert_eq!(smaller.check_limit(limit), Ok(()));
        assert_eq!(sizing.check_limit(needed), Ok(()));
        assert!(sizing.params(64, 1).build().unwrap().key_bits() <= sizing.bucket_bits());
    }
}
