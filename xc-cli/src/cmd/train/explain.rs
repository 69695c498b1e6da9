//! `--explain`: the value of every option of a training run, where it comes from, and what follows for
//! the data.

use crate::bytes::format_bytes;
use crate::context::Context;
use crate::error::CliError;
use crate::options::Source;
use crate::output;
use crate::whole_stdin;
use serde_json::{Value, json};
use std::fmt::Write;
use xc_options::training::plan::{Origin, TrainingPlan};

/// A training run, as it is shown.
struct Shown {
    plan: TrainingPlan,
}

/// What an option that has no value shows.
const NONE: &str = "none";

/// Prints a plan to stdout.
pub(super) fn print(plan: TrainingPlan, context: &Context) -> Result<(), CliError> {
    let seed = context.seed;
    let mut shown = Shown { plan };
    shown.plan.lines.push(("threads", format!("{}; seed {seed} gives the same model at any number", context.threads)));
    shown.plan.lines.push(("memory", format!("about {}, the data included", format_bytes(shown.plan.memory))));
    shown.plan.resolved.set("threads", context.threads, Origin::Default);
    shown.plan.resolved.set_some("max-memory", context.max_memory.map(format_bytes), "what is free", Origin::Default);
    output::print(&whole_stdin::named(&if context.json {
        shown.as_json(context).to_string()
    } else {
        shown.as_text(context)
    }))
}

impl Shown {
    /// Every option by heading: its name, its value, where that comes from.
    fn options<'a>(&'a self, context: &'a Context) -> impl Iterator<Item = (&'a str, [String; 3])> {
        context.options.iter().map(move |option| {
            let resolved = self.plan.resolved.get(&option.name);
            let resolved_value = resolved.map(|(value, _)| value.to_owned());
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
        let lines = self.plan.lines.iter().map(|(what, text)| json!({"about": what, "says": text}));
        json!({
            "kind": self.plan.kind,
            "data": self.plan.data,
            "options": options.collect::<Vec<_>>(),
            "plan": lines.collect::<Vec<_>>(),
            "parameters": self.plan.parameters,
            "threads": context.threads,
            "memory_bytes": self.plan.memory,
        })
    }

    fn as_text(&self, context: &Context) -> String {
        let mut out = String::new();
        for (what, text) in &self.plan.lines {
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
