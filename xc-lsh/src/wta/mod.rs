//! Winner-take-all: a code says which of a few random coordinates is the largest.
//!
//! ```text
//!   vector     0.3  0.9 -0.2  0.5  0.1  0.7           ranks  2 5 0 3 1 4    (bytes, of up to 128 coordinates)
//!   bins       (4 0 3)  (2 5 1)                              1 2 3  0 4 5
//!   codes           2        2                               third  third
//! ```
//!
//! Codes depend on the order of the coordinates alone: not on the vector's length, nor on a shift.
//! The vector becomes bytes once; a register of 64 bins then looks its coordinates up in two
//! registers of ranks.
//!
//! Vectors of more than 128 coordinates are cut into random subsets of 128, each ranked by itself.
//! Permutations of all coordinates are cut into runs, so that together they have every coordinate.
//! A bin is drawn from one subset, and is a uniform draw of m coordinates of all; the codes of a
//! table come from different subsets while there are as many.
//!
//! ```
//! use xc_lsh::{FamilyParams, Family, FamilyKind, KeyScratch, Wta};
//!
//! let params = FamilyParams { kind: FamilyKind::Wta { bin: 4 }, width: 8, n_codes: 3, n_tables: 5, key_bits: 32, seed: 1 };
//! let wta = Wta::new(params)?;
//! let (mut a, mut b, mut scratch) = ([0; 5], [0; 5], KeyScratch::default());
//! let vector = [0.5, -1.0, 2.0, 0.0, 0.1, 3.0, -0.5, 0.2];
//! wta.hash_dense(xc_dense::DenseRows::new(&vector, 8), &mut a, &mut scratch)?;
//! // Another length and another mean: the same keys.
//! let moved = vector.map(|v| 2.0 * v + 1.0);
//! wta.hash_dense(xc_dense::DenseRows::new(&moved, 8), &mut b, &mut scratch)?;
//! assert_eq!(a, b);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Implements `[yagnik2011power]`. *Differs in*: ties go to the lower coordinate rather than to the
//! first of the bin; wide vectors are ranked in subsets.

use crate::family::{
    Alternative, Family, HashError, SUBSETS, WINNERS, all_zero, check_alternatives, check_dense, check_sparse, scatter,
};
use crate::keys::Packing;
use crate::params::{FamilyKind, FamilyParams, FamilyParamsError};
use crate::product::{Bins, LANES, RANKED, rank, winners};
use crate::scratch::KeyScratch;
use xc_dense::DenseRows;
use xc_hash::stream::{Stream, mix};
use xc_sparse::SparseRow;

/// Winner-take-all: see the [module](self).
///
/// *Cost*: for each subset the square of its coordinates in comparisons (0.3 us for 128 with
/// AVX-512), for each code m look-ups of a byte; memory m bytes a code.
#[derive(Clone, Debug)]
pub struct Wta {
    params: FamilyParams,
    packing: Packing,
    bins: Bins,
    /// Tables of a group: those whose bins stand side by side.
    group: usize,
    /// Coordinates of each subset, ascending; empty where one subset has them all.
    subsets: Vec<[u32; RANKED]>,
}

impl Wta {
    /// Draws the bins.
    ///
    /// # Errors
    /// See [`FamilyParamsError`].
    ///
    /// # Panics
    /// If the parameters are those of another family.
    pub fn new(params: FamilyParams) -> Result<Self, FamilyParamsError> {
        params.check()?;
        let FamilyKind::Wta { bin } = params.kind else { panic!("parameters of {}, expected wta", params.kind.name()) };
        let (n_tables, n_codes) = (params.n_tables as usize, params.n_codes as usize);
        // Enough groups for the codes to look at all subsets that are needed to have every
        // coordinate.
        let cover = params.width.div_ceil(RANKED).div_ceil(n_codes).min(n_tables);
        let wanted = n_tables.div_ceil(LANES).max(cover);
        let even = n_tables.div_ceil(wanted);
        // Rounded down where rounding up would leave a group without tables.
        let group = if n_tables.div_ceil(even) >= wanted { even } else { n_tables / wanted };
        let n_groups = n_tables.div_ceil(group);
        let units = n_groups * n_codes;
        let n_subsets = if params.width <= RANKED { 1 } else { n_groups.max(params.width.div_ceil(RANKED)).min(units) };
        let subsets = if params.width <= RANKED { Vec::new() } else { draw_subsets(&params, n_subsets) };
        let bins = draw_bins(&params, units, bin as usize);
        Ok(Self { params, packing: params.packing(), bins, group, subsets })
    }

    /// Subsets that are ranked apart.
    pub fn n_subsets(&self) -> usize {
        self.subsets.len().max(1)
    }

    /// The coordinates that code `code` of `table` compares; the code is the place of the largest
    /// among these.
    ///
    /// # Panics
    /// If there is no such code or table.
    pub fn coordinates(&self, table: usize, code: usize) -> impl Iterator<Item = u32> {
        let (n_tables, n_codes) = (self.params.n_tables as usize, self.params.n_codes as usize);
        assert!(table < n_tables && code < n_codes, "code {code} of table {table}, of {n_codes} and {n_tables}");
        let unit = table / self.group * n_codes + code;
        let subset = self.subsets.get(unit % self.n_subsets());
        let coordinate = move |place: u8| subset.map_or(u32::from(place), |s| s[usize::from(place)]);
        self.bins.of(unit, table % self.group).map(coordinate)
    }

    /// Writes the codes of one vector, which is checked.
    fn codes(&self, vector: &[f32], scratch: &mut KeyScratch) {
        let mut values = [0.0f32; RANKED];
        scratch.ranks.resize(self.n_subsets(), [0; RANKED]);
        if self.subsets.is_empty() {
            values[..vector.len()].copy_from_slice(vector);
            rank(&values, vector.len(), &mut scratch.ranks[0]);
        }
        for (subset, ranks) in self.subsets.iter().zip(&mut scratch.ranks) {
            for (value, &coordinate) in values.iter_mut().zip(subset) {
                *value = vector[coordinate as usize];
            }
            rank(&values, RANKED, ranks);
        }
        let units = (self.params.n_tables as usize).div_ceil(self.group) * self.params.n_codes as usize;
        scratch.codes.resize(units * LANES, 0);
        winners(&scratch.ranks, &self.bins, &mut scratch.codes);
    }
}

/// Runs of 128 of permutations of the coordinates; the last run of a permutation is wrapped.
fn draw_subsets(params: &FamilyParams, n: usize) -> Vec<[u32; RANKED]> {
    let name = params.stream(&[SUBSETS]);
    let runs = params.width.div_ceil(RANKED);
    let mut order: Vec<u32> = Vec::new();
    let subset = |at: usize| {
        if at.is_multiple_of(runs) {
            order = (0..params.width as u32).collect();
            Stream::new(mix(name, (at / runs) as u64)).shuffle(&mut order);
        }
        let first = at % runs * RANKED;
        let mut subset: [u32; RANKED] = std::array::from_fn(|i| order[(first + i) % params.width]);
        // Places stand in the order of the coordinates: ties go by either.
        subset.sort_unstable();
        subset
    };
    (0..n).map(subset).collect()
}

/// Bins of `size` different places of a subset each, independent of one another: 64 bins a unit.
fn draw_bins(params: &FamilyParams, units: usize, size: usize) -> Bins {
    let name = params.stream(&[WINNERS]);
    let mut order: Vec<u8> = (0..params.width.min(RANKED) as u8).collect();
    let mut places = vec![0; units * size * LANES];
    for (unit, places) in places.chunks_exact_mut(size * LANES).enumerate() {
        let mut stream = Stream::new(mix(name, unit as u64));
        // Every unit starts from the same order, so that it can be drawn alone.
        order.sort_unstable();
        for lane in 0..LANES {
            // The first places of a shuffle.
            for at in 0..size {
                let other = at + stream.below((order.len() - at) as u32) as usize;
                order.swap(at, other);
                places[at * LANES + lane] = order[at];
            }
        }
    }
    Bins::new(places, size)
}

impl Family for Wta {
    fn params(&self) -> &FamilyParams {
        &self.params
    }

    fn key_bits(&self) -> u32 {
        self.packing.key_bits()
    }

    fn memory_bytes(&self) -> usize {
        self.bins.memory_bytes() + size_of_val(self.subsets.as_slice()) + self.packing.memory_bytes()
    }

    fn hash_dense(&self, rows: DenseRows<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<usize, HashError> {
        check_dense(&self.params, rows, keys);
        let mut n_zero = 0;
        for (i, (row, keys)) in rows.iter().zip(keys.chunks_exact_mut(self.params.n_tables as usize)).enumerate() {
            n_zero += usize::from(all_zero(row, i, |at| at)?);
            self.codes(row, scratch);
            self.packing.pack(&scratch.codes, LANES, self.group, keys, &mut scratch.wide);
        }
        Ok(n_zero)
    }

    fn hash_sparse(&self, row: SparseRow<'_>, keys: &mut [u32], scratch: &mut KeyScratch) -> Result<bool, HashError> {
        check_sparse(&self.params, row, keys);
        let zero = all_zero(row.values(), 0, |at| row.indices()[at] as usize)?;
        let mut values = std::mem::take(&mut scratch.values);
        scatter(row, self.params.width, &mut values);
        self.codes(&values, scratch);
        scratch.values = values;
        self.packing.pack(&scratch.codes, LANES, self.group, keys, &mut scratch.wide);
        Ok(zero)
    }

    /// The second-best coordinate of each bin, and by how much it is exceeded.
    fn alternatives(
        &self,
        vector: &[f32],
        codes: &mut [u64],
        alternatives: &mut [Alternative],
        scratch: &mut KeyScratch,
    ) -> Result<(), HashError> {
        check_alternatives(&self.params, vector, codes, alternatives);
        all_zero(vector, 0, |at| at)?;
        self.codes(vector, scratch);
        self.packing.join(&scratch.codes, LANES, self.group, codes);
        let n_codes = self.params.n_codes as usize;
        for (at, alternative) in alternatives.iter_mut().enumerate() {
            let (table, code) = (at / n_codes, at % n_codes);
            let shift = self.packing.shift(code);
            let best = codes[table] >> shift & ((1 << self.packing.code_bits()) - 1);
            let others = self.coordinates(table, code).enumerate().filter(|&(at, _)| at as u64 != best);
            let second = others
                .map(|(at, c)| (vector[c as usize], c, at))
                .reduce(|a, b| if b.0 > a.0 || b.0 == a.0 && b.1 < a.1 { b } else { a });
            let largest = self.coordinates(table, code).map(|c| vector[c as usize]).fold(f32::MIN, f32::max);
            // A bin has two coordinates at least.
            *alternative = second.map_or_else(Alternative::default, |(value, _, at)| Alternative {
                mask: (best ^ at as u64) << shift,
                loss: largest - value,
            });
        }
        Ok(())
    }

    fn key_of(&self, table: usize, codes: u64) -> u32 {
        self.packing.finish(table, codes)
    }
}
