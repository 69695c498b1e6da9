//! Which words of a text have vectors, and which are beside one another.

use super::{Choices, Setting, SettingError, Table, Values};
use Values::{F64, Size};
use serde::{Deserialize, Serialize};

const fn row(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading("Word options")
}

/// Fields are those of [`WordSettings`].
pub const TABLE: Table = Table {
    rows: &[
        row("window", "window", Size, "N").help("Context window: words on each side, within a line"),
        row("min-count", "min_count", Size, "N").help("Keep words that occur at least N times"),
        row("vocabulary", "vocabulary", Size, "N").none("all").help("Keep at most N words, the most frequent ones [default: all]"),
        row("subsample", "subsample", F64, "SHARE").help(
            "Leave out occurrences of words whose share of the text is above SHARE, more of them for more frequent words; \
             word2vec uses 1e-3, 0 leaves out none",
        ),
    ],
    starts: &[],
};

/// What the settings come to, as a model keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordSettings {
    /// Words on each side.
    pub window: usize,
    /// Occurrences of a word, at least.
    pub min_count: u64,
    /// Words, at most.
    pub vocabulary: Option<usize>,
    /// Share above which occurrences are left out.
    pub subsample: f64,
}

impl Default for WordSettings {
    fn default() -> Self {
        Self { window: 2, min_count: 5, vocabulary: None, subsample: 0.0 }
    }
}

impl WordSettings {
    /// What was chosen.
    ///
    /// # Errors
    /// A number out of range.
    pub fn new(choices: &Choices) -> Result<Self, SettingError> {
        let made: Self = TABLE.apply(&Self::default(), choices)?;
        let refused = |name: &str, got: String, what: String| Err(SettingError::of_value(name, got, what));
        match made {
            Self { window: 0, .. } => refused("window", "0".into(), "at least 1 is expected".into()),
            Self { window, .. } if window > u32::MAX as usize => {
                refused("window", window.to_string(), format!("at most {} is expected", u32::MAX))
            }
            Self { vocabulary: Some(n @ (0 | 1)), .. } => {
                refused("vocabulary", n.to_string(), "at least 2 is expected".into())
            }
            Self { subsample, .. } if !(subsample >= 0.0 && subsample.is_finite()) => {
                refused("subsample", subsample.to_string(), "a share from 0 on is expected".into())
            }
            made => Ok(made),
        }
    }
}
