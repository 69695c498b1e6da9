"""Ctrl-C and exceptions of callbacks: the work stops soon, is kept where it has a place, and goes on from there."""

import os
import shutil
import signal
import sys
import threading
import time

import numpy as np
import pytest

import xc
from test_processes import Rows, made

CPU_S = 0.45
"""Seconds that each of two threads may work on after an interruption. Processor time: machines of tests are busy."""

LOOP_S = 0.06
"""Seconds of the loop in `slowness` on the machine on which the other number was chosen."""

WALL_S = 20


def large(n=10_000, width=20_000, n_labels=4000, seed=0):
    """Rows that are learned in seconds, not in the blink of an eye."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_labels, n)
    indices = (y[:, None] * 7919 + np.sort(rng.integers(0, 300, (n, 40)), axis=1)) % width
    noise = rng.random((n, 40)) < 0.5
    indices[noise] = rng.integers(0, width, noise.sum())
    indices.sort(axis=1)
    keep = np.ones_like(indices, bool)
    keep[:, 1:] = indices[:, 1:] != indices[:, :-1]
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    data = rng.random(keep.sum()).astype(np.float32) + 0.1
    Y = [[int(label), int((label + other) % n_labels)] for label, other in zip(y, rng.integers(1, 40, n))]
    return Rows(indptr, indices[keep].astype(np.int32), data, (n, width)), Y


@pytest.fixture(scope="module")
def data():
    return large()


class Ctrl:
    """Sends the signal of Ctrl-C after a time, and says what was used until it was heard."""

    def __init__(self, after):
        self.after, self.at = after, None
        self.thread = threading.Timer(after, self.press)

    def press(self):
        self.at = time.perf_counter(), time.process_time()
        os.kill(os.getpid(), signal.SIGINT)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, error, trace):
        now = time.perf_counter(), time.process_time()
        self.thread.cancel()
        self.thread.join()
        if self.at is not None:
            self.wall, self.cpu = now[0] - self.at[0], now[1] - self.at[1]


def slowness():
    """How many times as long as usual this machine takes at the moment, and 1 at least."""

    def loop():
        begin = time.process_time()
        sum(i * i for i in range(1_000_000))
        return time.process_time() - begin

    return max(1, max(loop() for _ in range(3)) / LOOP_S)


def interrupted(work, after):
    """Does work that an interruption ends; its message. Work that is done sooner is begun again, with less time."""
    for _ in range(6):
        try:
            with Ctrl(after) as ctrl:
                work()
        except KeyboardInterrupt as error:
            assert ctrl.cpu < 2 * CPU_S + 0.05 or ctrl.cpu < 2 * CPU_S * slowness(), ctrl.cpu
            assert ctrl.wall < WALL_S, ctrl.wall
            return str(error)
        after /= 2
    pytest.fail(f"the work was done before {after:.3f} s")


def files(folder):
    """Bytes of each file below a folder."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            whole = os.path.join(path, name)
            with open(whole, "rb") as file:
                found[os.path.relpath(whole, folder)] = file.read()
    return found


TRAININGS = {
    "trees": ("tree", {"trees": 2}),
    "bonsai": ("tree", {"trees": 1, "preset": "bonsai"}),
    "steps": ("lns", {"epochs": 2, "network_widths": 64, "validation_fraction": 0.2}),
    "initial values": ("lns", {"epochs": 1, "network_widths": 128, "network_init": "lsa"}),
    "wide": ("lns", {"epochs": 1, "network_widths": 32, "wide": "on"}),
    "repetitions": ("mach", {"epochs": 1, "repetitions": 2, "network_widths": 32}),
}


@pytest.mark.parametrize("stage", TRAININGS)
def test_an_interrupted_training_goes_on_with_the_same_bytes(data, stage, tmp_path):
    kind, options = TRAININGS[stage]
    X, Y = data
    usual = {"threads": 2, "progress": False, **options}
    begin = time.perf_counter()
    xc.train(kind, X, Y, model=tmp_path / "whole", **usual)
    took = time.perf_counter() - begin
    for share in (0.25, 0.7):
        folder = tmp_path / f"stopped-{share}"

        def work():
            # What an attempt that was not interrupted has left.
            shutil.rmtree(folder, ignore_errors=True)
            xc.train(kind, X, Y, model=folder, restart=True, **usual)

        after = share * took
        while not (said := interrupted(work, after)):
            # Pressed behind the work: Python itself interrupts, without a message, and all of the work is done.
            assert files(folder) == files(tmp_path / "whole")
            after /= 2
        # Whoever presses as the work ends finds all of it done.
        assert ("its result is saved" in said) == folder.exists() or "had only begun" in said
        assert said.startswith("stopped") and ("resume=True" in said) == os.path.exists(f"{folder}.checkpoint")
        xc.train(kind, X, Y, model=folder, resume=True, **usual)
        whole, resumed = files(tmp_path / "whole"), files(folder)
        assert whole.keys() == resumed.keys()
        assert [name for name in whole if whole[name] != resumed[name]] == []


def test_what_is_kept_is_said(data, tmp_path):
    X, Y = data
    work = lambda **more: xc.train("lns", X, Y, epochs=50, network_widths=16, threads=2, progress=False, **more)
    said = interrupted(work, 1.0)
    assert said == "stopped; nothing is kept (model= or checkpoint= names a folder for finished work)"
    said = interrupted(lambda: work(model=tmp_path / "model", checkpoint=tmp_path / "kept"), 1.0)
    assert str(tmp_path / "kept") in said and "resume=True" in said
    assert (tmp_path / "kept").is_dir()


def test_other_work_stops(data, tmp_path):
    X, Y = data
    model = xc.train("tree", X, Y, model=tmp_path / "a", trees=1, threads=2).model
    other = xc.train("lns", X, Y, model=tmp_path / "b", epochs=1, network_widths=32, threads=2).model
    Z, of_z = large(seed=1)
    vectors = np.random.default_rng(0).normal(size=(20_000, 48)).astype(np.float32)
    texts = [" ".join(f"w{i}" for i in X.indices[a:b]) for a, b in zip(X.indptr, X.indptr[1:])] * 5
    works = {
        "predict": lambda: [model.predict(Z, top_k=20, threads=2) for _ in range(10)],
        "calibrate": lambda: xc.calibrate(model, Z, of_z, output=tmp_path / "c", threads=2),
        "blend": lambda: xc.blend([model, other], Z, of_z, output=tmp_path / "d", threads=2),
        "index": lambda: xc.index(vectors, "l2", threads=2),
        "tune": lambda: xc.tune("tree", X, Y, trials=3, output=tmp_path / "e", threads=2, restart=True, progress=False),
        "texts": lambda: xc.train("tree", texts, Y * 5, trees=1, threads=2, progress=False),
    }
    for name, work in works.items():
        print(name, interrupted(work, 0.5))
    # All of it can be done afterwards.
    assert len(model.predict(Z, threads=2)) == len(of_z)
    assert xc.calibrate(model, Z, of_z, output=tmp_path / "c", threads=2).model.calibrated


def test_rows_that_are_copied_stop(tmp_path):
    n, width = 300_000, 100
    ends = np.arange(0, n * width + 1, width)
    X = Rows(ends, np.tile(np.arange(width, dtype=np.int32), n), np.ones(n * width, np.float32), (n, width))
    Y = Rows(np.arange(n + 1), np.arange(n, dtype=np.int32) % 5, np.ones(n, np.float32), (n, 5))
    seen = []
    work = lambda: xc.train("tree", X, Y, model=tmp_path / "m", threads=2, progress=False, callbacks=[seen.append])
    # Sooner than so much can be copied nothing is told of the training yet. A busy machine sends the signal late.
    for after in (0.1, 0.05, 0.02, 0.01):
        seen.clear()
        interrupted(work, after)
        assert not (tmp_path / "m").exists()
        if not seen:
            return
    pytest.fail("the training had begun each time")


def test_an_exception_of_a_callback_is_raised(tmp_path):
    X, Y = made()

    class Enough(Exception):
        pass

    def stop(event):
        assert isinstance(event, dict) and isinstance(event["event"], str)
        raise Enough(event["event"])

    for kind, options in (("tree", {"trees": 50}), ("lns", {"epochs": 2000, "network_widths": 16})):
        begin = time.process_time()
        with pytest.raises(Enough):
            xc.train(kind, X, Y, threads=2, callbacks=[stop], progress=False, **options)
        assert time.process_time() - begin < 10
    seen = []
    xc.train("tree", X, Y, trees=1, threads=1, callbacks=seen.append, progress=False)
    assert seen and {event["event"] for event in seen} >= {"tree"}


CELL = """
import threading
import numpy as np, sys
sys.path.insert(0, {tests!r})
import xc
from test_interrupt import large
X, Y = large()
def say(event):
    if event["event"] == {awaited!r}:
        print("BEGUN", flush=True)
print("READY", flush=True)
xc.train({kind!r}, X, Y, threads=2, progress=False, callbacks=say, **{options!r})
"""


@pytest.mark.parametrize(
    "kind, options, awaited",
    [("tree", {"trees": 50}, "rankers"), ("lns", {"epochs": 300, "network_widths": 32}, "step")],
)
def test_the_interrupt_button_of_a_notebook(kind, options, awaited):
    client = pytest.importorskip("jupyter_client")
    pytest.importorskip("ipykernel")
    manager = client.KernelManager(kernel_name="python3")
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel()
    try:
        kernel = manager.client()
        kernel.start_channels()
        kernel.wait_for_ready(timeout=60)
        tests = os.path.dirname(os.path.abspath(__file__))
        asked = kernel.execute(CELL.format(tests=tests, kind=kind, options=options, awaited=awaited))
        pressed = None
        until = time.monotonic() + 120
        while time.monotonic() < until:
            message = kernel.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "stream" and "BEGUN" in message["content"]["text"] and pressed is None:
                pressed = time.monotonic()
                manager.interrupt_kernel()
            if message["msg_type"] == "error":
                assert pressed is not None, "\n".join(message["content"]["traceback"])
                assert message["content"]["ename"] == "KeyboardInterrupt"
                break
        else:
            pytest.fail("the kernel said nothing")
        wall = time.monotonic() - pressed
        print(f"{kind}: {wall:.3f} s from the button to the traceback")
        assert wall < WALL_S
        # The kernel goes on, once it has refused what came behind the cell.
        until = time.monotonic() + 60
        while kernel.execute_interactive("1 + 1", timeout=60)["content"]["status"] != "ok":
            assert time.monotonic() < until
        kernel.stop_channels()
    finally:
        manager.shutdown_kernel(now=True)
