//! What was added to a table since it was sorted.

use xc_buffer::simd::prefetch;
use xc_hash::stream::mix64;

/// A place without an entry.
const FREE: u64 = u64::MAX;

/// An item that got another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub before: u32,
    pub key: u32,
    pub item: u32,
}

/// Pairs of key and item in open addressing: the items of a key in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Overflow {
    /// Key in the upper half, item in the lower; a power of two of places, at most half of them
    /// taken.
    places: Vec<u64>,
    /// All changes in the order in which they came, since places depend on it.
    changes: Vec<Change>,
}

impl Overflow {
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.places.as_slice()) + size_of_val(self.changes.as_slice())
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub(super) fn insert(&mut self, change: Change) {
        self.changes.push(change);
        if 2 * self.changes.len() <= self.places.len() {
            place(&mut self.places, &change);
            return;
        }
        let n = (4 * self.changes.len()).next_power_of_two();
        self.places.clear();
        self.places.resize(n, FREE);
        self.changes.iter().for_each(|change| place(&mut self.places, change));
    }

    /// Asks for the items of a key, which will be read soon.
    pub(super) fn prefetch(&self, key: u32) {
        prefetch(&self.places, first(key) & self.places.len().wrapping_sub(1));
    }

    /// The items of a key.
    pub(super) fn items(&self, key: u32) -> impl Iterator<Item = u32> {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = first(key) & mask;
        std::iter::from_fn(move || {
            loop {
                let entry = *self.places.get(at)?;
                if entry == FREE {
                    return None;
                }
                at = (at + 1) & mask;
                if (entry >> 32) as u32 == key {
                    return Some(entry as u32);
                }
            }
        })
    }
}

fn first(key: u32) -> usize {
    mix64(u64::from(key)) as usize
}

fn place(places: &mut [u64], change: &Change) {
    let mask = places.len() - 1;
    let mut at = first(change.key) & mask;
    while places[at] != FREE {
        at = (at + 1) & mask;
    }
    places[at] = u64::from(change.key) << 32 | u64::from(change.item);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_has_its_items_in_the_order_in_which_they_came(pairs in prop::collection::vec((0u32..40, 0u32..1000), 0..300)) {
            let mut overflow = Overflow::default();
            pairs.iter().for_each(|&(key, item)| overflow.insert(Change { before: 0, key, item }));
            prop_assert_eq!(overflow.len(), pairs.len());
            for key in 0..41 {
                let expected: Vec<u32> = pairs.iter().filter(|p| p.0 == key).map(|p| p.1).collect();
                prop_assert_eq!(overflow.items(key).collect::<Vec<_>>(), expected);
            }
        }
    }
}
