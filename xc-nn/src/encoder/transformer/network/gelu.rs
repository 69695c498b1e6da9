//! The Gaussian error linear unit, `x * P(X <= x)` of a standard normal X.

use std::f32::consts::FRAC_1_SQRT_2;
use xc_buffer::parallel::for_each_part;
use xc_buffer::simd::exp;
use xc_buffer::{Loop, vectorised_loop};

/// Values that one task takes.
pub(super) const VALUES: usize = 1 << 14;
/// 1 / sqrt(2 pi).
const DENSITY_AT_0: f32 = 0.398_942_3;

/// Distribution and density of a standard normal at `x`: Abramowitz and Stegun 7.1.26, absolute error 1.5e-7.
#[inline(always)]
fn normal(x: f32) -> (f32, f32) {
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let e = exp(-z * z);
    let series = -0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4));
    let half = 0.5 * (t * (0.254_829_6 + t * series) * e);
    (if x < 0.0 { half } else { 1.0 - half }, e * DENSITY_AT_0)
}

struct Forward<'a> {
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (&x, y) in self.x.iter().zip(self.y) {
            *y = x * normal(x).0;
        }
    }
}

struct InPlace<'a> {
    x: &'a mut [f32],
}

impl Loop for InPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.x.iter_mut().for_each(|x| *x *= normal(*x).0);
    }
}

struct Backward<'a> {
    x: &'a [f32],
    gradient: &'a mut [f32],
}

impl Loop for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (&x, g) in self.x.iter().zip(self.gradient) {
            let (distribution, density) = normal(x);
            *g *= distribution + x * density;
        }
    }
}

/// `y = gelu(x)`.
pub(super) fn forward(is_alone: bool, x: &[f32], y: &mut [f32]) {
    if is_alone {
        return vectorised_loop(Forward { x, y });
    }
    for_each_part(y, VALUES, |part, y| vectorised_loop(Forward { x: &x[part * VALUES..][..y.len()], y }));
}

/// `x = gelu(x)`.
pub(super) fn in_place(x: &mut [f32]) {
    for_each_part(x, VALUES, |_, x| vectorised_loop(InPlace { x }));
}

/// Turns the gradient of `gelu(x)` into that of `x`.
pub(super) fn backward(x: &[f32], gradient: &mut [f32]) {
    for_each_part(gradient, VALUES, |part, gradient| {
        vectorised_loop(Backward { x: &x[part * VALUES..][..gradient.len()], gradient });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distribution of a standard normal by Simpson's rule.
    fn distribution(x: f64) -> f64 {
        let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let (n, step) = (2000, x / 2000.0);
        let inner: f64 = (1..n).map(|i| if i % 2 == 1 { 4.0 } else { 2.0 } * density(f64::from(i) * step)).sum();
        0.5 + (density(0.0) + inner + density(x)) * step / 3.0
    }

    #[test]
    fn values_and_slopes_are_those_of_the_definition() {
        let x: Vec<f32> = (-900..=900).map(|i| i as f32 / 100.0).chain([-60.0, 60.0, 0.0]).collect();
        let (mut y, mut slope) = (vec![0.0; x.len()], vec![1.0; x.len()]);
        forward(true, &x, &mut y);
        backward(&x, &mut slope);
        for ((&x, &y), &slope) in x.iter().zip(&y).zip(&slope) {
            let at = f64::from(x).clamp(-12.0, 12.0);
            let expected = f64::from(x) * distribution(at);
            assert!((f64::from(y) - expected).abs() < 4e-7 * expected.abs().max(1.0), "gelu({x}): {y} {expected}");
            let gelu = |x: f64| x * distribution(x);
            let expected = (gelu(at + 1e-4) - gelu(at - 1e-4)) / 2e-4;
            assert!((f64::from(slope) - expected).abs() < 1e-6, "slope at {x}: {slope} {expected}");
        }
        // In parts the same bits.
        let (x, mut whole) = (x.repeat(20), vec![0.0; 20 * x.len()]);
        forward(false, &x, &mut whole);
        assert!(whole.chunks(y.len()).all(|part| part == y));
        let mut x = x;
        in_place(&mut x);
        assert_eq!(x, whole);
    }
}
