//! The logistic curve that fits best, with two parameters.

/// The line `slope * x + bias` of the log-odds of truth that fits `points` (x, is it true?) best,
/// by Newton's method with backtracking (`[lin2007note]`). Targets are those of
/// (`[platt1999probabilistic]`): instead of 0 and 1, the estimates that this number of false or true
/// observations supports. The slope is at least 0.
///
/// *Cost*: about ten passes.
pub(super) fn fit(points: impl Iterator<Item = (f64, bool)> + Clone) -> (f64, f64) {
    let (n, n_true) =
        points.clone().fold((0.0, 0.0), |(n, n_true), (_, is)| (n + 1.0, n_true + f64::from(u8::from(is))));
    let targets = [1.0 / (n - n_true + 2.0), (n_true + 1.0) / (n_true + 2.0)];
    let target = |is_true: bool| targets[usize::from(is_true)];
    let loss = |slope: f64, bias: f64| -> f64 {
        points
            .clone()
            .map(|(x, is)| {
                let z = slope * x + bias;
                // ln(1 + e^z) - t z, without overflow.
                z.max(0.0) + (-z.abs()).exp().ln_1p() - target(is) * z
            })
            .sum()
    };
    let (mut slope, mut bias) = (0.0, ((n_true + 1.0) / (n - n_true + 1.0)).ln());
    let mut current = loss(slope, bias);
    for _ in 0..MOST_STEPS {
        let (mut h11, mut h22, mut h12, mut g1, mut g2) = (RIDGE, RIDGE, 0.0, 0.0, 0.0);
        for (x, is) in points.clone() {
            let p = logistic(slope * x + bias);
            let (weight, error) = (p * (1.0 - p), p - target(is));
            h11 += x * x * weight;
            h22 += weight;
            h12 += x * weight;
            g1 += x * error;
            g2 += error;
        }
        if g1.abs() < ENOUGH * (1.0 + n) && g2.abs() < ENOUGH * (1.0 + n) {
            break;
        }
        let determinant = h11 * h22 - h12 * h12;
        let (d1, d2) = (-(h22 * g1 - h12 * g2) / determinant, -(h11 * g2 - h12 * g1) / determinant);
        if !(d1.is_finite() && d2.is_finite()) {
            break;
        }
        let descent = g1 * d1 + g2 * d2;
        let mut step = 1.0;
        let next = loop {
            let next = loss(slope + step * d1, bias + step * d2);
            if next < current + 1e-4 * step * descent {
                break Some(next);
            }
            step /= 2.0;
            if step < 1e-10 {
                break None;
            }
        };
        let Some(next) = next else { break };
        (slope, bias, current) = (slope + step * d1, bias + step * d2, next);
    }
    if slope < 0.0 {
        // Larger scores are less often true: the best curve that does not decrease is the share of
        // true ones.
        return (0.0, ((n_true + 1.0) / (n - n_true + 1.0)).ln());
    }
    (slope, bias)
}

const MOST_STEPS: usize = 100;
const RIDGE: f64 = 1e-12;
const ENOUGH: f64 = 1e-10;

/// 1 / (1 + e^-z).
pub(super) fn logistic(z: f64) -> f64 {
    if z >= 0.0 { 1.0 / (1.0 + (-z).exp()) } else { z.exp() / (1.0 + z.exp()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_logistic_sample_is_found() {
        // Ten thousand points at each x, of which as many are true as the curve says.
        let (slope, bias) = (2.0, -1.0);
        let points: Vec<(f64, bool)> = (-4..=4)
            .flat_map(|x| {
                let x = f64::from(x) / 2.0;
                let n_true = (10_000.0 * logistic(slope * x + bias)).round() as usize;
                (0..10_000).map(move |i| (x, i < n_true))
            })
            .collect();
        let (got, at) = fit(points.iter().copied());
        assert!((got - slope).abs() < 0.01 && (at - bias).abs() < 0.01, "{got} {at}");
    }

    #[test]
    fn one_class_no_point_and_falling_shares_give_a_curve_that_does_not_fall() {
        for points in [vec![], vec![(1.0, true)], vec![(1.0, false); 3], vec![(0.0, true), (1.0, false)]] {
            let (slope, bias) = fit(points.iter().copied());
            assert!(slope >= 0.0 && slope.is_finite() && bias.is_finite(), "{points:?}: {slope} {bias}");
        }
        let far: Vec<(f64, bool)> = (0..100).map(|i| (f64::from(i) * 1e30, i >= 50)).collect();
        let (slope, bias) = fit(far.iter().copied());
        assert!(slope >= 0.0 && slope.is_finite() && bias.is_finite());
    }
}
