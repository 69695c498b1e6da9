//! What a search found, as it is shown.

use crate::context::Context;
use crate::error::CliError;
use crate::output;
use serde_json::{Value, json};
use std::path::Path;
use xc_options::plot::{Axis, Chart, Picture, Scale, Series};
use xc_options::tuning::{BEST, Found, FoundPart, PICTURE, options_line};

/// Writes the picture of the trials.
pub(super) fn draw(found: &Found, folder: &Path) -> Result<(), CliError> {
    let highest = found.rows.iter().map(|row| row.rung).max().unwrap_or_default();
    let of = |rung: usize| -> Vec<(f64, f64)> {
        let mut spent = 0.0;
        let mut points = Vec::new();
        let mut best = f64::NEG_INFINITY;
        for row in &found.rows {
            spent += row.wall_s;
            if let (true, Ok(value)) = (row.rung == rung, &row.value) {
                best = best.max(100.0 * value);
                points.push((spent, best));
            }
        }
        points
    };
    let lines: Vec<(String, Vec<(f64, f64)>)> = (0..=highest)
        .filter_map(|rung| Some((found.rows.iter().find(|row| row.rung == rung)?.name.clone(), of(rung))))
        .collect();
    let series = lines.iter().map(|(name, points)| Series { name, points }).collect();
    let linear = |name| Axis { name, scale: Scale::Linear };
    let metric = format!("best {} so far, %", found.metric);
    let title = format!("xc tune {}: {} trials", found.kind, found.n_trials);
    let charts = vec![Chart { y: linear(&metric), series }];
    let picture = Picture { title: &title, x: linear("seconds"), charts };
    picture.write(&folder.join(PICTURE)).map_err(|e| CliError::unwritable(&e))
}

/// Says what was found.
pub(super) fn print(found: &Found, folder: &Path, context: &Context) -> Result<(), CliError> {
    if context.json {
        let options = found.changes.iter().map(|(name, value)| (name.clone(), json!(value)));
        let report = json!({
            "metric": found.metric.to_string(),
            "value": found.values[0],
            "default": found.values[1],
            "difference": found.winner.against_default.map(|paired| paired.difference),
            "standard_error": found.winner.against_default.map(|paired| paired.standard_error),
            "trial": found.winner.trial,
            "judged_by": found.decided_by,
            "options": Value::Object(options.collect()),
            "trials": found.n_trials,
            "runs": found.rows.len(),
            "wall_s": found.spent,
        });
        return output::print(&report.to_string());
    }
    context.note(format_args!(
        "tune {}: {} trials; {}; {}",
        found.kind,
        found.n_trials,
        options_line(&found.changes),
        folder.join(BEST).display()
    ));
    output::print(&found.text())
}

/// Says what a part of a round did.
pub(super) fn print_part(found: &FoundPart, kind: &str, folder: &Path, context: &Context) -> Result<(), CliError> {
    let FoundPart { part, judged_by, n_trials, rows } = found;
    if context.json {
        let report = json!({
            "part": part.to_string(),
            "judged_by": judged_by,
            "trials": n_trials,
            "runs": rows.len(),
            "wall_s": rows.iter().map(|row| row.wall_s).sum::<f64>(),
        });
        return output::print(&report.to_string());
    }
    let (n, folder) = (rows.len(), folder.display());
    context.note(format_args!("tune {kind}: part {part}: {n} of {n_trials} trials by {judged_by}; {folder}"));
    Ok(())
}
