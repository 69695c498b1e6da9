"""Trained models."""

import warnings

import numpy as np

from . import _given, _native
from ._errors import ModelError, OptionError, XcWarning
from ._folders import absolute, fingerprint, packed, place, unpacked
from ._ranked import Ranked
from ._rows import labels, lists, number_list, rows
from ._settings import typed

TEMPORARY = "model"

TRIES = 10
"""How often a folder is opened that is replaced meanwhile."""


def load(path, in_memory=False, use_index=True, post_processor=None, repetitions=None, verify=False):
    """Opens the model in a folder.

    ``in_memory`` reads its files instead of mapping them: opening is slower, answers are faster. ``use_index=False``
    scores all labels, even if the folder has an index of them. ``post_processor`` names another map of margins to scores.
    ``repetitions``: numbers of those of a MACH model that answer, all by default. ``verify`` compares every byte with its hash,
    as models below 8 MiB always are.
    """
    if repetitions is not None:
        repetitions = number_list(repetitions, "repetitions").tolist()
        if not repetitions or min(repetitions) < 0 or max(repetitions) >= 1 << 32:
            raise OptionError(f"repetitions {repetitions}: numbers of repetitions, one at least, are expected")
    options = (in_memory, use_index, post_processor, repetitions, verify)
    return Model(_opened(path, *options), options)


def _opened(path, in_memory=False, use_index=True, post_processor=None, repetitions=None, verify=False):
    native, said = _native.Model.open(absolute(path), in_memory, use_index, post_processor, repetitions, verify)
    for line in said:
        warnings.warn(line, XcWarning, stacklevel=3)
    return native


def _search(keywords):
    """Options of a search as they are typed."""
    return typed("search", None, keywords) if keywords else None


class Model:
    """A trained model of any kind. May be used by several threads at a time."""

    __slots__ = ("_native", "_about", "_options", "_owner", "_names", "_opened_as", "__weakref__")

    def __init__(self, native, options=(False, True, None, None, False), owner=None):
        self._options, self._owner, self._names = options, owner, False
        self._take(native)

    def _take(self, native):
        """Answers from what was opened, and remembers what that is: another model may stand in its folder later."""
        for _ in range(TRIES):
            about = native.describe()
            opened_as = fingerprint(about["folder"])
            if not native.was_replaced():
                self._native, self._about, self._opened_as = native, about, opened_as
                return
            # Another model was saved in the folder between the two.
            native = _opened(about["folder"], *self._options)
        raise ModelError(f"{about['folder']}: replaced again and again while it was opened")

    def _check_folder(self):
        """Refuses a folder that holds another model than the one that was opened, or none."""
        try:
            stands = fingerprint(self.folder)
        except ModelError as error:
            raise ModelError(f"{error}; the model was opened from there, and its files are expected") from None
        if stands != self._opened_as or self._native.was_replaced():
            raise ModelError(f"{self.folder}: replaced since it was opened; the model that was opened is expected there")

    @property
    def kind(self):
        """The kind: "tree", "mach", "dense", "uniform", "lns", "astra", "skipgram" or "blend"."""
        return self._about["kind"]

    @property
    def takes(self):
        """What a query is: a text, a sparse row, a vector."""
        return self._about["takes"]

    @property
    def n_labels(self):
        """Number of labels."""
        return self._about["n_labels"]

    @property
    def n_features(self):
        """Number of features of a row, or values of a vector."""
        return self._about["n_features"]

    @property
    def calibrated(self):
        """Whether scores are probabilities."""
        return self._about["calibrated"]

    @property
    def has_index(self):
        """Whether an index of the labels answers."""
        return self._about["has_index"]

    @property
    def n_bytes(self):
        """Bytes of its files."""
        return self._about["n_bytes"]

    @property
    def folder(self):
        """Its folder."""
        return self._about["folder"]

    @property
    def labels(self):
        """Names of the labels, or None where labels are ids. Read when it is first asked for."""
        if self._names is False:
            self._names = self._native.label_names()
        return self._names

    def _label_names(self):
        return self.labels

    def predict(
        self, X, top_k=5, min_score=None, candidates=None, exclude=None, raw_scores=False, threshold=None, threads=None,
        text_fields=None, **search,
    ):
        """Ranks labels for each row of ``X``.

        ``candidates`` and ``exclude`` are lists of labels for all rows, or a list a row. ``threshold`` ("micro", "macro",
        "label") keeps the labels that reach a threshold of the calibration. ``search``: beam (trees), decoder, max_labels
        (MACH), search_width, cells, exact (an index of the labels).
        """
        top_k, min_score = _given.top_k(top_k), _given.number("min_score", min_score)
        threshold, threads = _threshold(threshold), _given.threads(threads)
        queries = rows(X, "X", text_fields)
        names = self.labels if candidates is not None or exclude is not None else None
        candidates = lists(candidates, "candidates", self.n_labels, names)
        exclude = lists(exclude, "exclude", self.n_labels, names)
        before = self._native.texts_taken()
        (indptr, ids, scores), known = self._native.predict(
            queries, top_k, min_score, candidates, exclude, raw_scores, threshold, threads, _search(search)
        )
        self._say_of_cut_texts("X", before)
        return Ranked(indptr, ids, scores, self.n_labels, self._label_names, known)

    def predict_one(
        self, query, top_k=5, min_score=None, candidates=None, exclude=None, raw_scores=False, threshold=None, **search
    ):
        """Ranks labels for one query, without arrays: pairs of a name, or an id where labels have no names, and a score.

        The query is a text, ``{id: value}``, ``(ids, values)`` or a vector.
        """
        top_k, min_score, threshold = _given.top_k(top_k), _given.number("min_score", min_score), _threshold(threshold)
        if isinstance(query, (set, frozenset)):
            raise TypeError("query: a set, which has no order; a str, {id: value}, (ids, values) or a vector is expected")
        before = self._native.texts_taken()
        answers = self._native.predict_one(
            query, top_k, min_score, candidates, exclude, raw_scores, threshold, _search(search)
        )
        self._say_of_cut_texts("query", before)
        return answers

    def _say_of_cut_texts(self, name, before):
        """Warns of texts that were cut since there were those of ``before``."""
        cut = self._native.texts_cut(before) if before else None
        if cut is not None:
            warnings.warn(f"{name}: {cut}", XcWarning, stacklevel=3)

    def explain(self, x, label, n_features=200, raw_scores=False):
        """Why a label has its score for a query: what each feature does to it, for trees the margins on the path, for
        networks the logit. A dict, as ``xc explain --json`` prints it."""
        [label] = self._native.label_ids([label])
        return self._native.explain(one_row(x, self.n_features), label, n_features, raw_scores)

    def save(self, path):
        """Saves a copy in a folder. A model without a folder of its own then has this one."""
        path = place(path)
        self._check_folder()
        self._native.save(path)
        if self._owner is not None:
            self._take(_opened(path, *self._options))
            self._owner = None

    def build_index(
        self, X=None, Y=None, *, max_loss=None, output=None, seed=0, threads=None, text_fields=None, **options
    ):
        """Builds an index of the labels and saves it in the model's folder: from then on it answers. ``X`` are queries
        that it is fitted to, with their labels ``Y`` to the metrics that it may lose (``max_loss`` points). Other options
        are those of :func:`xc.index`."""
        self._check_folder()
        queries = None if X is None else rows(X, "X", text_fields)
        truth = None if Y is None else labels(Y, "Y", self.labels, self.n_labels, append=True)
        options = typed("index", None, options)
        output, max_loss = place(output, of_index=True), _given.number("max_loss", max_loss)
        run = running(seed, threads)
        report = _native.build_index(self._native, queries, truth, options, max_loss, output, run)
        if output is None:
            opened = _opened(self.folder, self._options[0], True, *self._options[2:])
            self._check_folder()
            self._take(opened)
        return report

    def __reduce__(self):
        self._check_folder()
        if self._owner is None:
            return (_load_again, (self.folder, self._opened_as, self._options))
        return (_from_bytes, (packed(self.folder), self._options))

    def __repr__(self):
        place = "temporary" if self._owner is not None else repr(self.folder)
        return f"<xc.Model {self.kind}: {self.n_labels} labels, takes {self.takes}, {place}>"


def folder_of(model, name="model"):
    """The folder of a model, which holds what was opened, or a path as it is."""
    if isinstance(model, Model):
        model._check_folder()
        return model.folder
    if not isinstance(model, (str, bytes)) and not hasattr(model, "__fspath__"):
        raise TypeError(f"{name}: a {type(model).__name__}; a model or the path of one is expected")
    return absolute(model)


def running(seed=0, threads=None, max_memory=None, callback=None):
    """What long work is given beside its data."""
    return {
        "seed": _given.seed(seed), "threads": _given.threads(threads), "max_memory": _given.n_bytes(max_memory),
        "callback": callback,
    }


def _threshold(name):
    return _given.text("threshold", name, "'micro', 'macro' or 'label', or a number in min_score,")


def one_row(x, n_features):
    """One query as rows."""
    if isinstance(x, str):
        return rows([x], "query")
    if isinstance(x, dict):
        x = (list(x), list(x.values()))
    if isinstance(x, tuple) and len(x) == 2:
        ids, values = np.asarray(x[0], np.int64), np.asarray(x[1], np.float32)
        return _native.Input.sparse("query", np.array([0, len(ids)], np.int64), ids, values, n_features)
    if hasattr(x, "indptr"):
        return rows(x, "query")
    return rows(np.asarray(x, np.float32).reshape(1, -1), "query")


def _load_again(path, wanted, options):
    try:
        stands = fingerprint(path)
    except ModelError as error:
        what = "the pickle names the folder of a model and does not hold it; the folder is expected where it was"
        raise ModelError(f"{error}; {what}") from None
    if stands != wanted:
        raise ModelError(f"{path}: another model than the one that was pickled")
    return load(path, *options)


def _from_bytes(data, options):
    folder = unpacked(data, TEMPORARY)
    return Model(_opened(folder.inside(TEMPORARY), *options), options, folder)
