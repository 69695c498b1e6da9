#!/usr/bin/env python3
"""Training time and peak memory of tree systems from the same rows, in alternation.

    train_time.py run    --data DIR --work W --results OUT.jsonl [--xc BIN --ours NAME=ARGS ...] [--omikuji BIN]
                         [--peers pecos-s16,omikuji-parabel-3] [--threads 2] [--rounds 3]
    train_time.py report --results OUT.jsonl

Wall time runs from parsed rows in memory to a trained model, without reading and without saving:
PECOS: label representation, clustering, training; omikuji: its own "Model training complete";
xc: `train_s` of `xc train tree --json` (its `wall_s` holds reading and saving too).
Peak memory is that of the whole process; for PECOS what Python and the rows hold before training is shown beside it.
Each round trains every system once (seed = round), the order turned by one place each round, and scores
each model on the test rows.
"""
import argparse
import json
import os
import shlex
import shutil
import statistics
import sys

import numpy as np

import metrics
import peers
import rows

TOP, BEAM = 10, 10
PEERS = {
    "pecos-s16": dict(system="pecos", nr_splits=16),
    "pecos-s32": dict(system="pecos", nr_splits=32),
    "pecos-s2": dict(system="pecos", nr_splits=2),
    **{f"omikuji-{k}-{t}": dict(system="omikuji", kind=k, trees=t) for k in ("parabel", "bonsai") for t in (1, 3)},
}


def size_of(folder):
    return sum(os.path.getsize(os.path.join(b, f)) for b, _, fs in os.walk(folder) for f in fs)


def peer_once(a, spec, seed, model, top):
    shutil.rmtree(model, ignore_errors=True)  # omikuji would add its trees to those there
    base = dict(spec, threads=a.threads, model=model, omikuji=a.omikuji, seed=seed)
    record = peers.step(dict(base, step=spec["system"] + "_train", train=os.path.join(a.data, "train")))
    peers.step(dict(base, step=spec["system"] + "_predict", test=os.path.join(a.data, "test"), beam=BEAM, top_k=TOP, top=top))
    return record


def ours_once(a, extra, seed, model, top):
    shutil.rmtree(model, ignore_errors=True)
    common = ["--threads", str(a.threads), "--quiet"]
    argv = [a.xc, "train", "tree", "--train", os.path.join(a.data, "train.txt"), "--model", model, "--seed", str(seed), "--json"]
    text, process_s, cpu_s, peak = peers.command([*argv, *common, *shlex.split(extra)])
    told = json.loads(text[text.index("{"):])
    # the peak that the system states for a child process counts this one, from before the exec
    record = dict(told, whole_wall_s=told["wall_s"], wall_s=told["train_s"], process_s=process_s, process_cpu_s=cpu_s)
    record.setdefault("peak_rss_bytes", peak)
    lines = top + ".txt"
    peers.command([a.xc, "predict", "--model", model, "--input", os.path.join(a.data, "test.txt"), "--top-k", str(TOP), "--beam",
                   str(BEAM), "--output", lines, *common])
    np.save(top, metrics.read_lines(lines, TOP)[0])
    os.remove(lines)
    shutil.rmtree(model + ".log", ignore_errors=True)
    return record


def run(a):
    os.makedirs(a.work, exist_ok=True)
    name = os.path.basename(os.path.normpath(a.data))
    (_, ytr), (_, yte) = rows.load(os.path.join(a.data, "train")), rows.load(os.path.join(a.data, "test"))
    prop = metrics.propensity(ytr, yte.shape[1])
    plan = [(p, lambda seed, model, top, p=p: peer_once(a, PEERS[p], seed, model, top)) for p in a.peers.split(",") if p]
    for v in a.ours:
        label, _, extra = v.partition("=")
        plan.append((label, lambda seed, model, top, extra=extra: ours_once(a, extra, seed, model, top)))
    for r in range(a.rounds):
        for label, once in plan[r % len(plan) :] + plan[: r % len(plan)]:
            model, top = os.path.join(a.work, f"{name}-{label}"), os.path.join(a.work, "top.npy")
            load = os.getloadavg()[0]
            record = once(r, model, top)
            record = dict(data=name, name=label, round=r, threads=a.threads, load_average=load, model_bytes=size_of(model),
                          **{k: v for k, v in record.items() if k not in ("layers", "model_bytes")},
                          **metrics.summary(metrics.per_row(np.load(top), yte, prop)))
            if not a.keep_models:
                shutil.rmtree(model)
            with open(a.results, "a", encoding="utf-8") as f:
                f.write(json.dumps(record) + "\n")
            print(f"{name} {label} round {r}: {record['wall_s']:.2f} s, P@1 {record['P@1']:.2f} (load {load:.1f})", file=sys.stderr, flush=True)
    report(a)


def report(a):
    with open(a.results, encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    for data in dict.fromkeys(r["data"] for r in records):
        some = [r for r in records if r["data"] == data]
        load = [r["load_average"] for r in some]
        print(f"\n### {data}: training, {some[0]['threads']} threads (median of rounds; load {min(load):.1f} - {max(load):.1f} before a run)\n")
        print("| system | runs | wall s (min .. max) | CPU s | peak RSS MiB (before training) | model MiB | P@1 | P@3 | P@5 | PSP@5 |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for name in dict.fromkeys(r["name"] for r in some):
            own = [r for r in some if r["name"] == name]
            wall = [r["wall_s"] for r in own]
            mid = lambda k: statistics.median(r[k] for r in own)
            before = f" ({mid('data_rss_bytes') / 2**20:.0f})" if all("data_rss_bytes" in r for r in own) else ""
            print(f"| {name} | {len(own)} | {statistics.median(wall):.2f} ({min(wall):.2f} .. {max(wall):.2f}) | {mid('cpu_s'):.1f} | "
                  f"{mid('peak_rss_bytes') / 2**20:.0f}{before} | {mid('model_bytes') / 2**20:.1f} | "
                  + " | ".join(f"{np.mean([r[k] for r in own]):.2f}" for k in ("P@1", "P@3", "P@5", "PSP@5")) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(dest="cmd", required=True)
    q = s.add_parser("run")
    q.add_argument("--data", required=True)
    q.add_argument("--work", required=True, help="folder for the models")
    q.add_argument("--results", required=True)
    q.add_argument("--xc", default=shutil.which("xc"))
    q.add_argument("--ours", nargs="*", default=[], help="NAME=ARGS: further arguments of `xc train tree`")
    q.add_argument("--omikuji", default=shutil.which("omikuji"))
    q.add_argument("--peers", default="pecos-s16,omikuji-parabel-1,omikuji-parabel-3", help=", ".join(PEERS))
    q.add_argument("--threads", type=int, default=2)
    q.add_argument("--rounds", type=int, default=3)
    q.add_argument("--keep-models", action="store_true")
    s.add_parser("report").add_argument("--results", required=True)
    a = p.parse_args()
    dict(run=run, report=report)[a.cmd](a)


if __name__ == "__main__":
    main()
