//! Unrelated rows are not all equally unrelated: how likely their codes agree, over pairs of them.

use crate::params::FamilyKind;

/// Nodes of the sums that stand for integrals.
const NODES: usize = 400;

/// How the probability p that a code agrees is spread over pairs of unrelated rows.
///
/// A random pair of vectors of width d has a cosine of about 1 / sqrt(d), not 0, and p^K grows
/// steeply: of 670,000 labels of width 128, keys of six winners of eight coordinates find four
/// times what the mean of p alone would say.
///
/// | family | pairs | p |
/// |---|---|---|
/// | SimHash | independent directions | 1 - arccos(s) / pi, with the density (1 - s^2)^((d - 3) / 2) of s |
/// | WTA | independent orders of d coordinates | mean 1 / m, the variance exact, the skewness that of its linear part, a gamma distribution between |
/// | DWTA, MinHash | rows without a common feature | 1 / m, 2^-b |
///
/// ```
/// use xc_lsh::theory::Spread;
/// use xc_lsh::FamilyKind;
///
/// let spread = Spread::of_unrelated(FamilyKind::Wta { bin: 8 }, 128.0);
/// let mean = spread.key(1, None);
/// assert!((mean - 1.0 / 8.0).abs() < 1e-4);
/// let more = spread.key(6, None) / mean.powi(6);
/// assert!((3.5..4.2).contains(&more), "{more}");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Probabilities, and the shares of pairs that have them.
    nodes: Vec<(f64, f64)>,
}

impl Spread {
    /// Of pairs of independent rows with `width` coordinates that count. Where cosines of rows are
    /// known to have another standard deviation s than 1 / sqrt(width), that is a width of 1 / s^2.
    ///
    /// # Panics
    /// If the width is below 1, or that of [`FamilyKind::Wta`] below the coordinates of a bin.
    pub fn of_unrelated(kind: FamilyKind, width: f64) -> Self {
        assert!(width >= 1.0, "rows of {width} coordinates");
        match kind {
            FamilyKind::SimHash { .. } => Self::of_directions(width),
            FamilyKind::Wta { bin } => Self::of_orders(bin, width),
            FamilyKind::Dwta { .. } | FamilyKind::MinHash { .. } => Self { nodes: vec![(kind.chance(), 1.0)] },
        }
    }

    fn of_directions(width: f64) -> Self {
        // Below three coordinates the density has no mode; nobody sizes tables for those.
        let power = (width.max(3.0) - 3.0) / 2.0;
        Self::of_density(-1.0, 1.0, |s| (super::simhash(s), power * (1.0 - s * s).max(f64::MIN_POSITIVE).ln()))
    }

    fn of_orders(bin: u32, width: f64) -> Self {
        let m = f64::from(bin);
        assert!(width >= m, "bins of {bin} from {width} coordinates");
        let (mean, variance) = (1.0 / m, variance_of_orders(bin, width));
        if variance <= 0.0 {
            return Self { nodes: vec![(mean, 1.0)] };
        }
        // The linear part is a sum over coordinates of products of u^(m-1), u uniform, in both
        // rows.
        let of_power = 1.0 / (2.0 * m - 1.0) - mean * mean;
        let third = 1.0 / (3.0 * m - 2.0) - 3.0 * mean / (2.0 * m - 1.0) + 2.0 * mean.powi(3);
        let skewness = third * third / of_power.powi(3) / width.sqrt();
        let (shape, scale) = (4.0 / (skewness * skewness), variance.sqrt() * skewness / 2.0);
        let first = mean - shape * scale;
        let (low, high) = (first.max(0.0), (mean + 12.0 * variance.sqrt()).min(1.0));
        Self::of_density(low, high, |p| {
            let x = ((p - first) / scale).max(f64::MIN_POSITIVE);
            // Around the mean: a shape of many thousands would lose the digits.
            (p, (shape - 1.0) * (x / shape).ln() - (x - shape))
        })
    }

    /// Nodes in the middle of equal steps; `at` gives p and the logarithm of the density.
    fn of_density(low: f64, high: f64, at: impl Fn(f64) -> (f64, f64)) -> Self {
        let step = (high - low) / NODES as f64;
        let mut nodes: Vec<(f64, f64)> = (0..NODES).map(|i| at(low + (i as f64 + 0.5) * step)).collect();
        let most = nodes.iter().map(|n| n.1).fold(f64::NEG_INFINITY, f64::max);
        nodes.iter_mut().for_each(|n| n.1 = (n.1 - most).exp());
        let sum: f64 = nodes.iter().map(|n| n.1).sum();
        nodes.iter_mut().for_each(|n| n.1 /= sum);
        Self { nodes }
    }

    /// Probability that a key of K codes agrees, for a random pair. Codes that are hashed down to
    /// `key_bits` agree by chance too, once in 2^`key_bits`.
    pub fn key(&self, n_codes: u32, key_bits: Option<u32>) -> f64 {
        self.mean(|p| super::key(p, n_codes, key_bits))
    }

    /// Probability that at least one of L tables finds a random row: the mean of 1 - (1 - q)^L.
    pub fn inclusion(&self, n_codes: u32, key_bits: Option<u32>, n_tables: u32) -> f64 {
        self.mean(|p| super::inclusion(super::key(p, n_codes, key_bits), 1, n_tables))
    }

    fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.nodes.iter().map(|&(p, share)| share * of(p)).sum()
    }
}

/// Variance of p over pairs of independent orders: two bins that share c coordinates both agree
/// with the sum over pairs of winners of the square of their probability in one order, since the
/// orders are independent.
fn variance_of_orders(bin: u32, width: f64) -> f64 {
    let m = f64::from(bin);
    // Shared coordinates are hypergeometric; the share of 0 of them, and then each from the one
    // before.
    let mut share: f64 = (0..bin).map(|i| (width - m - f64::from(i)).max(0.0) / (width - f64::from(i))).product();
    if share == 0.0 {
        return sampled_variance(m, width);
    }
    let mut both = 0.0;
    for c in 0..=bin {
        let c = f64::from(c);
        let (all, own) = (2.0 * m - c, m - c);
        // One shared winner; the winner of one bin shared and beaten in the other; two winners of
        // their own.
        let (one, beaten) = (1.0 / all, 1.0 / (all * m));
        let two = if own > 0.0 { (1.0 - c * one - 2.0 * c * own * beaten) / (own * own) } else { 0.0 };
        both += share * (c * one * one + 2.0 * c * own * beaten * beaten + own * own * two * two);
        share *= own * own / ((c + 1.0) * (width - 2.0 * m + c + 1.0));
    }
    (both - 1.0 / (m * m)).max(0.0)
}

/// The linear part alone, where bins are nearly all coordinates.
fn sampled_variance(m: f64, width: f64) -> f64 {
    let of_power = 1.0 / (2.0 * m - 1.0) - 1.0 / (m * m);
    let factor = m / (m - 1.0) * of_power * m;
    factor * factor / width
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Projection;
    use crate::theory::winner_of;
    use xc_hash::stream::Stream;

    #[test]
    fn orders_agree_as_those_that_are_drawn() {
        let mut stream = Stream::new(3);
        for (width, bin) in [(64, 8), (128, 8), (40, 3)] {
            let x: Vec<f32> = (0..width).map(|i| i as f32).collect();
            let mut y = x.clone();
            let drawn: Vec<f64> = (0..1500)
                .map(|_| {
                    stream.shuffle(&mut y);
                    winner_of(&x, &y, bin)
                })
                .collect();
            let spread = Spread::of_unrelated(FamilyKind::Wta { bin }, f64::from(width));
            for n_codes in 1..=5 {
                let powers: Vec<f64> = drawn.iter().map(|p| p.powi(n_codes)).collect();
                let mean = powers.iter().sum::<f64>() / 1500.0;
                let error = (powers.iter().map(|p| (p - mean).powi(2)).sum::<f64>()).sqrt() / 1500.0;
                let expected = spread.key(n_codes as u32, None);
                // The skewness is that of the linear part: a little short.
                assert!(
                    (mean - expected).abs() < 5.0 * error + 0.05 * mean,
                    "{width}, {bin}, {n_codes}: {mean}, {expected}"
                );
            }
        }
    }

    #[test]
    fn the_variance_of_few_coordinates_is_that_of_all_orders() {
        let x = [0.0f32, 1.0, 2.0, 3.0, 4.0];
        let mut orders = vec![vec![]];
        for _ in 0..5 {
            let next = |o: &Vec<f32>| {
                x.iter().filter(|v| !o.contains(v)).map(|&v| [&o[..], &[v]].concat()).collect::<Vec<_>>()
            };
            orders = orders.iter().flat_map(next).collect();
        }
        let of: Vec<f64> = orders.iter().map(|y| winner_of(&x, y, 2)).collect();
        let (n, mean) = (of.len() as f64, of.iter().sum::<f64>() / of.len() as f64);
        let variance = of.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / n;
        assert_eq!(orders.len(), 120);
        assert!((variance_of_orders(2, 5.0) / variance - 1.0).abs() < 1e-9, "{variance}");
    }

    #[test]
    fn directions_have_cosines_of_one_over_the_root_of_their_width() {
        let kind = FamilyKind::SimHash { projection: Projection::Gaussian };
        for width in [8.0, 128.0, 2048.0] {
            let spread = Spread::of_unrelated(kind, width);
            assert!((spread.key(1, None) - 0.5).abs() < 1e-9);
            // p is about 1/2 + s / pi.
            let variance = spread.key(2, None) - 0.25;
            let expected = 1.0 / width / std::f64::consts::PI.powi(2);
            assert!((variance / expected - 1.0).abs() < 2.0 / width + 1e-3, "{width}: {variance}, {expected}");
        }
        let set = Spread::of_unrelated(FamilyKind::MinHash { minima: crate::Minima::Classic, code_bits: 4 }, 9.0);
        assert!((set.key(3, None) - 2f64.powi(-12)).abs() < 1e-15);
        assert!((set.key(3, Some(10)) - (2f64.powi(-12) + (1.0 - 2f64.powi(-12)) / 1024.0)).abs() < 1e-15);
        assert!((set.inclusion(3, None, 7) - crate::theory::inclusion(1.0 / 16.0, 3, 7)).abs() < 1e-15);
    }
}
