//! `xc train uniform`: a network with a sparse output layer.

use super::explain::{Origin, Plan, counted};
use super::instances::FileArgs;
use super::network::{self, Session, Shape, System, params_error};
use super::network_args::{LOSSES, NetworkArgs, refuse_idle, show_defaults, with_default};
use crate::context::Context;
use crate::error::CliError;
use crate::named::{label_of, number_type};
use crate::settings::names;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use xc_nn::Loss;
use xc_nn::sampler::SamplerParams;
use xc_sparse::dtype::DType;
use xc_train::classifier::preset::{DataShape, FEW};
use xc_train::classifier::{
    ClassifierParams, ConnectionLearning, EmbeddingInit, EncoderParams, HeadParams, InputKind, MAX_UNITS, Preset,
    SparseHeadParams, Wiring, preset,
};

/// Train a network with a sparse output layer
///
/// Each label is connected with --head.fan-in units of a wide layer
/// (--network.intermediate) instead of all of them: memory and time of the output layer
/// grow with labels * fan-in. The squared hinge skips labels that are right by a margin.
/// The weakest connections are dropped and redrawn during training.
///
/// Instances are sparse features or text, or vectors that were computed elsewhere:
/// --features FILE.npy (one row per instance, f32) in addition to --train, which then gives
/// only the labels. A file of plain f32 stays on disk.
///
/// The memory that training needs is printed before it begins; --max-memory refuses more.
/// Progress is logged to MODEL.log. --resume continues an interrupted run, which ends with
/// the same bytes as without the interruption.
///
/// Examples:
///   xc train uniform --train train.txt --tfidf --model my.model
///   xc train uniform --train labels.txt --features train.npy --head.precision bf16
///     --model my.model
///   xc train uniform --train l.txt --features x.npy --validation lv.txt
///     --validation-features v.npy --epochs 100 --schedule plateau --schedule.lowest 0.1
///     --monitor P@3 --patience 1 --patience-from lowest-rate --model my.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(show_default_of_data))]
#[command(mut_arg("network.widths", |arg| arg.help(
    "Hidden layer sizes below the intermediate one, input side first, e.g. 512,512: for sparse features the first is the width of \
     their embeddings [default: 512 for sparse features, none for vectors]"
)))]
#[command(mut_arg("network.init", |arg| arg.help(
    "Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows) [default: lsa; \
     random without an intermediate layer]"
)))]
#[command(mut_arg("loss", |arg| arg.value_parser(names(LOSSES)).help(
    "squared-hinge or bce (each label true or false), softmax (one true label) [default: squared-hinge]"
)))]
pub(crate) struct Args {
    #[command(flatten)]
    head: HeadArgs,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// Adds the default to the help of an option; vectors have that of the preset.
fn show_default_of_data(arg: clap::Arg) -> clap::Arg {
    let head = SparseHeadParams::default();
    match arg.get_id().as_str() {
        "fan_in" => return with_default(arg, &head.fan_in.to_string()),
        "rewire_fraction" => {
            return with_default(arg, &ConnectionLearning::default().rewire_fraction.to_string());
        }
        "network.activation" => return with_default(arg, "identity after lsa, else relu"),
        _ => {}
    }
    let of = |n_instances| preset::uniform_for(DataShape { n_instances, n_entries: 0, n_labels: 0 });
    show_defaults(&of(usize::MAX), &[("few instances", of(0)), ("vectors", preset::uniform())], arg)
}

/// What the output layer is.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Output layer options")]
struct HeadArgs {
    /// Units of the layer that labels are connected with; none: labels are connected with the layer below it [default:
    /// five for four labels, as a multiple of 512, from 512 to 32768]
    #[arg(long = "network.intermediate", value_name = "N|none", value_parser = parse_units)]
    intermediate: Option<Units>,
    /// Connections per label
    #[arg(long = "head.fan-in", value_name = "N")]
    fan_in: Option<usize>,
    /// The same number of connections for every label, the same number on average, or connections with all units (for
    /// comparison)
    #[arg(long = "head.wiring", value_name = "WIRING", value_parser = wiring(), default_value = "uniform")]
    wiring: Connections,
    /// Type of the connections' weights, in training and in the model [default: f32]
    #[arg(long = "head.precision", value_name = "TYPE", value_parser = number_type([DType::F32, DType::Bf16, DType::F16, DType::E4m3, DType::E5m2]))]
    weights: Option<DType>,
    /// Type of the optimiser's moments of the connections [default: f32]
    #[arg(long = "head.moments", value_name = "TYPE", value_parser = number_type([DType::F32, DType::Bf16]))]
    moments: Option<DType>,
    /// Score every label in full in each step. By default, with the squared hinge, batches of more than 64 and many
    /// labels, a step first screens labels in 8 bits and scores those that may be within the margin
    #[arg(long = "head.no-screening")]
    no_screening: bool,
    /// Steps between rewirings; 0: connections stay fixed [default: as many as 32000 instances take]
    #[arg(long = "head.rewire-every", value_name = "STEPS")]
    rewire_every: Option<u64>,
    /// Share of the connections, the weakest, that are redrawn in a rewiring; 0: none
    #[arg(long = "head.rewire-fraction", value_name = "SHARE")]
    rewire_fraction: Option<f64>,
    /// Labels that a step scores in addition to the true ones of its batch: all, uniform negatives, or negatives drawn
    /// by the frequency of labels or by its rank [default: all; uniform with --negatives]
    #[arg(long, value_name = "SAMPLER", value_parser = sampler())]
    sampler: Option<SamplerParams>,
    /// Negatives drawn per step
    #[arg(long, value_name = "N", required_if_eq_any([
        ("sampler", "uniform"),
        ("sampler", "log-uniform"),
        ("sampler", "frequency"),
    ]))]
    negatives: Option<usize>,
    /// The chance of a label is proportional to this power of its frequency (--sampler frequency)
    /// [default: 0.75]
    #[arg(long = "sampler.power", value_name = "X")]
    power: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Units(Option<usize>);

fn parse_units(text: &str) -> Result<Units, String> {
    match text {
        "none" => Ok(Units(None)),
        _ => match text.parse() {
            Ok(n) if n <= MAX_UNITS => Ok(Units(Some(n))),
            Ok(_) => Err(format!("got {text:?}, expected at most {MAX_UNITS} units")),
            Err(_) => Err(format!("got {text:?}, expected a number of units or none")),
        },
    }
}

/// How labels are connected: some units each, or none of that but a dense layer.
#[derive(Clone, Copy, Debug)]
struct Connections(Option<Wiring>);

fn wiring() -> impl TypedValueParser<Value = Connections> {
    PossibleValuesParser::new(["uniform", "unstructured", "dense"]).map(|name| {
        Connections(match &*name {
            "uniform" => Some(Wiring::Uniform),
            "unstructured" => Some(Wiring::Unstructured),
            _ => None,
        })
    })
}

/// Reads a sampler by its name; its numbers are options of their own.
fn sampler() -> impl TypedValueParser<Value = SamplerParams> {
    PossibleValuesParser::new(["all", "uniform", "log-uniform", "frequency"]).map(|name| match &*name {
        "uniform" => SamplerParams::Uniform { per_list: 0 },
        "log-uniform" => SamplerParams::LogUniform { per_list: 0 },
        "frequency" => SamplerParams::Frequency { per_list: 0, power: 0.0 },
        _ => SamplerParams::All,
    })
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    network::run(args, &args.data, &args.network, context)
}

impl System for Args {
    fn preset(&self) -> Preset {
        preset::uniform()
    }

    fn preset_for(&self, shape: &Shape) -> Preset {
        shape.data.map_or_else(preset::uniform, preset::uniform_for)
    }

    fn has_intermediate(&self) -> bool {
        self.head.has_intermediate()
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, CliError> {
        // The preset's last width is the intermediate layer, which has an option of its own.
        let mut preset = self.preset_for(shape);
        let usual = preset.params.encoder.widths_mut().pop();
        let intermediate = self.head.intermediate.map_or(usual, |Units(units)| units);
        if intermediate.is_none() && !self.network.has_init() {
            preset.params.learning.init = EmbeddingInit::Random;
            preset.params.encoder = EncoderParams::bag(preset.params.encoder.widths());
        }
        let mut params = self.network.apply(&preset, shape.input, seed)?;
        if shape.input == InputKind::Sparse && params.encoder.widths().is_empty() {
            return Err(CliError::usage("--network.widths: at least one width is expected, none of them 0"));
        }
        if intermediate == Some(0) {
            return Err(CliError::usage("--network.intermediate 0: at least 1 unit is expected, or none"));
        }
        params.encoder.widths_mut().extend(intermediate);
        self.head.apply(self.network.batch_size(&preset), &mut params)?;
        params.check(shape.n_features, shape.n_labels).map_err(|e| params_error(&e))?;
        Ok(params)
    }

    fn origin(&self, option: &str, _: &Shape) -> Origin {
        match option {
            "network.intermediate" | "batch" | "optimizer.rate" => Origin::Data,
            _ => Origin::Default,
        }
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        let Session { shape, params, training, .. } = session;
        let units = params.encoder.widths().last().copied().filter(|_| self.has_intermediate());
        let (labels, instances) = (shape.n_labels, session.instances.targets().len());
        let has_few = shape.data.is_some_and(|data| data.has_few_instances());
        plan.lines.push((
            "sizes",
            format!(
                "{labels} labels: intermediate layer of {}; {} ({}): batches of {}",
                units.map_or_else(|| "no units".to_owned(), |units| counted(units, "unit")),
                counted(instances, "instance"),
                if has_few { format!("fewer than {FEW}") } else { format!("{FEW} or more") },
                training.batch_size,
            ),
        ));
        let out = &mut plan.resolved;
        out.set_some("network.intermediate", units, "none", Origin::Data);
        if let HeadParams::Sparse(head) = &params.head {
            out.set("head.fan-in", head.fan_in, Origin::Default);
            out.set("head.precision", head.weights.short_name(), Origin::Default);
            let (of, sampler) = (params.learning.connections, params.learning.negatives.sampler);
            out.set("head.moments", of.moments.short_name(), Origin::Default);
            out.set("head.rewire-fraction", of.rewire_fraction, Origin::Default);
            let power = match sampler {
                SamplerParams::Frequency { power, .. } => Some(power),
                _ => None,
            };
            out.set_some("sampler.power", power, "none", Origin::Follows("sampler"));
            out.set("head.rewire-every", of.rewire_every, Origin::Follows("batch"));
            out.set("sampler", label_of(&sampler), Origin::Follows("negatives"));
        }
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), CliError> {
        let (unseen, n_labels) = (session.n_unseen(), session.shape.n_labels);
        if unseen > 0 {
            session.context.note(format_args!(
                "{unseen} of {n_labels} labels have no training instance: they are taught to be false everywhere"
            ));
        }
        Ok(())
    }
}

impl HeadArgs {
    fn has_intermediate(&self) -> bool {
        !matches!(self.intermediate, Some(Units(None)))
    }

    /// Gives the classifier this head.
    fn apply(&self, batch_size: usize, params: &mut ClassifierParams) -> Result<(), CliError> {
        let Some(wiring) = self.wiring.0 else {
            params.head = self.dense()?;
            return Ok(());
        };
        let (usual, loss, sampler) = (SparseHeadParams::default(), params.loss, self.sampler()?);
        let usual_learning = ConnectionLearning::default();
        let is_frequency = matches!(sampler, SamplerParams::Frequency { .. });
        let screens = sampler == SamplerParams::All && loss == Loss::SquaredHinge;
        refuse_idle(&[
            ("sampler.power", self.power.is_some() && !is_frequency, "--sampler frequency"),
            ("head.no-screening", self.no_screening && !screens, "--loss squared-hinge over all labels"),
            (
                "head.rewire-fraction",
                self.rewire_fraction.is_some_and(|share| share > 0.0) && self.rewire_every == Some(0),
                "a --head.rewire-every above 0",
            ),
            (
                "head.rewire-every",
                self.rewire_every.is_some_and(|steps| steps > 0) && self.rewire_fraction == Some(0.0),
                "a --head.rewire-fraction above 0",
            ),
        ])?;
        params.head = HeadParams::Sparse(SparseHeadParams {
            fan_in: self.fan_in.unwrap_or(usual.fan_in),
            wiring,
            weights: self.weights.unwrap_or(DType::F32),
        });
        params.learning.negatives = sampler.into();
        params.learning.connections = ConnectionLearning {
            moments: self.moments.unwrap_or(DType::F32),
            screening: !self.no_screening,
            rewire_every: self.rewire_every.unwrap_or(ConnectionLearning::usual_rewire_every(batch_size)),
            rewire_fraction: self.rewire_fraction.unwrap_or(usual_learning.rewire_fraction),
        };
        Ok(())
    }

    fn sampler(&self) -> Result<SamplerParams, CliError> {
        let Some(per_list) = self.negatives else { return Ok(SamplerParams::All) };
        match self.sampler {
            Some(SamplerParams::All) => {
                Err(CliError::usage("--negatives: --sampler all scores every label; one of the two is expected"))
            }
            Some(SamplerParams::LogUniform { .. }) => Ok(SamplerParams::LogUniform { per_list }),
            Some(SamplerParams::Frequency { .. }) => {
                Ok(SamplerParams::Frequency { per_list, power: self.power.unwrap_or(0.75) })
            }
            _ => Ok(SamplerParams::Uniform { per_list }),
        }
    }

    /// The dense layer that sparse ones are compared with: what belongs to sparse ones is refused.
    fn dense(&self) -> Result<HeadParams, CliError> {
        let given = [
            ("head.fan-in", self.fan_in.is_some()),
            ("head.precision", self.weights.is_some()),
            ("head.moments", self.moments.is_some()),
            ("head.no-screening", self.no_screening),
            ("head.rewire-every", self.rewire_every.is_some()),
            ("head.rewire-fraction", self.rewire_fraction.is_some()),
            ("sampler", self.sampler.is_some_and(|sampler| sampler != SamplerParams::All)),
            ("negatives", self.negatives.is_some()),
            ("sampler.power", self.power.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(CliError::usage(format_args!(
                "--{option} belongs to sparse output layers; --head.wiring dense has none"
            ))),
            None => Ok(HeadParams::Dense),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_a_number_or_none() {
        assert_eq!(parse_units("none"), Ok(Units(None)));
        assert_eq!(parse_units("65536"), Ok(Units(Some(65_536))));
        assert_eq!(parse_units("many").unwrap_err(), "got \"many\", expected a number of units or none");
    }
}
