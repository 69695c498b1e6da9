"""Models in forked and spawned processes, in threads, beside writers, and in pickles."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading

import numpy as np
import pytest

import xc

FORKS = hasattr(os, "fork")


class Rows:
    """Compressed rows without scipy."""

    def __init__(self, indptr, indices, data, shape):
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape

    def part(self, n):
        end = self.indptr[n]
        return Rows(self.indptr[: n + 1], self.indices[:end], self.data[:end], (n, self.shape[1]))


def made(n=400, width=200, n_labels=20, seed=0):
    """Rows of six features, three of them of their label, and the labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_labels, n)
    indices = np.empty((n, 6), np.int32)
    for row in range(n):
        own = n_labels + 5 * y[row] + rng.choice(5, 3, replace=False)
        others = rng.choice(n_labels, 3, replace=False)
        indices[row] = np.sort(np.concatenate([own, others]))
    data = rng.random((n, 6)).astype(np.float32) + 0.1
    return Rows(np.arange(0, 6 * n + 1, 6), indices.ravel(), data.ravel(), (n, width)), [[int(label)] for label in y]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    X, Y = made()
    folder = tmp_path_factory.mktemp("processes") / "model"
    xc.train("tree", X, Y, model=folder, trees=1, threads=2)
    model = xc.load(folder)
    # Pools and kept memory are there before any fork.
    answer = model.predict(X, threads=2)
    model.predict_one({0: 1.0})
    return X, model, answer


def same(a, b):
    return (
        np.array_equal(a.ids, b.ids) and np.array_equal(a.scores, b.scores) and np.array_equal(a.indptr, b.indptr)
    )


def script(source, **values):
    """Runs a script in a process of its own."""
    source = textwrap.dedent(source).format(tests=os.path.dirname(os.path.abspath(__file__)), **values)
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)


def asked(job):
    """What a process does: predicts with threads and alone, and trains if it is to."""
    model, X, trains = job
    ranked = model.predict(X, threads=2)
    one = model.predict_one({0: 1.0, 25: 2.0})
    if trains:
        xc.train("tree", X, [[row % 7] for row in range(X.shape[0])], trees=1, threads=2)
    return ranked.indptr, ranked.ids, ranked.scores, one


def check(found, expected, one):
    indptr, ids, scores, alone = found
    assert np.array_equal(indptr, expected.indptr) and np.array_equal(ids, expected.ids)
    assert np.array_equal(scores, expected.scores) and alone == one


@pytest.mark.skipif(not FORKS, reason="no fork on this system")
def test_forked_children_answer_as_the_parent(trained):
    X, model, expected = trained
    one = model.predict_one({0: 1.0, 25: 2.0})
    # A child that waits for a thread of its parent waits for ever.
    for attempt in range(50):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            code = 1
            try:
                signal.alarm(60)
                check(asked((model, X, attempt % 10 == 0)), expected, one)
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        os.close(reader)
        _, status = os.waitpid(child, 0)
        assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, f"attempt {attempt}: status {status}"
    assert same(model.predict(X, threads=2), expected)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing(trained, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    X, model, expected = trained
    one = model.predict_one({0: 1.0, 25: 2.0})
    with multiprocessing.get_context(method).Pool(2) as pool:
        for found in pool.map_async(asked, [(model, X, True)] * 4).get(timeout=120):
            check(found, expected, one)


def test_workers_of_joblib(trained):
    joblib = pytest.importorskip("joblib")
    X, model, expected = trained
    one = model.predict_one({0: 1.0, 25: 2.0})
    for backend in ("loky", "multiprocessing", "threading"):
        jobs = [joblib.delayed(asked)((model, X, False))] * 4
        for found in joblib.Parallel(n_jobs=2, backend=backend, timeout=120)(jobs):
            check(found, expected, one)


FORKER = """
    import gc, os, sys
    sys.path.insert(0, {tests!r})
    import xc
    from test_processes import made

    X, Y = made(100)
    model = xc.train("tree", X, Y, trees=1, threads=1).model
    folder = model.folder
    expected = model.predict(X).names()
    for ends in ("by itself", "with the interpreter"):
        child = os.fork()
        if child == 0:
            if ends == "by itself":
                del model
                gc.collect()
                os._exit(0)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert os.path.isdir(folder) and model.predict(X).names() == expected
    print(os.path.dirname(folder))
"""


@pytest.mark.skipif(not FORKS, reason="no fork on this system")
def test_a_forked_child_leaves_temporary_folders():
    done = script(FORKER)
    assert done.returncode == 0, done.stderr[-2000:]
    # The process that made it has removed it at its end.
    folder = done.stdout.strip()
    assert os.path.basename(folder).startswith("xc-") and not os.path.exists(folder)


def test_threads_share_a_model(trained):
    X, model, expected = trained
    few = X.part(20)
    of_few = model.predict(few)
    queries = [({int(i): float(v) for i, v in zip(X.indices[a:b], X.data[a:b])}) for a, b in zip(X.indptr, X.indptr[1:])]
    alone = [model.predict_one(query) for query in queries]
    wrong, begin = [], threading.Barrier(4)

    def work(number):
        begin.wait()
        for call in range(2500):
            row = (call * 7 + number) % len(queries)
            if model.predict_one(queries[row]) != alone[row]:
                wrong.append(("one", row))
            if call % 50 == 0 and not same(model.predict(few, threads=1 + number % 2), of_few):
                wrong.append(("few", call))
            if call % 500 == 0 and not same(model.predict(X, threads=2), expected):
                wrong.append(("all", call))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and not any(thread.is_alive() for thread in threads)


WRITER = """
    import sys, threading, time
    import numpy as np
    import xc
    sys.path.insert(0, {tests!r})
    from test_processes import made

    X, Y = made(3000)
    model = xc.load({folder!r})
    expected = model.predict(X, threads=2)
    stop = threading.Event()
    usual = X.indices.copy()

    def write():
        rng = np.random.default_rng(0)
        while not stop.is_set():
            at = int(rng.integers(0, len(usual)))
            X.indices[at] = rng.choice([-1, 2**31 - 1, X.shape[1], 0])
            X.data[at] = rng.choice([np.nan, np.inf, 1.0]).astype(np.float32)
            X.indptr[at % len(X.indptr)] = rng.integers(-5, 2**40)
            if rng.random() < 0.2:
                X.indices[:], X.data[:], X.indptr[:] = usual, 1.0, np.arange(0, 6 * 3000 + 1, 6)

    writer = threading.Thread(target=write)
    writer.start()
    outcomes = {{"answers": 0, "errors": 0}}
    until = time.monotonic() + 3
    while time.monotonic() < until:
        try:
            found = model.predict(X, threads=2)
            assert found.ids.max() < 20 and np.isfinite(found.scores).all()
            outcomes["answers"] += 1
        except ValueError:
            outcomes["errors"] += 1
        try:
            xc.train("tree", X, Y, trees=1, threads=2, model=None)
        except ValueError:
            outcomes["errors"] += 1
    stop.set()
    writer.join()
    assert sum(outcomes.values()) > 0 and outcomes["errors"] > 0, outcomes
    X.indices[:], X.data[:], X.indptr[:] = made(3000)[0].indices, made(3000)[0].data, np.arange(0, 6 * 3000 + 1, 6)
    again = model.predict(X, threads=2)
    assert np.array_equal(again.ids, expected.ids) and np.array_equal(again.scores, expected.scores)
    print("written", outcomes)
"""


def test_a_thread_that_writes_meanwhile_never_ends_the_process(trained):
    _, model, _ = trained
    done = script(WRITER, folder=model.folder)
    assert done.returncode == 0 and done.stdout.startswith("written"), (done.returncode, done.stderr[-2000:])


def resident():
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc on this system")
def test_memory_stays_the_same_over_many_queries(trained):
    X, model, _ = trained
    query = (X.indices[:6].copy(), X.data[:6].copy())
    for _ in range(5000):
        model.predict_one(query)
        model.predict_one({3: 1.0})
    before = resident()
    for _ in range(int(os.environ.get("XC_TEST_CALLS", 20_000))):
        model.predict_one(query)
    few = X.part(3)
    for _ in range(2000):
        model.predict(few)
    assert resident() - before < 1 << 20


def test_a_pickle_of_a_saved_model_is_its_path(trained, tmp_path):
    X, model, expected = trained
    data = pickle.dumps(model)
    assert len(data) < 1000 and same(pickle.loads(data).predict(X), expected)
    moved = tmp_path / "model"
    copy = xc.load(model.folder)
    copy.save(moved)
    data = pickle.dumps(xc.load(moved))
    xc.train("tree", X, [[row % 3] for row in range(X.shape[0])], model=moved, trees=1, threads=1)
    with pytest.raises(xc.ModelError, match="another model than the one that was pickled"):
        pickle.loads(data)
    (moved / "config.json").unlink()
    with pytest.raises(xc.ModelError):
        pickle.loads(data)


def test_a_pickle_of_a_temporary_model_is_its_bytes():
    X, Y = made(100)
    model = xc.train("tree", X, Y, trees=1, threads=1).model
    expected, folder, data = model.predict(X), model.folder, pickle.dumps(model)
    # Answers keep their model until they have read the names of the labels.
    assert expected.label_names is None
    del model
    gc.collect()
    assert not os.path.exists(folder)
    again = pickle.loads(data)
    found = again.predict(X)
    assert same(found, expected) and again.folder != folder and found.label_names is None
    parent = os.path.dirname(again.folder)
    del again
    gc.collect()
    assert not os.path.exists(parent)


def temporary_folders():
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("xc-")}


def test_temporary_folders_go_with_the_last_object(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    X, Y = made(100)
    t = xc.train("tree", X, Y, trees=1, threads=1)
    assert len(temporary_folders()) == 1
    model = t.model
    del t
    gc.collect()
    assert len(temporary_folders()) == 1 and len(model.predict(X)) == 100
    model.save(tmp_path / "kept")
    gc.collect()
    assert not temporary_folders() and model.folder == str(tmp_path / "kept")
    del model

    def stop(event):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        xc.train("lns", X, Y, epochs=1000, threads=1, callbacks=stop, progress=False)
    gc.collect()
    assert not temporary_folders()
    with pytest.raises(xc.OptionError):
        xc.train("tree", X, Y, trees=0, threads=1)
    with pytest.raises(xc.DataError):
        xc.train("tree", X.part(10), Y, threads=1)
    gc.collect()
    assert not temporary_folders()
