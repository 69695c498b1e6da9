//! `xc blend`: models as one model, weighted by rows that none of them was trained on.

use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::HeldOutArgs;
use crate::error::{CliError, chain};
use crate::measure::Meter;
use crate::model::OpenArgs;
use crate::output;
use crate::settings::{Chosen, OfTable};
use crate::written::is_same;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use xc_metrics::{Metric, MetricReport};
use xc_model::Model;
use xc_options::data::FittedTo;
use xc_options::settings::{Table, fitted};
use xc_store::ContainerWriter;
use xc_train::blend::{FitParams, FittedRule};

/// Blend several models into one
///
/// Combines models of any kind, with the same labels and the same input, into one model folder
/// that `xc predict` uses like any other: each member makes its own features and answers, and a
/// rule that is fitted here merges the answers into one ranking. Scores are probabilities.
///
/// The rule is fitted on rows that no member was trained on, since members are more often right
/// on their training rows. A model stores a hash of each training row; if more than 1% of the
/// validation rows are among them, the blend is refused, or these rows are left out (--held-out).
/// Models trained with the same --validation-fraction and --seed (or --split-seed) hold out the
/// same rows of a file, whatever their kinds.
///
/// --refit-members replaces the members that the rule was fitted with by models trained again on
/// all rows, in the same order.
///
/// Examples:
///   xc train tree --train train.txt --validation-fraction 0.1 --model tree.part
///   xc train mach --train train.txt --validation-fraction 0.1 --buckets 1000 --model mach.part
///   xc blend tree.part mach.part --validation train.txt --held-out --output blend.model
///   xc blend tree.part mach.part --validation train.txt --held-out
///     --refit-members tree.all mach.all --output blend.model
///   xc predict --model blend.model --input test.txt --output answers.txt
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Model folders of the members
    #[arg(value_name = "MODEL", required = true)]
    members: Vec<PathBuf>,
    /// Folder of the blend; an existing blend is replaced when the new one is complete
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Members trained again on all rows, one for each member and in the same order: they answer in the blend, with the
    /// rule that was fitted to the original members
    #[arg(long, value_name = "MODEL", num_args = 1..)]
    refit_members: Option<Vec<PathBuf>>,
    #[command(flatten)]
    settings: Chosen<OfBlend>,
    #[command(flatten)]
    rows: HeldOutArgs,
}

/// How the rule is fitted.
#[derive(Clone, Copy, Debug)]
struct OfBlend;

impl OfTable for OfBlend {
    const TABLE: Table = fitted::BLEND;
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    ContainerWriter::check(&args.output)?;
    output::check(Path::new("-"))?;
    let params = FitParams { seed: context.seed, ..fitted::blend_params(&args.settings.choices)? };
    params.check().map_err(|e| CliError::usage(chain(&e)))?;
    let named = args.members.iter().chain(args.refit_members.iter().flatten());
    if let Some(path) = named.clone().find(|path| is_same(path, &args.output)) {
        let (path, output) = (path.display(), args.output.display());
        return Err(CliError::usage(format_args!(
            "--output {output}: is the member {path}; another folder is expected"
        )));
    }
    args.rows.check()?;
    let open = |paths: &[PathBuf]| -> Result<Vec<Model>, CliError> {
        paths.iter().map(|path| OpenArgs::default().open_as_saved(path, context)).collect()
    };
    let members = open(&args.members)?;
    let refits = args.refit_members.as_deref().map(open).transpose()?;
    let rows = args.rows.rows(members[0].input())?;
    let fit = context.fit();
    let done = context.on_threads(|| xc_options::data::blend(members, refits, &rows, &params, &args.output, &fit))?;
    report(args, &done, &meter, context)
}

const SHOWN: [Metric; 3] = [Metric::Precision(1), Metric::Precision(3), Metric::Precision(5)];

fn report(
    args: &Args,
    FittedTo { fitted, instances, left_out }: &FittedTo<FittedRule>,
    meter: &Meter,
    context: &Context,
) -> Result<(), CliError> {
    let bytes = OpenArgs::default().open_as_saved(&args.output, context)?.describe().n_bytes;
    let (usage, rule) = (meter.usage(), fitted.rule.kind());
    if context.json {
        let of_member = |(path, metrics): (&PathBuf, &MetricReport)| {
            let mut map = as_map(json!(metrics));
            map.insert("model".to_owned(), json!(path.display().to_string()));
            Value::Object(map)
        };
        let report = json!({
            "wall_s": usage.wall_s,
            "cpu_s": usage.cpu_s,
            "peak_rss_bytes": usage.peak_rss_bytes,
            "model_bytes": bytes,
            "instances": instances,
            "left_out": left_out,
            "candidates": fitted.n_candidates,
            "true_candidates": fitted.n_true,
            "rule": rule,
            "rules": fitted.judged,
            "members": args.members.iter().zip(&fitted.members).map(of_member).collect::<Vec<_>>(),
        });
        return output::print(&report.to_string());
    }
    let mut text = format!("{:<28}", "on the validation instances");
    SHOWN.iter().for_each(|metric| text += &format!("{:>8}", metric.to_string()));
    let mut line = |name: String, metrics: &MetricReport| {
        text += &format!("\n{name:<28}");
        SHOWN.iter().for_each(|&m| text += &format!("{:>8.2}", 100.0 * metrics.value(m).unwrap_or(0.0)));
    };
    for (path, metrics) in args.members.iter().zip(&fitted.members) {
        line(path.display().to_string(), metrics);
    }
    for judged in &fitted.judged {
        let mark = if judged.rule == rule { " *" } else { "" };
        line(format!("blend: {}{mark}", judged.rule), &judged.metrics);
    }
    context.note(format_args!(
        "blend: saved {}: {} members, {rule}, {}, in {:.1} s",
        args.output.display(),
        args.members.len(),
        format_bytes(bytes),
        usage.wall_s
    ));
    output::print(&text)
}

fn as_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
