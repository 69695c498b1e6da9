//! The three products of a sparse layer for one label and one block of instances.
//!
//! Forward products use fused multiply-add, those of gradients do not, and every sum has a fixed order,
//! so that all instruction sets give the same bits; `scalar` is the reference that the others are tested
//! against.

#![allow(unsafe_code, reason = "kernels written by hand for an instruction set")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod vectors;

use super::lines::{LANES, UniformLine};
use super::matrix::IndexWidth;
use super::screen::{self, ByteBlock, ScreenRow};
use xc_buffer::simd::{Isa, prefetch};

/// A number for each lane: instances 0 to 15, then 16 to 31.
pub type Sums = [[f32; LANES / 2]; 2];

/// The products on one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct UniformKernels {
    // Private, so that it is one that the machine has.
    isa: Isa,
}

impl UniformKernels {
    /// The kernels of this process's instruction set.
    pub fn current() -> Self {
        Self { isa: Isa::current() }
    }

    /// The kernels of a given instruction set.
    ///
    /// # Panics
    /// If this machine lacks it.
    pub fn of(isa: Isa) -> Self {
        assert!(isa.is_available(), "{isa} kernels asked for on a machine without them");
        Self { isa }
    }

    /// Sums of weight times input over a label's connections, for every lane.
    ///
    /// `ahead` are the inputs of a label that follows soon: their lines are prefetched meanwhile, since
    /// most of a call is waiting for lines (two threads over 32,768 inputs: 8.7 -> 14 G multiplications
    /// per second and core).
    ///
    /// *Order*: connections 0, 2, 4, ... and 1, 3, 5, ... form two sums, each by fused
    /// multiply-add; the two sums are then added. *Cost*: one cache line per connection.
    ///
    /// # Panics
    /// If an input is out of range, or the numbers of weights and inputs differ.
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "plain code does not ask ahead"))]
    pub fn forward<I: IndexWidth>(self, lines: &[UniformLine], inputs: &[I], weights: &[f32], ahead: &[I]) -> Sums {
        check(inputs, lines.len(), weights.len());
        let mut out = Sums::default();
        match self.isa {
            // SAFETY: `self` is made only where the machine has the instructions; lengths and
            // inputs were just checked.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::forward(lines, inputs, weights, ahead, &mut out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::forward(lines, inputs, weights, ahead, &mut out) },
            _ => scalar::forward(lines, inputs, weights, &mut out),
        }
        out
    }

    /// [`UniformKernels::forward`] plus a bias; returns a mask of the lanes whose sum is not at or below a bar
    /// (NaN is not). If there are none, `out` is unchanged.
    ///
    /// # Panics
    /// As [`UniformKernels::forward`].
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "plain code does not ask ahead"))]
    pub fn forward_above<I: IndexWidth>(
        self,
        lines: &[UniformLine],
        inputs: &[I],
        weights: &[f32],
        ahead: &[I],
        [bias, bar]: [f32; 2],
        out: &mut Sums,
    ) -> u32 {
        check(inputs, lines.len(), weights.len());
        match self.isa {
            // SAFETY: `self` is made only where the machine has the instructions; lengths and
            // inputs were just checked.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::forward_above(lines, inputs, weights, ahead, bias, bar, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::forward_above(lines, inputs, weights, ahead, bias, bar, out) },
            _ => {
                let mut sums = Sums::default();
                scalar::forward(lines, inputs, weights, &mut sums);
                let mut above = 0;
                for (lane, z) in sums.as_flattened_mut().iter_mut().enumerate() {
                    *z += bias;
                    let is_below = *z <= bar;
                    above |= u32::from(!is_below) << lane;
                }
                if above != 0 {
                    *out = sums;
                }
                above
            }
        }
    }

    /// [`UniformKernels::forward_above`] for two blocks of instances with the same number of inputs:
    /// indices and weights are read once for both.
    ///
    /// # Panics
    /// As [`UniformKernels::forward`].
    #[inline]
    pub fn forward_above_two<I: IndexWidth>(
        self,
        lines: [&[UniformLine]; 2],
        inputs: &[I],
        weights: &[f32],
        ahead: &[I],
        bounds: [f32; 2],
        out: [&mut Sums; 2],
    ) -> [u32; 2] {
        check(inputs, lines[0].len().min(lines[1].len()), weights.len());
        match self.isa {
            // SAFETY: `self` is made only where the machine has the instructions; lengths and
            // inputs were just checked.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::forward_above_two(lines, inputs, weights, ahead, bounds, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::forward_above_two(lines, inputs, weights, ahead, bounds, out) },
            _ => {
                let [a, b] = out;
                [
                    self.forward_above(lines[0], inputs, weights, ahead, bounds, a),
                    self.forward_above(lines[1], inputs, weights, ahead, bounds, b),
                ]
            }
        }
    }

    /// Screens a label (see [`super::ByteLines`]): bit `2 b + h` tells whether half `h` of block `b`,
    /// that is 32 instances, may have a score above the bar that the row was made for. *Cost*: one cache
    /// line per connection for 64 instances.
    ///
    /// # Panics
    /// If an input is out of range, or the row was made for a different number of inputs.
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "plain code does not ask ahead"))]
    pub fn screen<const N: usize, I: IndexWidth>(
        self,
        blocks: [ByteBlock<'_>; N],
        inputs: &[I],
        row: ScreenRow<'_>,
        ahead: &[I],
    ) -> u32 {
        let n_inputs = blocks.iter().map(|block| block.lines.len()).min().unwrap_or(0);
        check(inputs, n_inputs, inputs.len());
        assert!(row.weights.len() == inputs.len().div_ceil(4), "{} inputs, {} groups", inputs.len(), row.weights.len());
        let each = |one: &dyn Fn(ByteBlock<'_>) -> u32| {
            blocks.iter().enumerate().fold(0, |bits, (b, &block)| bits | one(block) << (2 * b))
        };
        match self.isa {
            // SAFETY: `self` is made only where the machine has the instructions; lengths and
            // inputs were just checked.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { screen::avx512::screen(blocks, inputs, row, ahead) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => each(&|block| unsafe { screen::avx2::screen(block, inputs, row, ahead) }),
            _ => each(&|block| screen::scalar::screen(block, inputs, row)),
        }
    }

    /// The sums of consecutive labels, `fan_in` connections each, for one instance: bit for bit its lane
    /// of [`UniformKernels::forward`], if `values` are its inputs rounded to bf16. For one instance this is
    /// three times faster (32,768 inputs: 0.6 ns per connection): it reads 4 bytes per connection, not a
    /// line.
    ///
    /// # Panics
    /// If an input is out of range, or there are not `fan_in` weights and inputs per sum.
    #[inline]
    pub fn forward_one<I: IndexWidth>(
        self,
        values: &[f32],
        inputs: &[I],
        weights: &[f32],
        fan_in: usize,
        out: &mut [f32],
    ) {
        check(inputs, values.len(), weights.len());
        let expected = out.len().checked_mul(fan_in);
        assert!(Some(inputs.len()) == expected, "{} inputs for {} x {fan_in}", inputs.len(), out.len());
        match self.isa {
            // SAFETY: `self` is made only where the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx2 => unsafe { avx2::forward_one(values, inputs, weights, fan_in, out) },
            _ => scalar::forward_one(values, inputs, weights, fan_in, out),
        }
    }

    /// Prefetches values that will be read or written soon.
    #[inline]
    pub fn prefetch<T>(self, values: &[T]) {
        let a_line = (64 / size_of::<T>().max(1)).max(1);
        (0..values.len()).step_by(a_line).for_each(|at| prefetch(values, at));
    }

    /// For one instance and one label with this gradient: adds `input * gradient` to the gradient of
    /// each weight, where `values` are the instance's inputs, and `weight * gradient` to `of_inputs`,
    /// the gradient of those inputs, unless it is empty.
    ///
    /// # Panics
    /// If an input is out of range, or the numbers of weights, sums and inputs differ.
    #[inline]
    pub fn add_gradients_of_one<I: IndexWidth>(
        self,
        values: &[f32],
        of_inputs: &mut [f32],
        inputs: &[I],
        weights: &[f32],
        gradient: f32,
        of_weights: &mut [f32],
    ) {
        let n = inputs.len();
        assert!(weights.len() == n && of_weights.len() == n, "{n} inputs, {} weights", weights.len());
        for (input, of_weight) in inputs.iter().zip(of_weights) {
            *of_weight += values[input.at()] * gradient;
        }
        if !of_inputs.is_empty() {
            for (input, weight) in inputs.iter().zip(weights) {
                of_inputs[input.at()] += weight * gradient;
            }
        }
    }

    /// Prefetches the lines of inputs that will be read soon.
    #[inline]
    pub fn prefetch_lines<I: IndexWidth>(self, lines: &[UniformLine], inputs: &[I]) {
        inputs.iter().for_each(|input| prefetch(lines, input.at()));
    }

    /// Prefetches the gradients of inputs that will be updated soon, for the lanes of a mask.
    #[inline]
    pub fn prefetch_gradient<I: IndexWidth>(self, gradient: &[Sums], inputs: &[I], mask: u32) {
        let halves: &[[f32; 16]] = gradient.as_flattened();
        for (half, lanes) in [mask & 0xffff, mask >> 16].into_iter().enumerate() {
            if lanes != 0 {
                inputs.iter().for_each(|input| prefetch(halves, 2 * input.at() + half));
            }
        }
    }

    /// Adds `weight * gradient` to the gradient of each input that the label is connected with, in
    /// all lanes.
    ///
    /// # Panics
    /// If an input is out of range, or the numbers of weights and inputs differ.
    #[inline]
    pub fn add_input_gradient<I: IndexWidth>(self, out: &mut [Sums], inputs: &[I], weights: &[f32], gradient: &Sums) {
        check(inputs, out.len(), weights.len());
        match self.isa {
            // SAFETY: `self` is made only where the machine has the instructions; lengths and
            // inputs were just checked.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::input_gradient(out, inputs, weights, gradient) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::input_gradient(out, inputs, weights, gradient) },
            _ => scalar::input_gradient(out, inputs, weights, gradient),
        }
    }

    /// Adds `input * gradient` to sixteen sums per connection: lane `i` to sum `i % 16`, lower lanes
    /// first. [`weight_gradients`] adds those up.
    ///
    /// # Panics
    /// If an input is out of range, or the numbers of lists of sums and of inputs differ.
    #[inline]
    pub fn add_weight_gradient<I: IndexWidth>(
        self,
        sums: &mut [[f32; 16]],
        lines: &[UniformLine],
        inputs: &[I],
        gradient: &Sums,
    ) {
        check(inputs, lines.len(), sums.len());
        match self.isa {
            // SAFETY: `self` is made only where the machine has the instructions; lengths and
            // inputs were just checked.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::weight_gradient(sums, lines, inputs, gradient) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::weight_gradient(sums, lines, inputs, gradient) },
            _ => scalar::weight_gradient(sums, lines, inputs, gradient),
        }
    }
}

/// The vectors do not check again.
#[inline]
fn check<I: IndexWidth>(inputs: &[I], n_inputs: usize, n_weights: usize) {
    assert!(inputs.len() == n_weights, "{} inputs, {n_weights} weights", inputs.len());
    assert!(I::all_below(inputs, n_inputs), "an input is out of range of {n_inputs}");
}

/// Adds up each connection's sixteen sums, by halves.
#[inline]
pub fn weight_gradients(sums: &[[f32; 16]], out: &mut [f32]) {
    for (sums, out) in sums.iter().zip(out) {
        let mut part = *sums;
        for width in [8, 4, 2, 1] {
            for k in 0..width {
                part[k] += part[k + width];
            }
        }
        *out = part[0];
    }
}
