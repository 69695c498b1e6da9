//! A JSON schema of the files that `--config` takes.

use super::{Leaf, listed};
use clap::Arg;
use serde_json::{Map, Value, json};
use xc_options::settings::{Setting, Table, Values, change, embed, fitted, index, input, judge, kinds, search, text};

/// A definition for each command; a file is one for some command.
pub(super) fn of(leaves: &[Leaf<'_>]) -> Value {
    let commands = leaves.iter().map(|(path, command)| (path.clone(), of_command(path, command)));
    let commands: Map<String, Value> = commands.collect();
    let any: Vec<Value> =
        commands.keys().map(|path| json!({ "$ref": format!("#/$defs/{}", path.replace(' ', "%20")) })).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Options of xc, as --config FILE.toml takes them",
        "anyOf": any,
        "$defs": commands,
    })
}

/// The options of a command as nested tables, `[tree] branching = 32`, and by their whole names, `"tree.branching" = 32`.
fn of_command(path: &str, command: &clap::Command) -> Value {
    let common = command.get_arguments().filter(|arg| arg.is_global_set() && !arg.is_hide_set());
    let described = |arg: &Arg| {
        let name = arg.get_long().filter(|name| *name != "config")?.to_owned();
        let values = row(path, &name).map(|row| row.values);
        let mut schema = of_value(arg, values);
        schema["description"] = arg.get_help().map(ToString::to_string).unwrap_or_default().into();
        Some((name, schema))
    };
    let all: Vec<(String, Value)> = listed(command).chain(common).filter_map(described).collect();
    let named: Vec<(&str, &Value)> = all.iter().map(|(name, schema)| (&**name, schema)).collect();
    let mut table = table(&named);
    let whole = named.iter().filter(|(name, _)| name.contains('.'));
    whole.for_each(|(name, schema)| table["properties"][name] = (*schema).clone());
    table
}

/// The setting that an option of a command is.
fn row(path: &str, name: &str) -> Option<&'static Setting> {
    let tables: &[Table] = match path {
        "predict" | "bench predict" => &[search::TABLE, input::TABLE],
        "index build" => &[index::TABLE, input::TABLE],
        "index search" | "index evaluate" => &[search::SCOPE, input::ROWS],
        "blend" => &[fitted::BLEND, input::TABLE],
        "calibrate" => &[fitted::CALIBRATION, input::TABLE],
        "convert" => &[change::TABLE, text::TABLE, text::TOKENS, input::TABLE],
        "embed" => &[embed::TABLE, input::TABLE],
        "evaluate" => &[judge::TABLE, input::TABLE],
        _ => return kinds::row(path.strip_prefix("train ").or(path.strip_prefix("tune "))?, name),
    };
    tables.iter().find_map(|table| table.row(name))
}

/// A table of options, with an inner one for each first part of names with dots.
fn table(options: &[(&str, &Value)]) -> Value {
    let (inner, own): (Vec<_>, Vec<_>) = options.iter().copied().partition(|(name, _)| name.contains('.'));
    let mut properties: Map<String, Value> =
        own.into_iter().map(|(name, schema)| (name.to_owned(), schema.clone())).collect();
    let mut firsts: Vec<&str> = inner.iter().filter_map(|(name, _)| Some(name.split_once('.')?.0)).collect();
    firsts.sort_unstable();
    firsts.dedup();
    for first in firsts {
        let below =
            inner.iter().filter_map(|(name, schema)| Some((name.strip_prefix(first)?.strip_prefix('.')?, *schema)));
        let below = table(&below.collect::<Vec<_>>());
        let schema = match properties.remove(first) {
            Some(own) => json!({ "anyOf": [own, below] }),
            None => below,
        };
        properties.insert(first.to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn of_value(arg: &Arg, values: Option<Values>) -> Value {
    let names: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    match values {
        _ if !arg.get_action().takes_values() => json!({ "type": "boolean" }),
        Some(Values::Bool) => json!({ "type": "boolean" }),
        _ if names == ["true", "false"] => json!({ "type": "boolean" }),
        _ if !names.is_empty() => json!({ "enum": names }),
        Some(Values::Size) => json!({ "type": "integer", "minimum": 0 }),
        Some(Values::Sizes) => {
            json!({ "type": ["integer", "string", "array"], "items": { "type": "integer", "minimum": 0 } })
        }
        Some(Values::F32OrInf) => json!({ "type": ["number", "string"] }),
        Some(Values::F32 | Values::F64) => json!({ "type": "number" }),
        _ => json!({ "type": ["string", "number", "array"] }),
    }
}
