"""Vectors that `ann.py` and `ann_filter.py` measure on, with the exact best rows of every query.

A set is a folder with base.npy, query.npy (measured with), fit.npy (xc fits its widths with these), all float32, and
truth.npy: for each query the rows of its 500 best, best first, equal ones in the order of rows. Needs numpy.
"""
import json
import os

import numpy as np

MOST = 500
METRICS = ("l2", "cosine", "ip")


def lengths(rows):
    return np.sqrt(np.einsum("ij,ij->i", rows, rows))


def unit(rows):
    """Rows of length 1, of the same type; a row of zeros stays one."""
    norm = lengths(rows)
    norm[norm == 0] = 1
    return rows / norm[:, None]


def exact(base, query, metric, k=MOST):
    """Rows of the k best for each query: products in float64, in blocks, at most some hundred MB at a time."""
    k, block = min(k, len(base)), max(1024, min(32_768, 32_000_000 // base.shape[1]))
    best = np.empty((len(query), k), np.int32)
    for begin in range(0, len(query), 500):
        asked = query[begin : begin + 500].astype(np.float64)
        ids, top = np.empty((len(asked), 0), np.int64), np.empty((len(asked), 0))
        for at in range(0, len(base), block):
            rows = np.asarray(base[at : at + block], np.float64)
            rows = unit(rows) if metric == "cosine" else rows
            scores = asked @ rows.T
            if metric == "l2":
                scores *= 2
                scores -= np.einsum("ij,ij->i", rows, rows)
            keep = np.arange(len(rows))[None].repeat(len(asked), 0)
            if len(rows) > k:
                keep = np.sort(np.argpartition(scores, len(rows) - k, axis=1)[:, len(rows) - k :], axis=1)
            ids = np.concatenate((ids, keep + at), axis=1)
            top = np.concatenate((top, np.take_along_axis(scores, keep, 1)), axis=1)
            order = np.argsort(-top, axis=1, kind="stable")[:, :k]
            ids, top = np.take_along_axis(ids, order, 1), np.take_along_axis(top, order, 1)
        best[begin : begin + 500] = ids
    return best


def similarity(base, query, ids, metric):
    """How good these rows are for one query, up to a factor of its own."""
    rows, query = base[ids].astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return -((rows - query) ** 2).sum(1)
    return ((unit(rows) if metric == "cosine" else rows) * query).sum(1)


def recall(found, truth, base, query, metric):
    """Share of the best that are found; a row that is as good as the last of the best is one of them."""
    hits, k = 0, truth.shape[1]
    for row, best, asked in zip(found, truth, query):
        row = np.unique(np.asarray(row, np.int64))
        row = row[(row >= 0) & (row < len(base))]
        missed = np.setdiff1d(row, best, assume_unique=True)
        n = len(row) - len(missed)
        if len(missed):
            least = similarity(base, asked, best[-1:], metric)[0]
            n += int((similarity(base, asked, missed, metric) >= least - 1e-12 * abs(least)).sum())
        hits += min(n, k)
    return hits / truth.size


def write(folder, **parts):
    os.makedirs(folder, exist_ok=True)
    for name, rows in parts.items():
        partial = os.path.join(folder, f"{name}.partial.npy")
        np.save(partial, rows)
        os.replace(partial, os.path.join(folder, name + ".npy"))


def load(folder, name, **options):
    return np.load(os.path.join(folder, name + ".npy"), **options)


def is_whole(folder):
    try:
        return load(folder, "truth", mmap_mode="r").shape[1] == min(MOST, len(load(folder, "base", mmap_mode="r")))
    except (FileNotFoundError, IndexError):
        return False


class Drawn:
    """Gaussian clusters of unequal sizes and widths around centres near a subspace of 32 dimensions."""

    def __init__(self, n, columns):
        self.random = random = np.random.default_rng(7)
        n_centres = max(1, n // 100)
        self.centres = random.normal(size=(n_centres, 32)) @ random.normal(size=(32, columns)) / 32**0.5
        self.spread = np.exp(random.normal(-0.3, 0.4, size=n_centres))
        share = random.pareto(1.5, size=n_centres) + 0.2
        self.share = share / share.sum()

    def rows(self, m):
        of = self.random.choice(len(self.centres), size=m, p=self.share)
        rows = self.random.normal(size=(m, self.centres.shape[1]))
        rows *= self.spread[of][:, None]
        for at in range(0, m, 65_536):
            rows[at : at + 65_536] += self.centres[of[at : at + 65_536]]
        return rows


def made(work, metric, n, n_queries=2000, columns=128):
    """A made-up set; for `ip` the rows have unequal lengths and the queries length 1. -> its folder"""
    if metric not in ("l2", "ip"):
        raise SystemExit(f"no made-up set {metric}: l2 or ip is expected; give others with --set")
    folder = os.path.join(work, f"{metric}-{n}" + (f"-{n_queries}" if n_queries != 2000 else ""))
    if is_whole(folder):
        return folder
    drawn = Drawn(n, columns)
    base, query, fit = drawn.rows(n), drawn.rows(n_queries), drawn.rows(n_queries)
    if metric == "ip":
        base = unit(base)
        base *= np.exp(drawn.random.normal(0, 0.4, size=(n, 1)))
        query, fit = unit(query), unit(fit)
    base, query, fit = (np.ascontiguousarray(rows, np.float32) for rows in (base, query, fit))
    write(folder, base=base, query=query, fit=fit)
    write(folder, truth=exact(base, query, metric))
    return folder


def given(work, name, metric, source, n_queries=2000):
    """A set of base.npy and query.npy in a folder (or base_u8.npy and query_u8.npy, of bytes): half of the queries, drawn by
    a fixed shuffle, are measured with, half fit. -> its folder"""
    paths = {}
    for part in ("base", "query"):
        tried = [os.path.join(source, part + end) for end in (".npy", "_u8.npy")]
        paths[part] = next((os.path.abspath(path) for path in tried if os.path.exists(path)), None)
        if not paths[part]:
            raise SystemExit(f"{source}: neither {part}.npy nor {part}_u8.npy is there")
    folder = os.path.join(work, f"{name}-{metric}")
    state = {part: [path, os.path.getsize(path), os.path.getmtime(path)] for part, path in paths.items()}
    state["queries"], noted = n_queries, os.path.join(folder, "source.json")
    if is_whole(folder) and os.path.exists(noted):
        with open(noted, encoding="utf-8") as f:
            if json.load(f) == state:
                return folder
    base, query = np.load(paths["base"], mmap_mode="r"), np.load(paths["query"]).astype(np.float32)
    if base.ndim != 2 or query.ndim != 2 or base.shape[1] != query.shape[1]:
        raise SystemExit(f"{source}: base is {base.shape}, query {query.shape}; wanted rows of the same width")
    os.makedirs(folder, exist_ok=True)
    for part in ("base.npy", "source.json"):
        if os.path.lexists(os.path.join(folder, part)):
            os.remove(os.path.join(folder, part))
    if base.dtype == np.float32 and base.flags.c_contiguous:
        os.symlink(paths["base"], os.path.join(folder, "base.npy"))
    else:
        write(folder, base=np.ascontiguousarray(base, np.float32))
    base = load(folder, "base", mmap_mode="r")
    order = np.random.default_rng(7).permutation(len(query))
    half = len(query) // 2
    fit, query = query[order[:half][:n_queries]], query[order[half:][:n_queries]]
    write(folder, fit=fit, query=query, truth=exact(base, query, metric))
    with open(noted, "w", encoding="utf-8") as f:
        json.dump(state, f)
    return folder
