"""Rows in XC text (`N D L` header, then `l1,l2 f:v f:v` a line) to and from scipy matrices.

The features are written with six significant digits, and whoever holds the matrix in memory holds
the values that were written, so a system fed from a file and one fed from memory see the same rows.
"""
import os

import numpy as np
import scipy.sparse as sp


def six_digits(values):
    """Each value rounded to the six significant digits that `%.6g` prints, as float32."""
    v = np.asarray(values, np.float64)
    out = v.copy()
    some = v != 0
    scale = 10.0 ** (5 - np.floor(np.log10(np.abs(v[some]))))
    out[some] = np.round(v[some] * scale) / scale
    return out.astype(np.float32)


def write_text(path, x, y):
    """Features `x` and labels `y` (both CSR, same rows) as XC text; the file appears whole or not at all."""
    x, y = x.tocsr(), y.tocsr()
    x.sort_indices()
    y.sort_indices()
    part = f"{path}.part"
    with open(part, "w", encoding="ascii") as f:
        f.write(f"{x.shape[0]} {x.shape[1]} {y.shape[1]}\n")
        for r in range(x.shape[0]):
            a, b = x.indptr[r], x.indptr[r + 1]
            labels = ",".join(map(str, y.indices[y.indptr[r] : y.indptr[r + 1]].tolist()))
            pairs = " ".join(["%d:%.6g" % t for t in zip(x.indices[a:b].tolist(), x.data[a:b].tolist())])
            f.write(f"{labels} {pairs}\n" if pairs or not labels else f"{labels}\n")
    os.replace(part, path)


def read_text(path):
    """XC text with header -> (X, Y) CSR float32, values as written."""
    with open(path, "rb") as f:
        n, d, l = (int(v) for v in f.readline().split())
        cols, vals, labs = [], [], []
        xp, yp = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        for r in range(n):
            line = f.readline().rstrip(b"\r\n")
            head, _, rest = line.partition(b" ")
            if b":" in head:  # no labels and no leading blank either
                head, rest = b"", line
            lab = np.array([int(t) for t in head.split(b",") if t], np.int32)
            both = np.array(rest.replace(b":", b" ").split(), dtype=np.float64)
            cols.append(both[0::2].astype(np.int32))
            vals.append(both[1::2].astype(np.float32))
            labs.append(lab)
            xp[r + 1] = xp[r] + len(cols[-1])
            yp[r + 1] = yp[r] + len(lab)
        if f.readline().strip():
            raise ValueError(f"{path}: more than the {n} rows its header names")
    labels = np.concatenate(labs) if labs else np.zeros(0, np.int32)
    x = sp.csr_matrix((np.concatenate(vals), np.concatenate(cols), xp), shape=(n, d))
    y = sp.csr_matrix((np.ones(len(labels), np.float32), labels, yp), shape=(n, l))
    x.sort_indices()
    y.sort_indices()
    return x, y


def save_npz(stem, x, y):
    """`STEM.X.npz` and `STEM.Y.npz`, as PECOS's `save_matrix` writes them (scipy, stored)."""
    for name, m in (("X", x), ("Y", y)):
        path = f"{stem}.{name}.npz"
        part = f"{stem}.{name}.part.npz"
        sp.save_npz(part, m, compressed=False)
        os.replace(part, path)


def load(stem):
    """(X, Y) of `STEM.txt`, through the npz pair beside it where that is newer, else made now."""
    text, xz, yz = f"{stem}.txt", f"{stem}.X.npz", f"{stem}.Y.npz"
    fresh = all(os.path.exists(p) and os.path.getmtime(p) >= os.path.getmtime(text) for p in (xz, yz))
    if not fresh:
        x, y = read_text(text)
        try:
            save_npz(stem, x, y)
        except OSError:
            pass  # a folder that cannot be written to: read the text each time
        return x, y
    x, y = sp.load_npz(xz).tocsr(), sp.load_npz(yz).tocsr()
    x.sort_indices()
    y.sort_indices()
    return x.astype(np.float32), y.astype(np.float32)


def unit_rows(x):
    """The rows scaled to length 1 (rows of zeros stay)."""
    norm = np.sqrt(np.asarray(x.multiply(x).sum(1)).ravel())
    norm[norm == 0] = 1.0
    out = x.copy()
    out.data = (out.data / np.repeat(norm, np.diff(x.indptr))).astype(np.float32)
    return out


def held_out(n):
    """Which of `n` rows are held out for tuning: about one in ten, by a hash of the row number."""
    z = (np.arange(n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) % np.uint64(10) == 0
