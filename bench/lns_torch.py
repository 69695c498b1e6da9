#!/usr/bin/env python3
"""A training step that scores all labels, or some of them, beside PyTorch on the CPU.

    lns_torch.py --xc target/release/xc --work DIR [--labels 20000 70000 300000] [--threads 1 2] [--rounds 3]

Wants numpy and torch. Made-up rows (`xc generate`: 75 of 135,909 features, one label a row), embeddings of 128 values
through a ReLU, batch 256, softmax, Adam for everything, the same precision on both sides. Sampled: 2,000 labels drawn
uniformly without replacement for the batch, and its true ones, with the correction by log q.

PyTorch is given its fastest form: EmbeddingBag with a sparse gradient and SparseAdam, the fused Adam for dense weights,
rows of a list gathered with a sparse gradient, autocast for bf16; batches are tensors before the clock starts. The time
of `xc` is that of its training log: batches, schedule and log included. Programs take turns; a figure is the median of
the rounds: of the first 80 steps but for two, which touch most rows for the first time, and of the 318 behind them. One
JSON object a line.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

FEATURES, WIDTH, BATCH, LIST, ROWS, FIRST = 135_909, 128, 256, 2000, 102_400, 82


def data(a, labels):
    folder = os.path.join(a.work, f"one-{labels}")
    if not os.path.exists(os.path.join(folder, "train.txt")):
        shape = ["--instances", ROWS, "--features", FEATURES, "--labels", labels, "--labels-per-instance", 1, "--words", 90]
        subprocess.run([a.xc, "generate", "--output", folder, *map(str, shape), "--test-instances", "10", "--quiet"], check=True)
        path = os.path.join(folder, "train.txt")
        with open(path) as of:
            lines = of.readlines()
        with open(path, "w") as to:
            to.write(lines[0])
            for line in lines[1:]:
                of_row, rest = line.split(" ", 1)
                to.write(of_row.split(",")[0] + " " + rest)
    return os.path.join(folder, "train.txt")


def steps(labels, what):
    """Steps that are made: an epoch at most, fewer where each takes long."""
    return ROWS // BATCH if what == "sampled" else max(6, min(80, 3_000_000 // labels))


def medians(times):
    """Of the first steps, most rows of which are touched for the first time, but for two; and of those behind them."""
    return [statistics.median(part) if part else None for part in (times[2:FIRST], times[FIRST:])]


def ours(a, labels, what, precision, threads):
    path = data(a, labels)
    n = steps(labels, what) * BATCH
    part = os.path.join(a.work, f"part-{labels}-{n}.txt")
    if not os.path.exists(part):
        with open(path) as of, open(part, "w") as to:
            to.write(of.readline().replace(str(ROWS), str(n), 1))
            to.writelines(line for _, line in zip(range(n), of))
    sampler = ["--sampler", "all"] if what == "all" else ["--sampler", "uniform", "--negatives.sampled", str(LIST), "--weighting", "log-q"]
    model = os.path.join(a.work, "model")
    command = [a.xc, "train", "lns", "--train", part, "--model", model, "--network.widths", str(WIDTH), "--batch", str(BATCH),
               "--loss", "softmax", "--epochs", "1", "--network.dropout", "0", "--network.precision", precision, *sampler,
               "--threads", str(threads), "--json", "--quiet", "--restart", "--keep", "last", "--log-every", "1"]
    subprocess.run(command, check=True, capture_output=True)
    with open(os.path.join(model + ".log", "log.jsonl")) as of:
        lines = [line for line in map(json.loads, of) if line["event"] == "step"]
    ends = [line["wall_s"] for line in lines]
    return medians([1e3 * (end - begin) for begin, end in zip([0, *ends], ends)])


def theirs(a, labels, what, precision, threads):
    """One process, so that thread counts and memory do not reach the next."""
    command = [a.python, __file__, "--torch", data(a, labels), str(labels), what, precision, str(threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def torch_step(path, labels, what, precision, threads):
    import numpy as np
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    batches = []
    # Parsing takes longer than the steps: kept for the next turns.
    kept = f"{path}.{steps(labels, what)}.npz"
    if not os.path.exists(kept):
        with open(path) as of:
            of.readline()
            rows = [line.split() for _, line in zip(range(steps(labels, what) * BATCH), of)]
        pairs = [[pair.split(":") for pair in row[1:]] for row in rows]
        np.savez(kept, ends=np.cumsum([0] + [len(row) for row in pairs]),
                 features=np.array([int(f) for row in pairs for f, _ in row]),
                 values=np.array([float(v) for row in pairs for _, v in row], np.float32),
                 truth=np.array([int(row[0].split(",")[0]) for row in rows]))
    all_rows = np.load(kept)
    ends, features, values, truth = (all_rows[name] for name in ("ends", "features", "values", "truth"))
    for first in range(0, len(truth) - BATCH + 1, BATCH):
        begin, end = ends[first], ends[first + BATCH]
        batch = (features[begin:end], ends[first : first + BATCH] - begin, values[begin:end], truth[first : first + BATCH])
        batches.append([torch.from_numpy(x.copy()) for x in batch])
    bag = torch.nn.EmbeddingBag(FEATURES, WIDTH, mode="sum", sparse=True)
    below = torch.nn.Parameter(torch.zeros(WIDTH))
    weights = torch.nn.Parameter(torch.randn(labels, WIDTH) / WIDTH**0.5)
    biases = torch.nn.Parameter(torch.zeros(labels, 1))
    sparse = torch.optim.SparseAdam([*bag.parameters(), *([weights, biases] if what == "sampled" else [])], lr=1e-3)
    dense = torch.optim.Adam([below, *([weights, biases] if what == "all" else [])], lr=1e-3, fused=True)
    cast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
    times = []
    for features, offsets, values, truth in batches:
        began = time.perf_counter()
        hidden = F.relu(bag(features, offsets, per_sample_weights=values) + below)
        with cast:
            if what == "all":
                loss = F.cross_entropy(F.linear(hidden, weights, biases.view(-1)), truth)
            else:
                mine, at = torch.unique(truth, return_inverse=True)
                drawn = torch.randperm(labels)[:LIST] if labels <= 4 * LIST else torch.unique(torch.randint(labels, (LIST + LIST * LIST // labels,)))[:LIST]
                listed = torch.cat([mine, drawn[~torch.isin(drawn, mine)]])
                rows_of, bias_of = F.embedding(listed, weights, sparse=True), F.embedding(listed, biases, sparse=True)
                log_q = torch.full((len(listed),), np.log(LIST / labels))
                logits = F.linear(hidden, rows_of, bias_of.view(-1)) - log_q
                logits = logits.scatter_add(1, at.view(-1, 1), log_q[at].view(-1, 1).to(logits.dtype))
                loss = F.cross_entropy(logits, at)
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        times.append(1e3 * (time.perf_counter() - began))
    print(json.dumps(medians(times)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", default="target/release/xc")
    parser.add_argument("--python", default="python3", help="a Python with torch")
    parser.add_argument("--work", help="folder for data and models")
    parser.add_argument("--labels", nargs="+", type=int, default=[20_000, 70_000, 300_000])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--what", nargs="+", default=["sampled", "all"], choices=["sampled", "all"])
    parser.add_argument("--torch", nargs=5, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.torch:
        path, labels, what, precision, threads = a.torch
        return torch_step(path, int(labels), what, precision, int(threads))
    os.makedirs(a.work, exist_ok=True)
    for labels in a.labels:
        for threads in a.threads:
            for what in a.what:
                for precision in ("f32", "bf16"):
                    pairs = []
                    for turn in range(a.rounds):
                        sides = [ours, theirs] if turn % 2 == 0 else [theirs, ours]
                        took = {side: side(a, labels, what, precision, threads) for side in sides}
                        pairs.append((took[ours], took[theirs]))
                    for at, of in enumerate(("first steps", "later steps")):
                        took = [(o[at], t[at]) for o, t in pairs if o[at] and t[at]]
                        if took:
                            ratios = [t / o for o, t in took]
                            found = {"labels": labels, "threads": threads, "what": what, "precision": precision, "of": of,
                                     "xc_ms": round(statistics.median(o for o, _ in took), 2),
                                     "torch_ms": round(statistics.median(t for _, t in took), 2),
                                     "ratio": round(statistics.median(ratios), 2), "least": round(min(ratios), 2)}
                            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
