//! Parameters that name a family and its functions.

use crate::theory;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Most codes of a row, K L: their functions have to fit the memory.
const MOST_CODES: u64 = 1 << 24;

/// The distribution of random hyperplanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Projection {
    /// Independent normal numbers.
    Gaussian,
    /// +1 or -1 with probability 1/6 each, else 0 (`[achlioptas2003database]`).
    Sparse,
    /// Three times random signs and a Hadamard transform, anew for every 128 bits
    /// (`[andoni2015practical]`): no matrix, and the least work for one vector.
    Hadamard,
}

/// How the minima of a set are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Minima {
    /// One function for each code: the minimum over the whole set (`[broder1997resemblance]`).
    Classic,
    /// One function in all: the minimum in each of as many parts of its range; empty parts borrow
    /// (`[li2012onepermutation]`, `[shrivastava2017optimal]`).
    OnePermutation,
}

/// A family of locality-sensitive functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum FamilyKind {
    /// Signs of random projections: one bit a code, for cosines (`[charikar2002similarity]`).
    SimHash {
        /// Where projections are drawn from.
        projection: Projection,
    },
    /// Winner-take-all: which of `bin` random coordinates is the largest, for vectors whose order
    /// of coordinates counts (`[yagnik2011power]`).
    Wta {
        /// Coordinates of a bin, m: 2 to 128.
        bin: u32,
    },
    /// Densified winner-take-all for sparse rows: features fall into bins, the code is the position
    /// of a bin's largest, empty bins borrow (`[chen2018densified]`).
    Dwta {
        /// Positions of a bin, m: 2 to 128.
        bin: u32,
        /// Bins that a feature is hashed to, P: K L / P bins share a permutation. See
        /// [`FamilyKind::dwta_for`].
        permutations: u32,
    },
    /// Minima of random orders of the features, values ignored: for the Jaccard similarity of sets.
    MinHash {
        /// How minima are found.
        minima: Minima,
        /// Bits kept of each minimum, b: 1 to 8 (`[li2010bbit]`).
        code_bits: u32,
    },
}

impl FamilyKind {
    /// The name of the family.
    pub fn name(self) -> &'static str {
        match self {
            Self::SimHash { .. } => "sim-hash",
            Self::Wta { .. } => "wta",
            Self::Dwta { .. } => "dwta",
            Self::MinHash { .. } => "min-hash",
        }
    }

    /// DWTA with as many permutations as fill about half of the bins of a row with `nnz` features:
    /// fewer make long searches for bins to borrow from, more hash features needlessly.
    pub fn dwta_for(bin: u32, n_codes: u32, n_tables: u32, nnz: u32) -> Self {
        let codes = n_codes.saturating_mul(n_tables);
        // Half are filled at ln 2 features a bin.
        let permutations = (f64::from(codes) * std::f64::consts::LN_2 / f64::from(nnz.max(1))).round() as u32;
        Self::Dwta { bin, permutations: permutations.clamp(1, codes.max(1)) }
    }

    /// Bits of a code.
    pub fn code_bits(self) -> u32 {
        match self {
            Self::SimHash { .. } => 1,
            // Codes are below `bin`.
            Self::Wta { bin } | Self::Dwta { bin, .. } => u32::BITS - bin.saturating_sub(1).leading_zeros(),
            Self::MinHash { code_bits, .. } => code_bits,
        }
    }

    /// Probability that a code of two unrelated rows agrees: p0 of the [sizing
    /// rule](crate::TableSizing).
    pub fn chance(self) -> f64 {
        match self {
            Self::SimHash { .. } => 0.5,
            Self::Wta { bin } | Self::Dwta { bin, .. } => 1.0 / f64::from(bin),
            Self::MinHash { code_bits, .. } => 1.0 / f64::from(1u32 << code_bits.min(31)),
        }
    }

    /// Probability that a code of two rows of this similarity agrees, over the draw of the functions
    /// (see [`theory`]).
    pub fn probability(self, similarity: f64) -> f64 {
        match self {
            Self::SimHash { .. } => theory::simhash(similarity),
            Self::Wta { bin } => theory::winner_of_normals(similarity, bin),
            Self::Dwta { .. } | Self::MinHash { .. } => theory::with_chance(similarity, 1.0 / self.chance()),
        }
    }

    /// Whether [`Family::alternatives`](crate::Family::alternatives) knows other keys.
    pub fn has_alternatives(self) -> bool {
        matches!(self, Self::SimHash { .. } | Self::Wta { .. })
    }
}

/// A family, the number of its functions, and the seed that they are drawn with: equal parameters
/// give equal keys on every machine.
///
/// ```
/// use xc_lsh::{FamilyParams, FamilyKind};
///
/// let params = FamilyParams { kind: FamilyKind::Wta { bin: 8 }, width: 128, n_codes: 6, n_tables: 50, key_bits: 32, seed: 1 };
/// assert_eq!(params.build()?.key_bits(), 18);
/// let json = r#"{"kind": {"family": "wta", "bin": 8}, "width": 128, "n_codes": 6, "n_tables": 50, "seed": 1}"#;
/// assert_eq!(serde_json::from_str::<FamilyParams>(json)?, params);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyParams {
    /// The family.
    pub kind: FamilyKind,
    /// Width of a vector; the feature ids of a sparse row are below it.
    pub width: usize,
    /// Codes per key, K.
    pub n_codes: u32,
    /// Number of tables, L: keys per row.
    pub n_tables: u32,
    /// Maximum number of bits of a key, at most 32. If K codes have more, they are hashed to this many (at most 31
    /// then).
    #[serde(default = "all_bits")]
    pub key_bits: u32,
    /// Seed of all functions.
    pub seed: u64,
}

fn all_bits() -> u32 {
    32
}

/// Why parameters do not name functions.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FamilyParamsError {
    /// A number out of its range.
    #[error("{setting} {got}, expected {least} to {most}")]
    Range {
        /// What the number is.
        setting: &'static str,
        /// The number got.
        got: u64,
        /// The least one.
        least: u64,
        /// The largest one.
        most: u64,
    },
    /// A bin cannot be filled from so few coordinates.
    #[error("bins of {bin} coordinates from vectors of {width}, expected at most as many")]
    BinAboveWidth {
        /// Coordinates of a bin.
        bin: u32,
        /// Values of a vector.
        width: usize,
    },
    /// The codes of a key do not fit 64 bits.
    #[error("{n_codes} codes of {code_bits} bits in a key, expected at most 64 bits: at most {most} codes")]
    LongKey {
        /// Codes of a key.
        n_codes: u32,
        /// Bits of a code.
        code_bits: u32,
        /// Most codes of such a key.
        most: u32,
    },
}

impl FamilyParams {
    /// Bits of a key, where its K codes have more and are hashed to so many: such keys agree by
    /// chance once in 2 to this power.
    pub fn folded_bits(&self) -> Option<u32> {
        (self.key_bits < self.n_codes.saturating_mul(self.kind.code_bits())).then_some(self.key_bits.min(31))
    }

    /// Probability that at least one of the L tables gives two rows of this similarity the same key,
    /// over the draw of the functions.
    pub fn inclusion(&self, similarity: f64) -> f64 {
        let key = theory::key(self.kind.probability(similarity), self.n_codes, self.folded_bits());
        theory::inclusion(key, 1, self.n_tables)
    }

    /// Whether these parameters name functions.
    ///
    /// # Errors
    /// See [`FamilyParamsError`].
    pub fn check(&self) -> Result<(), FamilyParamsError> {
        let range = |setting, got: u64, least, most| {
            let inside = (least..=most).contains(&got);
            if inside { Ok(()) } else { Err(FamilyParamsError::Range { setting, got, least, most }) }
        };
        range("width", self.width as u64, 1, u64::from(u32::MAX))?;
        range("codes of a key", u64::from(self.n_codes), 1, 64)?;
        range("tables", u64::from(self.n_tables), 1, MOST_CODES / u64::from(self.n_codes))?;
        range("bits of a key", u64::from(self.key_bits), 1, 32)?;
        match self.kind {
            FamilyKind::SimHash { .. } => {}
            FamilyKind::Wta { bin } => {
                range("coordinates of a bin", u64::from(bin), 2, 128)?;
                if bin as usize > self.width {
                    return Err(FamilyParamsError::BinAboveWidth { bin, width: self.width });
                }
            }
            FamilyKind::Dwta { bin, permutations } => {
                range("positions of a bin", u64::from(bin), 2, 128)?;
                range("permutations", u64::from(permutations), 1, self.codes() as u64)?;
            }
            FamilyKind::MinHash { code_bits, .. } => range("bits of a code", u64::from(code_bits), 1, 8)?,
        }
        let code_bits = self.kind.code_bits();
        if self.n_codes * code_bits > 64 {
            return Err(FamilyParamsError::LongKey { n_codes: self.n_codes, code_bits, most: 64 / code_bits });
        }
        Ok(())
    }

    /// Codes of a row, K L.
    pub fn codes(&self) -> usize {
        self.n_codes as usize * self.n_tables as usize
    }
}
