//! Universal hashing: keys to buckets by functions drawn at random from a family.
//!
//! A family is 2-universal if two different keys fall into the same bucket with probability at most
//! 1/B over the draw of the function. That bound is all that MACH requires of a hash; it takes one
//! multiplication and a seed.
//!
//! | family | function of key x | collision of two keys | keys |
//! |---|---|---|---|
//! | [`UniversalFamily::Prime`] | ((a x + b) mod p) mod B, p the smallest prime >= max(L, B) | at most 1/B | below L |
//! | [`UniversalFamily::Mersenne61`] | the same with p = 2^61 - 1 | at most 1/B | all |
//! | [`UniversalFamily::MultiplyShift`] | (high half of a x + b mod 2^64) scaled to B | at most 1/B + 2^-32 | all |
//! | [`UniversalFamily::Tabulation`] | a table look-up per byte, joined by exclusive or, scaled to B | at most 1/B + 2^-32 | all |
//!
//! The last two map to 2^32 values first, of which a bucket takes 2^32/B, rounded either way: hence
//! the last term of their bounds. They are 2-independent (tabulation even 3-independent), the
//! affine ones 2-universal.
//!
//! A function is named by [`UniversalParams`] and the number of its repetition, and is drawn from its own
//! stream: any repetition can be made alone, on any machine, and is the same. The numbers are frozen,
//! since stored models depend on them.
//!
//! ```
//! use xc_hash::universal::{BucketHash, UniversalFamily, UniversalParams};
//! let params = UniversalParams { family: UniversalFamily::Prime, n_keys: 50_000_000, n_buckets: 20_000, seed: 7 };
//! let hash = params.hash(3)?;
//! assert!(hash.bucket(49_999_999) < 20_000);
//! # Ok::<(), xc_hash::universal::UniversalParamsError>(())
//! ```
//!
//! # When not to use it
//! None of these resists keys chosen by an adversary who knows the seed. For a hash of bytes use
//! [`crate::murmur3_32`].
//!
//! *References*: `[carter1979universal]`, `[dietzfelbinger1997reliable]`,
//! `[patrascu2012tabulation]`, `[medini2019mach, section 3]`. *Differs in*: the smallest prime that
//! serves instead of one large prime, so that a bucket can be listed without a table (see
//! `xc_mach::Assignment`).

mod affine;
mod multiply_shift;
mod prime;
mod reciprocal;
mod tabulation;

pub use affine::{AffineHash, MERSENNE_61};
pub use multiply_shift::MultiplyShift;
pub use prime::{is_prime, smallest_prime_from};
pub use reciprocal::Reciprocal;
pub use tabulation::Tabulation;

use crate::stream::{Stream, mix};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A function from keys to buckets.
pub trait BucketHash {
    /// Number of buckets.
    fn n_buckets(&self) -> u32;

    /// The bucket of a key, below [`BucketHash::n_buckets`].
    fn bucket(&self, key: u32) -> u32;
}

/// The family that functions are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UniversalFamily {
    /// Carter and Wegman's, modulo the smallest prime that is at least the number of keys and of
    /// buckets.
    Prime,
    /// Carter and Wegman's, modulo 2^61 - 1.
    Mersenne61,
    /// Dietzfelbinger's multiply-add-shift.
    MultiplyShift,
    /// Simple tabulation: four tables of 256 entries.
    Tabulation,
}

impl UniversalFamily {
    /// Every family.
    pub const ALL: [UniversalFamily; 4] = [Self::Prime, Self::Mersenne61, Self::MultiplyShift, Self::Tabulation];
}

impl std::fmt::Display for UniversalFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Prime => "prime",
            Self::Mersenne61 => "mersenne61",
            Self::MultiplyShift => "multiply-shift",
            Self::Tabulation => "tabulation",
        })
    }
}

/// Parameters of a sequence of functions: together with the number of a repetition they name one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UniversalParams {
    /// The family.
    pub family: UniversalFamily,
    /// Number of keys, L: keys are below it.
    pub n_keys: u64,
    /// Number of buckets, B.
    pub n_buckets: u32,
    /// Seed of all repetitions.
    pub seed: u64,
}

/// Why parameters do not name a function.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UniversalParamsError {
    /// No bucket to put a key into.
    #[error("0 buckets, expected at least 1")]
    NoBuckets,
    /// Keys are 32-bit numbers.
    #[error("{got} keys, expected at most {}", u32::MAX)]
    TooManyKeys {
        /// Keys found.
        got: u64,
    },
    /// The prime family's modulus has to fit 32 bits.
    #[error("{got} keys or buckets need a prime above 2^32; expected at most {LARGEST_PRIME_32}, or another family")]
    PrimeTooLarge {
        /// The larger of keys and buckets.
        got: u64,
    },
    /// More keys would change the function of the keys that are there.
    #[error("{got} keys do not fit the prime {prime} of these parameters; other families can grow")]
    CannotGrow {
        /// Keys that the caller asked for.
        got: u64,
        /// The modulus in force.
        prime: u64,
    },
    /// A family only grows.
    #[error("{got} keys, there are already {present}")]
    Shrinks {
        /// Keys that the caller asked for.
        got: u64,
        /// Keys of the parameters.
        present: u64,
    },
}

/// The largest prime below 2^32.
const LARGEST_PRIME_32: u64 = 4_294_967_291;

impl UniversalParams {
    /// Whether these parameters name functions.
    pub fn check(&self) -> Result<(), UniversalParamsError> {
        if self.n_buckets == 0 {
            return Err(UniversalParamsError::NoBuckets);
        }
        if self.n_keys > u64::from(u32::MAX) {
            return Err(UniversalParamsError::TooManyKeys { got: self.n_keys });
        }
        let largest = self.n_keys.max(u64::from(self.n_buckets));
        if self.family == UniversalFamily::Prime && largest > LARGEST_PRIME_32 {
            return Err(UniversalParamsError::PrimeTooLarge { got: largest });
        }
        Ok(())
    }

    /// The function of repetition `repetition`.
    ///
    /// *Cost*: the prime family searches for its prime: some tens of microseconds. Tabulation fills
    /// 4 KiB.
    pub fn hash(&self, repetition: u32) -> Result<UniversalHash, UniversalParamsError> {
        self.check()?;
        let stream = &mut Stream::new(mix(self.seed, u64::from(repetition)));
        Ok(match self.family {
            UniversalFamily::Prime => UniversalHash::Prime(AffineHash::draw(stream, self.prime(), self.n_buckets)),
            UniversalFamily::Mersenne61 => {
                UniversalHash::Mersenne61(AffineHash::draw(stream, MERSENNE_61, self.n_buckets))
            }
            UniversalFamily::MultiplyShift => UniversalHash::MultiplyShift(MultiplyShift::draw(stream, self.n_buckets)),
            UniversalFamily::Tabulation => {
                UniversalHash::Tabulation(Box::new(Tabulation::draw(stream, self.n_buckets)))
            }
        })
    }

    /// The modulus of the prime family.
    fn prime(&self) -> u64 {
        smallest_prime_from(self.n_keys.max(u64::from(self.n_buckets)))
    }

    /// The same functions for more keys: keys that are there keep their buckets.
    ///
    /// # Errors
    /// The prime family grows only up to its prime. Fewer keys than before are an error too.
    pub fn grown_to(&self, n_keys: u64) -> Result<Self, UniversalParamsError> {
        self.check()?;
        if n_keys < self.n_keys {
            return Err(UniversalParamsError::Shrinks { got: n_keys, present: self.n_keys });
        }
        if self.family == UniversalFamily::Prime && n_keys > self.prime() {
            return Err(UniversalParamsError::CannotGrow { got: n_keys, prime: self.prime() });
        }
        let grown = Self { n_keys, ..*self };
        grown.check()?;
        Ok(grown)
    }

    /// An upper bound of the probability that two different keys share a bucket, over the draw of
    /// the function.
    ///
    /// For the affine families it is exact for a pair of keys below p: with p = qB + r it is q (p +
    /// r - B) / (p (p - 1)).
    pub fn collision_probability(&self) -> Result<f64, UniversalParamsError> {
        self.check()?;
        let buckets = f64::from(self.n_buckets);
        let affine = |p: u64| {
            let (q, r) = (p / u64::from(self.n_buckets), p % u64::from(self.n_buckets));
            let (p, q, r) = (p as f64, q as f64, r as f64);
            q * (p + r - buckets) / (p * (p - 1.0))
        };
        Ok(match self.family {
            UniversalFamily::Prime => affine(self.prime()),
            UniversalFamily::Mersenne61 => affine(MERSENNE_61),
            // The sum of the squared shares of 2^32 values, floor or ceiling of 2^32 / B to each
            // bucket.
            UniversalFamily::MultiplyShift | UniversalFamily::Tabulation => {
                let values = 2f64.powi(32);
                let (floor, over) = ((values / buckets).floor(), values % buckets);
                (over * (floor + 1.0).powi(2) + (buckets - over) * floor.powi(2)) / (values * values)
            }
        })
    }
}

/// A function of any family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UniversalHash {
    /// See [`UniversalFamily::Prime`].
    Prime(AffineHash),
    /// See [`UniversalFamily::Mersenne61`].
    Mersenne61(AffineHash),
    /// See [`UniversalFamily::MultiplyShift`].
    MultiplyShift(MultiplyShift),
    /// See [`UniversalFamily::Tabulation`].
    Tabulation(Box<Tabulation>),
}

impl BucketHash for UniversalHash {
    fn n_buckets(&self) -> u32 {
        match self {
            Self::Prime(hash) | Self::Mersenne61(hash) => hash.n_buckets(),
            Self::MultiplyShift(hash) => hash.n_buckets(),
            Self::Tabulation(hash) => hash.n_buckets(),
        }
    }

    #[inline]
    fn bucket(&self, key: u32) -> u32 {
        match self {
            Self::Prime(hash) => hash.bucket_below_2_32(key),
            Self::Mersenne61(hash) => hash.bucket(key),
            Self::MultiplyShift(hash) => hash.bucket(key),
            Self::Tabulation(hash) => hash.bucket(key),
        }
    }
}
