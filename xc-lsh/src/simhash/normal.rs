//! Normal numbers that are the same on every machine: additions, products, quotients and roots
//! alone, which are exactly defined; no library's logarithm.

use xc_hash::stream::Stream;

/// The natural logarithm of a number above 0, to about 1e-15.
fn ln(x: f64) -> f64 {
    // x = m 2^e with m in [1, 2): ln m = 2 artanh((m - 1) / (m + 1)), whose series falls by 9 a
    // term at least.
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = (0..17).rev().fold(0.0, |sum, i| sum * square + 1.0 / f64::from(2 * i + 1));
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

/// Fills with independent normal numbers: Marsaglia's polar method.
pub(super) fn fill_normal(stream: &mut Stream, out: &mut [f32]) {
    for pair in out.chunks_mut(2) {
        let (u, v, s) = loop {
            let (u, v) = (2.0 * stream.unit() - 1.0, 2.0 * stream.unit() - 1.0);
            let s = u * u + v * v;
            if s < 1.0 && s > 0.0 {
                break (u, v, s);
            }
        };
        let scale = (-2.0 * ln(s) / s).sqrt();
        pair[0] = (u * scale) as f32;
        if let [_, second] = pair {
            *second = (v * scale) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        for x in [1e-300, 1e-20, 0.1, 0.5, 0.999_999, 1.0, 1.5, 1.999, 2.0, 1e10] {
            assert!((ln(x) - x.ln()).abs() <= 2e-15 * x.ln().abs().max(1.0), "{x}: {} {}", ln(x), x.ln());
        }
    }

    #[test]
    fn normal_numbers_have_the_moments_and_tails_of_their_distribution() {
        let mut values = vec![0.0; 200_001];
        fill_normal(&mut Stream::new(3), &mut values);
        let n = values.len() as f64;
        let moment = |power| values.iter().map(|&v| f64::from(v).powi(power)).sum::<f64>() / n;
        for (power, expected, spread) in
            [(1, 0.0, 1.0), (2, 1.0, 2f64.sqrt()), (3, 0.0, 15f64.sqrt()), (4, 3.0, 96f64.sqrt())]
        {
            assert!((moment(power) - expected).abs() < 4.5 * spread / n.sqrt(), "{power}: {}", moment(power));
        }
        let beyond = values.iter().filter(|v| v.abs() > 2.0).count() as f64 / n;
        assert!((beyond - 0.0455).abs() < 0.0022, "{beyond}");
    }
}
