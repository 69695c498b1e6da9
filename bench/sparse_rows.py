#!/usr/bin/env python3
"""Exact nearest sparse rows: `xc index` beside scipy's product and scikit-learn's brute force, one thread.

    sparse_rows.py --xc XC --work DIR --sets NAME=TRAIN:TEST ... [--queries 1000] [--k 10]

TRAIN and TEST are XC text: rows to search among, and queries. Metric: cosine. scipy multiplies 50 queries at a time with
all rows of length 1 and takes the k largest of each; scikit-learn is NearestNeighbors(algorithm="brute",
metric="cosine"). Scores of all three are compared. Needs numpy, scipy and scikit-learn.
"""

import argparse
import json
import os
import subprocess
import time

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize


def read(path, most=None):
    """Rows of XC text; a first line of three numbers is a header."""
    indptr, indices, values, columns = [0], [], [], None
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            words = line.split()
            if number == 0 and len(words) == 3 and all(word.isdigit() for word in words):
                columns = int(words[1])
                continue
            pairs = [word.split(":") for word in words if ":" in word]
            indices += [int(column) for column, _ in pairs]
            values += [float(value) for _, value in pairs]
            indptr.append(len(indices))
            if most and len(indptr) > most:
                break
    return sp.csr_matrix((np.array(values, np.float32), indices, indptr), (len(indptr) - 1, columns or max(indices) + 1))


def timed(work):
    begin = time.perf_counter()
    done = work()
    return done, time.perf_counter() - begin


def by_product(rows, queries, k):
    best = []
    columns = rows.T.tocsr()
    for first in range(0, queries.shape[0], 50):
        scores = (queries[first : first + 50] @ columns).toarray()
        best.append(-np.sort(-np.partition(scores, scores.shape[1] - k, axis=1)[:, -k:], axis=1))
    return np.concatenate(best)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--sets", nargs="+", required=True, metavar="NAME=TRAIN:TEST")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--k", type=int, default=10)
    a = parser.parse_args()

    def xc(*options):
        command = [a.xc, "index", *options, "--threads", "1", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    print("| set | rows | values per row, of a query | xc | p50, p99, us | scipy | scikit-learn |\n|---|---|---|---|---|---|---|")
    for named in a.sets:
        name, paths = named.split("=", 1)
        train, test = paths.split(":")
        rows, queries = read(train), read(test, a.queries)
        asked, index = os.path.join(a.work, "queries.npz"), os.path.join(a.work, "rows.index")
        sp.save_npz(asked, sp.csr_matrix((queries.data, queries.indices, queries.indptr), (queries.shape[0], rows.shape[1])))
        xc("build", "--vectors", train, "--metric", "cosine", "--output", index)
        ask = ("--index", index, "--queries", asked, "--top-k", str(a.k), "--in-memory")
        told = json.loads(xc("evaluate", *ask, "--json"))
        found = [[float(pair.split(":")[1]) for pair in line.split()] for line in xc("search", *ask).splitlines()]
        rows, queries = normalize(rows), normalize(sp.load_npz(asked))
        best, product_s = timed(lambda: by_product(rows, queries, a.k))
        brute = NearestNeighbors(n_neighbors=a.k, algorithm="brute", metric="cosine").fit(rows)
        (apart, _), brute_s = timed(lambda: brute.kneighbors(queries))
        worst = max(np.abs(np.array(found) - best).max(), np.abs(1 - np.sort(apart, axis=1) - best).max())
        if worst > 1e-4:
            raise SystemExit(f"{name}: scores differ by {worst}")
        n = queries.shape[0]
        print(f"| {name} | {rows.shape[0]:,} | {rows.nnz / rows.shape[0]:.0f}, {queries.nnz / n:.0f} | {told['qps']:,.0f} | "
              f"{told['p50_us']:.0f}, {told['p99_us']:.0f} | {n / product_s:,.0f} | {n / brute_s:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
