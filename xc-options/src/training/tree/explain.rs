//! What the options of trees mean for the data.

use super::Tree;
use crate::settings::{Choices, SettingError, tree};
use crate::training::plan::{Origin, Resolved, TrainingPlan};
use serde_json::{Map, Value, json};
use xc_hash::text::{Featurizer, Idf, Norm, TermWeighting};
use xc_model::message::{counted, name_of};
use xc_sparse::rows::typical_length;
use xc_train::fit::FitError;
use xc_train::fit::data::Dataset;
use xc_tree::{LabelRepresentation, Negatives, Preset, TreeParams};

/// A training run, resolved.
pub(super) fn plan(
    args: &Tree<'_>,
    params: &TreeParams,
    data: &Dataset,
    parameters: Value,
    memory: u64,
) -> Result<TrainingPlan, FitError> {
    let rows = data.len();
    let figures = json!({
        "instances": rows,
        "features": data.width(),
        "features_per_instance": data.sparse().nnz() as f64 / rows as f64,
        "labels": data.labels.n_labels(),
        "labels_seen": data.labels.n_used(),
        "labels_per_instance": data.labels.nnz() as f64 / rows as f64,
    });
    Ok(TrainingPlan {
        kind: "tree",
        lines: lines(args, params, data),
        resolved: resolved(args, params)?,
        data: figures.as_object().cloned().unwrap_or_else(Map::new),
        parameters,
        memory,
    })
}

fn resolved(args: &Tree<'_>, params: &TreeParams) -> Result<Resolved, FitError> {
    let mut out = args.of.resolved()?;
    resolve(args.preset, params, &args.of.choices, &mut out)?;
    Ok(out)
}

/// The values of all settings of trees.
pub(in crate::training) fn resolve(
    preset: Preset,
    params: &TreeParams,
    choices: &Choices,
    out: &mut Resolved,
) -> Result<(), SettingError> {
    let all = TreeParams { post: Some(params.post_processor()), ..params.clone() };
    let usual = preset.params();
    out.add_placed(&tree::TABLE, &all, choices, |row, value| {
        (value == row.shown_in(&usual).as_deref()).then(|| Origin::Preset(name_of(&preset)))
    });
    out.add_chosen(&tree::OWN, choices, |row| (row.name == "preset").then(|| name_of(&preset)));
    Ok(())
}

fn lines(args: &Tree<'_>, params: &TreeParams, data: &Dataset) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    let (rows, n_labels, seen) = (data.len(), data.labels.n_labels(), data.labels.n_used());
    let mut line = |what, text: String| out.push((what, text));
    line("data", format!("{}: {}", args.of.source.name().display(), counted(rows, "instance")));
    let per_instance = |n: usize| n as f64 / rows as f64;
    let (features, labels) = (counted(data.width(), "feature"), counted(n_labels, "label"));
    line("", format!("{features}, {:.1} per instance", per_instance(data.sparse().nnz())));
    line("", format!("{labels}, {:.2} per instance", per_instance(data.labels.nnz())));
    if seen < n_labels {
        let fate = match params.unseen {
            xc_tree::Unseen::Drop => "get no leaf and are never predicted (--cluster.unseen keep changes that)",
            xc_tree::Unseen::Keep => "are clustered with the others",
        };
        line("", format!("{} without an instance: they {fate}", counted(n_labels - seen, "label")));
    }
    let rows_of = data.sparse().view();
    let empty = (0..rows).filter(|&row| rows_of.row(row).indices().is_empty()).count();
    if empty > 0 {
        line("", format!("{} without a feature: they teach the bias only", counted(empty, "instance")));
    }
    line("features", features_said(args, data));
    let by = match params.representation {
        LabelRepresentation::Pifa => "the features of their instances (pifa)",
        LabelRepresentation::Pii => "the instances they occur in (pii)",
        LabelRepresentation::LabelFeatures => "the features given for them",
        LabelRepresentation::PifaAndLabelFeatures => "the features of their instances and those given for them",
    };
    line("labels", format!("compared by {by}"));
    let clustered = if params.unseen == xc_tree::Unseen::Keep { n_labels } else { seen };
    clusters(params, clustered).into_iter().for_each(|said| line("clusters", said));
    let negatives = match params.negatives {
        Negatives::TeacherForced => "the instances of the same parent".to_owned(),
        Negatives::MatcherAware { beam } => format!("those of the same parent and what a beam of {beam} sends there"),
    };
    line("negatives", negatives);
    if let Some(part) = args.of.place.part {
        line("part", format!("{part}: its share of the clusters, as `xc merge` takes it"));
    }
    out
}

fn features_said(args: &Tree<'_>, data: &Dataset) -> String {
    match &data.maker {
        Some(Featurizer::Text(_)) => {
            "made from text by the pipeline of the --text options, tf-idf, rows of length 1; kept in the model"
                .to_owned()
        }
        Some(Featurizer::Rows(weights)) => {
            let TermWeighting { idf, norm, .. } = weights.weighting();
            let values = if idf == Idf::None { "as they are" } else { "weighted by tf-idf, since --tfidf is given" };
            let rows = if norm == Norm::None { "" } else { ", rows scaled to length 1" };
            format!("{values}{rows}; kept in the model")
        }
        Some(_) => "made as the model keeps it".to_owned(),
        None => {
            let what = match args.of.choices.get("normalise") {
                None => "vectors, as they are",
                Some(_) => "as they are, since --normalise false is given",
            };
            let rows = data.sparse().view();
            let length = typical_length((0..rows.rows()).map(|i| rows.row(i).values()));
            format!("{what}; all are divided by their typical length, {length}")
        }
    }
}

/// What becomes of so many labels.
fn clusters(params: &TreeParams, n_labels: usize) -> Vec<String> {
    let cluster = &params.cluster;
    let Some(children) = cluster.children(n_labels) else {
        return vec![format!(
            "parts as k-means finds them, at most {} of clusters above the labels",
            counted(cluster.max_depth, "level")
        )];
    };
    let n_clusters: usize = children.iter().product();
    let parts = if cluster.slack > 0.0 {
        format!(
            "a cut may move from the middle by {} of the smaller part, to where a group of labels ends",
            cluster.slack
        )
    } else {
        "parts of equal size".to_owned()
    };
    let most = if cluster.slack > 0.0 { cluster.max_leaf * 3 / 2 } else { n_labels.div_ceil(n_clusters) };
    let levels = match &children[..] {
        [] => "one level, that of the labels".to_owned(),
        some => {
            let some: Vec<_> = some.iter().map(usize::to_string).collect();
            format!("{} of clusters ({} children) above the labels", counted(some.len(), "level"), some.join(", "))
        }
    };
    vec![
        parts,
        format!(
            "{levels}; {} for {}, at most {most} in each",
            counted(n_clusters, "lowest cluster"),
            counted(n_labels, "label")
        ),
    ]
}
