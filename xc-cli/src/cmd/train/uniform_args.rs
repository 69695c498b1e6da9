//! The options of `xc train uniform`.

use super::inputs::DataArgs;
use super::neural_args::NeuralArgs;
use crate::error::CliError;
use clap::ValueEnum;
use std::path::PathBuf;
use xc_sparse::dense::MatmulPrecision;
use xc_sparse::uniform::{ConnectionsError, NumberType};
use xc_train::Loss;
use xc_train::uniform::{FirstVectors, InputKind, UniformParams, UniformParamsError, Wiring};

/// Instances between two changes of the connections unless steps are asked for: 1000 steps of 32.
const REWIRE_INSTANCES: u64 = 32_000;

/// Train a network with a sparse output layer
///
/// Each label is connected with --connections units of a wide layer (--intermediate)
/// rather than with all of them: memory and time of the output layer grow with labels *
/// connections. The squared hinge leaves out labels that are right by a margin. The
/// weakest connections are dropped and drawn anew while training.
///
/// Instances are sparse features or text, or vectors that were computed elsewhere:
/// --features FILE.npy (one row an instance, f32) beside --train, which then only
/// gives the labels. A file of plain f32 stays on disk.
///
/// What training will take is said before it begins; --max-memory refuses more.
/// Progress is logged to MODEL.log. Interrupted training goes on with --resume, and
/// ends with the same bytes as if it had not been interrupted.
///
/// Examples:
///   xc train uniform --train train.txt --tfidf --model my.model
///   xc train uniform --train labels.txt --features train.npy --precision bf16 --model my.model
///   xc train uniform --train l.txt --features x.npy --validation lv.txt --validation-features v.npy --epochs 100
///     --schedule plateau --schedule.lowest 0.1 --judge p@3 --patience 1 --patience-from lowest-rate --model my.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("batch_size", |a| a.default_value("32")))]
#[command(mut_arg("dropout", |a| a.default_value("0")))]
#[command(mut_arg("widths", |a| a.default_value(clap::builder::Resettable::Reset).help(
    "Widths of the layers below the intermediate one, e.g. 512,512: of sparse features first that of the vectors that they \
     are summed into [default: 512 for sparse features, none for vectors]"
)))]
#[command(mut_arg("loss", |a| a.help("squared-hinge or bce (each label right or not) [default: squared-hinge]")))]
#[command(mut_arg("rate", |a| a.help("Learning rate [default: 0.001 for adam and adamw, 0.1 for momentum, 1 for sgd]")))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// Vectors of the training instances, npy; --train then only gives their labels
    #[arg(long, value_name = "FILE.npy", conflicts_with_all = ["train_labels", "tfidf"])]
    pub(super) features: Option<PathBuf>,
    /// Vectors of the validation instances, npy; --validation then only gives their labels
    #[arg(long, value_name = "FILE.npy", requires = "validation", conflicts_with = "validation_labels")]
    pub(super) validation_features: Option<PathBuf>,
    #[command(flatten)]
    pub(super) layer: LayerArgs,
    #[command(flatten)]
    pub(super) neural: NeuralArgs,
}

/// What the output layer is.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Output layer options")]
pub(crate) struct LayerArgs {
    /// Units of the layer that labels are connected with, or none: they are connected with what is below
    #[arg(long, value_name = "N|none", value_parser = parse_units, default_value = "32768")]
    intermediate: Units,
    /// Connections of a label
    #[arg(long, value_name = "S", default_value_t = 32)]
    connections: usize,
    /// Equally many connections a label, as many on average, or with all units (to compare)
    #[arg(long, value_name = "WIRING", value_enum, default_value_t = WiringName::Uniform)]
    wiring: WiringName,
    /// Type of the connections' weights, in training and in the model
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = WeightName::F32)]
    precision: WeightName,
    /// Type of what the optimiser remembers of them
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = MomentName::F32)]
    moments: MomentName,
    /// What dense layers multiply: the values, or the values rounded to bf16 (sums stay f32), which is faster where the
    /// processor has AVX512_BF16; the model keeps it
    #[arg(long = "network.products", value_name = "TYPE", value_enum, default_value_t = ProductName::Bf16)]
    products: ProductName,
    /// Score every label in full in each step. By default, with the squared hinge, batches of more than 64 and many labels, a
    /// step screens labels in 8 bits first and scores those that may be within the margin
    #[arg(long)]
    no_screening: bool,
    /// Steps between changes of the connections; 0: they stay [default: as many as 32000 instances take]
    #[arg(long, value_name = "STEPS")]
    rewire_every: Option<u64>,
    /// Share of the connections, the weakest, that are drawn anew; 0: none
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    rewire_fraction: f64,
    /// Score so many labels a step, drawn evenly, and those that are true in its batch [default: all labels]
    #[arg(long, value_name = "N")]
    negatives: Option<usize>,
    /// In the first epochs, learn so many groups of like labels beside the labels: the layers below get gradients that say something
    /// sooner
    #[arg(long, value_name = "N")]
    pub(super) groups: Option<usize>,
    /// Epochs after which groups no longer matter; their weight falls evenly
    #[arg(long = "groups.epochs", value_name = "N", default_value_t = 3, requires = "groups")]
    group_epochs: u32,
    /// What the vectors of sparse features begin with: random values, whose sums go through a ReLU, or the leading directions of the training rows,
    /// whose sums are taken as they are [default: leading; random without an intermediate layer]
    #[arg(long = "network.first", value_name = "WHICH", value_enum)]
    first: Option<FirstName>,
    /// Share of the learning rate at which the vectors of sparse features learn; 0: they stay [default: 0.1 for leading directions, 1 for
    /// random ones]
    #[arg(long = "network.vector-rate", value_name = "SHARE")]
    vector_rate: Option<f32>,
    /// Chance that a value that comes in is dropped in training: of a vector, or of the sums of sparse features
    #[arg(long = "network.input-dropout", value_name = "X", default_value_t = 0.1)]
    input_dropout: f32,
}

impl LayerArgs {
    /// Refuses options that only sparse features have a use for.
    pub(super) fn fits(&self, kind: InputKind) -> Result<(), CliError> {
        let first = self.first.map(|_| "network.first");
        match (kind, first.or(self.vector_rate.map(|_| "network.vector-rate"))) {
            (InputKind::Dense, Some(option)) => Err(CliError::usage(format_args!(
                "--{option}: instances are vectors already; wanted sparse features or text, or no such option"
            ))),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Units(Option<usize>);

fn parse_units(text: &str) -> Result<Units, String> {
    match text {
        "none" => Ok(Units(None)),
        _ => {
            text.parse().map(|n| Units(Some(n))).map_err(|_| format!("met {text:?}, wanted a number of units or none"))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FirstName {
    Random,
    Leading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WiringName {
    Uniform,
    Unstructured,
    Dense,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WeightName {
    F32,
    Bf16,
    F16,
    E4m3,
    E5m2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MomentName {
    F32,
    Bf16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProductName {
    F32,
    Bf16,
}

impl Args {
    /// Shape of the model for queries of a kind.
    pub(super) fn params(&self, input: InputKind, seed: u64) -> UniformParams {
        let LayerArgs { intermediate, connections, wiring, precision, moments, .. } = self.layer;
        let steps = REWIRE_INSTANCES / self.neural.batch_size.max(1) as u64;
        let widths = match (self.neural.widths(), input) {
            ([], InputKind::Sparse) => vec![512],
            (widths, _) => widths.to_vec(),
        };
        let first_vectors = match (self.layer.first, intermediate.0) {
            (Some(FirstName::Random), _) | (None, None) => FirstVectors::Random,
            (Some(FirstName::Leading), _) | (None, Some(_)) => FirstVectors::Leading,
        };
        let vector_rate = self.layer.vector_rate.unwrap_or(first_vectors.usual_rate());
        UniformParams {
            input,
            widths,
            first_vectors,
            vector_rate,
            input_dropout: self.layer.input_dropout,
            hidden_dropout: self.neural.dropout(),
            intermediate: intermediate.0,
            connections,
            wiring: match wiring {
                WiringName::Uniform => Wiring::Uniform,
                WiringName::Unstructured => Wiring::Unstructured,
                WiringName::Dense => Wiring::Dense,
            },
            weights: match precision {
                WeightName::F32 => NumberType::F32,
                WeightName::Bf16 => NumberType::Bf16,
                WeightName::F16 => NumberType::F16,
                WeightName::E4m3 => NumberType::E4m3,
                WeightName::E5m2 => NumberType::E5m2,
            },
            moments: match moments {
                MomentName::F32 => NumberType::F32,
                MomentName::Bf16 => NumberType::Bf16,
            },
            products: match self.layer.products {
                ProductName::F32 => MatmulPrecision::F32,
                ProductName::Bf16 => MatmulPrecision::Bf16,
            },
            screening: !self.layer.no_screening,
            rewire_every: self.layer.rewire_every.unwrap_or(steps.max(1)),
            rewire_fraction: self.layer.rewire_fraction,
            negatives: self.layer.negatives,
            groups: self.layer.groups,
            group_epochs: self.layer.group_epochs,
            loss: self.neural.loss().unwrap_or(Loss::SquaredHinge),
            seed,
        }
    }
}

/// What is impossible about a model, by the option that says it.
pub(super) fn params_error(error: &UniformParamsError) -> CliError {
    let option = match error {
        UniformParamsError::Widths { .. } => "network.widths",
        UniformParamsError::Number { name: "intermediate", .. } => "intermediate",
        UniformParamsError::Number { name: "rewire_fraction", .. } => "rewire-fraction",
        UniformParamsError::Number { name: "negatives", .. } => "negatives",
        UniformParamsError::Number { name: "groups", .. } => "groups",
        UniformParamsError::Number { name: "vector_rate", .. } => "network.vector-rate",
        UniformParamsError::Number { name: "input_dropout", .. } => "network.input-dropout",
        UniformParamsError::Number { name: "hidden_dropout", .. } => "network.dropout",
        UniformParamsError::Connections(ConnectionsError::TooMany { .. } | ConnectionsError::Zero { .. })
        | UniformParamsError::TooMany { .. } => "connections",
        UniformParamsError::Moments { .. } => "moments",
        UniformParamsError::Dense { .. } => "wiring dense",
        _ => "train",
    };
    CliError::usage(format_args!("--{option}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_a_number_or_none() {
        assert_eq!(parse_units("none"), Ok(Units(None)));
        assert_eq!(parse_units("65536"), Ok(Units(Some(65_536))));
        assert_eq!(parse_units("many").unwrap_err(), "met \"many\", wanted a number of units or none");
    }
}
