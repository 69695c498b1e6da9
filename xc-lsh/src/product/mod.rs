//! Kernels: ranks of values; which of a few ranks is the largest, for many bins at a time; a
//! multiple of a row added to another.
//!
//! The scalar file defines every operation; the others are tested against it, and give the same.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "kernels written by hand for an instruction set"))]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use xc_buffer::Isa;

/// Bins that are looked at together: one a lane.
pub(crate) const LANES: usize = 64;
/// Coordinates that are ranked together.
pub(crate) const RANKED: usize = 128;

/// For each of the first `n` values how many of these it beats: the larger value wins, of equal
/// ones the lower index. The ranks from `n` on mean nothing. Values are not NaN.
///
/// All ranks are different, so that no look-up meets a tie; -0 equals 0, and values below the
/// normal ones count.
///
/// # Panics
/// If `n` is above 128.
pub(crate) fn rank(values: &[f32; RANKED], n: usize, ranks: &mut [u8; RANKED]) {
    rank_with(Isa::current(), values, n, ranks);
}

fn rank_with(isa: Isa, values: &[f32; RANKED], n: usize, ranks: &mut [u8; RANKED]) {
    assert!(n <= RANKED, "ranks of {n} values");
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available.
        Isa::Avx512 => unsafe { avx512::rank(values, n, ranks) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { avx2::rank(values, n, ranks) },
        _ => scalar::rank(values, n, ranks),
    }
}

/// The place of the largest rank in each bin.
///
/// *Shapes*: `bins` holds, for each unit, `bin` lists of [`LANES`] places below [`RANKED`]: the
/// first coordinate of each of 64 bins, then the second, and so on. `codes` has [`LANES`] places a
/// unit. Unit u reads `ranks[u % ranks.len()]`.
///
/// # Panics
/// If shapes disagree, or places are not below [`RANKED`].
pub(crate) fn winners(ranks: &[[u8; RANKED]], bins: &Bins, codes: &mut [u8]) {
    winners_with(Isa::current(), ranks, bins, codes);
}

fn winners_with(isa: Isa, ranks: &[[u8; RANKED]], bins: &Bins, codes: &mut [u8]) {
    assert!(!ranks.is_empty(), "no ranks");
    let expected = codes.len().checked_mul(bins.size);
    assert_eq!(expected, Some(bins.places.len()), "codes times coordinates of a bin, and places");
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction set is available, and what it does not include was just found.
        Isa::Avx512 if is_x86_feature_detected!("avx512vbmi") => unsafe { avx512::winners(ranks, bins, codes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available; AVX-512 includes
        // AVX2.
        Isa::Avx512 | Isa::Avx2 => unsafe { avx2::winners(ranks, bins, codes) },
        _ => scalar::winners(ranks, bins, codes),
    }
}

/// Which coordinates the bins look at.
///
/// # Invariants
/// Places are below [`RANKED`]; their number is a multiple of [`LANES`] times `size`; `size` is 1
/// to 128.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    places: Vec<u8>,
    size: usize,
}

impl Bins {
    /// # Panics
    /// If the invariants do not hold.
    pub(crate) fn new(places: Vec<u8>, size: usize) -> Self {
        assert!((1..=128).contains(&size), "bins of {size}");
        assert!(places.len().is_multiple_of(LANES * size), "{} places for bins of {size}", places.len());
        assert!(places.iter().all(|&p| usize::from(p) < RANKED), "a place above {RANKED}");
        Self { places, size }
    }

    /// Places of the bin in `lane` of `unit`.
    pub(crate) fn of(&self, unit: usize, lane: usize) -> impl Iterator<Item = u8> {
        (0..self.size).map(move |at| self.places[(unit * self.size + at) * LANES + lane])
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.places.len()
    }
}

/// Rows of a matrix, and a factor for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination<'a> {
    /// The matrix, row after row.
    pub(crate) matrix: &'a [f32],
    /// Numbers of the rows; the first ones in order where there are none.
    pub(crate) rows: Option<&'a [u32]>,
    /// A factor for each row.
    pub(crate) factors: &'a [f32],
}

/// Writes the sum of rows times their factors: one chain of additions in their order, each product
/// and sum rounded once.
///
/// # Panics
/// If the matrix lacks a row of as many values as `out`, or there are not as many rows as factors.
pub(crate) fn combine(of: Combination<'_>, out: &mut [f32]) {
    combine_with(Isa::current(), of, out);
}

fn combine_with(isa: Isa, of: Combination<'_>, out: &mut [f32]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available.
        Isa::Avx512 => unsafe { avx512::combine(of, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { avx2::combine(of, out) },
        _ => scalar::combine::<16>(of, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xc_hash::stream::Stream;

    fn values() -> impl Strategy<Value = f32> {
        prop_oneof![
            -2f32..2.0,
            Just(0.0),
            Just(-0.0),
            Just(1e-45),
            Just(-1e-45),
            Just(1e-39),
            Just(f32::MAX),
            Just(1.0)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_rank_is_the_number_of_values_that_are_beaten(values in prop::collection::vec(values(), 0..=RANKED)) {
            let mut padded = [0.0; RANKED];
            padded[..values.len()].copy_from_slice(&values);
            for isa in Isa::available() {
                let mut ranks = [200; RANKED];
                rank_with(isa, &padded, values.len(), &mut ranks);
                for (i, v) in values.iter().enumerate() {
                    let beats = |(j, w): (usize, &f32)| w < v || w == v && j > i;
                    let expected = values.iter().enumerate().filter(|&e| beats(e)).count();
                    prop_assert_eq!(usize::from(ranks[i]), expected, "{}: place {} of {:?}", isa, i, &values);
                }
            }
        }

        #[test]
        fn every_instruction_set_finds_the_same_winners(seed: u64, units in 0usize..5, size in 1usize..20, subsets in 1usize..4) {
            let mut stream = Stream::new(seed);
            let ranks: Vec<[u8; RANKED]> = (0..subsets)
                .map(|_| {
                    let mut ranks: [u8; RANKED] = std::array::from_fn(|i| i as u8);
                    stream.shuffle(&mut ranks);
                    ranks
                })
                .collect();
            let places = (0..units * size * LANES).map(|_| stream.below(RANKED as u32) as u8).collect();
            let bins = Bins::new(places, size);
            let mut expected = vec![0; units * LANES];
            for (at, code) in expected.iter_mut().enumerate() {
                let (unit, lane) = (at / LANES, at % LANES);
                let of: Vec<u8> = bins.of(unit, lane).map(|p| ranks[unit % subsets][usize::from(p)]).collect();
                let best = of.iter().max().unwrap();
                // The same coordinate may stand in a bin twice here: the first place counts.
                *code = of.iter().position(|r| r == best).unwrap() as u8;
            }
            for isa in Isa::available() {
                let mut codes = vec![9; units * LANES];
                winners_with(isa, &ranks, &bins, &mut codes);
                prop_assert_eq!(&codes, &expected, "{}", isa);
            }
        }

        #[test]
        fn every_instruction_set_adds_the_same(n in 0usize..300, n_rows in 0usize..9, seed: u64) {
            let mut stream = Stream::new(seed);
            let (mut matrix, mut factors) = (vec![0.0; n * 10], vec![0.0; n_rows]);
            stream.fill_uniform(3.0, &mut matrix);
            stream.fill_uniform(10.0, &mut factors);
            matrix.iter_mut().step_by(7).for_each(|v| *v *= 1e-42);
            factors.iter_mut().skip(3).for_each(|v| *v = -0.0);
            let rows: Vec<u32> = (0..n_rows).map(|_| stream.below(10)).collect();
            for rows in [None, Some(&rows[..])] {
                let of = Combination { matrix: &matrix, rows, factors: &factors };
                let row = |i: usize| rows.map_or(i, |rows| rows[i] as usize);
                let sum = |j: usize| (0..n_rows).fold(0.0f32, |sum, i| factors[i].mul_add(matrix[row(i) * n + j], sum));
                let expected: Vec<u32> = (0..n).map(|j| sum(j).to_bits()).collect();
                for isa in Isa::available() {
                    let mut sums = vec![9.0; n];
                    combine_with(isa, of, &mut sums);
                    let sums: Vec<u32> = sums.iter().map(|s| s.to_bits()).collect();
                    prop_assert_eq!(&sums, &expected, "{}", isa);
                }
            }
        }
    }
}
