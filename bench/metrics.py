"""Ranking metrics of top-k label lists, a value per row where the bootstrap needs one.

PSP@k is the sum of gains over the sum of the best possible gains, so per row it is a pair
(gain, best). Rows without true labels count as 0 and stay in the mean.
"""
import numpy as np

KS = (1, 3, 5)
NAMES = [f"{m}@{k}" for m in ("P", "nDCG", "PSP") for k in KS]


def propensity(y_train, width=0, a=0.55, b=1.5):
    """Of each label, counted on the training rows; `width` labels at least (names that only test rows have come last)."""
    n = y_train.shape[0]
    count = np.bincount(y_train.indices, minlength=max(width, y_train.shape[1]))
    c = (np.log(n) - 1) * (b + 1) ** a
    return 1.0 / (1.0 + c * (count + b) ** (-a))


def per_row(top, y, prop):
    """{metric: (numerator, denominator)}, arrays of one entry a row. `top`: label ids, best first, -1 for none."""
    n, kmax = y.shape[0], max(KS)
    top = top[:, :kmax]
    width = y.shape[1]
    size = np.diff(y.indptr)
    true = np.repeat(np.arange(n, dtype=np.int64), size) * width + y.indices
    true.sort()
    key = np.arange(n, dtype=np.int64)[:, None] * width + top
    at = np.minimum(np.searchsorted(true, key), max(len(true) - 1, 0))
    hit = (true[at] == key) & (top >= 0)
    inv = 1.0 / prop
    gain = np.where(hit, inv[np.maximum(top, 0)], 0.0)
    best = np.zeros((n, kmax))
    for r in range(n):
        own = np.sort(inv[y.indices[y.indptr[r] : y.indptr[r + 1]]])[::-1][:kmax]
        best[r, : len(own)] = own
    discount = 1.0 / np.log2(np.arange(kmax) + 2)
    ideal = np.cumsum(discount)
    one = np.ones(n)
    out = {}
    for k in KS:
        out[f"P@{k}"] = (hit[:, :k].sum(1) / k, one)
        out[f"nDCG@{k}"] = ((hit[:, :k] * discount[:k]).sum(1) / ideal[np.clip(size, 1, k) - 1], one)
        out[f"PSP@{k}"] = (gain[:, :k].sum(1), best[:, :k].sum(1))
    return out


def summary(rows):
    """{metric: value in percent} of what `per_row` gave."""
    return {name: round(float(100 * num.sum() / max(den.sum(), 1e-30)), 3) for name, (num, den) in rows.items()}


def top_of_csr(m, k):
    """The k best columns of each row of a score matrix: score down, then label up."""
    out = np.full((m.shape[0], k), -1, np.int32)
    for r in range(m.shape[0]):
        a, b = int(m.indptr[r]), int(m.indptr[r + 1])
        order = np.lexsort((m.indices[a:b], -m.data[a:b]))[:k]
        out[r, : len(order)] = m.indices[a:b][order]
    return out


def read_lines(path, k):
    """Predictions in lines (`id:score` or, of omikuji, `id score` between tabs) -> (ids, scores)."""
    ids, scores = [], []
    with open(path, encoding="ascii") as f:
        for line in f:
            line = line.rstrip("\n")
            pairs = [t.replace(" ", ":") for t in line.split("\t")] if "\t" in line else None
            if pairs is None:
                pairs = line.split(" ") if ":" in line else [line.replace(" ", ":")]
            pairs = [t.rsplit(":", 1) for t in pairs if t][:k]
            ids.append([int(i) for i, _ in pairs] + [-1] * (k - len(pairs)))
            scores.append([float(s) for _, s in pairs] + [np.nan] * (k - len(pairs)))
    return np.array(ids, np.int32).reshape(-1, k), np.array(scores).reshape(-1, k)


def paired_bootstrap(ours, theirs, draws=2000, seed=0):
    """Difference ours - theirs in percent and its 95 % interval, rows drawn with replacement.

    `ours`, `theirs`: lists (one entry a run) of (numerator, denominator); runs are averaged first,
    so the interval is over test rows, given the trained models.
    """
    a = np.mean([n for n, _ in ours], axis=0)
    b = np.mean([n for n, _ in theirs], axis=0)
    den = ours[0][1]
    rng = np.random.default_rng(seed)
    n = len(den)
    got = np.empty(draws)
    for i in range(draws):
        w = np.bincount(rng.integers(0, n, n), minlength=n)
        got[i] = 100 * ((a - b) @ w) / (den @ w)
    return float(100 * (a - b).sum() / den.sum()), *(float(v) for v in np.percentile(got, (2.5, 97.5)))
