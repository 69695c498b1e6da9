//! Instances: sparse rows, vectors or texts that Python owns, copied and checked in blocks.

use crate::error::{self, defect, guarded};
use crate::foreign::Foreign;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::ops::Range;
use std::sync::Arc;
use xc_dense::DenseMatrix;
use xc_model::InputKind;
use xc_sparse::CsrMatrix;
use xc_sparse::rows::{OwnedRows, Rows, sort_row};
use xc_train::fit::SharedTexts;

/// Whole numbers of either width.
pub(crate) enum Ints {
    Narrow(Foreign<i32>),
    Wide(Foreign<i64>),
}

impl Ints {
    /// # Errors
    /// Another type than int32 or int64, or memory that is not contiguous.
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        match array.cast::<PyArray1<i32>>() {
            Ok(array) => Foreign::of(array).map(Self::Narrow),
            Err(_) => Foreign::of(array.cast::<PyArray1<i64>>()?).map(Self::Wide),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(ints) => ints.len(),
            Self::Wide(ints) => ints.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> i64 {
        match self {
            Self::Narrow(ints) => i64::from(ints.get(at)),
            Self::Wide(ints) => ints.get(at),
        }
    }

    /// Appends some of them as ids: nothing where one is below 0 or needs more than 32 bits.
    pub(crate) fn ids(&self, range: Range<usize>, out: &mut Vec<u32>) -> Option<()> {
        let from = out.len();
        match self {
            Self::Narrow(ints) => {
                ints.copy_unsigned_to(range, out);
                out[from..].iter().all(|&id| id <= i32::MAX.cast_unsigned())
            }
            Self::Wide(ints) => {
                out.extend(range.map(|at| u32::try_from(ints.get(at)).unwrap_or(u32::MAX)));
                out[from..].iter().all(|&id| id < u32::MAX)
            }
        }
        .then_some(())
    }
}

/// Values of single or double precision.
enum Floats {
    Single(Foreign<f32>),
    Double(Foreign<f64>),
}

impl Floats {
    /// # Errors
    /// Another type than float32 or float64, or memory that is not contiguous.
    fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        match array.cast::<PyArray1<f32>>() {
            Ok(array) => Foreign::of(array).map(Self::Single),
            Err(_) => Foreign::of(array.cast::<PyArray1<f64>>()?).map(Self::Double),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
        }
    }

    /// Appends a copy of some values in single precision, in which large ones are infinite.
    fn copy_to(&self, range: Range<usize>, out: &mut Vec<f32>) {
        match self {
            Self::Single(values) => values.copy_to(range, out),
            Self::Double(values) => out.extend(range.map(|at| values.get(at) as f32)),
        }
    }
}

/// Vectors, row after row.
enum Vectors {
    Here(Foreign<f32>),
    /// A function of Python that makes such an array of the rows from one number to another: no array of all is made of
    /// vectors of another type or layout.
    Converted(Py<PyAny>),
}

/// Values of vectors that are converted together.
const CONVERTED: usize = 1 << 18;

impl Vectors {
    /// Appends a copy of some rows.
    fn copy_to(&self, range: Range<usize>, columns: usize, out: &mut Vec<f32>) -> Result<(), Fault> {
        let convert = match self {
            Self::Here(values) => {
                values.copy_to(range.start * columns..range.end * columns, out);
                return Ok(());
            }
            Self::Converted(convert) => convert,
        };
        Python::attach(|py| {
            let step = (CONVERTED / columns.max(1)).max(1);
            for first in range.clone().step_by(step) {
                let last = range.end.min(first + step);
                let wrong = |e: PyErr| Fault::new(first, None, e.value(py).to_string());
                let made = convert.bind(py).call1((first, last)).map_err(wrong)?;
                let n = (last - first) * columns;
                let array = made.cast::<PyArray2<f32>>().map_err(|e| wrong(e.into()))?;
                let values = array.reshape([n]).and_then(|flat| Foreign::of(&flat)).map_err(wrong)?;
                values.copy_to(0..n, out);
            }
            Ok(())
        })
    }
}

/// Where each row begins and ends; read anew each time, since another thread may write.
pub(crate) struct Ends(Ints);

impl Ends {
    pub(crate) fn new(indptr: Ints) -> PyResult<Self> {
        if indptr.len() == 0 || indptr.get(0) != 0 {
            return Err(PyValueError::new_err("indptr: expected a first value of 0"));
        }
        Ok(Self(indptr))
    }

    pub(crate) fn rows(&self) -> usize {
        self.0.len() - 1
    }

    /// The entries of a row among `n_entries`.
    pub(crate) fn row(&self, row: usize, n_entries: usize) -> Result<Range<usize>, Fault> {
        let (start, end) = (self.0.get(row), self.0.get(row + 1));
        match (usize::try_from(start), usize::try_from(end)) {
            (Ok(start), Ok(end)) if start <= end && end <= n_entries => Ok(start..end),
            _ => Err(Fault::new(row, None, format!("indptr says entries {start} to {end} of {n_entries}"))),
        }
    }
}

/// What is wrong with a row.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) row: usize,
    pub(crate) column: Option<usize>,
    pub(crate) what: String,
}

impl Fault {
    pub(crate) fn new(row: usize, column: Option<usize>, what: impl Into<String>) -> Self {
        Self { row, column, what: what.into() }
    }

    /// The exception; `name` is what is at fault: `X`.
    pub(crate) fn raised(&self, py: Python<'_>, name: &str) -> PyErr {
        let Self { row, column, what } = self;
        error::data(py, &format!("{name}: row {row}: {what}"), Some(*row), *column)
    }
}

enum Kind {
    Sparse { ends: Ends, ids: Ints, values: Floats, columns: usize },
    Dense { values: Vectors, rows: usize, columns: usize },
    Texts(Arc<List>),
    Utf8(Vec<Utf8>),
}

/// A list of texts, which Python never changes: they are read where they lie.
#[derive(Debug)]
pub(crate) struct List(Vec<PyBackedStr>);

impl SharedTexts for List {
    fn texts(&self) -> Vec<&str> {
        self.0.iter().map(|text| &**text).collect()
    }
}

/// Texts in UTF-8, one behind the other where Python has them: text `i` has the bytes `ends[i]..ends[i + 1]`.
struct Utf8 {
    ends: Ends,
    bytes: Foreign<u8>,
    /// Texts of the pieces before it.
    before: usize,
}

impl Utf8 {
    /// Copies a text; `row` counts from the first piece.
    fn text(&self, row: usize) -> Result<String, Fault> {
        let wrong = |what| Fault::new(row, None, what);
        let bytes =
            self.ends.row(row - self.before, self.bytes.len()).map_err(|_| wrong("offsets outside of its bytes"))?;
        let mut copied = Vec::new();
        self.bytes.copy_to(bytes, &mut copied);
        String::from_utf8(copied).map_err(|_| wrong("bytes that are not UTF-8"))
    }
}

/// Instances as Python owns them. Nothing is copied when one is made.
#[pyclass(frozen, module = "xc._native")]
pub(crate) struct Input {
    kind: Kind,
    /// What messages call it.
    name: String,
}

/// Some of the rows, copied and checked; texts where they are.
pub(crate) enum Block<'a> {
    Rows(OwnedRows),
    Texts(Vec<&'a str>),
}

impl Block<'_> {
    pub(crate) fn view(&self) -> Rows<'_> {
        match self {
            Self::Rows(rows) => rows.view(),
            Self::Texts(texts) => Rows::texts(texts),
        }
    }

    /// The texts; `None` where the rows are others.
    pub(crate) fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Self::Texts(texts) => Some(texts.clone()),
            Self::Rows(OwnedRows::Texts(texts)) => Some(texts.iter().map(String::as_str).collect()),
            Self::Rows(_) => None,
        }
    }
}

#[pymethods]
impl Input {
    /// Sparse rows: `indptr` and `indices` of int32 or int64, `data` of float32 or float64, all contiguous.
    #[staticmethod]
    fn sparse(
        name: String,
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        columns: usize,
    ) -> PyResult<Self> {
        let (ends, ids, values) = (Ends::new(Ints::of(indptr)?)?, Ints::of(indices)?, Floats::of(data)?);
        if ids.len() != values.len() {
            let (ids, values) = (ids.len(), values.len());
            return Err(PyValueError::new_err(format!(
                "{name}: {ids} indices and {values} values; as many are expected"
            )));
        }
        if columns > u32::MAX as usize {
            return Err(PyValueError::new_err(format!("{name}: {columns} columns; fewer than 2^32 are expected")));
        }
        Ok(Self { kind: Kind::Sparse { ends, ids, values, columns }, name })
    }

    /// Vectors: a C-contiguous float32 matrix.
    #[staticmethod]
    fn dense(name: String, values: &Bound<'_, PyArray2<f32>>) -> PyResult<Self> {
        if !values.is_c_contiguous() {
            return Err(PyValueError::new_err("a C-contiguous array is expected"));
        }
        let (rows, columns) = (values.shape()[0], values.shape()[1]);
        let flat = values.reshape([rows * columns])?;
        Ok(Self { kind: Kind::Dense { values: Vectors::Here(Foreign::of(&flat)?), rows, columns }, name })
    }

    /// Vectors of another type or layout: `convert(first, last)` makes a C-contiguous float32 matrix of some rows.
    #[staticmethod]
    fn converted(name: String, rows: usize, columns: usize, convert: Py<PyAny>) -> Self {
        Self { kind: Kind::Dense { values: Vectors::Converted(convert), rows, columns }, name }
    }

    /// Texts: a list of `str`.
    #[staticmethod]
    fn texts(name: String, texts: Vec<PyBackedStr>) -> Self {
        Self { kind: Kind::Texts(Arc::new(List(texts))), name }
    }

    /// Texts in UTF-8: of each piece offsets of int32 or int64, one more than texts, and bytes of uint8, all contiguous.
    #[staticmethod]
    fn utf8(name: String, pieces: Vec<(Bound<'_, PyAny>, Bound<'_, PyArray1<u8>>)>) -> PyResult<Self> {
        let (mut column, mut before) = (Vec::with_capacity(pieces.len()), 0);
        for (offsets, bytes) in &pieces {
            let offsets = Ints::of(offsets)?;
            if offsets.len() == 0 {
                return Err(PyValueError::new_err(format!("{name}: no offsets; one more than texts is expected")));
            }
            let piece = Utf8 { ends: Ends(offsets), bytes: Foreign::of(bytes)?, before };
            before += piece.ends.rows();
            column.push(piece);
        }
        Ok(Self { kind: Kind::Utf8(column), name })
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    /// Whether the rows are sparse ones.
    #[getter]
    fn is_sparse(&self) -> bool {
        matches!(self.kind, Kind::Sparse { .. })
    }

    /// Features or values of a row; 0 for texts.
    #[getter]
    fn columns(&self) -> usize {
        match self.kind {
            Kind::Sparse { columns, .. } | Kind::Dense { columns, .. } => columns,
            Kind::Texts(_) | Kind::Utf8(_) => 0,
        }
    }
}

impl Input {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn rows(&self) -> usize {
        match &self.kind {
            Kind::Sparse { ends, .. } => ends.rows(),
            Kind::Dense { rows, .. } => *rows,
            Kind::Texts(texts) => texts.0.len(),
            Kind::Utf8(column) => column.last().map_or(0, |piece| piece.before + piece.ends.rows()),
        }
    }

    /// Numbers of a row, on average; bytes of a text.
    pub(crate) fn width_hint(&self) -> usize {
        match &self.kind {
            Kind::Sparse { values, .. } => values.len() / self.rows().max(1),
            Kind::Dense { columns, .. } => *columns,
            Kind::Texts(texts) => texts.0.iter().map(|text| text.len()).sum::<usize>() / texts.0.len().max(1),
            Kind::Utf8(column) => column.iter().map(|piece| piece.bytes.len()).sum::<usize>() / self.rows().max(1),
        }
    }

    /// Some rows, copied and checked: ids in order, each once and below the width, no value that is 0, all finite.
    pub(crate) fn block(&self, range: Range<usize>) -> Result<Block<'_>, Fault> {
        self.block_unless(range, &mut || false)
    }

    /// The same; a fault of no meaning where `stop` said so, which is asked now and then.
    fn block_unless(&self, range: Range<usize>, stop: &mut dyn FnMut() -> bool) -> Result<Block<'_>, Fault> {
        Ok(match &self.kind {
            Kind::Sparse { ends, ids, values, columns } => {
                Block::Rows(OwnedRows::Sparse(sparse_block(ends, ids, values, *columns, range, stop)?))
            }
            Kind::Dense { values, columns, .. } => {
                let mut copied = Vec::with_capacity(range.len() * columns);
                for first in range.clone().step_by(ASK) {
                    go_on(first, stop)?;
                    let from = copied.len();
                    values.copy_to(first..range.end.min(first + ASK), *columns, &mut copied)?;
                    if let Some(at) = copied[from..].iter().position(|value| !value.is_finite()) {
                        let (row, column) = (first + at / columns, at % columns);
                        let what =
                            format!("value {} in column {column}; finite numbers are expected", copied[from + at]);
                        return Err(Fault::new(row, Some(column), what));
                    }
                }
                Block::Rows(OwnedRows::Dense(DenseMatrix::new(range.len(), *columns, copied)))
            }
            Kind::Texts(texts) => Block::Texts(texts.0[range].iter().map(|text| &**text).collect()),
            Kind::Utf8(column) => {
                let mut piece = column.partition_point(|piece| piece.before <= range.start).saturating_sub(1);
                let copied = range.map(|row| {
                    go_on(row, stop)?;
                    while row >= column[piece].before + column[piece].ends.rows() {
                        piece += 1;
                    }
                    column[piece].text(row)
                });
                Block::Rows(OwnedRows::Texts(copied.collect::<Result<_, _>>()?))
            }
        })
    }

    /// The same in the form that a model takes, as in requests: vectors are rows of features where it takes such, and rows
    /// of features vectors. What does not fit is left as it is, and refused by the model.
    pub(crate) fn block_for(&self, range: Range<usize>, takes: InputKind, width: usize) -> Result<Block<'_>, Fault> {
        let first = range.start;
        Ok(match self.block(range)? {
            Block::Rows(OwnedRows::Dense(rows)) if takes == InputKind::Sparse => {
                if rows.columns != width && rows.rows > 0 {
                    return Err(Fault::new(first, None, vector_of(rows.columns, width)));
                }
                Block::Rows(OwnedRows::Sparse(CsrMatrix::from_matrix(rows)))
            }
            Block::Rows(OwnedRows::Sparse(rows)) if takes == InputKind::Dense && rows.cols() == width => {
                let mut values = vec![0.0; rows.rows() * width];
                for (row, out) in values.chunks_exact_mut(width.max(1)).enumerate() {
                    rows.view().row(row).iter().for_each(|(id, value)| out[id as usize] = value);
                }
                Block::Rows(OwnedRows::Dense(DenseMatrix::new(rows.rows(), width, values)))
            }
            block => block,
        })
    }

    /// The texts, where they are a list of Python.
    pub(crate) fn list(&self) -> Option<Arc<List>> {
        match &self.kind {
            Kind::Texts(texts) => Some(Arc::clone(texts)),
            _ => None,
        }
    }

    /// All rows, for training.
    fn to_owned_rows(&self, stop: &mut dyn FnMut() -> bool) -> Result<OwnedRows, Fault> {
        Ok(match self.block_unless(0..self.rows(), stop)? {
            Block::Rows(rows) => rows,
            Block::Texts(texts) => {
                let owned = |(row, text): (usize, &str)| go_on(row, stop).map(|()| text.to_owned());
                OwnedRows::Texts(texts.into_iter().enumerate().map(owned).collect::<Result<_, _>>()?)
            }
        })
    }

    /// The same, or the exception. Other threads of Python have their turn between some rows and others, and Ctrl-C is heard.
    pub(crate) fn taken(&self, py: Python<'_>) -> PyResult<OwnedRows> {
        let mut raised = None;
        let rows = guarded(|| {
            self.to_owned_rows(&mut || {
                // Whoever waits for the lock of the interpreter gets it now.
                py.detach(|| ());
                raised = py.check_signals().err();
                raised.is_some()
            })
        });
        match (raised, rows.map_err(|panic| defect(py, &panic))?) {
            (Some(error), _) => Err(error),
            (None, rows) => rows.map_err(|fault| fault.raised(py, &self.name)),
        }
    }
}

/// Rows that are copied between two questions whether to stop.
const ASK: usize = 1024;

/// Asks now and then whether to stop.
fn go_on(row: usize, stop: &mut dyn FnMut() -> bool) -> Result<(), Fault> {
    if row.is_multiple_of(ASK) && stop() { Err(Fault::new(row, None, "stopped")) } else { Ok(()) }
}

fn sparse_block(
    ends: &Ends,
    ids: &Ints,
    values: &Floats,
    columns: usize,
    range: Range<usize>,
    stop: &mut dyn FnMut() -> bool,
) -> Result<CsrMatrix, Fault> {
    let mut indptr = Vec::with_capacity(range.len() + 1);
    indptr.push(0);
    let (mut indices, mut data, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    if !range.is_empty()
        && let (Ok(first), Ok(last)) = (ends.row(range.start, values.len()), ends.row(range.end - 1, values.len()))
    {
        let n = last.end.saturating_sub(first.start);
        indices.reserve_exact(n);
        data.reserve_exact(n);
    }
    for row in range.clone() {
        go_on(row, stop)?;
        let entries = ends.row(row, values.len())?;
        let from = indices.len();
        let out_of_range = |id: i64, column| {
            Fault::new(row, column, format!("column {id}; columns from 0 to {} are expected", columns as i64 - 1))
        };
        if ids.ids(entries.clone(), &mut indices).is_none() {
            let wrong = entries.clone().map(|at| ids.get(at)).find(|&id| u32::try_from(id).is_err());
            return Err(out_of_range(wrong.unwrap_or(-1), None));
        }
        values.copy_to(entries, &mut data);
        let (own, of_them) = (&mut indices[from..], &mut data[from..]);
        if let Err(repeated) = sort_row(own, of_them, &mut scratch) {
            let column = repeated.id as usize;
            let what = format!("column {column} stands twice; X.sum_duplicates() adds such entries up");
            return Err(Fault::new(row, Some(column), what));
        }
        if let Some(&last) = own.last()
            && last as usize >= columns
        {
            return Err(out_of_range(i64::from(last), Some(last as usize)));
        }
        if let Some(at) = of_them.iter().position(|value| !value.is_finite()) {
            let (value, column) = (of_them[at], own[at]);
            let what = format!("value {value} in column {column}; finite numbers are expected");
            return Err(Fault::new(row, Some(column as usize), what));
        }
        drop_zeros(from, &mut indices, &mut data);
        indptr.push(indices.len());
    }
    Ok(CsrMatrix::from_checked((range.len(), columns), indptr, indices, data))
}

/// What is said of a vector of another width.
pub(crate) fn vector_of(got: usize, expected: usize) -> String {
    format!("the query has {got} values; the model takes {expected}")
}

/// Takes entries of value 0 out of the last row, as every reader of files does.
fn drop_zeros(from: usize, indices: &mut Vec<u32>, data: &mut Vec<f32>) {
    if data[from..].iter().all(|&value| value != 0.0) {
        return;
    }
    let mut kept = from;
    for at in from..data.len() {
        if data[at] != 0.0 {
            (indices[kept], data[kept]) = (indices[at], data[at]);
            kept += 1;
        }
    }
    indices.truncate(kept);
    data.truncate(kept);
}
