#!/usr/bin/env python3
"""Decoders of MACH models of few labels: how they rank, and what they put above a threshold.

    python3 bench/mach_few_labels.py

Needs the wheel, numpy, scipy and scikit-learn. Prints a row for each number of labels: the share of true labels among as many best
ones, of a third of 1,200 rows that was held out; and micro-F1 of labels above 0.2 in the rows that were learned.
"""

import warnings

import numpy as np
import scipy.sparse as sp

import xc
from sklearn.metrics import f1_score
from xc.sklearn import MachClassifier

DECODERS = ("mean", "median", "min")


def around_means(n_labels, n=1200, width=40, seed=0):
    """Rows around the sum of the means of one to three labels."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, n_labels, (n, 3))
    means = rng.normal(size=(n_labels, width))
    labels = [sorted(set(drawn[i, : 1 + i % 3].tolist())) for i in range(n)]
    rows = np.array([means[of_row].sum(axis=0) for of_row in labels]) + rng.normal(size=(n, width)) * 0.7
    return rows.astype(np.float32), labels


def topics(n_labels, n=240, seed=0):
    """Sparse rows of which two topics each set three of five features, and the topics as columns of 0 and 1."""
    rng = np.random.default_rng(seed)
    truth, rows = np.zeros((n, n_labels), int), np.zeros((n, 5 * n_labels), np.float32)
    for row in range(n):
        for topic in rng.choice(n_labels, 2, replace=False):
            truth[row, topic] = 1
            rows[row, 5 * topic + rng.choice(5, 3, replace=False)] = 1
    return sp.csr_matrix(rows), truth


def ranking(decoder, rows, labels, n_labels, split=800):
    model = xc.train("mach", rows[:split], labels[:split], decoder=decoder, progress=False, threads=1).model
    answers = model.predict(rows[split:], top_k=n_labels)
    shares = []
    for answer, of_row in zip(answers, labels[split:]):
        best = {int(label) for label, _ in list(answer)[: len(of_row)]}
        shares.append(len(best & set(of_row)) / len(of_row))
    return float(np.mean(shares))


def above(decoder, rows, truth, threshold=0.2):
    usual = {"epochs": 20, "batch_size": 32, "network_widths": 32, "threads": 1}
    made = MachClassifier(decoder=decoder, threshold=threshold, **usual).fit(rows, truth)
    return f1_score(truth, made.predict(rows), average="micro")


def main():
    warnings.simplefilter("ignore")
    print("labels buckets | ranking: " + " ".join(DECODERS) + " | above 0.2: " + " ".join(DECODERS))
    for n_labels in (3, 6, 8, 12, 16, 28, 32):
        of_means, of_topics = around_means(n_labels), topics(n_labels)
        ranked = [f"{ranking(decoder, *of_means, n_labels):.3f}" for decoder in DECODERS]
        chosen = [f"{above(decoder, *of_topics):.2f}" for decoder in DECODERS]
        print(f"{n_labels:6} {max(n_labels // 2, 2):7} | {' '.join(ranked)} | {' '.join(chosen)}", flush=True)


if __name__ == "__main__":
    main()
