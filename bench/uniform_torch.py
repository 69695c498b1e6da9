"""PyTorch's layers at the shape of a sparse output layer, on the CPU: what a training step of each takes.

    uniform_torch.py [--inputs 512] [--units 32768] [--labels 670091] [--connections 32] [--batch 128] [--threads 2] [--steps 3]

`dense`: one output a label straight on the vectors (`Linear`, squared hinge, fused Adam), as the paper's dense row. `torch.sparse`: the vectors
through a dense layer of `--units` (ReLU), then weights in CSR: the logits by `torch.sparse.mm`, the gradient of the units by the transposed
matrix, the gradient of the weights by `torch.sparse.sampled_addmm`; timed one by one, since autograd makes a dense gradient of the
weights (labels * units * 4 bytes), and without their update; what PyTorch has no kernel for says so. One JSON line each.
"""
import argparse
import json
import resource
import time

import torch


def loss_of(z, y):
    """Squared hinge; y has the places of the true labels."""
    sign = torch.full_like(z, -1.0)
    sign[y[0], y[1]] = 1.0
    return torch.clamp(1 - sign * z, min=0).square().sum() / len(z)


def say(**record):
    record["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps(record), flush=True)


def batch_of(a):
    x = torch.nn.functional.normalize(torch.randn(a.batch, a.inputs))
    rows = torch.arange(a.batch).repeat_interleave(5)
    labels = (torch.rand(5 * a.batch) ** 2.5 * a.labels).long().clamp(max=a.labels - 1)
    return x, (rows, labels)


def dense(a):
    layer = torch.nn.Linear(a.inputs, a.labels)
    with torch.no_grad():
        layer.bias.fill_(-1.1)
    rule = torch.optim.Adam(layer.parameters(), lr=1e-3, fused=True)
    took = []
    for _ in range(a.steps):
        x, y = batch_of(a)
        began = time.perf_counter()
        rule.zero_grad()
        loss_of(layer(x), y).backward()
        rule.step()
        took.append(time.perf_counter() - began)
    say(layer="dense", batch=a.batch, ms_an_instance=round(1e3 * min(took[1:] or took) / a.batch, 2))


def sparse(a):
    below = torch.nn.Linear(a.inputs, a.units)
    rule = torch.optim.Adam(below.parameters(), lr=1e-3, fused=True)
    inputs = torch.stack([torch.randperm(a.units)[: a.connections].sort().values for _ in range(1000)])
    inputs = inputs[torch.randint(1000, (a.labels,))].reshape(-1)
    starts = torch.arange(a.labels + 1) * a.connections
    values = torch.randn(a.labels * a.connections) * a.connections**-0.5
    w = torch.sparse_csr_tensor(starts, inputs, values, (a.labels, a.units))
    wt = w.to_sparse_csc().t() if hasattr(w, "to_sparse_csc") else None
    took = {}

    def timed(name, f):
        try:
            best = None
            for _ in range(a.steps):
                began = time.perf_counter()
                out = f()
                spent = time.perf_counter() - began
                best = spent if best is None else min(best, spent)
            took[name] = round(1e3 * best / a.batch, 3)
            return out
        except Exception as e:  # what PyTorch has no kernel for
            took[name] = str(e).split("\n")[0][:160]

    x, y = batch_of(a)

    def layer():
        rule.zero_grad()
        h = torch.relu(below(x))
        h.sum().backward()
        rule.step()
        return h.detach()

    h = timed("dense layer below, whole step", layer)
    z = timed("logits", lambda: torch.sparse.mm(w, h.t()))
    g = timed("loss and its gradient", lambda: torch.clamp(1 + z, min=0) * (2 / a.batch)) if z is not None else None
    if g is not None:
        timed("gradient of the units", lambda: torch.sparse.mm(wt, g))
        timed("gradient of the weights", lambda: torch.sparse.sampled_addmm(w, g, h, beta=0.0))
    say(layer="torch.sparse", batch=a.batch, ms_an_instance=took)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(inputs=512, units=32768, labels=670091, connections=32, batch=128, threads=2, steps=3).items():
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--only", choices=["dense", "sparse"])
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    for name, f in (("dense", dense), ("sparse", sparse)):
        if a.only in (None, name):
            f(a)


if __name__ == "__main__":
    main()
