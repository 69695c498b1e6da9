"""A model is what was opened, and not what stands in its folder by now; folders that nobody named go with their processes."""

import copy
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import xc
from program import SMALL

TEXTS, LABELS = ["apple red", "car fast", "sun hot", "rain wet"] * 5, [["a"], ["b"], ["c"], ["d"]] * 5


def trained(folder=None, shift=0, **more):
    """A model in a folder; ``shift`` moves its labels to other texts."""
    return xc.train("tree", TEXTS, LABELS[shift:] + LABELS[:shift], model=folder, trees=1, progress=False, **more).model


def answers(model):
    return model.predict(TEXTS[:4], top_k=1).names()


def test_a_copy_of_a_model_whose_folder_has_another_is_refused(tmp_path):
    first = trained(tmp_path / "m", validation_fraction=0.3)
    was = answers(first)
    for copied in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first), copy.copy(first)):
        assert answers(copied) == was
    trained(tmp_path / "m", shift=1)
    for door in (
        lambda: pickle.dumps(first), lambda: copy.deepcopy(first), lambda: first.save(tmp_path / "copy"),
        lambda: first.build_index(), lambda: first.build_index(output=tmp_path / "index"),
        lambda: xc.calibrate(first, TEXTS, LABELS, held_out=True, progress=False), lambda: xc.inspect(first),
        lambda: xc.blend([first, first], TEXTS, LABELS, output=tmp_path / "b", progress=False),
        lambda: xc.merge([first, first], tmp_path / "b"), lambda: xc.convert(first, tmp_path / "c"),
    ):
        with pytest.raises(xc.ModelError, match="replaced since it was opened"):
            door()
    with pytest.raises(TypeError, match="^members: a str; models are expected"):
        xc.blend(["m", "m"], TEXTS, LABELS)
    # It answers as it did, and nothing was written.
    assert answers(first) == was and sorted(os.listdir(tmp_path)) == ["m"] and not (tmp_path / "m" / "index").exists()
    shutil.rmtree(tmp_path / "m")
    for door in (lambda: pickle.dumps(first), lambda: first.save(tmp_path / "copy")):
        with pytest.raises(xc.ModelError, match="No such file .*the model was opened from there"):
            door()


def test_two_objects_of_one_folder(tmp_path, data):
    X, Y = data.arrays("sparse")
    one = xc.train("tree", X, Y, model=tmp_path / "m", validation_fraction=0.3, progress=False, **SMALL["tree"]).model
    other = xc.load(tmp_path / "m")
    xc.calibrate(one, X, Y, held_out=True, progress=False)
    assert one.calibrated and pickle.loads(pickle.dumps(one)).calibrated
    with pytest.raises(xc.ModelError, match="replaced since it was opened"):
        pickle.dumps(other)


def test_an_index_is_built_for_a_model_that_is_there(tmp_path):
    texts = [f"word{i} other{i}" for i in range(300)]
    model = xc.train(
        "lns", texts, [[i] for i in range(300)], model=tmp_path / "m", network_widths=[8], epochs=1, text_min_df=1, progress=False
    ).model
    model.build_index(threads=1)
    assert model.has_index and pickle.loads(pickle.dumps(model)).has_index


def test_an_index_and_a_model_do_not_replace_each_other(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    index, model = xc.index(vectors, "l2", tmp_path / "i"), trained(tmp_path / "m")
    for door in (lambda: index.save(tmp_path / "m"), lambda: xc.index(vectors, "l2", tmp_path / "m")):
        with pytest.raises(xc.ModelError, match="a model of kind 'tree' stands there; an index does not replace it"):
            door()
    for door in (
        lambda: trained(tmp_path / "i"), lambda: model.save(tmp_path / "i"), lambda: xc.convert(model, tmp_path / "i"),
        lambda: xc.tune("tree", TEXTS, LABELS, trials=1, output=tmp_path / "i", progress=False),
    ):
        with pytest.raises(xc.ModelError, match="an index of kind 'ann-index' stands there; a model does not replace it"):
            door()
    # One of its own kind does, as ever.
    xc.index(vectors[:10], "l2", tmp_path / "i")
    trained(tmp_path / "m", shift=1)
    assert len(xc.load_index(tmp_path / "i")) == 10 and answers(xc.load(tmp_path / "m")) != answers(model)


def test_a_relative_folder_is_the_same_after_a_change_of_directory(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    models = [trained("m"), xc.load("m"), xc.convert("m", "c")]
    data = [pickle.dumps(model) for model in models]
    monkeypatch.chdir(tmp_path / "elsewhere")
    for model, packed in zip(models, data):
        assert os.path.isabs(model.folder) and answers(pickle.loads(packed)) == answers(model) == answers(copy.deepcopy(model))
    models[1].save("here")
    assert (tmp_path / "elsewhere" / "here").is_dir()
    with pytest.raises(xc.ModelError):
        xc.load("")


def test_a_pickle_names_a_folder_and_says_so(tmp_path):
    packed = pickle.dumps(trained(tmp_path / "m"))
    os.rename(tmp_path / "m", tmp_path / "moved")
    with pytest.raises(xc.ModelError, match="the pickle names the folder of a model and does not hold it"):
        pickle.loads(packed)


def test_a_damaged_pickle_is_an_error_of_the_package():
    whole = pickle.dumps(trained())
    start = whole.index(b"PK\x03\x04")
    n = 0
    for at in range(start + 40, len(whole) - 200, max(1, (len(whole) - start) // 60)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        try:
            pickle.loads(bytes(damaged)).predict(TEXTS)
        except (xc.ModelError, pickle.UnpicklingError):
            n += 1
    assert n > 30


@pytest.mark.parametrize("named", [True, False])
def test_ranked_lists_travel(named):
    model = trained() if named else xc.train("tree", TEXTS, [[i % 4] for i in range(20)], trees=1, progress=False).model
    ranked = model.predict(TEXTS, top_k=2)
    for copied in (pickle.loads(pickle.dumps(ranked)), copy.deepcopy(ranked), copy.copy(ranked)):
        assert copied.names() == ranked.names() and copied.label_names == ranked.label_names == model.labels
        assert copied.scores.tobytes() == ranked.scores.tobytes() and copied.n_labels == 4
        assert (copied.known_terms == ranked.known_terms).all() and list(copied) == [ranked[row] for row in range(20)]
    # Names that are too few are no end of the lists.
    short = xc.Ranked(ranked.indptr, ranked.ids, ranked.scores, 4, ["a"])
    with pytest.raises(IndexError):
        short.names()


def test_processes_answer_with_ranked_lists(tmp_path):
    model = trained(tmp_path / "m")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        [found] = pool.map_async(model.predict, [TEXTS]).get(timeout=120)
    assert found.names() == model.predict(TEXTS).names()


WORKERS = """
import multiprocessing, os, signal, sys, time
import xc
TEXTS, LABELS = ["apple red", "car fast", "sun hot", "rain wet"] * 5, [["a"], ["b"], ["c"], ["d"]] * 5

def made():
    return xc.train("tree", TEXTS, LABELS, trees=1, threads=1, progress=False).model

def keep():
    global model
    model = made()

def ask(number):
    return model.predict(TEXTS[:1], threads=1).names()

def stay(ready):
    keep()
    ready.set()
    time.sleep(60)

if __name__ == "__main__":
    own = made()
    for method in sorted({"fork", "spawn"} & set(multiprocessing.get_all_start_methods())):
        context = multiprocessing.get_context(method)
        with context.Pool(2, keep) as pool:
            pool.map(ask, range(4))
        # Terminated workers hold their folders until they have ended.
        pool.join()
        pool = context.Pool(2, keep)
        pool.map(ask, range(4))
        pool.close()
        pool.join()
        ready = context.Event()
        worker = context.Process(target=stay, args=(ready,))
        worker.start()
        assert ready.wait(60)
        # A folder of a process that lives is left alone.
        last = made()
        assert len([name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("xc-")]) == 3, method
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        del last
        last = made()
        left = [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("xc-")]
        assert len(left) == 2, (method, left)
        del last
    assert os.path.isdir(own.folder) and own.predict(TEXTS[:1]).names()
    if len(sys.argv) > 1:
        worker = context.Process(target=stay, args=(context.Event(),), daemon=True)
        worker.start()
        time.sleep(2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of folders on this system")
def test_workers_leave_no_folders(tmp_path):
    pytest.importorskip("fcntl", reason="no locks of files on this system")
    (tmp_path / "t").mkdir()
    (tmp_path / "workers.py").write_text(WORKERS)
    # Not of this package, or of a process that has not locked it yet.
    (tmp_path / "t" / "xc-other").mkdir()
    source = WORKERS.replace('startswith("xc-")', 'startswith("xc-") and name != "xc-other"')
    (tmp_path / "workers.py").write_text(source)
    command = [sys.executable, str(tmp_path / "workers.py"), "daemon"]
    done = subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path / "t")}, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [name for name in os.listdir(tmp_path / "t") if name.startswith("xc-")] == ["xc-other"]


def test_a_folder_whose_removal_is_cut_off_is_removed_by_the_next_process(tmp_path, monkeypatch):
    pytest.importorskip("fcntl", reason="no locks of files on this system")
    from xc import _folders

    monkeypatch.setattr(_folders.tempfile, "gettempdir", lambda: str(tmp_path))
    for n_done in range(4):
        folder = tmp_path / f"xc-{n_done}"
        for name in ("a", "b"):
            (folder / name).mkdir(parents=True)
            (folder / name / "file").write_text("")
        (folder / "note").write_text("")
        (folder / _folders.LOCK).write_text("")
        calls = []

        def some(path, ignore_errors, real=shutil.rmtree):
            # Ended before this one.
            if len(calls) == n_done:
                raise KeyboardInterrupt
            calls.append(path)
            real(path, ignore_errors=ignore_errors)

        with monkeypatch.context() as patched:
            patched.setattr(_folders.shutil, "rmtree", some)
            with pytest.raises(KeyboardInterrupt):
                _folders.clear(str(folder))
        assert (folder / _folders.LOCK).exists()
        _folders.sweep()
        assert not folder.exists()


def test_inserts_of_several_threads_return_their_rows():
    vectors = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    index = xc.index(vectors[:100], "l2", threads=1)
    got, wrong = [], []

    def insert(start):
        try:
            for i in range(start, start + 100, 5):
                got.append((i, index.insert(vectors[i:i + 5], threads=1)))
                index.delete(got[-1][1][4:])
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=insert, args=(start,)) for start in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and len(index) == 400 and sorted(row for _, rows in got for row in rows) == list(range(100, 400))
    for i, rows in got:
        # Four are where they are said to be; the fifth was deleted.
        found = index.search(vectors[i:i + 5], top_k=1, exact=True).padded(1)[0][:, 0].tolist()
        assert found[:4] == rows[:4].tolist() and found[4] != rows[4]
    assert index.insert(vectors[:0]).tolist() == []


def pressed(work, after=0.5):
    """Seconds from Ctrl-C until the work is stopped by it."""
    signal = pytest.importorskip("signal")
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
        time.sleep(after)
    return time.monotonic() - begin - after


@pytest.mark.skipif(sys.platform == "win32", reason="no signal of Ctrl-C to oneself on this system")
@pytest.mark.parametrize("how", ["exact", "graph", "sparse"])
def test_ctrl_c_is_heard_in_a_search(how):
    draw = np.random.default_rng(0)
    if how == "sparse":
        from program import Sparse

        n, width, k = 20_000, 200, 40
        ids = np.sort(np.argsort(draw.random((n, width)), axis=1)[:, :k], axis=1).astype(np.int32).ravel()
        rows = Sparse(np.arange(n + 1) * k, ids, draw.random(n * k).astype(np.float32), (n, width))
        index, asked = xc.index(rows, "ip", threads=1), rows
        begin = time.monotonic()
        few = Sparse(rows.indptr[:201], rows.indices[:200 * k], rows.data[:200 * k], (200, width))
        index.search(few, threads=1)
        each = (time.monotonic() - begin) / 200
        work = lambda: index.search(asked, threads=1)
    else:
        rows = draw.normal(size=(5000, 32)).astype(np.float32)
        index = xc.index(rows, "l2", passes=1, keep=20, degree=8, cells=0, threads=1)
        options = {"exact": True} if how == "exact" else {"search_width": 2.0}
        begin = time.monotonic()
        index.search(rows[:500], threads=1, **options)
        each = (time.monotonic() - begin) / 500
        asked = np.resize(rows, (min(int(8 / each), 3_000_000), 32))
        work = lambda: index.search(asked, threads=1, **options)
    if each * len(getattr(asked, "indptr", asked)) < 2:
        pytest.skip("searches are too fast on this machine to be stopped")
    assert pressed(work) < 1.5
    # The index answers on, and parts of a search are the whole.
    one = index.search(few if how == "sparse" else rows[:200], top_k=3, threads=1)
    two = index.search(few if how == "sparse" else rows[:200], top_k=3, threads=2)
    assert one.ids.tolist() == two.ids.tolist() and one.scores.tobytes() == two.scores.tobytes()
