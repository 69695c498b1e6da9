//! The stretch of an axis that a chart shows, and its ticks.

use super::Scale;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// A stretch of coordinates with its ticks.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Coordinates inside, and what is written there.
    pub(super) ticks: Vec<(f64, String)>,
}

/// Room beyond the outermost points, of the whole.
const ROOM: f64 = 0.04;
/// The least stretch, of its larger end: labels of ticks stay short.
const LEAST: f64 = 1e-6;

impl Span {
    /// A stretch with room for all of `coordinates`, which are finite, and up to about `most` ticks.
    pub(super) fn new(scale: Scale, coordinates: impl Iterator<Item = f64>, most: u32) -> Self {
        let ends = coordinates.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let ends = if ends.0 > ends.1 { (0.0, 1.0) } else { ends };
        match scale {
            Scale::Linear => Self::linear(ends, most),
            Scale::Log => Self::log(ends, most),
        }
    }

    /// Values that reach far down towards 0 begin at 0.
    fn linear((first, last): (f64, f64), most: u32) -> Self {
        let magnitude = first.abs().max(last.abs());
        let room = match last - first {
            // The least normal numbers have no smaller steps.
            _ if magnitude < 1e-300 => 1.0,
            width if width < LEAST * magnitude => 0.1 * magnitude,
            width => ROOM * width,
        };
        let low = if first >= 0.0 && first < last / 2.0 || magnitude < 1e-300 { 0.0 } else { first - room };
        let low = if first >= 0.0 { low.max(0.0) } else { low };
        let high = last + room;
        let largest = low.abs().max(high.abs());
        let (values, step) = steps(low, high, most);
        let ticks = values.into_iter().map(|v| (v, label(v, step, largest))).collect();
        Self { low, high, ticks }
    }

    /// Decades, or their halves and fifths, or equal steps where the stretch is too short for those.
    fn log((first, last): (f64, f64), most: u32) -> Self {
        let room = (ROOM * (last - first)).max(0.02);
        let (low, high) = (first - room, last + room);
        let inside = |at: &f64| (low..=high).contains(at);
        let decades = low.floor() as i32..=high.ceil() as i32;
        let written = |value: f64| (value.log10(), label(value, value, value));
        let ticks: Vec<(f64, String)> = if high - low > 3.0 {
            let every = nice((high - low) / f64::from(most)).max(1.0) as i32;
            let whole = decades.filter(|k| k.rem_euclid(every) == 0).map(f64::from);
            // The coordinate of a power of ten is exact, its value may be beyond all numbers.
            whole.filter(inside).map(|k| (k, power(k as i32))).collect()
        } else if high - low > 0.8 {
            let all = decades.flat_map(|k| [1.0, 2.0, 5.0].map(|m| (f64::from(k) + f64::log10(m), m, k)));
            all.filter(|t| inside(&t.0)).map(|(at, m, k)| (at, written(m * 10f64.powi(k)).1)).collect()
        } else {
            let (low, high) = (10f64.powf(low), 10f64.powf(high));
            let (values, step) = steps(low, high, most);
            values.into_iter().map(|v| (v.log10(), label(v, step, high))).filter(|t| inside(&t.0)).collect()
        };
        Self { low, high, ticks }
    }
}

impl Ranged for Span {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, at: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (at - self.low) / (self.high - self.low);
        first + (share * f64::from(last - first)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        // Light lines would lie between those of the ticks.
        let is_light = hint.weight().allow_light_points();
        self.ticks.iter().filter(|_| !is_light).map(|tick| tick.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Span {
    fn format_ext(&self, at: &f64) -> String {
        self.ticks.iter().find(|tick| tick.0 == *at).map(|tick| tick.1.clone()).unwrap_or_default()
    }
}

/// Multiples of a step inside a stretch, and the step: 1, 2 or 5 times a power of ten.
fn steps(low: f64, high: f64, most: u32) -> (Vec<f64>, f64) {
    let step = nice((high - low) / f64::from(most));
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    ((first..=last).map(|i| i as f64 * step).collect(), step)
}

/// The next number above that is 1, 2 or 5 times a power of ten.
fn nice(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|f| f * power).into_iter().find(|&f| f >= x).unwrap_or(10.0 * power)
}

/// A power of ten.
fn power(exponent: i32) -> String {
    match exponent {
        -3..=11 => label(10f64.powi(exponent), 10f64.powi(exponent), 10f64.powi(exponent)),
        _ => format!("1e{exponent}"),
    }
}

/// A value with the digits that steps of `step` need, in the unit that suits `largest`.
fn label(value: f64, step: f64, largest: f64) -> String {
    let digits = |largest: f64| (largest.log10().floor() - (step * 1.000_001).log10().floor()).max(0.0) as usize;
    if value == 0.0 {
        return "0".to_owned();
    }
    let (unit, letter) = match largest {
        1e-3..1e4 => (1.0, ""),
        1e4..1e6 => (1e3, "k"),
        1e6..1e9 => (1e6, "M"),
        1e9..1e12 => (1e9, "G"),
        _ => return format!("{value:.*e}", digits(value.abs())),
    };
    let digits = (-(step / unit * 1.000_001).log10().floor()).max(0.0) as usize;
    format!("{:.digits$}{letter}", value / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64]) -> String {
        let span = Span::new(scale, values.iter().map(|&v| scale.coordinate(v).unwrap()), 6);
        assert!(span.ticks.iter().all(|t| (span.low..=span.high).contains(&t.0)), "{span:?}");
        span.ticks.iter().map(|t| t.1.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_numbers_in_a_unit_that_suits() {
        let linear = |values: &[f64]| labels(Scale::Linear, values);
        assert_eq!(linear(&[0.31, 0.45]), "0.35 0.40 0.45");
        assert_eq!(linear(&[0.5, 9.0]), "0 2 4 6 8");
        assert_eq!(linear(&[0.0, 100_000.0]), "0 20k 40k 60k 80k 100k");
        assert_eq!(linear(&[0.0, 3e6]), "0 1M 2M 3M");
        assert_eq!(linear(&[-1.0, 1.0]), "-1.0 -0.5 0 0.5 1.0");
        assert_eq!(linear(&[0.0, 3e-7]), "0 1e-7 2e-7 3e-7");
        assert_eq!([0.03, 1.0, 1.2, 4.9, 5.1].map(nice), [0.05, 1.0, 2.0, 5.0, 10.0]);
    }

    #[test]
    fn logarithmic_ticks_are_decades_their_parts_or_equal_steps() {
        let log = |values: &[f64]| labels(Scale::Log, values);
        assert_eq!(log(&[0.1, 10_000.0]), "0.1 1 10 100 1000 10k");
        assert_eq!(log(&[30.0, 2500.0]), "50 100 200 500 1000 2000");
        assert_eq!(log(&[300.0, 400.0]), "300 350 400");
        assert_eq!(log(&[1e-300, 1e300]), "1e-200 1 1e200");
    }

    #[test]
    fn every_stretch_has_a_width_and_two_ticks_or_more() {
        let ends = [0.0, 1e-310, 1e-100, 1e-7, 0.3, 1.0, 1.0 + 1e-12, 7.0, 1e6, 1e17, 1e100];
        for (i, &a) in ends.iter().enumerate() {
            for &b in &ends[i..] {
                for (scale, values) in [(Scale::Linear, [a, b]), (Scale::Linear, [-b, a]), (Scale::Log, [a, b])] {
                    let placed = values.iter().filter_map(|&v| scale.coordinate(v));
                    let span = Span::new(scale, placed, 6);
                    let (n, widest) = (span.ticks.len(), span.ticks.iter().map(|t| t.1.len()).max());
                    assert!((span.high - span.low).is_normal(), "{scale:?} {values:?}: {span:?}");
                    assert!((2..=12).contains(&n) && widest <= Some(12), "{scale:?} {values:?}: {span:?}");
                    assert!(span.ticks.is_sorted_by(|a, b| a.0 < b.0), "{scale:?} {values:?}: {span:?}");
                }
            }
        }
    }
}
