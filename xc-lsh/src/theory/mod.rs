//! How likely it is that hashes agree: one code, a key, any of many tables.
//!
//! ```text
//!   similarity ──▶ p: one code agrees ──▶ p^K: a key agrees ──▶ 1 - (1 - p^K)^L: some table finds it
//!                  Family::probability                           inclusion
//! ```
//!
//! | family | similarity s | probability p that a code agrees |
//! |---|---|---|
//! | SimHash | cosine | [`simhash`]: 1 - arccos(s) / pi |
//! | WTA | correlation | [`winner_of_normals`]; for two given vectors exactly [`winner_of`] |
//! | DWTA | Jaccard, values equal | [`with_chance`]: s + (1 - s) / m; for two given rows [`winner_of_sparse`] |
//! | MinHash | Jaccard | [`with_chance`]: s + (1 - s) / 2^b |
//!
//! These are probabilities over the draw of the functions. Codes of one table are drawn apart from
//! one another as far as their family says; p^K takes them as independent.
//!
//! ```
//! use xc_lsh::theory;
//! // A right angle: one bit in two agrees, a key of 9 bits once in 512.
//! let p = theory::simhash(0.0);
//! assert!((p - 0.5).abs() < 1e-12);
//! // 50 tables find one unrelated label in eleven: of 250,000 labels, 24,000.
//! assert!((theory::inclusion(p, 9, 50) - 0.093).abs() < 0.001);
//! assert!((theory::expected_noise(250_000, 50, p, 9) - 24_414.0).abs() < 1.0);
//! ```

mod normal;
mod spread;
mod winner;

pub use spread::Spread;
pub use winner::{winner_of, winner_of_normals, winner_of_sparse};

/// SimHash: a random hyperplane leaves two vectors of this cosine on one side. *Range*: cosines are
/// cut to [-1, 1].
pub fn simhash(cosine: f64) -> f64 {
    1.0 - cosine.clamp(-1.0, 1.0).acos() / std::f64::consts::PI
}

/// Codes of `n_values` values that agree with probability `p` for a reason, and else by chance.
pub fn with_chance(p: f64, n_values: f64) -> f64 {
    p + (1.0 - p) / n_values
}

/// Probability that K codes agree, p^K; where they are hashed down to `key_bits`, those that differ
/// agree once in 2^`key_bits`.
pub fn key(p: f64, n_codes: u32, key_bits: Option<u32>) -> f64 {
    let all = p.powi(n_codes as i32);
    key_bits.map_or(all, |bits| with_chance(all, 2f64.powi(bits as i32)))
}

/// Probability that at least one of L tables gives two rows the same key: 1 - (1 - p^K)^L.
pub fn inclusion(p: f64, n_codes: u32, n_tables: u32) -> f64 {
    // Without loss where p^K is below the precision of 1.
    -f64::exp_m1(f64::from(n_tables) * f64::ln_1p(-p.powi(n_codes as i32)))
}

/// Labels that L tables give beside the similar ones, each counted once a table: N L p0^K, where p0
/// is the probability that codes of unrelated rows agree. [`Spread`] says it for rows that are not all
/// equally unrelated.
pub fn expected_noise(n_labels: u64, n_tables: u32, p0: f64, n_codes: u32) -> f64 {
    n_labels as f64 * f64::from(n_tables) * p0.powi(n_codes as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simhash_goes_by_the_angle() {
        for (cosine, p) in [(1.0, 1.0), (0.0, 0.5), (-1.0, 0.0), (0.5, 2.0 / 3.0), (1.5, 1.0)] {
            assert!((simhash(cosine) - p).abs() < 1e-12, "{cosine}");
        }
    }

    #[test]
    fn inclusion_is_right_at_its_ends_and_rises() {
        assert_eq!((inclusion(0.0, 4, 10), inclusion(1.0, 4, 10)), (0.0, 1.0));
        assert!((inclusion(0.5, 2, 3) - (1.0 - 0.75f64.powi(3))).abs() < 1e-15);
        assert!((inclusion(1e-5, 4, 100) / 1e-18 - 1.0).abs() < 1e-9);
        let rising: Vec<f64> = (0..=20).map(|i| inclusion(f64::from(i) / 20.0, 6, 50)).collect();
        assert!(rising.windows(2).all(|w| w[0] <= w[1]), "{rising:?}");
    }
}
