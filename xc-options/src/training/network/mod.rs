//! The one way from settings to a trained network: read, check, announce, train, save, judge.

mod astra;
mod choices;
mod dense;
mod explain;
mod lns;
mod mach;
mod skipgram;
mod uniform;

use super::plan::{Resolved, TrainingPlan};
use super::{Outcome, Training};
use crate::settings::{Choices, network};
use choices::NetworkChoices;
pub(super) use choices::for_all;
pub(super) use explain::resolve;
use std::time::Instant;
use xc_data::HoldOut;
use xc_train::fit::{Context, FitError, Instances, Judging, NetworkSession, Outputs, Place, TrainingShape};
use xc_train::network::NetworkParams;
use xc_train::preset::Preset;

/// The system of a kind of network.
pub(super) fn system(kind: &str, choices: &Choices, place: &Place) -> Option<Box<dyn System>> {
    Some(match kind {
        "dense" => Box::new(dense::Dense::new(choices)),
        "uniform" => Box::new(uniform::Uniform::new(choices)),
        "lns" => Box::new(lns::Lns::new(choices)),
        "astra" => Box::new(astra::Astra::new(choices)),
        "mach" => Box::new(mach::Mach::new(choices, place.part)),
        "skipgram" => Box::new(skipgram::Skipgram::new(choices, place)),
        _ => return None,
    })
}

/// A kind of network: what its options make of its preset, and how it is trained.
pub(super) trait System {
    /// What the kind is called and begins with.
    fn preset(&self) -> Preset;

    /// What was chosen of how its network looks and learns.
    fn choices(&self) -> &NetworkChoices;

    /// Refuses what is impossible before the long work, beside the network's settings.
    fn check(&self, training: &Training) -> Result<(), FitError> {
        let _ = training;
        Ok(())
    }

    /// Reads everything that is named, and says which instances are held out.
    fn read(&self, of: &Training, hold_out: Option<HoldOut>, context: &Context<'_>) -> Result<Instances, FitError> {
        let named = of.reading()?.with_transformer(&self.preset())?;
        named.refuse_idle()?;
        Ok(Instances::Files(named.ready().read(hold_out, context)?))
    }

    /// What the kind begins with for instances of a shape, below an intermediate layer.
    fn preset_for(&self, shape: &TrainingShape) -> Preset {
        let _ = shape;
        self.preset()
    }

    /// The network for instances of a shape. Asked once for the widest vectors before any data
    /// are read: what depends on no data is refused then. `has_file`: whether there is a validation file.
    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError>;

    /// What the outputs over instances of a shape stand for.
    fn outputs(&self, shape: &TrainingShape) -> Result<Outputs, FitError> {
        let _ = shape;
        Ok(Outputs::labels(self.preset().name))
    }

    /// Whether the last width of the classifier is that of an intermediate layer, which has an option of its own.
    fn has_intermediate(&self, _: &TrainingShape) -> bool {
        false
    }

    /// What is said before the training, beside layers and memory; refuses what does not go with
    /// the data.
    fn announce(&self, session: &NetworkSession<'_>) -> Result<(), FitError> {
        let _ = session;
        Ok(())
    }

    /// The preset that was chosen by name.
    fn named_preset(&self) -> Option<String> {
        None
    }

    /// Adds the values of its own settings for instances of a shape.
    fn resolve(&self, shape: &TrainingShape, network: &NetworkParams, out: &mut Resolved) {
        let _ = (shape, network, out);
    }

    /// Adds to a plan what its own settings mean for the data.
    fn explain(&self, session: &NetworkSession<'_>, plan: &mut TrainingPlan) {
        let _ = (session, plan);
    }
}

/// Which instances are held out, and what for.
pub(super) struct Judges<'a> {
    /// Those of the training file.
    pub(super) hold_out: Option<HoldOut>,
    /// What is computed of the answers to them, or to those of the validation file.
    pub(super) judging: &'a Judging,
    /// Whether they choose the epoch whose parameters are kept, or judge the finished network alone.
    pub(super) choose_epoch: bool,
}

/// What is known before any data are read: the widest vectors.
fn widest(system: &dyn System, of: &Training) -> TrainingShape {
    let input = system.choices().input(of.source.input());
    TrainingShape { input, n_features: usize::MAX, n_labels: 0, most_labels: 0, data: None }
}

/// Refuses settings that are impossible or do not go together, before any data are read.
pub(super) fn check(system: &dyn System, of: &Training, has_validation: bool, seed: u64) -> Result<(), FitError> {
    let args = system.choices();
    args.check_build()?;
    // Only checked here: the values follow from the instances once these are read.
    args.shown(&system.preset(), system.preset().params.encoder.input())?;
    of.choices.hold_out(seed)?;
    args.run()?;
    let params = system.params(&widest(system, of), seed, has_validation)?;
    args.refuse_idle(&system.preset(), &params.classifier)?;
    of.reading().map(drop)?;
    system.check(of)
}

/// The network for instances of a shape that is known.
pub(super) fn params(
    system: &dyn System,
    shape: &TrainingShape,
    seed: u64,
    has_validation: bool,
) -> Result<NetworkParams, FitError> {
    let (args, mut network) = (system.choices(), system.params(shape, seed, has_validation)?);
    args.settle(shape.n_features, &mut network);
    args.refuse_idle(&system.preset_for(shape), &network.classifier)?;
    Ok(network)
}

/// Trains and saves a network, and says how good it is; or what would be done.
pub(super) fn train(
    system: &dyn System,
    of: &Training,
    explain: bool,
    judges: &Judges<'_>,
    context: &Context<'_>,
) -> Result<Outcome, FitError> {
    let args = system.choices();
    // What can be refused is refused before the long work: settings first, then the output, then
    // the inputs.
    let has_validation = of.source.has_validation() && judges.choose_epoch;
    check(system, of, has_validation, context.seed)?;
    let run = args.run()?;
    let folder = match explain || of.in_memory {
        true => None,
        false => {
            of.place.check_model()?;
            let layout = system.outputs(&widest(system, of))?.checkpoint();
            Some(of.place.claim_checkpoint(layout, context)?)
        }
    };

    let start = Instant::now();
    let context = &if explain { context.planning() } else { *context };
    let instances = system.read(of, judges.hold_out, context)?;
    let read_s = start.elapsed().as_secs_f64();
    let shape = TrainingShape::of(&instances);
    let network = params(system, &shape, context.seed, has_validation)?;
    let outputs = system.outputs(&shape)?;
    let session = NetworkSession::new(&outputs, (instances, shape), network, judges.choose_epoch, context);
    let mut session = session.between(of.source.name(), of.target()).with_run(run);
    if let Some(encoder) = args.encoder()? {
        session = session.with_encoder(encoder)?;
    }
    let memory = session.announce(system.has_intermediate(&shape))?;
    system.announce(&session)?;
    if explain {
        let memory = memory["total_bytes"].as_u64().unwrap_or(0);
        return Ok(Outcome::Planned(explain::plan(&session, system, of, memory)?));
    }
    let (report, container) = session.run(folder, read_s, memory, judges.judging)?;
    Ok(Outcome::Trained(Box::new(report), container))
}

/// What is impossible about a classifier, by the option that says it.
pub(super) fn params_error(error: &xc_model::classifier::ClassifierParamsError) -> FitError {
    network::params_error(error).into()
}
