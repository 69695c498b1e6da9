//! `xc merge`: parts of a model that were trained apart become one model.

use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::NamesArgs;
use crate::error::CliError;
use serde_json::json;
use std::path::PathBuf;
use xc_options::data::{Merged, merge};

/// Merge parts of a model that were trained separately into one model
///
/// The parts of trees (`xc train tree --part I/N`) are all N of them, of the same data and
/// settings, in any order.
///
/// Those of MACH (`xc train mach --part I/N` or --repetitions-range) must agree in seed,
/// buckets, network, features and labels, and hold different repetitions.
///
/// The result is byte for byte the model that one training run gives.
///
/// With --labels, labels are added to MACH models without training: they are scored by the buckets
/// that they fall into. The prime family of hash functions (--hash.family) has room up
/// to its prime, the others for any number.
///
/// Examples:
///   xc merge part-0 part-1 part-2 --output my.model
///   xc merge my.model --labels 120000 --output grown.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The folders of the parts
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
    let done = merge(&args.parts, &args.output, args.labels, names, &context.fit())?;
    let Merged { repetitions, trees, n_labels, n_bytes } = done;
    let mut report = json!({ "labels": n_labels, "model_bytes": n_bytes });
    let what = if trees > 0 {
        report["trees"] = json!(trees);
        format!("{trees} trees")
    } else {
        report["repetitions"] = json!(repetitions);
        format!("{} repetitions", repetitions.len())
    };
    if context.json {
        return crate::output::print(&report.to_string());
    }
    let output = args.output.display();
    context.note(format_args!("merge: saved {output}: {what}, {n_labels} labels, {}", format_bytes(n_bytes)));
    Ok(())
}
