//! What a tile is asked for: one product of two packed panels, and how many of them make a product of matrices.

use super::Start;
use xc_buffer::simd::values_of_a_line;

/// Rows or columns of the widest panel.
pub(super) const WIDEST: usize = 32;

/// How products of many rows are cut for the caches. No cut changes a bit.
#[derive(Clone, Copy)]
pub(super) struct Blocking {
    /// Places along k of the panels that a tile reads.
    pub(super) depth: usize,
    /// Places along k of a packed chunk of B.
    pub(super) chunk_depth: usize,
    /// Tiles of rows that one leaf takes at most.
    pub(super) leaf_tiles: usize,
}

/// What one run of a tile reads and writes: `a` has `k * rows` places, `b` has `k * columns`, `c` has `rows` rows of
/// `columns` values, `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) k: usize,
    pub(super) a: *const f32,
    pub(super) b: *const f32,
    pub(super) c: *mut f32,
    pub(super) stride: usize,
    /// `columns` values that each row of sums begins with; null for those of `c`, which is then read.
    pub(super) start: *const f32,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "plain code asks for nothing ahead"))]
    pub(super) next: Next,
}

/// Steps of a run in which one line of the next panel of B is asked for: more often, and the lines of this one would wait.
/// Eight runs ask for all of a panel of 16 columns.
pub(super) const STEPS: usize = 8;

/// What is read later, which a tile may ask for: hints, not always of memory that is there.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "plain code asks for nothing ahead"))]
#[derive(Clone, Copy)]
pub(super) struct Next {
    /// A part of the next panel of B: `k / STEPS` lines.
    pub(super) b: *const f32,
    /// The rows of C of the next run, as far apart as those of this one.
    pub(super) c: *const f32,
}

impl Next {
    /// Values of B that a run of `k` steps asks for.
    pub(super) fn values_of_b(k: usize) -> usize {
        k / STEPS * values_of_a_line::<f32>()
    }
}

/// Where a product goes.
pub(super) struct Target<'a> {
    pub(super) c: &'a mut [f32],
    /// From row to row of `c`.
    pub(super) stride: usize,
    pub(super) start: Start<'a>,
}

impl<'a> Target<'a> {
    /// Sums that go on.
    pub(super) fn add(c: &'a mut [f32], stride: usize) -> Self {
        Self { c, stride, start: Start::Kept }
    }

    /// Sums that begin with nothing.
    pub(super) fn from_zero(c: &'a mut [f32], stride: usize) -> Self {
        Self { c, stride, start: Start::Zero }
    }
}
