//! The settings of training, each a row of a table.
//!
//! ```text
//!   name             place                values                 shown           belongs to
//!   tree.branching   cluster.branching    Size                   Tree options
//!   cluster.slack    cluster.slack        F32                    Tree options    cluster.method = balanced
//! ```
//!
//! A row says all there is to know of a setting: how options and files call it, where it stands among the parameters
//! ([`SettingPlace`]), which values it takes, what it means, which other setting gives it a
//! meaning, and which values a search tries. What is typed, explained, refused, searched and documented follows from
//! the rows ([`Table`]); so a new setting is a field, its use, and a row.
//!
//! ```
//! use xc_options::settings::{Choices, Table, tree};
//!
//! let mut choices = Choices::default();
//! choices.set(tree::TABLE.row("tree.branching").unwrap(), "8")?;
//! assert_eq!(tree::params(xc_tree::Preset::Default, &choices)?.cluster.branching, 8);
//! choices.set(tree::TABLE.row("cluster.max-depth").unwrap(), "4")?;
//! let refused = tree::params(xc_tree::Preset::Default, &choices).unwrap_err();
//! assert_eq!(refused.to_string(), "--cluster.max-depth has no effect with --cluster.method balanced: add --cluster.method unbalanced, or leave it out");
//! # Ok::<(), xc_options::settings::SettingError>(())
//! ```

pub mod astra;
pub mod candidates;
pub mod change;
mod choices;
pub mod data;
pub mod embed;
mod error;
pub mod fitted;
pub mod index;
pub mod input;
pub mod judge;
pub mod kinds;
pub mod mach;
pub mod network;
mod place;
pub mod search;
pub mod text;
pub mod transformer;
pub mod tree;
pub mod uniform;
pub mod wide;
pub mod words;

pub use choices::Choices;
use error::OTHER_THAN;
pub use error::{SettingError, refuse_idle};
use place::field;
pub use place::{At, Placed, SettingPlace, Slot};

use crate::tune::Scale;
use serde::Serialize;
use serde_json::Value;
use xc_data::Format;

/// Everything about one setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As options call it, without the dashes: `tree.branching`.
    pub name: &'static str,
    /// The place.
    pub place: SettingPlace,
    /// What it may be.
    pub values: Values,
    /// What a value is called in help: `N`.
    pub unit: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Another name that options take.
    pub alias: Option<&'static str>,
    /// The settings that it is shown with.
    pub heading: Option<&'static str>,
    /// Another setting that gives it a meaning, and its values that do; none: any.
    pub belongs_to: Option<(&'static str, &'static [&'static str])>,
    /// Settings that it cannot be given with.
    pub excludes: &'static [&'static str],
    /// The files that it says something of; none: it is about no file, or about any.
    pub of_files: Option<OfFiles>,
    /// The setting that its usual value follows from.
    pub follows: Option<&'static str>,
    /// Whether a preset of the kind says its usual value.
    pub of_preset: bool,
    /// Whether its usual value follows from the training instances, whatever the kind of model is.
    pub of_data: bool,
    /// What is said where it has no value.
    pub none: &'static str,
    /// What is said of its usual value in place of that which is computed.
    pub usual: Option<&'static str>,
    /// Choices at which its usual value is said too, beside those of what it follows from and belongs to.
    pub said_at: &'static [&'static [(&'static str, &'static str)]],
    /// What a search tries.
    pub searched: Option<Searched>,
    /// Whether a search has a use for it: trials are trained as the final model is, without instances that choose an
    /// epoch.
    pub in_search: bool,
    /// Whether few need it: short help leaves it out.
    pub is_rare: bool,
}

/// Files that a setting says something of.
#[derive(Clone, Copy, Debug)]
pub struct OfFiles {
    /// Their formats.
    pub formats: &'static [Format],
    /// What of them.
    pub content: FileContent,
}

impl OfFiles {
    /// The formats, as a sentence names them.
    pub fn said(&self) -> String {
        any_of(&self.formats.iter().map(|format| format.name()).collect::<Vec<_>>())
    }
}

/// Names, as a sentence offers them: `jsonl, csv or tsv`.
fn any_of(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// What a file is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Whatever it is.
    Any,
    /// Labels.
    Labels,
    /// Instances: texts and ids.
    Instances,
}

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A number from 0 on, without a fraction.
    Size,
    /// Some of them, separated by commas.
    Sizes,
    /// A number in single precision.
    F32,
    /// A number in single precision, or inf.
    F32OrInf,
    /// A number in double precision.
    F64,
    /// True or false.
    Bool,
    /// True where it is named.
    Switch,
    /// One of some names.
    Names(&'static [&'static str]),
    /// One of some names, each with its serialised form.
    Forms(&'static [(&'static str, &'static str)]),
    /// Text that is checked.
    Text(fn(&str) -> Result<(), String>),
}

/// What a search tries of a setting.
#[derive(Clone, Copy, Debug)]
pub struct Searched {
    /// Values; that of the default is only a name.
    pub values: &'static [&'static str],
    /// Position of the default, which is not given to the training.
    pub default: usize,
    /// Whether neighbours are alike.
    pub scale: Scale,
    /// Why it is worth a trial.
    pub why: &'static str,
}

/// What a number of things is.
const WHOLE: &str = "expected a number from 0 on, without a fraction";

/// How the default of a setting is called in a search if its value depends on others.
pub const USUAL: &str = "usual";

impl Setting {
    /// A row without further properties.
    pub const fn new(name: &'static str, values: Values, unit: &'static str) -> Self {
        let none = if matches!(values, Values::Switch) { "false" } else { "none" };
        Self {
            name,
            place: SettingPlace::Chosen,
            values,
            unit,
            help: "",
            alias: None,
            heading: None,
            belongs_to: None,
            excludes: &[],
            of_files: None,
            follows: None,
            of_preset: false,
            of_data: false,
            none,
            usual: None,
            said_at: &[],
            searched: None,
            in_search: true,
            is_rare: false,
        }
    }

    /// At a place of its own among parameters.
    pub const fn at(mut self, place: SettingPlace) -> Self {
        self.place = place;
        self
    }

    /// With what it means.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    /// Also taken by another name.
    pub const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    /// Shown with others.
    pub const fn heading(mut self, heading: &'static str) -> Self {
        self.heading = Some(heading);
        self
    }

    /// Of no effect unless `other` has one of some values.
    pub const fn belongs_to(mut self, other: &'static str, values: &'static [&'static str]) -> Self {
        self.belongs_to = Some((other, values));
        self
    }

    /// Not to be given with others.
    pub const fn excludes(mut self, others: &'static [&'static str]) -> Self {
        self.excludes = others;
        self
    }

    /// Of no effect unless a file has one of some formats and is read for this content.
    pub const fn of_files(mut self, formats: &'static [Format], content: FileContent) -> Self {
        self.of_files = Some(OfFiles { formats, content });
        self
    }

    /// With a usual value that follows from another setting.
    pub const fn follows(mut self, other: &'static str) -> Self {
        self.follows = Some(other);
        self
    }

    /// With a usual value that is said by a preset.
    pub const fn of_preset(mut self) -> Self {
        self.of_preset = true;
        self
    }

    /// With a usual value that follows from the training instances.
    pub const fn of_data(mut self) -> Self {
        self.of_data = true;
        self
    }

    /// With what is said where it has no value.
    pub const fn none(mut self, said: &'static str) -> Self {
        self.none = said;
        self
    }

    /// With what is said of its usual value, where that is not computed.
    pub const fn usual(mut self, said: &'static str) -> Self {
        self.usual = Some(said);
        self
    }

    /// With choices at which its usual value is said too.
    pub const fn said_at(mut self, choices: &'static [&'static [(&'static str, &'static str)]]) -> Self {
        self.said_at = choices;
        self
    }

    /// With other values, each as it is typed.
    pub const fn names_alone(mut self, names: &'static [&'static str]) -> Self {
        self.values = Values::Names(names);
        self
    }

    /// With values that a search tries; `default` is the position of the usual one.
    pub const fn searched(
        mut self,
        values: &'static [&'static str],
        default: usize,
        scale: Scale,
        why: &'static str,
    ) -> Self {
        self.searched = Some(Searched { values, default, scale, why });
        self
    }

    /// Of no use in a search.
    pub const fn of_training_alone(mut self) -> Self {
        self.in_search = false;
        self
    }

    /// Left out of short help.
    pub const fn rare(mut self) -> Self {
        self.is_rare = true;
        self
    }

    /// A value from its text, in serialised form.
    ///
    /// # Errors
    /// What was expected in its place.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match self.values {
            Values::Size => text.parse::<u64>().map(Value::from).map_err(|_| WHOLE.to_owned()),
            Values::Sizes => {
                let sizes: Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse::<u64>()).collect();
                sizes.map(Value::from).map_err(|_| format!("{WHOLE}, or several with commas between them"))
            }
            Values::F64 => text.parse().ok().and_then(number).ok_or_else(|| "expected a finite number".to_owned()),
            Values::F32OrInf => match text.parse::<f32>() {
                Ok(f32::INFINITY) => Ok(Value::from("inf")),
                Ok(value) if value.is_finite() => Ok(Value::from(value)),
                _ => Err("expected a number, or inf".to_owned()),
            },
            // Two numbers that are one in single precision are one value.
            Values::F32 => {
                let value = text.parse::<f32>().ok().map(f64::from);
                value.and_then(number).ok_or_else(|| "expected a finite number".to_owned())
            }
            Values::Bool | Values::Switch => {
                text.parse::<bool>().map(Value::from).map_err(|_| "expected true or false".to_owned())
            }
            Values::Names(names) if names.contains(&text) => Ok(Value::from(text)),
            Values::Names(names) => Err(format!("expected {}", any_of(names))),
            Values::Forms(forms) => match forms.iter().find(|(name, _)| *name == text) {
                Some((_, form)) => Ok(serde_json::from_str(form).unwrap_or_default()),
                None => Err(format!("expected {}", any_of(&self.names().unwrap_or_default()))),
            },
            Values::Text(check) => check(text).map(|()| Value::from(text)),
        }
    }

    /// A value of it in serialised form, as it is typed.
    pub fn text(&self, value: &Value) -> String {
        self.typed(value).unwrap_or_default()
    }

    /// Names of the values, where these are few.
    pub fn names(&self) -> Option<Vec<&'static str>> {
        match self.values {
            Values::Names(names) => Some(names.to_vec()),
            Values::Forms(forms) => Some(forms.iter().map(|(name, _)| *name).collect()),
            _ => None,
        }
    }

    /// Its value among parameters, as it is typed; nothing where there is none.
    pub fn shown_in<P: Placed>(&self, params: &P) -> Option<String> {
        self.typed(&P::at(self.place)?.get(params)?)
    }

    fn typed(&self, value: &Value) -> Option<String> {
        Some(match value {
            Value::Null => return None,
            Value::String(text) if text.is_empty() => return None,
            // A choice that has numbers of its own is an object with its name.
            Value::Object(fields) => fields.keys().next()?.clone(),
            Value::String(form) => match self.values {
                Values::Forms(forms) => {
                    let is_it =
                        |(_, of): &&(&str, &str)| serde_json::from_str::<Value>(of).ok().as_ref() == Some(value);
                    forms.iter().find(is_it).map_or_else(|| form.clone(), |(name, _)| (*name).to_owned())
                }
                _ => form.clone(),
            },
            Value::Number(number) => match self.values {
                // The shortest digits of the single precision.
                Values::F32 | Values::F32OrInf => number.as_f64().map_or_else(String::new, |v| (v as f32).to_string()),
                Values::F64 => number.as_f64().map_or_else(String::new, |v| v.to_string()),
                _ => number.to_string(),
            },
            Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
            Value::Bool(value) => value.to_string(),
        })
    }
}

fn number(value: f64) -> Option<Value> {
    serde_json::Number::from_f64(value).map(Value::Number)
}

/// The rows of a kind of model.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// In the order of the help.
    pub rows: &'static [Setting],
    /// Settings that often help, each a trial of its own in a search before others are drawn.
    pub starts: &'static [&'static [(&'static str, &'static str)]],
}

impl Table {
    /// The row of a setting.
    pub fn row(&self, name: &str) -> Option<&'static Setting> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The setting whose place is called so.
    pub fn at(&self, place: &str) -> Option<&'static Setting> {
        self.rows.iter().find(|row| row.place.name() == Some(place))
    }

    /// Choices by the names of settings and values as they are typed.
    ///
    /// # Errors
    /// A name that is none of the table's, or a value that the setting cannot have.
    pub fn given<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Choices, SettingError> {
        let mut choices = Choices::default();
        for (name, value) in pairs {
            let row = self.row(name).ok_or_else(|| SettingError::of(name, "there is no such option here"))?;
            choices.set(row, value)?;
        }
        Ok(choices)
    }

    /// Parameters with what was chosen of them in its places.
    ///
    /// # Errors
    /// A choice that changes nothing, since it belongs to another one that was not made; a value that its place cannot hold.
    pub fn place<P: Placed>(&self, params: P, choices: &Choices) -> Result<P, SettingError> {
        let made = self.fill(params, choices)?;
        let placed = choices.iter().map(|(row, _)| row);
        let mut placed = placed.filter(|row| self.row(row.name).is_some() && P::at(row.place).is_some());
        placed.try_for_each(|row| self.check_idle(row, |other| other.shown_in(&made)))?;
        Ok(made)
    }

    /// The same, whether it has an effect or not: [`Self::refuse_idle`] says.
    ///
    /// # Errors
    /// A value that its place cannot hold.
    pub fn fill<P: Placed>(&self, mut params: P, choices: &Choices) -> Result<P, SettingError> {
        let placed = choices.iter().filter(|(row, _)| self.row(row.name).is_some());
        let mut placed: Vec<_> = placed.filter_map(|(row, value)| Some((row, value, P::at(row.place)?))).collect();
        // Choices before the numbers that belong to them.
        placed.sort_by_key(|(row, ..)| self.depth(row));
        for (row, value, at) in placed {
            at.put(&mut params, value).map_err(|e| SettingError::of_value(row.name, row.text(value), e))?;
        }
        Ok(params)
    }

    /// Settings that must be known before `row` has a meaning.
    fn depth(&self, row: &Setting) -> usize {
        row.belongs_to.and_then(|(other, _)| self.row(other)).map_or(0, |other| 1 + self.depth(other))
    }

    /// What a setting belongs to, as it is typed: `--sampler frequency`, `--sampler other than all`, `--patience`.
    pub fn needs(&self, row: &Setting) -> Option<String> {
        let (other, values) = row.belongs_to?;
        let names = self.row(other).and_then(Setting::names).unwrap_or_default();
        let without: Vec<_> = names.into_iter().filter(|name| !values.contains(name)).collect();
        Some(match values {
            [] => format!("--{other}"),
            _ if without.len() < values.len() && !without.is_empty() && values.len() > 2 => {
                format!("--{other}{OTHER_THAN}{}", without.join(" or "))
            }
            _ => format!("--{other} {}", values.join(" or ")),
        })
    }

    /// The setting that makes `row` change nothing, if one does: what it belongs to is `shown` with another value, or it was
    /// chosen in its place.
    pub fn idle_by(
        &self,
        row: &Setting,
        shown: &impl Fn(&Setting) -> Option<String>,
        choices: &Choices,
    ) -> Option<&'static str> {
        let in_place = row.excludes.iter().copied().find(|other| choices.get(other).is_some());
        let (name, values) = match (in_place, row.belongs_to) {
            (None, Some(needs)) => needs,
            _ => return in_place,
        };
        let other = self.row(name)?;
        let made = shown(other).filter(|_| self.idle_by(other, shown, choices).is_none());
        made.is_none_or(|made| !values.is_empty() && !values.contains(&&*made)).then_some(name)
    }

    /// Refuses the first setting that was chosen and changes nothing, since it belongs to a choice that was not made: `made`
    /// says what then holds of a setting.
    ///
    /// # Errors
    /// The setting, and what it belongs to.
    pub fn refuse_idle(
        &self,
        choices: &Choices,
        made: impl Fn(&Setting) -> Option<String>,
    ) -> Result<(), SettingError> {
        let mut chosen = self.rows.iter().filter(|row| choices.get(row.name).is_some());
        chosen.try_for_each(|row| self.check_idle(row, &made))
    }

    /// Refuses a setting that belongs to a choice that is not made.
    fn check_idle(&self, row: &Setting, made: impl Fn(&Setting) -> Option<String>) -> Result<(), SettingError> {
        let (Some((other, values)), Some(needs)) = (row.belongs_to, self.needs(row)) else { return Ok(()) };
        match self.row(other).and_then(made) {
            // Without values: any.
            Some(made) if values.is_empty() || values.contains(&&*made) => Ok(()),
            Some(made) => Err(SettingError::idle_with(row.name, format_args!("with --{other} {made}"), needs)),
            None => Err(SettingError::idle(row.name, needs)),
        }
    }
}

/// Parameters in serialised form.
fn serialised(params: &impl Serialize) -> Value {
    serde_json::to_value(params).unwrap_or_default()
}
