//! The options that networks share: how they look, and how they learn.
//!
//! Values that are not given come from the [`Preset`] of the kind, and the help shows them.

use super::inputs::hold_out;
use crate::error::{CliError, chain};
use crate::named::{name_of, named};
use clap::ValueEnum;
use xc_nn::schedule::{Constant, HalveOnPlateau, WarmupCosine};
use xc_nn::trainer::{EarlyStopping, Keep, Monitor, PatienceFrom};
use xc_nn::{Activation, Loss, Optimizer, Schedule, TrainParams};
use xc_sparse::dense::MatmulPrecision;
use xc_train::classifier::{ClassifierParams, EmbeddingInit, EncoderParams, InputKind, Preset};
use xc_train::model::HoldOut;

/// How a network looks and learns.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Network options")]
pub(crate) struct NetworkArgs {
    /// Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their embeddings;
    /// vectors need none
    #[arg(long = "network.widths", value_name = "N,...", value_delimiter = ',')]
    widths: Option<Vec<usize>>,
    /// Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)
    #[arg(long = "network.init", value_name = "INIT", value_parser = named::<EmbeddingInit, _>(["random", "lsa"]))]
    init: Option<EmbeddingInit>,
    /// What becomes of sums of embeddings: relu, or identity (they stay as they are)
    #[arg(long = "network.activation", value_name = "NAME", value_parser = named::<Activation, _>(["relu", "identity"]))]
    activation: Option<Activation>,
    /// Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1 after lsa,
    /// else 1]
    #[arg(long = "network.embedding-rate", value_name = "SHARE")]
    embedding_rate: Option<f32>,
    /// Dropout probability of the input: the values of a vector, or of the sum of embeddings
    #[arg(long = "network.input-dropout", value_name = "X")]
    input_dropout: Option<f32>,
    /// Dropout probability of the hidden units above the input
    #[arg(long = "network.dropout", value_name = "X")]
    dropout: Option<f32>,
    /// Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors with
    /// AVX512_BF16; stored in the model
    #[arg(long = "network.precision", value_name = "TYPE", value_parser = named::<MatmulPrecision, _>(["f32", "bf16"]))]
    precision: Option<MatmulPrecision>,
    /// softmax (one true label), bce or squared-hinge (each label true or false)
    #[arg(long, value_name = "LOSS", value_parser = named::<Loss, _>(["softmax", "bce", "squared-hinge"]))]
    loss: Option<Loss>,
    /// Passes over the training instances
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,
    /// Instances per step
    #[arg(long = "batch", visible_alias = "batch-size", value_name = "N")]
    batch_size: Option<usize>,
    /// Optimiser
    #[arg(long, value_name = "NAME", value_enum, default_value_t = OptimizerName::Adam, help_heading = "Training options")]
    optimizer: OptimizerName,
    /// Learning rate
    #[arg(long = "optimizer.rate", value_name = "X", help_heading = "Training options")]
    rate: Option<f64>,
    /// Weight decay, decoupled [default: 0.01 for adamw, else 0]
    #[arg(long = "optimizer.weight-decay", value_name = "X", help_heading = "Training options")]
    weight_decay: Option<f64>,
    /// Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the --monitor
    /// value stops improving)
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ScheduleName::Cosine, help_heading = "Training options")]
    schedule: ScheduleName,
    /// Share of the steps in which the rate rises from 0 (cosine) [default: 0.05]
    #[arg(long = "schedule.warmup", value_name = "SHARE", help_heading = "Training options")]
    warmup: Option<f64>,
    /// Lowest learning rate, as a share of the initial one (plateau) [default: 0]
    #[arg(long = "schedule.lowest", value_name = "SHARE", help_heading = "Training options")]
    lowest: Option<f64>,
    /// Clip gradients to this norm [default: no clipping]
    #[arg(long, value_name = "X", help_heading = "Training options")]
    clip_norm: Option<f64>,
    /// Hold out this share of the training instances, to evaluate the network after each epoch; the same file and
    /// --seed give the same instances for every kind of model [default: none; the instances of --validation, if given,
    /// are evaluated instead]
    #[arg(long, value_name = "SHARE", help_heading = "Training options")]
    validation_fraction: Option<f64>,
    /// Stop after N epochs in which the --monitor value did not improve [default: never]
    #[arg(long, value_name = "N", help_heading = "Training options")]
    patience: Option<u32>,
    /// Count these epochs from the start, or once the learning rate is at its lowest
    #[arg(long, value_name = "WHEN", value_parser = named::<PatienceFrom, _>(["start", "lowest-rate"]), requires = "patience", default_value = "start", help_heading = "Training options")]
    patience_from: PatienceFrom,
    /// Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on the held-out
    /// instances [default: P@1; the training loss if none are held out]
    #[arg(long, value_name = "WHAT", help_heading = "Training options")]
    monitor: Option<Monitor>,
    /// Keep the parameters of the best epoch or of the last one
    #[arg(long, value_name = "WHICH", value_parser = named::<Keep, _>(["best", "last"]), default_value = "best", help_heading = "Training options")]
    keep: Keep,
    /// Steps between checkpoints, in addition to those after epochs (at most one per minute)
    #[arg(long, value_name = "STEPS", help_heading = "Training options")]
    pub(super) checkpoint_every: Option<u64>,
    /// Steps between lines of the training log
    #[arg(long, value_name = "STEPS", default_value_t = 100, help_heading = "Training options")]
    pub(super) log_every: u64,
}

/// An optimiser together with its usual weight decay: of the library's, adam is two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OptimizerName {
    Adam,
    Adamw,
    Momentum,
    Sgd,
    /// Row-wise Adagrad
    RowAdagrad,
}

/// A schedule; in the library each is a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScheduleName {
    Constant,
    Cosine,
    Plateau,
}

/// Share of the steps in which the learning rate rises, unless it is said.
const WARMUP: f64 = 0.05;

/// Adds the preset's value to the help of an option that takes it from there.
pub(super) fn show_default(preset: &Preset, arg: clap::Arg) -> clap::Arg {
    show_defaults(preset, &[], arg)
}

/// The same where the preset follows from the data: what others have, of whom is said.
pub(super) fn show_defaults(usual: &Preset, others: &[(&str, Preset)], arg: clap::Arg) -> clap::Arg {
    let option = arg.get_id().as_str();
    let Some(mut shown) = value_of(option, usual) else { return arg };
    for (whom, preset) in others {
        let differs = value_of(option, preset).filter(|value| value_of(option, usual).as_ref() != Some(value));
        shown.extend(differs.map(|value| format!("; {value} for {whom}")));
    }
    if option == "rate" {
        shown += &format!(" (adam and adamw); {}", rates_of_others());
    }
    with_default(arg, &shown)
}

/// What an option is in a preset, if it is there.
fn value_of(option: &str, preset: &Preset) -> Option<String> {
    let (encoder, learning, training) = (&preset.params.encoder, &preset.params.learning, &preset.training);
    Some(match option {
        "widths" => encoder.widths().iter().map(usize::to_string).collect::<Vec<_>>().join(","),
        "init" => name_of(&learning.init),
        "activation" => name_of(&encoder.activation()?),
        "input_dropout" if learning.input_dropout == learning.dropout => "that of --network.dropout".to_owned(),
        "input_dropout" => learning.input_dropout.to_string(),
        "dropout" => learning.dropout.to_string(),
        "precision" => preset.params.precision.name().to_owned(),
        "loss" => name_of(&preset.params.loss),
        "epochs" => training.epochs.to_string(),
        "batch_size" => training.batch_size.to_string(),
        "rate" => training.rate.to_string(),
        _ => return None,
    })
}

/// The rate of an optimiser where none is given; a preset's is that of Adam.
fn usual_rate(optimizer: OptimizerName, of_preset: f64) -> f64 {
    match optimizer {
        OptimizerName::Adam | OptimizerName::Adamw => of_preset,
        OptimizerName::Momentum => 0.1,
        OptimizerName::Sgd => 1.0,
        OptimizerName::RowAdagrad => 0.02,
    }
}

/// The rates that no preset says, for the help.
fn rates_of_others() -> String {
    let others = [OptimizerName::Momentum, OptimizerName::Sgd, OptimizerName::RowAdagrad];
    let name = |of: OptimizerName| of.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    others.map(|of| format!("{} for {}", usual_rate(of, 0.0), name(of))).join(", ")
}

/// Refuses the first option that was given and changes nothing: each with whether it is such a one, and what it
/// goes with.
pub(super) fn refuse_idle(options: &[(&str, bool, &str)]) -> Result<(), CliError> {
    match options.iter().find(|(_, is_idle, _)| *is_idle) {
        Some((option, _, needs)) => {
            Err(CliError::usage(format_args!("--{option}: changes nothing here; {needs} is expected with it")))
        }
        None => Ok(()),
    }
}

/// Adds a default to the help of an option.
pub(super) fn with_default(arg: clap::Arg, shown: &str) -> clap::Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    arg.help(format!("{help} [default: {shown}]"))
}

impl NetworkArgs {
    /// The preset with what was asked for, for instances of a kind.
    pub(super) fn apply(&self, preset: &Preset, input: InputKind, seed: u64) -> Result<ClassifierParams, CliError> {
        let mut params = preset.params.clone();
        let (encoder, learning) = (&mut params.encoder, &mut params.learning);
        learning.seed = seed;
        if let Some(widths) = &self.widths {
            encoder.widths_mut().clone_from(widths);
        } else if input == InputKind::Dense {
            // Vectors need no embeddings.
            encoder.widths_mut().remove(0);
        }
        if input == InputKind::Dense {
            *encoder = EncoderParams::vectors(encoder.widths());
        }
        // Sums of embeddings that were begun otherwise than the preset's are taken as is usual for these.
        let activation = self.activation.or(self.init.map(EmbeddingInit::usual_activation));
        if let (Some(activation), Some(of)) = (activation, encoder.activation_mut()) {
            *of = activation;
        }
        learning.init = self.init.unwrap_or(learning.init);
        learning.embedding_rate = self.embedding_rate.unwrap_or(learning.init.usual_rate());
        // One rate for all layers where the preset has one.
        let of_all = if learning.input_dropout == learning.dropout { self.dropout } else { None };
        learning.input_dropout = self.input_dropout.or(of_all).unwrap_or(learning.input_dropout);
        learning.dropout = self.dropout.unwrap_or(learning.dropout);
        params.precision = self.precision.unwrap_or(params.precision);
        params.loss = self.loss.unwrap_or(params.loss);
        let of_embeddings = [
            (self.init.is_some(), "init"),
            (self.activation.is_some(), "activation"),
            (self.embedding_rate.is_some(), "embedding-rate"),
        ];
        let of_embeddings = of_embeddings.into_iter().find_map(|(is_given, option)| is_given.then_some(option));
        match (input, of_embeddings) {
            (InputKind::Dense, Some(option)) => Err(CliError::usage(format_args!(
                "--network.{option}: instances are vectors already; expected sparse features or text, or no such option"
            ))),
            _ => Ok(params),
        }
    }

    /// Refuses options of layers that a network does not have.
    pub(super) fn refuse_idle(&self, preset: &Preset, params: &ClassifierParams) -> Result<(), CliError> {
        let encoder = &params.encoder;
        let embeddings = usize::from(encoder.input() == InputKind::Sparse);
        let of_preset = &preset.params.learning;
        let is_of_input = self.input_dropout.is_none() && of_preset.input_dropout == of_preset.dropout;
        let is_idle = self.dropout.is_some() && encoder.widths().len() <= embeddings && !is_of_input;
        refuse_idle(&[("network.dropout", is_idle, "a hidden layer above the input (--network.widths)")])
    }

    /// Whether initial embeddings were asked for.
    pub(super) fn has_init(&self) -> bool {
        self.init.is_some()
    }

    /// Whether another activation of their sums was asked for.
    pub(super) fn has_activation(&self) -> bool {
        self.activation.is_some()
    }

    /// Whether the preset's learning rate is that of the optimiser.
    pub(super) fn has_usual_rate(&self) -> bool {
        matches!(self.optimizer, OptimizerName::Adam | OptimizerName::Adamw)
    }

    /// Whether one rate of dropout was asked for, which may be that of all layers.
    pub(super) fn has_dropout_alone(&self) -> bool {
        self.dropout.is_some() && self.input_dropout.is_none()
    }

    /// Share of the steps in which the learning rate rises.
    pub(super) fn warmup(&self) -> Option<f64> {
        (self.schedule == ScheduleName::Cosine).then(|| self.warmup.unwrap_or(WARMUP))
    }

    /// Share of the learning rate below which it is not halved.
    pub(super) fn lowest(&self) -> Option<f64> {
        (self.schedule == ScheduleName::Plateau).then(|| self.lowest.unwrap_or(0.0))
    }

    /// Whether the loss was asked for.
    pub(super) fn has_loss(&self) -> bool {
        self.loss.is_some()
    }

    /// Instances of a step.
    pub(super) fn batch_size(&self, preset: &Preset) -> usize {
        self.batch_size.unwrap_or(preset.training.batch_size)
    }

    /// Settings of the training under a seed; `has_file`: whether there is a validation file.
    pub(super) fn train_params(&self, preset: &Preset, seed: u64, has_file: bool) -> Result<TrainParams, CliError> {
        let params = TrainParams {
            batch_size: self.batch_size(preset),
            epochs: self.epochs.unwrap_or(preset.training.epochs),
            rate: self.rate.unwrap_or(usual_rate(self.optimizer, preset.training.rate)),
            seed,
            encoder: None,
            clip_norm: self.clip_norm,
            validate_every: None,
            monitor: self.monitor(has_file)?,
            early_stopping: self.patience.map(|patience| EarlyStopping { patience, from: self.patience_from }),
            keep: self.keep,
        };
        params.check().map_err(|e| {
            let option = match e.name {
                "batch_size" => "--batch",
                "rate" => "--optimizer.rate",
                "patience" => "--patience",
                _ => "network options",
            };
            CliError::usage(format_args!("{option}: {}", chain(&e)))
        })?;
        self.check_schedule()?;
        if params.epochs == 0 {
            return Err(CliError::usage("--epochs 0: at least 1 is expected"));
        }
        for (name, value) in [("checkpoint-every", self.checkpoint_every), ("log-every", Some(self.log_every))] {
            if value == Some(0) {
                return Err(CliError::usage(format_args!("--{name} 0: at least 1 is expected")));
            }
        }
        self.hold_out(seed)?;
        refuse_idle(&[(
            "schedule.warmup",
            self.warmup.is_some() && self.schedule != ScheduleName::Cosine,
            "--schedule cosine",
        )])?;
        if let Some(got) = self.warmup.filter(|share| !(0.0..1.0).contains(share)) {
            return Err(CliError::usage(format_args!(
                "--schedule.warmup {got}: a share from 0 to below 1 is expected"
            )));
        }
        Ok(params)
    }

    fn monitor(&self, has_file: bool) -> Result<Monitor, CliError> {
        let is_held_out = has_file || self.held_out().is_some();
        match self.monitor {
            Some(monitor) if monitor != Monitor::Loss && !is_held_out => Err(CliError::usage(format_args!(
                "--monitor {monitor}: held-out instances are expected (--validation or --validation-fraction)"
            ))),
            Some(monitor) => Ok(monitor),
            None if is_held_out => Ok(Monitor::default()),
            None => Ok(Monitor::Loss),
        }
    }

    /// Refuses options of the schedule that do not go together.
    fn check_schedule(&self) -> Result<(), CliError> {
        if let Some(got) = self.lowest {
            if self.schedule != ScheduleName::Plateau {
                return Err(CliError::usage("--schedule.lowest belongs to --schedule plateau"));
            }
            if !(0.0..=1.0).contains(&got) {
                return Err(CliError::usage(format_args!("--schedule.lowest {got}: a share from 0 to 1 is expected")));
            }
        }
        let has_lowest = match self.schedule {
            ScheduleName::Constant => true,
            // At its lowest the training is over.
            ScheduleName::Cosine => false,
            ScheduleName::Plateau => self.lowest.is_some_and(|lowest| lowest > 0.0),
        };
        if self.patience_from == PatienceFrom::LowestRate && !has_lowest {
            return Err(CliError::usage(
                "--patience-from lowest-rate: a schedule that reaches its lowest rate is expected, such as \
                 --schedule plateau --schedule.lowest 0.1",
            ));
        }
        Ok(())
    }

    /// The share of held-out instances that was asked for.
    pub(super) fn validation_fraction(&self) -> Option<f64> {
        self.validation_fraction
    }

    /// Share of the training instances that is held out.
    pub(super) fn held_out(&self) -> Option<f64> {
        self.validation_fraction.filter(|&share| share > 0.0)
    }

    /// Which instances are held out.
    pub(super) fn hold_out(&self, seed: u64) -> Result<Option<HoldOut>, CliError> {
        hold_out(self.validation_fraction, seed)
    }

    /// The same for all instances: none is held out to judge epochs, so there are as many as asked.
    pub(super) fn for_all(&self, epochs: Option<u32>) -> Self {
        let epochs = epochs.or(self.epochs);
        Self { epochs, validation_fraction: None, patience: None, monitor: None, ..self.clone() }
    }

    /// The optimiser.
    pub(super) fn optimizer(&self) -> Result<Optimizer, CliError> {
        let decay = self.weight_decay.unwrap_or(match self.optimizer {
            OptimizerName::Adamw => 0.01,
            _ => 0.0,
        });
        if !(decay.is_finite() && decay >= 0.0) {
            return Err(CliError::usage(format_args!(
                "--optimizer.weight-decay {decay}: a number from 0 on is expected"
            )));
        }
        Ok(match self.optimizer {
            OptimizerName::Adam if decay > 0.0 => {
                return Err(CliError::usage("--optimizer adam has no weight decay: adamw has"));
            }
            OptimizerName::Adam | OptimizerName::Adamw => Optimizer::adam(),
            OptimizerName::Momentum => Optimizer::momentum(),
            OptimizerName::Sgd => Optimizer::sgd(),
            OptimizerName::RowAdagrad => Optimizer::row_adagrad(),
        }
        .with_weight_decay(decay))
    }

    /// The schedule in a word, for the model's own record.
    pub(super) fn schedule_name(&self) -> String {
        match self.schedule {
            ScheduleName::Constant => "constant".to_owned(),
            ScheduleName::Cosine => format!("cosine, warm-up {}", self.warmup.unwrap_or(WARMUP)),
            ScheduleName::Plateau => match self.lowest {
                None => "plateau".to_owned(),
                Some(lowest) => format!("plateau, lowest {lowest}"),
            },
        }
    }

    /// Learning rates over `steps` steps.
    pub(super) fn schedule(&self, steps: u64) -> Box<dyn Schedule> {
        match self.schedule {
            ScheduleName::Constant => Box::new(Constant),
            ScheduleName::Cosine => {
                let warmup = (steps as f64 * self.warmup.unwrap_or(WARMUP)).round() as u64;
                Box::new(WarmupCosine { warmup, total: steps, floor: 0.0 })
            }
            ScheduleName::Plateau => Box::new(HalveOnPlateau::new(1).down_to(self.lowest.unwrap_or(0.0))),
        }
    }
}
