#!/usr/bin/env python3
"""Blends: what several models gain over the best of them, and what each costs.

    blend.py fit   --data DIR --out OUT --xc BIN [--fields title,text] [--all-rows] [--member NAME=KIND ARGS ...]
    blend.py test  --data DIR --out OUT --xc BIN [--fields title,text] [--all-rows] [--without-duplicates]

`fit` trains every member twice, on the rows that are left when a tenth is held out (OUT/NAME.part) and on
all rows (OUT/NAME.all, with the weight of a network beside its wide term that the held-out rows chose), fits a blend
to the held-out rows and puts the members of all rows into it (OUT/blend; OUT/blend.part keeps the others, unless
--all-rows leaves it out). What is there is not made again. Test rows are not opened. `test` opens them: P@k and PSP@k
of every member and blend (--all-rows: of those of all rows), paired bootstrap intervals of each blend against the
member that was best on the held-out rows, training CPU seconds, bytes, and milliseconds per query.

DIR holds train.jsonl and test.jsonl. Members unless named: trees over words, over words and pairs, over words and characters, the
tree of `--preset parabel`, and ASTRA.
"""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import scipy.sparse as sp

import metrics

MEMBERS = ["tree=tree", "parabel=tree --preset parabel", "pairs=tree --text.ngrams 2", "chars=tree --text.chars 3-4", "astra=astra"]
TOP = 5


def command(arguments, log):
    """Runs `xc`; its report, or the end of the script with what it said."""
    with open(log, "w", encoding="utf-8") as err:
        done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=err, text=True, check=False)
    if done.returncode != 0:
        with open(log, encoding="utf-8") as err:
            sys.exit(f"{shlex.join(arguments)}: exit code {done.returncode}: {err.read()[-400:]}")
    return json.loads(done.stdout) if done.stdout.startswith("{") else {}


def members_of(a):
    pairs = [text.split("=", 1) for text in a.member or MEMBERS]
    return {name: shlex.split(args) for name, args in pairs}


def fit(a):
    os.makedirs(a.out, exist_ok=True)
    path = lambda *parts: os.path.join(a.out, ".".join(parts))
    train = os.path.join(a.data, "train.jsonl")
    common = ["--text-fields", a.fields, "--threads", str(a.threads), "--seed", str(a.seed), "--json"]
    members = members_of(a)
    for name, (kind, *args) in members.items():
        for part, more in (("part", ["--validation-fraction", str(a.fraction)]), ("all", [])):
            if part == "all":
                # The rule is fitted to scores with this weight.
                wide = load(path(name, "part", "json")).get("wide") or {}
                more = ["--wide.weight", str(wide["weight"])] if "weight" in wide else []
            if not os.path.exists(path(name, part, "json")):
                model = ["--train", train, "--model", path(name, part)]
                told = command([a.xc, "train", kind, *model, *args, *more, *common], path(name, part, "err"))
                dump(path(name, part, "json"), told)
                print(name, part, {k: told.get(k) for k in ("cpu_s", "wall_s", "model_bytes")}, flush=True)
    blend = [a.xc, "blend", *(path(name, "part") for name in members), "--validation", train, "--held-out"]
    blends = [("blend.part", []), ("blend", ["--refit-members", *(path(m, "all") for m in members)])]
    for name, more in blends[a.all_rows:]:
        told = command([*blend, "--output", path(name), *more, *common], path(name, "err"))
        dump(path(name, "json"), told)
    show_fit(told)


def show_fit(told):
    print(f"\n{told['instances']} held-out rows, {told['candidates']} candidates, {told['true_candidates']} true")
    print("\n| held-out rows | P@1 | P@3 | P@5 | log loss | calibration error |\n|---|---|---|---|---|---|")
    for m in told["members"]:
        print(f"| {os.path.basename(m['model'])} | " + " | ".join(f"{100 * m[f'P@{k}']:.2f}" for k in (1, 3, 5)) + " | | |")
    for rule in told["rules"]:
        cells = [f"{100 * rule['metrics'][f'P@{k}']:.2f}" for k in (1, 3, 5)]
        mark = "**" if rule["rule"] == told["rule"] else ""
        print(f"| {mark}{rule['rule']}{mark} | " + " | ".join(cells) + f" | {rule['log_loss']:.4f} | {rule['calibration_error']:.4f} |")


def dump(path, record):
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        json.dump(record, f, indent=1)
    os.replace(path + ".tmp", path)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def label_lists(path, ids):
    """Label lists of a file of JSON lines, and its texts without anything but letters."""
    lists, texts = [], []
    with open(path, encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            lists.append(sorted({label if isinstance(label, int) else ids.get(label, -1) for label in row["labels"]}))
            texts.append(row)
    return lists, texts


def matrix(lists, width):
    ptr = np.cumsum([0] + [len(row) for row in lists])
    flat = np.array([label for row in lists for label in row], np.int64)
    return sp.csr_matrix((np.ones(len(flat), np.float32), flat, ptr), shape=(len(lists), width))


def letters(row, fields):
    return re.sub(r"[^a-z]", "", " ".join(row.get(field) or "" for field in fields).lower())


def names_of(path):
    """Names of labels, where a model has them."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n") for line in f]


class Truth:
    """Labels of the test rows, numbered as a model numbers them, and propensities of labels."""

    def __init__(self, data, names):
        ids = {name: label for label, name in enumerate(names)}
        train, _ = label_lists(os.path.join(data, "train.jsonl"), ids)
        test, _ = label_lists(os.path.join(data, "test.jsonl"), ids)
        width = 1 + max(label for row in (*train, *test) for label in row)
        # A label that no training row has is always missed: it gets a number of its own.
        test = [[label if label >= 0 else width for label in row] for row in test]
        self.of_test = matrix(test, width + 1)
        self.propensity = metrics.propensity(matrix(train, width + 1), width + 1)


def new_rows(data, fields):
    """Which test rows have not the letters of a training row."""
    fields = fields.split(",")
    read = lambda name: label_lists(os.path.join(data, name), {})[1]
    seen = {letters(row, fields) for row in read("train.jsonl")}
    return np.array([letters(row, fields) not in seen for row in read("test.jsonl")])


def test(a):
    truth = Truth(a.data, names_of(os.path.join(a.out, "blend", "labels.txt")))
    y, prop = truth.of_test, truth.propensity
    kept = new_rows(a.data, a.fields) if a.without_duplicates else np.ones(y.shape[0], bool)
    found = load(os.path.join(a.out, "blend.json"))
    best = max(found["members"], key=lambda m: m["P@1"])
    best = os.path.basename(best["model"]).removesuffix(".part")
    members = [os.path.basename(m["model"]).removesuffix(".part") for m in found["members"]]
    parts = ("all",) if a.all_rows else ("part", "all")
    systems = [f"{m}.{part}" for m in members for part in parts] + ([] if a.all_rows else ["blend.part"]) + ["blend"]
    values = {}
    print(f"{int(kept.sum())} of {len(kept)} test rows\n")
    shown = ["P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5"]
    print("| system | " + " | ".join(shown) + " | training CPU s | MiB | ms per query |\n|---|" + "---|" * (len(shown) + 3))
    for name in systems:
        model = os.path.join(a.out, name)
        lines = model + ".answers"
        asked = ["--model", model, "--input", os.path.join(a.data, "test.jsonl"), "--text-fields", a.fields]
        if not os.path.exists(lines):
            threads = ["--threads", str(a.threads), "--quiet"]
            command([a.xc, "predict", *asked, "--top-k", str(TOP), "--output", lines, *threads], model + ".predict.err")
            online = ["bench", "predict", *asked, "--mode", "online", "--queries", "500", "--repeat", "1", "--json"]
            told = command([a.xc, *online, "--threads", "1", "--quiet"], model + ".bench.err")
            dump(model + ".bench.json", told)
        rows = metrics.per_row(metrics.read_lines(lines, TOP)[0], y, prop)
        values[name] = {m: (num[kept], den[kept]) for m, (num, den) in rows.items()}
        got = metrics.summary(values[name])
        parts = [model] if not name.startswith("blend") else [
            os.path.join(a.out, f"{m}.{part}") for m in members for part in (("part",) if name == "blend.part" else ("part", "all"))]
        cpu = sum(load(part + ".json").get("cpu_s") or 0 for part in parts)
        cpu += load(model + ".json")["cpu_s"] if name.startswith("blend") else 0
        cost = load(model + ".bench.json")
        cells = [f"{got[m]:.2f}" for m in shown] + [f"{cpu:.0f}", f"{cost['model_bytes'] / 2**20:.0f}", f"{cost['mean_ms']:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print("\n| difference | metric | points | 95 % interval (paired bootstrap over rows) |\n|---|---|---|---|")
    pairs = [("blend.part", f"{best}.part"), ("blend", f"{best}.all"), ("blend", "blend.part")]
    for ours, theirs in ([pairs[1]] if a.all_rows else pairs):
        for m in shown:
            d, low, high = metrics.paired_bootstrap([values[ours][m]], [values[theirs][m]])
            print(f"| {ours} - {theirs} | {m} | {d:+.2f} | {low:+.2f} .. {high:+.2f} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(dest="cmd", required=True)
    for name in ("fit", "test"):
        q = s.add_parser(name)
        for option in ("data", "out", "xc"):
            q.add_argument("--" + option, required=True)
        q.add_argument("--fields", default="text")
        q.add_argument("--threads", type=int, default=1)
        q.add_argument("--seed", type=int, default=0)
        q.add_argument("--all-rows", action="store_true", help="no blend of the members of nine tenths of the rows")
        if name == "fit":
            q.add_argument("--member", action="append", metavar="NAME=KIND ARGS")
            q.add_argument("--fraction", type=float, default=0.1)
        else:
            q.add_argument("--without-duplicates", action="store_true", help="leave out test rows with a training row's letters")
    a = p.parse_args()
    {"fit": fit, "test": test}[a.cmd](a)


if __name__ == "__main__":
    main()
