//! Random numbers: one stream per unit of work, named by the seed and a path, so that threads do not matter.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Mixes a number into a stream's name (the finaliser of SplitMix64).
pub(crate) fn mix(name: u64, number: u64) -> u64 {
    let mut z = (name ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a stream is for: the first number of its path.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// First values of parameters.
    Initial = 1,
    /// Order of the instances of an epoch.
    Order = 2,
    /// Dropout masks.
    Dropout = 3,
    /// Which instances validate.
    Split = 4,
    /// A repetition of MACH.
    Repetition = 5,
    /// Which inputs a sparse layer's outputs are connected with.
    Connections = 6,
    /// Which connections replace others.
    Rewire = 7,
    /// Stochastic rounding.
    Rounding = 8,
    /// Outputs drawn as negatives.
    Negatives = 9,
    /// Directions that a search for the leading ones begins with.
    Directions = 10,
}

/// Name of the stream for `purpose` under `seed`; `number` tells streams of one purpose apart.
pub(crate) fn name(seed: u64, purpose: Purpose, number: u64) -> u64 {
    mix(mix(seed, purpose as u64), number)
}

/// The generator of the stream called `name`.
pub(crate) fn stream(name: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(name)
}

/// Fisher-Yates shuffle. The bias of each draw is below `len / 2^32`.
pub(crate) fn shuffle(rng: &mut Xoshiro256PlusPlus, items: &mut [u32]) {
    for i in (1..items.len()).rev() {
        let bound = i as u64 + 1;
        items.swap(i, (((rng.next_u64() >> 32) * bound) >> 32) as usize);
    }
}

/// Fills with values even in `[-bound, bound)`, 24 bits each.
pub(crate) fn fill_uniform(rng: &mut Xoshiro256PlusPlus, bound: f32, out: &mut [f32]) {
    for value in out {
        *value = ((rng.next_u64() >> 40) as f32 / (1u32 << 23) as f32 - 1.0) * bound;
    }
}
