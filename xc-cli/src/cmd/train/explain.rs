//! `--explain`: what a training would do, and why.

use super::tree_args::Args;
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::Dataset;
use crate::error::CliError;
use crate::named::name_of;
use crate::output;
use serde_json::json;
use std::fmt::Write;
use xc_hash::text::{Featurizer, Idf, Norm, Weighting};
use xc_sparse::{CsrMatrix, LabelRows, Rows};
use xc_tree::{ClusterMethod, LabelRepresentation, Loss, Negatives, TreeParams};

/// A training, resolved.
pub(super) struct Plan<'a> {
    pub(super) args: &'a Args,
    pub(super) params: &'a TreeParams,
    pub(super) changed: &'a [(&'static str, String)],
    pub(super) data: &'a Dataset,
    pub(super) needed: u64,
    pub(super) context: &'a Context,
}

/// One line before the work begins.
pub(super) fn summary(plan: &Plan<'_>) -> String {
    let (data, params) = (plan.data, plan.params);
    format!(
        "train tree: {} instances, {} features, {} labels; {} of branching {}; about {} of memory",
        data.len(),
        data.width(),
        data.labels.n_labels(),
        if params.n_trees == 1 { "one tree".to_owned() } else { format!("{} trees", params.n_trees) },
        params.cluster.branching,
        format_bytes(plan.needed)
    )
}

/// Labels with at least one instance.
pub(super) fn seen_labels(labels: &LabelRows) -> usize {
    let mut seen = vec![false; labels.n_labels()];
    labels.labels().iter().for_each(|&l| seen[l as usize] = true);
    seen.iter().filter(|&&s| s).count()
}

/// Prints the plan to stdout.
pub(super) fn print(plan: &Plan<'_>) -> Result<(), CliError> {
    if plan.context.json {
        return output::print(&as_json(plan).to_string());
    }
    output::print(&as_text(plan))
}

/// Prints a plan that is given line by line to stdout.
pub(super) fn print_lines(lines: &[(&str, String)], context: &Context) -> Result<(), CliError> {
    if context.json {
        let said: Vec<_> = lines.iter().map(|(what, text)| json!({ "about": what, "says": text })).collect();
        return output::print(&json!({ "plan": said }).to_string());
    }
    output::print(&lines.iter().map(|(what, text)| format!("{what:<12} {text}\n")).collect::<String>())
}

fn as_json(plan: &Plan<'_>) -> serde_json::Value {
    let (data, rows) = (plan.data, plan.data.len());
    json!({
        "instances": rows,
        "features": data.width(),
        "features_per_instance": data.sparse().nnz() as f64 / rows as f64,
        "labels": data.labels.n_labels(),
        "labels_seen": seen_labels(&data.labels),
        "labels_per_instance": data.labels.nnz() as f64 / rows as f64,
        "parameters": plan.params,
        "changed": plan.changed.iter().map(|(name, value)| json!({"option": name, "value": value})).collect::<Vec<_>>(),
        "post_processor": plan.params.post_processor().to_string(),
        "beam": plan.params.beam,
        "threads": plan.context.threads,
        "memory_bytes": plan.needed,
    })
}

fn as_text(plan: &Plan<'_>) -> String {
    let Plan { args, params, data, .. } = plan;
    let (rows, n_labels, seen) = (data.len(), data.labels.n_labels(), seen_labels(&data.labels));
    let mut out = String::new();
    let mut line = |what: &str, text: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{what:<12} {text}");
    };
    line("data", format!("{}: {rows} instances", args.data.place.train.display()));
    line("", format!("{} features, {:.1} an instance", data.width(), data.sparse().nnz() as f64 / rows as f64));
    line("", format!("{n_labels} labels, {:.2} an instance", data.labels.nnz() as f64 / rows as f64));
    if seen < n_labels {
        let fate = match params.unseen {
            xc_tree::Unseen::Drop => "get no leaf and are never predicted (--cluster.unseen keep changes that)",
            xc_tree::Unseen::Keep => "are clustered with the others",
        };
        line("", format!("{} labels have no instance: they {fate}", n_labels - seen));
    }
    let empty = count_empty_rows(data.sparse());
    if empty > 0 {
        line("", format!("{empty} instances have no feature: they teach the bias only"));
    }
    line(
        "features",
        match &data.maker {
            Some(Featurizer::Text(_)) => {
                "made from text by the pipeline of the --text options, tf-idf, rows of length 1; kept in the model"
                    .to_owned()
            }
            Some(Featurizer::Rows(weights)) => {
                let Weighting { idf, norm, .. } = weights.weighting();
                let values =
                    if idf == Idf::None { "as they are" } else { "weighted by tf-idf, since --tfidf is given" };
                let rows = if norm == Norm::None { "" } else { ", rows scaled to length 1" };
                format!("{values}{rows}; kept in the model")
            }
            Some(_) => "made as the model keeps it".to_owned(),
            None => "as they are, since --normalise false is given".to_owned(),
        },
    );
    let why = if plan.changed.is_empty() { "unchanged" } else { "with the changes marked *" };
    line("settings", format!("preset {}, {why}", name_of(&args.preset)));
    let mark = |name: &str| if plan.changed.iter().any(|(n, _)| *n == name) { " *" } else { "" };
    line("trees", format!("{}{}", params.n_trees, mark("trees")));
    let cluster = &params.cluster;
    let by = match params.representation {
        LabelRepresentation::Pifa => "the features of their instances (pifa)",
        LabelRepresentation::Pii => "the instances they occur in (pii)",
        LabelRepresentation::LabelFeatures => "the features given for them",
        LabelRepresentation::PifaAndLabelFeatures => "the features of their instances and those given for them",
    };
    line("labels", format!("compared by {by}{}", mark("cluster.representation")));
    let shape = match cluster.method {
        ClusterMethod::Balanced => {
            "parts of equal size: the depth, and so the cost of a query, is known beforehand".to_owned()
        }
        ClusterMethod::Unbalanced => {
            format!("parts as k-means finds them, at most {} levels of clusters", cluster.max_depth)
        }
    };
    line("clusters", format!("{shape}{}", mark("cluster.method")));
    line(
        "",
        format!(
            "branching {}{}, at most {} labels in a lowest cluster{}",
            cluster.branching,
            mark("tree.branching"),
            cluster.max_leaf,
            mark("cluster.max-leaf")
        ),
    );
    if cluster.method == ClusterMethod::Balanced {
        let depth = match levels(seen, cluster.branching, cluster.max_leaf) {
            1 => "one level, that of the labels".to_owned(),
            n => format!("about {n} levels"),
        };
        line("", format!("{depth}, for {seen} labels"));
    }
    let linear = &params.linear;
    let loss = match linear.loss {
        Loss::SquaredHinge => "squared hinge",
        Loss::Logistic => "logistic",
    };
    line("rankers", format!("{loss}{}, cost {}{}", mark("linear.loss"), linear.cost, mark("linear.cost")));
    line("", format!("weights below {} are dropped{}", linear.prune_below, mark("linear.prune-below")));
    let negatives = match params.negatives {
        Negatives::TeacherForced => "the instances of the same parent (teacher-forced)".to_owned(),
        Negatives::MatcherAware { beam } => format!("those and what a beam of {beam} sends there (matcher-aware)"),
    };
    line("negatives", format!("{negatives}{}", mark("negatives")));
    let why = match args.saved.post_processor {
        Some(_) => "as asked",
        None if params.post.is_some() => "as the preset says",
        None => "it suits the loss",
    };
    line("scores", format!("{}: {why}; beam {} kept in the model", params.post_processor(), params.beam));
    line("threads", format!("{}; seed {} gives the same model at any number", plan.context.threads, params.seed));
    line("memory", format!("about {}, the data included", format_bytes(plan.needed)));
    out
}

/// Levels of a balanced tree, the labels' own included.
fn levels(n_labels: usize, branching: usize, max_leaf: usize) -> usize {
    let (mut clusters, mut levels) = (1usize, 1);
    while n_labels.div_ceil(clusters) > max_leaf {
        clusters = clusters.saturating_mul(branching.max(2));
        levels += 1;
    }
    levels
}

/// Rows without a feature: they are scored by the bias alone, which is worth knowing.
fn count_empty_rows(features: &CsrMatrix) -> usize {
    let rows = Rows::new(features.view());
    (0..rows.len()).filter(|&i| rows.row(i).nnz() == 0).count()
}
