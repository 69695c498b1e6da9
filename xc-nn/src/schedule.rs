//! Learning rates over time.
//!
//! ```
//! use xc_nn::schedule::{HalveOnPlateau, Schedule, WarmupCosine};
//!
//! let schedule = WarmupCosine { warmup: 10, total: 110, floor: 0.1 };
//! assert_eq!((schedule.factor(4), schedule.factor(9), schedule.factor(500)), (0.5, 1.0, 0.1));
//! assert!(schedule.is_lowest(110) && !schedule.is_lowest(60));
//!
//! // Halved after two validations that are no better.
//! let mut schedule = HalveOnPlateau::new(2);
//! [true, false, false].into_iter().for_each(|is_best| schedule.observe(is_best));
//! assert_eq!(schedule.factor(0), 0.5);
//! ```

use serde_json::json;

/// A factor on the base learning rate.
pub trait Schedule: Send {
    /// The factor in step `step`, from 0.
    fn factor(&self, step: u64) -> f64;

    /// Whether no later factor is below that of step `step`, as far as is known after all that was
    /// observed.
    fn is_lowest(&self, step: u64) -> bool;

    /// Hears after each validation whether the monitor's value is the best so far.
    fn observe(&mut self, is_best: bool) {
        let _ = is_best;
    }

    /// What has to be kept to go on later.
    fn state(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Goes on from a state that `state` of the same schedule gave.
    fn restore(&mut self, state: &[f64]) {
        let _ = state;
    }

    /// All settings, to tell two training runs apart.
    fn settings(&self) -> serde_json::Value;
}

/// Always 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Constant;

impl Schedule for Constant {
    fn factor(&self, _: u64) -> f64 {
        1.0
    }

    fn is_lowest(&self, _: u64) -> bool {
        true
    }

    fn settings(&self) -> serde_json::Value {
        json!("constant")
    }
}

/// Rises linearly from 0, then falls to `floor` along half a cosine wave.
///
/// ```text
///   step < warmup          (step + 1) / warmup
///   step < total           floor + (1 - floor) * (1 + cos(pi * (step - warmup) / (total - warmup))) / 2
///   from there on          floor
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmupCosine {
    /// Steps of the rise.
    pub warmup: u64,
    /// Steps in all.
    pub total: u64,
    /// Last factor.
    pub floor: f64,
}

impl Schedule for WarmupCosine {
    fn factor(&self, step: u64) -> f64 {
        if step < self.warmup {
            return (step + 1) as f64 / self.warmup as f64;
        }
        if step >= self.total {
            return self.floor;
        }
        let done = (step - self.warmup) as f64 / (self.total - self.warmup) as f64;
        self.floor + (1.0 - self.floor) * (1.0 + (std::f64::consts::PI * done).cos()) / 2.0
    }

    fn is_lowest(&self, step: u64) -> bool {
        step >= self.total
    }

    fn settings(&self) -> serde_json::Value {
        json!({ "warmup": self.warmup, "total": self.total, "floor": self.floor })
    }
}

/// Halves the factor when validation has not improved for `patience` evaluations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalveOnPlateau {
    patience: u32,
    lowest: f64,
    factor: f64,
    waited: u32,
}

impl HalveOnPlateau {
    /// Starts at 1, without a lowest factor.
    ///
    /// # Panics
    /// If `patience` is 0.
    pub fn new(patience: u32) -> Self {
        assert!(patience > 0, "patience 0, expected at least 1");
        Self { patience, lowest: 0.0, factor: 1.0, waited: 0 }
    }

    /// The last halving ends at `lowest`, and the factor stays there.
    ///
    /// # Panics
    /// If it is not in [0, 1].
    pub fn down_to(self, lowest: f64) -> Self {
        assert!((0.0..=1.0).contains(&lowest), "lowest factor {lowest}, expected 0 to 1");
        Self { lowest, ..self }
    }
}

impl Schedule for HalveOnPlateau {
    fn factor(&self, _: u64) -> f64 {
        self.factor
    }

    /// Without [`HalveOnPlateau::down_to`] there is always a lower one.
    fn is_lowest(&self, _: u64) -> bool {
        self.factor <= self.lowest
    }

    fn observe(&mut self, is_best: bool) {
        if is_best {
            self.waited = 0;
            return;
        }
        self.waited += 1;
        if self.waited >= self.patience {
            (self.factor, self.waited) = ((self.factor / 2.0).max(self.lowest), 0);
        }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.factor, f64::from(self.waited)]
    }

    fn restore(&mut self, state: &[f64]) {
        if let &[factor, waited] = state {
            // More than patience is never waited.
            (self.factor, self.waited) = (factor, (waited as u32).min(self.patience - 1));
        }
    }

    fn settings(&self) -> serde_json::Value {
        json!({ "halve_after": self.patience, "lowest": self.lowest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_frozen() {
        assert_eq!(Constant.factor(12345), 1.0);
        let cosine = WarmupCosine { warmup: 4, total: 12, floor: 0.1 };
        let got: Vec<String> = (0..14).map(|step| format!("{:.6}", cosine.factor(step))).collect();
        let expected = [
            "0.250000", "0.500000", "0.750000", "1.000000", "1.000000", "0.965746", "0.868198", "0.722208", "0.550000",
            "0.377792", "0.231802", "0.134254", "0.100000", "0.100000",
        ];
        assert_eq!(got, expected);
        assert_eq!(WarmupCosine { warmup: 0, total: 0, floor: 0.5 }.factor(0), 0.5);
    }

    /// Factors after each validation, of which it is said whether it was the best; a copy is
    /// restored before each.
    fn factors(first: HalveOnPlateau, validations: impl IntoIterator<Item = bool>) -> Vec<f64> {
        let mut schedule = first;
        let one = |is_best| {
            let mut copy = first;
            copy.restore(&schedule.state());
            assert_eq!(copy, schedule);
            schedule.observe(is_best);
            assert_eq!(schedule.is_lowest(0), schedule.factor(0) == first.lowest);
            schedule.factor(0)
        };
        validations.into_iter().map(one).collect()
    }

    #[test]
    fn a_plateau_halves_and_a_restored_schedule_goes_on() {
        let best = [true, true, false, false, true, false, false, false, false];
        let got = factors(HalveOnPlateau::new(2), best);
        assert_eq!(got, [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125]);
        assert_eq!(HalveOnPlateau::new(2).settings(), json!({"halve_after": 2, "lowest": 0.0}));
    }

    #[test]
    fn a_plateau_halves_down_to_the_lowest_factor() {
        let schedule = HalveOnPlateau::new(1).down_to(0.1);
        let best = [true, true, false, true, false, false, true, false, false, true, false];
        assert_eq!(factors(schedule, best), [1.0, 1.0, 0.5, 0.5, 0.25, 0.125, 0.125, 0.1, 0.1, 0.1, 0.1]);
        assert_eq!(schedule.settings(), json!({"halve_after": 1, "lowest": 0.1}));
    }

    #[test]
    fn the_lowest_factor_is_known() {
        assert!(Constant.is_lowest(0));
        let cosine = WarmupCosine { warmup: 4, total: 12, floor: 0.1 };
        assert!(!cosine.is_lowest(0) && !cosine.is_lowest(11) && cosine.is_lowest(12));
    }
}
