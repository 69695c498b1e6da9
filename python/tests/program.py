"""The program `xc`, instances in its files, and what of a model's folder has to be equal."""

import json
import os
import subprocess

import numpy as np

PATH = os.environ.get("XC_PROGRAM")

KINDS = ("tree", "mach", "dense", "uniform", "lns", "astra", "skipgram")

SMALL = {
    "tree": {"trees": 2, "cluster_max_leaf": 3, "tree_branching": 2},
    "mach": {"epochs": 2, "network_widths": 8, "repetitions": 2, "buckets": 6},
    "dense": {"epochs": 2, "network_widths": 8, "batch": 16},
    "uniform": {"epochs": 3, "network_widths": 8, "network_intermediate": 16, "head_fan_in": 6, "batch": 16},
    "lns": {"epochs": 2, "network_widths": 8, "batch": 16},
    "astra": {"epochs": 2, "network_widths": 8, "batch": 16, "negatives_hard": 2, "negatives_uniform": 3},
    "skipgram": {"epochs": 2, "network_widths": 8, "batch": 64, "min_count": 1, "sampler": "all"},
}
"""Settings with which a kind is trained in a moment."""

N, N_TEST, N_FEATURES, N_LABELS, WIDTH = 60, 20, 40, 13, 8


class Outcome:
    """How a run of the program ended."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()

    @property
    def message(self):
        """What it says is wrong, without the program's name and the page of help."""
        lines = [line for line in self.err.splitlines() if line.startswith("xc: error: ")]
        return lines[-1].removeprefix("xc: error: ").split(" (see 'xc ")[0] if lines else ""


def run(*arguments, code=0, cwd=None, stdin=None):
    """Runs the program; ``code`` is the exit code that is expected, None any."""
    typed = [PATH, *map(str, arguments)]
    if "--threads" not in typed:
        typed += ["--threads", "1"]
    done = Outcome(subprocess.run(typed, cwd=cwd, input=stdin, capture_output=True))
    assert code is None or done.code == code, f"{typed}: exit code {done.code}\n{done.err}"
    return done


def name_of(kind, keyword):
    """The program's name of an option."""
    import xc

    return xc.settings(kind)[keyword]["name"]


def flags(kind, options):
    """Options as they are typed."""
    import xc

    out = []
    for keyword, value in options.items():
        row = xc.settings(kind)[keyword]
        if row["type"] == "switch":
            out += [f"--{row['name']}"] if value else []
        else:
            out += [f"--{row['name']}", typed(value)]
    return out


def typed(value):
    """A value as it is typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(typed, value))
    return str(value)


def shortest(value):
    """The shortest digits of a number in single precision."""
    return str(np.float32(value))


def text_of_rows(indptr, indices, values, labels, n_features, n_labels):
    """Rows in XC text format; ``labels`` are lists of ids."""
    out = [f"{len(labels)} {n_features} {n_labels}"]
    for row, of_row in enumerate(labels):
        at = slice(indptr[row], indptr[row + 1])
        entries = [f"{i}:{shortest(v)}" for i, v in zip(indices[at].tolist(), values[at])]
        out.append(" ".join([",".join(map(str, of_row))] + entries))
    return "\n".join(out) + "\n"


class Sparse:
    """Sparse rows, as much as the package asks of an object: scipy is not needed."""

    def __init__(self, indptr, indices, data, shape):
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape

    @property
    def nnz(self):
        return len(self.data)


class Data:
    """Instances as arrays, and in files of one folder."""

    def __init__(self, folder, n=N, n_test=N_TEST, n_features=N_FEATURES, n_labels=N_LABELS, seed=1):
        self.folder, self.n_labels, self.n_features = folder, n_labels, n_features
        draw = np.random.default_rng(seed)
        self.train = Part(folder, "train", draw, n, n_features, n_labels)
        self.test = Part(folder, "test", draw, n_test, n_features, n_labels)
        self.names = [f"{'abcd'[label % 4]}{label:04}" for label in range(n_labels)]
        self.write("names.txt", "".join(name + "\n" for name in self.names))
        self.write("words.txt", "".join(text + "\n" for text in self.train.texts))
        self.label_rows = Part(folder, "label-rows", draw, n_labels, n_features, n_labels)

    def write(self, name, text):
        """Writes a file of the folder; returns its path."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def arrays(self, form, part="train"):
        """Instances and labels as :func:`xc.train` takes them."""
        part = getattr(self, part)
        if form == "words":
            return (part.texts,)
        return {"sparse": part.sparse, "vectors": part.vectors, "texts": part.texts}[form], part.labels_of(form)

    def files(self, form, part="train", option=None):
        """The same in files, as the program takes them."""
        part, option = getattr(self, part), option or ("train" if part == "train" else "validation")
        if form == "words":
            return ["--train", self.folder / "words.txt"]
        if form == "vectors":
            return [f"--{option}", part.path("npy"), f"--{option}-labels", part.path("txt")]
        return [f"--{option}", part.path("jsonl" if form == "texts" else "txt")]


class Part:
    """Some instances: sparse rows, vectors and texts of the same labels."""

    def __init__(self, folder, name, draw, n, n_features, n_labels):
        self.folder, self.name = folder, name
        # The last label has no instance.
        self.labels = [
            sorted({row % (n_labels - 1), *draw.integers(0, n_labels - 1, row % 3).tolist()}) for row in range(n)
        ]
        own = [[3 * label % n_features, (3 * label + 1) % n_features] for of_row in self.labels for label in of_row[:1]]
        ids = [sorted({*of_row, *draw.integers(0, n_features, 6).tolist()}) for of_row in own]
        self.indptr = np.cumsum([0] + list(map(len, ids))).astype(np.int32)
        self.indices = np.concatenate(ids).astype(np.int32)
        self.values = (0.5 + draw.integers(0, 100, len(self.indices)) / 40).astype(np.float32)
        self.sparse = Sparse(self.indptr, self.indices, self.values, (n, n_features))
        self.vectors = draw.normal(size=(n, WIDTH)).astype(np.float32)
        for row, of_row in enumerate(self.labels):
            self.vectors[row, of_row[0] % WIDTH] += 2
        self.texts = [" ".join(map(word, of_row)) for of_row in ids]
        self.path("txt").write_text(
            text_of_rows(self.indptr, self.indices, self.values, self.labels, n_features, n_labels), encoding="utf-8"
        )
        np.save(self.path("npy"), self.vectors)
        lines = (
            json.dumps({"text": text, "labels": [f"{'abcd'[label % 4]}{label:04}" for label in of_row]})
            for text, of_row in zip(self.texts, self.labels)
        )
        self.path("jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def path(self, form):
        """The file of a form."""
        return self.folder / f"{self.name}.{form}"

    def labels_of(self, form):
        """Names of labels with texts, ids else."""
        if form == "texts":
            return [[f"{'abcd'[label % 4]}{label:04}" for label in of_row] for of_row in self.labels]
        n_labels = int(self.path("txt").read_text(encoding="utf-8").split("\n", 1)[0].split(" ")[2])
        indptr = np.cumsum([0] + list(map(len, self.labels))).astype(np.int32)
        indices = np.array([label for of_row in self.labels for label in of_row], np.int32)
        return Sparse(indptr, indices, np.ones(len(indices), np.float32), (len(self.labels), n_labels))


def word(number):
    """A word: some with a capital, some with an accent, some of one letter."""
    stem = ["caf\u00e9", "Berg", "luna", "x", "table", "Ost", "rio", "stone"][number % 8]
    return stem + ["", "a", "ing", "er", "BIG"][number // 8 % 5]


def kept(folder):
    """The files of a model's folder and their bytes; the configuration without the form of its input, and its hash."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    for name in [name for name in found if name.rpartition("/")[2] == "config.json"]:
        found[name] = without_input(json.loads(found[name]))
    return found


def without_input(config):
    """A configuration but for what it says of the form of the input."""
    config = dict(config)
    config.pop("xxh3", None)
    if isinstance(config.get("parameters"), dict):
        config["parameters"] = {name: value for name, value in config["parameters"].items() if name != "input"}
    return config


def same(ours, theirs, what):
    """Fails where two folders differ."""
    assert ours.keys() == theirs.keys(), f"{what}: {sorted(ours)} and {sorted(theirs)}"
    for name, value in ours.items():
        assert value == theirs[name], f"{what}: {name} differs: {difference(value, theirs[name])}"


def difference(ours, theirs):
    """The first difference of two configurations, for people."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return f"{str(ours)[:200]} and {str(theirs)[:200]}"
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            return f"{name}: {difference(ours.get(name), theirs.get(name))}"
    return "none"
