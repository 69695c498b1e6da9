//! The settings that are searched, and one point among them.

use serde::{Deserialize, Serialize};

/// Whether the values of a setting have an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scale {
    /// Neighbours in the list are close to one another.
    Ordered,
    /// Names: any one is as far from another as the next.
    Named,
}

/// A setting and the values it may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    name: String,
    values: Vec<String>,
    default: usize,
    scale: Scale,
}

impl Choice {
    /// A setting; `default` is the position of the value that it has unless something else is said.
    ///
    /// # Panics
    /// If there is no such value.
    pub fn new(name: &str, values: &[&str], default: usize, scale: Scale) -> Self {
        assert!(default < values.len(), "{name}: default {default} of {} values", values.len());
        Self { name: name.to_owned(), values: values.iter().map(|&v| v.to_owned()).collect(), default, scale }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its values.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Position of the default value.
    pub fn default_value(&self) -> usize {
        self.default
    }

    /// Whether its values have an order.
    pub fn scale(&self) -> Scale {
        self.scale
    }
}

/// One value of each setting of a space, by position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Settings(Vec<usize>);

impl Settings {
    /// Of positions, one for each setting.
    pub fn new(values: Vec<usize>) -> Self {
        Self(values)
    }

    /// Position of the value of each setting.
    pub fn values(&self) -> &[usize] {
        &self.0
    }

    pub(super) fn values_mut(&mut self) -> &mut [usize] {
        &mut self.0
    }
}

/// All settings that are searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    choices: Vec<Choice>,
    starts: Vec<Settings>,
}

impl Space {
    /// Of settings whose names differ.
    pub fn new(choices: Vec<Choice>) -> Self {
        Self { choices, starts: Vec::new() }
    }

    /// The same, where these changes to the defaults are tried before any that are drawn. A change of
    /// a setting, or to a value, that the space does not have is left out.
    #[must_use]
    pub fn with_starts<'a>(mut self, starts: impl IntoIterator<Item = &'a [(&'a str, &'a str)]>) -> Self {
        for changes in starts {
            let mut settings = self.default_settings();
            for (name, value) in changes {
                let found = self.choices.iter().position(|choice| choice.name == *name);
                let found = found
                    .and_then(|at| Some((at, self.choices[at].values.iter().position(|possible| possible == value)?)));
                if let Some((at, value)) = found {
                    settings.0[at] = value;
                }
            }
            if settings != self.default_settings() && !self.starts.contains(&settings) {
                self.starts.push(settings);
            }
        }
        self
    }

    /// The settings.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// What is tried first.
    pub(super) fn starts(&self) -> &[Settings] {
        &self.starts
    }

    /// The default value of each.
    pub fn default_settings(&self) -> Settings {
        Settings(self.choices.iter().map(|choice| choice.default).collect())
    }

    /// Whether these are settings of the space.
    pub fn contains(&self, settings: &Settings) -> bool {
        let fits = |(choice, &value): (&Choice, &usize)| value < choice.values.len();
        settings.0.len() == self.choices.len() && self.choices.iter().zip(&settings.0).all(fits)
    }

    /// What differs from the defaults: name and value.
    ///
    /// # Panics
    /// If they are no settings of the space.
    pub fn changes<'s>(&'s self, settings: &Settings) -> Vec<(&'s str, &'s str)> {
        assert!(self.contains(settings), "{settings:?} in a space of {} settings", self.choices.len());
        let pairs = self.choices.iter().zip(&settings.0).filter(|(choice, value)| **value != choice.default);
        pairs.map(|(choice, &value)| (&*choice.name, &*choice.values[value])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_what_differs_from_the_defaults() {
        let space = Space::new(vec![
            Choice::new("cost", &["0.1", "1", "10"], 1, Scale::Ordered),
            Choice::new("loss", &["hinge", "logistic"], 0, Scale::Named),
        ]);
        assert_eq!(space.changes(&space.default_settings()), []);
        assert_eq!(space.changes(&Settings(vec![2, 1])), [("cost", "10"), ("loss", "logistic")]);
        assert!(!space.contains(&Settings(vec![3, 0])) && !space.contains(&Settings(vec![0])));
        let space = space.with_starts([&[("loss", "logistic"), ("absent", "1")][..], &[("cost", "7")], &[]]);
        assert_eq!(space.starts(), [Settings(vec![1, 1])]);
    }
}
