#!/usr/bin/env python3
"""Vectors of texts by onnxruntime and by `xc.Embedder`, of the same weights on the same CPU.

    pip install torch transformers onnx onnxruntime onnxscript numpy xc-labels
    bench/transformer_serving.py DIR texts.jsonl [--threads 1,2] [--tokens N] [--rows N] [--rounds N]

Each text alone, and batches of 32 texts in the order of their lengths. Tokenizing is part of the time. onnxruntime runs the
graph as its optimizer for transformers leaves it, with all of its other optimisations. Programs take turns; the median of the
rounds counts. Prints microseconds a text, the ratios, and the largest difference of two values of unit vectors.
"""
import argparse
import json
import pathlib
import statistics
import tempfile
import time

import numpy as np
import onnxruntime
import torch
import xc
from onnxruntime.transformers import optimizer
from transformers import AutoModel, AutoTokenizer

BATCH = 32


def exported(folder, place):
    """The graph from ids and mask to the mean of the states, at length 1."""
    encoder = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder

        def forward(self, input_ids, attention_mask):
            states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(states.dtype)
            return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)

    ids, mask = torch.ones(2, 7, dtype=torch.int64), torch.ones(2, 7, dtype=torch.int64)
    names, axes = ["input_ids", "attention_mask"], {0: "rows", 1: "tokens"}
    graph = str(place / "graph.onnx")
    # The optimizer finds attention in what this exporter writes, and not in what the newer one does.
    torch.onnx.export(
        Pooled().eval(), (ids, mask), graph, dynamo=False, opset_version=17, input_names=names, output_names=["vectors"],
        dynamic_axes={name: axes for name in names} | {"vectors": {0: "rows"}})
    config = encoder.config
    try:
        made = optimizer.optimize_model(
            graph, model_type="bert", num_heads=config.num_attention_heads, hidden_size=config.hidden_size, opt_level=0)
        print("fused by onnxruntime:", {name: n for name, n in made.get_fused_operator_statistics().items() if n})
        graph = str(place / "fused.onnx")
        made.save_model_to_file(graph)
    except Exception as error:
        print("onnxruntime's optimizer for transformers:", error)
    return graph


def session(graph, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("texts")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with open(args.texts, encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(args.rows))]
    tokenizer = AutoTokenizer.from_pretrained(args.folder)
    texts.sort(key=lambda text: len(tokenizer(text, truncation=True, max_length=args.tokens)["input_ids"]))
    n_tokens = sum(len(tokenizer(text, truncation=True, max_length=args.tokens)["input_ids"]) for text in texts)
    print(f"onnxruntime {onnxruntime.__version__}; {len(texts)} texts of {n_tokens / len(texts):.1f} tokens")
    ours = {name: xc.Embedder(args.folder, max_tokens=args.tokens, precision=name) for name in ["f32", "bf16"]}
    with tempfile.TemporaryDirectory() as folder:
        graph = exported(args.folder, pathlib.Path(folder))
        for threads in map(int, args.threads.split(",")):
            theirs = session(graph, threads)

            def of_theirs(some):
                batch = tokenizer(some, padding=True, truncation=True, max_length=args.tokens, return_tensors="np")
                batch = {name: batch[name].astype(np.int64) for name in ["input_ids", "attention_mask"]}
                return theirs.run(None, batch)[0]

            programs = {"onnxruntime f32": of_theirs}
            for name, embedder in ours.items():
                programs[f"xc {name}"] = lambda some, embedder=embedder: embedder.embed(some, threads=threads)
            for size in [1, BATCH]:
                blocks = [texts[first : first + size] for first in range(0, len(texts), size)]
                times, vectors = {name: [] for name in programs}, {}
                for _ in range(args.rounds + 1):
                    for name, program in programs.items():
                        start = time.perf_counter()
                        vectors[name] = np.concatenate([program(block) for block in blocks])
                        times[name].append((time.perf_counter() - start) / len(texts) * 1e6)
                # The first round warms up.
                medians = {name: statistics.median(all[1:]) for name, all in times.items()}
                expected = vectors["onnxruntime f32"]
                for name, us in medians.items():
                    ratio = medians["onnxruntime f32"] / us
                    far = np.abs(vectors[name] - expected).max()
                    print(f"{threads} threads, {size:2} together  {name:16} {us:8.0f} us a text, {ratio:5.2f} times as fast, "
                          f"differs by {far:.1e}", flush=True)


if __name__ == "__main__":
    main()
