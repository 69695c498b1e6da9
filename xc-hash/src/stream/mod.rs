//! Random numbers: one stream for each unit of work, so that threads, tiles and machines do not
//! matter.
//!
//! A stream is named by `(seed, purpose, path)`. The path consists of numbers given by the data set
//! (a step, a label, an instance, a row of a matrix), never of positions in a batch or a tile: draws
//! for label 7 of step 3 give the same numbers, alone or among others.
//!
//! ```text
//!   seed ─▶ purpose ─▶ step ─▶ label        name(seed, Purpose::Rounding, &[step, label])
//!    42      Rounding    3       7     ─▶   64 bits  ─▶  Stream::new(name)  ─▶  draws
//! ```
//!
//! ```
//! use xc_hash::stream::{Order, Purpose, Stream, mix, name};
//!
//! // The weights that label 7 begins with.
//! let mut weights = [0.0f32; 4];
//! Stream::new(name(42, Purpose::Init, &[0, 7])).fill_uniform(0.1, &mut weights);
//! assert!(weights.iter().all(|w| (-0.1..0.1).contains(w)));
//!
//! // A path can be walked in steps: what is shared by many streams is mixed once.
//! let layer = name(42, Purpose::Init, &[0]);
//! assert_eq!(mix(layer, 7), name(42, Purpose::Init, &[0, 7]));
//!
//! // The third instance of epoch 5, without an order of all instances in memory.
//! let order = Order::new(370_000_000, name(42, Purpose::Order, &[5]));
//! assert!(order.at(2) < 370_000_000);
//! ```
//!
//! The numbers are frozen: stored models and resumed training runs depend on them.
//!
//! # When not to use it
//! Where somebody may gain by guessing the next number: none of this is cryptographic.
//!
//! *References*: `[steele2014splitmix]` for the mixer, `[blackman2021scrambled]` for the generator,
//! `[black2002ciphers]` for permutations of any size.

mod order;

pub use order::Order;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// 2^64 divided by the golden ratio: the step of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes 64 bits (one step of SplitMix64): a permutation of all 64-bit numbers in which every bit
/// of the input moves about half of the bits of the output.
#[inline]
pub fn mix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The name of the stream that is `number` steps aside of the one called `name`: a path's next
/// number.
#[inline]
pub fn mix(name: u64, number: u64) -> u64 {
    mix64(name ^ number.wrapping_mul(GOLDEN))
}

/// What a stream is for: streams of two purposes share no number, whatever their paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// Values that parameters begin with.
    Init,
    /// Order of the instances of an epoch.
    Order,
    /// Dropout masks.
    Dropout,
    /// Which instances are held out.
    Split,
    /// A repetition of MACH.
    Repetition,
    /// Which inputs a sparse layer's labels are connected with.
    Connections,
    /// Which connections replace others.
    Rewire,
    /// Stochastic rounding.
    Rounding,
    /// Labels drawn as negatives.
    Negatives,
    /// What the search for leading singular vectors begins with.
    SingularVectors,
    /// Functions of locality-sensitive families.
    Lsh,
    /// Which occurrences of frequent words are left out.
    Subsample,
    /// Settings that are tried.
    Trials,
    /// A purpose of a program of its own.
    Custom(u32),
}

impl Purpose {
    /// The first number of a path.
    fn number(self) -> u64 {
        match self {
            Self::Init => 1,
            Self::Order => 2,
            Self::Dropout => 3,
            Self::Split => 4,
            Self::Repetition => 5,
            Self::Connections => 6,
            Self::Rewire => 7,
            Self::Rounding => 8,
            Self::Negatives => 9,
            Self::SingularVectors => 10,
            Self::Lsh => 11,
            Self::Subsample => 12,
            Self::Trials => 13,
            Self::Custom(number) => 1 << 32 | u64::from(number),
        }
    }
}

/// The name of a stream.
pub fn name(seed: u64, purpose: Purpose, path: &[u64]) -> u64 {
    path.iter().fold(mix(seed, purpose.number()), |name, &number| mix(name, number))
}

/// A sequence of random numbers (xoshiro256++), identified by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` (see [`name`](fn@name) and [`mix`]), at its beginning.
    #[inline]
    pub fn new(name: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(name))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound` (0 for a bound of 0), by multiplication; no number is likelier than
    /// another by more than `bound / 2^32`.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// [`Stream::below`] for 64 bits: the bias is below `bound / 2^64`.
    #[inline]
    pub fn below_u64(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number below `bound`, each exactly as likely: draws are thrown away while they are not
    /// below it, less than half of them on average.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below_exactly(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a number below 0 was asked for");
        let mask = u64::MAX >> (bound - 1).max(1).leading_zeros();
        loop {
            let drawn = self.next_u64() & mask;
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// A number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// Fills with values uniform in `[-bound, bound)`, 24 bits each.
    #[inline]
    pub fn fill_uniform(&mut self, bound: f32, out: &mut [f32]) {
        for value in out {
            *value = ((self.next_u64() >> 40) as f32 / (1u32 << 23) as f32 - 1.0) * bound;
        }
    }

    /// Puts items in random order (Fisher and Yates). [`Order`] gives one without the items in
    /// memory.
    #[inline]
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        debug_assert!(items.len() as u64 <= 1 << 32, "{} items, at most 2^32 are shuffled", items.len());
        for i in (1..items.len()).rev() {
            let bound = i as u64 + 1;
            items.swap(i, (((self.next_u64() >> 32) * bound) >> 32) as usize);
        }
    }
}

/// A number in [0, 1) from the upper 53 of 64 bits.
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixer_is_that_of_splitmix64() {
        // The first outputs of the published generator with seed 0: its state moves by GOLDEN.
        let published = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        for (i, expected) in published.into_iter().enumerate() {
            assert_eq!(mix64(GOLDEN.wrapping_mul(i as u64)), expected);
            assert_eq!(mix(0, i as u64), expected);
        }
    }

    #[test]
    fn names_and_draws_are_frozen() {
        // Computed by another program from the published definitions.
        assert_eq!(name(7, Purpose::Init, &[]), FROZEN_NAMES[0]);
        assert_eq!(name(7, Purpose::Order, &[3]), FROZEN_NAMES[1]);
        assert_eq!(name(7, Purpose::Custom(1), &[3, 5]), FROZEN_NAMES[2]);
        let mut stream = Stream::new(mix(mix(7, 1), 2));
        let drawn: Vec<u32> = (0..4).map(|_| stream.below(1000)).collect();
        assert_eq!(drawn, FROZEN_DRAWS);
        assert_eq!(stream.below_u64(1 << 40), FROZEN_WIDE);
        assert_eq!(stream.below_exactly(1_000_003), FROZEN_EXACT);
        let mut values = [0.0; 3];
        stream.fill_uniform(8_388_608.0, &mut values);
        assert_eq!(values, FROZEN_VALUES);
        let mut items: Vec<u32> = (0..8).collect();
        stream.shuffle(&mut items);
        assert_eq!(items, FROZEN_SHUFFLE);
    }

    const FROZEN_NAMES: [u64; 3] = [0xec77_9c36_93f8_8501, 0xc216_7660_29a4_c923, 0x69c4_c976_9c9a_97e9];
    const FROZEN_DRAWS: [u32; 4] = [248, 486, 534, 756];
    const FROZEN_WIDE: u64 = 421_814_166_779;
    const FROZEN_EXACT: u64 = 931_315;
    const FROZEN_VALUES: [f32; 3] = [2781219.0, 7118388.0, 690452.0];
    const FROZEN_SHUFFLE: [u32; 8] = [4, 5, 3, 0, 6, 1, 7, 2];

    #[test]
    fn a_path_has_an_order_and_purposes_differ() {
        assert_ne!(mix(7, 1), mix(1, 7));
        assert_ne!(name(1, Purpose::Init, &[2, 3]), name(1, Purpose::Init, &[3, 2]));
        assert_ne!(name(1, Purpose::Init, &[2]), name(1, Purpose::Order, &[2]));
        assert_ne!(name(1, Purpose::Init, &[]), name(1, Purpose::Custom(1), &[]));
        assert_eq!(mix(name(1, Purpose::Init, &[2]), 3), name(1, Purpose::Init, &[2, 3]));
    }

    #[test]
    fn bounded_draws_reach_every_number_and_none_beyond() {
        let mut stream = Stream::new(5);
        for bound in [1u32, 2, 3, 7, 64] {
            let mut seen = [[false; 64]; 3];
            for _ in 0..2000 {
                seen[0][stream.below(bound) as usize] = true;
                seen[1][stream.below_u64(u64::from(bound)) as usize] = true;
                seen[2][stream.below_exactly(u64::from(bound)) as usize] = true;
            }
            for seen in seen {
                assert!(seen.iter().enumerate().all(|(i, &s)| s == (i < bound as usize)), "bound {bound}");
            }
        }
        assert_eq!((stream.below(0), stream.below_u64(0)), (0, 0));
        assert!((0..1000).map(|_| stream.unit()).all(|u| (0.0..1.0).contains(&u)));
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut items: Vec<u32> = (0..257).collect();
        Stream::new(3).shuffle(&mut items);
        assert_ne!(items, (0..257).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..257).collect::<Vec<_>>());
        Stream::new(3).shuffle(&mut [] as &mut [u32]);
    }
}
