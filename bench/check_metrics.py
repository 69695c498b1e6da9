#!/usr/bin/env python3
"""Expected metric values for a small random case, worked out apart from the Rust code.

    python bench/check_metrics.py > xc-metrics/tests/golden/metrics.json

Dense 0/1 matrices and the textbook formulas; scikit-learn, where it is installed, checks F1, and precision and recall at
a threshold, a third way. The case has short and empty lists, instances without labels, labels never trained on, true labels that
no list can name, weights, ignored pairs and excluded instances.
"""
import json
import math

import numpy as np

N_TRAIN, N, L, L_TRUTH = 60, 40, 25, 28  # labels 25..27 occur in the truth only
KS = [1, 3, 5, 10, 30]
THRESHOLD = 0.6
A, B = 0.55, 1.5


def make_case(rng):
    popularity = 1.0 / np.arange(1, L + 1)
    popularity /= popularity.sum()
    train = []
    for _ in range(N_TRAIN):
        size = int(rng.integers(0, 5))
        train.append(sorted(rng.choice(L - 3, size=size, replace=False, p=popularity[: L - 3] / popularity[: L - 3].sum()).tolist()))
    truth, predicted = [], []
    for i in range(N):
        size = 0 if i % 9 == 4 else int(rng.integers(1, 8))
        labels = set(rng.choice(L, size=size, replace=False, p=popularity).tolist())
        if i % 11 == 3:
            labels.add(int(rng.integers(L, L_TRUTH)))
        truth.append(sorted(int(l) for l in labels))
        length = 0 if i % 13 == 5 else int(rng.integers(1, 16))
        score = rng.random(L) + 0.7 * np.isin(np.arange(L), truth[-1])
        order = np.argsort(-score, kind="stable")[:length]
        predicted.append([[int(l), float(np.float32(score[l]))] for l in order])
    weights = [float(w) for w in rng.integers(0, 9, size=N) / 4.0]
    pairs = []
    for i in range(0, N, 3):
        if truth[i]:
            pairs.append([i, truth[i][0]])
        if predicted[i]:
            pairs.append([i, predicted[i][0][0]])
        pairs.append([i, int(rng.integers(0, L))])
    exclude = sorted(int(i) for i in rng.choice(N, size=5, replace=False))
    return train, truth, predicted, weights, pairs, exclude


def inverse_propensity(train):
    counts = np.zeros(L_TRUTH)
    for row in train:
        for label in row:
            counts[label] += 1
    c = (math.log(len(train)) - 1) * (B + 1) ** A
    return 1 + c * np.power(counts + B, -A)


def discount(r):  # r counts from 1
    return 1 / math.log2(r + 1)


def evaluate(truth, predicted, inverse, weights, pairs, exclude):
    rows = [i for i in range(len(truth)) if i not in exclude]
    drop = set((i, l) for i, l in pairs)
    T = {i: [l for l in truth[i] if (i, l) not in drop] for i in rows}
    R = {i: [l for l, _ in predicted[i] if (i, l) not in drop] for i in rows}
    w = {i: weights[i] for i in rows}
    total = sum(w.values())
    mean = lambda f: sum(w[i] * f(i) for i in rows) / total
    out = {"instances": len(rows)}
    y_true = np.zeros((len(rows), L_TRUTH))
    for r, i in enumerate(rows):
        y_true[r, T[i]] = 1
    present = [l for l in range(L_TRUTH) if sum(w[i] for i in rows if l in T[i]) > 0]
    for k in KS:
        hit = {i: [1 if r < len(R[i]) and R[i][r] in T[i] else 0 for r in range(k)] for i in rows}
        ideal = {i: sum(discount(r) for r in range(1, min(k, len(T[i])) + 1)) for i in rows}
        out[f"P@{k}"] = mean(lambda i: sum(hit[i]) / k)
        out[f"nDCG@{k}"] = mean(
            lambda i: sum(h * discount(r + 1) for r, h in enumerate(hit[i])) / ideal[i] if T[i] else 0)
        out[f"recall@{k}"] = mean(lambda i: sum(hit[i]) / len(T[i]) if T[i] else 0)
        out[f"MAP@{k}"] = mean(
            lambda i: sum(h * sum(hit[i][: r + 1]) / (r + 1) for r, h in enumerate(hit[i])) / min(k, len(T[i]))
            if T[i] else 0)
        gains = {i: [h * inverse[R[i][r]] if h else 0 for r, h in enumerate(hit[i])] for i in rows}
        best = {i: sorted((inverse[l] for l in T[i]), reverse=True)[:k] for i in rows}
        out[f"PSP@{k}"] = sum(w[i] * sum(gains[i]) for i in rows) / sum(w[i] * sum(best[i]) for i in rows)
        dcg = lambda values: sum(g * discount(r + 1) for r, g in enumerate(values))
        out[f"PSnDCG@{k}"] = (sum(w[i] * dcg(gains[i]) / ideal[i] for i in rows if T[i])
                              / sum(w[i] * dcg(best[i]) / ideal[i] for i in rows if T[i]))
        y_pred = np.zeros_like(y_true)
        for r, i in enumerate(rows):
            y_pred[r, R[i][:k]] = 1
        sample = np.array([w[i] for i in rows])[:, None]
        tp = (sample * y_true * y_pred).sum(0)
        pos = (sample * (y_true + y_pred)).sum(0)
        out[f"macro-F1@{k}"] = float(np.mean([2 * tp[l] / pos[l] for l in present]))
        out[f"micro-F1@{k}"] = float(2 * tp.sum() / pos.sum())
        out[f"coverage@{k}"] = sum(1 for l in present if tp[l] > 0) / len(present)
        try:
            from sklearn.metrics import f1_score
        except ImportError:
            continue
        for average, labels in (("macro", present), ("micro", list(range(L_TRUTH)))):
            check = f1_score(y_true, y_pred, average=average, labels=labels, sample_weight=sample[:, 0], zero_division=0)
            assert abs(check - out[f"{average}-F1@{k}"]) < 1e-12, (average, k, check)

    def full_ap(i):
        hits, acc = 0, 0.0
        for r, l in enumerate(R[i], start=1):
            if l in T[i]:
                hits += 1
                acc += hits / r
        return acc / len(T[i]) if T[i] else 0

    y_pred = np.zeros_like(y_true)
    for r, i in enumerate(rows):
        y_pred[r, [l for l, s in predicted[i] if s >= THRESHOLD and (i, l) not in drop]] = 1
    tp, pred, true = y_true * y_pred, y_pred, y_true
    out["threshold"] = float(np.float32(THRESHOLD))
    share = lambda a, b: np.divide(a, b, out=np.zeros_like(b), where=b > 0)
    for average in ("micro", "macro", "instance"):
        weigh = sample[:, 0] if average == "instance" else None
        axis = 1 if average == "instance" else 0
        counts = [(m if average == "instance" else sample * m).sum(axis) for m in (tp, pred, true)]
        if average == "micro":
            counts = [c.sum(keepdims=True) for c in counts]
        if average == "macro":
            counts = [c[present] for c in counts]
        a, b, c = counts
        for name, values in (("precision", share(a, b)), ("recall", share(a, c)), ("F1", share(2 * a, b + c))):
            out[f"{average}-{name}"] = float(np.average(values, weights=weigh))
    check_decisions(y_true, y_pred, sample[:, 0], present, out)

    out["MAP"] = mean(full_ap)
    out["MRR"] = mean(lambda i: next((1 / r for r, l in enumerate(R[i], start=1) if l in T[i]), 0))
    return {name: float(v) if name != "instances" else v for name, v in out.items()}


def check_decisions(y_true, y_pred, sample, present, out):
    """The same by scikit-learn, where it is installed."""
    try:
        from sklearn.metrics import precision_recall_fscore_support
    except ImportError:
        return
    for average, name, labels in (("micro", "micro", None), ("macro", "macro", present), ("samples", "instance", None)):
        values = precision_recall_fscore_support(
            y_true, y_pred, average=average, labels=labels, sample_weight=sample, zero_division=0)
        for check, of in zip(values, ("precision", "recall", "F1")):
            assert abs(check - out[f"{name}-{of}"]) < 1e-12, (name, of, check, out[f"{name}-{of}"])


def main():
    train, truth, predicted, weights, pairs, exclude = make_case(np.random.default_rng(20_24))
    inverse = inverse_propensity(train)
    ones = [1.0] * N
    case = dict(
        ks=KS, threshold=THRESHOLD, a=A, b=B, n_labels=L, train=train, truth=truth, predicted=predicted, weights=weights, pairs=pairs,
        exclude=exclude, inverse_propensity=[float(v) for v in inverse],
        expected=dict(
            plain=evaluate(truth, predicted, inverse, ones, [], []),
            weighted=evaluate(truth, predicted, inverse, weights, [], []),
            filtered=evaluate(truth, predicted, inverse, ones, pairs, []),
            all=evaluate(truth, predicted, inverse, weights, pairs, exclude),
        ),
    )
    print("{")
    print(",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in case.items()))
    print("}")


if __name__ == "__main__":
    main()
