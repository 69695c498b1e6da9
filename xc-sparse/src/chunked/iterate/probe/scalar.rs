//! The portable probe, the reference for the other one.

use super::{Found, Probes};
use crate::chunked::directory::WORD;

/// Looks each slot up in a directory; appends to `found` where the slot is taken.
pub(crate) fn probe(words: &[u64], n_slots: u32, probes: Probes<'_>, found: &mut Found) {
    let Probes { slots, direct, features, values } = probes;
    for (i, &fraction) in slots.iter().enumerate() {
        let slot = if direct { fraction } else { ((u64::from(fraction) * u64::from(n_slots)) >> 32) as u32 };
        let word = words[(slot / WORD) as usize];
        let bit = slot % WORD;
        if word >> bit & 1 == 0 {
            continue;
        }
        let below = word as u32 & ((1u32 << bit) - 1);
        found.rows.push((word >> 32) as u32 + below.count_ones());
        found.values.push(values[i]);
        if !direct {
            found.features.push(features[i]);
        }
    }
}
