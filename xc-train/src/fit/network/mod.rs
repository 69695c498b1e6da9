//! The one way from settings to a trained network: read, check, announce, train, save, judge.

mod announce;
mod astra;
mod choices;
mod corpus;
mod cost;
mod dense;
mod explain;
mod instances;
mod lns;
mod mach;
mod memory;
mod shape;
mod skipgram;
mod uniform;
mod wide;

use super::context::{Context, NetworkRun};
use super::data::Datasets;
use super::place::{Place, drop_checkpoint};
use super::plan::{Plan, seen_labels};
use super::report::{Judging, Report, score_against};
use super::{FitError, Outcome, Training};
use crate::learn::initialise;
use crate::network::NetworkParams;
use crate::preset::{ASTRA, Preset};
use crate::settings::Choices;
use crate::settings::network::RunParams;
use choices::NetworkChoices;
pub(super) use choices::for_all;
pub use cost::Costs;
use cost::Counting;
use instances::Instances;
pub(super) use memory::sparse_ids;
use serde_json::{Map, Value, json};
pub(in crate::fit) use shape::Shape;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xc_data::{HoldOut, Split};
use xc_metrics::MetricReport;
use xc_model::Extras;
use xc_model::classifier::{Classifier, ClassifierParams, Only};
use xc_model::message::{chain, counted};
use xc_nn::sampler::SampleError;
use xc_nn::trainer::{CHECKPOINT, CheckpointAt, STATE, Subset, TrainError, TrainObserver};
use xc_nn::{Examples, HardLabels, Rows, TargetRows, TrainParams, Trainer};
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;
use xc_store::{Checkpoint, CheckpointLayout, Container};

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

/// Least time between the checkpoints that are written after epochs.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(60);

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
        let reading = of.reading()?.with_transformer(&self.preset())?;
        reading.refuse_idle()?;
        Ok(Instances::Files(reading.read(hold_out, context)?))
    }

    /// What the kind begins with for instances of a shape, below an intermediate layer.
    fn preset_for(&self, shape: &Shape) -> Preset {
        let _ = shape;
        self.preset()
    }

    /// The network for instances of a shape. Asked once for the widest vectors before any data
    /// are read: what depends on no data is refused then. `has_file`: whether there is a validation file.
    fn params(&self, shape: &Shape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError>;

    /// Outputs of a classifier, which need not be the labels.
    fn n_outputs(&self, shape: &Shape) -> usize {
        shape.n_labels
    }

    /// Bytes of the outputs that are true of each instance, where they are not its labels.
    fn targets(&self, session: &Session<'_>) -> u64 {
        let _ = session;
        0
    }

    /// Bytes of a finished model that answers out of its files, rather than the network in memory.
    fn answering(&self, shape: &Shape, params: &ClassifierParams) -> u64 {
        let _ = (shape, params);
        0
    }

    /// Whether the last width of the classifier is that of an intermediate layer, which has an option of its own.
    fn has_intermediate(&self, _: &Shape) -> bool {
        false
    }

    /// What is said before the training, beside layers and memory; refuses what does not go with
    /// the data.
    fn announce(&self, session: &Session<'_>) -> Result<(), FitError> {
        let _ = session;
        Ok(())
    }

    /// The preset that was chosen by name.
    fn named_preset(&self) -> Option<String> {
        None
    }

    /// Adds the values of its own settings to a plan, and what they mean for the data.
    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        let _ = (session, plan);
    }

    /// What its checkpoints look like.
    fn checkpoint(&self) -> CheckpointLayout {
        CHECKPOINT
    }

    /// Everything that first values follow from beside the data.
    fn describe(&self, session: &Session<'_>) -> Value {
        let classifier = &session.network.classifier;
        json!([self.preset().name, classifier, classifier.learning])
    }

    /// Trains.
    fn train<'t>(&'t self, session: &'t Session<'t>) -> Result<Trained<'t>, FitError> {
        session.train_one(self.preset().name)
    }
}

/// Saves a model with what belongs to it.
type Save<'t> = Box<dyn FnOnce(Extras<'_>) -> Result<Option<Container>, FitError> + 't>;
/// Answers instances; a model that stays in memory is given.
type Ask<'t> = Box<dyn FnOnce(Rows<'_>, Option<&Container>) -> Result<RankedBatch, FitError> + 't>;

/// What came out of a training run.
pub(in crate::fit) struct Trained<'t> {
    /// Begins the model folder and adds to it.
    pub(super) save: Save<'t>,
    /// The five best labels of each instance, once the model is saved; nothing where answers are no
    /// labels.
    pub(super) answer: Option<Ask<'t>>,
    /// What it consists of, for a person.
    pub(super) what: String,
    /// Further figures.
    pub(super) figures: Map<String, Value>,
}

/// A classifier that was trained.
pub(in crate::fit) struct Learned {
    pub(super) classifier: Classifier,
    /// What it consists of, for a person.
    pub(super) what: String,
    /// Further figures.
    pub(super) figures: Map<String, Value>,
}

/// What a network is called where its training is followed.
#[derive(Clone, Copy)]
pub(in crate::fit) struct Watched<'a> {
    /// Nothing, or what lines about it begin with.
    pub(super) what: &'a str,
    /// What its outputs stand for.
    pub(super) outputs: &'static str,
}

/// What a training run of a network leaves beside the network, and who follows it.
pub(in crate::fit) struct Followed<'a> {
    pub(super) watched: Watched<'a>,
    pub(super) keep: Option<Keep>,
    pub(super) counting: Option<&'a Counting>,
    /// The false labels that steps score highest, where they are wanted.
    pub(super) hard: Option<&'a mut HardLabels>,
}

/// Where a training run leaves its state and its log.
pub(in crate::fit) struct Keep {
    /// Part of the checkpoint.
    pub(super) part: String,
    /// Folder of the log, where there is one.
    pub(super) log: Option<PathBuf>,
}

/// Everything that training the networks of one command needs.
pub(in crate::fit) struct Session<'a> {
    pub(super) of: &'a Training,
    pub(super) args: &'a NetworkChoices,
    pub(super) context: &'a Context<'a>,
    /// Whether it is only to be explained.
    pub(super) explain: bool,
    pub(super) instances: Instances,
    pub(super) shape: Shape,
    pub(super) network: NetworkParams,
    pub(super) run: RunParams,
    /// Labels of the validation instances that the training instances have, if these choose the epoch.
    judged: Option<LabelRows>,
    choose_epoch: bool,
    checkpoint: Option<&'a Checkpoint>,
}

/// Which instances are held out, and what for.
pub(in crate::fit) struct Judges<'a> {
    /// Those of the training file.
    pub(super) hold_out: Option<HoldOut>,
    /// What is computed of the answers to them, or to those of the validation file.
    pub(super) judging: &'a Judging,
    /// Whether they choose the epoch whose parameters are kept, or judge the finished network alone.
    pub(super) choose_epoch: bool,
}

/// Refuses settings that are impossible or do not go together, before any data are read.
pub(super) fn check(system: &dyn System, of: &Training, has_validation: bool, seed: u64) -> Result<(), FitError> {
    let args = system.choices();
    args.check_build()?;
    // Only checked here: the values follow from the instances once these are read.
    args.shown(&system.preset(), system.preset().params.encoder.input())?;
    of.choices.hold_out(seed)?;
    args.run()?;
    let input = args.input(of.source.input());
    let widest = Shape { input, n_features: usize::MAX, n_labels: 0, most_labels: 0, data: None };
    let params = system.params(&widest, seed, has_validation)?;
    args.refuse_idle(&system.preset(), &params.classifier)?;
    of.reading().map(drop)?;
    system.check(of)
}

/// Trains and saves a network, and says how good it is; or what would be done.
pub(super) fn train(
    system: &dyn System,
    of: &Training,
    explain: bool,
    judges: &Judges<'_>,
    context: &Context<'_>,
) -> Result<Outcome, FitError> {
    let (preset, args, place) = (system.preset(), system.choices(), &of.place);
    // What can be refused is refused before the long work: settings first, then the output, then
    // the inputs.
    let has_validation = of.source.has_validation() && judges.choose_epoch;
    check(system, of, has_validation, context.seed)?;
    let run = args.run()?;
    let folder = match explain || of.in_memory {
        true => None,
        false => {
            place.check_model()?;
            Some(place.claim_checkpoint(system.checkpoint(), context)?)
        }
    };

    let start = Instant::now();
    let instances = system.read(of, judges.hold_out, &Context { plans: explain, ..*context })?;
    let read_s = start.elapsed().as_secs_f64();
    let shape = Shape::of(&instances);
    let mut network = system.params(&shape, context.seed, has_validation)?;
    args.settle(shape.n_features, &mut network.classifier);
    if !explain {
        args.name_weights(&mut network.classifier)?;
    }
    args.refuse_idle(&system.preset_for(&shape), &network.classifier)?;
    let judged = instances.validation().filter(|_| judges.choose_epoch);
    let judged = judged.map(|set| set.labels.within(shape.n_labels));
    let checkpoint: Option<Checkpoint>;
    let mut session = Session {
        of,
        args,
        context,
        explain,
        instances,
        shape,
        network,
        run,
        judged,
        choose_epoch: judges.choose_epoch,
        checkpoint: None,
    };
    let memory = session.announce(system)?;
    if explain {
        let plan = session.plan(system, memory["total_bytes"].as_u64().unwrap_or(0));
        return Ok(Outcome::Planned(plan?));
    }

    let start = Instant::now();
    checkpoint = match folder {
        Some(folder) => Some(folder.begin(session.key(system)?)?),
        None => None,
    };
    session.checkpoint = checkpoint.as_ref();
    let Trained { save, answer, what, figures } = system.train(&session)?;
    let train_s = start.elapsed().as_secs_f64();
    context.check_interrupt()?;

    let start = Instant::now();
    let mut kept = session.kept();
    // Parts of a MACH model may be trained apart: it has no steps of its own.
    let steps = figures.get("steps").filter(|_| preset.name != xc_model::mach::KIND);
    if let (Some(kept), Some(steps)) = (kept.as_object_mut(), steps) {
        kept.insert("steps".to_owned(), steps.clone());
        kept.extend(figures.get("epochs").map(|epochs| ("epochs".to_owned(), epochs.clone())));
    }
    let train = session.instances.files().map(|sets| &sets.train);
    let (maker, names) = (train.and_then(|set| set.maker.as_ref()), train.and_then(|set| set.names.as_deref()));
    let rows = session.instances.files().map(Datasets::training_rows);
    let input = train.map(|set| &set.form);
    let container = save(Extras { maker, names, input, training: Some(kept.clone()), rows: rows.as_ref() })?;
    let save_s = start.elapsed().as_secs_f64();

    let metrics = answer.map(|answer| session.score(answer, container.as_ref(), judges.judging)).transpose()?.flatten();
    if let Some(checkpoint) = checkpoint {
        drop_checkpoint(checkpoint, context);
    }
    let mut further = figures;
    further.insert("memory".to_owned(), memory);
    let report = Box::new(Report {
        kind: preset.name,
        model: place.model.clone(),
        read_s,
        train_s,
        save_s,
        metrics,
        curve: Vec::new(),
        what,
        further,
        logged: Map::from_iter([("training".to_owned(), kept)]),
        data: rows.map(|rows| rows.fingerprint()),
    });
    Ok(Outcome::Trained(report, container))
}

impl Session<'_> {
    /// Trains one classifier over the labels, and saves and asks it.
    pub(super) fn train_one<'t>(&'t self, kind: &str) -> Result<Trained<'t>, FitError> {
        let Learned { classifier, what, figures } = self.learn(kind)?;
        let classifier = Arc::new(classifier);
        let (saved, target) = (Arc::clone(&classifier), self.of.target());
        Ok(Trained {
            save: Box::new(move |extras| target.save(saved.kind(), extras, |writer| Ok(saved.write(writer)?))),
            answer: Some(Box::new(move |features, _| {
                classifier
                    .predict(features, 5, Only::All, &mut Default::default())
                    .map_err(|e| FitError::failed(format_args!("validation: {}", chain(&e))))
            })),
            what,
            figures,
        })
    }

    /// Trains one classifier over the labels.
    pub(super) fn learn(&self, kind: &str) -> Result<Learned, FitError> {
        let Shape { n_features, n_labels, .. } = self.shape;
        let mut classifier = Classifier::new(kind, n_features, n_labels, self.network.classifier.clone())
            .map_err(|e| params_error(&e))?;
        self.args.begin(&mut classifier)?;
        let watched = Watched { what: "", outputs: "labels" };
        let keep = Keep { part: STATE.to_owned(), log: self.of.target().log() };
        let (labels, judged, counting) = (self.instances.targets(), self.judged.as_ref(), Counting::default());
        let mut hard = self.hard_labels()?;
        let of = Followed { watched, keep: Some(keep), counting: Some(&counting), hard: hard.as_mut() };
        let (steps, epochs, wide) =
            self.with_trainer(self.network.training.seed, labels, judged, of, |trainer, train, others| {
                if self.network.classifier.uses_lsa() {
                    self.context.note(format_args!("initial embeddings: lsa of {} rows", train.len()));
                }
                let begun = initialise(&mut classifier, self.of.target().spill(), train, trainer.observer);
                begun.map_err(|e| self.error(&e))?;
                self.args.cache_states(&mut classifier, train, self.context)?;
                let summary = trainer.train(classifier.network_mut(), train, others).map_err(|e| self.error(&e))?;
                classifier.transformer_mut().into_iter().for_each(|transformer| transformer.forget_states());
                let wide = trainer.hard.as_ref().map(|_| wide::LearnedFrom::of(train, others));
                Ok((summary.steps, summary.epochs, wide))
            })?;
        let costs = counting.costs();
        // The stages of a step are what ASTRA is about: a table of them, as its paper has.
        let said = if kind == ASTRA { costs.table(self.network.training.batch_size) } else { costs.line() };
        said.iter().flat_map(|said| said.lines()).for_each(|line| self.context.note(line));
        let wide = match hard.zip(wide) {
            Some((hard, watched)) => Some(("wide", self.add_wide(&mut classifier, hard, &watched)?)),
            None => None,
        };
        let n_values = classifier.network().n_values();
        let figures = [("parameters", json!(n_values)), ("steps", json!(steps)), ("epochs", json!(epochs))];
        let figures = figures.into_iter().chain(wide).chain(costs.json().map(|costs| ("cost", costs)));
        let figures = figures.map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Learned { classifier, what: format!("{n_values} parameters, {}", counted(steps as usize, "step")), figures })
    }

    /// Whether instances that the network does not learn from choose the epoch.
    pub(super) fn has_judges(&self) -> bool {
        self.args.held_out().is_some() || self.judged.is_some()
    }

    /// Whether instances that the network does not learn from judge the finished model.
    pub(super) fn is_judged(&self) -> bool {
        let Some(sets) = self.instances.files() else { return false };
        sets.validation.is_some() || (sets.split.is_some() && !self.choose_epoch)
    }

    /// The metrics of the finished model on the validation file, or, where they have not chosen the
    /// epoch, on the instances that were held out.
    fn score(
        &self,
        answer: Ask<'_>,
        container: Option<&Container>,
        judging: &Judging,
    ) -> Result<Option<MetricReport>, FitError> {
        let Some(sets) = self.instances.files() else { return Ok(None) };
        match (&sets.validation, &sets.split) {
            (Some(set), _) => {
                score_against(&sets.train.labels, set, answer(set.features(), container)?, judging).map(Some)
            }
            (None, Some(Split { kept, held_out })) if !self.choose_epoch => {
                let (learned, set) = (sets.train.labels.select(kept), sets.train.select(held_out));
                score_against(&learned, &set, answer(set.features(), container)?, judging).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Labels of the validation instances that the training instances have.
    pub(super) fn judged(&self) -> Option<&LabelRows> {
        self.judged.as_ref()
    }

    /// The key of the training's checkpoint.
    fn key(&self, system: &dyn System) -> Result<String, FitError> {
        let watched = Watched { what: "", outputs: "labels" };
        let (labels, judged, seed) = (self.instances.targets(), self.judged.as_ref(), self.network.training.seed);
        let of = Followed { watched, keep: None, counting: None, hard: None };
        self.with_trainer(seed, labels, judged, of, |trainer, train, others| {
            Ok(trainer.key(system.checkpoint(), &system.describe(self), train, others))
        })
    }

    /// The checkpoint, which is there once training begins; a model that stays in memory has none.
    pub(super) fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint
    }

    /// Hands a trainer, the instances to learn from and those that judge to `work`. `targets` and
    /// `judged` are what the outputs of the network stand for.
    pub(super) fn with_trainer<T>(
        &self,
        seed: u64,
        targets: TargetRows<'_>,
        judged: Option<&LabelRows>,
        Followed { watched, keep, counting, hard }: Followed<'_>,
        work: impl FnOnce(&mut Trainer<'_>, &Subset<'_>, Option<&Subset<'_>>) -> Result<T, FitError>,
    ) -> Result<T, FitError> {
        fn examples<'d>(features: Rows<'d>, targets: TargetRows<'d>) -> Result<Examples<'d>, FitError> {
            Examples::try_new(features, targets)
                .map_err(|e| FitError::usage(format_args!("training data: {}", chain(&e))))
        }
        let all = examples(self.instances.features(), targets)?;
        let others = self.instances.validation().zip(judged);
        let label_texts = self.instances.files().and_then(|sets| sets.label_texts).map(|first| first as u32);
        let of_texts = self.instances.files().is_some_and(|sets| sets.train.of_texts);
        let train = Subset::all(all).with_label_texts(label_texts).with_texts(of_texts);
        let split = self.instances.files().and_then(|sets| sets.split.as_ref());
        let (train, validation) = match (split, self.args.held_out(), others) {
            (Some(Split { kept, held_out }), ..) => {
                // Texts of labels, behind all instances, are never held out.
                let texts = label_texts.into_iter().flat_map(|first| first..all.len() as u32);
                let kept = kept.iter().copied().chain(texts).collect();
                let judges = self.choose_epoch.then(|| Subset::some(all, held_out.clone()).with_texts(of_texts));
                (Subset::some(all, kept).with_label_texts(label_texts), judges)
            }
            // Words of a text, which are no rows of a file.
            (None, Some(share), _) => {
                let (train, held_out) =
                    train.hold_out(share, self.of.choices.split_seed().unwrap_or(self.context.seed));
                (train, Some(held_out))
            }
            (None, None, Some((set, targets))) => {
                let others = Subset::all(examples(set.features(), targets.into())?);
                (train, Some(others.with_texts(set.of_texts)))
            }
            (None, None, None) => (train, None),
        };
        let NetworkParams { classifier, training, optimizer, schedule } = &self.network;
        let steps = train.rows().len().div_ceil(training.batch_size) as u64 * u64::from(training.epochs);
        let mut schedule = schedule.over(steps);
        let followed = self.context.observer.of_network(&NetworkRun {
            what: watched.what,
            outputs: watched.outputs,
            log: keep.as_ref().and_then(|keep| keep.log.as_deref()),
            log_every: self.run.log_every,
            monitor: training.monitor,
            selects: training.keep == xc_nn::trainer::Keep::Best,
        })?;
        let both = counting.map(|counting| (&*followed, counting));
        let observer: &TrainObserver<'_> = match &both {
            Some(both) => both,
            None => &*followed,
        };
        let mut trainer = Trainer {
            loss: classifier.loss,
            optimizer: optimizer.rule(),
            schedule: &mut *schedule,
            params: TrainParams { seed, ..training.clone() },
            checkpoint: self.checkpoint.zip(keep.as_ref()).map(|(checkpoint, keep)| CheckpointAt {
                checkpoint,
                part: keep.part.clone(),
                every: self.run.checkpoint_every,
                after: CHECKPOINT_AFTER,
            }),
            observer,
            hard,
        };
        work(&mut trainer, &train, validation.as_ref())
    }

    /// Labels of the training instances.
    ///
    /// # Panics
    /// If they are words, where labels were read.
    pub(super) fn labels(&self) -> &LabelRows {
        match self.instances.files() {
            Some(sets) => &sets.train.labels,
            None => panic!("words, where labels were read"),
        }
    }

    /// Labels without a training instance.
    pub(super) fn n_unseen(&self) -> usize {
        self.shape.n_labels - seen_labels(self.labels())
    }

    /// What `config.json` keeps of how the network learned.
    pub(super) fn kept(&self) -> Value {
        self.network.record(self.args.held_out())
    }

    /// A training run's error, with what was learned from.
    pub(super) fn error(&self, error: &TrainError) -> FitError {
        training_error(self.of.source.name(), error)
    }
}

/// A disk that is full, say: nothing that was given is at fault.
fn is_about_a_file(error: &TrainError) -> bool {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.filter_map(|cause| cause.downcast_ref()).any(|cause| matches!(cause, SampleError::File { .. }))
}

fn training_error(train: &Path, error: &TrainError) -> FitError {
    let line = format!("{}: {}", train.display(), chain(error));
    match error {
        TrainError::Cancelled { .. } => FitError::interrupted(),
        TrainError::NotFinite { .. } => FitError::failed(line),
        TrainError::Checkpoint(error) => error.into(),
        TrainError::Validate(_) => FitError::failed(line),
        _ if is_about_a_file(error) => FitError::failed(line),
        _ => FitError::usage(line),
    }
}

/// What is impossible about a classifier, by the option that says it.
pub(super) fn params_error(error: &xc_model::classifier::ClassifierParamsError) -> FitError {
    crate::settings::network::params_error(error).into()
}
