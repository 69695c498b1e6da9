#!/usr/bin/env python3
"""From how many vectors on an index is faster than comparing a query with all of them.

    ann_sizes.py --xc XC --work DIR --data FOLDER --metric l2|cosine|ip [--rows 500 1000 ...] [--k 10] [--target 0.99]

FOLDER has base.npy and query.npy. For each number of rows: an index over the first ones, its width fitted to every second
query, the exact scan and the index asked for the other queries. One thread, all queries in a call. Needs numpy.
"""
import argparse
import json
import os
import subprocess

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--metric", required=True, choices=["l2", "cosine", "ip"])
    parser.add_argument("--rows", nargs="+", type=int, default=[500, 1000, 2000, 5000, 10_000, 20_000])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--target", type=float, default=0.99)
    a = parser.parse_args()
    base = np.load(os.path.join(a.data, "base.npy"), mmap_mode="r")
    path = lambda name: os.path.join(a.work, name)

    def xc(*options):
        command = [a.xc, "index", *map(str, options), "--threads", "1", "--json", "--quiet"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    print("| rows | exact, queries per second | index | recall | search width or cells | times | build, s |\n" + "|---" * 7 + "|")
    for n in a.rows:
        np.save(path("first.npy"), np.ascontiguousarray(base[:n], np.float32))
        built = xc("build", "--vectors", path("first.npy"), "--metric", a.metric, "--output", path("first.index"))
        told = xc("evaluate", "--index", path("first.index"), "--queries", os.path.join(a.data, "query.npy"), "--top-k", a.k,
                  "--target-recall", a.target, "--in-memory", "--runs", 5)
        where = f"{told['cells']} cells" if told["cells"] else f"{told['search_width']:.2f}"
        print(f"| {n:,} | {told['exact_qps']:,.0f} | {told['qps']:,.0f} | {told['recall']:.3f} | {where} | "
              f"{told['qps'] / told['exact_qps']:.1f} | {built['build_s']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
