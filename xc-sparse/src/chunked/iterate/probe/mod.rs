//! Look-ups of slots in the directory of a chunk.

#![allow(unsafe_code, reason = "kernels written by hand for an instruction set")]

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
        _ => scalar::probe(words, n_slots, probes, found),
    }
}
