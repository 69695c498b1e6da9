//! The settings that all networks share: how they look, and how they learn.

use super::{Choices, Setting, SettingError, Table, USUAL, Values};
use crate::classifier::{
    ClassifierParams, ClassifierParamsError, EmbeddingInit, EncoderParams, InputKind, LearningParams, Preset,
};
use crate::message::chain;
use crate::tune::Scale;
use Values::{F32, F64, Names, Size, Sizes, Text};
use serde::{Deserialize, Serialize};
use xc_dense::MatmulPrecision;
use xc_nn::trainer::{EarlyStopping, Keep, Monitor, ParamsError, PatienceFrom};
use xc_nn::{Activation, Loss, Optimizer, TrainParams};

const NETWORK: &str = "Network options";
const TRAINING: &str = "Training options";
/// What is said of embeddings where there are none.
const NO_EMBEDDINGS: &str = "none: instances are vectors";

const fn network(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading(NETWORK)
}

const fn training(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading(TRAINING)
}

/// Fields are those of [`NetworkSettings`].
pub const TABLE: Table = Table {
    rows: &[
        network("network.widths", "widths", Sizes, "N,...").of_preset().help(
            "Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their \
             embeddings; vectors need none",
        )
        .searched(
            &[USUAL, "128", "256", "512", "1024"],
            0,
            Scale::Named,
            "small data sets need wide embeddings, very many labels narrow ones",
        ),
        network("network.init", "init", Names(&["random", "lsa"]), "INIT").of_preset().none(NO_EMBEDDINGS).help(
            "Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)",
        )
        .searched(&[USUAL, "random", "lsa"], 0, Scale::Named, "lsa suits long texts"),
        network("network.activation", "activation", Names(&["relu", "identity"]), "NAME").of_preset().none(NO_EMBEDDINGS)
            .help("What becomes of sums of embeddings: relu, or identity (they stay as they are)")
            .follows("network.init")
            .searched(
                &[USUAL, "relu", "identity"],
                0,
                Scale::Named,
                "many labels want no ReLU after the embeddings, nor does lsa",
            ),
        network("network.embedding-rate", "embedding_rate", F32, "SHARE").rare().none(NO_EMBEDDINGS)
            .help(
                "Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1 after \
                 lsa, else 1]",
            )
            .follows("network.init"),
        network("network.input-dropout", "input_dropout", F32, "X").of_preset().follows("network.dropout")
            .help("Dropout probability of the input: the values of a vector, or of the sum of embeddings"),
        network("network.dropout", "dropout", F32, "X").of_preset()
            .help("Dropout probability of the hidden units above the input")
            .searched(
                &[USUAL, "0", "0.1", "0.3", "0.5"],
                0,
                Scale::Named,
                "few epochs over many labels want none, many epochs more",
            ),
        network("network.precision", "precision", Names(&["f32", "bf16"]), "TYPE").of_preset().help(
            "Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors \
             with AVX512_BF16; stored in the model",
        ),
        network("loss", "loss", Names(&["softmax", "bce", "nce", "squared-hinge"]), "LOSS").of_preset()
            .help("softmax (one true label), bce or squared-hinge (each label true or false)")
            .searched(
                &[USUAL, "bce", "squared-hinge", "softmax"],
                0,
                Scale::Named,
                "the squared hinge leaves labels alone that are right by a margin",
            ),
        network("epochs", "epochs", Size, "N").of_preset()
            .help("Passes over the training instances")
            .searched(
                &[USUAL, "3", "5", "10", "20", "40"],
                0,
                Scale::Named,
                "small data need more; too many overfit rare labels",
            ),
        network("batch", "batch_size", Size, "N").of_preset()
            .help("Instances per step")
            .alias("batch-size")
            .searched(&[USUAL, "32", "64", "128", "512"], 0, Scale::Named, "small batches make more steps"),
        training("optimizer", "optimizer", Names(&["adam", "adamw", "momentum", "sgd", "row-adagrad"]), "NAME")
            .help("Optimiser; row-adagrad is row-wise Adagrad"),
        training("optimizer.rate", "rate", F64, "X").of_preset()
            .help("Learning rate")
            .follows("optimizer")
            .searched(
                &[USUAL, "0.001", "0.002", "0.005", "0.01", "0.02"],
                0,
                Scale::Named,
                "goes with the width, the batch and the number of epochs",
            ),
        training("optimizer.weight-decay", "weight_decay", F64, "X").rare()
            .help("Weight decay, decoupled [default: 0.01 for adamw, else 0]")
            .follows("optimizer"),
        training("schedule", "schedule", Names(&["constant", "cosine", "plateau"]), "NAME").help(
            "Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the \
             --monitor value stops improving)",
        ),
        training("schedule.lowest", "lowest", F64, "SHARE").rare()
            .help("Lowest learning rate, as a share of the initial one (plateau) [default: 0]")
            .belongs_to("schedule", &["plateau"]),
        training("clip-norm", "clip_norm", F64, "X").rare()
            .help("Clip gradients to this norm [default: no clipping]")
            .none("no clipping"),
        training("validation-fraction", "validation_fraction", F64, "SHARE").none("0").help(
            "Hold out this share of the training instances, to evaluate the network after each epoch; the same file and \
             --seed give the same instances for every kind of model [default: none; the instances of --validation, if \
             given, are evaluated instead]",
        ),
        training("split-seed", "split_seed", Size, "N").of_training_alone().rare()
            .help("Seed of the held-out instances, which runs of several seeds then share [default: that of --seed]")
            .none("that of --seed")
            .belongs_to("validation-fraction", &[]),
        training("patience", "patience", Size, "N").of_training_alone()
            .help("Stop after N epochs in which the --monitor value did not improve [default: never]")
            .none("never stops early"),
        training("patience-from", "patience_from", Names(&["start", "lowest-rate"]), "WHEN").of_training_alone().rare()
            .help("Count these epochs from the start, or once the learning rate is at its lowest")
            .belongs_to("patience", &[]),
        training("monitor", "monitor", Text(check_monitor), "WHAT").of_training_alone().follows("validation").help(
            "Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on the \
             held-out instances [default: P@1; the training loss if none are held out]",
        ),
        training("keep", "keep", Names(&["best", "last"]), "WHICH").of_training_alone()
            .help("Keep the parameters of the best epoch or of the last one"),
        training("checkpoint-every", "checkpoint_every", Size, "STEPS").rare()
            .help("Steps between checkpoints, in addition to those after epochs (at most one per minute)")
            .none("after epochs, at most one a minute"),
        training("log-every", "log_every", Size, "STEPS").rare().help("Steps between lines of the training log"),
    ],
    starts: &[
        &[("text.ngrams", "2")],
        &[("network.activation", "identity"), ("network.dropout", "0")],
        &[("epochs", "20")],
        &[("network.widths", "1024"), ("optimizer.rate", "0.002")],
        &[("tfidf", "true")],
        &[("optimizer.rate", "0.005")],
    ],
};

fn check_monitor(text: &str) -> Result<(), String> {
    text.parse::<Monitor>().map(|_| ()).map_err(|e| e.to_string())
}

/// An optimiser together with its usual weight decay: of [`Optimizer`], adam is two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerName {
    /// Adam.
    #[default]
    Adam,
    /// Adam with decoupled weight decay.
    Adamw,
    /// Stochastic gradient descent with momentum.
    Momentum,
    /// Stochastic gradient descent.
    Sgd,
    /// Row-wise Adagrad.
    RowAdagrad,
}

impl OptimizerName {
    /// The rate where none is given; a preset's is that of Adam.
    pub fn usual_rate(self, of_preset: f64) -> f64 {
        match self {
            Self::Adam | Self::Adamw => of_preset,
            Self::Momentum => 0.1,
            Self::Sgd => 1.0,
            Self::RowAdagrad => 0.02,
        }
    }

    fn usual_decay(self) -> f64 {
        if self == Self::Adamw { 0.01 } else { 0.0 }
    }
}

/// How the learning rate changes; in `xc-nn` each is a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleName {
    /// It does not.
    Constant,
    /// Warm-up, then down to 0.
    #[default]
    Cosine,
    /// Halved when the monitored value stops improving.
    Plateau,
}

/// What the settings come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkSettings {
    /// Hidden layer sizes, input side first.
    pub widths: Vec<usize>,
    /// How embeddings begin; vectors have none.
    pub init: Option<EmbeddingInit>,
    /// What becomes of their sums.
    pub activation: Option<Activation>,
    /// Their share of the learning rate.
    pub embedding_rate: Option<f32>,
    /// Dropout of the input.
    pub input_dropout: f32,
    /// Dropout of the units above it.
    pub dropout: f32,
    /// What dense layers multiply.
    pub precision: MatmulPrecision,
    /// What errors cost.
    pub loss: Loss,
    /// Passes over the instances.
    pub epochs: u32,
    /// Instances of a step.
    pub batch_size: usize,
    /// The optimiser.
    pub optimizer: OptimizerName,
    /// Its rate.
    pub rate: f64,
    /// Its weight decay.
    pub weight_decay: f64,
    /// How the rate changes.
    pub schedule: ScheduleName,
    /// Share of it that stays (plateau).
    pub lowest: f64,
    /// Largest norm of a gradient.
    pub clip_norm: Option<f64>,
    /// Share of the instances that is held out.
    pub validation_fraction: Option<f64>,
    /// The seed that they are held out by; nothing: that of the run.
    pub split_seed: Option<u64>,
    /// Epochs without improvement after which the training ends.
    pub patience: Option<u32>,
    /// From when on they are counted.
    pub patience_from: PatienceFrom,
    /// What is to improve; nothing: what suits the data.
    pub monitor: Option<Monitor>,
    /// Which parameters stay.
    pub keep: Keep,
    /// Steps between checkpoints.
    pub checkpoint_every: Option<u64>,
    /// Steps between lines of the log.
    pub log_every: u64,
}

impl NetworkSettings {
    /// Those of a preset, for instances of a kind.
    pub fn of_preset(preset: &Preset, input: InputKind) -> Self {
        let ClassifierParams { encoder, loss, precision, learning, .. } = &preset.params;
        let (mut widths, is_sparse) = (encoder.widths().to_vec(), input == InputKind::Sparse);
        if !is_sparse && encoder.input() == InputKind::Sparse && !widths.is_empty() {
            // Vectors need no embeddings.
            widths.remove(0);
        }
        let LearningParams { init, embedding_rate, input_dropout, dropout, .. } = *learning;
        let TrainParams { epochs, batch_size, rate, .. } = preset.training;
        Self {
            widths,
            init: is_sparse.then_some(init),
            activation: encoder.activation().filter(|_| is_sparse),
            embedding_rate: is_sparse.then_some(embedding_rate),
            input_dropout,
            dropout,
            precision: *precision,
            loss: *loss,
            epochs,
            batch_size,
            optimizer: OptimizerName::default(),
            rate,
            weight_decay: 0.0,
            schedule: ScheduleName::default(),
            lowest: 0.0,
            clip_norm: None,
            validation_fraction: None,
            split_seed: None,
            patience: None,
            patience_from: PatienceFrom::default(),
            monitor: None,
            keep: Keep::default(),
            checkpoint_every: None,
            log_every: 100,
        }
    }

    /// Those of a preset with what was chosen.
    ///
    /// # Errors
    /// A choice that changes nothing, or a number out of range, by the name of its setting.
    pub fn new(preset: &Preset, input: InputKind, choices: &Choices) -> Result<Self, SettingError> {
        let mut base = Self::of_preset(preset, input);
        if input != InputKind::Sparse {
            let of_embeddings = ["network.init", "network.activation", "network.embedding-rate"];
            if let Some(name) = of_embeddings.into_iter().find(|name| choices.get(name).is_some()) {
                let what = match input {
                    InputKind::Tokens => {
                        "instances are tokens, whose embeddings are the transformer's; expected no such option"
                    }
                    _ => "instances are vectors already, which no embeddings are made for; expected no such option",
                };
                return Err(SettingError::of(name, what));
            }
        }
        // What usually goes with a choice that was made.
        if let Some(init) = choices.value::<EmbeddingInit>("network.init") {
            (base.init, base.activation) = (Some(init), Some(init.usual_activation()));
        }
        base.embedding_rate = base.init.map(EmbeddingInit::usual_rate);
        if let Some(optimizer) = choices.value::<OptimizerName>("optimizer") {
            (base.rate, base.weight_decay) = (optimizer.usual_rate(base.rate), optimizer.usual_decay());
        }
        // One rate for all layers where the preset has one.
        if let (true, Some(dropout)) = (base.input_dropout == base.dropout, choices.value("network.dropout")) {
            base.input_dropout = dropout;
        }
        let made = TABLE.apply(&base, choices)?;
        made.check()?;
        Ok(made)
    }

    fn check(&self) -> Result<(), SettingError> {
        let zero = |name: &str, value: u64| match value {
            0 => Err(SettingError::of_value(name, 0, "at least 1 is expected")),
            _ => Ok(()),
        };
        zero("epochs", u64::from(self.epochs))?;
        zero("checkpoint-every", self.checkpoint_every.unwrap_or(1))?;
        zero("log-every", self.log_every)?;
        if !(0.0..=1.0).contains(&self.lowest) {
            return Err(SettingError::of_value("schedule.lowest", self.lowest, "a share from 0 to 1 is expected"));
        }
        let has_lowest = match self.schedule {
            ScheduleName::Constant => true,
            // At its lowest the training is over.
            ScheduleName::Cosine => false,
            ScheduleName::Plateau => self.lowest > 0.0,
        };
        if self.patience_from == PatienceFrom::LowestRate && !has_lowest {
            let what =
                "a schedule that reaches its lowest rate is expected, such as --schedule plateau --schedule.lowest 0.1";
            return Err(SettingError::of_value("patience-from", "lowest-rate", what));
        }
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.0) {
            let what = "a number from 0 on is expected";
            return Err(SettingError::of_value("optimizer.weight-decay", self.weight_decay, what));
        }
        if self.optimizer == OptimizerName::Adam && self.weight_decay > 0.0 {
            return Err(SettingError::of_value("optimizer", "adam has no weight decay", "adamw has"));
        }
        Ok(())
    }

    /// Puts them into the parameters of a classifier.
    pub fn put(&self, params: &mut ClassifierParams) {
        params.encoder = match self.activation {
            Some(activation) => {
                let mut bag = EncoderParams::bag(&*self.widths);
                bag.activation_mut().into_iter().for_each(|of| *of = activation);
                bag
            }
            None => EncoderParams::vectors(&*self.widths),
        };
        let learning = &mut params.learning;
        learning.init = self.init.unwrap_or(learning.init);
        learning.embedding_rate = self.embedding_rate.unwrap_or(learning.embedding_rate);
        (learning.input_dropout, learning.dropout) = (self.input_dropout, self.dropout);
        (params.precision, params.loss) = (self.precision, self.loss);
    }

    /// Settings of the trainer under a seed.
    ///
    /// # Errors
    /// A number out of range, by the name of its setting.
    pub fn train_params(&self, seed: u64, monitor: Monitor) -> Result<TrainParams, SettingError> {
        let params = TrainParams {
            batch_size: self.batch_size,
            epochs: self.epochs,
            rate: self.rate,
            seed,
            encoder: None,
            clip_norm: self.clip_norm,
            validate_every: None,
            monitor,
            early_stopping: self.patience.map(|patience| EarlyStopping { patience, from: self.patience_from }),
            keep: self.keep,
        };
        params.check().map_err(|e: ParamsError| {
            let setting = TABLE.at(e.name).map_or("network options", |row| row.name);
            SettingError::of(setting, e)
        })?;
        Ok(params)
    }

    /// The optimiser.
    pub fn optimizer(&self) -> Optimizer {
        match self.optimizer {
            OptimizerName::Adam | OptimizerName::Adamw => Optimizer::adam(),
            OptimizerName::Momentum => Optimizer::momentum(),
            OptimizerName::Sgd => Optimizer::sgd(),
            OptimizerName::RowAdagrad => Optimizer::row_adagrad(),
        }
        .with_weight_decay(self.weight_decay)
    }
}

/// What is impossible about a classifier, by the setting that says it.
pub fn params_error(error: &ClassifierParamsError) -> SettingError {
    use ClassifierParamsError as E;
    let setting = match error {
        E::Widths { .. } => "network.widths",
        E::Number { name: "embedding_rate", .. } => "network.embedding-rate",
        E::Number { name: "input_dropout", .. } => "network.input-dropout",
        E::Number { name: "dropout", .. } => "network.dropout",
        E::Number { name: "rewire_fraction", .. } => "head.rewire-fraction",
        E::Number { name: "wide.negatives", .. } => "wide.negatives",
        E::Number { name: "wide.cost", .. } => "wide.cost",
        E::Number { name: "wide.threshold", .. } => "wide.prune-below",
        E::Number { name: "wide.weight", .. } => "wide.weight",
        E::Number { name: "wide.labels", .. } => "wide.labels",
        E::Nce { .. } => "loss",
        E::Rows { .. } => "head.precision",
        E::Sampler(_) => "negatives.sampled",
        E::Connections(_) | E::TooMany { .. } => "head.fan-in",
        E::Moments { .. } => "head.moments",
        E::Rankers { .. } => "wide.precision",
        _ => "train",
    };
    SettingError::of(setting, chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::preset;
    use crate::settings::serialised;

    fn chosen(options: &[(&str, &str)]) -> Result<NetworkSettings, SettingError> {
        let mut choices = Choices::default();
        for (name, value) in options {
            choices.set(TABLE.row(name).unwrap(), value)?;
        }
        NetworkSettings::new(&preset::dense(), InputKind::Sparse, &choices)
    }

    #[test]
    fn every_row_leads_to_a_field_of_its_own_and_changes_it() {
        let before = serialised(&chosen(&[]).unwrap());
        for row in TABLE.rows {
            assert_eq!(TABLE.rows.iter().filter(|other| other.field == row.field).count(), 1, "{}", row.name);
            let value = match row.values {
                Size => "7",
                Sizes => "3,4",
                Names(names) if row.name == "optimizer" => names[1],
                Names(names) => names.iter().find(|name| row.shown(&before).as_deref() != Some(**name)).unwrap(),
                Text(_) => "PSP@5",
                _ => "0.625",
            };
            let mut options = vec![(row.name, value)];
            let of = row.belongs_to.map(|(other, values)| (other, values.first().copied().unwrap_or("2")));
            options.extend(of);
            // What these go with.
            match row.name {
                "patience-from" => options.push(("schedule", "constant")),
                "optimizer.weight-decay" => options.push(("optimizer", "adamw")),
                _ => {}
            }
            let after = serialised(&chosen(&options).unwrap());
            assert!(after[row.field] != before[row.field], "{}", row.name);
            assert_eq!(row.shown(&after).as_deref(), Some(value), "{}", row.name);
        }
    }

    #[test]
    fn what_belongs_together_changes_together() {
        let all = chosen(&[("network.init", "lsa"), ("optimizer", "adamw"), ("network.dropout", "0.5")]).unwrap();
        assert_eq!((all.activation, all.embedding_rate), (Some(Activation::Identity), Some(0.1)));
        assert_eq!((all.weight_decay, all.rate), (0.01, preset::dense().training.rate));
        assert_eq!((all.input_dropout, all.dropout), (0.5, 0.5));
        assert_eq!(chosen(&[("optimizer", "sgd")]).unwrap().rate, 1.0);
        for preset in [preset::dense(), preset::uniform(), preset::lns()] {
            let (settings, mut params) =
                (NetworkSettings::new(&preset, InputKind::Sparse, &Choices::default()).unwrap(), preset.params.clone());
            settings.put(&mut params);
            assert_eq!(params, preset.params);
        }
    }

    #[test]
    fn what_cannot_be_is_said_by_the_name_of_the_setting() {
        let refused = |options: &[(&str, &str)]| chosen(options).unwrap_err().to_string();
        assert_eq!(refused(&[("epochs", "0")]), "--epochs 0: at least 1 is expected");
        assert!(refused(&[("epochs", "4294967296")]).starts_with("--epochs 4294967296: "));
        assert!(refused(&[("schedule.lowest", "0.1")]).ends_with("--schedule plateau is expected with it"));
        assert!(refused(&[("patience-from", "start")]).ends_with("--patience is expected with it"));
        assert!(refused(&[("optimizer.weight-decay", "0.1")]).contains("adamw has"));
        assert!(refused(&[("network.widths", "3,x")]).starts_with("--network.widths 3,x: "));
    }
}
