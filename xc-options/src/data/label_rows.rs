//! Texts or features of labels, as instances that are learned from.

use std::collections::HashSet;
use std::path::Path;
use xc_data::{FileForm, Join, JoinError, ReadOptions, RowId, Unmatched, read_ids};
use xc_dense::DenseMatrix;
use xc_model::OwnedRows;
use xc_sparse::LabelRows;
use xc_train::fit::data::Dataset;
use xc_train::fit::{Context, FitError};

/// Rows of a file, one a label in the order of the labels' ids: where rows have ids, these are names of labels, or their
/// numbers where none is a name, and say which row is whose; else their order does. Rows of other labels are left out.
///
/// # Errors
/// A label without a row, or with two.
pub fn in_order_of_labels(
    rows: Dataset,
    path: &Path,
    input: &FileForm,
    names: Option<&[String]>,
    n_labels: usize,
    context: &Context,
) -> Result<Dataset, FitError> {
    let ids = read_ids(path, &ReadOptions::from(input.clone()))?;
    if ids.ids.is_empty() {
        return Ok(rows);
    }
    let known: HashSet<&str> = names.unwrap_or_default().iter().map(String::as_str).collect();
    let are_names = ids.ids.iter().flatten().any(|id| known.contains(&*id.text()));
    let are_numbers = ids.ids.iter().flatten().all(|id| id.text().bytes().all(|b| b.is_ascii_digit()));
    let names = names.filter(|_| are_names || !are_numbers);
    let shown = path.display();
    let name_of = |label: usize| names.map_or_else(|| label.to_string(), |names| names[label].clone());
    let refused = |e: JoinError| match e {
        JoinError::Missing { id, row } => FitError::usage(format_args!(
            "{shown}: no row has the id {id:?}, which is that of label {row}; one for each of the {n_labels} labels is expected"
        )),
        e => FitError::input(path, &e),
    };
    let n_rows = rows.len();
    let mut join = Join::new(ids, n_rows, Unmatched::Refused);
    let mut order = Vec::with_capacity(n_labels);
    for label in 0..n_labels {
        let row = join.next(Some(&RowId::of_text(&name_of(label)))).map_err(refused)?;
        order.extend(row.map(|row| row as u32));
    }
    let joined = join.finish().map_err(refused)?;
    if !joined.by_ids || !joined.is_reordered && joined.left_out == 0 {
        return Ok(rows);
    }
    if joined.left_out > 0 {
        context.note(format_args!("{shown}: {} rows are of labels that no instance has, left out", joined.left_out));
    }
    Ok(rows.select(&order))
}

/// Appends rows of features, tokens or vectors, one a label in the order of their ids, as instances of which that label is
/// true. Gives the number of the first one.
///
/// # Errors
/// The rows, which `name` calls, are not one a label.
///
/// # Panics
/// If they are not what the instances are.
pub fn add_label_rows(data: &mut Dataset, texts: &OwnedRows, name: &Path) -> Result<usize, FitError> {
    let (got, n_labels) = (texts.len(), data.labels.n_labels());
    if got != n_labels {
        return Err(FitError::usage(format_args!(
            "{}: {got} rows; one for each of the {n_labels} labels is expected",
            name.display()
        )));
    }
    let (first, own) = (data.len(), 0..n_labels as u32);
    let lists = data.labels.iter().map(<[u32]>::to_vec).chain(own.map(|label| vec![label]));
    data.labels = LabelRows::from_lists(lists, n_labels).unwrap_or_else(|e| panic!("one label a row: {e}"));
    match (&mut data.features, texts) {
        (OwnedRows::Sparse(rows), OwnedRows::Sparse(texts)) => rows.append(texts.view()),
        (OwnedRows::Tokens(rows), OwnedRows::Tokens(texts)) => {
            rows.append(texts).unwrap_or_else(|e| panic!("texts of the same tokenizer: {e}"));
        }
        (OwnedRows::Dense(rows), OwnedRows::Dense(texts)) if rows.columns == texts.columns => {
            let values = [&*rows.values, &*texts.values].concat();
            *rows = DenseMatrix::new(rows.rows + texts.rows, rows.columns, values);
        }
        _ => panic!("other rows for labels than for instances"),
    }
    Ok(first)
}
