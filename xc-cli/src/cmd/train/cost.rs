//! What the steps of a training took, stage by stage.

use serde_json::{Value, json};
use std::time::Duration;
use xc_train::StepCost;

/// The costs of some steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    sum: StepCost,
    n_steps: u64,
}

impl Costs {
    pub(super) fn add(&mut self, cost: StepCost) {
        self.sum += cost;
        self.n_steps += 1;
    }

    /// Whether the head counts what it does.
    fn is_counted(&self) -> bool {
        self.sum.n_scored > 0
    }

    fn stages(&self) -> [(&'static str, Duration); 6] {
        let StepCost { encode, sampling, score, backward, upkeep, .. } = self.sum;
        let (hash, query) = (sampling.hash, sampling.query);
        [
            ("encode", encode),
            ("hash", hash),
            ("query", query),
            ("score", score),
            ("backward", backward),
            ("upkeep", upkeep),
        ]
    }

    fn counts(&self) -> [(&'static str, u64); 9] {
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
            ("stale", sampling.n_stale),
        ]
    }

    /// Means over the steps: milliseconds of each stage, and counts. Nothing where the head does
    /// not count.
    pub(super) fn json(&self) -> Option<Value> {
        self.is_counted().then(|| {
            let n = self.n_steps as f64;
            let round = |value: f64| (value * 1e4).round() / 1e4;
            let times = self.stages().map(|(name, time)| (name.to_owned(), json!(round(1e3 * time.as_secs_f64() / n))));
            // How many labels are not followed yet is a state, not a sum.
            let mean = |name: &str, count: u64| if name == "stale" { count as f64 } else { round(count as f64 / n) };
            let counts = self.counts().map(|(name, count)| (name.to_owned(), json!(mean(name, count))));
            json!({ "ms": Value::Object(times.into_iter().collect()), "per_step": Value::Object(counts.into_iter().collect()) })
        })
    }

    /// The same for a person; counts of what did not happen are left out.
    pub(super) fn line(&self) -> Option<String> {
        self.is_counted().then(|| {
            let n = self.n_steps as f64;
            let times = self.stages().map(|(name, time)| format!("{name} {:.2}", 1e3 * time.as_secs_f64() / n));
            let counts = self.counts().into_iter().filter(|&(_, count)| count > 0);
            let counts = counts.map(|(name, count)| {
                let count = if name == "stale" { count as f64 } else { count as f64 / n };
                format!("{} {count:.0}", name.replace('_', " "))
            });
            let counts: Vec<String> = counts.collect();
            format!("a step: {} ms; {}", times.join(", "), counts.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_train::sampler::SampleCost;

    #[test]
    fn costs_are_means_over_steps() {
        let mut costs = Costs::default();
        assert!(costs.json().is_none() && costs.line().is_none());
        for (ms, n_stale) in [(1, 7), (3, 5)] {
            let sampling =
                SampleCost { query: Duration::from_millis(ms), n_stale, n_empty: 2, ..SampleCost::default() };
            costs.add(StepCost { sampling, n_scored: 100, n_read: 10 * ms, ..StepCost::default() });
        }
        let json = costs.json().unwrap();
        assert_eq!((&json["ms"]["query"], &json["per_step"]["rows_read"]), (&json!(2.0), &json!(20.0)));
        assert_eq!((&json["per_step"]["stale"], &json["per_step"]["empty"]), (&json!(5.0), &json!(2.0)));
        let line = costs.line().unwrap();
        assert!(
            line.contains("query 2.00, score 0.00") && line.ends_with("rows read 20, scored 100, empty 2, stale 5"),
            "{line}"
        );
    }
}
