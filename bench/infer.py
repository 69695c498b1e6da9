#!/usr/bin/env python3
"""Prediction time on the very same PECOS model: PECOS against xc, in alternation.

    infer.py run   --model PECOS_DIR --data DIR --xc BIN --results OUT.jsonl [--rounds 5] [--variant NAME=ARGS ...]
                   [--omikuji DRIVER --omikuji-model DIR ...] [--layouts BINARY_SEARCH_CHUNKED,HASH_CHUNKED,CSC]
    infer.py load  --xc BIN --xc-model DIR --data DIR
    infer.py report --results OUT.jsonl

PECOS is called through its C entry point with arguments made beforehand (its Python `predict` would add to each
call), one process for each layout, kept through the run; `xc bench predict` runs on the model as
`xc convert --from pecos` imported it; omikuji through `omikuji-driver/`. Every round visits each system and mode
once, the order turned by one place each round; each visit is a warm pass and `--passes` passes.
Batch: the fastest pass of a visit. Online: one row a call, percentiles over the calls of a visit.
The table shows medians over the rounds.
First of all the top-k labels are compared, label by label; differing labels whose scores differ by less than 1e-6
count as ties.
"""
import argparse
import gc
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import metrics
import peers
import rows

MODES = (("online", 1), ("batch", 1), ("batch", 2))


# ---------------------------------------------------------------- PECOS, in a process of its own
def pecos_worker(model, stem, layout, beam, top):
    from ctypes import byref

    from pecos.core import ScipyCompressedSparseAllocator, ScipyCsrF32, clib
    from pecos.xmc.xlinear.model import XLinearModel

    x, _ = rows.load(stem)
    before = peers.rss_bytes()
    t = time.perf_counter()
    loaded = XLinearModel.load(model, is_predict_only=True, weight_matrix_type=layout)
    load_ms = (time.perf_counter() - t) * 1e3
    handle, lib = loaded.model.model_chain, clib.clib_float32
    alloc = ScipyCompressedSparseAllocator()
    back, call = alloc.cfunc, lib.c_xlinear_predict_csr_f32
    whole = ScipyCsrF32.init_from(x)
    single = [ScipyCsrF32.init_from(x[i]) for i in range(x.shape[0])]
    nearly_empty = x[0].copy()
    nearly_empty.data, nearly_empty.indices = nearly_empty.data[:1], nearly_empty.indices[:1]
    nearly_empty.indptr = np.array([0, len(nearly_empty.data)], nearly_empty.indptr.dtype)
    nearly_empty = ScipyCsrF32.init_from(nearly_empty)
    gc.disable()

    def online(queries, use_beam):
        out = np.empty(len(queries))
        clock = time.perf_counter_ns
        for i, q in enumerate(queries):
            t = clock()
            call(handle, byref(q), use_beam, None, top, 1, back)
            out[i] = clock() - t
        return out / 1e6

    def batch(threads):
        t = time.perf_counter()
        call(handle, byref(whole), beam, None, top, threads, back)
        return (time.perf_counter() - t) * 1e3 / x.shape[0]

    def answer(ask):
        if ask["do"] == "top":
            call(handle, byref(whole), beam, None, top, 1, back)
            got = alloc.get()
            ids, scores = np.full((x.shape[0], top), -1, np.int64), np.full((x.shape[0], top), np.nan)
            for r in range(x.shape[0]):
                a, b = int(got.indptr[r]), int(got.indptr[r + 1])
                ids[r, : b - a], scores[r, : b - a] = got.indices[a:b], got.data[a:b]
            np.savez(ask["to"], ids=ids, scores=scores)
            return {}
        if ask["mode"] == "online":
            online(single, beam)
            ms = np.concatenate([online(single, beam) for _ in range(ask["passes"])])
            p50, p95, p99 = (float(v) for v in np.percentile(ms, (50, 95, 99)))
            floor = float(np.median(online([nearly_empty] * 200, 1)))
            return dict(mean_ms=float(ms.mean()), p50_ms=p50, p95_ms=p95, p99_ms=p99, call_floor_ms=floor)
        batch(ask["threads"])
        return dict(mean_ms=min(batch(ask["threads"]) for _ in range(ask["passes"])))

    print(json.dumps(dict(load_ms=load_ms, model_rss_bytes=peers.rss_bytes() - before)), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


class Worker:
    """A process that answers one JSON line with one JSON line."""

    def __init__(self, argv):
        env = dict(os.environ, OMP_WAIT_POLICY="passive", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
        env.pop("OMP_NUM_THREADS", None)
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        self.hello = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args}: ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---------------------------------------------------------------- xc
def xc_bench(a, model, mode, threads, extra=()):
    argv = [a.xc, "bench", "predict", "--model", model, "--input", a.input, "--mode", mode, "--top-k", str(a.top_k),
            "--beam", str(a.beam), "--threads", str(threads), "--repeat", str(a.passes), "--json", "--quiet", *extra]
    return json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout)


def agreement(a, worker, xc_model, tmp):
    """Counts of rows and places where the two top-k differ."""
    theirs_file, ours_file = os.path.join(tmp, "theirs.npz"), os.path.join(tmp, "ours.txt")
    worker.ask(do="top", to=theirs_file)
    subprocess.run([a.xc, "predict", "--model", xc_model, "--input", a.input, "--top-k", str(a.top_k), "--beam", str(a.beam),
                    "--output", ours_file, "--quiet"], check=True)
    theirs = np.load(theirs_file)
    ids, scores = metrics.read_lines(ours_file, a.top_k)
    if ids.shape != theirs["ids"].shape:
        raise RuntimeError(f"{ids.shape[0]} rows from xc, {theirs['ids'].shape[0]} from PECOS")
    gap = np.abs(np.nan_to_num(scores, nan=-1) - np.nan_to_num(theirs["scores"], nan=-1))
    other = ids != theirs["ids"]
    tie = other & (gap < 1e-6)
    wrong = other & ~tie
    return dict(rows=int(ids.shape[0]), rows_equal=int((~other.any(1)).sum()), places_tied=int(tie.sum()),
                rows_tied=int((tie.any(1) & ~wrong.any(1)).sum()), rows_different=int(wrong.any(1).sum()),
                first_different=[int(r) for r in np.flatnonzero(wrong.any(1))[:5]], largest_score_gap=float(gap.max(initial=0)))


def import_model(a, keep):
    """The PECOS model in our format, converted unless it is there."""
    if not os.path.isdir(keep):
        subprocess.run([a.xc, "convert", "--from", "pecos", a.model, "--to", "xc", keep, "--quiet"], check=True)
    return keep


def run(a):
    a.input = os.path.join(a.data, "test.txt")
    stem = a.input[:-4]
    x, _ = rows.load(stem)
    if a.queries and a.queries < x.shape[0]:
        x, y = rows.load(stem)
        stem = os.path.join(tempfile.mkdtemp(), "test")
        a.input = stem + ".txt"
        rows.write_text(a.input, x[: a.queries], y[: a.queries])
        rows.load(stem)
    name = os.path.basename(os.path.normpath(a.model))
    with tempfile.TemporaryDirectory() as tmp:
        theirs = {f"pecos {layout}": Worker([sys.executable, os.path.abspath(__file__), "_pecos", a.model, stem, layout,
                                             str(a.beam), str(a.top_k)]) for layout in a.layouts.split(",")}
        for path in a.omikuji_model:
            theirs["omikuji " + os.path.basename(os.path.normpath(path))] = Worker(
                [a.omikuji, path, a.input, str(a.beam), str(a.top_k), "0.1"])
        ours = {}
        if a.xc:
            xc_model = import_model(a, a.xc_model or os.path.join(tmp, "model"))
            same = agreement(a, next(iter(theirs.values())), xc_model, tmp)
            print(json.dumps(same), flush=True)
            for v in a.variant or ["xc="]:
                label, _, extra = v.partition("=")
                ours[label] = shlex.split(extra)
        else:
            xc_model, same = None, None
        systems = [*theirs, *ours]
        visits = {s: {f"{m}{t}": [] for m, t in MODES} for s in systems}
        loads = []
        for r in range(a.rounds):
            order = systems[r % len(systems) :] + systems[: r % len(systems)]
            for mode, threads in MODES:
                for s in order:
                    if s in theirs:
                        got = theirs[s].ask(do="time", mode=mode, threads=threads, passes=a.passes)
                    else:
                        got = xc_bench(a, xc_model, mode, threads, ours[s])
                    visits[s][f"{mode}{threads}"].append(got)
            loads.append(os.getloadavg()[0])
            print(f"round {r + 1}: load {loads[-1]:.2f}", file=sys.stderr, flush=True)
        for w in theirs.values():
            w.close()
    record = dict(model=name, data=os.path.basename(os.path.normpath(a.data)), beam=a.beam, top_k=a.top_k, rounds=a.rounds,
                  passes=a.passes, agreement=same, load_average=loads, ours=list(ours),
                  hello={s: w.hello for s, w in theirs.items()}, visits=visits)
    with open(a.results, "a", encoding="utf-8") as f:
        f.write(json.dumps(record) + "\n")
    show(record)


def middle(visits, key):
    got = [v[key] for v in visits if v.get(key) is not None]
    return statistics.median(got) if got else None


COLUMNS = (("online1", "p50_ms", "online p50"), ("online1", "p99_ms", "online p99"), ("online1", "mean_ms", "online mean"),
           ("batch1", "mean_ms", "batch 1T"), ("batch2", "mean_ms", "batch 2T"))


def show(record):
    visits, ours = record["visits"], record["ours"]
    print(f"\n### {record['model']} on {record['data']} (beam {record['beam']}, top {record['top_k']}; us per query, "
          f"median of {record['rounds']} rounds; load {min(record['load_average']):.1f} - {max(record['load_average']):.1f})\n")
    if record["agreement"]:
        g = record["agreement"]
        print(f"{g['rows_equal']} of {g['rows']} rows equal label for label, {g['rows_tied']} equal except for ties below 1e-6, "
              f"{g['rows_different']} different; largest score gap {g['largest_score_gap']:.1e}\n")
    print("| system | " + " | ".join(c for _, _, c in COLUMNS) + " |\n|---|" + "---|" * len(COLUMNS))
    value = {s: [middle(v[m], k) for m, k, _ in COLUMNS] for s, v in visits.items()}
    text = lambda v, n: "" if v is None else f"{v * 1e3:.{n}f}"
    for s, vals in value.items():
        print(f"| {s} | " + " | ".join(text(v, 1) for v in vals) + " |")
    pecos = [v for s, v in value.items() if s.startswith("pecos ")]
    for s in ours if pecos else ():
        fastest = [min(col) for col in zip(*pecos)]
        ratio = [f / o if o else None for f, o in zip(fastest, value[s])]
        print(f"| fastest PECOS / {s} | " + " | ".join("" if v is None else f"**{v:.1f}x**" for v in ratio) + " |")
    floor = middle(visits[next(s for s in visits if s.startswith("pecos "))]["online1"], "call_floor_ms") if pecos else None
    if floor:
        print(f"\nPECOS online includes its result callback; a one-feature query at beam 1 takes {floor * 1e3:.1f} us.")


def load_time(a):
    """Time from nothing to the first answer, page cache warm: as `xc bench predict` states it, and of a whole process."""
    stem = os.path.join(a.data, "test")
    x, y = rows.load(stem)
    with tempfile.TemporaryDirectory() as tmp:
        one = os.path.join(tmp, "one.txt")
        rows.write_text(one, x[:1], y[:1])
        a.input, a.passes = one, 1
        size = sum(os.path.getsize(os.path.join(b, f)) for b, _, fs in os.walk(a.xc_model) for f in fs)
        print(f"model: {size / 2**20:.0f} MiB\n\n| check | load ms | load and first answer ms | whole process of one answer ms |\n|---|---|---|---|")
        for label, extra in (("structure", []), ("--trusted", ["--trusted"])):
            loads, firsts, walls = [], [], []
            for _ in range(a.rounds):
                told = xc_bench(a, a.xc_model, "online", 1, extra)
                loads.append(told["load_ms"])
                firsts.append(told.get("first_answer_ms", float("nan")))
                t = time.perf_counter()
                subprocess.run([a.xc, "predict", "--model", a.xc_model, "--input", one, "--top-k", str(a.top_k), "--beam", str(a.beam),
                                "--output", os.path.join(tmp, "out"), "--threads", "1", "--quiet", *extra], check=True)
                walls.append((time.perf_counter() - t) * 1e3)
            print(f"| {label} | {statistics.median(loads):.2f} | {statistics.median(firsts):.2f} | {statistics.median(walls):.1f} |")


def report(a):
    with open(a.results, encoding="utf-8") as f:
        for line in f:
            show(json.loads(line))


def main():
    if sys.argv[1:2] == ["_pecos"]:
        return pecos_worker(*sys.argv[2:5], int(sys.argv[5]), int(sys.argv[6]))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(dest="cmd", required=True)
    for name in ("run", "load"):
        q = s.add_parser(name)
        q.add_argument("--data", required=True)
        q.add_argument("--xc", default=shutil.which("xc"), help="the xc program; '' measures the peers alone")
        q.add_argument("--xc-model", help="where the imported model is kept (run: converted there unless it is there)")
        q.add_argument("--beam", type=int, default=10)
        q.add_argument("--top-k", type=int, default=10)
        q.add_argument("--rounds", type=int, default=5)
        if name == "run":
            q.add_argument("--model", required=True, help="the folder that PECOS's save() wrote")
            q.add_argument("--results", required=True)
            q.add_argument("--passes", type=int, default=3)
            q.add_argument("--queries", type=int, help="only the first rows of the test set")
            q.add_argument("--layouts", default="BINARY_SEARCH_CHUNKED,HASH_CHUNKED")
            q.add_argument("--variant", action="append", help="NAME=ARGS: a row of ours with further `xc bench predict` arguments")
            q.add_argument("--omikuji", help="the driver built from omikuji-driver/")
            q.add_argument("--omikuji-model", action="append", default=[])
    s.add_parser("report").add_argument("--results", required=True)
    a = p.parse_args()
    dict(run=run, load=load_time, report=report)[a.cmd](a)


if __name__ == "__main__":
    main()
