"""Where labels are asked for by id, they may be asked for by name: every method, every form of lists."""

import numpy as np
import pytest
import xc
from program import SMALL

NAMES = ["audio", "mail", "library", "reader"]
N = 40


@pytest.fixture(scope="module")
def named():
    """A model whose labels have names, its instances, and the ids and names of their labels."""
    draw = np.random.default_rng(0)
    ids = [[row % 4, (row // 4) % 4] if row % 4 != (row // 4) % 4 else [row % 4] for row in range(N)]
    X = np.array([[label in row for label in range(4)] for row in ids], np.float32) + 0.1 * draw.random((N, 4), np.float32)
    names = [[NAMES[label] for label in row] for row in ids]
    model = xc.train("dense", X, ids, label_names=NAMES, progress=False, threads=1, wide="off", batch=8).model
    return model, X, ids, names


def same(ours, theirs):
    assert ours.indptr.tolist() == theirs.indptr.tolist()
    assert ours.ids.tobytes() == theirs.ids.tobytes() and ours.scores.tobytes() == theirs.scores.tobytes()


def forms(lists):
    """Lists a row in the forms that are taken."""
    yield lists
    yield tuple(map(tuple, lists))
    yield [np.array(row) for row in lists]
    array = np.empty(len(lists), object)
    array[:] = lists
    yield array
    for name in ("pandas", "polars"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        yield module.Series(lists)
    try:
        import pyarrow
    except ImportError:
        return
    yield pyarrow.array(lists)


@pytest.mark.parametrize("keyword", ["candidates", "exclude"])
def test_lists_of_a_prediction_may_be_names(named, keyword):
    model, X, ids, names = named
    own = model.predict(X, 4, **{keyword: ids})
    for form in forms(names):
        same(model.predict(X, 4, **{keyword: form}), own)
    # For all rows the same, and for one query.
    for form in (NAMES[1:3], tuple(NAMES[1:3]), np.array(NAMES[1:3]), set(NAMES[1:3])):
        same(model.predict(X, 4, **{keyword: form}), model.predict(X, 4, **{keyword: [1, 2]}))
        assert model.predict_one(X[0], 4, **{keyword: form}) == model.predict_one(X[0], 4, **{keyword: [1, 2]})


def test_true_labels_may_be_names_wherever_they_are_judged_by(named, tmp_path):
    model, X, ids, names = named
    found = model.predict(X, 4)
    by_id = xc.evaluate(ids, found, propensity_from=ids)
    for form in forms(names):
        assert xc.evaluate(form, found, propensity_from=form) == by_id
    other = X + np.float32(0.01)
    second = xc.train("dense", X, ids, label_names=NAMES, progress=False, threads=1, wide="off", batch=8, seed=1).model
    fits = [
        lambda Y, out: xc.calibrate(model, other, Y, output=out).report,
        lambda Y, out: xc.blend([model, second], other, Y, rule="reciprocal-ranks", output=out).report,
    ]
    for number, fit in enumerate(fits):
        reports = [fit(Y, tmp_path / f"{number}-{which}") for which, Y in enumerate((ids, names))]
        assert reports[0]["instances"] == reports[1]["instances"] == N
        assert str(reports[0]) == str(reports[1])
    assert model.explain(X[0], "mail") == model.explain(X[0], 1)
    tree = xc.train("tree", X, ids, label_names=NAMES, progress=False, **SMALL["tree"]).model
    kept = [xc.convert(tree, tmp_path / f"kept-{at}", keep_labels=of) for at, of in enumerate(([1, 3], ["mail", "reader"]))]
    same(kept[0].predict(X), kept[1].predict(X))


def test_predicted_labels_may_be_names(named):
    model, X, ids, names = named
    found = model.predict(X, 3)
    scores = [[score for _, score in row] for row in found]
    numbers = [found.ids[a:b].tolist() for a, b in zip(found.indptr, found.indptr[1:])]
    expected = xc.evaluate(ids, found)
    # Without a dictionary labels are in another order, and so are the terms of sums.
    judged = xc.evaluate(names, (found.names(), scores))
    assert {name for name in judged} == set(expected)
    for name, value in expected.items():
        assert judged[name] == (value if isinstance(value, dict) else pytest.approx(value, rel=1e-12)), name
    assert xc.evaluate(names, (found.names(), scores), label_names=NAMES) == expected
    assert xc.evaluate(ids, (numbers, scores)) == expected
    # Lists that differ in length, and a label that nobody knows.
    shorter = [row[: 1 + at % 3] for at, row in enumerate(found.names())]
    cut = [row[: 1 + at % 3] for at, row in enumerate(scores)]
    assert xc.evaluate(names, (shorter, cut))["P@1"] == expected["P@1"]
    unheard = [["unheard"] for _ in range(N)]
    assert xc.evaluate(names, (unheard, [[1.0]] * N))["P@1"] == 0
    compared = xc.evaluate(names, (found.names(), scores), compare=(unheard, [[1.0]] * N))
    assert compared["P@1"] == expected["P@1"]
    with pytest.raises(xc.DataError, match="ranked: row 1: 2 labels and 1 scores; as many are expected"):
        xc.evaluate(names[:2], ([["mail"], ["mail", "audio"]], [[1.0], [1.0]]))
    with pytest.raises(xc.OptionError, match="ranked: 2 lists and 1 of scores; as many are expected"):
        xc.evaluate(names[:2], ([["mail"], ["audio"]], [[1.0]]))


def test_estimators_score_lists_of_names(named):
    pytest.importorskip("sklearn", reason="no scikit-learn: its estimators are not tried")
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
    from xc.sklearn import DenseClassifier

    _, X, ids, names = named
    marks = np.array([[label in row for label in range(4)] for row in ids], int)
    # Classes are sorted.
    order = [NAMES.index(name) for name in sorted(NAMES)]
    estimator = DenseClassifier(threads=1, wide="off", batch=8)
    fitted = estimator.fit(X, names)
    score = fitted.score(X, names)
    assert score == accuracy_score(marks[:, order], fitted.predict(X).toarray()) > 0.5
    assert fitted.score(X, [[*row, "unheard"] for row in names]) == 0
    assert fitted.score(X, names, sample_weight=np.arange(N)) <= 1
    assert len(cross_val_score(estimator, X, names, cv=KFold(2))) == 2
    assert GridSearchCV(estimator, {"epochs": [1, 2]}, cv=KFold(2)).fit(X, names).best_params_["epochs"] in (1, 2)
