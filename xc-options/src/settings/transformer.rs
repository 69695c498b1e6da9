//! The settings of a transformer below a network: which one, and how it learns. A build without feature `transformer`
//! knows them too, and refuses them.

use super::{At, Choices, Setting, SettingError, SettingPlace, Slot, Table, Values, field};
use crate::tune::Scale;
use Values::{F32, F64, Names, Size, Switch, Text};
use xc_nn::encoder::transformer::IS_BUILT;
use xc_train::network::{EncoderName, TextEncoder};

const fn row(name: &'static str, at: At<TextEncoder>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Encoder(at)).heading("Transformer options")
}

/// A setting of a transformer that is trained.
const fn own(name: &'static str, at: At<TextEncoder>, values: Values, unit: &'static str) -> Setting {
    row(name, at, values, unit).belongs_to("encoder", &["transformer"])
}

const ENCODER: At<TextEncoder> = field!(encoder);

/// One rate inside of it.
const DROPOUT: At<TextEncoder> = At::Form {
    name: "layers.dropout",
    get: |of| Some(of.layers.dropout.get()),
    put: |of, value| {
        of.layers.dropout.put(value)?;
        of.layers.attention_dropout = of.layers.dropout;
        Ok(())
    },
};

/// Encoders that read texts with a transformer, of kinds that train one and of others.
const ANY: &[&str] = &["transformer", "frozen"];
const FROZEN_ALONE: &[&str] = &["frozen"];

const fn from(encoders: &'static [&'static str]) -> Setting {
    row("transformer.from", field!(pretrained.from), Text(check_folder), "DIR").belongs_to("encoder", encoders).help(
        "Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or \
         XLM-RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched; nothing is \
         downloaded",
    )
}

const fn max_tokens(encoders: &'static [&'static str]) -> Setting {
    let row = row("transformer.max-tokens", field!(pretrained.max_tokens), Size, "N").belongs_to("encoder", encoders);
    row.help("Tokens of a text, at most, special ones included")
}

const fn prefix(encoders: &'static [&'static str]) -> Setting {
    let row = row("transformer.prefix", field!(pretrained.prefix), Text(xc_model::tokens::check_prefix), "TEXT");
    row.belongs_to("encoder", encoders)
        .rare()
        .help("What stands before every text, such as \"query: \" where the transformer was trained with it")
}

/// Places are those of [`TextEncoder`].
pub const TABLE: Table = Table {
    rows: &[
        row("encoder", ENCODER, Names(&["features", "transformer", "frozen"]), "NAME").help(
            "What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of \
             texts, trained with the network), or frozen (texts by a transformer as it comes)",
        ),
        from(ANY),
        max_tokens(ANY),
        prefix(ANY),
        own("transformer.rate", field!(rule.rate), F64, "X")
            .help("Learning rate of the transformer; AdamW, weight decay 0.01")
            .searched(
                &["0.00003", "0.00005", "0.0001", "0.0002", "0.0003"],
                2,
                Scale::Ordered,
                "too fast, it forgets what it was trained on before",
            ),
        own("transformer.layer-decay", field!(layers.layer_decay), F32, "SHARE")
            .rare()
            .help("Learning rate of each of its layers, as a share of that of the layer above"),
        own("transformer.frozen-layers", field!(layers.frozen_layers), Size, "N")
            .rare()
            .help("Lowest layers that stay as they are, the embeddings with them"),
        own("transformer.cache-states", field!(cache_states), Switch, "")
            .rare()
            .help("Keep what frozen layers make of the training texts in memory: the same model sooner"),
        own("transformer.dropout", DROPOUT, F32, "X")
            .rare()
            .help("Dropout probability inside of it: of states and of weights of attention"),
    ],
    starts: &[],
};

/// The settings of kinds that train no transformer.
pub const FROZEN: Table = Table {
    rows: &[
        row("encoder", ENCODER, Names(&["features", "frozen"]), "NAME").help(
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

/// The encoder that was chosen.
pub fn chosen(choices: &Choices) -> EncoderName {
    choices.value("encoder").unwrap_or_default()
}

/// What was chosen; nothing where no transformer was, trained or not, and in a build that has none.
///
/// # Errors
/// A choice that changes nothing, or a value that cannot be, by the name of its setting.
pub fn encoder(choices: &Choices) -> Result<Option<TextEncoder>, SettingError> {
    if !IS_BUILT {
        return Ok(None);
    }
    let made = TABLE.place(TextEncoder::default(), choices)?;
    let name = match made.encoder {
        EncoderName::Features => return Ok(None),
        EncoderName::Transformer => "transformer",
        EncoderName::Frozen => "frozen",
    };
    if made.pretrained.from.as_os_str().is_empty() {
        return Err(SettingError::of_value("encoder", name, "a folder is expected with it (--transformer.from)"));
    }
    if made.cache_states && made.layers.frozen_layers == 0 {
        return Err(SettingError::idle("transformer.cache-states", "--transformer.frozen-layers"));
    }
    let rate = made.rule.rate;
    if !(rate.is_finite() && rate >= 0.0) {
        return Err(SettingError::of_value("transformer.rate", rate, "a number from 0 on is expected"));
    }
    Ok(Some(made))
}

/// What was chosen of a transformer that is trained; nothing where none is.
///
/// # Errors
/// As [`encoder`].
pub fn trained(choices: &Choices) -> Result<Option<TextEncoder>, SettingError> {
    Ok(encoder(choices)?.filter(|made| made.encoder == EncoderName::Transformer))
}
