//! `xc inspect`: what a model folder holds.

use crate::context::{Context, format_bytes};
use crate::error::{CliError, chain};
use crate::model::open_parts;
use crate::output;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use xc_sparse::chunked::LevelSizes;
use xc_sparse::store::{Container, Mismatch, OpenMode};
use xc_tree::TreeModel;

/// Show what a model holds: kind, version, parameters, trees level by level,
/// repetitions or parts, arrays and their sizes
///
/// Reads the configuration and the headers only, whatever the size of the model.
/// With --verify every byte is read and compared with the hashes noted when the
/// model was saved, and the structure of the trees is checked; damage is exit
/// code 2.
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
    /// Compare the content of every file with the hashes in config.json
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let container = open_parts(&args.model, OpenMode::Map)?;
    let is_mach = container.kind() == xc_train::mach::KIND;
    if let Some((_, first)) = container.lost().next()
        && !is_mach
    {
        return Err(CliError::usage(chain(first)));
    }
    let repetitions = if is_mach { repetitions(&container)? } else { Vec::new() };
    let found = if args.verify {
        let task = context.task("model verified", 1);
        let found = container.verify().map_err(|e| CliError::usage(chain(&e)))?;
        task.advance(1);
        Some(found)
    } else {
        None
    };
    if found.as_ref().is_some_and(|found| found.is_empty()) && container.kind() == xc_tree::KIND {
        TreeModel::from_container(&container).map_err(|e| CliError::usage(chain(&e)))?;
    }
    let levels = match &found {
        // Damaged arrays may not make trees at all; the damage is what is to be said.
        Some(found) if !found.is_empty() => Vec::new(),
        _ => levels(&container)?,
    };
    let parts = parts(&container);
    let show = if context.json { as_json } else { as_text };
    let shown = Shown { container: &container, levels: &levels, repetitions: &repetitions, parts: &parts };
    output::print(&show(&shown, found.as_deref()))?;
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

/// What is shown.
struct Shown<'a> {
    container: &'a Container,
    levels: &'a [LevelNumbers],
    repetitions: &'a [RepetitionSizes],
    parts: &'a [PartSizes],
}

/// One part of a classifier.
struct PartSizes {
    part: &'static str,
    numbers: usize,
    bytes: usize,
}

/// Sizes of the parts of a classifier, as the configuration states them; none for other models.
fn parts(container: &Container) -> Vec<PartSizes> {
    if xc_train::classifier::preset::named(container.kind()).is_none() {
        return Vec::new();
    }
    let belongs = |name: &str| match name.split_once('.') {
        Some(("bag", _)) => Some("embeddings"),
        Some(("head", "indices" | "starts")) => Some("output layer: connections"),
        Some(("head", "weights")) => Some("output layer: weights"),
        Some(("head", _)) => Some("output layer: biases"),
        Some((layer, _)) if layer.starts_with("layer") => Some("dense layers"),
        _ => None,
    };
    let mut parts: Vec<PartSizes> = Vec::new();
    for (name, entry) in container.arrays() {
        let Some(part) = belongs(name) else { continue };
        let at = parts.iter().position(|p| p.part == part).unwrap_or_else(|| {
            parts.push(PartSizes { part, numbers: 0, bytes: 0 });
            parts.len() - 1
        });
        parts[at].numbers += entry.shape.iter().product::<usize>();
        parts[at].bytes += entry.n_bytes().unwrap_or(0);
    }
    parts
}

/// One repetition of a MACH model.
struct RepetitionSizes {
    number: u32,
    parameters: usize,
    bytes: usize,
    /// Whether its file opens.
    whole: bool,
}

/// Sizes of all repetitions, as the configuration states them.
fn repetitions(container: &Container) -> Result<Vec<RepetitionSizes>, CliError> {
    let numbers: Vec<u32> = container.parameter("repetitions").map_err(|e| CliError::usage(chain(&e)))?;
    let sizes = |number| {
        let prefix = xc_train::mach::array_prefix(number);
        let mut sizes = RepetitionSizes { number, parameters: 0, bytes: 0, whole: true };
        for (name, entry) in container.arrays().filter(|(name, _)| name.starts_with(&prefix)) {
            sizes.parameters += entry.shape.iter().product::<usize>();
            sizes.bytes += entry.n_bytes().unwrap_or(0);
            sizes.whole &= container.array::<f32>(name).is_ok();
        }
        sizes.whole &= sizes.bytes > 0;
        sizes
    };
    Ok(numbers.into_iter().map(sizes).collect())
}

/// One level of one tree, in numbers.
struct LevelNumbers {
    tree: usize,
    level: usize,
    sizes: LevelSizes,
}

/// Sizes of all levels; none for models that are no trees. Reads no weights.
fn levels(container: &Container) -> Result<Vec<LevelNumbers>, CliError> {
    if container.kind() != xc_tree::KIND {
        return Ok(Vec::new());
    }
    let unreadable = |e: &dyn std::error::Error| CliError::usage(chain(e));
    let depths: Vec<usize> = container.parameter("depths").map_err(|e| unreadable(&e))?;
    let mut numbers = Vec::new();
    for (tree, depth) in depths.into_iter().enumerate() {
        for level in 0..depth {
            let sizes = LevelSizes::read(container, &format!("tree{tree}.level{level}")).map_err(|e| unreadable(&e))?;
            numbers.push(LevelNumbers { tree, level, sizes });
        }
    }
    Ok(numbers)
}

fn per(a: usize, b: usize) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

fn as_json(shown: &Shown<'_>, found: Option<&[Mismatch]>) -> String {
    let Shown { container, levels, repetitions, parts } = *shown;
    let arrays: Vec<Value> = container
        .arrays()
        .map(|(name, entry)| {
            json!({
                "name": name,
                "dtype": entry.dtype.name(),
                "shape": entry.shape,
                "bytes": entry.n_bytes(),
                "file": entry.file,
                "xxh3": entry.xxh3,
            })
        })
        .collect();
    let mut report = json!({
        "model": container.folder().display().to_string(),
        "kind": container.kind(),
        "format_version": container.format_version(),
        "model_bytes": container.n_bytes(),
        "label_names": container.n_label_names(),
        "parameters": container.parameters(),
        "pipeline": container.pipeline(),
        "arrays": arrays,
    });
    if container.kind() == xc_tree::KIND {
        let level = |l: &LevelNumbers| {
            json!({
                "tree": l.tree,
                "level": l.level,
                "parents": l.sizes.n_parents,
                "nodes": l.sizes.n_columns,
                "weights": l.sizes.nnz,
                "weights_per_node": per(l.sizes.nnz, l.sizes.n_columns),
                "siblings_per_row": per(l.sizes.nnz, l.sizes.n_rows),
                "bytes": l.sizes.n_bytes,
            })
        };
        report["levels"] = levels.iter().map(level).collect();
    }
    if !repetitions.is_empty() {
        let one = |r: &RepetitionSizes| json!({ "repetition": r.number, "parameters": r.parameters, "bytes": r.bytes, "whole": r.whole });
        report["repetitions"] = repetitions.iter().map(one).collect();
    }
    if !parts.is_empty() {
        let one = |p: &PartSizes| json!({ "part": p.part, "numbers": p.numbers, "bytes": p.bytes });
        report["parts"] = parts.iter().map(one).collect();
    }
    if let Some(found) = found {
        report["damaged"] = found.iter().map(|m| Value::String(m.to_string())).collect();
    }
    report.to_string()
}

fn as_text(shown: &Shown<'_>, found: Option<&[Mismatch]>) -> String {
    let Shown { container, levels, repetitions, parts } = *shown;
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name:<10}  {value}");
    };
    line("model", &container.folder().display());
    line("kind", &format_args!("{} (format version {})", container.kind(), container.format_version()));
    line("size", &format_args!("{} in {} arrays", format_bytes(container.n_bytes()), container.arrays().len()));
    match container.n_label_names() {
        Some(n) => line("labels", &format_args!("{n} names in labels.txt")),
        None => line("labels", &"without names"),
    }
    line("features", &if container.pipeline().is_some() { "made by the stored pipeline" } else { "as they come" });
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
        push_columns(&mut text, &rows, [false, false]);
    }
    if !levels.is_empty() {
        text.push_str("\nlevels (siblings a row: how many children of one parent share a feature, on average)\n");
        let header = ["tree", "level", "nodes", "weights", "a node", "siblings a row", "bytes"];
        let mut rows = vec![header.map(str::to_owned)];
        rows.extend(levels.iter().map(|l| {
            [
                l.tree.to_string(),
                l.level.to_string(),
                l.sizes.n_columns.to_string(),
                l.sizes.nnz.to_string(),
                format!("{:.1}", per(l.sizes.nnz, l.sizes.n_columns)),
                format!("{:.2}", per(l.sizes.nnz, l.sizes.n_rows)),
                format_bytes(l.sizes.n_bytes as u64),
            ]
        }));
        push_columns(&mut text, &rows, [true; 7]);
    }
    if !repetitions.is_empty() {
        text.push_str("\nrepetitions\n");
        let mut rows = vec![["number", "parameters", "bytes", "file"].map(str::to_owned)];
        rows.extend(repetitions.iter().map(|r| {
            let whole = if r.whole { "whole" } else { "lost" };
            [r.number.to_string(), r.parameters.to_string(), format_bytes(r.bytes as u64), whole.to_owned()]
        }));
        push_columns(&mut text, &rows, [true, true, true, false]);
    }
    if !parts.is_empty() {
        text.push_str("\nparts\n");
        let mut rows = vec![["part", "numbers", "bytes"].map(str::to_owned)];
        rows.extend(parts.iter().map(|p| [p.part.to_owned(), p.numbers.to_string(), format_bytes(p.bytes as u64)]));
        push_columns(&mut text, &rows, [false, true, true]);
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
        push_columns(&mut text, &rows, [false, false, true, true]);
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

fn push_columns<const N: usize>(text: &mut String, rows: &[[String; N]], right: [bool; N]) {
    let width = |c: usize| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for c in 0..N {
            let (cell, width) = (&row[c], widths[c]);
            let _ = if right[c] { write!(line, "  {cell:>width$}") } else { write!(line, "  {cell:<width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use xc_sparse::store::{ContainerWriter, OpenMode};

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
        let sizes = LevelSizes { n_parents: 4, n_columns: 10, nnz: 25, n_rows: 20, n_bytes: 2048 };
        let level = LevelNumbers { tree: 0, level: 1, sizes };
        let shown = Shown { container: &container, levels: &[level], repetitions: &[], parts: &[] };
        let text = as_text(&shown, Some(&[]));
        for line in [
            "kind        other (format version 1)\n",
            "labels      2 names in labels.txt\n",
            "content     as it was saved\n",
            "  beam            10\n",
            "  tree.branching  32\n",
            "  tree.kinds      [\"a\",\"b\"]\n",
            "     0      1     10       25     2.5            1.25  2.0 KiB\n",
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
        let shown = Shown { container: &container, levels: &[], repetitions: &[], parts: &[] };
        let value: Value = serde_json::from_str(&as_json(&shown, Some(&[]))).unwrap();
        assert_eq!(value["damaged"], json!([]));
        assert_eq!(value["parameters"]["tree"]["branching"], 32);
        assert_eq!(value["arrays"][0]["shape"], json!([2]));
        let value: Value = serde_json::from_str(&as_json(&shown, None)).unwrap();
        assert_eq!(value.get("damaged"), None);
    }
}
