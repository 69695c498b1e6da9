"""Instances and labels of any form, as the extension module takes them."""

import logging

import numpy as np

from . import _arrow
from ._errors import DataError
from ._native import Input, Labels

log = logging.getLogger("xc")

ANNOUNCED = 64 << 20
"""Bytes of a copy that is announced."""


def is_sparse(x):
    """Whether ``x`` is a sparse matrix of compressed rows (scipy is not needed to tell)."""
    return all(hasattr(x, name) for name in ("indptr", "indices", "data", "shape"))


def rows(x, name="X", text_fields=None):
    """The rows of ``x``: a sparse matrix, a matrix of floats, texts, or a data frame or table with ``text_fields``."""
    if isinstance(x, Input):
        return x
    if isinstance(x, (str, bytes)):
        raise TypeError(f"{name}: a str; a list of texts is expected")
    if hasattr(x, "columns") and hasattr(x, "iloc"):
        fields = fields_of(list(x.columns), all(dtype.kind in "biuf" for dtype in x.dtypes), name, text_fields)
        return Input.texts(name, joined([(field, list(x[field])) for field in fields], name))
    if _arrow.is_table(x):
        fields = fields_of(x.column_names, False, name, text_fields)
        if len(fields) == 1:
            return rows(x.column(fields[0]), f"{name}[{fields[0]!r}]")
        return Input.texts(name, joined([(field, x.column(field).to_pylist()) for field in fields], name))
    if text_fields is not None:
        raise TypeError(f"text_fields: a DataFrame is expected with it; {name} is a {type(x).__name__}")
    if is_sparse(x):
        return sparse_rows(x, name)
    if hasattr(x, "tocsr"):
        announce(name, "a sparse matrix of another form", "a CSR matrix", x.nnz * 8)
        return sparse_rows(x.tocsr(), name)
    if _arrow.is_column(x):
        pieces = _arrow.utf8(x)
        if pieces is not None:
            return Input.utf8(name, pieces)
        if getattr(x, "num_chunks", 1) > 1:
            announce(name, f"a column in {x.num_chunks} pieces", "one", x.nbytes)
        vectors = _arrow.vectors(x)
        return Input.texts(name, texts(x.to_pylist(), name)) if vectors is None else dense_rows(vectors, name)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return dense_rows(x, name)
    if hasattr(x, "__array__") and not isinstance(x, np.ndarray):
        x = np.asarray(x)
        if x.dtype.kind in "biuf":
            return dense_rows(x, name)
    if isinstance(x, np.ndarray) and x.ndim != 1:
        raise TypeError(f"{name}: an array of {x.dtype} with {x.ndim} dimensions; numbers, or a list of texts, are expected")
    if hasattr(x, "__iter__"):
        values = list(x)
        if values and not isinstance(values[0], str) and hasattr(values[0], "__len__"):
            try:
                array = np.asarray(values)
            except ValueError:
                array = np.empty(0, object)
            # Before 1.24 numpy makes objects of rows that differ.
            if array.dtype.kind == "O" and len({len(row) for row in values if hasattr(row, "__len__")}) > 1:
                raise DataError(f"{name}: rows of different lengths; texts, or rows of one length, are expected")
            if array.dtype.kind in "biuf":
                return dense_rows(array, name)
        return Input.texts(name, texts(values, name))
    expected = "a sparse matrix, a 2-D array of floats, a list of str or a DataFrame"
    raise TypeError(f"{name}: {type(x).__name__}; {expected} is expected")


def texts(values, name):
    """A list of ``str``; missing values are refused with their row."""
    for row, value in enumerate(values):
        if not isinstance(value, str):
            shown = "a missing value" if value is None or value != value else f"a value of type {type(value).__name__}"
            raise DataError(f"{name}: row {row}: {shown}; a str is expected", row)
    return values


def fields_of(columns, of_numbers, name, text_fields):
    """Names of the columns of a data frame or table that make the texts."""
    if text_fields is None:
        if len(columns) == 1:
            return columns
        if of_numbers:
            raise TypeError(f"{name}: a DataFrame of numbers; {name}.to_numpy() is expected")
        raise TypeError(f"text_fields: expected with several columns: some of {', '.join(map(str, columns))}")
    fields = [text_fields] if isinstance(text_fields, str) else list(text_fields)
    for field in fields:
        if field not in columns:
            raise DataError(f"{name}: no column {field!r}; the columns are {', '.join(map(str, columns))}")
    return fields


def joined(columns, name):
    """The texts of some columns, joined by spaces."""
    parts = [texts(values, f"{name}[{field!r}]") for field, values in columns]
    return [" ".join(row) for row in zip(*parts)] if len(parts) > 1 else parts[0]


def announce(name, what, into, n_bytes):
    """Says that ``n_bytes`` are copied, where that is much."""
    if n_bytes > ANNOUNCED:
        log.info("%s: %s is copied into %s (%.0f MiB)", name, what, into, n_bytes / (1 << 20))


def contiguous(array, dtype, name):
    """A contiguous array of a type in this machine's byte order; the same one where it is that already."""
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array
    announce(name, f"an array of {array.dtype}", f"one of {np.dtype(dtype)}", array.size * np.dtype(dtype).itemsize)
    with np.errstate(over="ignore"):
        return np.require(array, dtype, ["C", "A"])


def whole_numbers(array, name):
    """Row pointers or column numbers as int32 or int64."""
    array = np.asarray(array)
    if array.dtype.kind not in "iu":
        raise DataError(f"{name}: an array of {array.dtype}; integers are expected")
    return contiguous(array, np.int32 if array.dtype.itemsize <= 4 and array.dtype.kind == "i" else np.int64, name)


def compressed(x, name):
    """The arrays of a matrix in compressed rows, which go together: ``(indptr, indices, data, columns)``."""
    if getattr(x, "format", "csr") != "csr":
        announce(name, f"a {x.format.upper()} matrix", "a CSR matrix", len(x.data) * 8)
        x = x.tocsr()
    data = np.asarray(x.data)
    if data.dtype.kind not in "biuf":
        raise DataError(f"{name}: values of type {data.dtype}; numbers are expected")
    if len(x.shape) != 2:
        raise DataError(f"{name}: {len(x.shape)} dimensions; 2 are expected")
    indptr = whole_numbers(x.indptr, f"{name}.indptr")
    indices = whole_numbers(x.indices, f"{name}.indices")
    for part, array in (("indptr", indptr), ("indices", indices), ("data", data)):
        if array.ndim != 1:
            raise DataError(f"{name}.{part}: {array.ndim} dimensions; 1 is expected")
    rows, columns = map(int, x.shape)
    if len(indptr) != rows + 1 or indptr[0] != 0:
        first = f", the first {indptr[0]}" if len(indptr) else ""
        expected = f"{rows + 1} for {rows} rows, and a first value of 0, are expected"
        raise DataError(f"{name}.indptr: {len(indptr)} values{first}; {expected}")
    if len(indices) != len(data):
        raise DataError(f"{name}: {len(indices)} indices and {len(data)} values; as many are expected")
    if not 0 <= columns < 1 << 32:
        raise DataError(f"{name}: {columns} columns; 0 or more, and fewer than 2^32, are expected")
    return indptr, indices, data, columns


def sparse_rows(x, name):
    """Rows of a sparse matrix in compressed rows."""
    indptr, indices, data, columns = compressed(x, name)
    return Input.sparse(name, indptr, indices, contiguous(data, np.float32, f"{name}.data"), columns)


def dense_rows(x, name):
    """Rows of a matrix of numbers."""
    if x.ndim != 2:
        raise DataError(f"{name}: an array of {x.ndim} dimensions; 2 are expected")
    return Input.dense(name, contiguous(x, np.float32, name))


def labels(y, name="Y", names=None, n_labels=None, append=False):
    """Label rows of ``y``: a sparse matrix, a matrix of 0 and 1, or lists of ids or names."""
    if isinstance(y, Labels):
        return y
    if hasattr(y, "tocsr") and not (is_sparse(y) and getattr(y, "format", "csr") == "csr"):
        y = y.tocsr()
    if is_sparse(y):
        indptr, indices, data, columns = compressed(y, name)
        values = data
        if data.dtype != np.float32:
            values = (data != 0).astype(np.float32)
            if data.dtype.kind == "f":
                values[np.isnan(data)] = np.nan
        check_columns(columns, n_labels, append, name)
        values = contiguous(values, np.float32, f"{name}.data")
        return Labels.sparse(name, indptr, indices, values, max(columns, n_labels or 0))
    if isinstance(y, np.ndarray) and y.dtype.kind in "biuf":
        if y.ndim != 2:
            raise DataError(f"{name}: an array of {y.ndim} dimensions; a matrix of 0 and 1, or lists of labels, are expected")
        check_columns(y.shape[1], n_labels, append, name)
        wrong = (y != 0) & (y != 1)
        if wrong.any():
            row, column = map(int, np.argwhere(wrong)[0])
            raise DataError(f"{name}: row {row}: {y[row, column]} in column {column}; 0 or 1 is expected", row, column)
        at = np.nonzero(y)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(at[0], minlength=y.shape[0]))]).astype(np.int64)
        return Labels.sparse(name, indptr, at[1].astype(np.int64), None, max(y.shape[1], n_labels or 0))
    if hasattr(y, "columns") and hasattr(y, "iloc"):
        return labels(y.to_numpy(), name, names, n_labels, append)
    if _arrow.is_column(y):
        y = y.to_pylist()
    made = Labels.lists(name, y, names, n_labels, append)
    if append and names is None and made.names is not None:
        raise DataError(f"{name}: labels are names, those of the model or the training are ids; ids are expected")
    return made


def check_columns(got, n_labels, append, name):
    """Refuses a matrix of more labels than there are."""
    if n_labels is not None and got > n_labels and not append:
        raise DataError(f"{name}: {got} columns; the model has {n_labels} labels, and a column for each is expected")


def lists(labels_of, name, n, names):
    """Candidates or excluded labels: a flat list as it is, lists of lists as label rows."""
    if labels_of is None or isinstance(labels_of, Labels):
        return labels_of
    if is_sparse(labels_of) or (isinstance(labels_of, np.ndarray) and labels_of.ndim == 2):
        return labels(labels_of, name, names, n)
    if isinstance(labels_of, (str, bytes)):
        raise TypeError(f"{name}: a str; a list of labels is expected")
    values = labels_of if isinstance(labels_of, (list, tuple)) else list(labels_of)
    if len(values) and not isinstance(values[0], str) and hasattr(values[0], "__iter__"):
        return labels(values, name, names, n)
    return values


def number_list(numbers, name):
    """Numbers of rows; an empty list has any type."""
    numbers = np.asarray(numbers)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size > 0):
        shape = f"an array of {numbers.dtype} with {numbers.ndim} dimensions"
        raise DataError(f"{name}: {shape}; a list of row numbers is expected")
    return np.ascontiguousarray(numbers, dtype=np.int64)
