//! The normal distribution.

/// 1 / sqrt(2 pi).
const DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;

/// Density of the standard normal distribution.
pub(super) fn density(x: f64) -> f64 {
    DENSITY_AT_0 * (-0.5 * x * x).exp()
}

/// P(X <= x) of the standard normal distribution, to about 1e-15 (`[west2005better]`, after Hart).
pub(super) fn cumulative(x: f64) -> f64 {
    let z = x.abs();
    let tail = if z > 37.0 {
        0.0
    } else {
        let exponential = (-0.5 * z * z).exp();
        if z < 7.071_067_811_865_47 {
            let above = [
                3.526_249_659_989_11e-2,
                0.700_383_064_443_688,
                6.373_962_203_531_65,
                33.912_866_078_383,
                112.079_291_497_871,
                221.213_596_169_931,
                220.206_867_912_376,
            ];
            let below = [
                8.838_834_764_831_84e-2,
                1.755_667_163_182_64,
                16.064_177_579_207,
                86.780_732_202_946_1,
                296.564_248_779_674,
                637.333_633_378_831,
                793.826_512_519_948,
                440.413_735_824_752,
            ];
            let at = |coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * z + c);
            exponential * at(&above) / at(&below)
        } else {
            let fraction = z + 1.0 / (z + 2.0 / (z + 3.0 / (z + 4.0 / (z + 0.65))));
            exponential / fraction * DENSITY_AT_0
        }
    };
    if x > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_the_integral_of_its_density() {
        // Simpson's rule from 0.
        for x in [0.1, 0.5, 1.0, 2.0, 3.5, 6.0, 7.5] {
            let n = 2000;
            let h = x / f64::from(n);
            let weight = |i| {
                if i == 0 || i == n {
                    1.0
                } else if i % 2 == 1 {
                    4.0
                } else {
                    2.0
                }
            };
            let area: f64 = (0..=n).map(|i| weight(i) * density(f64::from(i) * h)).sum::<f64>() * h / 3.0;
            assert!((cumulative(x) - 0.5 - area).abs() < 1e-12, "{x}: {} {}", cumulative(x), 0.5 + area);
            assert!((cumulative(-x) - 0.5 + area).abs() < 1e-12, "{x}");
        }
        assert_eq!((cumulative(-50.0), cumulative(50.0)), (0.0, 1.0));
        assert!((cumulative(-8.0) / 6.220_960_574_271_78e-16 - 1.0).abs() < 1e-6);
    }
}
