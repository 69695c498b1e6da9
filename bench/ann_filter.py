#!/usr/bin/env python3
"""Filtered search of `xc index` beside other libraries: the ten nearest among the rows that a filter passes.

    ann_filter.py --xc XC --work DIR [--rows 100000] [--queries 500] [--shares 0.001 0.01 0.1 0.5 0.9]
                  [--hnswlib DIR] [--usearch DIR] [--peers hnswlib usearch faiss-hnsw faiss-ivf faiss-flat]
                  [--limit SECONDS] [--budget SECONDS] [--json FILE]

The set is `l2` of ann.py. A filter passes a share of the rows, the same ones for all queries:
  random   drawn at random, with queries of all the set;
  cluster  the rows nearest to the middle of a cluster, with queries from near it;
  outside  the rows farthest from it, so that all others are the cluster left out, with the same queries.
xc is measured at the width that its index was fitted to (recall 0.95 of ten, without a filter), and at the widths that
`xc index evaluate` tries. Said are xc's recall and queries per second at that width, those of the peers at the same recall,
and those of all at a recall of 0.95; a peer's lie between its two nearest settings, or are those of its least effort
where that finds more. All on one thread; indexes are built once, on two threads. A peer's effort rises until it has xc's
recall and 0.95, or --budget is spent.

hnswlib (M 16, efConstruction 200) and usearch (connectivity 16, expansion 200) are called from small C++ programs whose
filter is a bitmap, compiled here with g++: --hnswlib DIR is a checkout of hnswlib, --usearch DIR one of usearch 2.21 with
its submodule simsimd; without the option the peer is left out, and said. faiss (HNSW16, IVF, and a scan of all rows that
pass) takes a bitmap from Python. `faiss-flat` is exact. Needs numpy, and faiss for its three.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import ann_sets
from ann import HERE, run_alone, run_xc
from ann_peers import EFFORTS, RUNS, FaissHnsw, FaissIvf, at, batch_qps
from ann_report import number

K = 10
AGREED = 0.95
ASKED = [effort for effort in EFFORTS if effort >= K]
CPP = {"hnswlib": [""], "usearch": ["include", "simsimd/include"]}
DEFINES = {"hnswlib": [], "usearch": ["-DUSEARCH_USE_SIMSIMD=1", "-DUSEARCH_USE_FP16LIB=0"]}
PEERS = ("hnswlib", "usearch", "faiss-hnsw", "faiss-ivf", "faiss-flat")


def filters(a, folder):
    """Makes the filters, each in a folder: allowed.txt for xc, pass.npy, query.npy and truth.npy (row numbers of the base)
    -> what they are."""
    base = ann_sets.load(folder, "base")
    n, queries = len(base), ann_sets.load(folder, "query")[: a.queries]
    drawn = ann_sets.Drawn(n, base.shape[1])
    centre = drawn.centres[np.argsort(drawn.share)[len(drawn.share) // 2]]
    drawn.rows(n)
    pool = drawn.rows(max(n, 40 * a.queries)).astype(np.float32)
    near = lambda rows: np.argsort(((rows - centre) ** 2).sum(1), kind="stable")
    nearest, close = near(base), np.ascontiguousarray(pool[near(pool)[: a.queries]])
    random = np.random.default_rng(11)
    made = []
    for share in a.shares:
        m = max(K, round(share * n))
        passes = {"random": (random.permutation(n)[:m], queries), "cluster": (nearest[:m], close),
                  "outside": (nearest[n - m :], close)}
        for kind, (rows, asked) in passes.items():
            rows, at_folder = np.sort(rows), os.path.join(folder, f"filter-{kind}-{share:g}")
            mask = np.zeros(n, np.uint8)
            mask[rows] = 1
            truth = rows[ann_sets.exact(base[rows], asked, "l2", K)].astype(np.int64)
            ann_sets.write(at_folder, query=asked, truth=truth, **{"pass": mask})
            np.savetxt(os.path.join(at_folder, "allowed.txt"), rows, fmt="%d")
            made.append({"filter": kind, "share": share, "passes": int(m), "folder": at_folder})
    return sorted(made, key=lambda f: ("random", "cluster", "outside").index(f["filter"]))


def measure_xc(a, folder, made):
    index = os.path.join(folder, "xc.index")
    built = run_xc(a.xc, "build", "--vectors", os.path.join(folder, "base.npy"), "--metric", "l2", "--output", index,
                   "--fit-queries", os.path.join(folder, "fit.npy"), "--top-k", K, "--threads", 2)
    width = built["fitted"]["width"]
    for f in made:
        evaluate = ("evaluate", "--index", index, "--queries", os.path.join(f["folder"], "query.npy"), "--top-k", K,
                    "--filter", os.path.join(f["folder"], "allowed.txt"), "--threads", 1, "--in-memory", "--runs", RUNS)
        usual = run_xc(a.xc, *evaluate, f"--search-width={width}")
        curve = sorted(run_xc(a.xc, *evaluate)["measured"], key=lambda point: point["search_width"])
        f["xc"] = {"recall": usual["recall"], "qps": usual["qps"], "search_width": width, "curve": curve,
                   "p50_us": usual.get("p50_us"), "p99_us": usual.get("p99_us")}
        f["enough"] = max(AGREED, usual["recall"])
    shutil.rmtree(index)


def measure_cpp(a, name, folder, made):
    """Compiles the program of a peer, builds its index if it is not there, and searches with each filter."""
    source = getattr(a, name)
    if not source:
        return f"--{name} DIR is not given"
    program = os.path.join(folder, f"{name}_filter")
    compiled = subprocess.run(
        ["g++", "-O3", "-march=native", "-std=c++17", "-pthread", *DEFINES[name],
         *(f"-I{os.path.join(source, part)}" for part in CPP[name]), os.path.join(HERE, f"{name}_filter.cpp"), "-o", program],
        capture_output=True, text=True)
    if compiled.returncode:
        return "g++: " + next((line for line in compiled.stderr.splitlines() if "error" in line), "failed")
    index = os.path.join(folder, f"{name}.index")
    if not os.path.exists(index):
        partial = index + ".partial"
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            why = run_alone([program, "build", os.path.join(folder, "base.npy"), partial], a.limit, scratch)
        if why:
            return why
        os.replace(partial, index)
    for f in made:
        parts = [os.path.join(f["folder"], part + ".npy") for part in ("query", "pass", "truth")]
        command = [program, "search", index, *parts, str(f["enough"] - 1e-9), str(RUNS),
                   str(a.budget), *map(str, ASKED)]
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            why = run_alone(command, a.limit, scratch)
            with open(os.path.join(scratch, "log"), encoding="utf-8") as log:
                f[name] = [json.loads(line) for line in log if line.startswith("{") and line.endswith("\n")]
        if why:
            print(f"{name}: {f['filter']} {f['share']:g} not complete: {why}", flush=True)
    return None


class Faiss:
    """An index of faiss whose search takes a bitmap; `set` and `ask` as in ann_peers."""

    def __init__(self, kind, base):
        import faiss

        self.faiss, self.kind = faiss, kind
        if kind == "faiss-flat":
            self.index, self.efforts = faiss.IndexFlatL2(base.shape[1]), [1]
            self.index.add(base)
        else:
            peer = (FaissHnsw if kind == "faiss-hnsw" else FaissIvf)(base, "l2")
            self.index, self.efforts = peer.index, peer.efforts(K)
            if kind == "faiss-ivf":
                most = peer.lists
                self.efforts = sorted({min(most, effort // 8) for effort in self.efforts} | {most})
        faiss.omp_set_num_threads(1)

    def only(self, mask):
        self.bits = np.packbits(mask, bitorder="little")
        self.passing = self.faiss.IDSelectorBitmap(self.bits)

    def set(self, effort):
        if self.kind == "faiss-hnsw":
            self.params = self.faiss.SearchParametersHNSW(sel=self.passing, efSearch=effort)
        elif self.kind == "faiss-ivf":
            self.params = self.faiss.SearchParametersIVF(sel=self.passing, nprobe=effort)
        else:
            self.params = self.faiss.SearchParameters(sel=self.passing)

    def ask(self, query):
        return self.index.search(query, K, params=self.params)[1]


def faiss_child(name, folder, jobs, out, budget):
    """In a process of its own: the curve of every filter, a line each."""
    base = ann_sets.load(folder, "base")
    peer = Faiss(name, base)
    with open(jobs, encoding="utf-8") as f:
        made = json.load(f)
    with open(out, "w", encoding="utf-8") as f:
        for job in made:
            query, mask, truth = (ann_sets.load(job["folder"], part) for part in ("query", "pass", "truth"))
            peer.only(mask)
            curve, begin = [], time.perf_counter()
            for effort in peer.efforts:
                peer.set(effort)
                qps, found = batch_qps(peer, query)
                curve.append({"effort": effort, "recall": ann_sets.recall(found, truth, base, query, "l2"), "qps": qps})
                if curve[-1]["recall"] >= job["enough"] - 1e-9 or time.perf_counter() - begin > float(budget):
                    break
            print(json.dumps(curve), file=f, flush=True)


def measure_faiss(a, name, folder, made):
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        jobs, out = os.path.join(scratch, "jobs"), os.path.join(scratch, "out")
        with open(jobs, "w", encoding="utf-8") as f:
            json.dump(made, f)
        command = [sys.executable, os.path.abspath(__file__), "--faiss", name, folder, jobs, out, str(a.budget)]
        why = run_alone(command, a.limit, scratch)
        told = []
        if os.path.exists(out):
            with open(out, encoding="utf-8") as f:
                told = [json.loads(line) for line in f if line.endswith("\n")]
    for f, curve in zip(made, told):
        f[name] = curve
    return why


def report(a, made, peers):
    """Two tables: at the recall that xc has at its width, and at 0.95."""
    lines = [[], []]
    for f in made:
        xc = f["xc"]
        tables = [(xc["recall"], xc["qps"]), (AGREED, at(xc["curve"], AGREED, "qps"))]
        record = {key: f[key] for key in ("filter", "share", "passes")} | {"rows": a.rows, "k": K, "systems": {"xc": xc}}
        for cells, (recall, ours) in zip(lines, tables):
            theirs = {name: at(f[name], recall - 1e-9, "qps") for name in peers if name in f}
            best = max((qps for qps in theirs.values() if qps is not None), default=None)
            ratio = ours / best if ours and best else None
            cells.append([f["filter"], f"{100 * f['share']:g} %", f"{recall:.3f}", number(ours),
                          *(number(theirs.get(name)) for name in peers), number(ratio, ".3g")])
            key = "at_recall_of_xc" if cells is lines[0] else "at_0.95"
            record[key] = {"recall": recall, "xc": ours, "peers": theirs, "ratio": ratio}
        record["systems"] |= {name: {"curve": f[name]} for name in peers if name in f}
        if a.json:
            with open(a.json, "a", encoding="utf-8") as out:
                print(json.dumps(record), file=out)
    names = " | ".join(peers)
    rule = "|---" * (5 + len(peers)) + "|"
    width = made[0]["xc"]["search_width"]
    print(f"\nQueries a second of one thread, {a.rows:,} x 128, k {K}; ratio: xc over the best of the peers; -: not reached.")
    for cells, what in zip(lines, (f"Width of the index ({width:.3f}), peers at xc's recall", f"All at a recall of {AGREED}")):
        print(f"\n{what}:\n\n| rows that pass | share | recall | xc | {names} | ratio |\n{rule}")
        for row in cells:
            print("| " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=500, help="of each filter [500]")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001, 0.01, 0.1, 0.5, 0.9])
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--hnswlib", metavar="DIR")
    parser.add_argument("--usearch", metavar="DIR")
    parser.add_argument("--limit", type=float, default=1200, help="seconds of a process of a peer [1200]")
    parser.add_argument("--budget", type=float, default=60, help="seconds of a peer's search with a filter, all its settings [60]")
    parser.add_argument("--json", metavar="FILE", help="lines of JSON are added to it")
    a = parser.parse_args()
    folder = ann_sets.made(a.work, "l2", a.rows)
    made = filters(a, folder)
    measure_xc(a, folder, made)
    peers = []
    for name in a.peers:
        why = (measure_cpp if name in CPP else measure_faiss)(a, name, folder, made)
        if why:
            print(f"{name} left out{', in part' if any(name in f for f in made) else ''}: {why}", flush=True)
        if any(name in f for f in made):
            peers.append(name)
    report(a, made, peers)
    for f in made:
        shutil.rmtree(f["folder"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--faiss"]:
        faiss_child(*sys.argv[2:])
    else:
        main()
