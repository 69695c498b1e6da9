//! A training run before it begins: the value of every setting, where it comes from, and what follows for the data.

use crate::settings::{Choices, Placed, Setting, Table};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// Why an option that nobody gave has its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It has it whatever the data are.
    Default,
    /// Of a preset that was chosen by name.
    Preset(String),
    /// It follows from the training instances.
    Data,
    /// It follows from another option.
    Follows(&'static str),
}

impl Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::Data => f.write_str("data"),
            Self::Follows(option) => write!(f, "follows from --{option}"),
        }
    }
}

/// Values that settings have in this training, where what was given does not say them.
#[derive(Debug, Default)]
pub struct Resolved {
    values: BTreeMap<&'static str, (String, Origin)>,
    /// Those that change nothing.
    idle: BTreeSet<&'static str>,
}

impl Resolved {
    /// The value of a setting, and where it comes from unless it was given.
    pub fn get(&self, setting: &str) -> Option<(&str, &Origin)> {
        self.values.get(setting).map(|(value, origin)| (&**value, origin))
    }

    /// Whether a setting changes nothing.
    pub fn is_idle(&self, setting: &str) -> bool {
        self.idle.contains(setting)
    }

    /// The rows of a table that have no place but among `choices`: with what was chosen, else what `usual` says.
    pub(super) fn add_chosen(&mut self, table: &Table, choices: &Choices, usual: impl Fn(&Setting) -> Option<String>) {
        let shown = |row: &Setting| choices.get(row.name).map(|value| row.text(value)).or_else(|| usual(row));
        self.add_shown(table, |_| true, shown, choices, |_, _| None);
    }

    /// The rows of a table that stand among parameters of a type, with the values that these have; `preset` says where a value
    /// comes from that a preset says.
    pub(super) fn add_placed<P: Placed>(
        &mut self,
        table: &Table,
        params: &P,
        choices: &Choices,
        preset: impl Fn(&Setting, Option<&str>) -> Option<Origin>,
    ) {
        let is_of = |row: &Setting| P::at(row.place).is_some();
        self.add_shown(table, is_of, |row| row.shown_in(params), choices, preset);
    }

    fn add_shown(
        &mut self,
        table: &Table,
        is_of: impl Fn(&Setting) -> bool,
        shown: impl Fn(&Setting) -> Option<String>,
        choices: &Choices,
        preset: impl Fn(&Setting, Option<&str>) -> Option<Origin>,
    ) {
        for row in table.rows.iter().filter(|row| is_of(row)) {
            let idle = table.idle_by(row, &shown, choices);
            let value = shown(row).filter(|_| idle.is_none());
            let of_preset = || if row.of_preset { preset(row, value.as_deref()) } else { None };
            let origin = idle.map(Origin::Follows).or_else(of_preset).or(row.follows.map(Origin::Follows));
            let usual = if row.of_data { Origin::Data } else { Origin::Default };
            let none = if idle.is_some() { NONE } else { row.none };
            if idle.is_some() {
                self.idle.insert(row.name);
            }
            self.set_some(row.name, value, none, origin.unwrap_or(usual));
        }
    }

    /// An option's value, and where it comes from unless the option was given.
    pub fn set(&mut self, option: &'static str, value: impl Display, origin: Origin) {
        self.values.insert(option, (value.to_string(), origin));
    }

    /// The same of a value that may be none.
    pub fn set_some(&mut self, option: &'static str, value: Option<impl Display>, none: &'static str, origin: Origin) {
        match value {
            Some(value) => self.set(option, value, origin),
            None => self.set(option, none, origin),
        }
    }
}

/// What is said of a setting that changes nothing.
const NONE: &str = "none";

/// A training run, resolved.
#[derive(Debug)]
pub struct TrainingPlan {
    /// The kind of model.
    pub kind: &'static str,
    /// What a line is about, and what it says.
    pub lines: Vec<(&'static str, String)>,
    /// Values that settings have, where what was given does not say them.
    pub resolved: Resolved,
    /// Of the training instances.
    pub data: Map<String, Value>,
    /// Parameters of the model, as it keeps them.
    pub parameters: Value,
    /// Bytes that will be resident at most.
    pub memory: u64,
}
