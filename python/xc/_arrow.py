"""Columns and tables of pyarrow, read through their buffers; pyarrow itself is not imported."""

import numpy as np

OFFSETS = {"string": np.int32, "large_string": np.int64}


def is_table(x):
    """Whether ``x`` is a table or record batch of pyarrow."""
    return is_column(x) and hasattr(x, "column_names")


def is_column(x):
    """Whether ``x`` is an array, in one piece or several, or a table of pyarrow."""
    return type(x).__module__.partition(".")[0] == "pyarrow" and hasattr(x, "to_pylist")


def utf8(x):
    """The texts of a column where they lie: ``(offsets, bytes)`` of each piece; ``None`` where it holds none, or lacks some."""
    pieces = getattr(x, "chunks", [x])
    if str(getattr(x, "type", None)) not in OFFSETS or x.null_count:
        return None
    return [offsets_and_bytes(piece) for piece in pieces if len(piece)]


def offsets_and_bytes(piece):
    """Offsets and bytes of an array that is not empty."""
    _, offsets, data = piece.buffers()
    first = piece.offset
    offsets = np.frombuffer(offsets, OFFSETS[str(piece.type)])[first:first + len(piece) + 1]
    return offsets, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def vectors(x):
    """A column of lists of one length, as a matrix; ``None`` where it holds other things, or lacks some."""
    if not str(getattr(x, "type", None)).startswith("fixed_size_list") or x.null_count:
        return None
    values = (x.combine_chunks() if hasattr(x, "chunks") else x).flatten()
    numbers = values.to_numpy(zero_copy_only=False)
    if values.null_count or numbers.dtype.kind not in "biuf":
        return None
    return numbers.reshape(len(x), x.type.list_size)
