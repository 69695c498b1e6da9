//! Which chunks of which trees a part trains, by numbers that every part computes alike.
//!
//! ```text
//!   trees   │     0     │     1     │     2     │      each as much work as another
//!   parts   │   0    │   1    │   2    │   3    │      part 1 shares tree 0 with part 0 and tree 1 with part 2
//! ```
//!
//! The chunks of a tree are dealt among the parts that share it, those with the most work first. A part clusters the
//! trees that it shares and no others.

use std::cmp::Reverse;
use std::ops::Range;
use xc_buffer::Part;

/// A part that shares a tree, and how much of it, in `1 / parts` of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) part: u32,
    weight: u64,
}

/// The trees that a part has a share of.
pub(super) fn trees_of(part: Part, n_trees: usize) -> Range<usize> {
    let (index, of, trees) = (u64::from(part.index()), u64::from(part.of()), n_trees as u64);
    (index * trees / of) as usize..((index + 1) * trees).div_ceil(of) as usize
}

/// The parts that share a tree, ascending.
pub(super) fn shares(of: u32, n_trees: usize, tree: usize) -> Vec<Share> {
    let (parts, trees, tree) = (u64::from(of), n_trees as u64, tree as u64);
    let range = tree * parts..(tree + 1) * parts;
    let first = range.start / trees;
    (first..range.end.div_ceil(trees))
        .map(|part| {
            let weight = range.end.min((part + 1) * trees) - range.start.max(part * trees);
            Share { part: part as u32, weight }
        })
        .collect()
}

/// The part that trains each chunk, by level and parent, when `work` says what each costs.
pub(super) fn deal(work: &[Vec<u64>], shares: &[Share]) -> Vec<Vec<u32>> {
    let mut owners: Vec<Vec<u32>> = work.iter().map(|level| vec![0; level.len()]).collect();
    let chunk = |(level, costs): (usize, &Vec<u64>)| -> Vec<(Reverse<u64>, usize, usize)> {
        costs.iter().enumerate().map(|(parent, &cost)| (Reverse(cost.max(1)), level, parent)).collect()
    };
    let mut chunks: Vec<_> = work.iter().enumerate().flat_map(chunk).collect();
    chunks.sort_unstable();
    let mut loads = vec![0u128; shares.len()];
    for (Reverse(cost), level, parent) in chunks {
        // Where the chunk is done first, when a part works at the speed of its share.
        let mut best = 0;
        for at in 1..shares.len() {
            let end = |at: usize| loads[at] + u128::from(cost);
            if end(at) * u128::from(shares[best].weight) < end(best) * u128::from(shares[at].weight) {
                best = at;
            }
        }
        loads[best] += u128::from(cost);
        owners[level][parent] = shares[best].part;
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trees_lie_on_a_line_that_is_cut_in_equal_parts() {
        let share = |part, weight| Share { part, weight };
        assert_eq!(shares(4, 3, 0), [share(0, 3), share(1, 1)]);
        assert_eq!(shares(4, 3, 1), [share(1, 2), share(2, 2)]);
        assert_eq!(shares(6, 3, 2), [share(4, 3), share(5, 3)]);
        assert_eq!(shares(2, 3, 1), [share(0, 1), share(1, 1)]);
        assert_eq!(shares(1, 3, 1), [share(0, 1)]);
        assert_eq!(trees_of(Part::new(1, 4).unwrap(), 3), 0..2);
    }

    proptest! {
        #[test]
        fn every_tree_is_shared_out_whole(of in 1u32..20, n_trees in 1usize..9) {
            let mut weights = vec![0u64; of as usize];
            for tree in 0..n_trees {
                let shares = shares(of, n_trees, tree);
                prop_assert_eq!(shares.iter().map(|share| share.weight).sum::<u64>(), u64::from(of));
                for share in shares {
                    prop_assert!(share.weight > 0);
                    weights[share.part as usize] += share.weight;
                    prop_assert!(trees_of(Part::new(share.part, of).unwrap(), n_trees).contains(&tree));
                }
            }
            prop_assert_eq!(weights, vec![n_trees as u64; of as usize]);
            let trees = |index| trees_of(Part::new(index, of).unwrap(), n_trees);
            let shared = (0..n_trees).map(|tree| shares(of, n_trees, tree).len()).sum::<usize>();
            prop_assert_eq!((0..of).map(|index| trees(index).len()).sum::<usize>(), shared);
        }

        #[test]
        fn no_part_is_late_by_more_than_the_largest_chunk(
            work in prop::collection::vec(prop::collection::vec(0u64..1000, 1..30), 1..4), parts in 1u32..5,
        ) {
            let shares = shares(parts, 1, 0);
            let owners = deal(&work, &shares);
            let all = || work.iter().flatten().map(|&cost| cost.max(1));
            let (total, largest) = (all().sum::<u64>(), all().max().unwrap());
            let mut loads = vec![0; parts as usize];
            for (cost, &owner) in all().zip(owners.iter().flatten()) {
                loads[owner as usize] += cost;
            }
            prop_assert_eq!(loads.iter().sum::<u64>(), total);
            prop_assert!(loads.iter().all(|&load| load <= total / u64::from(parts) + largest + 1));
        }
    }
}
