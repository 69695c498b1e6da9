//! `xc merge`: parts of a model that were trained apart become one model.

use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::NamesArgs;
use crate::error::CliError;
use serde_json::json;
use std::path::PathBuf;
use xc_train::fit::{self, Merged};

/// Merge repetitions of MACH models that were trained separately into one model
///
/// The parts must agree in seed, buckets, network, features and labels, and hold
/// different repetitions (`xc train mach --repetitions-range`). The result is byte for
/// byte the model that one training run of all repetitions gives.
///
/// With --labels, labels are added without training: they are scored by the buckets
/// that they fall into. The prime family of hash functions (--hash.family) has room up
/// to its prime, the others for any number.
///
/// Examples:
///   xc merge part1.model part2.model --output my.model
///   xc merge my.model --labels 120000 --output grown.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The model folders
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Folder of the merged model; an existing model is replaced when the new one is complete
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Number of labels, at least that of the parts
    #[arg(long, value_name = "L")]
    labels: Option<usize>,
    #[command(flatten)]
    names: NamesArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let names = args.names.read()?;
    if let Some(n_labels) = args.labels {
        args.names.check(names.as_ref(), n_labels)?;
    }
    let done = fit::merge(&args.parts, &args.output, args.labels, names, &context.fit())?;
    let Merged { repetitions, n_labels, n_bytes } = done;
    if context.json {
        let report = json!({ "repetitions": repetitions, "labels": n_labels, "model_bytes": n_bytes });
        return crate::output::print(&report.to_string());
    }
    let (output, n) = (args.output.display(), repetitions.len());
    context.note(format_args!("merge: saved {output}: {n} repetitions, {n_labels} labels, {}", format_bytes(n_bytes)));
    Ok(())
}
