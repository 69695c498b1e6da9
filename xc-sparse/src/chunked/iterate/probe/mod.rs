//! Look-ups of slots in the directory of a chunk.

#![allow(unsafe_code, reason = "kernels written by hand for an instruction set")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use xc_buffer::simd::Isa;

/// A query's features as a directory is probed for them: as many of each.
#[derive(Clone, Copy)]
pub(in crate::chunked) struct Probes<'a> {
    /// The slots themselves when `direct`, and otherwise fractions of `n_slots` in units of 2^-32.
    pub(in crate::chunked) slots: &'a [u32],
    /// True if each feature has its own slot.
    pub(in crate::chunked) direct: bool,
    /// The features.
    pub(in crate::chunked) features: &'a [u32],
    /// Their values.
    pub(in crate::chunked) values: &'a [f32],
}

/// What a probe finds: as many of each.
#[derive(Clone, Debug, Default)]
pub(in crate::chunked) struct Found {
    /// First row that it can be.
    pub(in crate::chunked) rows: Vec<u32>,
    /// The query's values.
    pub(in crate::chunked) values: Vec<f32>,
    /// The features looked for; left alone by a direct probe, which needs no comparison afterwards.
    pub(in crate::chunked) features: Vec<u32>,
}

/// Looks each slot up in a directory; appends to `found` where the slot is taken.
///
/// # Safety
/// The instruction set is available; each slot (after scaling by `n_slots` unless `direct`) is
/// below `32 * words.len()`; the three slices of `probes` are equally long.
pub(in crate::chunked) unsafe fn probe(isa: Isa, words: &[u64], n_slots: u32, probes: Probes<'_>, found: &mut Found) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: by the contract.
        Isa::Avx512 => unsafe { avx512::probe(words, n_slots, probes, found) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: by the contract.
        Isa::Avx2 => unsafe { avx2::probe(words, n_slots, probes, found) },
        _ => scalar::probe(words, n_slots, probes, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn every_instruction_set_finds_what_the_portable_probe_finds(
            bits in prop::collection::vec(any::<u32>(), 1..40),
            direct in any::<bool>(),
            slots in prop::collection::vec(any::<u32>(), 0..70),
            before in 0usize..3,
        ) {
            let rank = |rank: &mut u32, bits: u32| {
                let word = u64::from(*rank) << 32 | u64::from(bits);
                *rank += bits.count_ones();
                Some(word)
            };
            let words: Vec<u64> = bits.iter().copied().scan(0, rank).collect();
            let n_slots = 32 * words.len() as u32;
            let slots: Vec<u32> = slots.into_iter().map(|slot| if direct { slot % n_slots } else { slot }).collect();
            let features: Vec<u32> = (0..slots.len() as u32).map(|i| 7 * i + 1).collect();
            let values: Vec<f32> = features.iter().map(|&feature| feature as f32 - 20.5).collect();
            let probes = Probes { slots: &slots, direct, features: &features, values: &values };
            // What stands there stays.
            let there = Found { rows: vec![5; before], values: vec![0.5; before], features: vec![3; before] };
            let mut expected = there.clone();
            scalar::probe(&words, n_slots, probes, &mut expected);
            for isa in Isa::available() {
                let mut found = there.clone();
                // SAFETY: the set is available, slots are below 32 a word or fractions of so many, and there is one feature
                // and one value a slot.
                unsafe { probe(isa, &words, n_slots, probes, &mut found) };
                prop_assert_eq!(&found.rows, &expected.rows, "{}", isa);
                prop_assert_eq!(&found.values, &expected.values, "{}", isa);
                prop_assert_eq!(&found.features, &expected.features, "{}", isa);
            }
        }
    }
}
