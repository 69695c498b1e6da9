//! Exponentials in plain code, which loops of every instruction set compute alike.

/// e^x for x <= 88, elementwise without branches; relative error below 3e-7; 0 below -87.3.
///
/// Cody-Waite reduction to |r| <= ln 2 / 2 and a polynomial of degree 6.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.3, 88.0);
    let n = clamped * std::f32::consts::LOG2_E + ROUND;
    let bits = n.to_bits().wrapping_sub(ROUND.to_bits());
    let n = n - ROUND;
    let r = clamped - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.0 / 720.0;
    for c in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p * r + c;
    }
    let scale = f32::from_bits(bits.wrapping_add(127) << 23);
    // A logit far below the largest adds nothing; NaN stays NaN.
    if x < -87.3 { 0.0 } else { p * scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::vectorised;

    #[test]
    fn exponentials_are_close() {
        let x: Vec<f32> = (-9000..8800).map(|i| i as f32 / 100.0 + 0.003).collect();
        let mut all = x.clone();
        vectorised(|| all.iter_mut().for_each(|z| *z = exp(*z)));
        for (&x, &of_all) in x.iter().zip(&all) {
            let (got, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert_eq!(of_all.to_bits(), exp(x).to_bits());
            if x < -87.3 {
                assert_eq!(got, 0.0);
            } else if x < 88.0 {
                assert!((got / expected - 1.0).abs() < 3e-7, "e^{x}: {got} {expected}");
            }
        }
        assert!(exp(f32::NAN).is_nan());
    }
}
