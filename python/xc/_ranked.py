"""Answers."""

import html
import operator

import numpy as np


class Ranked:
    """Ranked lists of labels, one a row, best first; lists may differ in length.

    ``ids`` (uint32) and ``scores`` (float32) of all lists, one behind the other; list ``i`` is at
    ``indptr[i]:indptr[i + 1]`` (int64). ``known_terms`` counts the terms of each text that the model knows, or is None.
    """

    __slots__ = ("indptr", "ids", "scores", "known_terms", "n_labels", "_names")

    def __init__(self, indptr, ids, scores, n_labels, names=None, known_terms=None):
        self.indptr, self.ids, self.scores, self.n_labels = indptr, ids, scores, n_labels
        self._names, self.known_terms = names, known_terms

    def __len__(self):
        return len(self.indptr) - 1

    def __getitem__(self, row):
        """The list of a row: pairs of a name, or an id where labels have no names, and a score."""
        n, row = len(self), operator.index(row)
        if not -n <= row < n:
            raise IndexError(f"row {row} of {n}")
        row %= n
        at = slice(self.indptr[row], self.indptr[row + 1])
        names = self.label_names
        ids, scores = self.ids[at].tolist(), self.scores[at].tolist()
        return list(zip(ids if names is None else [names[i] for i in ids], scores))

    def __iter__(self):
        return (self[row] for row in range(len(self)))

    def __reduce__(self):
        return Ranked, (self.indptr, self.ids, self.scores, self.n_labels, self.label_names, self.known_terms)

    @property
    def label_names(self):
        """Names of all labels, or None."""
        if callable(self._names):
            self._names = self._names()
        return self._names

    def names(self):
        """The labels of each row: names, or ids where labels have none."""
        return [[label for label, _ in row] for row in self]

    def padded(self, k=None, fill=-1):
        """``(ids, scores)`` as matrices of ``k`` columns: short lists are filled with ``fill`` (int64) and NaN."""
        lengths = np.diff(self.indptr)
        k = int(lengths.max(initial=0)) if k is None else k
        column = np.arange(len(self.ids)) - np.repeat(self.indptr[:-1], lengths)
        kept = column < k
        row = np.repeat(np.arange(len(self)), lengths)[kept]
        ids = np.full((len(self), k), fill, dtype=np.int64)
        scores = np.full((len(self), k), np.nan, dtype=np.float32)
        ids[row, column[kept]] = self.ids[kept]
        scores[row, column[kept]] = self.scores[kept]
        return ids, scores

    def to_csr(self):
        """Scores as a matrix of scipy, one column a label; columns of a row are sorted, so their order is not the rank."""
        from scipy.sparse import csr_matrix

        shape = (len(self), self.n_labels)
        out = csr_matrix((self.scores.copy(), self.ids.astype(np.int64), self.indptr.copy()), shape=shape)
        out.sort_indices()
        return out

    def to_frame(self):
        """A data frame of pandas, a line an answer: row, rank from 1, label, score, and name where labels have names."""
        import pandas as pd

        lengths = np.diff(self.indptr)
        columns = {
            "row": np.repeat(np.arange(len(self)), lengths),
            "rank": np.arange(len(self.ids)) - np.repeat(self.indptr[:-1], lengths) + 1,
            "label": self.ids,
            "score": self.scores,
        }
        if self.label_names is not None:
            columns["name"] = [self.label_names[i] for i in self.ids]
        return pd.DataFrame(columns)

    def __repr__(self):
        return f"Ranked({len(self)} rows, {len(self.ids)} answers of {self.n_labels} labels)"

    def _repr_html_(self):
        shown = range(min(len(self), 20))
        cells = "".join(
            f"<tr><th>{row}</th><td>"
            + ", ".join(f"{html.escape(str(label))} <small>{score:.3f}</small>" for label, score in self[row][:10])
            + "</td></tr>"
            for row in shown
        )
        more = f"<p>and {len(self) - 20} more rows</p>" if len(self) > 20 else ""
        return f"<table><tr><th>row</th><th>labels</th></tr>{cells}</table>{more}"
