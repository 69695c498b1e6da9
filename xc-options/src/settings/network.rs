//! The settings that all networks share: how they look, and how they learn.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, USUAL, Values, field};
use crate::tune::Scale;
use Values::{F32, F64, Names, Size, Sizes, Text};
use xc_model::classifier::{ClassifierParamsError, EmbeddingInit, InputKind};
use xc_model::message::chain;
use xc_nn::trainer::{EarlyStopping, Monitor, PatienceFrom};
use xc_train::network::{NetworkParams, NetworkParamsError, OptimizerName, RunParams};
use xc_train::preset::Preset;

const NETWORK: &str = "Network options";
const TRAINING: &str = "Training options";
/// What is said of embeddings where there are none.
const NO_EMBEDDINGS: &str = "none: instances are vectors";

const fn row(name: &'static str, at: At<NetworkParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Network(at))
}

const fn network(name: &'static str, at: At<NetworkParams>, values: Values, unit: &'static str) -> Setting {
    row(name, at, values, unit).heading(NETWORK)
}

const fn training(name: &'static str, at: At<NetworkParams>, values: Values, unit: &'static str) -> Setting {
    row(name, at, values, unit).heading(TRAINING)
}

const fn run(name: &'static str, at: At<RunParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Run(at)).heading(TRAINING)
}

/// Layers.
pub(super) const WIDTHS: Setting = network(
    "network.widths",
    At::Field("classifier.encoder.widths", |p| Some(p.classifier.encoder.widths_mut())),
    Sizes,
    "N,...",
)
.of_preset()
.help(
    "Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their \
             embeddings; vectors need none",
)
.searched(
    &[USUAL, "128", "256", "512", "1024"],
    0,
    Scale::Named,
    "small data sets need wide embeddings, very many labels narrow ones",
);

/// How fast embeddings learn.
pub(super) const EMBEDDING_RATE: Setting = network("network.embedding-rate", RATE_OF_EMBEDDINGS, F32, "SHARE")
    .rare()
    .none(NO_EMBEDDINGS)
    .help("Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed")
    .follows("network.init");

/// Dropout below the first layer.
pub(super) const INPUT_DROPOUT: Setting =
    network("network.input-dropout", field!(classifier.learning.input_dropout), F32, "X")
        .of_preset()
        .follows("network.dropout")
        .said_at(&[&[("network.dropout", "0.5")]])
        .rare()
        .help("Dropout probability of the input: the values of a vector, or of the sum of embeddings");

/// What is minimised.
pub(super) const LOSS: Setting =
    network("loss", field!(classifier.loss), Names(&["softmax", "bce", "nce", "squared-hinge"]), "LOSS")
        .of_preset()
        .help("softmax (one true label), bce or squared-hinge (each label true or false)")
        .searched(
            &[USUAL, "bce", "squared-hinge", "softmax"],
            0,
            Scale::Named,
            "the squared hinge leaves labels alone that are right by a margin",
        );

/// Places are those of [`NetworkParams`] and [`RunParams`].
pub const TABLE: Table = Table {
    rows: &[
        WIDTHS,
        network("network.init", INIT, Names(&["random", "lsa"]), "INIT").of_preset().none(NO_EMBEDDINGS).help(
            "Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)",
        )
        .searched(&[USUAL, "random", "lsa"], 0, Scale::Named, "lsa suits long texts"),
        network("network.activation", ACTIVATION, Names(&["relu", "identity"]), "NAME").of_preset().none(NO_EMBEDDINGS)
            .help("What becomes of sums of embeddings: relu, or identity (they stay as they are)")
            .follows("network.init")
            .searched(
                &[USUAL, "relu", "identity"],
                0,
                Scale::Named,
                "many labels want no ReLU after the embeddings, nor does lsa",
            ),
        EMBEDDING_RATE,
        INPUT_DROPOUT,
        network("network.dropout", field!(classifier.learning.dropout), F32, "X").of_preset()
            .help("Dropout probability of the hidden units above the input")
            .searched(
                &[USUAL, "0", "0.1", "0.3", "0.5"],
                0,
                Scale::Named,
                "few epochs over many labels want none, many epochs more",
            ),
        network("network.precision", field!(classifier.precision), Names(&["f32", "bf16"]), "TYPE").of_preset().rare().help(
            "Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors \
             with AVX512_BF16; stored in the model",
        ),
        LOSS,
        network("epochs", field!(training.epochs), Size, "N").of_preset()
            .help("Passes over the training instances")
            .searched(
                &[USUAL, "3", "5", "10", "20", "40"],
                0,
                Scale::Named,
                "small data need more; too many overfit rare labels",
            ),
        network("batch", field!(training.batch_size), Size, "N").of_preset()
            .help("Instances per step")
            .alias("batch-size")
            .searched(&[USUAL, "32", "64", "128", "512"], 0, Scale::Named, "small batches make more steps"),
        training("optimizer", field!(optimizer.name), Names(&["adam", "adamw", "momentum", "sgd", "row-adagrad"]), "NAME")
            .help("Optimiser; row-adagrad is row-wise Adagrad"),
        training("optimizer.rate", field!(training.rate), F64, "X").of_preset()
            .help("Learning rate")
            .follows("optimizer")
            .searched(
                &[USUAL, "0.001", "0.002", "0.005", "0.01", "0.02"],
                0,
                Scale::Named,
                "goes with the width, the batch and the number of epochs",
            ),
        training("optimizer.weight-decay", field!(optimizer.weight_decay), F64, "X").rare()
            .help("Weight decay, decoupled")
            .follows("optimizer"),
        training("schedule", field!(schedule.name), Names(&["constant", "cosine", "plateau"]), "NAME").help(
            "Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the \
             --monitor value stops improving)",
        ),
        training("schedule.lowest", field!(schedule.lowest), F64, "SHARE").rare()
            .help("Lowest learning rate, as a share of the initial one (plateau)").none("0")
            .belongs_to("schedule", &["plateau"]),
        training("clip-norm", field!(training.clip_norm), F64, "X").rare()
            .help("Clip gradients to this norm")
            .none("no clipping"),
        run("validation-fraction", field!(validation_fraction), F64, "SHARE").none("0")
            .usual("none; the instances of --validation, if given, are evaluated instead").help(
            "Hold out this share of the training instances, to evaluate the network after each epoch; the same file and \
             --seed give the same instances for every kind of model",
        ),
        run("split-seed", field!(split_seed), Size, "N").of_training_alone().rare()
            .help("Seed of the held-out instances, which runs of several seeds then share")
            .none("that of --seed")
            .belongs_to("validation-fraction", &[]),
        training("patience", PATIENCE, Size, "N").of_training_alone()
            .help("Stop after N epochs in which the --monitor value did not improve")
            .none("never stops early"),
        training("patience-from", PATIENCE_FROM, Names(&["start", "lowest-rate"]), "WHEN").of_training_alone().rare()
            .help("Count these epochs from the start, or once the learning rate is at its lowest")
            .belongs_to("patience", &[]),
        training("monitor", field!(training.monitor), Text(check_monitor), "WHAT").of_training_alone().follows("validation")
            .usual("P@1; the training loss where no instances are held out").help(
            "Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on the \
             held-out instances",
        ),
        training("keep", field!(training.keep), Names(&["best", "last"]), "WHICH").of_training_alone()
            .help("Keep the parameters of the best epoch or of the last one"),
        run("checkpoint-every", field!(checkpoint_every), Size, "STEPS").rare()
            .help("Steps between checkpoints, in addition to those after epochs (at most one per minute)")
            .none("after epochs, at most one a minute"),
        run("log-every", field!(log_every), Size, "STEPS").rare().help("Steps between lines of the training log"),
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

/// Embeddings alone begin somehow.
const INIT: At<NetworkParams> = At::Field("classifier.learning.init", |p| match p.has_embeddings() {
    true => Some(&mut p.classifier.learning.init),
    false => None,
});

const ACTIVATION: At<NetworkParams> =
    At::Field("classifier.encoder.activation", |p| match p.classifier.encoder.activation_mut() {
        Some(activation) => Some(activation),
        None => None,
    });

const RATE_OF_EMBEDDINGS: At<NetworkParams> =
    At::Field("classifier.learning.embedding_rate", |p| match p.has_embeddings() {
        true => Some(&mut p.classifier.learning.embedding_rate),
        false => None,
    });

/// A number of epochs, counted from the start unless something else is said.
const PATIENCE: At<NetworkParams> = At::Form {
    name: "training.early_stopping.patience",
    get: |p| p.training.early_stopping.map(|stopping| stopping.patience.into()),
    put: |p, value| {
        let patience = serde_json::from_value(value.clone()).map_err(|e| e.to_string())?;
        p.training.early_stopping = Some(EarlyStopping { patience, from: PatienceFrom::default() });
        Ok(())
    },
};

const PATIENCE_FROM: At<NetworkParams> =
    At::Field("training.early_stopping.from", |p| match &mut p.training.early_stopping {
        Some(stopping) => Some(&mut stopping.from),
        None => None,
    });

fn check_monitor(text: &str) -> Result<(), String> {
    text.parse::<Monitor>().map(|_| ()).map_err(|e| e.to_string())
}

/// What was chosen of what a run does beside training.
///
/// # Errors
/// A choice that changes nothing, or a number out of range, by the name of its setting.
pub fn run_params(choices: &Choices) -> Result<RunParams, SettingError> {
    let made = TABLE.place(RunParams::default(), choices)?;
    let each = [("checkpoint-every", made.checkpoint_every.unwrap_or(1)), ("log-every", made.log_every)];
    match each.iter().find(|(_, steps)| *steps == 0) {
        Some((name, _)) => Err(SettingError::of_value(name, 0, "at least 1 is expected")),
        None => Ok(made),
    }
}

/// A preset over instances of a kind, with what was chosen.
///
/// # Errors
/// A choice that changes nothing, or a number out of range, by the name of its setting.
pub fn params(preset: &Preset, input: InputKind, choices: &Choices) -> Result<NetworkParams, SettingError> {
    let mut made = NetworkParams::of(preset, input);
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
        made.begin_with(init);
    }
    if let Some(optimizer) = choices.value::<OptimizerName>("optimizer") {
        made.learn_by(optimizer);
    }
    if let Some(dropout) = choices.value("network.dropout") {
        made.drop_out(dropout);
    }
    let made = TABLE.place(made, choices)?;
    made.check().map_err(|e| error(&e))?;
    Ok(made)
}

/// What is impossible about a network, by the setting that says it.
fn error(error: &NetworkParamsError) -> SettingError {
    let named = |place: &str| TABLE.at(place).map_or("network options", |row| row.name);
    match error {
        NetworkParamsError::Value { place, got, expected } => SettingError::of_value(named(place), got, expected),
        // Its names are those of fields.
        NetworkParamsError::Training(e) => {
            let is_it = |row: &&Setting| {
                row.place
                    .name()
                    .unwrap_or_default()
                    .strip_prefix("training.")
                    .is_some_and(|field| field.ends_with(e.name))
            };
            SettingError::of(TABLE.rows.iter().find(is_it).map_or("network options", |row| row.name), e)
        }
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
    use xc_train::preset;

    fn choices(options: &[(&str, &str)]) -> Result<Choices, SettingError> {
        let mut choices = Choices::default();
        for (name, value) in options {
            choices.set(TABLE.row(name).unwrap(), value)?;
        }
        Ok(choices)
    }

    fn chosen(options: &[(&str, &str)]) -> Result<(NetworkParams, RunParams), SettingError> {
        let choices = choices(options)?;
        Ok((params(&preset::dense(), InputKind::Sparse, &choices)?, run_params(&choices)?))
    }

    #[test]
    fn every_row_leads_to_a_place_of_its_own_and_changes_it() {
        let shown = |row: &Setting, (network, run): &(NetworkParams, RunParams)| {
            row.shown_in(network).or_else(|| row.shown_in(run))
        };
        for row in TABLE.rows {
            let mut others: Vec<_> = row
                .belongs_to
                .map(|(other, values)| (other, values.first().copied().unwrap_or("2")))
                .into_iter()
                .collect();
            // What these go with.
            match row.name {
                "patience-from" => others.push(("schedule", "constant")),
                "optimizer.weight-decay" => others.push(("optimizer", "adamw")),
                // Which would be that of the input too.
                "network.dropout" => others.push(("network.input-dropout", "0.3")),
                "network.init" => others.extend([("network.activation", "relu"), ("network.embedding-rate", "1")]),
                "optimizer" => others.push(("optimizer.weight-decay", "0.01")),
                _ => {}
            }
            let before = chosen(&others).or_else(|_| chosen(&[])).unwrap();
            let value = match row.values {
                Size => "7",
                Sizes => "3,4",
                Names(names) if row.name == "optimizer" => names[1],
                Names(names) => names.iter().find(|name| shown(row, &before).as_deref() != Some(**name)).unwrap(),
                Text(_) => "PSP@5",
                _ => "0.625",
            };
            let after = chosen(&[&others[..], &[(row.name, value)]].concat()).unwrap();
            assert_eq!(shown(row, &after).as_deref(), Some(value), "{}", row.name);
            // Before, some of these were not allowed to be alone.
            let all: Vec<_> = others.iter().map(|(name, _)| *name).chain([row.name]).collect();
            let of_row = |other: &Setting| other.belongs_to.is_some_and(|(name, _)| name == row.name);
            let changed = TABLE.rows.iter().filter(|row| shown(row, &after) != shown(row, &before));
            let changed: Vec<_> = changed.filter(|row| !of_row(row)).map(|row| row.name).collect();
            assert!(
                changed.contains(&row.name) && changed.iter().all(|name| all.contains(name)),
                "{}: {changed:?}",
                row.name
            );
        }
    }

    #[test]
    fn what_belongs_together_changes_together() {
        let (all, _) = chosen(&[("network.init", "lsa"), ("optimizer", "adamw"), ("network.dropout", "0.5")]).unwrap();
        let mut expected = NetworkParams::of(&preset::dense(), InputKind::Sparse);
        expected.begin_with(EmbeddingInit::Lsa);
        expected.learn_by(OptimizerName::Adamw);
        expected.drop_out(0.5);
        assert_eq!(all, expected);
        let (own, _) =
            chosen(&[("optimizer", "sgd"), ("optimizer.rate", "0.5"), ("network.input-dropout", "0")]).unwrap();
        assert_eq!((own.training.rate, own.classifier.learning.input_dropout), (0.5, 0.0));
    }

    #[test]
    fn what_cannot_be_is_said_by_the_name_of_the_setting() {
        let refused = |options: &[(&str, &str)]| chosen(options).unwrap_err().to_string();
        assert_eq!(refused(&[("epochs", "0")]), "--epochs 0: at least 1 is expected");
        assert_eq!(refused(&[("log-every", "0")]), "--log-every 0: at least 1 is expected");
        assert_eq!(refused(&[("batch", "0")]), "--batch: batch_size is 0, expected at least 1");
        assert_eq!(
            refused(&[("optimizer.rate", "-1")]),
            "--optimizer.rate: rate is -1, expected a finite number from 0 on"
        );
        assert_eq!(refused(&[("patience", "0")]), "--patience: patience is 0, expected at least 1");
        assert!(refused(&[("epochs", "4294967296")]).starts_with("--epochs 4294967296: "));
        assert!(
            refused(&[("schedule.lowest", "0.1")])
                .ends_with("with --schedule cosine: add --schedule plateau, or leave it out")
        );
        assert!(
            refused(&[("patience-from", "start")]).ends_with(" has no effect here: add --patience, or leave it out")
        );
        assert!(refused(&[("optimizer.weight-decay", "0.1")]).contains("adamw has"));
        assert!(refused(&[("network.widths", "3,x")]).starts_with("--network.widths 3,x: "));
    }
}
