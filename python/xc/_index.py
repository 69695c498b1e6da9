"""Nearest neighbours among vectors."""

import numpy as np

from . import _given, _native
from ._errors import DataError, OptionError, keyword
from ._folders import absolute, place
from ._model import running
from ._ranked import Ranked
from ._rows import number_list, row_numbers, rows, unmasked
from ._settings import typed


def index(vectors, metric, folder=None, *, fit_queries=None, seed=0, threads=None, callback=None, **options):
    """Builds an index over vectors, for ``metric`` "l2", "cosine" or "ip", and saves it in ``folder`` if there is one.
    Sparse rows get a :class:`SparseIndex`, which has no other options.

    The search is fitted so that ``target_recall`` of the ``top_k`` nearest are found: of ``fit_queries``, else of vectors
    made from neighbours. ``report`` of the index says what it reached.
    """
    options = typed("index", None, options)
    metric, folder = _given.text("metric", metric, "'l2', 'cosine' or 'ip'"), place(folder, of_index=True)
    given, run = rows(vectors, "vectors"), running(seed, threads, None, callback)
    if given.is_sparse:
        named = [keyword(name) for name, _ in options] + ["fit_queries"] * (fit_queries is not None)
        if named:
            raise OptionError(f"{named[0]} has no effect in an index of sparse rows, which is exact")
        made = SparseIndex(*_native.SparseIndex.build(given, metric, run))
    else:
        asked = None if fit_queries is None else rows(fit_queries, "fit_queries")
        made = Index(*_native.Index.build(given, metric, asked, options, run))
    if folder is not None:
        made.save(folder)
    return made


def load_index(folder, in_memory=False):
    """Opens an index in a folder."""
    folder = absolute(folder)
    if _native.inspect(folder, False)["kind"] == "inverted-index":
        return SparseIndex(_native.SparseIndex.open(folder, in_memory))
    return Index(_native.Index.open(folder, in_memory))


class Index:
    """An index over vectors. May be searched by several threads at a time; a change waits for them."""

    __slots__ = ("_native", "report")

    def __init__(self, native, report=None):
        self._native, self.report = native, report

    def __len__(self):
        return self._native.shape[0]

    @property
    def width(self):
        """Values of a vector."""
        return self._native.shape[1]

    @property
    def metric(self):
        """"l2", "cosine" or "ip"."""
        return self._native.metric

    def search(self, q, top_k=10, filter=None, search_width=None, cells=None, exact=False, threads=None):
        """The nearest vectors of each query, as :class:`xc.Ranked`: ``ids`` are row numbers. ``filter``: rows that may be
        answers, a list of numbers or an array of bool. ``exact`` compares all vectors."""
        if search_width is not None and cells is not None:
            raise OptionError("search_width: cannot be used with cells")
        if exact and (search_width is not None or cells is not None):
            raise OptionError("exact: cannot be used with search_width or cells")
        top_k, threads = _given.top_k(top_k), _given.threads(threads)
        search_width, cells = _given.number("search_width", search_width), _given.count("cells", cells, 0)
        q = unmasked(q, "q")
        single = isinstance(q, np.ndarray) and q.ndim == 1 and q.dtype.kind == "f"
        queries = rows(q.reshape(1, -1) if single else q, "q")
        arrays = self._native.search(
            queries, top_k, row_numbers(filter, len(self)), search_width, cells, bool(exact), threads
        )
        return Ranked(*arrays, len(self))

    def insert(self, vectors, threads=None, callback=None):
        """Adds vectors: their row numbers follow those that are there."""
        given = self._rows(vectors, "vectors")
        first = self._native.insert(given, running(0, threads, None, callback))
        return np.arange(first, first + len(given))

    def delete(self, rows):
        """Takes rows out of the answers; how many of them were there. Others keep their numbers."""
        numbers = number_list(np.atleast_1d(rows), "rows")
        wrong = numbers[(numbers < 0) | (numbers >= len(self))]
        if len(wrong):
            raise DataError(f"rows: row {wrong[0]}; rows from 0 and below {len(self)} are expected")
        return self._native.delete(numbers.tolist())

    def refresh(self, vectors, fit_queries=None, policy=None, threads=None, callback=None):
        """Brings the index up to vectors that changed a little: as many, in the same order."""
        asked = None if fit_queries is None else self._rows(fit_queries, "fit_queries")
        policy = _given.text("policy", policy, "codes, search, two-hops, both or rebuild")
        return self._native.refresh(rows(vectors, "vectors"), asked, policy, running(0, threads, None, callback))

    def _rows(self, vectors, name):
        """Vectors of the index's width."""
        found = rows(vectors, name)
        if found.columns != self.width:
            raise DataError(f"{name}: vectors of {found.columns} values; the index has {self.width}")
        return found

    def save(self, folder):
        """Saves it in a folder."""
        self._native.save(place(folder, of_index=True))

    def __repr__(self):
        return f"<xc.Index {len(self)} vectors of {self.width} values, {self.metric}>"


class SparseIndex(Index):
    """An index over sparse rows, which answers exactly and does not change."""

    __slots__ = ()

    @property
    def width(self):
        """Columns of a row."""
        return self._native.shape[1]

    def search(self, q, top_k=10, filter=None, search_width=None, cells=None, exact=False, threads=None):
        """The nearest rows of each query, as :class:`xc.Ranked`: ``ids`` are row numbers. ``filter``: rows that may be
        answers, a list of numbers or an array of bool. All answers are exact; there is no ``search_width``."""
        for name, value in (("search_width", search_width), ("cells", cells)):
            if value is not None:
                raise OptionError(f"{name} has no effect in an index of sparse rows, which is exact")
        top_k, threads = _given.top_k(top_k), _given.threads(threads)
        queries = rows(q, "q")
        if queries.columns != self.width:
            raise DataError(f"q: rows of {queries.columns} columns; the index has {self.width}")
        return Ranked(*self._native.search(queries, top_k, row_numbers(filter, len(self)), threads), len(self))

    def insert(self, vectors, threads=None, callback=None):
        """Raises: an index of sparse rows is built anew."""
        raise OptionError("insert: an index of sparse rows does not change; xc.index builds one of all rows")

    def delete(self, rows):
        """Raises: an index of sparse rows is built anew; ``filter`` leaves rows out."""
        raise OptionError("delete: an index of sparse rows does not change; filter= of a search leaves rows out")

    def refresh(self, vectors, fit_queries=None, policy=None, threads=None, callback=None):
        """Raises: an index of sparse rows is built anew."""
        raise OptionError("refresh: an index of sparse rows does not change; xc.index builds one of all rows")

    def __repr__(self):
        return f"<xc.SparseIndex {len(self)} rows of {self.width} columns, {self.metric}>"
