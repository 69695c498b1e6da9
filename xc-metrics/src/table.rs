//! Reports for people: percent, one line a metric, one column a k.
//!
//! ```text
//! instances 1000   (12 without labels)
//!                 @1       @3       @5
//! P            71.20    55.10    44.00
//! ...
//! whole lists: MAP 60.03, MRR 81.50
//! threshold 0.16  precision  recall     F1
//! micro               73.10   70.20  71.62
//! ...
//! ```

use super::{
    bootstrap::Interval,
    metric::{Average, Decision, Metric},
    report::{Comparison, MetricReport},
};
use std::fmt;

/// A [`MetricReport`] to be printed.
#[derive(Clone, Copy, Debug)]
pub struct ReportTable<'a> {
    pub(super) report: &'a MetricReport,
}

/// A [`Comparison`] to be printed.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonTable<'a> {
    pub(super) comparison: &'a Comparison,
}

fn percent(value: f64) -> String {
    format!("{:.2}", 100.0 * value)
}

fn between(interval: Interval) -> String {
    format!("[{}, {}]", percent(interval.low), percent(interval.high))
}

fn average_name(average: Average) -> &'static str {
    match average {
        Average::Micro => "micro",
        Average::Macro => "macro",
        Average::Instance => "per instance",
    }
}

/// First column to the left, the others to the right, two blanks between.
fn write_columns(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|row| row.get(c)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    for row in rows {
        for (c, cell) in row.iter().enumerate() {
            match c {
                0 if row.len() == 1 => write!(f, "{cell}")?,
                0 => write!(f, "{cell:<0$}", widths[0])?,
                _ => write!(f, "  {cell:>0$}", widths[c])?,
            }
        }
        writeln!(f)?;
    }
    Ok(())
}

impl MetricReport {
    /// The report for people, in percent.
    pub fn table(&self) -> ReportTable<'_> {
        ReportTable { report: self }
    }
}

impl Comparison {
    /// The comparison for people, in percent.
    pub fn table(&self) -> ComparisonTable<'_> {
        ComparisonTable { comparison: self }
    }
}

impl fmt::Display for ReportTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (report, counts) = (self.report, self.report.counts());
        write!(f, "instances {}", counts.instances)?;
        let notes: Vec<String> = [
            (counts.without_labels, "without labels"),
            (counts.without_predictions, "without predictions"),
            (counts.excluded, "more excluded"),
        ]
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
        if !notes.is_empty() {
            write!(f, " ({})", notes.join(", "))?;
        }
        writeln!(f, "; labels {} ({} in the truth)", counts.labels, counts.labels_in_truth)?;
        if counts.unknown_labels > 0 {
            let (labels, pairs) = (counts.unknown_labels, counts.unknown_pairs);
            writeln!(f, "unknown labels in the truth: {labels}, in {pairs} (instance, label) pairs; always missed")?;
        }
        if counts.filtered_truth + counts.filtered_predictions > 0 {
            let (truth, predicted) = (counts.filtered_truth, counts.filtered_predictions);
            writeln!(f, "ignored pairs: {truth} in the truth, {predicted} in the predictions")?;
        }
        if let Some(bootstrap) = report.bootstrap() {
            let (level, resamples, seed) = (100.0 * bootstrap.level, bootstrap.resamples, bootstrap.seed);
            writeln!(f, "intervals: {level} % of {resamples} bootstrap resamples, seed {seed}")?;
        }
        let mut ks: Vec<usize> = report.values().iter().filter_map(|v| v.metric.k()).collect();
        ks.sort_unstable();
        ks.dedup();
        let mut rows = vec![std::iter::once("%".to_string()).chain(ks.iter().map(|k| format!("@{k}"))).collect()];
        let mut whole = Vec::new();
        let mut last = None;
        let mut decided: Vec<Vec<String>> = Vec::new();
        for value in report.values() {
            let family = value.metric.family();
            let cell = match value.interval {
                Some(interval) => format!("{} {}", percent(value.value), between(interval)),
                None => percent(value.value),
            };
            if let Metric::AtThreshold(average, decision) = value.metric {
                if decision == Decision::Precision {
                    decided.push(vec![average_name(average).to_owned()]);
                }
                decided.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
                continue;
            }
            if value.metric.k().is_none() {
                whole.push(format!("{family} {cell}"));
                continue;
            }
            if last.replace(family) != Some(family) {
                rows.push(vec![family.to_string()]);
            }
            if let Some(row) = rows.last_mut() {
                row.push(cell);
            }
        }
        write_columns(f, &rows)?;
        writeln!(f, "whole lists: {}", whole.join(", "))?;
        let Some(threshold) = report.threshold() else { return Ok(()) };
        let names = Decision::ALL.map(|decision| decision.name().to_owned());
        decided.insert(0, std::iter::once(format!("threshold {threshold}")).chain(names).collect());
        write_columns(f, &decided)
    }
}

impl fmt::Display for ComparisonTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (comparison, bootstrap) = (self.comparison, self.comparison.bootstrap());
        let (level, resamples, seed) = (100.0 * bootstrap.level, bootstrap.resamples, bootstrap.seed);
        let n = comparison.instances();
        writeln!(f, "instances {n}; paired bootstrap: {level} % of {resamples} resamples, seed {seed}")?;
        let header = ["%", "value", "other", "difference", "interval"];
        let mut rows = vec![header.map(str::to_string).to_vec()];
        rows.extend(comparison.differences().iter().map(|d| {
            vec![d.metric.to_string(), percent(d.value), percent(d.other), percent(d.difference), between(d.interval)]
        }));
        write_columns(f, &rows)
    }
}
