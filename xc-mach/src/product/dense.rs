//! Plain loops over dense numbers, compiled for each instruction set.
//!
//! The copies share one body of integer comparisons and selections: the results are the same bits.

use xc_buffer::simd::{Loop, vectorised_loop};

/// Smallest, largest, and bits of the largest magnitude of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    pub(crate) lowest: f32,
    pub(crate) highest: f32,
    pub(crate) magnitude_bits: u32,
}

/// Integers that are ordered as the numbers are; its own inverse.
#[inline(always)]
fn ordered(bits: i32) -> i32 {
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

#[inline(always)]
fn as_ordered(value: f32) -> i32 {
    ordered(value.to_bits() as i32)
}

#[inline(always)]
fn from_ordered(key: i32) -> f32 {
    f32::from_bits(ordered(key) as u32)
}

struct ExtentOf<'a>(&'a [f32]);

impl Loop for ExtentOf<'_> {
    type Output = Extent;

    #[inline(always)]
    fn run(self) -> Extent {
        let (mut lowest, mut highest, mut magnitude_bits) = (0, 0, 0);
        for &value in self.0 {
            let key = as_ordered(value);
            lowest = key.min(lowest);
            highest = key.max(highest);
            magnitude_bits = (value.to_bits() & !(1 << 31)).max(magnitude_bits);
        }
        Extent { lowest: from_ordered(lowest), highest: from_ordered(highest), magnitude_bits }
    }
}

struct LargestOfGroups<'a>(&'a [f32], usize, &'a mut Vec<f32>);

impl Loop for LargestOfGroups<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(values, group, out) = self;
        let largest = |group: &[f32]| from_ordered(group.iter().fold(i32::MIN, |a, &b| a.max(as_ordered(b))));
        out.extend(values.chunks(group).map(largest));
    }
}

struct Exchange<'a>(&'a mut [f32], &'a mut [f32]);

impl Loop for Exchange<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (x, y) in self.0.iter_mut().zip(self.1) {
            (*x, *y) = if *y < *x { (*y, *x) } else { (*x, *y) };
        }
    }
}

struct CountFrom<'a>(&'a [f32], f32);

impl Loop for CountFrom<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Self(values, least) = self;
        // Counted in 32 bits, as wide as the numbers are.
        values.chunks(1 << 16).map(|part| part.iter().map(|&v| u32::from(v >= least)).sum::<u32>() as usize).sum()
    }
}

struct PlacesFrom<'a>(&'a [f32], f32, &'a mut Vec<u32>);

impl Loop for PlacesFrom<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Most groups have none.
        const GROUP: usize = 64;
        let Self(values, least, out) = self;
        for (group, values) in values.chunks(GROUP).enumerate() {
            if values.iter().fold(false, |any, &v| any | (v >= least)) {
                let places = (group * GROUP) as u32..;
                out.extend(values.iter().zip(places).filter(|&(&v, _)| v >= least).map(|(_, place)| place));
            }
        }
    }
}

struct BitsFrom<'a>(&'a [f32], f32, &'a mut Vec<u32>);

impl Loop for BitsFrom<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(values, least, out) = self;
        let (whole, rest) = values.as_chunks::<32>();
        let word = |of: &[f32]| of.iter().enumerate().fold(0, |word, (i, &v)| word | u32::from(v >= least) << i);
        out.extend(whole.iter().map(|of| word(of)));
        out.extend(Some(rest).filter(|rest| !rest.is_empty()).map(word));
    }
}

/// Smallest and largest of 0 and some numbers. What it says of NaN is in the bits of the magnitude.
pub(crate) fn extent(values: &[f32]) -> Extent {
    vectorised_loop(ExtentOf(values))
}

/// Appends the largest number of each `group` of numbers.
pub(crate) fn largest_of_groups(values: &[f32], group: usize, out: &mut Vec<f32>) {
    vectorised_loop(LargestOfGroups(values, group, out));
}

/// Puts the lesser of each pair first; equal ones stay.
pub(crate) fn exchange(low: &mut [f32], high: &mut [f32]) {
    vectorised_loop(Exchange(low, high));
}

/// How many numbers are at least `least`.
pub(crate) fn count_from(values: &[f32], least: f32) -> usize {
    vectorised_loop(CountFrom(values, least))
}

/// Appends the places of numbers that are at least `least`.
pub(crate) fn places_from(values: &[f32], least: f32, out: &mut Vec<u32>) {
    vectorised_loop(PlacesFrom(values, least, out));
}

/// Appends a bit for each number, whether it is at least `least`: number i in word i / 32 as bit i % 32.
pub(crate) fn bits_from(values: &[f32], least: f32, out: &mut Vec<u32>) {
    vectorised_loop(BitsFrom(values, least, out));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xc_buffer::simd::{Isa, vectorised_loop_on};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn the_wide_loops_equal_plain_ones(
            values in prop::collection::vec(prop_oneof![-9.0f32..9.0, Just(0.0), Just(-0.0), Just(-1e38)], 1..200)
        ) {
            let got = extent(&values);
            prop_assert_eq!(got.lowest, values.iter().copied().fold(0.0, f32::min));
            prop_assert_eq!(got.highest, values.iter().copied().fold(0.0, f32::max));
            prop_assert_eq!(f32::from_bits(got.magnitude_bits), values.iter().fold(0.0, |a: f32, b| a.max(b.abs())));
            for isa in Isa::available() {
                prop_assert_eq!(got, vectorised_loop_on(isa, ExtentOf(&values)), "{}", isa);
            }
            let mut groups = Vec::new();
            largest_of_groups(&values, 64, &mut groups);
            let expected: Vec<f32> =
                values.chunks(64).map(|g| g.iter().copied().fold(f32::NEG_INFINITY, f32::max)).collect();
            prop_assert_eq!(groups, expected);
            for bar in [values[0], 0.0, f32::INFINITY] {
                prop_assert_eq!(count_from(&values, bar), values.iter().filter(|&&v| v >= bar).count());
                let mut places = vec![7];
                places_from(&values, bar, &mut places);
                let expected = values.iter().zip(0..).filter(|&(&v, _)| v >= bar).map(|(_, place)| place);
                prop_assert_eq!(places, [7].into_iter().chain(expected).collect::<Vec<u32>>());
                let mut bits = vec![7];
                bits_from(&values, bar, &mut bits);
                prop_assert_eq!(bits.len(), 1 + values.len().div_ceil(32));
                for (i, &value) in values.iter().enumerate() {
                    prop_assert_eq!(bits[1 + i / 32] >> (i % 32) & 1 == 1, value >= bar);
                }
            }
            let (low, high) = values.split_at(values.len() / 2);
            let (mut low_after, mut high_after) = (low.to_vec(), high[..low.len()].to_vec());
            exchange(&mut low_after, &mut high_after);
            for t in 0..low.len() {
                let pair = (low[t], high[t]);
                let expected = if pair.1 < pair.0 { (pair.1, pair.0) } else { pair };
                prop_assert_eq!((low_after[t].to_bits(), high_after[t].to_bits()), (expected.0.to_bits(), expected.1.to_bits()));
            }
        }

        #[test]
        fn what_is_not_finite_shows_in_the_magnitude(at in 0usize..70, bad in prop::sample::select(vec![f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY])) {
            let mut values = vec![0.5f32; 70];
            prop_assert!(extent(&values).magnitude_bits < f32::INFINITY.to_bits());
            values[at] = bad;
            prop_assert!(extent(&values).magnitude_bits >= f32::INFINITY.to_bits());
        }
    }
}
