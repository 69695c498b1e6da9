//! The options of `xc train tree`: the rows of the settings of trees, and files.

use super::inputs::DataArgs;
use crate::error::CliError;
use crate::settings::{Chosen, OfTable};
use serde_json::Value;
use std::path::PathBuf;
use xc_sparse::store::to_parameter;
use xc_train::settings::{Setting, Table, refuse_idle, tree};
use xc_tree::{Preset, TreeParams};

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
pub(crate) struct Args {
    /// Named settings: default, parabel, bonsai or xr-linear; other options override them
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(super) preset: Preset,
    #[command(flatten)]
    pub(super) settings: Chosen<OfTree>,
    /// Hold out this share of the training instances and score the model on them, unless --validation is given; the
    /// same file and --seed give the same instances for every kind of model
    #[arg(long, value_name = "SHARE")]
    pub(in crate::cmd) validation_fraction: Option<f64>,
    /// Features or text of the labels, one row per label, for --cluster.representation
    #[arg(long, value_name = "FILE")]
    pub(in crate::cmd) label_features: Option<PathBuf>,
    /// Weight of each training instance in the loss, one number per line
    #[arg(long, value_name = "FILE", help_heading = "Ranker options")]
    pub(super) instance_weights: Option<PathBuf>,
    /// Cost factor of each label's own ranker, one number per line
    #[arg(long, value_name = "FILE", help_heading = "Ranker options")]
    pub(super) label_costs: Option<PathBuf>,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(in crate::cmd) data: DataArgs,
}

/// Label trees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfTree;

impl OfTable for OfTree {
    const TABLE: Table = tree::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        tree::usual(row)
    }
}

impl Args {
    /// The preset with the changes that were asked for.
    ///
    /// # Errors
    /// A value out of range, or one that changes nothing.
    pub(in crate::cmd) fn params(&self, seed: u64) -> Result<TreeParams, CliError> {
        let mut params = tree::params(self.preset, &self.settings.choices)?;
        params.seed = seed;
        // Rows come scaled: what makes the features, kept in the model, does that (--normalise).
        params.normalise_rows = false;
        let needs = params.representation.needs_label_features();
        if needs && self.label_features.is_none() {
            return Err(CliError::usage("--cluster.representation asks for label features; expected --label-features"));
        }
        refuse_idle(&[(
            "label-features",
            self.label_features.is_some() && !needs,
            "--cluster.representation label-features or pifa-and-label-features",
        )])?;
        Ok(params)
    }
}

/// What `config.json` keeps of the options: nothing that depends on the machine or the run.
pub(super) fn kept_parameters(params: &TreeParams) -> Value {
    let params = TreeParams { max_memory_bytes: None, ..params.clone() };
    to_parameter(&params)
}
