"""Labels that cannot be, options that cannot be, and answers where k and labels are few or many."""

import os
import subprocess

import numpy as np
import pytest
import xc
from program import SMALL, Sparse


@pytest.fixture(scope="module")
def model(data):
    return xc.train("tree", *data.arrays("sparse"), progress=False, validation_fraction=0.3, **SMALL["tree"]).model


@pytest.fixture(scope="module")
def named(data):
    return xc.train("tree", *data.arrays("texts"), progress=False, text_min_df=1, label_names=data.names, **SMALL["tree"]).model


def csr(indptr, indices, values, columns, floats=np.float32):
    return Sparse(np.array(indptr, np.int32), np.array(indices, np.int32), np.array(values, floats), (len(indptr) - 1, columns))


def doors(model, X, Y):
    """Each way into the package with these labels of two rows."""
    yield lambda: xc.train("tree", X, Y, progress=False)
    yield lambda: xc.train("dense", X, Y, progress=False, epochs=1)
    yield lambda: xc.plan("lns", X, Y)
    yield lambda: xc.tune("tree", X, Y, trials=2, progress=False)
    yield lambda: xc.calibrate(model, X, Y, progress=False, output="nowhere")
    yield lambda: xc.evaluate(Y, model.predict(X))


WRONG_LABELS = [
    ("a negative id", [[0], [-1]], xc.DataError, "Y: row 1: label -1; ids from 0 on", 1, None),
    ("beyond 32 bits", [[0], [1 << 32]], xc.DataError, "Y: row 1: label 4294967296; ids from 0 on", 1, None),
    ("a float", [[0], [1.5]], TypeError, "Y: row 1: a label of type float; an int or a str is expected", None, None),
    ("nothing", [[0], [None]], TypeError, "Y: row 1: a label of type NoneType; an int or a str", None, None),
    ("no list", [[0], 1], TypeError, "Y: row 1: a list of labels is expected", None, None),
    ("a missing list", [[0], None], TypeError, "Y: row 1: a list of labels is expected", None, None),
    ("a str for a list", [["a"], "bc"], TypeError, "Y: row 1: a str; a list of labels is expected", None, None),
    ("a str for lists", "abc", TypeError, "Y: a str; a list of lists of labels is expected", None, None),
    ("ids and names", [["a"], [1]], xc.DataError, "Y: row 1: an id, where other rows have names; one of both", 1, None),
    ("a nested list", [[0], [[1]]], TypeError, "Y: row 1: a label of type list; an int or a str", None, None),
    ("marks in one dimension", np.array([True, False]), xc.DataError, "Y: an array of 1 dimensions; a matrix of 0 and 1", None, None),
    ("three dimensions", np.zeros((2, 2, 2), np.int8), xc.DataError, "Y: an array of 3 dimensions; a matrix", None, None),
    ("a 2 in a matrix", np.array([[0, 1], [2, 0]]), xc.DataError, "Y: row 1: 2 in column 0; 0 or 1 is expected", 1, 0),
    ("a half", np.array([[0, 0.5], [1, 0]]), xc.DataError, "Y: row 0: 0.5 in column 1; 0 or 1 is expected", 0, 1),
    ("NaN in a matrix", np.array([[0, np.nan], [1, 0]]), xc.DataError, "Y: row 0: nan in column 1; 0 or 1", 0, 1),
    ("a column too many", csr([0, 1, 2], [0, 13], [1, 1], 13), xc.DataError, "Y: row 1: column 13; columns from 0 to 12", 1, 13),
    ("a negative column", csr([0, 1, 2], [0, -1], [1, 1], 13), xc.DataError, "Y: row 1: column -1; columns from 0", 1, None),
    ("NaN in sparse rows", csr([0, 1, 2], [0, 1], [1, np.nan], 13), xc.DataError, "Y: row 1: value NaN in column 1", 1, 1),
    ("indptr falls", csr([0, 2, 1], [0, 1], [1, 1], 13), xc.DataError, "Y: row 1: indptr says entries 2 to 1", 1, None),
    ("texts as values", csr([0, 1, 2], [0, 1], ["a", "b"], 13, "U1"), xc.DataError, "Y: values of type <U1; numbers", None, None),
]


@pytest.mark.parametrize("what, y, kind, message, row, column", WRONG_LABELS, ids=[case[0] for case in WRONG_LABELS])
def test_labels_that_cannot_be_are_named_everywhere(model, data, tmp_path, monkeypatch, what, y, kind, message, row, column):
    monkeypatch.chdir(tmp_path)
    X = csr([0, 1, 2], [0, 1], [1, 1], 40)
    for call in doors(model, X, y):
        with pytest.raises(kind, match=f"^{message}") as caught:
            call()
        if kind is xc.DataError:
            assert (caught.value.row, caught.value.column) == (row, column)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", [0, 1, 59, 61, 1000])
def test_as_many_rows_of_labels_as_rows_are_expected(model, data, n):
    X, _ = data.arrays("sparse")
    Y = [[0]] * n
    for call in list(doors(model, X, Y))[:5]:
        with pytest.raises(xc.DataError, match=f"^X has 60 rows, and Y has {n}; they must be as many"):
            call()
    with pytest.raises(xc.DataError, match=f"60 lists for {n} rows of true labels"):
        xc.evaluate(Y, model.predict(X))
    with pytest.raises(xc.DataError, match=f"X of validation has 60 rows, and Y of validation has {n}"):
        xc.train("tree", *data.arrays("sparse"), validation=(X, [[0]] * n), progress=False)


def test_no_label_at_all_is_nothing_to_learn_from(data):
    X, _ = data.arrays("sparse")
    for Y in ([[]] * 60, csr([0] * 61, [], [], 5), np.zeros((60, 4), bool)):
        for kind in ("tree", "dense", "mach"):
            with pytest.raises(xc.DataError, match="no instance has a label; at least one label is expected"):
                xc.train(kind, X, Y, progress=False)


def test_an_explicit_0_is_no_label(data, tmp_path):
    from program import kept

    X, Y = data.arrays("sparse")
    # Each row says of one more label that it is none.
    indptr = Y.indptr + np.arange(len(Y.indptr), dtype=np.int32)
    indices = np.insert(Y.indices, Y.indptr[1:], 5)
    for values in (np.float32, np.float64, np.int8, bool):
        with_zeros = Sparse(indptr, indices.copy(), np.insert(Y.data, Y.indptr[1:], 0).astype(values), Y.shape)
        before = with_zeros.indices.tobytes(), with_zeros.data.tobytes()
        folders = tmp_path / f"a-{np.dtype(values).name}", tmp_path / f"b-{np.dtype(values).name}"
        for folder, labels in zip(folders, (Y, with_zeros)):
            xc.train("tree", X, labels, model=folder, threads=1, progress=False, **SMALL["tree"])
        assert kept(folders[0]) == kept(folders[1])
        assert (with_zeros.indices.tobytes(), with_zeros.data.tobytes()) == before


def test_every_form_of_labels_gives_the_same_model(data, tmp_path):
    from program import kept

    X, Y = data.arrays("sparse")
    lists = data.train.labels
    dense = np.zeros(Y.shape, np.int64)
    for row, of_row in enumerate(lists):
        dense[row, of_row] = 1
    forms = {
        "csr": Y, "csr of bool": Sparse(Y.indptr, Y.indices, Y.data.astype(bool), Y.shape),
        "csr of int64": Sparse(Y.indptr.astype(np.int64), Y.indices.astype(np.int64), Y.data.astype(np.int64), Y.shape),
        "0 and 1": dense, "bool": dense.astype(bool), "floats": dense.astype(np.float64), "Fortran": np.asfortranarray(dense),
        # The last label has no instance, so lists do not show it: a list of names says how many there are.
        "unsorted, twice": Sparse(*shuffled(Y), Y.shape),
    }
    for number, (name, form) in enumerate(forms.items()):
        xc.train("tree", X, form, model=tmp_path / str(number), threads=1, progress=False, **SMALL["tree"])
        assert kept(tmp_path / str(number)) == kept(tmp_path / "0"), name
    of_lists = {
        "lists": lists, "tuples": [tuple(of_row) for of_row in lists], "sets": [set(of_row) for of_row in lists],
        "arrays": [np.array(of_row, np.int32) for of_row in lists], "a generator": None,
    }
    for number, (name, form) in enumerate(of_lists.items(), 100):
        form = (of_row for of_row in lists) if form is None else form
        xc.train("tree", X, form, model=tmp_path / str(number), threads=1, progress=False, **SMALL["tree"])
        assert kept(tmp_path / str(number)) == kept(tmp_path / "100"), name


def shuffled(Y):
    """Labels of each row in another order, the first of each twice."""
    indptr, indices = [0], []
    for row in range(len(Y.indptr) - 1):
        own = Y.indices[Y.indptr[row]:Y.indptr[row + 1]]
        indices += [*own[::-1], own[0]]
        indptr.append(len(indices))
    return np.array(indptr, np.int32), np.array(indices, np.int32), np.ones(len(indices), np.float32)


def test_names_that_are_given_say_which_labels_there_are(data, named):
    X, Y = data.arrays("texts")
    assert named.labels == data.names and named.n_labels == len(data.names)
    with pytest.raises(xc.DataError, match="^Y: row 1: label .unheard.: no label has that name"):
        xc.train("tree", X[:2], [["a0000"], ["unheard"]], label_names=data.names, progress=False)
    with pytest.raises(xc.OptionError, match="^label_names: 2 names for 13 labels; one for each is expected"):
        xc.train("tree", *data.arrays("sparse"), label_names=["a", "b"], progress=False)
    for wrong, message in (("a", "label name .a. is given twice, at 0 and 1"), ("", "label 1: .. is empty or has a control"),
                           ("b\n", "label 1: .*control character; a printable name is expected"), ("b\u202e", "label 1: ")):
        for Y in ([["a"]] * len(X), [["a"], [wrong]] * (len(X) // 2)):
            with pytest.raises(xc.DataError, match=f"label names: {message}"):
                xc.train("tree", X, Y, label_names=["a", wrong], progress=False)
        if wrong != "a":
            with pytest.raises(xc.DataError, match="label names: label [01]: .*printable name is expected"):
                xc.train("tree", X, [["a"], [wrong]] * (len(X) // 2), progress=False)


@pytest.mark.parametrize("name", ["candidates", "exclude"])
def test_labels_to_choose_from_that_are_none_of_the_model_are_refused(model, named, data, name):
    X, texts = data.arrays("sparse")[0], data.test.texts
    for value, message in (
        ([13], f"{name}: label 13; ids from 0 on and below 13 are expected"),
        ([-1], f"{name}: label -1; ids from 0 on"),
        (["a0000"], f"{name}: .*a0000"),
        ([[0]] * 59, f"{name}: 59 lists for 60 rows; as many are expected"),
        ([[0]] * 59 + [[13]], f"{name}: row 59: label 13; ids from 0"),
    ):
        with pytest.raises(xc.DataError, match=f"^{message}"):
            model.predict(X, **{name: value})
    with pytest.raises(xc.DataError, match=f"^{name}: label .b.: no label has that name"):
        named.predict(texts, **{name: ["a0000", "b"]})
    for value, message in (("a0000", "a str; a list of labels"), ([1.5], "a label of type float"), (3, ".*")):
        for door in (lambda: named.predict(texts, **{name: value}), lambda: named.predict_one("a", **{name: value})):
            with pytest.raises(TypeError, match=message):
                door()
    # No label is left, or all.
    assert len(model.predict(X, candidates=[]).ids) == 0 if name == "candidates" else True
    assert len(model.predict(X, exclude=list(range(13))).ids) == 0


def test_k_is_at_least_1_and_may_be_above_the_labels(model, named, data):
    X = data.arrays("sparse")[0]
    for k in (13, 14, 1000, 1 << 40):
        ranked = model.predict(X, top_k=k)
        assert np.diff(ranked.indptr).max() <= 13
        assert len(model.predict_one({3: 1.0}, top_k=k)) <= 13
    # Shorter lists are no error, and are filled only where that is asked for, with an id that is none.
    few = model.predict(X, candidates=[[0, 1], [2], []] * 20)
    ids, scores = few.padded(4)
    assert np.diff(few.indptr).tolist() == [2, 1, 0] * 20 and ids.shape == (60, 4)
    assert (ids[2] == -1).all() and np.isnan(scores[2]).all() and few[2] == []
    for door in (lambda **k: model.predict(X, **k), lambda **k: model.predict_one({3: 1.0}, **k)):
        with pytest.raises(xc.OptionError, match="^top_k 0: at least 1 is expected"):
            door(top_k=0)
        for k in (-1, 1.5, "3", None):
            with pytest.raises((TypeError, OverflowError, xc.OptionError)):
                door(top_k=k)


def test_options_of_answers_that_cannot_be_are_refused(model, data):
    X = data.arrays("sparse")[0]
    for options, message in (
        ({"min_score": float("nan")}, "min_score (NaN|nan): a number is expected"),
        ({"min_score": float("inf")}, "min_score inf: a number is expected"),
        ({"min_score": 1.5}, "min_score 1.5: scores of this model are at most 1"),
        ({"threshold": "micro"}, "threshold: the model is not calibrated"),
        ({"threshold": "best"}, "threshold \"best\": micro, macro or label is expected"),
        ({"beam": 0}, "beam 0: at least 1 is expected"),
        ({"beam": -1}, "beam -1: expected a number from 0 on"),
        ({"decoder": "mean"}, "decoder: models of kind \"tree\" have no such option"),
        ({"max_labels": 3}, "max_labels: models of kind \"tree\" have no such option"),
        ({"search_width": 0.5}, "search_width: "),
        ({"cells": 3}, "cells: "),
    ):
        for door in (lambda: model.predict(X, **options), lambda: model.predict_one({3: 1.0}, **options)):
            with pytest.raises(xc.OptionError, match=f"^{message}") as caught:
                door()
            assert caught.value.option == next(iter(options))
    for threads in (0, 5000):
        with pytest.raises(xc.OptionError, match=f"^threads {threads}: between 1 and 4096 are expected"):
            model.predict(X, threads=threads)
    for door in (lambda: model.predict(X, beem=3), lambda: model.predict_one({3: 1.0}, topk=3)):
        with pytest.raises(xc.OptionError, match="a search has no such option"):
            door()


def test_options_of_fitting_that_cannot_be_are_refused(model, data, tmp_path):
    X, Y = data.arrays("sparse")
    fit = {"held_out": True, "output": tmp_path / "c", "progress": False}
    for options, message in (
        ({"method": "spline"}, "method spline: expected isotonic or platt"),
        ({"top_k": 0}, "top_k 0: at least 1 is expected"), ({"folds": 1}, ".*folds.*2"), ({"threads": 0}, "threads 0"),
    ):
        with pytest.raises((xc.OptionError, xc.DataError), match=f"^{message}"):
            xc.calibrate(model, X, Y, **{**fit, **options})
    other = xc.train("dense", X, Y, progress=False, validation_fraction=0.3, **SMALL["dense"]).model
    for options, message in (
        ({"rule": "vote"}, "rule vote: expected "), ({"rule": "logistic", "hidden": 3}, "hidden has no effect here: add rule net \\(or no rule\\)"),
        ({"rule": "logistic", "networks": 3}, "networks has no effect here: add rule net"), ({"folds": 0}, ".*folds.*2"),
        ({"hidden": 0}, ".*hidden.*1"),
    ):
        with pytest.raises((xc.OptionError, xc.DataError), match=f"^{message}"):
            xc.blend([model, other], X, Y, **{**fit, **options})
    with pytest.raises(xc.OptionError, match="^members: at least two models are expected"):
        xc.blend([], X, Y, **fit)
    with pytest.raises((xc.OptionError, xc.DataError), match="label"):
        wide = xc.train("dense", X, csr([0, *[1] * 60], [20], [1], 21), progress=False, epochs=1).model
        xc.blend([model, wide], X, Y, **fit)
    assert not (tmp_path / "c").exists()


def test_options_of_an_index_that_cannot_be_are_refused(data):
    vectors = data.train.vectors
    for options, message in (
        ({"metric": "dot"}, "metric: l2, cosine or ip is expected"), ({"degree": 0}, ".*degree"),
        ({"top_k": 0}, "top_k 0: at least 1 is expected"), ({"min_recall": 2.0}, "min_recall 2: a share from 0 to 1"),
        ({"target_recall": -1.0}, ".*recall"), ({"factor": float("nan")}, ".*factor"), ({"passes": 0}, ".*pass"),
        ({"threads": 0}, "threads 0: between 1"), ({"fit_queries": vectors[:, :3]}, "fit_queries: vectors of 3 values"),
    ):
        with pytest.raises((xc.OptionError, xc.DataError), match=f"^{message}"):
            xc.index(vectors, **{"metric": "l2", **options})
    built = xc.index(vectors, "l2")
    for options, message in (
        ({"top_k": 0}, "top_k 0: at least 1"), ({"filter": [60]}, "filter: row 60; rows from 0 and below 60"),
        ({"filter": [-1]}, "filter: row -1"), ({"filter": np.zeros(3, bool)}, "filter: .* values; one for each of the 60"),
        ({"filter": [0.5]}, "filter: .*"), ({"filter": "ab"}, "filter: .*"), ({"threads": 0}, "threads 0: between 1 and 4096"),
        ({"cells": 0}, "cells"), ({"search_width": -2.0}, "search_width|search width"),
        ({"exact": True, "cells": 2}, "exact: cannot be used with"),
        ({"search_width": 0.1, "cells": 2}, "search_width: cannot be used with cells"),
    ):
        with pytest.raises((xc.OptionError, xc.DataError, TypeError), match=f"^{message}"):
            built.search(vectors[:2], **options)
    with pytest.raises(xc.DataError, match="^q: vectors of 3 values; the index has 8"):
        built.search(vectors[:, :3])
    for rows in ([60], [-1], [0.5], ["a"], 1 << 40):
        with pytest.raises(xc.DataError, match="^rows: "):
            built.delete(rows)
    with pytest.raises(xc.DataError, match="^vectors: .*values"):
        built.insert(vectors[:, :3])
    with pytest.raises(xc.DataError, match="^vectors: .*60"):
        built.refresh(vectors[:3])
    with pytest.raises(xc.DataError, match="^fit_queries: vectors of 3 values; the index has 8"):
        built.refresh(vectors, fit_queries=vectors[:, :3])
    with pytest.raises(xc.OptionError, match="^policy: codes, search"):
        built.refresh(vectors, policy="all")
    assert len(built) == 60 and len(built.search(vectors[:2]).ids) == 20
    # Fewer vectors than neighbours, none, one.
    assert len(xc.index(vectors[:1], "l2").search(vectors[:2], top_k=10).ids) == 2
    nothing = xc.index(vectors[:0], "l2")
    assert len(nothing.search(vectors[:2]).ids) == 0
    assert nothing.insert(vectors[:5]).tolist() == [0, 1, 2, 3, 4] and len(nothing.search(vectors[:2]).ids) == 10


def test_options_of_an_evaluation_that_cannot_be_are_refused(model, data):
    X, Y = data.arrays("sparse")
    ranked = model.predict(X)
    for options, message in (
        ({"k": ()}, "k '': expected"), ({"k": (0,)}, "k: "), ({"k": "a"}, "k a: expected"),
        ({"threshold": "worst"}, "threshold worst: .*a number or best"), ({"propensity_a": 0.5}, "propensity_a has no effect here"),
        ({"threshold": float("nan")}, ".*threshold|.*NaN"), ({"level": 2.0, "intervals": True}, "resamples, level: "),
        ({"resamples": 5}, "resamples has no effect here"), ({"weights": [1.0]}, ".*weights"),
        ({"propensity_from": [[]] * 3, "propensity_a": -1.0}, ".*"), ({"compare": model.predict(Sparse(
            *(a for a in (X.indptr[:2], X.indices[:X.indptr[1]], X.data[:X.indptr[1]])), (1, 40)))}, "compare: 1 lists"),
    ):
        with pytest.raises((xc.OptionError, xc.DataError, ValueError), match=f"^{message}"):
            xc.evaluate(Y, ranked, **options)
    with pytest.raises(TypeError, match="^ranked: int; what a model predicts"):
        xc.evaluate(Y, 3)
    with pytest.raises(xc.OptionError, match="^ranked: ids of shape"):
        xc.evaluate(Y, (np.zeros((60, 2), int), np.zeros((60, 3))))


def test_what_a_conversion_cannot_do_is_refused_by_its_keyword(tmp_path):
    rows, labels = np.eye(6, dtype=np.float32), [[row % 3] for row in range(6)]
    model = xc.train("tree", rows, labels, model=tmp_path / "m", tree_branching=2).model
    for options, message in (
        ({"precision": "f64"}, "precision f64: expected f32, f16 or bf16"),
        ({"trees": 0}, "trees 0: 1 or more is expected"),
        ({"wide": True}, "wide on: expected off"),
        ({"wide": False}, ".*a model of kind \"tree\" has no wide to change"),
        ({"post_processor": "softmax"}, "post_processor softmax: unknown post-processor"),
        ({"n_labels": 3}, "n_labels has no effect here"),
        ({"width": False}, "width: a conversion has no such option"),
        ({"source_format": "pecos", "trees": 1}, "trees has no effect with source_format"),
        ({"source_format": "pecos", "keep_labels": [0]}, "keep_labels has no effect with source_format"),
    ):
        with pytest.raises(xc.XcError, match=f"^{message}"):
            xc.convert(model if "source_format" not in options else "absent", tmp_path / "c", **options)
        assert not (tmp_path / "c").exists(), options
    assert xc.convert(model, tmp_path / "c", precision="bf16", wide=None, trees=1.0).kind == "tree"


def test_a_model_of_another_system_takes_names_for_its_labels(tmp_path):
    program = os.environ.get("XC_PROGRAM")
    if program is None:
        pytest.skip("XC_PROGRAM is not set: models of other systems are written by the program")
    rows, labels = np.eye(6, dtype=np.float32), [[row % 3] for row in range(6)]
    xc.train("tree", rows, labels, model=tmp_path / "m", tree_branching=2, trees=1)
    subprocess.run([program, "convert", "--from", "xc", tmp_path / "m", "--to", "pecos", tmp_path / "p", "--quiet"], check=True)
    with pytest.raises(xc.XcError, match="label_names: 2 names for 3 labels; one a label is expected"):
        xc.convert(tmp_path / "p", tmp_path / "c", source_format="pecos", n_labels=3, label_names=["a", "b"])
    named = xc.convert(tmp_path / "p", tmp_path / "c", source_format="pecos", label_names=["a", "b", "c"], precision="f16")
    assert named.labels == ["a", "b", "c"]
