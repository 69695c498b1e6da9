#!/usr/bin/env python3
"""Lines per second of `xc predict --input -` on one thread and on two, by turns.

streams.py --xc PATH --data DIR --out DIR: DIR holds debian-debtags and eurlex57k-bow (README.md here). Trains four models
into --out, once, and prints a table: the best of --runs runs of each.
"""

import argparse
import pathlib
import subprocess
import time


def run(arguments, **options):
    subprocess.run([str(a) for a in arguments], check=True, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--xc", required=True)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--train-only", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tags, bow = args.data / "debian-debtags", args.data / "eurlex57k-bow"
    models = {
        "trees, text": ("tree", tags / "train.jsonl", tags / "test.jsonl", []),
        "trees, sparse rows": ("tree", bow / "4k_train.txt", bow / "4k_test.txt", []),
        "uniform, sparse rows": ("uniform", bow / "4k_train.txt", bow / "4k_test.txt", ["--epochs", "1"]),
        "dense, sparse rows": ("dense", bow / "4k_train.txt", bow / "4k_test.txt", ["--epochs", "1"]),
    }
    rows = []
    for name, (kind, train, test, more) in models.items():
        model = args.out / name.replace(", ", "-").replace(" ", "-")
        if not model.exists():
            run([args.xc, "train", kind, "--train", train, "--model", model, "--quiet", *more])
        if args.train_only:
            continue
        lines = test.read_bytes().split(b"\n")
        if test.suffix == ".txt" and b":" not in lines[0]:
            lines.pop(0)
        lines = [line for line in lines if line.strip()]
        size = {"tree": 48000, "uniform": 40000, "dense": 40000}[kind]
        lines = (lines * (size // len(lines) + 1))[:size]
        stream = args.out / "stream"
        stream.write_bytes(b"\n".join(lines) + b"\n")
        best, answers = {}, {}
        for _ in range(args.runs):
            for threads in (1, 2):
                with open(stream, "rb") as source, open(args.out / f"answers{threads}", "wb") as out:
                    # From a pipe, as a stream comes.
                    cat = subprocess.Popen(["cat"], stdin=source, stdout=subprocess.PIPE)
                    start = time.perf_counter()
                    run(
                        [args.xc, "predict", "--model", model, "--input", "-", "--threads", threads, "--quiet"],
                        stdin=cat.stdout,
                        stdout=out,
                    )
                    took = time.perf_counter() - start
                    cat.stdout.close()
                    cat.wait()
                best[threads] = min(best.get(threads, took), took)
                answers[threads] = (args.out / f"answers{threads}").read_bytes()
        assert answers[1] == answers[2] and answers[1].count(b"\n") == size
        rows.append((name, size, best[1], best[2]))
    for name, size, one, two in rows:
        print(f"| {name} | {size / one:,.0f} | {size / two:,.0f} | {one / two:.2f} |", flush=True)


main()
