//! `f32` and `f64`.

use super::round::{F32, Round, quotient, root, sum};
use super::{Allowed, Compute, one, three, two};

#[inline(always)]
pub(super) fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The bits of a result: every NaN becomes the one that a card answers with.
#[inline(always)]
pub(super) fn to_f32(x: f32) -> u64 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits().into() }
}

#[inline(always)]
pub(super) fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// A NaN that comes in goes out, quiet: the first in a list of operands. A new one has this pattern.
#[inline(always)]
fn to_f64(x: f64, from: &[f64]) -> u64 {
    if !x.is_nan() {
        return x.to_bits();
    }
    from.iter().find(|v| v.is_nan()).map_or(0xfff8_0000_0000_0000, |v| v.to_bits() | 1 << 51)
}

pub(super) fn compute(form: &str, allowed: Allowed) -> Option<Compute> {
    if let Some(form) = form.strip_suffix(".f64") {
        return doubles(form);
    }
    let form = form.strip_suffix(".f32")?;
    if let Some(found) = singles(form).or_else(|| directed(form)) {
        return Some(found);
    }
    if allowed.approximate { approximate(form) } else { None }
}

fn flops(n: u32, compute: Compute) -> Compute {
    Compute { flops: n, ..compute }
}

fn singles(form: &str) -> Option<Compute> {
    Some(match form {
        "mov" => one(|a| a & 0xffff_ffff),
        "add" | "add.rn" => flops(1, two(|a, b| to_f32(f(a) + f(b)))),
        "sub" | "sub.rn" => flops(1, two(|a, b| to_f32(f(a) - f(b)))),
        "mul" | "mul.rn" => flops(1, two(|a, b| to_f32(f(a) * f(b)))),
        "fma.rn" => flops(2, three(|a, b, c| to_f32(f(a).mul_add(f(b), f(c))))),
        "div.rn" => flops(1, two(|a, b| to_f32(f(a) / f(b)))),
        "sqrt.rn" => flops(1, one(|a| to_f32(f(a).sqrt()))),
        "rcp.rn" => flops(1, one(|a| to_f32(1.0 / f(a)))),
        "abs" => one(|a| to_f32(f(a).abs())),
        "neg" => one(|a| to_f32(-f(a))),
        "copysign" => two(|sign, of| of & 0x7fff_ffff | sign & 0x8000_0000),
        "min" => two(|a, b| to_f32(least(f(a), f(b)))),
        "max" => two(|a, b| to_f32(-least(-f(a), -f(b)))),
        "min.NaN" => two(|a, b| to_f32(if f(a).is_nan() || f(b).is_nan() { f32::NAN } else { least(f(a), f(b)) })),
        "max.NaN" => two(|a, b| to_f32(if f(a).is_nan() || f(b).is_nan() { f32::NAN } else { -least(-f(a), -f(b)) })),
        _ => return None,
    })
}

/// The number if the other is none; -0 is less than +0.
pub(super) fn least(a: f32, b: f32) -> f32 {
    if a.is_nan() || b < a || (a == b && b.is_sign_negative()) { b } else { a }
}

/// What is rounded toward zero, down or up: through `f64`, where what is lost below is kept as a set last bit.
fn directed(form: &str) -> Option<Compute> {
    let (op, round) = form.rsplit_once('.')?;
    let round = Round::named(round).filter(|&r| r != Round::Nearest)?;
    let wide = |v: u64| f64::from(f(v));
    Some(match op {
        "add" => flops(1, two(move |a, b| F32.round(sum(wide(a), wide(b), round), round))),
        "sub" => flops(1, two(move |a, b| F32.round(sum(wide(a), -wide(b), round), round))),
        "mul" => flops(1, two(move |a, b| F32.round(wide(a) * wide(b), round))),
        "fma" => flops(2, three(move |a, b, c| F32.round(sum(wide(a) * wide(b), wide(c), round), round))),
        "div" => flops(1, two(move |a, b| F32.round(quotient(wide(a), wide(b)), round))),
        "sqrt" => flops(1, one(move |a| F32.round(root(wide(a)), round))),
        "rcp" => flops(1, one(move |a| F32.round(quotient(1.0, wide(a)), round))),
        _ => return None,
    })
}

fn approximate(form: &str) -> Option<Compute> {
    let flushed = |v: u64| if f(v).is_subnormal() { 0.0 } else { f64::from(f(v)) };
    Some(match form {
        "ex2.approx.ftz" => one(move |a| to_f32(flushed(a).exp2() as f32)),
        "ex2.approx" => one(|a| to_f32(f64::from(f(a)).exp2() as f32)),
        "lg2.approx" => one(|a| to_f32(f64::from(f(a)).log2() as f32)),
        "rcp.approx" => one(|a| to_f32(1.0 / f(a))),
        "sqrt.approx" => one(|a| to_f32(f(a).sqrt())),
        "div.approx" | "div.full" => two(|a, b| to_f32(f(a) / f(b))),
        _ => return None,
    })
}

fn doubles(form: &str) -> Option<Compute> {
    Some(match form {
        "mov" => one(|a| a),
        "add" | "add.rn" => flops(1, two(|a, b| to_f64(d(a) + d(b), &[d(b), d(a)]))),
        "sub" | "sub.rn" => flops(1, two(|a, b| to_f64(d(a) - d(b), &[d(b), d(a)]))),
        "mul" | "mul.rn" => flops(1, two(|a, b| to_f64(d(a) * d(b), &[d(b), d(a)]))),
        "div.rn" => flops(1, two(|a, b| to_f64(d(a) / d(b), &[d(a), d(b)]))),
        "fma.rn" => flops(2, three(|a, b, c| to_f64(d(a).mul_add(d(b), d(c)), &[d(b), d(c), d(a)]))),
        "sqrt.rn" => flops(1, one(|a| to_f64(d(a).sqrt(), &[d(a)]))),
        "rcp.rn" => flops(1, one(|a| to_f64(1.0 / d(a), &[d(a)]))),
        "abs" => one(|a| if d(a).is_nan() { a | 1 << 51 } else { a & !(1 << 63) }),
        "neg" => one(|a| if d(a).is_nan() { a | 1 << 51 } else { a ^ 1 << 63 }),
        "min" => two(|a, b| to_f64(least_f64(d(a), d(b)), &[d(b), d(a)])),
        "max" => two(|a, b| to_f64(-least_f64(-d(a), -d(b)), &[d(b), d(a)])),
        _ => return None,
    })
}

fn least_f64(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a || (a == b && b.is_sign_negative()) { b } else { a }
}
