//! A label, its score, and the order of a ranking.

use std::cmp::Ordering;

/// Number of a label, from 0.
pub type LabelId = u32;

/// A label and its score.
///
/// Laid out as in C: the label, then the score, 8 bytes in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
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
