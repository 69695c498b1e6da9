"""Rows and labels that cannot be: one line that says what, where and what is expected; nothing is changed or guessed.

Every case goes through every door that takes rows: training, prediction, calibration, evaluation.
"""

import hashlib
import logging
import re

import numpy as np
import pytest
import xc
from program import SMALL, Sparse

KINDS = ("tree", "dense")


@pytest.fixture(scope="module")
def model(data):
    """A model of sparse rows."""
    return xc.train("tree", *data.arrays("sparse"), progress=False, validation_fraction=0.3, **SMALL["tree"]).model


@pytest.fixture(scope="module")
def of_vectors(data):
    """A model of vectors."""
    return xc.train("dense", *data.arrays("vectors"), progress=False, validation_fraction=0.3, **SMALL["dense"]).model


@pytest.fixture(scope="module")
def of_texts(data):
    """A model of texts, with names of labels."""
    return xc.train(
        "tree", *data.arrays("texts"), progress=False, validation_fraction=0.3, text_min_df=1, **SMALL["tree"]
    ).model


def sparse(indptr, indices, values, width=40, ints=np.int32, floats=np.float32):
    """Sparse rows as they are written here."""
    return Sparse(
        np.array(indptr, ints), np.array(indices, ints), np.array(values, floats), (len(indptr) - 1, width)
    )


def name_in(door, x):
    """What messages call the rows: one that is explained is a query."""
    return "query" if door == "explain" and x.shape[0] == 1 else "X"


def all_doors(x, model, width=None):
    """Each way into the package with these rows."""
    n = x.shape[0] if hasattr(x, "shape") else len(x)
    y = [[0]] * n
    yield "predict", lambda: model.predict(x)
    yield "explain", lambda: model.explain(x, 0) if n == 1 else model.predict(x)
    yield "calibrate", lambda: xc.calibrate(model, x, y, progress=False, output="nowhere")
    for kind in KINDS:
        yield f"train {kind}", lambda kind=kind: xc.train(kind, x, y, progress=False, epochs=1) if kind != "tree" else (
            xc.train(kind, x, y, progress=False)
        )
    yield "plan", lambda: xc.plan("tree", x, y)
    yield "tune", lambda: xc.tune("tree", x, y, trials=2, progress=False)


def digest(*arrays):
    """What the caller's arrays hold."""
    return [hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() for array in arrays]


WRONG_ROWS = [
    ("NaN", sparse([0, 1, 2], [0, 5], [1, np.nan]), "row 1: value NaN in column 5; finite numbers are expected", 1, 5),
    ("infinity", sparse([0, 0, 2], [3, 1], [1, np.inf]), "row 1: value inf in column 1; finite", 1, 1),
    ("minus infinity", sparse([0, 2], [3, 1], [-np.inf, 1]), "row 0: value -inf in column 3; finite", 0, 3),
    ("too large for f32", sparse([0, 1], [3], [1e300], floats=np.float64), "row 0: value inf in column 3", 0, 3),
    ("twice", sparse([0, 1, 3], [0, 7, 7], [1, 1, 2]), r"row 1: column 7 stands twice; X.sum_duplicates\(\)", 1, 7),
    ("twice, far apart", sparse([0, 3], [7, 1, 7], [1, 1, 2]), "row 0: column 7 stands twice", 0, 7),
    ("beyond the columns", sparse([0, 1, 2], [0, 40], [1, 1]), "row 1: column 40; columns from 0 to 39", 1, 40),
    ("negative", sparse([0, 1, 2], [0, -1], [1, 1]), "row 1: column -1; columns from 0 to 39", 1, None),
    ("negative, int64", sparse([0, 1, 2], [0, -1], [1, 1], ints=np.int64), "row 1: column -1; columns", 1, None),
    ("beyond 32 bits", sparse([0, 1], [1 << 40], [1], ints=np.int64), f"row 0: column {1 << 40}; columns", 0, None),
    ("indptr falls", sparse([0, 2, 1], [0, 1], [1, 1]), "row 1: indptr says entries 2 to 1 of 2", 1, None),
    ("indptr too far", sparse([0, 1, 9], [0, 1], [1, 1]), "row 1: indptr says entries 1 to 9 of 2", 1, None),
    ("indptr negative", sparse([0, -1, 2], [0, 1], [1, 1]), "row 0: indptr says entries 0 to -1 of 2", 0, None),
]


@pytest.mark.parametrize("what, x, message, row, column", WRONG_ROWS, ids=[case[0] for case in WRONG_ROWS])
def test_a_row_that_cannot_be_is_named_everywhere(model, tmp_path, monkeypatch, what, x, message, row, column):
    monkeypatch.chdir(tmp_path)
    before = digest(x.indptr, x.indices, x.data)
    for door, call in all_doors(x, model):
        with pytest.raises(xc.DataError, match=f"^{name_in(door, x)}: {message}") as caught:
            call()
        assert (caught.value.row, caught.value.column) == (row, column), door
        assert "\n" not in str(caught.value)
    assert digest(x.indptr, x.indices, x.data) == before
    assert list(tmp_path.iterdir()) == []


def vectors(change):
    """Vectors with one change."""
    x = np.linspace(-1, 1, 60 * 8, dtype=np.float32).reshape(60, 8)
    change(x)
    return x


@pytest.mark.parametrize("value, said", [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_vector_that_cannot_be_is_named_everywhere(of_vectors, tmp_path, monkeypatch, value, said):
    monkeypatch.chdir(tmp_path)
    x = vectors(lambda x: x.__setitem__((41, 3), value))
    before = digest(x)
    for door, call in all_doors(x, of_vectors):
        with pytest.raises(xc.DataError, match=f"^X: row 41: value {said} in column 3; finite numbers are expected") as caught:
            call()
        assert (caught.value.row, caught.value.column) == (41, 3), door
    with pytest.raises(xc.DataError, match=f"^vectors: row 41: value {said} in column 3"):
        xc.index(x, "l2")
    built = xc.index(np.nan_to_num(x, nan=0, posinf=0, neginf=0), "l2")
    with pytest.raises(xc.DataError, match=f"^q: row 41: value {said} in column 3"):
        built.search(x)
    assert digest(x) == before and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", [None, float("nan"), 3, b"bytes", ["a"], np.nan])
def test_a_text_that_is_none_is_named_by_its_row(of_texts, data, missing):
    texts = list(data.train.texts)
    texts[17] = missing
    for x in (texts, np.array(texts, dtype=object)):
        for door, call in all_doors(x, of_texts):
            with pytest.raises(xc.DataError, match=r"^X: row 17: a (missing )?value.*; a str is expected") as caught:
                call()
            assert caught.value.row == 17, door


NOT_ROWS = [
    ("a str", "some text", "X: a str; a list of texts is expected"),
    ("bytes", b"some text", "X: a str; a list of texts is expected"),
    ("a number", 3, "X: int; a sparse matrix, a 2-D array of floats, a list of str or a DataFrame is expected"),
    ("nothing", None, "X: NoneType; a sparse matrix"),
    ("one dimension", np.zeros(8, np.float32), "X: an array of 1 dimensions?; 2 are expected"),
    ("three dimensions", np.zeros((2, 2, 2), np.float32), "X: an array of 3 dimensions; 2 are expected"),
    ("complex", np.zeros((2, 2), np.complex64), "X: .*complex64.*expected"),
    ("dates", np.zeros((2, 2), "datetime64[s]"), "X: .*datetime64.*expected"),
    ("objects", np.array([[1, 2], [3, "x"]], dtype=object), "X: .*object.*expected"),
    ("a record", np.zeros(3, [("a", "f4")]), "X: .*expected"),
    ("rows of other lengths", [[1.0, 2.0], [3.0]], "X: rows of different lengths"),
]


@pytest.mark.parametrize("what, x, message", NOT_ROWS, ids=[case[0] for case in NOT_ROWS])
def test_what_is_no_rows_is_refused_everywhere(model, what, x, message):
    for call in (
        lambda: model.predict(x), lambda: xc.train("tree", x, [[0], [1]], progress=False),
        lambda: xc.plan("dense", x, [[0], [1]]), lambda: xc.calibrate(model, x, [[0], [1]], progress=False),
    ):
        with pytest.raises((xc.DataError, TypeError), match=f"^{message}") as caught:
            call()
        assert not isinstance(caught.value, xc.DefectError) and "\n" not in str(caught.value)


def same_answers(ranked, other):
    return (
        np.array_equal(ranked.indptr, other.indptr) and np.array_equal(ranked.ids, other.ids)
        and ranked.scores.tobytes() == other.scores.tobytes()
    )


DTYPES = ["f2", "f4", "f8", "g", ">f4", ">f8", "i1", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", "?"]


def layouts(array):
    """The same numbers in every layout."""
    yield "C order", np.ascontiguousarray(array)
    yield "Fortran order", np.asfortranarray(array)
    wide = np.zeros((array.shape[0] * 2, array.shape[1] * 2), array.dtype)
    wide[::2, ::2] = array
    yield "strides", wide[::2, ::2]
    yield "negative strides", np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]
    shifted = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    shifted[...] = array
    yield "not aligned", shifted
    fixed = array.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_of_any_type_and_layout_are_the_same_vectors(of_vectors, tmp_path, dtype):
    numbers = np.random.default_rng(1).integers(0, 2, (20, 8)).astype(dtype)
    expected = of_vectors.predict(numbers.astype(np.float32), top_k=13)
    assert len(expected.ids) == 20 * 13
    for layout, x in layouts(numbers):
        before = digest(x)
        assert same_answers(of_vectors.predict(x, top_k=13), expected), layout
        assert digest(x) == before, layout
    np.save(tmp_path / "x.npy", numbers)
    assert same_answers(of_vectors.predict(np.load(tmp_path / "x.npy", mmap_mode="r"), top_k=13), expected)
    assert same_answers(of_vectors.predict(numbers.tolist(), top_k=13), expected)
    assert same_answers(of_vectors.predict(list(numbers), top_k=13), expected)
    for row in range(3):
        assert of_vectors.predict_one(numbers[row].astype(np.float32), top_k=13) == expected[row]
        assert of_vectors.predict_one(numbers[row], top_k=13) == expected[row], dtype


@pytest.mark.parametrize("values", DTYPES)
@pytest.mark.parametrize("ints", ["i4", "i8", "u4", "u2", ">i4", ">i8"])
def test_sparse_rows_of_any_type_are_the_same_rows(model, data, values, ints):
    part = data.test
    whole = np.ones_like(part.values) if values in ("?", "i1", "u1") else np.ceil(part.values)
    rows = (part.indptr, part.indices, whole)
    expected = model.predict(Sparse(*rows, part.sparse.shape), top_k=13)
    changed = Sparse(part.indptr.astype(ints), part.indices.astype(ints), whole.astype(values), part.sparse.shape)
    before = digest(changed.indptr, changed.indices, changed.data)
    assert same_answers(model.predict(changed, top_k=13), expected)
    # Every second element of arrays of twice the length.
    strided = Sparse(
        *(np.repeat(array, 2)[::2] for array in (changed.indptr, changed.indices, changed.data)), part.sparse.shape
    )
    assert same_answers(model.predict(strided, top_k=13), expected)
    for array in (changed.indptr, changed.indices, changed.data):
        array.flags.writeable = False
    assert same_answers(model.predict(changed, top_k=13), expected)
    assert digest(changed.indptr, changed.indices, changed.data) == before


@pytest.mark.parametrize("of", ["indptr", "indices"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "?", "O", "c8"])
def test_indices_that_are_no_integers_are_refused(model, data, of, dtype):
    parts = {"indptr": data.test.indptr, "indices": data.test.indices}
    parts[of] = parts[of].astype(dtype)
    x = Sparse(parts["indptr"], parts["indices"], data.test.values, data.test.sparse.shape)
    with pytest.raises(xc.DataError, match=f"^X.{of}: an array of .*; integers are expected"):
        model.predict(x)


def test_values_that_are_no_numbers_are_refused(model, data):
    for dtype in ("O", "c8", "S3", "U3"):
        x = Sparse(data.test.indptr, data.test.indices, data.test.values.astype(dtype), data.test.sparse.shape)
        with pytest.raises(xc.DataError, match="^X: values of type .*; numbers are expected"):
            model.predict(x)


def test_arrays_that_do_not_belong_together_are_refused(model, data):
    part = data.test
    for x, message in (
        (Sparse(part.indptr, part.indices[:-1], part.values, part.sparse.shape), "X: .* indices and .* values"),
        (Sparse(part.indptr[:0], part.indices, part.values, part.sparse.shape), "X.indptr: 0 values; 21 for 20 rows"),
        (Sparse(part.indptr + 1, part.indices, part.values, part.sparse.shape), "X.indptr: 21 values, the first 1; .*of 0"),
        (Sparse(part.indptr, part.indices, part.values, (20,)), "X: 1 dimensions; 2 are expected"),
        (Sparse(part.indptr, part.indices, part.values, (19, 40)), "X.indptr: 21 values, the first 0; 20 for 19 rows"),
        (Sparse(part.indptr.reshape(1, -1), part.indices, part.values, part.sparse.shape), "X.indptr: .*dimensions"),
        (Sparse(part.indptr, part.indices, part.values.reshape(1, -1), part.sparse.shape), "X.data: .*dimensions"),
        (Sparse(part.indptr, part.indices, part.values, (20, -1)), "X: -1 columns; 0 or more"),
        (Sparse(part.indptr, part.indices, part.values, (20, 1 << 33)), "X: 8589934592 columns; .*fewer than 2\\^32"),
    ):
        with pytest.raises(xc.DataError, match=f"^{message}"):
            model.predict(x)


def test_rows_of_another_width_are_refused(model, of_vectors, data):
    part = data.test
    with pytest.raises(xc.DataError, match="^X: .*39"):
        # The width is part of what is known of rows, whether or not the last column is used.
        model.predict(Sparse(*(np.array(a, np.int32) for a in ([0, 1], [0])), np.ones(1, np.float32), (1, 39)))
    for x in (np.zeros((3, 7), np.float32), np.zeros((3, 9), np.float32)):
        with pytest.raises(xc.DataError, match=f"^X: .*{x.shape[1]} values; the model takes 8"):
            of_vectors.predict(x)
        with pytest.raises(xc.DataError, match=f"^query: .*{x.shape[1]} values; the model takes 8"):
            of_vectors.predict_one(x[0])
    with pytest.raises(xc.DataError, match="^X: row 0: the query is text; the model takes"):
        model.predict(["a text"])
    assert part.sparse.shape[1] == model.n_features


def test_no_rows_are_no_answers_and_no_training(model, of_vectors, of_texts):
    nothing = sparse([0], [], [])
    for asked, x in ((model, nothing), (of_vectors, np.zeros((0, 8), np.float32)), (of_texts, [])):
        ranked = asked.predict(x)
        assert len(ranked) == 0 and ranked.indptr.tolist() == [0] and ranked.names() == []
        assert ranked.padded()[0].shape == (0, 0) and ranked.padded(3)[0].shape == (0, 3)
        for kind in KINDS:
            with pytest.raises(xc.DataError, match="0 rows and 0 rows of labels; they must be as many, at least 1"):
                xc.train(kind, x, [], progress=False)


def test_rows_without_an_entry_and_entries_of_0_are_rows(model):
    with_zeros = sparse([0, 0, 2, 4], [1, 3, 5, 2], [0, 1, 0, 0])
    without = sparse([0, 0, 1, 1], [3], [1])
    before = digest(with_zeros.indptr, with_zeros.indices, with_zeros.data)
    assert same_answers(model.predict(with_zeros), model.predict(without))
    assert digest(with_zeros.indptr, with_zeros.indices, with_zeros.data) == before
    unsorted, ordered = sparse([0, 3], [9, 2, 4], [1, 2, 3]), sparse([0, 3], [2, 4, 9], [2, 3, 1])
    assert same_answers(model.predict(unsorted), model.predict(ordered))
    assert unsorted.indices.tolist() == [9, 2, 4]
    assert model.predict_one({}) == model.predict_one(([], [])) == model.predict(sparse([0, 0], [], []))[0]
    assert model.predict_one({3: 0.0, 4: 1}) == model.predict_one({4: 1.0})


ONE = [
    ({-1: 1.0}, "query: .*-1.*an id from 0 on is expected"),
    ({40: 1.0}, "query: feature 40.*the model has 40 features"),
    ({1 << 40: 1.0}, "query: .*an id from 0 on is expected"),
    ({"a": 1.0}, "query: .*an id from 0 on is expected"),
    ({1.5: 1.0}, "query: .*an id from 0 on is expected"),
    ({1: "x"}, "query: .*a number is expected"),
    ({1: float("nan")}, "query: value NaN in column 1; finite numbers are expected"),
    ({1: float("inf")}, "query: value inf in column 1; finite"),
    ({1: 1e300}, "query: value inf in column 1; finite"),
    (([1, 1], [1.0, 2.0]), "query: id 1 stands twice"),
    (([1, 2], [1.0]), "query: 2 ids and 1 values; as many are expected"),
    (([-3], [1.0]), "query: ids: .*-3.*an id from 0 on is expected"),
    (([0.5], [1.0]), "query: ids: "),
    ((["a"], [1.0]), "query: ids: "),
    (([3], [np.nan]), "query: value NaN in column 3"),
    ((np.array([50], np.int32), np.array([1], np.float32)), "query: feature 50"),
    ("a text", "query: the query is text; the model takes"),
    (b"bytes", "query: "),
    (None, "query: a str, {id: value}, \\(ids, values\\) or a vector is expected"),
    (3, "query: a str, {id: value}"),
    (object(), "query: a str, {id: value}"),
    ([np.nan] * 40, "query: value NaN in column 0"),
    ([1.0] * 39, "query: .*39 .*40"),
    (np.zeros((1, 40), np.float32), "query: "),
]


@pytest.mark.parametrize("query, message", ONE)
def test_one_query_that_cannot_be_is_refused(model, query, message):
    with pytest.raises((xc.DataError, TypeError), match=f"^{message}"):
        model.predict_one(query)
    # The model still answers.
    assert model.predict_one({3: 1.0})


def test_one_query_may_be_any_array(of_vectors, model):
    vector = np.arange(8, dtype=np.float32)
    expected = of_vectors.predict_one(vector)
    wide = np.zeros(16, np.float32)
    wide[::2] = vector
    fixed = vector.copy()
    fixed.flags.writeable = False
    for query in (wide[::2], vector[::-1].copy()[::-1], fixed, vector.astype(">f4"), vector.astype(np.float16), list(vector)):
        assert of_vectors.predict_one(query) == expected
    ids, values = np.array([1, 5, 3]), np.array([1, 2, 3], np.float32)
    for kind in ("i4", "i8", "u4", "u1", ">i8"):
        for number in ("f4", "f8", "f2", ">f4", "i4"):
            assert model.predict_one((ids.astype(kind), values.astype(number))) == model.predict_one({1: 1, 5: 2, 3: 3})


def test_copies_above_64_mib_are_announced(model, caplog):
    n = (64 << 20) // 40 // 4 + 1000
    caplog.set_level(logging.INFO, logger="xc")
    few = np.zeros((100, 40), np.float64)
    model.predict(few)
    # Vectors of another type are converted some rows at a time.
    many = np.lib.stride_tricks.as_strided(np.zeros(1), (n, 40), (0, 0))
    with pytest.raises(xc.DataError, match="they must be as many"):
        xc.plan("tree", many, [[0]])
    assert not caplog.records
    values = np.zeros(40 * n, np.int8)
    many = Sparse(np.arange(n + 1) * 40, np.tile(np.arange(40, dtype=np.int32), n), values, (n, 40))
    with pytest.raises(xc.DataError, match="they must be as many"):
        xc.plan("tree", many, [[0]])
    [record] = [record for record in caplog.records if "copied" in record.getMessage()]
    assert re.search(r"X.data: an array of int8 is copied into one of float32 \(6\d MiB\)", record.getMessage())
