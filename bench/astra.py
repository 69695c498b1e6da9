#!/usr/bin/env python3
"""ASTRA compared with training on all labels, and what each part of it contributes.

    astra.py run    --xc XC --data DIR --out RUNS [--runs NAME ...] [--rates 0.003 0.01 0.03] [--seeds 0 1 2]
                    [--uniform N] [--equal U:H] [--texts FILE] [--fields text] [--jobs 2] [--held-out 0.1]
                    [-- OPTIONS]
    astra.py report --out RUNS --data DIR [--runs NAME ...] [--baseline all] [--jsonl FILE]
    astra.py curves --xc XC --out RUNS [--runs NAME ...] --to FOLDER
    astra.py steps  --xc XC --work DIR [--labels 10000 ...] [--threads 1] [-- OPTIONS]

DIR holds train.jsonl and test.jsonl, or the same as .txt. OPTIONS go to every training. `run` trains every NAME at each
rate with the first seed, takes the rate with the best P@1 on the held-out rows (a tenth of the training rows, or
--held-out of them; they also choose the epoch), and repeats that with the other seeds. --jobs trainings run at a time,
each on one thread. A training that is there already is not repeated. Test rows are answered once, by the parameters that
were chosen.

--uniform is the number of uniform labels that a list has by default. --equal says how many there are where they are
alone (U a list) and how many hard labels where these are alone (H an instance), so that lists are about as long as mixed
ones. --texts are the texts of the labels (--label-features).

`report` prints P@k and PSP@k, labels, time and memory of each run, and paired bootstrap intervals against --baseline,
runs of several seeds averaged. `steps` generates rows of ever more labels and prints how long a step takes.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys

import metrics
from blend import dump, label_lists, load, matrix
from race import best, rows_file, spread, validation

RUNS = {
    # Training on all labels, as Renee does, and on lists.
    "all": "--sampler all",
    "all-bf16": "--sampler all --head.precision bf16 --network.precision bf16",
    "astra": "",
    "astra-bf16": "--head.precision bf16 --network.precision bf16",
    "astra-long": "--epochs {long}",
    # Which negatives (tables 5 and 15), as many in each.
    "random": "--sampler random --negatives.uniform {u}",
    "text hard": "--sampler label-text --negatives.hard {h} --negatives.uniform 0",
    "text hard, late": "--sampler label-text --negatives.hard {h} --negatives.uniform 0 --hard-from-epoch {late}",
    "text hard + random": "--sampler label-text",
    "w hard": "--negatives.hard {h} --negatives.uniform 0",
    "w hard, stale": "--negatives.hard {h} --negatives.uniform 0 --retrieval schedule --retrieval.every {stale}",
    "w hard, late": "--negatives.hard {h} --negatives.uniform 0 --hard-from-epoch {late}",
    "w hard, stale + random": "--retrieval schedule --retrieval.every {stale}",
    "in-batch": "--sampler in-batch",
    # Numbers of both (table 6).
    "hard 5": "--negatives.hard 5",
    "hard 20": "--negatives.hard 20",
    "hard 40": "--negatives.hard 40",
    "uniform / 4": "--negatives.uniform {r/4}",
    "uniform / 2": "--negatives.uniform {r/2}",
    "uniform x 2": "--negatives.uniform {2r}",
    "uniform x 4": "--negatives.uniform {4r}",
    # First epoch with hard labels (table 7) and epochs between retrievals (table 8).
    "from 3": "--hard-from-epoch 3",
    "from 5": "--hard-from-epoch 5",
    "from 8": "--hard-from-epoch 8",
    "schedule 1": "--retrieval schedule --retrieval.every 1",
    "schedule 2": "--retrieval schedule --retrieval.every 2",
    "schedule 5": "--retrieval schedule --retrieval.every 5",
    # Recall of the retrieval.
    "recall 0.5": "--index.recall 0.5",
    "recall 0.7": "--index.recall 0.7",
    "recall 0.99": "--index.recall 0.99",
    "exact": "--retrieval exact",
    # Lists of each instance's own, as in the paper, and weights of uniform labels.
    "own lists": "--negatives.shared false --negatives.hard 50 --negatives.uniform 100",
    "unbiased": "--weighting unbiased",
    "unweighted": "--weighting none",
}
STAGES = ["encode", "retrieve", "list", "head", "refresh", "wait", "step"]
SHOWN = ["P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5"]


def options_of(a, name):
    uniform, hard = map(int, a.equal.split(":"))
    numbers = {"u": uniform, "h": hard, "r/4": a.uniform // 4, "r/2": a.uniform // 2, "2r": 2 * a.uniform, "4r": 4 * a.uniform,
               "late": a.late, "stale": a.stale, "long": a.long}
    text = RUNS[name]
    for key, number in numbers.items():
        text = text.replace("{" + key + "}", str(number))
    return text.split() + (["--label-features", a.texts] if a.texts else [])


def train(a, name, rate, seed):
    """Trains and answers the test rows unless it was done. Gives the folder of the run, or None where it failed."""
    folder = os.path.join(a.out, f"{name.replace(' ', '_').replace('/', 'over')}.{rate:g}.{seed}")
    if os.path.exists(os.path.join(folder, "report.json")):
        return folder
    os.makedirs(folder, exist_ok=True)
    path = lambda part: os.path.join(folder, part)
    test = rows_file(a.data, "test")
    fields = ["--text-fields", a.fields] if test.endswith(".jsonl") else []
    command = [a.xc, "train", "astra", "--train", rows_file(a.data, "train"), "--validation", test, *fields,
               "--validation-fraction", str(a.held_out), "--model", path("model"), "--restart", "--optimizer.rate", str(rate),
               "--threads", str(a.threads), "--seed", str(seed), "--json", *options_of(a, name), *a.options]
    done = subprocess.run(command, capture_output=True, text=True)
    with open(path("err"), "w", encoding="utf-8") as to:
        to.write(done.stderr)
    if done.returncode:
        print(f"{name} rate {rate:g} seed {seed}: {done.stderr[-400:]}", flush=True)
        return None
    told = dict(json.loads(done.stdout), run=name, rate=rate, seed=seed, command=command[1:])
    asked = [a.xc, "predict", "--model", path("model"), "--input", test, "--top-k", "5", "--output", path("answers"), "--exact",
             *fields, "--threads", str(a.threads), "--quiet"]
    done = subprocess.run(asked, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-400:]}")
    if os.path.exists(path("model/labels.txt")):
        shutil.copy(path("model/labels.txt"), os.path.join(a.out, "labels.txt"))
    shutil.rmtree(path("model"))
    dump(path("report.json"), told)
    figures = " / ".join(f"{100 * told[k]:.2f}" for k in ("P@1", "P@3", "P@5"))
    held_out = 100 * best(validation(path("model.log")))
    print(f"{name} rate {rate:g} seed {seed}: held out {held_out:.2f}, test {figures}, {told['cpu_s']:.0f} CPU s", flush=True)
    return folder


def run(a):
    def all_of(tasks):
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            return list(pool.map(lambda task: (task, train(a, *task)), tasks))

    tried = all_of([(name, rate, a.seeds[0]) for name in a.runs for rate in a.rates])
    chosen = {}
    for (name, rate, _), folder in tried:
        if folder:
            found = best(validation(folder + "/model.log")), rate
            chosen[name] = max(found, chosen.get(name, found))
    all_of([(name, rate, seed) for name, (_, rate) in chosen.items() for seed in a.seeds[1:]])


def chosen_runs(a):
    """By name: the reports of the best rate, first seed first, each with its validation lines and its folder."""
    by_name = {}
    for folder in sorted(os.listdir(a.out)):
        path = os.path.join(a.out, folder)
        if os.path.exists(path + "/report.json"):
            told = load(path + "/report.json")
            by_name.setdefault(told["run"], []).append(dict(told, folder=path, epochs_seen=validation(path + "/model.log")))
    for runs in by_name.values():
        first = min(told["seed"] for told in runs)
        rate = max((told for told in runs if told["seed"] == first), key=lambda told: best(told["epochs_seen"]))["rate"]
        runs[:] = sorted((told for told in runs if told["rate"] == rate), key=lambda told: told["seed"])
    names = a.runs or [name for name in RUNS if name in by_name]
    return {name: by_name[name] for name in names if name in by_name}


def kept(told):
    """The epoch whose parameters were kept: the first one with the best P@1."""
    return max(told["epochs_seen"], key=lambda line: line["P@1"])


def mean(values):
    return statistics.mean(values)


def truth_of(a):
    """True labels of the test rows, and the propensities of labels, counted on the training rows."""
    ids = {}
    if os.path.exists(os.path.join(a.out, "labels.txt")):
        with open(os.path.join(a.out, "labels.txt"), encoding="utf-8") as f:
            ids = {line.rstrip("\n"): label for label, line in enumerate(f)}
    train, test = (label_lists(os.path.join(a.data, part + ".jsonl"), ids)[0] for part in ("train", "test"))
    width = 1 + max(label for row in (*train, *test) for label in row)
    # A label that no training row has is always missed: it gets a number of its own.
    test = [[label if label >= 0 else width for label in row] for row in test]
    return matrix(test, width + 1), metrics.propensity(matrix(train, width + 1), width + 1)


def report(a):
    by_name = chosen_runs(a)
    truth, prop = truth_of(a)
    rows = {}
    print("| run | rate | " + " | ".join(SHOWN) + " | held-out P@1 | labels per step | ms per step | epochs | CPU s | peak MiB |")
    print("|---" * (8 + len(SHOWN)) + "|")
    for name, runs in by_name.items():
        rows[name] = [metrics.per_row(metrics.read_lines(told["folder"] + "/answers", 5)[0], truth, prop) for told in runs]
        seen = [metrics.summary(one) for one in rows[name]]
        cost = [told["cost"] for told in runs]
        cells = [name, f"{runs[0]['rate']:g}", *(spread([one[k] for one in seen]) for k in SHOWN),
                 spread([100 * best(told["epochs_seen"]) for told in runs]),
                 f"{mean(one['per_step']['rows_read'] for one in cost):,.0f}",
                 f"{mean(stages(one['ms'])[-1] for one in cost):.1f}",
                 f"{mean(1 + kept(told)['epoch'] for told in runs):.0f} of {len(runs[0]['epochs_seen'])}",
                 f"{mean(told['epochs_seen'][-1]['cpu_s'] for told in runs):,.0f}",
                 f"{mean(told['peak_rss_bytes'] for told in runs) / 2**20:,.0f}"]
        print("| " + " | ".join(cells) + " |")
    print("\n| ms per step | " + " | ".join(STAGES) + " |\n" + "|---" * (1 + len(STAGES)) + "|")
    for name, runs in by_name.items():
        parts = [mean(parts) for parts in zip(*(stages(told["cost"]["ms"]) for told in runs))]
        print("| " + " | ".join([name, *(f"{part:.2f}" for part in parts)]) + " |")
    if a.baseline in rows:
        seeds = [told["seed"] for told in by_name[a.baseline]]
        print(f"\n| minus {a.baseline}, points | seeds | " + " | ".join(SHOWN) + " |\n" + "|---" * (2 + len(SHOWN)) + "|")
        for name, runs in by_name.items():
            both = [seed for seed in seeds if seed in [told["seed"] for told in runs]]
            if name == a.baseline or not both:
                continue
            at = [[told["seed"] for told in by_name[which]].index(seed) for which in (name, a.baseline) for seed in both]
            ours, theirs = at[: len(both)], at[len(both) :]
            cells = []
            for k in SHOWN:
                pair = [rows[name][i][k] for i in ours], [rows[a.baseline][i][k] for i in theirs]
                cells.append("{:+.2f} ({:+.2f} .. {:+.2f})".format(*metrics.paired_bootstrap(*pair)))
            print(f"| {name} | {len(both)} | " + " | ".join(cells) + " |")
    if a.jsonl:
        with open(a.jsonl, "w", encoding="utf-8") as to:
            for told in (told for runs in by_name.values() for told in runs):
                head = {key: told[key] for key in ("run", "rate", "seed")}
                for line in told["epochs_seen"]:
                    numbers = {k: round(line[k], 5) for k in ("P@1", "P@3", "P@5", "loss", "wall_s", "cpu_s")}
                    to.write(json.dumps({**head, "epoch": line["epoch"], "step": line["step"], **numbers}) + "\n")
                test = {k: round(told[k], 5) for k in ("P@1", "P@3", "P@5", "train_s", "cpu_s", "peak_rss_bytes", "steps")}
                to.write(json.dumps({**head, "test": test, "cost": told["cost"]}) + "\n")


def stages(ms):
    """Milliseconds of a step by what it does, in the order of STAGES."""
    wait = ms.get("wait", 0.0)
    parts = [ms["encode"], ms["search"], ms["hash"] + ms["query"] + ms["check"], ms["score"] + ms["backward"],
             ms["upkeep"] - wait, wait]
    return [*parts, sum(parts)]


def steps(a):
    print("| labels | labels per step | " + " | ".join(f"{stage}, ms" for stage in STAGES) + " | head, ms per 1,000 labels | peak MiB |")
    print("|---" * (4 + len(STAGES)) + "|")
    for n_labels in a.labels:
        folder = os.path.join(a.work, str(n_labels))
        if not os.path.exists(folder):
            made = [a.xc, "generate", "--labels", str(n_labels), "--instances", str(a.instances), "--test-instances", "10",
                    "--features", "100000", "--output", folder, "--quiet"]
            subprocess.run(made, check=True)
        command = [a.xc, "train", "astra", "--train", os.path.join(folder, "train.txt"), "--model", os.path.join(a.work, "model"),
                   "--restart", "--threads", str(a.threads), "--json", "--quiet", *a.options]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        shutil.rmtree(os.path.join(a.work, "model"))
        parts, listed = stages(told["cost"]["ms"]), told["cost"]["per_step"]["rows_read"]
        cells = [f"{n_labels:,}", f"{listed:,.0f}", *(f"{part:.2f}" for part in parts), f"{1000 * parts[3] / listed:.2f}",
                 f"{told['peak_rss_bytes'] / 2**20:,.0f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def curves(a):
    by_name = chosen_runs(a)
    os.makedirs(a.to, exist_ok=True)
    name = os.path.basename(a.out.rstrip("/"))
    logs = [part for run, runs in by_name.items() for part in ("--log", f"{run}={runs[0]['folder']}/model.log")]
    for x in ("step", "cpu"):
        drawn = ["bench", "curves", *logs, "--x", x, "--output", os.path.join(a.to, f"{name}-{x}.svg")]
        subprocess.run([a.xc, *drawn, *(["--log-x"] if x == "cpu" else []), "--quiet"], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first, second, third = commands.add_parser("run"), commands.add_parser("report"), commands.add_parser("curves")
    fourth = commands.add_parser("steps")
    fourth.add_argument("--work", required=True)
    fourth.add_argument("--labels", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    fourth.add_argument("--instances", type=int, default=50_000)
    for one in (first, second, third):
        one.add_argument("--out", required=True)
        one.add_argument("--runs", nargs="+", choices=RUNS, metavar="RUN", default=["all", "astra"] if one is first else [])
    for one in (first, third, fourth):
        one.add_argument("--xc", default="target/release/xc")
    for one in (first, fourth):
        one.add_argument("--threads", type=int, default=1, help="of each training [1]")
        one.add_argument("options", nargs="*", help="options of every training, after --")
    for one in (first, second):
        one.add_argument("--data", required=True)
    first.add_argument("--rates", nargs="+", type=float, default=[0.003, 0.01, 0.03])
    first.add_argument("--seeds", nargs="+", type=int, default=[0])
    first.add_argument("--held-out", type=float, default=0.1)
    first.add_argument("--uniform", type=int, default=500)
    first.add_argument("--equal", default="1500:20", metavar="U:H")
    first.add_argument("--late", type=int, default=4, help="first epoch of the runs named late [4]")
    first.add_argument("--stale", type=int, default=5, help="epochs between retrievals of the runs named stale [5]")
    first.add_argument("--long", type=int, default=40, help="epochs of astra-long [40]")
    first.add_argument("--texts")
    first.add_argument("--fields", default="text")
    first.add_argument("--jobs", type=int, default=2)
    second.add_argument("--baseline", default="all", choices=RUNS)
    second.add_argument("--jsonl", help="file for the figures of every epoch")
    third.add_argument("--to", required=True)
    a = parser.parse_args()
    {"run": run, "report": report, "curves": curves, "steps": steps}[a.command](a)


if __name__ == "__main__":
    main()
