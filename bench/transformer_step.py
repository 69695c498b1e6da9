#!/usr/bin/env python3
"""Steps of AdamW of a transformer of random weights over a batch of one length, in PyTorch: beside `transformer_speed`.

    pip install torch
    bench/transformer_step.py [--threads N] [--shapes mini,distil] [--precision f32,bf16] [--compile] [--steps N]

MiniLM-L6's shape over 32 x 32 tokens, DistilBERT's over 32 x 64; vocabulary 30,522, no dropout, scaled dot-product attention, fused
AdamW, bf16 by autocast. Prints the fastest and the median step, ms of wall time, and the peak of memory of the process. With
--compile the model goes through torch.compile first (its time is not counted).
"""
import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

SHAPES = {"mini": (384, 32), "distil": (768, 64)}
INSTANCES, VOCABULARY, LAYERS, HEADS = 32, 30_522, 6, 12


def model_of(width):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.attended = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

        def forward(self, x):
            n, length, _ = x.shape
            parts = self.qkv(x).view(n, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(n, length, width)
            x = self.norm1(x + self.attended(mixed))
            return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(512, width)
            self.norm, self.blocks = nn.LayerNorm(width, 1e-12), nn.ModuleList(Block() for _ in range(LAYERS))

        def forward(self, ids):
            x = self.norm(self.words(ids) + self.positions.weight[: ids.shape[1]])
            for block in self.blocks:
                x = block(x)
            return x.float().mean(1)

    torch.manual_seed(0)
    return Encoder().train()


def one(a, shape, precision):
    import torch

    torch.set_num_threads(a.threads)
    width, length = SHAPES[shape]
    model = model_of(width)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5, weight_decay=0.01, fused=True)
    run = torch.compile(model) if a.compile else model
    ids = torch.randint(100, 30_000, (INSTANCES, length))
    gradient = torch.linspace(-1, 1, width).expand(INSTANCES, width)
    times = []
    # The first steps compile, and find out which products are fastest.
    for step in range(a.steps + 2):
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            vectors = run(ids)
        vectors.backward(gradient)
        optimizer.step()
        optimizer.zero_grad()
        if step > 1:
            times.append(1e3 * (time.perf_counter() - start))
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({
        "torch": torch.__version__, "threads": a.threads, "shape": shape, "precision": precision, "compiled": a.compile,
        "step_ms": round(min(times), 1), "median_step_ms": round(statistics.median(times), 1), "MiB": round(mib)}), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--shapes", default="mini,distil")
    p.add_argument("--precision", default="f32,bf16")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        return one(a, *a.one)
    for shape in a.shapes.split(","):
        for precision in a.precision.split(","):
            # A process for each, so that its peak of memory is its own.
            subprocess.run([sys.executable, *sys.argv, "--one", shape, precision], check=True)


if __name__ == "__main__":
    main()
