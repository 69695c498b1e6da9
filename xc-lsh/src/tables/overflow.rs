//! What was added to a table since it was sorted.

use xc_hash::stream::mix64;

/// A place without an entry.
const FREE: u64 = u64::MAX;

/// Pairs of key and item in open addressing: the items of a key in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Overflow {
    /// Key in the upper half, item in the lower; a power of two of places, at most half of them taken.
    places: Vec<u64>,
    /// All entries in the order in which they came, since places depend on it.
    entries: Vec<u64>,
}

impl Overflow {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn bytes(&self) -> usize {
        8 * (self.places.len() + self.entries.len())
    }

    pub(super) fn insert(&mut self, key: u32, item: u32) {
        let entry = u64::from(key) << 32 | u64::from(item);
        self.entries.push(entry);
        if 2 * self.entries.len() <= self.places.len() {
            place(&mut self.places, entry);
            return;
        }
        let n = (4 * self.entries.len()).next_power_of_two();
        self.places.clear();
        self.places.resize(n, FREE);
        self.entries.iter().for_each(|&entry| place(&mut self.places, entry));
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

fn place(places: &mut [u64], entry: u64) {
    let mask = places.len() - 1;
    let mut at = first((entry >> 32) as u32) & mask;
    while places[at] != FREE {
        at = (at + 1) & mask;
    }
    places[at] = entry;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_has_its_items_in_the_order_in_which_they_came(pairs in prop::collection::vec((0u32..40, 0u32..1000), 0..300)) {
            let mut overflow = Overflow::default();
            pairs.iter().for_each(|&(key, item)| overflow.insert(key, item));
            prop_assert_eq!(overflow.len(), pairs.len());
            for key in 0..41 {
                let expected: Vec<u32> = pairs.iter().filter(|p| p.0 == key).map(|p| p.1).collect();
                prop_assert_eq!(overflow.items(key).collect::<Vec<_>>(), expected);
            }
        }
    }
}
