//! `--explain`: the value of every option of a training run, where it comes from, and what follows for
//! the data.

use crate::bytes::format_bytes;
use crate::context::Context;
pub(super) use crate::counted::counted;
use crate::data::sizes_of_preset;
use crate::error::CliError;
use crate::options::Source;
use crate::output;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use xc_sparse::LabelRows;
use xc_sparse::io::Fields;

/// Why an option that nobody gave has its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
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

/// Values that options have in this training, where the command line alone does not say them.
#[derive(Debug, Default)]
pub(super) struct Resolved(BTreeMap<&'static str, (String, Origin)>);

impl Resolved {
    /// An option's value, and where it comes from unless the option was given.
    pub(super) fn set(&mut self, option: &'static str, value: impl Display, origin: Origin) {
        self.0.insert(option, (value.to_string(), origin));
    }

    /// The same of a value that may be none.
    pub(super) fn set_some(
        &mut self,
        option: &'static str,
        value: Option<impl Display>,
        none: &'static str,
        origin: Origin,
    ) {
        match value {
            Some(value) => self.set(option, value, origin),
            None => self.set(option, none, origin),
        }
    }
}

/// A training run, resolved.
pub(super) struct Plan {
    pub(super) kind: &'static str,
    /// What a line is about, and what it says.
    pub(super) lines: Vec<(&'static str, String)>,
    pub(super) resolved: Resolved,
    /// Of the training instances.
    pub(super) data: Map<String, Value>,
    /// Parameters of the model, as it keeps them.
    pub(super) parameters: Value,
    /// Bytes that will be resident at most.
    pub(super) memory: u64,
}

/// What an option that has no value shows.
const NONE: &str = "none";

impl Plan {
    /// Prints the plan to stdout.
    pub(super) fn print(mut self, context: &Context) -> Result<(), CliError> {
        let seed = context.seed;
        self.lines.push(("threads", format!("{}; seed {seed} gives the same model at any number", context.threads)));
        self.lines.push(("memory", format!("about {}, the data included", format_bytes(self.memory))));
        self.resolved.set("threads", context.threads, Origin::Default);
        self.resolved.set("format", "as the file says", Origin::Default);
        let fields = Fields::default();
        self.resolved.set("text-fields", fields.text.join(","), Origin::Default);
        self.resolved.set("label-field", fields.labels, Origin::Default);
        self.resolve_text_preset(context);
        self.resolved.set_some("max-memory", context.max_memory.map(format_bytes), "what is free", Origin::Default);
        output::print(&if context.json { self.as_json(context).to_string() } else { self.as_text(context) })
    }

    /// The sizes that a preset of the text options stands for.
    fn resolve_text_preset(&mut self, context: &Context) {
        let preset = context.options.iter().find(|option| option.name == "text.preset");
        let Some(name) = preset.and_then(|option| option.value.as_deref()) else { return };
        for (option, value) in sizes_of_preset(name) {
            self.resolved.set(option, value, Origin::Preset(name.to_owned()));
        }
    }

    /// Every option by heading: its name, its value, where that comes from.
    fn options<'a>(&'a self, context: &'a Context) -> impl Iterator<Item = (&'a str, [String; 3])> {
        context.options.iter().map(move |option| {
            let resolved = self.resolved.0.get(&*option.name);
            let resolved_value = resolved.map(|(value, _)| value.clone());
            let value = match option.source {
                Source::Nobody => resolved_value.or_else(|| option.value.clone()),
                Source::Typed | Source::File => option.value.clone().or(resolved_value),
            };
            let origin = match (option.source, resolved) {
                (Source::Typed, _) => "given".to_owned(),
                (Source::File, _) => "given in the file of --config".to_owned(),
                (Source::Nobody, Some((_, origin))) => origin.to_string(),
                (Source::Nobody, None) => Origin::Default.to_string(),
            };
            (&*option.heading, [option.name.clone(), value.unwrap_or_else(|| NONE.to_owned()), origin])
        })
    }

    fn as_json(&self, context: &Context) -> Value {
        let options = self.options(context);
        let options = options.map(|(_, [name, value, from])| json!({"option": name, "value": value, "from": from}));
        let lines = self.lines.iter().map(|(what, text)| json!({"about": what, "says": text}));
        json!({
            "kind": self.kind,
            "data": self.data,
            "options": options.collect::<Vec<_>>(),
            "plan": lines.collect::<Vec<_>>(),
            "parameters": self.parameters,
            "threads": context.threads,
            "memory_bytes": self.memory,
        })
    }

    fn as_text(&self, context: &Context) -> String {
        let mut out = String::new();
        for (what, text) in &self.lines {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{what:<12} {text}");
        }
        let mut options: Vec<_> = self.options(context).collect();
        // A heading may come back behind others.
        let headings: Vec<_> = options.iter().map(|(heading, _)| *heading).collect();
        options.sort_by_key(|(heading, _)| headings.iter().position(|other| other == heading));
        let width = |column: usize| {
            options.iter().map(|(_, cells)| cells[column].chars().count()).filter(|&n| n <= WIDEST).max().unwrap_or(0)
        };
        let (names, values) = (width(0), width(1));
        let mut heading = "";
        for (of, [name, value, origin]) in &options {
            if *of != heading {
                heading = of;
                let _ = writeln!(out, "\n{heading}");
            }
            let _ = writeln!(out, "  --{name:<names$}  {value:<values$}  {origin}");
        }
        out
    }
}

/// Characters of a value that widen its column, at most: paths may be longer.
const WIDEST: usize = 30;

/// Labels with at least one instance.
pub(super) fn seen_labels(labels: &LabelRows) -> usize {
    let mut seen = vec![false; labels.n_labels()];
    labels.labels().iter().for_each(|&l| seen[l as usize] = true);
    seen.iter().filter(|&&s| s).count()
}
