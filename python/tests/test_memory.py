"""What a training and its predictions take of memory beside X, and that nothing of X is read after the copy."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xc
from program import SMALL, Sparse

pytest.importorskip("resource", reason="no resource: memory of a process is not known")
if sys.platform != "linux":
    pytest.skip("the peak of a process is not set back on this system", allow_module_level=True)

N, PER_ROW, WIDTH, LABELS = 60_000, 80, 160, 10
SPARSE, DENSE = {"trees": 1, "tree_branching": 10}, {"epochs": 1, "wide": "off", "batch": 256}

MAKE = f"""
import numpy as np
N, PER_ROW, WIDTH, LABELS = {N}, {PER_ROW}, {WIDTH}, {LABELS}
class Sparse:
    def __init__(self, indptr, indices, data, shape):
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape
def sparse():
    draw = np.random.default_rng(0)
    ids = draw.integers(0, 600, (N, PER_ROW), np.int32) + 600 * np.arange(PER_ROW, dtype=np.int32)
    return Sparse(np.arange(N + 1) * PER_ROW, ids.ravel(), draw.random(N * PER_ROW, np.float32), (N, 600 * PER_ROW))
def dense():
    return np.random.default_rng(0).random((N, WIDTH), np.float32)
def texts():
    words = np.array([f"w{{i:05}}" for i in range(20_000)])
    draw = np.random.default_rng(0)
    return [" ".join(words[draw.integers(0, 20_000, 100)]) for _ in range(N)]
def labels():
    return np.random.default_rng(1).integers(0, LABELS, N)
"""

MEASURE = MAKE + """
import resource, sys, xc
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
form, kind, options = sys.argv[1], sys.argv[2], eval(sys.argv[3])
Y = labels().tolist()
xc.train("tree", np.eye(4, dtype=np.float32), [[0], [1], [0], [1]], progress=False)
before = peak()
# Filled before it is of another type or layout, so that no larger copy has been made meanwhile.
if form in ("float64", "Fortran"):
    X = np.empty((N, WIDTH), np.float64 if form == "float64" else np.float32, "F" if form == "Fortran" else "C")
    for row in range(0, N, 1000):
        X[row : row + 1000] = np.random.default_rng(row).random((1000, WIDTH), np.float32)
else:
    X = {"sparse": sparse, "dense": dense, "texts": texts}[form]()
if form == "texts":
    size = sum(map(sys.getsizeof, X))
else:
    size = X.nbytes if kind == "predict" or form != "sparse" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
if kind == "predict":
    model = xc.train("tree", X[:200], Y[:200], progress=False, threads=2, **options).model
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = peak()
    model.predict(X, threads=2)
else:
    xc.train(kind, X, Y, progress=False, threads=2, **options)
print(peak() - before, size)
"""


def measured(*arguments):
    """Bytes that a process takes above what it took, and those of X."""
    done = subprocess.run([sys.executable, "-c", MEASURE, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return map(int, done.stdout.split())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same instances in files."""
    made = {}
    exec(MAKE, made)
    folder, labels = tmp_path_factory.mktemp("files"), made["labels"]()
    def save(name, x):
        arrays = {"indptr": x.indptr, "indices": x.indices, "data": x.data, "shape": x.shape, "format": b"csr"}
        np.savez(folder / name, **arrays)
    save("x.npz", made["sparse"]())
    save("y.npz", Sparse(np.arange(N + 1), labels, np.ones(N, np.float32), (N, LABELS)))
    np.save(folder / "x.npy", made["dense"]())
    with open(folder / "x.jsonl", "w") as file:
        file.writelines(json.dumps({"text": t, "labels": [int(y)]}) + "\n" for t, y in zip(made["texts"](), labels))
    return folder


@pytest.fixture(scope="module")
def of_program(run, files, tmp_path_factory):
    """The peak of the program's memory for data of a form."""
    def peak(form):
        kind, name = {"sparse": ("tree", "x.npz"), "dense": ("dense", "x.npy"), "texts": ("tree", "x.jsonl")}[form]
        more = [] if form == "texts" else ["--train-labels", files / "y.npz"]
        options = ["--epochs", 1, "--wide", "off", "--batch", 256] if kind == "dense" else ["--trees", 1, "--tree.branching", 10]
        model = tmp_path_factory.mktemp("model") / "m"
        done = run("train", kind, "--train", files / name, *more, "--model", model, *options, "--threads", 2, "--json")
        return json.loads(done.out.splitlines()[-1])["peak_rss_bytes"]
    return peak


@pytest.mark.parametrize("form", ["sparse", "dense", "float64", "Fortran", "texts"])
def test_a_training_takes_what_the_program_does_and_x(of_program, form):
    expected = of_program("dense" if form in ("float64", "Fortran") else form)
    kind, options = ("tree", SPARSE) if form in ("sparse", "texts") else ("dense", DENSE)
    more, size = measured(form, kind, options)
    assert size > 30 << 20
    # A second copy would be as large as X, or half of it.
    assert more <= expected + 1.3 * size, f"{form}: {more >> 20} MiB, the program {expected >> 20}, X {size >> 20}"


@pytest.mark.parametrize("form", ["dense", "float64", "Fortran"])
def test_predictions_of_dense_rows_over_a_tree_copy_some_rows_at_a_time(form):
    more, size = measured(form, "predict", SPARSE)
    assert more < 0.7 * size, f"{form}: {more >> 20} MiB, X {size >> 20}"


def forms(data):
    """Kinds, instances, labels, and what of the instances may be written to."""
    X, Y = data.arrays("sparse")
    # The fixture is shared with other tests.
    X = Sparse(X.indptr.copy(), X.indices.copy(), X.data.copy(), X.shape)
    vectors = data.arrays("vectors")[0]
    double = Sparse(X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(np.float64), X.shape)
    for rows in (X, double):
        yield "tree", rows, Y, [rows.data, rows.indices, rows.indptr]
    for dtype, order in ((np.float32, "C"), (np.float64, "C"), (np.float32, "F"), (np.float16, "F")):
        array = np.array(vectors, dtype, order=order)
        yield "dense", array, Y, [array]
    texts = list(data.arrays("texts")[0])
    yield "tree", texts, data.arrays("texts")[1], [texts]


def test_what_happens_to_x_while_a_model_is_trained_does_not_matter(data):
    for kind, X, Y, parts in forms(data):
        expected = xc.train(kind, X, Y, progress=False, threads=1, **SMALL[kind]).model
        asked = [part.copy() for part in parts]
        query = Sparse(asked[2], asked[1], asked[0], X.shape) if len(parts) == 3 else asked[0]
        heard = []

        def spoil(event):
            heard.append(event)
            for part in parts:
                part[:] = [] if isinstance(part, list) else -1

        found = xc.train(kind, X, Y, progress=False, threads=1, callbacks=spoil, **SMALL[kind]).model
        assert heard
        ours, theirs = found.predict(query), expected.predict(query)
        assert ours.ids.tobytes() == theirs.ids.tobytes() and ours.scores.tobytes() == theirs.scores.tobytes()
