//! Which words of a text have vectors, and which are beside one another.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, Values, field};
use Values::{F64, Size};
use xc_train::skipgram::WordsParams;

const fn row(name: &'static str, at: At<WordsParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Words(at)).heading("Word options")
}

/// Places are those of [`WordsParams`].
pub const TABLE: Table = Table {
    rows: &[
        row("window", field!(window), Size, "N").help("Context window: words on each side, within a line"),
        row("min-count", field!(min_count), Size, "N").help("Keep words that occur at least N times"),
        row("vocabulary", field!(vocabulary), Size, "N").none("all").help("Keep at most N words, the most frequent ones"),
        row("subsample", field!(subsample), F64, "SHARE").help(
            "Leave out occurrences of words whose share of the text is above SHARE, more of them for more frequent words; \
             word2vec uses 1e-3, 0 leaves out none",
        ),
    ],
    starts: &[],
};

/// What was chosen.
///
/// # Errors
/// A number out of range.
pub fn params(choices: &Choices) -> Result<WordsParams, SettingError> {
    let made = TABLE.place(WordsParams::default(), choices)?;
    let refused = |name: &str, got: String, what: String| Err(SettingError::of_value(name, got, what));
    match made {
        WordsParams { window: 0, .. } => refused("window", "0".into(), "at least 1 is expected".into()),
        WordsParams { window, .. } if window > u32::MAX as usize => {
            refused("window", window.to_string(), format!("at most {} is expected", u32::MAX))
        }
        WordsParams { vocabulary: Some(n @ (0 | 1)), .. } => {
            refused("vocabulary", n.to_string(), "at least 2 is expected".into())
        }
        WordsParams { subsample, .. } if !(subsample >= 0.0 && subsample.is_finite()) => {
            refused("subsample", subsample.to_string(), "a share from 0 on is expected".into())
        }
        made => Ok(made),
    }
}
