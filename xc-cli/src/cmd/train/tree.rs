//! `xc train tree`: the rows of the settings of trees, and files.

use super::inputs::DataArgs;
use super::{Kind, joined};
use crate::settings::{Chosen, OfTable};
use std::path::PathBuf;
use xc_buffer::Part;
use xc_options::data::Files;
use xc_options::settings::{Choices, Setting, Table, tree};

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
///   xc train tree --train train.txt --part 0/2 --model part-0
///   xc train tree --train train.txt --part 1/2 --model part-1
///   xc merge part-0 part-1 --output my.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) preset: Chosen<OfPreset>,
    #[command(flatten)]
    pub(super) settings: Chosen<OfTree>,
    /// Train part I of N of the trees, from 0/N on, as a process of its own; --model is then the folder of the part, and
    /// `xc merge` makes the model of all N. Not with validation instances or matcher-aware negatives
    #[arg(long, value_name = "I/N")]
    pub(super) part: Option<Part>,
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

/// The presets of trees, and what is held out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfPreset;

impl OfTable for OfPreset {
    const TABLE: Table = tree::OWN;

    fn usual(row: &Setting) -> Option<String> {
        (row.name == "preset").then(|| "default".to_owned())
    }
}

impl Kind for Args {
    const KIND: &'static str = "tree";

    fn data(&self) -> &DataArgs {
        &self.data
    }

    fn files(&self) -> Files {
        Files {
            label_features: self.label_features.clone(),
            instance_weights: self.instance_weights.clone(),
            label_costs: self.label_costs.clone(),
            ..self.data.files()
        }
    }

    fn part(&self) -> Option<Part> {
        self.part
    }

    fn choices(&self) -> Choices {
        joined([&self.preset.choices, &self.settings.choices, &self.data.choices()])
    }
}
