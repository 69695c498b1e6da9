//! Random signs and Hadamard transforms, three times.
//!
//! Lanes are blocks of bits: each has its own signs, and the transforms of many blocks run side by
//! side.

use crate::family::SIGNS;
use crate::params::FamilyParams;
use xc_buffer::simd::{Loop, vectorised_loop};
use xc_hash::stream::{Stream, mix};

/// Bits that share their signs, at most.
const BLOCK_BITS: usize = 128;
/// Rounds of signs and transform.
const ROUNDS: usize = 3;

/// Projections of a vector by signs and transforms.
#[derive(Clone, Debug)]
pub(super) struct Hadamard {
    /// Length of a transform: the width, rounded up to a power of two.
    padded: usize,
    /// Bits of a block.
    block: usize,
    n_bits: usize,
    /// Blocks that are transformed together.
    lanes: usize,
    /// Sign bits: for each group of blocks, round and place, one a lane.
    signs: Vec<u32>,
}

impl Hadamard {
    pub(super) fn new(params: &FamilyParams) -> Self {
        let padded = params.width.next_power_of_two();
        let block = padded.min(BLOCK_BITS);
        let n_bits = params.codes();
        let n_blocks = n_bits.div_ceil(block);
        let lanes = n_blocks.next_power_of_two().clamp(4, 16);
        let name = params.stream(&[SIGNS]);
        let mut signs = vec![0u32; n_blocks.div_ceil(lanes) * ROUNDS * padded * lanes];
        for at in 0..n_blocks {
            let mut stream = Stream::new(mix(name, at as u64));
            let (group, lane) = (at / lanes, at % lanes);
            let of_group = &mut signs[group * ROUNDS * padded * lanes..][..ROUNDS * padded * lanes];
            let places = of_group.iter_mut().skip(lane).step_by(lanes);
            let mut bits = 0;
            for (i, place) in places.enumerate() {
                if i % 64 == 0 {
                    bits = stream.next_u64();
                }
                *place = (bits as u32) << 31;
                bits >>= 1;
            }
        }
        Self { padded, block, n_bits, lanes, signs }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(self.signs.as_slice())
    }

    /// Writes all projections of a vector, scaled by a number that is the same for all.
    pub(super) fn project(&self, vector: &[f32], lanes: &mut Vec<f32>, out: &mut Vec<f32>) {
        out.resize(self.n_bits, 0.0);
        match self.lanes {
            4 => self.project_in::<4>(vector, lanes, out),
            8 => self.project_in::<8>(vector, lanes, out),
            _ => self.project_in::<16>(vector, lanes, out),
        }
    }

    fn project_in<const N: usize>(&self, vector: &[f32], lanes: &mut Vec<f32>, out: &mut [f32]) {
        lanes.resize(self.padded * N, 0.0);
        let (places, _) = lanes.as_chunks_mut::<N>();
        let groups = self.signs.as_chunks::<N>().0.chunks_exact(ROUNDS * self.padded);
        for (signs, out) in groups.zip(out.chunks_mut(N * self.block)) {
            vectorised_loop(Transform { vector, signs, places });
            for (lane, out) in out.chunks_mut(self.block).enumerate() {
                for (out, place) in out.iter_mut().zip(places.iter()) {
                    *out = place[lane];
                }
            }
        }
    }
}

struct Transform<'a, const N: usize> {
    vector: &'a [f32],
    signs: &'a [[u32; N]],
    places: &'a mut [[f32; N]],
}

impl<const N: usize> Loop for Transform<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.places.len();
        for (at, place) in self.places.iter_mut().enumerate() {
            *place = [self.vector.get(at).copied().unwrap_or(0.0); N];
        }
        for signs in self.signs.chunks_exact(n) {
            for (place, signs) in self.places.iter_mut().zip(signs) {
                for lane in 0..N {
                    place[lane] = f32::from_bits(place[lane].to_bits() ^ signs[lane]);
                }
            }
            hadamard(self.places);
        }
    }
}

/// The transform of each lane, two levels at a time.
#[inline(always)]
fn hadamard<const N: usize>(places: &mut [[f32; N]]) {
    let n = places.len();
    let mut step = 1;
    if n.ilog2() % 2 == 1 {
        for pair in places.chunks_exact_mut(2) {
            for lane in 0..N {
                let (a, b) = (pair[0][lane], pair[1][lane]);
                (pair[0][lane], pair[1][lane]) = (a + b, a - b);
            }
        }
        step = 2;
    }
    while step < n {
        for four in places.chunks_exact_mut(4 * step) {
            let (low, high) = four.split_at_mut(2 * step);
            let ((first, second), (third, fourth)) = (low.split_at_mut(step), high.split_at_mut(step));
            for (((first, second), third), fourth) in first.iter_mut().zip(second).zip(third).zip(fourth) {
                for lane in 0..N {
                    let (a, b, c, d) = (first[lane], second[lane], third[lane], fourth[lane]);
                    let (sum, difference) = (a + b, a - b);
                    let (other_sum, other_difference) = (c + d, c - d);
                    (first[lane], second[lane]) = (sum + other_sum, difference + other_difference);
                    (third[lane], fourth[lane]) = (sum - other_sum, difference - other_difference);
                }
            }
        }
        step *= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_the_product_with_signs_of_common_bits() {
        for n in [1usize, 2, 4, 8, 32, 64, 128] {
            let mut places: Vec<[f32; 4]> =
                (0..n).map(|i| std::array::from_fn(|lane| ((i * 7 + lane * 3) % 11) as f32 - 5.0)).collect();
            let before = places.clone();
            hadamard(&mut places);
            for (i, place) in places.iter().enumerate() {
                for lane in 0..4 {
                    let sign = |j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
                    let expected: f32 = before.iter().enumerate().map(|(j, b)| sign(j) * b[lane]).sum();
                    assert_eq!(place[lane], expected, "{n}: place {i}, lane {lane}");
                }
            }
        }
    }
}
