"""What estimators of scikit-learn do, but for their constructors, which have a parameter a setting (`_estimators.py`)."""

import numbers
import os

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d, validate_data

from . import _native
from ._errors import DataError, OptionError
from ._folders import Folder, packed, unpacked
from ._model import running
from ._ranked import Ranked
from ._rows import columns_of, holds_numbers, is_frame, rows
from ._settings import typed
from ._train import calibrate, train

FEW_LABELS = 1000
"""Below so many labels scores of dense ``y`` are a dense matrix, and all labels are scored where ``top_k`` is None."""

USUAL_TOP_K = 100
"""Labels of a row that are scored where there are more."""

OF_ESTIMATOR = ("top_k", "threshold", "calibration", "text_fields", "seed", "threads", "max_memory", "options")
"""Parameters that are no settings of a kind."""


def set_all(estimator, given):
    """Sets the parameters of a constructor as attributes: its local variables."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


class Classifier(ClassifierMixin, BaseEstimator):
    """A model of one kind as a classifier. Constructors are in ``_estimators.py``.

    Parameters
    ----------
    top_k : labels of a row that are scored. None: all of fewer than 1,000 labels, else 100.
    threshold : a label is predicted where its score is above this. For one class a row it has no effect.
    calibration : "isotonic" or "platt": scores become probabilities, fitted to the rows that ``validation_fraction``
        holds out. There is ``predict_proba`` then.
    text_fields : columns of a DataFrame that make the text.
    seed, threads, max_memory : as in :func:`xc.train`.
    options : settings of the kind by any of their names, ``{"cluster.slack": 0.1}``.
    all others : settings of the kind, which :func:`xc.settings` lists with what they mean; None leaves the program's value.

    Attributes
    ----------
    classes_ : the classes or label names, or the numbers of the columns of ``y``.
    model_ : the :class:`xc.Model`.
    report_ : figures of the training.
    calibration_report_ : figures of the calibration, where there was one.
    """

    _kind = None
    _least_labels = 1
    _set = set_all

    @classmethod
    def about(cls):
        """The second part of what classifiers say of themselves."""
        return Classifier.__doc__.partition("``_estimators.py``.")[2]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X, y, *, validation=None, instance_weights=None, label_features=None):
        """Trains a model. ``validation``: ``(X, y)`` that judge; ``instance_weights``: a weight a row; ``label_features``:
        rows or texts that describe the labels."""
        X, y = self._instances(X, y)
        truth = self._learned(y)
        if self.calibration is not None and self.validation_fraction is None:
            raise OptionError("calibration: validation_fraction is expected with it: the share of rows that it is fitted to")
        given = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in OF_ESTIMATOR and value is not None
        }
        named = self._form == "names" or (
            self._form == "classes" and self.classes_.dtype.kind in "UO" and truth.shape[1] == len(self.classes_)
        )
        judged = None
        if validation is not None:
            X_v, y_v = validation
            judged = (self._instances(X_v, reset=False), self._known(y_v))
        trained = train(
            self._kind, X, truth, validation=judged, label_names=list(self.classes_) if named else None,
            label_features=label_features, instance_weights=instance_weights, seed=self.seed, threads=self.threads,
            max_memory=self.max_memory, progress=False, options=self.options, **given,
        )
        self.model_, self.report_ = trained.model, trained.report
        if self.calibration is not None:
            self._calibrate(X, truth, self.calibration, True)
        return self

    def calibrate(self, X, y, method="isotonic", held_out=False):
        """Fits probabilities of the scores to rows that the model was not trained on: from then on there is
        ``predict_proba``. ``held_out=True`` leaves out the rows that it was trained on. Returns the estimator."""
        check_is_fitted(self, "model_")
        self._calibrate(self._instances(X, reset=False), self._known(y), method, held_out)
        return self

    def _calibrate(self, X, truth, method, held_out):
        fitted = calibrate(
            self.model_, self._as_taken(X), truth, method=method, held_out=held_out, seed=self.seed,
            threads=self.threads, max_memory=self.max_memory, progress=False,
        )
        self.model_, self.calibration_report_ = fitted.model, fitted.report

    def predict_ranked(self, X, top_k=5, **asked):
        """Ranked lists of labels (:class:`xc.Ranked`), with scores as they are; ``asked`` as in ``Model.predict``."""
        check_is_fitted(self, "model_")
        n = len(self.classes_)
        if self.model_.n_labels > n and self._form != "names":
            asked["exclude"] = list(range(n, self.model_.n_labels))
        # Rows of the other form, dense or sparse, are taken in blocks: no copy of all of them is made.
        found = self.model_.predict(self._instances(X, reset=False), top_k=top_k, threads=self.threads, **asked)
        if self._form == "classes":
            found = Ranked(found.indptr, found.ids, found.scores, n, self.classes_.tolist(), found.known_terms)
        return found

    def decision_function(self, X):
        """Scores above the threshold: a label is predicted where this is above 0.

        One class a row: scores of the classes, without a threshold; of two classes, how much higher the second one's is.
        For dense ``y`` of fewer than 1,000 labels an array of (rows, labels), else a CSR matrix of the ``top_k`` best, in
        which labels that are not scored have no entry.
        """
        threshold = self.threshold
        if isinstance(threshold, bool) or not isinstance(threshold, numbers.Real):
            raise OptionError(f"threshold {threshold!r}: a number is expected")
        found = self._scored(X)
        if self._form == "classes":
            scores = self._matrix(found, 0.0)
            return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        return self._matrix(found, float(threshold))

    def predict(self, X):
        """Labels whose score is above the threshold: a matrix of 0 and 1, sparse unless ``y`` was dense. For one class a
        row: the class with the highest score."""
        check_is_fitted(self, "model_")
        if self._form == "classes":
            best = self._scored(X, 1)
            ids, _ = best.padded(1, 0)
            return self.classes_[ids[:, 0]]
        above = self.decision_function(X) > 0
        if not sp.issparse(above):
            return above.astype(np.int64)
        above = sp.csr_matrix(above, dtype=np.int64)
        return above.toarray() if self._form == "dense" else above

    def score(self, X, y, sample_weight=None):
        """Share of rows whose labels are all predicted, and no other; ``y`` in the forms of ``fit``, lists of names
        included."""
        check_is_fitted(self, "model_")
        if self._form != "names" or not is_names(y):
            return super().score(X, y, sample_weight)
        return accuracy_score(self._marks(y), self._with_unknown(self.predict(X)), sample_weight=sample_weight)

    def _marks(self, y):
        """Lists of names as a matrix of 0 and 1, with a last column for names that no class has."""
        number, n = {name: at for at, name in enumerate(self.classes_)}, len(self.classes_)
        columns = [sorted({number.get(name, n) for name in row}) for row in y]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in columns], dtype=np.int64)])
        ids = [at for row in columns for at in row]
        return sp.csr_matrix((np.ones(len(ids), np.int64), ids, indptr), shape=(len(columns), n + 1))

    def _with_unknown(self, above):
        """The predicted labels with that column, in which there are none."""
        return sp.hstack([above, sp.csr_matrix((above.shape[0], 1), dtype=np.int64)], format="csr")

    def _has_probabilities(self):
        if hasattr(self, "model_"):
            return self.model_.calibrated
        return self.calibration is not None

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Probabilities of labels, in the forms of ``decision_function``; there only after a calibration. For one class a
        row they are divided by their sum."""
        found = self._scored(X)
        scores = self._matrix(found, 0.0)
        if self._form != "classes" or sp.issparse(scores):
            return scores
        total = scores.sum(axis=1, keepdims=True)
        return np.where(total > 0, scores / np.where(total > 0, total, 1), 1 / scores.shape[1])

    def _scored(self, X, top_k=None):
        """Scores of the labels that are asked for."""
        check_is_fitted(self, "model_")
        top_k = self.top_k if top_k is None else top_k
        if top_k is None:
            n = len(self.classes_)
            top_k = n if n < FEW_LABELS else USUAL_TOP_K
        return self.predict_ranked(X, top_k)

    def _matrix(self, found, threshold):
        """Scores less the threshold; in a dense matrix labels that are not scored are as the worst that is."""
        n, n_labels = len(found), len(self.classes_)
        lengths = np.diff(found.indptr)
        scores = found.scores.astype(np.float64) - threshold
        if self._form not in ("dense", "classes") or n_labels >= FEW_LABELS:
            matrix = sp.csr_matrix((scores, found.ids.astype(np.int64), found.indptr.copy()), shape=(n, n_labels))
            matrix.sort_indices()
            return matrix
        worst = np.zeros(n)
        scored = lengths > 0
        worst[scored] = np.minimum(0, found.scores[found.indptr[1:][scored] - 1])
        matrix = np.repeat((worst - threshold)[:, None], n_labels, axis=1)
        matrix[np.repeat(np.arange(n), lengths), found.ids] = scores
        return matrix

    def _instances(self, X, y="no", reset=True):
        """``X`` that was checked, as :func:`xc.train` takes it; with ``y`` both."""
        with_y = not (isinstance(y, str) and y == "no")
        if isinstance(X, (str, bytes)):
            raise TypeError("X: a str; a list of texts is expected")
        of_texts = is_texts(X) or is_frame_of_texts(X, self.text_fields) or (not with_y and self._is_no_text(X))
        if of_texts:
            if is_frame(X):
                X = rows(X, "X", self.text_fields)
            elif not isinstance(X, _native.Input):
                X = list(X)
            if not with_y:
                return X
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            if not is_names(y):
                y = check_array(y, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y")
            if len(X) != number_of(y):
                raise ValueError(f"X has {len(X)} texts and y {number_of(y)} rows; as many are expected")
            return X, y
        how = {"accept_sparse": "csr", "dtype": [np.float32, np.float64], "reset": reset}
        if not with_y:
            # Of no rows there are no answers.
            how["ensure_min_samples"] = 0
        if with_y and not is_names(y):
            X, y = validate_data(self, X, y, multi_output=True, **how)
        else:
            X = validate_data(self, X, **how)
        if with_y:
            check_consistent_length(X, y)
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return (X, y) if with_y else X

    def _is_no_text(self, X):
        """Whether ``X`` has no rows and the model takes texts: nothing in it says so."""
        takes_texts = hasattr(self, "model_") and self.model_.takes == "text"
        return takes_texts and not is_frame(X) and getattr(X, "ndim", 1) == 1 and hasattr(X, "__len__") and len(X) == 0

    def _as_taken(self, X):
        """Rows of a calibration in the form that the model takes."""
        if self.model_.takes == "sparse features" and isinstance(X, np.ndarray):
            return sp.csr_matrix(X)
        if self.model_.takes == "a vector" and sp.issparse(X):
            return X.toarray()
        return X

    def _learned(self, y):
        """Label rows of training, and what its form and classes are."""
        if is_names(y):
            self._form = "names"
            self.classes_ = np.unique([name for row in y for name in row])
        elif sp.issparse(y):
            self._form, self.classes_ = "sparse", np.arange(y.shape[1])
        elif y.ndim == 2 and y.shape[1] > 1:
            check_classification_targets(y)
            self._form, self.classes_ = "dense", np.arange(y.shape[1])
        else:
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            self._form, self.classes_ = "classes", np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError(f"y has one class, {self.classes_[0]}; a classifier needs two or more")
        return self._coded(y)

    def _known(self, y):
        """Label rows of further instances, in the form of those of training."""
        if self._form == "names":
            return list(y)
        if self._form == "classes":
            return self._coded(column_or_1d(y))
        y = check_array(y, accept_sparse="csr", dtype=None, input_name="y")
        if y.shape[1] != len(self.classes_):
            raise DataError(f"y: {y.shape[1]} columns; {len(self.classes_)} are expected")
        return self._wide_enough(y)

    def _coded(self, y):
        """Classes as rows of one label; other forms as they are."""
        if self._form == "names":
            return list(y)
        if self._form != "classes":
            return self._wide_enough(y)
        at = np.searchsorted(self.classes_, y)
        unknown = (at == len(self.classes_)) | (self.classes_[np.minimum(at, len(self.classes_) - 1)] != y)
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            raise DataError(f"y: row {row}: class {y[row : row + 1].tolist()[0]!r} was not in the training", row)
        shape = (len(y), len(self.classes_))
        return self._wide_enough(sp.csr_matrix((np.ones(len(y), np.float32), (np.arange(len(y)), at)), shape=shape))

    def _wide_enough(self, y):
        """Label rows, with columns that no row has where a kind cannot learn so few labels."""
        more = self._least_labels - y.shape[1]
        if more <= 0:
            return y
        return sp.hstack([sp.csr_matrix(y), sp.csr_matrix((y.shape[0], more))], format="csr")


def number_of(y):
    """Rows of labels."""
    return y.shape[0] if hasattr(y, "shape") else len(y)


def is_texts(X):
    """Whether ``X`` is a list, series or array of texts."""
    if isinstance(X, (str, bytes)) or hasattr(X, "columns") or sp.issparse(X) or not hasattr(X, "__len__"):
        return isinstance(X, _native.Input)
    if getattr(X, "ndim", 1) != 1:
        return False
    return len(X) > 0 and isinstance(next(iter(X)), str)


def is_frame_of_texts(X, text_fields):
    """Whether ``X`` is a data frame of which some columns, or the only one, are texts."""
    if not is_frame(X):
        return False
    if text_fields is not None:
        return True
    columns = columns_of(X)
    return len(columns) == 1 and not holds_numbers(columns[0][1])


def is_names(y):
    """Whether ``y`` has a list of label names a row."""
    if isinstance(y, (str, bytes)) or hasattr(y, "columns") or sp.issparse(y) or not hasattr(y, "__len__"):
        return False
    if getattr(y, "ndim", 1) != 1:
        return False
    first = next((row for row in y if not hasattr(row, "__len__") or len(row)), None)
    return isinstance(first, (list, tuple, set, frozenset)) and isinstance(next(iter(first)), str)


class Vectorizer(TransformerMixin, BaseEstimator):
    """Texts as weighted features: the text pipeline of the models, with the same features.

    Parameters are the options ``text.*`` of the program by keyword; None leaves the program's value. Constructors are in
    ``_estimators.py``.

    Attributes
    ----------
    n_features_out_ : features of a row.
    """

    _set = set_all

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def fit(self, X, y=None):
        """Learns which terms are features, and their weights."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X, y=None):
        """The same, and the rows of ``X`` as a CSR matrix of float32."""
        given = self.get_params(deep=False)
        run = running(0, given.pop("threads"), given.pop("max_memory"))
        given.pop("text_fields")
        self._native, arrays = _native.Vectorizer.fit(rows(X, "X", self.text_fields), typed("tree", None, given), run)
        self.n_features_out_ = self._native.n_features
        return self._csr(arrays)

    def transform(self, X):
        """Rows of texts as a CSR matrix of float32, (texts, ``n_features_out_``)."""
        check_is_fitted(self, "n_features_out_")
        return self._csr(self._native.transform(rows(X, "X", self.text_fields), self.threads))

    def _csr(self, arrays):
        indptr, indices, data = arrays
        matrix = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, self.n_features_out_))
        matrix.has_canonical_format = True
        return matrix

    def get_feature_names_out(self, input_features=None):
        """The term of each feature; ``feature 7`` where several terms may be counted by one."""
        check_is_fitted(self, "n_features_out_")
        terms = self._native.terms()
        return np.array([f"feature {i}" if term is None else term for i, term in enumerate(terms)], dtype=object)

    def save(self, folder):
        """Saves it in a folder, as ``xc convert --save-pipeline`` does."""
        check_is_fitted(self, "n_features_out_")
        self._native.save(os.fspath(folder))

    def __getstate__(self):
        state = dict(super().__getstate__())
        native = state.pop("_native", None)
        if native is not None:
            folder = Folder()
            native.save(folder.inside("pipeline"))
            state["_packed"] = packed(folder.inside("pipeline"))
        return state

    def __setstate__(self, state):
        state = dict(state)
        data = state.pop("_packed", None)
        super().__setstate__(state)
        if data is not None:
            folder = unpacked(data, "pipeline")
            self._native = _native.Vectorizer.open(folder.inside("pipeline"))
