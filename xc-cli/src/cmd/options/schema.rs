//! A JSON schema of the files that `--config` takes.

use super::{Leaf, listed};
use clap::Arg;
use serde_json::{Map, Value, json};
use xc_options::settings::{Values, kinds};

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
    let kind = path.strip_prefix("train ").or(path.strip_prefix("tune "));
    let mut top = Map::new();
    let common = command.get_arguments().filter(|arg| arg.is_global_set() && !arg.is_hide_set());
    for arg in listed(command).chain(common) {
        let Some(name) = arg.get_long().filter(|name| *name != "config") else { continue };
        let values = kind.and_then(|kind| kinds::row(kind, name)).map(|row| row.values);
        let mut schema = of_value(arg, values);
        schema["description"] = arg.get_help().map(ToString::to_string).unwrap_or_default().into();
        if name.contains('.') {
            put(&mut top, &name.split('.').collect::<Vec<_>>(), schema.clone());
        }
        match top.get_mut(name) {
            // There is a table of the same name already.
            Some(table) => *table = json!({ "anyOf": [schema, table.take()] }),
            None => {
                top.insert(name.to_owned(), schema);
            }
        }
    }
    json!({ "type": "object", "properties": top, "additionalProperties": false })
}

/// Puts a schema at a place among nested tables.
fn put(table: &mut Map<String, Value>, path: &[&str], schema: Value) {
    let [first, rest @ ..] = path else { return };
    if rest.is_empty() {
        table.insert((*first).to_owned(), schema);
        return;
    }
    let empty = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let inner = table.entry(*first).or_insert_with(empty);
    if inner.get("properties").is_none() && inner.get("anyOf").is_none() {
        *inner = json!({ "anyOf": [inner.take(), empty()] });
    }
    let inner = match inner.get_mut("anyOf").and_then(|any| any.get_mut(1)) {
        Some(of) => of,
        None => &mut table[*first],
    };
    if let Some(of) = inner["properties"].as_object_mut() {
        put(of, rest, schema);
    }
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
        Some(Values::F32 | Values::F64) => json!({ "type": "number" }),
        _ => json!({ "type": ["string", "number", "array"] }),
    }
}
