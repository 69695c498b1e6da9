"""Estimators of scikit-learn: forms of labels, scores, pipelines, searches, the text pipeline."""

import inspect
import json
import os
import pickle
import subprocess

import numpy as np
import pytest

pytest.importorskip("sklearn")
sp = pytest.importorskip("scipy.sparse")

import xc
from sklearn.base import clone
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from xc import _estimator as estimators
from xc.sklearn import (
    AstraClassifier, DenseClassifier, LnsClassifier, MachClassifier, TextVectorizer, TreeClassifier, UniformClassifier,
)

CLASSIFIERS = [
    TreeClassifier, MachClassifier, DenseClassifier, UniformClassifier, LnsClassifier, AstraClassifier,
]
NETWORKS = CLASSIFIERS[1:]


def quick(kind, **more):
    """An estimator that learns small data in little time."""
    usual = {} if kind is TreeClassifier else {"epochs": 20, "batch": 32, "network_widths": 32}
    return kind(**{"threads": 1, **usual, **more})


def topics(n=240, n_labels=12, width=60, seed=0):
    """Sparse rows of which two topics each set five features, and the topics as labels."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, n_labels), int)
    X = np.zeros((n, width), np.float32)
    for row in range(n):
        of_row = rng.choice(n_labels, 2, replace=False)
        Y[row, of_row] = 1
        for topic in of_row:
            X[row, 5 * topic + rng.choice(5, 3, replace=False)] = 1
    return sp.csr_matrix(X), Y


def texts_of(X):
    """Rows as texts of a word a feature."""
    return [" ".join(f"word{i}" for i in X.indices[a:b]) for a, b in zip(X.indptr, X.indptr[1:])]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_labels_come_back_in_the_form_that_they_had(kind):
    X, Y = topics()
    dense = quick(kind, threshold=0.2).fit(X, Y)
    sparse = quick(kind, threshold=0.2).fit(X, sp.csr_matrix(Y))
    one = quick(kind).fit(X, np.array([f"topic {np.flatnonzero(row)[0]:02}" for row in Y]))

    answer = dense.predict(X)
    assert isinstance(answer, np.ndarray) and answer.shape == Y.shape and set(np.unique(answer)) <= {0, 1}
    assert f1_score(Y, answer, average="micro") > 0.7
    as_csr = sparse.predict(X)
    assert sp.issparse(as_csr) and as_csr.format == "csr"
    assert (as_csr.toarray() == answer).all()
    classes = one.predict(X)
    assert set(classes) <= set(one.classes_) and classes.dtype.kind == "U"
    assert (one.classes_ == np.unique(one.classes_)).all() and len(one.classes_) == 11

    # predict is where decision_function is above 0, in each form.
    scores = dense.decision_function(X)
    assert scores.shape == Y.shape and ((scores > 0) == answer).all()
    in_csr = sparse.decision_function(X)
    assert sp.issparse(in_csr) and ((in_csr > 0).toarray() == answer).all()
    stored = in_csr.toarray() != 0
    assert np.array_equal(scores[stored], in_csr.toarray()[stored])
    margins = one.decision_function(X)
    assert margins.shape == (X.shape[0], len(one.classes_))
    assert (one.classes_[margins.argmax(axis=1)] == classes).mean() > 0.99
    assert one.score(X, classes) == 1.0


def test_scores_are_those_of_the_model():
    X, Y = topics()
    e = TreeClassifier(threads=1, threshold=0.3, top_k=4).fit(X, sp.csr_matrix(Y))
    ranked = e.predict_ranked(X, top_k=4)
    direct = xc.train("tree", X, Y, threads=1).model.predict(X, top_k=4)
    assert np.array_equal(ranked.ids, direct.ids) and np.array_equal(ranked.scores, direct.scores)
    scores = e.decision_function(X)
    assert scores.shape == Y.shape and np.diff(scores.indptr).max() == 4
    row = dict(zip(scores[0].indices.tolist(), scores[0].data.tolist()))
    assert row == {i: np.float64(np.float32(s)) - 0.3 for i, s in ranked[0]}


@pytest.mark.parametrize("kind", [TreeClassifier, LnsClassifier])
def test_names_of_labels_and_texts(kind):
    X, Y = topics()
    texts = texts_of(X)
    names = [[f"topic {label}" for label in np.flatnonzero(row)] for row in Y]
    e = quick(kind, threshold=0.2, options={"text.min-df": 1}).fit(texts, names)
    assert set(e.classes_) == {f"topic {label}" for label in range(12)}
    answer = e.predict(texts)
    assert sp.issparse(answer)
    truth = np.array([[name in row for name in e.classes_] for row in names])
    assert f1_score(truth, answer.toarray(), average="micro") > 0.7
    assert e.predict_ranked(texts[:1], top_k=1)[0][0][0] in e.classes_
    assert e.model_.labels == list(e.classes_)


def test_classes_have_their_names_in_ranked_lists():
    X, Y = topics()
    y = np.array([100 + np.flatnonzero(row)[0] for row in Y])
    e = TreeClassifier(threads=1).fit(X, y)
    best = [row[0][0] for row in e.predict_ranked(X, top_k=1)]
    assert best == e.predict(X).tolist() and min(best) >= 100


def test_many_labels_stay_sparse():
    n_labels = estimators.FEW_LABELS
    n = 2 * n_labels + 10
    y = np.arange(n) % n_labels
    X = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), y)), shape=(n, n_labels))
    dense = np.zeros((n, n_labels), int)
    dense[np.arange(n), y] = 1
    e = TreeClassifier(threads=1, threshold=0.1).fit(X, dense)
    scores = e.decision_function(X)
    assert sp.issparse(scores) and np.diff(scores.indptr).max() <= estimators.USUAL_TOP_K
    assert isinstance(e.predict(X), np.ndarray)
    classes = TreeClassifier(threads=1).fit(X, y)
    assert sp.issparse(classes.decision_function(X)) and classes.predict(X).shape == (n,)


@pytest.mark.parametrize("kind", [TreeClassifier, DenseClassifier])
def test_dense_and_sparse_rows_in_either_order(kind):
    X, Y = topics()
    for fitted, asked in [(X, X.toarray()), (X.toarray(), X)]:
        e = quick(kind, threshold=0.2).fit(fitted, Y)
        other, same = e.predict(asked), e.predict(fitted)
        assert (other == same).all() and f1_score(Y, same, average="micro") > 0.6


def test_a_matrix_of_the_caller_stays_as_it_is():
    X, Y = topics()
    indices = np.concatenate([X.indices, X.indices[-1:]])
    twice = sp.csr_matrix((np.ones(len(indices), np.float32), indices, X.indptr + (np.arange(241) == 240)), shape=X.shape)
    before = twice.indices.copy(), twice.data.copy(), twice.indptr.copy()
    e = TreeClassifier(threads=1).fit(twice, Y)
    e.predict(twice)
    assert all(np.array_equal(a, b) for a, b in zip(before, (twice.indices, twice.data, twice.indptr)))


def test_probabilities_only_where_calibrated():
    X, Y = topics(600)
    plain = TreeClassifier(threads=1).fit(X, Y)
    assert not hasattr(plain, "predict_proba")
    e = TreeClassifier(threads=1, calibration="isotonic", validation_fraction=0.4)
    assert hasattr(e, "predict_proba")
    p = e.fit(X, Y).predict_proba(X)
    assert e.model_.calibrated and p.shape == Y.shape and p.min() >= 0 and p.max() <= 1
    assert abs(p[Y == 1].mean() - 1) < 0.3 and p[Y == 0].mean() < 0.2
    assert 150 < e.calibration_report_["instances"] < 330

    sparse = TreeClassifier(threads=1, calibration="platt", validation_fraction=0.4).fit(X, sp.csr_matrix(Y))
    assert sp.issparse(sparse.predict_proba(X))
    y = np.array([np.flatnonzero(row)[0] for row in Y])
    one = TreeClassifier(threads=1, calibration="platt", validation_fraction=0.4).fit(X, y)
    assert np.allclose(one.predict_proba(X).sum(axis=1), 1)

    half = TreeClassifier(threads=1).fit(X[:300], Y[:300])
    assert half.calibrate(X[300:], Y[300:], held_out=True) is half and half.predict_proba(X).shape == Y.shape
    with pytest.raises(xc.OptionError, match="validation_fraction is expected"):
        TreeClassifier(calibration="platt").fit(X, Y)


def test_parameters_are_settings_of_their_kind():
    for kind in CLASSIFIERS:
        known = xc.settings(kind._kind)
        names = set(inspect.signature(kind.__init__).parameters) - {"self"}
        own = {xc._errors.keyword(row["name"]) for row in known.values() if row["heading"] != "Input options"}
        assert names - set(estimators.OF_ESTIMATOR) == own, kind
        e = kind(seed=3, options={"text.min-df": 1})
        assert e.get_params() == {name: getattr(e, name) for name in names}
        assert clone(e).get_params() == e.get_params()
        assert e.set_params(seed=4).seed == 4
    of_text = {name for name in xc.settings("tree") if name.startswith("text_")}
    others = {"self", "threads", "max_memory"}
    assert of_text | others == set(inspect.signature(TextVectorizer.__init__).parameters)


def test_settings_reach_the_training():
    X, Y = topics()
    usual = TreeClassifier(threads=1).fit(X, Y)
    other = TreeClassifier(threads=1, trees=1, options={"cluster.max-leaf": 4}).fit(X, Y)
    assert usual.report_["settings"]["parameters"]["n_trees"] == 3
    assert other.report_["settings"]["parameters"]["n_trees"] == 1
    assert other.report_["settings"]["parameters"]["cluster"]["max_leaf"] == 4
    with pytest.raises(xc.OptionError, match="linear_cost"):
        TreeClassifier(options={"linear_costs": 1}).fit(X, Y)
    with pytest.raises(xc.OptionError, match="given twice"):
        TreeClassifier(trees=1, options={"trees": 2}).fit(X, Y)


def test_rows_that_judge_and_weights():
    X, Y = topics()
    y = np.array(["ab"[row[0]] for row in Y])
    for truth in (Y, sp.csr_matrix(Y), y):
        e = quick(DenseClassifier, patience=2).fit(X[:200], truth[:200], validation=(X[200:], truth[200:]))
        assert "P@1" in e.report_.metrics
    # Rows of no weight teach nothing.
    weights = np.where(np.arange(240) < 120, 1.0, 0.0)
    e = TreeClassifier(threads=1, trees=1).fit(X, Y, instance_weights=weights)
    assert e.predict(X).shape == Y.shape
    with pytest.raises(xc.DataError, match="class 'c' was not in the training"):
        quick(DenseClassifier).fit(X, y, validation=(X[:2], np.array(["a", "c"])))


@pytest.mark.parametrize(
    "X, y, error, message",
    [
        (["a b", "a c"], None, ValueError, "requires y"),
        (["a b", "a c"], [["x"]], ValueError, "2 texts and y 1 rows"),
        (np.eye(3), [1, 1, 1], ValueError, "one class"),
        (np.eye(3), [[1, 2], [0, 1], [1, 1]], xc.DataError, "0 or 1 is expected"),
        ([[0.0, np.nan]], [1], ValueError, "NaN"),
    ],
)
def test_wrong_rows_and_labels(X, y, error, message):
    with pytest.raises(error, match=message):
        TreeClassifier(threads=1).fit(X, y)


def test_wrong_thresholds():
    X, Y = topics()
    for wrong in ("micro", None, True):
        with pytest.raises(xc.OptionError, match="threshold"):
            TreeClassifier(threads=1, trees=1, threshold=wrong).fit(X, Y).predict(X)


def test_pipeline_cross_validation_and_grid_search():
    X, Y = topics()
    texts = texts_of(X)
    pipeline = make_pipeline(TextVectorizer(text_min_df=1, threads=1), TreeClassifier(threads=1, trees=1))
    score = make_scorer(f1_score, average="micro")
    found = cross_val_score(pipeline, texts, Y, cv=3, scoring=score)
    assert found.shape == (3,) and found.min() > 0.5
    grid = {"treeclassifier__threshold": [0.1, 0.9], "treeclassifier__trees": [1, 2]}
    results, Y = [], sp.csr_matrix(Y)
    for n_jobs in (1, 2):
        search = GridSearchCV(pipeline, grid, cv=2, scoring=score, n_jobs=n_jobs, error_score="raise").fit(texts, Y)
        results.append(search.cv_results_["mean_test_score"])
        assert search.best_params_["treeclassifier__threshold"] == 0.1
        assert (search.predict(texts) - pickle.loads(pickle.dumps(search)).predict(texts)).nnz == 0
    assert np.array_equal(*results) and len(results[0]) == 4


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_pickles_and_clones(kind):
    X, Y = topics(120)
    e = quick(kind).fit(X, Y)
    again = pickle.loads(pickle.dumps(e))
    assert np.array_equal(again.decision_function(X), e.decision_function(X))
    assert again.model_.folder != e.model_.folder
    fresh = clone(e)
    assert not hasattr(fresh, "model_") and np.array_equal(
        fresh.fit(X, Y).decision_function(X), e.decision_function(X)
    )


def test_text_vectorizer_makes_the_features_of_the_models():
    texts = ["the cat sat", "the dog sat", "a dog and a cat"]
    v = TextVectorizer(threads=1)
    rows = v.fit_transform(texts)
    assert v.get_feature_names_out().tolist() == ["cat", "dog", "sat", "the"] and v.n_features_out_ == 4
    assert rows.shape == (3, 4) and rows.dtype == np.float32
    assert np.allclose(np.sqrt(rows.multiply(rows).sum(axis=1)), 1, atol=1e-6)
    assert (v.fit(texts).transform(texts) != rows).nnz == 0
    assert v.transform(["dog unknown"]).toarray().tolist() == [[0, 1, 0, 0]] and v.transform([]).shape == (0, 4)
    again = pickle.loads(pickle.dumps(v))
    assert (again.transform(texts) != rows).nnz == 0
    assert again.get_feature_names_out().tolist() == ["cat", "dog", "sat", "the"]
    folded = TextVectorizer(text_hash=16, threads=1).fit(texts)
    assert folded.get_feature_names_out()[3] == "feature 3" and folded.transform(texts).shape == (3, 16)
    # A model of the rows scores as one of the texts.
    labels = [[0], [1], [0, 1]]
    Y = sp.csr_matrix([[1, 0], [0, 1], [1, 1]])
    of_texts = xc.train("tree", texts, labels, threads=1).model.predict(texts)
    of_rows = xc.train("tree", rows, Y, threads=1).model.predict(rows)
    assert np.allclose(of_texts.scores, of_rows.scores, atol=1e-6) and np.array_equal(of_texts.ids, of_rows.ids)


def test_text_vectorizer_takes_data_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"title": ["red cat", "red dog"], "body": ["blue", "blue"], "n": [1, 2]})
    v = TextVectorizer(text_fields=["title", "body"], threads=1).fit(frame)
    assert v.get_feature_names_out().tolist() == ["blue", "red"]
    e = TreeClassifier(text_fields="title", threads=1, options={"text.min-df": 1}).fit(frame, ["a", "b"])
    assert e.predict(frame).tolist() == ["a", "b"]
    names = frame[["title"]].assign(y=0).columns
    assert list(names) == ["title", "y"]
    numbers = pd.DataFrame(topics()[0].toarray()).add_prefix("f")
    e = TreeClassifier(threads=1, trees=1).fit(numbers, topics()[1])
    assert list(e.feature_names_in_[:2]) == ["f0", "f1"] and e.n_features_in_ == 60


@pytest.mark.parametrize(
    "given, texts, error, message",
    [
        ({"text_ngrams": 0}, ["a b"], xc.OptionError, "text"),
        ({"text_hash": 8, "text_min_df": 2}, ["a b"], xc.OptionError, "cannot be used with"),
        ({}, np.eye(3), TypeError, "a list of texts is expected"),
        ({}, "one text", TypeError, "a list of texts is expected"),
        ({}, [], xc.DataError, "no instance"),
        ({}, ["once", "only"], xc.DataError, "no feature is left"),
        ({}, ["a text", None], xc.DataError, "row 1: a missing value"),
    ],
)
def test_text_vectorizer_refuses(given, texts, error, message):
    with pytest.raises(error, match=message) as raised:
        TextVectorizer(threads=1, **given).fit(texts)
    assert "--" not in str(raised.value)


def test_a_saved_pipeline_is_one_of_the_program(tmp_path):
    program = os.environ.get("XC_PROGRAM")
    if program is None:
        pytest.skip("XC_PROGRAM names no program")
    X, _ = topics()
    texts = texts_of(X)
    v = TextVectorizer(threads=1)
    rows = v.fit_transform(texts)
    v.save(tmp_path / "pipeline")
    lines = (json.dumps({"text": text, "labels": [0]}) for text in texts)
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    command = [
        program, "convert", "--from", "jsonl", "texts.jsonl", "--to", "npz", "rows.npz", "--output-labels", "labels.npz",
        "--pipeline", "pipeline", "--quiet",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (sp.load_npz(tmp_path / "rows.npz") != rows).nnz == 0


@pytest.mark.parametrize("form", ["dense", "sparse", "classes", "names"])
def test_of_no_rows_there_are_no_answers(form):
    X, Y = topics()
    texts = texts_of(X)
    y = {
        "dense": Y, "sparse": sp.csr_matrix(Y), "classes": np.array(["ab"[row[0]] for row in Y]),
        "names": [[f"topic {label}" for label in np.flatnonzero(row)] for row in Y],
    }[form]
    of_texts = TreeClassifier(threads=1, trees=1, options={"text.min-df": 1}).fit(texts, y)
    of_rows = TreeClassifier(threads=1, trees=1).fit(X, y)
    batches = [(of_texts, nothing) for nothing in ([], (), np.array([], object), np.array([], "U3"))]
    batches += [(of_rows, X[:0]), (of_rows, X[:0].toarray())]
    for asked, nothing in batches:
        found = asked.predict(nothing)
        assert found.shape == asked.predict(texts[:1] if asked is of_texts else X[:1]).shape[:0] + (0,) + found.shape[1:]
        assert found.shape[1:] == (() if form == "classes" else (12,))
        assert asked.decision_function(nothing).shape[0] == 0 and len(asked.predict_ranked(nothing)) == 0
    with pytest.raises(ValueError):
        of_rows.fit(X[:0], Y[:0])
    with pytest.raises(TypeError, match="^X: a str; a list of texts is expected"):
        of_texts.predict("one text")


def test_a_frame_of_one_column_of_texts_is_its_texts():
    pd = pytest.importorskip("pandas", reason="no pandas: its frames are not tried")
    X, Y = topics()
    texts = texts_of(X)
    usual = TreeClassifier(threads=1, trees=1, options={"text.min-df": 1})
    expected = usual.fit(texts, Y).predict(texts)
    frames = [pd.DataFrame({"text": texts}), pd.DataFrame({"text": pd.Series(texts, dtype="string")})]
    try:
        frames += [__import__("polars").DataFrame({"text": texts}), __import__("pyarrow").table({"text": texts})]
    except ImportError:
        pass
    for frame in frames:
        made = clone(usual).fit(frame, Y)
        assert (made.predict(frame) == expected).all() and (made.predict(texts) == expected).all()
    # One column of numbers is a feature.
    numbers = pd.DataFrame({"x": np.arange(240) % 2})
    assert TreeClassifier(threads=1, trees=1).fit(numbers, numbers["x"]).score(numbers, numbers["x"]) == 1.0


def test_dense_rows_over_trees_are_not_copied_whole(monkeypatch):
    X, Y = topics()
    e = TreeClassifier(threads=1, trees=1).fit(X, Y)
    expected = e.decision_function(X)
    monkeypatch.setattr(estimators.sp, "csr_matrix", None)
    for dense in (X.toarray(), X.toarray().astype(np.float64), np.asfortranarray(X.toarray())):
        assert np.array_equal(e.decision_function(dense), expected)
