"""Matrices of scipy in every form, and frames and series of pandas."""

import numpy as np
import pytest
import xc
from program import SMALL, kept

sp = pytest.importorskip("scipy.sparse", reason="no scipy: its matrices are not tried")


@pytest.fixture(scope="module")
def model(data):
    return xc.train("tree", *data.arrays("sparse"), progress=False, validation_fraction=0.3, **SMALL["tree"]).model


@pytest.fixture(scope="module")
def of_texts(data):
    return xc.train("tree", *data.arrays("texts"), progress=False, text_min_df=1, **SMALL["tree"]).model


def matrix(x):
    return sp.csr_matrix((x.data, x.indices, x.indptr), shape=x.shape)


def bits(ranked):
    return ranked.indptr.tolist(), ranked.ids.tolist(), ranked.scores.tobytes()


FORMS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_every_form_of_a_sparse_matrix_is_the_same_rows(model, data, tmp_path, form, kind):
    X, Y = (matrix(x) for x in data.arrays("sparse"))
    expected = bits(model.predict(X))
    made = getattr(sp, f"{form}_{kind}", None)
    if made is None:
        pytest.skip(f"this scipy has no {form}_{kind}")
    x, y = made(X), made(Y)
    before = x.toarray().tobytes(), y.toarray().tobytes()
    assert bits(model.predict(x)) == expected
    xc.train("tree", X, Y, model=tmp_path / "a", threads=1, progress=False, **SMALL["tree"])
    xc.train("tree", x, y, model=tmp_path / "b", threads=1, progress=False, **SMALL["tree"])
    assert kept(tmp_path / "a") == kept(tmp_path / "b")
    assert (x.toarray().tobytes(), y.toarray().tobytes()) == before
    judged = [xc.evaluate(labels, model.predict(X))["P@1"] for labels in (Y, y)]
    assert judged[0] == judged[1] > 0


def test_a_matrix_is_never_sorted_or_summed_in_place(model):
    unsorted = sp.csr_matrix((np.ones(3, np.float32), np.array([9, 2, 4]), np.array([0, 3])), shape=(1, 40))
    unsorted.has_sorted_indices = True
    model.predict(unsorted)
    assert unsorted.indices.tolist() == [9, 2, 4]
    twice = sp.csr_matrix((np.ones(2, np.float32), np.array([3, 3]), np.array([0, 2])), shape=(1, 40))
    with pytest.raises(xc.DataError, match=r"X: row 0: column 3 stands twice; X.sum_duplicates\(\) adds such entries up"):
        model.predict(twice)
    assert twice.nnz == 2
    summed = twice.copy()
    summed.sum_duplicates()
    assert model.predict(summed)[0] == model.predict_one({3: 2.0})
    # Rows that are cut out of others have a part of their arrays.
    rows = sp.vstack([unsorted] * 5).tocsr()[1:4]
    assert [model.predict(rows)[i] for i in range(3)] == [model.predict(unsorted)[0]] * 3


def test_answers_as_a_matrix_have_sorted_columns(model, data):
    ranked = model.predict(matrix(data.arrays("sparse")[0]), top_k=5)
    out = ranked.to_csr()
    assert out.shape == (60, 13) and out.has_sorted_indices and out.nnz == len(ranked.ids)
    for row in range(60):
        found = dict(zip(out[row].indices.tolist(), out[row].data.tolist()))
        assert found == dict(ranked[row])
    assert xc.evaluate(data.train.labels, out)["P@1"] == xc.evaluate(data.train.labels, ranked)["P@1"]


def test_a_frame_of_texts_wants_its_columns_named(of_texts, data):
    pd = pytest.importorskip("pandas", reason="no pandas: its frames are not tried")
    texts = data.test.texts
    expected = bits(of_texts.predict(texts))
    frame = pd.DataFrame({"title": texts, "body": [""] * len(texts), "n": range(len(texts))})
    assert bits(of_texts.predict(frame[["title"]])) == expected
    assert bits(of_texts.predict(frame["title"])) == expected
    assert bits(of_texts.predict(frame, text_fields="title")) == expected
    assert bits(of_texts.predict(frame, text_fields=["title", "body"])) == expected
    assert bits(of_texts.predict(frame["title"].astype("string"))) == expected
    assert bits(of_texts.predict(frame.set_index("n").iloc[::-1].iloc[::-1], text_fields="title")) == expected
    for fields, kind, message in (
        (None, TypeError, "X: .*|text_fields: expected with several columns: some of title, body, n"),
        ("titel", xc.DataError, "X: no column 'titel'; the columns are title, body, n"),
        (["title", "n"], xc.DataError, r"X\['n'\]: row 0: a value of type int; a str is expected"),
    ):
        for door in (lambda: of_texts.predict(frame, text_fields=fields),
                     lambda: xc.train("tree", frame, [[0]] * len(texts), text_fields=fields, progress=False)):
            with pytest.raises(kind, match=message):
                door()
    with pytest.raises(TypeError, match="text_fields: a DataFrame is expected with it; X is a list"):
        of_texts.predict(texts, text_fields="title")
    with pytest.raises(TypeError, match=r"X: a DataFrame of numbers; X.to_numpy\(\) is expected"):
        of_texts.predict(pd.DataFrame(np.zeros((3, 4))))
    for missing in (None, float("nan"), pd.NA):
        holed = frame.copy()
        holed.loc[7, "title"] = missing
        for x in (holed["title"], holed[["title"]]):
            with pytest.raises(xc.DataError, match="row 7: a missing value; a str is expected") as caught:
                of_texts.predict(x)
            assert caught.value.row == 7


def test_a_series_of_lists_is_labels(data, tmp_path):
    pd = pytest.importorskip("pandas", reason="no pandas: its frames are not tried")
    X, Y = data.arrays("texts")
    plain = {"threads": 1, "progress": False, "text_min_df": 1, **SMALL["tree"]}
    xc.train("tree", X, Y, model=tmp_path / "a", **plain)
    for number, labels in enumerate([pd.Series(Y), pd.Series(Y, index=range(100, 160)), pd.Series(map(tuple, Y))]):
        xc.train("tree", pd.Series(X), labels, model=tmp_path / str(number), **plain)
        assert kept(tmp_path / str(number)) == kept(tmp_path / "a")
    holed = pd.Series(Y)
    holed[3] = None
    with pytest.raises(TypeError, match="Y: row 3: a list of labels is expected"):
        xc.train("tree", X, holed, **plain)
    with pytest.raises(xc.DataError, match="Y: row 1: .* may be one label or several; a list of labels is expected"):
        xc.train("tree", X, pd.Series([",".join(labels) for labels in Y]), **plain)
    columns = pd.DataFrame({name: [name in labels for labels in Y] for name in data.names[:12]})
    assert xc.train("tree", X, columns, **plain).model.n_labels == 12
