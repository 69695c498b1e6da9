//! What a container holds, as a report.

use super::{Cell, InfoTable};
use serde_json::{Value, json};
use xc_store::Container;

/// Kind, parameters, arrays and tables of a container. *Cost*: its headers.
pub fn inspected(container: &Container, tables: &[InfoTable]) -> Value {
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
    for table in tables {
        let columns = || table.columns.iter().map(|&column| column.to_owned());
        let row = |cells: &Vec<Cell>| Value::Object(columns().zip(cells.iter().map(as_value)).collect());
        report[table.name] = table.rows.iter().map(row).collect();
    }
    report
}

fn as_value(cell: &Cell) -> Value {
    match *cell {
        Cell::Count(n) | Cell::Bytes(n) => n.into(),
        Cell::Mean(mean) => mean.into(),
        Cell::Text(text) => text.into(),
    }
}
