//! Screening in plain code, the reference for every other instruction set.

use super::{BYTE_LANES, ByteBlock, ScreenRow, lane_of};
use crate::uniform::IndexWidth;

/// The halves of a block where some lane's sum is not at or below its bound: the plain code that
/// others are tested against.
pub(in crate::uniform) fn screen<I: IndexWidth>(block: ByteBlock<'_>, inputs: &[I], row: ScreenRow<'_>) -> u32 {
    let mut sums = [0i32; BYTE_LANES];
    for (t, input) in inputs.iter().enumerate() {
        let weight = i32::from(row.weights[t / 4].to_ne_bytes()[t % 4] as i8);
        let line = &block.lines[input.at()].0;
        sums.iter_mut().zip(line).for_each(|(sum, &byte)| *sum += weight * i32::from(byte));
    }
    let mut halves = 0;
    for at in 0..BYTE_LANES {
        let lane = lane_of(at);
        let is_below = sums[lane] as f32 <= row.bound.of_lane(block.bounds, at);
        halves |= u32::from(!is_below) << (lane / 32);
    }
    halves
}
