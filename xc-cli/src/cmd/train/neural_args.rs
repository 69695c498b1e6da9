//! The options of networks: their shape, and how they learn.

use crate::error::CliError;
use clap::ValueEnum;
use xc_train::schedule::{Constant, HalveOnPlateau, WarmupCosine};
use xc_train::trainer::{Judge, Keep, PatienceFrom};
use xc_train::{Loss, NetworkParams, Optimizer, Schedule, TrainParams};

/// How a network looks and learns.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Network options")]
pub(crate) struct NeuralArgs {
    /// Widths: that of the vectors that features are summed into, then of each dense layer above, e.g. 512,512
    #[arg(long = "network.widths", value_name = "N,...", value_delimiter = ',', default_value = "512")]
    widths: Vec<usize>,
    /// Chance that a hidden value is dropped in training
    #[arg(long = "network.dropout", value_name = "X", default_value_t = 0.3)]
    dropout: f32,
    /// softmax (one label right), bce or squared-hinge (each label right or not)
    /// [default: softmax if no training instance has more than one label, else bce]
    #[arg(long, value_name = "LOSS", value_enum)]
    loss: Option<LossName>,
    /// Passes over the training instances
    #[arg(long, value_name = "N", default_value_t = 10)]
    epochs: u32,
    /// Instances of a step
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(super) batch_size: usize,
    /// Learning rate [default: 0.01 for adam and adamw, 0.1 for momentum, 1 for sgd]
    #[arg(long = "optimizer.rate", value_name = "X")]
    rate: Option<f64>,
    /// What a gradient does to the parameters
    #[arg(long, value_name = "NAME", value_enum, default_value_t = OptimizerName::Adam)]
    optimizer: OptimizerName,
    /// Weight decay, decoupled (adamw, sgd, momentum)
    #[arg(long = "optimizer.weight-decay", value_name = "X")]
    weight_decay: Option<f64>,
    /// Learning rate over time: constant, cosine (warm-up, then down to 0), or plateau (halved when validation, as --judge
    /// says, stands still)
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ScheduleName::Cosine)]
    schedule: ScheduleName,
    /// Share of the steps in which the rate rises from 0 (cosine)
    #[arg(long = "schedule.warmup", value_name = "SHARE", default_value_t = 0.05)]
    warmup: f64,
    /// Share of the learning rate below which it is not halved (plateau) [default: 0]
    #[arg(long = "schedule.lowest", value_name = "SHARE")]
    lowest: Option<f64>,
    /// Shorten gradients whose norm is larger
    #[arg(long, value_name = "X")]
    clip_norm: Option<f64>,
    /// Hold out this share of the training instances: they judge the network after each epoch [default: --validation does,
    /// where it is given]
    #[arg(long, value_name = "SHARE")]
    validation_fraction: Option<f64>,
    /// Stop after so many epochs without improvement on the validation instances
    #[arg(long, value_name = "N")]
    patience: Option<u32>,
    /// Count them from the start, or once the learning rate is at its lowest
    #[arg(long, value_name = "WHEN", value_enum, requires = "patience", default_value_t = PatienceFromName::Start)]
    patience_from: PatienceFromName,
    /// What improvement is
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = JudgeName::Loss)]
    judge: JudgeName,
    /// Parameters of the best epoch or of the last one
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = KeepName::Best)]
    keep: KeepName,
    /// Steps between checkpoints, beside those after epochs (at most one a minute)
    #[arg(long, value_name = "STEPS")]
    pub(super) checkpoint_every: Option<u64>,
    /// Steps between lines of the training log
    #[arg(long, value_name = "STEPS", default_value_t = 100)]
    pub(super) log_every: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LossName {
    Softmax,
    Bce,
    SquaredHinge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OptimizerName {
    Adam,
    Adamw,
    Momentum,
    Sgd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScheduleName {
    Constant,
    Cosine,
    Plateau,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum JudgeName {
    Loss,
    #[value(name = "p@1")]
    Precision,
    #[value(name = "p@3")]
    Precision3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PatienceFromName {
    Start,
    LowestRate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeepName {
    Best,
    Last,
}

impl NeuralArgs {
    /// Shape of the network. `most_labels` is the largest number of labels of an instance, which chooses the loss.
    pub(super) fn network(&self, seed: u64, most_labels: usize) -> Result<NetworkParams, CliError> {
        let by_data = if most_labels <= 1 { Loss::Softmax } else { Loss::Bce };
        let loss = self.loss().unwrap_or(by_data);
        let params = NetworkParams { widths: self.widths.clone(), dropout: self.dropout, loss, seed };
        params.check().map_err(|e| CliError::usage(format_args!("--network.widths, --network.dropout: {e}")))?;
        Ok(params)
    }

    /// The widths that were asked for.
    pub(super) fn widths(&self) -> &[usize] {
        &self.widths
    }

    /// Chance that a hidden value is dropped.
    pub(super) fn dropout(&self) -> f32 {
        self.dropout
    }

    /// The loss that was asked for.
    pub(super) fn loss(&self) -> Option<Loss> {
        self.loss.map(|loss| match loss {
            LossName::Softmax => Loss::Softmax,
            LossName::Bce => Loss::Bce,
            LossName::SquaredHinge => Loss::SquaredHinge,
        })
    }

    /// Settings of the training under a seed; `adam_rate` is the rate of Adam and AdamW unless one was asked for.
    pub(super) fn train_params(&self, seed: u64, adam_rate: f64) -> Result<TrainParams, CliError> {
        let params = TrainParams {
            encoder: None,
            batch_size: self.batch_size,
            epochs: self.epochs,
            rate: self.rate.unwrap_or(match self.optimizer {
                OptimizerName::Adam | OptimizerName::Adamw => adam_rate,
                OptimizerName::Momentum => 0.1,
                OptimizerName::Sgd => 1.0,
            }),
            seed,
            clip_norm: self.clip_norm,
            validate_every: None,
            patience: self.patience,
            patience_from: match self.patience_from {
                PatienceFromName::Start => PatienceFrom::Start,
                PatienceFromName::LowestRate => PatienceFrom::LowestRate,
            },
            judge: self.judge(),
            keep: match self.keep {
                KeepName::Best => Keep::Best,
                KeepName::Last => Keep::Last,
            },
        };
        params.check().map_err(|e| CliError::usage(format_args!("network options: {e}")))?;
        self.check_schedule()?;
        if params.epochs == 0 {
            return Err(CliError::usage("--epochs 0: at least 1 is wanted"));
        }
        for (name, value) in [("checkpoint-every", self.checkpoint_every), ("log-every", Some(self.log_every))] {
            if value == Some(0) {
                return Err(CliError::usage(format_args!("--{name} 0: at least 1 is wanted")));
            }
        }
        for (name, value) in [("validation-fraction", self.validation_fraction), ("schedule.warmup", Some(self.warmup))]
        {
            if let Some(met) = value
                && !(0.0..1.0).contains(&met)
            {
                return Err(CliError::usage(format_args!("--{name} {met}: a share from 0 to below 1 is wanted")));
            }
        }
        Ok(params)
    }

    fn judge(&self) -> Judge {
        match self.judge {
            JudgeName::Loss => Judge::Loss,
            JudgeName::Precision => Judge::Precision,
            JudgeName::Precision3 => Judge::Precision3,
        }
    }

    /// Refuses options of the schedule that do not go together.
    fn check_schedule(&self) -> Result<(), CliError> {
        if let Some(met) = self.lowest {
            if self.schedule != ScheduleName::Plateau {
                return Err(CliError::usage("--schedule.lowest belongs to --schedule plateau"));
            }
            if !(0.0..=1.0).contains(&met) {
                return Err(CliError::usage(format_args!("--schedule.lowest {met}: a share from 0 to 1 is wanted")));
            }
        }
        let has_lowest = match self.schedule {
            ScheduleName::Constant => true,
            // At its lowest the training is over.
            ScheduleName::Cosine => false,
            ScheduleName::Plateau => self.lowest.is_some_and(|lowest| lowest > 0.0),
        };
        if self.patience_from == PatienceFromName::LowestRate && !has_lowest {
            return Err(CliError::usage(
                "--patience-from lowest-rate: a schedule that reaches its lowest rate is wanted, such as \
                 --schedule plateau --schedule.lowest 0.1",
            ));
        }
        Ok(())
    }

    /// Share of the training instances that is held out.
    pub(super) fn held_out(&self) -> Option<f64> {
        self.validation_fraction.filter(|&share| share > 0.0)
    }

    /// The optimiser.
    pub(super) fn optimizer(&self) -> Result<Optimizer, CliError> {
        let decay = self.weight_decay.unwrap_or(match self.optimizer {
            OptimizerName::Adamw => 0.01,
            _ => 0.0,
        });
        if !(decay.is_finite() && decay >= 0.0) {
            return Err(CliError::usage(format_args!(
                "--optimizer.weight-decay {decay}: a number from 0 on is wanted"
            )));
        }
        Ok(match self.optimizer {
            OptimizerName::Adam if decay > 0.0 => {
                return Err(CliError::usage("--optimizer adam has no weight decay: adamw has"));
            }
            OptimizerName::Adam | OptimizerName::Adamw => Optimizer::adam(),
            OptimizerName::Momentum => Optimizer::momentum(),
            OptimizerName::Sgd => Optimizer::sgd(),
        }
        .with_weight_decay(decay))
    }

    /// The schedule in a word, for the model's own record.
    pub(super) fn schedule_name(&self) -> String {
        match self.schedule {
            ScheduleName::Constant => "constant".to_owned(),
            ScheduleName::Cosine => format!("cosine, warm-up {}", self.warmup),
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
                let warmup = (steps as f64 * self.warmup).round() as u64;
                Box::new(WarmupCosine { warmup, total: steps, floor: 0.0 })
            }
            ScheduleName::Plateau => {
                Box::new(HalveOnPlateau::new(1).judged_by(self.judge()).down_to(self.lowest.unwrap_or(0.0)))
            }
        }
    }
}
