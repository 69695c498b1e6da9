#!/usr/bin/env python3
"""Dense products and training steps beside numpy and PyTorch on the CPU.

Wants numpy, scipy and torch; runs in the workspace:

    python3 bench/neural.py [--threads 1 2] > bench/results/neural.jsonl

Products: GFLOP/s, the fastest of six. Steps: ms, the median of ten after four. PyTorch's steps are given its fastest
known form: a sparse gradient for the table (SGD, SparseAdam) and the fused Adam where there is one; ours include
gathering the batch, PyTorch's do not. Programs run one after another, each with its own thread count.
"""

import argparse
import json
import os
import subprocess
import sys
import time

PRODUCTS = [(256, 128, 10_000), (512, 128, 20_000), (512, 512, 10_000), (1024, 512, 10_000), (512, 2000, 2000), (512, 2000, 20_000)]
BAGS = [(80_000, 512, 512, 60), (120_000, 128, 512, 40), (80_000, 2000, 512, 60)]
STEPS = [(80_000, 512, 0, 10_000, 512, 60), (120_000, 128, 0, 20_000, 512, 40), (80_000, 512, 512, 10_000, 512, 60)]


def products(library, threads):
    import numpy as np

    rng = np.random.default_rng(1)
    if library == "torch":
        import torch

        torch.set_num_threads(threads)
    for n, w, h in PRODUCTS:
        x, weights, g = (rng.random(s, dtype="f") for s in ((n, w), (h, w), (n, h)))
        if library == "torch":
            x, weights, g = map(torch.from_numpy, (x, weights, g))

        def speed(f):
            best = 1e9
            for _ in range(6):
                began = time.perf_counter()
                f()
                best = min(best, time.perf_counter() - began)
            return round(2e-9 * n * w * h / best, 1)

        yield {"what": "product", "library": library, "threads": threads, "batch": n, "width": w, "outputs": h,
               "forward": speed(lambda: x @ weights.T), "input_gradient": speed(lambda: g @ weights),
               "weight_gradient": speed(lambda: g.T @ x)}


def bags(library, threads):
    """Forward: the sum of a batch's vectors. Update: gradient of the table and one step of SGD, fastest of twelve."""
    import numpy as np

    if library == "torch":
        import torch

        torch.set_num_threads(threads)
    else:
        import scipy.sparse as sp
    for n_features, width, batch, nnz in BAGS:
        rng = np.random.default_rng(2)
        rows = [np.unique((rng.random(nnz) ** 3 * n_features).astype("i8")) for _ in range(batch)]
        ptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
        weight = np.concatenate([np.full(len(r), len(r) ** -0.5, "f") for r in rows])
        rows = np.concatenate(rows)
        forward, update = [], []
        if library == "torch":
            bag = torch.nn.EmbeddingBag(n_features, width, mode="sum", sparse=True)
            rule = torch.optim.SGD(bag.parameters(), lr=1e-3)
            gradient = torch.full((batch, width), 1e-3)
            rows, offsets, weight = torch.tensor(rows), torch.tensor(ptr[:-1]), torch.tensor(weight)
            for _ in range(12):
                rule.zero_grad()
                began = time.perf_counter()
                out = bag(rows, offsets, per_sample_weights=weight)
                forward.append(time.perf_counter() - began)
                began = time.perf_counter()
                out.backward(gradient)
                rule.step()
                update.append(time.perf_counter() - began)
        else:
            table = rng.random((n_features, width), dtype="f")
            x = sp.csr_matrix((weight, rows, ptr), shape=(batch, n_features))
            gradient = np.full((batch, width), 1e-3, "f")
            for _ in range(12):
                began = time.perf_counter()
                x @ table
                forward.append(time.perf_counter() - began)
                began = time.perf_counter()
                touched = np.unique(rows)
                table[touched] -= 1e-3 * (x[:, touched].T @ gradient)
                update.append(time.perf_counter() - began)
        yield {"what": "bag", "library": library, "threads": threads, "features": n_features, "width": width, "batch": batch,
               "nnz": len(rows), "forward_ms": round(min(forward) * 1e3, 3), "update_ms": round(min(update) * 1e3, 3)}


def steps(threads):
    import numpy as np
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    for n_features, width, hidden, outputs, batch, nnz in STEPS:
        for name in ("sgd", "adam"):
            bag = torch.nn.EmbeddingBag(n_features, width, mode="sum", sparse=True)
            rest = [torch.nn.ReLU()]
            if hidden:
                rest += [torch.nn.Linear(width, hidden), torch.nn.ReLU()]
            rest = torch.nn.Sequential(*rest, torch.nn.Linear(hidden or width, outputs))
            if name == "sgd":
                rules = [torch.optim.SGD(list(bag.parameters()) + list(rest.parameters()), lr=1e-3)]
            else:
                rules = [torch.optim.SparseAdam(bag.parameters(), lr=1e-3),
                         torch.optim.Adam(rest.parameters(), lr=1e-3, fused=True)]
            rng = np.random.default_rng(2)
            times = []
            for _ in range(14):
                rows = [np.unique((rng.random(nnz) ** 3 * n_features).astype("i8")) for _ in range(batch)]
                ptr = torch.tensor(np.concatenate([[0], np.cumsum([len(r) for r in rows])[:-1]]))
                weight = torch.tensor(np.concatenate([np.full(len(r), len(r) ** -0.5, "f") for r in rows]))
                rows, target = torch.tensor(np.concatenate(rows)), torch.tensor(rng.integers(0, outputs, batch))
                began = time.perf_counter()
                for rule in rules:
                    rule.zero_grad()
                loss = torch.nn.functional.cross_entropy(rest(bag(rows, ptr, per_sample_weights=weight)), target)
                loss.backward()
                for rule in rules:
                    rule.step()
                times.append((time.perf_counter() - began) * 1e3)
            yield {"what": "step", "library": "torch", "threads": threads, "features": n_features, "width": width,
                   "hidden": hidden, "outputs": outputs, "batch": batch, "optimizer": name,
                   "ms": round(sorted(times[4:])[5], 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        what, library, threads = given.one
        make = {"products": products, "bags": bags, "steps": lambda _, threads: steps(threads)}[what]
        lines = make(library, int(threads))
        for line in lines:
            print(json.dumps(line), flush=True)
        return
    for threads in given.threads:
        env = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        for what in ("products", "bags", "steps"):
            ours = subprocess.run(["cargo", "bench", "-q", "-p", "xc-nn", "--bench", "neural_speed", "--", str(threads), what], env=env, check=True, capture_output=True, text=True)
            for line in ours.stdout.splitlines():
                print(json.dumps({"library": "xc"} | json.loads(line)), flush=True)
            for library in ("numpy", "torch") if what != "steps" else ("torch",):
                subprocess.run([sys.executable, __file__, "--one", what, library, str(threads)], env=env, check=True)


if __name__ == "__main__":
    main()
