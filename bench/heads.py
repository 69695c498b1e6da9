#!/usr/bin/env python3
"""Scoring the labels that an index finds beside scoring all of them.

    heads.py --xc XC --work DIR --models NAME=MODEL:FIT:TEST ... [--widths 0.1 0.3 0.5 0.7] [--cells 1 4 16]
             [--targets usual 0.99] [--unfitted] [--threads 1] [--queries 2000]

For each trained network: builds an index over its labels, fitted to instances of FIT, and answers TEST with all
labels, and with the index as far as was fitted (--targets: shares of the ten best labels; "usual": what is fitted
without one, to the precision of instances), at other widths and in other numbers of cells. Says P@1, 3 and 5, the time
of a whole query in a batch and alone, and what building took. --unfitted: an index that knows labels alone, too. The
model folder gets the index.
"""

import argparse
import json
import os
import subprocess


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME=MODEL:FIT:TEST")
    parser.add_argument("--widths", nargs="*", default=["0.1", "0.3", "0.5", "0.7"])
    parser.add_argument("--cells", nargs="*", default=["4", "8", "16", "32", "64"])
    parser.add_argument("--targets", nargs="+", default=["usual"])
    parser.add_argument("--unfitted", action="store_true")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--queries", default="2000", help="that times are taken of [2000]")
    a = parser.parse_args()

    def xc(*options):
        command = [a.xc, *options, "--threads", a.threads, "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def row(name, model, test, *options):
        out = os.path.join(a.work, "answers.txt")
        xc("predict", "--model", model, "--input", test, "--output", out, "--in-memory", *options)
        measured = json.loads(xc("evaluate", "--truth", test, "--predictions", out, "--json"))
        p = [100 * measured[f"P@{k}"] for k in (1, 3, 5)]
        batch, online = (json.loads(xc("bench", "predict", "--model", model, "--input", test, "--mode", mode, "--top-k", "5",
                                       "--queries", a.queries, "--repeat", "3", "--in-memory", "--json", *options))
                         for mode in ("batch", "online"))
        us = [1000 * ms for ms in (batch["mean_ms"], online["p50_ms"], online["p99_ms"])]
        cells = [f"{value:.2f}" for value in p] + [f"{value:.1f}" for value in us]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)

    for named in a.models:
        name, paths = named.split("=", 1)
        model, fit, test = paths.split(":")
        print(f"\n| {name} | P@1 | P@3 | P@5 | us per query, batch | alone, p50 | p99 |\n|---|---|---|---|---|---|---|")
        row("all labels", model, test, "--exact")
        fits = [["--fit-queries", fit] + ["--target-recall", target] * (target != "usual") for target in a.targets]
        for what in [[]] * a.unfitted + fits:
            built = json.loads(xc("index", "build", "--model", model, *what, "--json"))
            fitted, graph = built["fitted"], built["graph"]
            kind = f" for {what[-1]}" if len(what) > 2 else ", as usual" if what else ", labels alone"
            reach = f"{fitted['cells']} of {built['cells']} cells" if fitted["cells"] else f"{fitted['width']:.3f}"
            row(f"index{kind}, fitted {reach}", model, test)
            for cells in a.cells * bool(built["cells"]):
                row(f"index{kind}, {cells} cells", model, test, "--cells", cells)
            for width in a.widths:
                row(f"index{kind}, {width}", model, test, "--search-width", width)
        print(f"{built['labels']} labels of {built['columns']} values; built in {built['cpu_s']:.1f} CPU s; "
              f"{built['bytes_per_vector']:.0f} bytes per label; mean degree {graph['mean_degree']:.1f}", flush=True)


if __name__ == "__main__":
    main()
