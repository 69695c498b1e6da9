#!/usr/bin/env python3
"""A transformer and a head trained on real texts by HuggingFace's transformers and PyTorch, beside `xc train dense`.

    pip install torch transformers numpy
    bench/transformer_peers.py DIR texts.jsonl [--xc PROGRAM] [--threads N] [--tokens N] [--rows N] [--precision f32,bf16]

Both train for one epoch over the first rows in batches of 32, drawn in an order of their own: AdamW, a loss of each label, no
dropout. Theirs is what people run: texts padded to the longest of a batch, the mean of states, fused AdamW, bf16 by autocast.
Prints for each the time and the CPU time of a step, tokenizing included, and the peak of memory. The time of xc is that of the
whole run with what it reads and saves, that of PyTorch of the steps after a first one.
"""
import argparse
import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

BATCH = 32


def rows_of(path, n):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line, _ in zip(file, range(n))]


def theirs(args, precision):
    """In a process of its own: seconds, CPU seconds and MiB."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    rows = rows_of(args.texts, args.rows)
    n_labels = max(label for row in rows for label in row["labels"]) + 1
    tokenizer, encoder = AutoTokenizer.from_pretrained(args.folder), AutoModel.from_pretrained(args.folder)
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    encoder.train()
    head = torch.nn.Linear(encoder.config.hidden_size, n_labels)
    groups = [{"params": encoder.parameters(), "lr": 1e-4}, {"params": head.parameters(), "lr": 1e-2}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
    loss = torch.nn.BCEWithLogitsLoss(reduction="sum")
    order = list(range(len(rows)))
    random.Random(0).shuffle(order)

    def step(numbers):
        some = [rows[number] for number in numbers]
        batch = tokenizer(
            [row["text"] for row in some], padding=True, truncation=True, max_length=args.tokens, return_tensors="pt")
        labels = torch.zeros(len(some), n_labels)
        for at, row in enumerate(some):
            labels[at, row["labels"]] = 1
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            states, mask = encoder(**batch).last_hidden_state, batch["attention_mask"][..., None]
            scores = head((states * mask).sum(1) / mask.sum(1))
        optimizer.zero_grad()
        (loss(scores.float(), labels) / len(some)).backward()
        optimizer.step()

    # One batch before, so that nothing of the start is counted.
    step(order[:BATCH])
    wall, cpu = time.perf_counter(), time.process_time()
    for first in range(0, len(order), BATCH):
        step(order[first : first + BATCH])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ours(args, precision):
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        with open(place / "train.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": row["text"], "labels": row["labels"]}) + "\n" for row in rows_of(args.texts, args.rows))
        subprocess.run([
            args.xc, "train", "dense", "--train", place / "train.jsonl", "--encoder", "transformer", "--transformer.from", args.folder,
            "--transformer.max-tokens", str(args.tokens), "--network.precision", precision, "--epochs", "1", "--batch", str(BATCH), "--loss", "bce",
            "--network.input-dropout", "0", "--threads", str(args.threads), "--model", place / "model", "--quiet",
        ], check=True)
        report = json.loads((place / "model.log" / "train.json").read_text(encoding="utf-8"))
        if report["steps"] != -(-args.rows // BATCH):
            sys.exit(f"xc took {report['steps']} steps of {args.rows} rows, as many as batches of {BATCH} make are expected")
        return report["wall_s"], report["cpu_s"], report["peak_rss_bytes"] / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("texts")
    parser.add_argument("--xc", default="target/release/xc")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--precision", default="f32,bf16")
    parser.add_argument("--theirs", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.theirs:
        print(json.dumps(theirs(args, args.theirs)))
        return
    steps = -(-args.rows // BATCH)
    for precision in args.precision.split(","):
        again = [sys.executable, __file__, *sys.argv[1:], "--theirs", precision]
        took = {
            "xc": ours(args, precision),
            "PyTorch": json.loads(subprocess.run(again, check=True, capture_output=True, text=True).stdout.splitlines()[-1]),
        }
        for name, (wall, cpu, mib) in took.items():
            print(f"{precision} {args.threads} threads, {name}: {1e3 * wall / steps:.0f} ms and {1e3 * cpu / steps:.0f} CPU ms a step of "
                  f"{BATCH}, {mib:.0f} MiB", flush=True)
        print(f"{precision}: PyTorch / xc {took['PyTorch'][0] / took['xc'][0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
