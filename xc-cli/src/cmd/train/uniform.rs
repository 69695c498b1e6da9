//! `xc train uniform`: a network with a sparse output layer.

use super::explain::{Origin, Plan, counted};
use super::instances::FileArgs;
use super::network::{self, Session, Shape, System, params_error};
use super::network_args::{LOSSES, NetworkArgs, show_defaults, with_default};
use crate::context::Context;
use crate::error::CliError;
use crate::named::label_of;
use crate::settings::{Chosen, OfTable, names};
use xc_nn::sampler::SamplerParams;
use xc_train::classifier::preset::{DataShape, FEW};
use xc_train::classifier::{
    ClassifierParams, ConnectionLearning, EmbeddingInit, EncoderParams, HeadParams, InputKind, Preset,
    SparseHeadParams, preset,
};
use xc_train::settings::uniform::{self, UniformSettings};
use xc_train::settings::{Setting, Table};

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
    head: Chosen<OfUniform>,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// Adds the default to the help of an option; vectors have that of the preset.
fn show_default_of_data(arg: clap::Arg) -> clap::Arg {
    let head = SparseHeadParams::default();
    match arg.get_id().as_str() {
        "head.fan-in" => return with_default(arg, &head.fan_in.to_string()),
        "head.rewire-fraction" => {
            return with_default(arg, &ConnectionLearning::default().rewire_fraction.to_string());
        }
        "network.activation" => return with_default(arg, "identity after lsa, else relu"),
        _ => {}
    }
    let of = |n_instances| preset::uniform_for(DataShape { n_instances, n_entries: 0, n_labels: 0 });
    show_defaults(&of(usize::MAX), &[("few instances", of(0)), ("vectors", preset::uniform())], arg)
}

/// The sparse output layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfUniform;

impl OfTable for OfUniform {
    const TABLE: Table = uniform::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        (row.name == "head.wiring").then(|| "uniform".to_owned())
    }
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
        self.head().has_intermediate()
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, CliError> {
        // The preset's last width is the intermediate layer, which has an option of its own.
        let mut preset = self.preset_for(shape);
        let usual = preset.params.encoder.widths_mut().pop();
        let head = UniformSettings::new(&self.head.choices)?;
        let intermediate = head.intermediate(usual);
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
        head.put(self.network.batch_size(&preset), &mut params)?;
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
            out.set("sampler", label_of(&sampler), Origin::Follows("negatives.sampled"));
        }
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), CliError> {
        let (unseen, n_labels) = (session.n_unseen(), session.shape.n_labels);
        if unseen > 0 {
            session.context.note(format_args!(
                "{unseen} of {n_labels} labels have no training instance: they are trained as negatives only"
            ));
        }
        Ok(())
    }
}

impl Args {
    fn head(&self) -> UniformSettings {
        UniformSettings::new(&self.head.choices).unwrap_or_default()
    }
}
