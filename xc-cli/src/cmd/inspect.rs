//! `xc inspect`: what a model folder holds.

use crate::bytes::format_bytes;
use crate::cmd::convert;
use crate::context::Context;
use crate::error::{CliError, chain, escaped};
use crate::output;
use serde_json::Value;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use xc_model::Model;
use xc_model::{
    Cell, IndexWarning, InfoTable, OpenModelError, inspected, members, open_container, read_pipeline, tables,
};
use xc_store::{Container, Mismatch, OpenMode, PART_FOLDER};

/// Show what a model holds: kind, version, parameters, trees level by level,
/// repetitions or parts, arrays and their sizes
///
/// Reads only the configuration and the headers, whatever the size of the model.
/// With --verify, every byte is read and compared with the hashes stored when the
/// model was saved, including those of members and of an index in the model, and
/// the model is opened as for prediction. Damage, or a model that `xc predict`
/// would refuse, gives exit code 2.
///
/// Examples:
///   xc inspect my.model
///   xc inspect my.model --verify
///   xc inspect my.model --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The model folder
    #[arg(value_name = "DIR")]
    model: PathBuf,
}

/// How often a model that is replaced meanwhile is looked at again.
const TRIES: usize = 1000;

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let mut tries = 0..TRIES;
    let (container, Seen { found, tables }) = loop {
        let container = open_container(&args.model, OpenMode::Map)?;
        match look(args, &container, context) {
            // What stands in a folder is gone with it.
            Err(_) if container.replacement()() && tries.next().is_some() => context.check_interrupt()?,
            seen => break (container, seen?),
        }
    };
    let show = if context.json { as_json } else { as_text };
    output::print(&show(&container, &tables, found.as_deref()))?;
    if let Some((_, first)) = container.lost().next() {
        let others = container.lost().len() - 1;
        let more = if others == 0 { String::new() } else { format!(" (and {others} more)") };
        return Err(CliError::usage(format_args!("{}{more}", chain(first))));
    }
    match found.as_deref() {
        Some([first, others @ ..]) => {
            let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
            Err(CliError::usage(format_args!("{first}: damaged since it was saved{more}")))
        }
        _ => Ok(()),
    }
}

/// What was found in a model.
struct Seen {
    /// With `--verify`.
    found: Option<Vec<Mismatch>>,
    tables: Vec<InfoTable>,
}

fn look(args: &Args, container: &Container, context: &Context) -> Result<Seen, CliError> {
    let found = if context.verify {
        let task = context.task("model verified", 1);
        let found = context.on_threads(|| verify(container))?;
        task.advance(1);
        Some(found)
    } else {
        None
    };
    if found.as_ref().is_some_and(Vec::is_empty) && container.lost().len() == 0 {
        context.on_threads(|| check(&args.model, container))?;
    }
    let tables = match &found {
        // Damaged arrays may not make a model at all; the damage is what is to be said.
        Some(found) if !found.is_empty() => Vec::new(),
        _ => tables(container)?,
    };
    Ok(Seen { found, tables })
}

/// What differs from what was saved, in the container and all that stand in it.
fn verify(container: &Container) -> Result<Vec<Mismatch>, OpenModelError> {
    let mut found = container.verify()?;
    if let Some(index) = container.inside(PART_FOLDER, OpenMode::Map)? {
        found.extend(index.verify()?);
    }
    for member in members(container)? {
        found.extend(verify(&member)?);
    }
    Ok(found)
}

/// Refuses what would be refused, or left out with a warning, where the model or index is used.
fn check(folder: &Path, container: &Container) -> Result<(), CliError> {
    let usage = |e: &dyn Error| CliError::usage(chain(e));
    match container.kind() {
        // That of labels has no rows of its own.
        xc_ann::KIND if container.entry("rows").is_none() => {
            xc_ann::Graph::read(container).map(drop).map_err(|e| usage(&e))
        }
        xc_ann::KIND => xc_ann::Index::read(container).map(drop).map_err(|e| usage(&e)),
        xc_ann::INVERTED_KIND => xc_ann::InvertedIndex::read(container).map(drop).map_err(|e| usage(&e)),
        convert::PIPELINE_KIND => convert::check_pipeline(folder),
        _ => match Model::open(folder) {
            Ok(model) => {
                model.dictionary()?;
                // An index of older weights is no damage.
                let is_damage = |warning: &&(dyn Error + Send + Sync + 'static)| {
                    !matches!(warning.downcast_ref(), Some(IndexWarning::Old { .. }))
                };
                model.warnings().find(is_damage).map_or(Ok(()), |warning| Err(usage(warning)))
            }
            // Its structure is not known here, but for a pipeline, which is taken from a container of any kind.
            Err(OpenModelError::Kind { .. }) => read_pipeline(container).map(drop).map_err(|e| usage(&e)),
            Err(error) => Err(error.into()),
        },
    }
}

fn as_json(container: &Container, tables: &[InfoTable], found: Option<&[Mismatch]>) -> String {
    let mut report = inspected(container, tables);
    if let Some(found) = found {
        report["damaged"] = found.iter().map(|m| Value::String(m.to_string())).collect();
    }
    report.to_string()
}

fn as_words(cell: &Cell) -> String {
    match *cell {
        Cell::Count(n) => n.to_string(),
        Cell::Bytes(n) => format_bytes(n),
        Cell::Mean(mean) => format!("{mean:.2}"),
        Cell::Text(text) => text.to_owned(),
    }
}

fn as_text(container: &Container, tables: &[InfoTable], found: Option<&[Mismatch]>) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name:<10}  {}", escaped(&value.to_string()));
    };
    line("model", &container.folder().display());
    line("kind", &format_args!("{} (format version {})", container.kind(), container.format_version()));
    line("size", &format_args!("{} in {} arrays", format_bytes(container.n_bytes()), container.arrays().len()));
    match container.n_label_names() {
        Some(n) => line("labels", &format_args!("{n} names in labels.txt")),
        None => line("labels", &"without names"),
    }
    let features = match container.pipeline() {
        Some(_) => "made by the stored pipeline",
        None if tables.iter().any(|table| table.name == "members") => "made by each member",
        None => "as they come",
    };
    line("features", &features);
    match found {
        None => {}
        Some([]) => line("content", &"as it was saved"),
        Some(found) => found.iter().for_each(|m| line("damaged", m)),
    }
    if !container.parameters().is_empty() {
        text.push_str("\nparameters\n");
        let mut flat = Vec::new();
        for (name, value) in container.parameters() {
            flatten(name, value, &mut flat);
        }
        let rows: Vec<[String; 2]> = flat.into_iter().map(|(name, value)| [name, value]).collect();
        push_columns(&mut text, &rows, |_| false);
    }
    for table in tables {
        let note = if table.note.is_empty() { String::new() } else { format!(" ({})", table.note) };
        text += &format!("\n{}{note}\n", table.name);
        let mut rows = vec![table.columns.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>()];
        rows.extend(table.rows.iter().map(|row| row.iter().map(as_words).collect()));
        let right = |c: usize| table.rows.first().is_none_or(|row| !matches!(row[c], Cell::Text(_)));
        push_columns(&mut text, &rows, right);
    }
    if container.arrays().len() > 0 {
        text.push_str("\narrays\n");
        let rows: Vec<[String; 4]> = container
            .arrays()
            .map(|(name, entry)| {
                let shape: Vec<String> = entry.shape.iter().map(usize::to_string).collect();
                let bytes = entry.n_bytes().map_or_else(String::new, |n| format_bytes(n as u64));
                [name.to_owned(), entry.dtype.name().to_owned(), shape.join(" x "), bytes]
            })
            .collect();
        push_columns(&mut text, &rows, |column| column >= 2);
    }
    text
}

/// Nested objects as dotted names; everything else as compact JSON.
fn flatten(name: &str, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(field, inner)| flatten(&format!("{name}.{field}"), inner, out));
        }
        Value::String(text) => out.push((name.to_owned(), text.clone())),
        other => out.push((name.to_owned(), other.to_string())),
    }
}

fn push_columns<R: AsRef<[String]>>(text: &mut String, rows: &[R], right: impl Fn(usize) -> bool) {
    let n_columns = rows.first().map_or(0, |row| row.as_ref().len());
    // What is longer stands out of its column.
    const WIDEST: usize = 60;
    let width = |c: usize| rows.iter().map(|row| row.as_ref()[c].chars().count()).max().unwrap_or(0).min(WIDEST);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (c, (cell, &width)) in row.as_ref().iter().zip(&widths).enumerate() {
            let cell = escaped(cell);
            let _ = if right(c) { write!(line, "  {cell:>width$}") } else { write!(line, "  {cell:<width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;
    use xc_store::{ContainerWriter, OpenMode};

    fn model(folder: &Path) -> Container {
        let mut writer = ContainerWriter::create(folder, "other").unwrap();
        writer.set_parameter("beam", 10);
        writer.set_parameter("tree", json!({"branching": 32, "kinds": ["a", "b"]}));
        writer.add_slice("level0.values", &[0.5f32, -1.0, 2.0]).unwrap();
        writer.add_slice("level0.row_ptr", &[0u64, 3]).unwrap();
        writer.labels(&["one".to_owned(), "two".to_owned()]).unwrap();
        writer.finish().unwrap();
        Container::open(folder, OpenMode::Map).unwrap()
    }

    #[test]
    fn the_text_shows_parameters_by_dotted_name_levels_and_every_array() {
        let folder = tempfile::tempdir().unwrap();
        let container = model(&folder.path().join("m"));
        let row = vec![Cell::Count(1), Cell::Count(10), Cell::Mean(1.25), Cell::Bytes(2048), Cell::Text("whole")];
        let columns = vec!["level", "nodes", "siblings_per_row", "bytes", "file"];
        let table = InfoTable { name: "levels", note: "", columns, rows: vec![row] };
        let text = as_text(&container, &[table], Some(&[]));
        for line in [
            "kind        other (format version 1)\n",
            "labels      2 names in labels.txt\n",
            "content     as it was saved\n",
            "  beam            10\n",
            "  tree.branching  32\n",
            "  tree.kinds      [\"a\",\"b\"]\n",
            "      1     10              1.25  2.0 KiB  whole\n",
            "  level0.row_ptr  U64  2  16 B\n",
            "  level0.values   F32  3  12 B\n",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
    }

    #[test]
    fn json_says_whether_anything_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let container = model(&folder.path().join("m"));
        let value: Value = serde_json::from_str(&as_json(&container, &[], Some(&[]))).unwrap();
        assert_eq!(value["damaged"], json!([]));
        assert_eq!(value["parameters"]["tree"]["branching"], 32);
        assert_eq!(value["arrays"][0]["shape"], json!([2]));
        let value: Value = serde_json::from_str(&as_json(&container, &[], None)).unwrap();
        assert_eq!(value.get("damaged"), None);
    }
}
