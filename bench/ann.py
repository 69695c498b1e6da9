#!/usr/bin/env python3
"""Recall and queries per second of `xc index` compared with other libraries, in one run.

    ann.py --xc XC --work DIR [--sets l2 ip] [--rows 100000] [--set NAME=METRIC:FOLDER ...] [--k 1 10 100 500]
           [--peers hnswlib pecos svs faiss-ivf faiss-hnsw usearch scann] [--python NAME=PYTHON ...]
           [--limit SECONDS] [--json FILE] [--builds 1 2]

The sets: made-up clusters of 128 values (`l2`) and ones of unequal lengths for inner products (`ip`), of --rows rows; and
any folder with base.npy and query.npy, whose queries are cut in two halves, one to fit xc's widths, one to measure with.
METRIC is l2, cosine or ip. The exact answers, 500 of a query, stay in --work beside the set.

Every index is built once on two threads and asked for all --k. For recalls of 0.90, 0.95 and 0.99 a line says the queries
a second of one thread and of two, all queries in one call, and what a call with a single query takes (one thread): half
take less than p50, 99 % less than p99, in microseconds. xc is measured before and behind the peers, at the width that was
fitted with other queries; a peer's figures lie between those of its two nearest settings, which favours it, or are those
of its least effort, where that finds more. The last table says xc over the best peer.

--builds measures how long each index takes to build on these numbers of threads, and nothing else; every build in a process
of its own.

Peers are called from Python, xc's single queries come from inside the program: "emptiest call" is the p50 of a peer's call
for one answer at its least effort, most of which is the way there and back. A peer that is not installed, or takes longer
than --limit, is left out, and said. --python runs a peer under another interpreter. Needs numpy.
"""

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import ann_report
import ann_sets
from ann_peers import PEERS, RUNS, TARGETS, around, at

HERE = os.path.dirname(os.path.abspath(__file__))
FIGURES = ("qps", "qps2", "p50_us", "p99_us")


def run_xc(xc, *options):
    done = subprocess.run([xc, "index", *map(str, options), "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"xc index {' '.join(map(str, options))}: {done.stderr.strip()[-1000:]}")
    return json.loads(done.stdout)


def run_alone(command, limit, scratch):
    """Runs a peer, with `scratch` for what it leaves -> why it did not end well, or None."""
    env = dict(os.environ, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_WAIT_POLICY="passive",
               TMPDIR=scratch)
    with open(os.path.join(scratch, "log"), "w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=env, start_new_session=True)
        try:
            status = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            return f"took longer than {limit:g} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log.seek(0)
        lines = log.read().strip().splitlines() or ["no word"]
    return f"status {status}: {lines[-1][:300]}" if status else None


def measure_xc(a, folder, metric, ks, widths):
    """-> the build, and the figures of each k and recall. `widths` are those fitted before; what is not in it is fitted."""
    part = lambda name: os.path.join(folder, name)
    # Cells are kept whether they are faster for the usual ten answers or not: other rows of the tables may want them.
    n_cells = 2 * math.isqrt(len(ann_sets.load(folder, "base", mmap_mode="r")))
    built = run_xc(a.xc, "build", "--vectors", part("base.npy"), "--metric", metric, "--output", part("xc.index"),
                   "--cells", n_cells, "--threads", 2)
    about = {"build_s": built["build_s"], "bytes_per_vector": built["bytes_per_vector"],
             "bytes_from": "bytes_per_vector of xc", "empty_us": None, "version": None}
    rows = {}
    for k in ks:
        evaluate = ("evaluate", "--index", part("xc.index"), "--top-k", k, "--in-memory")
        for target in TARGETS:
            if (k, target) not in widths:
                fitted = run_xc(a.xc, *evaluate, "--queries", part("query.npy"), "--fit-queries", part("fit.npy"),
                                "--target-recall", target, "--runs", 1, "--threads", 2)
                cells, width = fitted["cells"], fitted["search_width"]
                if not cells and not width:
                    print(f"xc: no search reaches {target} of the {k} nearest", flush=True)
                    continue
                widths[k, target] = f"--cells={cells}" if cells else f"--search-width={width}"
            ask = (*evaluate, "--queries", part("query.npy"), widths[k, target], "--runs", RUNS)
            one, two = (run_xc(a.xc, *ask, "--threads", threads) for threads in (1, 2))
            rows[k, target] = {"recall": one["recall"], "reach": widths[k, target].lstrip("-"), "qps": one["qps"],
                               "qps2": two["qps"], "p50_us": one.get("p50_us"), "p99_us": one.get("p99_us")}
    return about, rows


def measure_peer(a, name, folder, metric, ks, threads=2):
    """In a process of its own -> the build, the figures of each k and recall, the curves, and why something is missing."""
    python = dict(pair.split("=", 1) for pair in a.python).get(name, sys.executable)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        out = os.path.join(scratch, "out")
        command = [python, os.path.join(HERE, "ann_peers.py"), name, folder, metric, out, str(threads), *map(str, ks)]
        why = run_alone(command, a.limit, scratch)
        told = []
        if os.path.exists(out):
            with open(out, encoding="utf-8") as f:
                told = [json.loads(line) for line in f if line.endswith("\n")]
    curves = {line["k"]: line["curve"] for line in told[1:]}
    rows = {}
    for k, curve in curves.items():
        for target in TARGETS:
            if around(curve, target):
                figures = {key: at(curve, target, key) for key in FIGURES}
                rows[k, target] = {"recall": max(target, curve[0]["recall"])} | figures
    return told[0] if told else None, rows, curves, why


def sets_of(a):
    """Makes the sets -> name, metric, folder."""
    names = a.sets if a.sets is not None else [] if a.set else ["l2", "ip"]
    for metric in names:
        yield f"{metric}-{a.rows}", metric, ann_sets.made(a.work, metric, a.rows, a.queries)
    for text in a.set:
        name, _, rest = text.partition("=")
        metric, _, source = rest.partition(":")
        if metric not in ann_sets.METRICS or not source:
            raise SystemExit(f"--set {text}: NAME=METRIC:FOLDER with METRIC l2, cosine or ip is expected")
        yield f"{name}-{metric}", metric, ann_sets.given(a.work, name, metric, source, a.queries)


def measure_set(a, name, metric, folder, report):
    shape = ann_sets.load(folder, "base", mmap_mode="r").shape
    ks = [k for k in a.k if k <= min(shape[0], ann_sets.MOST)]
    report.begin(name, metric, shape, ks)
    widths = {}
    report.system("xc, before", *measure_xc(a, folder, metric, ks, widths))
    for peer in a.peers:
        about, rows, curves, why = measure_peer(a, peer, folder, metric, ks)
        if about:
            report.system(peer, about, rows, curves)
        if why:
            missing = [k for k in ks if k not in curves]
            report.left_out(peer, why, missing if about else ks)
    report.system("xc, behind", *measure_xc(a, folder, metric, ks, widths))
    report.end()
    shutil.rmtree(os.path.join(folder, "xc.index"))


def measure_builds(a, name, metric, folder):
    """Prints the seconds of a build by system and number of threads."""
    base = os.path.join(folder, "base.npy")
    print(f"\n| {name}, seconds of a build | " + " | ".join(f"{n} thread{'s' * (n > 1)}" for n in a.builds) + " |")
    print("|---" * (len(a.builds) + 1) + "|", flush=True)
    ours = {"xc": (), "xc, graph alone": ("--cells", 0), "xc, graph of one pass": ("--cells", 0, "--passes", 1)}
    for system in [*ours, *a.peers]:
        cells = []
        for threads in a.builds:
            if system in ours:
                place = os.path.join(folder, "xc.index")
                took = run_xc(a.xc, "build", "--vectors", base, "--metric", metric, "--output", place, *ours[system],
                              "--threads", threads)["build_s"]
                shutil.rmtree(place)
                cells.append(f"{took:.1f}")
            else:
                about, _, _, why = measure_peer(a, system, folder, metric, [], threads)
                cells.append(f"{about['build_s']:.1f}" if about else why)
        print(f"| {system} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--sets", nargs="*", help="l2 and ip, made up [both, unless --set is given]")
    parser.add_argument("--rows", type=int, default=100_000, help="of the made-up sets [100000]")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=METRIC:FOLDER")
    parser.add_argument("--queries", type=int, default=2000, help="to measure with, at most, and as many to fit [2000]")
    parser.add_argument("--k", type=int, nargs="+", default=[10], help="answers of a query, at most 500 [10]")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--python", nargs="*", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--limit", type=float, default=1200, help="seconds of a peer on a set [1200]")
    parser.add_argument("--json", metavar="FILE", help="lines of JSON are added to it")
    parser.add_argument("--builds", type=int, nargs="+", metavar="THREADS", help="measure builds alone, on these numbers of threads")
    a = parser.parse_args()
    if not all(1 <= k <= ann_sets.MOST for k in a.k):
        parser.error(f"--k: 1 to {ann_sets.MOST} is expected")
    report = ann_report.Report(a.json)
    if a.builds:
        for name, metric, folder in sets_of(a):
            measure_builds(a, name, metric, folder)
        return
    for name, metric, folder in sets_of(a):
        measure_set(a, name, metric, folder, report)
    report.all_ratios()


if __name__ == "__main__":
    main()
