"""Models changed without training, merged, looked at, judged."""

import os
import warnings

import numpy as np

from . import _given, _native
from ._errors import DataError, OptionError, XcWarning, keyword
from ._folders import place
from ._index import load_index
from ._model import Model, _opened, folder_of, load, running
from ._ranked import Ranked
from ._report import Evaluation
from ._rows import labels
from ._settings import typed
from ._train import Watch, numbers

__all__ = ["convert", "evaluate", "inspect", "load_index", "merge"]


def convert(model, output, *, keep_labels=None, label_names=None, source_format=None, n_labels=None, **options):
    """Saves a copy of a model with changes, the ``options`` of ``xc convert --from xc --to xc``: weights of another
    ``precision`` or without those ``prune_below`` a magnitude, the first ``trees``, ``wide=False``, another
    ``post_processor``; some labels alone, other names. With ``source_format`` "pecos" or "omikuji", ``model`` is a folder of
    that system, of which ``precision`` and ``n_labels`` are asked. Returns the new model."""
    options, output, names = typed("convert", None, options), place(output), _given.names(label_names)
    if source_format is not None:
        idle = [name for name, _ in options if name != "precision"] + ["keep_labels"] * (keep_labels is not None)
        if idle:
            raise OptionError(f"{keyword(idle[0])} has no effect with source_format: convert the new model, or leave it out")
        n_labels = _given.count("n_labels", n_labels, 0)
        _native.import_model(source_format, os.fspath(model), options, n_labels, names, output)
        return load(output)
    if n_labels is not None:
        raise OptionError("n_labels has no effect here: add source_format, or leave it out")
    model = model if isinstance(model, Model) else load(model, use_index=False)
    keep = None if keep_labels is None else model._native.label_ids(keep_labels)
    for line in _native.convert(model._native, options, keep, names, output):
        warnings.warn(line, XcWarning, stacklevel=2)
    return Model(_opened(output))


def merge(parts, output, *, n_labels=None, label_names=None):
    """Merges repetitions of a MACH model that were trained apart, each a folder or a model; returns the new model."""
    folders = [folder_of(part, "parts") for part in parts]
    watch = Watch(False, (), "xc merge")
    output, label_names = place(output), _given.names(label_names)
    _native.merge(folders, output, _given.count("n_labels", n_labels, 0), label_names, running(callback=watch))
    return load(output)


def inspect(path, verify=False):
    """What the folder of a model or an index holds: kind, parameters, arrays and their sizes. ``verify`` compares every
    byte with the hashes of when it was saved (``damaged`` is then a list)."""
    # A temporary folder goes with its model, which is therefore held until the folder was read.
    return _native.inspect(folder_of(path, "path"), verify)


def evaluate(
    Y, ranked, k=(1, 3, 5), propensity_from=None, compare=None, *, weights=None, per_label=False, label_names=None, seed=0,
    **options,
):
    """Metrics of ranked lists against true labels: P, nDCG, recall, MAP, F1 at each k and more.

    ``ranked`` is what a model predicts (:class:`xc.Ranked`), or a matrix of scores (scipy, or one of floats), or a pair
    ``(ids, scores)`` of matrices of a column a rank, or of a list of names, or of ids, and one of scores a row.
    ``propensity_from``, the labels of the training, adds PSP and PSnDCG; ``compare``, other predictions of the same rows, the
    difference of each metric with its bootstrap interval. ``options`` are those of ``xc evaluate``: ``threshold``, a number or
    "best", adds precision, recall and F1 of the labels that reach it; ``intervals``, ``resamples``, ``level``,
    ``propensity_a``, ``propensity_b``.
    """
    options = typed("evaluate", None, {"k": list(k) if hasattr(k, "__iter__") and not isinstance(k, str) else k, **options})
    names = _given.names(label_names)
    if named(ranked) or named(compare):
        names = names_of_all(names, Y, ranked, compare)
    found = as_ranked(ranked, names)
    names = found.label_names if names is None else names
    n_labels = found.n_labels or None
    truth = labels(Y, "Y", names, n_labels, append=True)
    other = None if compare is None else as_ranked(compare, names)
    training = None
    if propensity_from is not None:
        training = labels(propensity_from, "propensity_from", names, n_labels, append=True)
    if dict(options).get("threshold") == "best" and weights is not None:
        raise OptionError("threshold 'best': with weights a number is expected")
    wanted = {
        "options": options, "n_labels": n_labels, "seed": _given.seed(seed),
        "weights": numbers(weights, "weights", np.float64), "per_label": bool(per_label),
    }
    judged = _native.evaluate(truth, arrays(found), None if other is None else arrays(other), training, wanted)
    return Evaluation(judged, truth.names if truth.names is not None else names)


def arrays(ranked):
    """Arrays of ragged lists."""
    return (
        np.ascontiguousarray(ranked.indptr, np.int64),
        np.ascontiguousarray(ranked.ids, np.uint32),
        np.ascontiguousarray(ranked.scores, np.float32),
    )


def named(ranked):
    """Whether predictions are lists of names a row, and of their scores."""
    if isinstance(ranked, Ranked) or not isinstance(ranked, tuple) or len(ranked) != 2 or not hasattr(ranked[0], "__iter__"):
        return False
    first = next((row for row in ranked[0] if hasattr(row, "__len__") and len(row)), None)
    return first is not None and not isinstance(first, str) and isinstance(next(iter(first)), str)


def names_of_all(names, Y, *predictions):
    """Names of the labels that are known, or true, and behind them those that are only predicted."""
    known = names or labels(Y, "Y").names or []
    predicted = {name for ranked in predictions if named(ranked) for row in ranked[0] for name in row}
    return known + sorted(predicted.difference(known))


def of_lists(lists, scores, names, name="ranked"):
    """Ranked lists of lists of labels and of scores."""
    made = labels(lists, name, names)
    if len(made) != len(scores):
        raise OptionError(f"{name}: {len(made)} lists and {len(scores)} of scores; as many are expected")
    number = {label: at for at, label in enumerate(names or ())}
    ids = []
    for row, (of_row, of_them) in enumerate(zip(lists, scores)):
        if len(of_row) != len(of_them):
            raise DataError(f"{name}: row {row}: {len(of_row)} labels and {len(of_them)} scores; as many are expected", row)
        ids.append([number.get(label, label) for label in of_row])
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in ids], dtype=np.int64)])
    flat = [np.concatenate([np.asarray(row, of) for row in rows] or [np.empty(0, of)])
            for rows, of in ((ids, np.int64), (scores, np.float32))]
    found = in_order(indptr, *flat, made.n_labels)
    return Ranked(found.indptr, found.ids, found.scores, found.n_labels, names)


def as_ranked(ranked, names=None):
    """Predictions of any form as ranked lists; ``names`` are those of the labels where lists have names."""
    if isinstance(ranked, Ranked):
        return ranked
    if named(ranked) or (isinstance(ranked, tuple) and len(ranked) == 2 and isinstance(ranked[0], list)
                         and len({len(row) for row in ranked[0] if hasattr(row, "__len__")}) > 1):
        return of_lists(*ranked, names)
    if isinstance(ranked, tuple) and len(ranked) == 2:
        ids, scores = np.asarray(ranked[0]), np.asarray(ranked[1], np.float32)
        if ids.ndim != 2 or ids.shape != scores.shape:
            raise OptionError(f"ranked: ids of shape {ids.shape} and scores of shape {scores.shape}; one matrix each is expected")
        kept = (ids >= 0) & ~np.isnan(scores)
        indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        return in_order(indptr, ids[kept], scores[kept], 0)
    if isinstance(ranked, np.ndarray) and ranked.ndim == 2:
        n, width = ranked.shape
        indptr = np.arange(n + 1) * width
        return in_order(indptr, np.tile(np.arange(width), n), ranked.ravel(), width)
    if hasattr(ranked, "tocsr") or hasattr(ranked, "indptr"):
        matrix = ranked.tocsr() if hasattr(ranked, "tocsr") else ranked
        return in_order(np.asarray(matrix.indptr), np.asarray(matrix.indices), np.asarray(matrix.data), matrix.shape[1])
    raise TypeError(f"ranked: {type(ranked).__name__}; what a model predicts, or a matrix of scores, is expected")


def in_order(indptr, ids, scores, n_labels):
    """Lists sorted by score, equal scores by label."""
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((ids, -scores.astype(np.float64), row))
    n_labels = n_labels or (int(ids.max()) + 1 if len(ids) else 0)
    return Ranked(indptr.astype(np.int64), ids[order].astype(np.uint32), scores[order].astype(np.float32), n_labels)
