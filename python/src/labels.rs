//! True labels of instances, and lists of candidates: ids or names, as lists or as arrays.

use crate::error;
use crate::foreign::Foreign;
use crate::input::{Ends, Fault, Ints};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::BTreeSet;
use xc_sparse::io::LabelNames;
use xc_sparse::rows::sort_unique;
use xc_sparse::{LabelRows, LabelRowsError};

/// Label rows of a model or a training set.
#[pyclass(frozen, module = "xc._native")]
pub(crate) struct Labels {
    pub(crate) rows: LabelRows,
    /// Names that were found, in ascending order, or that were given.
    pub(crate) names: Option<Vec<String>>,
}

/// A label of a list.
enum Label {
    Id(i64),
    Name(String),
}

impl Label {
    /// `of` is the list that it stands in, for messages.
    fn of(object: &Bound<'_, PyAny>, of: impl Fn() -> String) -> PyResult<Self> {
        if let Ok(name) = object.cast::<PyString>() {
            return Ok(Self::Name(name.to_cow()?.into_owned()));
        }
        object.extract::<i64>().map(Self::Id).map_err(|_| {
            let kind = object.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
            PyTypeError::new_err(format!("{}: a label of type {kind}; an int or a str is expected", of()))
        })
    }
}

/// Refuses a text where a list is expected: its letters would be taken for labels.
fn refuse_text(name: &str, object: &Bound<'_, PyAny>, expected: &str) -> PyResult<()> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!("{name}: a str; {expected} is expected")));
    }
    Ok(())
}

/// The lists of a sequence of sequences.
fn lists(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<Label>>> {
    refuse_text(name, object, "a list of lists of labels")?;
    let mut out = Vec::new();
    for (row, list) in object.try_iter()?.enumerate() {
        let list = list?;
        refuse_text(&format!("{name}: row {row}"), &list, "a list of labels")?;
        let labels = list
            .try_iter()
            .map_err(|_| PyTypeError::new_err(format!("{name}: row {row}: a list of labels is expected")))?;
        out.push(
            labels.map(|label| Label::of(&label?, || format!("{name}: row {row}"))).collect::<PyResult<Vec<_>>>()?,
        );
    }
    Ok(out)
}

#[pymethods]
impl Labels {
    /// The columns of a sparse matrix whose values are not 0.
    #[staticmethod]
    fn sparse(
        py: Python<'_>,
        name: &str,
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        data: Option<&Bound<'_, PyArray1<f32>>>,
        columns: usize,
    ) -> PyResult<Self> {
        let (ends, ids) = (Ends::new(Ints::of(indptr)?)?, Ints::of(indices)?);
        let values = data.map(Foreign::of).transpose()?;
        let rows = py.detach(|| sparse_rows(&ends, &ids, values.as_ref(), columns));
        Ok(Self { rows: rows.map_err(|fault| fault.raised(py, name))?, names: None })
    }

    /// Lists of ids or of names. Names without a dictionary are numbered in ascending order. `append`: labels that the
    /// dictionary or the number of labels does not have get numbers behind the others, as true labels that no model
    /// answers; else they are refused.
    #[staticmethod]
    fn lists(
        py: Python<'_>,
        name: &str,
        object: &Bound<'_, PyAny>,
        names: Option<Vec<String>>,
        n_labels: Option<usize>,
        append: bool,
    ) -> PyResult<Self> {
        let found = lists(name, object)?;
        let dictionary = names.clone().map(LabelNames::try_new).transpose();
        let dictionary = dictionary.map_err(|e| error::data(py, &format!("label names: {e}"), None, None))?;
        let made = numbered(&found, dictionary.as_ref(), n_labels, append);
        let (rows, found) = made.map_err(|fault| fault.raised(py, name))?;
        Ok(Self { rows, names: names.or(found) })
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    #[getter]
    fn n_labels(&self) -> usize {
        self.rows.n_labels()
    }

    /// Names of the labels, if they have some.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.names.clone()
    }
}

/// Label rows of lists, and the names that were found in them.
fn numbered(
    lists: &[Vec<Label>],
    names: Option<&LabelNames>,
    n_labels: Option<usize>,
    append: bool,
) -> Result<(LabelRows, Option<Vec<String>>), Fault> {
    let all = || lists.iter().flatten();
    let has_names = all().any(|label| matches!(label, Label::Name(_)));
    if has_names && all().any(|label| matches!(label, Label::Id(_))) {
        let is_id = |list: &Vec<Label>| list.iter().any(|label| matches!(label, Label::Id(_)));
        let row = lists.iter().position(is_id).unwrap_or(0);
        return Err(Fault::new(row, None, "an id, where other rows have names; one of both is expected"));
    }
    let unknown = |name: &str| names.is_none_or(|names| names.id(name).is_none());
    let new: BTreeSet<&str> = all()
        .filter_map(|label| match label {
            Label::Name(name) if unknown(name) => Some(&**name),
            _ => None,
        })
        .collect();
    let known = names.map_or(0, LabelNames::len);
    let may_add = append || (names.is_none() && n_labels.is_none());
    let new: Vec<&str> = new.into_iter().collect();
    let id_of = |row: usize, label: &Label| match label {
        Label::Id(id) => match u32::try_from(*id) {
            Ok(id) if id < u32::MAX && (may_add || n_labels.is_none_or(|n| (id as usize) < n)) => Ok(id),
            _ => {
                let n = n_labels.map_or("2^32 - 1".to_owned(), |n| n.to_string());
                Err(Fault::new(row, None, format!("label {id}; ids from 0 on and below {n} are expected")))
            }
        },
        Label::Name(name) => match names.and_then(|names| names.id(name)) {
            Some(id) => Ok(id),
            None if may_add => Ok((known + new.binary_search(&&**name).unwrap_or(0)) as u32),
            None => Err(Fault::new(row, None, format!("label {name:?}: no label has that name"))),
        },
    };
    let mut ids = Vec::with_capacity(lists.len());
    for (row, list) in lists.iter().enumerate() {
        let mut of_row = list.iter().map(|label| id_of(row, label)).collect::<Result<Vec<_>, _>>()?;
        sort_unique(&mut of_row, 0);
        ids.push(of_row);
    }
    let largest = ids.iter().flatten().map(|&id| id as usize + 1).max().unwrap_or(0);
    let n = largest.max(known).max(n_labels.unwrap_or(0));
    let found = (has_names && names.is_none()).then(|| new.iter().map(|&name| name.to_owned()).collect());
    let rows = LabelRows::from_lists(ids, n).map_err(|e| fault_of(&e))?;
    Ok((rows, found))
}

fn fault_of(error: &LabelRowsError) -> Fault {
    Fault::new(0, None, error.to_string())
}

fn sparse_rows(ends: &Ends, ids: &Ints, values: Option<&Foreign<f32>>, columns: usize) -> Result<LabelRows, Fault> {
    let (mut indptr, mut labels) = (vec![0], Vec::new());
    for row in 0..ends.rows() {
        let n = values.map_or(ids.len(), |values| values.len().min(ids.len()));
        let from = labels.len();
        for at in ends.row(row, n)? {
            let id = ids.get(at);
            match u32::try_from(id) {
                Ok(id) if (id as usize) < columns => {
                    let value = values.map_or(1.0, |values| values.get(at));
                    if value.is_nan() {
                        let what = format!("value NaN in column {id}; a number is expected");
                        return Err(Fault::new(row, Some(id as usize), what));
                    }
                    if value != 0.0 {
                        labels.push(id);
                    }
                }
                _ => {
                    let what = format!("column {id}; columns from 0 to {} are expected", columns as i64 - 1);
                    return Err(Fault::new(row, usize::try_from(id).ok(), what));
                }
            }
        }
        sort_unique(&mut labels, from);
        indptr.push(labels.len());
    }
    LabelRows::try_new(indptr, labels, columns).map_err(|e| fault_of(&e))
}

/// Labels to choose from or to leave out.
pub(crate) enum Lists {
    /// The same for all queries.
    Shared(Vec<u32>),
    /// A list a query.
    Own(LabelRows),
}

impl Lists {
    /// Of a flat list of ids or names, or of a [`Labels`].
    ///
    /// # Errors
    /// A label that the model does not have.
    pub(crate) fn of(
        py: Python<'_>,
        name: &str,
        object: &Bound<'_, PyAny>,
        names: Option<&LabelNames>,
        n_labels: usize,
    ) -> PyResult<Self> {
        if let Ok(labels) = object.cast::<Labels>() {
            return Ok(Self::Own(labels.get().rows.clone()));
        }
        refuse_text(name, object, "a list of labels")?;
        let list =
            object.try_iter()?.map(|label| Label::of(&label?, || name.to_owned())).collect::<PyResult<Vec<_>>>()?;
        let (rows, _) = numbered(&[list], names, Some(n_labels), false)
            .map_err(|fault| error::data(py, &format!("{name}: {}", fault.what), None, fault.column))?;
        Ok(Self::Shared(rows.row(0).to_vec()))
    }
}
