//! One training run of a network, of parameters that are known: what it works on, its trainer, its checkpoint.

use super::cost::Counting;
use super::instances::Instances;
use super::learned_from::LearnedFrom;
use super::params_error;
use super::shape::TrainingShape;
use crate::fit::data::Datasets;
use crate::fit::place::drop_checkpoint;
use crate::fit::report::{Judging, Report, score_against};
use crate::fit::save::Target;
use crate::fit::source::MEMORY;
use crate::fit::{Context, FitError, NetworkRun};
use crate::learn::initialise;
use crate::network::{NetworkParams, RunParams, TextEncoder};
use crate::preset::ASTRA;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xc_data::Split;
use xc_metrics::MetricReport;
use xc_model::Extras;
use xc_model::classifier::{Classifier, ClassifierParams, Only};
use xc_model::message::{chain, counted};
use xc_nn::sampler::SampleError;
use xc_nn::trainer::{CHECKPOINT, CheckpointAt, STATE, Subset, TrainError, TrainObserver};
use xc_nn::{Examples, HardLabels, Rows, TargetRows, TrainParams, Trainer};
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;
use xc_store::{Checkpoint, CheckpointFolder, CheckpointLayout, Container};

/// Least time between the checkpoints that are written after epochs.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(60);

/// What a network of some parameters becomes: a classifier of labels, the repetitions of a MACH model, vectors of words.
pub(super) trait Learner: Send + Sync {
    /// The kind that the folder of the model states.
    fn kind(&self) -> &'static str;

    /// Outputs of a classifier, which need not be the labels.
    fn n_outputs(&self, shape: &TrainingShape) -> usize {
        shape.n_labels
    }

    /// Bytes of the outputs that are true of each instance, where they are not its labels.
    fn targets(&self, session: &NetworkSession<'_>) -> u64 {
        let _ = session;
        0
    }

    /// Bytes of a finished model that answers out of its files, rather than the network in memory.
    fn answering(&self, shape: &TrainingShape, params: &ClassifierParams) -> u64 {
        let _ = (shape, params);
        0
    }

    /// What its checkpoints look like.
    fn checkpoint(&self) -> CheckpointLayout {
        CHECKPOINT
    }

    /// Everything that first values follow from beside the data.
    fn describe(&self, session: &NetworkSession<'_>) -> Value {
        let classifier = &session.network.classifier;
        json!([self.kind(), classifier, classifier.learning])
    }

    /// Trains.
    fn train<'t>(&'t self, session: &'t NetworkSession<'t>) -> Result<Trained<'t>, FitError> {
        session.train_one(self.kind())
    }
}

/// What the outputs of a network stand for.
pub struct Outputs(Box<dyn Learner>);

impl Outputs {
    /// Those that a learner knows.
    pub(super) fn of(learner: impl Learner + 'static) -> Self {
        Self(Box::new(learner))
    }

    /// What checkpoints of the training look like.
    pub fn checkpoint(&self) -> CheckpointLayout {
        self.0.checkpoint()
    }

    /// How many there are, for instances of a shape.
    pub fn len(&self, shape: &TrainingShape) -> usize {
        self.0.n_outputs(shape)
    }
}

/// Saves a model with what belongs to it.
type Save<'t> = Box<dyn FnOnce(Extras<'_>) -> Result<Option<Container>, FitError> + 't>;
/// Answers instances; a model that stays in memory is given.
type Ask<'t> = Box<dyn FnOnce(Rows<'_>, Option<&Container>) -> Result<RankedBatch, FitError> + 't>;

/// What came out of a training run.
pub(super) struct Trained<'t> {
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
pub(super) struct Learned {
    pub(super) classifier: Classifier,
    /// What it consists of, for a person.
    pub(super) what: String,
    /// Further figures.
    pub(super) figures: Map<String, Value>,
}

/// What a network is called where its training is followed.
#[derive(Clone, Copy)]
pub(super) struct Watched<'a> {
    /// Nothing, or what lines about it begin with.
    pub(super) what: &'a str,
    /// What its outputs stand for.
    pub(super) outputs: &'static str,
}

/// What a training run of a network leaves beside the network, and who follows it.
pub(super) struct Followed<'a> {
    pub(super) watched: Watched<'a>,
    pub(super) keep: Option<Keep>,
    pub(super) counting: Option<&'a Counting>,
    /// The false labels that steps score highest, where they are wanted.
    pub(super) hard: Option<&'a mut HardLabels>,
}

/// Where a training run leaves its state and its log.
pub(super) struct Keep {
    /// Part of the checkpoint.
    pub(super) part: String,
    /// Folder of the log, where there is one.
    pub(super) log: Option<PathBuf>,
}

/// One training run of a network, of parameters that are known.
///
/// [`NetworkSession::announce`] refuses what does not fit into memory, [`NetworkSession::run`] trains.
pub struct NetworkSession<'a> {
    /// What is learned from is called so in messages.
    source: &'a Path,
    /// Where the model goes.
    pub(super) target: Target<'a>,
    /// Threads, seed, memory, and who watches.
    pub context: &'a Context<'a>,
    pub(super) learner: &'a dyn Learner,
    /// What is learned from, and what judges.
    pub instances: Instances,
    /// What was known of them when the parameters were made.
    pub shape: TrainingShape,
    /// The parameters.
    pub network: NetworkParams,
    /// The transformer that reads the instances and learns with the network, where there is one.
    encoder: Option<TextEncoder>,
    /// What the run does beside training.
    pub run: RunParams,
    /// Labels of the validation instances that the training instances have, if these choose the epoch.
    judged: Option<LabelRows>,
    choose_epoch: bool,
    checkpoint: Option<&'a Checkpoint>,
}

impl<'a> NetworkSession<'a> {
    /// A run over instances of a shape, whose model stays in memory. `choose_epoch`: whether instances that judge choose the
    /// epoch whose parameters are kept, or judge the finished network alone.
    pub fn new(
        outputs: &'a Outputs,
        (instances, shape): (Instances, TrainingShape),
        network: NetworkParams,
        choose_epoch: bool,
        context: &'a Context<'a>,
    ) -> Self {
        let judged = instances.validation().filter(|_| choose_epoch);
        let judged = judged.map(|set| set.labels.within(shape.n_labels));
        Self {
            source: Path::new(MEMORY),
            target: Target::Memory,
            context,
            learner: &*outputs.0,
            instances,
            shape,
            network,
            encoder: None,
            run: RunParams::default(),
            judged,
            choose_epoch,
            checkpoint: None,
        }
    }

    /// What messages call the instances.
    pub fn source(&self) -> &Path {
        self.source
    }

    /// With what messages call the instances, and where the model goes.
    #[must_use]
    pub fn between(self, source: &'a Path, target: Target<'a>) -> Self {
        Self { source, target, ..self }
    }

    /// With what the run does beside training.
    #[must_use]
    pub fn with_run(self, run: RunParams) -> Self {
        Self { run, ..self }
    }

    /// With a transformer that learns with the network. Its weights are called by their hash: other weights are another
    /// training.
    ///
    /// *Cost*: reads them, unless the run is only planned.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn with_encoder(mut self, encoder: TextEncoder) -> Result<Self, FitError> {
        if !self.context.plans {
            self.network.classifier.learning.tokens.begins_with = Some(encoder.hash()?);
        }
        Ok(Self { encoder: Some(encoder), ..self })
    }
}

impl NetworkSession<'_> {
    /// Begins the transformer of a classifier from its folder, where there is one.
    fn begin(&self, classifier: &mut Classifier) -> Result<(), FitError> {
        match &self.encoder {
            Some(encoder) => crate::fit::transformer::begin(&encoder.pretrained, classifier),
            None => Ok(()),
        }
    }

    /// Keeps what frozen layers make of the instances that are learned from, if that was asked for.
    fn cache_states(&self, classifier: &mut Classifier, train: &Subset<'_>) -> Result<(), FitError> {
        if self.caches_states()
            && let (Rows::Tokens(rows), Some(transformer)) = (train.examples().features(), classifier.transformer_mut())
        {
            let mut done = self.context.observer.task("texts through frozen layers");
            let goes_on = |n: usize| {
                done(n as u64);
                self.context.check_interrupt().is_ok()
            };
            let kept = transformer.cache_states(rows, train.rows(), goes_on);
            kept.map_err(|e| FitError::usage(chain(&e)))?;
            self.context.check_interrupt()?;
        }
        Ok(())
    }

    /// Trains and saves the model, and says how good it is. `folder` is that of the checkpoint; a model that stays in memory
    /// has none, and is given.
    ///
    /// # Errors
    /// Instances that nothing can be learned from, a checkpoint or a model that cannot be written, an observer that cancels.
    pub fn run(
        self,
        folder: Option<CheckpointFolder>,
        read_s: f64,
        memory: Value,
        judging: &Judging,
    ) -> Result<(Report, Option<Container>), FitError> {
        let context = self.context;
        let start = Instant::now();
        let checkpoint = match folder {
            Some(folder) => Some(folder.begin(self.key()?)?),
            None => None,
        };
        let report = {
            let session = NetworkSession { checkpoint: checkpoint.as_ref(), ..self };
            session.finished(start, read_s, memory, judging)?
        };
        if let Some(checkpoint) = checkpoint {
            drop_checkpoint(checkpoint, context);
        }
        Ok(report)
    }

    fn finished(
        &self,
        start: Instant,
        read_s: f64,
        memory: Value,
        judging: &Judging,
    ) -> Result<(Report, Option<Container>), FitError> {
        let Trained { save, answer, what, figures } = self.learner.train(self)?;
        let train_s = start.elapsed().as_secs_f64();
        self.context.check_interrupt()?;

        let start = Instant::now();
        let mut kept = self.kept();
        // Parts of a MACH model may be trained apart: it has no steps of its own.
        let steps = figures.get("steps").filter(|_| self.learner.kind() != xc_model::mach::KIND);
        if let (Some(kept), Some(steps)) = (kept.as_object_mut(), steps) {
            kept.insert("steps".to_owned(), steps.clone());
            kept.extend(figures.get("epochs").map(|epochs| ("epochs".to_owned(), epochs.clone())));
        }
        let train = self.instances.files().map(|sets| &sets.train);
        let (maker, names) = (train.and_then(|set| set.maker.as_ref()), train.and_then(|set| set.names.as_deref()));
        let rows = self.instances.files().map(Datasets::training_rows);
        let input = train.map(|set| &set.form);
        let container = save(Extras { maker, names, input, training: Some(kept.clone()), rows: rows.as_ref() })?;
        let save_s = start.elapsed().as_secs_f64();

        let metrics = answer.map(|answer| self.score(answer, container.as_ref(), judging)).transpose()?.flatten();
        let mut further = figures;
        further.insert("memory".to_owned(), memory);
        let report = Report {
            kind: self.learner.kind(),
            model: self.target.folder().unwrap_or(Path::new("")).to_owned(),
            read_s,
            train_s,
            save_s,
            metrics,
            curve: Vec::new(),
            what,
            further,
            logged: Map::from_iter([("training".to_owned(), kept)]),
            data: rows.map(|rows| rows.fingerprint()),
        };
        Ok((report, container))
    }

    /// Whether states of frozen layers stay in memory.
    pub(super) fn caches_states(&self) -> bool {
        self.encoder.as_ref().is_some_and(|encoder| encoder.cache_states)
    }

    /// Share of the training instances that is held out.
    pub fn held_out(&self) -> Option<f64> {
        self.run.validation_fraction.filter(|&share| share > 0.0)
    }
}

impl NetworkSession<'_> {
    /// Trains one classifier over the labels, and saves and asks it.
    pub(super) fn train_one<'t>(&'t self, kind: &str) -> Result<Trained<'t>, FitError> {
        let Learned { classifier, what, figures } = self.learn(kind)?;
        let classifier = Arc::new(classifier);
        let (saved, target) = (Arc::clone(&classifier), self.target);
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
        let TrainingShape { n_features, n_labels, .. } = self.shape;
        let mut classifier = Classifier::new(kind, n_features, n_labels, self.network.classifier.clone())
            .map_err(|e| params_error(&e))?;
        self.begin(&mut classifier)?;
        let watched = Watched { what: "", outputs: "labels" };
        let keep = Keep { part: STATE.to_owned(), log: self.target.log() };
        let (labels, judged, counting) = (self.instances.targets(), self.judged.as_ref(), Counting::default());
        let mut hard = self.hard_labels()?;
        let of = Followed { watched, keep: Some(keep), counting: Some(&counting), hard: hard.as_mut() };
        let (steps, epochs, wide) =
            self.with_trainer(self.network.training.seed, labels, judged, of, |trainer, train, others| {
                if self.network.classifier.uses_lsa() {
                    self.context.note(format_args!("initial embeddings: lsa of {} rows", train.len()));
                }
                let begun = initialise(&mut classifier, self.target.spill(), train, trainer.observer);
                begun.map_err(|e| self.error(&e))?;
                self.cache_states(&mut classifier, train)?;
                let summary = trainer.train(classifier.network_mut(), train, others).map_err(|e| self.error(&e))?;
                classifier.transformer_mut().into_iter().for_each(|transformer| transformer.forget_states());
                let wide = trainer.hard.as_ref().map(|_| LearnedFrom::of(train, others));
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
    pub fn has_judges(&self) -> bool {
        self.held_out().is_some() || self.judged.is_some()
    }

    /// Whether instances that the network does not learn from judge the finished model.
    pub(super) fn is_judged(&self) -> bool {
        let Some(sets) = self.instances.files() else { return false };
        sets.validation.is_some() || (sets.split.is_some() && !self.choose_epoch)
    }

    /// The metrics of the finished model on the validation file, or, where they have not chosen the
    /// epoch, on the instances that were held out.
    pub(super) fn score(
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
    pub(super) fn key(&self) -> Result<String, FitError> {
        let watched = Watched { what: "", outputs: "labels" };
        let (labels, judged, seed) = (self.instances.targets(), self.judged.as_ref(), self.network.training.seed);
        let of = Followed { watched, keep: None, counting: None, hard: None };
        self.with_trainer(seed, labels, judged, of, |trainer, train, others| {
            Ok(trainer.key(self.learner.checkpoint(), &self.learner.describe(self), train, others))
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
        self.context.check_interrupt()?;
        let all = examples(self.instances.features(), targets)?;
        self.context.check_interrupt()?;
        let others = self.instances.validation().zip(judged);
        let label_texts = self.instances.files().and_then(|sets| sets.label_texts).map(|first| first as u32);
        let of_texts = self.instances.files().is_some_and(|sets| sets.train.of_texts);
        let train = Subset::all(all).with_label_texts(label_texts).with_texts(of_texts);
        let split = self.instances.files().and_then(|sets| sets.split.as_ref());
        let (train, validation) = match (split, self.held_out(), others) {
            (Some(Split { kept, held_out }), ..) => {
                // Texts of labels, behind all instances, are never held out.
                let texts = label_texts.into_iter().flat_map(|first| first..all.len() as u32);
                let kept = kept.iter().copied().chain(texts).collect();
                let judges = self.choose_epoch.then(|| Subset::some(all, held_out.clone()).with_texts(of_texts));
                (Subset::some(all, kept).with_label_texts(label_texts), judges)
            }
            // Words of a text, which are no rows of a file.
            (None, Some(share), _) => {
                let (train, held_out) = train.hold_out(share, self.run.split_seed.unwrap_or(self.context.seed));
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
    pub fn n_unseen(&self) -> usize {
        self.shape.n_labels - self.labels().n_used()
    }

    /// What `config.json` keeps of how the network learned.
    pub fn kept(&self) -> Value {
        self.network.record(self.held_out())
    }

    /// A training run's error, with what was learned from.
    pub(super) fn error(&self, error: &TrainError) -> FitError {
        training_error(self.source, error)
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
