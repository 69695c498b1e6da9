//! The probe of machines with AVX2, whose other instructions count and shift bits.

use super::{Found, Probes};
use crate::chunked::directory::WORD;

/// See [`super::scalar::probe`].
///
/// Every slot is written, and counts where it is taken: whether it is can hardly be foreseen, and a branch foreseen wrongly
/// costs more than the write.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(crate) fn probe(words: &[u64], n_slots: u32, probes: Probes<'_>, found: &mut Found) {
    // A loop of its own for each kind of directory.
    match probes.direct {
        true => look_up::<true>(words, n_slots, probes, found),
        false => look_up::<false>(words, n_slots, probes, found),
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn look_up<const DIRECT: bool>(words: &[u64], n_slots: u32, probes: Probes<'_>, found: &mut Found) {
    let Probes { slots, features, values, .. } = probes;
    let (features, values) = (&features[..slots.len()], &values[..slots.len()]);
    let (rows, taken_values) = (room(&mut found.rows, slots.len()), room(&mut found.values, slots.len()));
    let taken_features = room(&mut found.features, if DIRECT { 0 } else { slots.len() });
    let mut n = 0;
    for (i, &fraction) in slots.iter().enumerate() {
        let slot = if DIRECT { fraction } else { ((u64::from(fraction) * u64::from(n_slots)) >> 32) as u32 };
        let word = words[(slot / WORD) as usize];
        let bit = slot % WORD;
        let below = word as u32 & ((1u32 << bit) - 1);
        rows[n] = (word >> 32) as u32 + below.count_ones();
        taken_values[n] = values[i];
        if !DIRECT {
            taken_features[n] = features[i];
        }
        n += (word >> bit & 1) as usize;
    }
    let left = slots.len() - n;
    found.rows.truncate(found.rows.len() - left);
    found.values.truncate(found.values.len() - left);
    if !DIRECT {
        found.features.truncate(found.features.len() - left);
    }
}

/// Appends `n` entries to be written.
fn room<T: Copy + Default>(of: &mut Vec<T>, n: usize) -> &mut [T] {
    let start = of.len();
    of.resize(start + n, T::default());
    &mut of[start..]
}
