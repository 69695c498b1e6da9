//! Sums over a row in sixteen lanes: one order for every instruction set.

const LANES: usize = 16;

/// Sum of `of(i)` for all `i` below `n`.
#[inline(always)]
pub(super) fn sum(n: usize, of: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = n / LANES * LANES;
    for i in (0..whole).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += of(i + lane);
        }
    }
    let mut total = 0.0;
    for sum in lanes {
        total += sum;
    }
    for i in whole..n {
        total += of(i);
    }
    total
}

/// The largest value; negative infinity of none.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        for (largest, &value) in lanes.iter_mut().zip(group) {
            *largest = if value > *largest { value } else { *largest };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |largest, &value| if value > largest { value } else { largest })
}
