//! `xc calibrate`: probabilities of a model's scores, and thresholds, from rows it was not trained on.

use crate::context::Context;
use crate::data::HeldOutArgs;
use crate::error::CliError;
use crate::measure::Meter;
use crate::model::{OpenArgs, beside};
use crate::output;
use crate::settings::{Chosen, OfTable};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use xc_metrics::{Average, Decision, Metric, MetricReport};
use xc_model::calibrate::{Method, Reliability, ThresholdKind};
use xc_options::data::FittedTo;
use xc_options::plot::{Axis, Chart, Picture, Scale, Series};
use xc_options::settings::{Table, fitted};
use xc_store::ContainerWriter;
use xc_store::atomic::parent_of;
use xc_train::calibrate::{CalibrateParams, FittedCurve};

/// Calibrate a model's scores to probabilities, and find thresholds
///
/// Fits a curve that maps scores to probabilities, on rows that the model was not trained on, and
/// stores it in the model: from then on `xc predict` returns probabilities (raw scores with
/// --raw-scores). Ranked lists keep their order. Three kinds of thresholds are found on the same
/// rows: one for all labels at the largest micro F1, one for all labels at the largest macro F1,
/// and one for each label. `xc predict --threshold micro|macro|label` returns the labels that
/// reach them.
///
/// A model stores a hash of each training row. If more than 1% of the validation rows are among
/// them, they are refused, or left out with --held-out: --validation may then be the training file
/// of a model trained with --validation-fraction.
///
/// The table shows how often answers of a given score are right, before and after calibration. Its
/// figures are cross-fitted: each row is evaluated by a fit on the other folds.
///
/// Examples:
///   xc train tree --train train.txt --validation-fraction 0.1 --model my.model
///   xc calibrate --model my.model --validation train.txt --held-out
///   xc predict --model my.model --input test.txt --threshold micro --output answers.txt
///   xc calibrate --model my.model --validation dev.txt --method platt --output calibrated.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("id-field", |arg| arg.hide(true)))]
pub(crate) struct Args {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Folder of the calibrated model [default: the model's own, which is replaced when the new one
    /// is complete]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    settings: Chosen<OfCurve>,
    /// Reliability diagram, SVG [default: calibration.svg in MODEL.log]
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    #[command(flatten)]
    rows: HeldOutArgs,
}

/// How the curve is fitted.
#[derive(Clone, Copy, Debug)]
struct OfCurve;

impl OfTable for OfCurve {
    const TABLE: Table = fitted::CALIBRATION;
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    let destination = args.output.as_ref().unwrap_or(&args.model);
    ContainerWriter::check(destination)?;
    let picture = match &args.picture {
        Some(path) => path.clone(),
        None => beside(destination, "log").join("calibration.svg"),
    };
    output::check_in_folder(&picture)?;
    output::check(Path::new("-"))?;
    let params = CalibrateParams { seed: context.seed, ..fitted::calibration_params(&args.settings.choices)? };
    args.rows.check()?;
    let model = OpenArgs::default().open_as_saved(&args.model, context)?;
    context.options.refuse(&["id-field"], "ids of instances are not read")?;
    let rows = args.rows.rows(model.input())?;
    let fit = context.fit();
    let done = context.on_threads(|| xc_options::data::calibrate(&model, &rows, &params, destination, &fit))?;
    draw(&done.fitted, destination, &picture)?;
    let report = Report { method: params.method, destination, done: &done, fitted: &done.fitted, picture: &picture };
    report.print(&meter, context)
}

/// Draws shares of true labels over scores.
fn draw(fitted: &FittedCurve, model: &Path, path: &Path) -> Result<(), CliError> {
    let before = fitted.before.as_ref().map(Reliability::points).unwrap_or_default();
    let after = fitted.after.points();
    let series = [
        Series { name: "perfect", points: &[(0.0, 0.0), (1.0, 1.0)] },
        Series { name: "before", points: &before },
        Series { name: "after (cross-fitted)", points: &after },
    ];
    let series = series.into_iter().filter(|series| !series.points.is_empty()).collect();
    let linear = |name| Axis { name, scale: Scale::Linear };
    let title = format!("Reliability of {}", model.display());
    let charts = vec![Chart { y: linear("share of true labels"), series }];
    let picture = Picture { title: &title, x: linear("mean score"), charts };
    output::make_folder(parent_of(path))?;
    picture.write(path).map_err(|e| CliError::unwritable(&e))
}

/// What is printed.
struct Report<'a> {
    method: Method,
    destination: &'a Path,
    done: &'a FittedTo<FittedCurve>,
    fitted: &'a FittedCurve,
    picture: &'a Path,
}

impl Report<'_> {
    fn print(&self, meter: &Meter, context: &Context) -> Result<(), CliError> {
        if context.json {
            return output::print(&self.json(meter).to_string());
        }
        context.note(format_args!(
            "calibrate: saved {}: {} curve from {} instances, picture {}, in {:.1} s",
            self.destination.display(),
            self.method.name(),
            self.done.instances,
            self.picture.display(),
            meter.usage().wall_s
        ));
        output::print(&self.table())
    }

    fn json(&self, meter: &Meter) -> Value {
        let (fitted, usage) = (self.fitted, meter.usage());
        let decisions = fitted.decisions.iter().map(|(kind, report)| {
            let values = report.values().iter().filter(|v| matches!(v.metric, Metric::AtThreshold(..)));
            let values: serde_json::Map<_, _> = values.map(|v| (v.metric.to_string(), json!(v.value))).collect();
            (kind.name().to_owned(), Value::Object(values))
        });
        json!({
            "wall_s": usage.wall_s,
            "cpu_s": usage.cpu_s,
            "peak_rss_bytes": usage.peak_rss_bytes,
            "instances": self.done.instances,
            "left_out": self.done.left_out,
            "answers": fitted.n_pairs,
            "true_answers": fitted.n_true,
            "method": self.method.name(),
            "before": fitted.before,
            "after": fitted.after,
            "thresholds": {
                "micro": fitted.calibration.thresholds.micro,
                "macro": fitted.calibration.thresholds.macro_,
                "labels_of_their_own": fitted.n_own,
            },
            "decisions": decisions.collect::<serde_json::Map<_, _>>(),
        })
    }

    fn table(&self) -> String {
        let fitted = self.fitted;
        let mut text = format!(
            "{} instances, {} answers, {} of them true\n\n{:<12}{:>27}{:>33}\n{:<12}",
            self.done.instances, fitted.n_pairs, fitted.n_true, "", "before", "after (cross-fitted)", "score"
        );
        let columns = format!("{:>9}{:>9}{:>9}", "count", "mean", "true");
        text += &format!("{columns}      {columns}\n");
        let cells = |of: Option<&Reliability>, at: usize| match of.and_then(|of| of.bins.get(at)) {
            Some(bin) if bin.count > 0 => {
                format!("{:>9}{:>9.3}{:>9.3}", bin.count, bin.mean_score, bin.share_true)
            }
            Some(_) => format!("{:>9}{:>9}{:>9}", 0, "", ""),
            None => format!("{:>9}{:>9}{:>9}", "-", "-", "-"),
        };
        for at in 0..fitted.after.bins.len() {
            let range = format!("{:.1} to {:.1}", at as f64 / 10.0, (at + 1) as f64 / 10.0);
            text +=
                &format!("{range:<12}{}      {}\n", cells(fitted.before.as_ref(), at), cells(Some(&fitted.after), at));
        }
        let error = |of: &Reliability| format!("{:.4}", of.expected_calibration_error);
        let before = fitted.before.as_ref().map_or_else(|| "-".to_owned(), error);
        text += &format!("expected calibration error: {before} before, {} after\n", error(&fitted.after));
        if fitted.before.is_none() {
            text += "(scores do not lie between 0 and 1, so there is no table of them)\n";
        }
        text += &format!(
            "\n{:<12}{:>11}{:>10}{:>10}{:>10}{:>10}   cross-fitted, %\n",
            "thresholds", "probability", "micro P", "micro R", "micro F1", "macro F1"
        );
        for (kind, report) in &fitted.decisions {
            let thresholds = &fitted.calibration.thresholds;
            let at = match kind {
                ThresholdKind::Micro => format!("{:.4}", thresholds.micro),
                ThresholdKind::Macro => format!("{:.4}", thresholds.macro_),
                ThresholdKind::Label => format!("{} own", fitted.n_own),
            };
            text += &format!("{:<12}{at:>11}", kind.name());
            for metric in SHOWN {
                text += &format!("{:>10.2}", 100.0 * value(report, metric));
            }
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        text
    }
}

const SHOWN: [Metric; 4] = [
    Metric::AtThreshold(Average::Micro, Decision::Precision),
    Metric::AtThreshold(Average::Micro, Decision::Recall),
    Metric::AtThreshold(Average::Micro, Decision::F1),
    Metric::AtThreshold(Average::Macro, Decision::F1),
];

fn value(report: &MetricReport, metric: Metric) -> f64 {
    report.value(metric).unwrap_or(0.0)
}
