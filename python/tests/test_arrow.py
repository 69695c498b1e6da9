"""Columns and tables of pyarrow answer as lists and arrays of the same values do."""

import numpy as np
import pytest

import xc

pa = pytest.importorskip("pyarrow", reason="no pyarrow: columns and tables of it are not read")

TEXTS = ["sound of an organ", "a letter by mail", "", "nai\u0308ve caf\u00e9 music", "mail reader", "old organ music"] * 5
LABELS = [["audio"], ["mail"], [], ["audio"], ["mail"], ["audio"]] * 5
COLUMNS = {
    "string": lambda: pa.array(TEXTS),
    "large_string": lambda: pa.array(TEXTS, pa.large_string()),
    "sliced": lambda: pa.array(["before"] + TEXTS + ["behind"]).slice(1, len(TEXTS)),
    "in pieces": lambda: pa.chunked_array([TEXTS[:1], [], TEXTS[1:17], TEXTS[17:], []]),
    "dictionary": lambda: pa.array(TEXTS).dictionary_encode(),
    "view": lambda: pa.array(TEXTS, pa.string_view()),
    "table": lambda: pa.table({"text": pa.chunked_array([TEXTS[:9], TEXTS[9:]])}),
    "batch": lambda: pa.record_batch({"text": TEXTS}),
}


@pytest.fixture(scope="module")
def model():
    return xc.train("tree", TEXTS, LABELS, text_min_df=1, trees=1, progress=False).model


@pytest.mark.parametrize("form", COLUMNS)
def test_texts_of_a_column(form, model, tmp_path):
    column = COLUMNS[form]()
    found, expected = model.predict(column, top_k=2), model.predict(TEXTS, top_k=2)
    assert found.names() == expected.names() and (found.scores == expected.scores).all()
    trained = xc.train("tree", column, pa.array(LABELS), text_min_df=1, trees=1, progress=False).model
    assert trained.predict(TEXTS, top_k=2).names() == expected.names()


def test_texts_are_not_made_into_objects(monkeypatch, model):
    from xc import _rows

    monkeypatch.setattr(_rows, "texts", None)
    assert len(model.predict(COLUMNS["in pieces"]())) == len(TEXTS)


def test_several_columns_are_joined(model):
    table = pa.table({"id": range(30), "title": TEXTS, "body": TEXTS[::-1]})
    both = [" ".join(row) for row in zip(TEXTS, TEXTS[::-1])]
    assert model.predict(table, text_fields=["title", "body"]).names() == model.predict(both).names()
    assert model.predict(table, text_fields="body").names() == model.predict(TEXTS[::-1]).names()
    with pytest.raises(TypeError, match="text_fields: expected .* some of id, title, body"):
        model.predict(table)
    with pytest.raises(xc.DataError, match="no column 'name'; the columns are id, title, body"):
        model.predict(table, text_fields="name")


def test_vectors_of_a_column():
    rows = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    model = xc.train("dense", rows, [[i % 4] for i in range(40)], epochs=1, network_widths=[4], progress=False).model
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 6)
    expected = model.predict(rows)
    for column in (column, pa.chunked_array([column[:7], column[7:]]), pa.table({"vector": column})):
        assert (model.predict(column).scores == expected.scores).all()


def test_what_is_no_text_is_said(model):
    missing = pa.chunked_array([["a", "b"], ["c", None]])
    with pytest.raises(xc.DataError, match="row 3: a missing value") as error:
        model.predict(missing)
    assert error.value.row == 3
    with pytest.raises(xc.DataError, match="row 0: a value of type float"):
        model.predict(pa.array([0.5]))
    # What pyarrow itself would not give.
    for offsets, data, wrong in (([0, 1, 9], b"ab", "offsets outside of its bytes"), ([0, 1, 2], b"a\xff", "bytes that are not UTF-8")):
        broken = xc._native.Input.utf8("X", [(np.int32(offsets), np.frombuffer(data, np.uint8))])
        with pytest.raises(xc.DataError, match=f"row 1: {wrong}"):
            model.predict(broken)


def test_columns_of_a_vectorizer():
    sklearn = pytest.importorskip("xc.sklearn", reason="no scikit-learn")
    made = sklearn.TextVectorizer(text_min_df=1).fit(TEXTS)
    assert (made.transform(COLUMNS["in pieces"]()) != made.transform(TEXTS)).nnz == 0
