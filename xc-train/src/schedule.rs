//! Learning rates over time.

/// A factor on the base learning rate.
pub trait Schedule: Send {
    /// The factor in step `step`, from 0.
    fn factor(&self, step: u64) -> f64;

    /// Hears the validation loss, at each evaluation.
    fn observe(&mut self, validation_loss: f64) {
        let _ = validation_loss;
    }

    /// What has to be kept to go on later.
    fn state(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Goes on from a state that `state` of the same schedule gave.
    fn restore(&mut self, state: &[f64]) {
        let _ = state;
    }

    /// All settings as text, to tell two trainings apart.
    fn settings(&self) -> String;
}

/// Always 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Constant;

impl Schedule for Constant {
    fn factor(&self, _: u64) -> f64 {
        1.0
    }

    fn settings(&self) -> String {
        "Constant".into()
    }
}

/// Rises from 0 in a straight line, then falls to `floor` in half a cosine wave.
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

    fn settings(&self) -> String {
        format!("{self:?}")
    }
}

/// Halves the factor when the validation loss has not fallen for `patience` evaluations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalveOnPlateau {
    patience: u32,
    factor: f64,
    best: f64,
    waited: u32,
}

impl HalveOnPlateau {
    /// Begins at 1.
    ///
    /// # Panics
    /// If `patience` is 0.
    pub fn new(patience: u32) -> Self {
        assert!(patience > 0, "patience 0, wanted at least 1");
        Self { patience, factor: 1.0, best: f64::INFINITY, waited: 0 }
    }
}

impl Schedule for HalveOnPlateau {
    fn factor(&self, _: u64) -> f64 {
        self.factor
    }

    fn observe(&mut self, validation_loss: f64) {
        if validation_loss < self.best {
            (self.best, self.waited) = (validation_loss, 0);
            return;
        }
        self.waited += 1;
        if self.waited >= self.patience {
            (self.factor, self.waited) = (self.factor / 2.0, 0);
        }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.factor, self.best, f64::from(self.waited)]
    }

    fn restore(&mut self, state: &[f64]) {
        if let &[factor, best, waited] = state {
            // More than patience is never waited.
            (self.factor, self.best, self.waited) = (factor, best, (waited as u32).min(self.patience - 1));
        }
    }

    fn settings(&self) -> String {
        format!("HalveOnPlateau {}", self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_frozen() {
        assert_eq!(Constant.factor(12345), 1.0);
        let cosine = WarmupCosine { warmup: 4, total: 12, floor: 0.1 };
        let met: Vec<String> = (0..14).map(|step| format!("{:.6}", cosine.factor(step))).collect();
        let wanted = [
            "0.250000", "0.500000", "0.750000", "1.000000", "1.000000", "0.965746", "0.868198", "0.722208", "0.550000",
            "0.377792", "0.231802", "0.134254", "0.100000", "0.100000",
        ];
        assert_eq!(met, wanted);
        assert_eq!(WarmupCosine { warmup: 0, total: 0, floor: 0.5 }.factor(0), 0.5);
    }

    #[test]
    fn a_plateau_halves_and_a_restored_schedule_goes_on() {
        let mut schedule = HalveOnPlateau::new(2);
        let mut factors = Vec::new();
        for loss in [3.0, 2.0, 2.0, 2.5, 1.9, f64::NAN, 1.9, 1.9, 1.9] {
            let mut copy = HalveOnPlateau::new(2);
            copy.restore(&schedule.state());
            assert_eq!(copy, schedule);
            schedule.observe(loss);
            factors.push(schedule.factor(0));
        }
        assert_eq!(factors, [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125]);
    }
}
