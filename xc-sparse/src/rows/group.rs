//! Pairs by their keys.

/// Items grouped by a key below `len()`: group `k` is `items[starts[k]..starts[k + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups<T> {
    starts: Vec<usize>,
    items: Vec<T>,
}

/// Groups pairs (key, item) by their keys; a group's items keep the order in which they come.
///
/// ```text
///   pairs   2:a 0:b 2:c    ─▶   counts 1 0 2   ─▶   starts 0 1 1 3   ─▶   items b a c
/// ```
///
/// *Cost*: O(groups + pairs); the pairs are walked twice.
///
/// # Panics
/// If a key is not below `n_groups`, or the second walk gives other pairs than the first.
pub fn group_by<T: Copy + Default>(n_groups: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Groups<T> {
    let mut starts = vec![0usize; n_groups + 1];
    for (key, _) in pairs.clone() {
        assert!((key as usize) < n_groups, "key {key} of {n_groups} groups");
        starts[key as usize + 1] += 1;
    }
    for k in 0..n_groups {
        starts[k + 1] += starts[k];
    }
    let mut next = starts.clone();
    let mut items = vec![T::default(); starts[n_groups]];
    for (key, item) in pairs {
        let at = &mut next[key as usize];
        items[*at] = item;
        *at += 1;
    }
    Groups { starts, items }
}

impl<T> Groups<T> {
    /// Number of groups.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// True when there is no group.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each group begins, and at last where all end.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// All items, group after group.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The items of a group.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn group(&self, key: usize) -> &[T] {
        &self.items[self.starts[key]..self.starts[key + 1]]
    }

    /// Starts and items.
    pub fn into_parts(self) -> (Vec<usize>, Vec<T>) {
        (self.starts, self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_hold_the_items_of_their_key_in_order(keys in prop::collection::vec(0u32..9, 0..60)) {
            let groups = group_by(9, keys.iter().copied().zip(0u32..));
            prop_assert_eq!((groups.len(), groups.items().len()), (9, keys.len()));
            for key in 0..9 {
                let expected: Vec<u32> = (0..).zip(&keys).filter(|&(_, &k)| k == key).map(|(at, _)| at).collect();
                prop_assert_eq!(groups.group(key as usize), &expected[..]);
            }
        }
    }

    #[test]
    #[should_panic(expected = "key 3 of 3 groups")]
    fn a_key_without_a_group_panics() {
        group_by(3, [(3, ())].into_iter());
    }
}
