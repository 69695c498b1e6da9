"""Sparse output layers beside dense ones on the same rows: quality, memory, time (the paper's table 1).

    uniform.py run --data FEATURES --out RUNS --xc XC [--lsa DIR] [--rows NAME ...]   trains, predicts and scores
    uniform.py time --data FEATURES --out RUNS --xc XC [--lsa DIR] [--rows NAME ...]  seconds per epoch, on a machine left alone
    uniform.py report --out RUNS ...                                                  the table, as Markdown

FEATURES is what `prepare.py` leaves; with `--lsa` the rows are its vectors (`lsa.py`), without it the embeddings of
sparse features are trained along. A run that is there is not repeated.

Training follows the paper (section 5.1): Adam, the rate halved when P@3 on a tenth of the training rows stands still, down to a tenth of
it, the end when it stands still there; dropout of a tenth of the input; the weakest tenth of the connections drawn anew every 32,000
instances. Batches are of 256 and the rate 0.003 where the paper has 32 and 0.001.
"""
import argparse
import json
import os
import shutil
import subprocess

SCHEDULE = ["--schedule", "plateau", "--schedule.lowest", "0.1", "--monitor", "P@3", "--patience", "1", "--patience-from", "lowest-rate",
            "--validation-fraction", "0.1", "--network.input-dropout", "0.1"]


def sparse(wiring, s, units, *more):
    return ["--head.wiring", wiring, "--head.fan-in", s, "--network.intermediate", units, *more]


DENSE = ["--head.wiring", "dense", "--network.intermediate", "none"]
BCE = ["--loss", "bce"]
ROWS = {
    "dense": DENSE,
    "dense-bce": DENSE + BCE,
    "unstructured-32": sparse("unstructured", 32, "none"),
    "uniform-32": sparse("uniform", 32, "none"),
    "unstructured-32+16k": sparse("unstructured", 32, 16384),
    "uniform-32+16k": sparse("uniform", 32, 16384),
    "uniform-32+16k-bce": sparse("uniform", 32, 16384, *BCE),
    "uniform-32+32k": sparse("uniform", 32, 32768),
    "uniform-64+65k": sparse("uniform", 64, 65536),
}


def xc(a, *argv):
    argv = [a.xc, *map(str, argv), "--threads", str(a.threads)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def train(a, name, model, *more):
    given = ["--train", f"{a.data}/train.txt", "--model", model, "--seed", a.seed, "--batch", a.batch, "--optimizer.rate", a.rate]
    if a.lsa:
        given += ["--features", f"{a.lsa}/train.npy"]
    options = [*ROWS[name], *a.options.split(), *more]
    return json.loads(xc(a, "train", "uniform", *given, *options, "--resume", "--json", "--quiet"))


def scores(a, model, part):
    answers = f"{model}.{part}.predictions"
    rows = ["--input", f"{a.lsa}/{part}.npy"] if a.lsa else ["--input", f"{a.data}/{part}.txt"]
    xc(a, "predict", "--model", model, *rows, "--top-k", 5, "--output", answers, "--quiet")
    metrics = json.loads(xc(a, "evaluate", "--truth", f"{a.data}/{part}.txt", "--predictions", answers, "--json", "--quiet"))
    os.remove(answers)
    return {k: round(100 * metrics[k], 2) for k in ("P@1", "P@3", "P@5")}


def write(path, record):
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(record, f)
    os.replace(path + ".part", path)


def run(a):
    os.makedirs(a.out, exist_ok=True)
    for name in a.rows:
        path, model = f"{a.out}/{name}{a.tag}.json", f"{a.out}/{name}{a.tag}.model"
        if os.path.exists(path):
            continue
        told = train(a, name, model, "--epochs", a.epochs, *SCHEDULE)
        record = dict(row=name + a.tag, set=os.path.basename(a.data.rstrip("/")), input="LSA" if a.lsa else "bag", report=told,
                      test=scores(a, model, "test"), train=scores(a, model, "train"))
        write(path, record)
        print(record["set"], record["input"], record["row"], "test", record["test"], "train", record["train"],
              "epochs", told["epochs"], "s", round(told["train_s"]), flush=True)
        if not a.keep:
            shutil.rmtree(model)
            shutil.rmtree(model + ".log", ignore_errors=True)


def seconds(a):
    """Two epochs without validation."""
    for name in a.rows:
        path = f"{a.out}/{name}{a.tag}.time"
        if os.path.exists(path):
            continue
        model = f"{a.out}/{name}.timed"
        told = train(a, name, model, "--epochs", 2)
        shutil.rmtree(model)
        shutil.rmtree(model + ".log", ignore_errors=True)
        took = told["train_s"] / 2
        write(path, dict(epoch_s=took, peak_anon_bytes=told["peak_anon_bytes"], threads=a.threads))
        print(name, path, round(took, 2), "s per epoch", told["peak_anon_bytes"] >> 20, "MiB", flush=True)


def report(a):
    print("| set | input | output layer | parameters, M | test P@1 | P@3 | P@5 | train P@1 | P@3 | P@5 | epochs | s per epoch | peak MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for out in a.out:
        found = [f[:-5] for f in os.listdir(out) if f.endswith(".json")]
        order = list(ROWS)
        for stem in sorted(found, key=lambda f: next((order.index(r), f) for r in sorted(order, key=len, reverse=True) if f.startswith(r))):
            with open(f"{out}/{stem}.json", encoding="utf-8") as f:
                r = json.load(f)
            timed = {}
            if os.path.exists(f"{out}/{stem}.time"):
                with open(f"{out}/{stem}.time", encoding="utf-8") as f:
                    timed = json.load(f)
            told = r["report"]
            cells = [r["set"], r["input"], r["row"], f"{told['parameters'] / 1e6:.1f}"]
            cells += [f"{r[part][k]:.2f}" for part in ("test", "train") for k in ("P@1", "P@3", "P@5")]
            cells += [str(told["epochs"]), f"{timed['epoch_s']:.1f}" if timed else "",
                      str(max(told["peak_anon_bytes"], timed.get("peak_anon_bytes", 0)) >> 20)]
            print("| " + " | ".join(cells) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(dest="what", required=True)
    for what in ("run", "time"):
        one = sub.add_parser(what)
        one.add_argument("--data", required=True, help="folder with train.txt and test.txt")
        one.add_argument("--lsa", help="folder with train.npy and test.npy")
        one.add_argument("--out", required=True)
        one.add_argument("--xc", default="xc")
        one.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
        one.add_argument("--options", default="", help="more options of `xc train uniform`, in one argument")
        one.add_argument("--tag", default="", help="behind the names of runs with other options")
        one.add_argument("--rate", type=float, default=0.003)
        one.add_argument("--batch", type=int, default=256)
        one.add_argument("--epochs", type=int, default=100)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--threads", type=int, default=2)
        one.add_argument("--keep", action="store_true", help="keep the models")
    one = sub.add_parser("report")
    one.add_argument("--out", required=True, nargs="+")
    a = p.parse_args()
    {"run": run, "time": seconds, "report": report}[a.what](a)


if __name__ == "__main__":
    main()
