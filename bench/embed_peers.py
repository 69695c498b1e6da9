#!/usr/bin/env python3
"""Vectors of real texts by HuggingFace's transformers on one thread, beside those of `xc embed`.

    xc embed --from DIR --input texts.jsonl --output f32.npy --max-tokens 128 --threads 1
    xc embed --from DIR --input texts.jsonl --output bf16.npy --max-tokens 128 --threads 1 --precision bf16
    pip install torch transformers numpy
    bench/embed_peers.py DIR texts.jsonl f32.npy bf16.npy

Batches of 32, in the order of the file and sorted by length; the mean of the states, scaled to length 1. Prints CPU seconds
and the largest difference of a value.
"""
import json
import sys
import time

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


def vectors(tokenizer, model, texts, order, rounds):
    out, begin = np.zeros((len(texts), model.config.hidden_size), np.float32), time.process_time()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=rounds):
        for first in range(0, len(texts), 32):
            some = order[first : first + 32]
            named = {"padding": True, "truncation": True, "max_length": 128, "return_tensors": "pt"}
            batch = tokenizer([texts[i] for i in some], **named)
            states, mask = model(**batch).last_hidden_state.float(), batch["attention_mask"][..., None].float()
            mean = (states * mask).sum(1) / mask.sum(1)
            out[some] = torch.nn.functional.normalize(mean, dim=1).numpy()
    return out, time.process_time() - begin


def main(folder, texts, f32, bf16):
    torch.set_num_threads(1)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with open(texts, encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    as_they_come = list(range(len(texts)))
    by_length = sorted(as_they_come, key=lambda i: len(texts[i]))
    for rounds, ours in ((False, f32), (True, bf16)):
        for name, order in (("as they come", as_they_come), ("sorted", by_length)):
            theirs, seconds = vectors(tokenizer, model, texts, order, rounds)
            difference = np.abs(theirs - np.load(ours)).max()
            print(f"{'bf16' if rounds else 'f32'} {name}: {seconds:.1f} CPU s, largest difference {difference:.2g}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
