//! `xc index refresh`.

use super::{Instances, Watch, build_error, label_error, open, rows, say_lost, vectors, vectors_of_width};
use crate::context::Context;
use crate::error::CliError;
use crate::measure::Meter;
use crate::model::OpenArgs;
use crate::output;
use clap::ValueEnum;
use serde_json::json;
use std::path::{Path, PathBuf};
use xc_ann::{BuildParams, Metric, Refresh, Refreshed};
use xc_buffer::HugePageVec;
use xc_model::classifier::LostPrecision;
use xc_model::{IndexFit, OwnedRows};
use xc_store::atomic::parent_of;
use xc_store::{ContainerWriter, PART_FOLDER};

/// Update an index to vectors that changed, or to the weights of a model
///
/// --vectors has as many vectors as the index, in the same order, each changed a little: codes
/// are recomputed, and edges are updated by --policy. Without --policy, the cheapest one that keeps
/// the recall is chosen on a sample. If no vector changed, nothing changes. An index that was built
/// for queries (--fit-queries) needs them again: their edges are rebuilt, and the width is fitted
/// again (for a model whose queries have labels, to --max-loss).
///
/// Examples:
///   xc index refresh --index my.index --vectors moved.npy
///   xc index refresh --index my.index --vectors moved.npy --policy two-hops --output new.index
///   xc index refresh --model my.model --fit-queries train.txt
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, group = clap::ArgGroup::new("of").required(true).args(["index", "model"]))]
#[command(mut_arg("id-field", |arg| arg.hide(true)))]
pub(super) struct Args {
    /// Folder of the index
    #[arg(long, value_name = "DIR", requires = "vectors")]
    index: Option<PathBuf>,
    /// The changed vectors
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    vectors: Option<PathBuf>,
    /// The model that was trained further, with the index in its folder
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// How edges are updated
    #[arg(long, value_name = "POLICY", value_enum)]
    policy: Option<Policy>,
    /// Folder of the new index [default: that of the old one]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    instances: Instances,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Recompute the codes alone
    Codes,
    /// A short search from each vector
    Search,
    /// Among neighbours and their neighbours
    TwoHops,
    /// Two hops, then a short search
    Both,
    /// Rebuild all edges
    Rebuild,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    let policy = args.policy.map(|policy| match policy {
        Policy::Codes => Refresh::Codes,
        Policy::Search => Refresh::SHORT,
        Policy::TwoHops => Refresh::TwoHops,
        Policy::Both => Refresh::Both,
        Policy::Rebuild => Refresh::Rebuild,
    });
    args.instances.check()?;
    args.instances.refuse_idle(args.model.is_some(), context)?;
    let own = args.model.as_ref().map(|model| model.join(PART_FOLDER)).or(args.index.clone());
    // A folder to be read that is absent is said when it is opened.
    if let Some(output) = args.output.clone().or(own.filter(|own| parent_of(own).is_dir())) {
        ContainerWriter::check(&output)?;
    }
    let (done, lost) = match (&args.model, &args.index, &args.vectors) {
        (Some(model), ..) => of_labels(model, policy, args, context)?,
        (None, Some(index), Some(path)) => (Some(of_vectors(index, path, policy, args, context)?), None),
        _ => return Err(CliError::usage("--index DIR with --vectors FILE, or --model DIR, is expected")),
    };
    let usage = meter.usage();
    if context.json {
        let report = json!({ "refresh": done, "lost": lost, "refresh_s": usage.wall_s, "cpu_s": usage.cpu_s });
        return output::print(&report.to_string());
    }
    let Some(done) = done else {
        context.note(format_args!("index: lists made anew in {:.1} s", usage.wall_s));
        return Ok(());
    };
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
    say_lost(lost, context);
    Ok(())
}

/// Nothing where labels have lists.
fn of_labels(
    folder: &Path,
    policy: Option<Refresh>,
    args: &Args,
    context: &Context,
) -> Result<(Option<Refreshed>, Option<LostPrecision>), CliError> {
    let model = OpenArgs::default().open_whole(folder, context)?;
    // The old and the new graph, and the labels.
    let needed = 2 * model.index_bytes(&BuildParams::new(Metric::InnerProduct)).map_err(|e| label_error(folder, &e))?;
    context.foresee_memory("the new index", needed as u64)?;
    let asked = args.instances.read(&model, context)?;
    let watch = Watch::new(context);
    let done = context.on_threads(|| model.refresh_index(asked.as_ref().map(OwnedRows::view), policy, &watch));
    let (mut index, done) = done.map_err(|e| label_error(folder, &e))?;
    drop(watch);
    let top_k = index.graph().map_or(0, |graph| graph.params().top_k);
    let fit = IndexFit { top_k, ..IndexFit::default() };
    let lost = args.instances.fit(&model, &mut index, asked.as_ref(), fit, (folder, context))?;
    let given = [("--policy", policy.is_some()), ("--fit-queries", asked.is_some())];
    if let (None, Some((option, _))) = (done, given.into_iter().find(|option| option.1)) {
        return Err(CliError::usage(format_args!("{option}: the index of a sparse output layer has no graph")));
    }
    model.save_index(&index, args.output.as_deref()).map_err(|e| label_error(folder, &e))?;
    Ok((done, lost))
}

fn of_vectors(
    folder: &Path,
    path: &Path,
    policy: Option<Refresh>,
    args: &Args,
    context: &Context,
) -> Result<Refreshed, CliError> {
    // The folder may be replaced: nothing of it stays mapped.
    let mut index = open(folder, true)?;
    let given = vectors(path)?;
    let (found, expected) = ((given.rows(), given.columns()), (index.rows().len(), index.graph().dim()));
    if found != expected {
        let path = path.display();
        return Err(CliError::usage(format_args!(
            "{path}: {} vectors of {} values; the index has {} of {}",
            found.0, found.1, expected.0, expected.1
        )));
    }
    // The old and the new graph, and the rows once more.
    let needed = 2 * index.graph().n_bytes() + 4 * given.values().len();
    context.foresee_memory("the new index", needed as u64)?;
    let mut values = HugePageVec::zeros(given.values().len());
    values.copy_from_slice(given.values());
    let asked = args.instances.fit_queries.as_deref();
    let asked = asked.map(|path| vectors_of_width(path, index.graph().dim())).transpose()?;
    let watch = Watch::new(context);
    let done = context.on_threads(|| index.refresh(values, asked.as_ref().map(rows), policy, &watch));
    let done = done.map_err(|e| build_error(path, &e))?;
    drop(watch);
    index.save(args.output.as_deref().unwrap_or(folder))?;
    Ok(done)
}
