//! `f16`, `bf16` and pairs of them.
//!
//! Operands go to `f64`, where products are exact and a sum keeps what it loses as a set last bit: one rounding.

use super::round::{BF16, F16, Format, Round, sum};
use super::{Allowed, Compute, one, three, two};

/// The number of 16 bits.
pub(crate) fn f16(bits: u64) -> f64 {
    F16.value(bits & 0xffff)
}

/// The number of 16 bits.
pub(crate) fn bf16(bits: u64) -> f64 {
    BF16.value(bits & 0xffff)
}

pub(super) fn compute(form: &str, allowed: Allowed) -> Option<Compute> {
    let (op, ty) = form.rsplit_once('.')?;
    let format = if ty.starts_with("bf") { BF16 } else { F16 };
    let n = if ty.ends_with("x2") { 2 } else { 1 };
    let near = Round::Nearest;
    let value = move |v: u64| format.value(v & 0xffff);
    // Sums and products of bf16 came with compute capability 9.0.
    let of_bf16 = matches!(op, "add" | "add.rn" | "sub" | "sub.rn" | "mul" | "mul.rn") && ty.starts_with("bf");
    if of_bf16 && allowed.target < 90 {
        return None;
    }
    let of = move |x: f64| format.round(x, near);
    Some(match op {
        "add" | "add.rn" => two(parts2(n, move |a, b| of(sum(value(a), value(b), near)))).with(n),
        "sub" | "sub.rn" => two(parts2(n, move |a, b| of(sum(value(a), -value(b), near)))).with(n),
        "mul" | "mul.rn" => two(parts2(n, move |a, b| of(value(a) * value(b)))).with(n),
        "fma.rn" => {
            let each = move |a, b, c| of(sum(value(a) * value(b), value(c), near));
            three(move |a, b, c| part(n, |i| each(at(a, i), at(b, i), at(c, i)))).with(2 * n)
        }
        "fma.rn.relu" => {
            let each = move |a, b, c| relu(format, of(sum(value(a) * value(b), value(c), near)));
            three(move |a, b, c| part(n, |i| each(at(a, i), at(b, i), at(c, i)))).with(2 * n)
        }
        "min" => two(parts2(n, move |a, b| of(least(value(a), value(b))))),
        "max" => two(parts2(n, move |a, b| of(-least(-value(a), -value(b))))),
        "abs" => one(move |a| part(n, |i| of(value(at(a, i)).abs()))),
        "neg" => one(move |a| part(n, |i| of(-value(at(a, i))))),
        _ => return None,
    })
}

impl Compute {
    fn with(self, flops: u32) -> Self {
        Self { flops, ..self }
    }
}

fn at(v: u64, i: u32) -> u64 {
    v >> (16 * i) & 0xffff
}

fn part(n: u32, f: impl Fn(u32) -> u64) -> u64 {
    (0..n).fold(0, |out, i| out | f(i) << (16 * i))
}

fn parts2(n: u32, f: impl Fn(u64, u64) -> u64 + Copy) -> impl Fn(u64, u64) -> u64 {
    move |a, b| part(n, |i| f(at(a, i), at(b, i)))
}

fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a || (a == b && b.is_sign_negative()) { b } else { a }
}

/// Negative numbers become +0.
pub(super) fn relu(format: Format, bits: u64) -> u64 {
    let v = format.value(bits);
    if v <= 0.0 { 0 } else { bits }
}
