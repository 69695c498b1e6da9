"""Instances and labels of any form, as the extension module takes them."""

import logging

import numpy as np

from . import _arrow
from ._errors import DataError, OptionError
from ._given import is_missing, refuse_unordered
from ._native import Input, Labels
from ._ranked import Ranked

log = logging.getLogger("xc")

ANNOUNCED = 64 << 20
"""Bytes of a copy that is announced."""


def is_sparse(x):
    """Whether ``x`` is a sparse matrix of compressed rows (scipy is not needed to tell)."""
    return all(hasattr(x, name) for name in ("indptr", "indices", "data", "shape"))


def is_frame(x):
    """Whether ``x`` is a data frame of pandas or of polars, or a table of pyarrow."""
    return (hasattr(x, "columns") and (hasattr(x, "iloc") or is_polars(x))) or _arrow.is_table(x)


def is_polars(x):
    """Whether ``x`` is of polars."""
    return type(x).__module__.partition(".")[0] == "polars"


def columns_of(x):
    """The columns of a data frame or table, pairs of a name and a column."""
    if hasattr(x, "iloc"):
        return [(name, x.iloc[:, at]) for at, name in enumerate(x.columns)]
    if is_polars(x):
        return [(name, x.get_column(name)) for name in x.columns]
    return [(name, x.column(at)) for at, name in enumerate(x.column_names)]


def holds_numbers(column):
    """Whether a column is one of numbers or of bools."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    if kind is not None:
        return kind in "biuf"
    dtype = getattr(column, "dtype", getattr(column, "type", None))
    if hasattr(dtype, "is_numeric"):
        return dtype.is_numeric() or str(dtype) == "Boolean"
    return str(dtype).startswith(("int", "uint", "float", "double", "halffloat", "bool"))


def values_of(column):
    """The values of a column as a list."""
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list() if is_polars(column) else list(column)


def rows(x, name="X", text_fields=None):
    """The rows of ``x``: a sparse matrix, a matrix of floats, texts, or a data frame or table with ``text_fields``."""
    if isinstance(x, Input):
        return x
    refuse_unordered(x, name, "a list of texts")
    if type(x).__name__ == "LazyFrame":
        raise TypeError(f"{name}: a LazyFrame; {name}.collect() is expected")
    if is_frame(x):
        return frame_rows(x, name, text_fields)
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
        return text_rows(x.to_pylist(), name) if vectors is None else dense_rows(vectors, name)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return dense_rows(x, name)
    if is_polars(x) and str(x.dtype).startswith("List"):
        x = x.to_list()
    if hasattr(x, "__array__") and not isinstance(x, np.ndarray):
        x = np.asarray(x)
        if x.dtype.kind in "biuf":
            return dense_rows(x, name)
    if isinstance(x, np.ndarray) and x.ndim != 1:
        raise TypeError(f"{name}: an array of {x.dtype} with {x.ndim} dimensions; numbers, or a list of texts, are expected")
    if hasattr(x, "__next__"):
        raise TypeError(f"{name}: a {type(x).__name__}, which can be read once; a list of texts is expected")
    if hasattr(x, "__iter__"):
        values = list(unmasked(x, name))
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
        return text_rows(values, name)
    expected = "a sparse matrix, a 2-D array of floats, a list of str or a DataFrame"
    raise TypeError(f"{name}: {type(x).__name__}; {expected} is expected")


def frame_rows(x, name, text_fields):
    """The rows of a data frame or table: its texts, or its only column."""
    columns = columns_of(x)
    fields = fields_of(columns, name, text_fields)
    if len(fields) == 1:
        [(field, column)] = fields
        if _arrow.is_column(column):
            return rows(column, f"{name}[{field!r}]")
        return text_rows(values_of(column), name, f"{name}[{field!r}]")
    return text_rows(joined([(field, values_of(column)) for field, column in fields], name), name)


def text_rows(values, name, column=None):
    """Texts, which are whole and UTF-8; ``column`` is what messages call them where that is not ``name``."""
    values = texts(values, column or name)
    try:
        return Input.texts(name, values)
    except UnicodeEncodeError:
        # Python has texts with half of a character; which one is not said.
        for row, value in enumerate(values):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                what = f"half of a surrogate pair at character {error.start}; text that is UTF-8 is expected"
                raise DataError(f"{column or name}: row {row}: {what}", row) from None
        raise


def texts(values, name):
    """A list of ``str``; missing values are refused with their row."""
    for row, value in enumerate(values):
        if not isinstance(value, str):
            shown = "a missing value" if is_missing(value) else f"a value of type {type(value).__name__}"
            raise DataError(f"{name}: row {row}: {shown}; a str is expected", row)
    return values


def fields_of(columns, name, text_fields):
    """The columns of a data frame or table that make the texts, pairs of a name and a column."""
    known = ", ".join(str(column) for column, _ in columns)
    if not columns:
        raise DataError(f"{name}: no columns; one at least is expected")
    if text_fields is None:
        if all(holds_numbers(column) for _, column in columns):
            array = f"{name}.to_pandas().to_numpy()" if _arrow.is_column(columns[0][1]) else f"{name}.to_numpy()"
            raise TypeError(f"{name}: a DataFrame of numbers; {array} is expected")
        if len(columns) == 1:
            return columns
        raise TypeError(f"text_fields: expected with several columns: some of {known}")
    found = []
    for field in [text_fields] if isinstance(text_fields, str) else list(text_fields):
        of_name = [(column, values) for column, values in columns if column == field]
        if not of_name:
            raise DataError(f"{name}: no column {field!r}; the columns are {known}")
        if len(of_name) > 1:
            raise DataError(f"{name}: {len(of_name)} columns are named {field!r}; one is expected")
        found += of_name
    if not found:
        raise TypeError(f"text_fields: no column; some of {known} are expected")
    return found


def joined(columns, name):
    """The texts of some columns, joined by spaces."""
    parts = [texts(values, f"{name}[{field!r}]") for field, values in columns]
    return [" ".join(row) for row in zip(*parts)]


def unmasked(x, name):
    """An array that lacks no value: what lies below a mask is none."""
    if not isinstance(x, np.ma.MaskedArray):
        return x
    mask = np.ma.getmaskarray(x)
    if mask.any():
        row, *column = map(int, np.argwhere(mask)[0])
        where = f" in column {column[0]}" if column else ""
        what = f"row {row}: a masked value{where}; a value is expected"
        raise DataError(f"{name}: {what}", row, column[0] if column else None)
    return x.data


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
    # Double precision is read as it lies.
    precision = np.float64 if data.dtype == np.float64 else np.float32
    return Input.sparse(name, indptr, indices, contiguous(data, precision, f"{name}.data"), columns)


def dense_rows(x, name):
    """Rows of a matrix of numbers."""
    x = unmasked(x, name)
    if x.ndim != 2:
        raise DataError(f"{name}: an array of {x.ndim} dimensions; 2 are expected")
    if x.shape[1] == 0:
        raise DataError(f"{name}: no columns; one at least is expected")
    if x.dtype == np.float32 and x.flags.c_contiguous and x.flags.aligned:
        return Input.dense(name, x)
    # Some rows at a time, so that no second array of all rows is made beside the copy that is learned from.
    return Input.converted(name, *x.shape, lambda first, last: contiguous(x[first:last], np.float32, name))


def labels(y, name="Y", names=None, n_labels=None, append=False):
    """Label rows of ``y``: a sparse matrix, a matrix or frame of 0 and 1, lists of ids or names, or one label a row."""
    if isinstance(y, Labels):
        return y
    refuse_unordered(y, name, "a list of lists of labels")
    if type(y).__name__ == "LazyFrame":
        raise TypeError(f"{name}: a LazyFrame; {name}.collect() is expected")
    if hasattr(y, "tocsr") and not (is_sparse(y) and getattr(y, "format", "csr") == "csr"):
        y = y.tocsr()
    if is_sparse(y):
        indptr, indices, data, columns = compressed(y, name)
        values = data
        if data.dtype != np.float32:
            # Numbers above 0 are all the same, and some are 0, or none, in single precision.
            with np.errstate(over="ignore"):
                values = np.where((data > 0) & np.isfinite(data), 1, data).astype(np.float32)
        check_columns(columns, n_labels, append, name)
        values = contiguous(values, np.float32, f"{name}.data")
        return Labels.sparse(name, indptr, indices, values, max(columns, n_labels or 0))
    if is_frame(y):
        columns = columns_of(y)
        if len(columns) == 1 and not holds_numbers(columns[0][1]):
            return labels(columns[0][1], f"{name}[{columns[0][0]!r}]", names, n_labels, append)
        return marks(frame_of_marks(columns, name), name, n_labels, append)
    if isinstance(y, np.ndarray):
        y = unmasked(y, name)
        if y.ndim == 2 and y.dtype.kind == "O" and not any(isinstance(value, str) for value in y.flat):
            y = array_of_marks(y, name)
        if y.dtype.kind in "biuf" and (y.ndim != 1 or y.dtype.kind in "bf"):
            return marks(y, name, n_labels, append)
    if _arrow.is_column(y):
        vectors = _arrow.vectors(y)
        y = y.to_pylist() if vectors is None else list(vectors)
    made = Labels.lists(name, y, names, n_labels, append)
    if append and names is None and made.names is not None:
        raise DataError(f"{name}: labels are names, those of the model or the training are ids; ids are expected")
    return made


def marks(y, name, n_labels, append):
    """Label rows of a matrix of 0 and 1."""
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


def array_of_marks(y, name):
    """An array of objects as one of numbers; what is none is refused with its place."""
    try:
        if not any(map(is_missing, y.flat)):
            return y.astype(np.float64)
    except (TypeError, ValueError):
        pass
    for (row, column), value in np.ndenumerate(y):
        if is_missing(value) or not isinstance(value, (bool, int, float, np.number, np.bool_)):
            what = "a missing value" if is_missing(value) else f"a value of type {type(value).__name__}"
            raise DataError(f"{name}: row {row}: {what} in column {column}; 0 or 1 is expected", row, column)
    raise DataError(f"{name}: an array of objects; a matrix of 0 and 1, or lists of labels, are expected")


def frame_of_marks(columns, name):
    """The columns of a data frame or table, which are numbers or bools and whole, as a matrix."""
    found = []
    for at, (field, column) in enumerate(columns):
        if not holds_numbers(column):
            # Columns of objects hold numbers, too.
            values = np.empty(len(column), object)
            values[:] = values_of(column)
            found.append(array_of_column(values, name, at))
            continue
        kind = getattr(getattr(column, "dtype", None), "kind", None)
        missing = np.asarray(column.isna()) if kind is not None else np.asarray(column.is_null())
        if missing.any():
            row = int(np.flatnonzero(missing)[0])
            what = f"row {row}: a missing value in column {at} ({field!r}); 0 or 1 is expected"
            raise DataError(f"{name}: {what}", row, at)
        array = np.asarray(column)
        found.append(array if array.dtype.kind in "biuf" else array.astype(np.float64))
    return np.column_stack(found) if found else np.empty((0, 0))


def array_of_column(values, name, at):
    """A column of objects as numbers; ``at`` is its number."""
    try:
        return array_of_marks(values[:, None], name)[:, 0]
    except DataError as error:
        said = str(error).replace("in column 0;", f"in column {at};")
        raise DataError(said, error.row, None if error.column is None else at) from None


def check_columns(got, n_labels, append, name):
    """Refuses a matrix of more labels than there are."""
    if n_labels is not None and got > n_labels and not append:
        raise DataError(f"{name}: {got} columns; the model has {n_labels} labels, and a column for each is expected")


def lists(labels_of, name, n, names):
    """Candidates or excluded labels: a flat list as it is, lists of lists as label rows."""
    if labels_of is None or isinstance(labels_of, Labels):
        return labels_of
    if is_sparse(labels_of) or hasattr(labels_of, "tocsr") or is_frame(labels_of):
        return labels(labels_of, name, names, n)
    if isinstance(labels_of, np.ndarray) and labels_of.ndim == 2:
        return labels(labels_of, name, names, n)
    if isinstance(labels_of, Ranked):
        raise TypeError(f"{name}: a Ranked; its names() are expected")
    if not isinstance(labels_of, (set, frozenset)):
        # Labels for all rows have no order; rows have.
        refuse_unordered(labels_of, name, "a list of labels")
    if not hasattr(labels_of, "__iter__"):
        raise TypeError(f"{name}: {type(labels_of).__name__}; a list of labels is expected")
    if _arrow.is_column(labels_of):
        labels_of = labels_of.to_pylist()
    values = labels_of if isinstance(labels_of, (list, tuple)) else list(labels_of)
    if len(values) and not isinstance(values[0], str) and hasattr(values[0], "__iter__"):
        return labels(values, name, names, n)
    return values


def number_list(numbers, name):
    """Numbers of rows; an empty list has any type."""
    numbers = unmasked(np.asanyarray(numbers), name)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size > 0):
        shape = f"an array of {numbers.dtype} with {numbers.ndim} dimensions"
        raise DataError(f"{name}: {shape}; a list of row numbers is expected")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def row_numbers(filter, n):
    """Numbers of the rows that may be answers: of a list of them, or of a bool a row."""
    if filter is None:
        return None
    refuse_unordered(filter, "filter", "a list of row numbers or an array of bool")
    filter = unmasked(np.asanyarray(filter.to_pylist() if _arrow.is_column(filter) else filter), "filter")
    if filter.dtype.kind == "O" and filter.ndim == 1:
        missing = [row for row, value in enumerate(filter) if is_missing(value)]
        if missing:
            raise DataError(f"filter: row {missing[0]}: a missing value; True or False is expected", missing[0])
        if all(isinstance(value, (bool, np.bool_)) for value in filter):
            filter = filter.astype(bool)
    if filter.dtype == bool:
        if filter.shape != (n,):
            raise OptionError(f"filter: {filter.shape} values; one for each of the {n} rows is expected")
        return np.flatnonzero(filter).astype(np.int64)
    numbers = number_list(filter, "filter")
    if len(numbers) == n > 2 and ((numbers == 0) | (numbers == 1)).all():
        raise OptionError("filter: 0 or 1 for each row; row numbers, or an array of bool, are expected")
    return numbers
