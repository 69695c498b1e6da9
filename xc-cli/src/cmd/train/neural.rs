//! What the trainings of networks share: samples, trainer, progress, errors.

use super::inputs::{DataArgs, Instances};
use super::neural_args::NeuralArgs;
use crate::context::{Context, format_bytes};
use crate::error::{CliError, chain};
use crate::interrupt;
use crate::progress::Task;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use xc_sparse::{LabelRows, Rows};
use xc_train::trainer::{CheckpointAt, CheckpointError, Event, LogAt, Observer, Sample, TrainError};
use xc_train::{Examples, Features, Loss, NetworkParams, Optimizer, TrainParams, Trainer};

/// Least time between the checkpoints that are written after epochs.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(60);

/// Rate of Adam for rows of length 1: a tenth of it learns too little in ten epochs.
const ADAM_RATE: f64 = 1e-2;

/// How networks learn, whatever they are.
pub(super) struct Learning<'a> {
    pub(super) args: &'a NeuralArgs,
    pub(super) params: TrainParams,
    pub(super) optimizer: Optimizer,
    pub(super) context: &'a Context,
}

/// What is learned from, or judged by.
#[derive(Clone, Copy)]
pub(super) struct Given<'d> {
    pub(super) features: Features<'d>,
    pub(super) targets: &'d LabelRows,
}

/// Everything that the networks of one command have in common, where features are sparse.
pub(super) struct Setup<'a> {
    pub(super) learning: Learning<'a>,
    pub(super) network: NetworkParams,
    pub(super) instances: Instances,
    /// Seconds that reading them took.
    pub(super) read_s: f64,
    pub(super) context: &'a Context,
}

/// The most labels that an instance has.
fn most_labels(labels: &LabelRows) -> usize {
    labels.iter().map(<[u32]>::len).max().unwrap_or(0)
}

/// The rows without labels from `n_labels` on, which no output stands for.
pub(super) fn within(labels: &LabelRows, n_labels: usize) -> LabelRows {
    let rows = labels.iter().map(|row| &row[..row.partition_point(|&l| (l as usize) < n_labels)]);
    LabelRows::from_lists(rows, n_labels).unwrap_or_else(|e| panic!("a part of label rows is none: {e}"))
}

impl<'a> Setup<'a> {
    /// Resolves the options and reads the instances. What can be refused is refused before the long work: options first, then
    /// the output, then the inputs.
    pub(super) fn read(data: &DataArgs, args: &'a NeuralArgs, context: &'a Context) -> Result<Self, CliError> {
        let learning = Learning::new(args, ADAM_RATE, context)?;
        // The loss may depend on the data, whether there is such a network does not.
        args.network(context.seed, 1)?;
        let text = data.text.params()?;
        data.check_model()?;
        let start = Instant::now();
        let instances = data.read(&[], &text, context)?;
        let read_s = start.elapsed().as_secs_f64();
        let network = args.network(context.seed, most_labels(&instances.train.labels))?;
        Ok(Self { learning, network, instances, read_s, context })
    }

    /// Bytes that training one network of `n_outputs` outputs needs, the data included.
    pub(super) fn peak_bytes(&self, n_outputs: usize) -> u64 {
        let n_features = self.instances.train.features.cols();
        let learning = &self.learning;
        let keeps_best = learning.validates(self.instances.validation.is_some());
        let copies = 1 + learning.optimizer.n_moments() as u64 + u64::from(keeps_best);
        let hidden: usize = self.network.widths.iter().sum();
        let activations = 4 * (learning.params.batch_size * (n_outputs + 2 * hidden)) as u64;
        4 * copies * self.network.n_values(n_features, n_outputs) + activations + self.instances.n_bytes()
    }

    /// Refuses what does not fit, and says what is going to happen.
    pub(super) fn announce(&self, kind: &str, what: &str, n_outputs: usize) -> Result<(), CliError> {
        let (context, data) = (self.context, &self.instances.train);
        let needed = self.peak_bytes(n_outputs);
        context.foresee_memory(&format!("xc train {kind}"), needed)?;
        context.note(format_args!(
            "train {kind}: {} instances, {} features, {} labels; {what}; loss {}; about {} of memory",
            data.features.rows(),
            data.features.cols(),
            data.labels.n_labels(),
            self.network.loss.name(),
            format_bytes(needed)
        ));
        warn_of_long_rows(Rows::new(data.features.view()), context);
        Ok(())
    }

    /// Trains one network on `targets`; `judged` are the targets of the validation file. `work` gets the trainer, what is
    /// learned from and what judges.
    pub(super) fn with_trainer<T>(
        &self,
        seed: u64,
        targets: &LabelRows,
        judged: Option<&LabelRows>,
        checkpoint: PathBuf,
        log: PathBuf,
        watch: &NeuralWatch<'_>,
        work: impl FnOnce(&mut Trainer<'_>, &Sample<'_>, Option<&Sample<'_>>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let train = Given { features: Features::Sparse(Rows::new(self.instances.train.features.view())), targets };
        let others = self.instances.validation.as_ref().zip(judged);
        let others = others
            .map(|(data, targets)| Given { features: Features::Sparse(Rows::new(data.features.view())), targets });
        self.learning.with_trainer(self.network.loss, seed, train, others, checkpoint, log, watch, work)
    }

    /// See [`Learning::kept`].
    pub(super) fn kept(&self) -> Value {
        self.learning.kept()
    }
}

/// Sums of long rows leave the range that first values and learning rates are made for.
pub(super) fn warn_of_long_rows(rows: Rows<'_>, context: &Context) {
    let longest = (0..rows.len()).map(|i| rows.row(i).values.iter().map(|v| v * v).sum::<f32>()).fold(0.0, f32::max);
    if longest > 100.0 * 100.0 {
        context.warn(format_args!(
            "the longest row of features has length {:.0}; networks learn best from rows of length 1 (--tfidf)",
            longest.sqrt()
        ));
    }
}

impl<'a> Learning<'a> {
    /// Resolves the options; `adam_rate` is the rate of Adam unless one was asked for.
    pub(super) fn new(args: &'a NeuralArgs, adam_rate: f64, context: &'a Context) -> Result<Self, CliError> {
        let params = args.train_params(context.seed, adam_rate)?;
        Ok(Self { args, params, optimizer: args.optimizer()?, context })
    }

    /// Whether instances are there to judge by, from a file of their own or held out.
    pub(super) fn validates(&self, has_file: bool) -> bool {
        self.args.held_out().is_some() || has_file
    }

    /// Trains one network; `others` come from the validation file. `work` gets the trainer, what is learned from and what judges.
    pub(super) fn with_trainer<T>(
        &self,
        loss: Loss,
        seed: u64,
        given: Given<'_>,
        others: Option<Given<'_>>,
        checkpoint: PathBuf,
        log: PathBuf,
        watch: &NeuralWatch<'_>,
        work: impl FnOnce(&mut Trainer<'_>, &Sample<'_>, Option<&Sample<'_>>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        fn examples(given: Given<'_>) -> Result<Examples<'_>, CliError> {
            Examples::try_new(given.features, given.targets)
                .map_err(|e| CliError::usage(format_args!("training data: {e}")))
        }
        let all = examples(given)?;
        let (train, validation) = match (self.args.held_out(), others) {
            // The seed of the command, not of the repetition: all repetitions hold out the same instances.
            (Some(share), _) => {
                let (train, held_out) = Sample::split(all, share, self.context.seed);
                (train, Some(held_out))
            }
            (None, Some(others)) => (Sample::all(all), Some(Sample::all(examples(others)?))),
            (None, None) => (Sample::all(all), None),
        };
        let steps = train.rows().len().div_ceil(self.params.batch_size) as u64 * u64::from(self.params.epochs);
        let mut schedule = self.args.schedule(steps);
        let mut trainer = Trainer {
            loss,
            optimizer: self.optimizer,
            schedule: &mut *schedule,
            params: TrainParams { seed, ..self.params.clone() },
            checkpoint: Some(CheckpointAt {
                folder: checkpoint,
                every: self.args.checkpoint_every,
                after: CHECKPOINT_AFTER,
            }),
            log: Some(LogAt { folder: log, every: self.args.log_every }),
            observer: watch,
        };
        work(&mut trainer, &train, validation.as_ref())
    }

    /// What `config.json` keeps of how the network learned: nothing that depends on the machine or the run.
    pub(super) fn kept(&self) -> Value {
        let params = serde_json::to_value(&self.params).unwrap_or(Value::Null);
        json!({
            "settings": params,
            "optimizer": self.optimizer,
            "schedule": self.args.schedule_name(),
            "held_out": self.args.held_out(),
        })
    }
}

/// A training's error as the program says it.
pub(super) fn training_error(train: &Path, error: &TrainError) -> CliError {
    let line = format!("{}: {}", train.display(), chain(error));
    match error {
        TrainError::Cancelled { .. } => CliError::interrupted(),
        TrainError::NotFinite { .. } => CliError::failed(line),
        TrainError::Checkpoint(CheckpointError::Write(_) | CheckpointError::Io { .. }) | TrainError::Log(_) => {
            CliError::failed(chain(error))
        }
        TrainError::Checkpoint(_) => CliError::usage(chain(error)),
        _ => CliError::usage(line),
    }
}

/// Shows a network's training under way, and stops it on Ctrl-C.
pub(super) struct NeuralWatch<'a> {
    context: &'a Context,
    what: String,
    outputs: &'static str,
    task: Mutex<Option<Task>>,
}

impl<'a> NeuralWatch<'a> {
    /// `what` names the network (`repetition 3: `), `outputs` what its outputs stand for.
    pub(super) fn new(context: &'a Context, what: String, outputs: &'static str) -> Self {
        Self { context, what, outputs, task: Mutex::default() }
    }
}

impl Observer for NeuralWatch<'_> {
    fn event(&self, event: Event<'_>) {
        let mut shown = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Resumed { epoch, step } => {
                self.context.note(format_args!("{}goes on in epoch {} after step {step}", self.what, epoch + 1));
            }
            Event::Step { epoch, step, n_steps, loss, instances_per_s, .. } => {
                let task = shown.get_or_insert_with(|| self.context.task(&self.what, n_steps));
                task.say(format!("{}epoch {}, loss {loss:.4}, {instances_per_s:.0} instances/s", self.what, epoch + 1));
                task.set(step);
            }
            Event::Validated { validation, is_best, .. } => {
                let [p1, ..] = validation.precision;
                let say = || {
                    self.context.note(format_args!(
                        "{}validation loss {:.4}, P@1 of {} {:.2}%{}",
                        self.what,
                        validation.loss,
                        self.outputs,
                        100.0 * p1,
                        if is_best { ", the best so far" } else { "" }
                    ));
                };
                match &*shown {
                    Some(task) => task.aside(say),
                    None => say(),
                }
            }
            _ => {}
        }
    }

    fn cancelled(&self) -> bool {
        interrupt::interrupted()
    }
}
