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

/// The generator of the stream called `name`.
pub(crate) fn stream(name: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(name)
}

/// A number below `bound`, by multiplication; the bias is below `bound / 2^32`.
#[inline]
pub(crate) fn below(rng: &mut Xoshiro256PlusPlus, bound: u32) -> u32 {
    (((rng.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
}

/// Fisher-Yates shuffle.
pub(crate) fn shuffle(rng: &mut Xoshiro256PlusPlus, items: &mut [u32]) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(rng, i as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_frozen() {
        let mut rng = stream(mix(mix(7, 1), 2));
        let drawn: Vec<u32> = (0..4).map(|_| below(&mut rng, 1000)).collect();
        let mut again = stream(mix(mix(7, 1), 2));
        assert_eq!(drawn, (0..4).map(|_| below(&mut again, 1000)).collect::<Vec<_>>());
        assert_ne!(mix(7, 1), mix(1, 7));
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut items: Vec<u32> = (0..257).collect();
        shuffle(&mut stream(3), &mut items);
        assert_ne!(items, (0..257).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..257).collect::<Vec<_>>());
    }
}
