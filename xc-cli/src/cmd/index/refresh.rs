//! `xc index refresh`.

use super::{Watch, build_error, open, vectors};
use crate::context::Context;
use crate::error::CliError;
use crate::measure::Meter;
use crate::model::write_error;
use crate::output;
use clap::ValueEnum;
use serde_json::json;
use std::path::PathBuf;
use xc_ann::Refresh;
use xc_sparse::buffer::Pages;

/// Bring an index up to vectors that moved
///
/// As many vectors as the index has, in the same order, each a little elsewhere: codes are
/// made anew, and edges as --policy says. Without it the cheapest that finds as much as
/// before is chosen on a sample. Where nothing moved nothing changes.
///
/// Examples:
///   xc index refresh --index my.index --vectors moved.npy
///   xc index refresh --index my.index --vectors moved.npy --policy two-hops --output new.index
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Folder of the index
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// The vectors as they are now
    #[arg(long, value_name = "FILE")]
    vectors: PathBuf,
    /// How edges are found
    #[arg(long, value_name = "POLICY", value_enum)]
    policy: Option<Policy>,
    /// Folder of the new index [default: that of the old one]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Codes alone
    Codes,
    /// A short search from each vector itself
    Search,
    /// Among neighbours and theirs
    TwoHops,
    /// Two hops, then a short search
    Both,
    /// All edges anew
    Rebuild,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    // The folder may be replaced: nothing of it stays mapped.
    let mut index = open(&args.index, true)?;
    let given = vectors(&args.vectors)?;
    let (found, expected) = ((given.rows(), given.columns()), (index.rows().len(), index.graph().width()));
    if found != expected {
        return Err(CliError::usage(format_args!(
            "{}: {} vectors of {} values; the index has {} of {}",
            args.vectors.display(),
            found.0,
            found.1,
            expected.0,
            expected.1
        )));
    }
    let meter = Meter::start();
    let mut values = Pages::zeros(given.values().len());
    values.copy_from_slice(given.values());
    let policy = args.policy.map(|policy| match policy {
        Policy::Codes => Refresh::Codes,
        Policy::Search => Refresh::SHORT,
        Policy::TwoHops => Refresh::TwoHops,
        Policy::Both => Refresh::Both,
        Policy::Rebuild => Refresh::Rebuild,
    });
    let watch = Watch::new(context);
    let done = context.on_threads(|| index.refresh(values, policy, &watch));
    let done = done.map_err(|e| build_error(&args.vectors, &e))?;
    drop(watch);
    let usage = meter.usage();
    index.save(args.output.as_ref().unwrap_or(&args.index)).map_err(|e| write_error(&e))?;
    if context.json {
        let report = json!({ "refresh": done, "refresh_s": usage.wall_s, "cpu_s": usage.cpu_s });
        return output::print(&report.to_string());
    }
    let how = match done.policy {
        Refresh::Codes => "codes alone",
        Refresh::Search(_) => "a short search",
        Refresh::TwoHops => "two hops",
        Refresh::Both => "two hops and a short search",
        Refresh::Rebuild => "all edges anew",
    };
    context.note(format_args!(
        "index: refreshed in {:.1} s ({how}); a narrow search finds {:.1} % of the nearest, {:.1} % with the old edges",
        usage.wall_s,
        100.0 * done.after,
        100.0 * done.before
    ));
    Ok(())
}
