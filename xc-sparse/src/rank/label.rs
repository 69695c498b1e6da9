//! A label, its score, and the order of a ranking.

use std::cmp::Ordering;

/// Number of a label, from 0.
pub type LabelId = u32;

/// A label and its score.
///
/// Laid out as in C: the label, then the score, 8 bytes in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Scored {
    /// The label.
    pub label: LabelId,
    /// Larger is better.
    pub score: f32,
}

/// The total order of a ranking: `Less` means that `a` stands before `b`.
pub fn rank_order(a: Scored, b: Scored) -> Ordering {
    // NaN last: it compares as smaller than every number.
    match b.score.partial_cmp(&a.score) {
        Some(Ordering::Equal) => a.label.cmp(&b.label),
        Some(order) => order,
        None => a.score.is_nan().cmp(&b.score.is_nan()).then(a.label.cmp(&b.label)),
    }
}

/// [`rank_order`] of items that are no NaN as the order of one number: the smaller key stands before. -0 has the key of 0.
#[inline(always)]
pub fn rank_key(Scored { label, score }: Scored) -> u64 {
    // -0.0 becomes 0.0. Bits of negative numbers descend as they grow smaller, those of others ascend.
    let bits = (score + 0.0).to_bits();
    let ascending = bits ^ ((bits as i32 >> 31) as u32 | 1 << 31);
    u64::from(!ascending) << 32 | u64::from(label)
}

/// The item of a [`rank_key`].
#[inline(always)]
pub fn from_rank_key(key: u64) -> Scored {
    let ascending = !(key >> 32) as u32;
    let bits = ascending ^ (!(ascending as i32 >> 31) as u32 | 1 << 31);
    Scored { label: key as u32, score: f32::from_bits(bits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn score() -> impl Strategy<Value = f32> {
        prop_oneof![any::<f32>(), Just(0.0), Just(-0.0)].prop_filter("a number", |score| !score.is_nan())
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_a_ranking(label in any::<u32>(), score in score(), other in score()) {
            let (this, other) = (Scored { label, score }, Scored { label: 7, score: other });
            let back = from_rank_key(rank_key(this));
            prop_assert_eq!((back.label, back.score.to_bits()), (label, (score + 0.0).to_bits()));
            prop_assert_eq!(rank_key(this).cmp(&rank_key(other)), rank_order(this, other));
        }
    }
}
