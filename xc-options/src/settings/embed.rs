//! The settings of vectors that a transformer makes of texts as it comes.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, Values, field};
use Values::{Bool, Names, Size, Text};
use xc_train::fit::Embed;

const fn row(name: &'static str, at: At<Embed>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Embed(at))
}

/// Places are those of [`Embed`].
pub const TABLE: Table = Table {
    rows: &[
        row("max-tokens", field!(pretrained.max_tokens), Size, "N")
            .help("Tokens of a text, at most, special ones included"),
        row("prefix", field!(pretrained.prefix), Text(xc_model::tokens::check_prefix), "TEXT")
            .usual("the folder's default prompt, if it has one")
            .help("What stands before every text, such as \"query: \" where the transformer was trained with it"),
        row("precision", field!(precision), Names(&["f32", "bf16"]), "TYPE")
            .help("What products multiply: f32, or values rounded to bf16, in half the time where the CPU has them"),
        row("normalise", field!(normalise), Bool, "BOOL").help("Scale vectors to length 1"),
    ],
    starts: &[],
};

/// Which vectors were chosen, of the transformer in a folder.
///
/// # Errors
/// A value that its place cannot hold.
pub fn params(usual: Embed, choices: &Choices) -> Result<Embed, SettingError> {
    TABLE.place(usual, choices)
}
