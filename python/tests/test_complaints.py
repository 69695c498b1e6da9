"""What users of other libraries complain of, and where it is tested that they cannot here.

| complaint | tested by |
|---|---|
| a wheel per version of Python, or a build that fails | `test_one_wheel_for_every_python_needs_numpy_alone`; CI's `python-all` with every interpreter |
| ragged answers forced into a rectangle, ids that do not exist | `test_bad_labels.py::test_k_is_at_least_1_and_may_be_above_the_labels`, `test_fewer_neighbours_than_k_are_no_error` |
| errors about types and layouts that say nothing | `test_bad_input.py::test_vectors_of_any_type_and_layout_are_the_same_vectors`, `...sparse_rows_of_any_type...`, `...not_rows...` |
| a new numpy breaks `predict` | CI's `python-all`: the oldest and the newest numpy of each interpreter |
| pools of threads that hang after a fork | `test_processes.py::test_forked_children_answer_as_the_parent`, `...multiprocessing`, `...joblib` |
| one object in two threads | `test_processes.py::test_threads_share_a_model` |
| training that only a signal of the kernel ends | `test_interrupt.py::test_an_interrupted_training_goes_on_with_the_same_bytes`, `test_an_exception_of_a_callback_stops_and_is_raised` |
| no callback, no progress | `test_callbacks_hear_of_every_stage`, `test_progress_is_shown_where_it_is_asked_for` |
| settings lost, crashes on load, pickles cut | `test_damaged_folders_are_refused`, `test_settings_are_in_the_folder`, `test_pickles_are_whole_or_a_path` |
| labels or answers made dense | `test_labels_of_millions_of_columns_stay_sparse` |
| one query costs what a batch does | `test_a_query_alone_costs_about_what_a_row_of_a_batch_does` |
| a wrong request is answered, or refused without a name | `test_bad_labels.py::test_options_of_answers_that_cannot_be_are_refused`, `test_every_option.py::test_an_unknown_keyword_is_refused_with_one_that_is_near` |
| one query and a list obey different limits | `test_bad_labels.py` and `test_bad_input.py` ask both doors with the same options |
| reloading leaks, or is stuck after one bad model | `test_a_model_may_be_opened_again_and_again`, `test_a_replaced_folder_leaves_an_open_model_as_it_was` |
| a stop loses requests | of servers; here none |
"""

import gc
import importlib.metadata
import io
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import xc
from program import SMALL, Sparse


@pytest.fixture
def model(data, tmp_path):
    return xc.train("tree", *data.arrays("sparse"), model=tmp_path / "m", progress=False, **SMALL["tree"]).model


def test_the_tests_that_the_table_names_are_there():
    here = pathlib.Path(__file__).resolve().parent
    named = re.findall(r"`(?:(test_\w+\.py)::)?(test_\w+)`", __doc__)
    assert len(named) > 15
    for file, name in named:
        assert f"def {name}(" in (here / (file or "test_complaints.py")).read_text(encoding="utf-8"), f"{file}::{name}"


def rss():
    """Bytes of this process in memory."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        pytest.skip("no /proc: memory of the process is not known")


def test_one_wheel_for_every_python_needs_numpy_alone():
    distribution = importlib.metadata.distribution("xc-labels")
    hard = [need for need in distribution.requires or [] if "extra ==" not in need]
    assert [need.split(">")[0] for need in hard] == ["numpy"]
    tags = [line for line in distribution.read_text("WHEEL").splitlines() if line.startswith("Tag:")]
    assert tags and all("-abi3-" in tag for tag in tags)
    # Nothing else is imported before it is used.
    code = "import sys, xc; print([n for n in ('scipy', 'pandas', 'sklearn', 'matplotlib', 'tqdm') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_fewer_neighbours_than_k_are_no_error():
    vectors = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    index = xc.index(vectors, "l2")
    few = index.search(vectors[:4], top_k=10, filter=[3, 17])
    assert np.diff(few.indptr).tolist() == [2] * 4 and set(few.ids.tolist()) == {3, 17}
    assert len(index.search(vectors[:4], top_k=10, filter=[]).ids) == 0
    assert np.diff(index.search(vectors[:2], top_k=1000).indptr).max() <= 300
    index.delete(range(295))
    left = index.search(vectors[:3], top_k=10)
    assert np.diff(left.indptr).tolist() == [5] * 3 and left.ids.min() >= 295
    ids, scores = left.padded(8)
    assert (ids[:, 5:] == -1).all() and np.isnan(scores[:, 5:]).all()


@pytest.mark.parametrize("kind", ["tree", "dense", "mach"])
@pytest.mark.filterwarnings("ignore::xc.XcWarning")
def test_callbacks_hear_of_every_stage(data, kind):
    events = []
    chosen = {**SMALL[kind], "validation_fraction": 0.3}
    xc.train(kind, *data.arrays("sparse"), progress=False, callbacks=[events.append, lambda event: None], **chosen)
    kinds = {event["event"] for event in events}
    expected = {"tree": {"tree", "level", "rankers"}, "dense": {"step", "validation"}, "mach": {"step"}}[kind]
    assert expected <= kinds and all(isinstance(event, dict) for event in events)
    steps = [event for event in events if event["event"] == "step"]
    assert all(event["loss"] > 0 and event["step"] <= event["steps"] for event in steps)


class Stop(Exception):
    pass


def test_an_exception_of_a_callback_stops_and_is_raised(data, tmp_path):
    X, Y = data.arrays("sparse")

    def stop(event):
        raise Stop(event["event"])

    begin = time.monotonic()
    with pytest.raises(Stop):
        xc.train("dense", X, Y, model=tmp_path / "m", progress=False, callbacks=stop, epochs=1_000_000, wide="off")
    assert time.monotonic() - begin < 20 and not (tmp_path / "m").exists()


def test_callbacks_are_called_ten_times_a_second_at_most(data):
    at = []
    begin = time.monotonic()

    def record(event):
        now = time.monotonic() - begin
        if not at or now - at[-1] > 0.02:
            at.append(now)
        if now > 1:
            raise Stop

    with pytest.raises(Stop):
        xc.train(
            "dense", *data.arrays("sparse"), progress=False, callbacks=record, epochs=1_000_000, wide="off", batch=8
        )
    # Deliveries, each of which may have several events.
    assert 2 <= len(at) <= 14


def test_progress_is_shown_where_it_is_asked_for(data, capfd, monkeypatch):
    X, Y = data.arrays("sparse")
    for progress, said in ((False, False), (True, True), (None, False)):
        capfd.readouterr()
        xc.train("dense", X, Y, progress=progress, validation_fraction=0.3, **SMALL["dense"])
        out, err = capfd.readouterr()
        assert out == "" and bool(err) is said, (progress, err)
    # Without tqdm: lines.
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    xc.train("dense", X, Y, progress=True, validation_fraction=0.3, **SMALL["dense"])
    assert "xc dense" in capfd.readouterr().err


def test_settings_are_in_the_folder(data, tmp_path, model):
    assert xc.inspect(model)["parameters"] == xc.inspect(tmp_path / "m")["parameters"]
    model.save(tmp_path / "copy")
    again = xc.load(tmp_path / "copy")
    X = data.arrays("sparse")[0]
    assert again.predict(X).scores.tobytes() == model.predict(X).scores.tobytes()
    assert (again.kind, again.n_labels, again.n_features, again.takes) == (
        model.kind, model.n_labels, model.n_features, model.takes
    )


def test_damaged_folders_are_refused(data, tmp_path, model):
    X = data.arrays("sparse")[0]
    files = [path for path in (tmp_path / "m").iterdir() if path.is_file()]
    assert len(files) >= 2
    for path in files:
        whole = path.read_bytes()
        for name, damaged in {"cut": whole[: len(whole) // 2], "empty": b"", "other": b"\0" * len(whole)}.items():
            folder = tmp_path / f"{path.name}-{name}"
            shutil.copytree(tmp_path / "m", folder)
            (folder / path.name).write_bytes(damaged)
            try:
                opened = xc.load(folder)
            except xc.ModelError as error:
                assert "\n" not in str(error)
            else:
                # Values alone cannot be told by their form: their hash does, and answers are no crash.
                assert xc.inspect(folder, verify=True)["damaged"], folder
                try:
                    opened.predict(X)
                except (xc.ModelError, xc.DataError):
                    pass
        (tmp_path / "gone").exists()
    for folder in (tmp_path / "nothing", tmp_path, files[0]):
        with pytest.raises(xc.ModelError):
            xc.load(folder)
        with pytest.raises(OSError):
            xc.inspect(folder)
    with pytest.raises(xc.ModelError):
        model.save(files[0] / "inside")


def test_pickles_are_whole_or_a_path(data, tmp_path, model):
    X = data.arrays("sparse")[0]
    expected = model.predict(X).scores.tobytes()
    small = pickle.dumps(model)
    assert len(small) < 500 and pickle.loads(small).predict(X).scores.tobytes() == expected
    # Another model in its folder is not taken for it.
    xc.train("tree", *data.arrays("sparse"), model=tmp_path / "m", progress=False, seed=8, trees=1)
    with pytest.raises(xc.ModelError, match="another model than the one that was pickled"):
        pickle.loads(small)
    shutil.rmtree(tmp_path / "m")
    with pytest.raises(xc.ModelError):
        pickle.loads(small)
    temporary = xc.train("tree", *data.arrays("sparse"), progress=False, **SMALL["tree"]).model
    whole, place = pickle.dumps(temporary), pathlib.Path(temporary.folder)
    answers = temporary.predict(X).scores.tobytes()
    del temporary
    gc.collect()
    assert not place.exists()
    again = pickle.loads(whole)
    assert again.predict(X).scores.tobytes() == answers and pathlib.Path(again.folder).exists()
    for cut in (len(whole) // 2, len(whole) - 1):
        with pytest.raises(Exception):
            pickle.load(io.BytesIO(whole[:cut]))


SPARSE_LABELS = """
import resource, sys
import numpy as np, xc
class Sparse:
    def __init__(self, indptr, indices, data, shape):
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape
n, labels = 2000, 3_000_000
draw = np.random.default_rng(0)
Y = Sparse(np.arange(n + 1) * 3, np.sort(draw.integers(0, labels, (n, 3)), axis=1).ravel(), np.ones(3 * n), (n, labels))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ids = Y.indices.reshape(n, 3)
report = xc.evaluate(Y, (ids, np.tile([0.9, 0.8, 0.7], (n, 1))), k=(1,), propensity_from=Y)
assert report["P@1"] == 1.0, report
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_labels_of_millions_of_columns_stay_sparse():
    pytest.importorskip("resource", reason="no resource: memory of a process is not known")
    done = subprocess.run([sys.executable, "-c", SPARSE_LABELS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # A dense matrix of them has 6 GB; a number for each label, some tens of MB.
    assert int(done.stdout) < 400


def test_a_query_alone_costs_about_what_a_row_of_a_batch_does(data, model):
    X = data.arrays("sparse")[0]
    n = len(X.indptr) - 1
    queries = [(X.indices[a:b], X.data[a:b]) for a, b in zip(X.indptr, X.indptr[1:])]
    many = Sparse(
        np.concatenate([[0], np.cumsum(np.tile(np.diff(X.indptr), 50))]), np.tile(X.indices, 50), np.tile(X.data, 50),
        (50 * n, X.shape[1]),
    )

    def cpu(work):
        """Seconds of CPU of the fastest of five runs."""
        times = []
        for _ in range(5):
            begin = time.process_time()
            work()
            times.append(time.process_time() - begin)
        return min(times)

    row = cpu(lambda: model.predict(many, threads=1)) / (50 * n)
    alone = cpu(lambda: [model.predict_one(query) for query in queries for query in [query] * 5]) / (5 * n)
    # Some microseconds of Python; others pay hundreds.
    assert alone < 3 * row + 20e-6, f"{1e6 * alone:.1f} us alone, {1e6 * row:.1f} us in a batch"


def test_many_calls_keep_no_memory(data, model):
    X = data.arrays("sparse")[0]
    query = {3: 1.0, 7: 2.0}
    for _ in range(2000):
        model.predict_one(query)
    model.predict(X)
    gc.collect()
    before = rss()
    for _ in range(20_000):
        model.predict_one(query)
    for _ in range(300):
        model.predict(X, threads=1)
    gc.collect()
    assert rss() - before < 4 << 20


def test_a_model_may_be_opened_again_and_again(data, tmp_path, model):
    X = data.arrays("sparse")[0]
    expected = model.predict(X).scores.tobytes()
    for _ in range(20):
        xc.load(tmp_path / "m").predict(X)
    gc.collect()
    before, times = rss(), []
    for number in range(200):
        begin = time.process_time()
        opened = xc.load(tmp_path / "m", in_memory=number % 2 == 0)
        assert opened.predict(X).scores.tobytes() == expected
        times.append(time.process_time() - begin)
        if number == 100:
            # A bad folder in between is refused, and no more.
            with pytest.raises(xc.ModelError):
                xc.load(tmp_path)
    del opened
    gc.collect()
    assert rss() - before < 8 << 20
    assert np.median(times[-50:]) < 3 * np.median(times[:50]) + 0.005


def test_a_replaced_folder_leaves_an_open_model_as_it_was(data, tmp_path, model):
    X = data.arrays("sparse")[0]
    expected = model.predict(X).scores.tobytes()
    assert not model._native.was_replaced()
    other = xc.train("tree", *data.arrays("sparse"), model=tmp_path / "m", progress=False, trees=1).model
    assert model._native.was_replaced() and not other._native.was_replaced()
    assert model.predict(X).scores.tobytes() == expected != other.predict(X).scores.tobytes()
