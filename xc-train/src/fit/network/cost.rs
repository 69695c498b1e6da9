//! What the steps of a training run took, stage by stage.

use serde_json::{Map, Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use xc_buffer::{Cancel, Observer};
use xc_nn::StepCost;
use xc_nn::sampler::SampleCost;
use xc_nn::trainer::TrainEvent;

/// Adds up what steps cost.
#[derive(Debug, Default)]
pub(super) struct Counting(Mutex<Costs>);

impl Counting {
    /// What the steps of this run took.
    pub(super) fn costs(&self) -> Costs {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cancel for Counting {}

impl Observer<TrainEvent<'_>> for Counting {
    fn event(&self, event: TrainEvent<'_>) {
        if let TrainEvent::Step { cost, .. } = event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).add(*cost);
        }
    }
}

/// What some steps took, stage by stage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    sum: StepCost,
    n_steps: u64,
}

impl Costs {
    /// Adds those of a step.
    pub fn add(&mut self, cost: StepCost) {
        self.sum += cost;
        self.n_steps += 1;
    }

    /// Whether the head counts what it does.
    fn is_counted(&self) -> bool {
        self.sum.n_scored > 0
    }

    /// Whether a stage took more of a step than nothing, to two digits of a millisecond.
    fn is_shown(&self, time: Duration) -> bool {
        1e3 * time.as_secs_f64() >= 0.005 * self.n_steps as f64
    }

    fn stages(&self) -> [(&'static str, Duration); 8] {
        let StepCost { encode, sampling, score, backward, upkeep, .. } = self.sum;
        let (hash, query) = (sampling.hash, sampling.query);
        [
            ("encode", encode),
            ("hash", hash),
            ("search", sampling.search),
            ("query", query),
            ("score", score),
            ("backward", backward),
            ("upkeep", upkeep),
            ("check", sampling.check),
        ]
    }

    /// Share of the tables' keys that are not those of the rows, on the labels that were looked at.
    fn staleness(&self) -> Option<f64> {
        let SampleCost { n_checked, n_other, .. } = self.sum.sampling;
        (n_checked > 0).then(|| n_other as f64 / n_checked as f64)
    }

    fn counts(&self) -> [(&'static str, u64); 10] {
        let StepCost { sampling, n_read, n_written, n_scored, .. } = self.sum;
        [
            ("rows_read", n_read),
            ("rows_written", n_written),
            ("scored", n_scored),
            ("hashes", sampling.n_hashes),
            ("buckets", sampling.n_buckets),
            ("found", sampling.n_found),
            ("empty", sampling.n_empty),
            ("zero", sampling.n_zero),
            ("rehashed", sampling.n_rehashed),
            ("queue", sampling.n_stale),
        ]
    }

    /// Means over the steps: milliseconds of each stage, and counts. `wait` is a part of `upkeep`. Nothing
    /// where the head does not count.
    pub fn json(&self) -> Option<Value> {
        self.is_counted().then(|| {
            let n = self.n_steps as f64;
            let round = |value: f64| (value * 1e4).round() / 1e4;
            let times = self.stages().into_iter().chain([("wait", self.sum.sampling.wait)]);
            let times = times.map(|(name, time)| (name.to_owned(), json!(round(1e3 * time.as_secs_f64() / n))));
            // How many labels are not followed yet is a state, not a sum.
            let mean = |name: &str, count: u64| if name == "queue" { count as f64 } else { round(count as f64 / n) };
            let counts = self.counts().map(|(name, count)| (name.to_owned(), json!(mean(name, count))));
            let (times, counts): (Map<_, _>, Map<_, _>) = (times.collect(), counts.into_iter().collect());
            let mut out = json!({ "ms": times, "per_step": counts });
            if let Some(staleness) = self.staleness() {
                out["staleness"] = json!(round(staleness));
            }
            out
        })
    }

    /// The stages of a step of ASTRA as a table, as table 3 of its paper has them: milliseconds of a step,
    /// and their share. Where nothing is searched, stages that did not happen are left out.
    pub(super) fn table(&self, batch: usize) -> Option<String> {
        self.is_counted().then(|| {
            let StepCost { encode, sampling, score, backward, upkeep, .. } = self.sum;
            let SampleCost { hash, search, query, check, wait, .. } = sampling;
            let step: Duration = self.stages().iter().map(|(_, time)| *time).sum();
            let stages = [
                ("encode", encode, "vectors of the batch, their gradient, its change"),
                ("retrieve", search, "hard labels found"),
                ("list", hash + query + check, "uniform labels drawn, the list put together"),
                ("head", score + backward, "logits, loss, gradients, change of the rows"),
                ("refresh", upkeep.saturating_sub(wait), "index brought up to the rows"),
                ("wait", wait, "for a retrieval in parallel with training"),
                ("step", step, "all of it"),
            ];
            let ms = |time: Duration| 1e3 * time.as_secs_f64() / self.n_steps as f64;
            let share = |time: Duration| 100.0 * time.as_secs_f64() / step.as_secs_f64().max(f64::MIN_POSITIVE);
            let mut out = format!("{:<9} {:>11} {:>6}", "stage", "ms per step", "%");
            for (name, time, what) in
                stages.into_iter().filter(|(_, time, _)| sampling.n_found > 0 || self.is_shown(*time))
            {
                out += &format!("\n{name:<9} {:>11.2} {:>6.1}  {what}", ms(time), share(time));
            }
            let n = self.n_steps as f64;
            out += &format!("\na step scores {:.0} labels", self.sum.n_read as f64 / n);
            if sampling.n_found > 0 {
                out += &format!("; {:.1} are found for an instance", sampling.n_found as f64 / n / batch.max(1) as f64);
            }
            out
        })
    }

    /// The same for a person; stages and counts of what did not happen are left out.
    pub(super) fn line(&self) -> Option<String> {
        self.is_counted().then(|| {
            let n = self.n_steps as f64;
            let stages = self.stages().into_iter().filter(|(_, time)| self.is_shown(*time));
            let times = stages.map(|(name, time)| format!("{name} {:.2}", 1e3 * time.as_secs_f64() / n));
            let times: Vec<String> = times.collect();
            let counts = self.counts().into_iter().filter(|&(_, count)| count > 0);
            let counts = counts.map(|(name, count)| {
                let count = if name == "queue" { count as f64 } else { count as f64 / n };
                format!("{} {count:.0}", name.replace('_', " "))
            });
            let stale = self.staleness().map(|share| format!("{:.2} % of keys stale", 100.0 * share));
            let counts: Vec<String> = counts.chain(stale).collect();
            let times = if times.is_empty() { String::new() } else { times.join(", ") + " ms; " };
            format!("a step: {times}{}", counts.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_means_over_steps() {
        let mut costs = Costs::default();
        assert!(costs.json().is_none() && costs.line().is_none());
        for (ms, n_stale) in [(1, 7), (3, 5)] {
            let query = Duration::from_millis(ms);
            let sampling =
                SampleCost { query, n_stale, n_empty: 2, n_checked: 400, n_other: 10 * ms, ..SampleCost::default() };
            costs.add(StepCost { sampling, n_scored: 100, n_read: 10 * ms, ..StepCost::default() });
        }
        let json = costs.json().unwrap();
        assert_eq!((&json["ms"]["query"], &json["per_step"]["rows_read"]), (&json!(2.0), &json!(20.0)));
        assert_eq!((&json["per_step"]["queue"], &json["per_step"]["empty"]), (&json!(5.0), &json!(2.0)));
        assert_eq!(json["staleness"], 0.05);
        let line = costs.line().unwrap();
        assert!(
            line.starts_with("a step: query 2.00 ms; ")
                && line.ends_with("rows read 20, scored 100, empty 2, queue 5, 5.00 % of keys stale"),
            "{line}"
        );
    }
}
