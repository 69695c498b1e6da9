#!/usr/bin/env python3
"""Quality of tree systems on the same features: tuning, runs, comparison.

    quality.py tune    --data DIR --out OUT [--system pecos|omikuji|xc-1|xc-3]     on fit / dev rows only
    quality.py peers   --data DIR --out OUT [--only REGEX] [--omikuji BIN]         three seeds (runs) of each peer
    quality.py ours    --data DIR --out OUT --xc BIN --name NAME [--args "..."]    three seeds of `xc train tree`
    quality.py predictions --data DIR --out OUT --name NAME --run 0 FILE           add prediction lines made elsewhere
    quality.py report  --data DIR... --out OUT [--against OURS=PEER ...]

DIR is what `prepare.py` made. A run leaves OUT/SET/NAME.RUN.json (metrics, training record) and
OUT/SET/NAME.RUN.npy (ten best labels of each test row); runs that are there are not repeated.
Systems of `peers`: pecos-s16, pecos-s32 (default threshold 0.1, C 1), omikuji-parabel-3, omikuji-bonsai-3, and what
`tune` chose: pecos-tuned, omikuji-parabel-3-tuned. `ours` without `--args` takes what `tune` chose for NAME (xc-1-tuned, xc-3-tuned).
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
    """Trains and predicts with a peer -> its record; the best labels go to the file `top`."""
    shutil.rmtree(model, ignore_errors=True)
    base = dict(spec, threads=threads, model=model)
    system = spec["system"]
    record = peers.step(dict(base, step=f"{system}_train", train=os.path.join(data, train)))
    record.update(peers.step(dict(base, step=f"{system}_predict", test=os.path.join(data, test), beam=BEAM,
                                  top_k=TOP, top=top)) | dict(peak_rss_bytes=record["peak_rss_bytes"]))
    return record


def train_and_predict_ours(xc, args, seed, data, train, test, model, top, threads, beam=BEAM):
    """The same with `xc` -> the report of `xc train tree`."""
    common = ["--threads", str(threads), "--quiet"]
    text, wall, _, _ = peers.command(
        [xc, "train", "tree", "--train", os.path.join(data, train + ".txt"), "--model", model, "--seed", str(seed),
         "--json", *common, *shlex.split(args)])
    lines = top + ".lines"
    peers.command([xc, "predict", "--model", model, "--input", os.path.join(data, test + ".txt"), "--top-k", str(TOP),
                   "--beam", str(beam), "--output", lines, *common])
    np.save(top, metrics.read_lines(lines, TOP)[0])
    os.remove(lines)
    return dict(json.loads(text[text.index("{"):]), process_s=wall)


def remove_model(model):
    shutil.rmtree(model)
    shutil.rmtree(model + ".log", ignore_errors=True)


def one_tree_args(p):
    return (f"--preset xr-linear --trees 1 --linear.cost {p['C']} --linear.prune-below {p['threshold']} "
            f"--tree.branching {p['nr_splits']} --cluster.max-leaf {p['max_leaf_size']}")


def three_trees_args(p):
    return f"--preset parabel --trees 3 --linear.cost {p['C']} --post-processor {p['post']}"


# What is searched, one parameter after the other. One tree: the same steps for PECOS and for ours. omikuji scores by the
# squared hinge (l2-hinge) and has no choice there. `untuned` names the system whose settings are where the search starts.
ONE_TREE = dict(start=dict(C=1.0, threshold=0.1, nr_splits=16, max_leaf_size=100),
                steps=(("C", (0.5, 1.0, 2.0)), ("threshold", (0.05, 0.1)), ("max_leaf_size", (100, 300))))
SEARCH = {
    "pecos": dict(ONE_TREE, name="pecos-tuned", untuned="pecos-s16"),
    "xc-1": dict(ONE_TREE, name="xc-1-tuned", untuned="xc-1", args=one_tree_args),
    "omikuji": dict(start=dict(C=1.0), steps=(("C", (1.0, 2.0)),), name="omikuji-parabel-3-tuned", untuned="omikuji-parabel-3"),
    "xc-3": dict(start=dict(C=1.0, post="l2-hinge"), steps=(("C", (1.0, 2.0)), ("post", ("l2-hinge", "l3-hinge"))),
                 name="xc-3-tuned", untuned="xc-3", args=three_trees_args),
}


def tune(a):
    """Coordinate search on held-out training rows, seed 0, for the mean of P@1, P@5 and PSP@5."""
    folder = os.path.join(a.out, name_of(a.data))
    os.makedirs(folder, exist_ok=True)
    search = SEARCH[a.system]
    chosen = os.path.join(folder, search["name"] + ".params.json")
    if os.path.exists(chosen):
        return
    score = scorer(a.data, "fit", "dev")
    tried = {}

    def value(p):
        key = json.dumps(p, sort_keys=True)
        if key not in tried:
            top = os.path.join(folder, "tune.npy")
            model = os.path.join(a.models or folder, f"tune-{name_of(a.data)}")
            where = (a.data, "fit", "dev", model, top, a.threads)
            if "args" in search:
                train_and_predict_ours(a.xc, search["args"](p), 0, *where)
            elif a.system == "pecos":
                train_and_predict(dict(system="pecos", seed=0, **p), *where)
            else:
                train_and_predict(dict(system="omikuji", kind="parabel", trees=3, omikuji=a.omikuji, **p), *where)
            got = score(top)[0]
            os.remove(top)
            remove_model(model)
            tried[key] = dict(params=p, **got, objective=(got["P@1"] + got["P@5"] + got["PSP@5"]) / 3)
            print(name_of(a.data), a.system, json.dumps(tried[key]), flush=True)
        return tried[key]["objective"]

    best = search["start"]
    for name, options in search["steps"]:
        best = max((dict(best, **{name: v}) for v in options), key=value)
    args = dict(args=search["args"](best)) if "args" in search else {}
    dump(chosen, dict(chosen=best, untuned=best == search["start"] and search["untuned"], **args, tried=list(tried.values())))


def params_of(folder, name):
    path = os.path.join(folder, name + ".params.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            return json.load(f)


def plan(folder):
    yield "pecos-s16", dict(system="pecos", nr_splits=16)
    yield "pecos-s32", dict(system="pecos", nr_splits=32)
    parabel = dict(system="omikuji", kind="parabel", trees=3)
    yield "omikuji-parabel-3", parabel
    yield "omikuji-bonsai-3", dict(parabel, kind="bonsai")
    for name, spec in (("pecos-tuned", dict(system="pecos")), ("omikuji-parabel-3-tuned", parabel)):
        if found := params_of(folder, name):
            yield name, dict(spec, **found["chosen"])


def reuse(folder, name, run):
    """Whether tuning chose what an untuned system does whose run is there: that run then counts for both."""
    source = (params_of(folder, name) or {}).get("untuned")
    stem = os.path.join(folder, f"{source}.{run}")
    if not source or not os.path.exists(stem + ".json"):
        return False
    with open(stem + ".json", encoding="utf-8") as f:
        record = json.load(f)
    shutil.copyfile(stem + ".npy", os.path.join(folder, f"{name}.{run}.npy"))
    dump(os.path.join(folder, f"{name}.{run}.json"), dict(record, name=name, same_run_as=source))
    return True


def run_peers(a):
    folder = os.path.join(a.out, name_of(a.data))
    os.makedirs(folder, exist_ok=True)
    score = scorer(a.data, "train", "test")
    for name, spec in plan(folder):
        if not re.search(a.only, name) or (spec["system"] == "omikuji" and not a.omikuji):
            continue
        for run in range(a.runs):
            stem = os.path.join(folder, f"{name}.{run}")
            if os.path.exists(stem + ".json") or reuse(folder, name, run):
                continue
            model = os.path.join(a.models or folder, f"{name_of(a.data)}-{name}.{run}")
            asked = dict(spec, seed=run, omikuji=a.omikuji)
            record = train_and_predict(asked, a.data, "train", "test", model, stem + ".npy", a.threads)
            if not a.keep_models:
                remove_model(model)
            got = score(stem + ".npy")[0]
            asked.pop("omikuji")
            dump(stem + ".json", dict(data=name_of(a.data), name=name, run=run, asked=asked, train=record, **got))
            print(name_of(a.data), name, run, got, flush=True)


def run_ours(a):
    folder = os.path.join(a.out, name_of(a.data))
    os.makedirs(folder, exist_ok=True)
    if a.args is None:
        a.args = (params_of(folder, a.name) or {}).get("args", "")
    score = scorer(a.data, a.train, a.test)
    for run in range(a.runs):
        stem = os.path.join(folder, f"{a.name}.{run}")
        if not a.again and (os.path.exists(stem + ".json") or reuse(folder, a.name, run)):
            continue
        model = os.path.join(a.models or folder, f"{name_of(a.data)}-{a.name}.{run}")
        told = train_and_predict_ours(a.xc, a.args, run, a.data, a.train, a.test, model, stem + ".npy", a.threads, a.beam)
        if not a.keep_models:
            remove_model(model)
        got = score(stem + ".npy")[0]
        dump(stem + ".json", dict(data=name_of(a.data), name=a.name, run=run, args=a.args, train=told, **got))
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


def show_tuning(folder):
    """What was tried on held-out rows, for each tuned system of a set; the choice in bold."""
    found = sorted(f for f in os.listdir(folder) if f.endswith(".params.json"))
    if found:
        print("\n| held-out rows | C | threshold | leaf | scores | P@1 | P@5 | PSP@5 | mean |\n|---|---|---|---|---|---|---|---|---|")
    for f in found:
        name = f.removesuffix(".params.json")
        told = params_of(folder, name)
        for t in told["tried"]:
            p = t["params"]
            cells = [name, *(p.get(k, "") for k in ("C", "threshold", "max_leaf_size", "post"))]
            cells += [f"{t[m]:.2f}" for m in ("P@1", "P@5", "PSP@5", "objective")]
            chosen = p == told["chosen"]
            print("| " + " | ".join(f"**{c}**" if chosen and c != "" else str(c) for c in cells) + " |")


def report(a):
    shown = ["P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5"]
    overall = {}
    for data in a.data:
        folder = os.path.join(a.out, name_of(data))
        names = sorted({m[1] for f in os.listdir(folder) if (m := re.fullmatch(r"(.+)\.\d+\.json", f))})
        print(f"\n### {name_of(data)}\n")
        print("| system | run | " + " | ".join(shown) + " | training CPU s |\n|---|---|" + "---|" * (len(shown) + 1))
        for name in names:
            each = []
            for stem in runs_of(folder, name):
                with open(stem + ".json", encoding="utf-8") as f:
                    each.append(json.load(f))
            cpu = [(r.get("train") or {}).get("cpu_s") or np.nan for r in each]
            for r, c in zip(each, cpu):
                print(f"| {name} | {r['run']} | " + " | ".join(f"{r[m]:.2f}" for m in shown) + f" | {c:.1f} |")
            mean = {m: float(np.mean([r[m] for r in each])) for m in shown} | dict(cpu=float(np.mean(cpu)))
            print(f"| **{name}** | **mean of {len(each)}** | " + " | ".join(f"**{mean[m]:.2f}**" for m in shown) + f" | {mean['cpu']:.1f} |")
            overall.setdefault(name, {})[name_of(data)] = mean
        show_tuning(folder)
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
    print("\n### Means over the sets\n\n| system | sets | " + " | ".join(shown) + " | training CPU s, all sets |")
    print("|---|---|" + "---|" * (len(shown) + 1))
    for name, per in overall.items():
        means = " | ".join(f"{np.mean([v[m] for v in per.values()]):.2f}" for m in shown)
        print(f"| {name} | {len(per)} | {means} | {sum(v['cpu'] for v in per.values()):.1f} |")


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
        if name == "tune":
            q.add_argument("--system", choices=sorted(SEARCH), default="pecos")
        if name == "peers":
            q.add_argument("--only", default=".")
        if name != "ours":
            q.add_argument("--omikuji", default=shutil.which("omikuji"))
        if name != "peers":
            q.add_argument("--xc", default=shutil.which("xc"))
        if name == "ours":
            q.add_argument("--name", required=True)
            q.add_argument("--args", help="further arguments of `xc train tree` (default: what `tune` chose for NAME, if it did)")
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
