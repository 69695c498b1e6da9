#!/usr/bin/env python3
"""Dense features by latent semantic analysis, for heads that are trained on fixed vectors.

    lsa.py --data FEAT --out DIR [--width 512] [--seed 0]

Reads `train.X.npz` and `test.X.npz` (and `fit.X.npz`, `dev.X.npz` where they are) as `prepare.py` leaves them, and writes
`train.npy`, `test.npy` (and `fit.npy`, `dev.npy`): float32, one row an instance in the order of the input.
A truncated SVD (scikit-learn's TruncatedSVD, randomised, five power iterations, fixed seed) of the tf-idf rows, not centred.
`train` and `test` come from a model of the training rows, `fit` and `dev` from one of the fit rows alone: no model has seen the
rows it is judged by. Every row is scaled to length 1 afterwards; a row of zeros stays one.
`lsa.json` beside them says what was done, the explained variance and the time. DIR appears when it is whole.
"""
import argparse
import json
import os
import shutil
import time

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.decomposition import TruncatedSVD


def unit_rows(x):
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    norm[norm == 0] = 1
    return np.ascontiguousarray(x / norm, np.float32)


def project(data, learned, held_out, width, seed, out):
    """Fits on the rows of `learned`, writes both parts, and gives what is to be recorded."""
    x = {part: sp.load_npz(os.path.join(data, f"{part}.X.npz")).tocsr() for part in (learned, held_out)}
    rows, columns = x[learned].shape
    if x[held_out].shape[1] != columns:
        raise SystemExit(f"{data}: {learned}.X.npz has {columns} columns, {held_out}.X.npz {x[held_out].shape[1]}")
    if width >= min(rows, columns):
        raise SystemExit(f"--width {width}: {learned}.X.npz is {rows} x {columns}, wanted fewer than both")
    began = time.perf_counter()
    svd = TruncatedSVD(width, algorithm="randomized", n_iter=5, random_state=seed)
    dense = {learned: svd.fit_transform(x[learned])}
    fitted = time.perf_counter()
    dense[held_out] = svd.transform(x[held_out])
    record = {"rows": rows, "columns": columns, "fit_s": round(fitted - began, 1)}
    record["explained_variance"] = round(float(svd.explained_variance_ratio_.sum()), 4)
    for part, values in dense.items():
        np.save(os.path.join(out, f"{part}.npy"), unit_rows(values))
        record[f"{part}_rows_of_zeros"] = int((~values.any(axis=1)).sum())
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with train.X.npz and test.X.npz")
    parser.add_argument("--out", required=True, help="folder to make")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if os.path.exists(args.out):
        raise SystemExit(f"{args.out} is there already")
    partial = args.out.rstrip("/") + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    pairs = [("train", "test"), ("fit", "dev")]
    pairs = [pair for pair in pairs if pair[0] == "train" or os.path.exists(os.path.join(args.data, f"{pair[0]}.X.npz"))]
    record = {"width": args.width, "seed": args.seed, "scikit-learn": sklearn.__version__, "unit_rows": True}
    for pair in pairs:
        record[pair[0]] = project(args.data, *pair, args.width, args.seed, partial)
        print(pair[0], record[pair[0]], flush=True)
    with open(os.path.join(partial, "lsa.json"), "w", encoding="utf-8") as f:
        json.dump(record, f, indent=2)
        f.write("\n")
    os.rename(partial, args.out)


if __name__ == "__main__":
    main()
