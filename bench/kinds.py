#!/usr/bin/env python3
"""Every kind of model, PECOS and omikuji beside one another, each at its own defaults, on the same set.

    kinds.py run    --features FEATURES --out OUT --xc BIN [--data DIR] [--fields title,text] [--omikuji BIN] [--systems NAME ...]
    kinds.py add    --data DIR --out OUT --name NAME --answers FILE --labels FILE [--record FILE]
    kinds.py report --out OUT [OUT ...] [--against OURS=THEIRS ...] [--across COLUMN ...] [--without-duplicates --data DIR]

DIR holds train.jsonl and test.jsonl, FEATURES what `prepare.py text` made of them. xc reads the texts, with its own
features; PECOS (one tree of 16 branches) and omikuji (three trees) read FEATURES. Without --data all read FEATURES, which may
also be from `prepare.py counts` or `rows`. A system leaves OUT/NAME.json, with what it cost, and OUT/NAME.npz, with the
metrics of each test row; one that is there is not run again. `add` takes the answers of
another model, in lines, whose label numbers are places in --labels.

Training CPU seconds and peak memory are those of the training alone (PECOS's include reading the features, which is some
of it); ms per query is the mean of 300 test rows asked one at a time on one thread, from text for xc where it is given, from
features for PECOS.
`report --against` gives paired bootstrap intervals over test rows, `--across` a table of systems and sets for each of the
columns named (P@1, cpu_s, peak_bytes, ms, bytes).
"""
import argparse
import json
import os
import shutil
import sys

import numpy as np

import metrics
import peers
import rows
from blend import Truth, command, dump, load, names_of, new_rows

XC = {"tree": ["tree"], "tree-1": ["tree", "--trees", "1"], "mach": ["mach"], "dense": ["dense"], "uniform": ["uniform"],
      "lns": ["lns"], "astra": ["astra"]}
PEERS = {"pecos": dict(system="pecos", nr_splits=16, seed=0), "omikuji": dict(system="omikuji", kind="parabel", trees=3)}
SHOWN = ["P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5"]
COSTS = {"cpu_s": (".0f", 1), "peak_bytes": (".0f", 2**20), "ms": (".2f", 1), "bytes": (".0f", 2**20)}
TOP, BEAM = 5, 10


def folder_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def keep(path, top, truth, propensity):
    of_row = metrics.per_row(top, truth, propensity)
    np.savez(path + ".npz", **{f"{m} {part}": v for m in SHOWN for part, v in zip(("sum", "of"), of_row[m])})


def truth_of(features):
    """Labels of the test rows, and propensities of labels."""
    _, train = rows.load(os.path.join(features, "train"))
    _, truth = rows.load(os.path.join(features, "test"))
    return truth, metrics.propensity(train, truth.shape[1])


def run_xc(a, name, path):
    model, answers = path + ".model", path + ".answers"
    shutil.rmtree(model, ignore_errors=True)
    read = ["--text-fields", a.fields] if a.data else []
    file = lambda part: os.path.join(a.data, part + ".jsonl") if a.data else os.path.join(a.features, part + ".txt")
    train = ["--train", file("train"), "--model", model]
    told = command([a.xc, "train", *XC[name], *train, *read, "--threads", str(a.threads), "--json", "--quiet"], path + ".err")
    asked = ["--model", model, "--input", file("test"), *read]
    command([a.xc, "predict", *asked, "--top-k", str(TOP), "--threads", str(a.threads), "--output", answers, "--quiet"], path + ".err")
    online = ["--mode", "online", "--queries", "300", "--repeat", "1", "--threads", "1", "--json", "--quiet"]
    cost = command([a.xc, "bench", "predict", *asked, *online], path + ".err")
    if a.data:
        truth = Truth(a.data, names_of(os.path.join(model, "labels.txt")))
        of_test, propensity = truth.of_test, truth.propensity
    else:
        of_test, propensity = truth_of(a.features)
    keep(path, metrics.read_lines(answers, TOP)[0], of_test, propensity)
    record = {"cpu_s": told["cpu_s"], "peak_bytes": told["peak_rss_bytes"], "ms": cost["mean_ms"], "bytes": cost["model_bytes"]}
    if not a.keep_models:
        shutil.rmtree(model)
    shutil.rmtree(model + ".log", ignore_errors=True)
    return record


def run_peer(a, name, path):
    model, top = path + ".model", path + ".top.npy"
    shutil.rmtree(model, ignore_errors=True)
    spec = dict(PEERS[name], threads=a.threads, model=model, omikuji=a.omikuji)
    told = peers.step(dict(spec, step=f"{name}_train", train=os.path.join(a.features, "train")))
    asked = dict(spec, test=os.path.join(a.features, "test"), beam=BEAM, top_k=TOP, top=top)
    peers.step(dict(asked, step=f"{name}_predict"))
    keep(path, np.load(top), *truth_of(a.features))
    ms = peers.step(dict(asked, step="pecos_online", queries=300))["mean_ms"] if name == "pecos" else None
    record = {"cpu_s": told["cpu_s"], "peak_bytes": told["peak_rss_bytes"], "ms": ms, "bytes": folder_bytes(model)}
    shutil.rmtree(model)
    os.remove(top)
    return record


def run(a):
    os.makedirs(a.out, exist_ok=True)
    for name in a.systems:
        path = os.path.join(a.out, name)
        if os.path.exists(path + ".json"):
            continue
        if name == "omikuji" and not a.omikuji:
            print("omikuji: left out, --omikuji is not given", flush=True)
            continue
        record = run_xc(a, name, path) if name in XC else run_peer(a, name, path)
        dump(path + ".json", record)
        print(name, json.dumps(record), flush=True)


def add(a):
    path = os.path.join(a.out, a.name)
    truth = Truth(a.data, names_of(a.labels))
    keep(path, metrics.read_lines(a.answers, TOP)[0], truth.of_test, truth.propensity)
    record = load(a.record) if a.record else {}
    dump(path + ".json", {"cpu_s": record.get("cpu_s"), "peak_bytes": record.get("peak_rss_bytes"), "ms": record.get("mean_ms"),
                          "bytes": record.get("model_bytes")})


def values(out, name, kept):
    with np.load(os.path.join(out, name + ".npz")) as stored:
        return {m: (stored[f"{m} sum"][kept], stored[f"{m} of"][kept]) for m in SHOWN}


def across(a, column, kept):
    """One column of all sets: a row for each system that every kind is compared with."""
    form, scale = COSTS.get(column, (".2f", 1))
    names = [*XC, *PEERS, "blend"]
    print(f"\n| {column} | " + " | ".join(os.path.basename(os.path.normpath(out)) for out in a.out) + " |")
    print("|---" * (len(a.out) + 1) + "|")
    for name in names:
        cells = []
        for out in a.out:
            if not os.path.exists(os.path.join(out, name + ".json")):
                cells.append("")
            elif column in COSTS:
                cells.append(cell(load(os.path.join(out, name + ".json"))[column], form, scale))
            else:
                cells.append(format(metrics.summary(values(out, name, kept))[column], form))
        print(f"| {name} | " + " | ".join(cells) + " |")


def cell(value, form, scale=1):
    return "" if value is None else format(value / scale, form)


def report(a):
    kept = new_rows(a.data, a.fields) if a.without_duplicates else slice(None)
    for column in a.across:
        across(a, column, kept)
    for out in () if a.across else a.out:
        names = [n for n in (*XC, *PEERS) if os.path.exists(os.path.join(out, n + ".json"))]
        names += sorted(f[:-5] for f in os.listdir(out) if f.endswith(".json") and f[:-5] not in names)
        print(f"\n| {os.path.basename(os.path.normpath(out))} | " + " | ".join(SHOWN) + " | training CPU s | peak MiB | ms per query | model MiB |")
        print("|---" * (len(SHOWN) + 5) + "|")
        of = {name: values(out, name, kept) for name in names}
        for name in names:
            got, cost = metrics.summary(of[name]), load(os.path.join(out, name + ".json"))
            cells = [f"{got[m]:.2f}" for m in SHOWN] + [cell(cost[c], form, scale) for c, (form, scale) in COSTS.items()]
            print(f"| {name} | " + " | ".join(cells) + " |")
        for pair in a.against:
            ours, theirs = pair.split("=", 1)
            if ours in of and theirs in of:
                cells = []
                for m in SHOWN:
                    d, low, high = metrics.paired_bootstrap([of[ours][m]], [of[theirs][m]])
                    cells.append(f"{d:+.2f} ({low:+.2f} .. {high:+.2f})")
                print(f"| {ours} - {theirs} | " + " | ".join(cells) + " | | | | |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(dest="cmd", required=True)
    for name in ("run", "add", "report"):
        q = s.add_parser(name)
        q.add_argument("--data", required=name == "add")
        q.add_argument("--out", required=True, nargs="+" if name == "report" else None)
        if name != "add":
            q.add_argument("--fields", default="text")
    q = s.choices["run"]
    q.add_argument("--features", required=True)
    q.add_argument("--xc", required=True)
    q.add_argument("--omikuji", default=shutil.which("omikuji"))
    q.add_argument("--systems", nargs="+", default=[*XC, *PEERS], choices=[*XC, *PEERS])
    q.add_argument("--threads", type=int, default=1)
    q.add_argument("--keep-models", action="store_true")
    q = s.choices["add"]
    for option in ("name", "answers", "labels"):
        q.add_argument("--" + option, required=True)
    q.add_argument("--record", metavar="FILE", help="JSON with cpu_s, mean_ms, model_bytes")
    q = s.choices["report"]
    q.add_argument("--against", nargs="*", default=[], metavar="OURS=THEIRS")
    q.add_argument("--across", nargs="*", default=[], choices=[*SHOWN, *COSTS], metavar="COLUMN")
    q.add_argument("--without-duplicates", action="store_true", help="leave out test rows with a training row's letters")
    a = p.parse_args()
    if a.cmd == "report" and a.without_duplicates and not a.data:
        sys.exit("--without-duplicates: --data is expected, too")
    {"run": run, "add": add, "report": report}[a.cmd](a)


if __name__ == "__main__":
    main()
