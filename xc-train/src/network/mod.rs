//! A network of any kind before it is trained: what it is made of, and how it learns.
//!
//! ```
//! use xc_model::classifier::{EmbeddingInit, InputKind};
//! use xc_train::network::{NetworkParams, OptimizerName};
//! use xc_train::preset;
//!
//! // What `xc train dense` begins with, over sparse features, but for two choices with what usually goes with them.
//! let mut params = NetworkParams::of(&preset::dense(), InputKind::Sparse);
//! params.begin_with(EmbeddingInit::Lsa);
//! params.learn_by(OptimizerName::Sgd);
//! params.training.epochs = 3;
//! params.check()?;
//! assert_eq!((params.classifier.learning.embedding_rate, params.training.rate), (0.1, 1.0));
//! params.training.epochs = 0;
//! assert_eq!(params.check().unwrap_err().to_string(), "training.epochs 0: at least 1 is expected");
//! # Ok::<(), xc_train::network::NetworkParamsError>(())
//! ```

mod optimizer;
mod pretrained;
mod run;
mod schedule;
mod uniform;

pub use optimizer::{OptimizerName, OptimizerParams};
pub use pretrained::{EncoderName, Pretrained, TextEncoder};
pub use run::RunParams;
pub use schedule::{RateSchedule, ScheduleName};
pub use uniform::UniformParams;

use crate::preset::Preset;
use serde_json::{Value, json};
use thiserror::Error;
use xc_model::classifier::{ClassifierParams, EmbeddingInit, EncoderParams, InputKind};
use xc_nn::TrainParams;
use xc_nn::trainer::{ParamsError, PatienceFrom};
use xc_store::to_parameter;

/// A network, and how it is trained. Of this a model folder keeps three objects: `classifier`, `learning`
/// ([`LearningParams`](xc_model::classifier::LearningParams)), and `training` ([`NetworkParams::record`]).
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkParams {
    /// Encoder, head and loss, and what trainers alone read of them.
    pub classifier: ClassifierParams,
    /// Batches, epochs, the learning rate, and which epoch is kept.
    pub training: TrainParams,
    /// What a gradient does to the values.
    pub optimizer: OptimizerParams,
    /// How the learning rate changes.
    pub schedule: RateSchedule,
}

/// A network that is impossible, or cannot be trained so.
#[derive(Debug, Error, PartialEq)]
pub enum NetworkParamsError {
    /// A value that the place cannot have.
    #[error("{place} {got}: {expected}")]
    Value {
        /// Where it stands: a path into [`NetworkParams`].
        place: &'static str,
        /// It.
        got: String,
        /// What is expected there.
        expected: &'static str,
    },
    /// Of [`NetworkParams::training`].
    #[error("training: {0}")]
    Training(#[from] ParamsError),
}

impl NetworkParams {
    /// A preset over instances of a kind: vectors and tokens need no embeddings, and have no wide term unless one is asked
    /// for.
    pub fn of(preset: &Preset, input: InputKind) -> Self {
        let mut classifier = preset.params.clone();
        let mut made = |widths: &[usize]| classifier.encoder = EncoderParams::vectors(widths);
        let of_preset = &preset.params.encoder;
        match (input, of_preset.input()) {
            (InputKind::Sparse, _) => {}
            (_, InputKind::Sparse) => made(of_preset.widths().get(1..).unwrap_or_default()),
            _ => made(of_preset.widths()),
        }
        let learning = &mut classifier.learning;
        match input {
            InputKind::Sparse => learning.embedding_rate = learning.init.usual_rate(),
            InputKind::Dense | InputKind::Tokens => learning.wide = None,
            // Which become one of the others first.
            InputKind::Text => {}
        }
        let training = preset.training.clone();
        Self { classifier, training, optimizer: OptimizerParams::default(), schedule: RateSchedule::default() }
    }

    /// Whether there are embeddings of features.
    pub fn has_embeddings(&self) -> bool {
        self.classifier.encoder.input() == InputKind::Sparse
    }

    /// Embeddings begin so, at the usual share of the learning rate, and their sums go through what usually follows.
    pub fn begin_with(&mut self, init: EmbeddingInit) {
        let ClassifierParams { encoder, learning, .. } = &mut self.classifier;
        (learning.init, learning.embedding_rate) = (init, init.usual_rate());
        encoder.activation_mut().into_iter().for_each(|activation| *activation = init.usual_activation());
    }

    /// Learns by an optimiser, at its usual rate and weight decay; those of Adam have the rate of the preset.
    pub fn learn_by(&mut self, name: OptimizerName) {
        self.training.rate = name.usual_rate(self.training.rate);
        self.optimizer = OptimizerParams { name, weight_decay: name.usual_decay() };
    }

    /// Drops values out at a rate: of the units above the input, and of the input too where both had one rate.
    pub fn drop_out(&mut self, rate: f32) {
        let learning = &mut self.classifier.learning;
        if learning.input_dropout == learning.dropout {
            learning.input_dropout = rate;
        }
        learning.dropout = rate;
    }

    /// Says whether a network can be trained so. What is impossible about its classifier says
    /// [`ClassifierParams::check`], which needs to know features and labels.
    ///
    /// # Errors
    /// The first thing that is impossible, by its place.
    pub fn check(&self) -> Result<(), NetworkParamsError> {
        let Self { training, optimizer, schedule, .. } = self;
        let wrong = |place, got: String, expected| Err(NetworkParamsError::Value { place, got, expected });
        if training.epochs == 0 {
            return wrong("training.epochs", "0".to_owned(), "at least 1 is expected");
        }
        if schedule.lowest.is_some_and(|lowest| !(0.0..=1.0).contains(&lowest)) {
            let got = schedule.lowest().to_string();
            return wrong("schedule.lowest", got, "a share from 0 to 1 is expected");
        }
        let waits = training.early_stopping.is_some_and(|stopping| stopping.from == PatienceFrom::LowestRate);
        if waits && !schedule.has_lowest() {
            return wrong(
                "training.early_stopping.from",
                "lowest-rate".to_owned(),
                "a schedule that reaches its lowest rate is expected, such as --schedule plateau --schedule.lowest 0.1",
            );
        }
        let decay = optimizer.weight_decay;
        if !(decay.is_finite() && decay >= 0.0) {
            return wrong("optimizer.weight_decay", decay.to_string(), "a number from 0 on is expected");
        }
        if optimizer.name == OptimizerName::Adam && decay > 0.0 {
            return wrong("optimizer.weight_decay", decay.to_string(), "adam has no weight decay; adamw has");
        }
        Ok(training.check()?)
    }

    /// What a model folder keeps of the training: nothing that depends on the machine or the run. `held_out` is the share
    /// of the instances that was.
    pub fn record(&self, held_out: Option<f64>) -> Value {
        json!({
            "settings": to_parameter(&self.training),
            "optimizer": to_parameter(&self.optimizer.rule()),
            "schedule": self.schedule.to_string(),
            "held_out": held_out,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;
    use xc_nn::Activation;

    #[test]
    fn a_preset_over_sparse_features_is_the_preset() {
        for preset in [preset::dense(), preset::uniform(), preset::lns()] {
            let made = NetworkParams::of(&preset, InputKind::Sparse);
            assert_eq!((made.classifier, made.training), (preset.params, preset.training));
        }
    }

    #[test]
    fn vectors_and_tokens_have_neither_embeddings_nor_a_wide_term() {
        for input in [InputKind::Dense, InputKind::Tokens] {
            let made = NetworkParams::of(&preset::uniform(), input);
            assert!(!made.has_embeddings() && made.classifier.learning.wide.is_none());
            assert_eq!(made.classifier.encoder, EncoderParams::vectors([32_768]));
            // What is a preset for tokens already loses nothing more.
            let above = NetworkParams::of(&preset::uniform().above_tokens(), input);
            assert_eq!(above.classifier.encoder, EncoderParams::vectors([32_768]));
        }
    }

    #[test]
    fn what_belongs_together_changes_together() {
        let mut all = NetworkParams::of(&preset::dense(), InputKind::Sparse);
        all.begin_with(EmbeddingInit::Lsa);
        all.learn_by(OptimizerName::Adamw);
        all.drop_out(0.5);
        let learning = &all.classifier.learning;
        assert_eq!((all.classifier.encoder.activation(), learning.embedding_rate), (Some(Activation::Identity), 0.1));
        assert_eq!((all.optimizer.weight_decay, all.training.rate), (0.01, preset::dense().training.rate));
        assert_eq!((learning.input_dropout, learning.dropout), (0.5, 0.5));
        all.learn_by(OptimizerName::Sgd);
        assert_eq!((all.optimizer.weight_decay, all.training.rate), (0.0, 1.0));
        let mut two_rates = NetworkParams::of(&preset::uniform(), InputKind::Sparse);
        two_rates.drop_out(0.5);
        let learning = &two_rates.classifier.learning;
        assert_eq!((learning.input_dropout, learning.dropout), (0.1, 0.5));
    }

    #[test]
    fn what_cannot_be_is_said_by_its_place() {
        let refused = |change: fn(&mut NetworkParams)| {
            let mut params = NetworkParams::of(&preset::dense(), InputKind::Sparse);
            change(&mut params);
            params.check().unwrap_err().to_string()
        };
        assert_eq!(refused(|p| p.training.epochs = 0), "training.epochs 0: at least 1 is expected");
        assert_eq!(refused(|p| p.training.batch_size = 0), "training: batch_size is 0, expected at least 1");
        assert_eq!(refused(|p| p.schedule.lowest = Some(2.0)), "schedule.lowest 2: a share from 0 to 1 is expected");
        assert_eq!(
            refused(|p| p.optimizer.weight_decay = 0.1),
            "optimizer.weight_decay 0.1: adam has no weight decay; adamw has"
        );
        let decay = refused(|p| p.optimizer.weight_decay = f64::NAN);
        assert_eq!(decay, "optimizer.weight_decay NaN: a number from 0 on is expected");
    }
}
