//! Settings that cannot be, or have no effect.

use thiserror::Error;

/// Between a setting and values that do not give another one its meaning.
pub(super) const OTHER_THAN: &str = " other than ";

/// A setting that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("--{setting}{what}")]
pub struct SettingError {
    /// The setting, as options call it.
    pub setting: String,
    /// What is wrong, from the separator on: `: ...`, or ` 0: ...`.
    what: String,
}

impl SettingError {
    /// A setting that has no effect, since it goes with something that is not there.
    pub fn idle(setting: &str, needs: impl std::fmt::Display) -> Self {
        Self::idle_with(setting, "here", needs)
    }

    /// A setting that has no effect beside a choice, `with --sampler all`, and what it goes with.
    pub(super) fn idle_with(setting: &str, beside: impl std::fmt::Display, needs: impl std::fmt::Display) -> Self {
        let needs = needs.to_string();
        let change = match needs.starts_with("--") {
            true if needs.contains(OTHER_THAN) => format!("choose a {needs}, or leave it out"),
            true => format!("add {needs}, or leave it out"),
            false => format!("it needs {needs}"),
        };
        Self::plain(setting, format_args!("has no effect {beside}: {change}"))
    }

    /// What is wrong with a setting, whatever its value is.
    pub fn of(setting: &str, what: impl std::fmt::Display) -> Self {
        Self { setting: setting.to_owned(), what: format!(": {what}") }
    }

    /// What is wrong, as the end of a sentence that begins with the setting.
    pub fn plain(setting: &str, what: impl std::fmt::Display) -> Self {
        Self { setting: setting.to_owned(), what: format!(" {what}") }
    }

    /// What is wrong with a value of it.
    pub fn of_value(setting: &str, got: impl std::fmt::Display, what: impl std::fmt::Display) -> Self {
        let got = match got.to_string() {
            empty if empty.is_empty() => "''".to_owned(),
            got => got,
        };
        Self { setting: setting.to_owned(), what: format!(" {got}: {what}") }
    }
}

/// Refuses the first setting that was chosen and changes nothing: each with whether it is such a one, and what it goes
/// with.
///
/// # Errors
/// That setting.
pub fn refuse_idle(settings: &[(&str, bool, &str)]) -> Result<(), SettingError> {
    match settings.iter().find(|(_, is_idle, _)| *is_idle) {
        Some((setting, _, needs)) => Err(SettingError::idle(setting, needs)),
        None => Ok(()),
    }
}
