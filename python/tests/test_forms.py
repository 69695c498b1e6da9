"""Every form of rows of 0 and 1, of one label a row, of frames and of lists is what its matrix is, or refused by its name."""

import numpy as np
import pytest
import xc
from program import Sparse

TEXTS = ["apple red", "car fast", "sun hot", "rain wet"] * 5
MARKS = np.eye(4, dtype=np.int64)[np.arange(20) % 4]
NAMES = ["abcd"[row % 4] for row in range(20)]


def trained(Y, X=TEXTS, **more):
    return xc.train("tree", X, Y, trees=1, progress=False, **more).model


@pytest.fixture(scope="module")
def model():
    return trained([[name] for name in NAMES])




def matrices():
    """The marks in each form that says what it is."""
    yield "array", MARKS
    yield "bool", MARKS.astype(bool)
    yield "objects", MARKS.astype(object)
    yield "masked array that lacks nothing", np.ma.masked_array(MARKS, mask=False)
    yield "lists of bool", MARKS.astype(bool).tolist()
    yield "lists of numpy's bool", [list(row) for row in MARKS.astype(bool)]
    yield "list of arrays", list(MARKS)
    yield "list of arrays of bool", list(MARKS.astype(bool))


def frames():
    """The same as frames of the libraries that are there."""
    try:
        import pandas as pd

        frame = pd.DataFrame(MARKS, columns=list("abcd"))
        for dtype in ("int64", "Int64", "UInt8", "Float64", "boolean", "bool", "float32", object):
            yield f"pandas {dtype}", frame.astype(dtype)
        yield "a series of arrays", pd.Series(list(MARKS))
        yield "columns of one name", pd.DataFrame(MARKS, columns=list("aabb"))
    except ImportError:
        pass
    try:
        import polars as pl

        yield "polars", pl.DataFrame(MARKS)
        yield "polars bool", pl.DataFrame(MARKS.astype(bool))
        yield "a series of lists of polars", pl.Series(MARKS.tolist())
        yield "a series of lists of bool of polars", pl.Series(MARKS.astype(bool).tolist())
    except ImportError:
        pass
    try:
        import pyarrow as pa

        yield "pyarrow", pa.table({name: MARKS[:, i] for i, name in enumerate("abcd")})
        yield "pyarrow bool", pa.table({name: MARKS[:, i].astype(bool) for i, name in enumerate("abcd")})
        yield "fixed lists of pyarrow", pa.FixedSizeListArray.from_arrays(pa.array(MARKS.ravel()), 4)
    except ImportError:
        pass


@pytest.mark.parametrize("what, y", [*matrices(), *frames()], ids=lambda value: value if isinstance(value, str) else "")
def test_rows_of_marks_are_the_matrix(what, y):
    made = trained(y)
    assert made.n_labels == 4 and made.predict(TEXTS[:4], top_k=1).names() == [[0], [1], [2], [3]]
    right = (np.arange(20)[:, None] % 4, np.ones((20, 1)))
    assert xc.evaluate(y, right, k=1)["P@1"] == 1.0


def test_lists_in_which_an_id_stands_twice_are_refused(model):
    ids = trained(list(range(4)) * 5)
    for door in (
        lambda y: trained(y), lambda y: xc.evaluate(y, ids.predict(TEXTS)), lambda y: ids.predict(TEXTS, candidates=y),
    ):
        with pytest.raises(xc.DataError, match="row 0: label 0 stands twice; .* a matrix is expected, as numpy.asarray") as caught:
            door(MARKS.tolist())
        assert caught.value.row == 0
    with pytest.raises(xc.DataError, match="Y: row 1: label 7 stands twice; each label once is expected"):
        trained([[3], [7, 2, 7]] * 10)
    # Two ids, whatever they are, are two labels; a name that stands twice counts once.
    assert len(trained([[0, 1], [1, 0]] * 10).predict_one(TEXTS[0], top_k=2)) == 2
    assert trained([["a", "a"], ["b"]] * 10).n_labels == 2
    for y, message in (
        ([[True], [True, False]] * 10, "row 1: 2 bools, where row 0 has 1"),
        ([[True, 1]] * 20, "row 0: other labels than the bools"),
    ):
        with pytest.raises(xc.DataError, match=f"^Y: {message}"):
            trained(y)


def test_one_label_a_row_is_read_as_in_files():
    lists = trained([[name] for name in NAMES]).predict(TEXTS).names()
    for y in (NAMES, tuple(NAMES), np.array(NAMES), np.array(NAMES, object), [f" {name} " for name in NAMES]):
        assert trained(y).predict(TEXTS).names() == lists
    numbers = [row % 4 for row in range(20)]
    for y in (numbers, np.array(numbers), iter(numbers)):
        assert trained(y).predict(TEXTS[:4], top_k=1).names() == [[0], [1], [2], [3]]
    assert trained(["a", "", "c", "d"] * 5).labels == ["a", "c", "d"]
    for y, message in (
        (["a", "b;c"] * 10, 'row 1: "b;c" may be one label or several; a list of labels'),
        (["a", "b, c"] * 10, 'row 1: "b, c" may be'), (["['a', 'b']"] * 20, "row 0: .* may be"),
        (["a", None] * 10, "row 1: a missing value"), (["a", float("nan")] * 10, "row 1: a missing value"),
        (["a", ["b"]] * 10, "row 1: a list, where other rows are one label"), ([0, True] * 10, "row 1: a bool, where"),
        (["a\ud83d"] * 20, "row 0: a name with half of a surrogate pair"),
    ):
        with pytest.raises(xc.DataError, match=f"^Y: {message}"):
            trained(y)


def test_what_has_no_rows_is_refused(model):
    rows_of_dicts = [dict(zip("abcd", row)) for row in MARKS.tolist()]
    for y, message in (
        ({"a", "b"}, "Y: a set, which has no order; a list"), ({"a": [1]}, "Y: a dict; a list of lists"), ("ab", "Y: a str"),
        (rows_of_dicts, "Y: row 0: a dict; .* a DataFrame of 0 and 1 with a column a label"), ([True] * 20, "Y: row 0: a list"),
    ):
        with pytest.raises(TypeError, match=f"^{message}"):
            trained(y)
    for x, message in (
        (set(TEXTS), "X: a set"), (dict.fromkeys(TEXTS), "X: a dict"), ((text for text in TEXTS), "X: a generator, which can be read once"),
        (map(str, TEXTS), "X: a map"),
    ):
        for door in (lambda: model.predict(x), lambda: trained(NAMES, x)):
            with pytest.raises(TypeError, match=f"^{message}"):
                door()
    with pytest.raises(TypeError, match="^query: a set"):
        model.predict_one({1.0, 2.0})
    for names, message in (
        ({"a", "b"}, "a set"), ({"a": 0}, "a dict"), ("abcd", "a str"), (3, "int; a list of names"),
    ):
        for door in (lambda: trained(MARKS, label_names=names), lambda: xc.evaluate(MARKS, model.predict(TEXTS), label_names=names),
                     lambda: xc.convert(model, "nowhere", label_names=names)):
            with pytest.raises(TypeError, match=f"^label_names: {message}"):
                door()
    with pytest.raises(xc.OptionError, match="^label_names: name 1 is a missing value"):
        trained(MARKS, label_names=["a", None, "c", "d"])


@pytest.mark.parametrize("name", ["candidates", "exclude"])
def test_masks_of_labels_are_no_lists_of_labels(model, name):
    for mask in ([True, False, False, True], np.array([True, False, False, True])):
        for door in (lambda: model.predict(TEXTS, **{name: mask}), lambda: model.predict_one("car", **{name: list(mask)})):
            with pytest.raises(TypeError, match=f"^{name}: a list of bools; .* numpy.flatnonzero"):
                door()
    with pytest.raises(xc.DataError, match=f"^{name}: 0 or 1 for each label"):
        model.predict(TEXTS, **{name: [1, 0, 0, 1]})
    with pytest.raises(TypeError, match=f"^{name}: a dict"):
        model.predict(TEXTS, **{name: {"a": 1}})
    with pytest.raises(TypeError, match=f"^{name}: a Ranked; its names"):
        model.predict(TEXTS, **{name: model.predict(TEXTS)})
    # A row a query may be marks.
    kept = [[name] for name in NAMES]
    for marks in (MARKS, MARKS.astype(bool).tolist(), Sparse(np.arange(21), np.arange(20) % 4, np.ones(20, np.float32), (20, 4))):
        assert model.predict(TEXTS, candidates=marks).names() == kept
    assert model.predict(TEXTS[:1], candidates={"a", "b"}).names() == model.predict(TEXTS[:1], candidates=["a", "b"]).names()


def test_a_filter_is_of_row_numbers_or_bools():
    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    index = xc.index(vectors, "l2")
    wanted = np.arange(30) % 3 == 0
    expected = index.search(vectors, top_k=3, filter=np.flatnonzero(wanted)).names()
    for given in (wanted, wanted.tolist(), wanted.astype(object)):
        assert index.search(vectors, top_k=3, filter=given).names() == expected
    with pytest.raises(xc.OptionError, match="^filter: 0 or 1 for each row; row numbers, or an array of bool"):
        index.search(vectors, filter=wanted.astype(int))
    with pytest.raises(TypeError, match="^filter: a set"):
        index.search(vectors, filter={1, 2})
    holed = wanted.astype(object)
    holed[4] = None
    with pytest.raises(xc.DataError, match="^filter: row 4: a missing value; True or False"):
        index.search(vectors, filter=holed)


def csr(values):
    """Rows of one value each, as sparse labels."""
    return Sparse(np.arange(len(values) + 1), np.arange(len(values)) % 4, np.array(values), (len(values), 4))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i8"])
def test_numbers_above_0_are_labels(dtype, model):
    expected = trained(csr(np.ones(20, dtype))).predict(TEXTS).names()
    assert trained(csr(np.full(20, 3, dtype))).predict(TEXTS).names() == expected
    wrong = [-1] if dtype[0] == "i" else [-1, -0.5, np.nan, np.inf, -np.inf]
    for value in wrong:
        values = np.ones(20, dtype)
        values[6] = value
        for door in (lambda y: trained(y), lambda y: xc.evaluate(y, model.predict(TEXTS), label_names=list("abcd"))):
            with pytest.raises(xc.DataError, match="^Y: row 6: value .* in column 2; a number above 0, or 0 for none") as caught:
                door(csr(values))
            assert (caught.value.row, caught.value.column) == (6, 2)
    if dtype == "f8":
        assert trained(csr(np.full(20, 1e-300))).n_labels == 4 and trained(csr(np.full(20, 1e300))).n_labels == 4


def test_what_lacks_a_value_is_named_by_its_place(model):
    x = np.ma.masked_array(np.ones((20, 3), np.float32), mask=False)
    x[5, 2] = np.ma.masked
    for door, name in (
        (lambda: trained(NAMES, x), "X"), (lambda: xc.index(x, "l2"), "vectors"), (lambda: trained(np.ma.masked_array(MARKS, mask=np.arange(80).reshape(20, 4) == 22)), "Y"),
    ):
        with pytest.raises(xc.DataError, match=f"^{name}: row 5: a masked value in column 2") as caught:
            door()
        assert (caught.value.row, caught.value.column) == (5, 2)
    holed = MARKS.astype(object)
    for missing in (None, float("nan")):
        holed[7, 1] = missing
        with pytest.raises(xc.DataError, match="^Y: row 7: a missing value in column 1; 0 or 1") as caught:
            trained(holed)
        assert (caught.value.row, caught.value.column) == (7, 1)


def test_missing_values_of_frames_are_named_by_their_place():
    frames = []
    values = {"a": [1, 0, 1, 0], "b": [0, 1, None, 1]}
    pd = pytest.importorskip("pandas", reason="no pandas: its frames are not tried")
    frames += [pd.DataFrame(values).astype(dtype) for dtype in ("Int64", "boolean", "Float64", object)]
    frames += [pytest.importorskip("pyarrow").table(values)]
    try:
        frames += [__import__("polars").DataFrame(values)]
    except ImportError:
        pass
    for frame in frames:
        with pytest.raises(xc.DataError, match="^Y: row 2: a missing value in column 1.*; 0 or 1 is expected") as caught:
            trained(frame, TEXTS[:4], text_min_df=1)
        assert (caught.value.row, caught.value.column) == (2, 1)


def test_frames_of_texts_want_one_column_of_a_name(model):
    pd = pytest.importorskip("pandas", reason="no pandas: its frames are not tried")
    expected = model.predict(TEXTS).names()
    twice = pd.concat([pd.Series(TEXTS, name="text"), pd.Series(TEXTS, name="text"), pd.Series(TEXTS, name="other")], axis=1)
    with pytest.raises(xc.DataError, match="^X: 2 columns are named 'text'; one is expected"):
        model.predict(twice, text_fields=["text"])
    assert model.predict(twice, text_fields="other").names() == expected
    with pytest.raises(xc.DataError, match="^X: no columns"):
        model.predict(pd.DataFrame(index=range(3)))
    assert trained(pd.DataFrame({"label": NAMES})).predict(TEXTS).names() == expected


def test_frames_and_series_of_polars_are_those_of_pandas(model):
    pl = pytest.importorskip("polars", reason="no polars: its frames are not tried")
    frame, expected = pl.DataFrame({"text": TEXTS, "n": range(20)}), model.predict(TEXTS).names()
    for x, fields in ((frame, "text"), (frame[["text"]], None), (frame["text"], None)):
        assert model.predict(x, text_fields=fields).names() == expected
    assert trained(pl.Series(NAMES)).predict(TEXTS).names() == expected
    with pytest.raises(TypeError, match="^text_fields: expected with several columns: some of text, n"):
        model.predict(frame)
    with pytest.raises(TypeError, match=r"^X: a DataFrame of numbers; X.to_numpy\(\) is expected"):
        model.predict(frame[["n"]])
    with pytest.raises(xc.DataError, match="row 20: a missing value") as caught:
        model.predict(pl.DataFrame({"text": [*TEXTS, None]}))
    assert caught.value.row == 20
    with pytest.raises(TypeError, match=r"^X: a LazyFrame; X.collect\(\) is expected"):
        model.predict(frame.lazy())


def test_half_a_surrogate_is_named_by_its_row(model):
    texts = list(TEXTS)
    texts[7] = "car \ud83d fast"
    for door in (lambda: model.predict(texts), lambda: trained(NAMES, texts), lambda: model.predict(np.array(texts, object))):
        with pytest.raises(xc.DataError, match="^X: row 7: half of a surrogate pair at character 4") as caught:
            door()
        assert caught.value.row == 7
    with pytest.raises(xc.DataError, match="^query: a text with half of a surrogate pair"):
        model.predict_one(texts[7])


def test_matrices_without_columns_are_refused():
    for x in (np.empty((20, 0), np.float32), [[]] * 20):
        for name, door in (("X", lambda: trained(NAMES, x)), ("X", lambda: xc.plan("dense", x, NAMES)), ("vectors", lambda: xc.index(x, "l2"))):
            with pytest.raises(xc.DataError, match=f"^{name}: no columns; one at least is expected"):
                door()


NUMBERS = [
    ({"seed": -1}, "seed -1: a whole number from 0"), ({"seed": None}, "seed None"), ({"seed": 1.5}, "seed 1.5"),
    ({"seed": 1 << 64}, "seed 18446744073709551616"), ({"threads": -1}, "threads -1: between 1 and 4096"),
    ({"threads": "2"}, "threads '2': a whole number"), ({"max_memory": -5}, "max_memory -5: bytes"),
    ({"max_memory": "inf"}, "max_memory 'inf'"), ({"max_memory": "x"}, "max_memory 'x'"),
    ({"instance_weights": np.ones((2, 2))}, "instance_weights: an array of 2 dimensions"),
    ({"instance_weights": ["a"] * 20}, "instance_weights: "),
]


@pytest.mark.parametrize("options, message", NUMBERS)
def test_numbers_that_cannot_be_have_the_name_that_the_caller_wrote(options, message):
    for door in (lambda: trained(NAMES, **options), lambda: xc.plan("tree", TEXTS, NAMES, **options)):
        with pytest.raises(xc.OptionError, match=f"^{message}") as caught:
            door()
        assert caught.value.option == next(iter(options))


def test_numbers_of_an_answer_that_cannot_be_have_their_name(model):
    for options, message in (
        ({"top_k": -1}, "top_k -1: at least 1"), ({"top_k": "3"}, "top_k '3': a whole number"), ({"top_k": None}, "top_k None"),
        ({"min_score": "x"}, "min_score 'x': a number"), ({"threshold": 0.5}, "threshold 0.5: 'micro', 'macro' or 'label'"),
    ):
        for door in (lambda: model.predict(TEXTS, **options), lambda: model.predict_one("car", **options)):
            with pytest.raises(xc.OptionError, match=f"^{message}"):
                door()
    with pytest.raises(xc.OptionError, match="^threads -1: between 1 and 4096"):
        model.predict(TEXTS, threads=-1)
    index = xc.index(np.eye(4, dtype=np.float32), "l2")
    for options, message in (({"top_k": -1}, "top_k -1"), ({"threads": -1}, "threads -1"), ({"search_width": "a"}, "search_width 'a'")):
        with pytest.raises(xc.OptionError, match=f"^{message}"):
            index.search(np.eye(4, dtype=np.float32), **options)
    for k, message in (("1;3", "k 1;3: expected"), ([1.5], "k 1.5: expected"), ([-1], "k -1: expected")):
        with pytest.raises(xc.OptionError, match=f"^{message}"):
            xc.evaluate(MARKS, model.predict(TEXTS), k=k)
    with pytest.raises(xc.OptionError, match="^kind: a list; one of tree, "):
        xc.train(TEXTS, NAMES)
    assert len(model.predict(TEXTS, top_k=np.int64(2), threads=np.int64(1))) == 20
