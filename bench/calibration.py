#!/usr/bin/env python3
"""Calibration and thresholds of xc compared with scikit-learn's, on the same answers.

    calibration.py --xc BIN --train FILE --test FILE --out DIR [--labels FILE] [--train-args "..."]

Trains a model with a tenth of the rows held out, calibrates it on these rows, and scores raw and calibrated answers of the
test rows: shares of true labels by score, expected calibration error, and F1 at thresholds found on the held-out rows and
on the test rows themselves. scikit-learn fits isotonic regression to the raw held-out answers (`IsotonicRegression`), and
checks precision, recall and F1 (`precision_recall_fscore_support`). JSONL data with labels as ids.
"""
import argparse
import json
import os
import shlex
import struct
import subprocess

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import precision_recall_fscore_support

TOP = 50


def run(xc, *args):
    done = subprocess.run([xc, *args, "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"xc {' '.join(args)}: {done.stderr}")
    return done.stdout


def held_out_rows(model):
    """Numbers of the training rows that the model did not see."""
    entry = json.load(open(os.path.join(model, "config.json"), encoding="utf-8"))["arrays"]["training.held_out"]
    data = open(os.path.join(model, entry["file"]), "rb").read()
    (n_header,) = struct.unpack("<Q", data[:8])
    start, end = json.loads(data[8:8 + n_header])["training.held_out"]["data_offsets"]
    return np.frombuffer(data[8 + n_header + start:8 + n_header + end], dtype="<u4")


def truth_of(path):
    return [set(json.loads(line)["labels"]) for line in open(path, encoding="utf-8")]


def answers_of(xc, model, path, *more):
    text = run(xc, "predict", "--model", model, "--input", path, "--top-k", str(TOP), *more)
    rows = []
    for line in text.split("\n")[:-1]:
        pairs = [word.split(":") for word in line.split()]
        rows.append([(int(label), np.float32(score)) for label, score in pairs])
    return rows


def flat(answers, truth):
    scores = np.array([s for row in answers for _, s in row], dtype=np.float32)
    is_true = np.array([label in truth[i] for i, row in enumerate(answers) for label, _ in row])
    return scores, is_true


def calibration_error(scores, is_true):
    bins = np.minimum((scores * 10).astype(int), 9)
    return sum(abs(scores[bins == b].mean() - is_true[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins))


def best_micro(scores, is_true, n_true):
    """Brute force: F1 at every cut."""
    order = np.argsort(-scores, kind="stable")
    tp = np.cumsum(is_true[order])
    f1 = 2 * tp / (np.arange(1, len(order) + 1) + n_true)
    last = np.append(np.diff(scores[order]) != 0, True)
    at = np.argmax(np.where(last, f1, 0))
    return float(scores[order][at]), float(f1[at])


def matrix(rows, n_labels):
    indptr = np.cumsum([0] + [len(row) for row in rows])
    indices = np.array([label for row in rows for label in sorted(row)], dtype=int)
    return csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(rows), n_labels))


def f1_of(truth, kept, n_labels):
    y, z = matrix(truth, n_labels), matrix(kept, n_labels)
    present = np.flatnonzero(np.asarray(y.sum(0)).ravel())
    micro = precision_recall_fscore_support(y, z, average="micro", zero_division=0)[:3]
    macro = precision_recall_fscore_support(y, z, average="macro", labels=present, zero_division=0)[2]
    return [*map(float, micro), float(macro)]


def main():
    parser = argparse.ArgumentParser()
    for name in ("xc", "train", "test", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--train-args", default="")
    parser.add_argument("--method", default="isotonic")
    parser.add_argument("--least-true", default="5")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    model = os.path.join(args.out, "model")
    if not os.path.isdir(model):
        run(args.xc, "train", "tree", "--train", args.train, "--validation-fraction", "0.1", "--model", model,
            *shlex.split(args.train_args))
    calibrated = os.path.join(args.out, "calibrated")
    report = json.loads(run(args.xc, "calibrate", "--model", model, "--validation", args.train, "--held-out", "--output",
                            calibrated, "--method", args.method, "--least-true", args.least_true, "--json"))
    test_truth = truth_of(args.test)
    n_labels = json.load(open(os.path.join(model, "config.json"), encoding="utf-8"))["parameters"]["n_labels"]
    lines = open(args.train, encoding="utf-8").read().split("\n")
    held = os.path.join(args.out, "held.jsonl")
    with open(held, "w", encoding="utf-8") as f:
        f.write("\n".join(lines[r] for r in held_out_rows(model)) + "\n")
    held_truth = truth_of(held)
    held_raw, test_raw = answers_of(args.xc, model, held), answers_of(args.xc, model, args.test)
    test_calibrated = answers_of(args.xc, calibrated, args.test)
    assert [[l for l, _ in r] for r in test_raw] == [[l for l, _ in r] for r in test_calibrated], "the order changed"

    hs, ht = flat(held_raw, held_truth)
    ts, tt = flat(test_raw, test_truth)
    cs, _ = flat(test_calibrated, test_truth)
    sk = IsotonicRegression(out_of_bounds="clip").fit(hs, ht)
    print(f"held-out rows {len(held_truth)}, test rows {len(test_truth)}; xc says {report['instances']} instances")
    print("score      raw: mean true    xc: mean true")
    for b in range(10):
        cell = lambda s: (f"{s[k].mean():.3f} {tt[k].mean():.3f} {k.sum():7d}"
                          if (k := np.minimum((s * 10).astype(int), 9) == b).any() else "-")
        print(f"{b / 10:.1f}-{(b + 1) / 10:.1f}   {cell(ts)}   {cell(cs)}")
    print(f"expected calibration error on test rows: raw {calibration_error(ts, tt):.4f}, xc {calibration_error(cs, tt):.4f}, "
          f"scikit-learn {calibration_error(sk.predict(ts), tt):.4f}; xc cross-fitted {report['after']['expected_calibration_error']:.4f}")
    print(f"largest difference of xc's and scikit-learn's probability {np.abs(sk.predict(ts) - cs).max():.4f}, "
          f"mean {np.abs(sk.predict(ts) - cs).mean():.5f}")
    n_held, n_test = (sum(map(len, t)) for t in (held_truth, test_truth))
    threshold, _ = best_micro(hs, ht, n_held)
    best_test = best_micro(ts, tt, n_test)
    print(f"numpy, raw scores: best micro-F1 threshold on held-out rows {threshold:.4f}, on test rows {best_test[0]:.4f} "
          f"(micro F1 {100 * best_test[1]:.2f})")
    print(f"xc thresholds: micro {report['thresholds']['micro']:.4f}, macro {report['thresholds']['macro']:.4f}, "
          f"{report['thresholds']['labels_of_their_own']} labels of their own")
    kept = [{l for l, s in row if s >= threshold} for row in test_raw]
    rows = [("numpy, raw, held-out threshold", f1_of(test_truth, kept, n_labels))]
    for kind in ("micro", "macro", "label"):
        path = os.path.join(args.out, f"{kind}.txt")
        run(args.xc, "predict", "--model", calibrated, "--input", args.test, "--threshold", kind, "--output", path)
        kept = [{int(w.split(":")[0]) for w in line.split()} for line in open(path, encoding="utf-8").read().split("\n")[:-1]]
        values = f1_of(test_truth, kept, n_labels)
        said = json.loads(run(args.xc, "evaluate", "--truth", args.test, "--predictions", path, "--threshold", "0", "--json"))
        ours = [said[k] for k in ("micro-precision", "micro-recall", "micro-F1", "macro-F1")]
        assert np.abs(np.array(values) - ours).max() < 1e-9, (kind, values, ours)
        rows.append((f"xc --threshold {kind}", values))
    print(f"{'on the test rows, %':34}{'micro P':>9}{'micro R':>9}{'micro F1':>9}{'macro F1':>9}")
    for name, values in rows:
        print(f"{name:34}" + "".join(f"{100 * v:9.2f}" for v in values))


if __name__ == "__main__":
    main()
