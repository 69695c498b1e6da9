//! Sums of rows: adding lists to them, and finding the large ones.

use xc_buffer::simd::{Loop, vectorised_loop};

/// Sums that are looked at together.
const BLOCK: usize = 64;

/// Adds `factor` times the weight of each listed row to its sum.
pub(super) fn add_list(sums: &mut [f32], factor: f32, rows: &[u32], weights: &[f32]) {
    for (&row, &weight) in rows.iter().zip(weights) {
        sums[row as usize] += factor * weight;
    }
}

/// How many sums are at least `limit`.
pub(super) fn count_at_least(sums: &[f32], limit: f32) -> usize {
    struct Count<'a>(&'a [f32], f32);
    impl Loop for Count<'_> {
        type Output = usize;
        #[inline(always)]
        fn run(self) -> usize {
            self.0.chunks(BLOCK).map(|block| in_block(block, self.1) as usize).sum()
        }
    }
    vectorised_loop(Count(sums, limit))
}

/// Calls `each` with the row and sum of those that are at least a limit, ascending; `each` gives the limit from then on.
pub(super) fn each_at_least(sums: &[f32], limit: f32, each: impl FnMut(u32, f32) -> f32) {
    struct Each<'a, F>(&'a [f32], f32, F);
    impl<F: FnMut(u32, f32) -> f32> Loop for Each<'_, F> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let Self(sums, mut limit, mut each) = self;
            for (number, block) in sums.chunks(BLOCK).enumerate() {
                if in_block(block, limit) == 0 {
                    continue;
                }
                for (at, &sum) in block.iter().enumerate() {
                    if sum >= limit {
                        limit = each((number * BLOCK + at) as u32, sum);
                    }
                }
            }
        }
    }
    vectorised_loop(Each(sums, limit, each));
}

#[inline(always)]
fn in_block(block: &[f32], limit: f32) -> u32 {
    block.iter().map(|sum| u32::from(*sum >= limit)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn large_sums_are_found(sums in prop::collection::vec(prop_oneof![-3i8..4, Just(-128)], 0..300), limit in -4i8..5) {
            let sums: Vec<f32> = sums.into_iter().map(|s| if s == -128 { f32::NEG_INFINITY } else { f32::from(s) }).collect();
            let expected: Vec<u32> = (0..sums.len() as u32).filter(|&i| sums[i as usize] >= f32::from(limit)).collect();
            let mut found = Vec::new();
            each_at_least(&sums, f32::from(limit), |row, _| { found.push(row); f32::from(limit) });
            prop_assert_eq!(count_at_least(&sums, f32::from(limit)), expected.len());
            prop_assert_eq!(found, expected);
        }
    }
}
