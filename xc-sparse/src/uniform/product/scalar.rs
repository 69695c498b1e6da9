//! The products in plain code, the reference for every other instruction set.

use super::Sums;
use crate::uniform::{IndexWidth, UniformLine};

pub(super) fn forward<I: IndexWidth>(lines: &[UniformLine], inputs: &[I], weights: &[f32], out: &mut Sums) {
    let mut sums = [Sums::default(); 2];
    for (t, (input, weight)) in inputs.iter().zip(weights).enumerate() {
        let values = lines[input.at()].widen();
        for half in 0..2 {
            for k in 0..16 {
                sums[t % 2][half][k] = values[half][k].mul_add(*weight, sums[t % 2][half][k]);
            }
        }
    }
    for half in 0..2 {
        for k in 0..16 {
            out[half][k] = sums[0][half][k] + sums[1][half][k];
        }
    }
}

/// Compiled once for plain machines, once where fused multiplication is an instruction.
#[inline(always)]
pub(super) fn forward_one<I: IndexWidth>(
    values: &[f32],
    inputs: &[I],
    weights: &[f32],
    fan_in: usize,
    out: &mut [f32],
) {
    if fan_in == 0 {
        return out.fill(0.0);
    }
    let rows = inputs.chunks_exact(fan_in).zip(weights.chunks_exact(fan_in));
    for (out, (inputs, weights)) in out.iter_mut().zip(rows) {
        let (mut even, mut odd) = (0.0f32, 0.0f32);
        let (pairs, last) = inputs.as_chunks::<2>();
        let (weight_pairs, last_weight) = weights.as_chunks::<2>();
        for (input, weight) in pairs.iter().zip(weight_pairs) {
            even = values[input[0].at()].mul_add(weight[0], even);
            odd = values[input[1].at()].mul_add(weight[1], odd);
        }
        if let ([input], [weight]) = (last, last_weight) {
            even = values[input.at()].mul_add(*weight, even);
        }
        *out = even + odd;
    }
}

pub(super) fn input_gradient<I: IndexWidth>(out: &mut [Sums], inputs: &[I], weights: &[f32], gradient: &Sums) {
    for (input, &weight) in inputs.iter().zip(weights) {
        let out = &mut out[input.at()];
        for half in 0..2 {
            for k in 0..16 {
                out[half][k] += gradient[half][k] * weight;
            }
        }
    }
}

pub(super) fn weight_gradient<I: IndexWidth>(
    sums: &mut [[f32; 16]],
    lines: &[UniformLine],
    inputs: &[I],
    gradient: &Sums,
) {
    for (sums, input) in sums.iter_mut().zip(inputs) {
        let values = lines[input.at()].widen();
        for half in 0..2 {
            for k in 0..16 {
                sums[k] += values[half][k] * gradient[half][k];
            }
        }
    }
}
