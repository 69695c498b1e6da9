//! `xc bench curves`: several training runs in one picture.

use crate::context::Context;
use crate::data::without_mark;
use crate::error::{CliError, chain};
use crate::output;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use xc_metrics::Metric;
use xc_options::plot::{Axis, Chart, Picture, Scale, Series};

/// Plot the validation curves of several training runs
///
/// Reads the log.jsonl of each run (MODEL.log, or the file itself) and plots a metric and the
/// loss on the validation instances against steps, epochs or training time: wall-clock seconds
/// or seconds of all cores, without validation. A table shows the best value of each run and
/// where it was reached. Logs of one name are runs of several seeds: curves are their means, and
/// the table has the mean and the standard deviation of the best values.
///
/// Examples:
///   xc bench curves --log a.model.log --log b.model.log --output race.svg
///   xc bench curves --log all=dense.log --log lists=lns.log --x wall --log-x --output race.svg
///   xc bench curves --log lns=seed0.log --log lns=seed1.log --log lns=seed2.log --output lns.svg
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Log of a training run, with a name for the plot if NAME= comes before; repeat for each run
    #[arg(long = "log", value_name = "[NAME=]PATH", required = true)]
    logs: Vec<String>,
    /// What the x axis shows
    #[arg(long, value_name = "X", value_enum, default_value_t = Over::Step)]
    x: Over,
    /// A logarithmic x axis
    #[arg(long)]
    log_x: bool,
    /// Metric to plot, e.g. P@1
    #[arg(long, value_name = "METRIC", default_value = "P@1")]
    metric: Metric,
    /// File for the plot, SVG
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Over {
    /// Steps
    Step,
    /// Epochs
    Epoch,
    /// Wall-clock seconds
    Wall,
    /// Seconds of all cores
    Cpu,
}

impl Over {
    fn axis(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Epoch => "epoch",
            Self::Wall => "time of the training, seconds",
            Self::Cpu => "time of all cores, seconds",
        }
    }

    /// The place of a validation, if its line says it.
    fn of(self, line: &Value) -> Option<f64> {
        match self {
            Self::Step => line["step"].as_f64(),
            // Epochs are counted from 0, and validated at their end.
            Self::Epoch => line["epoch"].as_f64().map(|epoch| epoch + 1.0),
            Self::Wall => line["wall_s"].as_f64(),
            Self::Cpu => line["cpu_s"].as_f64(),
        }
    }
}

/// The validations of a training run.
struct Run {
    metric: Vec<(f64, f64)>,
    loss: Vec<(f64, f64)>,
}

/// The runs of one name.
struct Curve {
    name: String,
    metric: Vec<(f64, f64)>,
    loss: Vec<(f64, f64)>,
    /// Where each run was best first, and the value.
    best: Vec<(f64, f64)>,
}

impl Run {
    fn read(argument: &str, args: &Args) -> Result<(String, Self), CliError> {
        let (name, path) = match argument.split_once('=') {
            Some((name, path)) if !name.contains('/') => (name.to_owned(), Path::new(path)),
            _ => (argument.to_owned(), Path::new(argument)),
        };
        let file = if path.is_dir() { path.join("log.jsonl") } else { path.to_owned() };
        let shown = file.display();
        let text = std::fs::read_to_string(&file).map_err(|e| {
            let e = chain(&e);
            CliError::usage(format_args!(
                "{shown}: {e}; expected the log of a training run: MODEL.log, or its log.jsonl"
            ))
        })?;
        let mut curve = Self { metric: Vec::new(), loss: Vec::new() };
        for (number, line) in without_mark(&text).lines().enumerate() {
            let line: Value = serde_json::from_str(line)
                .map_err(|e| CliError::usage(format_args!("{shown}: line {}: {}", number + 1, chain(&e))))?;
            let (true, Some(x)) = (line["event"] == "validation", args.x.of(&line)) else { continue };
            curve.loss.extend(line["loss"].as_f64().map(|loss| (x, loss)));
            curve.metric.extend(line[args.metric.to_string()].as_f64().map(|value| (x, value)));
        }
        if curve.metric.is_empty() {
            let metric = args.metric;
            return Err(CliError::usage(format_args!(
                "{shown}: no validation with {metric} and its {}; expected the log of a training run with --validation \
                 or --validation-fraction",
                args.x.axis()
            )));
        }
        Ok((name, curve))
    }

    /// The best value and where it was reached first.
    fn best(&self) -> (f64, f64) {
        let best = |a: (f64, f64), b: (f64, f64)| if b.1 > a.1 { b } else { a };
        self.metric.iter().copied().fold((f64::NAN, f64::NEG_INFINITY), best)
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

impl Curve {
    fn of(name: String, runs: &[Run]) -> Self {
        let means = |points: fn(&Run) -> &[(f64, f64)]| {
            let shortest = runs.iter().map(|run| points(run).len()).min().unwrap_or(0);
            let at = |i: usize| (mean(runs.iter().map(|r| points(r)[i].0)), mean(runs.iter().map(|r| points(r)[i].1)));
            (0..shortest).map(at).collect()
        };
        let best = runs.iter().map(Run::best).collect();
        Self { name, metric: means(|run| &run.metric), loss: means(|run| &run.loss), best }
    }

    /// Where the runs are best, and how good: means.
    fn best(&self) -> (f64, f64) {
        (mean(self.best.iter().map(|best| best.0)), mean(self.best.iter().map(|best| best.1)))
    }

    /// The standard deviation of the best values, of two runs and more.
    fn deviation(&self) -> Option<f64> {
        let (n, mean) = (self.best.len(), self.best().1);
        let squares: f64 = self.best.iter().map(|best| (best.1 - mean).powi(2)).sum();
        (n > 1).then(|| (squares / (n - 1) as f64).sqrt())
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    output::check(&args.output)?;
    let mut runs: Vec<(String, Vec<Run>)> = Vec::new();
    for log in &args.logs {
        let (name, run) = Run::read(log, args)?;
        match runs.iter_mut().find(|(known, _)| *known == name) {
            Some((_, runs)) => runs.push(run),
            None => runs.push((name, vec![run])),
        }
    }
    let curves: Vec<Curve> = runs.into_iter().map(|(name, runs)| Curve::of(name, &runs)).collect();
    let metric = args.metric.to_string();
    let linear = |name| Axis { name, scale: Scale::Linear };
    let lines = |points: fn(&Curve) -> &[(f64, f64)]| {
        curves.iter().map(|curve| Series { name: &curve.name, points: points(curve) }).collect()
    };
    let charts = vec![
        Chart { y: linear(&metric), series: lines(|curve| &curve.metric) },
        Chart { y: linear("loss"), series: lines(|curve| &curve.loss) },
    ];
    let scale = if args.log_x { Scale::Log } else { Scale::Linear };
    let x = Axis { name: args.x.axis(), scale };
    Picture { title: "Validation", x, charts }.write(&args.output).map_err(|e| CliError::unwritable(&e))?;
    if context.json {
        let best = |curve: &Curve| {
            let ((at, best), runs) = (curve.best(), curve.best.len());
            json!({ "name": curve.name, "best": best, "at": at, "runs": runs, "deviation": curve.deviation() })
        };
        let report =
            json!({ "metric": metric, "x": args.x.axis(), "trainings": curves.iter().map(best).collect::<Vec<_>>() });
        return output::print(&report.to_string());
    }
    let width = curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0).max("training".len());
    let mut text = format!("{:<width$}  {:>8}  at {}\n", "training", format!("best {metric}"), args.x.axis());
    for curve in &curves {
        let (at, best) = curve.best();
        text += &format!("{:<width$}  {:>8.2}  {at:.1}", curve.name, 100.0 * best);
        if let Some(deviation) = curve.deviation() {
            text += &format!("  ± {:.2} over {} runs", 100.0 * deviation, curve.best.len());
        }
        text += "\n";
    }
    output::print(text.trim_end())
}
