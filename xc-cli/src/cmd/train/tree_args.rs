//! The options of `xc train tree`, and the parameters that they resolve to.

use super::inputs::DataArgs;
use super::network_args::{refuse_idle, with_default};
use crate::error::CliError;
use crate::named::{name_of, named, weight_type};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;
use std::path::PathBuf;
use xc_sparse::dtype::DType;
use xc_sparse::store::to_parameter;
use xc_tree::{ClusterMethod, LabelRepresentation, Loss, Negatives, PostProcessor, Preset, TreeParams, Unseen};

/// Train a label tree
///
/// Labels are grouped into a tree by the similarity of their instances. Each node below the
/// root has a linear ranker, which decides whether an instance belongs to that node. The
/// model stores how its features are made, so `xc predict` takes the same kind of input.
///
/// Rows of features (XC text, svmlight, npz) are scaled to length 1, and weighted with
/// --tfidf; text (JSONL, fastText) goes through the pipeline of the --text options. Vectors
/// (npy) keep their relative lengths: all are divided by their typical length.
///
/// The model folder appears when it is complete. Until then finished work is kept in
/// MODEL.checkpoint, and --resume continues from there. The report of the run is written to
/// MODEL.log/train.json; with validation instances, their metrics by number of trees to log.jsonl
/// and curve.svg there.
///
/// Examples:
///   xc train tree --train train.txt --model my.model
///   xc train tree --train train.jsonl --text-fields title,text --validation dev.jsonl
///     --model my.model
///   xc train tree --train counts.txt --tfidf --preset parabel --model parabel.model
///   xc train tree --train x.npz --train-labels y.npz --trees 3 --tree.branching 16
///     --model my.model
///   xc train tree --train train.txt --model my.model --explain
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(show_default))]
pub(crate) struct Args {
    /// Named settings: default, parabel, bonsai or xr-linear; other options override them
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(super) preset: Preset,
    /// Trees whose scores are averaged
    #[arg(long, value_name = "T")]
    pub(super) trees: Option<usize>,
    /// Hold out this share of the training instances and score the model on them, unless --validation is given; the
    /// same file and --seed give the same instances for every kind of model
    #[arg(long, value_name = "SHARE")]
    pub(in crate::cmd) validation_fraction: Option<f64>,
    /// Features or text of the labels, one row per label, for --cluster.representation
    #[arg(long, value_name = "FILE")]
    pub(in crate::cmd) label_features: Option<PathBuf>,
    #[command(flatten)]
    pub(super) shape: ShapeArgs,
    #[command(flatten)]
    pub(super) linear: LinearArgs,
    #[command(flatten)]
    pub(super) saved: SavedArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(in crate::cmd) data: DataArgs,
}

/// How labels are grouped.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Tree options")]
pub(crate) struct ShapeArgs {
    /// Children of a cluster
    #[arg(long = "tree.branching", value_name = "B")]
    branching: Option<usize>,
    /// Target for the number of labels in a leaf cluster; a balanced tree may exceed it by half
    #[arg(long = "cluster.max-leaf", value_name = "N")]
    max_leaf: Option<usize>,
    /// Allowed imbalance of a split, from 0 (parts of equal size) to below 1 (balanced)
    #[arg(long = "cluster.slack", value_name = "SHARE")]
    slack: Option<f32>,
    /// balanced (parts of nearly equal size) or unbalanced (parts as k-means finds them)
    #[arg(long = "cluster.method", value_name = "METHOD", value_parser = named::<ClusterMethod, _>(["balanced", "unbalanced"]))]
    method: Option<ClusterMethod>,
    /// Maximum number of cluster levels above the labels (unbalanced)
    #[arg(long = "cluster.max-depth", value_name = "N")]
    max_depth: Option<usize>,
    /// Maximum number of k-means iterations per split
    #[arg(long = "cluster.max-iterations", value_name = "N")]
    max_iterations: Option<usize>,
    /// Labels sampled for k-means per split, at most
    #[arg(long = "cluster.max-sample", value_name = "N")]
    max_sample: Option<usize>,
    /// Label representation for clustering: the features of their instances (pifa), their instances (pii), --label-features, or
    /// the first and the third combined
    #[arg(long = "cluster.representation", value_name = "WHAT", value_parser = named::<LabelRepresentation, _>(["pifa", "pii", "label-features", "pifa-and-label-features"]))]
    representation: Option<LabelRepresentation>,
    /// Whether an instance with m labels counts 1/sqrt(m), instead of 1, in the vectors that labels are compared by
    /// (pifa)
    #[arg(long = "cluster.normalise-labels", value_name = "BOOL")]
    normalise_labels: Option<bool>,
    /// Maximum number of features of a label's vector; the largest are kept
    #[arg(long = "cluster.max-label-nnz", value_name = "N")]
    max_label_nnz: Option<usize>,
    /// Labels without training instances: drop (never predicted) or keep
    #[arg(long = "cluster.unseen", value_name = "WHAT", value_parser = named::<Unseen, _>(["drop", "keep"]))]
    unseen: Option<Unseen>,
}

/// How rankers are trained.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Ranker options")]
pub(crate) struct LinearArgs {
    /// squared-hinge or logistic
    #[arg(long = "linear.loss", value_name = "LOSS", value_parser = named::<Loss, _>(["squared-hinge", "logistic"]))]
    loss: Option<Loss>,
    /// Weight of the loss against the regulariser (liblinear's C), for rows of about length 1: others are divided by
    /// their typical length
    #[arg(long = "linear.cost", value_name = "C")]
    cost: Option<f32>,
    /// Additional cost factor of positives
    #[arg(long = "linear.positive-cost", value_name = "X")]
    positive_cost: Option<f32>,
    /// Additional cost factor of negatives
    #[arg(long = "linear.negative-cost", value_name = "X")]
    negative_cost: Option<f32>,
    /// Value of the bias input, 0 for none
    #[arg(long = "linear.bias", value_name = "X")]
    bias: Option<f32>,
    /// Stop a ranker when its gradients differ by at most this (liblinear's eps)
    #[arg(long = "linear.tolerance", value_name = "X")]
    tolerance: Option<f32>,
    /// Maximum number of passes over the instances
    #[arg(long = "linear.max-passes", value_name = "N")]
    max_passes: Option<usize>,
    /// Drop weights of smaller magnitude, for rows of about length 1: a larger value makes models smaller and faster
    #[arg(long = "linear.prune-below", value_name = "X")]
    prune_below: Option<f32>,
    /// Maximum number of weights kept per ranker; the largest are kept
    #[arg(long = "linear.max-weights", value_name = "N")]
    max_weights: Option<usize>,
    /// Negatives of a ranker: from its parent (teacher-forced), or also what the beam routes there (matcher-aware)
    #[arg(long = "negatives", value_name = "WHICH", value_parser = negatives())]
    negatives: Option<Negatives>,
    /// Clusters that matcher-aware negatives reach per level [default: 10]
    #[arg(long = "negatives.beam", value_name = "B")]
    negatives_beam: Option<usize>,
    /// Weight of each training instance in the loss, one number per line
    #[arg(long, value_name = "FILE")]
    pub(super) instance_weights: Option<PathBuf>,
    /// Cost factor of each label's own ranker, one number per line
    #[arg(long, value_name = "FILE")]
    pub(super) label_costs: Option<PathBuf>,
}

/// What the saved model does when it is asked.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Prediction defaults kept in the model")]
pub(crate) struct SavedArgs {
    /// Maps margins to scores: sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge with P from
    /// 1 to 9 [default: l3-hinge; l2-hinge with --preset parabel; sigmoid with --linear.loss
    /// logistic]
    #[arg(long, value_name = "NAME")]
    pub(super) post_processor: Option<PostProcessor>,
    /// Clusters kept per level
    #[arg(long, value_name = "B", default_value_t = 10)]
    pub(super) beam: usize,
    /// Weights as f32, f16 or bf16
    #[arg(long, value_name = "TYPE", value_parser = weight_type(), default_value = "f32")]
    pub(super) precision: DType,
}

/// Reads which negatives by their name; the beam is an option of its own.
fn negatives() -> impl TypedValueParser<Value = Negatives> {
    PossibleValuesParser::new(["teacher-forced", "matcher-aware"]).map(|name| match &*name {
        "matcher-aware" => Negatives::MatcherAware { beam: 0 },
        _ => Negatives::TeacherForced,
    })
}

impl Args {
    /// The preset with the changes that were asked for.
    ///
    /// # Errors
    /// A value out of range.
    pub(in crate::cmd) fn params(&self, seed: u64) -> Result<TreeParams, CliError> {
        let mut params = self.preset.params();
        params.seed = seed;
        // Rows come scaled: what makes the features, kept in the model, does that (--normalise).
        params.normalise_rows = false;
        let (shape, linear) = (&self.shape, &self.linear);
        set(self.trees, &mut params.n_trees);
        let cluster = &mut params.cluster;
        set(shape.branching, &mut cluster.branching);
        set(shape.max_leaf, &mut cluster.max_leaf);
        set(shape.slack, &mut cluster.slack);
        set(shape.max_depth, &mut cluster.max_depth);
        set(shape.max_iterations, &mut cluster.max_iterations);
        set(shape.max_sample, &mut cluster.max_sample);
        set(shape.method, &mut cluster.method);
        set(shape.representation, &mut params.representation);
        set(shape.normalise_labels, &mut params.normalise_labels);
        set(shape.max_label_nnz.map(Some), &mut params.max_label_nnz);
        set(shape.unseen, &mut params.unseen);
        let mut chosen = params.linear.loss;
        set(linear.loss, &mut chosen);
        params.set_loss(chosen);
        let rankers = &mut params.linear;
        set(linear.cost, &mut rankers.cost);
        set(linear.positive_cost, &mut rankers.positive_cost);
        set(linear.negative_cost, &mut rankers.negative_cost);
        set(linear.bias, &mut rankers.bias);
        set(linear.tolerance, &mut rankers.tolerance);
        set(linear.max_passes, &mut rankers.max_passes);
        set(linear.prune_below, &mut rankers.prune_below);
        set(linear.max_weights.map(Some), &mut rankers.max_weights);
        let negatives = linear.negatives.map(|n| match n {
            Negatives::TeacherForced => n,
            Negatives::MatcherAware { .. } => {
                Negatives::MatcherAware { beam: linear.negatives_beam.unwrap_or(NEGATIVES_BEAM) }
            }
        });
        set(negatives, &mut params.negatives);
        params.post = self.saved.post_processor.or(params.post);
        params.beam = self.saved.beam;
        params.precision = self.saved.precision;
        params.check().map_err(|e| {
            let option = match e.name {
                "n_trees" => "trees".to_owned(),
                "cluster.branching" => "tree.branching".to_owned(),
                name => name.replace('_', "-"),
            };
            CliError::usage(format_args!("--{option} {}: expected {}", e.got, e.expected))
        })?;
        if params.representation.needs_label_features() && self.label_features.is_none() {
            return Err(CliError::usage("--cluster.representation asks for label features; expected --label-features"));
        }
        self.refuse_idle(&params)?;
        Ok(params)
    }

    /// Refuses options that were given and belong to a choice that is not made.
    fn refuse_idle(&self, params: &TreeParams) -> Result<(), CliError> {
        let (shape, linear) = (&self.shape, &self.linear);
        let is_balanced = params.cluster.method == ClusterMethod::Balanced;
        let representation = params.representation;
        let is_of_features = !matches!(representation, LabelRepresentation::LabelFeatures | LabelRepresentation::Pii);
        refuse_idle(&[
            ("cluster.max-depth", shape.max_depth.is_some() && is_balanced, "--cluster.method unbalanced"),
            ("cluster.slack", shape.slack.is_some() && !is_balanced, "--cluster.method balanced"),
            (
                "cluster.normalise-labels",
                shape.normalise_labels.is_some() && !is_of_features,
                "--cluster.representation pifa or pifa-and-label-features",
            ),
            (
                "negatives.beam",
                linear.negatives_beam.is_some() && params.negatives == Negatives::TeacherForced,
                "--negatives matcher-aware",
            ),
            (
                "label-features",
                self.label_features.is_some() && !representation.needs_label_features(),
                "--cluster.representation label-features or pifa-and-label-features",
            ),
        ])
    }
}

/// Clusters that negatives reach per level, unless it is said.
const NEGATIVES_BEAM: usize = 10;

/// Puts what was given in the place of what the preset says.
fn set<T>(given: Option<T>, field: &mut T) {
    if let Some(value) = given {
        *field = value;
    }
}

/// Adds the values of the default preset to the help of the options that take them from there.
fn show_default(arg: clap::Arg) -> clap::Arg {
    let TreeParams { n_trees, cluster, linear, representation, normalise_labels, unseen, negatives, .. } =
        TreeParams::default();
    let (bonsai, parabel, xr_linear) = (TreeParams::bonsai(), TreeParams::parabel(), TreeParams::xr_linear());
    let shown = match arg.get_long().unwrap_or_default() {
        "trees" => format!("{n_trees}; {} with --preset xr-linear", xr_linear.n_trees),
        "tree.branching" => format!(
            "{}; {} with --preset parabel, {} with bonsai",
            cluster.branching, parabel.cluster.branching, bonsai.cluster.branching
        ),
        "cluster.max-leaf" => cluster.max_leaf.to_string(),
        "cluster.slack" => format!("{}; {} with --preset xr-linear", cluster.slack, xr_linear.cluster.slack),
        "cluster.method" => {
            format!("{}; {} with --preset bonsai", name_of(&cluster.method), name_of(&bonsai.cluster.method))
        }
        "cluster.max-depth" => cluster.max_depth.to_string(),
        "cluster.max-iterations" => cluster.max_iterations.to_string(),
        "cluster.max-sample" => {
            format!("{}; {} with --preset xr-linear", cluster.max_sample, xr_linear.cluster.max_sample)
        }
        "cluster.representation" => name_of(&representation),
        "cluster.normalise-labels" => format!("{normalise_labels}; true with --preset xr-linear"),
        "cluster.max-label-nnz" | "linear.max-weights" => "all".to_owned(),
        "cluster.unseen" => name_of(&unseen),
        "linear.loss" => name_of(&linear.loss),
        "linear.cost" => format!("{}; {} with --linear.loss logistic", linear.cost, Loss::Logistic.usual_cost()),
        "linear.positive-cost" => linear.positive_cost.to_string(),
        "linear.negative-cost" => linear.negative_cost.to_string(),
        "linear.bias" => linear.bias.to_string(),
        "linear.tolerance" => linear.tolerance.to_string(),
        "linear.max-passes" => {
            format!("{}; {} with --preset parabel and bonsai", linear.max_passes, parabel.linear.max_passes)
        }
        "linear.prune-below" => {
            format!("{}; {} with --linear.loss logistic", linear.prune_below, Loss::Logistic.usual_prune_below())
        }
        "negatives" => name_of(&negatives),
        _ => return arg,
    };
    with_default(arg, &shown)
}

/// What `config.json` keeps of the options: nothing that depends on the machine or the run.
pub(super) fn kept_parameters(params: &TreeParams) -> Value {
    let params = TreeParams { max_memory_bytes: None, ..params.clone() };
    to_parameter(&params)
}
