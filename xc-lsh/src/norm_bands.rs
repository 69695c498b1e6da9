//! Largest inner products by families for angles: rows are scaled to a common length, in bands by
//! norm.
//!
//! ```text
//!   item w of a band whose norms are at most M   [w / M, sqrt(1 - |w|^2 / M^2)]     a unit vector
//!   query q                                      [q / |q|, 0]                       cosine to it: q w / (|q| M)
//!   key of an item                               band, then the key of its vector
//! ```
//!
//! With one band this is Simple-LSH (`[neyshabur2015symmetric]`): one row of large norm makes all
//! other cosines small, and keys tell them apart no more. Bands with a scale of their own
//! (`[yan2018norm]`) keep them large: a query asks for its key in every band, in fewer tables where
//! norms are smaller.
//!
//! ```
//! use xc_lsh::norm_bands::NormRanges;
//! use xc_lsh::tables::{By, QueryLimits, Query, QueryScratch};
//! use xc_lsh::{FamilyParams, FamilyKind, Projection, KeyScratch};
//! use xc_dense::DenseRows;
//!
//! // Two rows of one direction, one of them long, and others.
//! let rows = DenseRows::new(&[3.0, 4.0, 0.3, 0.4, -3.0, 1.0, 2.0, -5.0], 2);
//! let bands = NormRanges::of_rows(rows, 2);
//! let kind = FamilyKind::SimHash { projection: Projection::Gaussian };
//! let params = FamilyParams { kind, width: 2 + 1, n_codes: 6, n_tables: 20, key_bits: 32, seed: 1 };
//! let (family, mut scratch) = (params.build()?, KeyScratch::default());
//! let tables = bands.tables(&*family, rows, &mut scratch)?;
//! let (mut keys, mut found) = (Vec::new(), Vec::new());
//! bands.keys(&*family, &[3.0, 4.0], 0.5, &mut keys, &mut scratch)?;
//! let query = Query { by: By::Keys(&keys), turn: 0, excluded: &[] };
//! tables.query(query, QueryLimits { candidates: 1, per_bucket: 9 }, &mut QueryScratch::default(), &mut found);
//! assert_eq!(found, [0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Differs in*: buckets are not ordered over all bands; the number of tables of a band follows
//! from its scale.

use crate::family::{Family, HashError};
use crate::keys::Keys;
use crate::scratch::KeyScratch;
use crate::tables::{NO_KEY, Tables};
use xc_dense::DenseRows;

/// Rows that are scaled and hashed at a time.
const ROWS_AT_A_TIME: usize = 1 << 14;

/// The largest norm of each band.
#[derive(Clone, Debug, PartialEq)]
pub struct NormRanges {
    /// Ascending.
    largest: Vec<f32>,
}

impl NormRanges {
    /// Bands with about equal numbers of these rows; fewer than asked for where norms are equal.
    /// Norms that are no number count as 0.
    ///
    /// # Panics
    /// If there is no band, or more than 256.
    pub fn of_rows(rows: DenseRows<'_>, n_bands: usize) -> Self {
        assert!((1..=256).contains(&n_bands), "{n_bands} bands, expected 1 to 256");
        let mut norms: Vec<f32> = rows.iter().map(norm).filter(|norm| *norm > 0.0).collect();
        norms.sort_unstable_by(f32::total_cmp);
        let n = norms.len();
        let mut largest: Vec<f32> = (1..=n_bands.min(n)).map(|band| norms[band * n / n_bands.min(n) - 1]).collect();
        largest.dedup();
        if largest.is_empty() {
            largest.push(1.0);
        }
        Self { largest }
    }

    /// Number of bands.
    pub fn len(&self) -> usize {
        self.largest.len()
    }

    /// Never: there is one band at least.
    pub fn is_empty(&self) -> bool {
        self.largest.is_empty()
    }

    /// The band of a norm; the last one for those above all.
    pub fn band(&self, norm: f32) -> usize {
        self.largest.partition_point(|&largest| largest < norm).min(self.len() - 1)
    }

    /// Bits that the band takes of a key.
    pub fn bits(&self) -> u32 {
        usize::BITS - (self.len() - 1).leading_zeros()
    }

    /// Appends the unit vector of an item, one value longer than its row; gives its band. A row
    /// that has grown beyond its band's norms is scaled by its own.
    pub fn item(&self, row: &[f32], out: &mut Vec<f32>) -> usize {
        let norm = norm(row);
        let band = self.band(norm);
        let scale = self.largest[band].max(norm);
        let start = out.len();
        out.extend(row.iter().map(|v| v / scale));
        let square: f32 = out[start..].iter().map(|v| v * v).sum();
        out.push((1.0 - square).max(0.0).sqrt());
        band
    }

    /// Keys of items: the band in the highest bits.
    ///
    /// # Errors
    /// A value that is not finite.
    ///
    /// # Panics
    /// If the family's rows are not one value longer than these, or a key and its band have more
    /// than 32 bits.
    pub fn item_keys(
        &self,
        family: &dyn Family,
        rows: DenseRows<'_>,
        scratch: &mut KeyScratch,
    ) -> Result<Keys, HashError> {
        self.check(family, rows.width());
        let n_tables = family.params().n_tables as usize;
        let (mut some, mut values, mut bands) = (Keys::new(n_tables), Vec::new(), Vec::new());
        let mut keys = Vec::with_capacity(rows.len() * n_tables);
        for first in (0..rows.len()).step_by(ROWS_AT_A_TIME) {
            values.clear();
            bands.clear();
            let block = first..rows.len().min(first + ROWS_AT_A_TIME);
            bands.extend(block.map(|i| self.item(rows.row(i), &mut values) as u32));
            let hashed = family.keys_dense(DenseRows::new(&values, rows.width() + 1), &mut some, scratch);
            hashed.map_err(|error| error.moved(first))?;
            for (band, row) in bands.iter().zip(some.as_slice().chunks_exact(n_tables)) {
                keys.extend(row.iter().map(|key| band << family.key_bits() | key));
            }
        }
        Ok(Keys::from_rows(n_tables, keys))
    }

    /// Tables of items under [`NormRanges::item_keys`].
    ///
    /// # Errors
    /// A value that is not finite.
    ///
    /// # Panics
    /// As [`NormRanges::item_keys`] and [`Tables::of_keys`].
    pub fn tables(
        &self,
        family: &dyn Family,
        rows: DenseRows<'_>,
        scratch: &mut KeyScratch,
    ) -> Result<Tables, HashError> {
        Ok(Tables::of_keys(family.key_bits() + self.bits(), self.item_keys(family, rows, scratch)?))
    }

    /// The keys by which a query asks the tables: for each of them one in every band, that of the
    /// largest norms first; [`NO_KEY`] where the table is not asked for the band. They replace what
    /// is in `keys`.
    ///
    /// `least` is the cosine from which on a row of the largest norm matters, in (0, 1]. The same
    /// inner product takes a larger cosine in a band of smaller norms, so fewer tables find it as
    /// surely: bands are asked in so many tables, and not at all where norms are too small for it.
    ///
    /// # Errors
    /// A value that is not finite.
    ///
    /// # Panics
    /// As [`NormRanges::item_keys`]; if `least` is out of its range.
    pub fn keys(
        &self,
        family: &dyn Family,
        query: &[f32],
        least: f64,
        keys: &mut Vec<u32>,
        scratch: &mut KeyScratch,
    ) -> Result<(), HashError> {
        self.check(family, query.len());
        assert!(least > 0.0 && least <= 1.0, "the least cosine {least}, expected a number in (0, 1]");
        let length = norm(query);
        // Keys do not depend on the length but where a number overflows.
        let scale = if length > 0.0 && length.is_finite() { length } else { 1.0 };
        let lifted: Vec<f32> = query.iter().map(|v| v / scale).chain([0.0]).collect();
        let mut own = vec![0; family.params().n_tables as usize];
        family.hash_dense(DenseRows::new(&lifted, lifted.len()), &mut own, scratch)?;
        let n_tables = family.params().n_tables;
        let asked: Vec<u32> = (0..self.len()).map(|band| self.tables_of(band, family, least)).collect();
        keys.clear();
        for (table, key) in (0..n_tables).zip(own) {
            // The tables of a band are spread evenly over all.
            let takes = |band: usize| {
                let before = |table: u32| u64::from(table) * u64::from(asked[band]) / u64::from(n_tables);
                before(table + 1) > before(table)
            };
            let of_band = |band: usize| if takes(band) { (band as u32) << family.key_bits() | key } else { NO_KEY };
            keys.extend((0..self.len()).rev().map(of_band));
        }
        Ok(())
    }

    /// How many tables of a band miss an inner product no more often than all do in the band of the
    /// largest norms.
    fn tables_of(&self, band: usize, family: &dyn Family, least: f64) -> u32 {
        let (n_codes, n_tables) = (family.params().n_codes as i32, family.params().n_tables);
        let largest = self.largest[self.len() - 1];
        let cosine = least * f64::from(largest) / f64::from(self.largest[band]);
        if cosine > 1.0 {
            return 0;
        }
        let miss = |cosine: f64| f64::ln_1p(-family.probability(cosine).powi(n_codes).min(1.0 - 1e-9));
        ((f64::from(n_tables) * miss(least) / miss(cosine)).ceil() as u32).min(n_tables)
    }

    fn check(&self, family: &dyn Family, width: usize) {
        assert_eq!(family.params().width, width + 1, "width of the family, and of rows with one value more");
        let bits = family.key_bits() + self.bits();
        assert!(bits <= 32, "{} bands of keys of {} bits", self.len(), family.key_bits());
    }
}

fn norm(row: &[f32]) -> f32 {
    row.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>().sqrt() as f32
}
