//! One ranking from the rankings of several shards.

use super::{Scored, rank_order};

/// The `k` best of some ranked lists, best first, into `out` (emptied first): larger scores first,
/// equal ones by ascending label. Where each list holds the `k` best of its own labels, the result
/// is that of all labels together.
///
/// *Cost*: O(k lists); lists are as many as there are shards, and few.
pub fn merge(lists: &[&[Scored]], k: usize, out: &mut Vec<Scored>) {
    debug_assert!(lists.iter().all(|list| list.is_sorted_by(|&a, &b| rank_order(a, b).is_le())), "lists are ranked");
    out.clear();
    let mut rest: Vec<&[Scored]> = lists.iter().copied().filter(|list| !list.is_empty()).collect();
    while out.len() < k && !rest.is_empty() {
        let mut first = 0;
        for other in 1..rest.len() {
            if rank_order(rest[other][0], rest[first][0]).is_lt() {
                first = other;
            }
        }
        out.push(rest[first][0]);
        rest[first] = &rest[first][1..];
        if rest[first].is_empty() {
            rest.swap_remove(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_of_shards_merge_to_the_list_of_all(scores in prop::collection::vec(0u8..6, 0..60), shards in 1usize..5, k in 0usize..12) {
            let all: Vec<Scored> =
                (0..).zip(&scores).map(|(label, &score)| Scored { label, score: f32::from(score) }).collect();
            let ranked = |items: Vec<Scored>| {
                let mut items = items;
                items.sort_by(|&a, &b| rank_order(a, b));
                items.truncate(k);
                items
            };
            let lists: Vec<Vec<Scored>> = (0..shards)
                .map(|shard| ranked(all.iter().copied().filter(|s| s.label as usize % shards == shard).collect()))
                .collect();
            let lists: Vec<&[Scored]> = lists.iter().map(|list| &list[..]).collect();
            let mut out = vec![Scored::default()];
            merge(&lists, k, &mut out);
            prop_assert_eq!(out, ranked(all));
        }
    }
}
