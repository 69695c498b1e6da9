//! What was chosen.

use super::{Setting, SettingError, Table, Values};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What was chosen, setting by setting.
#[derive(Clone, Debug, Default)]
pub struct Choices(Vec<(&'static Setting, Value)>);

impl Choices {
    /// Chooses a value by its text.
    ///
    /// # Errors
    /// It is none of the setting.
    pub fn set(&mut self, row: &'static Setting, text: &str) -> Result<(), SettingError> {
        let value = row.parse(text).map_err(|e| SettingError::of_value(row.name, text, e))?;
        self.push(row, value);
        Ok(())
    }

    /// Chooses a value in serialised form; the last one counts.
    pub fn push(&mut self, row: &'static Setting, value: Value) {
        self.0.retain(|(other, _)| other.name != row.name);
        self.0.push((row, value));
    }

    /// Adds the choices of others.
    pub fn extend(&mut self, others: &Self) {
        others.iter().for_each(|(row, value)| self.push(row, value.clone()));
    }

    /// Takes a choice back.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(row, _)| row.name != name);
    }

    /// What was chosen for a setting, as a value of a type.
    pub fn value<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
    }

    /// The same in serialised form.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(row, _)| row.name == name).map(|(_, value)| value)
    }

    /// Those of a table.
    pub fn of(&self, table: &Table) -> Self {
        Self(self.0.iter().filter(|(row, _)| table.row(row.name).is_some()).cloned().collect())
    }

    /// A choice as it is typed: `--trees 3`.
    fn typed(&self, name: &str) -> Option<String> {
        let (row, value) = self.0.iter().find(|(row, _)| row.name == name)?;
        let typed = match value {
            Value::Bool(true) if matches!(row.values, Values::Switch) => String::new(),
            Value::String(text) => format!(" {text}"),
            value => format!(" {value}"),
        };
        Some(format!("{name}{typed}"))
    }

    /// Refuses the first choice that fits: nothing would read it, and `why` says what it needs.
    ///
    /// # Errors
    /// That choice.
    pub fn refuse_if(&self, fits: impl Fn(&str) -> bool, why: impl std::fmt::Display) -> Result<(), SettingError> {
        let found = self.0.iter().map(|(row, _)| row.name).find(|name| fits(name));
        match found.and_then(|name| self.typed(name)) {
            Some(typed) => Err(SettingError::of(&typed, why)),
            None => Ok(()),
        }
    }

    /// Refuses two choices that cannot be made together.
    ///
    /// # Errors
    /// The first of them.
    pub fn refuse_conflicts(&self) -> Result<(), SettingError> {
        for (row, _) in &self.0 {
            if let Some(other) = row.excludes.iter().find(|other| self.get(other).is_some()) {
                return Err(SettingError::of(row.name, format_args!("cannot be used with --{other}")));
            }
        }
        Ok(())
    }

    /// All of it.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, &Value)> {
        self.0.iter().map(|(row, value)| (*row, value))
    }
}
