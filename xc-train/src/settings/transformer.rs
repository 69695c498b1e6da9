//! The settings of a transformer below a network: which one, and how it learns. A build without feature `transformer`
//! knows them too, and refuses them.

use super::{Choices, Setting, SettingError, Table, Values};
use crate::tune::Scale;
use Values::{F32, F64, Names, Size, Switch, Text};
use serde::{Deserialize, Serialize};
use xc_nn::encoder::transformer::{IS_BUILT, TransformerLearning};
use xc_nn::{Optimizer, UpdateRule};

const fn row(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading("Transformer options")
}

/// A setting of a transformer that is trained.
const fn own(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    row(name, field, values, unit).belongs_to("encoder", &["transformer"])
}

/// Encoders that read texts with a transformer, of kinds that train one and of others.
const ANY: &[&str] = &["transformer", "frozen"];
const FROZEN_ALONE: &[&str] = &["frozen"];

const fn from(encoders: &'static [&'static str]) -> Setting {
    row("transformer.from", "from", Text(check_folder), "DIR").belongs_to("encoder", encoders).help(
        "Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or \
         XLM-RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched; nothing is \
         downloaded",
    )
}

const fn max_tokens(encoders: &'static [&'static str]) -> Setting {
    let row = row("transformer.max-tokens", "max_tokens", Size, "N").belongs_to("encoder", encoders);
    row.help("Tokens of a text, at most, special ones included")
}

const fn prefix(encoders: &'static [&'static str]) -> Setting {
    let row = row("transformer.prefix", "prefix", Text(crate::tokens::check_prefix), "TEXT");
    row.belongs_to("encoder", encoders)
        .rare()
        .help("What stands before every text, such as \"query: \" where the transformer was trained with it")
}

/// Fields are those of [`TransformerSettings`].
pub const TABLE: Table = Table {
    rows: &[
        row("encoder", "encoder", Names(&["features", "transformer", "frozen"]), "NAME").help(
            "What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of \
             texts, trained with the network), or frozen (texts by a transformer as it comes)",
        ),
        from(ANY),
        max_tokens(ANY),
        prefix(ANY),
        own("transformer.rate", "rate", F64, "X")
            .help("Learning rate of the transformer; AdamW, weight decay 0.01")
            .searched(
                &["0.00003", "0.00005", "0.0001", "0.0002", "0.0003"],
                2,
                Scale::Ordered,
                "too fast, it forgets what it was trained on before",
            ),
        own("transformer.layer-decay", "layer_decay", F32, "SHARE")
            .rare()
            .help("Learning rate of each of its layers, as a share of that of the layer above"),
        own("transformer.frozen-layers", "frozen_layers", Size, "N")
            .rare()
            .help("Lowest layers that stay as they are, the embeddings with them"),
        own("transformer.cache-states", "cache_states", Switch, "")
            .rare()
            .help("Keep what frozen layers make of the training texts in memory: the same model sooner"),
        own("transformer.dropout", "dropout", F32, "X")
            .rare()
            .help("Dropout probability inside of it: of states and of weights of attention"),
    ],
    starts: &[],
};

/// The settings of kinds that train no transformer.
pub const FROZEN: Table = Table {
    rows: &[
        row("encoder", "encoder", Names(&["features", "frozen"]), "NAME").help(
            "What makes vectors of instances: features (embeddings, or vectors as they come), or frozen (texts \
             by a transformer as it comes)",
        ),
        from(FROZEN_ALONE),
        max_tokens(FROZEN_ALONE),
        prefix(FROZEN_ALONE),
    ],
    starts: &[],
};

fn check_folder(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("expected a folder".to_owned()) } else { Ok(()) }
}

/// What makes vectors of instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncoderName {
    /// Embeddings of features, or vectors as they come.
    #[default]
    Features,
    /// A transformer over tokens of texts.
    Transformer,
    /// Vectors of texts by a transformer that is not trained.
    Frozen,
}

impl EncoderName {
    /// The one that was chosen.
    pub fn of(choices: &Choices) -> Self {
        choices.value("encoder").unwrap_or_default()
    }
}

/// What the settings come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransformerSettings {
    /// What makes vectors.
    pub encoder: EncoderName,
    /// The folder that it begins from.
    pub from: Option<String>,
    /// Tokens of a text, at most.
    pub max_tokens: usize,
    /// What stands before every text; the folder's own default prompt where nothing is said.
    pub prefix: Option<String>,
    /// Its learning rate.
    pub rate: f64,
    /// The rate of each layer as a share of that of the layer above.
    pub layer_decay: f32,
    /// Lowest layers that stay as they are.
    pub frozen_layers: usize,
    /// Whether what these make of training texts stays in memory.
    pub cache_states: bool,
    /// Dropout inside of it.
    pub dropout: f32,
}

impl Default for TransformerSettings {
    /// Features. The rate has not been searched for.
    fn default() -> Self {
        let (from, max_tokens, prefix, rate) = (None, 64, None, 1e-4);
        let (layer_decay, frozen_layers, cache_states, dropout) = (1.0, 0, false, 0.0);
        let encoder = EncoderName::Features;
        Self { encoder, from, max_tokens, prefix, rate, layer_decay, frozen_layers, cache_states, dropout }
    }
}

impl TransformerSettings {
    /// What was chosen; nothing where no transformer was, trained or not, and in a build that has none.
    ///
    /// # Errors
    /// A choice that changes nothing, or a value that cannot be, by the name of its setting.
    pub fn new(choices: &Choices) -> Result<Option<Self>, SettingError> {
        if !IS_BUILT {
            return Ok(None);
        }
        let made = TABLE.apply(&Self::default(), choices)?;
        let name = match made.encoder {
            EncoderName::Features => return Ok(None),
            EncoderName::Transformer => "transformer",
            EncoderName::Frozen => "frozen",
        };
        if made.from.is_none() {
            return Err(SettingError::of_value("encoder", name, "a folder is expected with it (--transformer.from)"));
        }
        if made.cache_states && made.frozen_layers == 0 {
            return Err(SettingError::idle("transformer.cache-states", "--transformer.frozen-layers"));
        }
        if !(made.rate.is_finite() && made.rate >= 0.0) {
            return Err(SettingError::of_value("transformer.rate", made.rate, "a number from 0 on is expected"));
        }
        Ok(Some(made))
    }

    /// What was chosen of a transformer that is trained; nothing where none is.
    ///
    /// # Errors
    /// As [`TransformerSettings::new`].
    pub fn trained(choices: &Choices) -> Result<Option<Self>, SettingError> {
        Ok(Self::new(choices)?.filter(|made| made.encoder == EncoderName::Transformer))
    }

    /// How its layers learn.
    pub fn learning(&self) -> TransformerLearning {
        let Self { dropout, layer_decay, frozen_layers, .. } = *self;
        TransformerLearning { dropout, attention_dropout: dropout, pooled_dropout: 0.0, layer_decay, frozen_layers }
    }

    /// Its optimiser and rate.
    pub fn rule(&self) -> UpdateRule {
        UpdateRule { optimizer: Optimizer::adam().with_weight_decay(0.01), rate: self.rate }
    }
}
