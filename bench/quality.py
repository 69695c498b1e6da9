#!/usr/bin/env python3
"""Quality of tree systems on the same features: tuning, runs, comparison.

    quality.py tune    --data DIR --out OUT [--threads 1]                          PECOS, on fit / dev rows only
    quality.py peers   --data DIR --out OUT [--only REGEX] [--omikuji BIN]         three seeds (runs) of each peer
    quality.py ours    --data DIR --out OUT --xc BIN --name NAME --args "..."      three seeds of `xc train tree`
    quality.py predictions --data DIR --out OUT --name NAME --run 0 FILE           add prediction lines made elsewhere
    quality.py report  --data DIR... --out OUT [--against OURS=PEER ...]

DIR is what `prepare.py` made. A run leaves OUT/SET/NAME.RUN.json (metrics, training record) and
OUT/SET/NAME.RUN.npy (ten best labels of each test row); runs that are there are not repeated.
Systems of `peers`: pecos-s16, pecos-s32 (default threshold 0.1, C 1), pecos-tuned (what `tune` chose),
omikuji-parabel-3, omikuji-bonsai-3.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import sys

import numpy as np

import metrics
import peers
import rows

TOP, BEAM = 10, 10


def name_of(data):
    return os.path.basename(os.path.normpath(data))


def scorer(data, train, test):
    """A function from a file of top lists to (summary, per-row values)."""
    _, ytr = rows.load(os.path.join(data, train))
    _, yte = rows.load(os.path.join(data, test))
    prop = metrics.propensity(ytr, yte.shape[1])

    def score(path):
        per_row = metrics.per_row(np.load(path), yte, prop)
        return metrics.summary(per_row), per_row

    return score


def dump(path, record):
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(record, f, indent=1)
        f.write("\n")
    os.replace(path + ".part", path)


def train_and_predict(spec, data, train, test, model, top, threads):
    shutil.rmtree(model, ignore_errors=True)
    base = dict(spec, threads=threads, model=model)
    system = spec["system"]
    record = peers.step(dict(base, step=f"{system}_train", train=os.path.join(data, train)))
    record.update(peers.step(dict(base, step=f"{system}_predict", test=os.path.join(data, test), beam=BEAM,
                                  top_k=TOP, top=top)) | dict(peak_rss_bytes=record["peak_rss_bytes"]))
    return record


def tune(a):
    """Coordinate search on held-out training rows: C, then threshold, then branching."""
    folder = os.path.join(a.out, name_of(a.data))
    os.makedirs(folder, exist_ok=True)
    chosen = os.path.join(folder, "pecos-tuned.params.json")
    if os.path.exists(chosen):
        return
    score = scorer(a.data, "fit", "dev")
    tried = {}

    def value(p):
        key = json.dumps(p, sort_keys=True)
        if key not in tried:
            top = os.path.join(folder, "tune.npy")
            model = os.path.join(a.models or folder, f"tune-{name_of(a.data)}")
            train_and_predict(dict(system="pecos", seed=0, **p), a.data, "fit", "dev", model, top, a.threads)
            got = score(top)[0]
            shutil.rmtree(model)
            tried[key] = dict(params=p, **got, objective=(got["P@1"] + got["P@5"] + got["PSP@5"]) / 3)
            print(json.dumps(tried[key]), flush=True)
        return tried[key]["objective"]

    best = dict(C=1.0, threshold=0.1, nr_splits=16)
    for name, options in (("C", (0.5, 1.0, 2.0)), ("threshold", (0.05, 0.1, 0.2)), ("nr_splits", (16, 32)), ("C", (0.5, 1.0, 2.0, 4.0))):
        best = max((dict(best, **{name: v}) for v in options), key=value)
    dump(chosen, dict(chosen=best, tried=list(tried.values())))


def plan(folder):
    yield "pecos-s16", dict(system="pecos", nr_splits=16)
    yield "pecos-s32", dict(system="pecos", nr_splits=32)
    params = os.path.join(folder, "pecos-tuned.params.json")
    if os.path.exists(params):
        with open(params, encoding="utf-8") as f:
            yield "pecos-tuned", dict(system="pecos", **json.load(f)["chosen"])
    for kind in ("parabel", "bonsai"):
        yield f"omikuji-{kind}-3", dict(system="omikuji", kind=kind, trees=3)


def run_peers(a):
    folder = os.path.join(a.out, name_of(a.data))
    os.makedirs(folder, exist_ok=True)
    score = scorer(a.data, "train", "test")
    for name, spec in plan(folder):
        if not re.search(a.only, name) or (spec["system"] == "omikuji" and not a.omikuji):
            continue
        for run in range(a.runs):
            stem = os.path.join(folder, f"{name}.{run}")
            if os.path.exists(stem + ".json"):
                continue
            model = os.path.join(a.models or folder, f"{name_of(a.data)}-{name}.{run}")
            asked = dict(spec, seed=run, omikuji=a.omikuji)
            record = train_and_predict(asked, a.data, "train", "test", model, stem + ".npy", a.threads)
            if not a.keep_models:
                shutil.rmtree(model)
            got = score(stem + ".npy")[0]
            asked.pop("omikuji")
            dump(stem + ".json", dict(data=name_of(a.data), name=name, run=run, asked=asked, train=record, **got))
            print(name_of(a.data), name, run, got, flush=True)


def run_ours(a):
    folder = os.path.join(a.out, name_of(a.data))
    os.makedirs(folder, exist_ok=True)
    score = scorer(a.data, a.train, a.test)
    for run in range(a.runs):
        stem = os.path.join(folder, f"{a.name}.{run}")
        if os.path.exists(stem + ".json") and not a.again:
            continue
        model = os.path.join(a.models or folder, f"{name_of(a.data)}-{a.name}.{run}")
        common = ["--threads", str(a.threads), "--quiet"]
        text, wall, c, peak = peers.command(
            [a.xc, "train", "tree", "--train", os.path.join(a.data, a.train + ".txt"), "--model", model, "--seed", str(run),
             "--json", *common, *shlex.split(a.args)])
        lines = os.path.join(folder, f"{a.name}.{run}.lines")
        peers.command([a.xc, "predict", "--model", model, "--input", os.path.join(a.data, a.test + ".txt"), "--top-k", str(TOP),
                       "--beam", str(a.beam), "--output", lines, *common])
        np.save(stem + ".npy", metrics.read_lines(lines, TOP)[0])
        os.remove(lines)
        if not a.keep_models:
            shutil.rmtree(model)
            shutil.rmtree(model + ".log", ignore_errors=True)
        told = json.loads(text[text.index("{"):])
        got = score(stem + ".npy")[0]
        dump(stem + ".json", dict(data=name_of(a.data), name=a.name, run=run, args=a.args, process_s=wall, train=told, **got))
        print(name_of(a.data), a.name, run, got, {k: told.get(k) for k in ("wall_s", "cpu_s", "peak_rss_bytes")}, flush=True)


def add_predictions(a):
    folder = os.path.join(a.out, name_of(a.data))
    os.makedirs(folder, exist_ok=True)
    stem = os.path.join(folder, f"{a.name}.{a.run}")
    np.save(stem + ".npy", metrics.read_lines(a.file, TOP)[0])
    got = scorer(a.data, "train", "test")(stem + ".npy")[0]
    dump(stem + ".json", dict(data=name_of(a.data), name=a.name, run=a.run, **got))
    print(got)


def runs_of(folder, name):
    found = sorted(f for f in os.listdir(folder) if re.fullmatch(re.escape(name) + r"\.\d+\.json", f))
    return [os.path.join(folder, f[:-5]) for f in found]


def report(a):
    shown = ["P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5"]
    overall = {}
    for data in a.data:
        folder = os.path.join(a.out, name_of(data))
        names = sorted({m[1] for f in os.listdir(folder) if (m := re.fullmatch(r"(.+)\.\d+\.json", f))})
        print(f"\n### {name_of(data)}\n")
        print("| system | run | " + " | ".join(shown) + " |\n|---|---|" + "---|" * len(shown))
        for name in names:
            each = []
            for stem in runs_of(folder, name):
                with open(stem + ".json", encoding="utf-8") as f:
                    each.append(json.load(f))
            for r in each:
                print(f"| {name} | {r['run']} | " + " | ".join(f"{r[m]:.2f}" for m in shown) + " |")
            mean = {m: float(np.mean([r[m] for r in each])) for m in shown}
            print(f"| **{name}** | **mean of {len(each)}** | " + " | ".join(f"**{mean[m]:.2f}**" for m in shown) + " |")
            overall.setdefault(name, {})[name_of(data)] = mean
        if a.against:
            score = scorer(data, "train", "test")
            print("\n| ours against peer | metric | difference | 95 % interval (paired bootstrap over rows) | met |\n|---|---|---|---|---|")
            values = {}
            for pair in a.against:
                ours, theirs = pair.split("=")
                for n in (ours, theirs):
                    if n not in values:
                        values[n] = [score(s + ".npy")[1] for s in runs_of(folder, n)]
                if not values[ours] or not values[theirs]:
                    print(f"| {ours} - {theirs} | | no runs | | |")
                    continue
                for m in ("P@1", "P@3", "P@5", "PSP@5"):
                    d, lo, hi = metrics.paired_bootstrap([v[m] for v in values[ours]], [v[m] for v in values[theirs]])
                    met = "yes" if d > -0.3 or hi >= 0 else "NO"
                    print(f"| {ours} - {theirs} | {m} | {d:+.2f} | {lo:+.2f} .. {hi:+.2f} | {met} |")
    print("\n### Means over the sets\n\n| system | sets | " + " | ".join(shown) + " |\n|---|---|" + "---|" * len(shown))
    for name, per in overall.items():
        print(f"| {name} | {len(per)} | " + " | ".join(f"{np.mean([v[m] for v in per.values()]):.2f}" for m in shown) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(dest="cmd", required=True)
    for name in ("tune", "peers", "ours"):
        q = s.add_parser(name)
        q.add_argument("--data", required=True)
        q.add_argument("--out", required=True)
        q.add_argument("--threads", type=int, default=1)
        q.add_argument("--runs", type=int, default=3)
        q.add_argument("--models", help="folder for the models (default: beside the results)")
        q.add_argument("--keep-models", action="store_true")
        if name == "peers":
            q.add_argument("--only", default=".")
            q.add_argument("--omikuji", default=shutil.which("omikuji"))
        if name == "ours":
            q.add_argument("--xc", default=shutil.which("xc"))
            q.add_argument("--name", required=True)
            q.add_argument("--args", default="", help="further arguments of `xc train tree`")
            q.add_argument("--beam", type=int, default=BEAM)
            q.add_argument("--train", default="train", help="`fit` when tuning")
            q.add_argument("--test", default="test", help="`dev` when tuning")
            q.add_argument("--again", action="store_true", help="repeat runs that are there")
    q = s.add_parser("predictions")
    for k in ("data", "out", "name"):
        q.add_argument("--" + k, required=True)
    q.add_argument("--run", type=int, default=0)
    q.add_argument("file")
    q = s.add_parser("report")
    q.add_argument("--data", nargs="+", required=True)
    q.add_argument("--out", required=True)
    q.add_argument("--against", nargs="*", default=[])
    a = p.parse_args()
    dict(tune=tune, peers=run_peers, ours=run_ours, predictions=add_predictions, report=report)[a.cmd](a)


if __name__ == "__main__":
    sys.exit(main())
