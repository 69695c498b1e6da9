//! How long a search may take.

use super::rungs::{DECIDES_FROM, Rung};
use std::time::Duration;

/// Share of the time after which no new settings are tried, so that those which are good can go on.
const OPEN: f64 = 0.7;

/// Seconds that runs took and will take.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    limit: Option<f64>,
    /// Whether a model of all rows is trained in the end.
    trains_model: bool,
    /// Rows that each rung learns from, as a share.
    work: Vec<f64>,
    /// Runs so far: trial, rung, seconds.
    runs: Vec<(usize, usize, f64)>,
}

impl Clock {
    pub(super) fn new(limit: Option<Duration>, trains_model: bool, rungs: &[Rung]) -> Self {
        let work = rungs.iter().map(|rung| rung.work).collect();
        Self { limit: limit.map(|limit| limit.as_secs_f64()), trains_model, work, runs: Vec::new() }
    }

    pub(super) fn add(&mut self, trial: usize, rung: usize, seconds: f64) {
        self.runs.push((trial, rung, seconds));
    }

    /// Seconds of all runs, those of earlier sessions included.
    pub(super) fn spent(&self) -> f64 {
        self.runs.iter().map(|run| run.2).sum()
    }

    pub(super) fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// Seconds that a trial will take on a rung: as its latest run, or the mean of others where it has
    /// none, for each row that is learned from.
    fn foreseen(&self, trial: usize, work: f64, rung: usize) -> f64 {
        let latest = self.runs.iter().rev().find(|run| run.0 == trial);
        if let Some(&(_, rung, seconds)) = latest {
            return seconds / self.work[rung] * work;
        }
        let alike: Vec<f64> = self.runs.iter().filter(|run| run.1 == rung).map(|run| run.2).collect();
        let n = alike.len().max(1) as f64;
        alike.iter().sum::<f64>() / n / self.work[rung] * work
    }

    /// Seconds for the final model, if it is that of a trial.
    fn reserve(&self, trial: usize) -> f64 {
        if self.trains_model { self.foreseen(trial, 1.0, 0) } else { 0.0 }
    }

    /// Whether a run fits in beside the final model.
    pub(super) fn has_time_for(&self, trial: usize, rung: usize) -> bool {
        let needed = || self.foreseen(trial, self.work[rung], rung) + self.reserve(0).max(self.reserve(trial));
        self.limit.is_none_or(|limit| self.spent() + needed() <= limit)
    }

    /// Whether new settings may be tried: once they may not, those that are there go on.
    pub(super) fn is_open(&self) -> bool {
        let finals = 2.0 * self.foreseen(0, self.work[DECIDES_FROM], DECIDES_FROM);
        let has_finals = self.runs.iter().any(|run| run.0 > 0 && run.1 >= DECIDES_FROM);
        let finals = if has_finals { 0.0 } else { finals };
        self.limit.is_none_or(|limit| self.spent() <= OPEN * limit && self.spent() + finals + self.reserve(0) <= limit)
    }

    /// The least limit with which one trial could be set against the default settings, once these were
    /// run on the lowest rung; nothing where the limit is enough.
    pub(super) fn too_short(&self) -> Option<f64> {
        let one = |work: f64| self.foreseen(0, work, 0);
        let needed = self.spent() + one(self.work[0]) + 2.0 * one(self.work[DECIDES_FROM]) + self.reserve(0);
        self.limit.and_then(|limit| (needed > limit).then_some(needed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rungs::rungs;
    use super::*;

    #[test]
    fn time_is_kept_for_the_finals_and_the_final_model() {
        let rungs = rungs(false, None, 0).unwrap();
        let mut clock = Clock::new(Some(Duration::from_secs(100)), true, &rungs);
        assert!(clock.has_time_for(0, 0));
        clock.add(0, 0, 5.0);
        // 5 for a third: 15 for all rows, 12 for a part.
        assert_eq!(clock.too_short(), None);
        assert!(clock.is_open() && clock.has_time_for(0, 1) && clock.has_time_for(0, 3));
        clock.add(1, 0, 57.0);
        // 24 for two finals and 15 for the model are no longer left.
        assert!(!clock.is_open() && clock.has_time_for(0, 2) && !clock.has_time_for(1, 1));
        let mut short = Clock::new(Some(Duration::from_secs(20)), true, &rungs);
        short.add(0, 0, 5.0);
        assert_eq!(short.too_short().map(f64::round), Some(5.0 + 5.0 + 24.0 + 15.0));
        let mut endless = Clock::new(None, true, &rungs);
        endless.add(0, 0, 1e9);
        assert!(endless.is_open() && endless.has_time_for(0, 3) && endless.too_short().is_none());
    }
}
