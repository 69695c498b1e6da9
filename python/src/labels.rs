//! True labels of instances, and lists of candidates: ids or names, as lists or as arrays.

use crate::error;
use crate::foreign::Foreign;
use crate::input::{Ends, Fault, Ints};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};
use std::collections::BTreeSet;
use xc_data::LabelNames;
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
    /// Whether a row has the label of the column that this stands in.
    Mark(bool),
}

impl Label {
    /// `at` is where it stands, for messages: the row of a list of lists.
    fn of(object: &Bound<'_, PyAny>, name: &str, row: Option<usize>) -> PyResult<Self> {
        let at = || row.map_or_else(|| name.to_owned(), |row| format!("{name}: row {row}"));
        if let Ok(text) = object.cast::<PyString>() {
            // Python has texts with half of a character, which are not UTF-8.
            return text.to_cow().map(|text| Self::Name(text.into_owned())).map_err(|_| {
                let what = "a name with half of a surrogate pair; text that is UTF-8 is expected";
                error::data(object.py(), &format!("{}: {what}", at()), row, None)
            });
        }
        if let Ok(mark) = object.cast::<PyBool>() {
            return Ok(Self::Mark(mark.is_true()));
        }
        let kind = kind_of(object);
        if matches!(&*kind, "bool" | "bool_") {
            return object.is_truthy().map(Self::Mark);
        }
        object
            .extract::<i64>()
            .map(Self::Id)
            .map_err(|_| PyTypeError::new_err(format!("{}: a label of type {kind}; an int or a str is expected", at())))
    }
}

/// Whether an object stands for no value: None, NaN, and what pandas has for it.
fn is_missing(object: &Bound<'_, PyAny>) -> bool {
    let is_nan = || object.cast::<PyFloat>().is_ok_and(|value| value.value().is_nan());
    object.is_none() || is_nan() || matches!(&*kind_of(object), "NAType" | "NaTType")
}

/// The name of an object's type.
fn kind_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| String::new(), |name| name.to_string())
}

/// Refuses a text where a list is expected: its letters would be taken for labels. A dict would be taken for its keys.
fn refuse_text(name: &str, object: &Bound<'_, PyAny>, expected: &str) -> PyResult<()> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!("{name}: a str; {expected} is expected")));
    }
    if object.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err(format!("{name}: a dict; {expected} is expected")));
    }
    Ok(())
}

/// The rows of a sequence, as they are written.
struct Written {
    rows: Vec<Vec<Label>>,
    /// Whether all rows are arrays: then those of 0 and 1 have a column a label.
    of_arrays: bool,
}

/// The lists of a sequence of sequences, or its labels, one a row.
fn lists(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Written> {
    refuse_text(name, object, "a list of lists of labels")?;
    let mut out = Written { rows: Vec::new(), of_arrays: true };
    let mut one_a_row = false;
    for (row, given) in object.try_iter()?.enumerate() {
        let given = given?;
        let at = format!("{name}: row {row}");
        let no_list = || PyTypeError::new_err(format!("{at}: a list of labels is expected"));
        if row == 0 {
            one_a_row = given.is_instance_of::<PyString>() || given.try_iter().is_err();
            if one_a_row
                && !given.is_instance_of::<PyString>()
                && (given.is_none() || matches!(Label::of(&given, name, Some(row)), Ok(Label::Mark(_)) | Err(_)))
            {
                return Err(no_list());
            }
        }
        if one_a_row {
            out.of_arrays = false;
            out.rows.push(one_label(name, row, &given)?);
            continue;
        }
        let is_plain = given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>();
        if given.is_instance_of::<PyDict>() {
            let expected = "a list of labels, or a DataFrame of 0 and 1 with a column a label,";
            return Err(PyTypeError::new_err(format!("{at}: a dict; {expected} is expected")));
        }
        refuse_text(&at, &given, "a list of labels")?;
        let given = match !is_plain && given.hasattr("dtype")? {
            true if given.hasattr("tolist")? => given.call_method0("tolist")?,
            true if given.hasattr("to_list")? => given.call_method0("to_list")?,
            is_array => {
                out.of_arrays &= is_array;
                given
            }
        };
        let labels = given.try_iter().map_err(|_| no_list())?;
        out.rows.push(labels.map(|label| Label::of(&label?, name, Some(row))).collect::<PyResult<Vec<_>>>()?);
    }
    Ok(out)
}

/// The label of a row that is no list, read as in the files of the program: a string that may be several labels is refused,
/// and an empty one is none.
fn one_label(name: &str, row: usize, given: &Bound<'_, PyAny>) -> PyResult<Vec<Label>> {
    let wrong = |what: &str| error::data(given.py(), &format!("{name}: row {row}: {what}"), Some(row), None);
    if is_missing(given) {
        return Err(wrong("a missing value; a label is expected, or '' for none"));
    }
    if !given.is_instance_of::<PyString>() && given.try_iter().is_ok() {
        return Err(wrong("a list, where other rows are one label; one of both is expected"));
    }
    match Label::of(given, name, Some(row))? {
        Label::Mark(_) => Err(wrong("a bool, where other rows are one label; one of both is expected")),
        Label::Name(text) => match text.trim_ascii() {
            "" => Ok(Vec::new()),
            text if text.contains([';', '|', ',', '\n', '\t']) || (text.starts_with('[') && text.ends_with(']')) => {
                Err(wrong(&format!("{text:?} may be one label or several; a list of labels is expected")))
            }
            text => Ok(vec![Label::Name(text.to_owned())]),
        },
        id => Ok(vec![id]),
    }
}

impl Written {
    /// The columns of rows that have a place for each label: bools, or arrays of 0 and 1. `None` for lists of labels.
    ///
    /// # Errors
    /// Bools that are no matrix; rows in which an id stands twice, as it does where rows of 0 and 1 are taken for lists.
    fn columns(&self) -> Result<Option<usize>, Fault> {
        let width = self.rows.first().map_or(0, Vec::len);
        let mark = |label: &Label| matches!(label, Label::Mark(_));
        if let Some(row) = self.rows.iter().position(|labels| labels.iter().any(mark)) {
            if let Some(row) = self.rows.iter().position(|labels| !labels.iter().all(mark)) {
                let what = "other labels than the bools of other rows; rows of bools, or lists of labels, are expected";
                return Err(Fault::new(row, None, what));
            }
            return match self.rows.iter().position(|labels| labels.len() != width) {
                None => Ok(Some(width)),
                Some(other) => {
                    let at = other.max(row);
                    let what = format!("{} bools, where row 0 has {width}; as many are expected", self.rows[at].len());
                    Err(Fault::new(at, None, what))
                }
            };
        }
        let is_matrix = width > 1
            && self
                .rows
                .iter()
                .all(|labels| labels.len() == width && labels.iter().all(|label| matches!(label, Label::Id(0 | 1))));
        if is_matrix && self.of_arrays {
            return Ok(Some(width));
        }
        let mut ids = Vec::new();
        for (row, labels) in self.rows.iter().enumerate() {
            ids.clear();
            ids.extend(labels.iter().filter_map(|label| match label {
                Label::Id(id) => Some(*id),
                _ => None,
            }));
            ids.sort_unstable();
            if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
                let expected = match is_matrix {
                    true => "for rows of 0 and 1 a matrix is expected, as numpy.asarray makes of them",
                    false => "each label once is expected",
                };
                return Err(Fault::new(row, None, format!("label {} stands twice; {expected}", pair[0])));
            }
        }
        Ok(None)
    }

    /// The label rows of a matrix of so many columns.
    fn matrix(&self, columns: usize) -> Result<LabelRows, Fault> {
        let ids = self.rows.iter().map(|labels| {
            let is_there = |label: &Label| matches!(label, Label::Mark(true) | Label::Id(1));
            (0u32..).zip(labels).filter(|(_, label)| is_there(label)).map(|(id, _)| id).collect()
        });
        LabelRows::from_lists(ids.collect::<Vec<Vec<u32>>>(), columns).map_err(|e| fault_of(&e))
    }
}

#[pymethods]
impl Labels {
    /// The columns of a sparse matrix whose values are above 0.
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

    /// Lists of ids or of names, one label a row, or rows of 0 and 1 that are arrays or bools. Names without a dictionary are numbered in ascending order. `append`: labels that the
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
        if let Some(columns) = found.columns().map_err(|fault| fault.raised(py, name))? {
            if let Some(n) = n_labels.filter(|&n| columns > n && !append) {
                let line =
                    format!("{name}: {columns} columns; the model has {n} labels, and a column for each is expected");
                return Err(error::data(py, &line, None, None));
            }
            let rows = found.matrix(columns.max(n_labels.unwrap_or(0))).map_err(|fault| fault.raised(py, name))?;
            return Ok(Self { rows, names: None });
        }
        let dictionary = names.clone().map(LabelNames::try_new).transpose();
        let dictionary = dictionary.map_err(|e| error::data(py, &format!("label names: {e}"), None, None))?;
        let made = numbered(&found.rows, dictionary.as_ref(), n_labels, append);
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
        Label::Mark(_) => Err(Fault::new(row, None, "a bool; an id or a name is expected")),
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
                    if !(value >= 0.0 && value.is_finite()) {
                        let what =
                            format!("value {value} in column {id}; a number above 0, or 0 for none, is expected");
                        return Err(Fault::new(row, Some(id as usize), what));
                    }
                    if value > 0.0 {
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
        let list = object.try_iter()?.map(|label| Label::of(&label?, name, None)).collect::<PyResult<Vec<_>>>()?;
        if list.iter().any(|label| matches!(label, Label::Mark(_))) {
            let what = "a list of bools; ids or names are expected, as numpy.flatnonzero makes of a mask";
            return Err(PyTypeError::new_err(format!("{name}: {what}")));
        }
        let is_mask = list.len() == n_labels && list.len() > 2;
        if is_mask && list.iter().all(|label| matches!(label, Label::Id(0 | 1))) {
            let what = "0 or 1 for each label; ids or names are expected, as numpy.flatnonzero makes of a mask";
            return Err(error::data(py, &format!("{name}: {what}"), None, None));
        }
        let (rows, _) = numbered(&[list], names, Some(n_labels), false)
            .map_err(|fault| error::data(py, &format!("{name}: {}", fault.what), None, fault.column))?;
        Ok(Self::Shared(rows.row(0).to_vec()))
    }
}
