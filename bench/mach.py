"""MACH beside one output per label, and beside trees, on the same rows: quality, parameters, bytes, time.

    mach.py multiclass --data FEATURES --out FEATURES1     the first label of each row alone
    mach.py spread --data FEATURES --out FEATURES2         the same labels under ids spread over [0, L)
    mach.py run --data FEATURES --xc XC --out RUNS [...]   dense, MACH for every B, and every R by leaving repetitions out
    mach.py omikuji --data FEATURES --omikuji BIN --out RUNS  three Parabel trees of omikuji on the same rows
    mach.py report --out RUNS                              the tables, as Markdown
    mach.py plot --out RUNS RUNS... --svg FILE             P@1 over R for every B, a panel a set (needs matplotlib)

A run that is there is not repeated. One repetition is trained after the other; fewer repetitions are the first ones of the
same model (`xc predict --repetitions 0-3`), which is what a model trained with fewer would be, to the byte.
"""
import argparse
import json
import os
import shutil
import subprocess


def first_labels(path, known):
    """Rows of an XC file with their first label only; classes are numbered as they come, those of `known` first."""
    with open(path, encoding="ascii") as f:
        header = f.readline().split()
        rows = []
        for line in f:
            head, blank, rest = line.rstrip("\n").partition(" ")
            if not head or ":" in head:
                continue  # no label, no class
            label = int(head.split(",")[0])
            rows.append(f"{known.setdefault(label, len(known))}{blank}{rest}\n")
    return int(header[1]), rows


def multiclass(a):
    os.makedirs(a.out, exist_ok=True)
    known = {}
    for name in ("train", "test"):
        n_features, rows = first_labels(f"{a.data}/{name}.txt", known)
        with open(f"{a.out}/{name}.txt", "w", encoding="ascii") as f:
            f.write(f"{len(rows)} {n_features} {len(known)}\n")
            f.writelines(rows)
        print(name, len(rows), "rows,", len(known), "classes")


def spread(a):
    """One injection into [0, L), drawn with seed 1, for both files."""
    import numpy as np

    os.makedirs(a.out, exist_ok=True)
    ids = None
    for name in ("train", "test"):
        with open(f"{a.data}/{name}.txt", encoding="ascii") as f, open(f"{a.out}/{name}.txt", "w", encoding="ascii") as g:
            n_rows, n_features, n_labels = f.readline().split()
            if ids is None:
                rng = np.random.default_rng(1)
                ids = np.unique(rng.integers(0, a.labels, size=int(int(n_labels) * 1.2)))
                ids = rng.permutation(ids)[: int(n_labels)]
            g.write(f"{n_rows} {n_features} {a.labels}\n")
            for line in f:
                head, _, rest = line.partition(" ")
                if head and ":" not in head:
                    line = ",".join(str(x) for x in sorted(ids[int(label)] for label in head.split(","))) + " " + rest
                g.write(line)


def xc(a, *argv):
    done = subprocess.run([a.xc, *map(str, argv), "--threads", str(a.threads)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"xc {' '.join(map(str, argv))}: {done.stderr.strip()}")
    return done.stdout


def scores(a, model, work, *more):
    """Metrics of a model on the test rows."""
    predictions = f"{work}.predictions"
    xc(a, "predict", "--model", model, "--input", f"{a.data}/test.txt", "--top-k", 5, "--output", predictions, "--quiet", *more)
    return evaluated(a, predictions)


def evaluated(a, predictions):
    text = xc(a, "evaluate", "--truth", f"{a.data}/test.txt", "--predictions", predictions,
              "--propensity-from", f"{a.data}/train.txt", "--json", "--quiet")
    os.remove(predictions)
    metrics = json.loads(text)
    return {name: metrics[name] for name in ("P@1", "P@3", "P@5", "PSP@5")}


def train(a, kind, name, *options):
    """Trains unless it is done; gives the report of the training."""
    model = f"{a.out}/{name}.model"
    report = f"{a.out}/{name}.train.json"
    if not os.path.exists(report):
        text = xc(a, "train", kind, "--train", f"{a.data}/train.txt", "--model", model, "--seed", a.seed, "--json", "--quiet",
                  "--resume", *options)
        with open(report, "w") as f:
            f.write(text)
    with open(report) as f:
        return model, json.load(f)


def run(a):
    os.makedirs(a.out, exist_ok=True)
    network = ["--network.widths", a.width, "--network.input-dropout", a.dropout, "--network.dropout", a.dropout, "--epochs", a.epochs,
               "--optimizer.rate", a.rate]
    with open(f"{a.data}/train.txt", encoding="ascii") as f:
        n_labels = int(f.readline().split()[2])

    def record(result, name, **row):
        row.update(result, set=os.path.basename(a.data), labels=n_labels)
        with open(f"{a.out}/{name}.json", "w") as f:
            json.dump(row, f)
        print(name, {k: round(v, 4) for k, v in result.items()}, flush=True)

    def done(name):
        return os.path.exists(f"{a.out}/{name}.json")

    def tidy(model, *names):
        if not a.keep and all(done(n) for n in names):
            shutil.rmtree(model, ignore_errors=True)

    if not done("dense") and not a.no_dense:
        model, report = train(a, "dense", "dense", *network)
        record(scores(a, model, f"{a.out}/dense"), "dense", system="dense", outputs=n_labels * (a.width + 1),
               parameters=report["parameters"], bytes=report["model_bytes"], cpu_s=report["cpu_s"], wall_s=report["train_s"])
        tidy(model, "dense")
    for name, options in (("tree", []), ("tree-1", ["--preset", "xr-linear"])):
        if not done(name):
            model, report = train(a, "tree", name, *options)
            record(scores(a, model, f"{a.out}/{name}"), name, system=name, bytes=report["model_bytes"],
                   cpu_s=report["cpu_s"], wall_s=report["train_s"])
            tidy(model, name)
    for b in a.buckets:
        most = max(a.repetitions)
        names = [f"mach-{b}-{r}" for r in a.repetitions] + [f"mach-{b}-{most}-{d}" for d in ("min", "median")]
        if all(map(done, names)):
            continue
        model, report = train(a, "mach", f"mach-{b}", "--buckets", b, "--repetitions", most, *network)
        share = lambda what, r: report[what] * r / most
        for r in a.repetitions:
            record(scores(a, model, f"{a.out}/mach-{b}", "--repetitions", f"0-{r - 1}", "--decoder", "mean"), f"mach-{b}-{r}",
                   system="mach",
                   buckets=b, repetitions=r, decoder="mean", outputs=share("output_parameters", r),
                   parameters=share("parameters", r), bytes=share("model_bytes", r), cpu_s=share("cpu_s", r),
                   wall_s=share("train_s", r))
        for decoder in ("min", "median"):
            record(scores(a, model, f"{a.out}/mach-{b}", "--decoder", decoder), f"mach-{b}-{most}-{decoder}", system="mach",
                   buckets=b, repetitions=most, decoder=decoder)
        tidy(model, *names)


def omikuji(a):
    """Three Parabel trees, trained as everywhere in the quality tables."""
    import peers

    def lines(path):
        with open(path, encoding="ascii") as f:
            return f.read().splitlines()

    os.makedirs(a.out, exist_ok=True)
    model, answers = f"{a.out}/omikuji.model", f"{a.out}/omikuji.txt"
    _, _, cpu, _ = peers.command([a.omikuji, "train", f"{a.data}/train.txt", "--model_path", model, "--n_threads", str(a.threads),
                                  *peers.PARABEL, "--n_trees", "3"])
    size = sum(e.stat().st_size for e in os.scandir(model))
    peers.command([a.omikuji, "test", model, f"{a.data}/test.txt", "--n_threads", str(a.threads), "--beam_size", "10", "--k_top", "5",
                   "--out_path", answers])
    # Its lines hold "label score" between tabs.
    with open(f"{a.out}/omikuji.predictions", "w", encoding="ascii") as f:
        f.writelines(line.replace(" ", ":").replace("\t", " ") + "\n" for line in lines(answers))
    metrics = evaluated(a, f"{a.out}/omikuji.predictions")
    with open(f"{a.out}/omikuji.json", "w") as f:
        json.dump(dict(metrics, system="omikuji-3", bytes=size, cpu_s=cpu, set=os.path.basename(a.data)), f)
    print("omikuji-3", metrics)
    shutil.rmtree(model)


def records(out):
    rows = []
    for name in sorted(os.listdir(out)):
        if name.endswith(".json") and not name.endswith(".train.json"):
            with open(f"{out}/{name}") as f:
                rows.append(json.load(f))
    return rows


def plot(a):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "xc", "font.size": 9, "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(a.out), figsize=(4.5 * len(a.out), 3.4), squeeze=False)
    for panel, out in zip(panels[0], a.out):
        rows = records(out)
        mach = [r for r in rows if r["system"] == "mach"]
        for b in sorted({r["buckets"] for r in mach}):
            line = sorted((r["repetitions"], 100 * r["P@1"]) for r in mach if r["buckets"] == b and r["decoder"] == "mean")
            panel.plot(*zip(*line), marker="o", markersize=3, label=f"MACH, B = {b}, mean")
        for r in rows:
            if r["system"] in ("dense", "tree-1"):
                name = "one output per label" if r["system"] == "dense" else "one label tree"
                panel.axhline(100 * r["P@1"], linestyle="--" if r["system"] == "dense" else ":", color="gray", label=name)
        panel.set_xscale("log", base=2)
        panel.set_xticks(sorted({r["repetitions"] for r in mach}))
        panel.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
        panel.set(title=rows[0]["set"], xlabel="repetitions R", ylabel="P@1, %", ylim=(0, None))
        panel.legend(fontsize=7, loc="lower right")
    figure.tight_layout()
    figure.savefig(a.svg, metadata={"Date": None})


def report(a):
    rows = records(a.out)
    dense = next((r for r in rows if r["system"] == "dense"), None)
    percent = lambda r: " | ".join(f"{100 * r[m]:.2f}" for m in ("P@1", "P@3", "P@5", "PSP@5"))
    mib = lambda n: f"{n / 2**20:.1f}"
    print("| system | B | R | output parameters, times fewer | all parameters, M | MiB | CPU s | P@1 | P@3 | P@5 | PSP@5 |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        if r["system"] != "mach":
            outputs = f"{r['outputs'] / 1e6:.2f} M" if "outputs" in r else ""
            values = f"{r['parameters'] / 1e6:.1f}" if "parameters" in r else ""
            print(f"| {r['system']} | | | {outputs} | {values} | {mib(r['bytes'])} | {r['cpu_s']:.0f} | {percent(r)} |")
    mach = [r for r in rows if r["system"] == "mach"]
    for r in sorted((r for r in mach if r["decoder"] == "mean"), key=lambda r: (r["buckets"], r["repetitions"])):
        fewer = r["labels"] / (r["buckets"] * r["repetitions"])
        print(f"| MACH | {r['buckets']} | {r['repetitions']} | {fewer:.1f} | {r['parameters'] / 1e6:.1f} | {mib(r['bytes'])} "
              f"| {r['cpu_s']:.0f} | {percent(r)} |")
    for r in sorted((r for r in mach if r["decoder"] != "mean"), key=lambda r: (r["buckets"], r["decoder"])):
        print(f"| MACH, {r['decoder']} | {r['buckets']} | {r['repetitions']} | | | | | {percent(r)} |")
    if dense is None:
        print("no run with one output per label")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(dest="what", required=True)
    one = sub.add_parser("multiclass")
    one.add_argument("--data", required=True)
    one.add_argument("--out", required=True)
    one = sub.add_parser("spread")
    one.add_argument("--data", required=True)
    one.add_argument("--out", required=True)
    one.add_argument("--labels", type=int, default=50_000_000)
    one = sub.add_parser("run")
    one.add_argument("--data", required=True, help="folder with train.txt and test.txt")
    one.add_argument("--out", required=True)
    one.add_argument("--xc", default="xc")
    one.add_argument("--buckets", type=int, nargs="+", default=[125, 250, 500, 1000])
    one.add_argument("--repetitions", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="the largest is trained")
    one.add_argument("--width", type=int, default=256)
    one.add_argument("--dropout", type=float, default=0.3)
    one.add_argument("--epochs", type=int, default=10)
    one.add_argument("--rate", type=float, default=0.01)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--threads", type=int, default=2)
    one.add_argument("--no-dense", action="store_true")
    one.add_argument("--keep", action="store_true", help="keep the models")
    one = sub.add_parser("omikuji")
    one.add_argument("--data", required=True)
    one.add_argument("--out", required=True)
    one.add_argument("--omikuji", default="omikuji")
    one.add_argument("--xc", default="xc")
    one.add_argument("--threads", type=int, default=2)
    one = sub.add_parser("report")
    one.add_argument("--out", required=True)
    one = sub.add_parser("plot")
    one.add_argument("--out", required=True, nargs="+")
    one.add_argument("--svg", required=True)
    a = p.parse_args()
    {"multiclass": multiclass, "spread": spread, "run": run, "omikuji": omikuji, "report": report, "plot": plot}[a.what](a)


if __name__ == "__main__":
    main()
