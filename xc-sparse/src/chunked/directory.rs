//! From a feature to its row in a chunk in one memory access: an order-preserving hash with a rank.
//!
//! The rows of a chunk are in ascending feature order. A monotone map sends each feature to one of
//! `n_slots` slots, about eight per row. Each row takes its slot, or the next free one after the
//! previous row. A word of the directory holds 32 slots as bits, and the number of rows before them:
//!
//! ```text
//!   slots     0 1 2 3 4 5 6 7 ...                     word = rows before << 32 | bits
//!   rows          9     40 41          bits 00110100...   lookup(f): slot s of f; bit clear: f is not here;
//!   (feature)                          rank of slot 5 = 1         bit set: compare row rank(s), rank(s)+1, ...
//! ```
//!
//! Most absent features cost one 8-byte read of a table of 2 bytes per row, a sixth of the row headers,
//! and no branch: this is the hash iterator of (etter2022mscm, section 4) with a table that stores no
//! keys. Some id ranges are more frequent (vocabularies are sorted by frequency or by spelling), so the
//! map follows how often each feature occurs in the tree, mixed equally with the identity: no range of
//! ids gets less than half of its even share of slots. A chunk that holds an eighth of all features or
//! more maps each feature to its own slot.

/// Slots a row, on average.
const SLOTS_PER_ROW: usize = 8;
/// Slots in a word.
pub(crate) const WORD: u32 = 32;

/// Number of slots for a chunk of `n_rows` rows out of `n_features` features.
///
/// A chunk is *direct* (slot = feature) exactly when this equals `n_features`.
pub(crate) fn n_slots(n_rows: usize, n_features: usize) -> u32 {
    let wanted = (n_rows * SLOTS_PER_ROW).next_multiple_of(WORD as usize);
    wanted.min(n_features) as u32
}

/// Words of a directory of `n_slots` slots.
pub(crate) fn n_words(n_slots: u32) -> usize {
    n_slots.div_ceil(WORD) as usize
}

/// The slot of a feature.
#[inline(always)]
pub(crate) fn slot(feature: u32, map: &[u32], n_slots: u32, n_features: usize) -> u32 {
    if n_slots as usize == n_features {
        feature
    } else {
        ((u64::from(map[feature as usize]) * u64::from(n_slots)) >> 32) as u32
    }
}

/// Fills the directory of one chunk from its features in ascending order.
pub(crate) fn fill(
    features: impl Iterator<Item = u32>,
    map: &[u32],
    n_slots: u32,
    n_features: usize,
    words: &mut [u64],
) {
    words.fill(0);
    let mut next_free = 0u32;
    for feature in features {
        let position = slot(feature, map, n_slots, n_features).max(next_free);
        next_free = position + 1;
        // A row pushed past the last slot needs no bit: its own slot is taken, and the search runs
        // on by key.
        if position < n_slots {
            words[(position / WORD) as usize] |= 1 << (position % WORD);
        }
    }
    let mut before = 0u64;
    for word in words {
        let rows = u64::from((*word as u32).count_ones());
        *word |= before << 32;
        before += rows;
    }
}
