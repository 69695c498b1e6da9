#!/usr/bin/env python3
"""Which labels should a step score? Trains `xc train lns` with every sampler and draws the race.

    race.py run --xc XC --data DIR --out RUNS/SET [--runs NAME ...] [--rates 0.003 0.01 0.03] [--seeds 0 1 2] [-- OPTIONS]
    race.py report --xc XC --out RUNS/SET --to bench/runs/FOLDER [--baseline all]

DIR holds train and test as `.jsonl` or `.txt`; OPTIONS go to every training. `run` tries each rate with the first seed,
keeps the one of the best P@1 on the held-out rows, and repeats it with the other seeds. A training whose report is
there already is not repeated. `report` writes validation lines, a table and the pictures: P@1 and loss over steps, wall
and CPU time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

# Labels that lists are made of, at about equal numbers.
RUNS = {
    "all": ["--sampler", "all"],
    "all-bf16": ["--sampler", "all", "--network.precision", "bf16", "--head.precision", "bf16"],
    "uniform": ["--sampler", "uniform", "--negatives.sampled", "2000"],
    "log-uniform": ["--sampler", "log-uniform", "--negatives.sampled", "2000"],
    "frequency": ["--sampler", "frequency", "--negatives.sampled", "2000"],
    "in-batch": ["--sampler", "in-batch"],
    "top-k": ["--sampler", "top-k", "--negatives.sampled", "10", "--negatives.uniform", "0"],
    "lsh-embedding": ["--sampler", "lsh-embedding", "--negatives.sampled", "10", "--negatives.uniform", "0"],
    "lsh-label": ["--sampler", "lsh-label", "--negatives.sampled", "10", "--negatives.uniform", "0"],
    "midx": ["--sampler", "midx", "--negatives.sampled", "10", "--negatives.uniform", "0"],
    "lsh-embedding+uniform": ["--sampler", "lsh-embedding", "--negatives.sampled", "5", "--negatives.uniform", "1000"],
    "midx+uniform": ["--sampler", "midx", "--negatives.sampled", "5", "--negatives.uniform", "1000"],
}

# Hash tables alone, so that what they find decides; the paper has 400 of them, hashed anew every 50 steps, then rarer.
TABLES = ["--sampler", "lsh-embedding", "--negatives.sampled", "10", "--negatives.uniform", "0"]
RUNS |= {
    "upkeep-never": [*TABLES, "--upkeep", "rebuild", "--upkeep.every", "1000000"],
    "upkeep-rebuild": [*TABLES, "--upkeep", "rebuild"],
    "upkeep-drift": [*TABLES, "--upkeep", "drift"],
    "upkeep-drift-0.02": [*TABLES, "--upkeep", "drift", "--upkeep.share", "0.02"],
    "upkeep-drift-0.2": [*TABLES, "--upkeep", "drift", "--upkeep.share", "0.2"],
    "upkeep-immediate": [*TABLES, "--upkeep", "immediate"],
    "upkeep-paper": [*TABLES, "--tables", "400", "--codes", "6", "--upkeep", "rebuild"],
    "upkeep-paper-immediate": [*TABLES, "--tables", "400", "--codes", "6", "--upkeep", "immediate"],
}


def rows_file(folder, part):
    for name in (f"{part}.txt", f"{part}.jsonl"):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    sys.exit(f"race.py: {folder} has no {part}.txt or {part}.jsonl")


def validation(log):
    """Lines of the log that judge an epoch."""
    with open(os.path.join(log, "log.jsonl")) as lines:
        return [line for line in map(json.loads, lines) if line["event"] == "validation"]


def best(epochs):
    """P@1 on the held-out rows of the epoch whose parameters are kept."""
    return max(line["P@1"] for line in epochs)


def train(a, name, rate, seed):
    """Trains unless it was done. Gives the folder of the run."""
    run = os.path.join(a.out, f"{name}.{rate:g}.{seed}")
    report = os.path.join(run, "report.json")
    if os.path.exists(report):
        return run
    os.makedirs(run, exist_ok=True)
    command = [a.xc, "train", "lns", "--train", rows_file(a.data, "train"), "--validation", rows_file(a.data, "test"),
               "--validation-fraction", str(a.held_out), "--model", os.path.join(run, "model"), "--json",
               "--restart", "--optimizer.rate", str(rate), "--seed", str(seed), *RUNS[name], *a.options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{a.out} {name} rate {rate:g} seed {seed}: {done.stderr[-400:]}", flush=True)
        return None
    told = dict(json.loads(done.stdout), run=name, rate=rate, seed=seed, command=command[1:])
    subprocess.run(["rm", "-rf", os.path.join(run, "model")], check=True)
    with open(report, "w") as to:
        json.dump(told, to)
    print(f"{a.out} {name} rate {rate:g} seed {seed}: held out {100 * best(validation(run + '/model.log')):.2f},",
          f"test {100 * told['P@1']:.2f} / {100 * told['P@3']:.2f} / {100 * told['P@5']:.2f},",
          f"{told['train_s']:.0f} s, {told['cpu_s']:.0f} CPU s", flush=True)
    return run


def run(a):
    for name in a.runs:
        tried = [(train(a, name, rate, a.seeds[0]), rate) for rate in a.rates]
        tried = [(best(validation(run + "/model.log")), rate) for run, rate in tried if run]
        if tried:
            for seed in a.seeds[1:]:
                train(a, name, max(tried)[1], seed)


def chosen(out):
    """By name: the reports of the best rate, each with its validation lines, first seed first."""
    all_of = {}
    for folder in sorted(os.listdir(out)):
        path = os.path.join(out, folder, "report.json")
        if os.path.exists(path):
            with open(path) as of:
                told = json.load(of)
            told["log"] = os.path.join(out, folder, "model.log")
            told["epochs"] = validation(told["log"])
            all_of.setdefault(told["run"], []).append(told)
    for runs in all_of.values():
        first = min(told["seed"] for told in runs)
        rate = max((told for told in runs if told["seed"] == first), key=lambda told: best(told["epochs"]))["rate"]
        runs[:] = sorted((told for told in runs if told["rate"] == rate), key=lambda told: told["seed"])
    return {name: all_of[name] for name in RUNS if name in all_of}


def spread(values):
    mean = statistics.mean(values)
    return f"{mean:.2f}" if len(values) == 1 else f"{mean:.2f} ± {statistics.stdev(values):.2f}"


def first_at(runs, wanted, what):
    """Mean over seeds of the time at which the best P@1 of the baseline on the same held-out rows is reached."""
    times = [next((line[what] for line in told["epochs"] if line["P@1"] >= wanted[told["seed"]]), None) for told in runs]
    reached = [time for time in times if time is not None]
    if not reached:
        return "not reached"
    of = "" if len(reached) == len(times) else f" ({len(reached)} of {len(times)} seeds)"
    return f"{statistics.mean(reached):.0f}{of}"


def report(a):
    name = os.path.basename(a.out.rstrip("/"))
    os.makedirs(a.to, exist_ok=True)
    by_name = chosen(a.out)
    base = by_name.get(a.baseline)
    wanted = {told["seed"]: best(told["epochs"]) for told in base} if base else {}
    with open(os.path.join(a.to, f"{name}.jsonl"), "w") as to:
        for runs in by_name.values():
            for told in runs:
                for line in told["epochs"]:
                    keep = {k: round(line[k], 5) for k in ("P@1", "P@3", "P@5", "loss", "wall_s", "cpu_s")}
                    head = {"run": told["run"], "rate": told["rate"], "seed": told["seed"]}
                    json.dump({**head, "epoch": line["epoch"], "step": line["step"], **keep}, to)
                    to.write("\n")
                kept = ("P@1", "P@3", "P@5", "PSP@1", "PSP@5", "train_s", "cpu_s", "peak_rss_bytes", "steps", "cost")
                json.dump({**head, "test": {k: told[k] for k in kept if k in told}}, to)
                to.write("\n")
    print(f"| {name} | rate | P@1 | P@3 | P@5 | PSP@5 | steps | wall s | CPU s | CPU s to {a.baseline}'s best P@1 held out |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for run, runs in by_name.items():
        figures = [spread([100 * told[k] for told in runs]) if k in runs[0] else "" for k in ("P@1", "P@3", "P@5", "PSP@5")]
        last = [told["epochs"][-1] for told in runs]
        times = [f"{statistics.mean(line[k] for line in last):.0f}" for k in ("step", "wall_s", "cpu_s")]
        runs_beside = [told for told in runs if told["seed"] in wanted]
        cells = [run, f"{runs[0]['rate']:g}", *figures, *times, first_at(runs_beside, wanted, "cpu_s") if runs_beside else ""]
        print("| " + " | ".join(cells) + " |")
    logs = [part for run, runs in by_name.items() for part in ("--log", f"{run}={runs[0]['log']}")]
    for x in ("step", "wall", "cpu"):
        drawn = ["bench", "curves", *logs, "--x", x, "--output", os.path.join(a.to, f"{name}-{x}.svg")]
        subprocess.run([a.xc, *drawn, *(["--log-x"] if x != "step" else []), "--quiet"], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first, second = commands.add_parser("run"), commands.add_parser("report")
    for one in (first, second):
        one.add_argument("--xc", default="target/release/xc")
        one.add_argument("--out", required=True)
    first.add_argument("--data", required=True)
    first.add_argument("--runs", nargs="+", choices=RUNS, metavar="RUN", default=[name for name in RUNS if not name.startswith("upkeep")])
    first.add_argument("--rates", nargs="+", type=float, default=[0.003, 0.01, 0.03])
    first.add_argument("--seeds", nargs="+", type=int, default=[0])
    first.add_argument("--held-out", type=float, default=0.1)
    first.add_argument("options", nargs="*", help="options of every training, after --")
    second.add_argument("--to", required=True)
    second.add_argument("--baseline", default="all", choices=RUNS)
    a = parser.parse_args()
    {"run": run, "report": report}[a.command](a)


if __name__ == "__main__":
    main()
