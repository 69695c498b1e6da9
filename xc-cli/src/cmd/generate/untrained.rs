//! `xc generate --model`: an untrained tree of a given shape, to measure memory and speed at a size
//! nobody trains.
//!
//! The one place outside `cmd/train` that names a kind of model: only of a tree can a model of a
//! hundred million labels be made that answers with work like that of a trained one. What a label's
//! weights are is a rule of the tree's shape (clusters, siblings that share features); networks
//! have no such shape to imitate.

use super::Args;
use super::folder::Folder;
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::error::{CliError, chain};
use crate::interrupt;
use crate::model::{self, OpenArgs};
use crate::named::weight_type;
use crate::output;
use crate::synth::{Shape, Untrained, UntrainedError, UntrainedParams};
use serde_json::json;
use std::path::{Path, PathBuf};
use xc_buffer::dtype::DType;
use xc_data::{XcHeader, push_xc_header, push_xc_row};
use xc_sparse::SparseRow;
use xc_store::ContainerWriter;
use xc_tree::{KIND, PostProcessor, TreeModel};

/// Shape of the model beside the numbers of features and labels.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of --model")]
pub(super) struct ModelArgs {
    /// Write an untrained tree model of this shape; --output then gets queries for it (test.txt)
    // Another id than the models that are read.
    #[arg(id = "untrained", long = "model", value_name = "DIR")]
    pub(super) model: Option<PathBuf>,
    /// Children of a cluster
    #[arg(long = "tree.branching", value_name = "B", default_value_t = 32, requires = "untrained")]
    branching: u32,
    /// Minimum number of weights of every label and cluster
    #[arg(long = "tree.weights", value_name = "N", default_value_t = 25, requires = "untrained")]
    weights: u32,
    /// Shares of the weight rows that one, two, three and more children have in common; the default is that of a tree trained on
    /// 3,500 labels of legal texts
    #[arg(
        long = "tree.overlap",
        value_name = "SHARES",
        value_delimiter = ',',
        default_value = "0.29,0.17,0.12,0.09,0.07,0.05,0.04,0.17",
        requires = "untrained"
    )]
    overlap: Vec<f64>,
    /// Take the overlap from this trained model, and print it
    #[arg(long, value_name = "DIR", requires = "untrained", conflicts_with = "overlap")]
    like: Option<PathBuf>,
    /// Features of a query
    #[arg(long, value_name = "N", default_value_t = 75, requires = "untrained")]
    query_features: u32,
    /// Weights as f32, f16 or bf16
    #[arg(long, value_name = "TYPE", value_parser = weight_type(), default_value = "f16", requires = "untrained")]
    precision: DType,
}

/// Overlap of siblings in a trained model: how many rows of the last level's chunks 1, 2, 3, ...
/// children share. The last number counts what is at least as many.
fn measure_overlap(model: &TreeModel) -> Vec<f64> {
    const LONGEST: usize = 128;
    let mut counts = vec![0.0; LONGEST];
    for tree in model.trees() {
        let level = tree.level(tree.depth() - 1);
        for parent in 0..level.n_parents() {
            let rows = level.to_rows(parent);
            for ends in rows.row_ptr.windows(2) {
                counts[((ends[1] - ends[0]) as usize).clamp(1, LONGEST) - 1] += 1.0;
            }
        }
    }
    let total: f64 = counts.iter().sum();
    counts.iter_mut().for_each(|c| *c /= total.max(1.0));
    while counts.len() > 1 && counts.last() == Some(&0.0) {
        counts.pop();
    }
    counts
}

pub(super) fn run(args: &Args, folder: &Path, shape: Shape, context: &Context) -> Result<(), CliError> {
    let asked = &args.untrained;
    ContainerWriter::check(folder)?;
    let overlap = match &asked.like {
        Some(like) => {
            let like_model = OpenArgs::default().open_whole(like, context)?;
            let overlap = measure_overlap(like_model.as_kind().ok_or_else(|| {
                let (like, kind) = (like.display(), like_model.describe().kind);
                CliError::usage(format_args!("--like {like}: a model of kind {kind:?}; expected {KIND:?}"))
            })?);
            let shares: Vec<String> = overlap.iter().map(|s| format!("{s:.4}")).collect();
            context.note(format_args!(
                "generate: {}: rows that 1, 2, 3, ... siblings share: {}",
                like.display(),
                shares.join(" ")
            ));
            overlap
        }
        None => asked.overlap.clone(),
    };
    // Both fit: `shape` bounds them to 32 bits.
    let tree = Untrained::new(UntrainedParams {
        n_labels: shape.labels as u32,
        n_features: shape.features as u32,
        branching: asked.branching,
        weights_per_column: asked.weights,
        overlap: overlap.clone(),
        query_nnz: asked.query_features,
        topical: 1.0 - shape.background,
        topic_size: 64,
        zipf: 1.05,
        precision: asked.precision,
        seed: context.seed,
    })
    .map_err(untrained_error)?;
    let queries = match &args.output {
        Some(folder) => Some(Folder::create(folder, &[QUERIES.to_owned()])?),
        None => None,
    };
    context.note(format_args!(
        "generate: an untrained tree of {} labels, {} features, {} levels; about {} on disk",
        shape.labels,
        shape.features,
        tree.depth(),
        format_bytes(tree.estimate_bytes())
    ));
    if let Some(mut files) = queries {
        write_queries(&tree, shape, &mut files)?;
        files.commit()?;
    }
    write_model(&tree, folder, context)?;
    let container = model::open_container(folder)?;
    if context.json {
        let report = json!({
            "model": folder.display().to_string(),
            "features": shape.features,
            "labels": shape.labels,
            "levels": tree.depth(),
            "overlap": overlap,
            "model_bytes": container.n_bytes(),
            "seed": context.seed,
        });
        return output::print(&report.to_string());
    }
    context.note(format_args!("generate: wrote {}: {}", folder.display(), format_bytes(container.n_bytes())));
    Ok(())
}

fn write_model(tree: &Untrained, folder: &Path, context: &Context) -> Result<(), CliError> {
    let mut writer = ContainerWriter::create(folder, KIND)?;
    let mut task = None;
    tree.write(&mut writer, PostProcessor::Hinge { p: 3 }, |done, total| {
        task.get_or_insert_with(|| context.task("nodes written", total)).set(done);
        !interrupt::interrupted()
    })
    .map_err(untrained_error)?;
    drop(task);
    writer.finish().map_err(CliError::from)
}

/// What the file of queries is called.
const QUERIES: &str = "test.txt";

fn write_queries(tree: &Untrained, shape: Shape, files: &mut Folder) -> Result<(), CliError> {
    let mut buffer = Vec::new();
    let header = XcHeader { n_rows: shape.test_instances, n_features: shape.features, n_labels: Some(shape.labels) };
    push_xc_header(&mut buffer, &header);
    for number in 0..shape.test_instances {
        let (label, indices, values) = tree.query(number);
        push_xc_row(&mut buffer, SparseRow::from_checked(&indices, &values), &[label]);
        files.put(QUERIES, &buffer)?;
        buffer.clear();
    }
    Ok(())
}

fn untrained_error(error: UntrainedError) -> CliError {
    match &error {
        UntrainedError::Parameter { .. } => CliError::usage(format_args!("generate --model: {}", chain(&error))),
        UntrainedError::Write(e) => e.into(),
        UntrainedError::Cancelled => CliError::interrupted(),
        _ => CliError::failed(chain(&error)),
    }
}
